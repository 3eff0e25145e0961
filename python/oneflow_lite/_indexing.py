# SPDX-License-Identifier: Apache-2.0
"""Indexing with data: ``x[places]``, ``x[mask]``, ``x[:, places]``, and their assignment.

Integers, slices, None and ... make views, in C++; here is what makes copies, composed of gather and
scatter, so that autograd follows. The rules are NumPy's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor

_INTEGERS = (_ext.uint8, _ext.int8, _ext.int16, _ext.int32, _ext.int64)


def nonzero(x: Tensor) -> Tensor:
    """The places of the elements that are not 0: int64 ``[count, ndim]``, row by row.

    How many there are is known only once they are counted, so this waits for the device.
    """
    found = np.argwhere((x != 0).numpy(force=True)).astype(np.int64)
    return _ext.tensor(found, device=x.device).view(found.shape)


def _as_places(item: Any, device: Any) -> Tensor:
    data = item if isinstance(item, Tensor) else _ext.tensor(np.asarray(item), device=device)
    if data.numel() == 0 and not isinstance(item, Tensor):  # [] has no dtype of its own
        data = data.to(_ext.int64)
    if data.dtype not in (*_INTEGERS, _ext.bool):
        raise IndexError(
            f"an index must be of integers or bool, not of {data.dtype.name} "
            f"(shape {list(data.shape)})"
        )
    return data.to(device)


def _expand_mask(mask: Tensor, shape: tuple[int, ...], dim: int) -> list[Tensor]:
    """The places where a mask holds, a list of int64 per dim of the mask."""
    covered = shape[dim : dim + mask.ndim]
    if mask.shape != covered:
        raise IndexError(
            f"a mask of shape {list(mask.shape)} does not go with dims {list(covered)} "
            f"of shape {list(shape)}"
        )
    return list(nonzero(mask).unbind(1))


class _Plan:
    """An index taken apart: a view by the basic items, and places for some of its dims."""

    def __init__(self, x: Tensor, index: Any) -> None:
        items = list(index) if isinstance(index, tuple) else [index]
        # True and False, and 0-dim masks, stand for a new dim of size 1 or 0.
        places = {
            k: _as_places(item, x.device)
            for k, item in enumerate(items)
            if isinstance(item, list | bool | np.ndarray)
            or (isinstance(item, Tensor) and (item.ndim > 0 or item.dtype is _ext.bool))
        }
        given = sum(
            places[k].ndim if k in places and places[k].dtype is _ext.bool else 1
            for k, item in enumerate(items)
            if item is not None and item is not Ellipsis
        )
        if given > x.ndim:
            raise IndexError(f"too many indices: {given} for a tensor of shape {list(x.shape)}")
        basic: list[Any] = []  # of the view
        self.dims: list[int] = []  # of the view, with places
        self.places: list[Tensor] = []
        # With something between them, the dims of the places come first; integers are places here.
        alike = [k in places or not (item is None or item is Ellipsis or isinstance(item, slice))
                 for k, item in enumerate(items)]  # fmt: skip
        self.front = "10" in "".join("01"[a] for a in alike).strip("0")
        dim = source = 0
        for k, item in enumerate(items):
            if k in places:
                if places[k].dtype is not _ext.bool:
                    found = [self._wrapped(places[k], x.shape[source], source)]
                elif places[k].ndim == 0:
                    basic.append(None)
                    found = list(nonzero(places[k].view(1)).unbind(1))
                    source -= 1
                else:
                    found = _expand_mask(places[k], x.shape, source)
                    basic += [slice(None)] * (len(found) - 1)
                if places[k].ndim > 0 or places[k].dtype is not _ext.bool:
                    basic.append(slice(None))
                self.places += found
                self.dims += range(dim, dim + len(found))
                dim, source = dim + len(found), source + len(found)
                continue
            basic.append(item)
            if item is Ellipsis:
                dim, source = dim + x.ndim - given, source + x.ndim - given
            else:
                source += item is not None
                dim += not alike[k]
        self.view = x[tuple(basic)]

    @staticmethod
    def _wrapped(places: Tensor, size: int, dim: int) -> Tensor:
        places = places.to(_ext.int64)
        if places.device.type == "cpu" and places.numel() > 0:
            for extreme in (places.amin().item(), places.amax().item()):
                if not -size <= extreme < size:
                    raise IndexError(
                        f"index(): index {extreme} is out of range [{-size}, {size - 1}] for dim "
                        f"{dim} of size {size}"
                    )
        return places + (places < 0) * size

    def flat(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """The view with the dims of the places joined as dim 0, the joined places, their shape."""
        shapes = [tuple(p.shape) for p in self.places]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError(f"indices of shapes {shapes} do not go together") from None
        order = self.dims + [d for d in range(self.view.ndim) if d not in self.dims]
        moved = self.view.permute(order)
        sizes = moved.shape[: len(self.dims)]
        joined: Any = 0
        for p, size in zip(self.places, sizes, strict=True):
            joined = joined * size + p
        rows = moved.reshape((math.prod(sizes), *moved.shape[len(self.dims) :]))
        return rows, joined.expand(shape).reshape(-1), shape

    def place_dims(self, result: Tensor, count: int) -> Tensor:
        """The dims of the places, in front, to where they belong."""
        first = 0 if self.front else self.dims[0]
        order = list(range(count, result.ndim))
        order[first:first] = range(count)
        return result.permute(order)


def getitem(x: Tensor, index: Any) -> Tensor:
    """``x[index]`` where the index has data in it."""
    plan = _Plan(x, index)
    rows, places, shape = plan.flat()
    picked = rows.index_select(0, places)
    return plan.place_dims(picked.reshape((*shape, *rows.shape[1:])), len(shape))


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value`` where the index has data in it."""
    if isinstance(index, Tensor) and index.dtype is _ext.bool and index.shape == x.shape:
        if isinstance(value, float | int) or (isinstance(value, Tensor) and value.numel() == 1):
            # Of x's dtype: a wider one would round the elements that stay.
            filled = value if isinstance(value, Tensor) else _ext.tensor(value)
            filled = filled.to(x.device, x.dtype).reshape(())
            x.copy_(_C.where(index.to(x.device), filled, x))
            return
    plan = _Plan(x, index)
    rows, places, shape = plan.flat()
    target = plan.place_dims(_C.empty((*shape, *rows.shape[1:]), device="meta"), len(shape))
    given = value if isinstance(value, Tensor) else _ext.tensor(value, dtype=x.dtype)
    given = given.to(x.device, x.dtype)
    while given.ndim > target.ndim and given.shape[0] == 1:
        given = given[0]
    given = given.expand(target.shape)
    # Back to the places first, in the order of the rows.
    first = 0 if plan.front else plan.dims[0]
    order = list(range(first, first + len(shape)))
    order += [d for d in range(given.ndim) if d not in order]
    source = given.permute(order).reshape((places.numel(), *rows.shape[1:]))
    spread = places.view(-1, *[1] * (rows.ndim - 1)).expand(source.shape)
    changed = rows.scatter(0, spread, source)
    # rows may be a copy of the view: the result goes back the way it came.
    joined = plan.dims + [d for d in range(plan.view.ndim) if d not in plan.dims]
    moved = plan.view.permute(joined)
    plan.view.permute(joined).copy_(changed.reshape(moved.shape))
