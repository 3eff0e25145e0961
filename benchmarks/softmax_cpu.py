# SPDX-License-Identifier: Apache-2.0
"""softmax on the CPU, here and in PyTorch: forward and backward, one and two threads.

    python benchmarks/softmax_cpu.py [--torch-python PATH] [--output FILE] [--quick]

Each library runs in processes of its own, which alternate for --rounds rounds, so that both meet
the same weather; a process times each case for at least 0.2 s after a warm-up. Printed are the
medians over all rounds and the ratio (PyTorch's time over ours: above 1 we are faster), and the
ratio of the fastest batches, which other work on the machine disturbs less; the file gets every
figure. Without --torch-python, the interpreter of an environment that has PyTorch, our side runs
alone. "host" is one call on a tensor of 4 x 64: what Python, dispatch and allocation cost.
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
from pathlib import Path
from typing import Any

SHAPES = [(4096, 1024), (64, 50257)]
FUNCTIONS = ["softmax", "log_softmax"]
THREADS = [1, 2]
HOST_SHAPE = (4, 64)


def cases() -> list[dict[str, Any]]:
    shaped = [
        {"what": f"{name}{direction}", "rows": rows, "cols": cols, "threads": threads}
        for threads in THREADS
        for rows, cols in SHAPES
        for name in FUNCTIONS
        for direction in ("", " backward")
    ]
    rows, cols = HOST_SHAPE
    return shaped + [{"what": "softmax host", "rows": rows, "cols": cols, "threads": 1}]


def label(case: dict[str, Any]) -> str:
    return f"{case['what']} {case['rows']}x{case['cols']} {case['threads']}t"


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


def callable_of(library: str, case: dict[str, Any]) -> Any:
    lib: Any = importlib.import_module(library)
    lib.set_num_threads(case["threads"])
    lib.manual_seed(0)
    shape = (case["rows"], case["cols"])
    name, _, direction = case["what"].partition(" ")
    function = getattr(lib, name)
    x = lib.randn(*shape)
    if direction != "backward":
        return lambda: function(x, 1)
    x.requires_grad_()
    y, dy = function(x, 1), lib.randn(*shape)
    return lambda: lib.autograd.grad(y, x, dy, retain_graph=True)


def measure(library: str, seconds: float) -> None:
    """Prints a line of JSON: seconds per call by case, median and fastest."""
    times = {label(c): seconds_per_call(callable_of(library, c), seconds) for c in cases()}
    version = importlib.import_module(library).__version__
    print(json.dumps({"library": library, "version": version, "times": times}))


# In the process that compares -----------------------------------------------------------------


def run(python: str, library: str, seconds: float) -> dict[str, Any]:
    command = [python, __file__, "--measure", library, "--seconds", str(seconds)]
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


def summary(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Over the rounds of one library: the median of medians and the fastest of all."""
    reduce = {"median": statistics.median, "fastest": min}
    keys = [label(case) for case in cases()]
    return {kind: {key: f([r["times"][key][kind] for r in results]) for key in keys}
            for kind, f in reduce.items()}  # fmt: skip


def table(times: dict[str, dict[str, dict[str, float]]]) -> str:
    ours, theirs = times["oneflow_lite"], times.get("torch")
    lines = [
        f"{'case':<36} {'here us':>10} {'GB/s':>6} {'torch us':>10} {'ratio':>6} {'fastest':>8}"
    ]
    for case in cases():
        key = label(case)
        moved = case["rows"] * case["cols"] * 4 * (3 if "backward" in key else 2)
        own = ours["median"][key]
        rate = "" if "host" in key else f"{moved / own / 1e9:.1f}"
        line = f"{key:<36} {own * 1e6:>10.2f} {rate:>6}"
        if theirs:
            line += f" {theirs['median'][key] * 1e6:>10.2f}"
            line += f" {theirs['median'][key] / own:>6.2f}"
            line += f" {theirs['fastest'][key] / ours['fastest'][key]:>8.2f}"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch-python", help="an interpreter that imports torch")
    parser.add_argument("--output", type=Path, default=Path("softmax_cpu.json"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="per case and round")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--measure", choices=["oneflow_lite", "torch"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.measure, args.seconds)
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
            rounds[library].append(run(python, library, args.seconds))
    times = {library: summary(results) for library, results in rounds.items()}
    print(f"{processor()}, float32, medians of {args.rounds} rounds")
    print(table(times))
    report = {"processor": processor(), "cores": os.cpu_count(), "rounds": rounds, "times": times}
    args.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"every figure: {args.output}")


if __name__ == "__main__":
    main()
