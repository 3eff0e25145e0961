# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm, alone and behind a residual addition, against float64 NumPy."""

import itertools
import warnings

import numpy as np
import pytest
from numerics import FLOATS, HALVES, LAYOUTS, bits, flow, host, tensor, ulp

F, nn = flow.nn.functional, flow.nn
ext = flow._oneflow_lite
NORMS = ["layer_norm", "rms_norm"]
EPS = 1e-5

by_norm = pytest.mark.parametrize("name", NORMS)
by_dtype = pytest.mark.parametrize("dtype", FLOATS)
by_kept = pytest.mark.parametrize("memory_efficient", [False, True], ids=["from x", "from y"])


def norm(name, x, shape, weight, bias=None, memory_efficient=False, eps=EPS, residual=None):
    """Any of the four functions; rms_norm ignores the bias. Gives y, or [y, sum]."""
    columns = [weight, bias] if name == "layer_norm" else [weight]
    if residual is None:
        return getattr(F, name)(x, shape, *columns, eps, memory_efficient)
    return list(getattr(F, f"add_{name}")(x, residual, shape, *columns, eps, memory_efficient))


# The reference, with the sizes of the terms that each result is the sum of --------------------


def forward(name, x, weight=1.0, bias=0.0, eps=EPS):
    """y, x_hat and rstd over the last dim."""
    v = x - x.mean(-1, keepdims=True) if name == "layer_norm" else x
    rstd = 1 / np.sqrt((v * v).mean(-1, keepdims=True) + eps)
    return v * rstd * weight + (bias if name == "layer_norm" else 0), v * rstd, rstd


def backward(name, x_hat, rstd, dy, weight=1.0):
    """dx, dweight, dbias, each as (value, size)."""

    def mean(a):
        return a.mean(-1, keepdims=True)

    g = dy * weight
    dx = g - x_hat * mean(g * x_hat)
    size = np.abs(g) + np.abs(x_hat) * mean(np.abs(g * x_hat))
    if name == "layer_norm":
        dx, size = dx - mean(g), size + mean(np.abs(g))
    terms = dy * x_hat  # x_hat is right to 2e-7, however near 0
    return ((rstd * dx, rstd * size), (terms.sum(0), (np.abs(terms) + 0.02 * np.abs(dy)).sum(0)),
            (dy.sum(0), np.abs(dy).sum(0)))  # fmt: skip


def assert_within(t, value, allowed, where):
    """One rounding step more where the tensor is of a 16-bit float."""
    dtype = t.dtype.name
    allowed = allowed * (1e-8 if dtype == "float64" else 1)
    if dtype in HALVES:
        allowed = allowed + ulp(value, dtype)
    error = np.abs(host(t) - value)
    assert t.shape == value.shape, where
    assert (error <= allowed).all(), f"{where}: off by {np.max(error - allowed):.3g} ({dtype})"


def check(name, x, weight, bias, dy, where="", memory_efficient=False, eps=EPS):
    """Values and all gradients of rows x cols; the same bits twice."""
    args = [None if a is None else a.detach().requires_grad_() for a in (x, weight, bias)]
    wanted = [a for a in (args if name == "layer_norm" else args[:2]) if a is not None]
    y = norm(name, args[0], x.shape[-1:], *args[1:], memory_efficient, eps)
    grads = flow.autograd.grad(y, wanted, dy, retain_graph=True)
    w, b = (1.0 if weight is None else host(weight)), (0.0 if bias is None else host(bias))
    exact, x_hat, rstd = forward(name, host(x), w, b, eps)
    assert y.dtype is x.dtype
    assert_within(y, exact, 4e-6 * np.maximum(1, np.abs(exact)), where)
    names = [n for n, a in zip(("dx", "dweight", "dbias"), args, strict=True) if a is not None]
    references = dict(zip(("dx", "dweight", "dbias"), backward(name, x_hat, rstd, host(dy), w),
                          strict=True))  # fmt: skip
    for grad, of, n in zip(grads, wanted, names, strict=False):
        value, size = references[n]
        assert grad.dtype is of.dtype
        if memory_efficient and y.dtype.name in HALVES:  # what y's rounding leaves of x_hat
            continue
        bound = 4e-6 * np.maximum(1, size) if n == "dx" else 1e-5 * size + 1e-12
        assert_within(grad, value, bound * (8 if memory_efficient else 1), f"{where}, {n}")
    assert bits(norm(name, x, x.shape[-1:], weight, bias, memory_efficient, eps)) == bits(y), where
    for a, g in zip(flow.autograd.grad(y, wanted, dy), grads, strict=True):
        assert bits(a) == bits(g), where
    return y.detach(), grads


