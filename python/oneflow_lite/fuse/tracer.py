# SPDX-License-Identifier: Apache-2.0
"""Running a function once on stand-ins for numbers, to learn what it computes."""

from __future__ import annotations

import functools
import inspect
import linecache
import numbers
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.fuse.compose import as_number
from oneflow_lite.fuse.expression import OPERATIONS, ROW_FUNCTIONS, Graph

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_FUNCTIONS = sorted(name for name, o in OPERATIONS.items() if o.python.startswith(name))
_ALLOWED = "allowed are + - * / ** (by a small int), comparisons, & | ~ of them, and " + ", ".join(
    _FUNCTIONS
)


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_CONDITIONS = (*_COMPARISONS, "where")


class TraceError(TypeError):
    """A function that cannot become an expression over single elements."""


def _is_users(frame: types.FrameType) -> bool:
    """Whether its code is neither this library's nor NumPy's."""
    of_numpy = frame.f_globals.get("__name__", "").startswith("numpy")
    return not of_numpy and not os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE)


def _line_of(function: Any) -> str:
    """Where a function begins, if it tells."""
    code = getattr(function, "__code__", None)
    return _line(code.co_filename, code.co_firstlineno) if code else ""


def _users_line() -> str:
    """The line that the user's code, nearest to here, is at."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame and not _is_users(frame):
        frame = frame.f_back
    return _line(frame.f_code.co_filename, frame.f_lineno) if frame else ""


def _line(file: str, number: int) -> str:
    source = linecache.getline(file, number).strip()
    return f"\n  {os.path.basename(file)}:{number}: {source}" if source else ""


class Tracer:
    """Stands for one element, whichever, while a function is traced."""

    __slots__ = ("_graph", "_number")
    __array_ufunc__ = None  # NumPy's numbers leave operators to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, number: int) -> None:
        self._graph, self._number = graph, number

    def __repr__(self) -> str:
        return f"<an element of {self._graph.role}'s input>"

    def __pow__(self, exponent: Any) -> Tracer:
        if type(exponent) is not int or not 1 <= exponent <= 8:
            raise self._refusal("** takes an int from 1 to 8; for others use exp and log")
        half = self if exponent == 1 else self ** (exponent // 2)
        power = self if exponent == 1 else half * half
        return power * self if exponent > 1 and exponent % 2 else power

    def __pos__(self) -> Tracer:
        return self

    __copy__ = __pos__

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    # Of conditions, as where reads them: numbers other than 0 are true. 0 or 1, as comparisons.
    def __and__(self, other: Any) -> Tracer:
        self._conditions_wanted("&", self, other)
        return apply("where", self, _truth(other), 0)

    def __or__(self, other: Any) -> Tracer:
        self._conditions_wanted("|", self, other)
        return apply("where", self, 1, _truth(other))

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Tracer:
        self._conditions_wanted("~", self)
        return apply("eq", self, 0)

    def where(self, condition: Any, other: Any) -> Tracer:
        """As a tensor's: self where the condition holds."""
        return apply("where", condition, self, other)

    def _conditions_wanted(self, operator: str, *operands: Any) -> None:
        """Comparisons, what & | ~ make of them, and parameters, which may be masks."""
        for o in operands:
            if isinstance(o, Tracer):
                step = o._graph.steps[o._number]
                masks = o._graph.parameters[1:]
                is_condition = step.kind in _CONDITIONS or step.value in masks
            else:
                is_condition = isinstance(o, bool)
            if not is_condition:
                raise self._refusal(
                    f"{operator} is of conditions, such as (x > 0) {operator} mask, and not of "
                    "the bits of numbers; compare first: x != 0"
                )

    def _refusal(self, why: str) -> TraceError:
        return TraceError(f"{self._graph.role}: {why}{_users_line()}")

    def __bool__(self) -> bool:
        raise self._refusal(
            "if, while, and, or, not, min and max decide by an element's value, which is not there "
            "yet; use where(condition, a, b), & | ~ in conditions, maximum or minimum"
        )

    def _number_wanted(self) -> Any:
        raise self._refusal(
            "a Python number is wanted of an element, whose value is not there yet; functions of "
            f"the module math cannot be traced, {self._allowed()}"
        )

    __float__ = __int__ = __index__ = __complex__ = _number_wanted

    def _other_elements(self, *_: Any, **__: Any) -> Any:
        raise self._refusal(
            "indexing, len and iteration need other elements than the one at hand; a fused "
            "function sees one element at a time"
        )

    __getitem__ = __setitem__ = __len__ = __iter__ = __contains__ = _other_elements

    def _in_place(self, _: Any) -> Any:
        raise self._refusal("an element is not changed in place: write x = x + y, not x += y")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = _in_place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._graph.functions:
            return functools.partial(_apply_named, name, self)
        if name.endswith("_") and hasattr(Tensor, name):
            why = f"{name} changes a tensor in place"
        elif hasattr(Tensor, name):
            why = f"{name} is of a whole tensor, and a fused function sees one element at a time"
        else:
            why = f"there is no {name}"
        raise self._refusal(f"{why}; {self._allowed()}")

    def special(self, name: str) -> Callable[..., Tracer] | None:
        """What stands for the function of that name, where its arguments are no operands alone."""
        return None

    @staticmethod
    def _traced_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the function of that name, called with an element among its arguments, gives."""
        return _apply_named(name, *args, **kwargs) if name in ARITIES else NotImplemented

    @staticmethod
    def _allowed() -> str:
        """What an expression of this kind may have, for messages."""
        return _ALLOWED


def _is_truth(graph: Graph, number: int) -> bool:
    """Whether a step gives 0 or 1."""
    step = graph.steps[number]
    if step.kind == "where":
        return all(_is_truth(graph, n) for n in step.args[1:])
    return step.kind in _COMPARISONS or (step.kind == "constant" and step.value in (0, 1))


def _truth(condition: Any) -> Any:
    """0 or 1."""
    if not isinstance(condition, Tracer) or _is_truth(condition._graph, condition._number):
        return condition
    return apply("ne", condition, 0)


def apply(operation: str, *args: Any) -> Tracer:
    """One more step; at least one argument is a Tracer."""
    tracer = next(a for a in args if isinstance(a, Tracer))
    graph = tracer._graph
    places = graph.functions.get(operation)
    if places is None:
        raise tracer._refusal(f"{operation}() cannot be fused here; {tracer._allowed()}")
    if len(args) != places:
        raise tracer._refusal(f"{operation} takes {places} argument(s), {len(args)} were given")
    steps = []
    for a in args:
        if isinstance(a, Tracer):
            if a._graph is not graph:
                raise tracer._refusal("an element of another function was used")
            steps.append(a._number)
        elif isinstance(a, Tensor):
            raise tracer._refusal(
                "a tensor from outside would be frozen into the kernel; make it a parameter"
            )
        elif isinstance(a, numbers.Real) or as_number(a) is not None:
            steps.append(graph.number(a))
        else:
            raise tracer._refusal(f"{operation} takes numbers, not {type(a).__name__}")
    return type(tracer)(graph, graph.add(operation, *steps))


# Numbers of operands, of the functions of elements that are not around rows too.
ARITIES = _ext.element_functions() | ROW_FUNCTIONS
_ARGUMENTS = {1: ("input",), 2: ("input", "other"), 3: ("condition", "input", "other")}


def _signature_of(operation: str) -> inspect.Signature:
    """That of the library's function, without what a fused one does not have."""
    names = _ARGUMENTS[ARITIES[operation]]
    p = inspect.Parameter
    return inspect.Signature([p(name, p.POSITIONAL_OR_KEYWORD) for name in names])


