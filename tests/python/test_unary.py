# SPDX-License-Identifier: Apache-2.0
"""Functions of one element over all their inputs: every 16-bit float, float32 in steps through its
bit patterns, float64 at random; forms in place, names, what is saved.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from numerics import FLOATS, HALVES, INTEGERS, bits, flow, half_step, host, rounded, tensor, ulp
from op_table_unary import each, np_logit, quiet


def guarded(function, beyond=math.nan):
    """Python's function, which raises where IEEE 754 has NaN or infinity."""

    def call(x):
        try:
            return function(x)
        except ValueError:
            return math.nan if not math.isinf(x) else beyond
        except OverflowError:
            return math.inf

    return each(call)


def np_lgamma(x):
    poles = (x <= 0) & (x == np.floor(x)) | np.isinf(x)
    return np.where(poles, np.inf, guarded(math.lgamma)(np.where(poles, 1.0, x)))


def np_sinc(x):
    n = np.rint(x)  # x - n is exact; sin(pi n) is 0, and sin(pi x) changes its sign with each n
    sine = np.sin(np.pi * (x - n)) * np.where(np.fmod(n, 2) == 0, 1, -1)
    return np.where(x == 0, 1.0, sine / (np.pi * np.where(x == 0, 1, x)))


def np_logit_exact(x):
    centred = 2 * x - 1  # exact between 1/4 and 3/4, where the ratio is near 1
    inside = np.abs(centred) <= 0.5
    return np.where(inside, 2 * np.arctanh(np.where(inside, centred, 0)), np_logit(x))


def digamma(x):
    if x == 0 or x != x or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.copysign(math.inf, -x) if x == 0 else math.nan
    if x == math.inf:
        return x
    if x < 0:
        rest = x - round(x)
        return digamma(1 - x) - math.pi / math.tan(math.pi * rest)
    terms = []
    while x < 30:
        terms.append(-1 / x)
        x += 1
    r = 1 / (x * x)
    return math.fsum(
        [
            *terms,
            math.log(x),
            -0.5 / x,
            -r / 12,
            r * r / 120,
            -(r**3) / 252,
            r**4 / 240,
            -(r**5) / 132,
        ]
    )


def erfinv(x):
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) < 1e-5:
        return x * (math.sqrt(math.pi) / 2) * (1 + math.pi * x * x / 12)
    y = NormalDist().inv_cdf((1 - abs(x)) / 2) / -math.sqrt(2)
    for _ in range(2):
        off = math.erf(y) - abs(x) if y < 0.5 else (1 - abs(x)) - math.erfc(y)
        y -= off * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


def np_i0(x):
    size = np.abs(x)
    inside = np.where(size < 700, size, 0.0)
    far = np.exp(size / 2) * (np.exp(size / 2) / np.sqrt(2 * np.pi * np.maximum(size, 1)))
    far = np.where(np.isinf(size), size, far * (1 + 1 / (8 * np.maximum(size, 1))))
    return np.where(size < 700, np.i0(inside), far)


# name: NumPy's function in float64, the units in the last place allowed, an absolute error near
# zeros of the result.
REFERENCES = {
    "acos": (np.arccos, 4, 0), "acosh": (np.arccosh, 4, 0), "asin": (np.arcsin, 4, 0),
    "asinh": (np.arcsinh, 4, 0), "atan": (np.arctan, 4, 0), "atanh": (np.arctanh, 4, 0),
    "ceil": (np.ceil, 0, 0), "cos": (np.cos, 4, 0), "cosh": (np.cosh, 4, 0),
    "deg2rad": (np.deg2rad, 1, 0), "digamma": (each(digamma), 8, 1e-6),
    "erf": (each(math.erf), 4, 0), "erfc": (each(math.erfc), 4, 0),
    "erfinv": (each(erfinv), 4, 0), "exp": (np.exp, 4, 0), "exp2": (np.exp2, 4, 0),
    "expm1": (np.expm1, 4, 0), "floor": (np.floor, 0, 0),
    "frac": (lambda x: x - np.trunc(x), 0, 0), "i0": (np_i0, 8, 0), "lgamma": (np_lgamma, 8, 1e-6),
    "log": (np.log, 4, 0), "log10": (np.log10, 4, 0), "log1p": (np.log1p, 4, 0),
    "log2": (np.log2, 4, 0), "logit": (np_logit_exact, 4, 0), "rad2deg": (np.rad2deg, 1, 0),
    "reciprocal": (lambda x: 1 / x, 1, 0), "round": (np.rint, 0, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 4, 0), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 4, 0),
    "sign": (lambda x: np.sign(np.nan_to_num(x)), 0, 0),
    "sin": (np.sin, 4, 0), "sinc": (np_sinc, 4, 0),
    "sinh": (np.sinh, 4, 0), "sqrt": (np.sqrt, 1, 0), "square": (np.square, 1, 0),
    "tan": (np.tan, 4, 0), "tanh": (np.tanh, 4, 0), "trunc": (np.trunc, 0, 0),
}  # fmt: skip
TRUTHS = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf,
    "isneginf": np.isneginf, "signbit": np.signbit, "logical_not": np.logical_not,
}  # fmt: skip
SLOW = {"digamma", "erfinv", "lgamma"}  # whose references are Python
by_name = pytest.mark.parametrize("name", REFERENCES)


