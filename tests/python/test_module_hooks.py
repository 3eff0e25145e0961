# SPDX-License-Identifier: Apache-2.0
"""Backward hooks of modules, states that are taken over, and the text of lists."""

import copy

import numpy as np
import pytest
from numerics import flow, host

nn = flow.nn


class TwoResults(nn.Module):
    def forward(self, x, factor, y):
        return x * factor, x + y, "more"


def test_backward_hooks_see_the_gradients():
    seen = []
    module = TwoResults()
    handle = module.register_full_backward_hook(
        lambda m, gi, go: seen.append((m, [g if g is None else g.tolist() for g in (*gi, *go)]))
    )
    x, y = flow.ones(2, requires_grad=True), flow.ones(2)
    a, b, more = module(x, 3, y)
    (a * 2 + b).sum().backward()
    assert seen == [(module, [[7, 7], None, None, [2, 2], [1, 1], None])] and more == "more"
    assert x.grad.tolist() == [7, 7]
    a, _, _ = module(x, 3, y)
    a.sum().backward()
    assert seen[1][1] == [[3, 3], None, None, [1, 1], None, None]
    handle.remove()
    module(x, 3, y)[0].sum().backward()
    assert len(seen) == 2


def test_backward_hooks_can_change_gradients_and_see_frozen_inputs():
    layer = nn.Linear(2, 3)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    layer.register_full_backward_hook(lambda m, gi, go: gi[0] + 1)
    x = flow.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    np.testing.assert_allclose(host(x.grad), host(layer.weight).sum(0)[None] * 10 + 1, rtol=1e-6)
    seen = []
    frozen = nn.Linear(2, 3)
    frozen.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].shape)))
    frozen(flow.ones(1, 2)).sum().backward()
    assert seen == [((None,), (1, 3))] and frozen.weight.grad is not None
    with flow.no_grad():
        frozen(x)
    assert len(seen) == 1


class Scaled(nn.Module):
    def forward(self, x, *, by=1.0):
        if by == 0:
            raise ZeroDivisionError
        return x * by


def test_forward_hooks_come_in_order_and_see_keywords():
    order = []
    module = Scaled()
    module.register_forward_pre_hook(lambda m, a: order.append("pre"))
    module.register_forward_pre_hook(lambda m, a: order.append("first pre"), prepend=True)
    module.register_forward_hook(lambda m, a, y: order.append("post"))
    module.register_forward_hook(lambda m, a, y: order.append("first post"), prepend=True)
    with module.register_forward_pre_hook(
        lambda m, a, k: (a, {"by": k["by"] * 2}), with_kwargs=True
    ):
        with module.register_forward_hook(lambda m, a, k, y: y + k["by"], with_kwargs=True):
            assert module(flow.ones(1), by=3.0).item() == 6 + 6
        assert module(flow.ones(1), by=3.0).item() == 6
    assert module(flow.ones(1), by=3.0).item() == 3
    assert order == ["first pre", "pre", "first post", "post"] * 3
    module.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must give None or a tuple of args and kwargs"):
        module(flow.ones(1))


def test_a_hook_may_be_called_in_any_case():
    seen = []
    module = Scaled()
    module.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    module.register_forward_hook(lambda m, a, y: seen.append("never"))
    with pytest.raises(ZeroDivisionError):
        module(flow.ones(1), by=0)
    assert seen == [None]


def test_a_hook_that_fails_as_well_leaves_the_first_error():
    def fails(*_):
        raise KeyError("of the hook")

    seen = []
    module = Scaled()
    module.register_forward_hook(fails, always_call=True)
    module.register_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    with (
        pytest.warns(UserWarning, match="always_call=True raised an exception.*of the hook"),
        pytest.raises(ZeroDivisionError),
    ):
        module(flow.ones(1), by=0)
    assert seen == [None]
    with pytest.raises(KeyError, match="of the hook"):
        module(flow.ones(1), by=1)
    assert seen == [None, 1]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.calls = nn.Parameter(flow.ones(1)), 0

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


