# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the elementwise functions, of their layouts and of casts.

    python -m oneflow_lite.bench elementwise --dtype float16,float32 --output elementwise.json

A case is a function or a layout in a dtype. Its functions are the registered ops of one and of two
tensors, so a new one is measured without a line here. Each is timed beside PyTorch, where that is
there and has it, and beside streams that move the same bytes; its results are compared with
float64 on the CPU in the same run. What the record has is not measured again.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.bench import clock, record, streams
from oneflow_lite.bench.problem import Candidate

ELEMENTS = 1 << 26
DTYPES = ["float16", "bfloat16", "float32"]
CHECKED = 4099  # elements at each end of a function's result that are compared
FEW = 1 << 16  # elements of a layout's result that is compared
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5}


@dataclass
class Case:
    """One call; ``shapes`` are those of the memory that ``f`` takes views of."""

    label: str
    f: Callable[..., Any]
    shapes: list[tuple[int, ...]]
    dtypes: list[str]
    peer: str = ""  # PyTorch's name for a function


def functions(dtype: str, n: int) -> Iterator[Case]:
    """All registered ops of one or two tensors that are split on any dim."""
    for name in sorted(flow.ops.list()):
        text = flow.ops.describe(name)
        schema = re.match(r"\w+\((Tensor \w+(?:, Tensor \w+)?)\) -> \(Tensor \w+\)", text)
        if schema is None or "any dim" not in text or name in ("cast", "to_device"):
            continue
        count = schema[1].count("Tensor")
        takes_floats = re.search("kernel for .*(all dtypes|float)", text)
        dtypes = [dtype if takes_floats else "int32"] * count
        yield Case(name, getattr(flow.ops, name), [(n,)] * count, dtypes, name)


