# SPDX-License-Identifier: Apache-2.0
"""Rows of tensors that the CPU's caches do not hold, whose results are stored past them."""

import numpy as np
import pytest

import oneflow_lite as flow
import oneflow_lite.nn.functional as F

BYTES = 50 << 20  # read and written: beyond StreamsOutput's limit (primitive/cpu/row_plan.h)
DTYPES = (flow.float16, flow.bfloat16, flow.float32, flow.float64)


def softmax(x, weight):
    return F.softmax(x, 1)


def log_softmax(x, weight):
    return F.log_softmax(x, 1)


def layer_norm(x, weight):
    return F.layer_norm(x, weight.shape, weight)


def rms_norm(x, weight):
    return F.rms_norm(x, weight.shape, weight)


def bits(tensor):
    return tensor.contiguous().view(flow.uint8)


def value_and_gradient(op, x, weight, dy):
    x = x.detach().requires_grad_()
    y = op(x, weight)
    y.backward(dy)
    return y.detach(), x.grad


@pytest.mark.parametrize("op", [softmax, log_softmax, layer_norm, rms_norm])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("cols", [7, 777, 1000, 1100])  # which end in the middle of a line
def test_as_rows_of_a_small_tensor(op, dtype, cols):
    """A few rows, again and again: bit for bit what they give alone."""
    few = 61
    rng = np.random.default_rng(cols)
    x, dy = (flow.tensor(rng.standard_normal((few, cols)), dtype=dtype) for _ in range(2))
    weight = flow.tensor(rng.standard_normal(cols), dtype=dtype)
    times = BYTES // (2 * few * cols * x.element_size()) + 1
    many = [t.repeat(times, 1) for t in (x, dy)]
    for got, want in zip(
        value_and_gradient(op, many[0], weight, many[1]),
        value_and_gradient(op, x, weight, dy),
        strict=True,
    ):
        for begin in range(0, times * few, few):
            assert flow.equal(bits(got[begin : begin + few]), bits(want)), begin
