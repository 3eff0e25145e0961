# SPDX-License-Identifier: Apache-2.0
"""Hooks on gradients: the mode they run in, how they come and go; a graph's second backward."""

import gc
import threading
import weakref

import pytest
from numerics import flow
from test_threads import side_by_side

nn = flow.nn
Function = flow.autograd.Function


class Thing:
    """Something whose end can be seen."""


def leaf(*values):
    return flow.tensor(values or (1.0, 2.0), requires_grad=True)


def test_hooks_record_nothing_in_a_plain_backward():
    seen = []

    def double(grad):
        seen.append(flow.is_grad_enabled())
        return grad * w  # what requires grad would give the gradient a history

    w, x = leaf(3.0, 4.0), leaf()
    x.register_hook(double)
    y = x * x
    y.register_hook(double)
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda x: seen.append(flow.is_grad_enabled()))
    y.sum().backward()
    assert seen == [False] * 3
    for grad in (x.grad, y.grad):
        assert not grad.requires_grad and grad.grad_fn is None
    assert x.grad.tolist() == [18, 64] and w.grad is None


def test_hooks_record_with_create_graph():
    seen, x = [], leaf()
    x.register_hook(lambda g: seen.append(flow.is_grad_enabled()) or g * 3)
    (x * x).sum().backward(create_graph=True)
    (g,) = flow.autograd.grad(x.grad.sum(), x)  # which is hooked as well
    assert seen == [True, False] and g.tolist() == [18, 18]
    x.grad = None


def test_a_hook_that_switches_recording_on_leaves_the_pass_alone():
    x = leaf()
    y = x * x
    y.register_hook(lambda g: flow.set_grad_enabled(True) and None)
    y.sum().backward()
    assert not x.grad.requires_grad and flow.is_grad_enabled()


@pytest.mark.parametrize("create_graph", [False, True])
def test_module_hooks_and_saved_tensor_hooks_run_as_the_pass_does(create_graph):
    seen = []
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(
        lambda m, gi, go: seen.append(("backward", flow.is_grad_enabled()))
    )
    layer.register_full_backward_pre_hook(
        lambda m, go: seen.append(("pre", flow.is_grad_enabled()))
    )

    def pack(x):
        seen.append(("pack", flow.is_grad_enabled()))
        return x

    def unpack(x):
        seen.append(("unpack", flow.is_grad_enabled()))
        return x

    x = flow.ones(3, 2, requires_grad=True)
    y = layer(x)
    with flow.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = y.exp()
    y.sum().backward(create_graph=create_graph)
    for p in (x, *layer.parameters()):
        assert p.grad.requires_grad == create_graph
        p.grad = None
    modes = {name: mode for name, mode in seen}
    assert modes.pop("pack") is False
    assert modes == dict.fromkeys(("unpack", "pre", "backward"), create_graph)


def test_pack_may_use_other_hooks():
    def pack(x):
        with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            with flow.enable_grad():
                (leaf() * leaf()).sum().backward()
        return x

    x = leaf()
    with flow.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = (x * x).exp()
    y.sum().backward()
    assert x.grad.shape == (2,)


@pytest.mark.parametrize("kind", ["leaf", "node", "post"])
def test_a_hook_that_is_removed_goes(kind):
    x = leaf()
    t = x * 2 if kind == "node" else x
    register = t.register_post_accumulate_grad_hook if kind == "post" else t.register_hook
    for _ in range(3):
        thing = Thing()
        handle = register(lambda g, thing=thing: None)
        gone = weakref.ref(thing)
        del thing
        assert gone() is not None
        handle.remove()
        assert gone() is None
        handle.remove()
    with register(lambda g: pytest.fail("called")):
        pass
    (t * 2).sum().backward()


def test_hooks_that_remove_add_and_run_backward():
    x, calls = leaf(), []
    y = x * 2

    def first(g):
        calls.append("first")
        handles[1].remove()
        handles.append(y.register_hook(lambda g: calls.append("late")))
        gc.collect()
        with flow.enable_grad():
            (leaf() ** 2).sum().backward()

    handles = [y.register_hook(first), y.register_hook(lambda g: calls.append("second"))]
    y.sum().backward(retain_graph=True)
    assert calls == ["first", "second"]  # those of when the pass came to the tensor
    y.sum().backward()
    assert calls[2:] == ["first", "late"]


