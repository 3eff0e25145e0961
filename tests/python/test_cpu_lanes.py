# SPDX-License-Identifier: Apache-2.0
"""Reductions, copies and selections of the CPU around the boundaries of their short ways.

Rows of up to 32 elements are turned in tiles of at most 512 rows and 8192 bytes, and reduced as
columns. Lanes take 32 rows of floats before they go into doubles, 252 of truths, and any number of
an extreme. Copies go two dims at a time where the last has up to 16 elements. A mask is looked
through in pieces of 512 of blocks of 16384.
"""

import numpy as np
import pytest
from numerics import FLOATS, INTEGERS, flow, host, tensor, ulp

RNG = np.random.default_rng(37)
AXES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33]


def near_one(shape, dtype):
    if dtype in FLOATS:
        return tensor(1 + RNG.standard_normal(shape) / 16, dtype)
    return tensor(RNG.integers(0, 3, shape), dtype)


def check(got, want, dtype, terms):
    """Within 2e-6 of the terms and a rounding; NaN where NaN is."""
    if dtype not in FLOATS:
        np.testing.assert_array_equal(host(got), want)
        return
    bound = terms * (1e-13 if dtype == "float64" else 4e-6) + 0.51 * ulp(want, dtype)
    assert got.shape == want.shape
    assert (np.abs(host(got) - want) <= bound).all()


def check_all(x, dim, dtype):
    """What there is of reductions over a dim, against float64 or int64."""
    values = host(x)
    check(x.sum(dim), values.sum(dim), dtype, np.abs(values).sum(dim))
    check(x.prod(dim), values.prod(dim), dtype, np.abs(values.prod(dim)))
    np.testing.assert_array_equal(host(x.amax(dim)), values.max(dim))
    np.testing.assert_array_equal(host(x.amin(dim)), values.min(dim))
    np.testing.assert_array_equal(host(x.argmax(dim)), values.argmax(dim))
    np.testing.assert_array_equal(host(x.argmin(dim)), values.argmin(dim))
    np.testing.assert_array_equal(host(flow.count_nonzero(x, dim)), np.count_nonzero(values, dim))
    np.testing.assert_array_equal(host((x > 1).any(dim)), (values > 1).any(dim))
    np.testing.assert_array_equal(host((x > 1).all(dim)), (values > 1).all(dim))
    np.testing.assert_array_equal(host((x > 1).sum(dim)), (values > 1).sum(dim))
    if dtype not in FLOATS:
        return
    check(x.mean(dim), values.mean(dim), dtype, np.abs(values).mean(dim))
    check(x.nansum(dim), values.sum(dim), dtype, np.abs(values).sum(dim))
    check(x.norm(2, dim), np.sqrt((values**2).sum(dim)), dtype, np.sqrt((values**2).sum(dim)))
    check(x.norm(1, dim), np.abs(values).sum(dim), dtype, np.abs(values).sum(dim))
    check(flow.logsumexp(x, dim), np.log(np.exp(values).sum(dim)), dtype, 2 + np.abs(values).max())
    if x.shape[dim] > 1:
        check(x.var(dim), values.var(dim, ddof=1), dtype, 1 / 16)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("axis", AXES)
