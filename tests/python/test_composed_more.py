# SPDX-License-Identifier: Apache-2.0
"""Products, medians, searches and the like that Python composes: NumPy's values, gradients."""

import math

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor

F = flow.nn.functional
RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4)) * 2
Y = RNG.standard_normal((3, 4))
SHARES = RNG.uniform(0.1, 0.9, (3, 4))
CUBE = RNG.standard_normal((2, 3, 4))
ZEROS = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [1.5, -2.0, 0.5]])
WIDE = RNG.standard_normal((3, 17))  # odd, and several steps of the scan


def np_running(join):
    return lambda x, dim: join.accumulate(x, axis=dim)


def np_pad(mode):
    return lambda x, widths, *_: np.pad(
        x, [(0, 0)] * (x.ndim - 1) + [widths], mode={"replicate": "edge", "circular": "wrap"}.get(
            mode, mode))  # fmt: skip


# name, function, NumPy's, arguments (arrays become tensors)
CASES = [
    ("prod", flow.prod, np.prod, X), ("prod of 0", flow.prod, np.prod, ZEROS, 1),
    ("prod of dims", flow.prod, lambda x, d: np.prod(x, axis=d), CUBE, (0, -1)),
    ("prod of nothing", flow.prod, np.prod, np.ones((3, 0)), 1),
    ("prod of many", flow.prod, np.prod, WIDE, 1),
    ("cumprod", flow.cumprod, np_running(np.multiply), WIDE, 1),
    ("cumprod of 0", flow.cumprod, np_running(np.multiply), ZEROS, -1),
    ("logcumsumexp", flow.logcumsumexp, np_running(np.logaddexp), WIDE * 5, 1),
    ("logaddexp", flow.logaddexp, np.logaddexp, X * 300, Y * 300),
    ("maximum of two", flow.max, np.maximum, X, Y), ("minimum of two", flow.min, np.minimum, X, Y),
    ("median", flow.median, lambda x: np.sort(x.ravel())[5], X),
    ("quantile", flow.quantile, np.quantile, X, 0.3),
    ("quantile along", flow.quantile, lambda x, q, d: np.quantile(x, q, axis=d), CUBE, 0.7, 1),
    ("quantiles", flow.quantile, lambda x, q, d: np.quantile(x, q, axis=d), X,
     np.array([0.25, 0.5, 1.0]), -1),
    ("nansum", flow.nansum, np.nansum, np.where(X > 1, np.nan, X), 1),
    ("nanmean", flow.nanmean, np.nanmean, np.where(X > 1, np.nan, X)),
    ("diff", flow.diff, np.diff, X, 2), ("diff along", flow.diff, np.diff, CUBE, 1, 0),
    ("hypot", flow.hypot, np.hypot, X * 1e30, Y * 1e30),
    ("fmod", flow.fmod, np.fmod, X, 0.7), ("fmod of two", flow.fmod, np.fmod, X, Y),
    ("xlogy", flow.xlogy, lambda x, y: np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y))),
     np.array([0.0, 2.0, 0.0]), np.array([4.0, 3.0, 5.0])),
    ("xlogy of 0", flow.xlogy, lambda x, y: x, np.zeros(3), np.array([0.0, -1.0, np.inf])),
    ("tensordot", flow.tensordot, np.tensordot, CUBE, CUBE.transpose(1, 2, 0), 2),
    ("tensordot of dims", flow.tensordot, np.tensordot, CUBE, CUBE, ([0, 2], [0, 2])),
    ("inner", flow.inner, np.inner, CUBE, X), ("kron", flow.kron, np.kron, X, CUBE),
    ("baddbmm", flow.baddbmm, lambda a, b, c: a + b @ c, CUBE[:, :, :3], CUBE,
     np.swapaxes(CUBE, 1, 2)),
    ("trace", flow.trace, np.trace, X), ("dist", flow.dist, lambda a, b: np.sqrt(((a - b) ** 2)
                                                                                 .sum()), X, Y),
    ("take", flow.take, np.take, X, np.array([[0, -1], [5, 3]])),
    ("repeat_interleave by numbers", flow.repeat_interleave, lambda x, n, d: np.repeat(x, n, d),
     CUBE, np.array([2, 0, 1]), 1),
    *((mode, lambda x, w, m=mode: F.pad(x, w, m), np_pad(mode), CUBE, (2, 3))
      for mode in ("reflect", "replicate", "circular")),
]  # fmt: skip
KINKS = {
    "fmod",
    "fmod of two",
    "quantile",
    "quantiles",
    "hypot",
    "sinh",
    "nansum",
    "xlogy of 0",
    "nanmean",
}
by_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])


