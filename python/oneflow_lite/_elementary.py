# SPDX-License-Identifier: Apache-2.0
"""Elementary functions beside those in C++, composed of them."""

from __future__ import annotations

import math

from oneflow_lite._math import as_float, expm1, rounded_once, trunc
from oneflow_lite._oneflow_lite import _C, Tensor


@rounded_once
def tan(input: Tensor) -> Tensor:
    """The tangent."""
    return _C.sin(input) / _C.cos(input)


@rounded_once
def sinh(input: Tensor) -> Tensor:
    """``(exp(x) - exp(-x)) / 2``, for small x too."""
    input = as_float(input)
    e = expm1(_C.clamp(input, -1.0, 1.0))
    near = (e + e / (e + 1)) * 0.5
    half = _C.exp(abs(input) * 0.5)  # its square would overflow before the result does
    far = half * 0.5 * half - 0.5 * _C.exp(-abs(input))
    return _C.where(abs(input) < 1, near, _C.where(input < 0, -far, far))


@rounded_once
def cosh(input: Tensor) -> Tensor:
    """``(exp(x) + exp(-x)) / 2``."""
    input = as_float(input)
    half = _C.exp(abs(input) * 0.5)
    return half * 0.5 * half + 0.5 * _C.exp(-abs(input))


@rounded_once
def log10(input: Tensor) -> Tensor:
    """The logarithm to the base 10."""
    return _C.log(input) * (1 / math.log(10))


def frac(input: Tensor) -> Tensor:
    """The fraction of each element, with its sign."""
    return input - trunc(input)


@rounded_once
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``; with ``eps``, x is moved into ``[eps, 1 - eps]`` first."""
    x = as_float(input)
    x = x if eps is None else _C.clamp(x, eps, 1 - eps)
    return _C.log(x) - _C.log(1 - x)


def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return input * (180 / math.pi)


def isneginf(input: Tensor) -> Tensor:
    """Whether each element is the negative infinity."""
    return input.isinf() & (input < 0)


def isposinf(input: Tensor) -> Tensor:
    """Whether each element is the positive infinity."""
    return input.isinf() & (input > 0)


FUNCTIONS = (cosh, deg2rad, frac, isneginf, isposinf, log10, logit, rad2deg, sinh, tan)
METHODS = FUNCTIONS
IN_PLACE = ("cosh", "deg2rad", "frac", "log10", "logit", "rad2deg", "sinh", "tan")
