# SPDX-License-Identifier: Apache-2.0
"""Gradients where a function has a kink, and of NaN: as in PyTorch."""

import itertools
import math

import numpy as np
import pytest
from numerics import FLOATS, flow, host, tensor

F = flow.nn.functional
NAN = math.nan
X = [0.0, 1.0, -1.0, 2.0, NAN]

# At a bound, which is a number, the slope is 0, as in PyTorch 2.15; NaN goes through all but clamp.
BOUNDS = [
    (lambda x: flow.clamp(x, 0.0), [0, 1, 0, 1, 0]),
    (lambda x: flow.clamp(x, 0.0, 2.0), [0, 1, 0, 0, 0]),
    (lambda x: flow.clamp(x, max=1.0), [1, 0, 1, 0, 0]),
    (F.relu, [0, 1, 0, 1, 1]),
    (F.relu6, [0, 1, 0, 1, 1]),
    (F.hardtanh, [1, 0, 0, 0, 1]),
    (lambda x: F.softshrink(x, 1.0), [0, 0, 0, 1, 1]),
    (lambda x: F.hardswish(x * 3), [1.5, 3, 0, 3, NAN]),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", range(len(BOUNDS)))
def test_at_a_bound(case, dtype, device):
    function, want = BOUNDS[case]
    x = tensor(X, dtype, device).requires_grad_()
    function(x).sum().backward()
    np.testing.assert_array_equal(host(x.grad), want)


def of_clamp(x, low, high):
    """The gradients of x and its bounds: x shares it with the one that it equals, but for the high
    one where the bounds are in the wrong order, and has it alone where all three are equal."""
    if low > high:
        return 0, 0, 1
    share = 0.5 if low < high else 0
    at_low, at_high = share * (x == low), share * (x == high)
    return (low <= x <= high) - at_low - at_high, (x < low) + at_low, (x > high) + at_high


VALUES = [0.0, 1.0, 2.0, math.inf, -math.inf]


@pytest.mark.parametrize("needs", list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize("one", [None, "min", "max"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_at_tensors(needs, one, dtype, device):
    # Alone, a bound that is absent has no end to be equal to.
    values = VALUES if one is None else VALUES[:3]
    triples = list(itertools.product(values, repeat=3))
    x, low, high = (tensor(v, dtype, device) for v in zip(*triples, strict=True))
    leaves = [t.requires_grad_(n) for t, n in zip((x, low, high), needs, strict=True)]
    bounds = {"min": low, "max": high}
    bounds = bounds if one is None else {one: bounds[one]}
    y = x.clamp(**bounds)
    if not y.requires_grad:
        return
    y.sum().backward()
    inf = math.inf
    want = [of_clamp(a, -inf if one == "max" else b, inf if one == "min" else c)
            for a, b, c in triples]  # fmt: skip
    for i, t in enumerate(leaves):
        if t.grad is not None:
            np.testing.assert_array_equal(host(t.grad), [float(w[i]) for w in want])


@pytest.mark.parametrize("one", [None, "min", "max"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_at_tensors_in_an_expression(one, dtype, device):
    """The same in one kernel; a bound that is a number has no slope, nor has x at it."""
    triples = list(itertools.product([0.0, 1.0, 2.0], repeat=3))
    leaves = [tensor(v, dtype, device).requires_grad_() for v in zip(*triples, strict=True)]
    functions = {
        None: lambda x, low, high: flow.clamp(x, low, high),
        "min": lambda x, low, high: flow.clamp(x, min=low) + high * 0,
        "max": lambda x, low, high: flow.clamp(x, max=high) + low * 0,
    }
    flow.fuse.elements(functions[one])(*leaves).sum().backward()
    inf = math.inf
    want = [of_clamp(a, -inf if one == "max" else b, inf if one == "min" else c)
            for a, b, c in triples]  # fmt: skip
    for i, t in enumerate(leaves):
        np.testing.assert_array_equal(host(t.grad), [float(w[i]) for w in want])


def clamped(bounds):
    return flow.fuse.elements(lambda x: flow.clamp(x, *bounds) * 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp_at_numbers_in_an_expression(dtype, device):
    for low, high in itertools.product([0.0, 1.0, 2.0], repeat=2):
        bounds = [(low, high), (low, None), (None, high)]
        for given in bounds:
            fused = clamped(given)
            x, y = (tensor(X, dtype, device).requires_grad_() for _ in range(2))
            fused(x).sum().backward()
            (flow.clamp(y, *given) * 3).sum().backward()
            np.testing.assert_array_equal(host(x.grad), host(y.grad))
        fused = flow.fuse.elements(lambda x, n, m: flow.clamp(x, n, m))
        x, y = (tensor(X, dtype, device).requires_grad_() for _ in range(2))
        fused(x, low, high).sum().backward()
        flow.clamp(y, low, high).sum().backward()
        np.testing.assert_array_equal(host(x.grad), host(y.grad))


def test_clamp_at_tensors_twice(device):
    """Second order: linear in the gradient, and flat in the rest."""
    values = [0.0, 1.5, 3.0, 1.0, 2.0, 2.0], [1.0] * 5 + [2.0], [2.0] * 6
    x, low, high = (tensor(v, "float64", device).requires_grad_() for v in values)
    g = tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "float64", device).requires_grad_()
    first = flow.autograd.grad(x.clamp(low, high), [x, low, high], g, create_graph=True)
    assert [t.tolist() for t in first] == [[0, 2, 0, 2, 2.5, 6], [1, 0, 0, 2, 0, 0],
                                           [0, 0, 3, 0, 2.5, 0]]  # fmt: skip
    of_g = flow.autograd.grad(sum(t.sum() for t in first), [g])[0]
    assert of_g.tolist() == [1] * 6


def test_clamp_of_nothing_and_of_infinities(device):
    x = tensor([], "float32", device).requires_grad_()
    x.clamp(x.detach(), x.detach() + 1).sum().backward()
    assert x.grad.shape == (0,)
    x = tensor([math.inf, -math.inf], "float32", device).requires_grad_()
    (x.clamp(max=0.0).sum() + x.clamp(min=0.0).sum()).backward()
    assert host(x.grad).tolist() == [1, 1]
    # What is not chosen gets none of an infinite gradient.
    x, low = (tensor(v, "float32", device).requires_grad_() for v in ([0.0, 2.0], [1.0, 1.0]))
    x.clamp(min=low).backward(tensor([math.inf] * 2, "float32", device))
    assert host(x.grad).tolist() == [0, math.inf] and host(low.grad).tolist() == [math.inf, 0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_sign_of_nan_is_0(dtype, device):
    x = tensor([NAN, -NAN, -2.0, math.inf, 0.0] * 9, dtype, device)
    for got in (x.sign(), x.sgn(), x.clone().sign_()):
        np.testing.assert_array_equal(host(got), [0, 0, -1, 1, 0] * 9)


@pytest.mark.parametrize("dtype", FLOATS)
def test_slopes_of_logsumexp_are_softmax(dtype, device):
    """NaN where the result is infinite and the element as well, as in PyTorch."""
    x = tensor([[-math.inf] * 2, [-math.inf, 1], [math.inf, 1], [NAN, 1], [2, 2]], dtype, device)
    x.requires_grad_()
    y = x.logsumexp(1)
    np.testing.assert_allclose(host(y), [-math.inf, 1, math.inf, NAN, 2 + math.log(2)], rtol=4e-3)
    y.sum().backward()
    want = [[NAN, NAN], [0, 1], [NAN, 0], [NAN, NAN], [0.5, 0.5]]
    np.testing.assert_allclose(host(x.grad), want, rtol=4e-3)
    empty = tensor([[]], dtype, device).requires_grad_()
    empty.logsumexp(1).sum().backward()
    assert empty.grad.shape == (1, 0)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_two_tensors_share(name, device):
    x = tensor([1.0, 2.0, 3.0, NAN, 1.0], "float32", device).requires_grad_()
    y = tensor([1.0, 3.0, 2.0, 1.0, NAN], "float32", device).requires_grad_()
    getattr(flow, name)(x, y).sum().backward()
    first, second = ([0, 1], [1, 0]) if name == "maximum" else ([1, 0], [0, 1])
    assert host(x.grad).tolist() == [0.5, *first, 1, 1]
    assert host(y.grad).tolist() == [0.5, *second, 1, 1]
    # A tensor of 0 dims is no bound.
    number = flow.tensor(1.0, requires_grad=True)
    z = tensor([1.0, 5.0], "float32", device).requires_grad_()
    flow.maximum(z, number).sum().backward()
    assert host(z.grad).tolist() == [0.5, 1] and number.grad.item() == 0.5


def test_tiny_over_huge(device):
    a, b = tensor([-1.0, 1.0, -1e-20], "float32", device), 1e20
    assert host(a // b).tolist() == [-1, 0, -1]
    np.testing.assert_allclose(host(a % b), [1e20, 1, 1e20])
    x = tensor([7.0, -7.0], "float64", device)
    np.testing.assert_allclose(host(x // 1e-300), [7e300, -7e300], rtol=1e-15)


def test_integers_stay_integers():
    x = flow.tensor([-3, 4, 9])
    assert F.relu6(x).dtype is flow.int64 and F.relu6(x).tolist() == [0, 4, 6]
    assert F.hardtanh(x, -2, 5).tolist() == [-2, 4, 5]


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "rand", "randn"])
def test_at_most_16_dims(name):
    make = getattr(flow, name)
    assert make([1] * 16).ndim == 16
    with pytest.raises(ValueError, match="at most 16"):
        make([1] * 17)
