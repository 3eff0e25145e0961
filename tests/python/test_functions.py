# SPDX-License-Identifier: Apache-2.0
"""Calling registered functions: how arguments are read, what errors say."""

import inspect
import pickle
import sys

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
ext = flow._oneflow_lite
_C = flow._C
X = flow.arange(12.0).reshape(3, 4)


def raises(error, text, call):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


# ---- What a function is.


def test_functions_are_builtins():
    assert flow.softmax is _C.softmax and sys.modules["oneflow_lite._C"] is _C
    assert type(flow.softmax) is type(len) and type(flow.Tensor.softmax) is type(str.join)
    assert pickle.loads(pickle.dumps(flow.softmax)) is flow.softmax
    assert flow.softmax.__name__ == "softmax" and flow.softmax.__module__ == "oneflow_lite._C"
    assert str(inspect.signature(flow.softmax)) == "(input, dim=None, dtype=None)"
    assert str(inspect.signature(_C.zeros)).startswith("(size, *, dtype=None, device=None")
    assert (
        "softmax(Tensor input, int? dim=None, dtype? dtype=None) -> Tensor" in flow.softmax.__doc__
    )


def test_every_function_has_signature_and_doc():
    listed = ext.list_functions()
    assert [f["name"] for f in listed] == sorted(f["name"] for f in listed)
    for f in listed:
        assert f["doc"], f["name"]
        if not f["method_only"]:
            assert inspect.signature(getattr(_C, f["name"])), f["name"]
        if f["method"]:
            assert getattr(flow.Tensor, f["name"]).__doc__, f["name"]
    assert {"copy_", "contiguous"}.isdisjoint(dir(_C))


# ---- How arguments are read.


def test_positions_keywords_and_defaults():
    expected = np.exp(X.numpy()) / np.exp(X.numpy()).sum(1, keepdims=True)
    for y in (
        flow.softmax(X, 1),
        flow.softmax(X, dim=1),
        flow.softmax(input=X, dim=-1),
        X.softmax(1),
        flow.softmax(dim=1, dtype=None, input=X),
        X.softmax(dim=1),
        flow.softmax(X),
        flow.softmax(X, "".join(["d", "im"]) and 1),
        flow.softmax(X, **{"".join(["d", "im"]): 1}),
    ):
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-6)


def test_ints():
    for dim in (1, np.int64(1), np.uint8(1), flow.tensor(1), np.array(1)):
        assert X.sum(dim).tolist() == [6, 22, 38]
    raises(TypeError, "softmax(): argument 'dim' must be int or None, not bool",
           lambda: X.softmax(True))  # fmt: skip
    raises(TypeError, "select(): argument 'index' must be int, not float", lambda: X.select(0, 1.0))
    for huge in (2**63, -(2**64), 10**30):
        with pytest.raises(OverflowError):
            X.softmax(huge)
        with pytest.raises(OverflowError):
            flow.zeros(huge)
        with pytest.raises(OverflowError):
            flow.zeros(2, huge)


def test_int_lists():
    for y in (
        X.view(4, 3),
        X.view((4, 3)),
        X.view([4, 3]),
        X.view(size=(4, 3)),
        X.view(-1, np.int8(3)),
        X.view(flow.tensor([4, 3])),
        X.view(np.array([4, 3])),
        X.view(range(4, 2, -1)),
    ):
        assert y.shape == (4, 3)
    assert (
        flow.zeros(2, 3).shape
        == flow.zeros((2, 3)).shape
        == flow.zeros(size=[2, 3]).shape
        == (2, 3)
    )
    assert flow.zeros(()).shape == () and flow.zeros(3).shape == (3,) and X.view(12).shape == (12,)
    assert X.sum((0, 1)).item() == X.sum().item() == 66 and X.sum(0, True).shape == (1, 4)
    raises(TypeError, "view(): argument 'size' must be ints, but item 1 is str",
           lambda: X.view(2, "a"))  # fmt: skip
    raises(TypeError, "view(): argument 'size' must be ints, but item 0 is float",
           lambda: X.view([2.0]))  # fmt: skip
    raises(TypeError, "view(): argument 'size' must be int or a tuple of ints, not str",
           lambda: X.view("ab"))  # fmt: skip
    raises(TypeError, "view(): argument 'size' must be ints, but item 0 is tuple",
           lambda: X.view((2, 6), 1))  # fmt: skip


def test_tensors():
    raises(TypeError, "softmax(): argument 'input' must be Tensor, not list",
           lambda: flow.softmax([1.0]))  # fmt: skip
    raises(TypeError, "softmax(): argument 'input' must be Tensor, not numpy.ndarray",
           lambda: flow.softmax(np.ones(2)))  # fmt: skip
    raises(TypeError, "softmax(): argument 'input' must be Tensor, not None",
           lambda: flow.softmax(None))  # fmt: skip
    raises(TypeError, "add(): argument 'other' must be Tensor or a number, not str",
           lambda: flow.add(X, "a"))  # fmt: skip
    with pytest.raises(TypeError, match="for 'oneflow_lite.Tensor' objects doesn't apply"):
        flow.Tensor.softmax(3, 1)


