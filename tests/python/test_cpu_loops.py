# SPDX-License-Identifier: Apache-2.0
"""Vector loops of the CPU around their boundaries.

A vector holds 2 to 64 elements, and a turn of a loop takes one, two or four of them: lengths run
through 0 to 70 and lie around 512, the chunk in which elements are converted. Columns are added in
fours, 32 at most in float32.
"""

import math

import numpy as np
import pytest
from numerics import FLOATS, HALVES, bits, flow, host, rounded, tensor, ulp

RNG = np.random.default_rng(29)
LENGTHS = [*range(71), 127, 128, 129, 511, 512, 513, 1100]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 6e-8, 65504.0, 3e38]


def drawn(shape, dtype):
    """Numbers of a dtype, from a tensor."""
    return tensor(RNG.standard_normal(shape), dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_rows_are_turned_round(dtype):
    for n in LENGTHS[1:]:
        x = RNG.integers(0, 100, (3, n)).astype(dtype)
        for cut in (0, min(1, n - 1)):
            got = flow.flip(flow.tensor(x)[:, cut:], (1,)).numpy()
            np.testing.assert_array_equal(got, x[:, cut:][:, ::-1])


# Squares of 16 bytes a side, in tiles of 64 bytes by 128 elements or fewer.
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_tiles_are_transposed(dtype):
    for rows in (4, 5, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 130):
        for cols in (4, 8, 9, 16, 17, 33, 127, 128, 129, 260):
            x = RNG.integers(0, 100, (rows, cols)).astype(dtype)
            np.testing.assert_array_equal(flow.tensor(x).T.contiguous().numpy(), x.T)
    x = RNG.integers(0, 100, (37, 70)).astype(dtype)
    np.testing.assert_array_equal(flow.tensor(x)[1:, 3:].T.double().numpy(), x[1:, 3:].T)


def check_extremes(x, dim):
    values = host(x)
    for name, reference in (("amax", np.max), ("amin", np.min)):
        np.testing.assert_array_equal(host(getattr(x, name)(dim)), reference(values, dim))
    least, most = flow.aminmax(x, dim=dim)
    np.testing.assert_array_equal(host(least), values.min(dim))
    np.testing.assert_array_equal(host(most), values.max(dim))


@pytest.mark.parametrize("dtype", FLOATS)
def test_extremes_of_every_length(dtype):
    for n in LENGTHS[1:] + [4097, 70000]:
        x = drawn((2, n), dtype)
        check_extremes(x, 1)
        check_extremes(x.T.contiguous(), 0)
        check_extremes(-x.abs() - 1, 1)  # no lane may hold the 0 of an empty one


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_extremes_of_integers_of_every_length(dtype):
    for n in LENGTHS[1:] + [70000]:
        x = tensor(RNG.integers(0, 100, (2, n)) + 100, dtype)
        check_extremes(x, 1)
        check_extremes(x.T.contiguous(), 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 5, 64, 70, 515])
def test_a_nan_at_every_place(dtype, n):
    for place in range(n):
        values = RNG.standard_normal((3, n))
        values[1, place] = np.nan
        values[:, 0] = np.where(place == 0, values[:, 0], np.inf)
        x = tensor(values, dtype)
        check_extremes(x, 1)
        check_extremes(x, 0)


def check_places(x):
    """The first extreme, or the first NaN, as NumPy has it; by one thread and by two."""
    before = flow.get_num_threads()
    try:
        for threads in (1, 2):
            flow.set_num_threads(threads)
            for dim in (0, 1):
                np.testing.assert_array_equal(host(x.argmax(dim)), host(x).argmax(dim))
                np.testing.assert_array_equal(host(x.argmin(dim)), host(x).argmin(dim))
    finally:
        flow.set_num_threads(before)


# Columns: up to 256 share a vector with other rows, 512 are a block; a part has 65536 elements.
@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "uint8"])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 255, 256, 257, 511, 512, 513, 1030])
def test_places_of_extremes(dtype, width):
    group = 512 // width if width <= 256 else 1
    lengths = {1, 2, 3, group - 1, group, group + 1, 2 * group + 1, 65536 // width,
               65536 // width + 1, 140000 // width}  # fmt: skip
    for rows in sorted(lengths - {0}):
        # Few values: the first of many equal ones counts.
        x = tensor(RNG.integers(0, 6, (rows, width)) + RNG.integers(0, 50), dtype)
        check_places(x)
        np.testing.assert_array_equal(host(x.max(0).values), host(x).max(0))
        np.testing.assert_array_equal(host(x.argmax()), host(x).argmax())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 3, 200, 515])
