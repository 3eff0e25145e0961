# SPDX-License-Identifier: Apache-2.0
"""Gradients through the methods of Tensor: backward, hooks, what is saved."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")


def test_requires_grad_and_grad():
    x = flow.ones(2)
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    for bad in (1, None, "a"):
        with pytest.raises(TypeError):
            x.requires_grad = bad
    with pytest.raises(RuntimeError, match="floating"):
        flow.tensor([1]).requires_grad_()
    with pytest.raises(flow.ShapeError):
        x.grad = flow.ones(3)
    with pytest.raises(TypeError):
        x.grad = [1, 2]
    x.grad = flow.ones(2)
    x.grad = None
    assert x.grad is None
    y = flow.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False


def test_backward_arguments():
    x = flow.ones(2, requires_grad=True)
    y = x * 3
    y.backward(flow.tensor([1.0, 2.0]), retain_graph=True)
    assert x.grad.tolist() == [3, 6]
    y.backward(gradient=flow.ones(2))
    assert x.grad.tolist() == [6, 9]
    with pytest.raises(RuntimeError, match="retain_graph"):
        (x * x).sum().backward() or y.backward(flow.ones(2))
        z = (x * x).sum()
        z.backward()
        z.backward()
    with pytest.raises(RuntimeError, match="gradient must be given"):
        (x * 2).backward()
    with pytest.raises(TypeError, match="'gradient' must be Tensor or None, not int"):
        (x * 2).backward(1)
    with pytest.raises(TypeError, match="item 0 of argument 'inputs' must be Tensor, not int"):
        (x * 2).sum().backward(inputs=[1])
    with pytest.raises(RuntimeError, match="does not require grad"):
        flow.ones(1).backward()


def test_backward_into_some_inputs():
    x, w = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    for _ in range(2):
        (x * w * 2).sum().backward(inputs=[w])
    assert x.grad is None and w.grad.tolist() == [4, 4]


def test_graph_is_visible():
    x = flow.ones(2, requires_grad=True)
    y = (x * 2).softmax(0)
    assert y.grad_fn is y.grad_fn and y.grad_fn.name() == "softmax_backward"
    ((mul, slot),) = y.grad_fn.next_functions
    assert (mul.name(), slot) == ("mul_backward", 0)
    leaf, nothing = (edge[0] for edge in mul.next_functions)
    assert leaf.name() == "accumulate_grad" and nothing is None


def test_retain_grad():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError):
        flow.ones(1).retain_grad()


def test_hooks():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    keep = x.register_hook(lambda g: seen.append(("x", g.tolist())))
    y.register_hook(lambda g: g * 10)
    gone = y.register_hook(lambda g: seen.append("gone"))
    gone.remove()
    gone.remove()
    y.sum().backward()
    assert seen == [("x", [20, 20])] and x.grad.tolist() == [20, 20]
    keep.remove()
    (x * 1).sum().backward()
    assert len(seen) == 1
    with pytest.raises(TypeError, match="callable"):
        x.register_hook(1)
    with pytest.raises(RuntimeError, match="does not require grad"):
        flow.ones(1).register_hook(print)


def test_a_hook_cannot_change_what_a_gradient_is():
    for hook, error, text in (
        (lambda g: g[:2], flow.ShapeError, "what the hook gave has shape [2], expected [4]"),
        (lambda g: g.double(), flow.DTypeError, "has dtype float64, expected float32"),
    ):
        x = flow.ones(4, requires_grad=True)
        for t in (x, x * 2):
            t.register_hook(hook)
            with pytest.raises(error) as raised:
                t.sum().backward()
            assert text in str(raised.value) and x.grad is None


def test_errors_of_hooks_come_back_as_themselves():
    class Mine(Exception):
        pass

    def hook(grad):
        raise error

    error = Mine("from the hook")
    x = flow.ones(2, requires_grad=True)
    handle = x.register_hook(hook)
    with pytest.raises(Mine) as raised:
        (x * 2).sum().backward()
    assert raised.value is error
    assert any(entry.name == "hook" for entry in raised.traceback)
    handle.remove()
    x.register_hook(lambda g: 5)
    with pytest.raises(TypeError, match="must give a Tensor or None"):
        (x * 2).sum().backward()


def test_hooks_are_released():
    token = type("Token", (), {"__call__": lambda self, g: None})()
    ref = weakref.ref(token)
    x = flow.ones(2, requires_grad=True)
    (x * 2).register_hook(token)  # goes with its graph
    handle = x.register_hook(token)
    del token
    assert ref() is not None
    handle.remove()
    assert ref() is None


@pytest.mark.parametrize("leaf", [False, True])
def test_a_hook_that_keeps_its_tensor_is_collected(leaf):
    x = flow.ones(2, requires_grad=True)
    y = x if leaf else x * 2
    calls = []
    token = type("Token", (), {})()
    ref = weakref.ref(token)
    y.register_hook(lambda g, kept=(y, token): calls.append(g.tolist()))
    z = y.sum()
    del x, y, token
    gc.collect()
    z.backward()
    assert calls == [[1, 1]] and ref() is not None
    del z
    gc.collect()
    assert ref() is None


def test_a_hook_may_use_tensors_in_another_thread():
    """backward runs without the interpreter's lock, its hooks with it."""
    results = []

    def work():
        x = flow.ones(30000, requires_grad=True)
        x.register_hook(lambda g: (g + 1).softmax(0) * 0 + 7)
        for _ in range(20):
            x.grad = None
            (x * 2).sum().backward()
        results.append(float(x.grad.sum()))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [210000.0] * 3


