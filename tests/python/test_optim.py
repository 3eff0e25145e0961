# SPDX-License-Identifier: Apache-2.0
"""Optimizers against the formulas in NumPy float64, and against PyTorch where it is there."""

import copy
import itertools
import threading
import warnings

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
SGD = flow.optim.SGD

OPTIONS = [
    {"lr": 0.1},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.5},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.3, "nesterov": True, "maximize": True},
]


def reference(
    p, grads, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False
):
    buffer = None
    for g in grads:
        g = -g if maximize else g
        g = g + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((3, 4)), rng.standard_normal((5, 3, 4))


def run(p, grads, **options):
    parameter = flow.tensor(p, requires_grad=True)
    optimizer = SGD([parameter], **options)
    for g in grads:
        parameter.grad = flow.tensor(g)
        optimizer.step()
    return parameter.detach().numpy()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sgd_follows_the_formula(options):
    p, grads = draw()
    np.testing.assert_allclose(run(p, grads, **options), reference(p, grads, **options), rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_sgd_is_pytorchs(options):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: no parity check")
    p, grads = draw(1)
    parameter = torch.tensor(p, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], **options)
    for g in grads:
        parameter.grad = torch.tensor(g)
        optimizer.step()
    np.testing.assert_allclose(run(p, grads, **options), parameter.detach().numpy(), rtol=1e-12)


def test_step_changes_in_place_and_records_nothing():
    p = flow.ones(3, requires_grad=True)
    address, version = p.data_ptr(), p._version
    p.grad = flow.ones(3)
    SGD([p], lr=0.5).step()
    assert p.data_ptr() == address and p._version > version
    assert p.is_leaf and p.requires_grad
    assert p.tolist() == [0.5] * 3
    assert p.grad.tolist() == [1] * 3


def test_a_step_between_forward_and_backward_is_noticed():
    p = flow.ones(3, requires_grad=True)
    loss = (p * p).sum()
    p.grad = flow.ones(3)
    SGD([p], lr=0.5).step()
    with pytest.raises(RuntimeError, match="in place"):
        loss.backward()


def test_parameters_without_gradient_are_left_alone():
    a, b = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    optimizer = SGD([a, b], lr=1)
    b.grad = flow.ones(2)
    optimizer.step()
    assert a.tolist() == [1, 1] and b.tolist() == [0, 0]
    assert list(optimizer.state_dict()["state"]) == []


def test_groups_have_their_own_options():
    a, b, c = (flow.ones(1, requires_grad=True) for _ in range(3))
    optimizer = SGD([{"params": [a]}, {"params": b, "lr": 10}], lr=1)
    optimizer.add_param_group({"params": (p for p in [c]), "lr": 100})
    for p in (a, b, c):
        p.grad = flow.ones(1)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [0, -9, -99]
    assert "group 2: 1 parameters, lr=100" in repr(optimizer)


def test_zero_grad():
    p = flow.ones(2, requires_grad=True)
    optimizer = SGD([p], lr=1)
    p.grad = flow.ones(2)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.zero_grad(set_to_none=False)


def test_closure_runs_with_gradients():
    p = flow.ones(2, requires_grad=True)
    optimizer = SGD([p], lr=1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with flow.no_grad():
        assert optimizer.step(closure).item() == 2
    assert p.tolist() == [-1, -1]


@pytest.mark.parametrize("options", [{"lr": -1}, {"lr": float("nan")}, {"lr": 1, "momentum": -1},
                                     {"lr": 1, "weight_decay": -1}, {"lr": 1, "nesterov": True},
                                     {"lr": 1, "nesterov": True, "momentum": 1, "dampening": 1}],
                         ids=str)  # fmt: skip
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=r"SGD\(\)"):
        SGD([flow.ones(1, requires_grad=True)], **options)


