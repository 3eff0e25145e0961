# SPDX-License-Identifier: Apache-2.0
"""flow.fuse: values and gradients."""

import math

import numpy as np
import pytest
from numerics import FLOATS, HALVES, host, tensor

flow = pytest.importorskip("oneflow_lite")

fuse = flow.fuse
RNG = np.random.default_rng(11)


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(z):
    d = z - z.max(-1, keepdims=True)
    return d - np.log(np.exp(d).sum(-1, keepdims=True))


def layer_norm(z, eps=1e-5):
    d = z - z.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + eps)


def rms_norm(z, eps=1e-5):
    return z / np.sqrt((z * z).mean(-1, keepdims=True) + eps)


BASES = {"softmax": softmax, "log_softmax": log_softmax, "layer_norm": layer_norm,
         "rms_norm": rms_norm}  # fmt: skip


def options(base, width):
    return {"dim": -1} if "softmax" in base else {"normalized_shape": width, "eps": 1e-5}


def check(t, want, dtype, scale=1.0):
    """One rounding of the dtype beyond float32's error."""
    bound = {"float64": 1e-12, "float32": 8e-6, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    got = host(t)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=bound, atol=bound * scale)


# ---- values


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("base", BASES)
def test_load_and_store(device, base, dtype):
    op = getattr(fuse, base)(
        load=lambda x, shift, scale: x * scale + shift,
        store=lambda y, gain, x: y * gain + fuse.tanh(x),
    )
    x, bias, gain = RNG.normal(size=(5, 33)), RNG.normal(size=33), RNG.normal(size=(5, 1))
    t = [tensor(v, dtype, device) for v in (x, bias, gain)]
    x, bias, gain = map(host, t)
    y = op(t[0], t[1], 0.5, t[2], **options(base, 33))
    assert y.dtype is t[0].dtype and y.device == t[0].device
    check(y, BASES[base](x * 0.5 + bias) * gain + np.tanh(x), dtype, scale=4.0)


@pytest.mark.parametrize("base", ["softmax", "layer_norm"])
def test_load_or_store_alone_or_neither(device, base):
    x = tensor(RNG.normal(size=(3, 8)), "float64", device)
    given = options(base, 8)
    want = BASES[base](host(x))
    make = getattr(fuse, base)
    check(make()(x, **given), want, "float64")
    check(make(load=lambda v: v / 2)(x, **given), BASES[base](host(x) / 2), "float64")
    check(make(store=lambda y: 1 - y)(x, **given), 1 - want, "float64")


@pytest.mark.parametrize("dim", [0, 1, 2, -1, None])
def test_any_dim(device, dim):
    x = tensor(RNG.normal(size=(3, 4, 5)), "float32", device)
    z = 2 * host(x)
    axis = 0 if dim is None else dim
    want = np.moveaxis(softmax(np.moveaxis(z, axis, -1)), -1, axis)
    check(fuse.softmax(load=lambda x: 2 * x)(x, dim=dim), want, "float32")


BROADCASTS = [(), (1,), (7,), (4, 7), (4, 1), (3, 4, 7), (3, 1, 7), (3, 1, 1), (3, 4, 1), (1, 4, 1)]


@pytest.mark.parametrize("shape", BROADCASTS, ids=str)
@pytest.mark.parametrize("base", ["log_softmax", "rms_norm"])
def test_broadcast(device, base, shape):
    x, b = (tensor(RNG.normal(size=s), "float32", device) for s in ((3, 4, 7), shape))
    op = getattr(fuse, base)(load=lambda x, b: x - b, store=lambda y, b: y * b)
    want = BASES[base](host(x) - host(b)) * host(b)
    check(op(x, b, **options(base, 7)), want, "float32", scale=8.0)


def test_operands_of_other_dtypes(device):
    x = tensor(RNG.normal(size=(4, 16)), "float16", device)
    keep = tensor(RNG.random((4, 16)) < 0.6, "bool", device)
    bias = tensor(RNG.normal(size=16), "float32", device)
    count = tensor(RNG.integers(0, 5, (4, 1)), "int64", device)
    op = fuse.softmax(
        load=lambda x, keep, bias: fuse.where(keep, x + bias, -math.inf),
        store=lambda y, count: y * count,
    )
    z = np.where(host(keep), host(x) + host(bias), -np.inf)
    y = op(x, keep, bias, count, dim=-1)
    assert y.dtype is flow.float16
    check(y, softmax(z) * host(count), "float16")
    wide = tensor(RNG.normal(size=16), "float64", device)  # computed in float64, given in float16
    y = op(x, keep, wide, count, dim=-1)
    z = np.where(host(keep), host(x) + host(wide), -np.inf)
    check(y, softmax(z) * host(count), "float16")


