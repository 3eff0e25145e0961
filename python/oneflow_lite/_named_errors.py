# SPDX-License-Identifier: Apache-2.0
"""What the functions composed in Python say: their own name, and the argument that is wrong."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

# What a list or an array comes to in a formula. A subclass knows better what it speaks of.
_VAGUE = (AttributeError, TypeError, IndexError, ShapeError)
# The function that a message speaks of: "mean(): input has ...", "mean() missing 1 required ...".
_SPEAKER = re.compile(r"[\w.]+(?=\(\)[: ])")
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


def _is_raised_here(error: Exception) -> bool:
    """Whether the package or NumPy raised it, not a class or function of the caller's."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    module = last.tb_frame.f_globals.get("__name__", "") if last else ""
    return module.partition(".")[0] in ("oneflow_lite", "numpy")


def renamed(error: Exception, name: str) -> Exception:
    """The exception, its message under the name of the function that the user called.

    One that a caller's own code raised stays as it is.
    """
    text = error.args[0] if len(error.args) == 1 else None
    if isinstance(text, str) and not text.startswith(f"{name}()") and _is_raised_here(error):
        named = _SPEAKER.match(text)
        error.args = (name + text[named.end() :] if named else f"{name}(): {text}",)
    return error


def under_name(function: _F, name: str, module: str = "oneflow_lite") -> _F:
    """Another name of a function of Python: it is called so, and so its errors say."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            raise renamed(error, name)  # noqa: B904  (it is the same exception)

    call.__name__, call.__module__ = name, module
    call.__qualname__ = function.__qualname__.replace(function.__name__, name)
    return cast(_F, call)


def named(function: _F, module: str = "oneflow_lite", *, out: bool = False) -> _F:
    """The function with errors as those of a C++ function: they begin with its name, and name the
    argument that is no tensor.

    Nothing is looked at unless the function raised: a call costs a frame more, and what behaves
    like a tensor (an element in ``flow.fuse``) is taken. ``module`` is where it can be found, for
    pickle. With ``out`` it takes ``out=`` as C++ functions do.
    """
    if not inspect.isfunction(function):
        return function
    name = function.__name__
    code = inspect.unwrap(function).__code__
    places = code.co_varnames[: code.co_argcount]
    tensors = {n: a for n, a in function.__annotations__.items()
               if a in _MUST_BE and n not in ("self", "return")}  # fmt: skip
    if code.co_argcount + code.co_kwonlyargcount == 0 and not out:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if type(error) not in _VAGUE:
                raise renamed(error, name)  # noqa: B904  (it is the same exception)
            if out and "out" in kwargs:  # which the function itself does not take
                target = kwargs.pop("out")
                result = call(*args, **kwargs)
                return result if target is None else _written(name, result, target)
            _refuse_misspelt(name, code, kwargs)
            for argument, value in (*zip(places, args, strict=False), *kwargs.items()):
                if argument in tensors and not _is_right(tensors[argument], value):
                    raise TypeError(
                        f"{name}(): argument '{argument}' must be "
                        f"{_MUST_BE[tensors[argument]]}, not {type(value).__name__}"
                    ) from None
            raise renamed(error, name)  # noqa: B904

    call.__module__ = module
    return cast(_F, call)
