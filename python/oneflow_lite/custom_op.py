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

import collections.abc
import difflib
import inspect
import itertools
import keyword
import os
import types
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite import ops
from oneflow_lite._oneflow_lite import Sbp, Tensor, dtype
from oneflow_lite._op_signature import Signature

__all__ = ["load_library", "register_op"]

_READ = ("forward", "infer", "backward", "sbp", "cost", "outputs", "save")  # of a class
_TAKEN = frozenset(vars(ops))  # flow.ops has these itself, and looks for no namespace


class _Context:
    """What ``backward`` sees: what was kept of the inputs and outputs, and the attributes, by name.

    ``needs`` says per tensor input whether its gradient is wanted.
    """

    def __init__(self, op: _Op, values: dict[str, Any], needs: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self.needs, self._op = needs, op

    def __getattr__(self, name: str) -> Any:
        op = self.__dict__.get("_op")
        if op and name in op.signature.input_names + op.outputs:
            raise AttributeError(f"{op.name}(): {name} is not kept for backward; name it in `save`")
        there = [n for n in self.__dict__ if n != "_op"]
        raise AttributeError(f"{op and op.name}(): ctx has no {name!r}; there are {there}")


def _as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def _check_names(op: str, signature: Signature, outputs: list[Any]) -> None:
    """An error for a name that cannot be written, that ctx has itself, or that is there twice."""
    for name in outputs:
        if not isinstance(name, str):
            raise TypeError(f"register_op({op!r}): outputs must be names, not {name!r}")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"register_op({op!r}): outputs has {name!r}, which is no identifier")
    names = [*signature.names, *outputs]
    for name in names:
        if name in ("needs", "_op", *dir(_Context)):
            raise ValueError(f"register_op({op!r}): ctx has {name!r} itself; another name is "
                             "wanted")  # fmt: skip
    if twice := {n for n in names if names.count(n) > 1}:
        raise ValueError(f"register_op({op!r}): {sorted(twice)[0]!r} names two things; the "
                         "outputs, \"out\" where they have no names, are named by "
                         "`outputs`")  # fmt: skip


def _refuse_misspelt(op: str, definition: type) -> None:
    """TypeError for a name in the class that is nearly one of those that are read."""
    for given, value in vars(definition).items():
        if given.startswith("_") or given in _READ:
            continue
        is_function = callable(value) or hasattr(value, "__func__")
        read = _READ if is_function else ("outputs",)  # other values may be the user's own
        near = [n for n in difflib.get_close_matches(given, read, 1, 0.8)
                if abs(len(n) - len(given)) < 2]  # fmt: skip
        if near:
            raise TypeError(f"register_op({op!r}): the class has {given!r}; did you mean "
                            f"{near[0]!r}?")  # fmt: skip


