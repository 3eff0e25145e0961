# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/performance.md, made from the records in benchmarks/results.

Two kinds of records: those of `python -m oneflow_lite.bench` (they have a "format"), and the first
ones of softmax, made by programs that it has replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
CPU = "2026-11-21-cpu-softmax.json"


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def slices() -> Iterator[tuple[str, list[str]]]:
    """The name and the table of each slice in the records of the benchmark."""
    records = [data for path in sorted(RESULTS.glob("*.json")) if "format" in (data := read(path))]
    if not records:
        return
    from oneflow_lite.bench import record, table

    for key, part in record.merge(records)["slices"].items():
        yield key, list(table.markdown(part))


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


def tables() -> Iterator[tuple[str, list[str]]]:
    """Every table, under the name it goes by."""
    if (RESULTS / CPU).exists():
        yield "softmax on the CPU", list(cpu())
    yield from slices()


def main() -> None:
    for name, lines in tables():
        print(f"\n{name}\n", *lines, sep="\n")


if __name__ == "__main__":
    main()
