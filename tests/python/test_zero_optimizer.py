# SPDX-License-Identifier: Apache-2.0
"""ZeroOptimizer: the steps of one process, with the state split over ranks."""

import pickle

import numpy as np
import pytest
from rank_group import DEVICE
from test_data_parallel import BRANCHES, Net, check_equal, data, mine

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402

nn, F, optim = flow.nn, flow.nn.functional, flow.optim
OPTIMIZERS = {
    "adamw": (optim.AdamW, {"lr": 0.05, "weight_decay": 0.1}),
    "sgd": (optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "lion": (optim.Lion, {"lr": 0.01}),
    "rmsprop": (optim.RMSprop, {"lr": 0.01, "centered": True}),
    "adadelta": (optim.Adadelta, {"lr": 0.5}),
    "adagrad": (optim.Adagrad, {"lr": 0.05}),
}
STEPS = 5
CLOSE = 1e-10  # of float64; Adam divides by the size of a gradient, and enlarges its last digits
ROWS = 12


def fresh(seed=3):
    flow.manual_seed(seed)
    return Net().double().to(DEVICE)


def values(model):
    return {n: p.detach().numpy() for n, p in model.named_parameters()}


def groups(model):
    params = list(model.parameters())
    return [{"params": params[:3], "lr": 0.01}, {"params": params[3:]}]


def split(model, name, stage):
    cls, options = OPTIMIZERS[name]
    return dist.ZeroOptimizer(cls, groups(model), stage=stage, **options)


def alone(name, branches_of, size, steps=range(STEPS), clip=None, state=None):
    """One process over all rows: values, norms and the optimizer's state."""
    model = fresh()
    cls, options = OPTIMIZERS[name]
    optimizer = cls(groups(model), **options)
    if state is not None:
        model.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
    norms = []
    for k in steps:
        total = 0
        for r in range(size):
            x, y = mine(r, size, *data(k))
            total = total + F.mse_loss(model(x, branches_of(r)), y, reduction="sum")
        optimizer.zero_grad()
        (total / (ROWS * 3)).backward()
        if clip:
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
    return model, optimizer, norms


def train(model, optimizer, rank, size, branches_of, steps=range(STEPS), clip=None):
    norms = []
    for k in steps:
        x, y = mine(rank, size, *data(k))
        optimizer.zero_grad()
        F.mse_loss(model(x, branches_of(rank)), y).backward()
        if clip:
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
    return norms


def trained(rank, size, name, stage, branches, clip):
    branches_of = BRANCHES[branches]
    want, _, norms = alone(name, branches_of, size, clip=clip)
    model = dist.DataParallel(fresh(), 300 / 2**20)
    optimizer = split(model, name, stage)
    got = train(model, optimizer, rank, size, branches_of, clip=clip)
    check_equal(values(model.module), values(want), CLOSE)
    np.testing.assert_allclose(got, norms, rtol=1e-12)
    everyone = [None] * size
    dist.all_gather_object(everyone, [p.detach().numpy().tobytes() for p in model.parameters()])
    assert all(other == everyone[0] for other in everyone)
    if stage == 2:
        assert all(p.grad is None for p in model.parameters())
    for shard in (s for group in optimizer.inner.param_groups for s in group["params"]):
        for value in optimizer.inner.state[shard].values():
            if isinstance(value, flow.Tensor) and value.is_global:
                assert value.to_local().numel() <= -(-value.numel() // size)


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_steps_are_those_of_one_process(two_ranks, name, stage):
    two_ranks.run(trained, 2, name, stage, "both", None)


@pytest.mark.parametrize("clip", [None, 0.05], ids=["", "clipped"])
@pytest.mark.parametrize("branches", list(BRANCHES))
@pytest.mark.parametrize("stage", [1, 2])
def test_with_parameters_that_take_no_part(ranks, stage, branches, clip):
    ranks.run(trained, 4, "adamw", stage, branches, clip)


def with_a_frozen_parameter(rank):
    model = nn.Linear(4, 2)
    model.bias.requires_grad_(False)
    model = dist.DataParallel(model)
    before = model.module.bias.numpy().copy()
    optimizer = dist.ZeroOptimizer(optim.SGD, model.parameters(), stage=2, lr=1.0)
    model(flow.ones(3, 4)).square().mean().backward()
    weight = model.module.weight.detach().numpy().copy()
    optimizer.step()
    np.testing.assert_array_equal(model.module.bias.numpy(), before)
    assert not np.array_equal(model.module.weight.detach().numpy(), weight)


def test_a_frozen_parameter_has_no_part_in_it(two_ranks):
    two_ranks.run(with_a_frozen_parameter)


def accumulated(rank, no_sync):
    """Several backwards before a step, of stage 2: of parts, or of what no_sync left."""
    model = dist.DataParallel(fresh(), 300 / 2**20)
    optimizer = split(model, "sgd", 2)
    for k in range(2):
        x, y = mine(rank, 2, *data(k))
        if k == 0 and no_sync:
            with model.no_sync():
                F.mse_loss(model(x), y).backward()
        else:
            F.mse_loss(model(x), y).backward()
    optimizer.step()
    want = fresh()
    cls, options = OPTIMIZERS["sgd"]
    plain = cls(groups(want), **options)
    for k in range(2):
        x, y = (flow.tensor(a) for a in data(k))
        F.mse_loss(want(x), y).backward()
    plain.step()
    check_equal(values(model.module), values(want), CLOSE)
    optimizer.zero_grad(set_to_none=False)
    before = values(model.module)
    x, y = mine(rank, 2, *data(5))
    F.mse_loss(model(x), y).backward()
    optimizer.zero_grad()
    optimizer.step()  # no gradients: nothing happens
    check_equal(values(model.module), before, 0)


@pytest.mark.parametrize("no_sync", [False, True], ids=["parts", "no_sync"])
def test_gradients_of_several_backwards_add_up(two_ranks, no_sync):
    two_ranks.run(accumulated, no_sync)


def saved(rank, stage):
    """On two of four ranks: trains, and gives the state away."""
    group = dist.new_group([0, 1])
    if rank > 1:
        return None
    model = dist.DataParallel(fresh(), 300 / 2**20, group)
    optimizer = dist.ZeroOptimizer(
        optim.AdamW, groups(model), stage=stage, group=group, **OPTIMIZERS["adamw"][1]
    )
    train(model, optimizer, rank, 2, BRANCHES["both"], range(3))
    optimizer.param_groups[0]["lr"] = 0.02
    state = optimizer.state_dict()
    only = optimizer.state_dict(to=1)
    assert bool(only["state"]) == (rank == 1)
    return pickle.dumps((model.state_dict(), state))


def resumed(rank, stage, text):
    """On all four: goes on from there, as a plain optimizer of one process does."""
    states = pickle.loads(text)
    want, plain, _ = alone("adamw", BRANCHES["both"], 4, range(3, STEPS), state=states)
    model = dist.DataParallel(fresh(20), 300 / 2**20)
    optimizer = split(model, "adamw", stage)
    model.load_state_dict(states[0])
    optimizer.load_state_dict(states[1])
    assert optimizer.param_groups[0]["lr"] == 0.02
    train(model, optimizer, rank, 4, BRANCHES["both"], range(3, STEPS))
    check_equal(values(model.module), values(want), CLOSE)
    whole = optimizer.state_dict()
    assert whole["param_groups"] == plain.state_dict()["param_groups"]
    for number, kept in plain.state_dict()["state"].items():
        for name, value in kept.items():
            other = whole["state"][number][name]
            if isinstance(value, flow.Tensor):
                assert other.shape == value.shape
                assert flow.allclose(other, value, rtol=0, atol=1e-12)
            else:
                assert other == value


@pytest.mark.parametrize("stage", [1, 2])
def test_a_state_goes_to_another_number_of_ranks(ranks, stage):
    text = ranks.run(saved, stage)[0]
    ranks.run(resumed, stage, text)


def scaled(rank, stage, unscale):
    """A number that is not finite on one rank skips the step on all; others are divided."""
    model = dist.DataParallel(nn.Linear(6, 4, bias=False))
    with flow.no_grad():
        model.module.weight.fill_(1.0)
    optimizer = dist.ZeroOptimizer(optim.SGD, model.parameters(), stage=stage, lr=1.0)
    scaler = flow.amp.GradScaler("cpu", init_scale=8.0)
    for bad in (True, False):
        before = model.module.weight.detach().clone()
        x = flow.ones(2, 6)
        if bad and rank == 1:
            x[0, 5] = float("inf")
        optimizer.zero_grad()
        scaler.scale(model(x).sum()).backward()
        if unscale:
            scaler.unscale_(optimizer)
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), 1e9))
            if not bad:
                np.testing.assert_allclose(norm, np.sqrt(6 * 4 * 2.0**2), rtol=1e-6)
        scaler.step(optimizer)
        scaler.update()
        want = before if bad else before - 2.0
        assert flow.equal(model.module.weight, want), (bad, model.module.weight)
        assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("unscale", [False, True], ids=["", "unscaled"])
