# SPDX-License-Identifier: Apache-2.0
"""Division rounded down, and its rest, as NumPy has them: right where the rounded ratio is not."""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor, dtype
from oneflow_lite.autograd.function import Function, FunctionCtx

_Operand = Tensor | float


def _exact_rest(a: Tensor, q: Tensor, b: Tensor) -> Tensor:
    """``a - q * b`` in float64 without the product's rounding, after Dekker (1971)."""
    product = q * b
    parts = []
    for t in (q, b.detach()):
        high = t * 134217729.0  # 2^27 + 1: splits 53 bits in two
        high = high - (high - t)
        parts.append((high, t - high))
    (q1, q2), (b1, b2) = parts
    lost = ((q1 * b1 - product.detach()) + q1 * b2 + q2 * b1) + q2 * b2
    return (a - product) - _C.where(lost.isfinite(), lost, 0.0)


def _floats(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    ratio = a / b
    first = _C.floor(ratio)
    rest = _exact_rest(a, first.detach(), b)
    # Where the ratio was rounded up to an integer, the rest is negative and this takes 1 off. Only
    # a ratio that float64 does not hold to 1 can be too small.
    second = _C.floor(rest / b)
    second = _C.where(abs(first) < 2.0**53, _C.minimum(second, 0.0), second)
    rest = _exact_rest(rest, second.detach(), b)
    quotient = _C.where(b == 0, ratio, first + second)
    # A finite number over an infinite one: 0 or -1 times, by the signs.
    endless = b.isinf() & a.isfinite()
    against = ((a < 0) != (b < 0)) & (a != 0)
    quotient = _C.where(endless, -against.double(), quotient)
    return quotient, _C.where(endless, _C.where(against, b, a), rest)


def _towards_zero(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    quotient, rest = (_floats if a.dtype.is_floating_point else _integers)(abs(a), abs(b))
    return _C.where((a < 0) != (b < 0), -quotient, quotient), _C.where(a < 0, -rest, rest)


class _Rest(Function):
    """The rest as a line: what is left of a, less the quotient times b. Where the quotient jumps
    there is no slope, and the formulas above have none where an operand is 0 or infinite.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, a: Tensor, b: Tensor, divided: Any) -> Tensor:
        quotient, rest = divided(a, b)
        ctx.save_for_backward(quotient)
        return rest

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        (quotient,) = ctx.saved_tensors
        return grad, -grad * quotient, None


class _Steps(Function):
    """A rounded quotient: it has no slope, also where that of the ratio is infinite."""

    @staticmethod
    def forward(ctx: FunctionCtx, input: _Operand, other: _Operand, divided: Any) -> Tensor:
        ctx.operands = input, other
        return divided(input, other)

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = zip(ctx.operands, ctx.needs_input_grad, strict=False)
        return *(_C.zeros_like(t) if needed else None for t, needed in wanted), None


def _integers(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Exact: a float64 holds 53 of 64 bits, so the rest of a first division is divided again."""
    divisor = _C.where(b == 0, math.inf, b.double())  # over 0: 0 times
    quotient = _C.floor(a.double() / divisor).long() * (b != 0)
    rest = a - quotient * b
    quotient = quotient + _C.floor(rest.double() / divisor).long() * (b != 0)
    rest = a - quotient * b
    # By now it is off by 1 at most: the rest is between 0 and b.
    less = (rest != 0) & ((rest < 0) != (b < 0)) & (b != 0)
    more = _C.where(b > 0, rest >= b, (rest <= b) & (b != 0))
    quotient = quotient - less.long() + more.long()
    return quotient, a - quotient * b


def _operands(name: str, input: _Operand, other: _Operand) -> tuple[Tensor, Tensor, dtype]:
    """Both in float64 or int64, in one shape, and the dtype of a result."""
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError(f"{name}(): one of the operands must be a tensor")
    product = _C.mul(input, other)
    wide = _ext.float64 if product.dtype.is_floating_point else _ext.int64
    a, b = (t.to(None, wide) if isinstance(t, Tensor)
            else _C.full([], t, dtype=wide, device=tensors[0].device)
            for t in (input, other))  # fmt: skip
    return a.expand(product.shape), b.expand(product.shape), product.dtype


def _rest(a: Tensor, b: Tensor, divided: Any) -> Tensor:
    if a.requires_grad or b.requires_grad:
        return _Rest.apply(a, b, divided)
    return divided(a, b)[1]


def without_slope(divided: Any, input: _Operand, other: _Operand) -> Tensor:
    """``divided(input, other)``, which rounds, with gradients of 0."""
    if any(isinstance(t, Tensor) and t.requires_grad for t in (input, other)):
        return _Steps.apply(input, other, divided)
    return divided(input, other)


def floor_divide(input: _Operand, other: _Operand) -> Tensor:
    """The quotient rounded down; integers stay integers, and over 0 give 0."""
    a, b, result = _operands("floor_divide", input, other)
    divided = _floats if result.is_floating_point else _integers
    return without_slope(lambda a, b: divided(a, b)[0], a, b).to(None, result)


def remainder(input: _Operand, other: _Operand) -> Tensor:
    """``input - floor_divide(input, other) * other``: of the sign of ``other``."""
    a, b, result = _operands("remainder", input, other)
    return _rest(a, b, _floats if result.is_floating_point else _integers).to(None, result)


def fmod(input: Tensor, other: _Operand) -> Tensor:
    """The rest of the division rounded towards 0: it has the sign of ``input``."""
    a, b, result = _operands("fmod", input, other)
    return _rest(a, b, _towards_zero).to(None, result)