def all_16_bits(dtype):
    raw = np.arange(65536, dtype=np.uint16)
    if dtype == "float16":
        return flow.tensor(raw.view(np.float16))
    wide = (raw.astype(np.uint32) << 16).view(np.float32)
    return flow.tensor(wide).to(flow.bfloat16)


def compare(name, got, x, dtype, units, absolute, step):
    """got against the float64 reference at x: within so many units of float32 (float64), and for 16
    bits within `step` of their own besides."""
    reference = quiet(REFERENCES[name][0])
    want = reference(x)
    with np.errstate(all="ignore"):
        nearest = rounded(want, dtype)
        exact = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
        fine = "float64" if dtype == "float64" else "float32"
        error = units * ulp(want, fine) + step * ulp(want, dtype)
        close = np.abs(got - want) <= np.maximum(error, absolute + (error if step else 0))
        # Beside the largest number an error of the last place decides between it and infinity.
        largest = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38}
        edge = np.isinf(got) & (np.abs(want) > largest.get(dtype, 1.79769e308))
    wrong = ~(exact | close | edge & (units > 0))
    assert not wrong.any(), [*zip(x[wrong][:5], got[wrong][:5], want[wrong][:5], strict=True)]


@by_name
@pytest.mark.parametrize("dtype", HALVES)
def test_every_16_bit_float(name, dtype, device):
    x = all_16_bits(dtype).to(device)
    _, units, absolute = REFERENCES[name]
    step = half_step(device)
    compare(name, host(getattr(flow, name)(x)), host(x), dtype, units, absolute, step)


@by_name
def test_float32_through_its_bit_patterns(name, device):
    raw = np.arange(0, 2**32, 4099 * (16 if name in SLOW else 1), dtype=np.uint32)
    x = flow.tensor(raw.view(np.float32)).to(device)
    _, units, absolute = REFERENCES[name]
    compare(name, host(getattr(flow, name)(x)), host(x), "float32", units, absolute, 0)


# NumPy's and Python's functions are off by up to one unit themselves; i0's by more.
OFF_THEMSELVES = {"i0": 8, "digamma": 8, "sinc": 4, "sigmoid": 4, "erfinv": 8}


@by_name
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_float64(name, scale, device):
    rng = np.random.default_rng(5)
    values = rng.uniform(-scale, scale, 2000)
    x = flow.tensor(np.concatenate([values, values * 1e-9, [0.0, -0.0, np.inf, -np.inf, np.nan]]))
    _, units, absolute = REFERENCES[name]
    units = max(units, OFF_THEMSELVES.get(name, 0)) + (units > 0)
    compare(name, host(getattr(flow, name)(x.to(device))), host(x), "float64", units,
            absolute * 1e-8, 0)  # fmt: skip


@pytest.mark.parametrize("name", TRUTHS)
def test_truths(name, device):
    for dtype in HALVES:
        x = all_16_bits(dtype)
        if (name, device) == ("signbit", "cuda"):  # a GPU's conversion gives every NaN one sign
            x = x[~x.isnan()]
        got = host(getattr(flow, name)(x.to(device)))
        np.testing.assert_array_equal(got, TRUTHS[name](host(x)))
    raw = np.arange(0, 2**32, 4099, dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45], np.float32)
    for x in (raw, special, special.astype(float), np.arange(-3, 3), np.array([True, False])):
        got = getattr(flow, name)(flow.tensor(x).to(device))
        assert got.dtype is flow.bool
        with np.errstate(invalid="ignore"):  # signalling NaNs
            want = TRUTHS[name](x if x.dtype == np.float32 else x.astype(float))
        np.testing.assert_array_equal(host(got), want)


IN_PLACE = sorted({*REFERENCES, "abs", "neg", "frac", "nan_to_num", "logical_not", "sgn",
                   "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"})  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_and_out(name, device):
    for dtype in FLOATS:
        x = tensor([[0.25, -0.5, 0.75], [-0.0, 1.5, math.nan]], dtype, device)
        want = getattr(flow, name)(x)
        out = flow.empty_like(want)
        assert getattr(flow, name)(x, out=out) is out and bits(out) == bits(want)
        y = x.clone()
        assert getattr(y, f"{name}_")() is y
        assert bits(y) == bits(want.to(y.dtype))


