# SPDX-License-Identifier: Apache-2.0
"""What the cells of a family of functions say: shares of the stream, PyTorch's time over ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oneflow_lite.bench import record

# kind: the share of the stream that is asked for; of the others none is
SHARES = {"function": 0.90, "gradient": 0.90, "layout": 0.90, "reduction": 0.90, "scan": 0.60,
          "move": 0.85}  # fmt: skip
KINDS = [*SHARES, "sort", "indexed", "random", "loss", "small"]
LEAST = 0.95  # of PyTorch's time over ours
MOST_HOST = 0.8  # of our host time over PyTorch's
NAMES_A_LINE = 6


def share(cell: record.Cell) -> float:
    """The fastest stream's time over ours; NaN of small tensors."""
    if cell["kind"] == "small" or not cell["streams"]:
        return math.nan
    return record.stream(cell)[1] / float(cell["ours"]["median"])


def ratio(cell: record.Cell) -> float:
    """PyTorch's time over ours; NaN where PyTorch was not timed."""
    torch = cell["peers"].get("torch", {"median": math.nan})["median"]
    return float(torch) / float(cell["ours"]["median"])


def mean(values: Iterable[float]) -> float:
    """The geometric mean of those that are numbers; NaN of none."""
    logs = [math.log(v) for v in values if v == v]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def slow(cell: record.Cell) -> bool:
    """Whether PyTorch is so much faster that it counts."""
    least = 1 / MOST_HOST if cell["kind"] == "small" else LEAST
    return ratio(cell) < least


def short(cell: record.Cell) -> bool:
    """Whether the stream is so much faster that it counts."""
    return share(cell) < SHARES.get(cell["kind"], 0.0)


def _named(cells: list[tuple[str, record.Cell]], *values: Callable[[record.Cell], float]
           ) -> Iterator[str]:  # fmt: skip
    """Labels with their values, the least first, several a line."""
    ordered = sorted(cells, key=lambda item: values[0](item[1]))
    found = [f"{label} {' / '.join(f'{v(c):.2f}' for v in values)}" for label, c in ordered]
    for i in range(0, len(found), NAMES_A_LINE):
        yield "    " + ", ".join(found[i : i + NAMES_A_LINE])


def _place(item: tuple[str, record.Cell]) -> tuple[int, bool, float]:
    """By kind, then the slowest beside PyTorch, and last those without it."""
    value = ratio(item[1])
    return KINDS.index(item[1]["kind"]), math.isnan(value), value


def table(key: str, part: dict[str, Any]) -> Iterator[str]:
    """Lines of a slice: its cells by kind, the slowest beside PyTorch first, and what is slow.
    "late": in most repetitions the GPU waited for the host.
    """
    yield f"{key}: {'us':>44} {'of stream':>10} {'of torch':>10}"
    cells = sorted(part["cells"].items(), key=_place)
    for label, cell in cells:
        ours = cell["ours"]
        said = "  late" if ours.get("late", 0) * 2 > ours["repeats"] else ""
        said += "".join(f"  {name}: {text}" for name, text in cell["notes"].items())
        yield (f"  {cell['kind']:<10} {label:<44} {ours['median']:>10.1f} "
               f"{share(cell):>10.2f} {ratio(cell):>10.2f}{said}")  # fmt: skip
    for kind in KINDS:
        of_kind = [c for c in cells if c[1]["kind"] == kind]
        if not of_kind:
            continue
        yield f"  {kind}: {summary([c for _, c in of_kind])}"
        if behind := [c for c in of_kind if slow(c[1])]:
            least = 1 / MOST_HOST if kind == "small" else LEAST
            yield f"   under {least} of PyTorch:"
            yield from _named(behind, ratio)
        if below := [c for c in of_kind if short(c[1])]:
            yield f"   under {SHARES[kind]:.2f} of the stream (share / torch):"
            yield from _named(below, share, ratio)
    for label, reason in part["failed"].items():
        yield f"  failed: {label}: {reason}"


def summary(cells: list[record.Cell]) -> str:
    """Of some cells: geometric means, least values, and how many are too slow."""
    ratios = [r for c in cells if (r := ratio(c)) == r]
    shares = [s for c in cells if (s := share(c)) == s]
    said = []
    if ratios:
        said.append(f"torch {mean(ratios):.2f}, least {min(ratios):.2f}, "
                    f"{sum(map(slow, cells))} of {len(ratios)} behind")  # fmt: skip
    if shares:
        said.append(f"share {mean(shares):.2f}, least {min(shares):.2f}, "
                    f"{sum(map(short, cells))} of {len(shares)} below")  # fmt: skip
    return "; ".join(said)


def by_kind(slices: dict[str, Any]) -> Iterator[str]:
    """A Markdown table: a kind a line, a dtype a column."""
    cells: dict[tuple[str, str], list[record.Cell]] = {}
    for part in slices.values():
        for cell in part["cells"].values():
            cells.setdefault((cell["kind"], part["dtype"]), []).append(cell)
    dtypes = list(dict.fromkeys(part["dtype"] for part in slices.values()))
    yield "| kind | " + " | ".join(dtypes) + " |"
    yield "|---" * (len(dtypes) + 1) + "|"
    for kind in KINDS:
        if any((kind, dtype) in cells for dtype in dtypes):
            shown = [summary(cells.get((kind, dtype), [])) for dtype in dtypes]
            yield f"| {kind} | " + " | ".join(shown) + " |"
