# SPDX-License-Identifier: Apache-2.0
"""Conveniences of Tensor that are worth no C++: conversions by name, text."""

from __future__ import annotations

from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, device, dtype
from oneflow_lite._tensor_repr import tensor_repr

_to = Tensor.to


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on another device, as another dtype, or both; itself where it is so already.

    ``x.to(device)``, ``x.to(dtype)``, ``x.to(device, dtype)``, ``x.to(like)``; each with
    ``copy=True`` for a copy in any case. ``non_blocking`` is taken and means nothing: copies are
    ordered by the stream.

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
    kwargs.pop("non_blocking", None)
    if args and isinstance(args[0], Tensor):
        like = args[0]
        return _to(self, like.device, like.dtype, *args[1:], **kwargs)
    if args and isinstance(args[0], dtype | type):
        return _to(self, None, *args, **kwargs)
    return _to(self, *args, **kwargs)


def cpu(self: Tensor) -> Tensor:
    """The tensor in the host's memory."""
    return _to(self, "cpu")


def cuda(self: Tensor, device: device | str | int | None = None) -> Tensor:
    """The tensor on a GPU, by default the current one."""
    return _to(self, "cuda" if device is None else device)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype of another."""
    return _to(self, None, other.dtype)


def equal(self: Tensor, other: Tensor) -> bool:
    """Whether the other tensor has the same shape and the same elements."""
    return self.shape == other.shape and bool((self == other).all())


def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether ``|self - other| <= atol + rtol * |other|`` holds everywhere.

    Infinities are close to themselves; NaN is close to NaN only with ``equal_nan``.
    """
    close = (self == other) | (abs(self - other) <= atol + rtol * abs(other)) & other.isfinite()
    if equal_nan:
        close = close | self.isnan() & other.isnan()
    return bool(close.all())


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """The same memory under the shape of another tensor."""
    return self.view(other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor under the shape of another, copied where strides cannot express it."""
    return self.reshape(other.shape)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor repeated to the shape of another, without a copy."""
    return self.expand(other.shape)


def format_number(self: Tensor, spec: str) -> str:
    """A 0-dim tensor is formatted as its number: ``f"{loss:.3f}"``."""
    if self.ndim == 0 and spec and self.device.type != "meta":
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _cast(name: str, target: dtype) -> Any:
    def cast(self: Tensor) -> Tensor:
        return _to(self, None, target)

    cast.__name__, cast.__qualname__ = name, f"Tensor.{name}"
    cast.__doc__ = f"The tensor as {target.name}; itself where it is so already."
    return cast


def _complete() -> None:
    methods = {
        "to": to, "cpu": cpu, "cuda": cuda, "type_as": type_as, "equal": equal,
        "allclose": allclose, "view_as": view_as, "reshape_as": reshape_as, "expand_as": expand_as,
        "__format__": format_number, "__repr__": tensor_repr,
    }  # fmt: skip
    casts = {
        "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16",
        "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
        "bool": "bool",
    }  # fmt: skip
    methods |= {name: _cast(name, getattr(_ext, target)) for name, target in casts.items()}
    for name, method in methods.items():
        setattr(Tensor, name, method)


_complete()
