# SPDX-License-Identifier: Apache-2.0
"""scatter that joins what meets in one place: sums, products, means, extremes."""

from __future__ import annotations

from collections.abc import Callable

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import wide
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._shapes import wrapped_dim
from oneflow_lite.autograd.function import Function, FunctionCtx

_Source = Tensor | float | None
_scatter_ = Tensor.scatter_
_JOINS = {"prod": _C.mul, "amax": _C.maximum, "amin": _C.minimum}


def _source(name: str, src: _Source, value: float | None) -> Tensor | float:
    if (src is None) == (value is None):
        raise TypeError(f"{name}() takes src or value")
    return value if src is None else src  # type: ignore[return-value]


def _with_reduction(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor | float, reduce: str
) -> Tensor:
    if reduce not in ("add", "multiply"):
        raise ValueError(f'{name}(): reduce is "{reduce}", but it must be "add" or "multiply"')
    if not isinstance(source, Tensor):
        number = _C.full([], source, dtype=input.dtype, device=input.device)
        source = number.expand(index.shape)
    if reduce == "add":
        return _C.scatter_add(input, dim, index, source)
    return scatter_reduce(input, dim, index, source, "prod")


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: _Source = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
) -> Tensor:
    """``input`` with ``src``, a tensor or a number, at the places that ``index`` gives along a dim.

    A place out of range is an IndexError on the CPU; on CUDA nothing goes there.

    Parameters
    ----------
    index : Tensor
        int64 or int32, of as many dims as the input.
    src : Tensor or float
        At least as large as the index, of the input's dtype; ``value``, a number, stands for it.
    reduce : str, optional
        "add" or "multiply": what is there, and all that meets there, is joined so.
    """
    source = _source("scatter", src, value)
    if reduce is None:
        return _C.scatter(input, dim, index, source)
    return _with_reduction("scatter", input, dim, index, source, reduce)


def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: _Source = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Overwrites the tensor with the result of ``scatter``."""
    source = _source("scatter_", src, value)
    if reduce is None:
        return _scatter_(self, dim, index, source)
    recorded = self.requires_grad and _ext.is_grad_enabled()
    x = self.clone() if recorded else self
    return self.copy_(_with_reduction("scatter_", x, dim, index, source, reduce))


def _joined(
    input: Tensor, axis: int, index: Tensor, src: Tensor, join: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    """What meets in each place, joined (0 where nothing does), and whether something does.

    Sorted by their places, those of one place are neighbours: log2(count) steps of twice the
    distance join them with all before them, and the last goes to its place.
    """
    size, count = input.shape[axis], index.shape[axis]
    met = _C.zeros(input.shape, dtype=_ext.bool, device=input.device).scatter(axis, index, True)
    places, order = _C.sort(index, axis)
    values = src.gather(axis, order)

    def parts(t: Tensor, distance: int) -> tuple[Tensor, Tensor]:
        return t.narrow(axis, distance, count - distance), t.narrow(axis, 0, count - distance)

    distance = 1
    while distance < count:
        (later, earlier), (here, there) = parts(values, distance), parts(places, distance)
        pairs = _C.where(here == there, join(later, earlier), later)
        values = _C.cat([values.narrow(axis, 0, distance), pairs], axis)
        distance *= 2
    here, there = parts(places, 1)
    last = _C.where(here == there, size, there)  # those before the last go to a place too many
    target = _C.cat([last, places.narrow(axis, count - 1, 1)], axis)
    shape = [*input.shape[:axis], size + 1, *input.shape[axis + 1 :]]
    found = _C.zeros(shape, dtype=src.dtype, device=src.device).scatter(axis, target, values)
    return found.narrow(axis, 0, size), met


class _Extremes(Function):
    """``y``; the elements of ``x`` and ``source`` that equal it share their place's gradient."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        x: Tensor,
        source: Tensor,
        y: Tensor,
        own: Tensor,
        axis: int,
        index: Tensor,
    ) -> Tensor:
        wins = source == y.gather(axis, index)
        count = own.to(None, y.dtype).scatter_add(axis, index, wins.to(None, y.dtype)).clamp(1)
        ctx.save_for_backward(own, wins, count, index)
        ctx.axis = axis
        return y.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, dy: Tensor) -> tuple[Tensor | None, ...]:
        own, wins, count, index = ctx.saved_tensors
        share = dy / count
        met = share.gather(ctx.axis, index)
        return _C.where(own, share, 0), _C.where(wins, met, 0), None, None, None, None


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """``input`` with all elements of ``src`` that meet in a place along a dim, joined, there.

    Parameters
    ----------
    index, src : Tensor
        As for :func:`scatter`.
    reduce : str
        "sum", "prod", "mean" (of integers rounded down), "amax" or "amin".
    include_self : bool
        Whether the input's element is one of those joined; where nothing goes, it stays.

    Raises
    ------
    DTypeError
        ``src`` has another dtype.
    ValueError
        Another ``reduce``.
    """
    if src.dtype is not input.dtype:
        raise _ext.DTypeError(f"scatter_reduce(): src has dtype {src.dtype.name}, expected "
                              f"{input.dtype.name}")  # fmt: skip
    axis = wrapped_dim("scatter_reduce", input, dim)
    index, src = (t.view(1) if t.ndim == 0 else t for t in (index, src))
    if reduce not in ("sum", "mean", *_JOINS):
        raise ValueError(f'scatter_reduce(): reduce is "{reduce}", but it must be "sum", "prod", '
                         '"mean", "amax" or "amin"')  # fmt: skip
    if input.ndim == 0:
        line = input.view(1), dim, index, src, reduce
        return scatter_reduce(*line, include_self=include_self).view(())
    if index.numel() == 0:
        return input.clone()
    given, expected = list(src.shape), list(index.shape)
    if src.ndim == index.ndim:
        src = src[tuple(slice(0, n) for n in expected)]
    if src.shape != index.shape:
        raise _ext.ShapeError(f"scatter_reduce(): src has shape {given}, expected at least "
                              f"{expected}, the index's")  # fmt: skip
    floating = input.dtype.is_floating_point
    x, values = (t.to(None, wide(t)) if floating else t for t in (input, src))
    if reduce in ("sum", "mean"):
        y = (x if include_self else x.scatter(axis, index, 0)).scatter_add(axis, index, values)
        if reduce == "mean":
            ones = _C.ones(index.shape, dtype=_ext.int64, device=input.device)
            count = _C.full(input.shape, int(include_self), device=input.device)
            count = count.scatter_add(axis, index, ones).clamp(1).to(None, y.dtype)
            y = y / count if floating else _C.floor_divide(y, count)
        return y.to(None, input.dtype)
    join = _JOINS[reduce]
    found, met = _joined(x, axis, index, values, join)
    y = _C.where(met, join(x, found) if include_self else found, x)
    if reduce != "prod" and y.requires_grad:
        own = ~met | (x == y) if include_self else ~met
        y = _Extremes.apply(x, values, y.detach(), own, axis, index)
    return y.to(None, input.dtype)


FUNCTIONS = (scatter, scatter_reduce)
METHODS = (scatter, scatter_, scatter_reduce)
IN_PLACE = ("scatter_reduce",)
