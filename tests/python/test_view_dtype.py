# SPDX-License-Identifier: Apache-2.0
"""Tensor.view(dtype): the same bytes as elements of another dtype."""

import numpy as np
import pytest
from numerics import ALL, flow

NUMPY = [d for d in ALL if d != "bfloat16"]


@pytest.mark.parametrize(
    "dtype, to", [(a, b) for a in NUMPY for b in NUMPY if b != "bool" or a == "bool"]
)
def test_bytes_are_numpys(dtype, to):
    a = np.arange(48).reshape(2, 3, 8).astype(dtype)
    x = flow.from_numpy(a)
    y = x.view(getattr(flow, to))
    assert y.dtype == getattr(flow, to) and y.data_ptr() == x.data_ptr()
    assert np.array_equal(y.numpy().view(np.uint8), a.view(to).view(np.uint8))
    assert y.shape == a.view(to).shape and y.is_contiguous()
    if to == dtype:
        y[0, 0, 0] = 1
        assert a[0, 0, 0] == 1


def test_layouts(device):
    x = flow.arange(16, dtype=flow.float32, device=device).reshape(2, 8)
    assert x[1:].view(flow.float64).storage_offset() == 4
    assert x[:, 2:4].view(flow.float64).stride() == (4, 1)
    assert x[:1].expand(3, 8).view(flow.int16).stride() == (0, 1)
    y = x.t().view(flow.int32)
    assert y.stride() == (1, 8) and y[3, 1].item() == np.float32(11).view(np.int32)
    assert flow.ones((), device=device).view(flow.int32).item() == 0x3F800000
    assert flow.ones(2, 4, dtype=flow.bfloat16, device=device).view(flow.int64).shape == (2, 1)
    assert flow.zeros(0, 3, device=device).view(flow.uint8).shape == (0, 12)
    assert flow.zeros(2, 4, device="meta").view(flow.float64).shape == (2, 2)


def test_what_cannot_be_viewed(device):
    x = flow.zeros(4, 4, device=device)
    for wrong, to in ((x[0, 0], flow.float64), (x[:, :3], flow.float64), (x[:, 1:3], flow.float64),
                      (x.t(), flow.int16), (x[:, ::2], flow.float64), (x[:, :1], flow.float64),
                      (flow.zeros(4, 3, device=device)[:, :2], flow.float64)):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"^view\(\): "):
            wrong.view(to)
    with pytest.raises(TypeError):
        x.view("float64")


def test_memory_that_does_not_begin_right():
    a = np.zeros(72, np.uint8)
    start = (1 - a.ctypes.data) % 8
    x = flow.from_numpy(a[start : start + 64])
    with pytest.raises(ValueError, match="does not begin at a multiple of the 8 bytes of float64"):
        x.view(flow.float64)


def test_no_history_and_one_version():
    x = flow.ones(4, requires_grad=True)
    y = (x * 1).exp()
    bits = y.view(flow.int32)
    assert not bits.requires_grad and not x.view(flow.float64).requires_grad
    bits.zero_()
    assert y.tolist() == [0] * 4
    with pytest.raises(RuntimeError):  # what exp keeps was changed through the view
        y.sum().backward()


def test_other_bytes_are_no_bools():
    with pytest.raises(TypeError, match="neither 0 nor 1"):
        flow.ones(3, dtype=flow.uint8).view(flow.bool)
    assert flow.tensor([True, False]).view(flow.uint8).tolist() == [1, 0]


def test_bools_that_numpy_made_of_bytes_count_once():
    raw = np.zeros(2000, np.uint8)
    raw[:600] = 3
    raw[700:] = 255
    mask = flow.from_numpy(raw.view(np.bool_))
    want = np.flatnonzero(raw)
    assert mask.sum().item() == flow.count_nonzero(mask).item() == len(want)
    np.testing.assert_array_equal(flow.nonzero(mask)[:, 0].numpy(), want)
    np.testing.assert_array_equal(flow.arange(2000)[mask].numpy(), want)
    columns = flow.from_numpy(np.full((300, 3), 255, np.uint8).view(np.bool_))
    assert columns.sum(0).tolist() == [300] * 3 and columns.all().item()