def problem(rows, cols, dtype, device, seed=0, weight_dtype=None, mean=0.0, spread=1.0):
    """x, weight, bias, dy; the weights lie away from 0."""
    rng = np.random.default_rng(seed)
    x = tensor(mean + spread * rng.standard_normal((rows, cols)), dtype, device)
    weight = tensor(rng.choice([-1, 1], cols) * rng.uniform(0.5, 2, cols), weight_dtype or dtype,
                    device)  # fmt: skip
    bias = tensor(rng.standard_normal(cols), weight_dtype or dtype, device)
    return x, weight, bias, tensor(rng.standard_normal((rows, cols)), dtype, device)


# Values and gradients -------------------------------------------------------------------------
# CPU: vectors (2 to 32 elements), their unrolled blocks, sums of 128 vectors, parts of 65536 of a
# single row, backward by columns from 4096 on. CUDA: lanes of a warp, registers of a block, shared
# memory, rows split among blocks, rows read twice.
POWERS = sorted({max(1, (1 << k) + d) for k in range(17) for d in (-1, 0, 1)})
WIDTHS = [*POWERS, 1000, 12_289, 24_577, 50_257, 58_113, 116_225, 131_073]


@by_norm
@by_dtype
def test_widths_around_every_boundary(name, dtype, device):
    for width in WIDTHS:
        rows = 5 if width <= 600 else 2
        check(name, *problem(rows, width, dtype, device), f"{rows} x {width}")


@by_norm
@by_kept
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 64, 65, 129, 1025, 8193, 20_000])
def test_rows_around_every_boundary(name, memory_efficient, rows, device):
    """CPU: chunks of 16 to 128 rows; 64 rows at most go by columns."""
    for width in (1, 3, 33, 130) if rows > 200 else (7, 4095, 4096, 5003):
        check(name, *problem(rows, width, "float32", device), f"{rows} x {width}",
              memory_efficient)  # fmt: skip


@by_norm
@by_dtype
def test_few_very_wide_rows(name, dtype, device):
    for rows, width in ((1, 200_003), (1, 1_000_003), (2, 262_144), (3, 524_289)):
        check(name, *problem(rows, width, dtype, device), f"{rows} x {width}")


@by_norm
@by_dtype
@by_kept
def test_weight_and_bias_absent_present_and_of_float32(name, dtype, memory_efficient, device):
    for width, weight_dtype in itertools.product((5, 96, 4097), sorted({dtype, "float32"})):
        x, weight, bias, dy = problem(9, width, dtype, device, weight_dtype=weight_dtype)
        for w, b in itertools.product((weight, None), (bias, None)):
            check(name, x, w, b, dy, f"{width}, {weight_dtype}", memory_efficient)