def made(value, dtype, device):
    if not isinstance(value, np.ndarray):
        return value
    return tensor(value, "int64" if value.dtype.kind == "i" else dtype, device)


@by_case
def test_values(case, device):
    _, function, reference, *args = case
    expected = reference(*args)
    for dtype, bound in (("float64", 1e-12), ("float32", 3e-5)):
        got = function(*(made(a, dtype, device) for a in args))
        assert got.dtype.name == dtype and got.device.type == device
        np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound * 0.1)


@pytest.mark.parametrize("case", [c for c in CASES if c[0] not in KINKS], ids=lambda c: c[0])
def test_gradients(case):
    _, function, _, *args = case
    inputs = [made(a, "float64", "cpu") for a in args]
    for t in inputs:
        if isinstance(t, flow.Tensor) and t.dtype is flow.float64:
            t.requires_grad_("quantile" not in case[0] or t.shape != (3,))
    assert flow.autograd.gradcheck(function, inputs)


def test_a_variance_that_is_small_beside_the_mean(device):
    x = tensor(np.random.default_rng(7).standard_normal((5, 1000)) * 1e-3 + 1e4, "float32", device)
    values = host(x)  # whose mean, rounded to float32, is wrong by half of their spread
    np.testing.assert_allclose(host(x.var(1)), values.var(1, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(host(x.std(correction=0)), values.std(), rtol=1e-5)
    for n in (50156, 100_003):  # of one number: not below 0, whatever is rounded
        assert 0 <= flow.full([n], -6.885649681091309, device=device).std().item() < 1e-6


def test_a_mean_of_integers_is_an_error():
    with pytest.raises(flow.DTypeError, match=r"nanmean\(\): the dtype must be a float, not"):
        flow.nanmean(flow.tensor([1, 2]))
    assert flow.nanmean(flow.tensor([1, 2]), dtype=flow.float32).item() == 1.5


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bits_are_rounded_once_and_sums_do_not_overflow(dtype, device):
    x = tensor(np.random.default_rng(3).standard_normal((300, 500)) * 3, dtype, device)
    values = host(x)
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    shares = tensor(np.linspace(0.01, 0.99, 1000), dtype, device)
    for y, expected in [
        (x.var(), values.var(ddof=1)),  # 150000 squares of 9 on average
        (x.std(1), values.std(1, ddof=1)),
        (flow.nanmean(abs(x)), abs(values).mean()),
        (F.hardsigmoid(x), np.clip(values / 6 + 0.5, 0, 1)),
        (F.hardswish(x), values * np.clip(values / 6 + 0.5, 0, 1)),
        (F.mish(x), values * np.tanh(np.logaddexp(0, values))),
        (flow.logit(shares), np.log(host(shares) / (1 - host(shares)))),
        (flow.exp2(x), np.exp2(values)),
    ]:
        assert y.dtype is x.dtype
        np.testing.assert_allclose(host(y), expected, rtol=step, atol=1e-6)


def test_products_of_integers_and_of_16_bits(device):
    x = flow.tensor([[2, 3], [5, 7]], dtype=flow.int32, device=device)
    assert x.prod().item() == 210 and x.prod().dtype is flow.int64
    assert x.prod(0, keepdim=True).tolist() == [[10, 21]]
    assert x.cumprod(1).tolist() == [[2, 6], [5, 35]]
    assert flow.tensor([True, False], device=device).prod().item() == 0
    assert flow.tensor(3.0).prod().item() == 3 and x.prod(dtype=flow.float32).item() == 210.0
    half = flow.full([20], 0.5, dtype=flow.float16, device=device)
    assert half.prod().item() == 2.0**-20 and half.prod().dtype is flow.float16
    with pytest.raises(IndexError, match=r"prod\(\): dim 2 is out of range \[-2, 1\]"):
        x.prod(2)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_matmul_of_integers(dtype, device):
    a, b = RNG.integers(0, 9, (5, 7)), RNG.integers(0, 9, (7, 4))
    batch = RNG.integers(0, 5, (2, 3, 5, 7))
    for x, y in ((a, b), (a[0], b), (a, b[:, 0]), (a[0], b[:, 0]), (batch, b),
                 (batch, batch[0, 0].T), (batch, batch.swapaxes(2, 3)), (a[:, :0], b[:0]),
                 (a[:0], b)):  # fmt: skip
        got = tensor(x, dtype, device) @ tensor(y, dtype, device)
        assert got.dtype.name == dtype
        np.testing.assert_array_equal(host(got), (x @ y).astype(dtype))
    wide = tensor(RNG.integers(0, 3, (300, 40)), dtype, device)  # the inner dim in parts
    tall = flow.ones(40, 400, dtype=wide.dtype, device=device)
    assert flow.equal(wide @ tall, wide.sum(1, keepdim=True).to(wide.dtype).expand(300, 400))
    with pytest.raises(flow.ShapeError, match=r"other has shape \[3, 2\], expected \[7, 2\] to go"):
        tensor(a, dtype) @ flow.ones(3, 2, dtype=wide.dtype)
    with pytest.raises(flow.DTypeError):
        tensor(a, dtype) @ flow.ones(7, 2)


def test_powers_of_integers(device):
    x = flow.arange(-4, 5, device=device)
    for exponent in (0, 1, 2, 3, 4, 7, 10):
        assert (x**exponent).tolist() == [v**exponent for v in range(-4, 5)]
    assert (x**2.0).dtype is flow.float32
    with pytest.raises(ValueError, match="integers have no negative powers"):
        x**-1


def test_median_and_its_like():
    x = flow.tensor([[3.0, 1.0, 2.0, 4.0], [0.0, 9.0, 5.0, 5.0]])
    assert [t.tolist() for t in x.median(1)] == [[2.0, 5.0], [2, 2]]
    assert [t.tolist() for t in x.kthvalue(3, 1, keepdim=True)] == [[[3.0], [5.0]], [[0], [3]]]
    assert flow.tensor(2.0).kthvalue(1)[1].item() == 0
    assert [t.item() for t in x.aminmax()] == [0.0, 9.0]
    assert [t.tolist() for t in x.aminmax(dim=0)] == [[0, 1, 2, 4], [3, 9, 5, 5]]
    for name in ("lower", "higher", "nearest", "midpoint"):
        expected = np.quantile(x.numpy(), [0.1, 0.6], axis=1, method=name)
        got = flow.quantile(x, flow.tensor([0.1, 0.6]), 1, interpolation=name)
        np.testing.assert_allclose(host(got), expected)
    variance, mean = flow.var_mean(x, 1, unbiased=False)
    assert mean.tolist() == [2.5, 4.75] and variance.tolist() == [1.25, 10.1875]
    np.testing.assert_allclose(host(flow.std_mean(x, 0)[0]), x.numpy().std(0, ddof=1), rtol=1e-6)
    for call in (lambda: x.kthvalue(5), lambda: x.quantile(1.5), lambda: x.kthvalue(0),
                 lambda: flow.quantile(x, 0.5, interpolation="odd")):  # fmt: skip
        with pytest.raises(ValueError):
            call()


def test_found_and_counted(device):
    x = RNG.integers(0, 6, (4, 5))
    t = flow.tensor(x, device=device)
    for dtype in (flow.int64, flow.float32, flow.uint8):
        values, inverse, counts = flow.unique(t.to(dtype), return_inverse=True, return_counts=True)
        expected = np.unique(x, return_inverse=True, return_counts=True)
        assert values.dtype is dtype and values.tolist() == expected[0].tolist()
        assert inverse.tolist() == expected[1].reshape(x.shape).tolist()
        assert counts.tolist() == expected[2].tolist()
    assert flow.unique(t > 2).tolist() == [False, True] and flow.unique(t[:0]).tolist() == []
    assert (
        flow.bincount(t.reshape(-1), minlength=9).tolist()
        == np.bincount(x.ravel(), None, 9).tolist()
    )
    weights = RNG.random(20)
    got = flow.bincount(t.reshape(-1), flow.tensor(weights, device=device))
    np.testing.assert_allclose(host(got), np.bincount(x.ravel(), weights))
    for bad in (flow.tensor([-1]), flow.tensor([[1]]), flow.tensor([1.0])):
        with pytest.raises(ValueError):
            flow.bincount(bad)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 33])