def test_short_rows(dtype, axis):
    most = min(512, 8192 // (axis * np.dtype("int64" if "64" in dtype else "int32").itemsize))
    for rows in sorted({1, 2, 15, 16, 17, most // 16 * 16, most // 16 * 16 + 1, 1030}):
        check_all(near_one((rows, axis), dtype), 1, dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, "uint8", "int32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 31, 32, 33, 36, 251, 252, 253, 300])
def test_few_rows_of_many_columns(dtype, rows):
    for columns in (1, 5, 256, 257, 511, 512, 513, 1100):
        check_all(near_one((rows, columns), dtype), 0, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_nan_in_lanes(dtype):
    values = RNG.standard_normal((40, 6))
    values[3, 2], values[5, 1], values[9, 0] = np.nan, np.inf, -np.inf
    values[11] = -np.inf
    for x in (tensor(values, dtype), tensor(values.T, dtype).T):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(host(x.amax(1)), host(x).max(1))
            np.testing.assert_array_equal(host(x.argmin(1)), host(x).argmin(1))
            np.testing.assert_array_equal(np.isnan(host(x.sum(1))), np.isnan(host(x).sum(1)))
        top = host(flow.logsumexp(x, 1))
        assert np.isnan(top[3]) and top[5] == np.inf and top[11] == -np.inf
        assert np.isfinite(np.delete(top, [3, 5, 11])).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_dims_in_the_order_of_memory(dtype):
    x = near_one((6, 40, 9, 3), dtype)
    for order in ((3, 2, 1, 0), (1, 0, 2, 3), (2, 0, 1, 3), (0, 3, 1, 2), (3, 0, 1, 2)):
        y = x.permute(order)
        assert y.numel() < 2 or not y.is_contiguous()
        for dim in range(4):
            check_all(y, dim, dtype)
        for dims in ((0, 1), (1, 2), (2, 3), (0, 2), (0, 1, 2, 3)):
            values = host(y)
            check(y.sum(dims), values.sum(dims), dtype, np.abs(values).sum(dims))
            np.testing.assert_array_equal(host(y.amax(dims)), values.max(dims))
        np.testing.assert_array_equal(host(y.argmax()), host(y).argmax())
    wide = near_one((6, 1, 9), dtype).expand(6, 5, 9)
    check_all(wide, 1, dtype)
    check_all(wide.permute(2, 1, 0), 0, dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
def test_copies_of_short_runs(dtype):
    for cols in (1, 2, 3, 8, 15, 16, 17, 40):
        for rows in (1, 5, 64, 700):
            x = tensor(RNG.integers(0, 200, (rows, 3, 45)), dtype)
            values = x.numpy()
            part = x[:, 1:, 2 : 2 + cols]
            np.testing.assert_array_equal(part.contiguous().numpy(), values[:, 1:, 2 : 2 + cols])
            np.testing.assert_array_equal(
                x[:, :, :4].repeat_interleave(cols, 2).numpy(),
                values[:, :, :4].repeat(cols, 2),
            )
            np.testing.assert_array_equal(
                x[:, :1, :1].expand(rows, 3, cols).contiguous().numpy(),
                np.broadcast_to(values[:, :1, :1], (rows, 3, cols)),
            )
            windows = np.lib.stride_tricks.sliding_window_view(values, cols, 2)[:, :, ::4]
            np.testing.assert_array_equal(x.unfold(2, cols, 4).contiguous().numpy(), windows)
            to = flow.zeros_like(x)
            to[:, 1:, 2 : 2 + cols] = part
            expected = np.zeros_like(values)
            expected[:, 1:, 2 : 2 + cols] = values[:, 1:, 2 : 2 + cols]
            np.testing.assert_array_equal(to.numpy(), expected)


@pytest.mark.parametrize("n", [1, 511, 512, 513, 1025, 16383, 16384, 16385, 16897, 40000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.03, 0.3, 1.0])
def test_what_a_mask_holds(n, share):
    mask = RNG.random(n) < share
    x = RNG.standard_normal(n)
    np.testing.assert_array_equal(flow.tensor(x)[flow.tensor(mask)].numpy(), x[mask])
    np.testing.assert_array_equal(flow.nonzero(flow.tensor(mask)).numpy(), np.argwhere(mask))
    half = n // 2
    pairs = mask[: 2 * half].reshape(half, 2)
    np.testing.assert_array_equal(flow.nonzero(flow.tensor(pairs)).numpy(), np.argwhere(pairs))
    for shape in ((2, 3, 5), (1, 7, 1), (4, 1, 3)):  # steps within a row, and to far ones
        cube = mask[: n // np.prod(shape) * np.prod(shape)].reshape(-1, *shape)
        np.testing.assert_array_equal(flow.nonzero(flow.tensor(cube)).numpy(), np.argwhere(cube))
    y = flow.tensor(x)
    y[flow.tensor(mask)] = flow.tensor(-x[mask])
    np.testing.assert_array_equal(y.numpy(), np.where(mask, -x, x))


def test_truths_turned_round():
    for n in (1, 15, 16, 17, 63, 64, 65, 1000):
        x = RNG.random(n) < 0.5
        np.testing.assert_array_equal((~flow.tensor(x)).numpy(), ~x)
        np.testing.assert_array_equal(flow.logical_not(flow.tensor(x)).numpy(), ~x)
        assert not flow.isnan(flow.tensor(x)).any() and flow.isfinite(flow.tensor(x)).all()
