# SPDX-License-Identifier: Apache-2.0
"""Functions of the CPU around the sizes at which another loop, or another split, takes over.

memcpy is left from 2048 bytes on where the result lies 1 to 31 bytes behind its source on a page;
rows are searched by counting up to 32 elements, by vectors where 16 are sought; a dot is summed in
parts of 65,536; products of rows of 512 to 4096 are formed in float32; threads share a row of at
least 2 x 16,384 elements that is moved.
"""

import numpy as np
import pytest
from numerics import flow, host

RNG = np.random.default_rng(60)


@pytest.mark.parametrize("cols", [2047, 2048, 2049, 4096, 8192 + 5])
def test_rows_that_lie_a_few_bytes_behind(cols):
    x = RNG.integers(0, 255, (3, cols)).astype(np.uint8)
    t = flow.tensor(x)
    for shift in [*range(-3, 36), 63, 64, 65]:
        np.testing.assert_array_equal(flow.roll(t, shift, 1).numpy(), np.roll(x, shift, 1))
        place = flow.zeros((3, cols + 70), dtype=flow.uint8)
        begin = abs(shift)
        place[:, begin : begin + cols] = t
        np.testing.assert_array_equal(place.numpy()[:, begin : begin + cols], x)
        assert place.numpy().sum() == x.sum(dtype=np.int64)


