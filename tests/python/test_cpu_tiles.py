# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions on the CPU where operands lie across, in rows of any length, or numbers.

An operand that the result walks the other way round is turned in tiles, of as many rows as
elements are in 64 bytes and of 128 columns or fewer, from 16 columns on. Chunks of 512 elements end
with rows of 64 or more. Functions of three floats take numbers, and 16-bit floats as they lie.
"""

import itertools

import numpy as np
import pytest
from numerics import FLOATS, bits, flow, host, rounded, tensor

RNG = np.random.default_rng(31)
ROWS = [3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65]
COLS = [4, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 260, 513]
LENGTHS = [*range(1, 35), 63, 64, 65, 127, 129, 511, 512, 513, 1100]


def whole(*shape):
    """Small whole numbers, which every dtype holds, with their sums and products."""
    return RNG.integers(0, 8, shape).astype(np.float64)


def across(values, dtype):
    """The same tensor with its last two dims the other way round in memory."""
    return tensor(np.swapaxes(values, -1, -2), dtype).transpose(-1, -2)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int16", "int64"])
def test_one_of_two_lies_across(dtype):
    for rows, cols in itertools.product(ROWS, COLS):
        a, b = whole(rows, cols), whole(rows, cols)
        x, y = tensor(a, dtype), across(b, dtype)
        np.testing.assert_array_equal(host(x + y), a + b)
        np.testing.assert_array_equal(host(y < x), b < a)
    np.testing.assert_array_equal(host(y + 2), b + 2)
    z = flow.empty(rows, cols, dtype=x.dtype)
    flow.mul(x, y, out=z)
    np.testing.assert_array_equal(host(z), a * b)
    x += y
    np.testing.assert_array_equal(host(x), a + b)


def test_operands_of_every_layout_beside_one_that_lies_across():
    for rows, cols in ((5, 16), (33, 65), (40, 300)):
        b = whole(3, rows, cols)
        y = across(b, "bfloat16")
        wide, every = whole(3, rows, cols + 3), whole(3, rows, 2 * cols)
        others = [
            (tensor(wide, "bfloat16")[..., 1:-2], wide[..., 1:-2]),
            (tensor(every, "bfloat16")[..., ::2], every[..., ::2]),
            (across(wide[..., :cols], "bfloat16"), wide[..., :cols]),
            (across(wide[..., :cols], "float64"), wide[..., :cols]),
            (tensor(wide[0, :, :1], "bfloat16"), wide[0, :, :1]),
            (tensor(wide[0, 0, :cols], "int32"), wide[0, 0, :cols]),
            (tensor(wide[:, :, :1], "float32"), wide[:, :, :1]),
        ]
        for x, a in others:
            np.testing.assert_array_equal(host(x + y), a + b)
            np.testing.assert_array_equal(host(y - x), b - a)
            keep = tensor(b > 3, "bool")
            np.testing.assert_array_equal(host(flow.where(keep, x, y)), np.where(b > 3, a, b))
        np.testing.assert_array_equal(host(-y), -b)
        np.testing.assert_array_equal(host(flow.addcmul(x, y, y)), a + b * b)
        np.testing.assert_array_equal(host(flow.addcmul(y, x, y)), b + a * b)
        np.testing.assert_array_equal(host(y.clamp(1, 5)), b.clip(1, 5))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int16"])
def test_rows_of_every_length(dtype):
    for cols in (1, 2, 31, 63, 64, 65, 127, 128, 129, 500, 511, 512, 513, 600, 1025):
        wide, column, row = whole(7, cols + 3), whole(7, 1), whole(cols)
        x, a = tensor(wide, dtype)[:, 1:-2], wide[:, 1:-2]
        np.testing.assert_array_equal(host(x + 1), a + 1)
        np.testing.assert_array_equal(host(1 - x), 1 - a)
        np.testing.assert_array_equal(host(-x), -a)
        np.testing.assert_array_equal(host(x * tensor(column, dtype)), a * column)
        np.testing.assert_array_equal(host(x + tensor(row, dtype)), a + row)
        np.testing.assert_array_equal(host(tensor(column, dtype) - tensor(row, dtype)),
                                      column - row)  # fmt: skip
        np.testing.assert_array_equal(host(x.contiguous()), a)
        np.testing.assert_array_equal(host(flow.cat([x, x, x[:, :1]], 1)),
                                      np.concatenate([a, a, a[:, :1]], 1))  # fmt: skip
        np.testing.assert_array_equal(host(flow.stack([x, x], 2)), np.stack([a, a], 2))
        y = flow.zeros(7, 2 * cols, dtype=x.dtype)
        y[:, ::2] = x
        np.testing.assert_array_equal(host(y)[:, ::2], a)
        assert (host(y)[:, 1::2] == 0).all()


THREE = {
    "lerp": (flow.lerp, lambda a, b, c: a + c * (b - a)),
    "addcmul": (lambda a, b, c: flow.addcmul(a, b, c, value=0.3), lambda a, b, c: a + 0.3 * b * c),
    "addcdiv": (lambda a, b, c: flow.addcdiv(a, b, c, value=0.3), lambda a, b, c: a + 0.3 * b / c),
}


def check_three(name, dtype, x, y, z):
    f, exact = THREE[name]
    a, b, c = (v if isinstance(v, float) else host(v) for v in (x, y, z))
    want = exact(a, b, c)
    scale = np.abs(a) + np.abs(b) + np.abs(exact(0.0, b, c))
    fine = {"float64": 1e-15, "float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype, 4e-7)
    assert (np.abs(host(f(x, y, z)) - want) <= fine * np.abs(want) + 4e-7 * scale).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", THREE)
def test_three_floats(name, dtype):
    def drawn(*shape):
        return tensor(RNG.uniform(0.1, 2, shape), dtype)

    for n in LENGTHS:
        for cut in (0, 1):
            check_three(name, dtype, drawn(n + cut)[cut:], drawn(n), drawn(n + 3)[3:])
    x, y, z = drawn(9, 77), drawn(77), drawn(9, 1)
    check_three(name, dtype, x, y, z)
    check_three(name, dtype, y, x, drawn(77, 9).T)
    check_three(name, dtype, x[:, 1:70], x[:, 2:71], x[:, 3:72])
    f = THREE[name][0]
    assert bits(f(x, x, x)) == bits(f(x.reshape(-1), x.reshape(-1), x.reshape(-1)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_weight_is_a_number(dtype):
    for n in LENGTHS:
        x, y = tensor(RNG.uniform(-2, 2, n), dtype), tensor(RNG.uniform(-2, 2, n), dtype)
        check_three("lerp", dtype, x, y, 0.3)
        check_three("lerp", dtype, x, y, 0.9)
        np.testing.assert_array_equal(host(flow.lerp(x, y, 0.0)), host(x))
        np.testing.assert_array_equal(host(flow.lerp(x, y, 1.0)), host(y))
        assert np.isnan(host(flow.lerp(x, y, float("nan")))).all()
        assert np.isnan(host(flow.addcmul(x, x, y, value=float("nan")))).all()
    x = tensor(RNG.uniform(-2, 2, (40, 33)), dtype)
    y = tensor(RNG.uniform(-2, 2, (33, 40)), dtype).T
    check_three("lerp", dtype, x, y, 0.3)
    check_three("lerp", dtype, x[:, 2:31], y[:, 1:30], 0.9)
    want = flow.lerp(x, y, 0.3)
    assert bits(x.lerp_(y, 0.3)) == bits(want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bounds_of_views(dtype):
    values = RNG.uniform(-2, 2, (40, 35))
    x = tensor(values, dtype)
    for part in (x[:, 1:-1], x.T, x[::2], x[:, ::2]):
        want = rounded(np.clip(host(part), -0.3, 0.7), dtype)
        np.testing.assert_array_equal(host(part.clamp(-0.3, 0.7)), want)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_scans_of_any_number_of_rows(name, dtype):
    """Four rows are gone through together."""
    for rows in range(1, 11):
        x = tensor(RNG.uniform(0.5, 1.5, (rows, 19)), dtype)
        f = getattr(flow, name)
        alone = [host(f(x[r], 0)) for r in range(rows)]
        np.testing.assert_array_equal(host(f(x, 1)), np.stack(alone))
        want = np.logaddexp.accumulate(host(x), 1) if name == "logcumsumexp" else (
            getattr(np, name)(host(x), 1))  # fmt: skip
        fine = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6)
        np.testing.assert_allclose(host(f(x, 1)), want, rtol=fine)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_long_rows(dtype):
    """Rows of 512 to 4096 floats are multiplied by fours in float32, in blocks of 256 to 1024."""
    for n in (1, 2, 7, 8, 9, 33, 511, 512, 513, 575, 576, 577, 1024, 1087, 1500, 4096, 4097):
        values = RNG.choice([-1, 1], (3, n)) * (1 + RNG.standard_normal((3, n)) / 64)
        x = tensor(values, dtype)
        want = host(x).prod(1)
        fine = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 1e-7}.get(dtype, 1e-13)
        if dtype == "float32" and 512 <= n <= 4096:
            fine = 3e-8 * 4 * n**0.5  # four deviations of as many roundings
        np.testing.assert_allclose(host(x.prod(1)), want, rtol=fine)


@pytest.mark.parametrize("place", [0, 63, 64, 700, 1023, 1024, 1499])
def test_products_leave_the_range_on_the_way(place):
    tiny, huge = 2.0**-100, 2.0**100
    for special in (0.0, -0.0, np.inf, np.nan, 2.0**-149, tiny, huge):
        x = np.ones((2, 1500), np.float32)
        x[0, place] = special
        x[1] = np.tile([huge, huge, tiny, tiny, -2, -0.5], 250)
        with np.errstate(all="ignore"):
            want = x.astype(np.float64).prod(1)
        np.testing.assert_array_equal(host(flow.tensor(x).prod(1)), want)