@pytest.mark.parametrize("stage", [1, 2])
def test_an_infinity_on_one_rank_is_one_on_all(two_ranks, stage, unscale):
    two_ranks.run(scaled, stage, unscale)


def sixteen_bits(rank, stage):
    """bfloat16 with masters: the masters of a rank's part are in its state."""
    flow.manual_seed(0)
    want = nn.Linear(5, 3).to(flow.bfloat16)
    model = dist.DataParallel(nn.Linear(5, 3).to(flow.bfloat16))
    model.load_state_dict(want.state_dict())
    options = {"lr": 0.01, "master_weights": True}
    plain = optim.AdamW(want.parameters(), **options)
    optimizer = dist.ZeroOptimizer(optim.AdamW, model.parameters(), stage=stage, **options)
    for k in range(STEPS):
        x = flow.tensor(np.random.default_rng(k).standard_normal((4, 5)), dtype=flow.bfloat16)
        for o, m in ((plain, want), (optimizer, model)):
            o.zero_grad()
            m(x).float().square().sum().backward()
            o.step()
    check_equal({n: p.detach().float().numpy() for n, p in model.module.named_parameters()},
                {n: p.detach().float().numpy() for n, p in want.named_parameters()})  # fmt: skip
    master = optimizer.state_dict()["state"][0]["master_weight"]
    assert master.dtype is flow.float32 and flow.equal(master.to(flow.bfloat16),
                                                       model.module.weight)  # fmt: skip


