# SPDX-License-Identifier: Apache-2.0
"""Functions that move and repeat elements, composed of those in C++."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._math import of_its_own
from oneflow_lite._oneflow_lite import _C, Tensor, dtype


def wrapped_dim(name: str, input: Tensor, dim: int) -> int:
    """The dim counted from the front; an IndexError in the name of a function if there is none."""
    n = max(1, input.ndim)
    if not -n <= dim < n:
        raise IndexError(f"{name}(): dim {dim} is out of range [{-n}, {n - 1}] for a tensor of "
                         f"shape {list(input.shape)}")  # fmt: skip
    return dim % n


def _dims(name: str, input: Tensor, dims: int | Sequence[int]) -> list[int]:
    found = [wrapped_dim(name, input, d) for d in ([dims] if isinstance(dims, int) else dims)]
    if len(set(found)) < len(found):
        raise ValueError(f"{name}(): a dim occurs twice in {dims}")
    return found


def split(
    tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Views along a dim: of one size (the last has what is left), or of sizes that add up to it."""
    if isinstance(split_size_or_sections, list | tuple):
        return _C.split_with_sizes(tensor, split_size_or_sections, dim)
    return _C.split(tensor, split_size_or_sections, dim)


def _split_method(
    self: Tensor, split_size: int | Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    return split(self, split_size, dim)


_split_method.__name__, _split_method.__doc__ = "split", split.__doc__


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with dims moved to other places; the others keep their order."""
    start, end = _dims("movedim", input, source), _dims("movedim", input, destination)
    if len(start) != len(end):
        raise ValueError(f"movedim(): {len(start)} dims to {len(end)} places")
    order = [d for d in range(input.ndim) if d not in start]
    for at, d in sorted(zip(end, start, strict=True)):
        order.insert(at, d)
    return input.permute(order[: input.ndim])


def _copied(view: Tensor) -> Tensor:
    """Dense memory of its own: an expanded view may pass for another shape without a copy."""
    return view.clone() if view.is_contiguous() else view.contiguous()


def repeat(input: Tensor, *sizes: Any) -> Tensor:
    """The tensor so many times along each dim; dims in front are new."""
    times = list(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else list(sizes)
    if len(times) < input.ndim:
        raise ValueError(f"repeat(): {len(times)} sizes for a tensor of {input.ndim} dims")
    if any(n < 0 for n in times):
        raise ValueError(f"repeat(): sizes are {times}, but they must not be negative")
    shape = [1] * (len(times) - input.ndim) + list(input.shape)
    pairs = [n for pair in zip([1] * len(shape), shape, strict=True) for n in pair]
    wide = [n for pair in zip(times, shape, strict=True) for n in pair]
    joined = [a * b for a, b in zip(times, shape, strict=True)]
    return _copied(input.reshape(pairs).expand(wide)).reshape(joined)


def tile(input: Tensor, *dims: Any) -> Tensor:
    """:func:`repeat`, where missing sizes in front are 1."""
    times = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    return repeat(input, [1] * (input.ndim - len(times)) + times)


def _check_repeats(repeats: Tensor) -> None:
    if repeats.dtype.is_floating_point or repeats.dtype is _ext.bool:
        raise _ext.DTypeError(f"repeat_interleave(): repeats has dtype {repeats.dtype.name}, but "
                              "it must be one of uint8, int8, int16, int32, int64")  # fmt: skip


def _repeated(repeats: Tensor) -> Tensor:
    """Each place as often as the number there says; to see how many that are waits."""
    _check_repeats(repeats)
    if repeats.ndim != 1:
        raise _ext.ShapeError(f"repeat_interleave(): repeats has shape {list(repeats.shape)}, "
                              "expected 1 dim")  # fmt: skip
    if bool((repeats < 0).any()):
        least = repeats.amin().item()
        raise ValueError(f"repeat_interleave(): repeats is {least}, but it must not be negative")
    if repeats.numel() == 0:
        return repeats.long()
    ends = repeats.long().cumsum(0)
    total = int(ends[-1])
    marks = _C.zeros([total + 1], dtype=_ext.int64, device=repeats.device)
    return marks.scatter_add(0, ends, _C.ones_like(ends)).cumsum(0).narrow(0, 0, total)


def repeat_interleave(
    input: Tensor,
    repeats: int | Tensor | None = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Each element so many times in a row, along a dim or of the flat tensor.

    Parameters
    ----------
    repeats : int or Tensor
        One number for all, or a 1-D tensor with one each. Where absent, ``input`` are the numbers
        and their places are repeated.
    output_size : int, optional
        Taken for PyTorch's sake: the size is counted.

    Raises
    ------
    ShapeError
        Not as many numbers as elements along the dim.
    ValueError
        A negative number.
    TypeError, DTypeError
        A number, or a tensor of numbers, that are no integers.
    """
    if repeats is None:
        return _repeated(input)
    x, axis = (
        (input.reshape(-1), 0)
        if dim is None
        else (input, wrapped_dim("repeat_interleave", input, dim))
    )
    if isinstance(repeats, Tensor) and repeats.numel() != 1:
        if repeats.ndim != 1 or repeats.shape[0] != x.shape[axis]:
            raise _ext.ShapeError(f"repeat_interleave(): repeats has shape {list(repeats.shape)}, "
                                  f"expected [{x.shape[axis]}]")  # fmt: skip
        return x.index_select(axis, _repeated(repeats))
    if isinstance(repeats, Tensor):
        _check_repeats(repeats)
    elif isinstance(repeats, bool | np.bool_) or not hasattr(repeats, "__index__"):
        raise TypeError("repeat_interleave(): argument 'repeats' must be int or Tensor, not "
                        f"{type(repeats).__name__}")  # fmt: skip
    repeats, shape = operator.index(repeats), list(x.shape)
    if repeats < 0:
        raise ValueError(f"repeat_interleave(): repeats is {repeats}, but it must not be negative")
    wide = x.unsqueeze(axis + 1).expand([*shape[: axis + 1], repeats, *shape[axis + 1 :]])
    return _copied(wide).reshape([*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])


@of_its_own
def flip(input: Tensor, *spread: Any, dims: int | Sequence[int] | None = None) -> Tensor:
    """The order of the elements along the dims turned round."""
    chosen = dims if dims is not None else spread[0] if len(spread) == 1 else spread
    for dim in _dims("flip", input, chosen):
        size = input.shape[dim] if input.ndim > 0 else 1
        places = size - 1 - _C.arange(size, device=input.device)
        input = input.index_select(dim, places)
    return input


@of_its_own
def roll(
    input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Tensor:
    """The elements moved along dims (or in the flat tensor), round from the end to the start."""
    steps = [shifts] if isinstance(shifts, int) else list(shifts)
    if dims is None:
        return roll(input.reshape(-1), sum(steps), 0).reshape(input.shape)
    along = [dims] if isinstance(dims, int) else list(dims)
    if len(steps) != len(along):
        raise ValueError(f"roll(): {len(steps)} shifts for {len(along)} dims")
    for shift, given in zip(steps, along, strict=True):
        dim = wrapped_dim("roll", input, given)
        if input.ndim == 0 or input.shape[dim] == 0:
            continue
        size = input.shape[dim]
        cut = -shift % size
        parts = [input.narrow(dim, cut, size - cut), input.narrow(dim, 0, cut)]
        input = _C.cat(parts, dim)
    return input


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several."""
    d = wrapped_dim("unflatten", input, dim)
    return input.reshape([*input.shape[:d], *sizes, *input.shape[d + 1 :]])


def broadcast_to(input: Tensor, *spread: Any, size: Sequence[int] | None = None) -> Tensor:
    """The tensor repeated to a shape, without a copy."""
    return input.expand(*spread) if size is None else input.expand(size)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dims, at the end: a view; a copy where a strided one needs a gradient.

    With an offset it starts so many columns to the right, or if negative rows further down.
    """
    if input.ndim < 2:
        raise _ext.ShapeError(f"diagonal(): input has shape {list(input.shape)}, expected at least "
                              "2 dims")  # fmt: skip
    x = movedim(input, _dims("diagonal", input, [dim1, dim2]), (-2, -1))
    rows, cols = x.shape[-2:]
    x = x[..., max(0, -offset) :, :]
    n = max(0, min(x.shape[-2], cols - max(0, offset)))
    if n == 0:
        return x[..., :0, :0].flatten(-2)
    first = max(0, offset)
    if x.is_contiguous() or x.requires_grad:
        return x.flatten(-2)[..., first :: cols + 1][..., :n]
    *outer, row, col = x.stride()
    shape = [*x.shape[:-2], n]
    return x.as_strided(shape, [*outer, row + col], x.storage_offset() + first * col)


_diagonal = diagonal


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A square matrix with this diagonal and zeros elsewhere; of a matrix its diagonal."""
    if input.ndim == 2:
        return _diagonal(input, diagonal)
    if input.ndim != 1:
        raise _ext.ShapeError(f"diag(): input has shape {list(input.shape)}, expected 1 or 2 dims")
    size = input.shape[0] + abs(diagonal)
    y = _C.zeros([size * size], dtype=input.dtype, device=input.device)
    first = diagonal if diagonal > 0 else -diagonal * size
    places = first + _C.arange(input.shape[0], device=input.device) * (size + 1)
    return y.scatter(0, places, input).view(size, size)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A square matrix with all elements, in their order, on a diagonal and zeros elsewhere."""
    return diag(input.reshape(-1), offset)


def _joined(dim: int, least: int, tensors: Sequence[Tensor]) -> Tensor:
    parts = [t.reshape([1] * (least - t.ndim) + list(t.shape)) for t in tensors]
    return _C.cat(parts, dim if parts and parts[0].ndim > 1 else 0)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """After each other along dim 1, or dim 0 for tensors of 1 dim."""
    return _joined(1, 1, tensors)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Under each other: along dim 0, tensors of 1 dim as rows."""
    return _joined(0, 2, tensors)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors repeated to one shape, without a copy."""
    shape = common_shape("broadcast_tensors", (t.shape for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of all points of a grid; "xy" has its first two dims the other way round."""
    one = len(tensors) == 1 and not isinstance(tensors[0], Tensor)
    given = list(tensors[0]) if one else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid(): indexing is "{indexing}", but it must be "ij" or "xy"')
    for t in given:
        if t.ndim > 1:
            raise _ext.ShapeError(f"meshgrid(): a tensor has shape {list(t.shape)}, expected at "
                                  "most 1 dim")  # fmt: skip
    count = len(given)
    lines = [t.reshape([-1 if d == k else 1 for d in range(count)]) for k, t in enumerate(given)]
    grids = broadcast_tensors(*lines)
    return tuple(g.transpose(0, 1) for g in grids) if indexing == "xy" and count > 1 else grids


def _triangle(input: Tensor, diagonal: int, lower: bool) -> Tensor:
    if input.ndim < 2:
        raise _ext.ShapeError(f"{'tril' if lower else 'triu'}(): input has shape "
                              f"{list(input.shape)}, expected at least 2 dims")  # fmt: skip
    rows = _C.arange(input.shape[-2], device=input.device).view(-1, 1)
    cols = _C.arange(input.shape[-1], device=input.device)
    inside = cols - rows <= diagonal if lower else cols - rows >= diagonal
    return _C.where(inside, input, _C.zeros([], dtype=input.dtype, device=input.device))


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """What lies on the diagonal and below, else 0, of the last two dims."""
    return _triangle(input, diagonal, lower=True)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """What lies on the diagonal and above, else 0, of the last two dims."""
    return _triangle(input, diagonal, lower=False)


def _with_dims(least: int, tensors: tuple[Any, ...]) -> Any:
    one = len(tensors) == 1
    given = tensors[0] if one and not isinstance(tensors[0], Tensor) else tensors
    found = tuple(t.reshape([1] * (least - t.ndim) + list(t.shape)) if t.ndim < least else t
                  for t in given)  # fmt: skip
    return found[0] if one and given is tensors else found


def atleast_1d(*tensors: Any) -> Any:
    """The tensor, with a dim where it has none; of several, a tuple."""
    return _with_dims(1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """The tensor, with as many dims of 1 in front that it has two; of several, a tuple."""
    return _with_dims(2, tensors)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Beside each other along dim 1, tensors of 1 dim as columns."""
    return _C.cat([t.reshape(-1, 1) if t.ndim < 2 else t for t in tensors], 1)


_MOST_EMPTY = 1 << 20  # sections, of which most are empty: each is a tensor


def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int] | Any, dim: int = 0
) -> tuple[Tensor, ...]:
    """Views along a dim: so many, the first ones longer by 1 where needed; or cut at places."""
    axis = wrapped_dim("tensor_split", input, dim)
    size, cuts = input.shape[axis], indices_or_sections
    if isinstance(cuts, Tensor):
        cuts = cuts.tolist()
    if isinstance(cuts, int):
        most = max(size, _MOST_EMPTY)
        if not 1 <= cuts <= most:
            raise ValueError(f"tensor_split(): {cuts} sections, but there must be 1 to {most}")
        short, longer = divmod(size, cuts)
        cuts = [k * short + min(k, longer) for k in range(1, cuts)]
    # A slice puts places that are negative or too large where they belong.
    return tuple(
        _C.slice(input, axis, start, end)
        for start, end in zip([None, *cuts], [*cuts, None], strict=True)
    )


def fliplr(input: Tensor) -> Tensor:
    """The order along dim 1 turned round."""
    if input.ndim < 2:
        raise _ext.ShapeError(f"fliplr(): input has shape {list(input.shape)}, expected at least 2 "
                              "dims")  # fmt: skip
    return flip(input, dims=1)


def flipud(input: Tensor) -> Tensor:
    """The order along dim 0 turned round."""
    if input.ndim < 1:
        raise _ext.ShapeError("flipud(): input has shape [], expected at least 1 dim")
    return flip(input, dims=0)


def ravel(input: Tensor) -> Tensor:
    """The elements along one dim, copied where strides cannot express it."""
    return input.reshape(-1)


def _check_ints(name: str, **values: Any) -> None:
    for argument, value in values.items():
        if not isinstance(value, int):
            raise TypeError(f"{name}(): argument '{argument}' must be int, not "
                            f"{type(value).__name__}")  # fmt: skip


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype = _ext.int64, device: Any = None
) -> Tensor:
    """The places that :func:`tril` keeps: ``[2, count]``, row by row."""
    _check_ints("tril_indices", row=row, col=col, offset=offset)
    found = np.stack(np.tril_indices(row, offset, col)).astype(np.int64)
    return _ext.tensor(found, dtype=dtype, device=device)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: dtype = _ext.int64, device: Any = None
) -> Tensor:
    """The places that :func:`triu` keeps: ``[2, count]``, row by row."""
    _check_ints("triu_indices", row=row, col=col, offset=offset)
    found = np.stack(np.triu_indices(row, offset, col)).astype(np.int64)
    return _ext.tensor(found, dtype=dtype, device=device)


FUNCTIONS = (atleast_1d, atleast_2d, broadcast_tensors, broadcast_to, column_stack, diag, diagflat,
             diagonal, flip, fliplr, flipud, hstack, meshgrid, movedim, ravel, repeat_interleave,
             roll, split, tensor_split, tile, tril, tril_indices, triu, triu_indices, unflatten,
             vstack)  # fmt: skip
METHODS = (broadcast_to, diag, diagflat, diagonal, flip, fliplr, flipud, movedim, ravel, repeat,
           repeat_interleave, roll, tensor_split, tile, tril, triu, unflatten,
           _split_method)  # fmt: skip
