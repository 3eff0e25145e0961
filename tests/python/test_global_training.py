# SPDX-License-Identifier: Apache-2.0
"""Training on global tensors: data-parallel, tensor-parallel and both on a grid, equal to one
process within 1e-10 in float64.
"""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.models import gpt  # noqa: E402

nn, F = flow.nn, flow.nn.functional
LINE, GRID = [0, 1, 2, 3], [[0, 1], [2, 3]]
STEPS = 12


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(9)
        self.up, self.down = nn.Linear(9, 14), nn.Linear(14, 5)

    def forward(self, x):
        return self.down(F.gelu(self.up(self.norm(x))))


def data():
    rng = np.random.default_rng(5)
    return rng.standard_normal((STEPS, 11, 9)), rng.integers(0, 5, (STEPS, 11))


def optimizer_of(name, model):
    if name == "sgd":
        return flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    return flow.optim.AdamW(model.parameters(), lr=0.02)


def train(model, optimizer, place, loss_of):
    losses = []
    for x, t in zip(*data(), strict=True):
        loss = loss_of(model(place(flow.tensor(x))), place(flow.tensor(t)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


def cross_entropy(y, t):
    return F.cross_entropy(y, t)


def squares(y, t):
    return F.mse_loss(y, F.one_hot(t, 5).double())


LOSSES = {"cross_entropy": cross_entropy, "mse": squares}


def fresh():
    flow.manual_seed(11)
    return Mlp().double()


def trained(rank, recipe, optimizer, loss):
    alone = fresh()
    want = train(alone, optimizer_of(optimizer, alone), lambda t: t, LOSSES[loss])
    split, whole = flow.sbp.split, flow.sbp.broadcast
    model = fresh()
    if recipe == "data":
        p = flow.placement("cpu", LINE)
        model.to_global(p, whole)
        inputs = [split(0)]
    elif recipe == "tensor":
        p = flow.placement("cpu", LINE)
        model.to_global(p, whole)
        inputs = [whole]
        model.up.to_global(sbp=split(0))
        model.down.weight.data = model.down.weight.data.to_global(sbp=split(1))
    else:  # both: batches by rows of the grid, weights by its columns
        p = flow.placement("cpu", GRID)
        model.to_global(p, [whole, whole])
        inputs = [split(0), whole]
        model.up.to_global(sbp=[whole, split(0)])
        model.down.weight.data = model.down.weight.data.to_global(sbp=[whole, split(1)])
    every = [whole] * len(p.shape)

    def place(t):
        return t.to_global(p, every).to_global(sbp=inputs)

    sbps = [q.sbp for q in model.parameters()]
    got = train(model, optimizer_of(optimizer, model), place, LOSSES[loss])
    assert [q.sbp for q in model.parameters()] == sbps
    np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-10)
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("recipe", ["data", "tensor", "both"])
def test_an_mlp_learns_as_in_one_process(ranks, recipe, optimizer, loss):
    ranks.run(trained, recipe, optimizer, loss)


def gpt_steps(model, ids, steps, place):
    optimizer = flow.optim.AdamW(gpt.parameter_groups(model, 0.1), lr=3e-3)
    losses = []
    for k in range(steps):
        batch = place(flow.tensor(ids[k, :, :-1])), place(flow.tensor(ids[k, :, 1:]))
        loss = model.loss(*batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_gpt(rank, preset, recipe, steps):
    config = gpt.PRESETS[preset].replaced(length=12, vocab=40)
    ids = np.random.default_rng(2).integers(0, 40, (1, 5, 13)).repeat(steps, 0)

    def fresh_gpt():
        flow.manual_seed(4)
        return gpt.build(flow, config).double()

    want = gpt_steps(fresh_gpt(), ids, steps, lambda t: t)
    split, whole = flow.sbp.split, flow.sbp.broadcast
    p = flow.placement("cpu", LINE)
    model = fresh_gpt().to_global(p, whole)
    if recipe == "tensor":
        for block in model.blocks:
            block.mlp.up.to_global(sbp=split(0))
            down = block.mlp.down.weight
            down.data = down.data.to_global(sbp=split(1))
    way = split(0) if recipe == "data" else whole

    def place(t):
        return t.to_global(p, whole).to_global(sbp=way)

    losses = gpt_steps(model, ids, steps, place)
    np.testing.assert_allclose(losses, want, rtol=0, atol=1e-10)
    return losses


@pytest.mark.parametrize("recipe", ["data", "tensor"])
@pytest.mark.parametrize("preset", ["tiny", "tiny-llama"])
def test_a_gpt_learns_as_in_one_process(ranks, preset, recipe):
    losses = ranks.run(train_gpt, preset, recipe, 10, timeout=240)
    assert all(each == losses[0] for each in losses)
    assert losses[0][-1] < losses[0][0]
