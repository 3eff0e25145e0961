# SPDX-License-Identifier: Apache-2.0
"""quantile, nanquantile, median and nanmedian of rows with infinities, NaN and equal elements."""

import math
import warnings

import numpy as np
import pytest
from numerics import FLOATS, bits, flow, host, tensor

INF, NAN = math.inf, math.nan
METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]
SHARES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.9, 1.0]
POOL = [INF, -INF, 1.0, 2.0, -3.0, 2.0, 0.0, 0.5, NAN]


def rows():
    rng = np.random.default_rng(3)
    drawn = [rng.choice(POOL[: rng.integers(2, 10)], rng.integers(1, 7)) for _ in range(40)]
    return [[INF], [-INF], [NAN], [1.0], [INF, INF], [-INF, INF], [1.0, INF], [-INF, 1.0, 2.0],
            [2.0, 2.0, 2.0, INF], [NAN, INF, 1.0], [NAN, NAN], *map(list, drawn)]  # fmt: skip


def quantile(row, q, method, skip_nan):
    """By its definition; between an element and an infinity is the infinity."""
    numbers = sorted(v for v in row if not math.isnan(v))
    if not numbers or (len(numbers) < len(row) and not skip_nan):
        return NAN
    place = q * (len(numbers) - 1)
    low, high = numbers[math.floor(place)], numbers[math.ceil(place)]
    weight = place - math.floor(place)
    if method == "nearest":
        return numbers[round(place)]
    if method in ("lower", "higher") or weight == 0 or low == high:
        return high if method == "higher" else low
    if math.isinf(low) or math.isinf(high):
        return low + high if low != -high else NAN
    return low + (high - low) * (0.5 if method == "midpoint" else weight)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_rows_with_infinities(name, method, device):
    function = getattr(flow, name)
    for row in rows():
        x = tensor(row, "float64", device)
        got = host(function(x, flow.tensor(SHARES, dtype=flow.float64), interpolation=method))
        want = [quantile(row, q, method, name == "nanquantile") for q in SHARES]
        np.testing.assert_allclose(got, want, rtol=1e-14, err_msg=f"{row}")
        with warnings.catch_warnings(), np.errstate(invalid="ignore"):
            warnings.simplefilter("ignore")
            numpys = [getattr(np, name)(np.array(row), q, method=method) for q in SHARES]
        # NumPy has 0 times an infinity in its line: what of it is a number is the same.
        ok = ~np.isnan(numpys)
        np.testing.assert_allclose(got[ok], np.array(numpys)[ok], rtol=1e-14, err_msg=f"{row}")
        if method in ("lower", "higher", "nearest"):
            np.testing.assert_array_equal(got, numpys)
        one = function(x, 1 / 3, interpolation=method)
        np.testing.assert_array_equal(host(one), got[3])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("method", METHODS)
def test_along_dims_of_every_dtype(method, dtype, device):
    rng = np.random.default_rng(4)
    values = rng.integers(-8, 9, (3, 5, 4)) / 4
    values[0, 1, 2], values[1, :, 1], values[2, 3, :] = INF, NAN, -INF
    x = tensor(values, dtype, device)
    for dim in (0, 1, 2, -1):
        for q in (0.25, [0.0, 0.5, 1.0]):
            shares = flow.tensor(q, dtype=flow.float64) if isinstance(q, list) else q
            for name, skip in (("quantile", False), ("nanquantile", True)):
                got = getattr(flow, name)(x, shares, dim, interpolation=method)
                want = np.apply_along_axis(
                    lambda r: np.array([quantile(r.tolist(), s, method, skip)  # noqa: B023
                                        for s in np.atleast_1d(q)]), dim, values)  # fmt: skip  # noqa: B023
                want = np.moveaxis(want, dim, 0)
                want = want if isinstance(q, list) else want[0]
                assert got.dtype is x.dtype and tuple(got.shape) == want.shape
                np.testing.assert_array_equal(host(got), want)
                kept = getattr(flow, name)(x, shares, dim, True, interpolation=method)
                assert kept.squeeze(dim if dim < 0 or not isinstance(q, list) else dim + 1).shape \
                    == got.shape  # fmt: skip


