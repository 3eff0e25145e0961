# SPDX-License-Identifier: Apache-2.0
"""Tensor types by dtype, as annotations and older programs name them: ``flow.LongTensor([1, 2])``.

They make tensors of that dtype on the CPU, and ``isinstance`` knows such tensors by them. The class
of a tensor is always :class:`Tensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._creation import sizes_given
from oneflow_lite._oneflow_lite import _C, Tensor, dtype


class _TypedTensor(type):
    dtype: dtype

    def __call__(cls, *args: Any, size: Sequence[int] | None = None) -> Tensor:
        """Of a size, uninitialised: ``FloatTensor(2, 3)``, ``FloatTensor(x.size())``; or of data:
        ``FloatTensor([1, 2])``.
        """
        sizes = sizes_given(args) if size is None else list(size)
        if sizes is None:
            return _ext.tensor(args[0], dtype=cls.dtype)
        return _C.empty(sizes, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu


_DTYPES = {
    "BFloat16Tensor": "bfloat16", "BoolTensor": "bool", "ByteTensor": "uint8",
    "CharTensor": "int8", "DoubleTensor": "float64", "FloatTensor": "float32",
    "HalfTensor": "float16", "IntTensor": "int32", "LongTensor": "int64", "ShortTensor": "int16",
}  # fmt: skip
TYPES = {
    name: _TypedTensor(name, (), {
        "dtype": getattr(_ext, of), "__module__": "oneflow_lite",
        "__doc__": f"Tensors of {of} on the CPU.",
    })
    for name, of in _DTYPES.items()
}  # fmt: skip
