# SPDX-License-Identifier: Apache-2.0
"""Powers on vectors: signs, zeros, infinities and NaN of both operands, as C has them."""

import numpy as np
import pytest
from numerics import FLOATS, flow, host, near, tensor

BASES = [-np.inf, -3e30, -7.5, -2.0, -1.0, -0.25, -1e-38, -0.0,
         0.0, 1e-38, 0.25, 1.0, 2.0, 7.5, 3e30, np.inf, np.nan]  # fmt: skip
POWERS = [-np.inf, -1e10, -16777215.0, -3.0, -2.5, -2.0, -1.0, -0.5, -0.0,
          0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 8388609.0, 16777217.0, 1e10, np.inf,
          np.nan]  # fmt: skip


def same(got, want, dtype):
    got = host(got)
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps)
    finite = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(want[finite]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 16, 33])
def test_all_pairs_of_corners(device, dtype, count):
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(BASES, POWERS, indexing="ij"))
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    for begin in range(0, len(a), count):  # whole vectors and their ends
        part = slice(begin, begin + count)
        x, y = (flow.tensor(v[part], device=device) for v in (a, b))
        same(x**y, want[part], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("power", POWERS)
def test_a_number_as_power(device, dtype, power):
    a = np.array(BASES * 3, dtype)
    with np.errstate(all="ignore"):
        want = np.power(a, np.array(power, dtype))
        if power in (0.5, -0.5):  # roots, as in PyTorch, with their signs of 0 and NaN below it
            want = np.sqrt(a) if power > 0 else 1 / np.sqrt(a)
    x = flow.tensor(a, device=device)
    same(x**power, want, dtype)
    same(x.clone().pow_(power), want, dtype)


def test_the_slope_of_a_reciprocal(device):
    x = flow.tensor([-2.0, -0.5, 0.25, 4.0], dtype=flow.float64, device=device, requires_grad=True)
    (slope,) = flow.autograd.grad((x**-1).sum(), x, create_graph=True)
    np.testing.assert_allclose(host(slope), -1 / host(x) ** 2, rtol=1e-15)
    (second,) = flow.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(host(second), 2 / host(x) ** 3, rtol=1e-15)


@pytest.mark.parametrize("power", [3, 4, 3.0, 4.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_short_powers_are_rounded_once(power, dtype, device):
    """Products of few factors instead of a power: as near, in every layout, at the ends too."""
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.5, 1e-3]
    values = np.concatenate([ends, np.random.default_rng(3).uniform(-4, 4, 1000)])
    x = tensor(values, dtype, device)
    exact = host(x) ** power
    for t, want in ((x, exact), (x[::3], exact[::3]), (x[5], exact[5])):
        got = host(t**power)
        off = np.abs(got - want) > {"float64": 4e-16, "float32": 2e-7}.get(dtype, 0) * np.abs(want)
        good = near(got, want, dtype, device) if dtype in ("float16", "bfloat16") else ~off
        assert good.all()
    np.testing.assert_array_equal(host(flow.float_power(x, power)), host(x.double() ** power))


@pytest.mark.parametrize("power", [3, 4])
def test_short_powers_have_all_derivatives(power, device):
    x = flow.tensor([-2.0, -0.5, 0.0, 1.5], dtype=flow.float64, device=device, requires_grad=True)
    (dx,) = flow.autograd.grad((x**power).sum(), [x], create_graph=True)
    values = host(x)
    np.testing.assert_allclose(host(dx), power * values ** (power - 1), rtol=1e-15)
    (second,) = flow.autograd.grad(dx.sum(), [x])
    wanted = power * (power - 1) * values ** (power - 2)
    np.testing.assert_allclose(host(second), wanted, rtol=1e-14)


def test_a_short_power_is_one_op():
    x = flow.randn(5, requires_grad=True)
    names = [name for name, _ in flow._oneflow_lite.record_ops(lambda: (x**3).sum().backward())]
    assert names.count("pow") == 1 and names.count("pow_slope_a") == 1 and "mul" not in names
