# SPDX-License-Identifier: Apache-2.0
"""Stats as text."""

from __future__ import annotations

from oneflow_lite.profiler._records import OpStats


def table(stats: list[OpStats], kind: str, rows: int | None) -> str:
    if rows is not None and rows < 0:
        raise ValueError(f"profile.table(): rows must be at least 0, not {rows}")
    if kind == "collective":
        return _collectives(stats, rows)
    total = sum(s.time for s in stats) or 1.0
    on_gpu = any(s.device_seconds or s.launches for s in stats)
    head = [kind, "calls", "total ms", "us/call", "share", "GB/s", "TFLOP/s", "of limit"]
    if on_gpu:
        head += ["host ms", "launches"]
    body = [_row(s, total, on_gpu) for s in stats[:rows]]
    if len(stats) > len(body):
        rest = stats[len(body) :]
        left = sum(s.time for s in rest)
        body.append([f"and {len(rest)} more", str(sum(s.calls for s in rest)), f"{left * 1e3:.3f}",
                     "", f"{left / total:.1%}"])  # fmt: skip
    return _columns([head, *body])


def _columns(lines: list[list[str]]) -> str:
    width = max(len(line[0]) for line in lines)
    return "\n".join(
        (f"{line[0]:<{width}}" + "".join(f"{cell:>11}" for cell in line[1:])).rstrip()
        for line in lines
    )


def _collectives(stats: list[OpStats], rows: int | None) -> str:
    """What was sent, how fast, and which part of the time ops ran beside it."""
    total = sum(s.time for s in stats) or 1.0
    body = [
        [s.name, str(s.calls), f"{s.time * 1e3:.3f}", f"{s.time / s.calls * 1e6:.2f}",
         f"{s.time / total:.1%}", f"{s.bytes / 1e6:.3f}", _rate(s.bytes, s.busy_seconds, 1e9),
         f"{s.overlapped_seconds / s.busy_seconds:.1%}" if s.busy_seconds > 0 else "-"]
        for s in stats[:rows]
    ]  # fmt: skip
    if len(stats) > len(body):
        rest = stats[len(body) :]
        body.append([f"and {len(rest)} more", str(sum(s.calls for s in rest))])
    head = ["collective", "calls", "total ms", "us/call", "share", "MB sent", "GB/s", "overlapped"]
    return _columns([head, *body])


def _row(s: OpStats, total: float, on_gpu: bool) -> list[str]:
    of_limit = f"{s.limit_seconds / s.busy_seconds:.1%}" if s.limit_seconds else "-"
    cells = [
        s.name, str(s.calls), f"{s.time * 1e3:.3f}", f"{s.time / s.calls * 1e6:.2f}",
        f"{s.time / total:.1%}", _rate(s.bytes, s.busy_seconds, 1e9),
        _rate(s.flops, s.busy_seconds, 1e12), of_limit if s.busy_seconds > 0 else "-",
    ]  # fmt: skip
    return cells + ([f"{s.seconds * 1e3:.3f}", str(s.launches)] if on_gpu else [])


def _rate(amount: float, seconds: float, unit: float) -> str:
    """Three digits; nothing where there is nothing."""
    if seconds <= 0 or amount <= 0:
        return "-"
    rate = amount / seconds / unit
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}" if rate >= 1e-3 else f"{rate:.1e}"