def test_saved_tensors_hooks():
    packed, hooks = [], flow.autograd.graph.saved_tensors_hooks

    def pack(t):
        packed.append(t.shape)
        return ("packed", t.numpy().copy())

    def unpack(p):
        assert p[0] == "packed"
        return flow.from_numpy(p[1])

    x = flow.from_numpy(np.array([1.0, 2.0])).requires_grad_()
    with hooks(pack, unpack):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 4] and packed

    def fail(_):
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"), hooks(fail, unpack):
        x * x
    with hooks(pack, fail):
        y = (x * x).sum()
    with pytest.raises(KeyError, match="no"):
        y.backward()
    with pytest.raises(RuntimeError):
        flow._oneflow_lite.pop_saved_tensors_hooks()


def test_a_retained_gradient_is_of_the_value_as_it_is():
    leaf = flow.tensor([3.0], requires_grad=True)
    y = leaf.clone()
    y.retain_grad()
    y.mul_(2)
    y.mul_(5)
    y.sum().backward()
    assert y.grad.tolist() == [1] and leaf.grad.tolist() == [10]
    whole = flow.ones(3, requires_grad=True).clone()
    whole.retain_grad()
    whole[1:] *= 4
    (whole * flow.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert whole.grad.tolist() == [1, 2, 3]


def test_a_retained_gradient_has_been_through_all_hooks():
    y = flow.tensor(1.0, requires_grad=True).clone()
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.clone().backward()
    assert y.grad.item() == 6


def test_zeros_for_unused_inputs_can_be_differentiated():
    x, a = (flow.tensor(v, requires_grad=True) for v in (0.5, 2.0))
    (slope,) = flow.autograd.grad(x * a, x, create_graph=True)
    (second,) = flow.autograd.grad(slope, x, create_graph=True, materialize_grads=True)
    assert second.item() == 0 and second.requires_grad
    (third,) = flow.autograd.grad(second, x, materialize_grads=True)
    assert third.item() == 0 and not third.requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_a_leaf_is_contiguous(create_graph):
    w = flow.ones(4, 2, requires_grad=True)
    (flow.ones(3, 2) @ w.t()).pow(2).sum().backward(create_graph=create_graph)
    assert w.grad.is_contiguous() and w.grad.view(-1).tolist() == [12] * 8
    x = flow.ones(2, 3, requires_grad=True)
    (x.view(6) * 2).sum().backward(create_graph=create_graph)
    assert x.grad.detach_().tolist() == [[2] * 3] * 2  # no view
    assert w.grad.requires_grad == create_graph


def test_detach_in_place():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    y.retain_grad()
    z.sum().backward(retain_graph=True)
    assert y.detach_() is y and y.is_leaf and not y.requires_grad and y.grad.tolist() == [3, 3]
    z.sum().backward()  # what came of it before keeps its history
    assert x.grad.tolist() == [12, 12]
    y.requires_grad_()
    y.grad = None
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 4] and x.grad.tolist() == [12, 12]
    assert not x.detach_().requires_grad and flow.ones(1).detach_().item() == 1
    with pytest.raises(RuntimeError, match="a view cannot be detached in place"):
        (z * 1)[:1].detach_()


@pytest.mark.parametrize("through", [lambda x: x + 0.0, lambda x: x.view(3), lambda x: x * 1])
def test_a_gradient_that_was_given_is_not_changed_by_later_passes(through):
    x, given = flow.ones(3, requires_grad=True), flow.ones(3)
    through(x).backward(given, create_graph=True)
    (x * 5).sum().backward()
    assert given.tolist() == [1, 1, 1] and x.grad.tolist() == [6, 6, 6]


def test_leaves_with_one_gradient_have_it_each_for_itself():
    a, b = flow.ones(3, requires_grad=True), flow.ones(3, requires_grad=True)
    (a + b).sum().backward(create_graph=True)
    (a * 5).sum().backward()
    assert a.grad.tolist() == [6, 6, 6] and b.grad.tolist() == [1, 1, 1]


def test_the_grad_of_what_is_no_leaf_is_warned_of():
    """As in PyTorch: backward leaves none there."""
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    for moment in (lambda: None, lambda: y.sum().backward()):
        moment()
        with pytest.warns(UserWarning, match=r"retain_grad\(\)"):
            assert y.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = x * 3
        kept.retain_grad()
        assert kept.grad is None
        kept.sum().backward()
        assert kept.grad.tolist() == [1, 1] and x.grad.tolist() == [5, 5]
        assert (x.detach() * 2).grad is None and flow.ones(1).grad is None
