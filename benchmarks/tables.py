# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/performance.md, made from the benchmark's records in
benchmarks/results (those with a "format")."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def read(name: str) -> dict[str, Any]:
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def tables() -> Iterator[tuple[str, list[str]]]:
    """The name and the table of each slice in the records of the benchmark."""
    records = [data for path in sorted(RESULTS.glob("*.json")) if "format" in (data := read(path))]
    if not records:
        return
    from oneflow_lite.bench import record, table

    for key, part in record.merge(records)["slices"].items():
        yield key, list(table.markdown(part))


def main() -> None:
    for name, lines in tables():
        print(f"\n{name}\n", *lines, sep="\n")


if __name__ == "__main__":
    main()
