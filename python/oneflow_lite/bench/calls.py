# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that two libraries have, as data: one line calls either.

    Case("gather(1)", "move", lambda m, f, x, places: m.gather(x, 1, places))

``m`` is the library's module, ``f`` its ``nn.functional``; the other parameters name operands,
which OPERANDS describes. The number of elements of a square is that of the run.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import oneflow_lite as flow

FORWARD, BACKWARD, BOTH = "forward", "backward", "both"
SMALL = (4, 64)  # where the host's time is all there is


@dataclass(frozen=True)
class Case:
    """One call.

    ``kind`` is its group in the table. ``way``: the call alone; its gradients alone; or the call
    and then its gradients. ``part`` has the fractions of the operands that are read, where those
    are not all 1; ``gradients`` says how many of the first operands get one, where not all do;
    ``most`` limits the elements of a square, where PyTorch has a limit; ``tolerance`` is so many
    times that of the dtype, and ``jumps`` the fraction of samples that may differ, where a rounding
    changes the side of a jump. Of what is ``random``, mean and deviation alone are compared.
    """

    label: str
    kind: str
    f: Callable[..., Any]
    way: str = FORWARD
    part: tuple[float, ...] = ()
    gradients: int = 9
    most: int = 1 << 62
    tolerance: float = 1.0
    jumps: float = 0.0
    random: bool = False

    @property
    def operands(self) -> list[str]:
        """Names, in the order of the call."""
        return list(inspect.signature(self.f).parameters)[2:]


def named(kind: str, names: str, f: Callable[..., Callable[..., Any]], **more: Any
          ) -> Iterator[Case]:  # fmt: skip
    """A case for each word of ``names``; ``f`` gives the call of a name."""
    for name in names.split():
        yield Case(more.get("label", "{}").format(name), kind, f(name),
                   **{k: v for k, v in more.items() if k != "label"})  # fmt: skip


def find(m: Any, f: Any, name: str) -> Callable[..., Any]:
    """A function by its name, of the module, its functional or its special functions."""
    for place in (m, f, m.special):
        if (found := getattr(place, name, None)) is not None:
            return found  # type: ignore[no-any-return]
    raise AttributeError(f"{m.__name__} has no function {name}")


