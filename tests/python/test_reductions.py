# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans beyond their rows in the op table: corners, large sizes, launches."""

import math

import numpy as np
import pytest
from numerics import ALL, FLOATS, flow, host, tensor

NAN, INF = math.nan, math.inf
# Around chunks of 512, warps of a row (1024), parts of 65536, and columns of each way of cutting.
SHAPES = [(3, 511), (3, 513), (2, 1024), (2, 1025), (1, 65537), (70001, 3), (600, 257), (33, 1030)]


def made(shape, dtype="float32", device="cpu", seed=1):
    rng = np.random.default_rng(seed)
    return tensor(rng.standard_normal(shape) * 2 + 0.5, dtype, device)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_large_ones_against_float64(shape, dim, device):
    x = made(shape, device=device)
    values = host(x).astype(float)
    close = {"rtol": 2e-6, "atol": 1e-5}
    variance, mean = flow.var_mean(x, dim)
    np.testing.assert_allclose(host(variance), values.var(dim, ddof=1), **close)
    np.testing.assert_allclose(host(mean), values.mean(dim), **close)
    np.testing.assert_allclose(host(x.norm(dim=dim)), np.sqrt((values**2).sum(dim)), **close)
    np.testing.assert_allclose(
        host(x.logsumexp(dim)), np.log(np.exp(values).sum(dim)), rtol=4e-6, atol=1e-5
    )
    low, high = x.aminmax() if dim is None else x.aminmax(dim=dim)
    np.testing.assert_array_equal(host(low), values.min(dim))
    np.testing.assert_array_equal(host(high), values.max(dim))
    np.testing.assert_array_equal(host(x.argmin(dim)), values.argmin(dim))
    np.testing.assert_array_equal(host((x > 1).count_nonzero(dim)), (values > 1).sum(dim))
    near = tensor(1 + values / 4096, "float32", device)
    # 200,000 factors, each rounded to float32 on a GPU.
    np.testing.assert_allclose(
        host(near.prod(dim) if dim is not None else near.prod()),
        np.prod(host(near).astype(float), axis=dim),
        rtol=2e-3 if device == "cuda" else 2e-4,
    )


@pytest.mark.parametrize("shape", [*SHAPES, (1, 40000), (5, 3, 700)], ids=str)
@pytest.mark.parametrize("dim", [0, -1])
def test_large_scans_against_float64(shape, dim, device):
    x = made(shape, device=device)
    values = host(x).astype(float)
    sums = np.abs(values).cumsum(dim)
    assert (np.abs(host(x.cumsum(dim)) - values.cumsum(dim)) <= 2e-6 * sums).all()
    np.testing.assert_allclose(
        host(x.logcumsumexp(dim)), np.logaddexp.accumulate(values, axis=dim), rtol=4e-6, atol=1e-5
    )
    best, places = x.cummax(dim)
    np.testing.assert_array_equal(host(best), np.maximum.accumulate(values, axis=dim))
    np.testing.assert_array_equal(np.take_along_axis(values, host(places), dim), host(best))
    near = tensor(1 + values / 4096, "float32", device)
    expected = np.cumprod(host(near).astype(float), axis=dim)
    np.testing.assert_allclose(host(near.cumprod(dim)), expected, rtol=2e-4)


# On CUDA a tile of columns has 256 to 8192 rows of them, and 32 tiles are a chain. Thousands of
# columns go through rings of 128 or 256 rows.
LONG = [(127, 5), (129, 5), (513, 64), (1, 1025, 130), (3, 2050, 33), (8449, 64), (17000, 60),
        (2, 9000, 2), (70000, 4), (1300, 8200), (2, 129, 4104)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "int8"])
@pytest.mark.parametrize("shape", LONG, ids=str)
def test_scans_down_long_columns(shape, dtype, device):
    rng = np.random.default_rng(len(shape))
    x = tensor(rng.integers(-3, 4, shape), dtype, device)
    values = host(x).astype(np.int64)

    def same(got, exact):  # every sum is a small integer, and rounded once
        np.testing.assert_array_equal(host(got), host(flow.tensor(exact).to(got.dtype)))

    same(x.cumsum(-2), values.cumsum(-2))
    if x.is_floating_point():  # the gradient is a scan from the end
        leaf = flow.zeros_like(x).requires_grad_()
        (up,) = flow.autograd.grad(leaf.cumsum(-2), leaf, x)
        same(up, np.flip(np.flip(values, -2).cumsum(-2), -2).copy())
    rows = np.arange(shape[-2])[:, None]
    for f, accumulate in ((flow.cummax, np.maximum), (flow.cummin, np.minimum)):
        best, places = f(x, -2)
        expected = accumulate.accumulate(values, axis=-2)
        np.testing.assert_array_equal(host(best), expected)
        last = np.maximum.accumulate(np.where(values == expected, rows, 0), axis=-2)
        np.testing.assert_array_equal(host(places), last)  # of equal ones


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 700), (700, 6), (17000, 3), (3, 17000), (700, 8200),
                                   (3, 2064), (3, 4096), (3, 6160)], ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", ["rising", "falling", "steps", "wide", "corners"])
