# SPDX-License-Identifier: Apache-2.0
"""Integers with their bits moved: ``x << 2``, ``x >> 2``."""

from __future__ import annotations

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._division import floor_divide
from oneflow_lite._oneflow_lite import _C, Tensor, dtype
from oneflow_lite._promotion import OPERANDS, result_type

_Operand = Tensor | int


def _wide(name: str, input: _Operand, other: _Operand) -> tuple[Tensor, Tensor, dtype]:
    """Both as int64, and the dtype of a result."""
    tensors = [t for t in (input, other) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError(f"{name}(): one of the operands must be a tensor")
    for x in (input, other):
        if not isinstance(x, OPERANDS):
            raise TypeError(f"{name}(): takes Tensors and numbers, not {type(x).__name__}")
    result = result_type(input, other)
    if result.is_floating_point or result is _ext.bool:
        raise _ext.DTypeError(f"{name}(): the operands have dtype {result.name}, but bits are "
                              "moved in integers")  # fmt: skip
    a, b = (t.to(None, _ext.int64) if isinstance(t, Tensor)
            else _C.full([], t, dtype=_ext.int64, device=tensors[0].device)
            for t in (input, other))  # fmt: skip
    return a, b, result


def _beyond(places: Tensor, result: dtype) -> Tensor:
    """Where there are not that many places, or fewer than none."""
    return (places < 0) | (places >= 8 * result.itemsize)


def bitwise_left_shift(input: _Operand, other: _Operand) -> Tensor:
    """The bits moved to the left so many places; 0 where there are not that many."""
    a, places, result = _wide("bitwise_left_shift", input, other)
    beyond = _beyond(places, result)
    factor = _C.pow(2, _C.where(beyond, 0, places))
    return _C.where(beyond, 0, a * factor).to(None, result)


def bitwise_right_shift(input: _Operand, other: _Operand) -> Tensor:
    """The bits moved to the right; from the left comes the sign: divided by 2 and rounded down."""
    a, places, result = _wide("bitwise_right_shift", input, other)
    most = 8 * result.itemsize - (result is not _ext.uint8)  # all that are not the sign's
    places = _C.where(_beyond(places, result), most, places)
    first = floor_divide(places, 2)  # in two steps: 2^63 does not fit
    half = floor_divide(a, _C.pow(2, first))
    return floor_divide(half, _C.pow(2, places - first)).to(None, result)


FUNCTIONS = (bitwise_left_shift, bitwise_right_shift)
METHODS = FUNCTIONS
IN_PLACE = ("bitwise_left_shift", "bitwise_right_shift")
