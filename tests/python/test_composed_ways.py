# SPDX-License-Identifier: Apache-2.0
"""What takes another way by its sizes, or was composed and is an op: NumPy's values."""

import numpy as np
import pytest
from numerics import HALVES, NUMERIC, flow, host, near, rounded


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 33, 40_001])
def test_numbers_between_two_ends(dtype, n, device):
    """One op; from the nearer end, in float64, for integers too."""
    ends = (3.0, 120.0) if dtype == "uint8" else (-100.0, 27.0)
    names = []
    run = flow._oneflow_lite.record_ops(
        lambda: names.append(flow.linspace(*ends, n, dtype=getattr(flow, dtype), device=device))
    )
    assert [name for name, _ in run if name != "full"] == ["linspace"]  # that looks at integers
    at, step = np.arange(n), (ends[1] - ends[0]) / max(1, n - 1)
    want = np.where(at < max(1, n // 2), ends[0] + at * step, ends[1] - (n - 1 - at) * step)
    got = host(names[0])
    if dtype in HALVES:
        assert near(got, want, dtype, device).all()
    else:
        np.testing.assert_array_equal(got, rounded(want, dtype))


@pytest.mark.parametrize("log_input", [True, False])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("n", [1, 15, 1025])
def test_poisson_loss_on_vectors(log_input, full, n, device):
    rng = np.random.default_rng(6)
    x, t = rng.uniform(0.1, 3, n), np.floor(rng.uniform(0, 5, n))
    rate = np.exp(x) if log_input else x + 1e-8
    with np.errstate(divide="ignore", invalid="ignore"):
        stirling = t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t)
    want = rate - t * np.log(rate) + np.where(full & (t > 1), stirling, 0)
    want -= 0 if log_input else 1e-8
    y = flow.tensor(x, device=device, requires_grad=True)
    got = flow.nn.functional.poisson_nll_loss(
        y, flow.tensor(t, device=device), log_input, full, reduction="none"
    )
    np.testing.assert_allclose(host(got), want, rtol=1e-12, atol=1e-12)
    got.sum().backward()
    slope = rate - t if log_input else 1 - t / rate
    np.testing.assert_allclose(host(y.grad), slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("places", [[], [2], [-1, 0, 2], [1, 1, -2], list(range(4)) * 3])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_a_number_in_a_few_slices(places, dim, device):
    """Slices are written where there are few of them; else a mask of all chooses."""
    x = np.random.default_rng(8).standard_normal((4, 5, 6))
    at = flow.tensor(places, dtype=flow.int64, device=device)
    want = x.copy()
    np.moveaxis(want, dim, 0)[places] = 2.5
    leaf = flow.tensor(x, device=device, requires_grad=True)
    got = leaf.index_fill(dim, at, 2.5)
    np.testing.assert_array_equal(host(got), want)
    got.sum().backward()
    np.testing.assert_array_equal(host(leaf.grad), (want == x).astype(float))
    for t in (leaf.detach().clone(), leaf.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0)):
        assert t.index_fill_(dim, at, 2.5) is t
        np.testing.assert_array_equal(host(t), want)


def test_what_fills_slices_keeps_its_dtype_and_its_refusals():
    at = flow.tensor([1])
    x = flow.zeros(4, dtype=flow.int8)
    assert x.index_fill(0, at, 7).tolist() == [0, 7, 0, 0]
    with pytest.raises(OverflowError):
        x.index_fill(0, at, 300)
    with pytest.raises(IndexError, match=r"index_fill_\(\): index 5 is out of range \[-4, 3\]"):
        x.index_fill_(0, flow.tensor([5]), 1)
    value = flow.tensor(3.0, requires_grad=True)
    y = flow.zeros(4).index_fill(0, flow.tensor([1, 1]), value)
    y.sum().backward()
    assert value.grad.item() == 1


def distances(a, b):
    return np.sqrt(((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(-1))


@pytest.mark.parametrize("rows", [(25, 25), (26, 3), (3, 26), (100, 70)])
@pytest.mark.parametrize("dtype, bound", [("float64", 1e-13), ("float32", 1e-5)])
def test_distances_by_products(rows, dtype, bound, device):
    """From 26 rows on; of float16 never."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((2, n, 8)).astype(dtype) for n in rows)
    x, y = (flow.tensor(v, device=device, requires_grad=True) for v in (a, b))
    want = distances(a.astype(float), b.astype(float))
    got = flow.cdist(x, y)
    np.testing.assert_allclose(host(got), want, rtol=bound)
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        np.testing.assert_allclose(host(flow.cdist(x, y, compute_mode=mode)), want, rtol=bound)
    g = rng.standard_normal(want.shape)
    slopes = (g / want)[..., None] * (a[:, :, None] - b[:, None])
    got.backward(flow.tensor(g.astype(dtype), device=device))
    np.testing.assert_allclose(host(x.grad), slopes.sum(2), rtol=100 * bound, atol=100 * bound)
    np.testing.assert_allclose(host(y.grad), -slopes.sum(1), rtol=100 * bound, atol=100 * bound)


def test_distances_by_products_at_their_ends(device):
    rows = flow.eye(30, 4, dtype=flow.float64, device=device).requires_grad_()
    d = flow.cdist(rows, rows)  # many rows are the same: exactly 0, without a slope
    assert host(d)[5, 6] == 0 and host(d)[0, 1] == np.sqrt(2)
    d.sum().backward()
    assert np.isfinite(host(rows.grad)).all()
    missing = flow.full((30, 4), float("nan"), device=device)
    for x in (missing, missing.clone().requires_grad_()):
        assert flow.cdist(x, x).isnan().all()
    half = flow.cdist(rows.detach().half() * 8, rows.detach().half() * 8)
    np.testing.assert_allclose(host(half), 8 * host(d), rtol=1e-3)
    none = flow.zeros(0, 4, device=device)
    assert flow.cdist(none, flow.zeros(30, 4, device=device)).shape == (0, 30)
    with pytest.raises(ValueError, match=r'cdist\(\): compute_mode is "fast", but it must be "use'):
        flow.cdist(rows, rows, compute_mode="fast")


def test_distances_under_autocast(device):
    """They are no product of matrices to autocast, which would take 16 bits."""
    a = np.random.default_rng(5).standard_normal((40, 8)).astype("float32")
    x = flow.tensor(a, device=device)
    with flow.autocast(device):
        got = flow.cdist(x, x + 1)
        product = x @ x.t()
    assert got.dtype is flow.float32 and product.dtype is not flow.float32
    np.testing.assert_allclose(host(got), distances(a.astype(float), a + 1.0), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_runs_and_their_lengths(n, device):
    values = np.random.default_rng(7).integers(0, 3, n)
    x = flow.tensor(values, device=device)
    got, inverse, counts = flow.unique_consecutive(x, return_inverse=True, return_counts=True)
    begins = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    np.testing.assert_array_equal(host(got), values[begins])
    np.testing.assert_array_equal(host(counts), np.diff([*begins, n]))
    np.testing.assert_array_equal(host(got)[host(inverse)], values)


@pytest.mark.parametrize("shapes", [((64, 5), (3, 16)), ((6, 7), (2, 63)), ((4, 3), (2, 64)),
                                    ((3, 5), (2, 2)), ((4, 5), (1, 2)), ((2, 5, 3), (3, 2, 2)),
                                    ((0, 5), (3, 2)), ((5, 4), (2, 0))], ids=str)  # fmt: skip
def test_kron_of_short_rows(shapes, device):
    """Short rows of the second factor are written out where the first has four rows or more."""
    a, b = (np.random.default_rng(1).standard_normal(s) for s in shapes)
    x, y = (flow.tensor(v, device=device, requires_grad=True) for v in (a, b))
    got = flow.kron(x, y)
    np.testing.assert_array_equal(host(got), np.kron(a, b))
    g = np.random.default_rng(2).standard_normal(got.shape)
    got.backward(flow.tensor(g, device=device))
    sizes = [n for d in range(a.ndim) for n in (a.shape[d], b.shape[d])]
    parts = g.reshape(sizes)
    odd, even = tuple(range(1, 2 * a.ndim, 2)), tuple(range(0, 2 * a.ndim, 2))
    wide_a = a.reshape([n for d in range(a.ndim) for n in (a.shape[d], 1)])
    wide_b = b.reshape([n for d in range(b.ndim) for n in (1, b.shape[d])])
    np.testing.assert_allclose(host(x.grad), (parts * wide_b).sum(odd), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(host(y.grad), (parts * wide_a).sum(even), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [-1, -0.5, float("nan")])
def test_distances_have_no_negative_p(p):
    x = flow.ones(2, 3)
    for function in (lambda: flow.cdist(x, x, p), lambda: flow.pdist(x, p)):
        with pytest.raises(ValueError, match=rf"dist\(\): p is {p}, but it must be at least 0"):
            function()


def test_areas_over_no_elements_have_the_dtype_of_others():
    """Cumulative areas are float32 as where there are some; PyTorch's sum keeps y's dtype."""
    none = flow.zeros(2, 0, dtype=flow.int32)
    assert flow.cumulative_trapezoid(none).dtype == flow.float32
    assert flow.cumulative_trapezoid(none).shape == (2, 0)
    assert flow.trapezoid(none).dtype == flow.int32 and flow.trapezoid(none).tolist() == [0, 0]


# Panels of 64 rows; squares of up to 64 differences, sums of 128 at a time; some 65536 differences
# for a thread.
@pytest.mark.parametrize("p", [0, 1, 2, np.inf])
@pytest.mark.parametrize("m, n, depth", [(1, 1, 1), (5, 63, 3), (3, 64, 65), (7, 65, 129),
                                         (70, 130, 64), (4, 0, 3), (4, 5, 0)])  # fmt: skip
@pytest.mark.parametrize("dtype, bound", [("float64", 1e-13), ("float32", 1e-5)])
def test_distances_that_are_not_recorded(m, n, depth, p, dtype, bound, device):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((2, k, depth)).astype(dtype) for k in (m, n))
    a[:1, :1], b[:1, :1] = 0.5, 0.5  # a distance of 0
    apart = a[:, :, None].astype(float) - b[:, None]
    want = np.linalg.norm(apart, p, -1) if depth else np.zeros((2, m, n))
    x, y = (flow.tensor(v, device=device) for v in (a, b))
    before = flow.get_num_threads()
    try:
        for threads in (1, 2):
            flow.set_num_threads(threads)
            for given in (x, x.transpose(1, 2).contiguous().transpose(1, 2)):
                got = flow.cdist(given, y, p)
                np.testing.assert_allclose(host(got), want, rtol=bound, atol=bound)
            np.testing.assert_allclose(host(flow.cdist(x[1], y, p))[1], want[1], rtol=bound)
            pairs = host(flow.nn.functional.pdist(y[1], p))
            if depth:
                own = np.linalg.norm(b[1][:, None].astype(float) - b[1], p, -1)
                np.testing.assert_allclose(pairs, own[np.triu_indices(n, 1)], rtol=bound)
    finally:
        flow.set_num_threads(before)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_distances_of_what_is_no_number(p, device):
    x = flow.tensor([[1.0, float("nan"), 2.0], [0.0, 1.0, float("inf")]], device=device)
    y = flow.tensor([[3.0, 1.0, 2.0], [0.0, 1.0, 0.0]], device=device)
    got = host(flow.cdist(x, y, p))
    assert np.isnan(got[0]).all() and np.isinf(got[1]).all()


# Up to 16 numbers are compared with each of 8192 elements or more.
@pytest.mark.parametrize("count, among", [(8191, 16), (8192, 1), (8192, 16), (8192, 17)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_elements_that_are_one_of_few(count, among, dtype, device):
    rng = np.random.default_rng(6)
    x = rng.integers(0, 40, (count, 2)).astype(dtype)
    few = rng.integers(0, 40, among).astype(dtype)
    if dtype == "float32":
        x[0], few[0] = np.nan, np.nan  # which equals nothing
    for invert in (False, True):
        got = flow.isin(*(flow.tensor(v, device=device) for v in (x, few)), invert=invert)
        np.testing.assert_array_equal(host(got), np.isin(x, few, invert=invert))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("p", [0, 1, 2, 3, np.inf])
def test_distances_of_rows_of_no_elements(p, dtype):
    a, b = (flow.zeros(n, 0, dtype=getattr(flow, dtype), requires_grad=True) for n in (3, 2))
    assert flow.cdist(a, b, p).tolist() == [[0.0, 0.0]] * 3
    flow.cdist(a, b, p).sum().backward()
    assert a.grad.shape == (3, 0)
