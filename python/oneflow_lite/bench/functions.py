# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, reductions, scans, sorts, moves and losses on the CPU, beside PyTorch.

    python -m oneflow_lite.bench functions --torch-python PYTHON --output functions.json

Two processes take turns, one with each library, so that neither's threads disturb the other's and
a busy machine slows both. Inputs are the same random numbers, and samples of the results are
compared. What the record has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import functions_worker, record

SIZES = [1 << 10, 1 << 16, 1 << 20, 1 << 24]
DTYPES = ["float32", "bfloat16"]
LEAST = 0.8  # a cell below is named
TURNS = ("ours", "torch", "torch", "ours")  # each as early as it is late
TOLERANCE = {"float32": 2e-4, "bfloat16": 3.2e-2}


class Library:
    """A process in which one library answers."""

    def __init__(self, python: str, library: str, package: str = "") -> None:
        script = str(Path(functions_worker.__file__))
        # Another interpreter has its own packages.
        environment = {k: v for k, v in os.environ.items() if package or k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, script, library, package], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment)  # fmt: skip
        answer = self._read()
        if "error" in answer:
            raise SystemExit(f"bench: {python} cannot import {library}: {answer['error']}")
        self.version = answer["version"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()


def differ(ours: dict[str, Any], torch: dict[str, Any], dtype: str) -> str:
    """What is wrong with our result beside PyTorch's, if anything."""
    if ours["shape"] != torch["shape"]:
        return f"shape {ours['shape']}, PyTorch {torch['shape']}"
    allowed, off = TOLERANCE[dtype], 0
    for a, b in zip(map(float, ours["samples"]), map(float, torch["samples"]), strict=True):
        same = a == b or (a != a and b != b)
        off += not (same or abs(a - b) <= allowed * max(1.0, abs(a), abs(b)))
    return f"{off} of {len(ours['samples'])} samples differ" if off else ""


def cell(libraries: dict[str, Library], label: str, dtype: str, n: int, threads: int,
         budget: float, rounds: int) -> dict[str, Any]:  # fmt: skip
    """Microseconds of both, or an "error"; "wrong" where results differ."""
    answers = {}
    for name, library in libraries.items():
        answers[name] = library.ask("prepare", label=label, dtype=dtype, n=n, threads=threads)
        if "error" in answers[name]:
            return {"error": f"{name}: {answers[name]['error']}"}
    out: dict[str, Any] = {}
    if text := differ(answers["ours"], answers["torch"], dtype):
        out["wrong"] = text
    taken: dict[str, list[float]] = {name: [] for name in libraries}
    for _ in range(rounds):
        for name in TURNS:
            taken[name].append(libraries[name].ask("time", budget=budget)["us"])
    return out | {name: round(statistics.median(found), 3) for name, found in taken.items()}


def _mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def report(cells: dict[str, dict[str, Any]]) -> list[str]:
    """Lines: each cell, slowest first, the geometric means, and how many are below LEAST.

    A ratio is PyTorch's time over ours: above 1 ours is faster.
    """
    done = {k: c["torch"] / c["ours"] for k, c in cells.items() if "ours" in c and "torch" in c}
    lines = []
    for key, ratio in sorted(done.items(), key=lambda item: item[1]):
        c = cells[key]
        wrong = f"  wrong: {c['wrong']}" if "wrong" in c else ""
        lines.append(f"  {ratio:7.2f}  {key:<44} {c['ours']:>12.1f} us, "
                     f"PyTorch {c['torch']:.1f}{wrong}")  # fmt: skip
    lines += [f"  {key}: {c['error']}" for key, c in cells.items() if "error" in c]
    groups: dict[str, list[float]] = {}
    for key, ratio in done.items():
        groups.setdefault(key.split(" | ", 1)[1], []).append(ratio)
    for name, found in groups.items():
        low = sum(r < LEAST for r in found)
        lines.append(f"{name:<28} geometric mean {_mean(found):.3f}, {low} of {len(found)} "
                     f"below {LEAST}")  # fmt: skip
    if done:
        low = sum(r < LEAST for r in done.values())
        lines.append(f"all: geometric mean {_mean(done.values()):.3f} over {len(done)} cells, "
                     f"{low} below {LEAST}")  # fmt: skip
    return lines


def parser() -> argparse.ArgumentParser:
    """The options."""

    def numbers(text: str) -> list[int]:
        found = [int(word) for word in text.split(",")]
        if min(found) < 1:
            raise argparse.ArgumentTypeError("positive numbers are needed")
        return found

    out = argparse.ArgumentParser(prog="python -m oneflow_lite.bench functions",
                                  description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    add = out.add_argument
    add("--torch-python", metavar="PYTHON", default=sys.executable,
        help="an interpreter that has PyTorch, by default this one")  # fmt: skip
    add("--dtype", default=",".join(DTYPES), help=f"some of {','.join(DTYPES)}")
    add("--sizes", type=numbers, default=SIZES, help="numbers of elements, with commas")
    add("--threads", type=numbers, default=[1, 2], help="by default 1,2")
    add("--match", default="", help="a regular expression: only the cases that it finds")
    add("--budget", type=float, default=0.01, help="seconds of a turn, about")
    add("--rounds", type=int, default=1, help="how often each library has its two turns")
    add("--output", type=Path, metavar="FILE.json", help="the record, read first if it is there")
    return out


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The cells of a record of this command; SystemExit where the file holds something else."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["functions"]
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"bench: {path} is no record of `bench functions`") from None
    return dict(cells)


def write(path: Path, head: dict[str, Any], cells: dict[str, dict[str, Any]]) -> None:
    """A line per cell, so that a change of one is a change of a line."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(c)}" for key, c in cells.items())
    text = f'{json.dumps(head)[:-1]}, "functions": {{\n{lines}\n}}}}\n'
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def main(arguments: list[str]) -> int:
    """Runs the command; the exit status is 1 where a cell failed or was wrong."""
    options = parser().parse_args(arguments)
    dtypes = options.dtype.split(",")
    if unknown := set(dtypes) - set(DTYPES):
        raise SystemExit(f"bench: no such dtype: {', '.join(sorted(unknown))}")
    there = options.output and options.output.exists()
    cells = read(options.output) if there else {}
    package = str(Path(flow.__file__).resolve().parent.parent)
    libraries = {"torch": Library(options.torch_python, "torch"),
                 "ours": Library(sys.executable, "oneflow_lite", package)}  # fmt: skip
    head = {"machine": record.machine("cpu"), "torch": libraries["torch"].version}
    wanted = [label for label in functions_worker.labels() if re.search(options.match, label)]
    fresh = [(f"{label} | {dtype} {n} x{threads}", (label, dtype, n, threads))
             for n in options.sizes for dtype in dtypes for threads in options.threads
             for label in wanted]  # fmt: skip
    try:
        for key, case in fresh:
            if key in cells and "error" not in cells[key]:
                continue
            cells[key] = cell(libraries, *case, options.budget, options.rounds)
            if options.output:
                write(options.output, head, cells)
    finally:
        for library in libraries.values():
            library.close()
    print(*report(cells), sep="\n")
    return 1 if any("error" in c or "wrong" in c for c in cells.values()) else 0
