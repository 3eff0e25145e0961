# SPDX-License-Identifier: Apache-2.0
"""What the functions composed in Python say of arguments that are no tensors."""

from __future__ import annotations

import difflib
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor

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


def _written(name: str, result: Any, out: Any) -> Any:
    """The result in the memory of ``out``, as C++ functions write theirs."""
    if isinstance(result, Tensor):
        return _C.clone(result, out=out)
    if not (isinstance(out, list | tuple) and len(out) == len(result)):
        raise TypeError(f"{name}(): out must be a tuple of as many Tensors as results")
    for tensor, target in zip(result, out, strict=True):
        _C.clone(tensor, out=target)
    return out


def _refuse_misspelt(name: str, code: types.CodeType, given: dict[str, Any]) -> None:
    """TypeError for a keyword that the function lacks but nearly has."""
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return
    for keyword in given:
        if keyword in known:
            continue
        if near := difflib.get_close_matches(keyword, known, 1):
            wrong = f"{name}() got an unexpected keyword argument '{keyword}'"
            raise TypeError(f"{wrong}; did you mean '{near[0]}'?") from None


def named(function: _F, module: str = "oneflow_lite", *, out: bool = False) -> _F:
    """The function with the TypeError of a C++ function where an argument is no tensor, and with
    its own name where a number does not fit.

    Nothing is looked at unless the function raised: a call costs a frame more, and what behaves
    like a tensor (an element in ``flow.fuse``) is taken. ``module`` is where it can be found, for
    pickle. With ``out`` it takes ``out=`` as C++ functions do.
    """
    if not inspect.isfunction(function):
        return function
    code = inspect.unwrap(function).__code__
    places = code.co_varnames[: code.co_argcount]
    tensors = {n: a for n, a in function.__annotations__.items()
               if a in _MUST_BE and n not in ("self", "return")}  # fmt: skip
    numbers = any(a.startswith("_Operand") for a in function.__annotations__.values())
    if not tensors and not out and not numbers:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except OverflowError as error:
            inner, found, rest = str(error).partition("(): ")
            if not found or not inner.isidentifier():
                raise
            raise OverflowError(f"{function.__name__}(): {rest}") from None
        except _VAGUE as error:
            if type(error) not in _VAGUE:
                raise
            if out and "out" in kwargs:  # which the function itself does not take
                target = kwargs.pop("out")
                result = call(*args, **kwargs)
                return result if target is None else _written(function.__name__, result, target)
            _refuse_misspelt(function.__name__, code, kwargs)
            for name, value in (*zip(places, args, strict=False), *kwargs.items()):
                if name in tensors and not _is_right(tensors[name], value):
                    raise TypeError(
                        f"{function.__name__}(): argument '{name}' must be "
                        f"{_MUST_BE[tensors[name]]}, not {type(value).__name__}"
                    ) from None
            raise

    call.__module__ = module
    return cast(_F, call)
