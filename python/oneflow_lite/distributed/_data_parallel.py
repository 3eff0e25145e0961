# SPDX-License-Identifier: Apache-2.0
"""One model on many ranks, each with batches of its own."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.distributed._buckets import Reducer
from oneflow_lite.distributed._collectives import all_gather_object, all_reduce, broadcast
from oneflow_lite.distributed._world import Group, group_of
from oneflow_lite.nn.module import Module

if TYPE_CHECKING:
    from oneflow_lite import Tensor

_C = _ext._C
_NAME = "DataParallel()"
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: ranks' seeds lie far apart


def _describe(module: Module) -> dict[str, str]:
    """What must be alike on all ranks, by name."""
    first: dict[int, str] = {}
    found = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        text = f"{p.dtype.name} of shape {list(p.shape)}{'' if p.requires_grad else ', frozen'}"
        if id(p) in first:
            text += f", shared with {first[id(p)]!r}"
        first.setdefault(id(p), name)
        found[f"parameter {name!r}"] = text
    for name, b in module.named_buffers():
        found[f"buffer {name!r}"] = f"{b.dtype.name} of shape {list(b.shape)}"
    return found


def _check_alike(mine: dict[str, str], group: Group) -> None:
    """The same error on every rank where models differ."""
    all_of_them: list[Any] = [None] * group.size
    all_gather_object(all_of_them, mine, group)
    one, base = group.ranks[0], all_of_them[0]
    differences = []
    for rank, other in zip(group.ranks[1:], all_of_them[1:], strict=True):
        for name in dict.fromkeys([*base, *other]):
            a, b = base.get(name, "absent"), other.get(name, "absent")
            if a != b:
                differences.append(f"{name} is {a} on rank {one}, but {b} on rank {rank}")
        if not differences and list(base) != list(other):
            differences.append(f"the parameters of ranks {one} and {rank} are in another order")
    if differences:
        more = f"; {len(differences) - 5} more differ" if len(differences) > 5 else ""
        raise ValueError(f"{_NAME}: the models of the ranks differ: "
                         + "; ".join(differences[:5]) + more)  # fmt: skip


def _check(module: Any, bucket_mb: float) -> list[tuple[str, Tensor]]:
    """The parameters that learn."""
    if not isinstance(module, Module):
        raise TypeError(f"{_NAME}: module must be an nn.Module, not {type(module).__name__}")
    if not isinstance(bucket_mb, int | float) or not bucket_mb >= 0:
        raise ValueError(f"{_NAME}: bucket_mb is {bucket_mb!r}, but must be a number of 0 or more")
    for name, x in (*module.named_parameters(), *module.named_buffers()):
        if x.is_global or x.is_meta:
            kind = "global" if x.is_global else "a meta tensor"
            raise ValueError(f"{_NAME}: {name!r} is {kind}, but must be local, with values")
    learning = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    if not learning:
        raise ValueError(f"{_NAME}: no parameter of {type(module).__name__} requires a gradient")
    return learning


_reducers: weakref.WeakSet[Reducer] = weakref.WeakSet()


def reducer_of(p: Tensor) -> Reducer | None:
    """What reduces the gradient of a parameter, if anything does."""
    return next((r for r in _reducers if r.has(p)), None)


class DataParallel(Module):
    """A module whose gradients are the mean over the ranks, each of which has its own batch.

    After construction the parameters and buffers are those of the group's first rank, everywhere.
    In each backward the gradients are reduced in buckets, beside the computation of the others.
    When backward returns, every rank has the same ``.grad``, to the bit; a parameter without a
    gradient on any rank has none. All ranks call backward alike.

    The wrapped module is ``.module``; its methods may be called directly. ``state_dict`` and
    ``load_state_dict`` are those of the module: names have no prefix.

    Parameters
    ----------
    module : nn.Module
        With local parameters, on the device of this rank, alike on all ranks but for values.
    bucket_mb : float
        Megabytes (2^20 bytes) of gradients in one collective; a larger parameter goes by itself,
        without a copy. 0: each by itself.
    group : Group, optional
        The ranks; all where None.
    per_rank_seed : bool
        Moves the default generators to another sequence on each rank but the first, so that
        dropout differs. A later ``flow.manual_seed`` makes ranks draw alike again.

    Raises
    ------
    ValueError
        Parameters that differ between ranks, by name, on every rank; global or meta tensors;
        nothing to learn.

    Examples
    --------
    >>> model = flow.distributed.DataParallel(model)
    >>> loss = cross_entropy(model(x), y)   # of the rows of this rank
    >>> loss.backward()                     # gradients of the mean over all rows
    """

    def __init__(
        self,
        module: Module,
        bucket_mb: float = 25.0,
        group: Group | None = None,
        *,
        per_rank_seed: bool = True,
    ) -> None:
        super().__init__()
        learning = _check(module, bucket_mb)
        members = group_of("DataParallel", group)
        _check_alike({"bucket_mb": str(float(bucket_mb)), **_describe(module)}, members)
        self.module = module
        for x in (*module.parameters(), *module.buffers()):
            broadcast(x, members.ranks[0], members)
        self._reducer = Reducer(dict(learning), bucket_mb * 2**20, members)
        _reducers.add(self._reducer)
        if per_rank_seed:
            for where in {_ext.device("cpu"), *(p.device for _, p in learning)}:
                generator = _ext.default_generator(where)
                seed, offset = generator._get_state()
                moved = (seed + members.rank * _GOLDEN) % 2**64
                generator._set_state((moved, offset))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context whose backwards leave gradients as they are: of this rank alone.

        The next backward outside of it reduces all that has come together.
        """
        before, self._reducer.enabled = self._reducer.enabled, False
        try:
            yield
        finally:
            self._reducer.enabled = before

    def state_dict(
        self,
        prefix: str = "",
        keep_vars: bool = False,
        *,
        destination: dict[str, Any] | None = None,
    ) -> dict[str, Tensor]:
        """That of the module, whose names have no prefix."""
        if prefix:  # inside of another module
            return super().state_dict(prefix, keep_vars, destination=destination)
        return self.module.state_dict("", keep_vars, destination=destination)

    def load_state_dict(
        self, state_dict: dict[str, Tensor], strict: bool = True, assign: bool = False
    ) -> Any:
        """That of the module; every rank loads the same."""
        if assign:
            raise ValueError("DataParallel.load_state_dict(): assign=True would take the parameters"
                             " away whose gradients are reduced; load before wrapping")  # fmt: skip
        return self.module.load_state_dict(state_dict, strict)

    def __getstate__(self) -> Any:
        raise TypeError("DataParallel: it cannot be copied or pickled; take its .module")


def global_mean(total: Tensor, count: float | Tensor, group: Group | None = None) -> Tensor:
    """The share that this rank has in a mean over the elements of all ranks.

    Where ranks have batches of different sizes, the mean of their means is not the mean over all
    rows. ``global_mean(sum of the losses here, how many here)`` gives ``total * ranks / counts of
    all``: the mean over ranks of these, which is what DataParallel makes of gradients, is the mean
    over all elements. A collective: all ranks call it.

    Parameters
    ----------
    total : Tensor
        The sum over the elements of this rank, floating.
    count : number or Tensor
        How many they are; 0 is allowed.
    group : Group, optional
        As that of DataParallel.

    Examples
    --------
    >>> total = F.cross_entropy(model(x), y, ignore_index=-100, reduction="sum")
    >>> loss = flow.distributed.global_mean(total, (y != -100).sum())
    """
    members = group_of("global_mean", group)
    if isinstance(count, _ext.Tensor):
        counts = count.detach().to(total.device, _ext.float64).clone()
    else:
        counts = _C.full([], float(count), dtype=_ext.float64, device=total.device)
    all_reduce(counts, group=members)
    return total * (members.size / counts).to(None, total.dtype)
