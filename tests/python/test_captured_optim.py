# SPDX-License-Identifier: Apache-2.0
"""Steps of optimizers in a CUDA graph: the same as eager ones, or an error."""

import numpy as np
import pytest
from numerics import flow, host, tensor

from oneflow_lite.optim import _lr_base, optimizer

SGD, Adam, AdamW = flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW
RNG = np.random.default_rng(0)
P, GRADS = RNG.standard_normal((3, 4)), RNG.standard_normal((8, 3, 4))
CAPTURABLE = [(kind, {"capturable": True, **options}) for kind in (Adam, AdamW)
              for options in ({}, {"amsgrad": True, "maximize": True, "weight_decay": 0.1},
                              {"betas": (0.5, 0.8)})]  # fmt: skip
TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "bfloat16": 2e-2, "float16": 2e-3}


def parameter(dtype="float64", device="cpu", shape=(3, 4)):
    p = tensor(P, dtype, device)[0, 0] if shape == () else tensor(P, dtype, device)
    return p.clone().requires_grad_()


def take_steps(stepper, p, grads):
    for g in grads:
        p.grad = tensor(g if p.ndim else g[0, 0], p.dtype.name, p.device)
        stepper.step()
    return host(p)


@pytest.fixture
def captured(monkeypatch):
    """What a capture changes, without a GPU."""
    monkeypatch.setattr(optimizer, "is_captured", lambda tensors: True)
    monkeypatch.setattr(_lr_base, "is_captured", lambda tensors: True)


@pytest.mark.parametrize("kind, options", CAPTURABLE)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3, 4), ()])
def test_a_count_in_a_tensor_gives_the_same_numbers(kind, options, dtype, shape):
    p, q = (parameter(dtype, shape=shape) for _ in range(2))
    found = take_steps(kind([p], lr=0.01, **options), p, GRADS)
    expected = take_steps(kind([q], lr=0.01, **(options | {"capturable": False})), q, GRADS)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype])
    assert p.dtype.name == dtype


def test_what_counts_is_of_the_kind_that_the_option_says():
    for capturable in (True, False):
        p = parameter()
        stepper = Adam([p], capturable=capturable)
        take_steps(stepper, p, GRADS[:3])
        count = stepper.state_dict()["state"][0]["step"]
        assert isinstance(count, flow.Tensor) == capturable and int(count) == 3
        assert not capturable or (count.ndim == 0 and count.dtype is flow.float64)


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_state_goes_on_whatever_counted_it(saved, loaded):
    p, q = parameter(), parameter()
    first = AdamW([p], lr=0.01, capturable=saved)
    take_steps(first, p, GRADS[:3])
    state = first.state_dict()
    state["param_groups"][0]["capturable"] = loaded
    second = AdamW([r := p.detach().clone().requires_grad_()], lr=0.01)
    second.load_state_dict(state)
    assert isinstance(second.state[r]["step"], flow.Tensor) == loaded
    expected = take_steps(AdamW([q], lr=0.01), q, GRADS)
    np.testing.assert_allclose(take_steps(second, r, GRADS[3:]), expected, rtol=1e-13)
    assert int(first.state[p]["step"]) == 3  # the state that was loaded is a copy


@pytest.mark.parametrize("capturable", [True, False])
def test_a_count_of_pytorchs_is_taken(capturable):
    """It is a tensor of float32."""
    p, q = parameter(), parameter()
    first = Adam([p], lr=0.01, capturable=capturable)
    take_steps(first, p, GRADS[:3])
    state = first.state_dict()
    state["state"][0]["step"] = flow.tensor(3.0)
    first.load_state_dict(state)
    expected = take_steps(Adam([q], lr=0.01), q, GRADS)
    np.testing.assert_allclose(take_steps(first, p, GRADS[3:]), expected, rtol=1e-13)
    # Or by a change of the option.
    first.param_groups[0]["capturable"] = not capturable
    take_steps(first, p, GRADS[:1])
    assert isinstance(first.state[p]["step"], flow.Tensor) != capturable


def test_a_number_that_counts_is_not_captured(captured):
    p = parameter()
    p.grad = tensor(GRADS[0], "float64")
    with pytest.raises(RuntimeError, match=r"^AdamW.step\(\): .*pass capturable=True$"):
        AdamW([p]).step()
    np.testing.assert_array_equal(host(p), P)


def test_a_count_becomes_no_tensor_within_a_capture(monkeypatch):
    p = parameter()
    stepper = Adam([p])
    take_steps(stepper, p, GRADS[:1])
    monkeypatch.setattr(optimizer, "is_captured", lambda tensors: True)
    stepper.param_groups[0]["capturable"] = True
    with pytest.raises(RuntimeError, match="counted without capturable=True"):
        stepper.step()


@pytest.mark.parametrize("make", [lambda p: Adam([p], capturable=True),
                                  lambda p: SGD([p], momentum=0.9)])  # fmt: skip
