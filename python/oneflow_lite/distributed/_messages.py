# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oneflow_lite.distributed._operands import check_local
from oneflow_lite.distributed._world import Group, get_rank, group_of
from oneflow_lite.distributed._world import world as _world

if TYPE_CHECKING:
    from oneflow_lite import Tensor


class _Batch:
    """The messages of one ``batch``: kept alive until they have gone, put in place after that."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.communicator: Any = None
        self.kept: list[Tensor] = []
        self.arriving: list[tuple[Tensor, Tensor]] = []


_thread = threading.local()


def _open_batch() -> _Batch | None:
    """The batch that this thread is in."""
    return getattr(_thread, "batch", None)


@contextmanager
def batch(group: Group | None = None) -> Iterator[None]:
    """A context in which ``send`` and ``recv`` are noted; all go at once at its end.

    So ranks that send to each other cannot wait for each other. Tensors received are there after
    the context. All messages are between members of ``group``. An exception leaves the context at
    once, and nothing is sent. It is this thread's: what others send meanwhile goes at once.
    """
    if _open_batch():
        raise RuntimeError("batch(): batches do not nest")
    here = _Batch(group_of("batch", group))
    _thread.batch = here
    try:
        yield
    except BaseException:
        _thread.batch = None
        if here.communicator is not None:
            here.communicator.group_drop()
        raise
    _thread.batch = None
    if here.communicator is not None:
        here.communicator.group_end()
    for tensor, dense in here.arriving:
        tensor.copy_(dense)


def _channel(function: str, argument: str, tensor: Tensor, peer: int, group: Group | None) -> Any:
    """A communicator with the peer, and the peer's place in it."""
    kind = tensor.device.type
    here = _open_batch()
    if here:
        place = here.group.place(function, argument, peer)
        if here.communicator is None:
            here.communicator = here.group.communicator(kind)
            here.communicator.group_begin()
        return here.communicator, place
    group_of(function, group).place(function, argument, peer)
    mine = get_rank()
    if peer == mine:
        raise ValueError(f"{function}(): {argument} is this rank itself, {peer}; in batch() alone")
    # The two of them alone: nobody else need call anything.
    pair = _pairs.setdefault(peer, Group((min(mine, peer), max(mine, peer))))
    return pair.communicator(kind), pair.ranks.index(peer)


_pairs: dict[int, Group] = {}


def send(tensor: Tensor, dst: int, group: Group | None = None) -> None:
    """Sends a tensor to rank ``dst``, which calls ``recv`` for one of that size and dtype.

    May wait until it does: see ``batch`` for ranks that send to each other.
    """
    _world()
    check_local("send", "tensor", tensor)
    dense = tensor.detach().contiguous()
    communicator, place = _channel("send", "dst", tensor, dst, group)
    if here := _open_batch():
        here.kept.append(dense)
    communicator.send(dense, place)


def recv(tensor: Tensor, src: int, group: Group | None = None) -> None:
    """Waits for a tensor from rank ``src`` and writes it into ``tensor``."""
    _world()
    check_local("recv", "tensor", tensor)
    target = tensor.detach()
    dense = target if target.is_contiguous() else target.clone().contiguous()
    communicator, place = _channel("recv", "src", tensor, src, group)
    here = _open_batch()
    if here:
        here.kept.append(dense)
    communicator.recv(dense, place)
    if dense is not target:
        if here:
            here.arriving.append((target, dense))
        else:
            target.copy_(dense)
