# SPDX-License-Identifier: Apache-2.0
"""Attention where a size is 0: no batch, no heads, no queries, no keys, heads without elements."""

import numpy as np
import pytest
from numerics import flow, host, tensor

F = flow.nn.functional
# batch, heads, queries, keys, d, dv
SIZES = [(0, 3, 4, 6, 5, 7), (2, 0, 4, 6, 5, 7), (2, 3, 0, 6, 5, 7), (2, 3, 4, 0, 5, 7),
         (2, 3, 4, 6, 0, 7), (2, 3, 4, 6, 5, 0), (2, 3, 4, 0, 0, 7),
         (0, 0, 0, 0, 0, 0)]  # fmt: skip


def attention(q, k, v, mask):
    """In float64; a query that sees no key gets 0."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(max(1, q.shape[-1]))
    weights = np.where(mask, np.exp(scores), 0.0)
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0) @ v


@pytest.mark.parametrize("how", ["plain", "causal", "mask"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
def test_scaled_dot_product_attention(sizes, dtype, how, device):
    batch, heads, queries, keys, d, dv = sizes
    rng = np.random.default_rng(1)
    shapes = ((queries, d), (keys, d), (keys, dv))
    given = [tensor(rng.standard_normal((batch, heads, *s)), dtype, device) for s in shapes]
    leaves = [t.detach().requires_grad_() for t in given]
    seen = np.ones((queries, keys), bool)
    options = {}
    if how == "causal":
        seen, options = np.tril(seen), {"is_causal": True}
    elif how == "mask":
        seen = rng.random((queries, keys)) < 0.5
        options = {"attn_mask": flow.tensor(seen, device=device)}
    y = F.scaled_dot_product_attention(*leaves, **options)
    want = attention(*map(host, given), seen)
    assert y.dtype is given[0].dtype and tuple(y.shape) == want.shape
    bound = {"float64": 1e-12, "float32": 1e-5}.get(dtype, 2e-2)
    np.testing.assert_allclose(host(y), want, rtol=bound, atol=bound)
    for t, g in zip(leaves, flow.autograd.grad(y.sum(), leaves), strict=True):
        assert g.shape == t.shape and bool(g.isfinite().all())


def test_gradients_of_values_where_heads_have_no_elements():
    q, k = flow.zeros(3, 0, dtype=flow.float64), flow.zeros(4, 0, dtype=flow.float64)
    v = flow.randn(4, 2, dtype=flow.float64, requires_grad=True)
    f = lambda v: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    assert flow.autograd.gradcheck(f, [v])
    np.testing.assert_allclose(host(f(v))[2], host(v)[:3].mean(0), rtol=1e-14)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("sizes", [(0, 3, 2), (3, 0, 2), (3, 4, 0), (0, 0, 0)])
def test_multihead_attention(sizes, batch_first):
    queries, keys, batch = sizes
    layer = flow.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    shaped = (lambda n: (batch, n, 8)) if batch_first else (lambda n: (n, batch, 8))
    q, k = (flow.randn(*shaped(n), requires_grad=True) for n in (queries, keys))
    for needed in (True, False):
        y, weights = layer(q, k, k, need_weights=needed)
        assert y.shape == q.shape
        assert (weights is not None) == needed
        assert not needed or weights.shape == (batch, queries, keys)
        if keys == 0 and y.numel():  # nothing is seen: the bias alone
            np.testing.assert_allclose(host(y), np.zeros(y.shape) + host(layer.out_proj.bias))
        leaves = [q, k, *layer.parameters()]
        grads = flow.autograd.grad(y.sum(), leaves, allow_unused=True)
        for t, g in zip(leaves, grads, strict=True):
            assert g is None or (g.shape == t.shape and bool(g.isfinite().all()))