def test_searches_are_numpys(n, device):
    line = np.sort(RNG.integers(0, 9, n)).astype(float)
    x = RNG.integers(-1, 11, (3, 6)).astype(float)
    for right in (False, True):
        expected = np.searchsorted(line, x, side="right" if right else "left")
        made = flow.tensor(line, device=device), flow.tensor(x, device=device)
        got = flow.searchsorted(*made, right=right)
        assert got.tolist() == expected.tolist() and got.dtype is flow.int64
        assert flow.bucketize(made[1], made[0], right=right, out_int32=True).dtype is flow.int32
    rows = flow.tensor(np.stack([line, line + 1]), device=device)
    got = flow.searchsorted(rows, flow.tensor(x[:2], device=device))
    assert got.tolist() == [np.searchsorted(line + k, x[k]).tolist() for k in (0, 1)]
    with pytest.raises(flow.ShapeError):
        flow.searchsorted(rows, flow.tensor(x, device=device))


def test_a_0_dim_value_has_a_gradient():
    x, value = flow.tensor(X, requires_grad=True), flow.tensor(2.0, dtype=flow.float64)
    weight = flow.tensor(Y)
    value.requires_grad_()
    (x.masked_fill(x > 0, value) * weight).sum().backward()
    np.testing.assert_allclose(value.grad.item(), Y[X > 0].sum())
    np.testing.assert_allclose(host(x.grad), np.where(X > 0, 0, Y))
    value.grad = None
    (x.index_fill(0, flow.tensor([1, 1, -1]), value) * weight).sum().backward()
    np.testing.assert_allclose(value.grad.item(), Y[1:].sum())  # a place named twice counts once
    x.grad = None
    x.sign().sum().backward()
    assert host(x.grad).tolist() == np.zeros_like(X).tolist()


