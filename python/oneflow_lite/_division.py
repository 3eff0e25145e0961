# SPDX-License-Identifier: Apache-2.0
"""Division rounded down, and its rest, as NumPy has them: right where the rounded ratio is not."""

from __future__ import annotations

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor, dtype

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


def _divided(name: str, input: _Operand, other: _Operand) -> tuple[Tensor, Tensor, dtype]:
    """The quotient rounded down and the rest, in float64, and the dtype of a result."""
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError(f"{name}(): one of the operands must be a tensor")
    result = _C.mul(input, other).dtype
    a, b = (t.double() if isinstance(t, Tensor)
            else _C.full([], float(t), dtype=_ext.float64, device=tensors[0].device)
            for t in (input, other))  # fmt: skip
    ratio = a / b
    first = _C.floor(ratio)
    rest = _exact_rest(a, first.detach(), b)
    # Where the ratio was rounded up to an integer, the rest is negative and this takes 1 off.
    second = _C.floor(rest / b)
    rest = _exact_rest(rest, second.detach(), b)
    quotient = _C.where(b == 0, ratio if result.is_floating_point else 0.0, first + second)
    # A finite number over an infinite one: 0 or -1 times, by the signs.
    endless = b.isinf() & a.isfinite()
    against = ((a < 0) != (b < 0)) & (a != 0)
    quotient = _C.where(endless, -against.double(), quotient)
    return quotient, _C.where(endless, _C.where(against, b, a), rest), result


def floor_divide(input: _Operand, other: _Operand) -> Tensor:
    """The quotient rounded down; integers stay integers (exact up to 2^53, and 0 over 0)."""
    quotient, _, result = _divided("floor_divide", input, other)
    return quotient.to(None, result)


def remainder(input: _Operand, other: _Operand) -> Tensor:
    """``input - floor_divide(input, other) * other``: of the sign of ``other``."""
    quotient, rest, result = _divided("remainder", input, other)
    if result.is_floating_point:
        return rest.to(None, result)
    return _C.sub(input, quotient.to(None, result) * other)
