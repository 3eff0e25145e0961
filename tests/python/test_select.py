# SPDX-License-Identifier: Apache-2.0
"""where moves elements as they are; its values in general are in the op table."""

import math

import numpy as np
import pytest
from numerics import ALL, FLOATS, bits, flow, host, tensor

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", FLOATS)
def test_elements_keep_their_bits(dtype, device):
    special = tensor([-0.0, 0.0, NAN, INF, -INF, 1e-7], dtype, device)
    other = tensor([1.0, -0.0, 2.0, NAN, -0.0, INF], dtype, device)
    yes = flow.ones(6, dtype=flow.bool, device=device)
    assert bits(flow.where(yes, special, other)) == bits(special)
    assert bits(flow.where(~yes, special, other)) == bits(other)
    assert math.copysign(1, flow.where(yes, -0.0, special)[0].item()) == -1
    assert bits(special.masked_fill(~yes, 3)) == bits(special)


@pytest.mark.parametrize("dtype", ALL)
def test_numbers_and_0_dim_tensors_from_the_host(dtype, device):
    x = tensor([1, 0, 1], dtype, device)
    yes = flow.tensor([True, False, True], device=device)
    one, no = tensor(1, dtype), flow.tensor(False)
    assert host(flow.where(yes, one, x)).tolist() == [1, 0, 1]
    assert host(flow.where(no, one, x)).tolist() == host(x).tolist()
    assert host(flow.where(yes, x, tensor(1, dtype, device))).tolist() == [1, 1, 1]
    y = flow.where(yes, True, False)
    assert y.dtype is flow.bool and y.device == x.device and host(y).tolist() == [1, 0, 1]
    assert flow.where(yes, 1, 0).dtype is flow.int64
    assert flow.where(yes, 1.5, x).dtype is (x.dtype if dtype in FLOATS else flow.float32)


def test_gradients_reach_what_was_chosen(device):
    x = tensor([[0.0, 1.0], [4.0, 0.0]], "float64", device).requires_grad_()
    y = tensor([2.0], "float64", device).requires_grad_()
    number = flow.tensor(3.0, dtype=flow.float64, requires_grad=True)
    # The slope of the root at 0 is infinite, and is not taken.
    root = flow.where(x > 0, x.sqrt(), y)
    (root + flow.where(x > 0, number, 0.0)).sum().backward()
    assert host(y.grad).tolist() == [2.0] and number.grad.item() == 2
    assert number.grad.device == number.device
    np.testing.assert_array_equal(host(x.grad)[[0, 1], [1, 0]], [0.5, 0.25])


@pytest.mark.parametrize("n", [0, 1, 7, 513, 70001])
def test_any_offset_and_layout(n, device):
    rng = np.random.default_rng(n)
    a, b, c = rng.integers(0, 100, n + 1), rng.integers(0, 100, n + 1), rng.random(n + 1) < 0.5
    for dtype in ("uint8", "float16", "float32", "int64"):
        x, y = tensor(a, dtype, device)[1:], tensor(b, dtype, device)[1:]
        chosen = flow.tensor(c, device=device)
        np.testing.assert_array_equal(host(flow.where(chosen[1:], x, y)), np.where(c, a, b)[1:])
        np.testing.assert_array_equal(host(flow.where(chosen[:n], x, 5)), np.where(c[:n], a[1:], 5))
        doubled = tensor(np.repeat(b, 2), dtype, device)[2::2]
        np.testing.assert_array_equal(
            host(flow.where(chosen[1:], x, doubled)), np.where(c, a, b)[1:]
        )