@pytest.mark.parametrize("assign", [False, True])
def test_an_extra_state_is_saved_and_loaded(assign, tmp_path):
    model = nn.Sequential(Counting(), nn.Linear(1, 1))
    model[0].calls = 7
    assert list(model.state_dict()) == ["0.weight", "0._extra_state", "1.weight", "1.bias"]
    flow.save(model.state_dict(), tmp_path / "state.pt")
    fresh = nn.Sequential(Counting(), nn.Linear(1, 1))
    assert repr(fresh.load_state_dict(flow.load(tmp_path / "state.pt"), assign=assign))[0] == "<"
    assert fresh[0].calls == 7
    without = {k: v for k, v in model.state_dict().items() if k != "0._extra_state"}
    with pytest.raises(RuntimeError, match=r'Missing key.*"0\._extra_state"'):
        fresh.load_state_dict(without)
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"_extra_state"'):
        nn.Linear(1, 1).load_state_dict({**nn.Linear(1, 1).state_dict(), "_extra_state": 1})

    class Halves(nn.Module):
        pass

    Halves.set_extra_state = Counting.set_extra_state
    with pytest.raises(RuntimeError, match=r'Missing key.*"_extra_state"'):
        Halves().load_state_dict(Halves().state_dict())
    with pytest.raises(RuntimeError, match="Linear does not define set_extra_state"):
        nn.Linear(1, 1).set_extra_state(1)


def test_a_state_can_be_taken_over():
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3))
    model[0].bias.requires_grad = False
    state = {name: flow.zeros(p.shape, dtype=flow.float64) for name, p in model.named_parameters()}
    assert repr(model.load_state_dict(state, assign=True)).startswith("<All keys")
    for name, p in model.named_parameters():
        assert p.data_ptr() == state[name].data_ptr() and p.dtype is flow.float64
        assert type(p) is nn.Parameter and p.requires_grad == (name != "0.bias")
    partial = {"0.bias": np.ones(3), "x": np.ones(1)}
    with pytest.raises(flow.ShapeError, match='Missing key.*"0.weight"'):
        model.load_state_dict(partial, assign=True)
    missing, unexpected = model.load_state_dict(partial, strict=False, assign=True)
    assert unexpected == ["x"] and "0.weight" in missing and model[0].bias.tolist() == [1, 1, 1]


def test_like_modules_in_a_list_are_shown_once():
    modules = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())])
    text = "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Sequential(\n    (0): Tanh()\n  )\n)"
    assert repr(modules) == text and repr(nn.ModuleList()) == "ModuleList()"


def test_backward_pre_hooks_change_the_gradients_of_results():
    order = []
    linear = nn.Linear(2, 2, bias=False)

    def half(module, grad_output):
        order.append("half")
        return (grad_output[0] / 2,)

    def see(module, grad_output):
        order.append(grad_output[0].tolist())

    linear.register_full_backward_pre_hook(see)
    handle = linear.register_full_backward_pre_hook(half, prepend=True)
    linear.register_full_backward_hook(lambda m, gi, go: order.append(go[0].tolist()))
    for x in (flow.ones(2, requires_grad=True), flow.ones(2)):
        linear.weight.grad = None
        linear(x).sum().backward()
        assert linear.weight.grad.tolist() == [[0.5, 0.5]] * 2
        assert order == ["half", [0.5, 0.5], [0.5, 0.5]]
        order.clear()
    handle.remove()
    linear(flow.ones(2)).sum().backward()
    assert order[0] == [1, 1]


def test_backward_hooks_that_give_what_does_not_fit():
    module = nn.Sigmoid()
    x = flow.ones(2, requires_grad=True)
    for register, hook in (
        (module.register_full_backward_pre_hook, lambda m, go: ()),
        (module.register_full_backward_hook, lambda m, gi, go: ()),
    ):
        with register(hook), pytest.raises(RuntimeError, match="got 0, but expected 1"):
            module(x).sum().backward()
    linear = nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda m, gi, go: go)
    with pytest.raises(RuntimeError, match="where no input requires gradient"):
        linear(flow.ones(2)).sum().backward()


def test_buffers_by_assignment():
    module = nn.Module()
    module.mean = nn.Buffer(flow.ones(2))
    module.mask = nn.Buffer(flow.zeros(2), persistent=False)
    assert [name for name, _ in module.named_buffers()] == ["mean", "mask"]
    assert list(module.state_dict()) == ["mean"] and not list(module.parameters())
    module.mean = nn.Buffer(flow.ones(2), persistent=False)
    assert not module.state_dict()
    module.mean = nn.Buffer(flow.ones(2))
    module.mean = flow.zeros(3)  # stays registered
    assert module.state_dict()["mean"].shape == (3,)
    module.to(flow.float64)
    assert module.mask.dtype is flow.float64 and not module.mask.requires_grad
    again = copy.deepcopy(module)
    assert list(again.state_dict()) == ["mean"] and again.mask.tolist() == [0, 0]
    assert repr(nn.Buffer()).startswith("Buffer containing:")
    with pytest.raises(TypeError, match="data must be a Tensor"):
        nn.Buffer(1)
    module.number = 5
    with pytest.raises(KeyError, match="already has an attribute 'number'"):
        module.number = nn.Buffer(flow.ones(1))
