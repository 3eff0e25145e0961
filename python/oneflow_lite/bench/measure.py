# SPDX-License-Identifier: Apache-2.0
"""Measuring a slice: one op in one dtype, over its shapes, beside streams and peers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import oneflow_lite as flow
from oneflow_lite.bench import peers, record, reference, streams, targets
from oneflow_lite.bench.cases import Case
from oneflow_lite.bench.clock import Timing
from oneflow_lite.bench.problem import Candidate, Problem, Unsupported
from oneflow_lite.bench.workloads import Workload

HOST_KINDS = ("host", "recorded")
COMPILED_KINDS = ("vocabulary", "attention", "residual")  # torch.compile takes part in all
SECTOR_BYTES = 32  # the least that a slice along another dim than the last costs per element


class Clock(Protocol):
    """What ``clock`` offers for a device."""

    def measure(self, candidates: dict[str, Candidate]) -> dict[str, Timing]: ...
    def host(self, candidates: dict[str, Candidate]) -> dict[str, Timing]: ...


@dataclass
class Bench:
    """How to measure: the device's clock, and the peers by name (a module, or why there is none).

    ``compile_widths``: where torch.compile takes part, which needs seconds for each shape; in the
    losses and the fusions it does everywhere.
    """

    device: str
    clock: Clock
    peers: dict[str, Any] = field(default_factory=dict)
    compile_widths: tuple[int, ...] = ()

    def peers_of(self, case: Case) -> dict[str, Any]:
        """Those that take part in a case."""
        present = {n: m for n, m in self.peers.items() if not isinstance(m, str)}
        if case.kind in HOST_KINDS:
            return {n: m for n, m in present.items() if n == "torch"}
        chosen = case.kind == "width" and case.cols in self.compile_widths
        if not chosen and case.kind not in COMPILED_KINDS:
            present.pop("compile", None)
        return present

    def lacks(self, case: Case, cell: record.Cell | None) -> bool:
        """Whether a cell is still to be measured: it is not there, or without one of the peers."""
        if cell is None:
            return True
        return any(n not in cell["peers"] and n not in cell["notes"] for n in self.peers_of(case))


def _reason(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    said = text[0][:160] if text else type(error).__name__
    return said if isinstance(error, Unsupported) else f"{type(error).__name__}: {said}"


def _peer_candidates(bench: Bench, p: Problem, notes: dict[str, str]) -> dict[str, Candidate]:
    """The peers that compute this problem; the others leave their reason."""
    candidates = {}
    for name, module in bench.peers_of(p.case).items():
        try:
            c = module.make(p)
            c.call()
        except Exception as error:  # a peer may fail as it likes
            notes[name] = _reason(error)
            continue
        if c.note:
            notes[name] = c.note
        candidates[name] = c
    return candidates


def _check(w: Workload, p: Problem, candidates: dict[str, Candidate],
           notes: dict[str, str]) -> None:  # fmt: skip
    """Drops the peers whose results are wrong; our own leave a note."""
    # Who computes in another process gives no results.
    local = {name: c for name, c in candidates.items() if c.timer is None}
    results = {name: reference.poisoned(c) for name, c in local.items()}
    found = reference.errors(p, w.reference, w.read_by_reference, results)
    for name, error in found.items():
        if error <= 1:
            continue
        text = f"wrong: {error:.3g} times the tolerance"
        if name == "ours":
            notes["wrong"] = text
        else:
            notes[name] = text
            del candidates[name]


def _resident_bytes(w: Workload, p: Problem) -> int:
    """What a kernel must keep on the chip in order to read it once."""
    return p.case.numel * p.itemsize * (2 if w.pattern == "2R1W" else 1)


def _limits(w: Workload, p: Problem, nbytes: int) -> dict[str, Candidate]:
    """The streams that move the bytes which have to move."""
    pattern, resident = w.pattern, _resident_bytes(w, p)
    if p.device == "cuda" and targets.reads_twice(p.case.kind, resident):
        pattern, nbytes = "2R1W", nbytes + resident
    found = streams.yardsticks(pattern, nbytes, p.device)
    return {name: Candidate(call) for name, call in found}


def measure(bench: Bench, w: Workload, dtype: str, case: Case) -> record.Cell:
    """One cell. Unsupported where this build does not have the op."""
    if case.threads:
        flow.set_num_threads(case.threads)
    p = w.problem(dtype, bench.device, case)
    nbytes, notes = w.nbytes(p), {}
    if case.kind == "recorded" and "x" in p.t:
        p.t["x"].requires_grad_()
    candidates = {"ours": w.ours(p)}
    candidates["ours"].call()
    candidates |= _peer_candidates(bench, p, notes)
    if case.kind in HOST_KINDS:
        times = bench.clock.host(candidates)
        limits = {
            "launch": times.pop("launch", Timing(0.0, 0.0, [], 0))
        }  # the CPU launches nothing
    else:
        _check(w, p, candidates, notes)
        limits = _limits(w, p, nbytes)
        times = bench.clock.measure({**limits, **candidates})
    cell = {
        "kind": case.kind, "rows": case.rows, "cols": case.cols, "bytes": nbytes,
        "resident_bytes": _resident_bytes(w, p), "slab_bytes": case.cols * SECTOR_BYTES,
        "streams": {n: (times.get(n) or limits[n]).record() for n in limits},
        "ours": times["ours"].record(),
        "peers": {n: times[n].record() for n in candidates if n != "ours"}, "notes": notes,
    }  # fmt: skip
    return cell


def _release(bench: Bench) -> None:
    """Gives the memory of the last case back, ours and PyTorch's."""
    gc.collect()
    if bench.device != "cuda":
        return
    flow.cuda.empty_cache()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


def run_slice(bench: Bench, w: Workload, dtype: str, wanted: list[Case], part: dict[str, Any],
              again: bool = False) -> Iterator[str]:  # fmt: skip
    """Measures what a slice lacks into ``part``; yields the label after each new cell."""
    gc.collect()
    gc.freeze()  # so that collecting between cases does not walk through all the peers' modules
    for case in wanted:
        if case.kind == "recorded" and w.name.endswith("_backward"):
            continue
        if not again and not bench.lacks(case, part["cells"].get(case.label)):
            continue
        part["failed"].pop(case.label, None)
        try:
            part["cells"][case.label] = measure(bench, w, dtype, case)
        except Unsupported:
            raise
        except Exception as error:  # out of memory, say; the other cases go on
            part["failed"][case.label] = _reason(error)
        _release(bench)
        yield case.label


def new_slice(bench: Bench, w: Workload, dtype: str) -> dict[str, Any]:
    """A slice without cells."""
    return {
        "device": bench.device, "op": w.name, "dtype": dtype, "pattern": w.pattern,
        "machine": record.machine(bench.device),
        "peers": {n: m if isinstance(m, str) else m.available() for n, m in bench.peers.items()},
        "cells": {}, "failed": {},
    }  # fmt: skip


def find_peers(names: list[str]) -> dict[str, Any]:
    """The peers' modules; a text where one cannot be loaded."""
    found: dict[str, Any] = {}
    for name in names:
        try:
            module = peers.load(name)
            module.available()
            found[name] = module
        except Exception as error:  # an installed peer may be broken in its own way
            found[name] = f"not here ({_reason(error)})"
    return found