@pytest.mark.parametrize("stage", [1, 2])
def test_masters_are_split_too(two_ranks, stage):
    two_ranks.run(sixteen_bits, stage)


def scheduled(rank):
    """Schedulers, added groups and a state that is read see one optimizer."""
    model = dist.DataParallel(fresh())
    params = list(model.parameters())
    optimizer = dist.ZeroOptimizer(optim.SGD, params[:4], lr=1.0, momentum=0.5)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.1)
    optimizer.add_param_group({"params": params[4:], "lr": 3.0})
    scheduler.base_lrs = [1.0, 3.0]
    x, y = mine(rank, 2, *data())
    F.mse_loss(model(x), y).backward()
    before = params[0].detach().clone()
    optimizer.step()
    assert flow.allclose(params[0], before - params[0].grad)
    assert optimizer.param_groups[0]["lr"] == 1.0 and "momentum" in optimizer.param_groups[1]
    assert optimizer.state[params[0]]["momentum_buffer"].is_global
    optimizer.param_groups[0]["lr"] = 0.0
    before = params[0].detach().clone()
    optimizer.step()
    assert flow.equal(params[0], before)


def test_it_is_an_optimizer(two_ranks):
    two_ranks.run(scheduled)


def wrong(rank):
    model = dist.DataParallel(fresh())
    params = list(model.parameters())
    for make, kind, text in [
        (lambda: dist.ZeroOptimizer(optim.SGD, params, stage=3, lr=1.0), ValueError, "stage is 3"),
        (lambda: dist.ZeroOptimizer("SGD", params, lr=1.0), TypeError, "must be a class of opt"),
        (lambda: dist.ZeroOptimizer(optim.SGD, params[:2], stage=2, lr=1.0), ValueError,
         "'first.weight' is missing"),
        (lambda: dist.ZeroOptimizer(optim.SGD, fresh().parameters(), stage=2, lr=1.0), ValueError,
         "of one DataParallel"),
        (lambda: dist.ZeroOptimizer(optim.SGD, [], lr=1.0), ValueError, "params is empty"),
        (lambda: dist.ZeroOptimizer(optim.SGD, params * 2, lr=1.0), ValueError, "given twice"),
        (lambda: dist.ZeroOptimizer(optim.SGD, params, lr=-1.0), ValueError, "lr is -1.0"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=text):
            make()
    split_gradients = dist.ZeroOptimizer(optim.SGD, params, stage=2, lr=1.0)
    with pytest.raises(ValueError, match="no group can be added"):
        split_gradients.add_param_group({"params": [nn.Parameter(flow.ones(2))]})
    assert len(split_gradients.param_groups) == 1
    optimizer = dist.ZeroOptimizer(optim.SGD, params, lr=1.0)
    with pytest.raises(ValueError, match="a dict with"):
        optimizer.load_state_dict({})
    with pytest.raises(ValueError, match="parameters"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})
    model.half()
    with pytest.raises(RuntimeError, match="given other memory"):
        optimizer.step()


