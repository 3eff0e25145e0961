# SPDX-License-Identifier: Apache-2.0
"""The roofline: how fast each op computed, over how much it computes with each byte."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.profiler._records import LimitOf, Records, device_name

_LABELS = 10  # so many ops have their name beside them, at most
_LEAST = 0.005  # of the time, for a name
_SEEN = 0.0005  # of the time, for a dot
_COLOURS = {"float32": "#1b6ca8", "float64": "#7a3e9d", "float16": "#2a9d5c", "bfloat16": "#d95f02"}


class _Dot(NamedTuple):
    """All calls of an op in one dtype."""

    name: str
    dtype: str
    seconds: float
    intensity: float
    rate: float


def draw(
    records: Records, limit_of: LimitOf, path: str | os.PathLike[str], device: str | None
) -> None:
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "profile.plot_roofline() needs matplotlib: pip install matplotlib"
        ) from None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    assert matplotlib
    device = _device(records, device)
    dots = _dots(records, device)
    if not dots:
        raise ValueError(
            f"profile.plot_roofline(): no op that computes with floats ran on {device}"
        )
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    dtypes = sorted({d.dtype for d in dots})
    limits = {t: limit_of(device, t) for t in dtypes}
    low = min(d.intensity for d in dots) / 4
    ridge = max((m.flops_per_second / m.bytes_per_second for m in limits.values() if m), default=1)
    high = max(16 * max(d.intensity for d in dots), 8 * ridge)  # with room for names
    x = np.geomspace(low, high, 200)
    for dtype in dtypes:
        limit, colour = limits[dtype], _COLOURS[dtype]
        if limit is not None:
            roof = np.minimum(x * limit.bytes_per_second, limit.flops_per_second)
            axes.plot(x, roof, color=colour, linewidth=1.5, label=_roof_text(dtype, limit))
        _scatter(axes, [d for d in dots if d.dtype == dtype], dots, colour)
    _labels(axes, dots)
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="operations per byte",
             ylabel="operations per second", title=f"{device}: area is time")  # fmt: skip
    axes.grid(alpha=0.25, which="both", linewidth=0.5)
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=120, format="png")


def _roof_text(dtype: str, limit: Any) -> str:
    rate = limit.flops_per_second
    flops = f"{rate / 1e12:.3g} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:.3g} GFLOP/s"
    return f"{dtype}: {limit.bytes_per_second / 1e9:.4g} GB/s, {flops}"


def _device(records: Records, device: str | None) -> str:
    if device is not None:
        return {"cuda": "cuda:0"}.get(str(device), str(device))
    spent: dict[str, float] = defaultdict(float)
    for i in records.of_kind("op").tolist():
        row = records.rows[i]
        spent[device_name(int(row["device"]))] += float(records.device[i] or records.host[i])
    spent.pop("meta", None)
    return max(spent, key=lambda d: spent[d]) if spent else "cpu"


def _dots(records: Records, device: str) -> list[_Dot]:
    sums: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(3))
    for i in records.of_kind("op").tolist():
        row = records.rows[i]
        if device_name(int(row["device"])) != device or row["dtype"] < 0:
            continue
        key = (records.names[row["name"]], _ext.record_dtypes[row["dtype"]])
        seconds = records.device[i] or records.host[i]
        sums[key] += (seconds, row["bytes"], row["flops"])
    dots = [
        _Dot(name, dtype, seconds, flops / moved, flops / seconds)
        for (name, dtype), (seconds, moved, flops) in sums.items()
        if seconds > 0 and moved > 0 and flops > 0
    ]
    total = sum(d.seconds for d in dots)
    return [d for d in dots if d.seconds >= _SEEN * total]


def _scatter(axes: Any, dots: list[_Dot], all_dots: list[_Dot], colour: str) -> None:
    """The area of a dot is its share of the time."""
    total = sum(d.seconds for d in all_dots)
    axes.scatter(
        [d.intensity for d in dots], [d.rate for d in dots], color=colour, alpha=0.6,
        s=[15 + 1500 * d.seconds / total for d in dots], linewidths=0,
    )  # fmt: skip


def _labels(axes: Any, dots: list[_Dot]) -> None:
    """The names of those that took longest, one above the other where they would overlap."""
    total = sum(d.seconds for d in dots)
    taken: list[tuple[float, float]] = []
    for d in sorted(dots, key=lambda d: -d.seconds)[:_LABELS]:
        if d.seconds < _LEAST * total:
            return
        x, y = np.log10(d.intensity), np.log10(d.rate)
        raised = y
        while any(abs(x - u) < 1.0 and abs(raised - v) < 0.15 for u, v in taken):
            raised += 0.05
        taken.append((x, raised))
        line = {"arrowstyle": "-", "linewidth": 0.4, "alpha": 0.5} if raised > y else None
        axes.annotate(f"{d.name} {d.seconds / total:.0%}", (d.intensity, d.rate),
                      (10 ** (x + 0.08), 10**raised), fontsize=8, va="center",
                      arrowprops=line)  # fmt: skip