def test_places_of_nan(dtype, width):
    for rows in (5, 70, 1200):
        values = RNG.standard_normal((rows, width))
        for at in {0, 1, rows // 2, rows - 1}:
            values[at, RNG.integers(0, width)] = np.nan
        values[RNG.integers(0, rows), -1] = np.inf
        check_places(tensor(values, dtype))


# Rows of 512 to 4096 float32 are multiplied in blocks of 1024 by pairs within [2^-30, 2^30].
@pytest.mark.parametrize("n", [511, 512, 639, 640, 1023, 1024, 1025, 2048, 4095, 4096, 4097])
def test_products_of_rows_that_leave_the_range(n):
    values = np.exp2(RNG.uniform(-0.5, 0.5, (6, n))) * RNG.choice([-1.0, 1.0], (6, n))
    for row, (one, other) in enumerate(
        [(1e-25, 1e25), (1e30, 1e-30), (3e-10, 1e10), (1e-39, 1e39)]
    ):
        places = RNG.permutation(n)[:40]
        values[row, places[:20]], values[row, places[20:]] = one, other
    values[4, n // 2] = 0
    values[5, n - 1] = np.inf
    x = tensor(values.clip(-3e38, 3e38) if n % 2 else values.astype(np.float32), "float32")
    expected = host(x).astype(np.longdouble).prod(1).astype(np.float32)
    np.testing.assert_allclose(host(x.prod(1)), expected, rtol=n * 1e-7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 3, 129, 511, 512, 515])
def test_sums_and_products_over_rows(dtype, width):
    for rows in [*range(1, 12), 31, 32, 33, 36, 64, 67, 200]:
        x = drawn((rows, width), dtype)
        values = host(x)
        for dim in (0, 1):
            terms = np.abs(values).sum(dim)
            error = 2e-6 * terms if dtype != "float64" else 1e-14 * terms
            want = values.sum(dim)
            off = np.abs(host(x.sum(dim)) - want)
            assert (off <= error + 0.5 * ulp(want, dtype)).all()
        near = 1 + values / 64
        got = host(tensor(near, dtype).prod(0))
        want = host(tensor(near, dtype)).prod(0)
        assert (np.abs(got - want) <= 0.6 * ulp(want, dtype) + 1e-13 * np.abs(want)).all()


def test_counts_of_truths_over_rows():
    for rows in (3, 4, 5, 31, 32, 33, 300):
        x = RNG.random((rows, 77)) < 0.7
        np.testing.assert_array_equal(flow.tensor(x).sum(0).numpy(), x.sum(0))


TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "copysign": np.copysign,
}  # fmt: skip


def check_two(name, dtype, x, y, got):
    with np.errstate(all="ignore"):  # in float32, rounded once more
        want = tensor(TWO[name](np.float32(host(x)), np.float32(y)), dtype)
    np.testing.assert_array_equal(host(got), host(want))
    if name != "maximum" and name != "minimum":  # which of two zeros is not said
        clean = ~np.isnan(host(want))
        np.testing.assert_array_equal(np.signbit(host(got))[clean], np.signbit(host(want))[clean])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", TWO)
def test_arithmetic_of_16_bits_is_rounded_once(name, dtype):
    f = getattr(flow, name)
    x = tensor(np.repeat(SPECIAL, len(SPECIAL)), dtype)
    y = tensor(np.tile(SPECIAL, len(SPECIAL)), dtype)
    check_two(name, dtype, x, host(y), f(x, y))
    for n in LENGTHS:
        x, y = drawn((n,), dtype), drawn((n,), dtype)
        check_two(name, dtype, x, host(y), f(x, y))
    x = drawn((9, 77), dtype)
    for y in (drawn((77,), dtype), drawn((9, 1), dtype), drawn((77, 9), dtype).T):
        check_two(name, dtype, x, np.broadcast_to(host(y), x.shape), f(x, y))
    check_two(name, dtype, x[:, 1:70], host(x[:, 2:71]), f(x[:, 1:70], x[:, 2:71]))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_beside_16_bits_are_not_rounded(dtype):
    for n in (1, 5, 77, 600):
        x = drawn((n,), dtype)
        check_two("mul", dtype, x, np.full(n, 0.1), x * 0.1)
        check_two("add", dtype, x, np.full(n, 1000.3), x + 1000.3)
        check_two("sub", dtype, x, np.full(n, 1e-3), x - 1e-3)
        check_two("add", dtype, x, np.full(n, np.nan), x + float("nan"))
        check_two("add", dtype, x, np.full(n, np.nan), x + -float("nan"))
        y = x.clone()
        y += y
        assert bits(y) == bits(x + x) == bits(x * 2)