def _by_place(op: str, role: str, function: Any, names: list[str]) -> Callable[..., Any] | None:
    """The function as one that takes all of ``names`` by place; TypeError where it cannot."""
    if function is None:
        return None
    if not callable(function):
        raise TypeError(f"register_op({op!r}): {role} is {function!r}, which is no function")
    signature = inspect.signature(function)
    by_name = [n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
    by_name = [n for n in by_name if n in names]
    places = [i for i, n in enumerate(names) if n not in by_name]
    try:
        signature.bind(*places, **dict.fromkeys(by_name))
    except TypeError as error:
        raise TypeError(f"register_op({op!r}): {role} is called with ({', '.join(names)}), but "
                        f"is {role}{signature}: {error}") from None  # fmt: skip
    if not by_name:
        return function
    named = [(n, names.index(n)) for n in by_name]
    return lambda *values: function(
        *[values[i] for i in places], **{n: values[i] for n, i in named}
    )


def _why_not_on_meta(error: Exception) -> str:
    """What a forward did that meta tensors do not serve; empty where the error is another."""
    text = str(error)
    if isinstance(error, RuntimeError | BufferError) and "has no data" in text:
        return "wants values"
    if type(error) is RuntimeError and " on meta" in text:  # and others are elsewhere
        return "uses a tensor from outside, which is no meta tensor"
    return ""


class _Op:
    """Turns the calls that C++ makes into those of the user's functions."""

    def __init__(self, name: str, definition: Any, signature: Signature) -> None:
        self.name, self.signature, self.variadic = name, signature, signature.variadic
        code = getattr(inspect.unwrap(definition.forward), "__code__", None)
        self.file = code.co_filename if code else "<no file>"
        self.line = code.co_firstlineno if code else 0
        self.outputs = _as_list(getattr(definition, "outputs", "out"))
        _check_names(name, signature, self.outputs)
        function = lambda role, names: _by_place(  # noqa: E731
            name, role, getattr(definition, role, None), names
        )
        self.forward_function = function("forward", signature.names)
        self.infer_function = function("infer", signature.names)
        self.sbp_function = function("sbp", signature.names)
        self.cost_function = function("cost", signature.names)
        self.backward_function = function("backward", ["ctx", *[f"d{o}" for o in self.outputs]])
        saved = _as_list(getattr(definition, "save", signature.input_names))
        known = signature.input_names + self.outputs
        for unknown in set(saved) - set(known):
            raise ValueError(f"register_op({name!r}): save names {unknown!r}; there are {known}")
        self.saved = set(saved)
        self.save_inputs = sum(1 << i for i, n in enumerate(signature.input_names) if n in saved)
        if signature.variadic and signature.input_names[-1] in saved:
            self.save_inputs |= (1 << 64) - (1 << len(signature.input_names))
        self.save_outputs = sum(1 << i for i, n in enumerate(self.outputs) if n in saved)

    def infer(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[Any]:
        """Shape and dtype of each output, from inputs on the meta device."""
        if self.variadic:
            inputs = self.signature.pack(inputs)
        try:
            result = (self.infer_function or self.forward_function)(*inputs, *attrs)
        except Exception as error:
            why = "" if self.infer_function else _why_not_on_meta(error)
            if not why:
                self._say_where(error, "infer" if self.infer_function else "forward")
                raise
            raise RuntimeError(
                f"{self.name}(): without infer, forward is run on meta tensors to learn the "
                f"outputs' shapes, but it {why} ({error}); give the op an infer function"
            ) from error
        is_pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dtype)
        results = [result] if is_pair else _as_list(result)
        return [(r.shape, r.dtype) if isinstance(r, Tensor) else r for r in results]

    def forward(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[Tensor]:
        if self.variadic:
            inputs = self.signature.pack(inputs)
        try:
            return _as_list(self.forward_function(*inputs, *attrs))
        except Exception as error:
            self._say_where(error, "forward")
            raise

    def sbp(self, inputs: list[Tensor | None], attrs: list[Any]) -> list[list[str]]:
        given = self.sbp_function(*self.signature.pack(inputs), *attrs)
        if not isinstance(given, collections.abc.Iterable):
            raise TypeError(f"{self.name}(): sbp gave {given!r}, which is no list of ways")
        signatures = list(given)
        for s in signatures:
            if not isinstance(s, list | tuple) or len(s) != len(inputs) + len(self.outputs):
                raise ValueError(
                    f"{self.name}(): sbp gave {s!r}, which does not fit a call: a way has "
                    f"{len(inputs) + len(self.outputs)} entries, per input and per output"
                )
            if wrong := [e for e in s if not isinstance(e, str | Sbp)]:
                raise TypeError(f"{self.name}(): sbp gave {s!r}, but an entry is \"S(axis)\", "
                                f"\"B\" or \"P\", not {wrong[0]!r}")  # fmt: skip
        return [[str(e) for e in s] for s in signatures]

    def cost(self, inputs: list[Tensor | None], attrs: list[Any]) -> tuple[float, float]:
        result = self.cost_function(*self.signature.pack(inputs), *attrs)
        if not isinstance(result, list | tuple) or len(result) != 2:
            raise ValueError(f"{self.name}(): cost gave {result!r}, not (bytes, operations)")
        return float(result[0]), float(result[1])

    def backward(
        self,
        inputs: list[Tensor | None],
        outputs: list[Tensor | None],
        grads: list[Tensor | None],
        attrs: list[Any],
        needs: list[bool],
    ) -> list[Any]:
        signature = self.signature
        names = signature.input_names
        tensors = itertools.chain(
            zip(names, signature.pack(inputs), strict=True), zip(self.outputs, outputs, strict=True)
        )
        values = {n: t for n, t in tensors if n in self.saved}
        values.update(zip(signature.attr_names, attrs, strict=True))
        packed = dict(zip(names, signature.pack(needs), strict=True))
        try:
            results = _as_list(self.backward_function(_Context(self, values, packed), *grads))
        except Exception as error:
            self._say_where(error, "backward")
            raise
        is_list = [isinstance(r, list | tuple) for r in results]
        if signature.variadic and len(names) == 1 and not any(is_list):
            results = [results]  # the gradients of the one list
        self._check_count(results, names, f"{len(names)} inputs ({', '.join(names)})")
        if not signature.variadic:
            return results
        last = needs[len(names) - 1 :]
        of_list = [None] * len(last) if results[-1] is None else _as_list(results[-1])
        self._check_count(of_list, last, f"the {len(last)} tensors of {names[-1]}")
        return results[:-1] + of_list

    def _say_where(self, error: Exception, role: str) -> None:
        """The op's name under the traceback of an exception of the user's (Python 3.11)."""
        note = f"in {role} of the op {self.name}"
        if hasattr(error, "add_note") and note not in getattr(error, "__notes__", []):
            error.add_note(note)

    def _check_count(self, gradients: list[Any], wanted: list[Any], what: str) -> None:
        if len(gradients) != len(wanted):
            raise ValueError(f"{self.name}(): backward gave {len(gradients)} gradients for {what} "
                             f"({self.file}:{self.line})")  # fmt: skip


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
        without annotation; ``xs: list[Tensor]`` as the last is a list of them) and attributes
        (annotated; a list[int] comes as a tuple), with functions of oneflow_lite, NumPy or anything
        that shares memory through DLPack. It is not recorded by autograd, and may not change its
        inputs. An output that shares memory with an input or another output is copied.

        ``infer(x, ...)`` gets the same on the meta device and gives for each output a meta tensor
        or a pair (shape, dtype). Without it, ``forward`` is run on meta tensors, which one that
        uses other tensors than its inputs cannot.

        ``backward(ctx, dy, ...)`` gets the saved tensors and attributes by name on ``ctx``, with
        ``ctx.needs`` which inputs want one, and a gradient per output: zeros where none flowed
        back, None for an output of integers. It gives a gradient per input, of the input's
        shape and dtype, or None, which is zero; ValueError where all that are wanted are None.
        Write it with functions of oneflow_lite and it can be differentiated again.

        ``sbp(x, ...)`` gets meta tensors whose shapes count, and gives the ways in which the op
        may run on shards: per way a list with ``"S(axis)"``, ``"B"`` or ``"P"`` (split,
        broadcast, partial sum) for each input, then for each output. Objects of ``flow.sbp`` stand
        for their letters.

        ``cost(x, ...)`` gives the bytes that must move and the operations. Without it, each input
        is read and each output written once.

        ``outputs`` names several outputs, ``save`` the inputs and outputs that backward needs
        (all inputs where absent).

        A plain function is taken as ``forward``.

    Raises
    ------
    RuntimeError
        The name is taken.
    ValueError
        The name is not ``namespace::name``; the namespace is the name of an op of this library, or
        of something else that ``flow.ops`` has; an output has no name that can be written, or one
        that is taken; or something in the class names what is not there.
    TypeError
        A parameter of ``forward`` has a type that attributes cannot have, or a default that it
        cannot have; or a function cannot be called with the op's arguments.
    """
    parts = name.split("::") if isinstance(name, str) else []
    usable = all(p.isidentifier() and not keyword.iskeyword(p) for p in parts)
    taken = any(p in _TAKEN or p in _ext.list_ops() for p in parts[:1])
    if len(parts) != 2 or not usable or taken:
        raise ValueError(f'register_op(): the name must be "namespace::name", which can be written '
                         f"flow.ops.namespace.name; {name!r} cannot")  # fmt: skip

    def decorate(definition: Any) -> Any:
        holder = definition
        if not inspect.isclass(definition) and callable(definition):
            holder = types.SimpleNamespace(forward=definition)
        if inspect.isclass(definition):
            _refuse_misspelt(name, definition)
        if not callable(getattr(holder, "forward", None)):
            raise TypeError(f"register_op({name!r}): the class has no function forward")
        op = _Op(name, holder, Signature(name, holder.forward))
        _ext.register_python_op(
            name=name, doc=inspect.getdoc(definition) or "",
            file=op.file, line=op.line, inputs=op.signature.inputs, outputs=op.outputs,
            attrs=op.signature.attrs, infer=op.infer,
            infers="infer" if op.infer_function else "forward, run on meta tensors to infer,",
            forward=op.forward,
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
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"load_library(): path must be a path, not {type(path).__name__}")
    return _ext.load_library(os.path.abspath(path))
