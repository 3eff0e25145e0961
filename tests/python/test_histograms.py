# SPDX-License-Identifier: Apache-2.0
"""Histograms: elements at the edges, beyond them, and beside them by a rounding."""

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(37)
DTYPES = ["float32", "float64"]


def beside(edges):
    """Numbers at the edges and next to them, in the edges' dtype."""
    low, high = edges.dtype.type(-np.inf), edges.dtype.type(np.inf)
    return np.concatenate([edges, np.nextafter(edges, low), np.nextafter(edges, high)])


def counted(x, edges):
    """By comparisons of all with all."""
    inside = x[(x >= edges[0]) & (x <= edges[-1])]
    place = np.minimum((inside[:, None] >= edges).sum(1) - 1, len(edges) - 2)
    return np.bincount(place, minlength=len(edges) - 1)


def counted_in_the_dtype(x, bins, ends):
    """By the place of each in the range, as histc has it."""
    c = x.dtype.type
    inside = x[(x >= c(ends[0])) & (x <= c(ends[1]))]
    place = ((inside - c(ends[0])) * c(bins) / c(ends[1] - ends[0])).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bins", [1, 2, 3, 10, 49, 64, 1000])
@pytest.mark.parametrize("ends", [(0, 1), (-0.1, 0.7), (1e6, 1e6 + 7), (-3e-40, 1e-39), (2, 2)])
def test_a_histogram_at_its_edges(dtype, bins, ends):
    edges = host(flow.histogram(tensor([], dtype), bins, range=ends).bin_edges)
    x = np.concatenate([beside(edges), [np.nan, np.inf, -np.inf, 0.0, -0.0]]).astype(dtype)
    RNG.shuffle(x)
    found = flow.histogram(tensor(x, dtype), bins, range=ends)
    np.testing.assert_array_equal(host(found.bin_edges), edges)
    np.testing.assert_array_equal(host(found.hist), counted(x, edges))
    weighted = flow.histogram(tensor(x, dtype), bins, range=ends, weight=flow.ones(len(x)))
    np.testing.assert_array_equal(host(weighted.hist), host(found.hist))


def test_a_histogram_of_edges_that_fall_together():
    x = tensor(np.full(5, 1 + 2**-23), "float32")
    ends = (1.0, 1 + 2.0**-22)
    found = flow.histogram(x, 64, range=ends)
    np.testing.assert_array_equal(host(found.hist), counted(host(x), host(found.bin_edges)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 63, 5001, 200_001])
def test_every_length_and_layout(dtype, n):
    x = tensor(RNG.standard_normal((n, 2)), dtype)[:, 1]
    found = flow.histogram(x, 17, range=(-1.0, 1.0))
    np.testing.assert_array_equal(host(found.hist), counted(host(x), host(found.bin_edges)))
    density = flow.histogram(x, 17, range=(-1.0, 1.0), density=True).hist
    if n > 100:
        np.testing.assert_allclose(host(density).sum() * 2 / 17, 1, rtol=1e-5)
    # An element within a rounding of an edge may count on either side of it.
    values = host(x).astype(float)
    place = (values + 1) * 8
    near = (np.abs(place - np.rint(place)) < 1e-5).sum()
    apart = host(flow.histc(x, 16, -1, 1)) - np.histogram(values, 16, (-1, 1))[0]
    assert np.abs(apart).sum() <= 2 * near and abs(apart.sum()) <= near


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ends", [(0, 1), (-0.1, 0.7), (1e6, 1e6 + 7)])
@pytest.mark.parametrize("bins", [1, 3, 10, 64])
def test_histc_computes_in_the_dtype(dtype, bins, ends):
    x = beside(np.linspace(*ends, bins + 1).astype(dtype))
    x = np.concatenate([x, np.array([np.nan, np.inf, -np.inf], dtype)])
    want = counted_in_the_dtype(x, bins, ends)
    np.testing.assert_array_equal(host(flow.histc(tensor(x, dtype), bins, *ends)), want)


# On CUDA up to 12288 bins are counted in a block's own memory. The largest n is odd, and more than
# all blocks read at a time.
@pytest.mark.parametrize("bins", [1, 7, 12288, 12289])
@pytest.mark.parametrize("n", [0, 1, 4097, 3_000_001])
def test_counts_in_few_and_many_bins(n, bins, device):
    numbers = RNG.integers(0, bins, n)
    found = flow.bincount(flow.tensor(numbers, device=device), minlength=bins)
    np.testing.assert_array_equal(host(found), np.bincount(numbers, minlength=bins))
    x = RNG.standard_normal(n).astype(np.float32)
    x[: n // 9] = np.inf
    want = counted_in_the_dtype(x, bins, (-1, 2))
    for offset in (0, 1):
        given = flow.tensor(np.append(np.zeros(offset, np.float32), x), device=device)[offset:]
        np.testing.assert_array_equal(host(flow.histc(given, bins, -1, 2)), want)


def test_histc_of_other_dtypes():
    for dtype in ("uint8", "int16", "int64", "float16", "bfloat16"):
        x = tensor(np.arange(100) % 11, dtype)
        assert flow.histc(x, 11, 0, 11).tolist() == [10, *[9] * 10]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers_have_edges_between_them(dtype):
    x = np.array([1, 2, 5, 5, 3])
    for bins, ends in ((3, None), (7, (0, 6)), (4, (1.5, 5))):
        found = flow.histogram(tensor(x, dtype), bins, range=ends)
        want, edges = np.histogram(x, bins, range=ends)
        np.testing.assert_array_equal(host(found.hist), want)
        np.testing.assert_allclose(host(found.bin_edges), edges)


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0]])
def test_a_range_is_finite(values):
    with pytest.raises(ValueError, match="must be finite"):
        flow.histogram(tensor(np.array(values), "float32"), 3)
    assert flow.histogram(tensor(np.array(values), "float32"), 3, range=(0, 2)).hist.sum() == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 63, 200_001])
def test_weights_are_summed(dtype, n):
    x, weight = RNG.standard_normal(n).astype(dtype), RNG.random(n).astype(dtype)
    given = tensor(x, dtype), tensor(weight, dtype)
    found = flow.histogram(given[0], 17, range=(-1.0, 1.0), weight=given[1])
    edges = host(found.bin_edges)
    want = np.histogram(x.astype(float), edges.astype(float), weights=weight.astype(float))[0]
    np.testing.assert_allclose(host(found.hist), want, rtol=2e-6)
    again = flow.histogram(given[0], 17, range=(-1.0, 1.0), weight=given[1])
    np.testing.assert_array_equal(host(again.hist), host(found.hist))
    with pytest.raises(flow.ShapeError):
        flow.histogram(given[0], 17, range=(-1.0, 1.0), weight=flow.ones(n + 1))


def test_given_edges_are_copied():
    given = flow.tensor([0.0, 1.0, 2.0])
    flow.histogram(flow.ones(3), given).bin_edges.fill_(9.0)
    assert given.tolist() == [0, 1, 2]


def test_a_count_for_each_of_2_to_63_numbers():
    with pytest.raises(flow.OutOfMemoryError, match="no room for 2.63 counts"):
        flow.bincount(flow.tensor([2**63 - 1]))
