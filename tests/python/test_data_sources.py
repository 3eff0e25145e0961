# SPDX-License-Identifier: Apache-2.0
"""What tensors are made of: whatever speaks a protocol of arrays, sequences of what has a dtype."""

import array
import ctypes
from fractions import Fraction

import numpy as np
import pytest
from numerics import flow

WANTED = np.arange(6, dtype=np.int16).reshape(2, 3)


class Source:
    """A sequence too, which nobody should read element by element."""

    def __init__(self, data=WANTED):
        self.data = data

    def __len__(self):
        raise AssertionError("read as a sequence")

    __getitem__ = __iter__ = __len__


class WithArray(Source):
    def __array__(self, dtype=None, copy=None):
        return self.data


class WithDlpack(Source):
    """As an array of JAX: no writing, no keywords for what is not asked."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        options = {"copy": copy} if copy else {}
        return self.data.__dlpack__(max_version=max_version, **options)

    def __dlpack_device__(self):
        return (1, 0)


class OldDlpack(Source):
    def __dlpack__(self, stream=None):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class BrokenDlpack(WithArray):
    def __dlpack__(self, **kwargs):
        raise BufferError("not here")

    def __dlpack_device__(self):
        return (1, 0)


class OfElsewhere(BrokenDlpack):
    def __dlpack_device__(self):
        return (8, 0)  # Metal


class WithInterface(Source):
    @property
    def __array_interface__(self):
        return self.data.__array_interface__


class WithStruct(Source):
    @property
    def __array_struct__(self):
        return self.data.__array_struct__


class ListWithArray(list):
    def __array__(self, dtype=None, copy=None):
        return WANTED


SOURCES = [WithArray(), WithDlpack(), OldDlpack(), BrokenDlpack(), OfElsewhere(), WithInterface(),
           WithStruct(), ListWithArray([1]), memoryview(WANTED),
           memoryview(np.asfortranarray(WANTED))]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: type(s).__name__)
def test_protocols_come_before_sequences(source):
    for make in (flow.tensor, flow.as_tensor, flow.asarray):
        x = make(source)
        assert x.dtype is flow.int16 and x.tolist() == WANTED.tolist()
        y = make(source, dtype=flow.float64)
        assert y.dtype is flow.float64 and y.tolist() == WANTED.tolist()
    x = flow.tensor(source)
    x.fill_(7)
    assert WANTED[1, 2] == 5  # a copy
    assert flow.tensor(source, device="meta").shape == (2, 3)


def test_read_only_sources():
    data = np.arange(3.0)
    data.flags.writeable = False
    for source in (data, WithDlpack(data), WithArray(data), WithInterface(data), memoryview(data)):
        assert flow.tensor(source).tolist() == flow.as_tensor(source).tolist() == [0, 1, 2]
    assert data.tolist() == [0, 1, 2]


@pytest.mark.parametrize("code, dtype", [("b", "int8"), ("B", "uint8"), ("h", "int16"),
                                         ("i", "int32"), ("q", "int64"), ("f", "float32"),
                                         ("d", "float64")])  # fmt: skip
def test_buffers(code, dtype):
    values = array.array(code, [1, 2, 3])
    for make in (flow.tensor, flow.as_tensor, flow.asarray):
        x = make(values)
        assert x.dtype.name == dtype and x.tolist() == [1, 2, 3]
    flow.tensor(values)[0] = 5
    assert values[0] == 1  # a copy
    assert flow.tensor(bytearray(b"ab")).tolist() == [97, 98]
    assert flow.tensor((ctypes.c_float * 2)(1.5, 2)).dtype is flow.float32
    # Numbers that no tensor has in so few bits are read one by one.
    assert flow.tensor(array.array("H", [1, 2])).dtype is flow.int64
    for text in ("ab", b"ab", array.array("u", "ab")):
        with pytest.raises(TypeError):
            flow.tensor(text)


def test_what_fails_says_why():
    class Bad:
        def __array__(self, dtype=None, copy=None):
            raise KeyError("mine")

    class NoDlpack:
        def __dlpack__(self, **kwargs):
            raise BufferError("cannot be exported")

        def __dlpack_device__(self):
            return (1, 0)

    class Stopped:
        def __array__(self, dtype=None, copy=None):
            raise KeyboardInterrupt

        def __getitem__(self, i):
            raise AssertionError

    with pytest.raises(KeyError, match="mine"):
        flow.tensor(Bad())
    with pytest.raises(BufferError, match="cannot be exported"):
        flow.tensor(NoDlpack())
    with pytest.raises(KeyboardInterrupt):
        flow.tensor(Stopped())
    for wrong in (np.ndarray, flow.Tensor, object(), WithArray):
        with pytest.raises(TypeError, match="argument 'data' must be"):
            flow.tensor(wrong)
        for copied in (None, True):
            with pytest.raises(TypeError, match=r"asarray\(\): argument 'obj' must be"):
                flow.asarray(wrong, copy=copied)

    class OfText:
        def __array__(self, dtype=None, copy=None):
            return np.array(["a"])

    with pytest.raises(flow.DTypeError, match="arrays of dtype <U1 are not supported"):
        flow.tensor(OfText())


# Sequences.

F16, F64, I8, I32, U8 = np.float16, np.float64, np.int8, np.int32, np.uint8


def of(dtype, value=1):
    return flow.tensor(value, dtype=getattr(flow, dtype))


ELEMENTS = [
    ([F64(1)], "float64"), ([F64(1), 2.0], "float64"), ([np.float32(1), 2], "float32"),
    ([F16(1)], "float16"), ([F16(1), 1.0], "float32"), ([F16(1), 3], "float16"),
    ([I8(1)], "int8"), ([I8(1), True], "int8"), ([I8(1), 2], "int64"), ([I8(1), U8(1)], "int16"),
    ([I32(1), F16(1)], "float16"), ([I32(1), 1.0], "float32"), ([np.bool_(1)], "bool"),
    ([np.bool_(1), I8(1)], "int8"), ([[F64(1)], [2]], "float64"), ((I32(1), I32(2)), "int32"),
    ([of("int8")], "int8"), ([of("float64"), 1.0], "float64"), ([of("float16"), 1], "float16"),
    ([of("bfloat16")], "bfloat16"), ([of("bfloat16"), of("float16")], "float32"),
    ([[of("bool")], [True]], "bool"), ([of("int8"), U8(3)], "int16"),
    ([of("float64"), F16(1)], "float64"), ([flow.ones(2, dtype=flow.float16)], "float16"),
    ([flow.ones(2, dtype=flow.int8), [1, 2]], "int64"),
    ([flow.ones(2, dtype=flow.int8), [I8(1), I8(2)]], "int8"),
    ([np.arange(2, dtype=I8), np.arange(2, dtype=F16)], "float16"),
    ([np.arange(2, dtype=I8), flow.ones(2)], "float32"),
    ([np.array(1, dtype=F64), 2], "float64"), ([[np.ones(2)], [[1, 2]]], "float64"),
    ([np.ones((2, 2)), np.ones((2, 2))], "float64"),
    ([np.ones(0, dtype=I8)], "int8"), ([flow.ones(0, dtype=flow.int8)], "int8"),
    ([[], np.ones(0, dtype=I8)], "float32"), ([], "float32"), ([[], []], "float32"),
    ([np.uint16(3)], "int64"), ([1.0, 2], "float32"), ([1, True], "int64"), ([True], "bool"),
    ([Fraction(1, 2)], "float32"), ([Fraction(1, 2), F64(1)], "float64"),
]  # fmt: skip


@pytest.mark.parametrize("data, dtype", ELEMENTS, ids=str)
def test_elements_keep_their_dtype(data, dtype):
    for make in (flow.tensor, flow.as_tensor, flow.asarray, flow.zeros(1).new_tensor):
        x = make(data)
        if make is flow.tensor or make is flow.as_tensor or make is flow.asarray:
            assert x.dtype.name == dtype
        else:
            assert x.dtype is flow.float32  # of the tensor that it is new beside
        plain = [[v.tolist() if hasattr(v, "tolist") else v for v in row]
                 if isinstance(row, list) else row.tolist() if hasattr(row, "tolist") else
                 float(row) if isinstance(row, Fraction) else row for row in data]  # fmt: skip
        np.testing.assert_array_equal(np.asarray(x.tolist()), np.asarray(plain))
    assert flow.tensor(data, dtype=flow.int32).dtype is flow.int32


def test_wide_elements_lose_nothing():
    assert flow.tensor([F64(0.1), F64(1 / 3)]).tolist() == [0.1, 1 / 3]
    assert flow.tensor([np.int64(2**62 + 1), I8(1)]).tolist() == [2**62 + 1, 1]
    assert flow.tensor([flow.tensor(0.1, dtype=flow.float64), 1]).tolist() == [0.1, 1]
    x = np.random.default_rng(0).standard_normal((3, 2))
    assert flow.tensor(list(x)).tolist() == flow.tensor([flow.tensor(r) for r in x]).tolist()
    assert flow.tensor(list(x)).tolist() == x.tolist()


def test_ragged_sequences_of_arrays():
    for data in ([np.ones(2), np.ones(3)], [flow.ones(2), 1], [np.ones((2, 1)), np.ones(2)]):
        with pytest.raises(ValueError, match="ragged"):
            flow.tensor(data)


# asarray and from_dlpack.


def test_asarray_shares_or_copies():
    a, x = np.arange(3.0), flow.arange(3)
    assert flow.asarray(x) is not None and flow.asarray(x).data_ptr() == x.data_ptr()
    assert flow.asarray(a).data_ptr() == a.ctypes.data == flow.asarray(a, copy=False).data_ptr()
    assert flow.asarray(a, copy=True).data_ptr() != a.ctypes.data
    assert flow.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert flow.asarray([1, 2], copy=True).tolist() == [1, 2]
    buffer = array.array("h", [1, 2])
    flow.asarray(buffer, copy=False)[0] = 9
    assert buffer[0] == 9
    assert flow.asarray(WithDlpack(a), copy=False).data_ptr() == a.ctypes.data
    read_only = np.ones(2)
    read_only.flags.writeable = False
    for what, options in (([1, 2], {}), (a, {"dtype": flow.float32}), (x, {"device": "meta"}),
                          (1.0, {}), (read_only, {}), (a[::-1], {}),
                          (WithDlpack(read_only), {})):  # fmt: skip
        with pytest.raises(ValueError, match="copy is False"):
            flow.asarray(what, copy=False, **options)


def test_asarray_and_gradients():
    w = flow.ones(2, requires_grad=True)
    y = w * 2
    assert not flow.asarray(y).requires_grad and flow.asarray(y, requires_grad=True).grad_fn
    assert flow.asarray([1.0, 2.0], requires_grad=True).is_leaf
    assert flow.asarray([1.0], requires_grad=True).requires_grad
    flow.asarray(y, copy=True, requires_grad=True).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_from_dlpack_copies_and_moves():
    a = np.arange(3.0)
    for source in (a, WithDlpack(a), flow.from_numpy(a)):
        assert flow.from_dlpack(source).data_ptr() == a.ctypes.data
        assert flow.from_dlpack(source, copy=False).data_ptr() == a.ctypes.data
        assert flow.from_dlpack(source, device="cpu", copy=None).data_ptr() == a.ctypes.data
        y = flow.from_dlpack(source, copy=True)
        assert y.data_ptr() != a.ctypes.data and y.tolist() == [0, 1, 2]
        assert flow.from_dlpack(source, device=flow.device("meta")).is_meta
        with pytest.raises(ValueError, match="copy is False"):
            flow.from_dlpack(source, device="meta", copy=False)
    assert flow.from_dlpack(OldDlpack(a), copy=True).data_ptr() != a.ctypes.data
    capsule = a.__dlpack__()
    assert flow.from_dlpack(capsule, copy=True).data_ptr() != a.ctypes.data
    read_only = np.arange(2.0)
    read_only.flags.writeable = False
    y = flow.from_dlpack(WithDlpack(read_only), copy=True)
    y[0] = 5
    assert read_only[0] == 0
    for wrong, error in (({"copy": 1}, TypeError), ({"device": 3.5}, TypeError),
                         ({"device": "gpu"}, (ValueError, RuntimeError)),
                         ({"dtype": flow.int8}, TypeError)):  # fmt: skip
        with pytest.raises(error):
            flow.from_dlpack(a, **wrong)


def test_from_dlpack_asks_a_producer_of_elsewhere():
    class Elsewhere(WithDlpack):
        def __dlpack_device__(self):
            return (8, 0)

        def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
            if dl_device != (1, 0):
                raise BufferError("only on its own device")
            return self.data.copy().__dlpack__(max_version=max_version)

    with pytest.raises(RuntimeError, match="device type 8 is not supported"):
        flow.from_dlpack(Elsewhere())
    assert flow.from_dlpack(Elsewhere(), device="cpu").tolist() == WANTED.tolist()


@pytest.mark.cuda
def test_from_dlpack_to_a_gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x = flow.from_dlpack(np.arange(3.0), device="cuda")
    assert x.is_cuda and x.tolist() == [0, 1, 2]
    assert flow.from_dlpack(x, device="cpu").is_cpu
    assert flow.from_dlpack(x, device="cuda", copy=False).data_ptr() == x.data_ptr()
    assert flow.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="copy is False"):
        flow.from_dlpack(x, device="cpu", copy=False)


@pytest.mark.parametrize("make", [
    lambda dtype: flow.zeros(2, dtype=dtype), lambda dtype: flow.full((2,), 1, dtype=dtype),
    lambda dtype: flow.arange(2, dtype=dtype), lambda dtype: flow.tensor([0, 1], dtype=dtype),
    lambda dtype: flow.ones(2).to(dtype), lambda dtype: flow.ones(2).type(dtype),
    lambda dtype: flow.zeros_like(flow.ones(2), dtype=dtype),
    lambda dtype: flow.as_tensor([0, 1], dtype=dtype),
])  # fmt: skip
def test_dtypes_by_python_s_types(make):
    """As NumPy and PyTorch read them: Python's float has 64 bits."""
    for given, dtype in ((float, flow.float64), (int, flow.int64)):
        assert make(given).dtype is dtype and make(given).tolist() == make(dtype).tolist()
    assert flow.zeros(2, dtype=bool).dtype is flow.ones(2).to(bool).dtype is flow.bool
    assert flow.ones(2).sum(dtype=float).dtype is flow.float64
    assert flow.softmax(flow.ones(2), 0, dtype=float).dtype is flow.float64
