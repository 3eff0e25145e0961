# SPDX-License-Identifier: Apache-2.0
"""Operands of the tests of flow.fuse.elements, and when two results are the same."""

import numpy as np
from numerics import INTEGERS, host, tensor, ulp

RNG = np.random.default_rng(11)


def same(got, want, dtype=None, steps=4, near=0.0):
    """The same dtype, shape, NaN, infinities and zeros' signs; values within rounding, of numbers
    as large as `near` where those are larger than the result.
    """
    assert got.dtype is want.dtype and got.shape == want.shape
    a, b = host(got), host(want)
    if not got.dtype.is_floating_point:
        np.testing.assert_array_equal(a, b)
        return
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_array_equal(np.where(np.isinf(b), a, 0), np.where(np.isinf(b), b, 0))
    zero = (a == 0) & (b == 0)
    np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))
    finite = np.isfinite(b) & np.isfinite(a)
    name = dtype or str(got.dtype).rpartition(".")[2]
    bound = steps * ulp(np.where(finite, np.maximum(np.abs(b), near), 1.0), name) + 1e-7 * (
        name != "float64"
    )
    assert np.all(np.abs(np.where(finite, a - b, 0)) <= bound), (a, b)


def made(shape, dtype="float32", device="cpu", grad=False):
    if dtype == "bool":
        values = RNG.random(shape) < 0.5
    elif dtype in INTEGERS:
        values = RNG.integers(0 if dtype == "uint8" else -9, 9, shape)
    else:
        values = RNG.normal(size=shape) * 2
    t = tensor(values, dtype, device)
    return t.requires_grad_() if grad else t
