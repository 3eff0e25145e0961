# SPDX-License-Identifier: Apache-2.0
"""The records of a profiler as rows of a table, and what is summed up from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.profiler._limits import MachineLimit

KINDS = ("op", "backward", "range", "kernel", "collective")
LimitOf = Callable[[str, str | None], MachineLimit | None]


class OpStats(NamedTuple):
    """All records of one name.

    ``seconds`` are the host's, ``self_seconds`` without the ops inside; ``device_seconds`` are the
    GPU's, without them as well. ``bytes`` and ``flops`` are what is needed at least, and
    ``limit_seconds`` is the time in which the machine could do it, 0 where that is not known. Of a
    collective ``bytes`` are what this rank sends, and ``overlapped_seconds`` its time beside ops of
    the profile's thread.
    """

    name: str
    calls: int
    seconds: float
    bytes: float
    flops: float
    self_seconds: float = 0.0
    device_seconds: float = 0.0
    launches: int = 0
    busy_seconds: float = 0.0
    limit_seconds: float = 0.0
    failed: int = 0
    overlapped_seconds: float = 0.0

    @property
    def time(self) -> float:
        """Where the work was done: on the GPU, or else on the host; without the ops inside."""
        return self.device_seconds or self.self_seconds


class Event(NamedTuple):
    """One record. Times are in seconds since the first; ``parent`` is an index into the events."""

    kind: str
    name: str
    parent: int | None
    begin: float
    end: float
    device: str
    dtype: str | None
    launches: int
    bytes: float
    flops: float
    device_begin: float | None
    device_end: float | None
    failed: bool
    shapes: str | None


def device_name(index: int) -> str:
    return {-2: "meta", -1: "cpu"}.get(index, f"cuda:{index}")


def _covered(spans: list[tuple[float, float]]) -> float:
    """The length that the spans cover together."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


