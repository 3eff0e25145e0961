# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: the same gradients, the function called again in backward, and nothing kept."""

import gc
import weakref

import numpy as np
import pytest
from numerics import flow, host

from oneflow_lite.utils.checkpoint import checkpoint, checkpoint_sequential

nn = flow.nn


class Counted(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.inner, self.dropout, self.calls = nn.Linear(4, 4), nn.Dropout(dropout), 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        return self.dropout(flow.tanh(self.inner(x)).exp() * scale)


def gradients(call, module, x, **kwargs):
    module.zero_grad()
    x = x.detach().requires_grad_()
    flow.manual_seed(5)
    y = call(module, x, **kwargs)
    after = flow.rand(2)
    (y * y).sum().backward()
    found = [y, after, flow.rand(2), x.grad, *(p.grad for p in module.parameters())]
    return [host(t) for t in found]


def plain(module, x, **kwargs):
    return module(x, **kwargs)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_same_gradients_and_random_numbers(dropout):
    module, x = Counted(dropout), flow.randn(3, 4)
    want = gradients(plain, module, x, scale=2.0)
    module.calls = 0
    got = gradients(checkpoint, module, x, scale=2.0)
    assert module.calls == 2
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradients_of_parameters_alone_and_again():
    module, x = Counted(), flow.randn(3, 4)
    y = checkpoint(module, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    once = host(module.inner.weight.grad)
    y.backward()
    np.testing.assert_allclose(host(module.inner.weight.grad), 2 * once, rtol=1e-6)
    assert module.calls == 3
    with flow.no_grad():
        assert not checkpoint(module, x).requires_grad
    assert module.calls == 4


def test_what_backward_of_one_output_does_not_take_is_not_kept():
    made = []

    def two(x):
        a, b = x.exp(), (x * 2).exp()
        made.extend(weakref.ref(t) for t in (a, b))
        return a * a, b * b

    x = flow.ones(3, requires_grad=True)
    y, z = checkpoint(two, x)
    y.sum().backward()
    assert len(made) == 4 and all(t() is None for t in made)
    recomputed = [o for o in gc.get_objects() if type(o).__name__ == "_Recomputed"]
    assert recomputed and not any(o._found for o in recomputed)
    z.sum().backward()
    np.testing.assert_allclose(host(x.grad), 2 * np.exp(2) + 4 * np.exp(4), rtol=1e-6)


def test_second_order_and_checkpoints_in_checkpoints():
    x = flow.tensor([0.3, -1.2], dtype=flow.float64, requires_grad=True)

    def inner(x):
        return flow.sin(x) * x

    def outer(x):
        return checkpoint(inner, x).exp() * checkpoint(inner, x * 2)

    def second(function):
        (g,) = flow.autograd.grad(function(x).sum(), x, create_graph=True)
        return flow.autograd.grad(g.pow(2).sum(), x)[0]

    want = second(lambda x: inner(x).exp() * inner(x * 2))
    np.testing.assert_allclose(host(second(lambda x: checkpoint(outer, x))), host(want), rtol=1e-12)
    assert flow.autograd.gradcheck(lambda x: checkpoint(outer, x), (x,))


def test_nothing_is_kept_until_backward():
    seen = []

    def function(x):
        y = x.exp()
        seen.append(weakref.ref(y))
        return (y * y).sum()

    x = flow.ones(3, requires_grad=True)
    loss = checkpoint(function, x)
    gc.collect()
    assert seen[0]() is None
    loss.backward()
    del loss
    gc.collect()
    assert seen[1]() is None and x.grad is not None


def test_a_function_that_computes_something_else():
    turns = []

    def function(x):
        turns.append(0)
        return x.exp().exp() if len(turns) == 1 else x.exp()

    loss = checkpoint(function, flow.ones(2, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="saved 1 tensors, but 2 the first time"):
        loss.backward()


def test_a_sequence_in_parts():
    model = nn.Sequential(*(Counted() for _ in range(5)))
    x = flow.randn(2, 4)
    want = gradients(plain, model, x)
    for segments in (1, 2, 5):
        for module in model:
            module.calls = 0
        got = gradients(lambda m, x, s=segments: checkpoint_sequential(m, s, x), model, x)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
        kept = 5 - 5 // segments * (segments - 1)
        assert [m.calls for m in model] == [2] * (5 - kept) + [1] * kept
    with pytest.raises(ValueError, match=r"segments is 6, but it must be in \[1, 5\]"):
        checkpoint_sequential(model, 6, x)


@pytest.mark.parametrize("changed", ["after", "by the function"])
@pytest.mark.parametrize("named", [False, True])
def test_an_argument_that_changed_is_refused(changed, named):
    leaf = flow.tensor([1.0, 2.0], requires_grad=True)
    x = leaf * 1

    def cube(t):
        return (t.mul_(2) if changed == "by the function" else t) ** 3

    y = checkpoint(cube, t=x) if named else checkpoint(cube, x)
    if changed == "after":
        x.mul_(2)
    with pytest.raises(RuntimeError, match=r"checkpoint\(\): an argument .* changed in place"):
        y.sum().backward()
    assert leaf.grad is None
