# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm in float64 NumPy, with how far off each result may be."""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, bits, flow, host, tensor, ulp

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
    """Values and all gradients of rows x cols; the same bits twice, and without statistics."""
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
