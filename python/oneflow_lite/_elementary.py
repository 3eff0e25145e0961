# SPDX-License-Identifier: Apache-2.0
"""Elementary functions beside those in C++, composed of them."""

from __future__ import annotations

import math

from oneflow_lite._math import as_float, rounded_once
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._promotion import OPERANDS, result_type

_Operand = Tensor | float


def _as_promoted(y: Tensor, input: Tensor, other: _Operand) -> Tensor:
    """The result in the floating dtype that the operands are promoted to, if it is one."""
    kind = result_type(input, other)
    return y.to(None, kind) if kind.is_floating_point else y


@rounded_once
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(x^2 + y^2)`` without overflow; infinite where one of them is, be the other NaN."""
    x, y = as_float(input), as_float(other)
    larger = _C.maximum(abs(x), abs(y)).detach()
    scale = _C.where((larger > 0) & larger.isfinite(), larger, 1.0)
    length = _C.sqrt((x / scale) ** 2 + (y / scale) ** 2) * scale
    return _as_promoted(_C.where(x.isinf() | y.isinf(), math.inf, length), input, other)


@rounded_once
def xlogy(input: _Operand, other: _Operand) -> Tensor:
    """``x log(y)``; 0 where x is 0, unless y is NaN."""
    for t in (input, other):
        if not isinstance(t, OPERANDS):
            raise TypeError(f"xlogy(): takes Tensors and numbers, not {type(t).__name__}")
    if not isinstance(input, Tensor):
        if not isinstance(other, Tensor):
            raise TypeError("xlogy(): one of the operands must be a tensor")
    elif not isinstance(other, Tensor):
        other = _C.full([], other, dtype=as_float(input).dtype, device=input.device)
    nothing = (input == 0) & ((other <= 0) | (other == math.inf))
    y = _C.where(nothing, 0.0, input * _C.log(_C.where(nothing, 1.0, other)))
    return _as_promoted(y, input, other)


def masked_fill(input: Tensor, mask: Tensor, value: _Operand) -> Tensor:
    """``value``, a number or a 0-dim tensor, where the mask holds, the element elsewhere."""
    if isinstance(value, Tensor) and value.requires_grad and value.ndim == 0:
        return _C.where(mask, value.to(input.device, input.dtype), input)
    return _C.masked_fill(input, mask, value)


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


FUNCTIONS = (fmax, fmin, hypot, masked_fill, xlogy)
METHODS = FUNCTIONS
IN_PLACE = ("hypot", "xlogy")
# Of functional/unary.cpp, beside those that _math.py lists.
UNARY_IN_PLACE = (
    "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin", "asinh",
    "atan", "atanh", "cosh", "deg2rad", "digamma", "erfc", "erfinv", "frac", "i0", "lgamma",
    "log10", "logit", "rad2deg", "sgn", "sinc", "sinh", "tan",
)  # fmt: skip
IN_PLACE += UNARY_IN_PLACE
