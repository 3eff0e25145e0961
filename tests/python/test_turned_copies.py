# SPDX-License-Identifier: Apache-2.0
"""Copies of tensors whose dims lie the other way round, at each length of the result's rows.

On the CPU rows of up to 64 bytes are turned where they go, denser and longer ones up to 256 bytes
tile by tile at once, others row by row.
"""

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(9)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("cols", [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130])
def test_lengths_of_rows(dtype, cols, device):
    for rows in (1, 3, 4, 5, 16, 63, 130, 1025):
        values = RNG.integers(0, 200, (cols, rows))
        x = tensor(values, dtype, device)
        np.testing.assert_array_equal(host(x.T.contiguous()), host(x).T)
        for other in (flow.float32, flow.bfloat16):
            got = flow.empty(rows, cols, dtype=other, device=device).copy_(x.T)
            want = x.to(other)
            np.testing.assert_array_equal(host(got), host(want).T)


@pytest.mark.parametrize(
    "shape", [(4, 8, 8, 16), (4, 5, 6, 7), (3, 4, 5, 4), (16, 2, 3, 64)], ids=str
)
@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 2, 3, 0), (3, 0, 1, 2), (0, 3, 1, 2),
                                   (2, 0, 3, 1)], ids=str)  # fmt: skip
def test_orders_of_dims(shape, order, device):
    values = RNG.integers(0, 200, shape)
    for dtype in ("uint8", "float16", "float32", "int64"):
        x = tensor(values, dtype, device).permute(*order)
        np.testing.assert_array_equal(host(x.contiguous()), values.transpose(order))
        # Into every second place, and at an odd offset.
        wide = flow.zeros(*x.shape[:-1], 2 * x.shape[-1] + 1, dtype=x.dtype, device=device)
        wide[..., 1::2].copy_(x)
        np.testing.assert_array_equal(host(wide[..., 1::2]), values.transpose(order))
        assert not host(wide[..., ::2]).any()
        padded = flow.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype, device=device)
        padded[..., 1:-2].copy_(x)
        np.testing.assert_array_equal(host(padded[..., 1:-2]), values.transpose(order))
        assert not host(padded[..., -2:]).any() and not host(padded[..., 0]).any()
