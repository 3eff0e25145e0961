# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm: values and gradients around every boundary, against float64 NumPy."""

import itertools

import numpy as np
import pytest
from norm_reference import (
    NORMS,
    F,
    assert_within,
    backward,
    by_dtype,
    by_kept,
    by_norm,
    check,
    forward,
    norm,
    problem,
)
from numerics import FLOATS, bits, flow, host, tensor

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


@by_dtype
def test_equal_values_are_centred_to_zero_in_every_column(dtype, device):
    for width, offset in itertools.product(
        (33, 578, 1000, 2047, 4095, 10_001, 50_257, 131_073), (0, 1)
    ):
        flat = flow.full((5 * width + offset,), 100.0, dtype=getattr(flow, dtype), device=device)
        y = host(flow.nn.functional.layer_norm(flat[offset:].view(5, width), (width,)))
        assert np.abs(y).max() <= 1e-6, (width, offset)


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
@by_dtype
def test_gradients_of_weights_where_x_wants_none(name, dtype, device):
    for rows, cols in ((40, 50_257), (300, 12_288), (300, 1000), (2000, 57)):
        x, weight, bias, dy = problem(rows, cols, dtype, device)
        leaves = [a.detach().requires_grad_() for a in (weight, bias)]
        y = norm(name, x, (cols,), *leaves)
        leaves = leaves if name == "layer_norm" else leaves[:1]
        _, x_hat, rstd = forward(name, host(x))
        _, *references = backward(name, x_hat, rstd, host(dy))
        grads = flow.autograd.grad(y, leaves, dy)
        for grad, (value, size) in zip(grads, references, strict=False):
            assert_within(grad, value, 1e-5 * size + 1e-12, f"{rows} x {cols}")


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