@pytest.mark.parametrize("layout", ["transposed", "odd offset", "padded", "expanded"])
def test_layouts(device, layout):
    base = tensor(RNG.normal(size=(9, 9)), "float16", device)
    x = {
        "transposed": lambda: base.t(),
        "odd offset": lambda: base.reshape(-1)[3:75].reshape(8, 9),
        "padded": lambda: base[:, :7],
        "expanded": lambda: base[:1].expand(5, 9),
    }[layout]()
    check(fuse.softmax(load=lambda x, y: x + y)(x, x, dim=-1), softmax(2 * host(x)), "float16")


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,), ()], ids=str)
def test_empty_and_zero_dims(device, shape):
    x = tensor(np.ones(shape), "float32", device)
    y = fuse.softmax(load=lambda x, b: x * 2 + b)(x, 1.0, dim=-1)
    assert y.shape == x.shape
    assert np.all(host(y) == 1)


@pytest.mark.parametrize("width", [1, 7, 32, 1024, 2048, 2049, 4097, 8192, 16384, 33000, 140001])
@pytest.mark.parametrize("rows", [3, 300])
def test_widths_around_every_tier(device, width, rows):
    if device == "cpu" and width > 2049:
        pytest.skip("the CPU has no tiers")
    rows = rows if width < 20000 else 3
    op = fuse.softmax(load=lambda x, b, s: x * s + b, store=lambda y, s: y * s)
    for dtype in ("float16", "float32") if device == "cuda" else ("float32",):
        x, b = tensor(RNG.normal(size=(rows, width)), dtype, device), tensor(
            RNG.normal(size=width), dtype, device)  # fmt: skip
        check(op(x, b, 0.5, dim=-1), 0.5 * softmax(host(x) * 0.5 + host(b)), dtype, scale=0.0625)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_half_is_rounded_once(dtype):
    x = tensor(RNG.normal(size=(4, 50)), dtype)
    op = fuse.softmax(load=lambda x: x * 1.7 + 0.3, store=lambda y: y * 3.3)
    exact = 3.3 * softmax(host(x) * 1.7 + 0.3)
    rounded = host(tensor(exact, dtype))
    if dtype in HALVES:
        assert np.mean(host(op(x, dim=-1)) == rounded) > 0.98
    check(op(x, dim=-1), exact, dtype)


