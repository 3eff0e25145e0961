# SPDX-License-Identifier: Apache-2.0
"""flow.distributed.Pipeline: losses and gradients of one process, on 2 and 4 ranks.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import numpy as np
import pytest
from rank_group import DEVICE

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402

nn, F = flow.nn, flow.nn.functional
STEPS = 4


def tensor(values):
    return flow.tensor(values, device=DEVICE)


def data(rows):
    rng = np.random.default_rng(rows)
    return rng.standard_normal((STEPS, rows, 6)), rng.integers(0, 5, (STEPS, rows))


class Two(nn.Module):
    """Gives a tuple: floats, and integers that ask for no gradient."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 7)

    def forward(self, x):
        return F.gelu(self.layer(x)), (x[:, 0] > 0).long()


class Join(nn.Module):
    """Takes it."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(flow.ones(2, 7))

    def forward(self, x, which):
        return x * self.shift[which]


def layers(kind):
    """Four stages."""
    flow.manual_seed(3)
    if kind == "tuple":
        made = [Two(), Join(), nn.Linear(7, 9), nn.Linear(9, 5)]
    elif kind == "frozen":  # nothing before asks for a gradient
        made = [nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 5)]
        made[0].requires_grad_(False)
    elif kind == "empty":  # two stages without parameters
        made = [nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5), nn.Identity()]
    else:
        made = [nn.Linear(6, 6), nn.Sequential(nn.Tanh(), nn.Linear(6, 6)), nn.LayerNorm(6),
                nn.Linear(6, 6, bias=False)]  # fmt: skip
        if kind == "tied":  # the first weight and the last are one
            made[3].weight = made[0].weight
        made[3] = nn.Sequential(made[3], nn.Linear(6, 5))
    return [m.double().to(DEVICE) for m in made]


class InOrder(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(stages)

    def forward(self, x):
        for stage in self.stages:
            x = stage(*x) if isinstance(x, tuple) else stage(x)
        return x


def stages_of(kind, count):
    made = layers(kind)
    return made if count == 4 else [InOrder(made[:2]), InOrder(made[2:])]


def loss_of(y, t):
    return F.cross_entropy(y, t)


def alone(kind, rows, count):
    """Losses and gradients of one process, and the parameters in the end."""
    stages = stages_of(kind, count)
    model = InOrder(stages)
    optimizer = flow.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    losses = []
    for x, t in zip(*data(rows), strict=True):
        loss = loss_of(model(tensor(x)), tensor(t))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, stages


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10)


def seat(rank, ranks):
    """Stages, ranks of each, and the stage and place of this rank."""
    grid = np.reshape(ranks, (len(ranks), -1))
    index, column = np.argwhere(grid == rank)[0]
    return *grid.shape, index, column


def trained(rank, ranks, kind, rows, micro_batches):
    if not dist.is_initialized():
        dist.init()  # those that take no part below, too
    if rank not in np.ravel(ranks):
        return None
    count = len(ranks)
    want, reference = alone(kind, rows, count)
    p = flow.placement("cpu", ranks)
    pipeline = dist.Pipeline(stages_of(kind, count), p, micro_batches, loss_of)
    learning = [q for q in pipeline.parameters() if q.requires_grad]
    optimizer = flow.optim.SGD(learning, lr=0.1) if learning else None
    columns = np.shape(ranks)[1] if np.ndim(ranks) == 2 else 1
    place = np.argwhere(np.reshape(ranks, (count, columns)) == rank)[0]
    for (x, t), expected in zip(zip(*data(rows), strict=True), want, strict=True):
        mine = [part[place[1] :: columns] for part in (x, t)]
        first, last = place[0] == 0, place[0] == count - 1
        loss = pipeline.step(tensor(mine[0]) if first else None,
                             tensor(mine[1]) if last else None)  # fmt: skip
        close(loss.item(), expected)
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
    own = reference[place[0]]
    for a, b in zip(pipeline.stage.parameters(), own.parameters(), strict=True):
        close(a.detach().numpy(), b.detach().numpy())
        assert a.requires_grad or a.grad is None
    with flow.no_grad():
        y = pipeline(tensor(data(rows)[0][0]) if place[0] == 0 else None)
    assert (y is None) == (place[0] != count - 1)
    if y is not None:
        close(y.numpy(), InOrder(reference)(tensor(data(rows)[0][0])).detach().numpy())
    return place[0]


LINES = [[0, 1], [2, 0], [0, 1, 2, 3], [3, 1, 0, 2]]


@pytest.mark.parametrize("ranks_of", LINES, ids=str)
@pytest.mark.parametrize("kind", ["plain", "tuple", "frozen", "empty", "tied"])
def test_a_pipeline_learns_as_one_process(ranks, ranks_of, kind):
    ranks.run(trained, ranks_of, kind, 12, 4)


@pytest.mark.parametrize(("rows", "micro_batches"), [(11, 4), (5, 4), (3, 8), (7, 1), (1, 3),
                                                     (16, 16)])  # fmt: skip
def test_micro_batches_of_uneven_sizes(ranks, rows, micro_batches):
    ranks.run(trained, [0, 1, 2, 3], "plain", rows, micro_batches)
    ranks.run(trained, [1, 3], "tuple", rows, micro_batches)


@pytest.mark.parametrize("kind", ["plain", "empty", "tied"])
@pytest.mark.parametrize("rows", [12, 9])
def test_a_grid_of_stages_and_their_copies(ranks, kind, rows):
    ranks.run(trained, [[0, 1], [2, 3]], kind, rows, 3)


def clipped(rank, ranks, kind, order):
    """The norm and the gradients of the whole model in one process."""
    if not dist.is_initialized():
        dist.init()
    if rank not in np.ravel(ranks):
        return
    count, columns, index, column = seat(rank, ranks)
    x, t = (a[0] for a in data(12))
    stages = stages_of(kind, count)
    reference = InOrder(stages)
    loss_of(reference(tensor(x)), tensor(t)).backward()
    pipeline = dist.Pipeline(stages_of(kind, count), flow.placement("cpu", ranks), 3, loss_of)
    pipeline.step(tensor(x[column::columns]), tensor(t[column::columns]))
    for bound in (1e6, 0.05):  # the first leaves them
        want = nn.utils.clip_grad_norm_(reference.parameters(), bound, order)
        got = pipeline.clip_grad_norm_(bound, order, error_if_nonfinite=True)
        assert got.shape == () and got.dtype is flow.float64
        close(got.item(), want.item())
        for a, b in zip(pipeline.stage.parameters(), stages[index].parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None)
            if a.grad is not None:
                close(a.grad.numpy(), b.grad.numpy())
    # What no bound can be changes nothing; a number that is not finite is one on every rank.
    with pytest.raises(ValueError, match="max_norm is -1.0"):
        pipeline.clip_grad_norm_(-1)
    for p in pipeline.stage.parameters() if index == 0 else ():
        if p.grad is not None:
            p.grad.fill_(np.inf)
    if kind == "plain" and order > 0:
        with pytest.raises(RuntimeError, match="so they cannot be clipped"):
            pipeline.clip_grad_norm_(1.0, order, error_if_nonfinite=True)


@pytest.mark.parametrize("ranks_of", [[1, 3], [0, 1, 2, 3], [[0, 1], [2, 3]]], ids=str)
@pytest.mark.parametrize("kind", ["plain", "frozen", "empty", "tied"])
def test_clipped_gradients_are_those_of_one_process(ranks, ranks_of, kind):
    for order in (2.0, 1.0, np.inf, 0.0, -1.0, -np.inf):
        ranks.run(clipped, ranks_of, kind, order)


@pytest.mark.parametrize("kind", ["plain", "tied"])
def test_clipped_gradients_on_two_ranks(two_ranks, kind):
    two_ranks.run(clipped, [0, 1], kind, 2.0)


def scaled(rank, ranks, kind, broken):
    """Steps under a GradScaler; before the second one a rank's gradient becomes no number."""
    if not dist.is_initialized():
        dist.init()
    if rank not in np.ravel(ranks):
        return
    count, columns, index, column = seat(rank, ranks)
    pipeline = dist.Pipeline(stages_of(kind, count), flow.placement("cpu", ranks), 3, loss_of)
    reference = InOrder(stages_of(kind, count))
    learning = [p for p in pipeline.parameters() if p.requires_grad]
    nothing = [nn.Parameter(tensor(np.zeros(1)))]  # of a stage without parameters
    optimizer = flow.optim.SGD(learning or nothing, lr=0.1, momentum=0.9)
    whole = list(reference.parameters())
    expected = flow.optim.SGD(whole, lr=0.1, momentum=0.9)
    scaler = flow.amp.GradScaler(DEVICE, init_scale=1024.0, growth_interval=2)
    for step, (x, t) in enumerate(zip(*data(12), strict=True)):
        optimizer.zero_grad()
        expected.zero_grad()
        want = loss_of(reference(tensor(x)), tensor(t))
        want.backward()
        loss = pipeline.step(tensor(x[column::columns]), tensor(t[column::columns]), scaler)
        close(loss.item(), want.item())
        if step == 1 and rank == broken:
            learning[0].grad.view(-1)[0] = np.inf
        if step == 2:
            scaler.unscale_(optimizer)
            norm = pipeline.clip_grad_norm_(0.5)
            close(norm.item(), nn.utils.clip_grad_norm_(whole, 0.5).item())
        scaler.step(optimizer)
        scaler.update()
        if step != 1:
            expected.step()
        # Halved by the second step; two good steps in a row would double it.
        assert scaler.get_scale() == [1024.0, 512.0, 512.0, 1024.0][step]
        own = reference.stages[index].parameters()
        for a, b in zip(pipeline.stage.parameters(), own, strict=True):
            close(a.detach().numpy(), b.detach().numpy())


