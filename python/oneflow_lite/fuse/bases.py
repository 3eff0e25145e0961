# SPDX-License-Identifier: Apache-2.0
"""The ops around which elements can be fused, and the arguments that they take themselves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, dtype

_C = _ext._C
Options = dict[str, Any]


class Base(NamedTuple):
    """One base op: its own keyword arguments with their defaults, and how it is called."""

    name: str
    defaults: Options
    call: Callable[[Tensor, Options], Tensor]
    required: tuple[str, ...] = ()


def _softmax(function: Callable[..., Tensor]) -> Callable[[Tensor, Options], Tensor]:
    return lambda x, options: function(x, options["dim"])


def _cast(t: Tensor | None, to: dtype) -> Tensor | None:
    return None if t is None else t.to(dtype=to)


def _size(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def checked(op: str, base: Base, options: Options) -> Options:
    """The base op's own arguments as it takes them, normalized_shape a list of ints; TypeError."""
    if options.get("dim") is not None:
        try:
            options["dim"] = _size(options["dim"])
        except TypeError:
            raise TypeError(f"{op}(): dim must be an int or None, "
                            f"not {type(options['dim']).__name__}") from None  # fmt: skip
    if "eps" in options and not (options["eps"] is base.defaults["eps"] is None):
        if not hasattr(options["eps"], "__float__"):
            raise TypeError(f"{op}(): eps must be a float, not {type(options['eps']).__name__}")
        options["eps"] = float(options["eps"])
    if "normalized_shape" in options:
        given = options["normalized_shape"]
        sizes = given if isinstance(given, list | tuple) else [given]
        try:
            options["normalized_shape"] = [_size(n) for n in sizes]
        except TypeError:
            raise TypeError(f"{op}(): normalized_shape must be an int or a list of ints, "
                            f"not {given!r}") from None  # fmt: skip
    for name in ("weight", "bias"):
        if not isinstance(options.get(name), Tensor | None):
            raise TypeError(f"{op}(): {name} must be a tensor or None, "
                            f"not {type(options[name]).__name__}")  # fmt: skip
    return options


def _layer_norm(x: Tensor, options: Options) -> Tensor:
    weight, bias = _cast(options["weight"], x.dtype), _cast(options["bias"], x.dtype)
    return _C.layer_norm(x, options["normalized_shape"], weight, bias, options["eps"])


def _rms_norm(x: Tensor, options: Options) -> Tensor:
    weight = _cast(options["weight"], x.dtype)
    return _C.rms_norm(x, options["normalized_shape"], weight, options["eps"])


def row_shape(base: Base, x: Tensor, options: Options) -> list[int] | None:
    """The last dims of x, over which the op works; None where it works over others."""
    if base.name.endswith("norm"):
        shape = options["normalized_shape"]
        return shape if shape and list(x.shape[-len(shape) :]) == shape else None
    dim = options["dim"]
    if dim is None:  # as functional::Softmax reads it
        dim = 0 if x.ndim in (0, 1, 3) else 1
    return [x.shape[-1]] if dim in (-1, x.ndim - 1) else None


_DIM: Options = {"dim": None}
_NORM: Options = {"normalized_shape": None, "weight": None}
_REQUIRED = ("normalized_shape",)

BASES = {
    base.name: base
    for base in (
        Base("softmax", _DIM, _softmax(_C.softmax)),
        Base("log_softmax", _DIM, _softmax(_C.log_softmax)),
        Base("layer_norm", _NORM | {"bias": None, "eps": 1e-5}, _layer_norm, _REQUIRED),
        Base("rms_norm", _NORM | {"eps": None}, _rms_norm, _REQUIRED),
    )
}  # fmt: skip