def test_parts_are_not_repeated():
    x, places = flow.zeros(3, 4), flow.tensor([0, 2])
    for name in ("index_add", "index_copy"):
        change = getattr(x, name)
        for source in (flow.ones(4), flow.ones(1, 4), flow.ones(2, 3), flow.ones(3, 4)):
            with pytest.raises(flow.ShapeError, match=rf"{name}\(\): source has shape"):
                change(0, places, source)
        with pytest.raises(flow.DTypeError, match="source has dtype float64, expected float32"):
            change(0, places, flow.ones(2, 4).double())
        with pytest.raises(IndexError, match=r"index has shape \[1, 2\], expected 1 dim"):
            change(0, places.view(1, 2), flow.ones(2, 4))
        assert flow.tensor([1.0, 2.0]).index_add(0, flow.tensor(1), flow.tensor(3.0))[1] == 5


def test_repeats_and_padding_that_do_not_fit():
    x = flow.ones(2, 3)
    assert flow.repeat_interleave(flow.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    assert x.repeat_interleave(flow.tensor([2]), 1, output_size=6).shape == (2, 6)
    for repeats in (flow.tensor([1, 2]), flow.tensor([[1, 2, 3]])):
        with pytest.raises(flow.ShapeError, match="repeats has shape"):
            x.repeat_interleave(repeats, 1)
    for repeats in (flow.tensor([1, -1, 2]), flow.tensor([-1]), flow.tensor(-1), -1, np.int64(-1)):
        with pytest.raises(ValueError, match="repeats is -1, but it must not be negative"):
            x.repeat_interleave(repeats, 1)
    for mode, width in (("reflect", 3), ("circular", 4), ("odd", 1)):
        with pytest.raises(ValueError, match=r"pad\(\): mode"):
            F.pad(x, (width, 0), mode)


def test_only_integers_say_how_often():
    x = flow.arange(6).view(2, 3)
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        for repeats in ([1, 0, 2], [2], 2):
            given = flow.tensor(repeats, dtype=getattr(flow, dtype))
            want = np.repeat(x.numpy(), repeats, 1)
            assert x.repeat_interleave(given, 1).tolist() == want.tolist()
    assert x.repeat_interleave(np.int8(2), 0).tolist() == np.repeat(x.numpy(), 2, 0).tolist()
    assert x.repeat_interleave(0, 0).shape == (0, 3)
    for dtype in ("float32", "bfloat16", "bool"):
        for repeats in ([1, 0, 2], [2], 2):
            given = flow.tensor(repeats).to(getattr(flow, dtype))
            with pytest.raises(flow.DTypeError, match=f"repeats has dtype {dtype}, but it must be"):
                x.repeat_interleave(given, 1)
        with pytest.raises(flow.DTypeError, match=f"repeats has dtype {dtype}"):
            flow.repeat_interleave(flow.ones(3).to(getattr(flow, dtype)))
    for repeats in (2.5, 2.0, True, "2", np.float32(2), np.bool_(True), [1, 2]):
        kind = type(repeats).__name__
        with pytest.raises(
            TypeError, match=rf"argument 'repeats' must be int, not (numpy.)?{kind}"
        ):
            x.repeat_interleave(repeats, 1)


def test_triangles_of_very_many_rows_take_no_time_for_those_without_elements():
    many = 1 << 40
    assert flow.triu_indices(many, 3).tolist() == np.stack(np.triu_indices(3)).tolist()
    assert flow.tril_indices(many, 3, 1 - many).tolist() == [[many - 1], [0]]
    assert flow.tril_indices(many, 0).shape == (2, 0)
    with pytest.raises(flow.OutOfMemoryError, match=r"tril_indices\(\)"):
        flow.tril_indices(many, 2)
    with pytest.raises(ValueError, match="has 2\\^60 elements or more"):
        flow.triu_indices(1 << 62, 1 << 62, -(1 << 62))


def test_split_and_joined_as_in_numpy():
    x = flow.tensor(X)
    for cuts in (1, 2, 3, 5, [1, 3], [0, 9, 2], [-1]):
        for dim in (0, 1, -1):
            got = flow.tensor_split(x, cuts, dim)
            expected = np.array_split(X, cuts, dim)
            for mine, numpys in zip(got, expected, strict=True):
                np.testing.assert_array_equal(host(mine), numpys)
    assert x.tensor_split(2)[0].data_ptr() == x.data_ptr()
    np.testing.assert_array_equal(host(x.fliplr()), np.fliplr(X))
    np.testing.assert_array_equal(host(x.flipud()), np.flipud(X))
    columns = flow.column_stack((x, x[:, 0]))
    np.testing.assert_array_equal(host(columns), np.column_stack((X, X[:, 0])))
    assert flow.atleast_1d(flow.tensor(1)).shape == (1,) and flow.atleast_2d(x[0]).shape == (1, 4)
    assert flow.atleast_2d(flow.tensor(1)).shape == (1, 1) and flow.ravel(x).shape == (12,)
    for rows, cols, offset in ((3, 4, 0), (4, 2, -1), (2, 3, 1)):
        expected = np.stack(np.tril_indices(rows, offset, cols))
        assert flow.tril_indices(rows, cols, offset).tolist() == expected.tolist()
        expected = np.stack(np.triu_indices(rows, offset, cols))
        assert flow.triu_indices(rows, cols, offset).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="0 sections"):
        x.tensor_split(0)


