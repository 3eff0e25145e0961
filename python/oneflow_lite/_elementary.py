# SPDX-License-Identifier: Apache-2.0
"""Elementary functions beside those in C++, composed of them."""

from __future__ import annotations

import math

from oneflow_lite._math import expm1, rounded_once, trunc
from oneflow_lite._oneflow_lite import _C, Tensor

_Operand = Tensor | float


@rounded_once
def tan(input: Tensor) -> Tensor:
    """The tangent."""
    return _C.sin(input) / _C.cos(input)


@rounded_once
def sinh(input: Tensor) -> Tensor:
    """``(exp(x) - exp(-x)) / 2``, for small x too."""
    e = expm1(_C.clamp(input, -1.0, 1.0))
    near = (e + e / (e + 1)) * 0.5
    half = _C.exp(abs(input) * 0.5)  # its square would overflow before the result does
    far = half * 0.5 * half - 0.5 / (half * half)
    return _C.where(abs(input) < 1, near, _C.where(input < 0, -far, far))


@rounded_once
def cosh(input: Tensor) -> Tensor:
    """``(exp(x) + exp(-x)) / 2``."""
    half = _C.exp(abs(input) * 0.5)
    return half * 0.5 * half + 0.5 / (half * half)


@rounded_once
def log10(input: Tensor) -> Tensor:
    """The logarithm to the base 10."""
    return _C.log(input) * (1 / math.log(10))


@rounded_once
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(x^2 + y^2)`` without overflow."""
    larger = _C.maximum(abs(input), abs(other)).detach()
    scale = _C.where((larger > 0) & larger.isfinite(), larger, 1.0)
    return _C.sqrt((input / scale) ** 2 + (other / scale) ** 2) * scale


def fmod(input: Tensor, other: _Operand) -> Tensor:
    """The rest of the division rounded towards 0: it has the sign of ``input``."""
    size = abs(other)
    rest = abs(input) % size
    return _C.where(input < 0, -rest, rest)


def frac(input: Tensor) -> Tensor:
    """The fraction of each element, with its sign."""
    return input - trunc(input)


@rounded_once
def xlogy(input: Tensor, other: Tensor) -> Tensor:
    """``x log(y)``; 0 where x is 0, unless y is NaN."""
    nothing = (input == 0) & ((other <= 0) | (other == math.inf))
    return _C.where(nothing, 0.0, input * _C.log(_C.where(nothing, 1.0, other)))


@rounded_once
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; with ``eps``, x is moved into ``[eps, 1 - eps]`` first."""
    x = input if eps is None else _C.clamp(input, eps, 1 - eps)
    return _C.log(x / (1 - x))


def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return input * (180 / math.pi)


def masked_fill(input: Tensor, mask: Tensor, value: _Operand) -> Tensor:
    """``value``, a number or a 0-dim tensor, where the mask holds, the element elsewhere."""
    if isinstance(value, Tensor) and value.requires_grad and value.ndim == 0:
        return _C.where(mask, value.to(input.device, input.dtype), input)
    return _C.masked_fill(input, mask, value)


def isneginf(input: Tensor) -> Tensor:
    """Whether each element is the negative infinity."""
    return input.isinf() & (input < 0)


def isposinf(input: Tensor) -> Tensor:
    """Whether each element is the positive infinity."""
    return input.isinf() & (input > 0)


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of two, of a number and NaN the number."""
    return _of_numbers(_C.maximum(input, other), input, other)


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of two, of a number and NaN the number."""
    return _of_numbers(_C.minimum(input, other), input, other)


def _of_numbers(found: Tensor, input: Tensor, other: Tensor) -> Tensor:
    if not found.dtype.is_floating_point:
        return found
    return _C.where(input != input, other, _C.where(other != other, input, found))


FUNCTIONS = (cosh, deg2rad, fmax, fmin, fmod, frac, hypot, isneginf, isposinf, log10, logit,
             masked_fill, rad2deg, sinh, tan, xlogy)  # fmt: skip
METHODS = FUNCTIONS