def _apply_named(operation: str, *args: Any, **kwargs: Any) -> Tracer:
    """One more step, of arguments by place or by name."""
    tracer = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tracer)), None)
    if tracer is not None and (found := tracer.special(operation)):
        return found(*args, **kwargs)
    if kwargs:
        try:
            args = _signature_of(operation).bind(*args, **kwargs).args
        except TypeError as error:
            raise TypeError(f"{operation}(): {error}") from None
    return apply(operation, *args)


def _operator(operation: str, *, reflected: bool = False) -> Callable[..., Tracer]:
    if reflected:
        return lambda self, other: apply(operation, other, self)
    return lambda self, *other: apply(operation, self, *other)


for _name, _operation in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}.items():
    setattr(Tracer, f"__{_name}__", _operator(_operation))
    setattr(Tracer, f"__r{_name}__", _operator(_operation, reflected=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs"):
    setattr(Tracer, f"__{_name}__", _operator(_name))


def traceable(name: str, for_tensors: Callable[..., Any]) -> Callable[..., Any]:
    """The function of that name for tensors and, in a function that is traced, for elements."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, Tracer) for a in (*args, *kwargs.values())):
            return _apply_named(name, *args, **kwargs)
        return for_tensors(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__signature__ = _signature_of(name)  # type: ignore[attr-defined]
    return function


def _of_elements(function: Any) -> Any:
    """A function of the library as one of elements, with their parameters; others as they are."""
    name = getattr(function, "__name__", None)
    modules = filter(None, map(sys.modules.get, ("oneflow_lite", "oneflow_lite.nn.functional")))
    own = (_ext._C, *modules)
    if name in ARITIES and any(getattr(module, name, None) is function for module in own):
        return traceable(name, function)
    return function


def parameters_of(role: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The names of a function's parameters, the first for the element, and their defaults."""
    where = _line_of(function)
    if not callable(function):
        raise TraceError(f"{role}: a function is wanted, not {type(function).__name__}")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TraceError(f"{role}: {function!r} does not tell its parameters{where}") from None
    names: dict[str, Any] = {}
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TraceError(f"{role}: {p} has no fixed number of parameters; name each{where}")
        if p.default is not p.empty and not isinstance(p.default, numbers.Real):
            raise TraceError(f"{role}: the default of {p.name} must be a number{where}")
        try:
            float(names.setdefault(p.name, None if p.default is p.empty else p.default) or 0)
        except OverflowError:
            raise TraceError(f"{role}: the default of {p.name} is beyond a float{where}") from None
    if not names:
        raise TraceError(f"{role}: the function has no parameter for the element{where}")
    return names


def trace(role: str, function: Callable[..., Any]) -> tuple[Graph, dict[str, float | None]]:
    """What `function` computes of an element, and its parameters.

    Raises
    ------
    TraceError
        It does more than arithmetic on elements; the message says what and shows the line.
    """
    function = _of_elements(function)
    parameters = parameters_of(role, function)
    graph = Graph(role, [*parameters])
    (graph.result,) = run_on_tracers(role, function, graph, Tracer, (1, 1))
    return graph, {n: None if v is None else float(v) for n, v in parameters.items()}


def run_on_tracers(
    role: str, function: Callable[..., Any], graph: Graph, tracer: type[Tracer],
    results: tuple[int, int],
) -> list[int]:  # fmt: skip
    """The steps of what `function` gives of elements: one, or least to most in a tuple or list."""
    tracers = {name: tracer(graph, graph.parameter(name)) for name in graph.parameters}
    try:
        signature = inspect.signature(function)
        bound = signature.bind_partial()
        bound.arguments.update(tracers)
        given = function(*bound.args, **bound.kwargs)
        several = isinstance(given, tuple | list) and results[1] > 1
        given = [
            tracer(graph, graph.number(v)) if isinstance(v, numbers.Real) else v
            for v in (given if several else [given])
        ]
    except TraceError:
        raise
    except Exception as error:
        raise TraceError(_explained(role, function, error, tracer)) from error
    least, most = results
    if several and not least <= len(given) <= most:
        raise TraceError(
            f"{role}: it must give {least} to {most} results, not {len(given)}{_line_of(function)}"
        )
    found = []
    for result in given:
        if not isinstance(result, Tracer) or result._graph is not graph:
            what, where = "an element of another function", _line_of(function)
            if not isinstance(result, Tracer):
                what = type(result).__name__
            raise TraceError(f"{role}: it must give one number per element, not {what}{where}")
        found.append(result._number)
    return found


def _explained(
    role: str, function: Callable[..., Any], error: Exception, tracer: type[Tracer]
) -> str:
    where, allowed = _line_of(function), tracer._allowed()
    step = error.__traceback__
    while step:
        if _is_users(step.tb_frame):
            where = _line(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    hint = f"; {allowed}, as operators, as methods of an element, or from flow.fuse"
    if of_tensors := re.match(
        r"(\w+)\(\): argument '\w+' must be .*, not (?:Element)?Tracer$", str(error)
    ):
        known = f"it cannot be fused; {allowed}"
        return f"{role}: this {of_tensors[1]}() is a function of whole tensors; {known}{where}"
    of_numbers = r"(\w+)\(\): (argument '\w+' must be Tensor, not|one of .* must be a tensor)"
    if got_none := re.match(of_numbers, str(error)):
        known = "of numbers alone take Python's: math.sqrt, max, min, say"
        return f"{role}: this {got_none[1]}() got no element; {known}{where}"
    if "setting an array element with a sequence" in str(error):  # np.where, say
        return f"{role}: NumPy's functions are of whole arrays; {allowed}{where}"
    about_elements = isinstance(error, AttributeError | TypeError)
    return f"{role}: {type(error).__name__}: {error}{hint if about_elements else ''}{where}"
