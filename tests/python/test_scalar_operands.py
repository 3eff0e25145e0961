# SPDX-License-Identifier: Apache-2.0
"""Numbers beside tensors of 16-bit floats: arithmetic takes them in float32 and rounds once, a
comparison rounds them to the tensor's dtype first.
"""

import operator

import numpy as np
import pytest
from numerics import HALVES, flow, host, rounded, tensor

F = flow.nn.functional
RNG = np.random.default_rng(4)
# 1023 elements: packs and a rest on CUDA, several chunks on the CPU.
X = RNG.standard_normal(1023) * 10.0 ** RNG.integers(-3, 3, 1023)
NUMBERS = [0.1, -1 / 3, 1e-8, 1e5, 3, 0.999, -(2.0**-24), *(RNG.standard_normal(8) * 30)]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
each_half = pytest.mark.parametrize("dtype", HALVES)


def named(f):
    return f.__name__


def in_float32(f, a, b, dtype):
    """NumPy's answer in float32, rounded to the dtype."""
    with np.errstate(over="ignore", divide="ignore"):
        return rounded(f(np.float32(a), np.float32(b)).astype(np.float64), dtype)


@each_half
@pytest.mark.parametrize("f", ARITHMETIC, ids=named)
def test_a_number_is_not_rounded_first(f, dtype, device):
    x = tensor(X, dtype, device)
    dense, strided = x, tensor(np.repeat(X, 2), dtype, device)[::2]
    values = host(x)
    for number in NUMBERS:
        for t in (dense, strided, x[:1], x[0]):
            v = values if t.ndim == 1 and len(t) > 1 else values[: t.numel()].reshape(t.shape)
            for y, want in ((f(t, number), in_float32(f, v, number, dtype)),
                            (f(number, t), in_float32(f, number, v, dtype))):  # fmt: skip
                assert y.dtype.name == dtype and y.shape == t.shape
                np.testing.assert_array_equal(host(y), want)


@each_half
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_in_place(name, dtype, device):
    f = {"div": operator.truediv}.get(name) or getattr(operator, name)
    for number in NUMBERS:
        x = tensor(X, dtype, device)
        want = in_float32(f, host(x), number, dtype)
        assert getattr(x, name + "_")(number) is x
        np.testing.assert_array_equal(host(x), want)
    # A step of weight decay that rounds to a factor of 1 in the dtype.
    x = tensor([1024.0 + 512.0], dtype, device)
    assert x.mul_(1 - 1e-3).item() == rounded(1536 * (1 - 1e-3), dtype)


@each_half
@pytest.mark.parametrize("f", COMPARISONS, ids=named)
def test_a_compared_number_is_rounded_first(f, dtype, device):
    x = tensor(X, dtype, device)
    for number in (0.1, -1 / 3, 0.3, *X[:5]):
        near = rounded(np.array(number), dtype)
        np.testing.assert_array_equal(host(f(x, number)), f(host(x), near))
        np.testing.assert_array_equal(host(f(number, x)), f(near, host(x)))


@each_half
def test_a_number_as_a_tensor_of_0_dims(dtype, device):
    x = tensor(X, dtype, device).requires_grad_()
    number = flow.tensor(0.1, requires_grad=True)
    y = x * number
    assert y.dtype is x.dtype
    np.testing.assert_array_equal(host(y), in_float32(operator.mul, host(x), 0.1, dtype))
    y.sum().backward()
    assert number.grad.dtype is flow.float32 and number.grad.shape == ()
    assert number.grad.device == number.device
    np.testing.assert_allclose(number.grad.item(), host(x).sum(), rtol=1e-2)
    np.testing.assert_array_equal(host(x.grad), rounded(np.full(X.shape, 0.1), dtype))
    # Two tensors of 0 dims are promoted, whichever comes first.
    small = tensor(0.3, dtype)
    for a, b in ((small, number), (number, small)):
        assert (a * b).dtype is flow.float32


@each_half
def test_the_op_takes_a_wide_number_and_promotes_by_a_wide_tensor(dtype, device):
    x, wide = tensor(X, dtype, device), flow.tensor(0.1)
    want = in_float32(operator.mul, host(x), 0.1, dtype)
    for call in (lambda: flow.ops.mul(x, wide), lambda: flow.ops.mul(wide, x)):
        assert call().dtype is x.dtype
        np.testing.assert_array_equal(host(call()), want)
    assert flow.ops.mul(x, flow.ones(1, device=device)).dtype is flow.float32
    assert flow.ops.mul(x, flow.tensor(0.1, dtype=flow.float64)).dtype is x.dtype
    with pytest.raises(flow.DTypeError, match="the second operand has dtype"):
        flow.ops.add_(flow.ones(3, dtype=flow.int32, device=device), flow.ones(3, device=device))
    assert flow.ops.add_(flow.tensor(0.5), tensor(1.0, dtype)).item() == 1.5


@each_half
@pytest.mark.parametrize("f", [*ARITHMETIC, F.leaky_relu], ids=named)
def test_gradients_are_rounded_once(f, dtype, device):
    for number in NUMBERS[:6]:
        for values in (X[:40], X[0]):
            x = tensor(values, dtype, device).requires_grad_()
            exact = x.detach().float().requires_grad_()
            f(x, number).sum().backward()
            f(exact, number).sum().backward()
            assert x.grad.dtype is x.dtype
            np.testing.assert_array_equal(host(x.grad), rounded(host(exact.grad), dtype))


@each_half
def test_leaky_relu_rounds_once(dtype, device):
    x = tensor(X, dtype, device)
    for slope in (0.01, 0.1, 1 / 3):
        want = np.where(host(x) > 0, host(x), in_float32(operator.mul, host(x), slope, dtype))
        np.testing.assert_array_equal(host(F.leaky_relu(x, slope)), want)
        np.testing.assert_array_equal(host(F.leaky_relu(x.clone(), slope, inplace=True)), want)
