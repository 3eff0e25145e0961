# SPDX-License-Identifier: Apache-2.0
"""flow.fuse: values and gradients."""

import itertools
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


# Rows of whole packs: in half, packs of 8 columns, up to 6, 32, 64 and 192 of them in 4, 8, 16 and
# 32 lanes; up to 1024 in one block with 4 a thread; then in clusters, where a cheap load is
# computed twice and its row waits in shared memory: up to 8192 packs in the smaller of two blocks,
# beyond in 8 blocks or 16. Two operands for all rows, or one and a norm's weights, go with two rows
# at once: up to 8192 packs with 4 a thread, up to 16384 with 8 and beyond in blocks twice as large,
# but layer_norm's three only to 8192. There are more rows than are taken for few, mostly an odd
# number of them.
WHOLE = [8, 48, 56, 256, 264, 512, 520, 1536, 1544, 4096, 8192, 8200, 16384, 16392, 32768, 65544]
WIDEST = [100352, 131072, 163848, 262144]
AROUND = {
    # name: (load, store, the same for arrays, forms of the operands of each)
    "row": (lambda x, s, b: x * s + b, None, None, None, ("number", "row"), ()),
    "rows": (lambda x, r, b: x * r + b, None, None, None, ("row", "row"), ()),
    "row after": (lambda x, s: x * s, lambda y, b: y * fuse.sigmoid(y) + b,
                  None, lambda y, b: y / (1 + np.exp(-y)) + b, ("number",), ("row",)),
    "matrix": (lambda x, r: x + r, lambda y, g: y * g, None, None, ("full",), ("column",)),
    "mask": (lambda x, k: fuse.where(k, x, -3.0), lambda y, r: y - r,
             lambda x, k: np.where(k, x, -3.0), None, ("mask",), ("full",)),
}  # fmt: skip


def check_around(device, base, name, width, dtype):
    load, store, of_arrays, store_of_arrays, *forms = AROUND[name]
    rows = 301 if width < 10000 else 3_000_000 // width
    shapes = {"full": (rows, width), "row": (width,), "mask": (width,), "column": (rows, 1)}

    def made(form):
        if form == "number":
            return 0.75
        values = RNG.normal(size=shapes[form])
        return tensor(*((values < 0.5, "bool") if form == "mask" else (values, dtype)), device)

    x, before, after = made("full"), list(map(made, forms[0])), list(map(made, forms[1]))
    weights = {}
    if base.endswith("norm") and name == "row":
        weights = {n: made("row") for n in ("weight", "bias") if base[0] == "l" or n[0] == "w"}
    op = getattr(fuse, base)(load=load, store=store)
    y = op(x, *before, *after, **options(base, width), **weights)
    first, *rest = (v if isinstance(v, float) else host(v) for v in (x, *before, *after))
    want = BASES[base]((of_arrays or load)(first, *rest[: len(before)]))
    if weights:
        want = want * host(weights["weight"])
    if "bias" in weights:
        want = want + host(weights["bias"])
    if store:
        want = (store_of_arrays or store)(want, *rest[len(before) :])
    check(y, want, dtype, scale=8.0 if dtype == "float32" else 2.0)


