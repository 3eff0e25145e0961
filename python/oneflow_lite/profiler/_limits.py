# SPDX-License-Identifier: Apache-2.0
"""What a machine can do at most: bytes through its memory, operations in products of matrices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_BYTES = {"cpu": 1 << 27, "cuda": 1 << 30}  # of a copy, beyond all caches
_SIZE = {"cpu": 1024, "cuda": 8192}  # of square matrices
_TIMES = 5  # of which the fastest counts


class MachineLimit(NamedTuple):
    """Of one device and one dtype."""

    bytes_per_second: float
    flops_per_second: float


_known: dict[tuple[str, str], float] = {}
_lock = threading.Lock()


def machine_limit(device: Any = "cpu", dtype: Any = "float32") -> MachineLimit:
    """The rate of a large copy, and that of a product of two large matrices of a dtype.

    Measured at the first call for a device and dtype (0.2 s on a CPU), then remembered.
    """
    import oneflow_lite as flow

    place = flow.device(device) if isinstance(device, str) else device
    given = getattr(flow, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(given, flow.dtype) or not given.is_floating_point:
        raise ValueError(f"machine_limit(): dtype must be a floating dtype, not {dtype!r}")
    if not isinstance(place, flow.device) or place.type not in _BYTES:
        raise ValueError(f"machine_limit(): device must be a CPU or a GPU, not {str(place)!r}")
    name = str(given).split(".")[-1]
    with _lock:
        for key, measure in (((str(place), "copy"), _copy), ((str(place), name), _product)):
            if key not in _known:
                _known[key] = _aside(lambda: measure(flow, place, given))  # noqa: B023
        return MachineLimit(_known[str(place), "copy"], _known[str(place), name])


def _aside(measure: Callable[[], float]) -> float:
    """In a thread of its own, which no profile sees and where no mode is set."""
    found: list[float] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(measure())
        except BaseException as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _copy(flow: Any, device: Any, _: Any) -> float:
    size = _BYTES[device.type]
    x = flow.ones(size // 4, device=device)
    y = flow.zeros(size // 4, device=device)
    return 2 * size / _fastest(flow, device, lambda: y.copy_(x))


def _product(flow: Any, device: Any, dtype: Any) -> float:
    n = _SIZE[device.type]
    x = flow.full((n, n), 1 / n, device=device).to(dtype)
    return 2 * n**3 / _fastest(flow, device, lambda: flow.matmul(x, x))


def _fastest(flow: Any, device: Any, run: Callable[[], Any]) -> float:
    def wait() -> None:
        if device.type == "cuda":
            flow.cuda.synchronize(device)

    best = float("inf")
    for _ in range(1 + _TIMES):  # the first one warms up
        wait()
        start = time.perf_counter()
        run()
        wait()
        best = min(best, time.perf_counter() - start)
    return best
