# SPDX-License-Identifier: Apache-2.0
"""The framework's seams as Python meets them: dispatch, meta, autograd, the object of a tensor."""

import gc
import threading

import pytest
from numerics import bits, flow, host, tensor

ext = flow._oneflow_lite


class Observer:
    """Sees every op of the thread while it is entered."""

    def __init__(self):
        self.names, self.calls = [], []

    def __enter__(self):
        ext.push_observer(self.observe)
        return self

    def __exit__(self, *_):
        ext.pop_observer()

    def observe(self, name, run):
        self.names.append(name)
        self.calls.append(run())


# The dispatch chain ---------------------------------------------------------------------------


def test_an_observer_sees_every_op_of_forward_and_backward(device):
    x = flow.randn(4, 5, device=device, requires_grad=True)
    with Observer() as seen:
        y = flow.softmax(x, 1)
        y.view(20).sum().backward()
    assert seen.names[0] == "softmax"
    assert {"softmax", "view", "sum", "expand", "softmax_backward"} <= set(seen.names)
    first = seen.calls[0]
    assert first["op"] == "softmax" and first["seconds"] > 0
    assert first["inputs"] == first["outputs"] == [((4, 5), flow.float32, x.device)]
    assert first["bytes"] == 2 * 4 * 20 and first["flops"] > 0
    count = len(seen.names)
    flow.softmax(x, 1)
    assert len(seen.names) == count


def test_an_observer_sees_ops_on_meta_and_views_and_in_place_ops():
    with Observer() as seen:
        x = flow.zeros(3, 4, device="meta")
        x[1:].t().add_(1)
    assert seen.names == ["full", "slice", "permute", "add_"]


def test_observers_nest_and_see_their_own_thread():
    with Observer() as outer, Observer() as inner:
        flow.exp(flow.ones(2))
        thread = threading.Thread(target=lambda: flow.log(flow.ones(2)))
        thread.start()
        thread.join()
    assert outer.names == inner.names == ["full", "exp"]


def test_an_exception_of_an_observer_comes_back_as_itself():
    class Stop(Exception):
        pass

    def stop(name, run):
        raise Stop(name)

    ext.push_observer(stop)
    try:
        with pytest.raises(Stop, match="full"):
            flow.ones(2)
    finally:
        ext.pop_observer()
    ext.push_observer(lambda name, run: None)
    try:
        with pytest.raises(RuntimeError, match="did not call run"):
            flow.ones(2)
    finally:
        ext.pop_observer()
    with pytest.raises(RuntimeError, match="there is none"):
        ext.pop_observer()
    assert flow.ones(2).sum().item() == 2


def test_an_error_passes_through_an_observer_unchanged():
    with Observer(), pytest.raises(IndexError, match="index 7 is out of range"):
        flow.ones(3)[7]
    with Observer() as seen, pytest.raises(flow.ShapeError):
        flow.ones(3) + flow.ones(4)
    assert seen.names == ["full", "full", "add"]


# Meta -----------------------------------------------------------------------------------------


def test_meta_infers_a_training_step_of_any_size_without_memory():
    before = ext.memory_stats("cpu")["allocated"]
    x = flow.empty(1 << 20, 1 << 16, device="meta")
    w = flow.empty(1 << 18, 1 << 16, device="meta", requires_grad=True)
    labels = flow.empty(1 << 20, dtype=flow.int64, device="meta")
    loss = flow.cross_entropy(flow.linear(x, w), labels)
    loss.backward()
    assert loss.shape == () and loss.is_meta
    assert w.grad.shape == w.shape and w.grad.is_meta
    assert ext.memory_stats("cpu")["allocated"] - before < 1 << 16
    with pytest.raises(IndexError):  # the checks are the same
        flow.softmax(x, 2)


# Autograd -------------------------------------------------------------------------------------


def test_saved_tensors_hooks_see_and_replace_what_is_saved(device):
    packed, unpacked = [], []

    def pack(t):
        packed.append(tuple(t.shape))
        return host(t), t.device

    def unpack(kept):
        unpacked.append(kept[0].shape)
        return tensor(kept[0], "float32", kept[1])

    x = flow.randn(3, 4, device=device, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = flow.softmax(x, 1) * x
    assert (3, 4) in packed and len(packed) == 3 and not unpacked
    plain = flow.softmax(x, 1) * x
    expected = flow.autograd.grad(plain, x, flow.ones_like(plain))[0]
    assert bits(flow.autograd.grad(y, x, flow.ones_like(y))[0]) == bits(expected)
    assert len(unpacked) == 3


def test_an_exception_in_a_hook_comes_back_as_itself():
    def bad(*_):
        raise KeyError("mine")

    x = flow.ones(3, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(bad, bad), pytest.raises(KeyError, match="mine"):
        flow.softmax(x, 0)
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, bad):
        y = flow.softmax(x, 0).sum()
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    y = (x * 2).sum()
    x.register_hook(bad)
    with pytest.raises(KeyError, match="mine"):
        y.backward()


def test_backward_inside_backward():
    """Checkpointing: a hook that runs a forward and a backward of its own."""
    w = flow.ones(3, requires_grad=True)
    inner = []

    def recompute(grad):
        with flow.enable_grad():
            v = flow.ones(3, requires_grad=True)
            (v * v).sum().backward()
            inner.append(v.grad.tolist())
        return grad * 2

    y = w * 3
    y.register_hook(recompute)
    y.sum().backward()
    assert inner == [[2.0] * 3] and w.grad.tolist() == [6.0] * 3


def test_no_grad_records_nothing():
    x = flow.ones(3, requires_grad=True)
    with flow.no_grad():
        y = flow.softmax(x, 0)
        assert not y.requires_grad and y.grad_fn is None
        x.add_(1)  # a leaf may be changed here
        with flow.enable_grad():
            assert flow.softmax(x, 0).requires_grad
    assert flow.softmax(x, 0).requires_grad and x.tolist() == [2.0] * 3
    assert not flow.softmax(x.detach(), 0).requires_grad


def test_a_graph_of_two_hundred_thousand_nodes_is_run_and_freed():
    x = flow.ones(2, requires_grad=True)
    before = ext.memory_stats("cpu")["allocated"]
    y = x
    for _ in range(200_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y
    y = x * 1
    for _ in range(200_000):  # never run: freed as a whole
        y = y * 1
    del y
    x.grad = None
    assert ext.memory_stats("cpu")["allocated"] <= before + 4096


def test_a_deep_graph_is_freed_on_a_thread_with_a_small_stack():
    x = flow.ones(1, requires_grad=True)
    threading.stack_size(256 << 10)
    try:
        y = x
        for _ in range(50_000):
            y = -y
        kept = [y]
        del y
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)


def test_what_autograd_holds_is_given_back():
    before = ext.memory_stats("cpu")["allocated"]
    for _ in range(3):
        x = flow.randn(100, 100, requires_grad=True)
        loss = flow.log_softmax(x @ x, 1).sum()
        loss.backward()
        loop = [x]
        x.loop = loop  # a cycle through the tensor's Python object
        loop.append(loop)
    del x, loss, loop
    gc.collect()
    assert ext.memory_stats("cpu")["allocated"] <= before + 4096


def test_the_same_tensor_is_the_same_object():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    x.mark = "kept"
    y.sum().backward()
    grad = x.grad
    assert x.grad is grad
    assert y.view(2)._base is y
    seen = []
    x.register_hook(lambda g: seen.append(type(g)))
    (x * 1).sum().backward()
    assert seen == [flow.Tensor] and x.mark == "kept"
