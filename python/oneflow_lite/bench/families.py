# SPDX-License-Identifier: Apache-2.0
"""The benchmark of functions beside PyTorch and beside streams of the same bytes, by families.

    python -m oneflow_lite.bench elementwise reductions moves --output functions.json

elementwise: functions of one to three elements, gradients, layouts, casts. reductions: with scans
and sorts. moves: with random numbers and losses. Each family also has calls of tensors of 4 x 64,
whose host time is measured.

Both libraries are called by the same line, on the same memory. Results are compared in the same run
with PyTorch's in float64. What the record has is not measured again.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.bench import calls, clock, elementwise, moves, record, reductions, streams
from oneflow_lite.bench.calls import Case
from oneflow_lite.bench.families_table import KINDS, by_kind, table
from oneflow_lite.bench.peers import on_our_stream
from oneflow_lite.bench.problem import Candidate

FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "elementwise": elementwise.cases,
    "reductions": reductions.cases,
    "moves": moves.cases,
}
ELEMENTS = {"cuda": 1 << 26, "cpu": 1 << 20}
DTYPES = ["float16", "bfloat16", "float32"]
SAMPLES, LAST = 4096, 64  # elements of a result that are compared
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5}
LEAST_REPEATS = 7
SECONDS_A_WRITE = 2.0  # of measuring between two writes of the record


def peer() -> Any:
    """PyTorch, or None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def said(error: Exception) -> str:
    """The first line of an error."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text[:200]


class Bench:
    """The memory and the clock of one dtype."""

    def __init__(self, dtype: str, n: int, device: str, timer: Any) -> None:
        self.dtype, self.n, self.device, self.timer = dtype, n, device, timer
        self.torch = peer()
        self.tensors: dict[tuple[str, int], Any] = {}
        if self.torch is not None:
            on_our_stream(device)

    def operands(self, case: Case) -> list[Any]:
        """The tensors of a case; each is made once."""
        n = min(self.n, case.most)
        for name in case.operands:
            if (name, n) not in self.tensors:
                self.tensors[name, n] = calls.operand(name, self.dtype, n, self.device)
        return [self.tensors[name, n] for name in case.operands]

    def forget(self) -> None:
        """Gives memory back after an error, which may have been for want of it."""
        self.tensors.clear()
        if self.device == "cuda":
            flow.cuda.empty_cache()
            if self.torch is not None:
                self.torch.cuda.empty_cache()

    def reference(self, case: Case, tensors: list[Any]) -> Any:
        """The result in float64, or that of PyTorch in the dtype where float64 fails there."""
        library = flow if self.torch is None else self.torch
        wide = [t.double() if t.dtype.is_floating_point else t for t in tensors]
        try:
            return calls.prepared(case, library, wide)()
        except Exception:  # too large, or no kernel of this dtype: any error of the other library
            return None

    def measure(self, case: Case) -> record.Cell:
        """Timings of one case, with what was wrong under "notes"."""
        tensors = self.operands(case)
        ours = calls.prepared(case, flow, tensors)
        result = ours()
        nbytes, pattern = calls.traffic(case, tensors, result)
        candidates, theirs, notes = {"ours": Candidate(ours)}, None, {}
        if self.torch is not None:
            tensors = [self.torch.from_dlpack(t) for t in tensors]
            try:
                call = calls.prepared(case, self.torch, tensors)
                theirs = call()
                candidates["torch"] = Candidate(call)
            except Exception as error:  # the other cells go on
                notes["torch"] = said(error)
        notes |= self.compared(case, tensors, result, theirs)
        del result, theirs
        return {"kind": case.kind, "bytes": nbytes, "notes": notes,
                **self.times(case, candidates, nbytes, pattern)}  # fmt: skip

    def compared(self, case: Case, tensors: list[Any], result: Any, theirs: Any) -> dict[str, str]:
        """Notes of what differs. A sample of ours is right that is PyTorch's in float64 or in the
        dtype, because roundings on the way move some functions over a jump.
        """
        differ = _moments if case.random else _differ
        exact = None if case.random else self.reference(case, tensors)
        want = [x for x in (exact, theirs) if x is not None]
        notes = {}
        if not want:
            notes["unchecked"] = "no reference"
        elif text := differ(result, want, self.dtype, case):
            notes["wrong"] = text
        if exact is not None and theirs is not None and differ(theirs, [exact], self.dtype, case):
            notes["torch"] = "differs from float64"
        return notes

    def times(self, case: Case, candidates: dict[str, Candidate], nbytes: int, pattern: str
              ) -> dict[str, Any]:  # fmt: skip
        """Timings of a case's candidates, with those of the streams of its bytes."""
        if case.kind == "small":
            taken = self.timer.host(candidates)
        else:
            for name, call in streams.yardsticks(pattern, nbytes, self.device):
                candidates[name] = Candidate(call)
            taken = self.timer.measure(candidates)
        times = {name: t.record() for name, t in taken.items()}
        return {
            "ours": times.pop("ours"),
            "peers": {"torch": times.pop("torch")} if "torch" in times else {},
            "streams": times,
        }


