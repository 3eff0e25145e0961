# SPDX-License-Identifier: Apache-2.0
"""Lengths on both sides of where a kernel of the CPU takes another way, and its corner cases."""

import itertools

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(48)
# Vectors of 4 to 64 elements, and pieces of 512 and 1024.
LENGTHS = [1, 3, 4, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 511, 513, 1023, 1025, 2500]


def some(n, dtype):
    """Numbers that the dtype has, none twice as near as its steps."""
    if dtype == "bool":
        return RNG.random(n) < 0.5
    low = 0 if dtype == "uint8" else -99
    return RNG.integers(low, 100, n).astype(dtype)


@pytest.mark.parametrize("n", [*LENGTHS, 40_000])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64"])
def test_what_a_mask_holds(n, dtype):
    x = some(n, dtype)
    for share in (0.0, 0.01, 0.5, 1.0):
        mask = RNG.random(n) < share
        np.testing.assert_array_equal(host(tensor(x, dtype)[tensor(mask, "bool")]), x[mask])
        held = np.where(mask, np.ones_like(x), np.zeros_like(x))
        places = flow.nonzero(tensor(held, dtype))
        np.testing.assert_array_equal(host(places)[:, 0], np.flatnonzero(mask))


@pytest.mark.parametrize("bad", [0, 1023, 1024, 2499])
@pytest.mark.parametrize("place", [7, -8, 2**62, -(2**63)])
def test_a_place_outside_among_many(bad, place):
    index = RNG.integers(0, 7, 2500)
    index[bad] = place
    x, places, ones = flow.arange(7.0), tensor(index, "int64"), flow.ones(2500)
    for call in (
        lambda: flow.gather(x, 0, places),
        lambda: flow.scatter(x, 0, places, ones),
        lambda: flow.scatter_add(x, 0, places, ones),
        lambda: flow.index_select(x, 0, places),
        lambda: flow.index_add(x, 0, places, ones),
        lambda: flow.take(x, places),
    ):
        with pytest.raises(IndexError, match=str(place)):
            call()


