# SPDX-License-Identifier: Apache-2.0
"""What belongs to the whole process: the generators, the threads, the choice of kernels."""

from __future__ import annotations

import operator
import os
import warnings

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Generator
from oneflow_lite._signature import check_flag

# The CPU's, as in PyTorch; those of the GPUs are cuda.default_generators.
default_generator: Generator = _ext.default_generator("cpu")


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; gives the CPU's."""
    return _ext.manual_seed(seed)


def get_num_threads() -> int:
    """How many threads a kernel on the CPU uses at most."""
    return _ext.get_num_threads()


def set_num_threads(n: int) -> None:
    """Let kernels on the CPU use so many threads.

    Where the system does not start as many (``ulimit -u``, the ``pids.max`` of a container, no
    memory for their stacks), a RuntimeWarning says how many are used instead. If it refuses some
    later, fewer are used from then on, and a line on stderr says how many.

    Parameters
    ----------
    n : int
        From 1 to 1024. More than there are cores rarely helps.

    Raises
    ------
    TypeError
        ``n`` is no int.
    ValueError
        ``n`` is not from 1 to 1024.
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"set_num_threads(): argument 'n' must be int, not {type(n).__name__}")
    n = operator.index(n)
    most = _ext.max_num_threads
    if not 1 <= n <= most:
        raise ValueError(f"set_num_threads(): argument 'n' must be from 1 to {most}, not {n}")
    granted = _ext.set_num_threads(n)
    if granted < n:
        warnings.warn(
            f"set_num_threads(): the system starts no {n} threads for this process; "
            f"{granted} are used",
            RuntimeWarning,
            stacklevel=2,
        )


deterministic_by_switch = False  # whether backends.cudnn.deterministic asked for it last


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let no kernel run that may give other bits the second time.

    All are so but one: the gradient of attention in float16 and bfloat16 on CUDA, which cuDNN adds
    up in any order. Its deterministic kernel is slower, and needs a workspace of batch x heads x
    queries x keys x 2 bytes; more than 8 GiB is refused with a RuntimeError.

    Parameters
    ----------
    mode : bool
        Whether; at first it is False.
    warn_only : bool
        Taken for PyTorch's sake; there is nothing to warn of.
    """
    check_flag("use_deterministic_algorithms", "mode", mode)
    check_flag("use_deterministic_algorithms", "warn_only", warn_only)
    global deterministic_by_switch
    deterministic_by_switch = False
    _ext.set_deterministic_algorithms(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether :func:`use_deterministic_algorithms` asked for it."""
    return _ext.deterministic_algorithms()


def _warn_of_environment() -> None:
    """RuntimeWarning where OMP_NUM_THREADS is more than is used."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > _ext.max_num_threads:
        warnings.warn(
            f"OMP_NUM_THREADS={first}: at most {_ext.max_num_threads} threads are used",
            RuntimeWarning,
            stacklevel=2,
        )


_warn_of_environment()
