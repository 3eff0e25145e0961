# SPDX-License-Identifier: Apache-2.0
"""The functions composed in Python as users call them: names, orders, errors, named results."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from oneflow_lite._oneflow_lite import ShapeError, Tensor, _check_tensors, _GlobalScope
from oneflow_lite._signature import Signature

_F = TypeVar("_F", bound=Callable[..., Any])

# What a list or an array comes to in a formula. A subclass knows better what it speaks of.
_VAGUE = (AttributeError, TypeError, IndexError, ShapeError)
# The function that a message speaks of: "mean(): input has ...", "mean() missing 1 required ...".
_SPEAKER = re.compile(r"[\w.]+(?=\(\)[: ])")


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


def under_name(
    function: _F,
    name: str,
    module: str = "oneflow_lite",
    kinds: tuple[type[Exception], ...] = (Exception,),
) -> _F:
    """Another name of a function of Python: it is called so, and so its errors say."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except kinds as error:
            raise renamed(error, name)  # noqa: B904  (it is the same exception)

    call.__name__, call.__module__ = name, module
    call.__qualname__ = function.__qualname__.replace(function.__name__, name)
    return cast(_F, call)


# What a wrong argument comes to; other errors, such as another rank's, keep their words.
_OF_ARGUMENTS = (TypeError, AttributeError, ValueError, IndexError, KeyError, OverflowError)


def speak_for_themselves(module: dict[str, Any], names: Iterable[str]) -> None:
    """Lets errors about arguments of a module's functions begin with the name that was called.

    Parameters
    ----------
    module : dict
        The ``globals()`` of the module; its functions are replaced there. Inside of the package
        they are called as they were written.
    names : iterable of str
        What there is in the module for users; what is no function stays as it is.
    """
    for name in names:
        if inspect.isfunction(module.get(name)):
            module[name] = under_name(module[name], name, module["__name__"], _OF_ARGUMENTS)


def short_for(cpp: Callable[..., Any]) -> Callable[[_F], _F]:
    """Marks a function that of a tensor alone, or of one and an int, is a C++ function: ``named``
    then calls that without the frames around this one.
    """

    def mark(function: _F) -> _F:
        function.__dict__["short_for"] = cpp
        return function

    return mark


def named(function: _F, module: str = "oneflow_lite", *, out: bool = False) -> _F:
    """The function with other names and orders of arguments, and with errors as those of a C++
    function: they begin with its name, and name the argument that is no tensor.

    Before the function runs, flags and what must be a tensor are looked at: a function may ask
    other objects for a number of dims, and run for as long as they please. An element in
    ``flow.fuse`` stands for a tensor. All else is looked at where the function raised. ``module``
    is where it can be found, for pickle. With ``out`` it takes ``out=`` as C++ functions do;
    without, None alone.
    """
    if not inspect.isfunction(function):
        return function
    name, code = function.__name__, inspect.unwrap(function).__code__
    signature = Signature(function, out=out)
    flags = bool(signature.flags)
    kinds, by_name = signature.kinds_of_tensors()
    if code.co_argcount + code.co_kwonlyargcount == 0 and signature.is_plain():
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if flags:
            signature.check_flags(args, kwargs)
        try:
            placement = _check_tensors(kinds, by_name, args, kwargs)
            if placement is None:
                return function(*args, **kwargs)
            with _GlobalScope(placement):  # what it makes for global tensors goes with them
                return function(*args, **kwargs)
        except Exception as error:
            if type(error) not in _VAGUE:
                raise renamed(error, name)  # noqa: B904  (it is the same exception)
            meant = signature.understand(args, kwargs)
            if meant is None:
                signature.refuse(args, kwargs)
                raise renamed(error, name)  # noqa: B904
        found = call(*meant.args, **meant.kwargs)
        if meant.out is None:
            return found
        try:
            return signature.write(found, meant.out)
        except Exception as error:
            raise renamed(error, name)  # noqa: B904

    cpp = function.__dict__.get("short_for")

    @functools.wraps(function)
    def call_short(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and args and isinstance(args[0], Tensor):
            if len(args) == 1:
                return cpp(args[0])
            if len(args) == 2 and type(args[1]) is int:
                return cpp(args[0], args[1])
        return call(*args, **kwargs)

    found = call_short if cpp else call
    found.__module__ = module
    return cast(_F, found)