def test_medians():
    for row in rows():
        x = flow.tensor(row, dtype=flow.float64)
        numbers = sorted(v for v in row if not math.isnan(v))
        skipped = numbers[(len(numbers) - 1) // 2] if numbers else NAN
        whole = skipped if len(numbers) == len(row) else NAN
        for name, want in (("median", whole), ("nanmedian", skipped)):
            np.testing.assert_array_equal(host(getattr(flow, name)(x)), want)
            values, place = getattr(flow, name)(x, 0)
            np.testing.assert_array_equal(host(values), want)
            np.testing.assert_array_equal(row[place.item()], want)


def test_gradients_beside_infinities():
    x = flow.tensor([1.0, INF, 4.0, -INF, 2.0], requires_grad=True)
    for method, want in (("linear", [0.5, 0, 0, 0, 0.5]), ("lower", [1, 0, 0, 0, 0]),
                         ("higher", [0, 0, 0, 0, 1]),
                         ("midpoint", [0.5, 0, 0, 0, 0.5])):  # fmt: skip
        y = x.quantile(0.375, interpolation=method)
        assert flow.autograd.grad(y, x)[0].tolist() == want
    y = flow.tensor([3.0, NAN, 1.0, 2.0], dtype=flow.float64, requires_grad=True)
    assert flow.autograd.grad(flow.nanquantile(y, 0.75), y)[0].tolist() == [0.5, 0, 0, 0.5]


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_what_is_refused(name):
    f = getattr(flow, name)
    for call, error in (
        (lambda: f(flow.arange(3), 0.5), flow.DTypeError),
        (lambda: f(flow.ones(3), 1.5), ValueError),
        (lambda: f(flow.ones(3), NAN), ValueError),
        (lambda: f(flow.ones(3), 0.5, interpolation="odd"), ValueError),
        (lambda: f(flow.ones(3), flow.ones(1, 1)), flow.ShapeError),
        (lambda: f(flow.ones(0), 0.5), flow.ShapeError),
        (lambda: f(flow.ones(3), 0.5, 1), IndexError),
    ):
        with pytest.raises(error, match=rf"^{name}\(\): "):
            call()


# On the CPU rows of up to 12 elements for each rank (of 8 bytes 24) are sorted, of others each rank
# is selected, or from 12 ranks on all are sorted.
@pytest.mark.parametrize("cols", [1, 2, 3, 12, 13, 24, 25, 31, 32, 33, 48, 49, 73])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 12])
def test_widths_and_counts(cols, count, device):
    rng = np.random.default_rng(cols)
    for dtype in ("float32", "bfloat16", "float64"):
        x = tensor(rng.choice(POOL[2:8], (5, cols)), dtype, device)
        shares = np.linspace(0, 1, count)
        for method in ("linear", "lower", "higher"):
            got = host(flow.quantile(x, flow.tensor(shares), -1, interpolation=method))
            want = [[quantile(row, q, method, False) for row in host(x)] for q in shares]
            rtol = 1e-2 if dtype == "bfloat16" else 1e-6
            np.testing.assert_allclose(got, want, rtol, atol=1e-6)


# Keys that differ in few bits, or in none, and that are counted above 512.
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("cols", [5, 15, 16, 17, 40, 511, 512, 513, 3000])
def test_medians_of_few_values(dtype, cols, device):
    rng = np.random.default_rng(cols)
    for low, high in ((5, 6), (0, 2), (0, 10), (-100 if dtype[0] != "u" else 0, 100)):
        values = rng.integers(low, high, (3, cols))
        x = tensor(values, dtype, device)
        middle, places = x.median(-1)
        np.testing.assert_array_equal(host(middle), np.sort(host(x))[:, (cols - 1) // 2])
        for k in (1, 2, cols // 3, cols):
            found, at = x.kthvalue(k, -1)
            order = np.argsort(host(x), axis=-1, kind="stable")
            np.testing.assert_array_equal(host(at), order[:, k - 1])
            assert bits(found) == bits(x.gather(-1, at[:, None])[:, 0])


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_gradients_beside_nan(how, dtype):
    """A slice with NaN gives its gradient to the first of them; PyTorch too, to any one."""
    nan = float("nan")
    x = flow.tensor([[1, nan, 3, nan], [nan] * 4, [4, 1, 2, 3]], dtype=getattr(flow, dtype))
    x.requires_grad_()
    shares = flow.tensor([0.0, 1.0])
    y = flow.quantile(x, shares, 1, interpolation=how)
    assert y[:, :2].isnan().all() and y[:, 2].tolist() == [1, 4]
    (y * flow.tensor([[1.0], [10.0]]).to(x.dtype)).sum().backward()
    assert x.grad.tolist() == [[0, 11, 0, 0], [11, 0, 0, 0], [10, 1, 0, 0]]
    x.grad = None
    flow.nanquantile(x, shares, 1, interpolation=how).sum().backward()
    assert x.grad.tolist() == [[1, 0, 1, 0], [2, 0, 0, 0], [1, 1, 0, 0]]
