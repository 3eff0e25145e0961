# SPDX-License-Identifier: Apache-2.0
"""New tensors beside those that C++ makes, composed of them."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _C, Generator, Tensor, device, dtype

_Device = device | str | int


def as_tensor(data: Any, dtype: dtype | None = None, device: _Device | None = None) -> Tensor:
    """``data`` as a tensor: itself, a NumPy array's memory where it can be shared, else a copy."""
    if isinstance(data, np.ndarray):
        if not data.dtype.isnative:
            data = data.astype(data.dtype.newbyteorder("="))
        if data.flags.writeable and all(stride >= 0 for stride in data.strides):
            data = _ext.from_numpy(data)
    if not isinstance(data, Tensor):
        return _ext.tensor(data, dtype=dtype, device=device)
    return data.to(device, dtype)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: _Device | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``obj`` as a tensor, as :func:`as_tensor`; with ``copy`` always in memory of its own.

    A tensor loses its history, unless ``requires_grad``.

    Raises
    ------
    ValueError
        ``copy`` is False, and the memory of ``obj`` cannot be shared.
    """
    if isinstance(obj, Tensor) and not requires_grad:
        obj = obj.detach()
    if copy is False:
        y = _shared(obj)
        if y is None or (dtype or y.dtype) is not y.dtype or y.to(device) is not y:
            raise ValueError(f"asarray(): of {type(obj).__name__} it would be a copy, but copy is "
                             "False")  # fmt: skip
    elif copy and isinstance(obj, Tensor):
        y = obj.to(device, dtype, copy=True)
    else:
        try:
            y = (_ext.tensor if copy else as_tensor)(obj, dtype=dtype, device=device)
        except TypeError as error:
            text = str(error)
            if "argument 'data'" in text:
                error.args = (text.replace("argument 'data'", "argument 'obj'"),)
            raise
    return y if y.requires_grad == requires_grad else y.requires_grad_(requires_grad)


def _shared(obj: Any) -> Tensor | None:
    """A tensor over the same memory; None where there is none."""
    if isinstance(obj, Tensor):
        return obj
    try:
        if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
            return _ext.from_dlpack(obj, copy=False)
        described = hasattr(obj, "__array_interface__")
        return _ext.from_numpy(np.asarray(obj if described else memoryview(obj)))
    except (BufferError, TypeError, ValueError, RuntimeError):
        return None


# Methods of Tensor: of the same dtype and device.


def new_empty(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Uninitialised memory, of this tensor's dtype and device where not given otherwise."""
    return _C.empty(*size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def sizes_given(args: tuple[Any, ...]) -> list[int] | None:
    """Those of Tensor(2, 3), Tensor(x.size()) and Tensor(); None where data were given."""
    if len(args) == 1 and isinstance(args[0], _ext.Size):
        return list(args[0])
    is_int = len(args) == 1 and isinstance(args[0], numbers.Integral)
    if len(args) == 1 and (not is_int or isinstance(args[0], bool)):
        return None
    return [operator.index(n) for n in args] if args else [0]


def new(self: Tensor, *args: Any) -> Tensor:
    """Of this tensor's dtype and device: a size, uninitialised, or data; older programs call it."""
    sizes = sizes_given(args)
    return new_tensor(self, args[0]) if sizes is None else new_empty(self, sizes)


def new_zeros(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Zeros, of this tensor's dtype and device where not given otherwise."""
    if not kwargs:
        return _C.zeros(*size, dtype=self.dtype, device=self.device)
    return _C.zeros(*size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_ones(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Ones, of this tensor's dtype and device where not given otherwise."""
    if not kwargs:
        return _C.ones(*size, dtype=self.dtype, device=self.device)
    return _C.ones(*size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_full(self: Tensor, size: Sequence[int], fill_value: float, **kwargs: Any) -> Tensor:
    """A number, of this tensor's dtype and device where not given otherwise."""
    return _C.full(size, fill_value, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_tensor(self: Tensor, data: Any, **kwargs: Any) -> Tensor:
    """A copy of the data, of this tensor's dtype and device where not given otherwise."""
    return _ext.tensor(data, **{"dtype": self.dtype, "device": self.device} | kwargs)


def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: _Device | None = None,
) -> Tensor:
    """Normal random numbers of these means and deviations: one per element, or of a size.

    Raises
    ------
    ValueError
        std is below 0, or NaN. Elements of a tensor are looked at where that waits for nothing: on
        the CPU, unless it is global. Elsewhere a deviation below 0 counts as its absolute value.
    """
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if size is None and not tensors:
        raise TypeError("normal() takes a size where mean and std are numbers")
    if size is None:
        size = common_shape("normal", (t.shape for t in tensors))
    if not isinstance(std, Tensor):
        if not std >= 0:
            raise ValueError(f"normal(): std is {std}, but it must not be negative")
    elif std.device.type == "cpu" and not std.is_global and not (std >= 0).all():
        raise ValueError("normal(): std has elements below 0 or NaN, but must not be negative")
    kind = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {}
    kind |= {k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None}
    return _C.randn(size, generator=generator, **kind) * std + mean


FUNCTIONS = (as_tensor, asarray, normal)
METHODS = (new, new_empty, new_zeros, new_ones, new_full, new_tensor)
