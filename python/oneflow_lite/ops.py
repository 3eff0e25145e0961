# SPDX-License-Identifier: Apache-2.0
"""The ops themselves, below the functions, and what there is to know of them.

>>> print(flow.ops.describe("softmax"))
>>> y = flow.ops.softmax(x, axis=1)        # an op of this library
>>> y = flow.ops.demo.softplus(x)          # demo::softplus, from an extension or from Python
"""

from __future__ import annotations

import builtins
from typing import Any

from oneflow_lite import _oneflow_lite as _ext

__all__ = ["describe", "list"]


class _Namespace:
    """The ops named ``name::...``."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, op: str) -> Any:
        name = f"{self.__name__}::{op}"
        try:
            function = _ext.op_function(name)
        except NotImplementedError as error:
            raise AttributeError(str(error)) from None
        setattr(self, op, function)
        return function

    def __dir__(self) -> builtins.list[str]:
        prefix = self.__name__ + "::"
        return [n.removeprefix(prefix) for n in _ext.list_ops() if n.startswith(prefix)]

    def __repr__(self) -> str:
        return f"<ops {self.__name__}: {', '.join(dir(self))}>"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    names = _ext.list_ops()
    if name in names:
        value = _ext.op_function(name)
    elif any(n.startswith(name + "::") for n in names):
        value = _Namespace(name)
    else:
        raise AttributeError(f"there is no op and no namespace named {name!r}; see flow.ops.list()")
    globals()[name] = value
    return value


def __dir__() -> builtins.list[str]:
    return sorted(set(__all__) | {n.split("::")[0] for n in _ext.list_ops()})


def list() -> builtins.list[str]:
    """The names of all ops, sorted."""
    return _ext.list_ops()


def describe(name: str) -> str:
    """Schema, place, kernels and gradient of an op as text to read.

    Parameters
    ----------
    name : str
        One of :func:`list`.

    Raises
    ------
    NotImplementedError
        There is no such op.
    """
    return _ext.describe_op(name)
