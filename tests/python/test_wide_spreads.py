# SPDX-License-Identifier: Apache-2.0
"""Variances of numbers whose distances, or the squares of these, overflow or underflow float32. As
in PyTorch they are taken in a wider range, so that a standard deviation is finite, and not 0, where
float32 holds it. On the CPU; a GPU takes them in float32.
"""

import numpy as np
import pytest
from numerics import flow, host

# Rows and columns, short and long ones; in parts, on several threads; of one chunk and of several.
SHAPES = [((3, 5), 0), ((5, 3), 1), ((40, 7), 0), ((7, 40), 1), ((2, 33), 1), ((33, 2), 0),
          ((3000, 3), 0), ((40, 1300), 0), ((700, 9), 1), ((2, 9, 5), 1), ((200_000, 2), 0),
          ((60, 50), (0, 1))]  # fmt: skip


def wide(shape, scale, dtype):
    values = np.random.default_rng(3).uniform(-scale, scale, shape)
    return flow.tensor(values.astype(np.float32)).to(getattr(flow, dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("scale", [1e18, 2e19, 1e25, 1.7e38, 3.3e38, 1e-15, 1e-17, 1e-19, 1e-22,
                                   1e-30, 1e-36])  # fmt: skip
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_in_float64(shape, dim, scale, dtype):
    x = wide(shape, scale, dtype)
    values = host(x).astype(np.float64)
    rtol = 2e-5 if dtype == "float32" else 8e-3
    std, mean = flow.std_mean(x, dim)
    with np.errstate(over="ignore"):
        expected = values.std(dim, ddof=1).astype(np.float32)
        variance = values.var(dim, ddof=1).astype(np.float32)
    np.testing.assert_allclose(host(std), expected, rtol=rtol)
    np.testing.assert_allclose(host(x.std(dim)), expected, rtol=rtol)
    np.testing.assert_allclose(host(x.var(dim)), variance, rtol=2 * rtol,
                               atol=1e-44 if dtype == "float32" else 1e-40)  # fmt: skip
    np.testing.assert_allclose(host(mean), values.mean(dim), rtol=rtol, atol=scale * rtol)


def test_a_column_beside_wide_ones_keeps_its_bits():
    x = flow.randn(90, 600)
    std, mean = flow.std_mean(x, 0)
    y = x.clone()
    y[:, ::3] *= 1e37
    y[5, 1::3] = np.nan
    y[7, 301] = np.inf
    wide_std, wide_mean = flow.std_mean(y, 0)
    assert flow.equal(wide_std[2::3], std[2::3]) and flow.equal(wide_mean[2::3], mean[2::3])
    assert wide_std[::3].isfinite().all() and wide_mean[::3].isfinite().all()
    assert wide_std[1::3].isnan().all() and wide_mean[301].isnan()


def test_infinite_elements_stay():
    for shape, dim in SHAPES[:6]:
        x = flow.ones(shape)
        x[0, 0] = np.inf
        std, mean = flow.std_mean(x, dim)
        assert std.isnan().sum() == 1 and mean.isinf().sum() == 1


@pytest.mark.parametrize("shape, dim", SHAPES)
def test_what_has_no_spread_has_none(shape, dim):
    """The elements about the first one sum up to 0, and so do their squares; or there are none."""
    for value in (0.0, 1e-25, 3.0):
        x = flow.full(shape, value)
        assert (x.std(dim) < 1e-6 * value + 1e-45).all()
    values = np.resize(np.array([0, 1e-25, -1e-25], np.float32), (3, 600))
    x = flow.tensor(np.stack([np.zeros(600), np.full(600, 1e-25), np.full(600, -1e-25)]))
    np.testing.assert_allclose(host(x.float().std(0)), 1e-25, rtol=1e-5)
    expected = values.astype(float).std(1, ddof=1)
    np.testing.assert_allclose(host(flow.tensor(values).std(1)), expected, rtol=1e-5)
