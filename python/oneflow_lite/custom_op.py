# SPDX-License-Identifier: Apache-2.0
"""Ops from outside: written in Python, or in a shared library.

>>> @flow.register_op("demo::cube")
... class Cube:
...     def forward(x):
...         return x * x * x
...     def backward(ctx, dy):
...         return dy * 3 * ctx.x * ctx.x
>>> y = flow.ops.demo.cube(x)

An op of this kind gets what every op gets: its function with a signature, shape inference, both
devices, autograd, the meta device, observers and the checks.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, dtype

__all__ = ["load_library", "register_op"]

_ATTRIBUTES = {"int": "int", "float": "float", "bool": "bool", "str": "str", "dtype": "dtype",
               "list[int]": "int[]", "tuple[int, ...]": "int[]"}  # fmt: skip


class _Context:
    """What ``backward`` sees: the inputs, outputs and attributes by name, and ``needs``.

    ``needs`` says per tensor input whether its gradient is wanted.
    """

    def __init__(self, values: dict[str, Any], needs: dict[str, bool]) -> None:
        self.__dict__.update(values)
        self.needs = needs


class _Signature:
    """Inputs and attributes of an op, read off the parameters of its ``forward``."""

    def __init__(self, name: str, forward: Callable[..., Any]) -> None:
        self.inputs: list[tuple[str, str]] = []
        self.attrs: list[tuple[str, str, Any, bool]] = []
        for p in inspect.signature(forward).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                raise TypeError(f"register_op({name!r}): forward may not have {p}")
            kind = (
                p.annotation
                if isinstance(p.annotation, str)
                else getattr(p.annotation, "__name__", str(p.annotation))
            )
            if p.annotation is not p.empty and kind.startswith(("list[", "tuple[")):
                kind = str(p.annotation)
            optional = kind.endswith(" | None")
            kind = kind.removesuffix(" | None")
            if p.annotation is p.empty or kind.split(".")[-1] == "Tensor":
                if self.attrs:
                    raise TypeError(f"register_op({name!r}): tensor {p.name} after an attribute")
                if p.default is not p.empty and p.default is not None:
                    raise TypeError(
                        f"register_op({name!r}): the default of tensor {p.name} can "
                        "only be None; annotate attributes with their type"
                    )
                optional = optional or p.default is None
                self.inputs.append((p.name, "optional" if optional else "required"))
            elif kind in _ATTRIBUTES:
                default = None if p.default is p.empty else p.default
                optional = optional or (p.default is None)
                self.attrs.append((p.name, _ATTRIBUTES[kind], default, optional))
            else:
                raise TypeError(
                    f"register_op({name!r}): parameter {p.name} has type {kind}; allowed "
                    f"are Tensor and {', '.join(_ATTRIBUTES)}"
                )
        self.input_names = [n for n, _ in self.inputs]
        self.attr_names = [a[0] for a in self.attrs]


def _as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


class _Op:
    """Turns the calls that C++ makes into those of the user's functions."""

    def __init__(self, name: str, definition: Any, signature: _Signature) -> None:
        self.name, self.signature = name, signature
        self.forward_function = definition.forward
        self.infer_function = getattr(definition, "infer", None)
        self.backward_function = getattr(definition, "backward", None)
        self.sbp_function = getattr(definition, "sbp", None)
        self.cost_function = getattr(definition, "cost", None)
        self.outputs = _as_list(getattr(definition, "outputs", "out"))
        saved = getattr(definition, "save", signature.input_names)
        known = signature.input_names + self.outputs
        for unknown in set(saved) - set(known):
            raise ValueError(f"register_op({name!r}): save names {unknown!r}; there are {known}")
        self.save_inputs = sum(1 << i for i, n in enumerate(signature.input_names) if n in saved)
        self.save_outputs = sum(1 << i for i, n in enumerate(self.outputs) if n in saved)

    def infer(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[tuple[Any, Any]]:
        """Shape and dtype of each output, from inputs on the meta device."""
        function = self.infer_function or self.forward_function
        result = function(*inputs, *attrs)
        is_pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dtype)
        results = [result] if is_pair else _as_list(result)
        return [(tuple(r.shape), r.dtype) if isinstance(r, Tensor) else r for r in results]

    def forward(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[Tensor]:
        return _as_list(self.forward_function(*inputs, *attrs))

    def sbp(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[list[str]]:
        return [list(signature) for signature in self.sbp_function(*inputs, *attrs)]

    def cost(self, inputs: list[Tensor | None], attrs: list[Any]) -> tuple[float, float]:
        return self.cost_function(*inputs, *attrs)

    def backward(
        self,
        inputs: list[Tensor | None],
        outputs: list[Tensor | None],
        grads: list[Tensor | None],
        attrs: list[Any],
        needs: list[bool],
    ) -> list[Any]:
        names = self.signature.input_names
        values = dict(
            itertools.chain(
                zip(names, inputs, strict=True),
                zip(self.outputs, outputs, strict=True),
                zip(self.signature.attr_names, attrs, strict=True),
            )
        )
        results = _as_list(
            self.backward_function(_Context(values, dict(zip(names, needs, strict=True))), *grads)
        )
        if len(results) != len(names):
            raise ValueError(
                f"{self.name}(): backward gave {len(results)} gradients for "
                f"{len(names)} inputs ({', '.join(names)})"
            )
        return results


def register_op(name: str) -> Callable[[Any], Any]:
    """Make an op of a class or of a function.

    Parameters
    ----------
    name : str
        ``"namespace::name"``; the op is then ``flow.ops.<namespace>.<name>``.

    Returns
    -------
    Callable
        A decorator. On a class, it reads these functions (no ``self``), of which the first is
        needed, and returns the op's function:

        ``forward(x, ..., scale: float = 1.0)`` computes the output(s) from tensors (parameters
        without annotation) and attributes (annotated), with functions of oneflow_lite, NumPy or
        anything that shares memory through DLPack. It is not recorded by autograd.

        ``infer(x, ...)`` gets the same on the meta device and gives for each output a meta tensor
        or a pair (shape, dtype). Without it, ``forward`` is run on meta tensors.

        ``backward(ctx, dy, ...)`` gets the saved tensors and attributes by name on ``ctx``, and
        gives a gradient (or None) per input. Write it with functions of oneflow_lite and it can be
        differentiated again.

        ``sbp(x, ...)`` gets meta tensors whose shapes count, and gives the ways in which the op
        may run on shards: per way a list with ``"S(axis)"``, ``"B"`` or ``"P"`` (split,
        broadcast, partial sum) for each input, then for each output.

        ``cost(x, ...)`` gives the bytes that must move and the operations. Without it, each input
        is read and each output written once.

        ``outputs`` names several outputs, ``save`` the inputs and outputs that backward needs
        (all inputs where absent).

        A plain function is taken as ``forward``.

    Raises
    ------
    RuntimeError
        The name is taken, or is not ``namespace::name``.
    TypeError
        A parameter of ``forward`` has a type that attributes cannot have.
    """

    def decorate(definition: Any) -> Any:
        is_function = inspect.isfunction(definition)
        holder = (
            type("Op", (), {"forward": staticmethod(definition)}) if is_function else definition
        )
        if not callable(getattr(holder, "forward", None)):
            raise TypeError(f"register_op({name!r}): the class has no function forward")
        op = _Op(name, holder, _Signature(name, holder.forward))
        code = holder.forward.__code__
        _ext.register_python_op(
            name=name, doc=inspect.getdoc(definition) or "", file=code.co_filename,
            line=code.co_firstlineno, inputs=op.signature.inputs, outputs=op.outputs,
            attrs=op.signature.attrs, infer=op.infer, forward=op.forward,
            backward=op.backward if op.backward_function else None,
            sbp=op.sbp if op.sbp_function else None, cost=op.cost if op.cost_function else None,
            save_inputs=op.save_inputs, save_outputs=op.save_outputs)  # fmt: skip
        return _ext.op_function(name)

    return decorate


def load_library(path: str | os.PathLike[str]) -> list[str]:
    """Load a shared library of ops and register all of them, or none.

    Parameters
    ----------
    path : path
        A library built against ``oneflow_lite/extension/op.h``.

    Returns
    -------
    list of str
        The names of the new ops, which are then at ``flow.ops.<namespace>.<name>``; none where the
        library had been loaded before.

    Raises
    ------
    RuntimeError
        The file is no extension, was built for another version, or registers something wrong.
    """
    return _ext.load_library(os.path.abspath(path))