def test_post_accumulate_hooks():
    x, seen = leaf(), []

    def step(p):
        seen.append((p is x, p.grad.tolist()))
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    loss.backward(inputs=[x], retain_graph=True)
    flow.autograd.grad(loss, x)  # adds into no .grad
    assert seen == [(True, [2, 4])] * 2 and x.grad is None
    with pytest.raises(RuntimeError, match="not a leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)
    with pytest.raises(RuntimeError, match="not a leaf"):
        flow.ones(2).register_post_accumulate_grad_hook(step)
    with pytest.raises(TypeError, match="must be callable, not int"):
        x.register_post_accumulate_grad_hook(3)
    x.register_post_accumulate_grad_hook(lambda p: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * x).sum().backward()


def test_backward_into_inputs_names_each_once():
    x, w = leaf(), leaf()
    y = x * w
    z = (y * y).sum()
    z.backward(inputs=[x, x, y, y], retain_graph=True)
    assert x.grad.tolist() == [2, 16] and y.grad.tolist() == [2, 8] and w.grad is None
    y.grad = None
    y.retain_grad()
    z.backward(inputs=[y])
    assert y.grad.tolist() == [2, 8] and x.grad.tolist() == [2, 16]


def test_hooks_come_and_go_while_threads_run_backward():
    x = flow.ones(50, requires_grad=True)
    y = x * 2
    loss = (y * y).sum()
    calls, over = [], threading.Event()

    def run():
        try:
            for _ in range(60):
                loss.backward(retain_graph=True)
        finally:
            over.set()

    def change(t):
        def work():
            handles = []
            while not over.is_set():
                handles.append(t.register_hook(lambda g: calls.append(1) if len(calls) < 9 else g))
                if len(handles) > 5:
                    handles.pop(0).remove()

        return work

    side_by_side(run, run, change(x), change(y), change(y))


# ---------------------------------------------------------------------------------------------
# A second time.


def pieces(x):
    return {
        "add": x + 1, "add itself": x + x, "neg": -x,
        "subtracted": 3 - x, "view": x.view(2, 2), "t": x.view(2, 2).t(), "slice": x[1:],
        "expand": x.expand(2, 4), "cat": flow.cat([x, x]), "stack": flow.stack([x, x]),
        "mean": x.mean(), "sum": x.sum(0), "clone": x.clone(),
        "float": x.float(), "cumsum": x.cumsum(0), "split": x.split(2)[0],
        "zeroed": (x + 1).zero_(),
        # Of these, the number alone.
        "add alpha": flow.ones(4).add(x, alpha=3), "sub alpha": x.sub(x, alpha=0.5),
        "add_ alpha": flow.ones(4).add_(x, alpha=3), "lerp": x.lerp(flow.zeros(4), 0.25),
        "lerp to": flow.ones(4).lerp(x, 0.25), "lerp_": (x + 1).lerp_(x, 0.25),
        "lerp of float16": x.half().lerp(flow.ones(4).half(), 0.25),
    }  # fmt: skip


@pytest.mark.parametrize("name", pieces(flow.ones(4)))
def test_a_second_backward_where_nothing_was_saved(name):
    x = flow.ones(4, requires_grad=True)
    loss = pieces(x)[name].sum()
    loss.backward()
    once = x.grad.tolist()
    loss.backward()
    assert x.grad.tolist() == [2 * g for g in once]


def test_a_second_backward_where_something_was_saved():
    x, w = leaf(), leaf()
    loss = (x * w).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time.*retain_graph=True"):
        loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        flow.autograd.grad(loss, x)


@pytest.mark.parametrize("weight", [flow.tensor(0.5), flow.full((2,), 0.5)])
def test_a_weight_that_is_a_tensor_is_freed(weight):
    x, y = leaf(), leaf()
    loss = x.lerp(y, weight).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time.*retain_graph=True"):
        loss.backward()


def test_a_number_is_freed_with_the_tensors_beside_it():
    x, y = leaf(), leaf()
    loss = flow.addcmul(x, y, 3.0).sum() + flow.addcmul(x, y, x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="addcmul.*second time"):
        loss.backward()


def test_a_number_is_no_saved_tensor_to_hooks():
    packed = []
    with flow.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        x = leaf()
        loss = (x.lerp(flow.zeros_like(x), 0.25) + x.sub(x, alpha=3)).sum()
    loss.backward()
    assert packed == [] and x.grad.tolist() == [-1.25] * x.numel()


def test_a_function_that_saved_nothing_runs_again():
    class Passes(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(None)
            return x + y

        @staticmethod
        def backward(ctx, dy):
            assert ctx.saved_tensors == (None,)
            return dy, dy

    x = leaf()
    loss = Passes.apply(x, x).sum()
    loss.backward()
    loss.backward()
    assert x.grad.tolist() == [4, 4]
