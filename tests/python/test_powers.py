# SPDX-License-Identifier: Apache-2.0
"""Powers on vectors: signs, zeros, infinities and NaN of both operands, as C has them."""

import numpy as np
import pytest
from numerics import flow, host

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
