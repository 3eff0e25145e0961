# SPDX-License-Identifier: Apache-2.0
"""A chart of GB/s over width: a panel for each op and dtype, with the line of the stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oneflow_lite.bench import record

STYLE = {
    "torch": ("#d95f02", "PyTorch"), "compile": ("#e6ab02", "torch.compile"),
    "liger": ("#7570b3", "Liger"), "quack": ("#e7298a", "QuACK"), "apex": ("#66a61e", "apex"),
    "cudnn": ("#a6761d", "cuDNN"),
}  # fmt: skip
OURS = ("#1b6ca8", "oneflow_lite")
COLUMNS = 3  # of charts, where the record has one dtype
STREAMS = {"1R1W": "copy", "2R1W": "two reads, one write", "1R": "read"}


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise SystemExit(
            "bench: --plot needs matplotlib, which is not installed: pip install matplotlib"
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot


def _by_width(part: dict[str, Any]) -> list[record.Cell]:
    """One cell per width: on the CPU that of the most threads, then of the most bytes."""
    chosen: dict[int, tuple[tuple[int, int], record.Cell]] = {}
    for label, cell in part["cells"].items():
        if cell["kind"] not in ("width", "vocabulary"):
            continue
        threads = label.rpartition(" ")[2].removesuffix("t")
        rank = (int(threads) if threads.isdecimal() else 0, cell["bytes"])
        known = chosen.get(cell["cols"])
        if known is None or rank > known[0]:
            chosen[cell["cols"]] = (rank, cell)
    return [cell for _, cell in chosen.values()]


def _lines(part: dict[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """(width, GB/s) by candidate; "" is the stream."""
    lines: dict[str, list[tuple[int, float]]] = {"": [], "ours": []}
    for cell in _by_width(part):
        at = cell["cols"]
        lines[""].append((at, record.rate(cell, record.stream(cell)[1])))
        lines["ours"].append((at, record.rate(cell, cell["ours"]["median"])))
        for name, t in cell["peers"].items():
            lines.setdefault(name, []).append((at, record.rate(cell, t["median"])))
    return {name: sorted(points) for name, points in lines.items() if points}


def draw(data: record.Record, path: Path) -> None:
    """Writes the chart of a record; nothing to draw is a SystemExit.

    Parameters
    ----------
    path : Path
        Ends in .png, or another format that matplotlib writes.
    """
    parts = {key: part for key, part in data["slices"].items() if _lines(part)}
    if not parts:
        raise SystemExit("bench: nothing to plot: the record has no cells over width")
    plt = _pyplot()
    ops = list(dict.fromkeys((p["device"], p["op"]) for p in parts.values()))
    dtypes = list(dict.fromkeys(p["dtype"] for p in parts.values()))
    keys = [[f"{device}/{op}/{dtype}" for dtype in dtypes] for device, op in ops]
    if len(dtypes) == 1:  # one column of charts would be a tower
        row = [k for (k,) in keys]
        keys = [row[i : i + COLUMNS] for i in range(0, len(row), COLUMNS)]
        keys[-1] += [""] * (len(keys[0]) - len(keys[-1]))
    size = (1.2 + 3.6 * len(keys[0]), 1.0 + 2.7 * len(keys))
    figure, axes = plt.subplots(len(keys), len(keys[0]), figsize=size, squeeze=False, sharey="row")
    shown: dict[str, Any] = {}
    for i, row in enumerate(keys):
        for j, key in enumerate(row):
            panel, part = axes[i][j], parts.get(key)
            if part is None:
                panel.axis("off")
                continue
            _panel(panel, part, shown)
            panel.set_title(f"{part['op']}, {part['dtype']}", fontsize=9)
        axes[i][0].set_ylabel("GB/s")
        axes[i][0].set_ylim(bottom=0)  # for the row, once all its lines are there
    for panel in axes[-1]:
        panel.set_xlabel("width")
    machine = next(iter(parts.values()))["machine"]
    versions = ", ".join(f"{n} {v}" for n, v in machine["versions"].items() if n == "torch")
    title = f"{machine['name']}, {machine['date']}" + (f", {versions}" if versions else "")
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", fontsize=8,
                  ncols=min(len(shown), 3 if len(keys[0]) == 1 else 8), frameon=False)  # fmt: skip
    figure.suptitle(title, fontsize=9, color="0.3")
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(panel: Any, part: dict[str, Any], shown: dict[str, Any]) -> None:
    for name, points in _lines(part).items():
        xs, ys = zip(*points, strict=True)
        if name == "":
            (line,) = panel.plot(xs, ys, "--", color="0.45", linewidth=1.2, zorder=1)
            label = "copy" if part["device"] == "cpu" else STREAMS[part["pattern"]]
        else:
            color, label = OURS if name == "ours" else STYLE.get(name, ("0.6", name))
            width, order = (2.0, 3) if name == "ours" else (1.1, 2)
            (line,) = panel.plot(xs, ys, marker="o", markersize=2.5, color=color, linewidth=width,
                                 zorder=order)  # fmt: skip
        shown.setdefault(label, line)
    panel.set_xscale("log", base=2)
    panel.grid(alpha=0.25, linewidth=0.5)
    panel.tick_params(labelsize=7)