@pytest.mark.parametrize("name, width", [
    *itertools.product(AROUND, WHOLE), *itertools.product(["row", "rows", "row after"], WIDEST)
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_of_whole_packs(device, base, name, width):
    if device == "cpu" and width > 1032:
        pytest.skip("the CPU has no tiers")
    for dtype in ("float16", "bfloat16", "float32") if device == "cuda" else ("float32",):
        check_around(device, base, name, width, dtype)


# Packs of 2 columns: up to 192 in the lanes of a warp, 2048 in a block of 8 a thread, then in
# clusters of such, and of 16 a thread.
@pytest.mark.parametrize("name, width", [
    *itertools.product(AROUND, [384, 4096]), *itertools.product(["row"], [8, 386, 4098, 131072]),
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_of_whole_packs_of_doubles(device, base, name, width):
    if device == "cpu" and width > 1032:
        pytest.skip("the CPU has no tiers")
    check_around(device, base, name, width, "float64")


# Rows whose ends lie inside packs: without their first and last one at least 28 packs, up to 192 in
# a warp, then as rows of whole packs.
ODD = [121, 239, 243, 1001, 1559, 1563, 4097, 16389, 50257, 131075]


@pytest.mark.parametrize("name, width", [
    *itertools.product(["row"], ODD), *itertools.product(AROUND, [1003, 4099, 16386])
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_that_end_inside_packs(device, base, name, width):
    if device == "cpu" and width > 1032:
        pytest.skip("the CPU has no tiers")
    for dtype in ("float16", "float32", "float64") if device == "cuda" else ("float32",):
        if dtype != "float64" or width < 20000:
            check_around(device, base, name, width, dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_operands_that_lie_otherwise_than_the_rows(device, dtype):
    op = fuse.softmax(
        load=lambda x, bias, of_head, keep: fuse.where(keep, x + bias + of_head, -math.inf),
        store=lambda y, gain: y * gain,
    )
    for width in (1024, 1025, 4099) if device == "cuda" else (33,):
        x = tensor(RNG.normal(size=(7, 3, width)), dtype, device)
        of_head = tensor(RNG.normal(size=(3, width)), "float16", device)
        keep = tensor(RNG.random((7, 1, width)) < 0.6, "bool", device)
        bias = tensor(RNG.normal(size=width + 3), dtype, device)[3:]
        gain = tensor(RNG.normal(size=width + 1), "float32", device)[1:]
        z = np.where(host(keep), host(x) + host(bias) + host(of_head), -np.inf)
        y = op(x, bias, of_head, keep, gain, dim=-1)
        check(y, softmax(z) * host(gain), dtype)


def test_corners_of_rows_of_whole_packs(device):
    x = RNG.normal(size=(5, 1024))
    x[0], x[1, ::2], x[2, 5], x[3, 7] = -math.inf, -math.inf, math.inf, math.nan
    x = tensor(x, "float32", device)
    op = fuse.softmax(load=lambda x, b: x + b)
    got = host(op(x, flow.zeros(1024, device=device), dim=-1))
    assert np.isnan(got[[0, 2, 3]]).all()
    assert (got[1, ::2] == 0).all()
    check(tensor(got[[1, 4]], "float32"), softmax(host(x)[[1, 4]]), "float32")
    far = tensor(1e4 + 1e-3 * RNG.normal(size=(3, 4096)), "float32", device)
    got = fuse.layer_norm(load=lambda x, b: x + b)(
        far, flow.zeros(4096, device=device), normalized_shape=4096, eps=1e-12
    )
    np.testing.assert_allclose(host(got), layer_norm(host(far), 1e-12), atol=2e-3)


@pytest.mark.parametrize("width", [16384, 16387])
def test_corners_of_wide_rows(device, width):
    # By the largest of some values: others far above it, none, and all of them far off.
    op = fuse.softmax(load=lambda x, b: x + b)
    x, zeros = RNG.normal(size=(190, width)), flow.zeros(width, dtype=flow.float16, device=device)
    x[0], x[1, :5000], x[2, 16000], x[3, 9000] = -math.inf, -math.inf, math.inf, math.nan
    x[4, 5000::7] += 30
    x[5] *= 40
    x[6] += 3e4
    x[7, ::3] = 65504
    x[8, 20:] -= 6e4
    x = tensor(x, "float16", device)
    got = host(op(x, zeros, dim=-1))
    assert np.isnan(got[[0, 2, 3]]).all()
    rest = [1, *range(4, 190)]
    check(tensor(got[rest], "float16"), softmax(host(x)[rest]), "float16")
    two = fuse.softmax(load=lambda x, r, b: x * r + b)  # two rows at once
    ones = flow.ones(width, dtype=flow.float16, device=device)
    got = host(two(x[1:], ones, zeros, dim=-1))
    assert np.isnan(got[[1, 2]]).all()
    check(tensor(got[3:], "float16"), softmax(host(x)[4:]), "float16")
    log = fuse.log_softmax(load=lambda x, b: x + b)
    got = host(log(x, zeros, dim=-1))
    assert np.isnan(got[[0, 2, 3]]).all() and np.isneginf(got[1, :5000]).all()
    check(tensor(got[4:], "float16"), BASES["log_softmax"](host(x)[4:]), "float16")


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