def test_scalars():
    for number in (2, 2.0, np.float32(2), np.int64(2), flow.tensor(2), flow.tensor(2.0)):
        assert flow.full((2,), number, dtype=flow.int64).tolist() == [2, 2]
    assert (
        flow.full((1,), True).dtype is flow.bool and flow.full((1,), np.bool_(1)).dtype is flow.bool
    )
    assert flow.full((1,), 1).dtype is flow.int64 and flow.full((1,), 1.0).dtype is flow.float32
    raises(TypeError, "full(): argument 'fill_value' must be a number, not str",
           lambda: flow.full((1,), "1"))  # fmt: skip
    raises(TypeError, "full(): argument 'fill_value' must be a number, not complex",
           lambda: flow.full((1,), 1j))  # fmt: skip
    with pytest.raises(TypeError):
        flow.full((1,), np.complex64(1))
    with pytest.raises(OverflowError):
        flow.full((1,), 2**63)
    assert flow.add(X, np.float64(1))[0, 0].item() == 1 and flow.sub(1, X)[0, 1].item() == 0


def test_floats_bools_strings():
    logits, target = flow.randn(3, 5), flow.tensor([0, 1, 2])
    loss = flow.cross_entropy(logits, target, label_smoothing=0)
    for zero in (0.0, np.float32(0), False, flow.tensor(0.0)):
        assert flow.cross_entropy(logits, target, label_smoothing=zero).item() == loss.item()
    for bad in ("0", None, 1j, [0.0]):
        with pytest.raises(TypeError, match="argument 'label_smoothing' must be float, not"):
            flow.cross_entropy(logits, target, label_smoothing=bad)
    assert X.sum(0, keepdim=np.True_).shape == (1, 4)
    raises(TypeError, "sum(): argument 'keepdim' must be bool, not int", lambda: X.sum(0, 1))
    raises(TypeError, "cross_entropy(): argument 'reduction' must be str, not bytes",
           lambda: flow.cross_entropy(logits, target, reduction=b"mean"))  # fmt: skip
    with pytest.raises(ValueError, match="median"):
        flow.cross_entropy(logits, target, reduction="median")
    with pytest.raises(ValueError, match="argument 'reduction' has half of a surrogate pair"):
        flow.cross_entropy(logits, target, reduction="\ud800")


def test_dtypes_and_devices():
    for dtype, expected in [
        (flow.float64, "float64"),
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
    ]:
        assert flow.zeros(1, dtype=dtype).dtype.name == expected
    raises(TypeError, "zeros(): argument 'dtype' must be oneflow_lite.dtype or None, not str",
           lambda: flow.zeros(1, dtype="float32"))  # fmt: skip
    for device in ("meta", flow.device("meta")):
        assert flow.zeros(1, device=device).is_meta
    with pytest.raises(ValueError, match='"gpu" is not a device; allowed are "cpu"'):
        flow.zeros(1, device="gpu")
    raises(
        TypeError,
        "zeros(): argument 'device' must be oneflow_lite.device or str or None, not float",
        lambda: flow.zeros(1, device=1.5),
    )
    if not flow.cuda.is_available():
        with pytest.raises(RuntimeError, match="CUDA is not available"):
            flow.zeros(1, device="cuda:0")


def test_device_objects():
    d = flow.device("cuda", 1)
    assert (d.type, d.index, str(d), repr(d)) == (
        "cuda",
        1,
        "cuda:1",
        "device(type='cuda', index=1)",
    )
    assert d == flow.device("cuda:1") == flow.device(1) == flow.device(d) and d != flow.device(
        "cpu"
    )
    assert len({d, flow.device("cuda:1"), flow.device("cpu")}) == 2
    assert flow.device("cpu").index is None and d != "cuda:1"
    for bad, error in [
        (("cpu", 0), ValueError),
        (("cuda:1", 1), ValueError),
        (("cuda:-1",), ValueError),
        ((1.5,), TypeError),
        ((), TypeError),
        (("cuda", 99999), ValueError),
    ]:
        with pytest.raises(error):
            flow.device(*bad)


def test_dtype_objects():
    assert repr(flow.float32) == str(flow.float32) == "oneflow_lite.float32"
    assert (flow.float16.itemsize, flow.float16.is_floating_point, flow.int8.is_signed) == (
        2,
        True,
        True,
    )
    assert not flow.uint8.is_signed and not flow.int64.is_floating_point
    assert flow.float64.is_complex is False
    assert flow.float32 == flow.float32 != flow.float64 and flow.float32 != "float32"
    with pytest.raises(TypeError):
        type(flow.float32)()


