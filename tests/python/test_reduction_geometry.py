# SPDX-License-Identifier: Apache-2.0
"""Reductions over any dims of tensors of any layout: on CUDA rows, columns, and parts of both."""

import itertools
import math

import numpy as np
import pytest
from numerics import ALL, FLOATS, flow, host, tensor

RTOL = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 4e-6, "float64": 1e-12}


def np_logsumexp(x, axis):
    top = x.max(axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis)) + np.squeeze(top, axis)


# Of values away from 0, so that a relative error says enough.
FUNCTIONS = {
    "sum": (lambda x, d: x.sum(d), lambda x, d: x.sum(d)),
    "mean": (lambda x, d: x.mean(d), lambda x, d: x.mean(d)),
    "nansum": (lambda x, d: x.nansum(d), np.nansum),
    "nanmean": (lambda x, d: x.nanmean(d), np.nanmean),
    "amax": (lambda x, d: x.amax(d), lambda x, d: x.max(d)),
    "amin": (lambda x, d: x.amin(d), lambda x, d: x.min(d)),
    "var": (lambda x, d: x.var(d, False), lambda x, d: x.var(d)),
    "std": (lambda x, d: x.std(d, False), lambda x, d: x.std(d)),
    "norm": (lambda x, d: x.norm(2, d), lambda x, d: np.sqrt((x**2).sum(d))),
    "norm 0": (lambda x, d: x.norm(0, d), lambda x, d: (x != 0).sum(d)),
    "norm 1": (lambda x, d: x.norm(1, d), lambda x, d: np.abs(x).sum(d)),
    "norm 3": (lambda x, d: x.norm(3, d), lambda x, d: np.cbrt((np.abs(x) ** 3).sum(d))),
    "norm inf": (lambda x, d: x.norm(math.inf, d), lambda x, d: np.abs(x).max(d)),
    "norm -inf": (lambda x, d: x.norm(-math.inf, d), lambda x, d: np.abs(x).min(d)),
    "logsumexp": (lambda x, d: x.logsumexp(d), np_logsumexp),
    "count_nonzero": (lambda x, d: x.count_nonzero(d), lambda x, d: (x != 0).sum(d)),
    "any": (lambda x, d: x.any(d), lambda x, d: (x != 0).any(d)),
    "all": (lambda x, d: x.all(d), lambda x, d: (x != 0).all(d)),
    "prod": (lambda x, d: flow.prod(x, d), lambda x, d: x.prod(d)),
}
NO_FLOAT = ("sum", "amax", "amin", "count_nonzero", "any", "all")
NARROW = ("bool", "uint8", "int8", "int16")


def made(shape, dtype, device):
    rng = np.random.default_rng(len(shape))
    x = rng.uniform(0.6, 1.5, shape)
    if "float" not in dtype:
        x = rng.integers(0, 2 if dtype == "bool" else 5, shape)
    return tensor(x, dtype, device)


def check(name, x, dims):
    f, expected = FUNCTIONS[name]
    if name == "prod":
        x = x * 0.02 + 0.98
    exact = host(x).astype(np.float64 if x.is_floating_point() else np.int64)
    rtol = RTOL.get(x.dtype.name, 0)
    if name in ("var", "std"):
        rtol *= 8
    if name == "prod":  # each product rounds once
        rtol = max(rtol, 3e-4)
    got = host(f(x, dims))
    want = np.asarray(expected(exact, dims), np.float64)
    assert got.shape == want.shape
    np.testing.assert_allclose(
        got.astype(np.float64), want, rtol=rtol, atol=6e-8 if x.dtype == flow.float16 else 0,
        err_msg=f"{name} over {dims} of {tuple(x.shape)}, strides {x.stride()}",
    )  # fmt: skip


def choices(ndim):
    for n in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), n)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(3, 4, 5, 8), (2, 3, 16, 24), (2, 3, 2, 3, 4)], ids=str)
def test_every_choice_of_dims(name, shape, device):
    for dtype in ("float16", "float32"):
        x = made(shape, dtype, device)
        for dims in choices(len(shape)):
            check(name, x, dims)


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype(dtype, device):
    names = FUNCTIONS if "float" in dtype else NO_FLOAT
    for shape in ((3, 16, 2, 32), (2, 5, 3, 7)):
        x = made(shape, dtype, device)
        for name in names:
            for dims in ((1, 3), (0, 2), (0, 1, 3), (3,), (0,)):
                check(name, x, dims)


