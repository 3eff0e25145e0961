# SPDX-License-Identifier: Apache-2.0
"""The record of a measurement: slices (device, op, dtype) of cells, in one JSON file.

    {"format": 1, "slices": {"cuda/softmax/float16": {
        "device", "op", "dtype",
        "machine": {"date", "name", "driver", "versions", ...}, "peers": {name: version or reason},
        "cells": {label: {"kind", "rows", "cols", "bytes", "resident_bytes", "slab_bytes",
                          "streams": {name: timing}, "ours": timing, "peers": {name: timing},
                          "notes": {name: text}}},
        "failed": {label: reason}}}}

A timing has microseconds: "median", "fastest", "rounds" (the median of each) and "host" (to enqueue
a call), and the number of "repeats" and of those in which the GPU waited for the host ("late").
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.bench import targets

FORMAT = 1
Record = dict[str, Any]
Cell = dict[str, Any]


def empty() -> Record:
    return {"format": FORMAT, "slices": {}}


def read(path: Path) -> Record:
    """A record, or ValueError where the file holds something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"{path} is no record of oneflow_lite.bench (format {FORMAT})")
    return data


def write(path: Path, data: Record) -> None:
    """Writes aside and renames, so that an interrupted run leaves a whole file."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text("\n".join(_lines(data)) + "\n", encoding="utf-8")
    unfinished.replace(path)


def _lines(data: Record) -> Iterator[str]:
    """JSON with a line for each cell, so that a change of one is a change of a line."""
    yield f'{{"format": {data["format"]}, "slices": {{'
    last = len(data["slices"]) - 1
    for i, (key, part) in enumerate(data["slices"].items()):
        head = json.dumps({name: value for name, value in part.items() if name != "cells"})
        yield f'{json.dumps(key)}: {head[:-1]}, "cells": {{'
        cells = [f" {json.dumps(label)}: {json.dumps(c)}" for label, c in part["cells"].items()]
        yield ",\n".join(cells)
        yield "}}" if i == last else "}},"
    yield "}}"


def merge(records: list[Record]) -> Record:
    """All slices and cells; where two records have a cell, the later in the list counts."""
    out = empty()
    for data in records:
        for key, part in data["slices"].items():
            known = out["slices"].get(key, {"cells": {}, "failed": {}})
            cells = {**known["cells"], **part["cells"]}
            failed = {**known["failed"], **part["failed"]}
            failed = {label: reason for label, reason in failed.items() if label not in cells}
            out["slices"][key] = {**part, "cells": cells, "failed": failed}
    return out


def machine(device: str) -> dict[str, Any]:
    """What was measured on, and with what."""
    versions = {"python": platform.python_version(), "numpy": np.__version__,
                "oneflow_lite": flow.__version__}  # fmt: skip
    for name in ("torch", "triton", "liger-kernel", "quack-kernels", "nvidia-cutlass-dsl"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    out = {"date": str(date.today()), "versions": versions}
    if device == "cuda":
        return {**out, "name": flow.cuda.get_device_name(), "driver": _driver()}
    return {**out, "name": _processor(), "cores": os.cpu_count()}


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return said.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()


# What follows from a cell -------------------------------------------------------------------------


def stream(cell: Cell) -> tuple[str, float]:
    """The fastest stream and its microseconds."""
    times = {name: t["median"] for name, t in cell["streams"].items()}
    name = min(times, key=lambda n: times[n])
    return name, times[name]


def best_peer(cell: Cell) -> tuple[str, float] | None:
    """The fastest peer and its microseconds."""
    times = {name: t["median"] for name, t in cell["peers"].items()}
    if not times:
        return None
    name = min(times, key=lambda n: times[n])
    return name, times[name]


def verdict(part: dict[str, Any], cell: Cell) -> targets.Verdict:
    """Whether a cell passes, by the rules of ``targets``; a wrong result never does."""
    said = _verdict(part, cell)
    return replace(said, passed=False) if "wrong" in cell["notes"] else said


def _verdict(part: dict[str, Any], cell: Cell) -> targets.Verdict:
    ours, best = cell["ours"]["median"], best_peer(cell)
    _, limit = stream(cell)
    if cell["kind"] in ("host", "recorded"):
        eager = cell["peers"].get("torch")
        return targets.judge_host(ours, limit, eager and eager["median"])
    asked = targets.target(part["op"], part["dtype"], cell["kind"], cell["cols"],
                           cell["resident_bytes"], part["device"], cell["slab_bytes"])  # fmt: skip
    return targets.judge(asked, ours, limit, best and best[1])


def rate(cell: Cell, microseconds: float) -> float:
    """GB/s of the limit's bytes."""
    return cell["bytes"] / microseconds / 1e3
