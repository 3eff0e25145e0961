# SPDX-License-Identifier: Apache-2.0
"""Steps of all optimizers but Adam as one op; averaged models; clipping by one op."""

import copy
import pickle

import numpy as np
import pytest
from numerics import flow, host

nn, optim = flow.nn, flow.optim
swa = optim.swa_utils
required = optim.optimizer.required
MAKE = {
    "sgd_": lambda ps, **o: optim.SGD(ps, 0.05, 0.9, weight_decay=0.1, nesterov=True, **o),
    "rmsprop_": lambda ps, **o: optim.RMSprop(ps, 0.05, momentum=0.5, centered=True, **o),
    "adadelta_": lambda ps, **o: optim.Adadelta(ps, 0.7, weight_decay=0.1, **o),
    "adagrad_": lambda ps, **o: optim.Adagrad(ps, 0.05, lr_decay=0.2, weight_decay=0.1,
                                              initial_accumulator_value=0.5, **o),
    "lion_": lambda ps, **o: optim.Lion(ps, 0.05, weight_decay=0.1, **o),
    "adam_": lambda ps, **o: optim.AdamW(ps, 0.05, **o),
}  # fmt: skip


def parameters(device="cpu", dtype=flow.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [flow.tensor(rng.standard_normal(s), dtype=dtype, device=device).requires_grad_()
            for s in ((3, 4), (5,), (1,))]  # fmt: skip


def give(params, k):
    rng = np.random.default_rng(100 + k)
    for p in params:
        p.grad = flow.tensor(rng.standard_normal(p.shape), dtype=p.dtype, device=p.device)


def stepped(optimizer, params, first, last):
    for k in range(first, last):
        give(params, k)
        optimizer.step()


def by_numpy(name, x, steps):
    """The formulas of the classes' docstrings, in float64."""
    a = b = c = None
    for t in range(1, steps + 1):
        g = yield x
        if name == "sgd_":
            g = g + 0.1 * x
            a = g if a is None else 0.9 * a + g
            x = x - 0.05 * (g + 0.9 * a)
        elif name == "rmsprop_":
            a = 0.01 * g * g if a is None else 0.99 * a + 0.01 * g * g
            b = 0.01 * g if b is None else 0.99 * b + 0.01 * g
            d = g / (np.sqrt(a - b * b) + 1e-8)
            c = d if c is None else 0.5 * c + d
            x = x - 0.05 * c
        elif name == "adadelta_":
            g = g + 0.1 * x
            a, b = (np.zeros_like(x), np.zeros_like(x)) if a is None else (a, b)
            a = 0.9 * a + 0.1 * g * g
            d = np.sqrt(b + 1e-6) / np.sqrt(a + 1e-6) * g
            b = 0.9 * b + 0.1 * d * d
            x = x - 0.7 * d
        elif name == "adagrad_":
            g = g + 0.1 * x
            a = 0.5 + g * g if a is None else a + g * g
            x = x - 0.05 / (1 + (t - 1) * 0.2) * g / (np.sqrt(a) + 1e-10)
        else:
            a = np.zeros_like(x) if a is None else a
            x = x * (1 - 0.05 * 0.1) - 0.05 * np.sign(0.9 * a + 0.1 * g)
            a = 0.99 * a + 0.01 * g
    yield x


@pytest.mark.parametrize("name", ["sgd_", "rmsprop_", "adadelta_", "adagrad_", "lion_"])
def test_steps_follow_the_formula(device, name):
    params = parameters(device, flow.float64)
    optimizer = MAKE[name](params)
    formulas = [by_numpy(name, host(p), 5) for p in params]
    for f in formulas:
        next(f)
    for k in range(5):
        give(params, k)
        optimizer.step()
        for p, f in zip(params, formulas, strict=True):
            np.testing.assert_allclose(host(p), f.send(host(p.grad)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MAKE)
def test_a_step_is_one_op(name):
    params = parameters()
    optimizer = MAKE[name](params)
    stepped(optimizer, params, 0, 1)
    give(params, 1)
    with flow.profiler.profile() as prof:
        optimizer.step()
    assert [(s.name, s.calls) for s in prof.stats()] == [(name, 1)]


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("master_weights", [False, True])
def test_a_loaded_state_goes_on(device, tmp_path, name, master_weights):
    kind = flow.bfloat16 if master_weights else flow.float32
    whole, half = parameters(device, kind), parameters(device, kind)
    a = MAKE[name](whole, master_weights=master_weights)
    stepped(a, whole, 0, 6)
    b = MAKE[name](half, master_weights=master_weights)
    stepped(b, half, 0, 3)
    flow.save(b.state_dict(), tmp_path / "state")
    c = MAKE[name](half, master_weights=master_weights)
    c.load_state_dict(flow.load(tmp_path / "state"))
    stepped(c, half, 3, 6)
    for p, q in zip(whole, half, strict=True):
        np.testing.assert_array_equal(host(p), host(q))
        assert ("master_weight" in c.state[q]) == master_weights


@pytest.mark.parametrize("name", MAKE)
def test_masters_keep_what_roundings_would_lose(name):
    moved = {}
    for master_weights in (False, True):
        p = flow.full([4], 64.0, dtype=flow.bfloat16).requires_grad_()
        optimizer = MAKE[name]([p], master_weights=master_weights)
        optimizer.param_groups[0]["weight_decay"] = 0.0
        for _ in range(30):
            p.grad = flow.full([4], 0.01, dtype=flow.bfloat16)
            optimizer.param_groups[0]["lr"] = 1e-2
            optimizer.step()
        moved[master_weights] = 64 - host(p)
        assert all(t.dtype is flow.float32 for t in optimizer.state[p].values()
                   if isinstance(t, flow.Tensor))  # fmt: skip
    assert (moved[False] == 0).all()
    if name not in ("sgd_", "adadelta_", "adagrad_"):  # whose steps are as small as their gradients
        assert (moved[True] > 0.05).all()
    else:
        assert host(optimizer.state[p]["master_weight"]).max() < 64


@pytest.mark.parametrize("name", ["sgd_", "rmsprop_", "adadelta_", "adagrad_", "adam_"])
@pytest.mark.parametrize("options", [{}, {"maximize": True}])
def test_states_and_steps_are_pytorchs(name, options):
    torch = pytest.importorskip("torch")
    makers = {
        "sgd_": (optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
        "rmsprop_": (optim.RMSprop, torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
        "adadelta_": (optim.Adadelta, torch.optim.Adadelta, {"rho": 0.8, "weight_decay": 0.1}),
        "adagrad_": (optim.Adagrad, torch.optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
        "adam_": (optim.AdamW, torch.optim.AdamW, {"amsgrad": True}),
    }
    ours, theirs, numbers = makers[name]
    params = parameters(dtype=flow.float64)
    twins = [torch.tensor(host(p)).requires_grad_() for p in params]
    a, b = ours(params, **numbers, **options), theirs(twins, **numbers, **options)

    def both(k):
        give(params, k)
        for p, q in zip(params, twins, strict=True):
            q.grad = torch.tensor(host(p.grad))
        a.step()
        b.step()
        for p, q in zip(params, twins, strict=True):
            np.testing.assert_allclose(host(p), q.detach().numpy(), rtol=1e-7, atol=1e-9)

    for k in range(3):
        both(k)
    kept, known = a.state_dict(), b.state_dict()
    for i, state in known["state"].items():
        assert set(kept["state"][i]) == set(state)

    def as_torch(v):
        return torch.tensor(host(v)) if isinstance(v, flow.Tensor) else v

    def as_flow(v):
        return flow.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v

    moved = {i: {k: as_torch(v) for k, v in s.items()} for i, s in kept["state"].items()}
    b.load_state_dict({"state": moved, "param_groups": known["param_groups"]})
    moved = {i: {k: as_flow(v) for k, v in s.items()} for i, s in known["state"].items()}
    a.load_state_dict({"state": moved, "param_groups": kept["param_groups"]})
    for k in range(3, 6):
        both(k)


def test_plain_sgd_takes_pytorchs_empty_buffers():
    p = flow.ones(2, requires_grad=True)
    optimizer = optim.SGD([p], 0.5, momentum=0.9)
    state = optimizer.state_dict()
    state["state"] = {0: {"momentum_buffer": None}}
    optimizer.load_state_dict(state)
    p.grad = flow.ones(2)
    optimizer.step()
    assert p.tolist() == [0.5, 0.5] and optimizer.state[p]["momentum_buffer"].tolist() == [1, 1]


@pytest.mark.parametrize("make", [
    lambda ps: optim.RMSprop(ps, alpha=-1), lambda ps: optim.Adagrad(ps, lr_decay=-1),
    lambda ps: optim.Lion(ps, betas=(0.9, 1.0)), lambda ps: optim.Lion(ps, lr=float("nan")),
])  # fmt: skip
def test_bad_options(make):
    with pytest.raises(ValueError, match=r"(RMSprop|Adagrad|Lion)\(\): "):
        make(parameters())


def test_gradients_are_zeroed(device):
    """On a GPU by one op; on the CPU one fill takes less time than to find its like."""
    params = parameters(device)
    optimizer = optim.SGD(params)
    give(params, 0)
    grads = [p.grad for p in params]
    with flow.profiler.profile() as prof:
        optimizer.zero_grad(set_to_none=False)
    fills = {s.name: s.calls for s in prof.stats()}
    assert fills == ({"fill_": len(grads)} if device == "cpu" else {"multi_fill_": 1})
    assert all((host(p.grad) == 0).all() for p in params) and all(
        (host(g) == 0).all() for g in grads
    )
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, float("inf")])
def test_clipping_by_the_joint_norm(device, p):
    params = parameters(device)
    params.append(flow.ones(3, dtype=flow.bfloat16, device=device).requires_grad_())
    params.append(flow.ones(3, dtype=flow.float64, device=device).requires_grad_())
    give(params, 0)
    before = [host(q.grad) for q in params]
    flat = np.concatenate([g.ravel() for g in before])
    norm = (np.abs(flat) ** p).sum() ** (1 / p) if p != float("inf") else np.abs(flat).max()
    total = nn.utils.clip_grad_norm_(params, 0.5 * norm, p)
    np.testing.assert_allclose(total.item(), norm, rtol=1e-5)
    for q, g in zip(params, before, strict=True):
        rtol = 1e-2 if q.dtype is flow.bfloat16 else 1e-5
        np.testing.assert_allclose(host(q.grad), 0.5 * g, rtol=rtol)
    nn.utils.clip_grad_norm_(params, 2 * norm, p)
    np.testing.assert_allclose(host(params[0].grad), 0.5 * before[0], rtol=1e-5)
    nn.utils.clip_grad_value_(params, 0.25)
    for q, g in zip(params, before, strict=True):
        rtol = 1e-2 if q.dtype is flow.bfloat16 else 1e-5
        np.testing.assert_allclose(host(q.grad), np.clip(0.5 * g, -0.25, 0.25), rtol=rtol)


def test_clipping_takes_few_ops():
    params = [flow.ones(3, requires_grad=True) for _ in range(100)]
    give(params, 0)
    with flow.profiler.profile() as prof:
        nn.utils.clip_grad_norm_(params, 1.0)
    assert sum(s.calls for s in prof.stats() if s.name not in ("slice", "view")) < 12


@pytest.mark.parametrize("kind", ["ema", "ema one", "swa", "mean"])
def test_averaged_models(device, kind):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)).to(device)
    given = {"ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
             "ema one": {"avg_fn": swa.get_ema_avg_fn(0.9)},
             "swa": {"avg_fn": swa.get_swa_avg_fn()}, "mean": {}}[kind]  # fmt: skip
    averaged = swa.AveragedModel(model, **given)
    expected, seen = None, []
    for k in range(4):
        with flow.no_grad():
            for p in model.parameters():
                p.add_(0.5 * (k + 1))
        averaged.update_parameters(model)
        now = [host(p) for p in model.parameters()]
        seen.append(now)
        if kind.startswith("ema"):
            pairs = zip(expected or now, now, strict=True)
            expected = now if expected is None else [0.9 * a + 0.1 * b for a, b in pairs]
        else:
            expected = [np.mean(ps, 0) for ps in zip(*seen, strict=True)]
    for p, e in zip(averaged.module.parameters(), expected, strict=True):
        np.testing.assert_allclose(host(p), e, rtol=2e-6, atol=1e-6)
    assert averaged.n_averaged.item() == 4
    x = flow.ones(2, 3, device=device)
    np.testing.assert_array_equal(host(averaged(x)), host(averaged.module(x)))
    twin = swa.AveragedModel(model, **given)
    twin.load_state_dict(averaged.state_dict())
    np.testing.assert_array_equal(host(twin(x)), host(averaged(x)))
    with pytest.raises(ValueError, match="decay"):
        swa.get_ema_multi_avg_fn(1.5)
    with pytest.raises(ValueError, match="avg_fn"):
        swa.AveragedModel(
            model, avg_fn=swa.get_swa_avg_fn(), multi_avg_fn=swa.get_ema_multi_avg_fn()
        )


class OfIntegers(flow.nn.Module):
    """Parameters and buffers of which no average is exact."""

    def __init__(self, value):
        super().__init__()
        for dtype in (flow.int64, flow.int32, flow.uint8):
            x = flow.tensor([value * 3, value * 5 + 1], dtype=dtype)
            setattr(self, f"p_{dtype.name}", flow.nn.Parameter(x, requires_grad=False))
            self.register_buffer(f"b_{dtype.name}", x.clone())
        self.register_buffer("mask", flow.tensor([value % 2 == 0, True]))
        self.register_buffer("count", flow.tensor(2**53 - 1))
        self.weight = flow.nn.Parameter(flow.full([2], float(value)))


# What torch 2.15 gives after updates by models of 1, 4, 9 and 2; of uint8, where it wraps around,
# what it gives of int64.
AVERAGES_OF_INTEGERS = {
    "mean": ({}, [[3, 6], [7, 13], [13, 24], [11, 20]]),
    "mean of one": ({"avg_fn": swa.get_swa_avg_fn()}, [[3, 6], [7, 13], [13, 24], [11, 20]]),
    "ema": ({"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)}, [[3, 6], [3, 7], [5, 10], [5, 10]]),
    "ema of one": ({"avg_fn": swa.get_ema_avg_fn(0.9)}, [[3, 6], [3, 7], [5, 10], [5, 10]]),
}


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("name", AVERAGES_OF_INTEGERS)
def test_averages_of_integers(name, use_buffers):
    given, expected = AVERAGES_OF_INTEGERS[name]
    averaged = swa.AveragedModel(OfIntegers(1), use_buffers=use_buffers, **given)
    for value, want in zip((1, 4, 9, 2), expected, strict=True):
        model = OfIntegers(value)
        averaged.update_parameters(model)
        for key, x in averaged.module.state_dict().items():
            its = model.state_dict()[key]
            assert x.dtype is its.dtype, key
            if key.startswith("p_") or (key.startswith("b_") and use_buffers):
                assert x.tolist() == want, key
            elif key != "weight":
                assert x.tolist() == its.tolist(), key


class Signed(optim.Optimizer):
    """Of other people: an optimizer whose lr each group must give."""

    def __init__(self, params, lr=required, decay=0.0):
        super().__init__(params, {"lr": lr, "decay": decay})

    def update(self, parameter, grad, group, state):
        parameter.add_(grad.sign() + group["decay"] * parameter, alpha=-group["lr"])


def test_an_option_that_each_group_must_give():
    p, q, r = (flow.tensor([x], requires_grad=True) for x in (1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match=r"Signed\(\): a group must give a value of lr"):
        Signed([p])
    optimizer = Signed([{"params": [p], "lr": 0.5}])
    with pytest.raises(ValueError, match="value of lr"):
        optimizer.add_param_group({"params": [q]})
    optimizer.add_param_group({"params": [q], "lr": 0.25})
    (p + q).sum().backward()
    optimizer.step()
    assert (p.item(), q.item()) == (0.5, 1.75)
    with pytest.raises(ValueError, match="value of lr"):
        copy.deepcopy(optimizer).add_param_group({"params": [r]})
    assert pickle.loads(pickle.dumps(required)) is required and repr(required) == "required"
