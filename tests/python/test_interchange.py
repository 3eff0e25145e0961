# SPDX-License-Identifier: Apache-2.0
"""Tensors from Python data, and over the memory of NumPy and DLPack."""

import gc
import weakref

import numpy as np
import pytest
from drawing import properties

flow = pytest.importorskip("oneflow_lite")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


# ---- NumPy.


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_memory(dtype):
    a = np.zeros((2, 3), dtype)
    x = flow.from_numpy(a)
    assert x.data_ptr() == a.ctypes.data and str(x.dtype) == f"oneflow_lite.{dtype}"
    b = x.numpy()
    assert b.dtype == a.dtype and np.shares_memory(a, b) and b.flags.writeable
    b[1, 2] = 1
    assert x[1, 2].item() == 1 and a[1, 2] == 1
    assert np.asarray(x).ctypes.data == a.ctypes.data
    assert np.array(x).ctypes.data != a.ctypes.data


def test_numpy_keeps_and_frees():
    a = np.ones(1000)
    ref = weakref.ref(a)
    x = flow.from_numpy(a)
    b = x[10:].numpy()
    del a
    gc.collect()
    assert ref() is not None
    del x
    assert b.sum() == 990 and ref() is not None
    del b
    assert ref() is None

    x = flow.ones(1000)
    b = x.numpy()
    del x
    gc.collect()
    assert b.sum() == 1000


@properties(100)
def test_from_numpy_takes_any_positive_strides(draw):
    shape = [draw.integer(0, 4) for _ in range(draw.integer(1, 3))]
    a = np.arange(int(np.prod(shape)) + 8, dtype=np.int32)[: int(np.prod(shape))].reshape(shape)
    a = a.transpose(draw.choice([list(range(a.ndim)), list(reversed(range(a.ndim)))]))
    a = a[tuple(slice(None, None, draw.choice([1, 2])) for _ in shape)]
    x = flow.from_numpy(a)
    np.testing.assert_array_equal(x.numpy(), a)
    np.testing.assert_array_equal(x.contiguous().numpy(), a)
    assert x.is_contiguous() == a.flags.c_contiguous


def test_from_numpy_errors():
    read_only = np.ones(3)
    read_only.flags.writeable = False
    for bad, error, text in [
        ([1, 2], TypeError, "must be numpy.ndarray, not list"),
        (np.ones(3, np.complex64), flow.DTypeError, "<c8"),
        (np.ones(3, ">f4"), flow.DTypeError, ">f4"),
        (np.array(["a"]), flow.DTypeError, "<U1"),
        (np.ones(3, np.uint16), flow.DTypeError, "supported are bool, uint8"),
        (np.ones(3)[::-1], ValueError, r"negative; pass array.copy\(\)"),
        (read_only, ValueError, r"not writable, .* pass array.copy\(\)"),
        (np.broadcast_to(np.ones(1), (3,)), ValueError, "not writable"),
        (np.zeros(9, np.uint8)[1:9].view(np.float32), ValueError, "not aligned"),
    ]:
        with pytest.raises(error, match=text):
            flow.from_numpy(bad)


def test_numpy_errors():
    x = flow.ones(3, requires_grad=True)
    for call in (x.numpy, lambda: np.asarray(x), x.__array__):
        with pytest.raises(RuntimeError, match=r"requires grad; call .detach\(\).numpy\(\)"):
            call()
    assert x.numpy(force=True).sum() == 3
    with pytest.raises(flow.DTypeError, match=r"bfloat16.*\.to\(oneflow_lite.float32\)\.numpy\(\)"):
        flow.ones(3, dtype=flow.bfloat16).numpy()
    with pytest.raises(RuntimeError, match="has no data"):
        flow.ones(3, device="meta").numpy()


def test_array_protocol():
    x = flow.arange(3)
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    assert np.add(x, 1).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="copy"):
        x.__array__(np.float32, copy=False)
    assert x.__array__(np.int64, copy=True).ctypes.data != x.data_ptr()


