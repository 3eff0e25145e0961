# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions in place: one op that writes over its input, where nothing is recorded."""

import numpy as np
import pytest
from numerics import ALL, FLOATS, bits, flow, host, tensor

ext = flow._oneflow_lite
NAMES = ["abs", "acos", "ceil", "cos", "deg2rad", "erf", "exp", "expm1", "floor", "frac", "log1p",
         "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "square", "tanh",
         "trunc", "bitwise_not", "logical_not"]  # fmt: skip


def layouts(values, dtype):
    """The values as rows, columns, every second element, at an odd offset, and turned round."""
    x = tensor(values, dtype)
    wide = flow.zeros(x.shape[0], 2 * x.shape[1] + 1, dtype=x.dtype)
    wide[:, 1::2] = x
    shifted = flow.zeros(x.numel() + 1, dtype=x.dtype)
    shifted[1:] = x.reshape(-1)
    yield x.clone()
    yield x.T.contiguous().T
    yield wide[:, 1::2]
    yield shifted[1:].view(x.shape)
    yield x.clone()[::2]


def test_every_dtype_and_layout(device):
    for name in NAMES:
        for dtype in ALL:
            values = np.random.default_rng(2).integers(0, 2, (6, 33))
            for x in layouts(values, dtype):
                x = x.to(device)
                try:
                    want = getattr(flow, name)(x)
                    want = want if want.dtype is x.dtype else None
                except RuntimeError:
                    continue
                if want is None:
                    continue
                version = x._version
                assert getattr(x, name + "_")() is x
                assert bits(x) == bits(want), (name, dtype, x.stride())
                assert x._version > version


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 63, 65, 511, 513, 70_001])
def test_lengths(n, device):
    for dtype in FLOATS:
        x = tensor(np.linspace(-3, 3, n), dtype, device)
        y = x.clone()
        for name in ("neg", "abs", "floor", "exp", "sigmoid"):
            want = getattr(y, name)()
            assert bits(getattr(y, name + "_")()) == bits(want)


def test_it_is_one_op():
    x = flow.rand(3, 4)
    for name in ("neg_", "exp_", "floor_", "round_", "sqrt_"):
        assert [op for op, _ in ext.record_ops(getattr(x, name))] == [name[:-1]]
        assert [op for op, _ in ext.record_ops(getattr(x.T, name))] == [name[:-1]]


def test_of_integers_it_is_one_op_where_its_row_takes_them():
    for dtype in ALL:
        x = flow.ones(3, dtype=getattr(flow, dtype))
        for name in ("neg", "abs", "sign", "square", "bitwise_not"):
            if dtype == "bool" and name != "bitwise_not" or "float" in dtype:
                continue
            assert [op for op, _ in ext.record_ops(getattr(x, name + "_"))] == [name], dtype
    x = flow.ones(3, dtype=flow.int64)  # a copy: no integer is rounded
    assert "floor" not in [op for op, _ in ext.record_ops(x.floor_)]


def test_views_write_into_their_base(device):
    x = flow.arange(12.0, device=device).view(3, 4)
    x[1].neg_()
    x[:, ::2].square_()
    want = np.arange(12.0).reshape(3, 4)
    want[1] *= -1
    want[:, ::2] **= 2
    np.testing.assert_array_equal(host(x), want)


def test_what_is_recorded_keeps_what_backward_needs(device):
    x = flow.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    y = x * 1
    y.square_().exp_()
    y.log_().sum().backward()
    np.testing.assert_allclose(host(x.grad), [2, 4, 6], rtol=1e-5)
    with pytest.raises(RuntimeError, match=r"^exp_\(\)|leaf"):
        x.exp_()
    with flow.no_grad():
        assert x.neg_().tolist() == [-1, -2, -3]


def test_a_result_that_does_not_fit_is_refused(device):
    with pytest.raises(flow.DTypeError, match=r"^exp_\(\): the result has dtype float32"):
        flow.arange(3, device=device).exp_()
    x = flow.arange(3, device=device)
    assert x.logical_not_().tolist() == [1, 0, 0]
    assert flow.arange(3, device=device).floor_().tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"^neg_\(\).*clone"):
        flow.ones(1, 3, device=device).expand(2, 3).neg_()
    assert flow.ones(2, 3, device="meta").neg_().shape == (2, 3)


def test_autocast_leaves_the_dtype(device):
    with flow.autocast(device, dtype=flow.bfloat16):
        x = flow.rand(4, device=device)
        want = host(x.float().exp())
        np.testing.assert_allclose(host(x.exp_()), want, rtol=1e-2)
        assert x.dtype is flow.float32
