# SPDX-License-Identifier: Apache-2.0
"""Medians, quantiles and the like, composed of C++ functions; overloads of reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import of_its_own
from oneflow_lite._named_results import with_results
from oneflow_lite._oneflow_lite import _C, DTypeError, Tensor, dtype
from oneflow_lite._shapes import wrapped_dim

_Dims = int | Sequence[int] | None


def _wide(x: Tensor, result: dtype) -> Tensor:
    """What is computed in: 16-bit floats are rounded once, at the end."""
    narrow = result in (_ext.float16, _ext.bfloat16)
    return x.to(None, _ext.float32 if narrow else result)


# Extremes -------------------------------------------------------------------------------------


def _called_by_numpy(kwargs: dict[str, Any]) -> bool:
    """Whether np.max(x, axis=0) asks, which wants the values alone: it always passes ``out``."""
    return "axis" in kwargs and kwargs.get("out", kwargs) is None


def max(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The largest element; ``max(x, dim, keepdim=False)`` (values, indices) along a dim;
    ``max(x, other)`` the same as ``maximum``.
    """
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        return _C.maximum(input, *args, **kwargs)
    if _called_by_numpy(kwargs):
        return _C.amax(input, *args, **kwargs)
    return _C.max(input, *args, **kwargs)


def min(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The smallest element; ``min(x, dim, keepdim=False)`` (values, indices) along a dim;
    ``min(x, other)`` the same as ``minimum``.
    """
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        return _C.minimum(input, *args, **kwargs)
    if _called_by_numpy(kwargs):
        return _C.amin(input, *args, **kwargs)
    return _C.min(input, *args, **kwargs)


@with_results("values", "indices")
@of_its_own
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest element along a dim, counted from 1, and its place.

    Raises ValueError where there is no k-th one.
    """
    axis = wrapped_dim("kthvalue", input, dim)
    size = input.shape[axis] if input.ndim > 0 else 1
    if not 1 <= k <= size:
        raise ValueError(f"kthvalue(): k is {k}, but it must be in [1, {size}]")
    if input.ndim == 0:
        return input, _C.zeros([], dtype=_ext.int64, device=input.device)
    ordered = _C.sort(input, axis)
    values, places = (t.narrow(axis, k - 1, 1) for t in ordered)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


@with_results("values", "indices")
@of_its_own
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of two the lower: of all, or (values, indices) along a dim.

    NaN, and the place of the first one, where there is one. IndexError along a dim of size 0.
    """
    if dim is None:
        flat = input.reshape(-1)
        if flat.numel() == 0 and input.dtype.is_floating_point:
            return _C.full([], math.nan, dtype=input.dtype, device=input.device)
        return _middle("median", flat, 0, False)[0]
    return _middle("median", input, dim, keepdim)


@with_results("values", "indices")
@of_its_own
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """As :func:`median`, of the elements that are not NaN."""
    if dim is None:
        flat = input.reshape(-1)
        return median(flat) if flat.numel() == 0 else _middle("nanmedian", flat, 0, False)[0]
    return _middle("nanmedian", input, dim, keepdim)


def _middle(name: str, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    axis = wrapped_dim(name, x, dim)
    size = x.shape[axis] if x.ndim > 0 else 1
    if size == 0:
        raise IndexError(f"{name}(): there is no median of no elements: shape {list(x.shape)}")
    if x.ndim == 0 or not x.dtype.is_floating_point:
        return kthvalue(x, (size + 1) // 2, dim, keepdim)
    values, places = _C.sort(x, axis)
    # Sorted, NaN stands last.
    numbers = size - x.isnan().sum(axis, True)
    if name == "median":
        at = _C.where(numbers < size, numbers, (size - 1) // 2)
    else:
        at = _C.floor_divide(_C.clamp(numbers, 1) - 1, 2)
    found = values.gather(axis, at), places.gather(axis, at)
    return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))


def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """What a share of the elements is below; NaN where one of them is.

    Parameters
    ----------
    q : float or Tensor
        The share, in [0, 1]; several, a 1-D tensor, are a dim in front of the result.
    dim : int, optional
        Along which; of all elements where absent.
    interpolation : str
        What stands for a place between two elements: "linear" the line that joins them, "lower",
        "higher" or "nearest" one of them, "midpoint" their mean.

    Raises
    ------
    ValueError
        A share outside [0, 1]; another interpolation.
    DTypeError
        The input is not floating.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """As :func:`quantile`, of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(
    name: str, input: Tensor, q: float | Tensor, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise ValueError(f'{name}(): interpolation is "{interpolation}", but it must be '
                         '"linear", "lower", "higher", "midpoint" or "nearest"')  # fmt: skip
    if not input.dtype.is_floating_point:
        raise DTypeError(f"{name}(): input has dtype {input.dtype.name}, but it must be float16, "
                         "bfloat16, float32 or float64")  # fmt: skip
    shares = q if isinstance(q, Tensor) else _ext.tensor(q, dtype=_ext.float64)
    if shares.ndim > 1:
        raise _ext.ShapeError(f"{name}(): q has shape {list(shares.shape)}, expected at most 1 dim")
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise ValueError(f"{name}(): q must be in [0, 1]")
    x = input.reshape(-1) if dim is None or input.ndim == 0 else input
    axis = wrapped_dim(name, x, dim or 0)
    if x.shape[axis] == 0:
        raise _ext.ShapeError(f"{name}(): there are no elements: shape {list(input.shape)}")
    ordered = _C.sort(x.movedim(axis, -1), -1)[0]  # NaN stands last
    numbers = (ordered == ordered).sum(-1, True)
    last = _C.clamp(numbers, 1) - 1 if name == "nanquantile" else numbers * 0 + (x.shape[axis] - 1)
    places = shares.to(input.device, _ext.float64).reshape(-1) * last
    y = _between(ordered, places, last, interpolation)
    if name == "quantile":
        y = _C.where(numbers < x.shape[axis], math.nan, y)
    y = y.movedim(-1, 0)
    if keepdim and input.ndim > 0:
        y = y.unsqueeze(axis + 1) if dim is not None else y.view([-1, *[1] * input.ndim])
    return y if shares.ndim > 0 else y[0]


def _between(ordered: Tensor, places: Tensor, last: Tensor, interpolation: str) -> Tensor:
    """What stands at places, perhaps fractions, along the last dim."""
    if interpolation in ("lower", "higher", "nearest"):
        places = {"lower": _C.floor, "higher": _C.ceil, "nearest": _C.round}[interpolation](places)
        return ordered.gather(-1, places.long())
    below = _C.floor(places)
    weight = places - below
    if interpolation == "midpoint":
        weight = (weight > 0).to(None, weight.dtype) * 0.5
    at = below.long()
    low, high = (
        _wide(ordered.gather(-1, p), ordered.dtype) for p in (at, _C.minimum(at + 1, last))
    )
    weight = weight.to(None, low.dtype)
    inside = low + (high - low) * weight
    # Beside an infinity: itself, but the element where the place is one or both are the same.
    endless = _C.where((weight == 0) | (low == high), low, low + high)
    return _C.where(low.isfinite() & high.isfinite(), inside, endless).to(None, ordered.dtype)


def var(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The variance: ``var(x, dim=None, unbiased=True, keepdim=False, *, correction=None)`` over
    the dims given, or over all; ``var(x, unbiased)`` of all.

    The squared distances from the mean over n - correction, which is 1 if unbiased, else 0.
    """
    return _C.var(input, *_without_dim(args), **kwargs)


def std(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The standard deviation, the root of :func:`var` with these arguments."""
    return _C.std(input, *_without_dim(args), **kwargs)


def _without_dim(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """A bool alone is no dim: it says whether the variance is unbiased."""
    return (None, *args) if len(args) == 1 and isinstance(args[0], bool) else args


def var_mean(
    input: Tensor,
    dim: _Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The variance, as ``var`` with these arguments, and the mean."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    variance, mean = _C.var_mean(input, dim, unbiased, keepdim, correction=correction)
    return variance, mean


def std_mean(
    input: Tensor,
    dim: _Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The standard deviation, as ``std`` with these arguments, and the mean."""
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    deviation, mean = _C.std_mean(input, dim, unbiased, keepdim, correction=correction)
    return deviation, mean


@of_its_own
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along a dim, ``n`` times; of ``input`` with tensors joined to
    it in front and behind, where given.
    """
    axis = wrapped_dim("diff", input, dim)
    if input.ndim == 0:
        raise _ext.ShapeError("diff(): input has shape [], expected at least 1 dim")
    if n < 0:
        raise ValueError(f"diff(): n is {n}, but it must not be negative")
    if n > 0 and (prepend is not None or append is not None):
        input = _C.cat([t for t in (prepend, input, append) if t is not None], axis)
    for _ in range(n):
        rest = input.shape[axis] - 1
        if rest < 0:
            break
        later, earlier = (input.narrow(axis, start, rest) for start in (1, 0))
        input = later != earlier if input.dtype is _ext.bool else later - earlier
    return input


FUNCTIONS = (diff, kthvalue, max, median, min, nanmedian, nanquantile, quantile, std, std_mean,
             var, var_mean)  # fmt: skip
METHODS = tuple(f for f in FUNCTIONS if f not in (std_mean, var_mean))
