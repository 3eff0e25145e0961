# SPDX-License-Identifier: Apache-2.0
"""Indexing with data: ``x[places]``, ``x[mask]``, ``x[:, places]``, and their assignment.

Integers, slices, None and ... make views, in C++; here is what makes copies, composed of gather and
scatter, so that autograd follows. The rules are NumPy's, but for two of PyTorch's: an integer far
from the places, see :class:`_Plan`, and data of uint8, which is a mask (with a warning, for NumPy
takes it for places).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import check_index_device
from oneflow_lite._named_errors import renamed
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._warnings import warn

_DATA = (bool, list, tuple, range, np.bool_, np.ndarray)
_INTEGERS = (_ext.uint8, _ext.int8, _ext.int16, _ext.int32, _ext.int64)
_TRUTHS = (_ext.bool, _ext.uint8)  # the dtypes of masks
_ravel = _ext.op_function("ravel_multi_index")


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The places of the elements that are not 0: int64 ``[count, ndim]``, row by row.

    With ``as_tuple`` a tensor ``[count]`` per dim instead, to index with. How many there are is
    known only once they are counted, so this waits for the device.
    """
    if as_tuple:
        return _C.argwhere(input if input.ndim > 0 else input.view(1)).unbind(1)
    return _C.argwhere(input)


def _as_tensor(item: Any) -> Tensor:
    if isinstance(item, Tensor):
        return item
    try:
        # Not through NumPy, which reads a list that its elements change while they are read.
        data = _ext.tensor(item)
    except (ValueError, TypeError) as error:  # rows of different lengths; what is no number
        raise IndexError(f"an index must be of integers or bool: {error}") from None
    if data.numel() == 0 and not isinstance(item, np.ndarray):  # [] has no dtype of its own
        return data.to(_ext.int64)
    return data


def _as_places(item: Any) -> Tensor:
    data = _as_tensor(item)
    if data.dtype not in (*_INTEGERS, _ext.bool):
        raise IndexError(
            f"an index must be of integers or bool, not of {data.dtype.name} "
            f"(shape {list(data.shape)})"
        )
    if data.dtype is _ext.uint8:
        warn("an index of dtype uint8 is a mask, as in PyTorch; pass x.bool() for a mask, x.long() "
             "for places")  # fmt: skip
        return data != 0
    return data


def _beside(places: Tensor, item: Any, x: Tensor, dim: int | None) -> Tensor:
    """Places that may index x. What is no tensor, the same on all ranks, is whole on each.

    Those of a dim, which may lie outside it, are looked at on the CPU before they leave it.
    """
    placement = None if isinstance(item, Tensor) else _ext._placement_of(x)
    if placement is None and places.device == x.device and not places.is_global:
        return places
    if dim is not None:
        places = _checked(places, x.shape[dim], dim)
    return places.to(x.device) if placement is None else _ext._everywhere(places, placement)


def _joined(places: list[Tensor], sizes: list[int], dims: list[int]) -> Tensor:
    """Places of several dims as those of these dims flattened, none of them negative."""
    try:
        return _ravel(places, sizes, dims)
    except IndexError as error:
        raise renamed(error, "index")  # noqa: B904  (it is the same exception)


def _checked(places: Tensor, size: int, dim: int) -> Tensor:
    """Places of a dim, or an IndexError; on a GPU they are not looked at, to wait for nothing."""
    if not places.is_cpu or places.numel() == 0:
        return places
    if not places.is_global:
        return _joined([places], [size], [dim])
    if not _ext._takes_part(places):
        return places
    for extreme in (places.amin().item(), places.amax().item()):  # the same on every rank
        if not -size <= extreme < size:
            raise IndexError(
                f"index(): index {extreme} is out of range [{-size}, {size - 1}] for dim "
                f"{dim} of size {size}"
            )
    return places


def _expand_mask(mask: Tensor, shape: tuple[int, ...], dim: int) -> list[Tensor]:
    """The places where a mask holds, a list of int64 per dim of the mask."""
    covered = shape[dim : dim + mask.ndim]
    if mask.shape != covered:
        raise IndexError(
            f"a mask of shape {list(mask.shape)} does not go with dims {list(covered)} "
            f"of shape {list(shape)}"
        )
    return list(nonzero(mask).unbind(1))