def _numbers(t: Any) -> np.ndarray[Any, Any]:
    """Elements of a tensor, evenly spaced, and its last ones, as float64."""
    flat = t.detach().reshape(-1)
    size = flat.numel()
    few = [flat[:: max(1, size // SAMPLES)][:SAMPLES], flat[max(0, size - LAST) :]]
    return np.concatenate([x.cpu().double().numpy() for x in few])


def _name(t: Any) -> str:
    return str(t.dtype).rpartition(".")[2]


def _differ(got: Any, wanted: list[Any], dtype: str, case: Case) -> str:
    """How many samples are what none of the wanted results has, if any."""
    for x, *others in zip(calls.results(got), *map(calls.results, wanted), strict=True):
        a = _numbers(x)
        close = np.zeros(a.shape, bool)
        limit = case.tolerance * max(TOLERANCE[dtype], TOLERANCE.get(_name(x), 0.0))
        for y in others:
            if tuple(x.shape) != tuple(y.shape):
                return f"shape {tuple(x.shape)}, want {tuple(y.shape)}"
            b = _numbers(y)
            if x.dtype.is_floating_point:
                with np.errstate(over="ignore"):
                    kind = {"float16": np.float16, "float64": np.float64}.get(_name(x), np.float32)
                    b = b.astype(kind).astype(np.float64)
            size = np.abs(b[np.isfinite(b)])
            scale = min(1.0, float(size.mean())) if size.size else 1.0
            close |= np.isclose(a, b, rtol=limit, atol=limit * scale, equal_nan=True)
        if (~close).sum() > case.jumps * close.size:
            return f"{(~close).sum()} of {close.size} samples"
    return ""


def _moments(got: Any, wanted: list[Any], dtype: str, case: Case) -> str:
    """Whether mean and deviation of random numbers are not those of the other library's."""
    first = [calls.results(x)[0].detach().double() for x in (got, wanted[0])]
    (a, b), (c, d) = ((float(x.mean().item()), float(x.std().item())) for x in first)
    limit = 8 * max(b, d) * (2 / first[0].numel()) ** 0.5 + TOLERANCE[dtype] * max(b, d)
    if abs(a - c) <= limit and abs(b - d) <= 2 * limit:
        return ""
    return f"mean and deviation {a:.4g}, {b:.4g}, want {c:.4g}, {d:.4g}"


def part_of(data: record.Record, family: str, dtype: str, n: int, device: str) -> dict[str, Any]:
    """The slice of the record, of this machine and size, or a new one in it."""
    key = f"{device}/{family}/{dtype}"
    fresh: dict[str, Any] = {"device": device, "op": family, "dtype": dtype, "elements": n}
    fresh |= {"machine": record.machine(device), "peers": {}, "cells": {}, "failed": {}}
    part = data["slices"].setdefault(key, fresh)
    for found, now in ((part["elements"], n), (part["machine"]["name"], fresh["machine"]["name"])):
        if found != now:
            raise SystemExit(f"bench: the record's {key} is of {found}, not of {now}; choose "
                             "another --output")  # fmt: skip
    part["failed"] = {}
    return part  # type: ignore[no-any-return]


class Keeper:
    """Writes a record from time to time, because one write may take as long as one case."""

    def __init__(self, path: Path | None, data: record.Record) -> None:
        self.path, self.data, self.last = path, data, time.perf_counter()

    def keep(self, seconds: float = SECONDS_A_WRITE) -> None:
        """Writes, where the last time is so long ago."""
        if self.path and time.perf_counter() - self.last >= seconds:
            record.write(self.path, self.data)
            self.last = time.perf_counter()


def run(options: Any, data: record.Record) -> bool:
    """Measures what is missing into the record; whether all was measured, and right."""
    keeper, complete, left = Keeper(options.output, data), True, 0
    end = time.perf_counter() + 60 * options.minutes
    short = {"rounds": 1, "budget": options.budget}
    timer = (clock.CudaClock(**short, least=LEAST_REPEATS) if options.device == "cuda"
             else clock.CpuClock(**short, repeats=3))  # fmt: skip
    for dtype in options.dtype:
        bench = Bench(dtype, options.elements, options.device, timer)
        for family in options.families:
            part = part_of(data, family, dtype, options.elements, options.device)
            todo = [case for case in FAMILIES[family]()
                    if case.label not in part["cells"] and wanted(options, case)]  # fmt: skip
            for case in todo:
                if time.perf_counter() >= end:
                    left += 1
                    continue
                try:
                    part["cells"][case.label] = bench.measure(case)
                except Exception as error:  # the other cells go on
                    part["failed"][case.label] = said(error)
                    bench.forget()
                keeper.keep()
            keeper.keep(0)
            print(*table(f"{options.device}/{family}/{dtype}", part), sep="\n", flush=True)
            wrong = any("wrong" in cell["notes"] for cell in part["cells"].values())
            complete = complete and not wrong and not part["failed"]
        bench.forget()
    if left:
        print(f"{left} cells are left; the same command continues the record")
    return complete and not left


def wanted(options: Any, case: Case) -> bool:
    """Whether --match and --kinds ask for a case."""
    return bool(re.search(options.match, case.label)) and case.kind in options.kinds


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(prog="python -m oneflow_lite.bench",
                                  description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    add = out.add_argument
    add("families", nargs="+", choices=list(FAMILIES), metavar="FAMILY",
        help=f"some of {', '.join(FAMILIES)}")  # fmt: skip
    add("--dtype", default=",".join(DTYPES), help=f"some of {','.join(DTYPES)}; by default all")
    add("--kinds", default=",".join(KINDS), help=f"some of {','.join(KINDS)}; by default all")
    add("--device", choices=["cuda", "cpu"], help="by default cuda where there is a GPU")
    add("--elements", type=int, help="of each square, a power of 2 from 4096; by default 64 M on "
        "a GPU, 1 M on the CPU")  # fmt: skip
    add("--match", default="", help="a regular expression: only the cases that it finds")
    add("--budget", type=float, default=0.03, help="seconds per candidate and case, about")
    add("--minutes", type=float, default=1e9, help="after so many no further case begins")
    add("--output", type=Path, metavar="FILE.json", help="the record, read first if it is there")
    return out


def main(arguments: list[str]) -> int:
    """Runs the command; the exit status is 1 where a case failed, was wrong or is left."""
    options = parser().parse_args(arguments)
    options.device = options.device or ("cuda" if flow.cuda.is_available() else "cpu")
    options.elements = options.elements or ELEMENTS[options.device]
    if options.elements < 4096 or options.elements & (options.elements - 1):
        raise SystemExit("bench: --elements must be a power of 2 from 4096")
    for name, known in (("dtype", DTYPES), ("kinds", KINDS)):
        setattr(options, name, getattr(options, name).split(","))
        if unknown := set(getattr(options, name)) - set(known):
            raise SystemExit(f"bench: no such {name}: {', '.join(sorted(unknown))}")
    try:
        there = options.output and options.output.exists()
        data = record.read(options.output) if there else record.empty()
    except ValueError as error:
        raise SystemExit(f"bench: {error}") from None
    complete = run(options, data)
    measured = {k: v for k, v in data["slices"].items() if v["op"] in FAMILIES}
    print("", *by_kind(measured), sep="\n")
    return 0 if complete else 1
