# SPDX-License-Identifier: Apache-2.0
"""Two builds of the library timed against each other on one machine, cell by cell.

Three processes take turns: this build, this build again, and the other one. In one process the
second package could bind to the first one's library. What this build shows against itself is the
noise, beside which the other's ratio is to be read.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import canary

LEAST = 0.985  # a cell below is named
TURNS = ("this", "other", "again", "again", "other", "this")  # each as early as it is late
Figures = dict[str, dict[str, float]]


class Build:
    """A process in which one build answers."""

    def __init__(self, package: Path, device: str, budget: float) -> None:
        script = Path(__file__).with_name("against_worker.py")
        command = [sys.executable, "-P", str(script), str(package), device, str(budget)]
        if sys.version_info < (3, 11):
            command.remove("-P")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.identity = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._process.stderr.read().strip().splitlines()
            raise SystemExit(f"bench: a build ended: {said[-1] if said else 'without a word'}")
        return json.loads(line)

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()


def _time(builds: dict[str, Build], cell: canary.Cell, rounds: int) -> dict[str, Any]:
    """Microseconds by build, the median of its turns; or why there are none."""
    op, dtype, case = cell
    taken: dict[str, list[float]] = {name: [] for name in builds}
    try:
        for name, build in builds.items():
            answer = build.ask("prepare", op=op, dtype=dtype, case=asdict(case))
            if "error" in answer:
                return {"error": f"{name}: {answer['error']}"}
        for _ in range(rounds):
            for name in TURNS:
                taken[name].append(builds[name].ask("time")["us"])
    finally:
        for build in builds.values():
            build.ask("drop")
    return {name: statistics.median(found) for name, found in taken.items()}


def _mean(ratios: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def report(figures: Figures) -> list[str]:
    """Lines: the noise, the geometric mean of each op and dtype, the cells below LEAST.

    A ratio is the speed of this build over the other's: above 1 this one is faster.
    """
    noise = sorted(abs(f["again"] / f["this"] - 1) for f in figures.values())
    ratios = {label: f["other"] / f["this"] for label, f in figures.items()}
    lines = [f"noise (this build against itself): median {noise[len(noise) // 2]:.2%}, "
             f"95 of 100 cells within {noise[int(0.95 * (len(noise) - 1))]:.2%}"]  # fmt: skip
    groups: dict[str, list[float]] = {}
    for label, ratio in ratios.items():
        groups.setdefault(" ".join(label.split(" ")[:2]), []).append(ratio)
    lines += [f"  {name:<44} {_mean(found):.3f}" for name, found in groups.items()]
    lines.append(f"all: {_mean(ratios.values()):.4f} over {len(ratios)} cells")
    low = sorted((ratio, label) for label, ratio in ratios.items() if ratio < LEAST)
    lines += [f"  below {LEAST}: {label} {ratio:.3f} ({figures[label]['this']:.1f} us, "
              f"{figures[label]['other']:.1f} before)" for ratio, label in low]  # fmt: skip
    return lines


def run(other: Path, device: str, budget: float = 0.03, rounds: int = 2, planted: int = 1000,
        cells: list[canary.Cell] | None = None) -> dict[str, Any]:  # fmt: skip
    """Compares this build with ``other``, a folder that has a package oneflow_lite.

    Parameters
    ----------
    budget : float
        Seconds for one turn, about.
    rounds : int
        How often each build has its two turns.
    planted : int
        Cases whose results are compared bit for bit.
    cells : list of (op, dtype, Case), optional
        What is timed; by default the canary set.

    Returns
    -------
    dict
        ``builds`` (their identities), ``figures`` (microseconds by cell and build), ``failed``,
        ``different`` (planted cases whose bits differ) and ``lines``, a report.
    """
    mine = Path(flow.__file__).resolve().parent.parent
    where = {"this": mine, "again": mine, "other": other.resolve()}
    builds = {name: Build(path, device, budget) for name, path in where.items()}
    try:
        out: dict[str, Any] = {"builds": {n: b.identity for n, b in builds.items()}}
        figures: Figures = {}
        failed: dict[str, str] = {}
        for cell in canary.cells(device) if cells is None else cells:
            label = f"{cell[0]} {cell[1]} {cell[2].label}"
            found = _time(builds, cell, rounds)
            if "error" in found:
                failed[label] = found["error"]
            else:
                figures[label] = found
        digests = [builds[name].ask("digests", count=planted) for name in ("this", "other")]
    finally:
        for build in builds.values():
            build.close()
    for digest in digests:
        if "error" in digest:
            failed["planted cases"] = digest["error"]
    names = [f"{op} {dtype} {case.label}" for op, dtype, case in canary.planted(planted)]
    pairs = zip(names, *(d.get("digests", []) for d in digests))  # noqa: B905, none where one failed
    out |= {"figures": figures, "failed": failed}
    out["different"] = [name for name, a, b in pairs if a != b]
    out["lines"] = [f"{n}: {b['version']}, libraries {b['libraries']}" for n, b in
                    out["builds"].items() if n != "again"]  # fmt: skip
    out["lines"] += report(figures) if figures else []
    out["lines"] += [f"  failed: {label}: {why}" for label, why in failed.items()]
    out["lines"].append(f"bits: {len(out['different'])} of {planted} cases differ")
    out["lines"] += [f"  differs: {name}" for name in out["different"][:20]]
    return out
