# SPDX-License-Identifier: Apache-2.0
"""Training on global tensors: data-parallel, tensor-parallel and both on a grid, equal to one
process within 1e-10 in float64.
"""

import numpy as np
import pytest
from rank_group import DEVICE, GRID, LINE

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.models import gpt  # noqa: E402

nn, F = flow.nn, flow.nn.functional
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


def clipped(rank, recipe):
    """clip_grad_norm_ counts each logical element once, whatever the gradients' SBPs."""
    split, whole = flow.sbp.split, flow.sbp.broadcast
    x, t = (a[0] for a in data())

    def gradients(model, place):
        F.cross_entropy(model(place(flow.tensor(x))), place(flow.tensor(t))).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        return float(norm), [p.grad.numpy() for p in model.parameters()]

    want = gradients(fresh(), lambda a: a)
    p = flow.placement("cpu", LINE)
    model = fresh().to_global(p, whole)
    if recipe == "tensor":
        model.up.to_global(sbp=split(0))
        model.down.weight.data = model.down.weight.data.to_global(sbp=split(1))
    got = gradients(model, lambda a: a.to_global(p, whole).to_global(
        sbp=split(0) if recipe == "data" else whole))  # fmt: skip
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("recipe", ["data", "tensor"])
def test_clipped_gradients_are_those_of_one_process(ranks, recipe):
    ranks.run(clipped, recipe)