@pytest.mark.parametrize("n", [1, 32767, 32768, 32769, 98304, 100_001])
def test_threads_share_a_row_that_is_moved(threads, n):
    x = RNG.integers(0, 1000, n).astype(np.int32)
    t = flow.tensor(x)
    for shift in (0, 1, 3, n // 2, n - 1):
        np.testing.assert_array_equal(flow.roll(t, shift, 0).numpy(), np.roll(x, shift))
    np.testing.assert_array_equal(flow.flip(t, (0,)).numpy(), x[::-1])
    pad = flow.nn.functional.pad
    np.testing.assert_array_equal(pad(t, (5, 40_000)).numpy(), np.pad(x, (5, 40_000)))
    if n > 10:
        np.testing.assert_array_equal(pad(t, (-3, -7)).numpy(), x[3:-7])
        floats = flow.tensor(x.astype(np.float32)).reshape(1, 1, n)
        for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
            found = pad(floats, (4, 9), mode=mode).numpy()[0, 0]
            np.testing.assert_array_equal(found, np.pad(x, (4, 9), name).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int16", "uint8"])
def test_an_element_for_each_row(threads, dtype):
    for rows, cols in ((1, 7), (700, 1), (600, 2), (300, 15), (300, 16), (300, 17), (90, 63),
                       (90, 64), (90, 65), (5, 511), (5, 512), (5, 513), (3000, 33)):  # fmt: skip
        x = flow.tensor(RNG.integers(0, 50, (rows, cols))).to(getattr(flow, dtype))
        y = flow.tensor(RNG.integers(0, 50, (rows, 3))).to(getattr(flow, dtype))
        a, b = x.to(flow.int64).numpy(), y.to(flow.int64).numpy()[:, 1:2]
        np.testing.assert_array_equal((x + y[:, 1:2]).to(flow.int64).numpy(), a + b)
        np.testing.assert_array_equal((x < y[:, 1:2]).numpy(), a < b)
        found = flow.where(x < y[:, 1:2], y[:, 1:2], x).to(flow.int64).numpy()
        np.testing.assert_array_equal(found, np.maximum(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.int16])
@pytest.mark.parametrize("cols", [1, 2, 31, 32, 33, 64, 1000])
def test_searches(cols, dtype):
    row = np.sort(RNG.integers(-40, 40, cols)).astype(dtype)
    for n in (1, 7, 8, 9, 15, 16, 17, 70):
        x = RNG.integers(-45, 45, n).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            x[: n // 3] = [np.inf, -np.inf, np.nan, -0.0, 0.0, *x[5:]][: n // 3]
            row[-1] = np.nan if n % 2 else row[-1]
        for side in ("left", "right"):
            want = np.searchsorted(row, x, side)
            sought = flow.tensor(x)
            found = flow.searchsorted(flow.tensor(row), sought, right=side == "right")
            np.testing.assert_array_equal(found.numpy(), want)
            found = flow.bucketize(sought, flow.tensor(row), out_int32=True, right=side == "right")
            assert found.dtype == flow.int32
            np.testing.assert_array_equal(found.numpy(), want)


def test_searches_in_rows_of_their_own(threads):
    for per_row in (7, 15, 16, 17, 40):
        rows = np.sort(RNG.standard_normal((150, 50)), 1)
        x = RNG.standard_normal((150, per_row))
        want = np.stack([np.searchsorted(r, v) for r, v in zip(rows, x, strict=True)])
        found = flow.searchsorted(flow.tensor(rows), flow.tensor(x)).numpy()
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("n", [0, 1, 65_536, 65_537, 200_000])
def test_bins_are_counted(threads, n):
    for most in (1, 9, 300_000):
        for dtype in (np.int64, np.int32, np.uint8):
            x = RNG.integers(0, min(most, 200 if dtype == np.uint8 else most), n).astype(dtype)
            for least in (0, 4, 1000):
                found = flow.bincount(flow.tensor(x), minlength=least)
                assert found.dtype == flow.int64
                np.testing.assert_array_equal(found.numpy(), np.bincount(x, minlength=least))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_dots_have_the_same_bits_on_any_number_of_threads(dtype):
    before = flow.get_num_threads()
    for n in (511, 512, 513, 65_535, 65_536, 65_537, 200_001):
        wide = [flow.tensor(RNG.standard_normal(2 * n)).to(getattr(flow, dtype)) for _ in range(2)]
        for x, y in ((wide[0][:n], wide[1][:n]), (wide[0][::2], wide[1][1::2])):
            a, b = x.to(flow.float64).numpy(), y.to(flow.float64).numpy()
            found = []
            for threads in (1, 2, 3):
                flow.set_num_threads(threads)
                found.append(flow.dot(x, y).to(flow.float64).item())
            flow.set_num_threads(before)
            eps = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-8}[dtype]
            fine = 2.0**-20 if dtype != "float64" else 2.0**-49
            assert abs(found[0] - a @ b) <= eps * abs(a @ b) + fine * (abs(a) @ abs(b))
            assert found[0] == found[1] == found[2], n


@pytest.mark.parametrize("cols", [63, 128, 511, 512, 513, 640, 1000, 4095, 4096, 4097])
def test_products_of_rows(cols):
    x = RNG.uniform(0.9, 1.1, (9, cols)).astype(np.float32)
    x[1, cols // 2], x[2, -1], x[3, 0] = 0, np.inf, np.nan
    x[4, :8] = 1e-30  # leaves float32's range on the way, and comes back
    x[4, -8:] = 1e30
    x[5] = -x[5]
    x[6, 3:40:5] = 1e-12
    x[7, -2:] = 3e38
    with np.errstate(over="ignore"):
        want = x.astype(np.float64).prod(1).astype(np.float32)
    found = flow.prod(flow.tensor(x), 1).numpy()
    np.testing.assert_allclose(found, want, rtol=(1 + cols * (cols > 511)) * 2.0**-24)


@pytest.mark.parametrize("cols", [5, 127, 129, 513, 1030])
def test_gradients_of_products(cols):
    x = RNG.uniform(0.9, 1.1, (6, cols))
    x[1, 3] = 0
    x[2, [2, 4]] = 0
    x[3] = -x[3]
    t = flow.tensor(x, requires_grad=True)
    flow.prod(t, 1).sum().backward()
    want = np.stack([[np.delete(r, i).prod() for i in range(cols)] for r in x])
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("shape", [(511,), (512,), (513,), (1025,), (3, 5), (300, 33), (2, 9000)])
def test_negative_log_likelihoods(threads, shape):
    classes = 7
    x = RNG.standard_normal((shape[0], classes, *shape[1:]))
    target = RNG.integers(0, classes, shape)
    target.flat[1] = -100
    picked = -np.take_along_axis(x, np.where(target < 0, 0, target)[:, None], 1)[:, 0]
    picked[target < 0] = 0
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
        t, at = flow.tensor(x).to(getattr(flow, dtype)), flow.tensor(target)
        each = flow.nn.functional.nll_loss(t, at, reduction="none")
        np.testing.assert_allclose(host(each), picked, atol=1e-6 if dtype == "float32" else 0)
        mean = flow.nn.functional.nll_loss(t, at).item()
        want = picked.sum() / (target >= 0).sum()
        assert abs(mean - want) <= bound * np.abs(picked).mean()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_clamp_keeps_nan_and_what_equals_a_bound(dtype):
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0]
    x = np.resize(special, 75).astype(np.float64)
    for low, high in ((0.0, 1.0), (-0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0), (2.0, -1.0),
                      (-np.inf, np.inf), (1.0, np.inf)):  # fmt: skip
        below = np.where(x < low, low, x)
        want = np.where(below > high, high, below)
        t = flow.tensor(x).to(getattr(flow, dtype))
        for found in (t.clamp(low, high), t.clone().clamp_(low, high)):
            found = found.to(flow.float64).numpy()
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(np.signbit(found[x == x]), np.signbit(want[x == x]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [5, 511, 512, 513, 1100])
def test_gradients_of_powers(n, dtype):
    a = RNG.uniform(0.1, 3, n)
    a[:5] = [0, -2, np.inf, 1, 0.25]
    rtol = 3e-6 if dtype == "float32" else 1e-13
    for power in (1.7, -1.5, 0.5, 1.0, 0.0, 5.0):
        t = flow.tensor(a).to(getattr(flow, dtype)).requires_grad_(True)
        (t**power).sum().backward()
        with np.errstate(all="ignore"):
            want = power * np.power(a, power - 1) if power else np.zeros(n)
        np.testing.assert_allclose(t.grad.to(flow.float64).numpy(), want, rtol=rtol)
    b = RNG.uniform(-2, 2, n)
    b[:6] = [0, 3, 2, 1.5, -1, 0][: min(n, 6)]
    t = flow.tensor(a).to(getattr(flow, dtype)).requires_grad_(True)
    (t ** flow.tensor(b).to(getattr(flow, dtype))).sum().backward()
    with np.errstate(all="ignore"):
        b = b.astype(dtype).astype(np.float64)
        want = np.where(b == 0, 0, b * np.power(a.astype(dtype).astype(np.float64), b - 1))
    np.testing.assert_allclose(t.grad.to(flow.float64).numpy(), want, rtol=rtol)