def shape(name: str, n: int) -> tuple[int, ...]:
    """Dims, for squares of n elements, n a power of 2."""
    bits = n.bit_length() - 1
    rows, cols, quarter = 1 << bits // 2, 1 << (bits - bits // 2), 1 << bits // 4
    wide = min(128, cols)
    shapes: dict[str, tuple[int, ...]] = {
        "square": (rows, cols),
        "wide": (rows, 2 * cols),
        "row": (cols,),
        "rows": (rows,),
        "column": (rows, 1),
        "deep": (max(1, n // 4096), 4, 8, 4, 32),
        "deeper": (max(1, n // 4096), 8, 4, 4, 32),
        "four": (n // quarter**3, quarter, quarter, quarter),
        "some": (n // wide,),
        "table": (n // wide, wide),
        "small": SMALL,
        "small row": SMALL[1:],
        "small rows": SMALL[:1],
    }
    return shapes[name]


# name: shape, dtype (empty: that of the run), values
OPERANDS: dict[str, tuple[str, str, str]] = {
    "x": ("square", "", "unit"),  # (0.05, 0.95), where most functions have finite values
    "y": ("square", "", "unit"),
    "z": ("square", "", "unit"),
    "s": ("square", "", "spread"),  # of both signs
    "t": ("square", "", "spread"),
    "u": ("square", "", "spread"),
    "like": ("square", "", "unit"),  # whose shape and dtype alone count
    "large": ("square", "", "large"),  # above 1
    "near": ("square", "", "near"),  # near 1, so that products stay finite
    "other": ("square", "other", "unit"),  # of another float dtype
    "byte": ("square", "uint8", "whole"),
    "i": ("square", "int32", "whole"),
    "j": ("square", "int32", "few"),
    "truth": ("square", "bool", "truth"),
    "sign": ("square", "", "sign"),
    "places": ("square", "int64", "cols"),
    "places0": ("square", "int64", "rows"),
    "order": ("square", "int64", "order"),  # each row a permutation
    "shuffled": ("rows", "int64", "order"),
    "wide": ("wide", "", "unit"),
    "row": ("row", "", "unit"),
    "column": ("column", "", "unit"),
    "index": ("rows", "int64", "rows"),
    "cols": ("row", "int64", "cols"),
    "target": ("rows", "int64", "cols"),
    "row_sign": ("rows", "", "sign"),
    "deep": ("deep", "", "unit"),
    "deeper": ("deeper", "", "unit"),
    "four": ("four", "", "unit"),
    "table": ("table", "", "unit"),
    "words": ("some", "int64", "words"),
    "classes": ("some", "int64", "classes"),
    "a": ("small", "", "unit"),
    "b": ("small", "", "unit"),
    "c": ("small row", "", "unit"),
    "d": ("small rows", "int64", "small rows"),
    "e": ("small", "bool", "truth"),
}


def operand(name: str, dtype: str, n: int, device: str) -> Any:
    """The tensor of that name, of random values, on the device."""
    kind, own, values = OPERANDS[name]
    dims = shape(kind, n)
    other = "float32" if dtype != "float32" else "float16"
    wanted = getattr(flow, {"": dtype, "other": other}.get(own, own))
    below = {"cols": shape("row", n)[0], "rows": shape("rows", n)[0],
             "words": shape("table", n)[0], "classes": shape("table", n)[1],
             "small rows": SMALL[0], "few": 7, "whole": 200}  # fmt: skip
    if values in below:
        return flow.randint(0, below[values], dims, device=device).to(wanted)
    near = 2048 if dtype == "float32" else 64
    made: dict[str, Callable[[], Any]] = {
        "unit": lambda: flow.rand(*dims, device=device) * 0.9 + 0.05,
        "spread": lambda: flow.randn(*dims, device=device) * 2,
        "large": lambda: flow.rand(*dims, device=device) + 1.05,
        "near": lambda: (flow.rand(*dims, device=device) - 0.5) / near + 1,
        "order": lambda: flow.argsort(flow.rand(*dims, device=device), -1),
        "truth": lambda: flow.rand(*dims, device=device) < 0.5,
        "sign": lambda: flow.sign(flow.rand(*dims, device=device) - 0.5),
    }
    return made[values]().to(wanted)


def results(value: Any) -> list[Any]:
    """The tensors of a result: of several, those of floats where there are any, because equal
    elements have their indices in any order.
    """
    found = list(value) if isinstance(value, (tuple, list)) else [value]
    floats = [t for t in found if t.dtype.is_floating_point]
    return floats or found


def prepared(case: Case, library: Any, tensors: list[Any]) -> Callable[[], Any]:
    """The call that is timed, of one library's tensors."""
    m, f = library, library.nn.functional
    if case.way == FORWARD:
        return lambda: case.f(m, f, *tensors)
    inputs = [t.detach() for t in tensors]
    wanted = [t for t in inputs[: case.gradients] if t.dtype.is_floating_point]
    for t in wanted:
        t.requires_grad_()
    y = case.f(m, f, *inputs)
    # The mean of many elements has gradients too small for 16 bits.
    dy = m.full_like(y.detach(), 1.0 if y.ndim else float(min(2**15, tensors[0].numel())))
    if case.way == BACKWARD:
        return lambda: m.autograd.grad(y, wanted, dy, retain_graph=True)
    return lambda: m.autograd.grad(case.f(m, f, *inputs), wanted, dy)


def traffic(case: Case, tensors: list[Any], result: Any) -> tuple[int, str]:
    """The bytes that a case must move, and the pattern of the stream that moves them so."""
    part = case.part or (1.0,) * len(tensors)
    read = sum(int(p * t.nbytes) for p, t in zip(part, tensors, strict=True))
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    written = sum(t.nbytes for t in found)
    if case.way == BACKWARD:
        read += max(t.nbytes for t in found)  # the gradient of the result
    if case.way == BOTH:
        read *= 2
    if read * 8 < written:
        return read + written, "1W"
    if written * 8 < read:
        return read + written, "1R"
    return read + written, "2R1W" if read >= math.sqrt(2) * written else "1R1W"
