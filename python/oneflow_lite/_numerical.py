# SPDX-License-Identifier: Apache-2.0
"""Derivatives by differences, and histograms with any edges."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite._shapes import wrapped_dims

_bin_counts = _ext.op_function("bin_counts")


class Histogram(NamedTuple):
    """What :func:`histogram` gives."""

    hist: Tensor
    bin_edges: Tensor


def _along(input: Tensor, axis: int, step: Tensor | float, edge_order: int) -> Tensor:
    """The derivative along one dim: step is a distance, or the places."""
    size = input.shape[axis]

    def at(start: int, count: int = 1) -> Tensor:
        return input.narrow(axis, start if start >= 0 else size + start, count)

    if isinstance(step, Tensor):
        shape = [-1, *[1] * (input.ndim - 1 - axis)]
        h = (step[1:] - step[:-1]).view(shape)
        before, after = h[:-1], h[1:]
        first, last = h[:1], h[-1:]
    else:
        before = after = first = last = step
    both = before + after
    later, here, earlier = (at(k, size - 2) for k in (2, 1, 0))
    centre = (later - earlier) / both
    if isinstance(step, Tensor):
        centre = (later * (before / (after * both)) - earlier * (after / (before * both))
                  + here * ((after - before) / (after * before)))  # fmt: skip
    if edge_order == 1:
        return _C.cat([(at(1) - at(0)) / first, centre, (at(-1) - at(-2)) / last], axis)
    ends = []
    for near, far, x0, x1, x2 in ((before, after, 0, 1, 2), (after, before, -1, -2, -3)):
        if isinstance(step, Tensor):
            place = slice(None, 1) if x0 == 0 else slice(-1, None)
            near, far = near[place], far[place]
        slope = (at(x1) * ((near + far) / (near * far)) - at(x2) * (near / (far * (near + far)))
                 - at(x0) * ((2 * near + far) / (near * (near + far))))  # fmt: skip
        ends.append(slope if x0 == 0 else -slope)
    return _C.cat([ends[0], centre, ends[1]], axis)


def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float | Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The derivative along each dim, by second-order differences inside.

    Parameters
    ----------
    spacing : float, or a float or a 1-D tensor per dim, optional
        The distance of neighbours, 1 where absent, or their places.
    dim : int or sequence of int, optional
        The dims; all where absent.
    edge_order : int
        1 or 2: the order at the two ends, which takes as many neighbours.

    Raises
    ------
    ValueError
        Another order, not one spacing per dim, or a dim that occurs twice.
    ShapeError
        A dim with too few elements.
    """
    dims = [dim] if isinstance(dim, int) else range(input.ndim) if dim is None else \
        _ext._own_list("gradient", "dim", dim)  # fmt: skip
    axes = wrapped_dims("gradient", input, dims)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient(): edge_order is {edge_order}, but it must be 1 or 2")
    one = spacing is None or isinstance(spacing, numbers.Number)
    steps: Any = [1.0 if spacing is None else spacing] * len(axes) if one else spacing
    steps = [steps] if isinstance(steps, Tensor) else _ext._own_list("gradient", "spacing", steps)
    if len(steps) != len(axes):
        raise ValueError(f"gradient(): spacing has {len(steps)} parts for {len(axes)} dims")
    for axis, step in zip(axes, steps, strict=True):
        size = input.shape[axis]
        if size <= edge_order:
            raise _ext.ShapeError(f"gradient(): input has shape {list(input.shape)}, expected at "
                                  f"least {edge_order + 1} elements in dim {axis}")  # fmt: skip
        if isinstance(step, Tensor) and list(step.shape) != [size]:
            raise _ext.ShapeError(f"gradient(): spacing has shape {list(step.shape)}, expected "
                                  f"[{size}]")  # fmt: skip
    x = input if input.dtype.is_floating_point else input.to(None, _ext.float32)
    return tuple(_along(x, *pair, edge_order) for pair in zip(axes, steps, strict=True))


def _counts_bins(x: Tensor, low: float, high: float) -> bool:
    """Whether one op counts the elements in bins of one width."""
    local = x.device.type == "cpu" and not x.is_global
    return local and x.dtype in (_ext.float32, _ext.float64) and math.isfinite(high - low)


def _density(counts: Tensor, edges: Tensor) -> Tensor:
    return counts / (counts.sum() * (edges[1:] - edges[:-1]))


def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """How many elements are in each bin, and the bins' edges, of integers in float64.

    Parameters
    ----------
    bins : int or Tensor
        The number of bins of one width, or the edges, 1-D and rising. The last bin has both edges.
    range : pair of float, optional
        The outer edges; where absent, the smallest and the largest element.
    weight : Tensor, optional
        What each element counts, of the input's shape.
    density : bool
        Over the sum and the bin's width: the integral is 1.
    """
    x = input.detach()
    if weight is not None and weight.shape != x.shape:
        raise ShapeError(f"histogram(): weight has shape {list(weight.shape)}, expected "
                         f"{list(x.shape)}")  # fmt: skip
    if isinstance(bins, Tensor):
        dtype, edges = x.dtype, bins.clone()
    else:
        if not x.dtype.is_floating_point:  # edges lie between integers, too
            x = x.to(None, _ext.float64)
        dtype = x.dtype
        if bins < 1:
            raise ValueError(f"histogram(): bins is {bins}, but it must be positive")
        if range is None:
            range = (0.0, 1.0) if x.numel() == 0 else (x.amin().item(), x.amax().item())
        low, high = range
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"histogram(): range is {range}, but it must be finite")
        if low > high:
            raise ValueError(f"histogram(): range is {range}, but it must rise")
        if low == high:
            low, high = low - 0.5, high + 0.5
        steps = _C.arange(bins + 1, dtype=_ext.float64, device=x.device)
        edges = (steps * ((high - low) / bins) + low).to(None, dtype)
        edges[-1] = high  # exactly, whatever the steps come to
        if _counts_bins(x, low, high):
            weights = None if weight is None else weight.detach().to(None, dtype).reshape(-1)
            y = _bin_counts(x.reshape(-1), edges, weights, bins, low, high)
            return Histogram(_density(y, edges) if density else y.to(None, dtype), edges)
    flat, count = x.reshape(-1), edges.numel() - 1
    places = _C.searchsorted(edges, flat, right=True) - 1
    inside = (flat >= edges[0]) & (flat <= edges[-1])
    places = places.clamp(0, count - 1)
    held = inside.to(None, dtype)
    if weight is not None:
        held = held * weight.detach().to(None, dtype).reshape(-1)
    y = _C.zeros([count], dtype=dtype, device=x.device).index_add(0, places, held)
    return Histogram(_density(y, edges) if density else y, edges)


FUNCTIONS = (gradient, histogram)
METHODS = (histogram,)