@by_dtype
def test_memory_efficient_gradients_in_half_follow_the_rounded_result(dtype, device):
    """Against float64 from the very y and weights that are kept."""
    for name, rows in itertools.product(NORMS, (7, 300)):
        x, weight, bias, dy = problem(rows, 130, dtype, device)
        leaves = [a.detach().requires_grad_() for a in (x, weight, bias)]
        y = norm(name, leaves[0], (130,), *leaves[1:], memory_efficient=True)
        leaves = leaves if name == "layer_norm" else leaves[:2]
        grads = flow.autograd.grad(y, leaves, dy)
        rstd = forward(name, host(x))[2]
        x_hat = (host(y) - (host(bias) if name == "layer_norm" else 0)) / host(weight)
        expected = backward(name, x_hat, rstd, host(dy), host(weight))
        for grad, (value, size) in zip(grads, expected, strict=False):
            assert_within(grad, value, 1e-5 * size, f"{name}, {rows} rows")


@by_norm
def test_normalized_shape_of_several_dims_is_one_row(name, device):
    x, weight, bias, dy = problem(6, 60, "float32", device)
    flat = norm(name, x, 60, weight, bias)
    several = norm(name, x.view(2, 3, 4, 5, 3), (4, 5, 3), weight.view(4, 5, 3),
                   bias.view(4, 5, 3))  # fmt: skip
    assert several.shape == (2, 3, 4, 5, 3) and bits(several) == bits(flat)
    assert bits(norm(name, x, [60], weight, bias)) == bits(flat)


# Awkward data ---------------------------------------------------------------------------------


