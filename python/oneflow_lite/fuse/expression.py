# SPDX-License-Identifier: Apache-2.0
"""What a traced function computes: a list of steps, each from earlier ones.

>>> graph = Graph("load", ["x", "scale"])
>>> graph.result = graph.add("mul", graph.parameter("x"), graph.parameter("scale"))
>>> str(graph)
'x * scale'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ATOM = 9  # binds tighter than every operator


class Operation(NamedTuple):
    """How an operation is written, in Python and on CUDA, where C is the type computed in."""

    python: str
    cuda: str
    precedence: int = ATOM


# A NaN stays one in relu, maximum and minimum; numbers other than 0 are true, NaN among them.
OPERATIONS: dict[str, Operation] = {
    "add": Operation("{} + {}", "{} + {}", 2),
    "sub": Operation("{} - {}", "{} - {}", 2),
    "mul": Operation("{} * {}", "{} * {}", 3),
    "div": Operation("{} / {}", "FullRangeQuotient({}, {})", 3),
    "neg": Operation("-{}", "-{}", 4),
    "eq": Operation("{} == {}", "C({} == {})", 1),
    "ne": Operation("{} != {}", "C({} != {})", 1),
    "lt": Operation("{} < {}", "C({} < {})", 1),
    "le": Operation("{} <= {}", "C({} <= {})", 1),
    "gt": Operation("{} > {}", "C({} > {})", 1),
    "ge": Operation("{} >= {}", "C({} >= {})", 1),
    "abs": Operation("abs({})", "fabs({})"),
    "exp": Operation("exp({})", "exp({})"),
    "log": Operation("log({})", "log({})"),
    "sqrt": Operation("sqrt({})", "SquareRootOf({})"),
    "rsqrt": Operation("rsqrt({})", "rsqrt({})"),
    "tanh": Operation("tanh({})", "Tanh({})"),
    "sigmoid": Operation("sigmoid({})", "Sigmoid({})"),
    "relu": Operation("relu({})", "({0} < C(0) ? C(0) : {0})"),
    "maximum": Operation("maximum({}, {})", "({0} > {1} || {0} != {0} ? {0} : {1})"),
    "minimum": Operation("minimum({}, {})", "({0} < {1} || {0} != {0} ? {0} : {1})"),
    "where": Operation("where({}, {}, {})", "({} != C(0) ? {} : {})"),
}

# How many operands each takes.
ROW_FUNCTIONS = {name: o.python.count("{}") for name, o in OPERATIONS.items()}

# On CUDA functions of whole packs, whose elements share reciprocals (fused/functions.cuh).
OF_PACKS = {"sigmoid", "tanh"}


class Step(NamedTuple):
    """A parameter (its name), a constant (its value), or an operation on earlier steps."""

    kind: str
    args: tuple[int, ...] = ()
    value: str | float | None = None


class Graph:
    """The steps of one function, each distinct one once; ``result`` is the number of the last."""

    functions = ROW_FUNCTIONS  # the operations that it may have, and their numbers of operands

    def __init__(self, role: str, parameters: list[str]) -> None:
        self.role = role
        self.steps: list[Step] = []
        self._numbers: dict[Any, int] = {}
        self.parameters = parameters
        self.result = self.parameter(parameters[0])

    def _intern(self, step: Step) -> int:
        key = (*step[:2], repr(step.value))  # 0.0 is not -0.0, NaN is NaN
        if key not in self._numbers:
            self._numbers[key] = len(self.steps)
            self.steps.append(step)
        return self._numbers[key]

    def parameter(self, name: str) -> int:
        return self._intern(Step("parameter", value=name))

    def constant(self, value: float) -> int:
        return self._intern(Step("constant", value=float(value)))

    def number(self, value: Any) -> int:
        """A constant that the function has in its text, or finds in its surroundings."""
        return self.constant(float(value))

    def add(self, operation: str, *args: int) -> int:
        """1 + tanh(u), which many write for a gelu, is 2 * sigmoid(2 * u): exact, and cheaper."""
        if operation == "add":
            for one, other in args, args[::-1]:
                if self.steps[one] == Step("constant", value=1.0) and (
                    self.steps[other].kind == "tanh"
                ):
                    two = self.constant(2.0)
                    twice = self.add("mul", two, *self.steps[other].args)
                    return self.add("mul", two, self.add("sigmoid", twice))
        return self._intern(Step(operation, args))

    def live(self, *results: int) -> list[int]:
        """The steps that the result needs, or these results do, in order."""
        needed = set(results or [self.result])
        for number in range(max(needed), -1, -1):
            if number in needed:
                needed.update(self.steps[number].args)
        return sorted(needed)

    def used(self) -> set[str]:
        """The parameters that the result needs."""
        steps = (self.steps[n] for n in self.live())
        return {str(s.value) for s in steps if s.kind == "parameter"}

    def evaluate(
        self, leaf: Callable[[Step], Any], apply: Callable[[str, list[Any]], Any]
    ) -> dict[int, Any]:
        """The value of every live step, from those of leaves and a way to apply operations."""
        values: dict[int, Any] = {}
        for number in self.live():
            step = self.steps[number]
            is_leaf = step.kind in ("parameter", "constant")
            values[number] = (
                leaf(step) if is_leaf else apply(step.kind, [values[a] for a in step.args])
            )
        return values

    def __str__(self) -> str:
        """Python's notation; what is used more than once gets a name: ``t0 = exp(x); ...``."""
        uses: dict[int, int] = {}
        for number in self.live():
            for argument in self.steps[number].args:
                uses[argument] = uses.get(argument, 0) + 1
        texts: dict[int, tuple[str, int]] = {}
        named: list[str] = []
        for number in self.live():
            step = self.steps[number]
            if step.kind in OPERATIONS:
                text, precedence = _written(step, texts)
                if uses.get(number, 0) > 1:
                    name = f"t{len(named)}"
                    named.append(f"{name} = {text}")
                    text, precedence = name, ATOM
            elif step.kind == "constant":
                text, precedence = f"{step.value:g}", ATOM if step.value >= 0 else 4
            else:
                text, precedence = str(step.value), ATOM
            texts[number] = (text, precedence)
        return "; ".join([*named, texts[self.result][0]])


def _written(step: Step, texts: Mapping[int, tuple[str, int]]) -> tuple[str, int]:
    operation = OPERATIONS[step.kind]
    arguments = []
    for place, argument in enumerate(step.args):
        text, precedence = texts[argument]
        # a - (b - c) keeps its parentheses, (a - b) - c loses them; comparisons do not chain.
        least = operation.precedence + (1 if place or operation.precedence == 1 else 0)
        wrap = operation.precedence != ATOM and precedence < least
        arguments.append(f"({text})" if wrap else text)
    return operation.python.format(*arguments), operation.precedence