# ---- tensor(...)


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)), ([1, 2.5], "float32", (2,)), ([True, 2], "int64", (2,)),
        ([[True], [False]], "bool", (2, 1)), (range(3), "int64", (3,)), ((1, (2)), "int64", (2,)),
        ([np.float32(1), 2], "float32", (2,)), ([np.int8(1), True], "int8", (2,)),
        ([np.arange(2), np.arange(2)], "int64", (2, 2)), (np.ones((2, 1)), "float64", (2, 1)),
        (np.ones(2, np.float16)[::-1], "float16", (2,)), (np.int8(3), "int8", ()),
        (np.array(3, np.int16), "int16", ()),
    ],
)  # fmt: skip
def test_tensor_of_data(data, dtype, shape):
    x = flow.tensor(data)
    assert (str(x.dtype), x.shape) == (f"oneflow_lite.{dtype}", shape)
    np.testing.assert_array_equal(x.numpy(), np.asarray(data, dtype=dtype).reshape(shape))
    for target in ("float64", "int32", "bool"):
        y = flow.tensor(data, dtype=getattr(flow, target))
        np.testing.assert_array_equal(y.numpy(), np.asarray(data).astype(target).reshape(shape))


def test_tensor_copies():
    a = np.ones(2)
    x = flow.tensor(a)
    y = flow.tensor(x, requires_grad=True)
    a[0] = x[1] = 5
    assert x.tolist() == [1, 5] and y.tolist() == [1, 1] and y.requires_grad and y.is_leaf
    assert flow.tensor([flow.tensor(1.5), 2]).tolist() == [1.5, 2]
    assert flow.tensor([flow.ones(2), [3, 4]]).tolist() == [[1, 1], [3, 4]]
    assert flow.tensor([1, 2], device="meta").is_meta
    read_only = np.ones(2)
    read_only.flags.writeable = False
    assert flow.tensor(read_only).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, r"at \[1\] there is a sequence of length 1, expected a seq.*2"),
        ([[1], 2], ValueError, r"at \[1\] there is a number, expected a sequence of length 1"),
        ([1, [2]], ValueError, r"at \[1\] there is a sequence.*expected a number"),
        ([[[1]], [[]]], ValueError, r"at \[1, 0\]"),
        ([[], [1]], ValueError, r"at \[1\]"),
        (["a"], TypeError, r"at \[0\] there is str"),
        ("abc", TypeError, "there is str"),
        (None, TypeError, "NoneType"),
        ([1, None], TypeError, r"at \[1\] there is NoneType"),
        ({1: 2}, TypeError, "dict"),
        ([1j], TypeError, "complex"),
        (
            2**63,
            OverflowError,
            r"^tensor\(\): the number 9.22337e\+18 is out of range \[.*\] of int64$",
        ),
        (np.ones(2, np.complex128), TypeError, "c16"),
    ],
)
def test_tensor_errors(data, error, text):
    with pytest.raises(error, match=text):
        flow.tensor(data)


def test_tensor_out_of_range():
    for value, dtype in [(256, "uint8"), (-1, "uint8"), (1e30, "int64"), (float("nan"), "int32")]:
        with pytest.raises(OverflowError, match=rf"is out of range \[.*\] of {dtype}$"):
            flow.tensor([value], dtype=getattr(flow, dtype))
    with pytest.raises(RuntimeError, match="floating"):
        flow.tensor([1], requires_grad=True)
    recursive = []
    recursive.append(recursive)
    with pytest.raises(ValueError, match="ragged"):
        flow.tensor(recursive)


# ---- DLPack.


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_with_numpy(dtype):
    a = np.zeros((3, 4), dtype)[:, ::2]
    x = flow.from_dlpack(a)
    assert x.data_ptr() == a.ctypes.data and x.shape == (3, 2) and x.stride() == (4, 2)
    x[1, 1] = 1
    assert a[1, 1] == 1
    b = np.from_dlpack(x)
    assert b.ctypes.data == a.ctypes.data and b.dtype == a.dtype and b[1, 1] == 1


