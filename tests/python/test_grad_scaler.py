# SPDX-License-Identifier: Apache-2.0
"""GradScaler: the scale, what overflows, and steps that are not taken."""

import copy
import math
import pickle

import numpy as np
import pytest
from numerics import flow, host

nn, optim = flow.nn, flow.optim
GradScaler = flow.amp.GradScaler
OPTIMIZERS = {
    "SGD": lambda ps: optim.SGD(ps, 0.1, momentum=0.9),
    "SGD dampened": lambda ps: optim.SGD(ps, 0.1, momentum=0.9, dampening=0.5),
    "Adam": lambda ps: optim.Adam(ps, 0.1, amsgrad=True),
    "AdamW": lambda ps: optim.AdamW(ps, 0.1),
    "RMSprop": lambda ps: optim.RMSprop(ps, 0.1, momentum=0.5, centered=True),
    "Adadelta": lambda ps: optim.Adadelta(ps, 0.5),
    "Adagrad": lambda ps: optim.Adagrad(ps, 0.1, lr_decay=0.1),
    "Lion": lambda ps: optim.Lion(ps, 0.1),
}


class Plain(optim.Optimizer):
    """One that somebody wrote: it knows nothing of scales."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def update(self, p, grad, group, state):
        state["calls"] = state.get("calls", 0) + 1
        p.sub_(grad * group["lr"])


def parameters(device):
    values = np.random.default_rng(0).standard_normal((2, 5))
    return [flow.tensor(v, dtype=flow.float32, device=device).requires_grad_() for v in values]


def state_of(optimizer, params):
    """Everything a step may change, as numbers."""
    kept = [host(p).tolist() for p in params]
    for p in params:
        for name, value in sorted(optimizer.state[p].items()):
            kept.append((name, host(value).tolist() if isinstance(value, flow.Tensor) else value))
    return repr(kept)


def backward(params, scaler, k=1.0):
    loss = sum((k * (i + 1) * p * p).sum() for i, p in enumerate(params))
    for p in params:
        p.grad = None
    (scaler.scale(loss) if scaler else loss).backward()


@pytest.mark.parametrize("name", [*OPTIMIZERS, "Plain"])
@pytest.mark.parametrize("unscale", [False, True])
def test_steps_are_those_without_a_scale(device, name, unscale):
    make = OPTIMIZERS.get(name, Plain)
    ours, plain = parameters(device), parameters(device)
    a, b, scaler = make(ours), make(plain), GradScaler(device, init_scale=1024.0)
    for _ in range(4):
        backward(ours, scaler)
        if unscale:
            scaler.unscale_(a)
            nn.utils.clip_grad_norm_(ours, 1.0)
        scaler.step(a)
        scaler.update()
        backward(plain, None)
        if unscale:
            nn.utils.clip_grad_norm_(plain, 1.0)
        b.step()
    for p, q in zip(ours, plain, strict=True):  # by a power of two: nothing is rounded
        np.testing.assert_allclose(host(p), host(q), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", [*OPTIMIZERS, "Plain"])
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("first", [False, True])
def test_a_step_that_overflowed_changes_nothing(device, name, bad, first):
    params = parameters(device)
    optimizer, scaler = OPTIMIZERS.get(name, Plain)(params), GradScaler(device, init_scale=64.0)
    for _ in range(0 if first else 2):
        backward(params, scaler)
        scaler.step(optimizer)
        scaler.update()
    before = [host(p).tolist() for p in params] if first else state_of(optimizer, params)
    backward(params, scaler)
    params[1].grad[3] = bad
    scaler.step(optimizer)
    scaler.update()
    after = [host(p).tolist() for p in params] if first else state_of(optimizer, params)
    assert before == after and scaler.get_scale() == 32.0
    # What follows is what would have followed without it.
    twin_params = parameters(device)
    twin = OPTIMIZERS.get(name, Plain)(twin_params)
    for _ in range(1 if first else 3):
        backward(twin_params, None)
        twin.step()
    backward(params, scaler)
    scaler.step(optimizer)
    for p, q in zip(params, twin_params, strict=True):
        np.testing.assert_allclose(host(p), host(q), rtol=1e-6, atol=1e-7)


def test_the_scale_grows_and_shrinks(device):
    p = flow.ones(3, device=device, requires_grad=True)
    optimizer = optim.SGD([p], 0.0)
    scaler = GradScaler(device, init_scale=8.0, growth_factor=4.0, backoff_factor=0.25,
                        growth_interval=2)  # fmt: skip
    scales = []
    for k in (1, 1, 1, float("inf"), 1, 1):
        backward([p], scaler, k)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8, 32, 32, 8, 8, 32]
    scaler.scale(p.sum()).backward()
    scaler.update(5.0)
    assert scaler.get_scale() == 5.0
    scaler.update(flow.tensor(7.0))
    assert scaler.get_scale() == 7.0


def test_two_optimizers_share_a_scale(device):
    p, q = parameters(device)
    first, second, scaler = optim.SGD([p], 0.1), optim.Adam([q], 0.1), GradScaler(device, 16.0)
    backward([p, q], scaler)
    p.grad[0] = float("inf")
    before = host(p).copy(), host(q).copy()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    np.testing.assert_array_equal(host(p), before[0])
    assert (host(q) != before[1]).all() and scaler.get_scale() == 8.0


def test_what_an_optimizer_left_is_not_anothers():
    """Of two at one address: the second comes where the first has been freed."""
    p = flow.ones(1, requires_grad=True)
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(p.sum()).backward()
    for _ in range(20):
        optimizer = optim.SGD([p], 0.1)
        scaler.unscale_(optimizer)
        del optimizer
    assert p.grad.item() == 2.0**-19


@pytest.mark.cuda
@pytest.mark.parametrize("unscale", [False, True])
def test_no_device_takes_a_step_that_overflowed_on_another(unscale):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    for bad in ("cpu", "cuda"):
        params = [flow.ones(1, device=d, requires_grad=True) for d in ("cuda", "cpu")]
        optimizer, scaler = optim.SGD(params, 1.0), GradScaler(init_scale=1.0)
        scaler.scale(params[0].sum()).backward()
        for p in params:
            p.grad = flow.full_like(p, math.inf if p.device.type == bad else 1.0)
        if unscale:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        assert [p.item() for p in params] == [1.0, 1.0]
        scaler.update()
        assert scaler.get_scale() == 0.5


def test_float16_trains_with_what_would_vanish(device):
    """Gradients of 1e-8 are 0 in float16; with the scale they are not."""
    w = flow.ones(4, dtype=flow.float32, device=device, requires_grad=True)
    optimizer, scaler = optim.SGD([w], 1e6), GradScaler(device)
    x = flow.full([1, 4], 1e-4, device=device)
    moved = {}
    for scale in (False, True):
        with flow.no_grad():
            w.fill_(1.0)
        w.grad = None
        with flow.autocast(device, flow.float16):
            loss = (x @ w.unsqueeze(1)).float().sum() * 1e-4
        (scaler.scale(loss) if scale else loss).backward()
        scaler.step(optimizer) if scale else optimizer.step()
        moved[scale] = 1 - host(w)
    assert (moved[False] < 0.25 * 0.01).all()
    np.testing.assert_allclose(moved[True], 0.01, rtol=0.05)


def test_a_list_of_losses_and_none():
    scaler = GradScaler("cpu", 4.0)
    x, y = flow.ones(2), flow.ones(3)
    a, (b,) = scaler.scale([x, (y,)])
    assert a.tolist() == [4, 4] and b.tolist() == [4, 4, 4]
    off = GradScaler("cpu", enabled=False)
    assert off.scale(x) is x and off.get_scale() == 1.0 and off.state_dict() == {}
    p = flow.ones(2, requires_grad=True)
    p.grad = flow.ones(2)
    optimizer = optim.SGD([p], 1.0)
    off.unscale_(optimizer)
    off.step(optimizer)
    off.update()
    assert p.tolist() == [0, 0]


def test_state_is_saved_as_pytorch_saves_it(device):
    p = flow.ones(3, device=device, requires_grad=True)
    optimizer, scaler = optim.SGD([p], 0.0), GradScaler(device, 8.0, growth_interval=3)
    for _ in range(2):
        backward([p], scaler)
        scaler.step(optimizer)
        scaler.update()
    state = scaler.state_dict()
    assert state == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5,
                     "growth_interval": 3, "_growth_tracker": 2}  # fmt: skip
    for other in (GradScaler(device), pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        other.load_state_dict(state)
        assert other.state_dict() == state
        backward([p], other)
        other.step(optimizer)
        other.update()
        assert other.get_scale() == 16.0
    torch = pytest.importorskip("torch")
    theirs = torch.amp.GradScaler("cpu")
    theirs.load_state_dict(state)
    assert theirs.state_dict() == state


def test_the_order_of_calls_is_kept():
    p = flow.ones(2, requires_grad=True)
    optimizer, scaler = optim.SGD([p], 0.1), GradScaler("cpu")
    for call in (scaler.unscale_, scaler.step):
        with pytest.raises(RuntimeError, match="no loss was scaled"):
            call(optimizer)
    with pytest.raises(RuntimeError, match="no loss was scaled"):
        scaler.update()
    scaler.scale((p * p).sum())
    with pytest.raises(RuntimeError, match="no parameter .* gradient"):
        scaler.step(optimizer)
    scaler.update(2.0)
    scaler.scale((p * p).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_.*since the last"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step.*since the last"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="unscale_"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="pickled"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(RuntimeError, match="no step"):
        scaler.update()
    with pytest.raises(RuntimeError, match="closure"):
        scaler.step(optimizer, lambda: None)
    with pytest.raises(TypeError, match="Tensor"):
        scaler.scale("loss")
    with pytest.raises(ValueError, match="growth_factor"):
        GradScaler("cpu", growth_factor=1.0)


STATE = {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3,
         "_growth_tracker": 2}  # fmt: skip
BAD_NUMBERS = [
    ("scale", 0.0), ("scale", -1.0), ("scale", math.nan), ("scale", math.inf), ("scale", 1e300),
    ("growth_factor", 0.5), ("growth_factor", math.nan), ("backoff_factor", 2.0),
    ("backoff_factor", 0.0), ("growth_interval", 0), ("_growth_tracker", -1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_NUMBERS)
def test_numbers_that_no_scale_can_have(name, value):
    scaler = GradScaler("cpu", init_scale=2.0)
    with pytest.raises(ValueError, match=rf"GradScaler.load_state_dict\(\): .*{name}.* must be"):
        scaler.load_state_dict({**STATE, name: value})
    assert scaler.get_scale() == 2.0 and scaler.get_growth_interval() == 2000
    if name != "_growth_tracker":
        with pytest.raises(ValueError, match=rf"GradScaler\(\): .*{name}.* must be"):
            GradScaler("cpu", **{name.replace("scale", "init_scale"): value})


@pytest.mark.parametrize("name", list(STATE))
def test_a_state_that_is_none(name):
    scaler = GradScaler("cpu")
    less = {key: value for key, value in STATE.items() if key != name}
    with pytest.raises(ValueError, match=f"the state has no {name}"):
        scaler.load_state_dict(less)
    with pytest.raises(TypeError, match=name):
        scaler.load_state_dict({**STATE, name: "x"})
    with pytest.raises(TypeError, match="state_dict must be a dict, not list"):
        scaler.load_state_dict([name])
    scaler.load_state_dict(STATE)
    assert scaler.state_dict() == STATE


def test_a_step_waits_for_nothing(device):
    """Everything is ops: none gives a value to Python."""
    params = parameters(device)
    optimizer, scaler = optim.AdamW(params, 0.1), GradScaler(device)

    def step():
        backward(params, scaler)
        scaler.step(optimizer)
        scaler.update()

    step()
    with flow.profiler.profile() as prof:
        step()
    calls = {s.name: s.calls for s in prof.stats()}
    assert calls["multi_unscale_"] == calls["adam_"] == calls["update_scale_"] == 1
    assert "to_device" not in calls
