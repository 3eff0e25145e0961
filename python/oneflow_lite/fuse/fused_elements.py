# SPDX-License-Identifier: Apache-2.0
"""flow.fuse.elements: one op of a function of elements, over tensors that broadcast."""

from __future__ import annotations

import inspect
import numbers
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, dtype
from oneflow_lite.fuse.expression import Graph, Step
from oneflow_lite.fuse.tracer import TraceError, Tracer, apply, parameters_of, run_on_tracers

_C = _ext._C
_MOST_RESULTS = 8
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
           "float64")  # fmt: skip
_CASTS = {"bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
          "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
          "double": "float64"}  # fmt: skip


class ElementGraph(Graph):
    """Of every function that fuse_elements has; numbers stay of the kind that they are."""

    functions = _ext.element_functions() | dict.fromkeys(_DTYPES, 1)

    def number(self, value: Any) -> int:
        if isinstance(value, np.generic | np.ndarray):
            value = value.item()
        if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            value = int(value)
        elif not isinstance(value, bool):
            value = float(value)
        return self._intern(Step("constant", value=value))

    def add(self, operation: str, *args: int) -> int:
        return self._intern(Step(operation, args))


class ElementTracer(Tracer):
    """Stands for an element of one of the operands, or of what is computed of them."""

    __slots__ = ()

    @staticmethod
    def _allowed() -> str:
        names = [n for n in ElementGraph.functions if n not in _DTYPES]
        return (
            "allowed are + - * / // % **, comparisons, & | ^ ~, casts such as x.float() or "
            f"x.to(flow.float16), and {', '.join(names)}"
        )

    def __repr__(self) -> str:
        return "<an element>"

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) is int and 1 <= exponent <= 8:
            return super().__pow__(exponent)
        return apply("pow", self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return apply("pow", base, self)

    def __invert__(self) -> Any:
        return apply("bitwise_not", self)

    def to(self, *args: Any, dtype: Any = None) -> Any:
        """As a tensor's, of a dtype."""
        wanted = args[0] if len(args) == 1 and dtype is None else dtype
        if not isinstance(wanted, _ext.dtype) or (args and dtype is not None):
            raise self._refusal("to() takes a dtype here, as in x.to(flow.float16)")
        return apply(_name(wanted), self)

    type = to

    def special(self, name: str) -> Callable[..., Tracer] | None:
        return _SPECIAL.get(name)

    def __getattr__(self, name: str) -> Any:
        if name in _CASTS:
            return lambda: apply(_CASTS[name], self)
        return super().__getattr__(name)


def _binary(operation: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return (lambda a, b: apply(operation, a, b)), (lambda a, b: apply(operation, b, a))


for _method, _operation in {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
                            "floordiv": "floor_divide", "mod": "remainder"}.items():  # fmt: skip
    _forward, _reflected = _binary(_operation)
    setattr(ElementTracer, f"__{_method}__", _forward)
    setattr(ElementTracer, f"__r{_method}__", _reflected)


def _name(t: dtype) -> str:
    return str(t).rpartition(".")[2]


# Functions of the library whose arguments are not operands alone, as it has them.


def _clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    if min is None and max is None:
        raise TypeError("clamp(): one of min and max must be given")
    if min is None or max is None:
        return _clamp_max(input, max) if min is None else _clamp_min(input, min)
    return apply("clamp", input, min, max)


def _clamp_min(input: Any, min: Any) -> Any:
    return apply("clamp_min", input, min)


def _clamp_max(input: Any, max: Any) -> Any:
    return apply("clamp_max", input, max)


def _gelu(input: Any, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu(): approximate must be 'none' or 'tanh', not {approximate!r}")
    return apply("gelu" if approximate == "none" else "gelu_tanh", input)


def _leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    return apply("leaky_relu", input, negative_slope)


def _elu(input: Any, alpha: Any = 1.0) -> Any:
    below = input <= 0
    return apply("where", below, alpha * apply("expm1", apply("where", below, input, 0)), input)


def _softplus(input: Any, beta: Any = 1.0) -> Any:
    return apply("softplus", input) if beta == 1.0 else apply("softplus", input * beta) / beta


def _addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return input + (tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


def _addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return input + (tensor1 / tensor2 if value == 1 else value * (tensor1 / tensor2))


def _lerp(input: Any, end: Any, weight: Any) -> Any:
    return apply("lerp", input, end, weight)


def _with_alpha(operation: str) -> Callable[..., Any]:
    def function(input: Any, other: Any, alpha: Any = 1) -> Any:
        return apply(operation, input, other if alpha == 1 else other * alpha)

    return function


_SPECIAL: dict[str, Callable[..., Any]] = {
    "add": _with_alpha("add"), "sub": _with_alpha("sub"), "clamp": _clamp, "clamp_min": _clamp_min,
    "clamp_max": _clamp_max, "gelu": _gelu, "leaky_relu": _leaky_relu, "elu": _elu,
    "softplus": _softplus, "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp,
}  # fmt: skip
_WORDS = ("inf", "nan", "True", "False")


def _text(graph: Graph, results: list[int]) -> str:
    """The expression as fuse_elements reads it: each step that is used twice has a name."""
    names = {p: p if p not in _WORDS else f"{p}_" for p in graph.parameters}
    while len(set(names.values())) < len(names):
        names = {p: n if p not in _WORDS else f"{n}_" for p, n in names.items()}
    prefix = "t"
    while any(n.startswith(prefix) for n in names.values()):
        prefix += "_"
    live = graph.live(*results)
    uses = {n: results.count(n) for n in live}
    for n in live:
        for argument in graph.steps[n].args:
            uses[argument] += 1
    text, written, named = f"{', '.join(names.values())}:", {}, 0
    depths: dict[int, int] = {}
    for n in live:
        step = graph.steps[n]
        depths[n] = 1 + max((depths[a] for a in step.args), default=0)
        if step.kind == "parameter":
            written[n] = names[str(step.value)]
        elif step.kind == "constant":
            written[n] = repr(step.value)
        else:
            written[n] = _call(step.kind, [written[a] for a in step.args])
            if uses[n] > 1 or depths[n] > 8:
                text += f" {prefix}{named} = {written[n]};"
                written[n], named, depths[n] = f"{prefix}{named}", named + 1, 1
    return f"{text} {', '.join(_bare(written[n]) for n in results)}"


_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<",
            "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip


def _call(operation: str, args: list[str]) -> str:
    if operation in _SYMBOLS:
        return f"({args[0]} {_SYMBOLS[operation]} {args[1]})"
    return f"(-{args[0]})" if operation == "neg" else f"{operation}({', '.join(map(_bare, args))})"


def _bare(text: str) -> str:
    """Without the parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def _as_tensor(op: str, name: str, value: Any) -> Tensor:
    """A number, 0-dim and of the widest dtype of its kind."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool):
        return _C.full((), value, dtype=_ext.bool)
    if isinstance(value, numbers.Integral):
        if not -(2**63) <= value < 2**63:
            return _C.full((), float(value), dtype=_ext.float64)
        return _C.full((), int(value), dtype=_ext.int64)
    if isinstance(value, numbers.Real):
        return _C.full((), float(value), dtype=_ext.float64)
    raise TypeError(
        f"{op}(): {name} must be a tensor or a number, not {type(value).__name__}"
    ) from None


class FusedElements:
    """One kernel of a function of elements, made by :func:`oneflow_lite.fuse.elements`.

    Called with a tensor or a number for each of the function's parameters, by place or by name.
    Gives a tensor, or a tuple of them where the function does. ``expression`` is the text that
    ``flow.fuse_elements`` and C++'s ``functional::FuseElements`` take.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        name = self.__name__ = "fuse.elements"
        parameters = parameters_of(name, function)
        if len(parameters) > 64:
            raise TraceError(f"{name}: {len(parameters)} parameters, at most 64 are allowed")
        graph = ElementGraph(name, [*parameters])
        results = run_on_tracers(name, function, graph, ElementTracer, (1, _MOST_RESULTS))
        self.expression = _text(graph, results)
        self._names = tuple(parameters)
        self._defaults = {n: v for n, v in parameters.items() if v is not None}
        self._gives_one = len(results) == 1
        p, known = inspect.Parameter, self._defaults
        self.__signature__ = inspect.Signature(
            [p(n, p.POSITIONAL_OR_KEYWORD, default=known.get(n, p.empty)) for n in parameters]
        )
        self.__doc__ = (
            f"{name}{self.__signature__}\n\n{re.sub('^[^:]*: ', '', self.expression)}, of tensors "
            "that broadcast against each other, or of numbers."
        )

    def __repr__(self) -> str:
        return f"<{self.__name__}({self.expression})>"

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}(): {error}; it is {self!r}") from None
        bound.apply_defaults()
        return list(bound.arguments.values())

    def _written(self, large: dict[int, int]) -> tuple[str, list[int]]:
        """The expression with these parameters as the integers that they are, and the others."""
        kept = [i for i in range(len(self._names)) if i not in large]
        if not kept:
            raise OverflowError(f"{self.__name__}(): {large[0]} is out of range of int64")
        head, _, body = self.expression.partition(":")
        names = head.split(", ")
        numbers = "".join(f" {names[i]} = {value};" for i, value in large.items())
        return f"{', '.join(names[i] for i in kept)}:{numbers}{body}", kept

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor | tuple[Tensor, ...]:
        given = list(args)
        if kwargs or len(args) != len(self._names):
            given = self._bound(args, kwargs)
        numbers_given = 0
        large = {}  # integers that only a float holds
        for i, value in enumerate(given):
            if not isinstance(value, Tensor):
                t = given[i] = _as_tensor(self.__name__, self._names[i], value)
                numbers_given |= 1 << i
                if t.dtype is _ext.float64 and isinstance(value, numbers.Integral):
                    large[i] = int(value)
        expression = self.expression
        if large and not any(t.dtype.is_floating_point for i, t in enumerate(given)
                             if not numbers_given >> i & 1):  # fmt: skip
            expression, kept = self._written(large)
            given = [given[i] for i in kept]
            numbers_given = sum((numbers_given >> i & 1) << k for k, i in enumerate(kept))
        if numbers_given >> 63:
            numbers_given -= 1 << 64
        found = _C.fuse_elements(expression, given, numbers_given)
        return found[0] if self._gives_one else tuple(found)


def elements(function: Callable[..., Any]) -> FusedElements:
    """One kernel of a function of elements, with its gradient.

    The function is called once, now, with stand-ins for elements, which note what is done to them.
    A call is one launch on CUDA, compiled by NVRTC when it comes first, and one pass over memory on
    the CPU; its gradient is one as well, and a reduction for each operand that was broadcast.
    Derivatives of every order follow. The library's own functions are used as they are:

    >>> swiglu = flow.fuse.elements(lambda x, gate: x * flow.nn.functional.silu(gate))
    >>> y = swiglu(flow.randn(2, 8), flow.randn(8))

    Parameters
    ----------
    function : callable
        A function of up to 64 elements, of tensors or numbers, that gives one result or a tuple of
        up to 8. A parameter may have a number as its default.

    Returns
    -------
    FusedElements
        A function of tensors, which broadcast against each other, and numbers. Each result has the
        shape of all of them, and the dtype that the function would give of them; what is computed
        in between is rounded to 16-bit floats at the end only.

    Raises
    ------
    TraceError
        The function does more than arithmetic on single elements; the message says what, and where.
    """
    return FusedElements(function)
