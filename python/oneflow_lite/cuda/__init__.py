# SPDX-License-Identifier: Apache-2.0
"""CUDA devices: streams, events, graphs, memory.

Everything here can be called on a machine without a GPU: ``is_available()`` is False,
``device_count()`` 0, and what needs a device raises RuntimeError with the reason.

Memory is cached. With ``OFL_NO_CUDA_MEMORY_CACHING=1`` in the environment each tensor's comes from
the driver by itself and goes back to it, for tools such as compute-sanitizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite._oneflow_lite import CUDAGraph, Event, Stream, device
from oneflow_lite.cuda._random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from oneflow_lite.cuda.graphed import graphed_step

__all__ = [
    "amp", "CUDAGraph", "Event", "Stream", "current_device", "current_stream",
    "default_generators", "device_count", "empty_cache", "get_device_name",
    "get_device_properties", "graph", "graphed_step", "is_available",
    "max_memory_allocated", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_peak_memory_stats", "set_device", "stream", "synchronize",
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all",
]  # fmt: skip

_Device = device | str | int | None


def _index(where: _Device) -> int:
    if where is None:
        return _ext.cuda_current_device()
    if isinstance(where, int):
        return where
    where = device(where) if isinstance(where, str) else where
    if not isinstance(where, device):
        raise TypeError(f"a device, a str or an int is needed, not {type(where).__name__}")
    if where.type != "cuda":
        raise ValueError(f"a CUDA device is needed, not {where}")
    return _ext.cuda_current_device() if where.index is None else where.index


def is_available() -> bool:
    """Whether this build has CUDA and the machine a GPU that it can use."""
    return _ext.cuda_is_available()


def device_count() -> int:
    """How many GPUs there are; 0 without CUDA."""
    return _ext.cuda_device_count()


def current_device() -> int:
    """The index that ``device("cuda")`` stands for on this thread."""
    return _ext.cuda_current_device()


def set_device(device: _Device) -> None:
    """Chooses what ``device("cuda")`` stands for on this thread."""
    _ext.cuda_set_device(_index(device))


def synchronize(device: _Device = None) -> None:
    """Waits for all work on a device; RuntimeError where some of it failed."""
    _ext.cuda_synchronize(_index(device))


def get_device_properties(device: _Device = None) -> Any:
    """Name, compute capability, multiprocessors and memory sizes of a device."""
    return _ext.cuda_device_properties(_index(device))


def get_device_name(device: _Device = None) -> str:
    """Such as "NVIDIA H200"."""
    return get_device_properties(device).name


def current_stream(device: _Device = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    return _ext.cuda_current_stream(_index(device))


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A context in which this thread's work goes to ``stream``; None changes nothing.

    It does not wait for the stream that was current, nor does that wait for ``stream``:
    ``wait_stream`` does.
    """
    if stream is None:
        yield
        return
    before = current_stream(stream.device)
    _ext.cuda_set_stream(stream)
    try:
        yield
    finally:
        _ext.cuda_set_stream(before)


@contextmanager
def graph(captured: CUDAGraph, stream: Stream | None = None) -> Iterator[CUDAGraph]:
    """A context whose work is captured instead of run; ``captured.replay()`` runs it.

    A replay repeats what was launched, with the numbers that Python passed, such as the options of
    an optimizer. What a step counts or is to change must be in a tensor: ``Adam(...,
    capturable=True)``, an ``lr`` that is a tensor on the GPU. Random numbers (of dropout too) are
    new ones in each replay, those that the same calls would take from the device's default
    generator; the capture takes none. A generator of one's own cannot be captured. What is copied
    from the host, such as a list of indices, keeps the values of the capture. What needs values on
    the host cannot be captured.

    Parameters
    ----------
    captured : CUDAGraph
        Takes the work and the memory it uses.
    stream : Stream, optional
        Where to capture, by default a new stream of the current GPU.

    Raises
    ------
    RuntimeError
        Nothing was captured: the work went to another stream or GPU.

    Examples
    --------
    >>> g = flow.cuda.CUDAGraph()
    >>> with flow.cuda.graph(g):
    ...     y = flow.softmax(x, 1)
    >>> g.replay()  # y is computed anew from what x holds now
    """
    side = Stream() if stream is None else stream
    synchronize(side.device)
    before = current_stream(side.device)
    _ext.cuda_set_stream(side)
    try:
        captured.capture_begin(side)
        try:
            yield captured
        except BaseException:
            with suppress(RuntimeError):  # of a capture that the error ended
                captured.capture_end()
            raise
        captured.capture_end()
    finally:
        _ext.cuda_set_stream(before)


def memory_stats(device: _Device = None) -> dict[str, int]:
    """What the allocator of a device counts, in bytes."""
    return _ext.memory_stats(_ext.device(f"cuda:{_index(device)}"))


def _counted(where: _Device, name: str) -> int:
    """0 where there is no GPU: a program that only reports it runs there, too."""
    return memory_stats(where)[name] if is_available() else 0


def memory_allocated(device: _Device = None) -> int:
    """Bytes held by tensors; 0 without a GPU."""
    return _counted(device, "allocated")


def max_memory_allocated(device: _Device = None) -> int:
    """The most bytes held by tensors since the start or ``reset_peak_memory_stats``; 0 without a
    GPU.
    """
    return _counted(device, "peak_allocated")


def memory_reserved(device: _Device = None) -> int:
    """Bytes that the allocator has from the driver; 0 without a GPU."""
    return _counted(device, "reserved")


def reset_peak_memory_stats(device: _Device = None) -> None:
    """Starts ``max_memory_allocated`` anew."""
    _ext.reset_peak_memory(_ext.device(f"cuda:{_index(device)}"))


def empty_cache(device: _Device = None) -> None:
    """Gives memory that no tensor holds back to the driver; without a GPU there is none."""
    if is_available():
        _ext.empty_cache(_ext.device(f"cuda:{_index(device)}"))


speak_for_themselves(globals(), __all__)
if TYPE_CHECKING:
    from oneflow_lite.cuda import amp as amp
else:
    _absent, __dir__ = public_face(__name__)

    def __getattr__(name: str) -> Any:
        # It needs the package's amp, which needs this one.
        if name == "amp":
            import importlib

            return importlib.import_module("oneflow_lite.cuda.amp")
        return _absent(name)