@pytest.mark.parametrize(("ranks_of", "broken"), [([1, 3], 1), ([0, 1, 2, 3], 2),
                                                  ([[0, 1], [2, 3]], 2)], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["plain", "empty"])
def test_no_rank_steps_where_one_found_an_infinity(ranks, ranks_of, broken, kind):
    ranks.run(scaled, ranks_of, kind, broken)


def test_a_scaler_on_two_ranks(two_ranks):
    two_ranks.run(scaled, [0, 1], "plain", 1)


def mean_by_hand(y, target):
    total = F.cross_entropy(y, target, reduction="sum")
    return total / (target != -100).sum().clamp(min=1)


# The second is no number where all targets are ignored.
MEANS = {"by hand": mean_by_hand, "cross_entropy": F.cross_entropy}


def weighted(rank, mean):
    """Targets that do not count: micro-batches of different weights, one of none."""
    x, t = (a[0] for a in data(12))
    t = t.copy()
    t[[0, 1, 2, 4, 9]] = -100  # all of the first micro-batch
    reference = InOrder(layers("plain"))
    want = F.cross_entropy(reference(flow.tensor(x)), flow.tensor(t))
    want.backward()
    pipeline = dist.Pipeline(
        layers("plain"), flow.placement("cpu", [0, 1, 2, 3]), 4, MEANS[mean],
        weight=lambda target: (target != -100).sum(),
    )  # fmt: skip
    for _ in range(2):  # gradients are added to those that are there
        loss = pipeline.step(flow.tensor(x), flow.tensor(t))
    close(loss.item(), want.item())
    for a, b in zip(pipeline.stage.parameters(), reference.stages[rank].parameters(), strict=True):
        close(a.grad.numpy(), 2 * b.grad.numpy())