def test_logcumsumexp_over_the_whole_range(kind, shape, dtype, device):
    rng = np.random.default_rng(2)
    dim = int(shape[0] == 3)
    line = np.linspace(-500, 500, shape[dim])
    values = {
        "rising": np.broadcast_to(np.expand_dims(line, 1 - dim), shape),
        "falling": np.broadcast_to(np.expand_dims(-line, 1 - dim), shape),
        "steps": rng.standard_normal(shape) + np.floor(np.expand_dims(line, 1 - dim) / 90) * 30,
        "wide": rng.uniform(-300, 300, shape), "corners": rng.standard_normal(shape),
    }[kind].copy()  # fmt: skip
    if kind == "corners":
        lines = np.moveaxis(values, dim, 0)  # the scan goes down its columns
        lines[:9, 0] = -INF
        lines[5, 1] = lines[400, 2] = INF
        lines[600, 0] = NAN
        if lines.shape[1] > 5:
            lines[:, 3] = -INF
            lines[:300, 4], lines[0, 5], lines[500:, 5] = -INF, 400, 416
    x = tensor(values, dtype, device)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(host(x), axis=dim)
    step = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(host(x.logcumsumexp(dim)), expected, rtol=step, atol=step)


def test_the_same_bits_twice(device):
    x = made((257, 4099), device=device)
    for f in (flow.var, flow.logsumexp, flow.norm, flow.prod, flow.nansum):
        for dim in (0, 1, None):
            a, b = (host(f(x, dim=dim)) for _ in range(2))
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(host(x.cumsum(1)), host(x.cumsum(1)))
    # Of rows that end within a stage of a ring in shared memory, which others have left NaN in.
    y = made((700, 8192), "float16", device)
    nan = flow.full((700, 8192), NAN, dtype=flow.float16, device=device)
    expected = host(y.logcumsumexp(0))
    for _ in range(3):
        nan.logcumsumexp(0)
        np.testing.assert_array_equal(host(y.logcumsumexp(0)), expected)
    # And a column has the same bits beside others.
    y[:, ::3] *= 100
    y[300, 1::3] = INF
    np.testing.assert_array_equal(host(y.logcumsumexp(0))[:, 2::3], expected[:, 2::3])


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinities(dtype, device):
    x = tensor([[1.0, NAN, 3.0], [INF, 1.0, 2.0], [-INF, -INF, -INF], [NAN, NAN, NAN]], dtype,
               device)  # fmt: skip
    assert host(x.nansum(1)).tolist() == [4, INF, -INF, 0]
    np.testing.assert_array_equal(host(x.nanmean(1)), [2, INF, -INF, NAN])
    np.testing.assert_array_equal(host(x.logsumexp(1)), [NAN, INF, -INF, NAN])
    np.testing.assert_array_equal(host(x.norm(INF, 1)), [NAN, INF, INF, NAN])
    np.testing.assert_array_equal(host(x.norm(-INF, 1)), [NAN, 1, INF, NAN])
    np.testing.assert_array_equal(host(x.amin(1)), [NAN, 1, -INF, NAN])
    assert host(x.argmin(1)).tolist() == [1, 1, 0, 0]
    assert host(x.argmax(1)).tolist() == [1, 0, 0, 0]
    assert np.isnan(host(x.var(1)))[:3].all()
    assert host(x.any(1)).tolist() == [True] * 4 and host(x.all(1)).tolist() == [True] * 4
    scanned = host(x.logcumsumexp(1))
    np.testing.assert_array_equal(scanned[1:], [[INF] * 3, [-INF] * 3, [NAN] * 3])