# Of 16 bytes, of lanes and of tiles; each at an odd offset too.
@pytest.mark.parametrize("width", [*range(1, 18), 31, 32, 33, 127, 128, 129, 1000, 4097])
def test_widths_and_offsets(width, device):
    for dtype in ("bfloat16", "float32", "uint8"):
        for skip in (0, 1, 3):
            flat = made((5 * 40 * width + skip,), dtype, device)
            x = flat[skip:].reshape(5, 40, width)
            for name in ("sum", "amax", "count_nonzero"):
                for dims in ((0,), (1,), (2,), (0, 2), (0, 1), (0, 1, 2)):
                    check(name, x, dims)


# Around batches of packs: rows of one team and of a whole block, and columns of whole packs, of all
# ways and of some.
@pytest.mark.parametrize("name", ["sum", "amin", "var", "norm 3", "logsumexp"])
def test_around_batches(name, device):
    for packs in (31, 33, 96, 127, 129, 257, 1023, 1025, 2047, 2049, 3073, 8193):
        for skip in (0, 1):
            flat = made((3 * 8 * packs + skip,), "bfloat16", device)
            check(name, flat[skip:].reshape(3, 8 * packs), (1,))
    for places in (1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 63, 64, 65, 67, 127, 129, 191, 193, 255,
                   257, 1023, 1027):  # fmt: skip
        for columns in (8, 128, 136):
            check(name, made((places, columns), "bfloat16", device), (0,))
            check(name, made((places, 7, columns), "bfloat16", device)[:, 1:], (0, 1))
            check(name, made((places, 3, columns), "bfloat16", device), (0,))
    for rows in (5, 37, 300):
        for length in (8, 24, 128):
            x = made((rows, 3, length), "bfloat16", device)
            check(name, x, (0, 2))
            check(name, made((rows, 3, 2, length), "bfloat16", device)[:, :, 1:], (0, 1, 3))


