# SPDX-License-Identifier: Apache-2.0
"""What the functions composed in Python say of arguments that are no tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from oneflow_lite._oneflow_lite import ShapeError, Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

# What a list or an array comes to in a formula. A subclass knows better what it speaks of.
_VAGUE = (AttributeError, TypeError, IndexError, ShapeError)
# What a parameter's annotation says an argument must be.
_MUST_BE = {
    "Tensor": "Tensor",
    "Tensor | None": "Tensor or None",
    "Sequence[Tensor]": "a list of Tensors",
}


def _is_right(annotation: str, value: Any) -> bool:
    if annotation == "Sequence[Tensor]":
        return isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value)
    return isinstance(value, Tensor) or (value is None and annotation == "Tensor | None")


def named(function: _F, module: str = "oneflow_lite") -> _F:
    """The function with the TypeError of a C++ function where an argument is no tensor.

    Nothing is looked at unless the function raised: a call costs a frame more, and what behaves
    like a tensor (an element in ``flow.fuse``) is taken. ``module`` is where it can be found, for
    pickle.
    """
    if not inspect.isfunction(function):
        return function
    code = inspect.unwrap(function).__code__
    places = code.co_varnames[: code.co_argcount]
    tensors = {n: a for n, a in function.__annotations__.items()
               if a in _MUST_BE and n not in ("self", "return")}  # fmt: skip
    if not tensors:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except _VAGUE as error:
            if type(error) not in _VAGUE:
                raise
            for name, value in (*zip(places, args, strict=False), *kwargs.items()):
                if name in tensors and not _is_right(tensors[name], value):
                    raise TypeError(
                        f"{function.__name__}(): argument '{name}' must be "
                        f"{_MUST_BE[tensors[name]]}, not {type(value).__name__}"
                    ) from None
            raise

    call.__module__ = module
    return cast(_F, call)