@pytest.mark.parametrize("dtype", ALL)
def test_truths_of_every_dtype(dtype, device):
    values = np.zeros((3, 700))
    values[1, 699] = 1
    values[2] = 1
    x = tensor(values, dtype, device)
    assert host(x.any(1)).tolist() == [False, True, True]
    assert host(x.all(1)).tolist() == [False, False, True]
    assert host(x.count_nonzero(1)).tolist() == [0, 1, 700]
    assert host(x.count_nonzero(0)).sum() == 701 and x.count_nonzero().item() == 701


def test_of_nothing(device):
    x = flow.zeros(2, 0, device=device)
    assert host(x.prod(1)).tolist() == [1, 1] and host(x.nansum(1)).tolist() == [0, 0]
    assert host(x.norm(dim=1)).tolist() == [0, 0] and host(x.norm(3, 1)).tolist() == [0, 0]
    assert host(x.logsumexp(1)).tolist() == [-INF, -INF]
    assert np.isnan(host(x.var(1))).all() and np.isnan(host(x.nanmean(1))).all()
    assert host(x.all(1)).all() and not host(x.any(1)).any()
    with pytest.raises(IndexError, match="there is no maximum of no elements"):
        x.norm(INF, 1)
    assert x.cummax(1).values.shape == (2, 0) and x.cumprod(1).shape == (2, 0)


def test_a_dtype_of_the_result(device):
    x = tensor(np.full(3000, 300.0), "float16", device)
    assert x.sum(dtype=flow.float32).item() == 900000  # beyond float16
    assert x.sum(dtype=flow.float64).dtype is flow.float64
    assert x.mean(dtype=flow.bfloat16).dtype is flow.bfloat16
    assert x.norm(1, dtype=flow.float32).item() == 900000
    assert tensor([1.5, 2.5], "float32", device).sum(dtype=flow.int64).item() == 3
    assert tensor([200, 100], "uint8", device).prod(dtype=flow.int32).item() == 20000
    y = x.clone().requires_grad_()
    y.sum(dtype=flow.float32).backward()
    assert y.grad.dtype is flow.float16 and (y.grad == 1).all()