WHERE = flow.where  # as `from oneflow_lite import where` has it
FUNCTIONS = {
    "abs": (lambda x: abs(x), np.abs),
    "exp": (lambda x: flow.exp(x), np.exp),
    "log": (lambda x: fuse.log(x * x + 3), lambda x: np.log(x * x + 3)),
    "sqrt": (lambda x: fuse.sqrt(x * x + 3), lambda x: np.sqrt(x * x + 3)),
    "rsqrt": (lambda x: fuse.rsqrt(x * x + 3), lambda x: 1 / np.sqrt(x * x + 3)),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "1 + tanh": (lambda x: x * (1 + x.tanh()) - (x.tanh() + 1),
                 lambda x: (x - 1) * (1 + np.tanh(x))),
    "relu": (lambda x: x.relu(), lambda x: np.maximum(x, 0)),
    "maximum": (lambda x: fuse.maximum(x, 0.3), lambda x: np.maximum(x, 0.3)),
    "minimum": (lambda x: fuse.minimum(0.3, x), lambda x: np.minimum(x, 0.3)),
    "where": (lambda x: fuse.where(x > 0, x, 2.0), lambda x: np.where(x > 0, x, 2.0)),
    "arithmetic": (lambda x: -(3 - x) / (x + 4) * 2 - (1 / (x + 5)),
                   lambda x: -(3 - x) / (x + 4) * 2 - (1 / (x + 5))),
    "powers": (lambda x: x + x**2 - x**3 + x**5 / 9, lambda x: x + x**2 - x**3 + x**5 / 9),
    "comparisons": (lambda x: (x < 0) + 2 * (x >= 1) + 3 * (x <= 0.5) + (x != 2) + (x == 3),
                    lambda x: (x < 0) + 2.0 * (x >= 1) + 3 * (x <= 0.5) + (x != 2) + (x == 3)),
    "conditions": (lambda x: fuse.where(((x > 0) & ~(x > 1)) | (x < -1), x, 2.0),
                   lambda x: np.where(((x > 0) & ~(x > 1)) | (x < -1), x, 2.0)),
    "imported": (lambda x: WHERE(x > 0, x, 2.0), lambda x: np.where(x > 0, x, 2.0)),
    "constant": (lambda x: 2.5, lambda x: x * 0 + 2.5),
    "numpy numbers": (lambda x: np.float32(2) * x + np.float64(1), lambda x: 2 * x + 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(device, name):
    traced, reference = FUNCTIONS[name]
    x = tensor(RNG.normal(size=(6, 40)), "float32", device)
    check(fuse.softmax(load=traced)(x, dim=-1), softmax(reference(host(x))), "float32")
    want = reference(softmax(host(x)))
    check(fuse.softmax(store=traced)(x, dim=-1), want, "float32", scale=10.0)


def test_corner_values(device):
    x = tensor([[0.0, -0.0, math.inf, -math.inf, math.nan, 1.0]], "float32", device)
    for name in ("maximum", "minimum"):
        got = host(getattr(fuse, name)(x, 0.5))
        np.testing.assert_array_equal(got, getattr(np, name)(host(x), 0.5))
    chosen = fuse.where(x > 0.5, 1.0, x)
    np.testing.assert_array_equal(host(chosen), np.where(host(x) > 0.5, 1.0, host(x)))
    with np.errstate(all="ignore"):
        for name in ("abs", "exp", "log", "sqrt", "tanh"):
            got = host(getattr(fuse, name)(x))
            np.testing.assert_allclose(got, getattr(np, name)(host(x)), rtol=1e-6)
    np.testing.assert_allclose(host(fuse.sigmoid(x)), [[0.5, 0.5, 1, 0, np.nan, 0.7310586]],
                               rtol=1e-6)  # fmt: skip


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_relative_error_of_functions_of_packs(device, name):
    """Elements that share a reciprocal: of any sizes, beside ones that are not finite."""
    sizes = np.array([0.0, 1e-4, 0.1, 0.54, 0.56, 1.0, 9.0, 20.0, 43.0, 60.0, 85.0, np.inf, np.nan])
    values = np.resize(np.append(sizes, -sizes), 133)
    x = tensor([RNG.permutation(values) for _ in range(8)], "float32", device)
    op = fuse.softmax(load=lambda x: 0.0, store=lambda y, x: getattr(fuse, name)(x) + 0 * y)
    with np.errstate(over="ignore"):
        want = FUNCTIONS[name][1](host(x))
    np.testing.assert_allclose(host(op(x, dim=-1)), want, rtol=1e-5)


# ---- gradients


@pytest.mark.parametrize("base", BASES)
def test_gradients(device, base):
    op = getattr(fuse, base)(
        load=lambda x, shift, scale: x * scale + shift * x,
        store=lambda y, gain, x: y * gain + fuse.sigmoid(x) * y,
    )
    shapes = [(3, 5), (5,), (), (3, 1)]
    inputs = [tensor(RNG.normal(size=s), "float64", device).requires_grad_() for s in shapes]
    given = options(base, 5)

    def function(*inputs):
        return op(*inputs, **given)

    assert flow.autograd.gradcheck(function, inputs)
    assert flow.autograd.gradgradcheck(function, inputs)
    for alone in range(len(inputs)):  # each requires a gradient without the others
        some = [t.detach().requires_grad_(i == alone) for i, t in enumerate(inputs)]
        assert flow.autograd.gradcheck(function, some)


@pytest.mark.parametrize("base", ["layer_norm", "rms_norm"])
def test_gradients_of_weight_and_bias(device, base):
    op = getattr(fuse, base)(load=lambda x, s: x * s, store=lambda y: y * y)
    x, w, b = (tensor(RNG.normal(size=s), "float64", device).requires_grad_()
               for s in ((3, 5), (5,), (5,)))  # fmt: skip

    def function(x, w, b):
        named = {"weight": w, "bias": b} if base == "layer_norm" else {"weight": w}
        return op(x, 2.0, normalized_shape=5, **named)

    inputs = [x, w, b] if base == "layer_norm" else [x, w]
    whole = [*inputs, b][:3]
    assert flow.autograd.gradcheck(lambda *t: function(*[*t, whole[2]][:3]), inputs)
    assert flow.autograd.gradgradcheck(lambda *t: function(*[*t, whole[2]][:3]), inputs)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"comparisons", "constant"}))
def test_gradients_of_functions(device, name):
    op = fuse.softmax(load=FUNCTIONS[name][0])
    x = tensor(RNG.normal(size=(2, 4)), "float64", device).requires_grad_()
    assert flow.autograd.gradcheck(lambda x: op(x, dim=-1), [x])
    assert flow.autograd.gradgradcheck(lambda x: op(x, dim=-1), [x])


def test_a_gradient_has_its_operands_dtype_and_shape(device):
    op = fuse.softmax(load=lambda x, b: x + b, store=lambda y, b: y * y + b)
    x = tensor(RNG.normal(size=(4, 6)), "float16", device).requires_grad_()
    b = tensor(RNG.normal(size=6), "float32", device).requires_grad_()
    op(x, b, dim=-1).sum().backward()
    assert x.grad.dtype is flow.float16 and x.grad.shape == (4, 6)
    assert b.grad.dtype is flow.float32 and b.grad.shape == (6,)