def clipped_on_several(rank, dtype, norm_type):
    """Parameters of stages that lie on ranks of their own: one norm, and one factor."""
    split, whole = flow.sbp.split, flow.sbp.broadcast
    half = len(LINE) // 2
    places = [flow.placement("cpu", LINE[:half]), flow.placement("cpu", LINE[half:]),
              flow.placement("cpu", LINE[1:])]  # fmt: skip
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((5, 4)).astype(dtype) for _ in range(6)]
    plain, spread = [], []
    for i, a in enumerate(arrays):
        p, sbp = places[i % 3], whole if i < 3 else split(i % 2)
        plain.append(flow.zeros(5, 4, dtype=getattr(flow, dtype), requires_grad=True))
        plain[-1].grad = flow.tensor(a)
        spread.append(plain[-1].detach().to_global(p, whole).to_global(sbp=sbp).requires_grad_())
        spread[-1].grad = flow.tensor(a).to_global(p, whole).to_global(sbp=sbp)
    for bound in (1e9, 0.5):
        want = nn.utils.clip_grad_norm_(plain, bound, norm_type)
        got = nn.utils.clip_grad_norm_(spread, bound, norm_type, error_if_nonfinite=True)
        np.testing.assert_allclose(float(got), float(want), rtol=1e-6)
        for a, b, i in zip(plain, spread, range(6), strict=True):
            mine = b.grad.to_local()
            here = b.placement.ranks
            if rank in here:
                cut = b.grad.to_global(sbp=whole).to_local()
                np.testing.assert_allclose(cut.numpy(), a.grad.numpy(), rtol=1e-6, atol=1e-7)
            else:
                b.grad.to_global(sbp=whole)
                assert mine.numel() == 0
            assert b.grad.sbp == ((whole,) if i < 3 else (split(i % 2),))
    nn.utils.clip_grad_value_(spread, 0.01)
    spread[1].grad = flow.full((5, 4), float("inf"), dtype=spread[1].dtype).to_global(
        places[1], whole
    )
    if norm_type == 0:  # counts what is not 0
        return
    with pytest.raises(RuntimeError, match="cannot be clipped"):
        nn.utils.clip_grad_norm_(spread, 1.0, norm_type, error_if_nonfinite=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf"), 0.0])
def test_gradients_on_several_placements_are_clipped_together(ranks, dtype, norm_type):
    ranks.run(clipped_on_several, dtype, norm_type)


def accumulated(rank):
    """Gradients of several passes add up as partial sums; the optimizer adds up the ranks'."""
    p = flow.placement("cpu", LINE)
    w = flow.tensor(np.arange(12.0).reshape(4, 3)).to_global(p, flow.sbp.broadcast)
    w = w.detach().requires_grad_()
    plain = flow.tensor(np.arange(12.0).reshape(4, 3), requires_grad=True)
    for k in range(3):
        values = np.cos(np.arange(20.0).reshape(5, 4) + k)
        x = flow.tensor(values).to_global(p, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
        (x @ w).sum().backward()
        assert w.grad.sbp == (flow.sbp.partial_sum,)
        (flow.tensor(values) @ plain).sum().backward()
    for optimizer, tensor in [(flow.optim.SGD([w], lr=0.1), w), (flow.optim.SGD([plain], lr=0.1),
                                                                plain)]:  # fmt: skip
        optimizer.step()
        assert tensor.requires_grad
    assert w.sbp == (flow.sbp.broadcast,)
    np.testing.assert_allclose(w.detach().numpy(), plain.detach().numpy(), rtol=0, atol=1e-12)


def test_gradients_accumulate_as_partial_sums(ranks):
    ranks.run(accumulated)


def split_state(rank):
    """ZeRO by SBP: parameters whole for the model, split for the optimizer and its state."""
    p = flow.placement("cpu", LINE)
    plain = flow.tensor(np.arange(21.0).reshape(7, 3), requires_grad=True)
    master = flow.tensor(np.arange(21.0).reshape(7, 3)).to_global(p, flow.sbp.broadcast)
    master = master.to_global(sbp=flow.sbp.split(0)).detach().requires_grad_()
    optimizer = flow.optim.AdamW([master], lr=0.1)
    reference = flow.optim.AdamW([plain], lr=0.1)
    for k in range(4):
        values = np.sin(np.arange(35.0).reshape(5, 7) + k)
        x = flow.tensor(values).to_global(p, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
        w = master.to_global(sbp=flow.sbp.broadcast)  # gathered where it is used
        (x @ w).exp().mean().backward()
        (flow.tensor(values) @ plain).exp().mean().backward()
        for o in (optimizer, reference):
            o.step()
            o.zero_grad()
        for state in optimizer.state[master].values():
            if isinstance(state, flow.Tensor) and state.ndim == 2:
                assert state.sbp == (flow.sbp.split(0),)
                assert state.to_local().shape[0] == 7 // len(LINE) + (rank < 7 % len(LINE))
    np.testing.assert_allclose(master.detach().numpy(), plain.detach().numpy(), rtol=0, atol=1e-10)


def test_a_split_optimizer_state_learns_as_one_process(ranks):
    ranks.run(split_state)


def split_classes(rank, ranks, sbps, classes):
    """Logits split by class: values and gradients, without the op over whole rows."""
    p = flow.placement("cpu", ranks)
    kinds = {"B": flow.sbp.broadcast, "0": flow.sbp.split(0), "1": flow.sbp.split(1)}
    sbp = [kinds[s] for s in sbps]
    whole = [flow.sbp.broadcast] * len(p.shape)
    rng = np.random.default_rng(7)
    values, target = 30 * rng.standard_normal((6, classes)), rng.integers(0, classes, 6)
    target[2] = -100
    for reduction in ("mean", "sum", "none"):
        plain = flow.tensor(values, requires_grad=True)
        want = F.cross_entropy(plain, flow.tensor(target), reduction=reduction)
        (want * want).sum().backward()
        x = flow.tensor(values).to_global(p, whole).to_global(sbp=sbp).detach().requires_grad_()
        t = flow.tensor(target).to_global(p, whole)
        t = t.to_global(sbp=[kinds["0" if s == "0" else "B"] for s in sbps])
        got = []

        def step(x=x, t=t, reduction=reduction, got=got):
            got.append(F.cross_entropy(x, t, reduction=reduction))
            (got[0] * got[0]).sum().backward()

        ran = {name for name, _ in flow._oneflow_lite.record_ops(step)}
        assert "cross_entropy" not in ran and "cross_entropy_parts" in ran
        assert x.grad.sbp == tuple(sbp)
        # A small loss is a difference of logits of about 100, in which they round.
        np.testing.assert_allclose(got[0].detach().numpy(), want.detach().numpy(), rtol=1e-12,
                                   atol=1e-13)  # fmt: skip
        np.testing.assert_allclose(x.grad.numpy(), plain.grad.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [9, 8, 3], ids=str)
def test_cross_entropy_of_split_classes(ranks, classes):
    ranks.run(split_classes, LINE, "1", classes)
    for sbps in ("01", "10", "B1"):
        ranks.run(split_classes, GRID, sbps, classes)


def found_inf(rank):
    p = flow.placement("cpu", LINE)
    w = flow.ones(8, placement=p, sbp=flow.sbp.split(0), requires_grad=True)
    optimizer = flow.optim.SGD([w], lr=1.0)
    for bad in (True, False):
        scaler = flow.amp.GradScaler(init_scale=2.0)
        values = np.full(8, 4.0, np.float32)
        values[5] = np.inf if bad else 4.0  # on one rank
        gradient = flow.tensor(values).to_global(p, flow.sbp.broadcast)
        w.grad = gradient.to_global(sbp=flow.sbp.split(0))
        scaler.scale(flow.ones(1, device=DEVICE))  # the scale is made
        scaler.step(optimizer)
        scaler.update()
        expected = 1.0 if bad else -1.0
        assert w.to_local().tolist() == [expected] * (8 // len(LINE))
        assert scaler.get_scale() == (1.0 if bad else 2.0)


def test_an_infinity_on_one_rank_is_one_on_all(ranks):
    ranks.run(found_inf)


def found_inf_elsewhere(rank, places):
    """One optimizer of tensors on several placements: none is stepped where one overflowed."""
    split = flow.sbp.split(0)
    params = [flow.ones(4, placement=flow.placement("cpu", ranks), sbp=split, requires_grad=True)
              for ranks in places]  # fmt: skip
    optimizer = flow.optim.SGD(params, lr=1.0)
    for bad in (True, False):
        scaler = flow.amp.GradScaler("cpu", init_scale=2.0)
        for p in params:
            p.grad = flow.full([4], 4.0, placement=p.placement, sbp=split)
        last = params[-1].grad.to_local()
        if bad and rank == places[-1][-1]:
            last[-1] = float("inf")
        scaler.scale(flow.ones(1))
        scaler.step(optimizer)
        scaler.update()
        for p in params:
            assert set(p.to_local().tolist()) <= {1.0 if bad else -1.0}, (bad, p)
        if rank in {r for ranks in places for r in ranks}:
            assert scaler.get_scale() == (1.0 if bad else 2.0)


@pytest.mark.parametrize("places", [[[0, 1], [2, 3]], [[0, 1], [1, 2]], [[3], [0, 2]],
                                    [[0, 1, 2, 3], [2, 1]]], ids=str)  # fmt: skip
def test_an_infinity_on_one_placement_is_one_on_all(ranks, places):
    ranks.run(found_inf_elsewhere, places)
