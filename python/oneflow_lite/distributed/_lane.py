# SPDX-License-Identifier: Apache-2.0
"""Collectives that run beside the computation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from oneflow_lite import cuda
from oneflow_lite.distributed._world import Group

if TYPE_CHECKING:
    from oneflow_lite import device

_BESIDE = 1  # the lane of communicators whose collectives are not in the order of all others


class Lane:
    """Runs collectives in the order in which they are submitted, beside what the caller computes.

    On the CPU that is a thread, with connections of its own; on CUDA a stream. There is one lane
    for each list of ranks and device.
    """

    _made: dict[tuple[tuple[int, ...], device], Lane] = {}  # noqa: RUF012

    def __init__(self, group: Group, where: device) -> None:
        self._communicator = group.communicator(where.type, 0 if where.type == "cuda" else _BESIDE)
        self._stream = cuda.Stream(where) if where.type == "cuda" else None
        self._thread = ThreadPoolExecutor(1, "oneflow_lite-collectives")

    @classmethod
    def of(cls, group: Group, where: device) -> Lane:
        """The lane of a group on a device; all members make the first call alike."""
        if (group.ranks, where) not in cls._made:
            cls._made[group.ranks, where] = cls(group, where)
        return cls._made[group.ranks, where]

    def submit(self, work: Callable[[Any], None]) -> Future[None] | None:
        """Lets ``work(communicator)`` run, after what the caller's stream was given so far.

        Its tensors must live until ``wait``, to which the result is given.
        """
        if self._stream is None:
            return self._thread.submit(work, self._communicator)
        self._stream.wait_stream(cuda.current_stream(self._stream.device))
        with cuda.stream(self._stream):
            work(self._communicator)
        return None

    def wait(self, submitted: list[Future[None] | None]) -> None:
        """Waits for works, or lets the caller's stream wait; raises what one of them raised."""
        if self._stream is not None:
            cuda.current_stream(self._stream.device).wait_stream(self._stream)
        for future in submitted:
            if future is not None:
                future.result()
