# SPDX-License-Identifier: Apache-2.0
"""A model in stages on different ranks, which work on different micro-batches at one time.

The schedule is 1F1B (Narayanan et al., 2019, PipeDream): a stage s of S runs S - 1 - s forwards,
then one forward and one backward in turn, then the backwards that are left. So at most S - s
micro-batches are under way there, and (S - 1) / (M + S - 1) of the time is waited, M micro-batches.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import norm
from oneflow_lite.autograd import backward, no_grad
from oneflow_lite.distributed._collectives import (
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    broadcast,
)
from oneflow_lite.distributed._messages import batch, recv, send
from oneflow_lite.distributed._world import Group, get_device, get_rank
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.utils._gradient_norm import (
    bound_of,
    check_finite,
    gradients_of,
    keep_below,
    norm_of,
    order_of,
)

if TYPE_CHECKING:
    from oneflow_lite import Tensor
    from oneflow_lite.amp import GradScaler

_C = _ext._C
_NAME = "Pipeline()"
Tensors = tuple["Tensor", ...]
_DIMS = 16


def _tuple(x: Any, what: str) -> Tensors:
    """One tensor or several, as a tuple; TypeError for anything else."""
    given = x if isinstance(x, tuple) else (x,)
    for t in given:
        if not isinstance(t, _ext.Tensor):
            raise TypeError(f"{_NAME}: {what} must be a tensor or a tuple of tensors, not "
                            f"{type(t).__name__}")  # fmt: skip
    return given


def _parts(rows: int, count: int) -> list[int]:
    """Rows of each micro-batch, as even as can be, the first ones larger."""
    return [rows // count + (i < rows % count) for i in range(count)]


class _Like(NamedTuple):
    """What a tensor that will come is."""

    shape: tuple[int, ...]
    dtype: Any
    wants_grad: bool


_MOST = 8  # tensors between two stages
_WORDS = 1 + _MOST * (3 + _DIMS)
_DTYPES = [getattr(_ext, name) for name in _ext.record_dtypes]


def _header(tensors: Tensors, where: Any) -> Tensor:
    """Shapes, dtypes and whether gradients are wanted, as integers."""
    if len(tensors) > _MOST or any(t.ndim > _DIMS for t in tensors):
        raise ValueError(f"{_NAME}: a stage gives {len(tensors)} tensors, but only {_MOST} of at "
                         f"most {_DIMS} dims can go to the next")  # fmt: skip
    words = [len(tensors)]
    for t in tensors:
        shape = list(t.shape)
        words += [_DTYPES.index(t.dtype), int(t.requires_grad), len(shape)]
        words += shape + [0] * (_DIMS - len(shape))
    return _ext.tensor(words + [0] * (_WORDS - len(words)), dtype=_ext.int64, device=where)


def _read(header: Tensor) -> list[_Like]:
    words, found = header.tolist(), []
    for i in range(words[0]):
        dtype, wants, ndim, *dims = words[1 + i * (3 + _DIMS) : 1 + (i + 1) * (3 + _DIMS)]
        found.append(_Like(tuple(dims[:ndim]), _DTYPES[dtype], bool(wants)))
    return found


class _Link:
    """The way to a neighbour. What goes both ways goes at once, so that neither waits for ever.

    Activations come after a header that describes them. Of gradients both sides know the shapes.
    """

    def __init__(self, peer: int, where: Any) -> None:
        mine = get_rank()
        self.peer, self.where = peer, where
        self.pair = Group((min(mine, peer), max(mine, peer)))

    def exchange(self, sent: Tensors, coming: Sequence[_Like]) -> Tensors:
        """Sends some tensors and receives others, of known shapes."""
        got = tuple(_C.empty(list(c.shape), dtype=c.dtype, device=self.where) for c in coming)
        if not sent and not got:
            return got
        with batch(self.pair):
            for t in sent:
                send(t, self.peer, self.pair)
            for t in got:
                recv(t, self.peer, self.pair)
        return got

    def give(self, activations: Tensors, coming: Sequence[_Like] = ()) -> Tensors:
        """Activations go to the next stage, gradients come from it."""
        self.exchange((_header(activations, self.where),), ())
        return self.exchange(activations, coming)

    def take(self, gradients: Tensors = ()) -> Tensors:
        """Gradients go to the stage before, activations come from it."""
        (header,) = self.exchange((), [_Like((_WORDS,), _ext.int64, False)])
        likes = _read(header)
        got = self.exchange(gradients, likes)
        return tuple(t.requires_grad_() if like.wants_grad else t
                     for t, like in zip(got, likes, strict=True))  # fmt: skip


class _Flight(NamedTuple):
    """A micro-batch under way: what came in, and what went out."""

    inputs: Tensors
    outputs: Tensors

    def expected(self) -> list[_Like]:
        """The gradients that come for it."""
        return [_Like(tuple(t.shape), t.dtype, False) for t in self.outputs if t.requires_grad]

    def backward(self, gradients: Tensors) -> Tensors:
        """The gradients that go back."""
        tops = [t for t in self.outputs if t.requires_grad]
        if tops:
            backward(tops, list(gradients))
        wanted = [t for t in self.inputs if t.requires_grad and t.is_leaf]
        found = tuple(_C.zeros_like(t) if t.grad is None else t.grad for t in wanted)
        for t in wanted:
            t.grad = None
        return found


class Pipeline(Module):
    """Stages of one model on one rank each; a step runs them on micro-batches, 1F1B.

    Gradients and the loss are those of the whole batch in one process, added in another order.

    Parameters
    ----------
    stages : sequence of Module
        The stages in order. A rank keeps its own as ``stage``; in the places of the others it may
        give None. A stage takes what the one before gave: a tensor, or a tuple of tensors. A
        parameter that several stages have is one: its gradients are added up.
    placement : flow.placement
        A rank for each stage; or a row of ranks for each, which share the batch: column i of the
        grid is a pipeline of its own, and the gradients of a row are added up.
    micro_batches : int
        Into how many parts a batch is cut along its first dim, as even as can be, the first ones
        larger. A batch of fewer rows makes fewer.
    loss : callable
        ``loss(output, target)`` of a micro-batch: a mean over its rows, or what ``weight`` counts.
    weight : callable, optional
        ``weight(target)``: what a micro-batch counts in the mean over all; its rows by default.

    Raises
    ------
    ValueError
        Stages and placement that do not go together, no micro-batches.

    Notes
    -----
    All ranks of the placement make the pipeline and call :meth:`step`. Buffers that a stage changes
    (running means) see a micro-batch at a time. A rank that an exception ends, ends the others with
    its message. Shapes go from stage to stage with the activations, so that each micro-batch may
    have its own; to read them, the host waits for the device. The state of the model is in
    ``stage`` of each rank.

    Examples
    --------
    >>> stages = [nn.Sequential(*layers[:6]), nn.Sequential(*layers[6:])]
    >>> p = flow.placement("cpu", ranks=[0, 1])
    >>> pipeline = flow.distributed.Pipeline(stages, p, 8, nn.functional.mse_loss)
    >>> optimizer = flow.optim.AdamW(pipeline.parameters())
    >>> loss = pipeline.step(x, target)                # gradients are there; on every rank the loss
    >>> pipeline.clip_grad_norm_(1.0)
    >>> optimizer.step()
    """

    def __init__(
        self,
        stages: Sequence[Module | None],
        placement: _ext.placement,
        micro_batches: int,
        loss: Callable[[Any, Any], Tensor],
        weight: Callable[[Any], float | Tensor] | None = None,
    ) -> None:
        super().__init__()
        grid = placement.ranks if len(placement.shape) == 2 else [[r] for r in placement.ranks]
        if len(grid) != len(stages):
            raise ValueError(f"{_NAME}: {len(stages)} stages, but {placement} has {len(grid)} rows "
                             "of ranks, one for each stage")  # fmt: skip
        if isinstance(micro_batches, bool) or not isinstance(micro_batches, int):
            raise TypeError(f"{_NAME}: micro_batches must be an int, not {micro_batches!r}")
        if micro_batches < 1:
            raise ValueError(f"{_NAME}: micro_batches is {micro_batches}, but must be positive")
        here = [(s, row.index(get_rank())) for s, row in enumerate(grid) if get_rank() in row]
        if not here:
            raise ValueError(f"{_NAME}: rank {get_rank()} is none of {placement}")
        self.index, self._column = here[0]
        stage = stages[self.index]
        if not isinstance(stage, Module):
            raise TypeError(f"{_NAME}: rank {get_rank()} has stage {self.index}, which must be a "
                            f"Module, not {type(stage).__name__}")  # fmt: skip
        self.stage = stage
        self.count, self.micro_batches = len(stages), micro_batches
        self._loss, self._weight = loss, weight
        self._where = _ext.device("cpu") if placement.type == "cpu" else get_device()
        column = [row[self._column] for row in grid]
        self._ranks = Group(tuple(column))
        self._row = Group(tuple(grid[self.index]))
        self._everyone = Group(tuple(r for row in grid for r in row))
        self._ties = _ties(stages, column, self.index)
        i = self.index
        self._before = _Link(column[i - 1], self._where) if i > 0 else None
        self._after = _Link(column[i + 1], self._where) if i + 1 < self.count else None

    def forward(self, inputs: Any = None) -> Any:
        """The outputs of a whole batch on ranks of the last stage, None on the others.

        In one piece, without gradients. Ranks of the first stage give the inputs.
        """
        with no_grad():
            given = self._before.take() if self._before else _tuple(inputs, "inputs")
            outputs = self._run(given)
            if self._after is not None:
                self._after.give(outputs)
                return None
            return outputs if len(outputs) > 1 else outputs[0]

    def step(
        self, inputs: Any = None, target: Any = None, scaler: GradScaler | None = None
    ) -> Tensor:
        """Forward and backward of a batch; gradients are added to those that are there.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensor
            On ranks of the first stage, elsewhere not looked at.
        target : Tensor
            On ranks of the last stage, of as many rows; elsewhere not looked at.
        scaler : flow.amp.GradScaler, optional
            The gradients are those of the loss times its scale. One that is not finite on any rank
            makes ``scaler.step`` skip the step on all. Every rank gives a scaler of its own.

        Returns
        -------
        Tensor
            The loss of the whole batch, 0-dim, not scaled, on every rank.
        """
        scale = None
        if scaler is not None and scaler.is_enabled():
            scale = scaler._shared_by(self._everyone, self._where)
        chunks, targets, shares = self._cut(inputs, target)
        learning = [p for p in self.stage.parameters() if p.requires_grad]
        before = [p.grad for p in learning]
        for p in learning:
            p.grad = None
        try:
            total = self._one_forward_one_backward(chunks, targets, shares, scale)
            self._add_up()
        except BaseException:
            for p, kept in zip(learning, before, strict=True):
                p.grad = kept
            raise
        for p, kept in zip(learning, before, strict=True):
            if kept is not None:
                p.grad = kept if p.grad is None else kept + p.grad
        if self._after is None:
            all_reduce(total, group=self._row)
        broadcast(total, self._ranks.ranks[-1], self._ranks)
        return total

    @no_grad()
    def clip_grad_norm_(
        self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
    ) -> Tensor:
        """Scales all stages' gradients by one factor: their joint norm is ``max_norm`` at most.

        As ``nn.utils.clip_grad_norm_`` of the parameters of the whole model, which no rank has: of
        ``pipeline.parameters()`` that function sees this rank's stage alone. All ranks of the
        placement call it, after :meth:`step`. A parameter that several stages have counts once.

        Returns
        -------
        Tensor
            The norm that the gradients had, 0-dim, on every rank.
        """
        name, order = "clip_grad_norm_", order_of(norm_type)
        bound = bound_of(name, "max_norm", max_norm)
        elsewhere = {id(p) for p, group in self._ties if group.ranks[0] != get_rank()}
        counted = gradients_of(name, [p for p in self.stage.parameters() if id(p) not in elsewhere])
        nothing = 0.0 if order >= 0 else math.inf
        mine = _C.full([1], nothing, dtype=_ext.float64, device=self._where)
        if counted:
            mine.copy_(norm_of(counted, order))
        each = mine.new_empty(self.count)
        all_gather_into_tensor(each, mine, self._ranks)
        # Of order 0 a norm is a count, and the counts of the stages add up.
        total = norm(each, order) if order else each.sum()
        if error_if_nonfinite:
            check_finite(total, order)
        keep_below(gradients_of(name, self.stage.parameters()), total, bound)
        return total

    def _run(self, inputs: Tensors) -> Tensors:
        return _tuple(self.stage(*inputs), f"what stage {self.index} gives")

    def _cut(self, inputs: Any, target: Any) -> tuple[Any, Any, list[float]]:
        """The micro-batches of this rank, and what each counts in the loss; all ranks agree."""
        mine: dict[str, Any] = {}
        given: Tensors = ()
        if self._before is None:
            given = _tuple(inputs, "inputs")
            mine["rows"] = [t.shape[0] if t.ndim else 0 for t in given]
        if self._after is None:
            if not isinstance(target, _ext.Tensor):
                raise TypeError(f"{_NAME}: target must be a tensor, not {type(target).__name__}")
            mine["target"] = target.shape[0] if target.ndim else 0
        everyone: list[Any] = [None] * self._everyone.size
        all_gather_object(everyone, {"column": self._column, **mine}, self._everyone)
        rows = self._agreed_rows(everyone)
        parts = [n for n in _parts(rows, self.micro_batches) if n > 0]
        chunks = list(zip(*(t.split(parts) for t in given), strict=True)) or [None] * len(parts)
        targets = target.split(parts) if self._after is None else [None] * len(parts)
        return chunks, targets, self._shares(targets, parts)

    def _agreed_rows(self, everyone: list[dict[str, Any]]) -> int:
        """The rows of this column's batch; the same error on every rank where they do not agree."""
        counts: dict[int, set[int]] = {}
        for said in everyone:
            numbers = [*said.get("rows", []), *([said["target"]] if "target" in said else [])]
            counts.setdefault(said["column"], set()).update(numbers)
        for column, found in counts.items():
            if len(found) > 1 or 0 in found:
                raise ValueError(
                    f"{_NAME}: inputs and targets of column {column} have {sorted(found)} rows, "
                    "but must have as many, at least 1"
                )
        return counts[self._column].pop()

    def _shares(self, targets: Any, parts: list[int]) -> list[float]:
        """What each micro-batch's loss is multiplied by, on ranks of the last stage."""
        if self._after is not None:
            return []
        weights = [float(n) for n in parts]
        if self._weight is not None:
            weights = [float(self._weight(t)) for t in targets]
        total = _C.full([], sum(weights), dtype=_ext.float64, device=self._where)
        all_reduce(total, group=self._row)
        whole = total.item()
        if not whole:  # the loss says what the mean of nothing is
            return [1 / (len(parts) * self._row.size)] * len(parts)
        return [w / whole if w else 0.0 for w in weights]

    def _one_forward_one_backward(
        self, chunks: Any, targets: Any, shares: list[float], scale: Tensor | None
    ) -> Tensor:
        """All micro-batches, forward and backward; the sum of their shares of the loss."""
        count = len(chunks)
        flights: deque[_Flight] = deque()
        total = _C.zeros([], dtype=_ext.float64, device=self._where)

        def forward(k: int, inputs: Tensors) -> Tensors:
            outputs = self._run(inputs)
            if self._after is None and shares[k] == 0:
                outputs = ()  # the mean of nothing is no number
            elif self._after is None:
                loss = self._loss(outputs if len(outputs) > 1 else outputs[0], targets[k])
                outputs = (loss * shares[k],)
                total.add_(outputs[0].detach())
            flights.append(_Flight(inputs, outputs))
            return outputs

        def first(k: int) -> Tensors:
            return self._before.take() if self._before else chunks[k]

        ahead = min(self.count - 1 - self.index, count)
        for k in range(ahead):
            outputs = forward(k, first(k))
            assert self._after is not None
            self._after.give(outputs)
        inputs = first(ahead) if ahead < count else ()
        for k in range(ahead, count):
            outputs = forward(k, inputs)
            oldest = flights.popleft()
            if self._after is not None:
                gradients = oldest.backward(self._after.give(outputs, oldest.expected()))
            else:
                gradients = oldest.backward(tuple(_top(t, scale) for t in outputs))
            last = k + 1 == count
            if self._before is None:
                inputs = () if last else chunks[k + 1]
            elif last:
                self._before.exchange(gradients, ())
            else:
                inputs = self._before.take(gradients)
        while flights:
            oldest = flights.popleft()
            assert self._after is not None
            gradients = oldest.backward(self._after.exchange((), oldest.expected()))
            if self._before is not None:
                self._before.exchange(gradients, ())
        return total

    def _add_up(self) -> None:
        """Gradients of parameters that several stages have, and of the ranks of a row."""
        for p, group in self._ties:
            p.grad = _C.zeros_like(p) if p.grad is None else p.grad
            all_reduce(p.grad, group=group)
        if self._row.size == 1:
            return
        learning = [p for p in self.stage.parameters() if p.requires_grad]
        for dtype in dict.fromkeys(p.dtype for p in learning):
            params = [p for p in learning if p.dtype == dtype]
            grads = [_C.zeros_like(p) if p.grad is None else p.grad for p in params]
            flat = _C.cat([g.reshape(-1) for g in grads])
            all_reduce(flat, group=self._row)
            for p, g, part in zip(params, grads, flat.split([g.numel() for g in grads]),
                                  strict=True):  # fmt: skip
                p.grad = part.view(g.shape).clone()


def _top(loss: Tensor, scale: Tensor | None) -> Tensor:
    """The gradient with which the backward of a loss begins."""
    ones = _C.ones_like(loss)
    return ones if scale is None else (ones * scale).to(loss.dtype)


def _ties(stages: Sequence[Module | None], column: list[int], mine: int) -> list[Any]:
    """Parameters of this stage that others have too, each with the ranks that do."""
    owners: dict[int, list[int]] = {}
    for i, stage in enumerate(stages):
        for p in stage.parameters() if stage is not None else ():
            owners.setdefault(id(p), []).append(i)
    own = stages[mine]
    assert own is not None
    return [(p, Group(tuple(column[i] for i in owners[id(p)]))) for p in own.parameters()
            if len(owners[id(p)]) > 1]  # fmt: skip
