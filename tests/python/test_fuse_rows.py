# SPDX-License-Identifier: Apache-2.0
"""flow.fuse: values of rows around every kernel that serves them."""

import itertools
import math

import numpy as np
import pytest
from numerics import host, tensor
from test_fuse import BASES, RNG, check, layer_norm, options, softmax

flow = pytest.importorskip("oneflow_lite")

fuse = flow.fuse


# Rows of whole packs: in half, packs of 8 columns, up to 6, 32, 64 and 192 of them in 4, 8, 16 and
# 32 lanes; up to 1024 in one block with 4 a thread; then in clusters, where a cheap load is
# computed twice and its row waits in shared memory: up to 8192 packs in the smaller of two blocks,
# beyond in 8 blocks or 16. Two operands for all rows, or one and a norm's weights, go with two rows
# at once: up to 8192 packs with 4 a thread, up to 16384 with 8 and beyond in blocks twice as large,
# but layer_norm's three only to 8192. There are more rows than are taken for few, mostly an odd
# number of them. A costly load is computed once: from 1024 packs on half of the values wait in
# shared memory, and so do a norm's, and softmax's without operands, before a costly store.
WHOLE = [8, 48, 56, 256, 264, 512, 520, 1536, 1544, 4096, 4104, 8192, 8200, 16384, 16392, 32768,
         65544]  # fmt: skip
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
    "costly": (lambda x, b: (x + b) * fuse.sigmoid(x + b), None,
               lambda x, b: (x + b) / (1 + np.exp(-x - b)), None, ("row",), ()),
    "divided": (lambda x, c, s: (x - c) / s, lambda y, t: y / t, None, None,
                ("column", "number"), ("number",)),
    "gelu after": (None, lambda y: y * fuse.sigmoid(y * 1.702),
                   None, lambda y: y / (1 + np.exp(-1.702 * y)), (), ()),
}  # fmt: skip


def check_around(device, base, name, width, dtypes):
    if device == "cpu":
        if width > 1032:
            pytest.skip("the CPU has no tiers")
        dtypes = dtypes if dtypes == ["float64"] else ["float32"]
    for dtype in dtypes:
        check_dtype(device, base, name, width, dtype)