@pytest.mark.parametrize("above", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_float32_is_rounded_to_every_bfloat16(above):
    raw = (np.arange(65536, dtype=np.uint32) << 16) + np.uint32(above)
    upper = raw >> 16
    nan = (raw & 0x7FFFFFFF) > 0x7F800000
    near = (raw.astype(np.uint64) + 0x7FFF + (upper & 1)) >> 16
    want = np.where(nan, upper | 0x40, near).astype(np.uint32) << 16
    for cut in (0, 1, 17, 65519):
        got = flow.tensor(raw.view(np.float32)[cut:]).to(flow.bfloat16).float().numpy()
        np.testing.assert_array_equal(got.view(np.uint32), want[cut:])


@pytest.mark.parametrize("dtype", FLOATS)
def test_bounds(dtype):
    limits = [-np.inf, -1.0, -0.3, 0.0, 0.7, np.inf, np.nan]
    for n in (1, 3, 33, 77, 600):
        x = tensor(np.concatenate([SPECIAL, RNG.standard_normal(n)])[-n:], dtype)
        for low in limits:
            for high in limits:
                with np.errstate(all="ignore"):
                    want = np.minimum(np.maximum(host(x), low), high)
                # The bounds are rounded with the result alone.
                want = np.where(np.isnan(want), want, rounded(want, dtype))
                np.testing.assert_array_equal(host(x.clamp(low, high)), want)
    assert bits(x.clamp(-1, 0.5)) == bits(x.clone().clamp_(-1, 0.5))


# Where one lane takes the long way round, the others keep their bits.
@pytest.mark.parametrize("name", ["log", "exp", "logit", "erfinv", "gelu", "sigmoid"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_change_nothing(name, dtype):
    f = getattr(flow, name, None) or getattr(flow.nn.functional, name)
    values = RNG.uniform(0.01, 0.99, 64)
    alone = bits(f(tensor(values, dtype)))
    item = len(alone) // 64
    for other in (*SPECIAL, 1 - 2.0**-11, 100.0, -100.0):
        mixed = values.copy()
        mixed[::5] = other
        got = bits(f(tensor(mixed, dtype)))
        for i in range(64):
            if i % 5:
                assert got[i * item : (i + 1) * item] == alone[i * item : (i + 1) * item]


def test_gelu_of_float32_through_its_bit_patterns():
    raw = np.arange(0, 2**32, 4099 * 8, dtype=np.uint32)
    near = RNG.uniform(-15, 15, 100000).astype(np.float32)
    x = np.concatenate([raw.view(np.float32), near, np.float32([0.0, -0.0, np.inf, -np.inf])])
    x = x[~np.isnan(x)]
    got = host(flow.nn.functional.gelu(flow.tensor(x)))
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        want = 0.5 * wide * np.vectorize(math.erfc)(-wide / math.sqrt(2))
        want = np.where(wide == -np.inf, 0.0, want)
        close = np.abs(got - want) <= 4 * ulp(want, "float32")
    assert (close | (got == want) | (wide < -38)).all()
    assert (got[wide < -38] == 0).all()


# From 32 elements on, 512 at a time where they are widened; as the product of a longer batch.
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [31, 32, 33, 511, 512, 513, 1030])
def test_batches_of_dots(n, dtype):
    a, b = (tensor(RNG.standard_normal((3, n)), dtype) for _ in range(2))
    x, y = host(a).astype(float), host(b).astype(float)
    bound = {"float64": 1e-14, "float32": 1e-6}.get(dtype, 1e-2)
    close = {"rtol": bound, "atol": bound * np.sqrt(n)}
    want = (x * y).sum(1)
    for columns in (b.unsqueeze(2), b.T.contiguous().T.unsqueeze(2)):
        rows = flow.bmm(a.unsqueeze(1), columns)
        np.testing.assert_allclose(host(rows).astype(float)[:, 0, 0], want, **close)
    added = flow.baddbmm(a[:, :1].unsqueeze(2), a.unsqueeze(1), b.unsqueeze(2))
    np.testing.assert_allclose(host(added).astype(float)[:, 0, 0], want + x[:, 0], **close)
    one = flow.einsum("ij,ij->i", a[1:2], b[1:2])
    np.testing.assert_allclose(host(one).astype(float), want[1:2], **close)


# Rows from 64 elements on are taken where they lie, those of 63 by chunks. 59,724 elements and more
# are worth a second thread, which begins within a row.
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("cols", [63, 64, 65, 130])
def test_rows_broadcast_over_other_dims(cols, dtype):
    x, y, z = (host(drawn((4, 79, 3, cols), dtype)) for _ in range(3))
    whole = tensor(x, dtype)
    for other in (y[:, :1], y[:1, :, :1], y[..., :1], z[:, :1, :, :1], z[:, :, :1]):
        got = whole - tensor(other, dtype)
        np.testing.assert_array_equal(host(got), rounded(x - other, dtype))
        got = tensor(other, dtype) - whole.permute(0, 2, 1, 3).permute(0, 2, 1, 3)
        np.testing.assert_array_equal(host(got), rounded(other - x, dtype))
    turned = whole.permute(2, 0, 1, 3)
    got = turned * tensor(y[0, 0, :, :1].reshape(3, 1, 1, 1), dtype)
    want = rounded(x * y[0, 0, :, :1].reshape(1, 1, 3, 1), dtype)
    np.testing.assert_array_equal(host(got), want.transpose(2, 0, 1, 3))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, factor", [("smooth_l1_loss", 1.0), ("huber_loss", 0.5)])
def test_slopes_on_both_sides_of_a_bend(name, factor, dtype):
    gaps = np.array([*np.linspace(-2, 2, 33), 0.0, -0.0, np.inf, -np.inf, np.nan])
    x = tensor(gaps, dtype).requires_grad_()
    option = {"beta": 0.5} if name == "smooth_l1_loss" else {"delta": 0.5}
    y = getattr(flow.nn.functional, name)(x, flow.zeros_like(x), reduction="none", **option)
    (got,) = flow.autograd.grad(y, x, tensor(np.full(gaps.shape, 3.0), dtype))
    want = np.where(np.abs(gaps) < 0.5, gaps / 0.5, np.sign(gaps)) * factor * 3
    np.testing.assert_array_equal(host(got), rounded(want, dtype))


# Rows of 15 bytes and fewer are copied tensor by tensor, those of 16 and more together: in blocks
# of 16 bytes up to 255.
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("size", [8, 15, 16, 17, 40, 240, 255, 256, 257, 1000])
def test_rows_are_joined(size, dtype):
    cols = -(-size // np.dtype(dtype).itemsize)
    x, y, z = (RNG.integers(0, 100, (301, width)).astype(dtype) for width in (cols, cols + 3, 64))
    parts = [flow.tensor(x), flow.tensor(y)[:, 2:-1], flow.tensor(z)]
    got = flow.cat(parts, 1)
    np.testing.assert_array_equal(got.numpy(), np.concatenate([x, y[:, 2:-1], z], 1))
    tall = flow.stack([parts[0], parts[1]], 1)
    np.testing.assert_array_equal(tall.numpy(), np.stack([x, y[:, 2:-1]], 1))
    row = flow.tensor(x)[:1].expand(301, cols)
    got = flow.cat([row, parts[0]], 1)
    np.testing.assert_array_equal(got.numpy(), np.concatenate([row.numpy(), x], 1))


# Columns are folded 8 rows at a time, in 4 vectors of them, in one, and in a part of one.
@pytest.mark.parametrize("rows", [1, 2, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "int64", "bool"])
def test_columns_of_any_number_of_rows(rows, dtype):
    rng = np.random.default_rng(rows)
    for cols in (1, 3, 15, 64, 130, 600):
        x = (
            rng.integers(0, 2, (rows, cols))
            if dtype == "bool"
            else rng.integers(-3, 4, (rows, cols))
        )
        t = tensor(x.astype(bool) if dtype == "bool" else x, dtype)
        np.testing.assert_array_equal(host(t.sum(0)).astype(np.int64), x.sum(0))
        np.testing.assert_array_equal(host(flow.count_nonzero(t, 0)), (x != 0).sum(0))
        np.testing.assert_array_equal(host(t.any(0)), (x != 0).any(0))
        if dtype != "bool":
            np.testing.assert_array_equal(host(t.amax(0)).astype(np.int64), x.max(0))
            np.testing.assert_array_equal(host(t.amin(0)).astype(np.int64), x.min(0))
        factors = np.where(rng.random((rows, cols)) < 0.2, 2, np.sign(x) + (x == 0))
        product = factors.prod(0)
        if abs(product).max() < 1 << 11:  # exact in every float
            got = host(tensor(factors, "int64" if dtype in ("bool", "int8") else dtype).prod(0))
            np.testing.assert_array_equal(got.astype(np.int64), product)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_over_columns_that_leave_the_range_of_double(dtype):
    x = np.full((2100, 5), 0.5)
    x[:, 1] *= -1
    x[0, 1] = 0.5
    x[2050, 2] = math.nan
    x[3, 3] = 0
    x[:, 4] = 2
    got = host(tensor(x, dtype).prod(0)).astype(np.float64)
    np.testing.assert_array_equal(got, [0, -0.0, math.nan, 0, math.inf])
    assert np.signbit(got).tolist()[:2] == [False, True]
    back = np.concatenate([np.full((900, 3), 0.5), np.full((903, 3), 2.0)])
    np.testing.assert_array_equal(host(tensor(back, dtype).prod(0)).astype(np.float64), [8] * 3)
