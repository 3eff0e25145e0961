# SPDX-License-Identifier: Apache-2.0
"""The inputs and attributes of an op in Python, read off the parameters of its ``forward``."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from oneflow_lite._oneflow_lite import Tensor, dtype

_TYPES = {Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", dtype: "dtype"}
_ALLOWED = "Tensor, list[Tensor], int, float, bool, str, dtype and list[int]"
_PACKAGE = types.SimpleNamespace(Tensor=Tensor, dtype=dtype)
# What annotations may name where only a type checker has imported it.
_NAMES = {"Tensor": Tensor, "dtype": dtype, "flow": _PACKAGE, "oneflow_lite": _PACKAGE,
          "typing": typing, "Sequence": collections.abc.Sequence, "List": list, "Tuple": tuple,
          **{n: getattr(typing, n) for n in ("Literal", "Optional", "Union")}}  # fmt: skip


def _is_int(value: Any, least: float = -(2**63), most: float = 2**63 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


_MOST = sys.float_info.max
_IS_OF = {
    "int": _is_int,
    "float": lambda v: isinstance(v, float) or _is_int(v, -_MOST, _MOST),
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, str),
    "dtype": lambda v: isinstance(v, dtype),
    "int[]": lambda v: isinstance(v, list | tuple) and all(map(_is_int, v)),
}


def _type_of(annotation: Any, scope: dict[str, Any]) -> tuple[str | None, bool]:
    """The type that an annotation means, None where it can be none, and whether None is allowed."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            return _type_of(eval(annotation, {**_NAMES, **scope}), scope)
        except Exception:  # a name of the type checker's only, say: go by the text
            text = annotation.removesuffix(" | None")
            by_name = {t.__name__: kind for t, kind in _TYPES.items()}
            return by_name.get(text.split(".")[-1]), text != annotation
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        given = [a for a in args if a is not type(None)]
        return (_type_of(given[0], scope)[0] if len(given) == 1 else None), len(given) < len(args)
    if origin in (list, tuple, collections.abc.Sequence):
        elements = [_type_of(a, scope) for a in args if a is not Ellipsis]
        kind, optional = elements[0] if elements else (None, False)
        same = all(e == elements[0] for e in elements)
        fits = kind in ("int", "Tensor") and same and not optional
        return (f"{kind}[]" if fits else None), False
    if origin is typing.Literal:  # one of some words, say
        kinds = {_TYPES.get(type(a)) for a in args}
        return (kinds.pop() if len(kinds) == 1 else None), False
    if not isinstance(annotation, type):
        return None, False
    return "Tensor" if issubclass(annotation, Tensor) else _TYPES.get(annotation), False


class Signature:
    """Inputs and attributes of an op, read off the parameters of its ``forward``."""

    def __init__(self, op: str, forward: Callable[..., Any]) -> None:
        self.inputs: list[tuple[str, str]] = []
        self.attrs: list[tuple[str, str, Any, bool]] = []
        parameters = list(inspect.signature(forward).parameters.values())
        if parameters and parameters[0].name in ("self", "cls"):
            raise TypeError(f"register_op({op!r}): there is no object, and forward has no "
                            f"{parameters[0].name}: write def forward(x, ...)")  # fmt: skip
        if parameters and parameters[0].name == "ctx":
            raise TypeError(f"register_op({op!r}): forward gets no ctx: write def forward(x, ...); "
                            "backward(ctx, dy) finds the inputs and attributes on its ctx by name, "
                            "and outputs that `save` names")  # fmt: skip
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"register_op({op!r}): forward may not have {p}")
            kind, optional = "Tensor", False
            if p.annotation is not p.empty:
                scope = getattr(inspect.unwrap(forward), "__globals__", {})
                kind, optional = _type_of(p.annotation, scope)
            optional = optional or p.default is None
            if kind is None:
                raise TypeError(f"register_op({op!r}): parameter {p.name} has type {p.annotation}; "
                                f"allowed are {_ALLOWED}")  # fmt: skip
            if kind.startswith("Tensor"):
                self._add_input(op, p, kind, optional)
            elif p.default is None or p.default is p.empty or _IS_OF[kind](p.default):
                default = None if p.default is p.empty else p.default
                self.attrs.append((p.name, kind, default, optional))
            else:
                bits = " of 64 bits" if kind.startswith("int") else ""
                raise TypeError(f"register_op({op!r}): the default of {p.name}, {p.default!r}, is "
                                f"no {kind}{bits}")  # fmt: skip
        self.input_names = [n for n, _ in self.inputs]
        self.attr_names = [a[0] for a in self.attrs]
        self.names = self.input_names + self.attr_names
        self.variadic = bool(self.inputs) and self.inputs[-1][1] == "variadic"

    def _add_input(self, op: str, p: inspect.Parameter, kind: str, optional: bool) -> None:
        if self.attrs:
            raise TypeError(f"register_op({op!r}): tensor {p.name} after an attribute")
        if p.default is not p.empty and p.default is not None:
            raise TypeError(f"register_op({op!r}): the default of tensor {p.name} can only be "
                            "None; annotate attributes with their type")  # fmt: skip
        if kind == "Tensor[]" and optional:
            raise TypeError(f"register_op({op!r}): {p.name}, a list of tensors, cannot be optional "
                            "and has no default: each call passes the tensors")  # fmt: skip
        one = "optional" if optional else "required"
        self.inputs.append((p.name, "variadic" if kind == "Tensor[]" else one))

    def pack(self, inputs: list[Any]) -> list[Any]:
        """One entry per name: the tensors of a list parameter, which come last, as a list."""
        if not self.variadic:
            return inputs
        single = len(self.inputs) - 1
        return [*inputs[:single], inputs[single:]]
