# SPDX-License-Identifier: Apache-2.0
"""equal: one reduction on the CPU, which stops at the first elements that differ.

Vectors have up to 64 bytes, four of them are looked at together, and pieces of 8192 elements or,
of strided tensors, of 512.
"""

import numpy as np
import pytest
from numerics import ALL, FLOATS, flow, tensor

SIZES = (1, 3, 15, 16, 17, 31, 33, 64, 65, 127, 255, 257, 511, 513, 8191, 8193, 40_000)
ext = flow._oneflow_lite


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", SIZES)
def test_one_element_differs(dtype, n, device):
    values = np.random.default_rng(n).integers(0, 2, n)
    x = tensor(values, dtype, device)
    assert flow.equal(x, x.clone())
    assert flow.equal(x[1:], x.clone()[1:])
    for at in {0, n // 2, n - 1}:
        other = values.copy()
        other[at] = 1 - other[at]
        assert not flow.equal(x, tensor(other, dtype, device))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 16, 33, 300])
def test_nan_is_nothing_and_both_zeros_are_one(dtype, n, device):
    for at in {0, n // 2, n - 1}:
        x = flow.zeros(n, dtype=getattr(flow, dtype), device=device)
        y = -x
        assert flow.equal(x, y)
        for value in (float("inf"), -float("inf")):
            x[at] = y[at] = value
            assert flow.equal(x, y)
            y[at] = -value
            assert not flow.equal(x, y)
        x[at] = float("nan")
        assert not flow.equal(x, x)
        assert not flow.equal(x, x.clone())


def test_layouts(device):
    x = flow.arange(3 * 40 * 50, device=device).reshape(3, 40, 50)
    turned = x.transpose(0, 2).contiguous().transpose(0, 2)
    for dtype in (flow.float32, flow.bfloat16, flow.int64, flow.uint8):
        a, b = x.to(dtype), turned.to(dtype)
        assert flow.equal(a, b)
        assert flow.equal(b, a)
        assert flow.equal(b, b.transpose(0, 2).clone().transpose(0, 2))
        assert flow.equal(a[:, ::3, 1:], b[:, ::3, 1:])
        assert flow.equal(a[:1].expand(4, 40, 50), b[:1].expand(4, 40, 50).contiguous())
        b = b.clone()
        b[2, 39, 49] = 0
        assert not flow.equal(a, b)
        assert not flow.equal(a[:, ::3, 1:], b[:, ::3, 1:])


def test_of_nothing_and_of_other_shapes(device):
    empty = flow.zeros(0, 3, device=device)
    assert flow.equal(empty, empty)
    assert not flow.equal(empty, flow.zeros(3, 0, device=device))
    assert flow.equal(flow.tensor(2.0, device=device), flow.tensor(2.0, device=device))
    assert not flow.equal(flow.tensor(2.0, device=device), flow.tensor([2.0], device=device))


def test_a_bool_of_any_byte_is_true():
    odd = flow.from_numpy(np.array([1, 2, 0, 255], np.uint8).view(bool))
    assert flow.equal(odd, flow.tensor([True, True, False, True]))
    assert not flow.equal(odd, flow.tensor([True, True, True, True]))


def test_dtypes_are_promoted(device):
    x = flow.arange(5, device=device)
    assert flow.equal(x, x.double())
    assert not flow.equal(x, x.double() + 0.5)


def test_it_is_one_op_and_no_history():
    x = flow.ones(5, requires_grad=True)
    names = [name for name, _ in ext.record_ops(lambda: flow.equal(x, x * 1))]
    assert names == ["mul", "equal"]


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_agree(threads):
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        x = flow.arange(200_000)
        y = x.clone()
        assert x.equal(y)
        y[-1] = 0
        assert not x.equal(y)
        assert not x[::2].equal(y[1::2])
    finally:
        flow.set_num_threads(before)
