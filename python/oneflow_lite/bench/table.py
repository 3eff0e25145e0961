# SPDX-License-Identifier: Apache-2.0
"""A record as text: for the terminal, and for a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oneflow_lite.bench import record

# "fastest" is the ratio of the fastest repetitions, which other work on the machine disturbs less.
HEADER = ("shape", "limit", "GB/s", "here", "share", "best peer", "GB/s", "ratio", "fastest", "")


def _row(part: dict[str, Any], label: str, cell: record.Cell) -> tuple[str, ...]:
    name, limit = record.stream(cell)
    ours, best = cell["ours"]["median"], record.best_peer(cell)
    said = record.verdict(part, cell)
    ratio = "" if said.ratio is None else f"{said.ratio:.2f}"
    fastest = cell["peers"][best[0]]["fastest"] / cell["ours"]["fastest"] if best else 0
    ratios = (ratio, f"{fastest:.2f}" if best else "")
    outcome = "PASS" if said.passed else "miss" if best else "no peer"  # which might pass it
    if "wrong" in cell["notes"]:
        outcome = "WRONG"
    if cell["kind"] in ("host", "recorded"):
        # The CPU launches nothing, and nothing is the limit there.
        least = (name, f"{limit:.2f} us") if limit else ("", "")
        return (label, *least, f"{ours:.2f} us", "", best[0] if best else "",
                f"{best[1]:.2f} us" if best else "", *ratios, outcome)  # fmt: skip
    late = "*" if cell["ours"].get("late") or (best and cell["peers"][best[0]].get("late")) else ""
    return (label, name, f"{record.rate(cell, limit):.0f}", f"{record.rate(cell, ours):.0f}",
            f"{said.share:.3f}", best[0] if best else "",
            f"{record.rate(cell, best[1]):.0f}" if best else "", *ratios,
            outcome + late)  # fmt: skip


def rows(part: dict[str, Any]) -> list[tuple[str, ...]]:
    """A line of cells for each shape of a slice, under ``HEADER``."""
    return [_row(part, label, cell) for label, cell in part["cells"].items()]


def text(key: str, part: dict[str, Any]) -> Iterator[str]:
    """A slice for the terminal, its notes below."""
    machine = part["machine"]
    yield f"{key}: {machine['name']}, {machine['date']}"
    lines = [HEADER, *rows(part)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [value.rjust(width) for value, width in zip(line[1:], widths[1:], strict=True)]
        yield "  " + "  ".join(cells).rstrip()
    yield from (f"  {line}" for line in notes(part))
    yield f"  {_outcome(part)}"


def _outcome(part: dict[str, Any]) -> str:
    """How many shapes pass; without peers, how many do so by the stream alone."""
    cells = list(part["cells"].values())
    if any(cell["peers"] for cell in cells):
        return f"{sum(record.verdict(part, c).passed for c in cells)} of {len(cells)} pass"
    why = "no peer took part" if part["peers"] else "no peer was asked for"
    if part["peers"] and all(version.startswith("not here") for version in part["peers"].values()):
        why = "no peer is installed"
    timed = [c for c in cells if record.stream(c)[1]]
    if not timed:
        return f"{why}, and there is no stream to hold this against"
    near = sum(record.verdict(part, c).passed for c in timed)
    return f"{why}: held against the stream alone, {near} of {len(timed)} shapes pass"


def notes(part: dict[str, Any]) -> Iterator[str]:
    """What peers are there, and why some did not run, each reason once."""
    for name, version in part["peers"].items():
        yield f"{name}: {version}"
    for label, reason in part["failed"].items():
        yield f"FAILED {label}: {reason}"
    reasons: dict[tuple[str, str], list[str]] = {}
    late = set()
    for label, cell in part["cells"].items():
        for name, note in cell["notes"].items():
            reasons.setdefault((name, note), []).append(label)
        for name, t in {"here": cell["ours"], **cell["peers"]}.items():
            if t.get("late", 0) > t["repeats"] // 4:
                late.add(name)
    for (name, note), labels in reasons.items():
        where = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
        yield f"{name}: {note} ({where})"
    if late:
        yield f"*: the GPU waited for the host, whose time is in the figure: {', '.join(late)}"


def markdown(part: dict[str, Any]) -> Iterator[str]:
    """A slice for a page."""
    yield "| shape | limit, GB/s | here, GB/s | share | best peer, GB/s | ratio | fastest | |"
    yield "|---" * 8 + "|"
    for label, name, limit, here, share, peer, peer_rate, ratio, fastest, outcome in rows(part):
        if not share:  # host time
            continue
        shape = label.replace("x", " × ")
        best = f"{peer} {peer_rate}" if peer else ""
        verdict = {"PASS": "passes", "miss": "misses"}.get(outcome.rstrip("*"), outcome)
        cells = (shape, f"{name} {limit}", here, share, best, ratio, fastest, verdict)
        yield f"| {' | '.join(cells)} |"
