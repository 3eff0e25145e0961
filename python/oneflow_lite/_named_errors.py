# SPDX-License-Identifier: Apache-2.0
"""The functions composed in Python as users call them: names, orders, errors, named results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from oneflow_lite._oneflow_lite import ShapeError
from oneflow_lite._signature import Signature

_F = TypeVar("_F", bound=Callable[..., Any])

# What a list or an array comes to in a formula. A subclass knows better what it speaks of.
_VAGUE = (AttributeError, TypeError, IndexError, ShapeError)


def named(function: _F, module: str = "oneflow_lite", *, out: bool = False) -> _F:
    """The function with other names and orders of arguments, and with the TypeError of a C++
    function where one is no tensor.

    Nothing is looked at unless the function raised: a call costs a frame more, and what behaves
    like a tensor (an element in ``flow.fuse``) is taken. ``module`` is where it can be found, for
    pickle. With ``out`` it takes ``out=`` as C++ functions do; without, None alone. A tuple gets
    the names of :func:`~oneflow_lite._named_results.with_results`.
    """
    if not inspect.isfunction(function):
        return function
    signature = Signature(function, out=out)
    if signature.is_plain():
        return function

    results = getattr(function, "results", None)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            found = function(*args, **kwargs)
            return found if results is None or type(found) is not tuple else results(found)
        except _VAGUE as error:
            if type(error) not in _VAGUE:
                raise
            meant = signature.understand(args, kwargs)
            if meant is None:
                signature.refuse(args, kwargs)
                raise
        found = call(*meant.args, **meant.kwargs)
        return found if meant.out is None else signature.write(found, meant.out)

    call.__module__ = module
    return cast(_F, call)