def _is_mask(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return item.ndim > 0 and item.dtype.kind == "b"
    return isinstance(item, Tensor) and item.ndim > 0 and item.dtype in _TRUTHS


def _is_foreign_array(item: Any) -> bool:
    """Whether it gives its elements by a protocol; a number is none, and text."""
    if item is None or isinstance(item, (Tensor, int, slice, np.generic, str, bytes, bytearray)):
        return False
    if any(hasattr(item, name) for name in ("__array__", "__dlpack__", "__array_interface__")):
        return hasattr(item, "__getitem__") or not hasattr(item, "__index__")
    try:
        memoryview(item)
    except TypeError:
        return False
    return True


def _items_of(index: Any) -> list[Any]:
    """The index of each dim. A list that holds masks is a tuple of indices, as in PyTorch."""
    if isinstance(index, tuple):
        return list(index)
    if type(index) is list and any(map(_is_mask, index)):
        warn("a list that holds masks is an index for each dim, as in PyTorch; pass "
             "x[tuple(indices)]")  # fmt: skip
        return list(index)
    return [index]


class _Plan:
    """An index taken apart: a view by the basic items, and places for some of its dims."""

    def __init__(self, x: Tensor, index: Any) -> None:
        items = _items_of(index)
        # True and False, and 0-dim masks, stand for a new dim of size 1 or 0.
        places = {
            k: _as_places(item)
            for k, item in enumerate(items)
            if isinstance(item, _DATA)
            or (isinstance(item, Tensor) and (item.ndim > 0 or item.dtype in _TRUTHS))
            or _is_foreign_array(item)
        }
        for data in places.values():
            check_index_device(x, data)
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
        self.sources: list[int] = []  # dims of x that they belong to, for messages
        dim = source = 0
        for k, item in enumerate(items):
            if k in places:
                own: list[int | None] = [None]  # dims of x, where places may lie outside
                if places[k].dtype is not _ext.bool:
                    found, own = [places[k].to(_ext.int64)], [source]
                elif places[k].ndim == 0:
                    basic.append(None)
                    found = list(nonzero(places[k].view(1)).unbind(1))
                    source -= 1
                else:
                    found = _expand_mask(places[k], x.shape, source)
                    own = [None] * len(found)
                    basic += [slice(None)] * (len(found) - 1)
                if places[k].ndim > 0 or places[k].dtype is not _ext.bool:
                    basic.append(slice(None))
                self.places += [_beside(f, items[k], x, d) for f, d in zip(found, own, strict=True)]
                self.sources += [-1 if d is None else d for d in own]
                self.dims += range(dim, dim + len(found))
                dim, source = dim + len(found), source + len(found)
                continue
            basic.append(item)
            if item is Ellipsis:
                dim, source = dim + x.ndim - given, source + x.ndim - given
            else:
                source += item is not None
                dim += item is None or isinstance(item, slice)
        # With dims between them, those of the places come first. An integer is no place: as in
        # PyTorch it takes its dim away before, so x[0, :, places] is x[0][:, places].
        self.front = self.dims[-1] - self.dims[0] >= len(self.dims)
        self.view = x[tuple(basic)]

    def flat(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """The view with the dims of the places joined as dim 0, the joined places, their shape."""
        shapes = [tuple(p.shape) for p in self.places]
        try:
            shape = shapes[0] if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError(f"indices of shapes {shapes} do not go together") from None
        rows = self.moved()
        sizes = list(rows.shape[: len(self.dims)])
        joined = _joined(self.places, sizes, self.sources)
        if len(sizes) > 1:
            rows = rows.reshape((math.prod(sizes), *rows.shape[len(sizes) :]))
        return rows, joined.reshape(-1), shape

    def moved(self) -> Tensor:
        """The view with the dims of the places in front."""
        return self.view.permute(
            self.dims + [d for d in range(self.view.ndim) if d not in self.dims]
        )

    def joins_in_place(self) -> bool:
        """Whether the rows of :meth:`flat` are the memory of the view."""
        moved = self.moved()
        if len(self.dims) > 1 and moved.is_global:  # joining may gather what is split
            return False
        strides, sizes = moved.stride(), moved.shape
        return moved.numel() > 0 and all(
            strides[d] == strides[d + 1] * sizes[d + 1] for d in range(len(self.dims) - 1)
        )

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


def setitem(x: Tensor, index: Any, value: Any, accumulate: bool = False) -> None:
    """``x[index] = value`` where the index has data in it, or ``+=`` if ``accumulate``."""
    try:
        _write(x, index, value, accumulate)
    except Exception as error:
        raise renamed(error, "setitem")  # noqa: B904  (it is the same exception)


def _write(x: Tensor, index: Any, value: Any, accumulate: bool) -> None:
    if isinstance(index, Tensor) and index.dtype is _ext.uint8:
        index = _as_places(index)
    if isinstance(index, Tensor) and index.dtype is _ext.bool and index.shape == x.shape:
        if isinstance(value, float | int) or (isinstance(value, Tensor) and value.numel() == 1):
            # Of x's dtype: a wider one would round the elements that stay.
            filled = value if isinstance(value, Tensor) else _ext.tensor(value, dtype=x.dtype)
            filled = filled.to(x.device, x.dtype).reshape(())
            check_index_device(x, index)
            if accumulate:
                x.copy_(_C.where(index.to(x.device), x + filled, x))
            else:
                x.masked_fill_(index.to(x.device), filled)
            return
    plan = _Plan(x, index)
    rows, places, shape = plan.flat()
    source = _source(plan, rows, shape, value)
    if plan.joins_in_place():
        (rows.index_add_ if accumulate else rows.index_copy_)(0, places, source)
        return
    changed = (rows.index_add if accumulate else rows.index_copy)(0, places, source)
    moved = plan.moved()  # rows are a copy: the result goes back the way it came
    moved.copy_(changed.reshape(moved.shape))


def _source(plan: _Plan, rows: Tensor, shape: tuple[int, ...], value: Any) -> Tensor:
    """What is written, broadcast to the places, as rows in their order."""
    target = plan.place_dims(_C.empty((*shape, *rows.shape[1:]), device="meta"), len(shape))
    given = value if isinstance(value, Tensor) else _ext.tensor(value, dtype=rows.dtype)
    given = given.to(rows.device, rows.dtype)
    placement = _ext._placement_of(rows)
    if placement is not None and not given.is_global and given.ndim == 0:  # a number
        given = _ext._everywhere(given, placement)
    while given.ndim > target.ndim and given.shape[0] == 1:
        given = given[0]
    given = given.expand(target.shape)
    first = 0 if plan.front else plan.dims[0]
    order = list(range(first, first + len(shape)))
    order += [d for d in range(given.ndim) if d not in order]
    return given.permute(order).reshape((math.prod(shape), *rows.shape[1:]))


# Functions ------------------------------------------------------------------------------------


def _as_condition(condition: Any) -> Any:
    """A condition of bool; uint8 is one with a warning, as in PyTorch."""
    if isinstance(condition, Tensor) and condition.dtype is _ext.uint8:
        warn("where(): a condition of dtype uint8 holds where it is not 0, as in PyTorch; pass "
             "condition.bool()")  # fmt: skip
        return condition != 0
    return condition


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Tensor, input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None
) -> Tensor: ...
def where(condition: Tensor, *operands: Any, **kwargs: Any) -> Any:
    """Elements of one operand where the condition holds, else of the other; see ``_C.where``.

    Of the condition alone: its places that are not 0, a tensor per dim, as :func:`nonzero`.
    """
    if not operands and not kwargs:
        return nonzero(condition, as_tuple=True)
    return _C.where(_as_condition(condition), *operands, **kwargs)


def _where_method(self: Tensor, condition: Tensor, other: Tensor | float) -> Tensor:
    """The elements where the condition holds, else those of ``other``."""
    return _C.where(_as_condition(condition), self, other)


_where_method.__name__ = "where"


def _spread(places: Tensor | None) -> Any:
    """A number as a place of one: here it is data, not a part of the view; None as a whole dim."""
    if places is None:
        return slice(None)
    return places.view(1) if places.ndim == 0 and places.dtype not in _TRUTHS else places


def index_put_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """``self[indices] = values``, or with ``accumulate`` the sum of all that meet in a place.

    Of bool the sum is whether one of them holds.
    """
    places = tuple(indices)
    for place in places:
        if place is None or place.ndim == 0:
            places = tuple(map(_spread, places))
            break
    if not _ext._write_at(self, places, values, accumulate):
        setitem(self, places, values, accumulate)
    return self


def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy with :meth:`Tensor.index_put_` done to it."""
    return index_put_(input.clone(), indices, values, accumulate)


METHODS = (index_put, index_put_, nonzero, _where_method)
FUNCTIONS = (index_put, nonzero, where)
