# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the benchmark's records in benchmarks/results (those with a "format").

    .venv/bin/python benchmarks/tables.py

All slices go into benchmarks/results/tables.md, two summaries into docs/performance.md, between the
comments that name them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oneflow_lite.bench import record, table
from oneflow_lite.bench.workloads import WORKLOADS

RESULTS = Path(__file__).resolve().parent / "results"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
WIDTHS = (64, 256, 1024, 4096, 16384, 65536, 262144)


def merged() -> dict[str, Any]:
    """The slices of all records of row ops, by name."""
    found = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))
    ]
    of_slices = [data for data in found if "format" in data and "slices" in data]
    slices = record.merge(of_slices)["slices"]
    return {key: part for key, part in slices.items() if part["op"] in WORKLOADS}


def all_tables() -> str:
    """benchmarks/results/tables.md."""
    lines = ["# Tables of the row ops", ""]
    lines += ["Made by `benchmarks/tables.py` from the records beside this page."]
    lines += ["docs/performance.md says how they were measured."]
    for key, part in merged().items():
        machine = part["machine"]
        lines += ["", f"## {key}", "", f"{machine['name']}, {machine['date']}", ""]
        lines += table.markdown(part)
    return "\n".join(lines) + "\n"


def _cell(part: dict[str, Any], cell: record.Cell) -> str:
    said = record.verdict(part, cell)
    ratio = "" if said.ratio is None else f", {said.ratio:.2f}"
    return f"{cell['ours']['median']:.0f}: {said.share:.2f}{ratio}"


def gpu_summary() -> Iterator[str]:
    """An op a line, in float16: microseconds, share of the stream, best peer's time over ours."""
    yield "| op | " + " | ".join(map(str, WIDTHS)) + " |"
    yield "|---" * (len(WIDTHS) + 1) + "|"
    for key, part in merged().items():
        device, op, dtype = key.split("/")
        cells = {c["cols"]: c for c in part["cells"].values() if c["kind"] == "width"}
        if device == "cuda" and dtype == "float16" and cells:
            yield (
                f"| {op} | "
                + " | ".join(_cell(part, cells[w]) if w in cells else "" for w in WIDTHS)
                + " |"
            )


def cpu_summary() -> Iterator[str]:
    """An op a line: PyTorch's time over ours, geometric mean and least of the shapes."""
    yield "| op | float32 1t | 2t | bfloat16 1t | 2t |"
    yield "|---|---|---|---|---|"
    slices = merged()
    for op in dict.fromkeys(key.split("/")[1] for key in slices if key.startswith("cpu/")):
        shown = []
        for dtype in ("float32", "bfloat16"):
            for threads in ("1t", "2t"):
                part = slices[f"cpu/{op}/{dtype}"]
                ratios = [record.verdict(part, cell).ratio for label, cell in part["cells"].items()
                          if label.endswith(threads) and cell["kind"] == "width"]  # fmt: skip
                known = [r for r in ratios if r]
                mean = math.exp(sum(map(math.log, known)) / len(known))
                shown.append(f"{mean:.1f} ({min(known):.2f})")
        yield f"| {op} | " + " | ".join(shown) + " |"


def with_summaries(text: str) -> str:
    """docs/performance.md, its summaries made anew."""
    for name, lines in (("gpu", gpu_summary()), ("cpu", cpu_summary())):
        marks = f"<!-- {name} summary -->\n", f"<!-- end of {name} summary -->"
        pattern = re.escape(marks[0]) + ".*?" + re.escape(marks[1])
        made = marks[0] + "\n".join(lines) + "\n" + marks[1]
        text, count = re.subn(pattern, lambda _, made=made: made, text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{PAGE} has no place for the {name} summary")
    return text


def main() -> None:
    (RESULTS / "tables.md").write_text(all_tables(), encoding="utf-8")
    PAGE.write_text(with_summaries(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
