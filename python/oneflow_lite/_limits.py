# SPDX-License-Identifier: Apache-2.0
"""What a dtype can hold: ``flow.finfo(flow.float16).max``, ``flow.iinfo(flow.int8).min``."""

from __future__ import annotations

import math

from oneflow_lite._oneflow_lite import dtype, float32

# Fraction bits and the largest exponent.
_FLOATS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}


def _check(name: str, given: object) -> None:
    if not isinstance(given, dtype):
        kind = type(given).__name__
        raise TypeError(f"{name}(): argument 'dtype' must be oneflow_lite.dtype, not {kind}")


class finfo:
    """The numbers of a floating dtype.

    Attributes
    ----------
    bits : int
        Of one number.
    eps : float
        The distance from 1 to the next number.
    max, min, tiny, smallest_normal : float
        The largest number, its negative, the smallest one with all its digits (twice).
    resolution : float
        Of decimals: 10 to the power of minus the digits that every number keeps.

    Raises
    ------
    TypeError
        For a dtype that is not floating; for what is no dtype, such as a tensor.
    """

    def __init__(self, dtype: dtype = float32) -> None:
        _check("finfo", dtype)
        if dtype.name not in _FLOATS:
            raise TypeError(f"finfo(): takes a floating dtype, not {dtype.name}")
        fraction, exponent = _FLOATS[dtype.name]
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        self.eps = 2.0**-fraction
        self.max = (2 - self.eps) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = float(f"1e-{int(fraction * math.log10(2))}")

    def __repr__(self) -> str:
        return f"finfo(dtype={self.dtype}, eps={self.eps}, min={self.min}, max={self.max})"


class iinfo:
    """The numbers of an integer dtype: ``bits``, ``min`` and ``max``; TypeError for another."""

    def __init__(self, dtype: dtype) -> None:
        _check("iinfo", dtype)
        if dtype.is_floating_point or dtype.name == "bool":
            raise TypeError(f"iinfo(): takes an integer dtype, not {dtype.name}")
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        signed = dtype.name != "uint8"
        self.min = -(1 << self.bits - 1) if signed else 0
        self.max = (1 << self.bits - signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(dtype={self.dtype}, min={self.min}, max={self.max})"