class Records:
    """A copy of what a profiler has recorded so far."""

    def __init__(self, profiler: _ext.Profiler) -> None:
        self.running = profiler.running
        records = profiler.records()  # which names what it has not yet
        self.names = profiler.names()
        self.rows = np.frombuffer(records, dtype=np.dtype(list(_ext.record_fields)))
        rows = self.rows
        now = max(int(rows["end"].max()), int(rows["begin"].max())) if len(rows) else 0
        end = np.where(rows["end"] < 0, now, rows["end"])  # of those that are still open
        self.start = int(rows["begin"].min()) if len(rows) else 0
        self.host = (end - rows["begin"]) / 1e9
        self.timed = rows["device_end"] >= rows["device_begin"]
        self.device = np.where(self.timed, rows["device_end"] - rows["device_begin"], 0.0) / 1e9
        self.launched = np.where(rows["end"] < 0, 0, rows["launches"])

    def of_kind(self, kind: str) -> np.ndarray:
        if kind not in KINDS:
            raise ValueError(f"profile: kind must be one of {', '.join(KINDS)}, not {kind!r}")
        return np.flatnonzero(self.rows["kind"] == KINDS.index(kind))

    def events(self) -> list[Event]:
        return list(self._events())

    def _events(self) -> Iterator[Event]:
        for i, row in enumerate(self.rows.tolist()):
            r: dict[str, Any] = dict(zip(self.rows.dtype.names or (), row, strict=True))
            timed = bool(self.timed[i])
            begin = (r["begin"] - self.start) / 1e9
            yield Event(
                KINDS[r["kind"]], self.names[r["name"]], r["parent"] if r["parent"] >= 0 else None,
                begin, begin + float(self.host[i]), device_name(r["device"]),
                _ext.record_dtypes[r["dtype"]] if r["dtype"] >= 0 else None,
                int(self.launched[i]), r["bytes"], r["flops"],
                (r["device_begin"] - self.start) / 1e9 if timed else None,
                (r["device_end"] - self.start) / 1e9 if timed else None,
                bool(r["failed"]), self.names[r["shapes"]] if r["shapes"] >= 0 else None,
            )  # fmt: skip

    def _inner(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each record, what the ops inside took: host, device, launches."""
        count = len(self.rows)
        host, device, launches = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
        kinds, parents = self.rows["kind"].tolist(), self.rows["parent"].tolist()
        op, collective = KINDS.index("op"), KINDS.index("collective")
        above = [-1] * count  # the nearest op around it
        for i, parent in enumerate(parents):
            if parent >= 0:
                above[i] = parent if kinds[parent] == op else above[parent]
            if kinds[i] in (op, collective) and above[i] >= 0:
                host[above[i]] += self.host[i]
                device[above[i]] += self.device[i]
                launches[above[i]] += self.launched[i]
        return host, device, launches

    def _outermost(self) -> Iterator[tuple[int, int]]:
        """Pairs of a span that is no op and an op in it which is in no other op."""
        kinds, parents = self.rows["kind"].tolist(), self.rows["parent"].tolist()
        op = KINDS.index("op")
        for i in self.of_kind("op").tolist():
            around = parents[i]
            while around >= 0 and kinds[around] != op:
                yield around, i
                around = parents[around]

    def overlapped(self) -> np.ndarray:
        """Of each collective, the time during which an op ran that does not wait for it.

        Of ops, the innermost; on a GPU by its clock, where both were timed there.
        """
        count = len(self.rows)
        found = np.zeros(count)
        kinds, parents = self.rows["kind"], self.rows["parent"].tolist()
        is_op = kinds == KINDS.index("op")
        is_outer = np.zeros(count, bool)
        for i in np.flatnonzero(is_op).tolist():
            around = parents[i]
            while around >= 0 and not is_op[around]:
                around = parents[around]
            if around >= 0:
                is_outer[around] = True
        ops = np.flatnonzero(is_op & ~is_outer)
        end = self.rows["begin"] + (self.host * 1e9).astype(np.int64)
        clocks = {False: (self.rows["begin"].astype(float), end.astype(float), ops),
                  True: (self.rows["device_begin"], self.rows["device_end"],
                         ops[self.timed[ops]])}  # fmt: skip
        for i in self.of_kind("collective").tolist():
            begins, ends, beside = clocks[bool(self.timed[i])]
            near = beside[(begins[beside] < ends[i]) & (ends[beside] > begins[i])]
            waiting = set()
            around = parents[i]
            while around >= 0:
                waiting.add(around)
                around = parents[around]
            found[i] = _covered([(max(begins[k], begins[i]), min(ends[k], ends[i]))
                                 for k in near.tolist() if k not in waiting]) / 1e9  # fmt: skip
        return found

    def limit_seconds(self, limit_of: LimitOf | None) -> np.ndarray:
        """The least time of each record by its cost; 0 where that is not known."""
        least = np.zeros(len(self.rows))
        if limit_of is None:
            return least
        rows = self.rows
        for device, dtype in {(int(d), int(t)) for d, t in zip(rows["device"], rows["dtype"],
                                                              strict=True)}:  # fmt: skip
            at = (rows["device"] == device) & (rows["dtype"] == dtype) & (rows["kind"] == 0)
            if not at.any():
                continue
            name = _ext.record_dtypes[dtype] if dtype >= 0 else None
            limit = limit_of(device_name(device), name)
            if limit is None:
                continue
            least[at] = rows["bytes"][at] / limit.bytes_per_second
            if name is not None:
                least[at] = np.maximum(least[at], rows["flops"][at] / limit.flops_per_second)
        return least

    def stats(self, kind: str, limit_of: LimitOf | None) -> list[OpStats]:
        at = self.of_kind(kind)
        inner_host, inner_device, inner_launches = self._inner()
        least = self.limit_seconds(limit_of)
        device, bytes_, flops = self.device, self.rows["bytes"], self.rows["flops"]
        if kind in ("backward", "range"):  # they hold what the ops inside do
            device, bytes_, flops, summed = (np.zeros(len(self.rows)) for _ in range(4))
            for span, op in self._outermost():
                for into, own in ((device, self.device), (bytes_, self.rows["bytes"]),
                                  (flops, self.rows["flops"]), (summed, least)):  # fmt: skip
                    into[span] += own[op]
            least = summed
            inner_host, inner_device = np.zeros(len(self.rows)), np.zeros(len(self.rows))
            inner_launches = np.zeros(len(self.rows), np.int64)
        found = []
        beside = self.overlapped() if kind == "collective" else np.zeros(len(self.rows))
        for name in np.unique(self.rows["name"][at]):
            i = at[self.rows["name"][at] == name]
            busy = np.where(device[i] > 0, device[i], self.host[i])
            found.append(OpStats(
                self.names[name], len(i), float(self.host[i].sum()), float(bytes_[i].sum()),
                float(flops[i].sum()), float(np.maximum(self.host - inner_host, 0)[i].sum()),
                float(np.maximum(device - inner_device, 0)[i].sum()),
                int((self.launched - inner_launches)[i].sum()), float(busy.sum()),
                float(least[i].sum()), int(self.rows["failed"][i].sum()),
                float(beside[i].sum()),
            ))  # fmt: skip
        return sorted(found, key=lambda s: (-s.time, s.name))

    def memory(self, device: str) -> list[tuple[float, int]]:
        device = {"cuda": "cuda:0"}.get(device, device)
        points = []
        for i in self.of_kind("op").tolist():
            row = self.rows[i]
            if device_name(int(row["device"])) != device:
                continue
            begin = (int(row["begin"]) - self.start) / 1e9
            points.append((begin, int(row["memory_begin"])))
            points.append((begin + float(self.host[i]), int(row["memory_end"])))
        return sorted(points)
