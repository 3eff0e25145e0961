# SPDX-License-Identifier: Apache-2.0
"""What the CPU benchmarks share: this library and PyTorch in processes of their own, in turn.

A benchmark names its cases and makes the call of each:

    CASES = [Case("softmax 4096x1024 1t", threads=1, moved=2 * 4096 * 1024 * 4, make=...)]
    main(__doc__, __file__, CASES)

Each library runs in processes of its own, which alternate for --rounds rounds, so that both meet
the same weather; a process times each case for at least 0.2 s after a warm-up. Printed are the
medians over all rounds and the ratio (PyTorch's time over ours: above 1 we are faster), and the
ratio of the fastest batches, which other work on the machine disturbs less; the file gets every
figure. Without --torch-python, the interpreter of an environment that has PyTorch, our side runs
alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """``make(library)`` gives the call that is timed; ``moved`` are the bytes of its limit."""

    label: str
    threads: int
    moved: int | None
    make: Callable[[Any], Callable[[], Any]]


# In a process of one library ------------------------------------------------------------------


def seconds_per_call(call: Any, seconds: float) -> dict[str, float]:
    """Median and minimum over batches of calls, each batch long enough for the clock."""
    for _ in range(3):
        call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    batch = max(1, min(10_000, int(2e-3 / max(once, 1e-7))))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - start) / batch)
    return {"median": statistics.median(times), "fastest": min(times)}


def measure(library: str, cases: list[Case], seconds: float) -> None:
    """Prints a line of JSON: seconds per call by case, median and fastest."""
    lib: Any = importlib.import_module(library)
    times = {}
    for case in cases:
        lib.set_num_threads(case.threads)
        lib.manual_seed(0)
        times[case.label] = seconds_per_call(case.make(lib), seconds)
    print(json.dumps({"library": library, "version": lib.__version__, "times": times}))


# In the process that compares -----------------------------------------------------------------


def run(python: str, program: str, library: str, seconds: float) -> dict[str, Any]:
    command = [python, program, "--measure", library, "--seconds", str(seconds)]
    environment = {k: v for k, v in os.environ.items() if library != "torch" or k != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{library} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


def summary(results: list[dict[str, Any]], cases: list[Case]) -> dict[str, dict[str, float]]:
    """Over the rounds of one library: the median of medians and the fastest of all."""
    reduce = {"median": statistics.median, "fastest": min}
    return {kind: {case.label: f([r["times"][case.label][kind] for r in results]) for case in cases}
            for kind, f in reduce.items()}  # fmt: skip


def table(times: dict[str, dict[str, dict[str, float]]], cases: list[Case]) -> str:
    ours, theirs = times["oneflow_lite"], times.get("torch")
    width = max(36, *(len(case.label) for case in cases))
    heads = f"{'here us':>10} {'GB/s':>6} {'torch us':>10} {'ratio':>6} {'fastest':>8}"
    lines = [f"{'case':<{width}} {heads}"]
    for case in cases:
        own = ours["median"][case.label]
        rate = "" if case.moved is None else f"{case.moved / own / 1e9:.1f}"
        line = f"{case.label:<{width}} {own * 1e6:>10.2f} {rate:>6}"
        if theirs:
            line += f" {theirs['median'][case.label] * 1e6:>10.2f}"
            line += f" {theirs['median'][case.label] / own:>6.2f}"
            line += f" {theirs['fastest'][case.label] / ours['fastest'][case.label]:>8.2f}"
        lines.append(line)
    return "\n".join(lines)


def main(doc: str | None, program: str, cases: list[Case]) -> None:
    """The command line of the benchmark in the file ``program``."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--torch-python", help="an interpreter that imports torch")
    parser.add_argument("--output", type=Path, default=Path(f"{Path(program).stem}.json"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="per case and round")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--measure", choices=["oneflow_lite", "torch"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, cases, args.seconds)
        return
    if args.quick:
        args.rounds, args.seconds = 1, 0.02
    pythons = {"oneflow_lite": sys.executable}
    if args.torch_python:
        pythons["torch"] = args.torch_python
    else:
        print("no --torch-python: oneflow_lite alone")
    rounds: dict[str, list[dict[str, Any]]] = {library: [] for library in pythons}
    for _ in range(args.rounds):
        for library, python in pythons.items():
            rounds[library].append(run(python, program, library, args.seconds))
    times = {library: summary(results, cases) for library, results in rounds.items()}
    print(f"{processor()}, medians of {args.rounds} rounds")
    print(table(times, cases))
    report = {"processor": processor(), "cores": os.cpu_count(), "rounds": rounds, "times": times}
    args.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"every figure: {args.output}")