def test_dlpack_capsules():
    x = flow.arange(4)[1:]
    for kwargs, name in [({}, "dltensor"), ({"max_version": (1, 1)}, "dltensor_versioned")]:
        capsule = x.__dlpack__(**kwargs)
        assert f'"{name}"' in repr(capsule)
        y = flow.from_dlpack(capsule)
        assert y.data_ptr() == x.data_ptr() and y.tolist() == [1, 2, 3]
        assert f'"used_{name}"' in repr(capsule)
        with pytest.raises(ValueError, match="used already"):
            flow.from_dlpack(capsule)
        x.__dlpack__(**kwargs)  # not taken by anyone: freed with the capsule
    assert x.__dlpack_device__() == (1, 0)
    assert flow.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    y = flow.from_dlpack(flow.ones(3, dtype=flow.bfloat16))
    assert y.dtype is flow.bfloat16 and y.sum().item() == 3
    assert flow.from_dlpack(flow.zeros(0, 2)).shape == (0, 2)


def test_dlpack_keeps_memory():
    a = np.ones(100)
    ref = weakref.ref(a)
    x = flow.from_dlpack(a)
    del a
    gc.collect()
    assert ref() is not None and x.sum().item() == 100
    del x
    gc.collect()
    assert ref() is None


def test_dlpack_errors():
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(BufferError, match="requires grad"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="no data"):
        flow.ones(2, device="meta").__dlpack__()
    x = x.detach()
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="device"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="max_version"):
        x.__dlpack__(max_version=1)
    with pytest.raises(TypeError, match="__dlpack__"):
        flow.from_dlpack([1])
    with pytest.raises(flow.DTypeError):
        flow.from_dlpack(np.ones(2, np.complex64))
    with pytest.raises(ValueError, match="negative"):
        flow.from_dlpack(np.ones(3)[::-1])
    read_only = np.ones(2)
    read_only.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        flow.from_dlpack(read_only)


def test_dlpack_producer_of_old():
    class Old:
        """Knows nothing of versions."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, stream=None):
            assert stream is None
            return self.x.__dlpack__()

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    class Broken(Old):
        def __dlpack__(self, stream=None):
            raise KeyError("mine")

    x = flow.arange(3)
    assert flow.from_dlpack(Old(x)).data_ptr() == x.data_ptr()
    with pytest.raises(KeyError, match="mine"):
        flow.from_dlpack(Broken(x))


@pytest.mark.cuda
def test_dlpack_on_cuda():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x = flow.arange(1000, device="cuda")
    assert x.__dlpack_device__() == (2, 0)
    for stream in (None, -1, 1, 2, flow.cuda.Stream().cuda_stream):
        y = flow.from_dlpack(x.__dlpack__(stream=stream))
        assert y.data_ptr() == x.data_ptr() and y.is_cuda
    with pytest.raises(ValueError, match="ambiguous"):
        x.__dlpack__(stream=0)
    side = flow.cuda.Stream()
    with flow.cuda.stream(side):
        assert flow.from_dlpack(x + 1).sum().item() == 500500
    with pytest.raises(RuntimeError, match=r"\.cpu\(\)\.numpy\(\)"):
        x.numpy()


@pytest.mark.parametrize("given", ["x", None, 3, [1.0], {"copy": 1}])
@pytest.mark.parametrize("name", ["tensor", "as_tensor"])
def test_what_array_gives_is_an_array_or_an_error(name, given):
    class Converts:
        def __array__(self, *args, **kwargs):
            return given

    with pytest.raises(
        TypeError, match=rf"^{name}\(\): __array__\(\) of Converts gave \w+, not an a"
    ):
        getattr(flow, name)(Converts())