def check_dtype(device, base, name, width, dtype, rows=None):
    load, store, of_arrays, store_of_arrays, *forms = AROUND[name]
    rows = rows or (301 if width < 10000 else 3_000_000 // width)
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
    value = of_arrays or load
    want = BASES[base](value(first, *rest[: len(before)]) if value else first)
    if weights:
        want = want * host(weights["weight"])
    if "bias" in weights:
        want = want + host(weights["bias"])
    if store:
        want = (store_of_arrays or store)(want, *rest[len(before) :])
    check(y, want, dtype, scale=8.0 if dtype == "float32" else 2.0)


def in_turn(dtypes, base, name, width):
    """A kernel takes seconds to compile: a row of bias is tested in the first dtype and another,
    the rest in one, such that neighbours differ."""
    turn = list(BASES).index(base) + list(AROUND).index(name) + width // 8 % 7
    if name == "row":
        return [dtypes[0], dtypes[1 + turn % (len(dtypes) - 1)]]
    return [dtypes[turn % len(dtypes)]]


@pytest.mark.parametrize("name, width", [
    *itertools.product(AROUND, WHOLE),
    *itertools.product(["row", "rows", "row after", "costly"], WIDEST),
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_of_whole_packs(device, base, name, width):
    dtypes = in_turn(["float16", "float32", "bfloat16"], base, name, width)
    check_around(device, base, name, width, dtypes)


# float32 beyond 8192 columns goes in clusters: a cheap load is computed twice, in blocks of 128
# threads with 8 packs each up to 32768 columns, then of 256, or of up to 16 packs without operands
# beyond 131072 and beside softmax's from 32776 on; a costly one, or of several inputs, once, in up
# to 8 packs each up to 131072 columns and beyond in up to 16.
@pytest.mark.parametrize("name, width", [
    *itertools.product(["divided", "matrix", "costly", "gelu after"],
                       [8200, 24576, 98304, 147456, 196608, 262144]),
    *itertools.product(["row"], [32776, 81920, 98304, 131072, 180224, 229376]),
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_wide_rows_of_float32(device, base, name, width):
    check_around(device, base, name, width, ["float32"])


# Half beside operands, where 96 or 192 threads have up to 16 packs each.
@pytest.mark.parametrize(
    "name, width", [*itertools.product(["row", "rows"], [81920, 98304, 180224])]
)
@pytest.mark.parametrize("base", BASES)
def test_wide_rows_of_half(device, base, name, width):
    check_around(device, base, name, width, in_turn(["float16", "bfloat16"], base, name, width))


# Packs of 2 columns: up to 192 in the lanes of a warp, 2048 in a block of 8 a thread, then in
# clusters of such, and of 16 a thread.
@pytest.mark.parametrize("name, width", [
    *itertools.product(AROUND, [384, 4096]), *itertools.product(["row"], [8, 386, 4098, 131072]),
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_of_whole_packs_of_doubles(device, base, name, width):
    check_around(device, base, name, width, ["float64"])


# Rows whose ends lie inside packs. In half up to 8 packs go in packs of 4, up to 32, 64 and 194 in
# 8, 16 and 32 lanes, wider ones as rows of whole packs, by what is left without the first and last.
ODD = [1, 7, 33, 71, 73, 263, 265, 527, 529, 1001, 1559, 1563, 4097, 16389, 50257, 131075]


@pytest.mark.parametrize("name, width", [
    *itertools.product(["row"], ODD), *itertools.product(AROUND, [1003, 4099, 16386])
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_rows_that_end_inside_packs(device, base, name, width):
    dtypes = ["float16", "float32", "float64"] if width < 20000 else ["float16", "float32"]
    check_around(device, base, name, width, in_turn(dtypes, base, name, width))


# Two operands for all rows go with two rows at once beyond 514 packs of half, three of a norm
# beyond 194, if there are rows enough: in half each with the 8th after it, in float32 with the 4th.
# 151937 and 200001 columns of half have more packs a thread than others, 50257 beside three
# operands, 65537 then 16 blocks, 263001 blocks twice as large.
@pytest.mark.parametrize(
    "width", [2049, 8227, 10281, 16385, 32001, 50257, 65537, 81921, 151937, 200001, 263001]
)
@pytest.mark.parametrize("base", BASES)
def test_two_rows_that_end_inside_packs(device, base, width):
    if device == "cpu":
        pytest.skip("the CPU has no tiers")
    name = "row" if base.endswith("norm") else "rows"
    dtype = "float32" if width in (16385, 32001) and base[0] in "sr" else "float16"
    check_dtype(device, base, name, width, dtype, rows=11_000_000 // width + 3)


# Lanes that stay have three operands of more than 16 packs, or two of up to 64: the groups of lanes
# that a device holds at once work row after row, and odd rows lie alike after 8 of half, 4 of
# float32.
@pytest.mark.parametrize("rows, width", [
    (3, 141), (24001, 141), (24001, 144), (9001, 527), (9001, 1001), (9001, 1000), (9001, 1536),
])  # fmt: skip
@pytest.mark.parametrize("base", BASES)
def test_lanes_that_stay(device, base, rows, width):
    if device == "cpu" and rows * width > 1000:
        pytest.skip("the CPU has no lanes")
    op = getattr(fuse, base)(
        load=lambda x, r, b: x * r + b, store=lambda y, x, g: fuse.where(x > 0, y * g, y)
    )
    for dtype in ("float16", "float32", "float64")[: 2 if rows * width > 1e6 else 3]:
        x, r, b = (tensor(RNG.normal(size=s), dtype, device) for s in ((rows, width), width, width))
        g = tensor(RNG.normal(size=width), "float32" if dtype == "float16" else dtype, device)
        y = op(x, r, b, g, **options(base, width))
        want = BASES[base](host(x) * host(r) + host(b))
        check(y, np.where(host(x) > 0, want * host(g), want), dtype, scale=4.0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_operands_that_lie_otherwise_than_the_rows(device, dtype):
    op = fuse.softmax(
        load=lambda x, bias, of_head, keep, some: fuse.where(
            keep * some, x + bias + of_head, -math.inf
        ),
        store=lambda y, gain, last: y * gain + last,
    )
    for width in (33, 130, 1024, 1025, 4099) if device == "cuda" else (33,):
        x = tensor(RNG.normal(size=(7, 3, width)), dtype, device)
        of_head = tensor(RNG.normal(size=(3, width)), "float16", device)
        keep = tensor(RNG.random((7, 1, width)) < 0.6, "bool", device)
        bias = tensor(RNG.normal(size=width + 3), dtype, device)[3:]
        gain = tensor(RNG.normal(size=width + 1), "float32", device)[1:]
        some = tensor(RNG.random(width + 5) < 0.9, "bool", device)[5:]
        last = tensor(RNG.normal(size=width + 1), "float16", device)[1:]
        z = np.where(host(keep) * host(some), host(x) + host(bias) + host(of_head), -np.inf)
        y = op(x, bias, of_head, keep, some, gain, last, dim=-1)
        check(y, softmax(z) * host(gain) + host(last), dtype)


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


def test_quotients_and_roots_over_the_full_range(device):
    """By the GPU's own instructions: 2 units in the last place, and what IEEE says of the rest."""
    tiny = 2.0**-149
    values = [0.0, 1.0, 3.0, 1e-3, 7e30, 3.4e38, 2.0**127, 2.0**-126, 1e-40, tiny, math.inf]
    values = np.array([*values, *(-v for v in values), math.nan, *np.exp(RNG.normal(size=41) * 30)])
    size, values = len(values), values.astype(np.float32)
    a, b = np.repeat(values, size).reshape(size, -1), np.tile(values, size).reshape(size, -1)
    of_packs, of_others = size * size // 8 * 8, size * size - 3
    for n in of_packs, of_others:
        x, p, q = (tensor(v.reshape(1, -1)[:, :n], "float32", device) for v in (a, a, b))
        divided = fuse.softmax(store=lambda y, p, q: p / q)(x, p, q, dim=-1)
        root = fuse.softmax(store=lambda y, p: fuse.sqrt(p))(x, p, dim=-1)
        for got, function in (divided, np.divide), (root, lambda u, _: np.sqrt(u)):
            with np.errstate(all="ignore"):
                want = function(host(p), host(q)).astype(np.float32)
            np.testing.assert_allclose(host(got), want, rtol=3e-7, atol=2 * tiny)
    x = tensor(a, "float32", device)
    for s in values:
        got = fuse.softmax(store=lambda y, x, s: x / s)(x, float(s), dim=-1)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(host(got), a / s, rtol=3e-7, atol=2 * tiny)
