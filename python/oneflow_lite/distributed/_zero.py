# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose state is split over ranks (ZeRO: Rajbhandari and others, 2020)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.autograd._grad_mode import enable_grad, no_grad
from oneflow_lite.distributed._buckets import Bucket, buckets_of
from oneflow_lite.distributed._data_parallel import reducer_of
from oneflow_lite.distributed._world import Group, ReduceOp, group_of
from oneflow_lite.optim._gradients import add_source
from oneflow_lite.optim._hooks import within
from oneflow_lite.optim._multi_tensor import MultiTensorOptimizer
from oneflow_lite.optim.optimizer import Optimizer, is_state, note_graphed
from oneflow_lite.sbp import broadcast as _whole
from oneflow_lite.sbp import split

if TYPE_CHECKING:
    from oneflow_lite import Tensor, placement

_C = _ext._C
_NAME = "ZeroOptimizer()"
_MEAN = ReduceOp.AVG.value
_BUCKET = 25 * 2**20  # bytes of parameters that are gathered at once


def _ranges(count: int, size: int) -> list[tuple[int, int]]:
    """Begin and end of each rank's part, as even as can be, the first parts larger."""
    ends = [(count // size) * (i + 1) + min(i + 1, count % size) for i in range(size)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


class _Parts:
    """The elements of a bucket's parameters as the ranks have them: first all of the first rank."""

    def __init__(self, params: list[Tensor], group: Group) -> None:
        self.group = group
        self.ranges = [_ranges(p.numel(), group.size) for p in params]
        self.counts = [sum(r[k][1] - r[k][0] for r in self.ranges) for k in range(group.size)]

    def dealt(self, flats: list[Tensor], extra: Tensor | None = None) -> Tensor:
        """One tensor of flat ones: what each rank has of them, then ``extra`` for it."""
        pieces = []
        for k in range(self.group.size):
            pieces += [flat[r[k][0] : r[k][1]] for flat, r in zip(flats, self.ranges, strict=True)]
            pieces += [] if extra is None else [extra]
        return _C.cat(pieces)

    def collect(self, dealt: Tensor, out: Tensor) -> None:
        """The way back: flat tensors one after another, from what the ranks have."""
        begins = [sum(self.counts[:k]) for k in range(self.group.size)]
        pieces = []
        for ranges in self.ranges:
            for k, (low, high) in enumerate(ranges):
                pieces.append(dealt[begins[k] : begins[k] + high - low])
                begins[k] += high - low
        _C.cat(pieces, out=out)

    def mine(self) -> list[tuple[int, int]]:
        return [ranges[self.group.rank] for ranges in self.ranges]


class _Owned:
    """A bucket's parameters in one block of memory, of which this rank steps its part."""

    def __init__(self, bucket: Bucket, place: placement, group: Group) -> None:
        self.params, self._place = bucket.params, place
        self.parts = _Parts(bucket.params, group)
        self.flat = _C.cat([p.detach().reshape(-1) for p in bucket.params])
        self.shards = []
        begin = 0
        for p, (low, high) in zip(bucket.params, self.parts.mine(), strict=True):
            p.data = self.flat[begin : begin + p.numel()].view(p.shape)
            self.shards.append(self.of_shard(self.flat[begin + low : begin + high], p))
            begin += p.numel()
        self._addresses = [p.data_ptr() for p in bucket.params]

    def of_shard(self, local: Tensor, p: Tensor) -> Tensor:
        """The flat tensor of a parameter's size of which this rank has that part."""
        return _ext._tensor_of_shard(local, [p.numel()], self._place, split(0))

    def check(self) -> None:
        if [p.data_ptr() for p in self.params] != self._addresses:
            raise RuntimeError("ZeroOptimizer.step(): parameters were given other memory since it "
                               "was made; move a model before its optimizer is made")  # fmt: skip

    def take_gradients(self) -> None:
        """What this rank steps by: its parts of gradients that are whole everywhere."""
        for p, shard, (low, high) in zip(self.params, self.shards, self.parts.mine(), strict=True):
            grad = p.grad
            shard.grad = None if grad is None else self.of_shard(
                grad.detach().reshape(-1)[low:high], p)  # fmt: skip

    def gather(self) -> None:
        """Tells all ranks this rank's part of the parameters."""
        parts = self.parts
        if parts.group.size == 1:
            return
        mine = _C.cat([s.to_local() for s in self.shards])
        dealt = mine.new_empty(sum(parts.counts))
        communicator = parts.group.communicator(mine.device.type)
        communicator.all_gather(mine, dealt, parts.counts)
        parts.collect(dealt, self.flat)


class _Scatter:
    """One bucket of gradients on its way: each rank gets its parts of the mean."""

    def __init__(self, bucket: Bucket, group: Group, owner: ZeroOptimizer) -> None:
        self._bucket, self._owner = bucket, owner
        self._parts = _Parts(bucket.params, group)
        self._missing = [i for i, p in enumerate(bucket.params) if p.grad is None]
        self._given = self._parts.dealt(bucket.gradients(), bucket.flags())
        for p in bucket.params:
            p.grad = None  # it is in what is given, and nobody keeps it whole
        self._counts = [n + len(bucket.params) for n in self._parts.counts]
        self._out = self._given.new_empty(self._counts[group.rank])

    def run(self, communicator: Any) -> None:
        communicator.reduce_scatter(self._given, self._out, self._counts, _MEAN, None)

    def end(self) -> None:
        out = self._out
        count = len(self._bucket.params)
        had = (out[len(out) - count :] > 0).tolist() if self._missing else [True] * count
        begin = 0
        for i, (p, (low, high)) in enumerate(
            zip(self._bucket.params, self._parts.mine(), strict=True)
        ):
            part = out[begin : begin + high - low]
            begin += high - low
            if had[i]:
                self._owner.add_gradient(p, part)


_optimizers: weakref.WeakSet[ZeroOptimizer] = weakref.WeakSet()


def _split_gradient(p: Tensor) -> Tensor | None:
    """The gradient of a parameter that has none of its own, from the optimizer that splits it."""
    return next((o.split_gradient(p) for o in _optimizers if o.scatters(p)), None)


add_source(_split_gradient)


class ZeroOptimizer(Optimizer):
    """An optimizer of which each rank keeps the state of its part of the parameters, and steps it.

    A step updates this rank's part of every parameter and then gathers all parts, so that every
    rank has the same parameters, to the bit. Results are those of ``optimizer_class`` itself where
    an element's update does not depend on others: so it is with all classes of ``flow.optim``.

    Parameters
    ----------
    optimizer_class : type
        Such as ``flow.optim.AdamW``.
    params : iterable of Tensor or of dict
        As for that class. Local tensors, alike on all ranks.
    stage : int
        1: gradients are whole on each rank, as DataParallel leaves them. 2: DataParallel gives each
        rank its part of them alone; ``.grad`` of the parameters stays None after a backward, and
        ``clip_grad_norm_`` and ``amp.GradScaler`` look at the parts. All parameters of the
        DataParallel must be in this optimizer then.
    group : Group, optional
        The ranks; all where None. As that of DataParallel.
    **options
        Those of ``optimizer_class``.

    Raises
    ------
    ValueError
        Parameters of other ranks' models, global ones; stage 2 without DataParallel.

    Examples
    --------
    >>> model = flow.distributed.DataParallel(model)
    >>> optimizer = flow.distributed.ZeroOptimizer(flow.optim.AdamW, model.parameters(), lr=1e-3)
    """

    def __init__(
        self,
        optimizer_class: type[Optimizer],
        params: Iterable[Any],
        *,
        stage: int = 1,
        group: Group | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(optimizer_class, type) or not issubclass(optimizer_class, Optimizer):
            raise TypeError(f"{_NAME}: optimizer_class must be a class of optimizers, not "
                            f"{optimizer_class!r}")  # fmt: skip
        if stage not in (1, 2):
            raise ValueError(f"{_NAME}: stage is {stage!r}, but must be 1 or 2")
        self.stage, self._group = stage, group_of("ZeroOptimizer", group)
        self.inner: Optimizer | None = None
        self._owned: list[_Owned] = []
        self._shard_of: dict[int, tuple[_Owned, Tensor]] = {}
        super().__init__(params, {})
        for group in self.param_groups:
            self._check(group["params"])
        optimizer_class([dict(group) for group in self.param_groups], **options)  # or its error
        groups = [{**g, "params": self._adopt(g["params"])} for g in self.param_groups]
        self.inner = optimizer_class(groups, **options)
        self.defaults = self.inner.defaults
        self.steps_on_device = self.inner.steps_on_device
        self._take_options()
        if stage == 2:
            self._scatter_gradients()
        _optimizers.add(self)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.inner is not None and self.stage == 2:  # nobody would reduce their gradients
            raise ValueError(f"{_NAME}: stage 2 has all parameters of the DataParallel already; no "
                             "group can be added")  # fmt: skip
        super().add_param_group(param_group)
        if self.inner is None:
            return
        group = self.param_groups[-1]
        try:
            self._check(group["params"])
            self.inner.add_param_group(dict(group))
        except BaseException:
            self.param_groups.pop()
            raise
        self.inner.param_groups[-1]["params"] = self._adopt(group["params"])
        self._take_options()

    @staticmethod
    def _check(params: list[Tensor]) -> None:
        """ValueError for parameters that have no shards here."""
        for p in params:
            if p.is_global or p.is_meta or not p.is_floating_point():
                kind = "global" if p.is_global else "meta" if p.is_meta else p.dtype.name
                raise ValueError(f"{_NAME}: a parameter is {kind}, but must be local and floating;"
                                 " of global ones, give an optimizer split ones")  # fmt: skip

    def _adopt(self, params: list[Tensor]) -> list[Tensor]:
        """The shards of new parameters."""
        with no_grad():
            for bucket in buckets_of(params, _BUCKET):
                place = _ext.placement(bucket.device.type, list(self._group.ranks))
                owned = _Owned(bucket, place, self._group)
                self._owned.append(owned)
                for p, shard in zip(owned.params, owned.shards, strict=True):
                    self._shard_of[id(p)] = owned, shard
        return [self._shard_of[id(p)][1] for p in params]

    def _take_options(self) -> None:
        """Of the groups, what the class knows of them; and where the state is."""
        assert self.inner is not None
        for own, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            own.update({key: value for key, value in inner.items() if key != "params"})
        for p in self._all():
            self.state[p] = self.inner.state[self._shard_of[id(p)][1]]

    def _give_options(self) -> None:
        assert self.inner is not None
        for own, inner in zip(self.param_groups, self.inner.param_groups, strict=True):
            inner.update({key: value for key, value in own.items() if key != "params"})

    def _scatter_gradients(self) -> None:
        reducers = {reducer_of(p) for p in self._all() if p.requires_grad}
        reducer = next(iter(reducers), None)
        if len(reducers) > 1 or reducer is None or reducer.group.ranks != self._group.ranks:
            raise ValueError(f"{_NAME}: stage 2 needs parameters of one DataParallel, of the same "
                             "group")  # fmt: skip
        if left := [name for p, name in reducer.named() if id(p) not in self._shard_of]:
            raise ValueError(f"{_NAME}: stage 2 needs all parameters of the DataParallel; "
                             f"{left[0]!r} is missing")  # fmt: skip
        me = weakref.ref(self)

        def travel(bucket: Bucket, group: Group) -> _Scatter:
            owner = me()
            if owner is None:
                raise RuntimeError("DataParallel: the ZeroOptimizer that takes its gradients is "
                                   "gone; make both anew")  # fmt: skip
            return _Scatter(bucket, group, owner)

        reducer.travel = travel

    def scatters(self, p: Tensor) -> bool:
        """Whether the gradient of a parameter comes split, to this optimizer."""
        return self.stage == 2 and id(p) in self._shard_of

    def split_gradient(self, p: Tensor) -> Tensor | None:
        """The gradient of a parameter, flat and global, of which this rank has its part."""
        return self._shard_of[id(p)][1].grad

    def add_gradient(self, p: Tensor, part: Tensor) -> None:
        """Adds to this rank's part of the gradient of a parameter."""
        owned, shard = self._shard_of[id(p)]
        if shard.grad is None:
            shard.grad = owned.of_shard(part, p)
        else:
            shard.grad.to_local().add_(part)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Steps this rank's part and gathers all; every rank calls it."""
        assert self.inner is not None
        note_graphed(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self._give_options()
        with no_grad():
            for owned in self._owned:
                owned.check()
                if self.stage == 1:
                    owned.take_gradients()
            self.inner.grad_scale, self.inner.found_inf = self.grad_scale, self.found_inf
            try:
                with within(self.inner, "step"):
                    self.inner.step()
            finally:
                self.inner.grad_scale, self.inner.found_inf = None, {}
            for owned in self._owned:
                if self.stage == 1:
                    for shard in owned.shards:
                        shard.grad = None
                owned.gather()
        return loss

    def refresh_lr(self) -> None:
        assert self.inner is not None
        self._give_options()
        self.inner.refresh_lr()

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        assert self.inner is not None
        self.inner.zero_grad(set_to_none)

    # State. A number stands for a parameter as in every optimizer's.

    def split_state_dict(self) -> dict[str, Any]:
        """The state as it lies: flat global tensors, for ``distributed.checkpoint``.

        No other rank is asked for anything. What is not there yet is begun, so that a checkpoint
        can be loaded into it; ``load_state_dict`` takes it back.
        """
        assert self.inner is not None
        self._give_options()
        if isinstance(self.inner, MultiTensorOptimizer):
            self.inner.begin_all()
        state = {i: dict(self.state[p]) for i, p in enumerate(self._all()) if self.state[p]}
        return {"state": state, "param_groups": super().state_dict()["param_groups"]}

    @no_grad()
    def state_dict(self, to: int | None = None) -> dict[str, Any]:
        """The state that ``optimizer_class`` would have on one process, whole; all ranks call it.

        With ``to``, a rank of the world, that one alone gets it; others have no ``"state"``.
        """
        self._give_options()
        if to is not None:
            self._group.place("state_dict", "to", to)
        wanted = to is None or self._group.ranks[self._group.rank] == to
        state = {}
        for number, p in enumerate(self._all()):
            whole = {name: self._gathered(value, p) for name, value in self.state[p].items()}
            if whole and wanted:
                state[number] = whole
        return {"state": state, "param_groups": super().state_dict()["param_groups"]}

    def _gathered(self, value: Any, p: Tensor) -> Any:
        if not isinstance(value, _ext.Tensor) or not value.is_global:
            return value
        whole = value.to_global(sbp=_whole).to_local()
        return whole.view(p.shape) if whole.numel() == p.numel() else whole

    @no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state that is whole, of any number of ranks or of one process, or split."""
        assert self.inner is not None
        given = state_dict
        if is_state(state_dict):
            numbers = [n for g in state_dict["param_groups"] for n in g["params"]]
            state = {
                n: {name: self._part(name, value, p) for name, value in kept.items()}
                for n, p in zip(numbers, self._all(), strict=False)
                if (kept := state_dict["state"].get(n))
            }
            given = {"state": state, "param_groups": state_dict["param_groups"]}
        self.inner.load_state_dict(given)
        self._take_options()

    def _part(self, name: str, value: Any, p: Tensor) -> Any:
        """Of what is of the parameter's shape, the part of this rank."""
        if not isinstance(value, _ext.Tensor) or value.is_global or name == "step":
            return value
        if tuple(value.shape) not in (tuple(p.shape), (p.numel(),)):  # flat: split_state_dict()'s
            raise ValueError(f"ZeroOptimizer.load_state_dict(): {name!r} has shape "
                             f"{list(value.shape)}, but its parameter {list(p.shape)}")  # fmt: skip
        owned, _ = self._shard_of[id(p)]
        low, high = _ranges(p.numel(), self._group.size)[self._group.rank]
        part = value.detach().reshape(-1)[low:high].to(p.device).clone()
        return owned.of_shard(part, p)