@pytest.mark.parametrize("shape, dim", [((2500,), 0), ((3, 1100), 1), ((1100, 3), 0)])
def test_places_of_lines_and_columns(shape, dim):
    index = RNG.integers(0, 50, shape)
    of = [50 if d == dim else s for d, s in enumerate(shape)]
    x, source = RNG.standard_normal(of), RNG.standard_normal(shape)
    found = flow.gather(tensor(x, "float64"), dim, tensor(index, "int64"))
    np.testing.assert_array_equal(host(found), np.take_along_axis(x, index, dim))
    sums, largest = x.copy(), x.copy()
    at = list(np.indices(shape))
    at[dim] = index
    np.add.at(sums, tuple(at), source)
    np.maximum.at(largest, tuple(at), source)
    args = dim, tensor(index, "int64"), tensor(source, "float64")
    found = flow.scatter_add(tensor(x, "float64"), *args)
    np.testing.assert_allclose(host(found), sums, rtol=1e-12)
    found = flow.scatter_reduce(tensor(x, "float64"), *args, "amax")
    np.testing.assert_array_equal(host(found), largest)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_searches_of_few_and_many(dtype, right):
    side = "right" if right else "left"
    for cols, n in itertools.product([0, 1, 2, 3, 100], [1, 3, 4, 5, 8, 9, 23]):
        line, x = np.sort(some(cols, dtype)), some(n, dtype)
        if dtype.startswith("float"):
            line[cols // 2 :] = np.nan if cols > 3 else line[cols // 2 :]
            x[0] = np.nan
        want = np.searchsorted(line, x, side)
        given = tensor(line, dtype), tensor(x, dtype)
        np.testing.assert_array_equal(host(flow.searchsorted(*given, right=right)), want)
        narrow = flow.searchsorted(*given, right=right, out_int32=True)
        assert narrow.dtype == flow.int32 and host(narrow).tolist() == want.tolist()


def test_searches_of_a_row_each():
    lines, x = np.sort(RNG.standard_normal((5, 40)), 1), RNG.standard_normal((5, 11))
    found = host(flow.searchsorted(tensor(lines, "float64"), tensor(x, "float64")))
    want = np.stack([np.searchsorted(line, row) for line, row in zip(lines, x, strict=True)])
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("inner", [1, 2, 3, 7, 16, 31, 32, 64, 65, 128, 200, 256, 257, 600])
@pytest.mark.parametrize("axis", [1, 2, 7, 8, 31, 33, 64, 500])
def test_reductions_of_a_middle_dim(inner, axis):
    x = RNG.standard_normal((3, axis, inner)).astype("float32")
    x[1, axis // 2, inner // 2] = np.nan
    wide = x.astype("float64")
    given = tensor(x, "float32")
    for name, fold in {
        "sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min, "nansum": np.nansum,
        "prod": np.prod,
    }.items():  # fmt: skip
        found = getattr(flow, name)(given, 1)
        scale = np.maximum(np.nansum(np.abs(wide), 1), 1)
        error = np.abs(host(found) - fold(wide, 1)) / scale
        assert np.nanmax(error) <= 1e-6, name
        assert (np.isnan(host(found)) == np.isnan(fold(wide, 1))).all(), name
    for p, order in ((1, 1), (2, 2), (float("inf"), np.inf)):
        found = host(flow.linalg.vector_norm(given, p, dim=1))
        np.testing.assert_allclose(found, np.linalg.norm(wide, order, axis=1), rtol=2e-6)
    whole = tensor(some((3, axis, inner), "int64"), "int64")
    np.testing.assert_array_equal(host(flow.sum(whole, 1)), host(whole).sum(1))
    np.testing.assert_array_equal(host(flow.amax(whole, 1)), host(whole).max(1))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_second_element(n, dtype):
    x = tensor(some((3, 2 * n), "uint8"), dtype)
    want = host(x)
    for start in (0, 1):
        part = x[:, start::2]
        np.testing.assert_array_equal(host(part + part), 2 * want[:, start::2])
        np.testing.assert_array_equal(host(part.contiguous()), want[:, start::2])


@pytest.mark.parametrize("n", [1, 383, 384, 1000])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_sort_of_bytes_keeps_the_order_of_equals(n, dtype, descending):
    x = some(n, dtype)
    values, places = flow.sort(tensor(x, dtype), descending=descending)
    keys = -x.astype(int) if descending else x.astype(int)
    want = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(host(places), want)
    np.testing.assert_array_equal(host(values), x[want])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_products_of_integers_wrap_around(dtype):
    ends = np.iinfo(dtype)
    for low, high in ((-3, 4), (ends.min, ends.max)):
        low = max(low, ends.min)
        a = RNG.integers(low, high, (2, 5, 33), dtype=dtype, endpoint=True)
        b = RNG.integers(low, high, (2, 33, 4), dtype=dtype, endpoint=True)
        found = host(tensor(a, dtype) @ tensor(b, dtype))
        wrapped = (a.astype(object) @ b.astype(object)) & ((1 << ends.bits) - 1)
        want = wrapped.astype("uint64").astype(dtype)
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("factors", [(2**26, 2**27), (2**26 + 1, 2**27), (-(2**31), 2**31)])
def test_products_of_integers_near_2_to_the_53(factors):
    alone = tensor([[factors[0]]], "int64") @ tensor([[factors[1]]], "int64")
    assert alone.item() == factors[0] * factors[1]
    a, b = (np.array([[f, 1]]) for f in factors)
    found = tensor(a, "int64") @ tensor(b.T, "int64")
    assert found.item() == factors[0] * factors[1] + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_products_of_small_matrices(dtype):
    for batch, m, k, n in itertools.product([1, 3], [1, 4, 7], [1, 5], [1, 3, 4, 5, 8, 9, 14]):
        a, b = some((batch, m, k), "int64"), some((batch, k, n), "int64")
        x, y = tensor(a % 7, dtype), tensor(b % 7, dtype)
        want = (a % 7) @ (b % 7)
        across = y.transpose(1, 2).contiguous().transpose(1, 2)
        turned = x.transpose(1, 2).contiguous().transpose(1, 2)
        for left, right in itertools.product((x, turned), (y, across)):
            np.testing.assert_array_equal(host(left @ right), want)
        found = flow.baddbmm(flow.ones(batch, m, n, dtype=x.dtype), x, y)
        np.testing.assert_array_equal(host(found), want + 1)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (20_000,), (200, 100), (1, 20_000), (2, 9000)])
def test_equal_wherever_the_difference_is(shape):
    x = flow.randn(shape)
    assert flow.equal(x, x.clone()) and x.equal(x.clone())
    for place in {0, x.numel() // 2, x.numel() - 1}:
        y = x.clone().reshape(-1)
        y[place] = float("nan")
        y = y.reshape(shape)
        assert not flow.equal(x, y) and not flow.equal(y, y)
    assert not flow.equal(x, x[None]) and flow.equal(x.double(), x)
    assert isinstance(flow.equal(x, x), bool)


def test_fills_of_any_layout():
    for value, dtype in itertools.product((0, 1, -1, 7), ("int8", "int32", "float16", "float64")):
        x = flow.full((5, 700), value, dtype=getattr(flow, dtype))
        assert (host(x) == value).all()
        y = flow.full_like(x, 3)
        y[:, ::3].fill_(value)
        want = np.full((5, 700), 3.0)
        want[:, ::3] = value
        np.testing.assert_array_equal(host(y), want)


@pytest.mark.parametrize("n", [1, 511, 512, 513, 70_000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ranges_of_floats(n, dtype):
    numbers = 0.5 + np.arange(n) * 0.25
    found = flow.arange(0.5, 0.5 + n * 0.25, 0.25, dtype=getattr(flow, dtype))
    np.testing.assert_array_equal(host(found), numbers.astype(dtype))
