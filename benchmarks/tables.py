# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/performance.md, made from the records in benchmarks/results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
CPU = "2026-11-21-cpu-softmax.json"
GPU = "2026-11-21-h200-softmax.json"
FUNCTIONS = {"softmax": "copy", "log_softmax": "copy", "softmax_backward": "add"}


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def cpu() -> Iterator[str]:
    """One row per function, shape and number of threads."""
    times = read(CPU)["times"]
    ours, theirs = times["oneflow_lite"], times["torch"]
    yield "| function | shape | threads | µs | GB/s | PyTorch µs | ratio | fastest |"
    yield "|---|---|---|---|---|---|---|---|"
    for key, seconds in ours["median"].items():
        function, shape, threads = key.rsplit(" ", 2)
        if function.endswith("host"):
            continue
        rows, cols = map(int, shape.split("x"))
        moved = rows * cols * 4 * (3 if "backward" in function else 2)
        peer = theirs["median"][key]
        fastest = theirs["fastest"][key] / ours["fastest"][key]
        yield (
            f"| {function} | {rows} × {cols} | {threads[0]} | {seconds * 1e6:.0f} "
            f"| {moved / seconds / 1e9:.1f} | {peer * 1e6:.0f} | {peer / seconds:.2f} "
            f"| {fastest:.2f} |"
        )


def gpu(dtype: str) -> Iterator[str]:
    """One row per shape: GB/s, the share of the stream, the ratio to PyTorch."""
    yield "| rows × cols | copy | add | " + " | ".join(FUNCTIONS) + " |"
    yield "|---" * (3 + len(FUNCTIONS)) + "|"
    for r in read(GPU)["results"]:
        if r["dtype"] != dtype:
            continue
        cells = [
            f"{r[f]:.0f}, {r[f] / r[stream]:.2f}, {r[f] / r[f'torch {f}']:.2f}"
            for f, stream in FUNCTIONS.items()
        ]
        yield (
            f"| {r['rows']} × {r['cols']} | {r['copy']:.0f} | {r['add']:.0f} | "
            + " | ".join(cells)
            + " |"
        )


def main() -> None:
    print(*cpu(), sep="\n")
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        print(f"\n{dtype}\n", *gpu(dtype), sep="\n")


if __name__ == "__main__":
    main()