def gradient(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    y.sum().backward()
    return host(x.grad)


def test_products_with_zeros(device):
    x = tensor([[2.0, 3, 4], [0, 3, 4], [0, 0, 4], [0, 0, 0]], "float64", device)
    expected = [[12, 8, 6], [12, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert gradient(lambda t: t.prod(1), x).tolist() == expected
    assert gradient(lambda t: t.cumprod(1)[:, 2], x).tolist() == expected
    for dim in (0, 1):
        few = tensor(np.random.default_rng(2).integers(-1, 3, (4, 5)), "float64").requires_grad_()
        for f in (lambda t, d=dim: t.prod(d), lambda t, d=dim: t.cumprod(d), lambda t: t.prod()):
            assert flow.autograd.gradcheck(f, [few])
            assert flow.autograd.gradgradcheck(f, [few])


def test_gradients_at_corners(device):
    tied = tensor([[1.0, 3, 3], [2, 2, 2]], "float32", device)
    np.testing.assert_allclose(
        gradient(lambda t: t.amax(1), tied), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6
    )
    np.testing.assert_allclose(
        gradient(lambda t: t.aminmax(dim=1).min, tied), [[1, 0, 0], [1 / 3] * 3], rtol=1e-6
    )
    np.testing.assert_array_equal(gradient(lambda t: t.min(1).values, tied), [[1, 0, 0], [1, 0, 0]])
    same = flow.ones(4, device=device)
    assert gradient(lambda t: t.std(), same).tolist() == [0] * 4
    assert gradient(lambda t: t.norm(3), same * 0).tolist() == [0] * 4
    one = flow.ones(1, device=device)
    assert np.isnan(gradient(lambda t: t.var(), one)).all()
    x = tensor([1.0, NAN, 3.0], "float32", device)
    assert gradient(lambda t: t.nansum(), x).tolist() == [1, 0, 1]
    assert gradient(lambda t: t.nanmean(), x).tolist() == [0.5, 0, 0.5]
    x = tensor([-INF, -INF, 1.0], "float32", device)
    assert gradient(lambda t: t.logsumexp(0), x).tolist() == [0, 0, 1]


@pytest.mark.parametrize("shape, dim", [((3, 700), 1), ((700, 3), 0), ((2, 300, 5), 1)])
def test_large_gradients_are_those_of_float64(shape, dim, device):
    x = made(shape, "float64", device)
    for f in (flow.var, flow.std, flow.logsumexp, flow.norm):
        exact = gradient(lambda t, f=f: f(t, dim=dim), x)
        got = gradient(lambda t, f=f: f(t, dim=dim), x.float())
        np.testing.assert_allclose(got, exact, rtol=2e-4, atol=2e-6)
        values = host(x)
        if f is flow.var:
            centred = values - values.mean(dim, keepdims=True)
            np.testing.assert_allclose(exact, 2 * centred / (shape[dim] - 1), atol=1e-12)
    exact = gradient(lambda t: t.logcumsumexp(dim), x)
    np.testing.assert_allclose(
        gradient(lambda t: t.logcumsumexp(dim), x.float()), exact, rtol=2e-3, atol=2e-5
    )


WORK = {
    "sum of float16": lambda t: t.half().sum(1, dtype=flow.float32), "prod": lambda t: t.prod(1),
    "var": lambda t: t.var(1), "std": lambda t: t.std(1), "norm": lambda t: t.norm(2, 1),
    "norm 3": lambda t: t.norm(3, 0), "logsumexp": lambda t: t.logsumexp(1),
    "nansum": lambda t: t.nansum(1), "nanmean": lambda t: t.nanmean(1),
    "amin": lambda t: t.amin(1), "aminmax": lambda t: t.aminmax(dim=1)[0],
    "min": lambda t: t.min(1)[0], "cumprod": lambda t: t.cumprod(1),
    "cummax": lambda t: t.cummax(1)[0], "any": lambda t: t.any(1), "all": lambda t: t.all(1),
    "argmin": lambda t: t.argmin(1), "count_nonzero": lambda t: t.count_nonzero(1),
    "var_mean": lambda t: flow.var_mean(t, 1)[0], "cummin": lambda t: t.cummin(0)[0],
    "logcumsumexp": lambda t: t.logcumsumexp(0),
}  # fmt: skip
VIEWS = {"view", "expand", "transpose", "cast"}
TWO = ("prod", "var", "std", "norm", "norm 3", "logsumexp", "nansum", "min", "cumprod", "cummax")


def ops_of(f):
    with flow.profiler.profile() as seen:
        f()
    return [s.name for s in seen.stats() for _ in range(s.calls) if s.name not in VIEWS]


@pytest.mark.parametrize("name", WORK)
def test_one_op_each(name, device):
    x = made((8, 100), device=device)
    assert len(ops_of(lambda: WORK[name](x))) == 1


@pytest.mark.parametrize("name", TWO)
def test_gradients_are_two_ops_at_most(name, device):
    x = made((8, 100), device=device).requires_grad_()
    y = WORK[name](x)
    seed = flow.ones_like(y)
    assert len(ops_of(lambda: flow.autograd.grad(y, x, seed))) <= 2


# Groups of dims that are not neighbours: between them 16-bit floats stay float32.
@pytest.mark.parametrize("dims", [(0, 2), (1, 3), (0, 3), (0, 2, 3), (-1, 0, 1), (3, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_dims_that_are_no_neighbours(name, dims, device):
    x = np.random.default_rng(1).uniform(0.7, 1.4, (3, 4, 2, 5))
    for dtype in ("float16", "bfloat16", "float32", "float64", "int32"):
        if dtype == "int32" and name == "mean":
            continue
        given = tensor(x if "float" in dtype else np.rint(1.3 * x), dtype, device)
        exact = host(given).astype(np.float64)
        for keepdim in (False, True):
            expected = getattr(np, name)(exact, axis=dims, keepdims=keepdim)
            got = getattr(flow, name)(given, dims, keepdim)
            assert got.shape == expected.shape
            assert got.dtype.name == ("int64" if dtype == "int32" else dtype)
            rtol = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6}.get(dtype, 1e-14)
            np.testing.assert_allclose(host(got).astype(np.float64), expected, rtol=rtol)
    wide = getattr(flow, name)(tensor(x, "float16", device), dims, dtype=flow.float64)
    np.testing.assert_allclose(
        host(wide), getattr(np, name)(x.astype(np.float16).astype(float), axis=dims), rtol=1e-14
    )


def test_sums_between_groups_of_dims_do_not_overflow(device):
    x = tensor(np.full((64, 3, 64), 2000.0), "float16", device)
    np.testing.assert_array_equal(host(flow.mean(x, (0, 2))), np.full(3, 2000.0))
    assert host(flow.sum(x[:, :0], (0, 2))).shape == (0,)
    assert np.isnan(host(flow.mean(x[:0], (0, 2)))).all()


@pytest.mark.parametrize("name", ["any", "all"])
@pytest.mark.parametrize("dtype", ALL)
def test_truths_over_no_dims_are_those_of_the_elements(name, dtype, device):
    """dim=() is a list of no dims, as in PyTorch and NumPy; without dim all are reduced."""
    x = tensor([[0, 1], [1, 1]], dtype, device)
    function = getattr(flow, name)
    for each in (function(x, dim=()), function(x, (), True), getattr(x, name)(dim=())):
        assert each.tolist() == [[0, 1], [1, 1]]
        assert each.dtype == (flow.uint8 if dtype == "uint8" else flow.bool)
        each.fill_(0)
    assert x.tolist() == [[0, 1], [1, 1]]
    assert function(x).tolist() == function(x, dim=None).tolist() == (name == "any")
    assert function(x, (0, 1)).dtype == function(x).dtype == each.dtype
    assert function(tensor(NAN, "float32", device), dim=()).item() is True
    assert function(flow.zeros(2, 0, device=device), dim=()).shape == (2, 0)


@pytest.mark.parametrize("function", [flow.var_mean, flow.std_mean])
@pytest.mark.parametrize("dtype", FLOATS)
def test_means_beside_spreads_of_infinities(function, dtype, device):
    """The mean is that of mean(), wherever the infinity lies; PyTorch's depends on the place."""
    rows = [[INF, 1, 2], [1, 2, INF], [INF, INF, 1], [1, -INF, 2], [INF, -INF, 1], [NAN, INF, 1],
            [1, 2, 6]]  # fmt: skip
    for repeats in (1, 400, 30000):  # one row, rows in parts
        x = tensor(np.repeat(rows, repeats, 1), dtype, device)
        for t, dim in ((x, 1), (x.t().contiguous(), 0), (x.t(), 0)):
            spread, mean = function(t, dim)
            np.testing.assert_allclose(host(mean), host(t.mean(dim)), rtol=1e-5)
            assert np.isnan(host(spread)[:-1]).all() and np.isfinite(host(spread)[-1])
    for row in rows[:-1]:
        assert np.isnan(host(function(tensor(row, dtype, device))[0]))


def _hard_spreads(n):
    """Rows of n numbers of which a variance by sums of squares would lose digits."""
    rng = np.random.default_rng(5)
    noise = rng.standard_normal(n)
    return {
        "far": 1e4 + 1e-2 * noise,
        "outlier first": np.r_[1e4, noise[1:]],
        "outliers first": np.r_[np.full(n // 100 + 1, 1e4), noise[n // 100 + 1 :]],
        "outlier last": np.r_[noise[1:], 1e4],
        "rising": np.arange(n) / n * 100,
        "steps": 1e4 * (np.arange(n) * 7 // n) + noise,
        "alike": np.full(n, 3e4),
        "huge": 1e37 * (1 + 1e-3 * noise),
    }


@pytest.mark.parametrize("n", [5, 300, 4096, 70_000])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_variances_keep_their_digits(dim, n, device):
    for name, row in _hard_spreads(n).items():
        rows = tensor(np.stack([row] * 3), "float32", device)
        x = rows.t().contiguous() if dim == 0 else rows
        values = host(x).astype(float)
        if name == "huge":  # the square of the spread is within float32, its parts are
            x, values = x * 1e-20, host(x * 1e-20).astype(float)
        variance, mean = flow.var_mean(x, dim)
        want = values.var(dim, ddof=1)
        np.testing.assert_allclose(host(variance), want, rtol=2e-5, err_msg=name)
        close = 2.5e-7 * np.abs(values).max()  # a mean is exact beside the largest number
        np.testing.assert_allclose(host(mean), values.mean(dim), rtol=0, atol=close, err_msg=name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [320, 32_000])
def test_variances_of_16_bits_keep_their_digits(dtype, n, device):
    most, near, more = {"float16": (6e4, 1000, 1000.5), "bfloat16": (1e27, 256, 258)}[dtype]
    lines = {
        "alike": np.full(n, most),
        "one": np.r_[np.full(n - 1, near), more],
        "one first": np.r_[more, np.full(n - 1, near)],
        "zeros first": np.r_[np.zeros(n // 40), np.full(n - n // 40, near)],
    }
    rtol, atol = {"float16": (2e-3, 6e-8), "bfloat16": (1e-2, 0)}[dtype]
    for name, line in lines.items():
        for columns in (7, 8, 128):
            x = tensor(np.stack([line] * columns, 1), dtype, device)
            want = host(x.double()).var(0, ddof=1)
            for y, dim in ((x, 0), (x.t().contiguous(), 1)):
                np.testing.assert_allclose(host(y.var(dim)), want, rtol, atol, err_msg=name)


def test_variance_of_numbers_near_the_largest(device):
    x = flow.full((4, 5000), 3e38, device=device)
    for y in (x.var(1), x.t().contiguous().var(0), x.var()):
        np.testing.assert_array_equal(host(y), np.zeros(y.shape))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [7, 300, 40_000])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_logsumexp_over_the_whole_range(dim, n, dtype, device):
    most = {"float16": 6e4, "bfloat16": 3e38, "float32": 3e38, "float64": 1e300}[dtype]
    lines = {
        "rising": np.arange(n) * 0.37,
        "falling": -np.arange(n) * 0.37,
        "wide": np.random.default_rng(1).standard_normal(n) * 300,
        "largest": np.where(np.arange(n) == n // 2, most, -most),
        "nothing": np.full(n, -INF),
        "infinite": np.where(np.arange(n) == n - 1, INF, 1.0),
        "one": np.where(np.arange(n) == n - 1, 2.0, -INF),
        "nan": np.where(np.arange(n) == n // 3, NAN, np.arange(n) * 1.0),
    }
    tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-12}[dtype]
    for name, line in lines.items():
        rows = tensor(np.stack([line] * 3), dtype, device)
        x = rows.t().contiguous() if dim == 0 else rows
        values = host(x.double())
        largest = values.max(dim, keepdims=True)
        shift = np.where(np.isinf(largest), 0, largest)
        with np.errstate(divide="ignore"):
            want = (shift + np.log(np.exp(values - shift).sum(dim, keepdims=True))).reshape(-1)
        got = host(x.logsumexp(dim).double()).reshape(-1)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("copies", [60, 2500])
def test_spreads_of_numbers_whose_sums_are_beyond_the_range(copies, dtype):
    x = tensor([2e38, -2e38, 1e38] * copies, dtype)  # in a row that is not short
    values = host(x.double())
    np.testing.assert_allclose(host(flow.var_mean(x)[1].double()), values.mean(), rtol=1e-2)
    np.testing.assert_allclose(host(x.std().double()), values.std(ddof=1), rtol=1e-2)
    assert np.isinf(host(x.var().double()))


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min"])
def test_the_gradient_of_an_extreme_that_is_nan_goes_to_the_nans(name, device):
    values = np.array([[1.0, math.nan, 5.0, math.nan], [2.0, 7.0, 7.0, math.inf], [-math.inf] * 4])
    x = tensor(values, "float32", device).requires_grad_()
    y = getattr(x, name)(1)
    (y if name.startswith("a") else y[0]).sum().backward()
    assert host(x.grad)[0].sum() == 1 and host(x.grad)[0, [0, 2]].tolist() == [0, 0]
    x.grad = None
    getattr(x, name)().backward()
    assert (
        host(x.grad)[0].tolist() == [0, 0.5, 0, 0.5] and host(x.grad)[1:].tolist() == [[0] * 4] * 2
    )


def test_the_gradient_of_a_product_of_one_element_is_its_slope(device):
    x = tensor([[math.inf], [math.nan], [0.0], [3.0]], "float32", device).requires_grad_()
    for y in x.prod(1), x.prod(1, keepdim=True):
        (g,) = flow.autograd.grad((y.reshape(4) * 2).sum(), x)
        assert host(g).ravel().tolist() == [2, 2, 2, 2]


def test_nansum_as_integers_casts_the_elements_as_sum_does():
    x = flow.tensor([[-0.5, -1.25, -0.25, 1.75], [2.5, math.nan, 3.75, -0.5]])
    assert x[:1].sum(1, dtype=flow.int32).tolist() == [0]
    got = x.nansum(1, dtype=flow.int32)
    assert got.tolist() == [0, 5] and got.dtype is flow.int32


def test_a_dim_twice_of_a_tensor_without_dims():
    x = flow.tensor(2.0)
    assert x.sum((0,)).item() == 2 and x.amax(-1).item() == 2
    for dims in ((0, 0), (-1, 0)):
        with pytest.raises(ValueError, match="a list without repetition"):
            x.sum(dims)
        with pytest.raises(ValueError, match="a list without repetition"):
            x.amax(dims)