def test_the_state_is_not_made_within_a_capture(make, monkeypatch):
    p = parameter()
    stepper = make(p)
    with monkeypatch.context() as capture:
        capture.setattr(optimizer, "is_captured", lambda tensors: True)
        p.grad = tensor(GRADS[0], "float64")
        with pytest.raises(RuntimeError, match="take a step before the capture"):
            stepper.step()
    assert not stepper.state[p]
    take_steps(stepper, p, GRADS[:1])
    monkeypatch.setattr(optimizer, "is_captured", lambda tensors: True)
    stepper.step()


def test_what_keeps_no_state_is_captured_at_once(captured):
    p = parameter()
    take_steps(SGD([p]), p, GRADS[:1])


def test_a_step_size_in_the_hosts_memory_is_not_captured(captured):
    p = parameter()
    p.grad = tensor(GRADS[0], "float64")
    with pytest.raises(RuntimeError, match="an lr that is a tensor must be on the GPU"):
        SGD([p], lr=flow.tensor(0.1)).step()


SCHEDULERS = {
    "StepLR": lambda o: flow.optim.lr_scheduler.StepLR(o, 1, 0.5),
    "CosineAnnealingLR": lambda o: flow.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "OneCycleLR": lambda o: flow.optim.lr_scheduler.OneCycleLR(o, 0.1, 20, cycle_momentum=False),
    "MultiplicativeLR": lambda o: flow.optim.lr_scheduler.MultiplicativeLR(o, lambda e: 0.9),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_step_size_in_a_tensor_is_changed_in_place(name):
    size = flow.tensor(0.1, dtype=flow.float64)
    schedules = [SCHEDULERS[name](SGD([parameter()], lr=lr)) for lr in (size, 0.1)]
    for _ in range(3):
        for schedule in schedules:
            schedule.step()
        assert schedules[0].optimizer.param_groups[0]["lr"] is size
        (last,) = schedules[1].get_last_lr()
        assert size.item() == pytest.approx(last, rel=1e-12)
    before = schedules[0].get_last_lr()[0]
    schedules[0].step()
    assert before.item() == pytest.approx(last, rel=1e-12)


def test_a_plateau_changes_a_tensor_in_place():
    size = flow.tensor(0.1)
    schedule = flow.optim.lr_scheduler.ReduceLROnPlateau(SGD([parameter()], lr=size), patience=0)
    for metric in (1.0, 2.0):
        schedule.step(metric)
    assert size.item() == pytest.approx(0.01)


def test_a_schedule_does_not_go_on_within_a_capture(monkeypatch):
    optimizer = SGD([parameter()], lr=1.0, momentum=0.9)
    schedules = flow.optim.lr_scheduler
    halved = schedules.ExponentialLR(optimizer, 0.5)
    cycle = schedules.OneCycleLR(SGD([parameter()], momentum=0.9), 0.1, total_steps=9)
    plateau = schedules.ReduceLROnPlateau(SGD([parameter()], lr=1.0), factor=0.5, patience=0)
    plateau.step(1.0)
    before = [s.state_dict() for s in (halved, cycle, plateau)]
    with monkeypatch.context() as captured:
        captured.setattr(_lr_base, "is_captured", lambda tensors: True)
        for step in (halved.step, cycle.step, lambda: plateau.step(2.0)):
            with pytest.raises(RuntimeError, match="no schedule can go on"):
                step()
    assert [s.state_dict() for s in (halved, cycle, plateau)] == before
    halved.step()
    plateau.step(2.0)
    assert halved.get_last_lr() == plateau.get_last_lr() == [0.5]


# On a GPU.


def needs_gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")


@pytest.mark.cuda
@pytest.mark.parametrize("kind, options", [*CAPTURABLE, (SGD, {"momentum": 0.9, "nesterov": True})])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_replayed_steps_are_those_of_eager_ones(kind, options, dtype):
    needs_gpu()
    results = []
    for in_graph in (True, False):
        p = parameter(dtype, "cuda")
        size = flow.tensor(0.01, device="cuda")
        stepper = kind([p], lr=size, **options)
        p.grad = flow.zeros_like(p)
        graph = None
        for k, g in enumerate(GRADS):
            size.fill_(0.01 * 0.9**k)
            p.grad.copy_(tensor(g, dtype, "cuda"))
            if not in_graph or k < 2:
                stepper.step()
                continue
            if graph is None:
                graph = flow.cuda.CUDAGraph()
                with flow.cuda.graph(graph):
                    stepper.step()
            graph.replay()
        results.append(host(p))
        count = stepper.state_dict()["state"][0].get("step")
        assert count is None or count.item() == len(GRADS)
    np.testing.assert_array_equal(*results)


@pytest.mark.cuda
def test_steps_that_would_not_replay_are_refused_on_a_gpu():
    needs_gpu()
    p = parameter("float32", "cuda")
    p.grad = flow.ones_like(p)
    for stepper in (Adam([p]), Adam([p], capturable=True), SGD([p], momentum=0.9)):
        with pytest.raises(RuntimeError, match=r"step\(\)"), flow.cuda.graph(flow.cuda.CUDAGraph()):
            stepper.step()
    schedule = flow.optim.lr_scheduler.ExponentialLR(SGD([p]), 0.9)
    with pytest.raises(RuntimeError, match="schedule"), flow.cuda.graph(flow.cuda.CUDAGraph()):
        schedule.step()
    assert (flow.ones(3, device="cuda") * 2).sum().item() == 6