def test_bad_parameters_are_refused():
    p = flow.ones(1, requires_grad=True)
    for bad, kind in [([], ValueError), (p, TypeError), ([1.0], TypeError), ([p, p], ValueError),
                      ([p * 2], ValueError),
                      ([{"params": [p]}, {"params": [p]}], ValueError)]:  # fmt: skip
        with pytest.raises(kind, match=r"SGD\(\)"):
            SGD(bad, lr=1)


@pytest.mark.parametrize("state", [[1], {}, {"state": {}}, None])
def test_a_state_of_something_else_is_refused(state):
    optimizer = flow.optim.SGD([flow.ones(1, requires_grad=True)], lr=0.1)
    with pytest.raises(ValueError, match='a dict with "state" and "param_groups" is needed'):
        optimizer.load_state_dict(state)


@pytest.mark.parametrize("change", [
    {"state": [1, 2]}, {"state": None}, {"state": {0: [1]}}, {"param_groups": {}},
    {"param_groups": [1]}, {"param_groups": [{"lr": 1.0}]}, {"param_groups": [{"params": 0}]},
])  # fmt: skip
def test_a_state_that_is_none_is_refused_before_anything_changes(change):
    p = flow.ones(2, requires_grad=True)
    optimizer = flow.optim.SGD([p], lr=0.5, momentum=0.9)
    p.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match='a dict with "state" and "param_groups" is needed'):
        optimizer.load_state_dict({**copy.deepcopy(state), **change})
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1, 1]


def test_a_state_that_cannot_be_copied_leaves_the_old_one():
    p = flow.ones(2, requires_grad=True)
    optimizer = flow.optim.SGD([p], lr=0.5, momentum=0.9)
    p.sum().backward()
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 7.0
    state["state"][0]["lock"] = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1, 1]


def test_momentum_converges_on_a_quadratic():
    x = flow.tensor([5.0, -3.0], requires_grad=True)
    optimizer = SGD([x], lr=0.05, momentum=0.8)
    for _ in itertools.repeat(None, 200):
        optimizer.zero_grad()
        (x * x).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), 0, atol=1e-6)


