# SPDX-License-Identifier: Apache-2.0
"""What belongs to the whole process: the generators and the threads."""

from __future__ import annotations

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._named_errors import named
from oneflow_lite._oneflow_lite import Generator
from oneflow_lite._oneflow_lite import device as _device


@named
def default_generator(device: _device | str | int = "cpu") -> Generator:
    """The generator that random functions use on a device."""
    return _ext.default_generator(device)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; gives the CPU's."""
    return _ext.manual_seed(seed)


def get_num_threads() -> int:
    """How many threads a kernel on the CPU uses at most."""
    return _ext.get_num_threads()


def set_num_threads(n: int) -> None:
    """Let kernels on the CPU use so many threads."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"set_num_threads(): argument 'n' must be int, not {type(n).__name__}")
    _ext.set_num_threads(n)
