# SPDX-License-Identifier: Apache-2.0
"""Which rows each of several processes takes."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sized
from typing import Any

from oneflow_lite import _oneflow_lite as _ext

_C = _ext._C


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"DistributedSampler(): {name} must be an int, not {value!r}") from None


class DistributedSampler:
    """The places of a data set's elements that this rank takes, in the order of an epoch.

    All ranks take equally many. The order is the same on all ranks, of which rank r takes elements
    r, r + ranks, r + 2 ranks and so on. Where they do not divide, the first are taken again at the
    end, or with ``drop_last`` the last are left out.

    Parameters
    ----------
    dataset : object with a length
        Its elements are not looked at.
    num_replicas, rank : int, optional
        How many ranks, and which is this one; those of ``flow.distributed`` where None.
    shuffle : bool
        Draws the order of each epoch anew.
    seed : int
        The same on all ranks.
    drop_last : bool
        Leave out what does not divide.

    Raises
    ------
    ValueError
        A rank or a number of them that cannot be.

    Examples
    --------
    >>> sampler = flow.utils.data.DistributedSampler(images, seed=1)
    >>> for epoch in range(10):
    ...     sampler.set_epoch(epoch)
    ...     for x, y in flow.utils.data.batches(images, labels, size=64, sampler=sampler):
    ...         loss = loss_fn(model(x), y)
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        size = _ext.distributed_world_size() if num_replicas is None else num_replicas
        place = _ext.distributed_rank() if rank is None else rank
        self.num_replicas, self.rank = _whole("num_replicas", size), _whole("rank", place)
        if self.num_replicas < 1 or not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"DistributedSampler(): rank is {self.rank} of {self.num_replicas}, "
                             f"but must be in [0, {max(self.num_replicas - 1, 0)}]")  # fmt: skip
        self.dataset, self.shuffle, self.drop_last = dataset, shuffle, drop_last
        self.seed, self.epoch = _whole("seed", seed), 0
        self._count = len(dataset)
        more = 0 if drop_last else self.num_replicas - 1
        self.num_samples = (self._count + more) // self.num_replicas
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            generator = _ext.Generator().manual_seed((self.seed + self.epoch) % 2**64)
            order = _C.randperm(self._count, generator=generator).tolist()
        else:
            order = list(range(self._count))
        if self.total_size > self._count:
            order = (order * -(-self.total_size // self._count))[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Another order for each epoch; all ranks set the same."""
        self.epoch = _whole("epoch", epoch)