class SignDescent(flow.optim.Optimizer):
    """As others write theirs: the whole of step, and state that is there when it is asked for."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @flow.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None or p.grad.is_sparse:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["sum"] = flow.zeros_like(p, memory_format=flow.preserve_format)
                state["step"] += 1
                state["sum"].add_(p.grad)
                p.add_(state["sum"].sign(), alpha=-group["lr"])


def test_an_optimizer_with_a_step_of_its_own():
    p = flow.tensor([1.0, -2.0], requires_grad=True)
    optimizer = SignDescent([p], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    assert p.tolist() == [0, -1]
    again = SignDescent([p])
    again.load_state_dict(optimizer.state_dict())
    assert again.state[p]["step"] == 2 and again.state[p]["sum"].tolist() == [3, -7]
    assert again.state[flow.ones(1)] == {}


@pytest.mark.parametrize("make", [flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW])
def test_ways_to_compute_a_step(make):
    p = flow.ones(2, requires_grad=True)
    optimizer = make([p], lr=0.5, foreach=True, fused=False)
    p.grad = flow.ones(2)
    optimizer.step()
    assert (p < 1).all()
    with pytest.raises(NotImplementedError, match=rf"{make.__name__}\(\): differentiable=True"):
        make([p], lr=0.5, differentiable=True)


@pytest.mark.parametrize("make", [SGD, flow.optim.Adam, flow.optim.AdamW])
def test_groups_keep_keys_of_their_own(make):
    w, v = (flow.ones(2, requires_grad=True) for _ in range(2))
    own = {"name": "x", "my_key": 3, "initial_lr": 0.5, "max_lr": 1.0, "layers": [1, 2]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = make([{"params": [w], **own}, {"params": [v]}], lr=0.1)
        optimizer.add_param_group({"params": flow.ones(1, requires_grad=True), "late": True})
    first, second, third = optimizer.param_groups
    assert {key: first[key] for key in own} == own and "name" not in second and third["late"]
    (w.sum() + v.sum()).backward()
    optimizer.step()
    assert "name=x, my_key=3" in repr(optimizer) and w.tolist() == v.tolist() != [1, 1]
    state = copy.deepcopy(optimizer.state_dict())
    assert {key: state["param_groups"][0][key] for key in own} == own
    first["my_key"], first["name"] = 4, "y"
    optimizer.load_state_dict(state)
    assert {key: optimizer.param_groups[0][key] for key in own} == own
    plain = make([{"params": [w]}, {"params": [v]}, {"params": [third["params"][0]]}], lr=0.5)
    plain.load_state_dict(state)
    assert {key: plain.param_groups[0][key] for key in own} == own
    assert plain.param_groups[0]["lr"] == 0.1 and plain.param_groups[2]["late"]


def test_a_key_that_is_nearly_an_option_warns():
    p = flow.ones(1, requires_grad=True)
    with pytest.warns(
        UserWarning, match=r"SGD\(\): the key 'wieght_decay'.*'weight_decay'"
    ) as caught:
        optimizer = SGD([{"params": [p], "wieght_decay": 1}], lr=1)
    assert caught[0].filename == __file__ and optimizer.param_groups[0]["wieght_decay"] == 1


def test_an_optimizer_without_options():
    class Signs(flow.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def update(self, p, grad, group, state):
            p.sub_(grad.sign() * group.get("scale", 1))

    class Whole(flow.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, dict())

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["steps"] = self.state[p].get("steps", 0) + 1

    w, v = (flow.ones(2, requires_grad=True) for _ in range(2))
    optimizer = Signs([{"params": [w], "scale": 3}, {"params": [v]}])
    (w.sum() - v.sum()).backward()
    optimizer.step()
    assert w.tolist() == [-2, -2] and v.tolist() == [2, 2] and optimizer.defaults == {}
    again = Signs([{"params": [w]}, {"params": [v]}])
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["scale"] == 3
    assert repr(again).splitlines()[2] == "  group 1: 1 parameters"
    whole = Whole([w])
    whole.step()
    assert whole.state_dict() == {"state": {0: {"steps": 1}}, "param_groups": [{"params": [0]}]}


OPTIMIZERS = ["Adadelta", "Adagrad", "Adam", "AdamW", "Lion", "RMSprop", "SGD"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_with_their_names(name):
    make = getattr(flow.optim, name)
    model = flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.Linear(3, 1))
    named, plain = make(model.named_parameters()), make(model.parameters())
    names = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [id(p) for p in named.param_groups[0]["params"]] == [id(p) for p in model.parameters()]
    assert named.param_groups[0]["param_names"] == names
    assert "param_names" not in plain.param_groups[0]
    state = named.state_dict()
    assert state["param_groups"][0]["param_names"] == names
    make(model.named_parameters()).load_state_dict(state)
    pairs = list(model.named_parameters())
    groups = make([{"params": pairs[:1], "lr": 0.5}, {"params": iter(pairs[1:])}])
    assert [g["param_names"] for g in groups.param_groups] == [names[:1], names[1:]]
    for wrong in ([pairs[0], pairs[1][1]], [{"params": pairs[:1]}, {"params": pairs[1][1]}]):
        with pytest.raises(ValueError, match=rf"{name}\(\): .*name"):
            make(wrong)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_in_a_set(name):
    make, p = getattr(flow.optim, name), flow.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match=rf"{name}\(\): params is a set, whose order differs"):
        make({p})
    with pytest.raises(TypeError, match=rf"{name}\(\): parameters must come in an order"):
        make([{"params": {p}}])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_size_is_one_number(name):
    p = flow.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=rf"{name}\(\): lr has shape \[2\], but it must be one"):
        getattr(flow.optim, name)([p], lr=flow.ones(2))
    getattr(flow.optim, name)([p], lr=flow.ones(1))