def test_what_is_wrong_is_said(two_ranks):
    two_ranks.run(wrong)


@pytest.mark.parametrize("stage", [1, 2])
def test_a_process_alone(stage):
    model = dist.DataParallel(Net())
    cls, options = OPTIMIZERS["adamw"]
    other = Net()
    other.load_state_dict(model.state_dict())
    optimizer = split(model, "adamw", stage)
    train(model, optimizer, 0, 1, BRANCHES["both"])
    plain = cls(groups(other), **options)
    train(other, plain, 0, 1, BRANCHES["both"])
    check_equal(values(model.module), values(other), 0)


def test_a_refused_group_leaves_all_as_it_was():
    p, more, whole = (nn.Parameter(flow.ones(3)), nn.Parameter(flow.ones(2)),
                      flow.zeros(2, dtype=flow.int64))  # fmt: skip
    optimizer = dist.ZeroOptimizer(optim.SGD, [p], lr=1.0)
    for group, text in [({"params": [more], "lr": -1.0}, "lr is -1.0"),
                        ({"params": [whole]}, "a parameter is int64")]:  # fmt: skip
        with pytest.raises(ValueError, match=text):
            optimizer.add_param_group(group)
        assert len(optimizer.param_groups) == len(optimizer.state_dict()["param_groups"]) == 1
    memory = more.data_ptr()
    for params, lr in (([more], -1.0), ([{"params": [more]}, {"params": [whole]}], 1.0)):
        with pytest.raises(ValueError, match=r"lr is -1.0|a parameter is int64"):
            dist.ZeroOptimizer(optim.SGD, params, lr=lr)
        assert more.data_ptr() == memory
    optimizer.add_param_group({"params": [more], "lr": 2.0})
    (p.sum() + more.sum()).backward()
    optimizer.step()
    assert p.tolist() == [0, 0, 0] and more.tolist() == [-1, -1]


def test_hooks_of_all_optimizers_run_once():
    p, seen = nn.Parameter(flow.ones(3)), []
    optimizer = dist.ZeroOptimizer(optim.SGD, [p], lr=1.0)
    p.sum().backward()
    note = lambda self, args, kwargs: seen.append(type(self).__name__)  # noqa: E731
    with (
        optim.optimizer.register_optimizer_step_pre_hook(note),
        optim.optimizer.register_optimizer_step_post_hook(note),
    ):
        optimizer.step()
    assert seen == ["ZeroOptimizer", "ZeroOptimizer"] and p.tolist() == [0, 0, 0]