def test_group_norm_without_a_bias():
    m = flow.nn.GroupNorm(2, 4, bias=False)
    assert m.bias is None and [n for n, _ in m.named_parameters()] == ["weight"]
    assert m(flow.randn(2, 4, 3)).shape == (2, 4, 3)


@pytest.mark.parametrize("weight_dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rms_norm_takes_a_weight_of_any_float(dtype, weight_dtype, device):
    x = tensor(WIDE, dtype, device).requires_grad_()
    weight = tensor(WIDE[0], weight_dtype, device).requires_grad_()
    y = F.rms_norm(x, (17,), weight, 1e-6)
    y.backward(flow.ones_like(y))
    rows = host(x)
    normal = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-6)
    bound = (
        2e-2 if "float16" in (dtype, weight_dtype) or "bfloat16" in (dtype, weight_dtype) else 1e-5
    )
    np.testing.assert_allclose(host(y), normal * host(weight), rtol=bound, atol=bound)
    np.testing.assert_allclose(host(weight.grad), normal.sum(0), rtol=bound, atol=bound * 4)
    assert y.dtype is x.dtype and weight.grad.dtype is weight.dtype
    s, r = flow.add_rms_norm(x.detach(), x.detach(), (17,), weight.detach(), 1e-6)
    assert s.dtype is x.dtype and math.isfinite(r.sum().item())


