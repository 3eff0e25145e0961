# SPDX-License-Identifier: Apache-2.0
"""Functions of several steps compute with 16-bit floats in float32 and round once at the end."""

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor, ulp

RNG = np.random.default_rng(46)
ROWS = 2 * RNG.standard_normal((4, 600)) + 300  # whose mean has more digits than bfloat16
A, B = RNG.standard_normal((2, 33, 33))
LINE, OTHER = RNG.standard_normal((2, 33))
WEIGHTS = RNG.integers(1, 4, 600)


def near_minus(product):
    """What nearly cancels a product of A and B: rounding that first leaves nothing."""
    return -(product + 0.01 * RNG.standard_normal(product.shape))


# name: call, operands
CALLS = {
    "cov": (flow.cov, ROWS),
    "weighted cov": (lambda x: flow.cov(x, fweights=flow.tensor(WEIGHTS, device=x.device)), ROWS),
    "cov with aweights": (lambda x, w: flow.cov(x, aweights=w), ROWS, WEIGHTS / 4),
    "corrcoef": (flow.corrcoef, ROWS),
    "trapezoid": (lambda y: flow.trapezoid(y, dx=0.3), ROWS),
    "trapezoid at places": (flow.trapezoid, ROWS, np.arange(600) / 8),
    "cumulative_trapezoid": (flow.cumulative_trapezoid, ROWS[:, :150]),
    "addr": (flow.addr, near_minus(np.outer(LINE, OTHER)), LINE, OTHER),
    "scaled addr": (lambda x, a, b: flow.addr(x, a, b, beta=0.3, alpha=0.7), A, LINE, OTHER),
    "addr without input": (lambda x, a, b: flow.addr(x, a, b, beta=0, alpha=0.7), A, LINE, OTHER),
    "cross": (flow.linalg.cross, A[:, :3], A[:, :3] + 0.01),
    "diff": (lambda x: flow.diff(x, 3), A),
    "addmm of a row": (flow.addmm, LINE[:32], A[:32, :32], B[:32, :32]),
}
# A GPU multiplies 16 bits much faster than float32, so each product of a chain is rounded there;
# cuBLASLt rounds before it adds a bias to bfloat16 rows at odd places.
PRODUCTS = {
    "addmm of an odd row": (flow.addmm, LINE, A, B),
    "multi_dot": (lambda *x: flow.linalg.multi_dot(x), A, B, A),
    "matrix_power": (lambda x: flow.linalg.matrix_power(x, 5), A / 6),
    "einsum": (lambda *x: flow.einsum("ij,jk,kl->il", *x), A, B, A),
}


# A product and what nearly cancels it: shapes of input, of the factors, and their sizes.
SUMS = {
    "addmm": (flow.addmm, (33, 33), (33, 35), (35, 33)),
    "addmm of a row": (flow.addmm, (32,), (40, 64), (64, 32)),
    "addmm of whole packs": (flow.addmm, (128, 64), (128, 256), (256, 64)),
    "addmm of uneven ends": (flow.addmm, (1030, 1043), (1030, 521), (521, 1043)),
    "baddbmm": (flow.baddbmm, (3, 17, 33), (3, 17, 24), (3, 24, 33)),
    "addmv": (flow.addmv, (33,), (33, 64), (64,)),
    "no inner dim": (flow.addmm, (5, 7), (5, 0), (0, 7)),
}


def assert_rounded_once(got, want, dtype):
    """A sum in another order may round to the next number."""
    assert got.dtype is want.dtype
    assert (np.abs(host(got) - host(want)) <= ulp(host(want), dtype)).all()


def check(call, operands, dtype, device):
    narrow = [tensor(x, dtype).to(device) for x in operands]
    got, wide = call(*narrow), call(*(x.float() for x in narrow))
    want = wide.to(getattr(flow, dtype))
    assert_rounded_once(got, want, dtype)
    learned = [x.requires_grad_() for x in narrow]
    recorded = call(*learned)
    assert_rounded_once(recorded.detach(), want, dtype)
    recorded.sum().backward()
    assert all(x.grad is None or x.grad.dtype is x.dtype for x in learned)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CALLS)
def test_steps_are_of_float32(name, dtype, device):
    call, *operands = CALLS[name]
    check(call, operands, dtype, device)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_of_float32_on_the_cpu(name, dtype):
    call, *operands = PRODUCTS[name]
    check(call, operands, dtype, "cpu")


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("beta, alpha", [(1, 1), (-0.3, 0.7), (0, 3)])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_with_a_product_is_rounded_once(name, dtype, beta, alpha, transposed, device):
    function, *shapes = SUMS[name]
    rng = np.random.default_rng(5)
    a, b = (tensor(rng.standard_normal(s), dtype) for s in shapes[1:])
    wide_a, wide_b = (host(x).astype(np.float64) for x in (a, b))
    product = alpha * (wide_a @ wide_b)
    whole = product.reshape(-1, *shapes[0])[0] / (-beta if beta else 1)  # of a row, the first
    x = tensor(whole, dtype)
    a, b = a.to(device), b.to(device)
    if transposed:
        a, b = (t.mT.contiguous().mT if t.ndim > 1 else t for t in (a, b))
    got = function(x.to(device), a, b, beta=beta, alpha=alpha)
    added = beta * host(x).astype(np.float64)
    want = added + product
    terms = np.abs(added) + abs(alpha) * (np.abs(wide_a) @ np.abs(wide_b))
    error = np.abs(host(got).astype(np.float64) - want)
    assert got.dtype is a.dtype
    assert (error <= ulp(want, dtype) / 2 * 1.01 + terms * 64 * 2.0**-24).all()
