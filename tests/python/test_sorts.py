# SPDX-License-Identifier: Apache-2.0
"""Sorts, selections and searches at every width where another way is taken, on both devices."""

import functools

import numpy as np
import pytest
from numerics import ALL, FLOATS, HALVES, INTEGERS, bits, flow, host, tensor

# Of a row: on CUDA sorted by a warp up to 32 and 128, by a block up to 1024 and 4096, then by a
# radix sort in memory; selected from 1025 on, in slices from 32768 on where rows are few. On the
# CPU ranked up to 8 and counted from 384 on (sorts) and 513 on (selections of more than 16).
WIDTHS = [1, 2, 8, 9, 31, 32, 33, 128, 129, 383, 384, 512, 513, 1024, 1025, 4096, 4097, 9000]
LONG = [32_768, 100_003]
RNG = np.random.default_rng(11)


def special(shape, dtype):
    """Values with ties, and for floats both zeros, infinities and NaN of either sign."""
    n = int(np.prod(shape))
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = RNG.integers(low, high, n, dtype=dtype, endpoint=True)
        values[::3] = RNG.integers(0, 5, len(values[::3]))
        values[:2] = (low, high)[: min(n, 2)]
        return values.reshape(shape)
    values = np.round(RNG.standard_normal(n) * 4) / 4
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan):
        values[RNG.integers(0, n, 1 + n // 16)] = value
    return values.reshape(shape)


def order(x, descending=False):
    """The places of the last dim in order: NaN largest, equal ones by their place."""
    x = x.astype(np.int64) if x.dtype == bool else x
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    places = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    return x.shape[-1] - 1 - places


def same_bits(y, x, places):
    """Whether y has the very elements of x at the places, signs of zero included."""
    expected = x.gather(-1, flow.tensor(np.ascontiguousarray(places), device=x.device))
    return bits(y) == bits(expected)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_at_every_width(dtype, descending, device):
    for width in WIDTHS + (LONG if dtype in ("float32", "int64", "uint8") else []):
        for rows in (1, 5):
            x = tensor(special((rows, width), dtype), dtype, device)
            values, places = x.sort(descending=descending)
            expected = order(host(x), descending)
            np.testing.assert_array_equal(host(places), expected, err_msg=f"{rows} x {width}")
            assert same_bits(values, x, expected)
            assert x.argsort(descending=descending).equal(places)


def test_sort_of_many_rows(device):
    for rows, width in ((3000, 7), (700, 100), (300, 1030), (40, 5000)):
        for dtype in ("float32", "float64", "int16"):
            x = tensor(special((rows, width), dtype), dtype, device)
            values, places = x.sort()
            np.testing.assert_array_equal(host(places), order(host(x)))
            assert same_bits(values, x, order(host(x)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "int64",
                                   "int8", "bool"])  # fmt: skip
@pytest.mark.parametrize("largest", [False, True])
def test_topk_is_the_front_of_the_sort(dtype, largest, device):
    for width in WIDTHS + LONG:
        for rows in (1, 3):
            x = tensor(special((rows, width), dtype), dtype, device)
            expected = order(host(x), largest)
            for k in sorted({1, 2, 50, width // 2, width - 1, width}):
                if not 1 <= k <= width or (k > 5000 and width > 9000):
                    continue
                values, places = x.topk(k, largest=largest)
                np.testing.assert_array_equal(host(places), expected[:, :k], f"{k} of {width}")
                assert same_bits(values, x, expected[:, :k])


def test_topk_of_one_is_the_first_of_the_largest(device):
    nan = float("nan")
    for dtype in ("float32", "bfloat16", "int64", "uint8", "bool"):
        rows = [[1, 0, 1], [0, 0, 0], [0, 1, 1]]
        if "float" in dtype:
            rows += [[0, nan, 1], [nan, nan, 2], [-0.0, 0.0, -1]]
        x = tensor(rows, dtype, device)
        for dim in (0, 1):
            for largest in (True, False):
                values, places = x.topk(1, dim, largest)
                want, at = x.sort(dim, descending=largest)
                assert bits(values) == bits(want.narrow(dim, 0, 1))
                assert bits(places) == bits(at.narrow(dim, 0, 1))
    x = flow.rand(4, 5, device=device, requires_grad=True)
    x.topk(1)[0].sum().backward()
    np.testing.assert_array_equal(host(x.grad), host(x) == host(x).max(1, keepdims=True))
    with pytest.raises(IndexError, match="topk"):
        flow.zeros(3, 0, device=device).topk(1)
    assert flow.zeros(0, 3, device=device).topk(1)[0].shape == (0, 1)


def test_topk_of_many_equal_elements_takes_the_first(device):
    for width in (100, 5000, 200_000):
        x = flow.zeros(2, width, device=device)
        x[1, width // 3] = 1.0
        places = host(x.topk(5).indices)
        assert places[0].tolist() == [0, 1, 2, 3, 4]
        assert places[1].tolist() == [width // 3, 0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("largest", [False, True])
def test_topk_of_a_few_of_rows_in_any_order(dtype, largest, device):
    """Up to 16 are kept in order on the CPU while vectors of 2 to 64 elements are passed over."""
    for width in (*range(1, 20), 31, 33, 47, 63, 64, 65, 80, 81, 129, 200):
        values = special((1, width), dtype)
        rise = np.sort(np.nan_to_num(values) if dtype in FLOATS else values)
        rows = [values, rise, rise[:, ::-1], np.repeat(values[:, :1], width, 1)]
        if dtype in FLOATS:
            nans = np.where(np.arange(width) % 5 == 0, 1.0, np.nan)[None]
            rows += [nans, nans[:, ::-1], np.full((1, width), np.nan)]
        x = tensor(np.concatenate(rows), dtype, device)
        expected = order(host(x), largest)
        for k in sorted({1, 2, 7, 8, 15, 16, 17, width}):
            if k <= width:
                values, places = x.topk(k, largest=largest)
                np.testing.assert_array_equal(host(places), expected[:, :k], f"{k} of {width}")
                assert same_bits(values, x, expected[:, :k])


@pytest.mark.parametrize("dtype", ALL)
def test_kthvalue_is_of_the_sort(dtype, device):
    for width in WIDTHS + LONG:
        x = tensor(special((3, width), dtype), dtype, device)
        expected = order(host(x))
        for k in {1, (width + 1) // 2, width}:
            values, places = x.kthvalue(k)
            np.testing.assert_array_equal(host(places), expected[:, k - 1], f"{k} of {width}")
            assert same_bits(values[:, None], x, expected[:, k - 1 : k])


@pytest.mark.parametrize("dtype", FLOATS)
def test_medians_at_every_width(dtype, device):
    for width in WIDTHS + LONG:
        a = special((4, width), dtype)
        a[0] = np.nan_to_num(a[0])
        a[1] = np.nan
        x = tensor(a, dtype, device)
        places, seen = order(host(x)), ~np.isnan(host(x))
        numbers = seen.sum(1)
        middle = np.where(numbers < width, np.minimum(numbers, width - 1), (width - 1) // 2)
        for name, at in (("median", middle), ("nanmedian", (np.maximum(numbers, 1) - 1) // 2)):
            found, where = getattr(x, name)(1)
            expected = np.take_along_axis(places, at[:, None], 1)
            np.testing.assert_array_equal(host(where), expected[:, 0], f"{name} of {width}")
            assert same_bits(found[:, None], x, expected)


def test_quantiles_of_long_rows(device):
    few, many = np.array([0.0, 0.31, 1.0]), np.linspace(0, 1, 33)
    for width in (900, 1500, 4097, 70_000):
        a = RNG.standard_normal((3, width))
        x = tensor(a, "float64", device)
        for shares in (few, many):
            q = tensor(shares, "float64", device)
            for how in ("linear", "lower", "higher", "nearest", "midpoint"):
                got = x.quantile(q, 1, interpolation=how)
                expected = np.quantile(a, shares, axis=1, method=how)
                np.testing.assert_allclose(host(got), expected, rtol=1e-13)
        a[0, ::2], a[1] = np.nan, np.nan
        got = host(tensor(a, "float64", device).nanquantile(tensor(many, "float64", device), 1))
        assert np.isnan(got[:, 1]).all()
        np.testing.assert_allclose(got[:, 0], np.nanquantile(a[0], many), rtol=1e-13)


def test_quantiles_of_zeros_keep_their_sign(device):
    zeros = np.array([-0.0, -0.0, -0.0])
    for dtype in ("float32", "float64"):
        x = tensor(zeros, dtype, device)
        for how in ("linear", "lower", "higher", "nearest", "midpoint"):
            for share in (0.0, 0.5, 1.0):
                for y in (x.quantile(share, interpolation=how), x[:1].nanquantile(share)):
                    assert y.item() == 0 and np.signbit(y.item()), (how, share)
                assert not np.signbit((-x).quantile(share, interpolation=how).item())


def test_the_share_of_a_quantile_has_a_gradient():
    x = flow.tensor(RNG.standard_normal((3, 8)), requires_grad=True)
    q = flow.tensor([0.13, 0.62], dtype=flow.float64, requires_grad=True)
    for how in ("linear", "lower", "midpoint"):
        assert flow.autograd.gradcheck(
            lambda x, q, h=how: x.quantile(q, 1, interpolation=h), (x, q)
        )


@pytest.mark.parametrize("dtype", ALL)
def test_unique(dtype, device):
    # Up to 4096 elements and more are sorted in different ways on CUDA.
    for shape in ((1,), (2,), (40,), (7, 9), (3, 700), (4096,), (4097,), (6000,)):
        a = special(shape, dtype)
        a = a if dtype not in FLOATS else np.nan_to_num(a) + 0.0
        x = tensor(a, dtype, device)
        expected = np.unique(host(x), return_inverse=True, return_counts=True)
        values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
        assert values.dtype is x.dtype and inverse.shape == x.shape
        np.testing.assert_array_equal(host(values), expected[0])
        np.testing.assert_array_equal(host(inverse), expected[1].reshape(shape))
        np.testing.assert_array_equal(host(counts), expected[2])
        assert x.unique().equal(values) and x.unique(return_counts=True)[1].equal(counts)


def test_each_nan_is_unique_and_both_zeros_are_one(device):
    x = flow.tensor([np.nan, 0.0, 1.0, -0.0, np.nan], device=device)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert counts.tolist() == [2, 1, 1, 1] and inverse.tolist() == [2, 0, 1, 0, 3]
    assert host(values)[:2].tolist() == [0, 1] and np.isnan(host(values)[2:]).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [40, 4096, 4097, 20_000, 140_001])
def test_the_first_zero_stands_for_all_and_every_nan_for_itself(dtype, n, device):
    a = RNG.integers(1, 9, n) * RNG.choice([-1.0, 1.0], n)
    a[5::7], a[-3:] = np.nan, -np.nan
    for sign in (1.0, -1.0):
        a[8:30:2], a[8] = -0.0 * sign, 0.0 * sign
        values = host(tensor(a, dtype, device).unique())
        zeros = values == 0
        assert zeros.sum() == 1 and np.signbit(values[zeros])[0] == (sign < 0)
        assert np.isnan(values).sum() == np.isnan(a).sum()
        numbers = values[~np.isnan(values)]
        np.testing.assert_array_equal(numbers, np.unique(a[~np.isnan(a)]))
        assert np.isnan(values[len(numbers) :]).all()


# From 2^17 elements on those of few numbers are marked, not sorted: up to 2^16 numbers.
@pytest.mark.parametrize("n", [(1 << 17) - 1, 1 << 17, 300_001])
@pytest.mark.parametrize("dtype", [*INTEGERS, *HALVES])
def test_unique_of_many_elements_of_few_numbers(dtype, n, device):
    spans = [(1, 1), (-100, 100)]
    if dtype in ("int32", "int64"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        spans += [(low, low + 65_535), (high - 65_535, high), (high - 65_536, high), (low, high)]
        spans += [(-3, 65_531), (-1, 65_536)]
    for low, high in spans:
        low = max(low, 0) if dtype == "uint8" else low
        a = RNG.integers(low, high, n, endpoint=True)
        a[[7, 30]] = low, high
        x = tensor(a, dtype, device)
        values = x.unique()
        assert values.dtype is x.dtype and values.tolist() == np.unique(host(x)).tolist()
        odd = x[1:]  # begins between two boundaries
        assert odd.unique().tolist() == np.unique(host(odd)).tolist()


@pytest.mark.parametrize("low, size", [(200, 1), (-200, 1), (100, 29), (2**63 - 2, 5)])
def test_presence_of_numbers_that_the_dtype_has_not(low, size):
    presence = flow._oneflow_lite.op_function("presence")
    with pytest.raises((OverflowError, ValueError), match=r"presence\(\)"):
        presence(flow.tensor([1, 2], dtype=flow.int8), low, size)


@pytest.mark.parametrize("dtype", HALVES)
def test_unique_of_all_16_bit_floats(dtype, device):
    raw = RNG.permutation(np.arange(1 << 18, dtype=np.uint32) & 0xFFFF).astype(np.uint16)
    x = flow.tensor(raw.view(np.int16)).to(device).view(getattr(flow, dtype))
    finite = x[x == x]
    for line in (finite, finite[finite != 0], x):
        values, numbers = host(line.unique()), host(line)
        expected = np.unique(numbers[~np.isnan(numbers)])
        np.testing.assert_array_equal(values[: len(expected)], expected)
        assert np.isnan(values[len(expected) :]).all()
        assert len(values) - len(expected) == np.isnan(numbers).sum()
        zeros = numbers[numbers == 0]
        if len(zeros) > 0:
            assert np.signbit(values[values == 0])[0] == np.signbit(zeros[0])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "bfloat16"])
@pytest.mark.parametrize("rows, cols", [(1, 5000), (256, 4097), (257, 4097)])
def test_long_rows_of_short_elements(dtype, rows, cols, device):
    """Keys and row numbers of 16 bits together, and of more."""
    x = tensor(special((rows, cols), dtype), dtype, device)
    for descending in (False, True):
        values, places = x.sort(descending=descending)
        expected = order(host(x), descending)
        np.testing.assert_array_equal(host(places), expected)
        assert same_bits(values, x, expected)


def test_unique_slices_are_in_order(device):
    a = RNG.integers(-2, 2, (60, 3, 2))
    for dtype in ("int64", "float32", "uint8"):
        values = a if dtype != "uint8" else a % 4
        x = tensor(values, dtype, device)
        for dim in (0, 1, -1):
            got = x.unique(return_inverse=True, return_counts=True, dim=dim)
            expected = np.unique(values, return_inverse=True, return_counts=True, axis=dim)
            for y, z in zip(got, expected, strict=True):
                np.testing.assert_array_equal(host(y), z.reshape(host(y).shape))
    empty = flow.zeros(0, 3, device=device).unique(return_counts=True, dim=0)
    assert empty[0].shape == (0, 3) and empty[1].shape == (0,)


@pytest.mark.parametrize("function", ["unique", "unique_consecutive"])
def test_what_unique_gives_beside_the_values_is_as_if_all_were_asked_for(function, device):
    a = RNG.integers(-2, 2, (40, 2))
    for x, dim in ((a, None), (a, 0), (a, 1), (a[:0], None), (a[:0], 0), (a[:1], None)):
        x = flow.tensor(x, device=device)
        f = functools.partial(getattr(flow, function), x, dim=dim)
        values, inverse, counts = f(return_inverse=True, return_counts=True)
        for alone in (f(), f(return_inverse=True)[0], f(return_counts=True)[0]):
            assert alone.equal(values)
        assert f(return_inverse=True)[1].equal(inverse)
        assert f(return_counts=True)[1].equal(counts)


def test_unique_consecutive(device):
    x = flow.tensor([1, 1, 2, 2, 3, 1, 1, 2], device=device)
    values, inverse, counts = flow.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 1, 2] and counts.tolist() == [2, 2, 1, 2, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 2, 3, 3, 4]
    assert x.unique_consecutive().equal(values)
    rows = flow.tensor([[1, 2], [1, 2], [1, 3], [1, 2]], device=device)
    values, counts = rows.unique_consecutive(return_counts=True, dim=0)
    assert values.tolist() == [[1, 2], [1, 3], [1, 2]] and counts.tolist() == [2, 1, 1]
    assert flow.zeros(0, device=device).unique_consecutive().shape == (0,)


def test_bincount(device):
    a = RNG.integers(0, 50, 3000)
    x, w = tensor(a, "int32", device), RNG.standard_normal(3000)
    assert flow.bincount(x).tolist() == np.bincount(a).tolist()
    assert x.bincount(minlength=70).tolist() == np.bincount(a, minlength=70).tolist()
    weights = tensor(w, "float64", device)
    np.testing.assert_allclose(host(x.bincount(weights)), np.bincount(a, w), atol=1e-12)
    assert flow.bincount(x[:0]).shape == (0,) and flow.bincount(x[:0], minlength=3).shape == (3,)
    for call, error, text in (
        (lambda: flow.bincount(x[:4] - 60), ValueError, "must not be negative"),
        (lambda: flow.bincount(x.float()), ValueError, "takes a 1-D tensor of integers"),
        (lambda: flow.bincount(x, minlength=-1), ValueError, "minlength is -1"),
        (lambda: flow.bincount(x, weights[:5]), flow.ShapeError, "weights has shape"),
    ):
        with pytest.raises(error, match=rf"^bincount\(\): .*{text}"):
            call()


def test_searches_among_nan_and_equal_elements(device):
    line = flow.tensor([-np.inf, 0.0, 0.0, 2.0, np.inf, np.nan], device=device)
    x = flow.tensor([-np.inf, -0.0, 1.0, np.inf, np.nan], device=device)
    assert flow.searchsorted(line, x).tolist() == [0, 1, 3, 4, 5]
    assert flow.searchsorted(line, x, right=True).tolist() == [1, 3, 3, 5, 6]
    assert flow.searchsorted(line, x, side="right").tolist() == [1, 3, 3, 5, 6]
    mixed = flow.tensor([3, 1, 2], device=device)
    sorter = mixed.argsort()
    assert flow.searchsorted(mixed, 2, sorter=sorter).item() == 1
    assert flow.searchsorted(mixed.sort()[0], 2.5).item() == 2
    assert flow.searchsorted(mixed.to(flow.int8).sort()[0], 300).item() == 3
    with pytest.raises(ValueError, match=r"searchsorted\(\): side is"):
        flow.searchsorted(line, x, side="middle")
    with pytest.raises(ValueError, match=r"searchsorted\(\): side is \"left\".* as right is True"):
        flow.searchsorted(line, x, right=True, side="left")
    with pytest.raises(flow.ShapeError, match=r"searchsorted\(\): sorter has shape"):
        flow.searchsorted(line, x, sorter=sorter)


def test_isin_of_numbers(device):
    x = flow.tensor([[1, 2], [3, 1]], dtype=flow.int8, device=device)
    assert flow.isin(x, 1).tolist() == [[True, False], [False, True]]
    assert not flow.isin(x, 257).any() and flow.isin(3, x).item()
    assert flow.isin(x, 2.5, invert=True).all()
    with pytest.raises(TypeError, match=r"isin\(\): elements or test_elements must be a Tensor"):
        flow.isin(1, 2)


def test_histc_of_its_own_range(device):
    a = RNG.standard_normal(5000)
    x = tensor(a, "float64", device)
    np.testing.assert_array_equal(host(x.histc(17)), np.histogram(a, 17)[0])
    assert flow.histc(flow.full([3], 2.0, device=device), 4).tolist() == [0, 0, 3, 0]
    assert flow.histc(tensor([0.5, np.nan, 9.0], "float32", device), 2, 0, 1).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"histc\(\): the range from 2 to 1"):
        flow.histc(x, 3, 2, 1)
    with pytest.raises(ValueError, match=r"histc\(\): the range from .* must be finite"):
        flow.histc(flow.tensor([0.0, np.inf], device=device))


def test_results_are_no_views_of_the_input():
    x = flow.tensor(2.0)
    for y in (x.kthvalue(1)[0], x.median(), x.median(0)[0], x.mode()[0], x.sort()[0], x.msort()):
        y.fill_(7.0)
        assert x.item() == 2.0


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_results_along_any_dim_are_dense(dim, device):
    """So that all of them can be viewed in any shape, as PyTorch's can."""
    x = tensor(RNG.standard_normal((3, 4, 5)), "float32", device)
    found = [*x.sort(dim), x.argsort(dim), *x.topk(2, dim), *x.topk(2, dim, largest=False)]
    for y in [*found, x.msort(), x.kthvalue(2, dim)[0], x.cummax(dim)[0]]:
        assert y.is_contiguous() and y.view(-1).shape == (y.numel(),)
    np.testing.assert_array_equal(host(x.sort(dim)[0].view(-1)), np.sort(host(x), dim).ravel())


def test_results_of_nothing_are_no_views_of_the_input():
    x = flow.zeros(0)
    for y in (x.unique(), x.unique_consecutive(), x.sort()[0]):
        version = x._version
        y.fill_(1.0)
        assert x._version == version


def test_a_histogram_has_names():
    found = flow.tensor([0.0, 1.0, 1.5, 4.0]).histogram(4)
    assert found.hist.tolist() == [1, 2, 0, 1] and found.bin_edges.tolist() == [0, 1, 2, 3, 4]
    counts, edges = flow.histogram(flow.ones(3), 2, range=(0.0, 2.0))
    assert counts.tolist() == [0, 3] and edges.tolist() == [0, 1, 2]


# On the CPU counted from 96 items on for each byte in which keys differ.
@pytest.mark.parametrize("width", [95, 96, 97, 191, 192, 193])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
def test_rows_whose_keys_differ_in_few_bytes(width, dtype, device):
    for steps in ((1,), (256,), (1, 256)):
        x = sum(RNG.integers(0, 100, (3, width)) * step for step in steps).astype(dtype)
        for descending in (False, True):
            values, places = flow.sort(tensor(x, dtype, device), 1, descending)
            np.testing.assert_array_equal(host(places), order(x, descending))
            np.testing.assert_array_equal(host(values), np.take_along_axis(x, host(places), 1))
