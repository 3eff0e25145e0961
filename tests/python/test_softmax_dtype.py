# SPDX-License-Identifier: Apache-2.0
"""softmax and log_softmax of 16-bit input with dtype=float32: rows that are widened, against NumPy
in float64 and against a cast in front.
"""

import numpy as np
import pytest
from numerics import HALVES, assert_close, bits, flow, host, tensor, ulp
from op_reference import np_log_softmax, np_softmax

REFERENCES = {"softmax": np_softmax, "log_softmax": np_log_softmax}
# Around what lanes, a block, a cluster and the whole device hold of rows in float32.
WIDTHS = [1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 65, 127, 128, 129, 255, 257, 383, 384, 385, 511,
          512, 513, 1000, 1023, 1024, 1025, 2049, 4096, 4097, 8192, 8193, 16384, 16385, 32768,
          50257, 65537, 131072, 262145, 1 << 20]  # fmt: skip


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 3


@pytest.fixture(params=REFERENCES)
def name(request):
    return request.param


def check(name, x, dim=-1, where=""):
    function = getattr(flow, name)
    y = function(x, dim, dtype=flow.float32)
    assert y.dtype is flow.float32 and y.shape == x.shape and y.is_contiguous()
    assert_close(y, REFERENCES[name](host(x), dim), name, where=where)
    assert bits(function(x, dim, dtype=flow.float32)) == bits(y), where
    return y


@pytest.mark.parametrize("dtype", HALVES)
def test_widths_at_every_alignment(name, dtype, device):
    for width in WIDTHS:
        for rows in (1, 3) if width > 20000 else (1, 5, 300):
            for offset, pad in ((0, 0), (1, 0), (4, 3), (0, 8)):
                stride = width + pad
                memory = tensor(random(offset + rows * stride), dtype, device)
                x = memory.as_strided((rows, width), (stride, 1), offset)
                check(name, x, where=f"{rows} x {width} offset {offset} pad {pad}")


def test_many_wide_rows(name, device):
    if device == "cpu":
        pytest.skip("they are for the tiers of a GPU, and take a while here")
    for shape in ((200, 9000), (300, 40000), (140, 131073), (2, 1 << 22)):
        x = tensor(random(shape), "float16", device)
        check(name, x, where=f"{shape}")


def test_special_values(name, device):
    x = random((6, 1000))
    x[0, 3], x[1, 5], x[2] = np.inf, np.nan, -np.inf
    x[3, 1:], x[4] = -np.inf, 65504
    y = host(check(name, tensor(x, "float16", device)))
    assert np.isnan(y[:3]).all() and not np.isnan(y[3:]).any()


def test_other_dims_and_layouts(name, device):
    x = tensor(random((4, 5, 6, 7)), "bfloat16", device)
    for dim in range(-4, 4):
        check(name, x, dim, f"dim {dim}")
        check(name, x.transpose(0, 2), dim, f"transposed, dim {dim}")
        check(name, x[:, 1:, ::2], dim, f"sliced, dim {dim}")
    assert check(name, x[:0], 1).shape == (0, 5, 6, 7)
    check(name, x[0, 0, 0, 0], 0)


# On a GPU the forward adds up in another order.
@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_are_those_of_a_cast_in_front(name, dtype, device):
    function = getattr(flow, name)
    for dim in (-1, 0):
        x, g = tensor(random((9, 70)), dtype, device), tensor(random((9, 70), 1), "float32", device)
        leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, want = [], []
        for at, y, grads in ((leaf, function(leaf, dim, dtype=flow.float32), got),
                             (other, function(other.float(), dim), want)):  # fmt: skip
            (dx,) = flow.autograd.grad(y, [at], g, create_graph=True)
            grads += [dx, *flow.autograd.grad((dx.float() * dx.float()).sum(), [at])]
        for a, b in zip(got, want, strict=True):
            assert a.dtype is x.dtype and (device == "cuda" or bits(a) == bits(b))
            step = float(ulp(np.abs(host(b)).max(), dtype))
            np.testing.assert_allclose(host(a), host(b), rtol=0, atol=2 * step)


def test_only_16_bits_are_widened(name, device):
    op = getattr(flow.ops, name)
    refused = (("float32", "float64"), ("float32", "float16"), ("float64", "float32"),
               ("float16", "bfloat16"), ("bfloat16", "float64"), ("float16", "int32"))  # fmt: skip
    for x, to in refused:
        with pytest.raises(flow.DTypeError, match=f"out_dtype is {to} beside an input of {x}"):
            op(tensor(random((2, 3)), x, device), 1, getattr(flow, to))
    for dtype in (*HALVES, "float32", "float64"):
        x = tensor(random((2, 3)), dtype, device)
        assert op(x, 1).dtype is x.dtype and bits(op(x, 1, x.dtype)) == bits(op(x, 1))
    x = flow.ones(2, 3, dtype=flow.float16, device=device)
    assert op(x, 1, flow.float32).dtype is flow.float32
    assert flow.softmax(x, 1, dtype=flow.float64).dtype is flow.float64
    assert flow.softmax(x, 1, dtype=flow.bfloat16).dtype is flow.bfloat16
    with pytest.raises(IndexError, match="softmax"):
        flow.softmax(x, 2, dtype=flow.float32)
