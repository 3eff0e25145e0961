# SPDX-License-Identifier: Apache-2.0
"""Functions that move and repeat elements, composed of those in C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor


def _dim(name: str, input: Tensor, dim: int) -> int:
    n = max(1, input.ndim)
    if not -n <= dim < n:
        raise IndexError(f"{name}(): dim {dim} is out of range [{-n}, {n - 1}] for a tensor of "
                         f"shape {list(input.shape)}")  # fmt: skip
    return dim % n


def _dims(name: str, input: Tensor, dims: int | Sequence[int]) -> list[int]:
    found = [_dim(name, input, d) for d in ([dims] if isinstance(dims, int) else dims)]
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
    return input.reshape(pairs).expand(wide).reshape(joined)


def tile(input: Tensor, *dims: Any) -> Tensor:
    """:func:`repeat`, where missing sizes in front are 1."""
    times = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    return repeat(input, [1] * (input.ndim - len(times)) + times)


def repeat_interleave(input: Tensor, repeats: int, dim: int | None = None) -> Tensor:
    """Each element so many times in a row, along a dim or of the flat tensor."""
    x, axis = (
        (input.reshape(-1), 0) if dim is None else (input, _dim("repeat_interleave", input, dim))
    )
    shape = list(x.shape)
    wide = x.unsqueeze(axis + 1).expand([*shape[: axis + 1], repeats, *shape[axis + 1 :]])
    return wide.reshape([*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]])


def flip(input: Tensor, *dims: Any) -> Tensor:
    """The order of the elements along the dims turned round."""
    chosen = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    for dim in _dims("flip", input, chosen):
        size = input.shape[dim] if input.ndim > 0 else 1
        places = size - 1 - _C.arange(size, device=input.device)
        input = input.index_select(dim, places)
    return input


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
        dim = _dim("roll", input, given)
        if input.ndim == 0 or input.shape[dim] == 0:
            continue
        size = input.shape[dim]
        cut = -shift % size
        parts = [input.narrow(dim, cut, size - cut), input.narrow(dim, 0, cut)]
        input = _C.cat(parts, dim)
    return input


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim as several."""
    d = _dim("unflatten", input, dim)
    return input.reshape([*input.shape[:d], *sizes, *input.shape[d + 1 :]])


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The tensor repeated to a shape, without a copy."""
    return input.expand(size)


def diagonal(input: Tensor) -> Tensor:
    """The diagonal of a matrix: a view, but a copy where a strided one needs a gradient."""
    if input.ndim != 2:
        raise _ext.ShapeError(f"diagonal(): takes a matrix, not shape {list(input.shape)}")
    n = min(input.shape)
    if n > 0 and (input.is_contiguous() or input.requires_grad):
        cols = input.shape[1]
        return input.reshape(-1)[: (n - 1) * (cols + 1) + 1 : cols + 1]
    rows, cols = input.stride()
    return input.as_strided([n], [rows + cols])


def _triangle(input: Tensor, diagonal: int, lower: bool) -> Tensor:
    if input.ndim < 2:
        raise ValueError(f"a triangle needs at least 2 dims, not shape {list(input.shape)}")
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


FUNCTIONS = (broadcast_to, diagonal, flip, movedim, repeat_interleave, roll, split, tile, tril,
             triu, unflatten)  # fmt: skip
METHODS = (*(f for f in FUNCTIONS if f is not split), repeat, _split_method)