def layouts(dtype: str, n: int) -> Iterator[Case]:
    """Broadcasts, strides, offsets and dtypes that meet in one op."""
    side = math.isqrt(n)
    one, both = [dtype], [dtype, dtype]
    square, deep = (side, side), (n // 4096, 4, 8, 4, 32)
    other = "float32" if dtype != "float32" else "float16"

    def case(label: str, f: Callable[..., Any], shapes: list[Any], dtypes: list[str]) -> Case:
        return Case(label, f, shapes, dtypes)

    yield case("x + y.T", lambda x, y: x + y.T, [square] * 2, both)
    yield case("x.T + y.T", lambda x, y: x.T + y.T, [square] * 2, both)
    yield case("x[:, ::2] + y", lambda x, y: x[:, ::2] + y, [(side, 2 * side), square], both)
    yield case("x[:, 1:-2] + 1", lambda x: x[:, 1:-2] + 1, [square], one)
    yield case("x[1:] + y[:-1]", lambda x, y: x[1:] + y[:-1], [(n,)] * 2, both)
    yield case("x + row", lambda x, y: x + y, [square, (side,)], both)
    yield case("x * column", lambda x, y: x * y, [square, (side, 1)], both)
    yield case("5-D x + y", lambda x, y: x.permute(0, 2, 1, 3, 4) + y,
               [deep, (n // 4096, 8, 4, 4, 32)], both)  # fmt: skip
    yield case(f"x + {other}", lambda x, y: x + y, [(n,)] * 2, [dtype, other])
    yield case(f"x < {other}", lambda x, y: x < y, [(n,)] * 2, [dtype, other])
    yield case(f"uint8 to {dtype}", lambda x: x.to(_like(x, dtype)), [(n,)], ["uint8"])
    yield case(f"{other} to {dtype}", lambda x: x.to(_like(x, dtype)), [(n,)], [other])
    yield case("x.T to rows", lambda x: x.T.contiguous(), [square], one)


def _like(x: Any, dtype: str) -> Any:
    """The dtype in the library that x is of."""
    return getattr(sys.modules[type(x).__module__.split(".")[0]], dtype)


def _inputs(case: Case, device: str) -> list[Any]:
    """Numbers in (0, 1), where most functions have finite values."""
    out = []
    for shape, dtype in zip(case.shapes, case.dtypes, strict=True):
        x = flow.rand(*shape, device=device) * 0.9 + 0.05
        out.append((x * 200 if "int" in dtype else x).to(getattr(flow, dtype)))
    return out


def _nbytes(case: Case, inputs: list[Any], result: Any) -> int:
    """Bytes that must move: of a part of x, half of it."""
    used = [x.nbytes // (2 if "::2" in case.label and i == 0 else 1) for i, x in enumerate(inputs)]
    return sum(used) + result.nbytes


def _differ(got: Any, want: Any, dtype: str) -> str:
    """How many elements are not what they should be, if any."""
    x, y = got.double().cpu().numpy(), want.double().cpu().numpy()
    if x.shape != y.shape:
        return f"shape {x.shape}, want {y.shape}"
    close = np.isclose(x, y, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], equal_nan=True)
    return "" if close.all() else f"{(~close).sum()} of {close.size} elements"


def _wrong(case: Case, small: Case, inputs: list[Any], result: Any, dtype: str) -> str:
    """What is wrong with elements of a result, beside float64 on the CPU: of a function the first
    and the last ones, of a layout all of a smaller call.
    """
    if not case.peer:
        inputs = _inputs(small, str(inputs[0].device))
        result = small.f(*inputs)
        wide = [x.cpu().double() if x.dtype.is_floating_point else x.cpu() for x in inputs]
        return _differ(result, small.f(*wide), dtype)
    for part in (slice(0, CHECKED), slice(-CHECKED, None)):
        few = [x[part].cpu() for x in inputs]
        wide = [x.double() if x.dtype.is_floating_point else x for x in few]
        if text := _differ(result[part], case.f(*wide), dtype):
            return text
    return ""


def _peer(case: Case, inputs: list[Any]) -> Callable[[], Any] | None:
    """PyTorch's call on the same memory."""
    try:
        import torch
    except ImportError:
        return None
    f = case.f
    if case.peer:
        name = case.peer
        f = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
    if f is None:
        return None
    tensors = [torch.from_dlpack(x) for x in inputs]
    try:
        f(*tensors)
    except (RuntimeError, TypeError):
        return None
    return lambda: f(*tensors)


def measure(case: Case, small: Case, dtype: str, device: str, timer: Any) -> record.Cell:
    """Timings of one case, with what was wrong under "notes"; ``small`` is the case of few
    elements.
    """
    inputs = _inputs(case, device)
    result = case.f(*inputs)
    nbytes = _nbytes(case, inputs, result)
    notes = {"wrong": text} if (text := _wrong(case, small, inputs, result, dtype)) else {}
    del result
    candidates = {"ours": Candidate(lambda: case.f(*inputs))}
    if call := _peer(case, inputs):
        candidates["torch"] = Candidate(call)
    pattern = "2R1W" if len(inputs) == 2 else "1R1W"
    yardsticks = dict(streams.yardsticks(pattern, nbytes, device))
    candidates |= {name: Candidate(call) for name, call in yardsticks.items()}
    times = {name: t.record() for name, t in timer.measure(candidates).items()}
    cell: record.Cell = {"bytes": nbytes, "ours": times["ours"], "notes": notes}
    cell["streams"] = {name: times[name] for name in yardsticks}
    cell["peers"] = {"torch": times["torch"]} if "torch" in times else {}
    return cell


def ratios(cell: record.Cell) -> tuple[float, float]:
    """Our speed over the fastest stream's and over PyTorch's (NaN where it is not there)."""
    ours = cell["ours"]["median"]
    stream = min(t["median"] for t in cell["streams"].values())
    torch = cell["peers"].get("torch", {"median": math.nan})["median"]
    return stream / ours, torch / ours


def table(key: str, part: dict[str, Any]) -> Iterator[str]:
    """Lines of a slice, the slowest beside the stream first."""
    yield f"{key}: {'us':>34} {'of stream':>10} {'of torch':>10}"
    cells = sorted(part["cells"].items(), key=lambda item: ratios(item[1])[0])
    for label, cell in cells:
        stream, torch = ratios(cell)
        wrong = "  wrong: " + cell["notes"]["wrong"] if "wrong" in cell["notes"] else ""
        yield f"  {label:<28} {cell['ours']['median']:>12.1f} {stream:>10.2f} {torch:>10.2f}{wrong}"
    for column, name in enumerate(("stream", "torch")):
        logs = [math.log(r) for _, c in cells if (r := ratios(c)[column]) == r]
        if logs:
            yield f"  geometric mean of {name}: {math.exp(statistics.fmean(logs)):.3f}"
    for label, reason in part["failed"].items():
        yield f"  {label}: {reason}"


def main(arguments: list[str]) -> int:
    """Runs the command; the exit status is 1 where a case failed or was wrong."""
    options = parser().parse_args(arguments)
    device = options.device or ("cuda" if flow.cuda.is_available() else "cpu")
    n = options.elements or (ELEMENTS if device == "cuda" else 1 << 20)
    made = clock.CudaClock if device == "cuda" else clock.CpuClock
    timer = made(rounds=1, budget=options.budget)
    there = options.output and options.output.exists()
    data = record.read(options.output) if there else record.empty()
    complete = True
    for dtype in options.dtype.split(","):
        key = f"{device}/elementwise/{dtype}"
        fresh = {"device": device, "op": "elementwise", "dtype": dtype, "elements": n}
        fresh |= {"machine": record.machine(device), "peers": {}, "cells": {}, "failed": {}}
        part = data["slices"].setdefault(key, fresh)
        part["failed"] = {}
        few = {case.label: case for case in layouts(dtype, FEW)}
        for case in (*functions(dtype, n), *layouts(dtype, n)):
            if case.label in part["cells"] or not re.search(options.match, case.label):
                continue
            try:
                part["cells"][case.label] = measure(case, few.get(case.label, case), dtype, device,
                                                   timer)  # fmt: skip
            except (RuntimeError, TypeError, ValueError) as error:
                part["failed"][case.label] = str(error).splitlines()[0]
            if options.output:
                record.write(options.output, data)
        print(*table(key, part), sep="\n", flush=True)
        wrong = any("wrong" in cell["notes"] for cell in part["cells"].values())
        complete = complete and not wrong and not part["failed"]
    return 0 if complete else 1


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(prog="python -m oneflow_lite.bench elementwise",
                                  description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    add = out.add_argument
    add("--dtype", default="float16,float32", help=f"some of {','.join(DTYPES)}")
    add("--device", choices=["cuda", "cpu"], help="by default cuda where there is a GPU")
    add("--elements", type=int, help="of each result; 64 M on a GPU, 1 M on the CPU")
    add("--match", default="", help="a regular expression: only the cases that it finds")
    add("--budget", type=float, default=0.06, help="seconds per candidate and case, about")
    add("--output", type=Path, metavar="FILE.json", help="the record, read first if it is there")
    return out
