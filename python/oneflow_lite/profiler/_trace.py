# SPDX-License-Identifier: Apache-2.0
"""Events as JSON in the format of Chrome's traces, which Perfetto reads as well."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from oneflow_lite.profiler._records import Event, Records

_HOST, _FIRST_GPU = 0, 1  # "processes" of the trace
_ROWS = {"kernel": 1, "collective": 2}  # "threads" there; other threads' collectives among them


def write_trace(records: Records, path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"displayTimeUnit": "ms", "traceEvents": list(_lines(records))}, file)


def _lines(records: Records) -> Iterator[dict[str, Any]]:
    events = records.events()
    devices = sorted({e.device for e in events if e.device.startswith("cuda")})
    place = {device: _FIRST_GPU + i for i, device in enumerate(devices)}
    yield _named(_HOST, "host")
    for device, pid in place.items():
        yield _named(pid, device)
    if any(event.kind == "collective" for event in events):
        for pid in (_HOST, *place.values()):
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": _ROWS["collective"],
                   "args": {"name": "collectives"}}  # fmt: skip
    for event in events:
        tid = _ROWS.get(event.kind, 0)
        if event.kind != "kernel":
            yield _span(event, _HOST, event.begin, event.end, tid)
        if event.device_begin is not None and event.device_end is not None:
            yield _span(event, place[event.device], event.device_begin, event.device_end, tid)
    for device in ["cpu", *devices]:
        for seconds, held in records.memory(device):
            yield {"ph": "C", "name": f"memory of {device}", "pid": _HOST, "ts": seconds * 1e6,
                   "args": {"bytes": held}}  # fmt: skip


def _named(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def _span(event: Event, pid: int, begin: float, end: float, tid: int = 0) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if event.kind == "op":
        args = {"bytes": event.bytes, "flops": event.flops, "launches": event.launches,
                "dtype": event.dtype, "device": event.device}  # fmt: skip
    if event.kind == "collective":
        args = {"bytes": event.bytes, "dtype": event.dtype, "device": event.device}
    if event.shapes is not None:
        args["shapes"] = event.shapes
    if event.failed:
        args["failed"] = True
    return {"ph": "X", "name": event.name, "cat": event.kind, "pid": pid, "tid": tid,
            "ts": begin * 1e6, "dur": (end - begin) * 1e6, "args": args}  # fmt: skip