def test_aliases_and_numbers():
    x = flow.tensor([-0.5, 0.25])
    for alias, name in {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
                        "arctanh": "atanh", "sgn": "sign"}.items():  # fmt: skip
        assert bits(getattr(flow, alias)(x)) == bits(getattr(flow, name)(x))
        assert bits(getattr(x, alias)()) == bits(getattr(flow, name)(x))
    assert bits(flow.arccosh(x + 3)) == bits(flow.acosh(x + 3))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, device):
    x = tensor([0, 1, 2, 100], dtype, device)
    for name in ("ceil", "floor", "trunc", "round", "nan_to_num"):
        y = getattr(flow, name)(x)
        assert y.dtype is x.dtype and bits(y) == bits(x) and y.data_ptr() != x.data_ptr()
    for name in ("sin", "exp2", "lgamma", "logit", "reciprocal", "deg2rad"):
        y = getattr(flow, name)(x)
        assert y.dtype is flow.float32 and bits(y) == bits(getattr(flow, name)(x.float()))
    assert flow.frac(x).tolist() == [0, 0, 0, 0] and flow.frac(x).dtype is x.dtype
    assert flow.sign(x).tolist() == [0, 1, 1, 1] and (~(~x)).tolist() == x.tolist()
    least = flow.iinfo(x.dtype).min
    wrapped = np.square(np.array([least, 3], dtype)).tolist()
    assert flow.square(flow.tensor([least, 3], dtype=x.dtype, device=device)).tolist() == wrapped


def test_round_to_decimals(device):
    values = np.array([0.05, -0.05, 1.25, 123.456, -123.456, 1e300, np.inf, -np.inf, np.nan, -0.0])
    x = flow.tensor(values).to(device)
    for decimals in (-400, -2, -1, 1, 2, 3, 300, 400):
        got = host(flow.round(x, decimals=decimals))
        if abs(decimals) < 300:
            with np.errstate(all="ignore"):
                want = np.round(values, decimals)
            want = np.where(np.isinf(values * 10.0 ** abs(decimals)), values, want)
        else:
            want = np.where(np.isfinite(values), values if decimals > 0 else 0.0, values)
        np.testing.assert_allclose(got, want, rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(values))
    assert bits(x.clone().round_(decimals=1)) == bits(flow.round(x, decimals=1))


def test_nan_to_num_of_the_dtypes_own_numbers(device):
    for dtype in FLOATS:
        x = tensor([math.nan, math.inf, -math.inf, 1.5], dtype, device)
        kind = flow.finfo(x.dtype)
        assert flow.nan_to_num(x).tolist() == [0, kind.max, kind.min, 1.5]
        assert x.nan_to_num(1, 2, neginf=3).tolist() == [1, 2, 3, 1.5]
        x.requires_grad_()
        flow.nan_to_num(x).sum().backward()
        assert x.grad.tolist() == [0, 0, 0, 1]


# What backward keeps: the output where that suffices.
SAVED = {
    "output": ("exp", "exp2", "expm1", "sqrt", "rsqrt", "tanh", "sigmoid", "reciprocal", "tan",
               "erfinv"),
    "input": ("abs", "log", "log1p", "log2", "log10", "sin", "cos", "sinh", "cosh", "asin", "acos",
              "atan", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "digamma", "i0", "sinc",
              "square", "logit"),
    "nothing": ("neg", "ceil", "floor", "round", "trunc", "frac", "sign", "deg2rad", "rad2deg"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAVED)
def test_what_is_saved(what):
    kept = []

    def pack(t):
        kept.append(t.data_ptr())
        return t

    for name in SAVED[what]:
        x = flow.tensor([0.25, 0.5], requires_grad=True)
        kept.clear()
        with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = getattr(flow, name)(x + 0)
        assert len(kept) == (0 if what == "nothing" else 1), name
        assert (y.data_ptr() in kept) == (what == "output"), name


@pytest.mark.parametrize("name", [n for names in SAVED.values() for n in names])
def test_gradients_of_an_expanded_and_of_a_dense_seed(name, device):
    for dtype in FLOATS:
        x = tensor(np.linspace(0.1, 0.9, 700), dtype, device)
        x = (x + 1 if name == "acosh" else x).requires_grad_()
        y = getattr(flow, name)(x)
        (by_sum,) = flow.autograd.grad(y.sum(), x)
        (by_ones,) = flow.autograd.grad(getattr(flow, name)(x), x, flow.ones_like(y))
        assert bits(by_sum) == bits(by_ones)


def test_slopes_of_large_numbers(device):
    x = flow.tensor([1e30, -1e30], device=device, requires_grad=True)
    flow.asinh(x).sum().backward()
    np.testing.assert_allclose(host(x.grad), [1e-30, 1e-30], rtol=1e-6)
    x = flow.tensor([1e30], device=device, requires_grad=True)
    flow.acosh(x).sum().backward()
    np.testing.assert_allclose(host(x.grad), [1e-30], rtol=1e-6)
    x = flow.tensor([-3.0, -2.0, 0.0, math.inf], device=device)
    assert flow.lgamma(x).tolist() == [math.inf] * 4
    assert flow.sinc(flow.tensor([math.inf], device=device)).isnan().all()


def test_all_derivatives_of_log_gamma():
    x = flow.tensor([0.5, 2.5], dtype=flow.float64, requires_grad=True)
    slope = flow.digamma(x)
    for n in range(1, 5):
        (slope,) = flow.autograd.grad(slope.sum(), x, create_graph=True)
        np.testing.assert_allclose(host(slope), host(flow.polygamma(n, x.detach())), rtol=1e-13)
