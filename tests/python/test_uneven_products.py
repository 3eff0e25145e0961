# SPDX-License-Identifier: Apache-2.0
"""Large products whose sizes are no multiples of 16 bytes, as of a vocabulary of 50257: on CUDA in
16 bits they go in parts, and by copies with room behind the rows."""

import itertools

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor

F = flow.nn.functional
# Just above the 1e9 operations from which products are split, and below them.
SIZES = [
    (1024, 1033, 768),
    (1033, 1024, 768),
    (1024, 1024, 777),
    (1031, 1037, 1043),
    (260, 1029, 500),
]
STEP = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def stored(rng, rows, cols, dtype, device, how):
    """[rows, cols] that lies dense, transposed, or with room behind each row; and its values."""
    t = tensor(rng.standard_normal((rows, cols), dtype=np.float32), dtype, device)
    wide = flow.full((rows, cols + 24 - cols % 8), float("nan"), dtype=t.dtype, device=device)
    wide[:, :cols].copy_(t)
    if how == "transposed":
        return t.t().contiguous().t()
    return wide[:, :cols] if how == "apart" else t


def check(got, x, y, dtype, plus=0.0):
    """got is x @ y + plus, of values in float64."""
    want, terms = x @ y + plus, np.abs(x) @ np.abs(y)
    # What the inner dim has beyond a multiple of 8 is added first, to the bias, and rounded.
    whole = x.shape[-1] // 8 * 8
    first = np.abs(x[..., whole:] @ y[whole:]) + np.abs(plus)
    # A rounding of the sum, one of the part that is added first, and the sum's own: tensor cores
    # cut off what does not fit beside the largest of a few terms. Parts of a sum that are rounded
    # to 16 bits on the way, as cuBLASLt may by default, do not stay within it.
    bound = STEP[dtype] * (np.abs(want) + first) + 2e-6 * terms + 1e-6
    assert np.all(np.abs(host(got).astype(np.float64) - want) <= bound)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("size", SIZES)
def test_products_of_uneven_sizes(device, dtype, size):
    rng = np.random.default_rng(0)
    m, n, k = size
    ways = itertools.product(("dense", "transposed", "apart"), repeat=2)
    for how_a, how_b in ways if device == "cuda" else [("dense", "apart")]:
        a = stored(rng, m, k, dtype, device, how_a)
        b = stored(rng, k, n, dtype, device, how_b)
        x, y = host(a).astype(np.float64), host(b).astype(np.float64)
        check(a @ b, x, y, dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_linear_layer_of_uneven_sizes(device, dtype):
    rng = np.random.default_rng(1)
    x, weight = (tensor(rng.standard_normal(s) * 0.1, dtype, device).requires_grad_()
                 for s in ((7, 150, 521), (1029, 521)))  # fmt: skip
    bias = tensor(rng.standard_normal(1029), dtype, device).requires_grad_()
    y = F.linear(x, weight, bias)
    dy = tensor(rng.standard_normal((7, 150, 1029)) * 0.1, dtype, device)
    dx, dweight, dbias = flow.autograd.grad(y, (x, weight, bias), dy)
    w, v, g = (host(t).astype(np.float64) for t in (weight, x, dy))
    check(y, v, w.T, dtype, host(bias).astype(np.float64))
    check(dx, g, w, dtype)
    g, v = g.reshape(-1, 1029), v.reshape(-1, 521)
    check(dweight, g.T, v, dtype)
    check(dbias, np.ones(len(g)), g, dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_head_over_an_uneven_vocabulary(device, dtype):
    """In parts, as the rows of the logits are, the losses and gradients are those of the whole."""
    rng = np.random.default_rng(2)
    x, weight = (tensor(rng.standard_normal(s) * 0.2, dtype, device).requires_grad_()
                 for s in ((1030, 256), (2057, 256)))  # fmt: skip
    target = flow.tensor(rng.integers(0, 2057, 1030), device=device)
    wide = [t.detach().double().requires_grad_() for t in (x, weight)]
    want = F.cross_entropy(F.linear(*wide), target)
    expected = flow.autograd.grad(want, wide)
    for chunks in (1, 3):
        got = F.linear_cross_entropy(x, weight, target, chunks)
        assert abs(got.item() - want.item()) < 4 * STEP[dtype] * want.item()
        for g, e in zip(flow.autograd.grad(got, (x, weight)), expected, strict=True):
            bound = 8 * STEP[dtype] * np.abs(host(e)).max()
            np.testing.assert_allclose(host(g), host(e), rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", HALVES)
def test_logits_in_a_wider_tensor_become_their_gradient(device, dtype):
    """inplace_backward writes the columns of the logits and nothing beside them."""
    rng = np.random.default_rng(3)
    room = tensor(rng.standard_normal((33, 56)), dtype, device)
    beside = host(room[:, 50:])
    target = flow.tensor(rng.integers(0, 50, 33), device=device)
    logits = room[:, :50].detach().requires_grad_()
    copy = room[:, :50].clone().detach().requires_grad_()
    (want,) = flow.autograd.grad(F.cross_entropy(copy, target), copy)
    loss = F.cross_entropy(logits, target, inplace_backward=True)
    (got,) = flow.autograd.grad(loss, logits)
    assert got.data_ptr() == room.data_ptr()
    atol = STEP[dtype] * np.abs(host(want)).max()
    np.testing.assert_allclose(host(got), host(want), rtol=0, atol=atol)
    np.testing.assert_array_equal(host(room[:, 50:]), beside)
