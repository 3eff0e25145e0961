# SPDX-License-Identifier: Apache-2.0
"""Which dtype comes out: of two dtypes, of two operands, of a cast."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterable

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor, dtype

# What operators take: NumPy's numbers too.
OPERANDS = (Tensor, numbers.Real, np.bool_)


def _stand_in(x: Tensor | float) -> Tensor | float:
    """What counts of an operand: a tensor's dtype and whether it has dims; nothing is computed."""
    if not isinstance(x, Tensor):
        return x
    return _C.empty([1] if x.ndim else [], dtype=x.dtype, device="meta")


def result_type(tensor1: Tensor | float, tensor2: Tensor | float) -> dtype:
    """The dtype of the sum of two operands: tensors with dims count more than others and numbers.

    Examples
    --------
    >>> flow.result_type(flow.ones(3, dtype=flow.int32), 1.0)
    oneflow_lite.float32
    """
    for x in (tensor1, tensor2):
        if not isinstance(x, OPERANDS):
            raise TypeError(f"result_type(): takes Tensors and numbers, not {type(x).__name__}")
    if not isinstance(tensor1, Tensor) and not isinstance(tensor2, Tensor):
        tensor1 = _ext.tensor(tensor1)
    return _C.add(_stand_in(tensor1), _stand_in(tensor2)).dtype


def common_dtype(tensors: Iterable[Tensor]) -> dtype:
    """The dtype that several tensors together are promoted to."""
    kinds = [_stand_in(t) for t in tensors]
    by_dims = [[t for t in kinds if t.ndim == n] for n in (1, 0)]
    sums = [functools.reduce(_C.add, some) for some in by_dims if some]
    return functools.reduce(_C.add, sums).dtype


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype for elements of either: of the larger kind, and as wide as needed."""
    a, b = (_C.empty([1], dtype=t, device="meta") for t in (type1, type2))
    return _C.add(a, b).dtype


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a cast loses no kind of number: of bool, integers and floats each fits the next."""

    def kind(t: dtype) -> int:
        return 2 if t.is_floating_point else int(t is not _ext.bool)

    return kind(from_) <= kind(to)


FUNCTIONS = (can_cast, promote_types, result_type)
