# SPDX-License-Identifier: Apache-2.0
"""The processes, groups of them, and what each is to the others."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import device


class ReduceOp(enum.Enum):
    """How elements of several ranks become one; also by name, as ``"sum"``."""

    SUM = 0
    PRODUCT = 1
    MAX = 2
    MIN = 3
    AVG = 4  # the mean over the ranks: floats only; also by the name "mean"


_OP_NAMES = {op.name.lower(): op for op in ReduceOp} | {
    "prod": ReduceOp.PRODUCT,
    "mean": ReduceOp.AVG,
}


def reduce_op(function: str, op: ReduceOp | str) -> ReduceOp:
    """The operation that a caller of ``function`` means."""
    found = _OP_NAMES.get(op) if isinstance(op, str) else op
    if not isinstance(found, ReduceOp):
        names = ", ".join(repr(name) for name in _OP_NAMES)
        raise ValueError(f"{function}(): op is {op!r}, but must be a ReduceOp or one of {names}")
    return found


def _report_uncaught() -> None:
    """Lets the others hear of the exception that ends this process."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
        try:
            _ext.distributed_report_failure(f"{kind.__name__}: {error}")
        finally:
            before(kind, error, traceback)

    sys.excepthook = hook


_report_uncaught()


def is_available() -> bool:
    """Whether there are collectives at all: always. Engines are looked for when first used."""
    return True


def init(
    *,
    rank: int | None = None,
    world_size: int | None = None,
    local_rank: int | None = None,
    local_world_size: int | None = None,
    master_addr: str | None = None,
    master_port: int | None = None,
    timeout: float | timedelta | None = None,
) -> None:
    """Meets the other processes; without a call, the first collective does.

    What is not given comes from the environment, as launchers set it: ``RANK``, ``WORLD_SIZE``,
    ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE`` (or Open MPI's, PMI's or SLURM's), ``MASTER_ADDR``,
    ``OFL_MASTER_PORT`` (else the port after ``MASTER_PORT``), ``OFL_TIMEOUT``. Where a rank has
    several GPUs in sight, ``"cuda"`` becomes that of its local rank.

    Parameters
    ----------
    rank, world_size : int, optional
        This process among all; 0 of 1 where nothing says otherwise.
    local_rank, local_world_size : int, optional
        This process among those of its machine.
    master_addr, master_port : optional
        Where rank 0 listens.
    timeout : float or timedelta, optional
        Seconds that a collective, or meeting, may take: 300 at first.

    Raises
    ------
    RuntimeError
        The processes have met before, or some do not come in time: the message names them.
    ValueError
        A rank or size that cannot be.
    """
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    _ext.distributed_init(
        rank, world_size, local_rank, local_world_size, master_addr, master_port, seconds
    )
    os.environ.pop("OFL_STORE_FD", None)  # the socket is in use; children must not try it
    if _ext.cuda_is_available() and 1 < _ext.cuda_device_count():
        _ext.cuda_set_device(get_local_rank() % _ext.cuda_device_count())


def world() -> dict[str, Any]:
    """The world, met at need."""
    if not _ext.distributed_is_initialized():
        init()
    return _ext.distributed_world()


def is_initialized() -> bool:
    """Whether the processes have met."""
    return _ext.distributed_is_initialized()


class Group:
    """An ordered list of ranks that communicate; made by ``new_group``.

    In a group, ``src``, ``dst`` and the like are ranks of the world, as in PyTorch; lists of
    tensors are in the order of the group.
    """

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.ranks = ranks
        self._communicators: dict[tuple[str, int], Any] = {}

    @property
    def rank(self) -> int:
        """The place of this process in the list; -1 where it is no member."""
        here = get_rank()
        return self.ranks.index(here) if here in self.ranks else -1

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)

    def __repr__(self) -> str:
        return f"Group(ranks={list(self.ranks)})"

    def communicator(self, kind: str, lane: int = 0) -> Any:
        """The engine's, of "cpu" or "cuda": connected at the first call, of all members.

        Those of different lanes may be used by different threads, in any order.
        """
        if (kind, lane) not in self._communicators:
            world()
            made = _ext.distributed_communicator(kind, list(self.ranks), lane)
            self._communicators[kind, lane] = made
        return self._communicators[kind, lane]

    def place(self, function: str, argument: str, rank: int) -> int:
        """The place of a rank of the world in the list."""
        if rank not in self.ranks:
            raise ValueError(
                f"{function}(): {argument} is {rank}, but must be one of {list(self.ranks)}"
            )
        return self.ranks.index(rank)


_everybody: Group | None = None


def group_of(function: str, group: Group | None) -> Group:
    """The group that a caller means, of which this process must be a member."""
    global _everybody
    if group is None:
        if _everybody is None:
            _everybody = Group(tuple(range(world()["world_size"])))
        return _everybody
    if not isinstance(group, Group):
        raise TypeError(f"{function}(): group is {group!r}, but must come from new_group()")
    if group.rank < 0:
        raise ValueError(
            f"{function}(): this process, rank {get_rank()}, is no member of {list(group.ranks)}"
        )
    return group


def new_group(ranks: Iterable[int] | None = None) -> Group:
    """A group of some ranks of the world, in that order; all where None.

    Costs nothing: members connect at their first collective. Who is no member may call it too.
    """
    size = get_world_size()
    chosen = tuple(range(size)) if ranks is None else tuple(int(r) for r in ranks)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= r < size for r in chosen):
        raise ValueError(
            f"new_group(): ranks are {list(chosen)}, but must be different ones of [0, {size - 1}]"
        )
    return Group(chosen)


def get_rank(group: Group | None = None) -> int:
    """The number of this process, 0 where it is the only one; in a group, its place there."""
    return _ext.distributed_rank() if group is None else group.rank


def get_world_size(group: Group | None = None) -> int:
    """The number of processes, or of members of a group."""
    return _ext.distributed_world_size() if group is None else group.size


def get_local_rank() -> int:
    """The number of this process among those of its machine."""
    return _ext.distributed_local_rank()


def host_device() -> device:
    """Where what is on the host travels from: a GPU, for NCCL, in a build without Gloo."""
    gloo = Path(_ext.__file__).parent / "lib" / "liboneflow_lite_gloo.so"
    there = gloo.exists() or bool(os.environ.get("OFL_GLOO_LIBRARY"))
    return device("cpu") if there else get_device()


def get_device() -> device:
    """The rank's own: the GPU of its local rank, or the CPU where there are none."""
    count = _ext.cuda_device_count() if _ext.cuda_is_available() else 0
    return device(f"cuda:{get_local_rank() % count}") if count else device("cpu")
