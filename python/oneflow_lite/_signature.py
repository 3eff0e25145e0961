# SPDX-License-Identifier: Apache-2.0
"""How functions composed in Python read their arguments, by the rules of those in C++.

``axis`` means ``dim``, ``keepdims`` means ``keepdim`` and so on (one table, in
oneflow_lite/framework/function.cpp, for both); ``out=`` writes the result; orders of
arguments that PyTorch took before are understood with a warning.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._warnings import warn

# What a parameter's annotation says an argument must be.
MUST_BE = {
    "Tensor": "Tensor",
    "Tensor | None": "Tensor or None",
    "Sequence[Tensor]": "a list of Tensors",
}
# Flags, of which PyTorch takes nothing else, in their annotations.
_FLAGS = {"bool": (bool, np.bool_), "bool | None": (bool, np.bool_, type(None))}
# PyTorch takes whatever has a truth value.
_TAKES_ANY_TRUTH = ("gumbel_softmax",)
# Orders of arguments by place that PyTorch takes still; those in C++ register theirs.
_OLDER = {
    "addcdiv": ("input, value, tensor1, tensor2",),
    "addcmul": ("input, value, tensor1, tensor2",),
}


def check_flag(function: str, argument: str, value: Any, annotation: str = "bool") -> None:
    """TypeError where what should be a bool is none."""
    if not isinstance(value, _FLAGS[annotation]):
        kind = annotation.replace("|", "or")
        raise TypeError(
            f"{function}(): argument '{argument}' must be {kind}, not {type(value).__name__}"
        )


class Meaning(NamedTuple):
    """Arguments as the function itself takes them, and where the result goes."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any


class Signature:
    """The parameters of a function, and what else may be passed for them."""

    def __init__(self, function: Callable[..., Any], *, out: bool) -> None:
        inner = inspect.unwrap(function)
        code = inner.__code__
        count = code.co_argcount
        self.name, self.out = function.__name__, out
        self.places = code.co_varnames[:count]
        self.names = code.co_varnames[: count + code.co_kwonlyargcount]
        self.takes_any = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.kinds = inner.__annotations__
        known = {} if self.name in _TAKES_ANY_TRUTH else self.kinds
        self.flags = [(i, name, known[name]) for i, name in enumerate(self.names)
                      if known.get(name) in _FLAGS]  # fmt: skip
        self.older = [order.split(", ") for order in _OLDER.get(self.name, ())]

    def kinds_of_tensors(self) -> tuple[tuple[bool | None, ...], dict[str, bool]]:
        """For each place, and for names: True for a Tensor, False for a Tensor or None."""
        kinds = {"Tensor": True, "Tensor | None": False}
        names = {n: kinds[self.kinds[n]] for n in self.names if self.kinds.get(n) in kinds}
        return tuple(names.get(place) for place in self.places), names

    def must_be(self) -> dict[str, str]:
        """The parameters that must be tensors, with their annotations."""
        return {name: kind for name, kind in self.kinds.items()
                if kind in MUST_BE and name not in ("self", "return")}  # fmt: skip

    def check_flags(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """TypeError where a flag is no bool: Python would take anything for one."""
        for place, name, annotation in self.flags:
            value = args[place] if place < len(args) else kwargs.get(name, False)
            check_flag(self.name, name, value, annotation)

    def is_plain(self) -> bool:
        """Whether nothing but its own names can be meant."""
        takes = self.out or self.flags or self.must_be()
        return not (takes or {"dim", "dims", "keepdim"} & {*self.names})

    def understand(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Meaning | None:
        """What arguments mean that the function refused; None where nothing else can be meant."""
        named, out, changed = {}, None, False
        for name, value in kwargs.items():
            if name in self.names or self.takes_any:
                known = name
            elif name == "out" and (self.out or value is None):
                out, changed = value, True
                continue
            elif name in _ext.MEANINGLESS or (name == "dtype" and value is None):
                changed = True  # NumPy's functions pass dtype=None on
                continue
            else:
                meant = _ext.OTHER_NAMES.get(name, ())
                known = next((m for m in meant if m in self.names), name)
                changed = changed or known != name
            if known in named:
                raise TypeError(f"{self.name}() got multiple values for argument '{known}'")
            named[known] = value
        older = self._by_older_order(args, named)
        if older is not None:
            return Meaning((), older, out)
        return Meaning(args, named, out) if changed else None

    def _by_older_order(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any] | None:
        for order in self.older:
            given = dict(zip(order, args, strict=False)) | kwargs
            if len(args) > len(order) or len(given) != len(args) + len(kwargs):
                continue
            complete = set(order) <= set(given)
            if complete and all(
                isinstance(given[n], Tensor) == (self.kinds[n] == "Tensor") for n in order
            ):
                warn(f"{self.name}({', '.join(order)}) is an older order of arguments; pass "
                     f"{', '.join(n for n in order if self.kinds[n] != 'Tensor')} by keyword, after"
                     " the tensors")  # fmt: skip
                return given
        return None

    def refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """TypeError for a keyword that is nearly one of the names, for what should be a tensor."""
        for keyword in kwargs if not self.takes_any else ():
            near = difflib.get_close_matches(keyword, self.names, 1)
            if keyword not in self.names and near:
                wrong = f"{self.name}() got an unexpected keyword argument '{keyword}'"
                raise TypeError(f"{wrong}; did you mean '{near[0]}'?") from None
        kinds = self.must_be()
        for name, value in (*zip(self.places, args, strict=False), *kwargs.items()):
            if name in kinds and not _is_right(kinds[name], value):
                raise TypeError(f"{self.name}(): argument '{name}' must be {MUST_BE[kinds[name]]}, "
                                f"not {type(value).__name__}") from None  # fmt: skip

    def write(self, result: Any, out: Any) -> Any:
        """The result in the memory of ``out``, as C++ functions write theirs."""
        if isinstance(result, Tensor):
            return _C.clone(result, out=out)
        if not (isinstance(out, list | tuple) and len(out) == len(result)):
            raise TypeError(f"{self.name}(): out must be a tuple of as many Tensors as results")
        for tensor, target in zip(result, out, strict=True):
            _C.clone(tensor, out=target)
        made = getattr(type(result), "_make", type(result))  # of a NamedTuple from a sequence
        return out if type(result) is tuple else made(out)


def _is_right(annotation: str, value: Any) -> bool:
    if annotation == "Sequence[Tensor]":
        return isinstance(value, list | tuple) and all(isinstance(v, Tensor) for v in value)
    return isinstance(value, Tensor) or (value is None and annotation == "Tensor | None")
