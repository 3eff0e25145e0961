# SPDX-License-Identifier: Apache-2.0
"""Overloads of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from oneflow_lite._named_errors import short_for
from oneflow_lite._oneflow_lite import _C, Tensor

if TYPE_CHECKING:
    from oneflow_lite._C import _Sorted

_Dims = int | Sequence[int] | None


# Extremes -------------------------------------------------------------------------------------


def _called_by_numpy(kwargs: dict[str, Any]) -> bool:
    """Whether np.max(x, axis=0) asks, which wants the values alone: it always passes ``out``."""
    return "axis" in kwargs and kwargs.get("out", kwargs) is None


@overload
def max(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> _Sorted: ...
@overload
def max(
    input: Tensor, *, axis: int, keepdims: bool = False, out: Sequence[Tensor] = ...
) -> _Sorted: ...
@short_for(_C.max)
def max(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The largest element; ``max(x, dim, keepdim=False)`` (values, indices) along a dim;
    ``max(x, other)`` the same as ``maximum``.
    """
    if not args and not kwargs:
        return _C.max(input)
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        return _C.maximum(input, *args, **kwargs)
    if _called_by_numpy(kwargs):
        return _C.amax(input, *args, **kwargs)
    return _C.max(input, *args, **kwargs)


@overload
def min(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def min(
    input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None
) -> _Sorted: ...
@overload
def min(
    input: Tensor, *, axis: int, keepdims: bool = False, out: Sequence[Tensor] = ...
) -> _Sorted: ...
@short_for(_C.min)
def min(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The smallest element; ``min(x, dim, keepdim=False)`` (values, indices) along a dim;
    ``min(x, other)`` the same as ``minimum``.
    """
    if not args and not kwargs:
        return _C.min(input)
    if "other" in kwargs or (args and isinstance(args[0], Tensor)):
        return _C.minimum(input, *args, **kwargs)
    if _called_by_numpy(kwargs):
        return _C.amin(input, *args, **kwargs)
    return _C.min(input, *args, **kwargs)


@short_for(_C.var)
def var(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The variance: ``var(x, dim=None, unbiased=True, keepdim=False, *, correction=None)`` over
    the dims given, or over all; ``var(x, unbiased)`` of all.

    The squared distances from the mean over n - correction, which is 1 if unbiased, else 0.
    """
    return _C.var(input, *_without_dim(args), **kwargs)


@short_for(_C.std)
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


FUNCTIONS = (max, min, std, std_mean, var, var_mean)
METHODS = tuple(f for f in FUNCTIONS if f not in (std_mean, var_mean))
