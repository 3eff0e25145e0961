# SPDX-License-Identifier: Apache-2.0
"""Names of PyTorch's for dtypes and layouts: flow.LongTensor, memory_format."""

import pytest

flow = pytest.importorskip("oneflow_lite")


def test_names_of_the_one_layout():
    x = flow.arange(6).view(2, 3).t()
    assert x.layout is flow.strided and not x.is_sparse
    assert repr(flow.preserve_format) == "oneflow_lite.preserve_format"
    for name in (flow.contiguous_format, flow.preserve_format):
        for y in (
            x.clone(memory_format=name),
            x.contiguous(memory_format=name),
            flow.zeros_like(x, memory_format=name),
            x.to(flow.int32, memory_format=name),
        ):
            assert y.shape == x.shape
    assert flow.empty(2, layout=flow.strided).shape == (2,)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("FloatTensor", flow.float32), ("DoubleTensor", flow.float64), ("HalfTensor", flow.float16),
     ("BFloat16Tensor", flow.bfloat16), ("LongTensor", flow.int64), ("IntTensor", flow.int32),
     ("ShortTensor", flow.int16), ("CharTensor", flow.int8), ("ByteTensor", flow.uint8),
     ("BoolTensor", flow.bool)],
)  # fmt: skip
def test_tensors_by_their_type(name, dtype):
    make = getattr(flow, name)
    x = make([1, 0])
    assert type(x) is flow.Tensor and x.dtype is dtype and x.tolist() == [1, 0]
    assert make(2, 3).shape == (2, 3) and make().shape == (0,) and make(2).dtype is dtype
    other = flow.float32 if dtype is not flow.float32 else flow.int64
    assert flow.ones(2).type(make).dtype is dtype
    assert x.new([1, 2]).dtype is dtype and x.new(2, 3).shape == (2, 3) and x.new().shape == (0,)
    assert isinstance(x, make) and not isinstance(x.to(other), make) and not isinstance(1, make)


@pytest.mark.parametrize("name", "double float half bfloat16 long int short char byte bool".split())
def test_a_cast_takes_a_memory_format_alone(name):
    x = flow.ones(2, 3).t()
    cast = getattr(x, name)
    assert cast(memory_format=flow.contiguous_format).stride() == (2, 1)
    with pytest.raises(
        TypeError, match=rf"{name}\(\) takes 1 positional argument but 2 were given"
    ):
        cast(3)
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument 'memory_format' must be .*int"):
        cast(memory_format=3)
    with pytest.raises(TypeError, match=r"^to\(\): argument 'memory_format' must be .*not str"):
        x.to(flow.float16, memory_format="contiguous")