def test_gradients_of_another_dtype_are_cast():
    x = flow.tensor(X, dtype=flow.float32, requires_grad=True)
    (x * 2).backward(flow.tensor(Y))
    np.testing.assert_allclose(host(x.grad), 2 * Y, rtol=1e-6)
    (given,) = flow.autograd.grad(x * 2, x, flow.ones(3, 4, dtype=flow.int64))
    assert given.dtype is flow.float32 and given[0, 0].item() == 2
    with pytest.raises(flow.ShapeError):
        (x * 2).backward(flow.ones(3, dtype=flow.float64))


def test_statistics_of_no_elements():
    assert math.isnan(flow.zeros(0).median().item())
    with pytest.raises(
        flow.ShapeError, match=r"quantile\(\): there are no elements: shape \[2, 0\]"
    ):
        flow.zeros(2, 0).quantile(0.5, 1)


def test_deviation_and_mean_take_the_arguments_of_std():
    x = flow.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 6.0]])
    for pair, one in ((flow.std_mean, flow.std), (flow.var_mean, flow.var)):
        for arguments in ((1,), (1, False), (0, True, True)):
            spread, mean = pair(x, *arguments)
            assert flow.equal(spread, one(x, *arguments))
            assert flow.equal(mean, x.mean(arguments[0], *arguments[2:]))
        assert flow.equal(pair(x, 1, correction=0)[0], one(x, 1, False))


def test_what_pytorch_programs_ask_about_dtypes():
    assert flow.get_default_dtype() is flow.tensor(1.0).dtype is flow.float32
    assert flow.is_complex(flow.ones(1)) is False


def test_a_star_import_leaves_slice_alone():
    names = {}
    exec("from oneflow_lite import *", names)
    assert "slice" not in names and "softmax" in names


def test_the_median_with_nan():
    nan = math.nan
    x = flow.tensor([[1.0, nan, 3.0, nan], [4.0, 3.0, 2.0, 1.0], [nan] * 4], requires_grad=True)
    values, places = x.median(1)
    assert math.isnan(values[0]) and values[1].item() == 2 and math.isnan(values[2])
    assert places.tolist() == [1, 2, 0]
    assert math.isnan(x.median())
    values, places = x.nanmedian(1, keepdim=True)
    assert values.shape == (3, 1) and values[:2, 0].tolist() == [1, 2] and math.isnan(values[2])
    assert places.tolist() == [[0], [2], [0]]
    assert x.nanmedian().item() == 2
    x.nanmedian(1)[0][:2].sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert flow.tensor([5, 1, 4]).nanmedian().item() == 4
    assert math.isnan(flow.zeros(0).nanmedian())


def test_a_bool_alone_says_whether_a_variance_is_unbiased(device):
    x = tensor(X, "float64", device)
    for unbiased in (True, False):
        var = X.var(ddof=int(unbiased))
        for got, expected in (
            (flow.var(x, unbiased), var), (x.var(unbiased), var),
            (flow.std(x, unbiased), var**0.5), (x.std(unbiased), var**0.5),
            (flow.var_mean(x, unbiased)[0], var), (flow.std_mean(x, unbiased)[0], var**0.5),
            (flow.var_mean(x, unbiased)[1], X.mean()), (flow.std_mean(x, unbiased)[1], X.mean()),
        ):  # fmt: skip
            np.testing.assert_allclose(got.item(), expected, rtol=1e-12)
    np.testing.assert_allclose(host(x.var(1, False, True)), X.var(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(host(flow.var(x, axis=0)), X.var(0, ddof=1), rtol=1e-12)
    out = flow.empty(0, dtype=flow.float64, device=device)
    assert flow.std(x, False, out=out) is out and out.item() == x.std(False).item()
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        flow.var([1.0, 2.0])
    with pytest.raises(TypeError, match="dim"):
        x.var(True, True)
