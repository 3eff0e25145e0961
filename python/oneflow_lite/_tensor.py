# SPDX-License-Identifier: Apache-2.0
"""Conveniences of Tensor that are worth no C++: conversions by name, text."""

from __future__ import annotations

from typing import Any

from oneflow_lite import (
    _creation,
    _indexing,
    _math,
    _numerical,
    _products,
    _reductions,
    _scattering,
)
from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import absent_methods
from oneflow_lite._layouts import laid_out, strided
from oneflow_lite._named_errors import named, renamed
from oneflow_lite._oneflow_lite import Tensor, device, dtype
from oneflow_lite._signature import check_flag
from oneflow_lite._tensor_repr import tensor_repr
from oneflow_lite._typed_tensors import TYPES
from oneflow_lite._ufuncs import array_ufunc, array_wrap

_to = Tensor.to


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on another device, as another dtype, or both; itself where it is so already.

    ``x.to(device)``, ``x.to(dtype)``, ``x.to(device, dtype)``, ``x.to(like)``; each with
    ``copy=True`` for a copy in any case. ``non_blocking``, by place the one before, is taken and
    means nothing: copies are ordered by the stream. Another dtype leaves the dims' order in memory
    as it is, but for ``memory_format=contiguous_format``.

    Parameters
    ----------
    device : device, str or int
        Such as "cpu", "cuda", "cuda:1" or 1.
    dtype : dtype
        Such as ``flow.float16``.
    like : Tensor
        Stands for its device and dtype.

    Raises
    ------
    RuntimeError
        The device is not there.
    """
    if kwargs:
        check_flag("to", "non_blocking", kwargs.pop("non_blocking", False))
    layout = kwargs.pop("memory_format", None)
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    elif args and isinstance(args[0], dtype | type):
        args = (None, *args)
    if len(args) > 2:  # then come non_blocking and copy
        check_flag("to", "non_blocking", args[2])
        args = (*args[:2], *args[3:])
    result = _to(self, *args, **kwargs)
    return laid_out("to", result, layout)


def cpu(self: Tensor) -> Tensor:
    """The tensor in the host's memory."""
    try:
        return _to(self, "cpu")
    except Exception as error:
        raise renamed(error, "cpu")  # noqa: B904  (it is the same exception)


def cuda(self: Tensor, device: device | str | int | None = None) -> Tensor:
    """The tensor on a GPU, by default the current one."""
    return _to(self, "cuda" if device is None else device)


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether ``|input - other| <= atol + rtol * |other|`` holds everywhere.

    Infinities are close to themselves; NaN is close to NaN only with ``equal_nan``.
    """
    _math.check_tolerances("allclose", rtol, atol)
    return bool(_ext._C.isclose(input, other, rtol, atol, equal_nan).all())


def format_number(self: Tensor, spec: str) -> str:
    """A 0-dim tensor is formatted as its number: ``f"{loss:.3f}"``."""
    if self.ndim == 0 and self.device.type != "meta":
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _cast(name: str, target: dtype) -> Any:
    def cast(self: Tensor, *, memory_format: Any = None) -> Tensor:
        return laid_out(name, _to(self, None, target), memory_format)

    cast.__name__, cast.__qualname__ = name, f"Tensor.{name}"
    cast.__doc__ = f"The tensor as {target.name}; itself where it is so already."
    return cast


def contains(self: Tensor, value: Any) -> bool:
    """Whether an element equals the value."""
    found = self == value
    return isinstance(found, Tensor) and bool(found.any())


def reversed_(self: Tensor) -> Tensor:
    """The elements along the first dim in reverse order."""
    return _ext._C.flip(self, [0] if self.ndim > 0 else [])


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The tensor as another dtype, or without one the name of its own.

    A type such as ``flow.LongTensor`` stands for its dtype, and so does a name: that of a dtype as
    this gives it, or of a type.
    """
    if dtype is None:
        return f"oneflow_lite.{self.dtype.name}"
    if isinstance(dtype, str):
        name = dtype.rpartition(".")[2]
        named = TYPES.get(name) or getattr(_ext, name, None)
        if not isinstance(named, _ext.dtype | type(TYPES["LongTensor"])):
            raise ValueError(f'type(): there is no dtype "{dtype}"')
        dtype = named
    return _to(self, None, getattr(dtype, "dtype", dtype))


def is_complex(self: Tensor) -> bool:
    """Whether the dtype is complex: there is none."""
    return False


def get_device(self: Tensor) -> int:
    """The number of the GPU that the tensor is on, -1 for the CPU."""
    return -1 if self.device.index is None or self.is_cpu else self.device.index


# Methods that call the C++ function of their name, so that a frame around them would say nothing,
# and one whose errors speak of the function of NumPy's.
AS_THEY_ARE = ("to", "cpu", "__repr__", "__format__", "__contains__", "__array_ufunc__")


type_.__name__, reversed_.__name__ = "type", "__reversed__"


def _complete() -> None:
    methods = {
        "to": to, "cpu": cpu, "cuda": cuda, "allclose": allclose,
        "__format__": format_number, "__repr__": tensor_repr, "type": type_,
        "get_device": get_device,
        "is_complex": is_complex, "__contains__": contains, "__reversed__": reversed_,
        "__array_ufunc__": array_ufunc, "__array_wrap__": array_wrap,
    }  # fmt: skip
    modules = (_math, _products, _reductions, _indexing, _numerical, _scattering, _creation)
    methods |= {f.__name__: f for module in modules for f in module.METHODS}
    casts = {
        "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16",
        "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
        "bool": "bool",
    }  # fmt: skip
    methods |= {name: _cast(name, getattr(_ext, target)) for name, target in casts.items()}
    for name, method in methods.items():
        setattr(Tensor, name, method if name in casts or name in AS_THEY_ARE else named(method))


_complete()
_ext._look_last(absent_methods())
Tensor.layout, Tensor.is_sparse = strided, False  # type: ignore[attr-defined]
