# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements where masks, diagonals and windows say, composed of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._searching import searchsorted
from oneflow_lite._shapes import flip, meshgrid, movedim, tensor_split, wrapped_dim


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask holds the elements of ``source``, in their order, else those of the input.

    Raises
    ------
    ShapeError
        ``source`` has too few elements.
    DTypeError
        ``source`` has another dtype, or the mask is not of bool.
    """
    if source.dtype is not input.dtype:
        raise _ext.DTypeError(f"masked_scatter(): source has dtype {source.dtype.name}, expected "
                              f"{input.dtype.name}")  # fmt: skip
    if mask.dtype is not _ext.bool:
        raise _ext.DTypeError(f"masked_scatter(): mask has dtype {mask.dtype.name}, expected bool")
    shape = common_shape("masked_scatter", (input.shape, mask.shape))
    mask = mask.expand(shape).reshape(-1)
    wanted = int(mask.sum())
    if wanted > source.numel():
        raise _ext.ShapeError(f"masked_scatter(): source has {source.numel()} elements for {wanted}"
                              " places")  # fmt: skip
    if wanted == 0:
        return input.expand(shape).clone()
    place = (mask.to(None, _ext.int64).cumsum(0) - 1).clamp(0)
    values = source.reshape(-1).index_select(0, place)
    return _C.where(mask, values, input.expand(shape).reshape(-1)).view(shape)


def fill_diagonal_(self: Tensor, fill_value: float) -> Tensor:
    """Overwrites the diagonal with a number: the elements whose indices are all the same."""
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise _ext.ShapeError(f"fill_diagonal_(): self has shape {list(self.shape)}, expected 2 "
                              "dims, or more of one size")  # fmt: skip
    if self.numel():
        view = self.as_strided([min(self.shape)], [sum(self.stride())], self.storage_offset())
        view.fill_(fill_value)
    return self


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, zeros elsewhere, with the last dim's elements on their diagonals.

    An offset moves the diagonal so many columns to the right, or if negative rows down; the rows
    and columns are the dims ``dim1`` and ``dim2`` of the result.
    """
    if input.ndim == 0:
        raise _ext.ShapeError("diag_embed(): input has shape [], expected at least 1 dim")
    if dim1 % (input.ndim + 1) == dim2 % (input.ndim + 1):
        raise ValueError(f"diag_embed(): dim1 and dim2 are {dim1} and {dim2}, the same dim")
    count = input.shape[-1]
    size = count + abs(offset)
    first = offset if offset > 0 else -offset * size
    places = first + _C.arange(count, device=input.device) * (size + 1)
    flat = _C.zeros([*input.shape[:-1], size * size], dtype=input.dtype, device=input.device)
    y = flat.scatter(-1, places.expand(input.shape), input).unflatten(-1, (size, size))
    return movedim(y, (-2, -1), (dim1, dim2))


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrices along the diagonal of one; a tensor of fewer dims is a row."""
    blocks = [t.reshape(1, -1) if t.ndim < 2 else t for t in tensors]
    for i, t in enumerate(blocks):
        if t.ndim != 2:
            raise _ext.ShapeError(f"block_diag(): tensor {i} has shape {list(t.shape)}, expected "
                                  "at most 2 dims")  # fmt: skip
    cols, done, rows = sum(t.shape[1] for t in blocks), 0, []
    for t in blocks:
        after = cols - done - t.shape[1]
        rows.append(_C.cat([t.new_zeros(t.shape[0], done), t, t.new_zeros(t.shape[0], after)], 1))
        done += t.shape[1]
    return _C.cat(rows) if rows else _C.zeros([1, 0])


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each 1-D tensor: a row each; of one tensor, itself."""
    if len(tensors) == 1:
        return tensors[0]
    return _C.stack([g.reshape(-1) for g in meshgrid(*tensors)], -1)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by k right angles in the plane of two dims, from the first towards the second."""
    if len(dims) != 2:
        raise ValueError(f"rot90(): dims are {dims}, but they must be two")
    a, b = (wrapped_dim("rot90", input, d) for d in dims)
    if a == b:
        raise ValueError(f"rot90(): a dim occurs twice in {dims}")
    return (input.clone, lambda: flip(input, dims=b).transpose(a, b),
            lambda: flip(input, dims=[a, b]), lambda: flip(input, dims=a).transpose(a, b),
            )[k % 4]()  # fmt: skip


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a size along a dim, each a step on: the last dim is the window's.

    A view, but a copy of what requires grad.

    Raises
    ------
    ValueError
        The size is larger than the dim, or the step is not positive.
    """
    axis = wrapped_dim("unfold", self, dimension)
    x = self.view(1) if self.ndim == 0 else self
    if not 0 <= size <= x.shape[axis]:
        raise ValueError(f"unfold(): size is {size}, but it must be in [0, {x.shape[axis]}]")
    if step < 1:
        raise ValueError(f"unfold(): step is {step}, but it must be positive")
    if self.ndim == 0:
        return x.narrow(0, 0, size)
    shape, strides = list(x.shape), list(x.stride())
    shape[axis] = count = (shape[axis] - size) // step + 1
    if x.requires_grad:  # the gradient sums over windows that overlap
        starts = _C.arange(count, device=x.device) * step
        places = (starts.view(-1, 1) + _C.arange(size, device=x.device)).view(-1)
        y = x.index_select(axis, places).unflatten(axis, (count, size))
        return movedim(y, axis + 1, -1)
    window = strides[axis]
    strides[axis] *= step
    return x.as_strided([*shape, size], [*strides, window], x.storage_offset())