@by_kept
@pytest.mark.parametrize("width", [2, 64, 1000, 4096, 20_000, 150_000])
@pytest.mark.parametrize("first", ["like the others", "far away"])
def test_a_small_spread_about_a_large_mean(memory_efficient, width, first, device):
    """Mean 1e4, spread 1e-3, which is one step of float32 there: right to 1e-3."""
    x, weight, bias, dy = problem(3, width, "float32", device, mean=1e4, spread=1e-3)
    if first == "far away":  # a guess of the mean from the first elements misses
        x[:, : min(8, width // 2)] = 1e4 + 0.05
    eps = 1e-12
    exact, x_hat, rstd = forward("layer_norm", host(x), host(weight), host(bias), eps)
    leaves = [a.detach().requires_grad_() for a in (x, weight, bias)]
    y = F.layer_norm(leaves[0], (width,), *leaves[1:], eps, memory_efficient)
    np.testing.assert_allclose(host(y), exact, rtol=0, atol=1e-3)
    grads = flow.autograd.grad(y, leaves, dy)
    for grad, (value, size) in zip(
        grads, backward("layer_norm", x_hat, rstd, host(dy), host(weight)), strict=True
    ):
        assert (np.abs(host(grad) - value) <= 1e-3 * np.maximum(size, 1e-3)).all()


def test_statistics_of_an_outlier_far_from_the_rest(device):
    for width, place in itertools.product((1000, 100_000), (0, 1, 500)):
        x, weight, bias, dy = problem(4, width, "float32", device)
        x[:, place] = 1e6
        check("layer_norm", x, weight, bias, dy, f"{width}, outlier at {place}")


@by_norm
def test_constant_rows_and_rows_of_zeros(name, device):
    x = tensor(np.repeat([[0.0], [3.0], [-7e4]], 100, 1), "float32", device).requires_grad_()
    y = norm(name, x, 100, None)
    exact, _, _ = forward(name, host(x))
    np.testing.assert_allclose(host(y), exact, rtol=0, atol=1e-6)
    (dx,) = flow.autograd.grad(y, x, flow.ones_like(y))
    assert np.isfinite(host(dx)).all()


@by_norm
@by_dtype
def test_nan_and_inf_stay_in_their_row(name, dtype, device):
    for width in (3, 64, 1000, 5000):
        x, weight, bias, dy = problem(6, width, dtype, device)
        clean, grads = check(name, x, weight, bias, dy)
        spoilt = x.clone()
        spoilt[1, width // 2] = np.inf
        spoilt[2, 0] = -np.inf
        spoilt[4, width - 1] = np.nan
        spoilt.requires_grad_()
        y = norm(name, spoilt, width, weight, bias)
        (dx,) = flow.autograd.grad(y, spoilt, dy)
        for row in (0, 3, 5):
            assert bits(y[row]) == bits(clean[row]) and bits(dx[row]) == bits(grads[0][row])
        assert np.isnan(host(y)[4]).all()
        for row in (1, 2, 4):
            assert np.isnan(host(y)[row]).any() and np.isnan(host(dx)[row]).any()


@by_norm
@by_dtype
def test_empty_tensors(name, dtype, device):
    for shape, columns in (((0, 4), 4), ((2, 0), 0), ((0, 3, 0), (3, 0)), ((0,), 0)):
        sizes = (columns,) if isinstance(columns, int) else columns
        x, weight = (flow.ones(s, dtype=getattr(flow, dtype), device=device).requires_grad_()
                     for s in (shape, sizes))  # fmt: skip
        bias = flow.ones_like(weight).requires_grad_()
        y = norm(name, x, columns, weight, bias)
        assert y.shape == shape
        y.sum().backward()
        assert x.grad.shape == shape and weight.grad.shape == sizes
        assert (host(weight.grad) == 0).all()
        if name == "layer_norm":
            assert (host(bias.grad) == 0).all()


@by_norm
def test_one_column(name, device):
    x, weight, bias, dy = problem(300, 1, "float32", device)
    y, (dx, *_) = check(name, x, weight, bias, dy)
    if name == "layer_norm":
        assert bits(y) == bits(bias.expand(300, 1)) and (host(dx) == 0).all()


@by_norm
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_gradients_of_weights_over_many_rows(name, dtype, device):
    """100k rows; also of one sign, where rounding errors of a long sum add up."""
    rows, cols = 100_000, 33
    x, weight, bias, dy = problem(rows, cols, dtype, device, weight_dtype="float32")
    check(name, x, weight, bias, dy, "random signs")
    constant = tensor(np.full((rows, cols), 1.1), dtype, device)
    same_sign = tensor(np.sign(host(x)) * 1.7, dtype, device)
    for gradient in (constant, same_sign):
        check(name, x, weight, bias, gradient, "one sign")


@by_norm
def test_memory_efficient_with_weights_near_zero(name, device):
    """Finite where x_hat is lost; right where it is not, as far as y's rounding allows."""
    x, weight, _, dy = problem(40, 64, "float32", device)
    values = host(weight)
    values[:8] = [0, -0.0, 1e-30, -1e-30, 1e-9, -1e-9, 1e-6, -1e-6]
    values[8:16] = [1e-3, -1e-3, 2e-3, 1e-2, 1e-4, -1e-4, 1.1e-5, -1.1e-5]
    for bias in (None, tensor(np.full(64, 0.5), "float32", device)):
        weight = tensor(values, "float32", device)
        leaves = [a.detach().requires_grad_() for a in (x, weight)]
        y = norm(name, leaves[0], 64, leaves[1], bias, memory_efficient=True)
        dx, dweight = map(host, flow.autograd.grad(y, leaves, dy))
        assert np.isfinite(dx).all() and np.isfinite(dweight).all()
        assert (dweight[:2] == 0).all()
        _, x_hat, rstd = forward(name, host(x))
        _, (value, size), _ = backward(name, x_hat, rstd, host(dy), values)
        kept = np.abs(values) >= 1e-3
        blur = 6e-8 * (0 if bias is None or name == "rms_norm" else 1) / np.abs(values[kept])
        allowed = 1e-5 * size[kept] + blur * np.abs(host(dy)).sum(0)[kept]
        assert (np.abs(dweight - value)[kept] <= allowed).all()


def test_rms_norm_without_eps_takes_that_of_the_compute_type(device):
    for dtype in FLOATS:
        x = flow.zeros(2, 3, dtype=getattr(flow, dtype), device=device)
        x[0] = 2.0**-12
        eps = 2.0**-52 if dtype == "float64" else 2.0**-23
        exact, _, _ = forward("rms_norm", host(x), eps=eps)
        assert_within(F.rms_norm(x, 3), exact, 4e-6, dtype)


# Which gradients, which layouts ---------------------------------------------------------------


@by_norm
@by_kept
@pytest.mark.parametrize("residual", [False, True], ids=["alone", "with residual"])
@pytest.mark.parametrize("shape", [(5, 7), (40, 130), (3, 4100), (3, 0), (0, 3)])
def test_every_subset_of_gradients(name, memory_efficient, residual, shape, device):
    """The same bits, whatever else is asked for; but a bias alone is summed another way."""
    rows, cols = shape
    x, weight, bias, dy = problem(rows, cols, "float32", device)
    r = tensor(np.random.default_rng(5).standard_normal(shape), "float32", device)
    tensors = [x, r, weight, bias]
    places = [i for i in range(4) if (residual or i != 1) and (name == "layer_norm" or i != 3)]

    def gradients(chosen):
        leaves = [t.detach().requires_grad_() if i in chosen else t for i, t in enumerate(tensors)]
        x, r, weight, bias = leaves
        y = norm(name, x, cols, weight, bias, memory_efficient, residual=r if residual else None)
        (y[0] if residual else y).backward(dy)
        assert all(t.grad is None for i, t in enumerate(leaves) if i not in chosen)
        return {i: leaves[i].grad for i in chosen}

    whole = gradients(places)
    for n in range(1, len(places)):
        for chosen in itertools.combinations(places, n):
            for i, grad in gradients(chosen).items():
                assert grad.shape == tensors[i].shape
                if chosen == (3,):
                    allowed = 1e-5 * np.abs(host(dy)).sum(0)
                    assert (np.abs(host(grad) - host(whole[i])) <= allowed).all()
                else:
                    assert bits(grad) == bits(whole[i]), f"{i} of {chosen}"


@by_norm
@by_kept
def test_second_order_of_every_subset(name, memory_efficient, device):
    x, weight, bias, _ = problem(3, 4, "float64", device)
    r = x.clone() * 0.5
    tensors = [x, weight, bias, r] if name == "layer_norm" else [x, weight, r]
    for n in range(1, len(tensors) + 1):
        for chosen in itertools.combinations(range(len(tensors)), n):
            leaves = [t.detach().requires_grad_() if i in chosen else t
                      for i, t in enumerate(tensors)]  # fmt: skip

            def call(x, weight, *rest):
                bias, r = rest if len(rest) == 2 else (None, *rest)
                return norm(name, x, 4, weight, bias, memory_efficient, residual=r)

            assert flow.autograd.gradgradcheck(call, leaves), chosen
            if leaves[-1].requires_grad:
                continue
            assert flow.autograd.gradgradcheck(
                lambda x, weight, *rest: norm(
                    name, x, 4, weight, rest[0] if len(rest) == 2 else None, memory_efficient
                ),
                leaves,
            ), chosen


@by_norm
def test_gradients_through_the_statistics(name, device):
    op = getattr(flow.ops, name)
    x, weight, bias, _ = (t.requires_grad_() for t in problem(3, 4, "float64", device))
    columns = [weight, bias] if name == "layer_norm" else [weight]
    for memory_efficient in (False, True):

        def call(x, *columns):
            return list(op(x, *columns, memory_efficient=memory_efficient))  # noqa: B023

        assert flow.autograd.gradcheck(call, [x, *columns])
        assert flow.autograd.gradgradcheck(call, [x, *columns])
        rstd = op(x, *columns, memory_efficient=memory_efficient)[-1]
        assert flow.autograd.grad(rstd, x, flow.ones_like(rstd))[0].shape == x.shape


def head_slice(device, dtype):
    """The first of three heads' rows: strided rows, dense columns."""
    packed = problem(12, 3 * 64, dtype, device)[0]
    return packed.view(12, 3, 64)[:, 1]


@by_norm
@by_dtype
def test_strided_rows(name, dtype, device):
    x = head_slice(device, dtype)
    assert not x.is_contiguous()
    _, weight, bias, dy = problem(12, 64, dtype, device)
    leaves = [(x if strided else x.contiguous()).detach().requires_grad_() for strided in (1, 0)]
    ys = [norm(name, leaf, 64, weight, bias) for leaf in leaves]
    assert bits(ys[0]) == bits(ys[1]) and ys[0].is_contiguous()
    dxs = [flow.autograd.grad(y, leaf, dy)[0] for y, leaf in zip(ys, leaves, strict=True)]
    assert bits(dxs[0]) == bits(dxs[1])
    residual = problem(12, 64, dtype, device, seed=3)[0]
    fused = [norm(name, v, 64, weight, bias, residual=residual) for v in (x, x.contiguous())]
    assert [bits(t) for t in fused[0]] == [bits(t) for t in fused[1]]


@by_norm
def test_strided_rows_are_not_copied(name):
    packed = flow.ones(1000, 3 * 1024)
    x, weight = packed[:, 1024:2048], flow.ones(1024)
    ext.reset_peak_memory("cpu")
    before = ext.memory_stats("cpu")["allocated"]
    y = norm(name, x, 1024, weight)
    taken = ext.memory_stats("cpu")["peak_allocated"] - before
    assert taken < 1.1 * y.numel() * 4


@by_norm
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_every_tensor(name, layout, device):
    x, weight, bias, dy = problem(6, 40, "float32", device)
    x, weight, bias, dy = (LAYOUTS[layout](t) for t in (x, weight, bias, dy))
    check(name, x, weight, bias, dy, layout)


# The residual forms ---------------------------------------------------------------------------


@by_norm
@by_dtype
@by_kept
def test_the_fused_form_is_the_norm_of_the_rounded_sum(name, dtype, memory_efficient, device):
    steps = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "float64": 1e-14}[dtype]

    def same(a, b):
        """The same bits; on CUDA other kernels may add a row up in another order."""
        if bits(a) == bits(b):
            return True
        most = max(1.0, float(np.abs(host(b)).max()))
        return device == "cuda" and bool((np.abs(host(a) - host(b)) <= steps * most).all())

    for rows, cols in ((5, 33), (300, 96), (3, 4100), (1, 140_000)):
        x, weight, bias, dy = problem(rows, cols, dtype, device)
        r, _, _, dsum = problem(rows, cols, dtype, device, seed=9)
        leaves = [t.detach().requires_grad_() for t in (x, r, weight, bias)]
        y, s = norm(name, leaves[0], cols, leaves[2], leaves[3], memory_efficient,
                    residual=leaves[1])  # fmt: skip
        assert bits(s) == bits(x + r)
        other = [t.detach().requires_grad_() for t in (s, weight, bias)]
        assert same(norm(name, other[0], cols, *other[1:], memory_efficient), y)

        n = 4 if name == "layer_norm" else 3
        grads = flow.autograd.grad([y, s], leaves[:n], [dy, dsum], retain_graph=True)
        assert bits(grads[0]) == bits(grads[1])
        alone = flow.autograd.grad(
            norm(name, other[0], cols, *other[1:], memory_efficient), other[: n - 1], dy
        )
        assert all(same(g, a) for g, a in zip(grads[2:], alone[1:], strict=True))
        total = host(alone[0]) + host(dsum)
        scale = np.abs(host(alone[0])) + np.abs(host(dsum)) + 1
        assert (np.abs(host(grads[0]) - total) <= steps * scale).all()
        (only_sum,) = flow.autograd.grad(s, leaves[:1], dsum, retain_graph=True)
        assert bits(only_sum) == bits(dsum)
        (only_norm,) = flow.autograd.grad(y, leaves[1:2], dy)
        assert same(only_norm, alone[0])


# Determinism, threads, memory -----------------------------------------------------------------


@by_norm
def test_bits_do_not_depend_on_threads_or_on_other_rows(name):
    before = flow.get_num_threads()
    try:
        for rows, cols in ((5000, 40), (700, 1024), (8, 5000)):
            x, weight, bias, dy = problem(rows, cols, "float32", "cpu")
            seen = set()
            for threads in (1, 2, 3, 7):
                flow.set_num_threads(threads)
                y, grads = check(name, x, weight, bias, dy)
                seen.add((bits(y), *map(bits, grads)))
            assert len(seen) == 1, f"{rows} x {cols}"
            few, _ = check(name, x[:3], weight, bias, dy[:3])
            assert bits(few) == bits(y[:3])
    finally:
        flow.set_num_threads(before)


def bytes_held(module, layers, rows, cols, memory_efficient, device):
    """What a stack of norm and linear, as in a transformer, keeps between forward and backward."""
    model = nn.Sequential(*(
        layer for _ in range(layers)
        for layer in (module(cols, memory_efficient=memory_efficient), nn.Linear(cols, cols))
    )).to(device)  # fmt: skip
    x = flow.randn(rows, cols, device=device)
    model(x)
    before = ext.memory_stats(device)["allocated"]
    y = model(x)
    held = ext.memory_stats(device)["allocated"] - before
    y.sum().backward()
    return held


@pytest.mark.parametrize("module", [nn.LayerNorm, nn.RMSNorm])
def test_memory_efficient_layers_hold_half_as_much(module, device):
    """A linear keeps the norm's result in any case: only the norm's input is saved."""
    layers, rows, cols = 8, 512, 64
    from_x, from_y = (bytes_held(module, layers, rows, cols, me, device) for me in (False, True))
    tensor_bytes, row_bytes = rows * cols * 4, 2 * layers * rows * 4  # mean and rstd
    # From x: the input (of the first layer it is the caller's) and the result of each norm, and the
    # last result. From y: the results alone.
    assert 2 * layers * tensor_bytes <= from_x <= 2 * layers * tensor_bytes + row_bytes
    assert (layers + 1) * tensor_bytes <= from_y <= (layers + 1) * tensor_bytes + row_bytes


# Modules and ops ------------------------------------------------------------------------------


def test_an_eps_below_zero_leaves_nan_where_it_outweighs_the_variance(device):
    x = flow.tensor([[0.0, 4.0], [0.0, 1.0]], device=device)  # variances of 4 and 1/4
    np.testing.assert_allclose(
        host(F.layer_norm(x, 2, eps=-1.0)), [np.array([-2, 2]) / np.sqrt(3), [np.nan] * 2], 1e-6
    )
    np.testing.assert_allclose(
        host(F.rms_norm(x, 2, eps=-1.0)), [[0, 4 / np.sqrt(7)], [np.nan] * 2], 1e-6
    )


def test_modules():
    assert repr(nn.LayerNorm(4)) == "LayerNorm((4,), eps=1e-05, elementwise_affine=True)"
    assert repr(nn.LayerNorm((2, 3), 1e-6, bias=False)) == (
        "LayerNorm((2, 3), eps=1e-06, elementwise_affine=True, bias=False)"
    )
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"
    assert repr(nn.RMSNorm([2, 4], 1e-6, False, memory_efficient=True)) == (
        "RMSNorm((2, 4), eps=1e-06, elementwise_affine=False, memory_efficient=True)"
    )
    assert list(nn.LayerNorm(4).state_dict()) == ["weight", "bias"]
    assert list(nn.LayerNorm(4, bias=False).state_dict()) == ["weight"]
    assert list(nn.LayerNorm(4, elementwise_affine=False).state_dict()) == []
    assert list(nn.RMSNorm(4).state_dict()) == ["weight"]
    layer = nn.LayerNorm((2, 3), dtype=flow.float16)
    assert layer.weight.shape == (2, 3) and layer.bias.dtype is flow.float16
    assert (host(layer.weight) == 1).all() and (host(layer.bias) == 0).all()


@pytest.mark.parametrize("module", [nn.LayerNorm, nn.RMSNorm])
def test_modules_compute_and_learn(module, device):
    layer = module(16).to(device)
    x = flow.randn(8, 16, device=device)
    name = {"LayerNorm": "layer_norm", "RMSNorm": "rms_norm"}[module.__name__]
    eps = 1e-5 if module is nn.LayerNorm else 2.0**-23
    assert_within(layer(x), forward(name, host(x), eps=eps)[0], 1e-5, name)
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = ((layer(x) - 0.5) * (layer(x) - 0.5)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert layer(x.half()).dtype is flow.float16  # float32 parameters, half input


def test_zero_weights_of_memory_efficient_modules_warn_once(monkeypatch):
    monkeypatch.setattr(nn.norms, "_warned", False)
    good, bad, worse = (nn.LayerNorm(4, memory_efficient=True) for _ in range(3))
    for layer in (bad, worse):
        nn.init.zeros_(layer.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good(flow.ones(2, 4))
        nn.LayerNorm(4)(flow.ones(2, 4))
    with pytest.warns(UserWarning, match="weights of exactly 0") as seen:
        bad(flow.ones(2, 4))
        bad(flow.ones(2, 4))
        worse(flow.ones(2, 4))
    assert len(seen) == 1 and seen[0].filename == __file__


@by_norm
@by_dtype
def test_ops_give_the_statistics_in_the_compute_type(name, dtype, device):
    x = problem(3, 20, dtype, device)[0].view(3, 4, 5)
    outputs = getattr(flow.ops, name)(x, axis=1)
    _, _, rstd = forward(name, host(x).reshape(3, 20))
    compute = flow.float64 if dtype == "float64" else flow.float32
    for statistic in outputs[1:]:
        assert statistic.shape == (3, 1, 1) and statistic.dtype is compute
    np.testing.assert_allclose(host(outputs[-1]).reshape(3, 1), rstd, rtol=1e-5)
    if name == "layer_norm":
        np.testing.assert_allclose(host(outputs[1]).reshape(3), host(x).mean((1, 2)), atol=1e-6)


def test_what_the_ops_refuse(device):
    x = flow.ones(2, 3, device=device)
    y, mean, rstd = flow.ops.layer_norm(x)
    bad = [
        (lambda: flow.ops.layer_norm(x, axis=2), IndexError,
         "layer_norm(): axis 2 is out of range [-2, 1] for shape [2, 3]"),
        (lambda: flow.ops.layer_norm_backward(x, rstd), ValueError,
         "layer_norm_backward(): either x or y must be given"),
        (lambda: flow.ops.layer_norm_backward(x, rstd, x, y), ValueError,
         "layer_norm_backward(): either x or y must be given"),
        (lambda: flow.ops.layer_norm_backward(x, rstd, x), ValueError,
         "layer_norm_backward(): x needs its mean"),
        (lambda: flow.ops.rms_norm_backward(x, rstd, x, wanted=2), ValueError,
         "rms_norm_backward(): wanted is 2, but it must be bits of 1"),
        (lambda: flow.ops.rms_norm_backward(x, mean[:1], x), flow.ShapeError,
         "rms_norm_backward(): rstd has shape [1, 1], expected [2, 1]"),
        (lambda: flow.ops.rms_norm_backward(x, rstd.double(), x), flow.DTypeError,
         "rms_norm_backward(): rstd has dtype float64, expected float32"),
    ]  # fmt: skip
    for call, error, text in bad:
        with pytest.raises(error) as raised:
            call()
        assert type(raised.value) is error and str(raised.value) == text