@pytest.mark.parametrize("mean", list(MEANS))
def test_a_weighted_mean(ranks, mean):
    ranks.run(weighted, mean)


def nothing_counts(rank):
    """The mean of nothing, as in one process."""
    x, t = (flow.tensor(a[0]) for a in data(12))
    pipeline = dist.Pipeline(
        layers("plain"), flow.placement("cpu", [0, 1, 2, 3]), 4, F.cross_entropy,
        weight=lambda target: (target != -100).sum(),
    )  # fmt: skip
    assert np.isnan(pipeline.step(x, t * 0 - 100).item())

    def masked(y, target):
        counts = (target != -100).double()
        return (y.sum(-1) * counts).sum() / counts.sum().clamp(min=1)

    stages = layers("plain")
    pipeline = dist.Pipeline(
        stages, flow.placement("cpu", [0, 1, 2, 3]), 4, masked,
        weight=lambda target: (target != -100).sum(),
    )  # fmt: skip
    assert pipeline.step(x, t * 0 - 100).item() == 0
    assert all((p.grad == 0).all() for p in stages[rank].parameters())


def test_a_mean_of_nothing(ranks):
    ranks.run(nothing_counts)


def under_way(rank):
    """How many micro-batches a stage has under way at most: 1F1B, not all of them."""
    alive, most = set(), 0

    class Counting(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            nonlocal most
            ctx.key = object()
            alive.add(ctx.key)
            most = max(most, len(alive))
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            alive.discard(ctx.key)
            return g

    class Stage(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            return Counting.apply(self.layer(x))

    p = flow.placement("cpu", [0, 1, 2, 3])
    pipeline = dist.Pipeline([Stage() for _ in range(4)], p, 8, F.mse_loss)
    with flow.profiler.profile() as profile:
        pipeline.step(flow.ones(16, 6), flow.zeros(16, 6))
    assert not alive
    return most, sum(s.bytes for s in profile.stats("collective") if s.name in ("send", "batch"))


def test_few_micro_batches_are_under_way(ranks):
    found = ranks.run(under_way)
    assert [most for most, _ in found] == [4, 3, 2, 1]
    edge, header = 16 * 6 * 4, 8 * 8 * (1 + 8 * 19)
    assert [b for _, b in found] == [edge + header, 2 * edge + header, 2 * edge + header, edge]


def refused(rank):
    p = flow.placement("cpu", [0, 1, 2, 3])
    made = layers("plain")

    def message(*arguments):
        with pytest.raises((TypeError, ValueError)) as error:
            dist.Pipeline(*arguments)
        return str(error.value)

    assert "2 stages, but" in message(made[:2], p, 4, loss_of)
    assert "micro_batches is 0" in message(made, p, 0, loss_of)
    assert "must be an int, not True" in message(made, p, True, loss_of)
    assert "must be a Module, not NoneType" in message([None] * 4, p, 1, loss_of)
    alone_there = flow.placement("cpu", [(rank + 1) % 4])
    assert f"rank {rank} is none of" in message(made[:1], alone_there, 1, loss_of)
    pipeline = dist.Pipeline(made, p, 4, loss_of)
    x, t = (flow.tensor(a[0]) for a in data(12))
    with pytest.raises(ValueError, match=r"column 0 have \[11, 12\] rows"):
        pipeline.step(x, t[:11])
    with pytest.raises(ValueError, match="at least 1"):
        pipeline.step(x[:0], t[:0])
    assert pipeline.step(x, t).item() > 0  # nothing is broken


def test_what_cannot_be_is_the_same_error_on_every_rank(ranks):
    ranks.run(refused)


def test_a_step_that_fails_keeps_the_gradients():
    stage = nn.Linear(6, 5)

    def loss(y, target):
        if target[0] < 0:
            raise ZeroDivisionError
        return F.cross_entropy(y, target)

    pipeline = dist.Pipeline([stage], flow.placement("cpu", [0]), 2, loss)
    x, target = flow.ones(4, 6), flow.zeros(4, dtype=flow.int64)
    pipeline.step(x, target)
    before = stage.weight.grad.clone()
    with pytest.raises(ZeroDivisionError):  # of the second micro-batch
        pipeline.step(x, flow.tensor([0, 0, -1, 0]))
    assert flow.equal(stage.weight.grad, before)
    for wrong in (None, 3, (target,)):
        with pytest.raises(TypeError, match=r"Pipeline\(\): target must be a tensor, not "):
            pipeline.step(x, wrong)