def test_generators():
    g = flow.Generator()
    assert g.manual_seed(7) is g and g.initial_seed() == 7
    a = flow.rand(5, generator=g)
    state = g.get_state()
    b = flow.rand(5, generator=g)
    g.set_state(state)
    assert flow.rand(5, generator=g).tolist() == b.tolist() != a.tolist()
    assert flow.rand(5, generator=flow.Generator().manual_seed(7)).tolist() == a.tolist()
    assert flow.manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(ValueError, match="64 bits"):
        flow.manual_seed(2**64)
    raises(
        TypeError,
        "rand(): argument 'generator' must be oneflow_lite.Generator or None, not int",
        lambda: flow.rand(5, generator=7),
    )


def test_wrong_calls():
    raises(TypeError, "softmax() missing required argument 'input' (pos 1)", lambda: flow.softmax())
    raises(
        TypeError,
        "softmax() missing required argument 'input' (pos 1)",
        lambda: flow.softmax(dim=1),
    )
    raises(TypeError, "select() missing required argument 'index' (pos 3)", lambda: X.select(0))
    raises(TypeError, "softmax() takes at most 3 positional arguments (4 given)",
           lambda: flow.softmax(X, 1, None, 1))  # fmt: skip
    raises(TypeError, "softmax() takes at most 2 positional arguments (3 given)",
           lambda: X.softmax(1, None, 1))  # fmt: skip
    raises(
        TypeError, "softmax() got an unexpected keyword argument 'axes'", lambda: X.softmax(axes=1)
    )
    misspelt = "softmax() got an unexpected keyword argument 'dmi'; did you mean 'dim'?"
    raises(TypeError, misspelt, lambda: flow.softmax(X, dmi=1))
    raises(TypeError, misspelt, lambda: X.softmax(dmi=1))
    raises(TypeError, "cat(): argument 'tensors' must be a list or tuple of Tensors, but item 1 is "
           "list", lambda: flow.cat([X, [1, 2]]))  # fmt: skip
    raises(
        TypeError, "softmax() got multiple values for argument 'dim'", lambda: X.softmax(1, dim=1)
    )
    raises(
        TypeError, "softmax() got multiple values for argument 'axis'", lambda: X.softmax(1, axis=1)
    )
    raises(
        TypeError, "softmax() got multiple values for argument 'input'", lambda: X.softmax(input=X)
    )
    raises(TypeError, "full() takes at most 2 positional arguments (3 given)",
           lambda: flow.full((1,), 1, flow.int64))  # fmt: skip
    with pytest.raises(TypeError):
        flow.softmax(X, **{"\ud800": 1})


def test_results():
    values, indices = X.max(1)
    assert values.tolist() == [3, 7, 11] and indices.tolist() == [3, 3, 3]
    assert X.max().item() == 11
    assert X.contiguous() is X and X.to() is X


# ---- Errors.


def test_error_classes():
    assert flow.DTypeError.__mro__[1:3] == (TypeError, RuntimeError)
    assert flow.ShapeError.__mro__[1:3] == (ValueError, RuntimeError)
    assert issubclass(flow.OutOfMemoryError, RuntimeError)
    assert flow.DTypeError.__module__ == "oneflow_lite"
    for error, call in [
        (IndexError, lambda: X.softmax(2)),
        (flow.DTypeError, lambda: flow.tensor([1]).softmax(0)),
        (flow.ShapeError, lambda: X.view(5)),
        (ValueError, lambda: flow.zeros(-1)),
        (flow.OutOfMemoryError, lambda: flow.empty(2**46)),
    ]:
        with pytest.raises(error):
            call()
    assert flow.empty(10).numel() == 10  # out of memory is survived


def test_memory_error_is_raised_once_for_huge_sizes():
    for size in [(2**62,), (2**31, 2**31), (2**40, 2**40)]:
        with pytest.raises((ValueError, RuntimeError)):
            flow.empty(size)


def test_arguments_of_pytorch_that_change_nothing():
    F = flow.nn.functional
    assert F.softmax(X, dim=1, _stacklevel=3, dtype=flow.float64).dtype is flow.float64
    assert F.log_softmax(X, 1, _stacklevel=5).equal(F.log_softmax(X, 1))
    assert flow.sort(X, stable=True)[0].equal(X.sort().values)
    assert X.argsort(1, stable=False).equal(X.argsort(1))
    assert X.argsort(1, stable=None).equal(X.argsort(1))
    assert X.sort(1, stable=None).values.equal(X.sort(1).values)
    assert X.topk(2, 1, True, False).indices.equal(X.topk(2).indices)