def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is among the others; with ``invert``, whether it is not."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): elements or test_elements must be a Tensor, but they are "
                        f"{type(elements).__name__} and "
                        f"{type(test_elements).__name__}")  # fmt: skip
    where = next(t for t in (elements, test_elements) if isinstance(t, Tensor)).device
    x, others = (t if isinstance(t, Tensor) else _ext.tensor(t, device=where)
                 for t in (elements, test_elements))  # fmt: skip
    if others.numel() == 0:
        return _C.full(list(x.shape), invert, dtype=_ext.bool, device=x.device)
    both = (x.reshape(-1)[:0] + others.reshape(-1)[:0]).dtype
    both = _ext.uint8 if both is _ext.bool else both
    x, others = x.detach().to(None, both), others.detach().to(None, both)
    ordered = _C.sort(others.reshape(-1))[0]
    place = searchsorted(ordered, x).clamp(None, ordered.numel() - 1)
    found = ordered.index_select(0, place.reshape(-1)).view(x.shape) == x
    return ~found if invert else found


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes come to; ShapeError where they do not go together."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if not all(isinstance(n, int) for shape in given for n in shape):
        raise TypeError("broadcast_shapes(): takes ints and tuples of ints")
    return common_shape("broadcast_shapes", given)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Behind each other along dim 2; tensors of fewer dims as ``[1, n, 1]`` or ``[m, n, 1]``."""
    return _C.cat([_with_three(t) for t in tensors], 2)


def _with_three(x: Tensor) -> Tensor:
    if x.ndim < 2:
        return x.reshape(1, -1, 1)
    return x.unsqueeze(-1) if x.ndim == 2 else x


def atleast_3d(*tensors: Any) -> Any:
    """The tensor as ``[1, n, 1]`` or ``[m, n, 1]`` where it has fewer dims; of several, a tuple."""
    one = len(tensors) == 1
    given = tensors[0] if one and not isinstance(tensors[0], Tensor) else tensors
    found = tuple(map(_with_three, given))
    return found[0] if one and given is tensors else found


def _cut(name: str, input: Tensor, cuts: Any, dim: int) -> tuple[Tensor, ...]:
    least = 2 if name == "vsplit" else 1
    if input.ndim < least:
        raise _ext.ShapeError(f"{name}(): input has shape {list(input.shape)}, expected at least "
                              f"{least} dim{'s' * (least > 1)}")  # fmt: skip
    if isinstance(cuts, int) and (cuts < 1 or input.shape[dim] % cuts):
        raise ValueError(f"{name}(): dim {dim} of size {input.shape[dim]} does not make {cuts} "
                         "parts of one size; tensor_split makes unequal ones")  # fmt: skip
    return tensor_split(input, cuts, dim)


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """As :func:`tensor_split` along dim 1, or dim 0 of a tensor of 1 dim; parts are of one size."""
    return _cut("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """As :func:`tensor_split` along dim 0, of 2 dims or more; parts are of one size."""
    return _cut("vsplit", input, indices_or_sections, 0)


FUNCTIONS = (atleast_3d, block_diag, broadcast_shapes, cartesian_prod, diag_embed, dstack, hsplit,
             isin, masked_scatter, rot90, vsplit)  # fmt: skip
METHODS = (diag_embed, fill_diagonal_, hsplit, masked_scatter, rot90, unfold, vsplit)
IN_PLACE = ("masked_scatter",)