# Of few places a block takes more columns than it has threads: around turns of eight places, and
# around tiles of 128 to 1024 columns, of whole packs and not.
@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_places_of_many_columns(name, device):
    for places in (1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 21, 31, 32, 33):
        for columns in (127, 256, 264, 1000, 1025, 2056):
            for dtype in ("float16", "float32"):
                check(name, made((2, places, columns), dtype, device), (1,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64", "uint8"])
def test_places_of_few_places_of_many_columns(dtype, device):
    rng = np.random.default_rng(3)
    for places in (1, 3, 8, 9, 21, 32):
        for columns in (127, 256, 1000, 1025, 2056):
            x = tensor(rng.integers(0, 9, (2, places, columns)), dtype, device)
            exact = host(x).astype(np.float64)
            np.testing.assert_array_equal(host(x.argmax(1)), exact.argmax(1))
            np.testing.assert_array_equal(host(flow.max(x, 1)[0]).astype(np.float64), exact.max(1))


# Several rows of a result that begin and end anywhere within 16 bytes: shorter than a pack, of some
# packs, and of many; the first and the last one at the ends of the tensor's memory.
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_apart_that_begin_anywhere(name, device):
    for shape in ((70, 3, 1, 3), (60, 5, 7, 7), (9, 3, 25, 25), (2, 2, 3, 1029)):
        for dtype in ("float16", "float32", "float64"):
            x = made(shape, dtype, device)
            check(name, x, (0, 2, 3))
            check(name, x[:, :, :, 1:], (0, 2, 3))
    for dtype in NARROW:
        if name in NO_FLOAT:
            check(name, made((60, 5, 7, 7), dtype, device), (0, 2, 3))
            check(name, made((5, 3, 41), dtype, device)[:, 1:, 1:], (0, 2))


# On CUDA columns whose tiles and turns of eight places are all whole have a kernel of their own.
@pytest.mark.parametrize("name", ["sum", "amax", "std", "count_nonzero", "any", "all", "norm 3",
                                  "logsumexp", "nansum"])  # fmt: skip
def test_whole_columns(name, device):
    for places in (8, 64, 72, 1024):
        for columns in (128, 256):
            for dtype in ("bfloat16", "uint8", "float64"):
                if dtype != "uint8" or name in NO_FLOAT:
                    check(name, made((places, columns), dtype, device), (0,))
    for shape in ((64, 3, 256), (8, 2, 16, 128), (96, 5, 64, 64)):
        check(name, made(shape, "float16", device), (0, 2) if len(shape) == 4 else (0,))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
def test_places_down_whole_columns(dtype, device):
    """The first of those that are alike, whichever thread has it."""
    for places in (8, 64, 72, 1024):
        for columns in (64, 128, 256):
            x = np.random.default_rng(places).integers(-4, 5, (places, columns))
            x[:, 3], x[places - 1, 4] = 2, 9
            given = tensor(x, dtype, device)
            np.testing.assert_array_equal(host(flow.argmax(given, 0)), x.argmax(0))
            np.testing.assert_array_equal(host(flow.argmin(given, 0)), x.argmin(0))


# Rows whose packs and batches are all whole have one too: results of lanes of a warp, of a block
# and of several; along one dim and two, and of dims in another order. Rows with one element less
# have not, nor have those between boundaries.
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whole_rows(name, device):
    for dtype in ("float16", "bfloat16", "float32", "uint8"):
        if dtype == "uint8" and name not in NO_FLOAT:
            continue
        for shape in ((600, 512), (40, 2048), (3, 8192), (3, 40960), (2_097_152,)):
            finite = shape[-1] < (9000 if name == "prod" else 50000)
            if finite or (name != "prod" and dtype != "float16"):
                check(name, made(shape, dtype, device), (len(shape) - 1,))
        if name == "prod":
            continue
        check(name, made((3, 40961), dtype, device)[:, 1:], (1,))
        check(name, made((3, 40959), dtype, device), (1,))
        four = made((20, 16, 20, 64), dtype, device)
        for view in (four, four.transpose(0, 2), four[:, ::2]):
            check(name, view, (1, 3))
        check(name, four.transpose(0, 1), (3,))
        check(name, made((3, 512, 3, 64), dtype, device), (1, 3))  # in chunks


# What is looked for is in one place of many, or in none.
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16", "float32", "int64"])
def test_truths_in_any_place(dtype, device):
    for shape in ((64, 2048), (2048, 128), (3, 999)):
        for value in (0, 1):  # -0 is nothing, and a NaN or a number below the normal ones something
            x = np.full(shape, value, np.float64)
            x[1, 7] = x[shape[0] - 1, shape[1] - 1] = 1 - value
            if "float" in dtype:
                x[0] = np.where(x[0] == 0, -0.0, math.nan)
                x[x == 1] = 2.0**-24 if dtype == "float16" else 2.0**-120
            given = tensor(x, dtype, device)
            for dim in (0, 1):
                assert host(given.any(dim)).tolist() == (x != 0).any(dim).tolist()
                assert host(given.all(dim)).tolist() == (x != 0).all(dim).tolist()
            assert bool(given.any()) is bool((x != 0).any())
            assert bool(given.all()) is bool((x != 0).all())
            nothing = tensor(np.full(shape, -0.0 if "float" in dtype else 0), dtype, device)
            assert not bool(nothing.any()) and not host(nothing.any(0)).any()


# Columns of 16-bit floats go by differences of pairs: their mean is far from 0, they are constant,
# near the largest number, or hold an infinity or NaN.
# On CUDA, of whole columns, states are merged several at once, and of 64 columns in two steps.
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("rows", [1, 5, 8, 64, 1000, 1024])
@pytest.mark.parametrize("columns", [64, 256])
def test_spreads_down_columns(columns, rows, dtype, device):
    rng = np.random.default_rng(rows)
    largest = {"float16": 65504, "bfloat16": 3.38e38, "float32": 3.4e38}[dtype]
    x = rng.standard_normal((rows, columns))
    x[:, 1] = 1000 + 8 * rng.integers(0, 4, rows)
    x[:, 2] = 17.25
    x[:, 3] = largest
    x[:, 4] = rng.integers(0, 2, rows) * 2.0**-14
    x[0, 5] = 30000  # the first one is far from all others
    x[rows - 1, 6], x[rows // 2, 7], x[0, 8], x[rows - 1, 9] = (
        math.inf,
        -math.inf,
        math.inf,
        math.nan,
    )
    if dtype != "float32":  # whose distances are infinite
        x[:, 10] = largest * (1 - 2 * (np.arange(rows) % 2))
    given = tensor(x, dtype, device)
    values = host(given).astype(np.float64)
    var, mean = (host(t).astype(np.float64) for t in flow.var_mean(given, 0, unbiased=False))
    with np.errstate(invalid="ignore", over="ignore"):
        limit = np.finfo("float16" if dtype == "float16" else "float32").max
        expected = values.var(0)
        expected[expected > limit] = math.inf
        means = values.mean(0)
    rtol = 2 * RTOL[dtype] if dtype != "float32" else 2e-5
    np.testing.assert_allclose(var, expected, rtol=rtol, atol=6e-8)
    finite = np.isfinite(means)
    np.testing.assert_array_equal(mean[~finite], means[~finite])
    sizes = np.abs(values[:, finite]).max(0)
    off = np.abs(mean[finite] - means[finite])
    assert (off <= rtol * np.abs(means[finite]) + 2e-7 * sizes).all()
    assert var[2] == var[3] == 0
    again = host(flow.var(given, 0, unbiased=False))
    np.testing.assert_array_equal(again, host(flow.var(given, 0, unbiased=False)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("rows", [1, 8, 64, 1000, 1024])
@pytest.mark.parametrize("columns", [64, 256])
def test_logsumexp_down_columns(columns, rows, dtype, device):
    """Beside infinities, NaN, and elements far above all others."""
    x = np.random.default_rng(rows).standard_normal((rows, columns))
    x[:, 1] = x[: rows // 2, 2] = x[rows - 1, 3] = -math.inf
    x[rows - 1, 4] = x[0, 5] = math.inf
    x[rows // 2, 6] = math.nan
    x[rows - 1, 7], x[0, 8] = 20000, 20000
    x[:, 9] = -20000
    x[0, 10], x[rows - 1, 10] = math.inf, -math.inf
    x[:, 11] = 12 * (np.arange(rows) % 16)
    given = tensor(x, dtype, device)
    values = host(given).astype(np.float64)
    top = values.max(0)
    shift = np.where(np.isfinite(top), top, 0)
    with np.errstate(divide="ignore", over="ignore"):
        expected = shift + np.log(np.exp(values - shift).sum(0))
    got = host(flow.logsumexp(given, 0)).astype(np.float64)
    np.testing.assert_allclose(got, expected, rtol=max(RTOL[dtype], 2e-6), atol=1e-6)


# So few results that blocks take chunks of them; of few columns so many that they merge in groups.
@pytest.mark.parametrize("name", ["sum", "amax", "var", "logsumexp", "count_nonzero"])
def test_many_chunks(name, device):
    for shape, dims in (((150_000, 40), (0,)), ((150_001, 7), (0,)), ((100_000, 1), (0,)),
                        ((2_000_003,), (0,)), ((3, 500_001), (1,)),
                        ((90, 3, 800, 24), (0, 2)), ((90, 3, 801, 7), (0, 2))):  # fmt: skip
        for dtype in ("bfloat16", "float32"):
            check(name, made(shape, dtype, device), dims)


@pytest.mark.parametrize("name", ["sum", "amax", "norm", "var", "logsumexp"])
def test_layouts(name, device):
    x = made((6, 34, 40, 24), "bfloat16", device)
    views = [
        x.permute(3, 1, 0, 2), x.permute(0, 2, 3, 1), x.transpose(0, 3), x[:, 1:33], x[..., 1:17],
        x[:, :, 8:, 8:], x[:, ::2], x[..., ::2], x[1:, :, 3], x[..., 5],
        x[:, :, :1].expand(6, 34, 9, 24),
    ]  # fmt: skip
    for view in views:
        for dims in ((0,), (1,), (view.ndim - 1,), (0, 2), (1, view.ndim - 1), None):
            if dims is None:
                dims = tuple(range(view.ndim))
            if len(set(dims)) == len(dims):
                check(name, view, dims)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_places(dtype, device):
    rng = np.random.default_rng(3)
    for shape in ((7, 40, 9), (3, 5000, 8), (40000, 3), (2, 70001), (1024, 128), (64, 3, 256)):
        x = tensor(rng.integers(-50, 50, shape), dtype, device)
        for view in (x, x.transpose(0, 1), x[:, 1:], x[..., 1:]):
            values = host(view).astype(float)
            for dim in range(view.ndim):
                np.testing.assert_array_equal(host(view.argmax(dim)), values.argmax(dim))
                np.testing.assert_array_equal(host(view.argmin(dim)), values.argmin(dim))
                top, places = view.max(dim)
                np.testing.assert_array_equal(host(top), values.max(dim))
                np.testing.assert_array_equal(host(places), values.argmax(dim))
            np.testing.assert_array_equal(host(view.argmax()), values.argmax())


@pytest.mark.parametrize("dtype", FLOATS)
def test_places_of_what_comes_last(dtype, device):
    for n in (1, 7, 8, 9, 4096, 70001):
        low = tensor(np.full(n, -math.inf), dtype, device)
        assert int(low.argmax()) == 0 and int(low.argmin()) == 0
        for place in {0, n // 3, n - 1}:
            x = np.zeros((n, 2))
            x[place:, 1] = math.nan
            x[place, 0] = 1
            both = tensor(x, dtype, device)
            assert host(both.argmax(0)).tolist() == [place, place]
            assert host(both.T.contiguous().argmax(1)).tolist() == [place, place]


# The lowest value, where no element is further: the place is the first one, whoever finds it.
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_places_of_the_lowest_value(dtype, device):
    low = -math.inf if "float" in dtype else np.iinfo(dtype).min
    for axis, skip in ((5, 1), (41, 0), (3000, 1), (9001, 3)):
        for columns in (1, 3, 16):
            x = np.full(axis * columns + skip, low, np.float64 if "float" in dtype else dtype)
            flat = flow.tensor(x, device=device).to(getattr(flow, dtype))
            view = flat[skip:].reshape(axis, columns)
            assert host(view.argmax(0)).tolist() == [0] * columns
            assert host(view.argmin(0)).tolist() == [0] * columns
            top, places = flat[skip:].reshape(columns, axis).max(1)
            assert host(places).tolist() == [0] * columns
            assert (host(top) == low).all()
            view[axis - 1] = 1
            view[axis // 2] = 1
            assert host(view.argmax(0)).tolist() == [axis // 2] * columns
            assert host(view.argmin(0)).tolist() == [0] * columns


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinities_stay_in_their_slice(dtype, device):
    x = np.ones((16, 3, 4, 40))
    x[3, 1, 2, 5], x[4, 1, 0, 39], x[5, 1, 0, 0] = math.nan, math.inf, -math.inf
    x = tensor(x, dtype, device)
    for f in (flow.sum, flow.amax, flow.norm, flow.logsumexp, flow.var):
        got = host(f(x, dim=(1, 3))).astype(float)
        assert np.isnan(got[3, 2]) and np.isfinite(np.delete(got, (3, 4, 5), 0)).all()
        got = host(f(x, dim=(0, 3))).astype(float)
        assert np.isnan(got[1, 2]) and np.isfinite(got[[0, 2]]).all()
    assert host(x.nansum((1, 3)))[4, 0] == math.inf and host(x.logsumexp((1, 3)))[4, 0] == math.inf


def test_many_results_and_long_slices(device):
    for shape in ((65537, 2), (65537, 16, 2), (3, 65537), (2, 65537, 8), (16, 9, 1001, 8)):
        x = made(shape, "bfloat16", device)
        for dims in ((0,), (len(shape) - 1,), (0, len(shape) - 1)):
            check("sum", x, dims)
            check("amin", x, dims)
            check("var", x, dims)
            assert (host(flow.var(x, dims)) == host(flow.var(x, dims))).all()
            assert host(flow.sum(x, dims)).tobytes() == host(flow.sum(x, dims)).tobytes()


def test_of_nothing(device):
    x = flow.ones(3, 0, 4, 5, device=device)
    assert host(flow.sum(x, (1, 3))).tolist() == [[0] * 4] * 3
    assert host(flow.sum(x, (0, 2))).shape == (0, 5)
    assert np.isnan(host(flow.var(x, (1, 3)))).all()
    assert host(flow.all(x, (1, 3))).all() and not host(flow.any(x, (1, 3))).any()
    assert np.isneginf(host(flow.logsumexp(x, (1, 3)))).all()


@pytest.mark.parametrize(
    "name", ["mean", "nansum", "amax", "var", "std", "norm", "norm 3", "logsumexp"]
)
def test_gradients_over_dims_apart(name, device):
    f = FUNCTIONS[name][0]
    x = made((3, 4, 5, 6), "float64", device)
    moved = x.permute(0, 2, 1, 3).reshape(15, 24)
    weights = made((3, 5), "float64", device)
    got, expected = x.requires_grad_(), moved.detach().requires_grad_()
    (f(got, (1, 3)) * weights).sum().backward()
    (f(expected, (1,)) * weights.reshape(15)).sum().backward()
    np.testing.assert_allclose(
        host(got.grad.permute(0, 2, 1, 3).reshape(15, 24)), host(expected.grad), rtol=1e-10
    )


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "prod"])
def test_one_op_and_no_copy_on_cuda(name, device):
    x = made((4, 6, 8, 10), "float32", device)
    for view in (x, x.permute(2, 0, 3, 1), x[:, :, 2:]):
        with flow.profiler.profile() as seen:
            FUNCTIONS[name][0](view, (0, 2))
        ops = sum(s.calls for s in seen.stats() if s.name not in ("view", "expand", "transpose"))
        assert ops == 1 or device == "cpu"
