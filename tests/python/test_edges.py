# SPDX-License-Identifier: Apache-2.0
"""Gradients where a function has a kink, and of NaN: as in PyTorch."""

import math

import numpy as np
import pytest
from numerics import FLOATS, flow, host, tensor

F = flow.nn.functional
NAN = math.nan
X = [0.0, 1.0, -1.0, 2.0, NAN]

# At a bound, which is a number, the slope of an activation is 0, and that of clamp 1, as in
# PyTorch; NaN goes through.
BOUNDS = [
    (lambda x: flow.clamp(x, 0.0), [1, 1, 0, 1, 1]),
    (lambda x: flow.clamp(x, 0.0, 2.0), [1, 1, 0, 1, 1]),
    (lambda x: flow.clamp(x, max=1.0), [1, 1, 1, 0, 1]),
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
