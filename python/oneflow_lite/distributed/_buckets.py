# SPDX-License-Identifier: Apache-2.0
"""Gradients of a model, reduced over ranks while backward still computes others."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.distributed._lane import Lane
from oneflow_lite.distributed._world import Group, ReduceOp

if TYPE_CHECKING:
    from oneflow_lite import Tensor

_C = _ext._C
_MEAN = ReduceOp.AVG.value


class Bucket:
    """Parameters of one dtype and device whose gradients go in one collective."""

    def __init__(self, first: Tensor) -> None:
        self.dtype, self.device = first.dtype, first.device
        self.params: list[Tensor] = []
        self.nbytes = 0

    def add(self, p: Tensor) -> None:
        self.params.append(p)
        self.nbytes += p.numel() * p.element_size()

    def flags(self) -> Tensor:
        """For each parameter whether it has a gradient here: 1 or 0, in the bucket's dtype."""
        given = [p.grad is not None for p in self.params]
        if all(given):  # the usual case, without a copy from the host
            return _C.ones([len(given)], dtype=self.dtype, device=self.device)
        return _ext.tensor(given).to(self.device, self.dtype)

    def gradients(self) -> list[Tensor]:
        """Those of the parameters, flat; zeros where there is none."""
        return [
            _C.zeros([p.numel()], dtype=self.dtype, device=self.device)
            if p.grad is None
            else p.grad.detach().reshape(-1)
            for p in self.params
        ]


def buckets_of(params: Sequence[Tensor], capacity: float) -> list[Bucket]:
    """The last parameters first, whose gradients come first; so many bytes, or one parameter."""
    buckets: list[Bucket] = []
    filling: dict[Any, Bucket] = {}
    for p in reversed(params):
        kind = p.dtype, p.device
        bucket = filling.get(kind)
        if bucket is None or bucket.nbytes + p.numel() * p.element_size() > capacity:
            bucket = filling[kind] = Bucket(p)
            buckets.append(bucket)
        bucket.add(p)
    return buckets


class _AllReduce:
    """One bucket on its way: every rank gets the mean, in ``.grad``.

    Gradients are reduced where they lie, with the flags beside them, where one launch takes many
    blocks, as on CUDA, or where there is only one. Else they are copied into one block, with the
    flags behind them.
    """

    def __init__(self, bucket: Bucket, _: Group) -> None:
        self._params = bucket.params
        self._missing = [i for i, p in enumerate(bucket.params) if p.grad is None]
        self._flags = bucket.flags()
        if len(bucket.params) == 1 or bucket.device.type == "cuda":
            self._parts = [_own_gradient(p) for p in bucket.params]
            self._blocks = [*self._parts, self._flags]
        else:
            flat = _C.cat([*bucket.gradients(), self._flags])
            begin = 0
            self._parts = []
            for p in bucket.params:
                self._parts.append(flat[begin : begin + p.numel()].view(p.shape))
                begin += p.numel()
            self._flags = flat[begin:]
            self._blocks = [flat]
        for p, part in zip(bucket.params, self._parts, strict=True):
            if p.grad is not None:
                p.grad = part  # what it was is not kept any longer

    def run(self, communicator: Any) -> None:
        communicator.all_reduce_together(self._blocks, _MEAN)

    def end(self) -> None:
        if self._missing:
            had = (self._flags > 0).tolist()
            for i in self._missing:
                if had[i]:
                    self._params[i].grad = self._parts[i]


def _own_gradient(p: Tensor) -> Tensor:
    """The gradient of a parameter, dense, in memory that nobody else looks at."""
    if p.grad is None:
        return _C.zeros(p.shape, dtype=p.dtype, device=p.device)
    if _ext._has_grad_of_its_own(p):
        return p.grad
    return _C.cat([p.grad.detach().reshape(-1)]).view(p.shape)


class Reducer:
    """Hooks on parameters that reduce their gradients as buckets of them become full.

    Buckets go in their order, which is the same on all ranks: one whose gradients are there early,
    because of parameters that took no part, waits for those before it. The rest goes when backward
    has ended, which then waits for all.

    ``travel(bucket, group)`` makes what becomes of a bucket: an object with ``run(communicator)``
    and ``end()``.
    """

    def __init__(self, names: dict[str, Tensor], capacity: float, group: Group) -> None:
        self.group = group
        self.params = list(names.values())
        self.buckets = buckets_of(self.params, capacity)
        self.travel: Callable[[Bucket, Group], Any] = _AllReduce
        self.enabled = True
        self._names = {id(p): name for name, p in names.items()}
        self._bucket_of = {id(p): i for i, b in enumerate(self.buckets) for p in b.params}
        self._lanes = [Lane.of(group, b.device) for b in self.buckets]
        self._reset()
        me = weakref.ref(self)
        for p in self.params:
            p.register_post_accumulate_grad_hook(_hook(me, id(p)))

    def has(self, p: Tensor) -> bool:
        """Whether the gradient of a parameter is reduced here."""
        return id(p) in self._bucket_of  # which lives, as one of params

    def named(self) -> list[tuple[Tensor, str]]:
        """The parameters and their names."""
        return [(p, self._names[id(p)]) for p in self.params]

    def _reset(self) -> None:
        self._running = False
        self._next = 0
        self._seen: set[int] = set()
        self._left = [len(b.params) for b in self.buckets]
        self._travels: list[tuple[Any, Lane, Future[None] | None]] = []

    def ready(self, number: int) -> None:
        """The gradient of a parameter is there."""
        if not self.enabled:
            return
        if not self._running:
            _ext.after_backward(self._finish)
            self._running = True
        if number in self._seen:
            raise RuntimeError(
                f"DataParallel: the gradient of {self._names[number]!r} came twice in one backward,"
                " from a backward inside it; use no_sync() around it and reduce afterwards"
            )
        self._seen.add(number)
        self._left[self._bucket_of[number]] -= 1
        while self._next < len(self.buckets) and not self._left[self._next]:
            self._launch()

    def _launch(self) -> None:
        lane = self._lanes[self._next]
        with no_grad():
            travel = self.travel(self.buckets[self._next], self.group)
            self._travels.append((travel, lane, lane.submit(travel.run)))
        self._next += 1

    def _finish(self, ok: bool) -> None:
        try:
            while ok and self._next < len(self.buckets):
                self._launch()
            for lane in dict.fromkeys(self._lanes) if ok else ():
                lane.wait([future for _, of, future in self._travels if of is lane])
            with no_grad():
                for travel, _, _ in self._travels if ok else ():
                    travel.end()
        finally:
            self._reset()


def _hook(reducer: weakref.ref[Reducer], number: int) -> Callable[[Tensor], None]:
    def ready(_: Tensor) -> None:
        alive = reducer()
        if alive is not None:
            alive.ready(number)

    return ready
