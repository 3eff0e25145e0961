# SPDX-License-Identifier: Apache-2.0
"""Which ops ran, for how long, and how near to the machine's limit.

>>> with flow.profiler.profile() as prof:
...     with flow.profiler.record_function("loss"):
...         loss = loss_fn(model(x), y)
...     loss.backward()
>>> print(prof.table())
>>> prof.export_chrome_trace("step.json")     # for chrome://tracing and ui.perfetto.dev
>>> prof.plot_roofline("step.png")
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite.profiler._limits import MachineLimit, machine_limit
from oneflow_lite.profiler._records import Event, OpStats, Records

__all__ = ["Event", "MachineLimit", "OpStats", "machine_limit", "profile", "record_function"]

_F = TypeVar("_F", bound=Callable[..., Any])


class profile:
    """A context that records every op of its thread, those of backward included.

    Parameters
    ----------
    synchronize : bool
        Wait for the GPU before and after every op, so that its time on the host is the op's own and
        not that of the launch. Slows the run down.
    kernels : bool
        Record each launch on a GPU, with its time there.
    record_shapes : bool
        Keep the inputs' shapes, for the trace.
    limit : MachineLimit, optional
        What the machine can do. Where absent it is measured when first asked for, once per process.

    Notes
    -----
    On the CPU an op's time is that of its pass through the dispatch chain: kernel, output memory
    and the recording for backward. On a GPU it is the time between two events around the op, which
    includes the wait for the host where the GPU has nothing else to do. What a CUDA graph replays
    is no op and is not seen. Profiles nest; one may be entered again and then goes on.
    """

    def __init__(
        self,
        synchronize: bool = False,
        *,
        kernels: bool = False,
        record_shapes: bool = False,
        limit: MachineLimit | None = None,
    ) -> None:
        if limit is not None and not isinstance(limit, MachineLimit):
            raise TypeError(f"profile(): limit must be a MachineLimit, not {type(limit).__name__}")
        self._profiler = _ext.Profiler(
            launches=bool(kernels), shapes=bool(record_shapes), synchronize=bool(synchronize)
        )
        self._limit = limit
        self._seen: Records | None = None

    def __enter__(self) -> profile:
        self._profiler.start()
        self._seen = None
        return self

    def __exit__(self, *_: object) -> None:
        self._profiler.stop()

    def _records(self) -> Records:
        """What was recorded so far; kept until there is more."""
        if self._seen is None or self._profiler.running or self._seen.running:
            self._seen = Records(self._profiler)
        return self._seen

    def _limit_of(self, device: str, dtype: str | None) -> MachineLimit | None:
        if device == "meta":
            return None
        return self._limit or machine_limit(device, dtype or "float32")

    def __repr__(self) -> str:
        found = self._records().stats("op", None)
        calls = sum(s.calls for s in found)
        if not calls:
            return "<profile: no op so far>"
        return f"<profile: {calls} calls, {len(found)} different ops; table() shows them>"

    def events(self) -> list[Event]:
        """Every record, in the order in which they began."""
        return self._records().events()

    def stats(self, kind: str = "op") -> list[OpStats]:
        """One entry per name, the longest time first.

        ``kind``: ``"op"``, ``"backward"`` (nodes of a pass of backward), ``"range"``
        (:class:`record_function`), ``"kernel"`` or ``"collective"`` (of all threads).
        """
        return self._records().stats(kind, None)

    @property
    def launches(self) -> dict[str, int]:
        """How often each op enqueued something on a GPU: a kernel, a copy, a fill, a call of a
        library. What a graph captures is counted when it is captured.
        """
        return {s.name: s.launches for s in self.stats() if s.launches}

    def memory(self, device: str = "cpu") -> list[tuple[float, int]]:
        """Seconds since the first op and bytes that tensors held then, around each op."""
        return self._records().memory(str(device))

    def table(self, kind: str = "op", rows: int | None = None) -> str:
        """The stats as text, with each one's share of the time, its rates, and its share of the
        machine's limit: the least time that the declared bytes and operations take there, by the
        time that it took. Data that lies in a cache may exceed the limit of the memory. Collectives
        have the bytes that this rank sent, and the part of their time in which ops ran beside them.
        """
        from oneflow_lite.profiler._table import table

        limit_of = None if kind == "collective" else self._limit_of
        return table(self._records().stats(kind, limit_of), kind, rows)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events and the memory over time as JSON, for chrome://tracing or Perfetto."""
        from oneflow_lite.profiler._trace import write_trace

        write_trace(self._records(), path)

    def plot_roofline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Draws operations per second over operations per byte of each op, below the machine's
        limit, as a PNG. ``device``: by default the one that worked longest. Needs matplotlib.
        """
        from oneflow_lite.profiler._roofline import draw

        draw(self._records(), self._limit_of, path, device)


class record_function:
    """A range with a name: a context, or a decorator. It appears in every profile of its thread,
    and in what nsys records.

    >>> with flow.profiler.record_function("forward"):
    ...     y = model(x)
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function(): name must be a str, not {type(name).__name__}")
        self.name = name
        self._open: list[_ext.ProfileRange] = []

    def __enter__(self) -> record_function:
        name = self.name.encode(errors="backslashreplace").decode()  # no half of a pair
        self._open.append(_ext.ProfileRange(name))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.pop().end()

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return within  # type: ignore[return-value]


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
