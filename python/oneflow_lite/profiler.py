# SPDX-License-Identifier: Apache-2.0
"""Which ops ran, how often and for how long, seen from the dispatch chain.

>>> with flow.profiler.profile() as p:
...     loss_fn(model(x), y).backward()
>>> print(p.table())
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face

__all__ = ["OpStats", "profile"]


class OpStats(NamedTuple):
    """All calls of one op: seconds, and the bytes and operations that they need at least."""

    name: str
    calls: int
    seconds: float
    bytes: float
    flops: float


class profile:
    """A context that observes every op of this thread, those of backward included.

    Parameters
    ----------
    synchronize : bool
        Wait for the GPU before and after every op, so that its time is the op's own and not that of
        the launch. Slows the run down.

    Notes
    -----
    An op's time is that of its pass through the dispatch chain on the host's clock: kernel, output
    memory and the recording for backward.
    """

    def __init__(self, synchronize: bool = False) -> None:
        self._synchronize = synchronize and _ext.cuda_is_available()
        self._stats: dict[str, list] = {}

    def __enter__(self) -> profile:
        _ext.push_observer(self._observe)
        return self

    def __exit__(self, *_: object) -> None:
        _ext.pop_observer()

    def _observe(self, name: str, run: Callable[[], dict[str, Any]]) -> None:
        if self._synchronize:
            _ext.cuda_synchronize()
        start = time.perf_counter()
        seen = run()
        seconds = seen["seconds"]
        if self._synchronize:
            _ext.cuda_synchronize()
            seconds = time.perf_counter() - start
        entry = self._stats.setdefault(name, [0, 0.0, 0.0, 0.0])
        for i, amount in enumerate((1, seconds, seen["bytes"], seen["flops"])):
            entry[i] += amount

    def __repr__(self) -> str:
        calls = sum(int(entry[0]) for entry in self._stats.values())
        if not calls:
            return "<profile: no op so far>"
        return f"<profile: {calls} calls, {len(self._stats)} different ops; table() shows them>"

    def stats(self) -> list[OpStats]:
        """One entry per op, the longest time first."""
        found = [OpStats(name, *entry) for name, entry in self._stats.items()]
        return sorted(found, key=lambda s: -s.seconds)

    def table(self) -> str:
        """The same as text, with each op's share of the time and its rates."""
        stats = self.stats()
        total = sum(s.seconds for s in stats) or 1.0
        width = max([len("op"), *(len(s.name) for s in stats)])
        head = ("calls", "total ms", "us/call", "share", "GB/s", "GFLOP/s")
        rows = [
            (f"{s.calls}", f"{s.seconds * 1e3:.3f}", f"{s.seconds / s.calls * 1e6:.2f}",
             f"{s.seconds / total:.1%}", _rate(s.bytes, s.seconds), _rate(s.flops, s.seconds))
            for s in stats
        ]  # fmt: skip
        names = ["op", *(s.name for s in stats)]
        return "\n".join(
            f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells)
            for name, cells in zip(names, [head, *rows], strict=True)
        )


def _rate(amount: float, seconds: float) -> str:
    return f"{amount / seconds / 1e9:.2f}" if seconds > 0 else "-"


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
