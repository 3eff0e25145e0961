# SPDX-License-Identifier: Apache-2.0
"""The Tensor object: identity, attributes, copies, pickles."""

import copy
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
Tensor = flow.Tensor

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


class Named(Tensor):
    """A subclass with attributes of its own."""

    def __init__(self, data, name="n"):
        self.name = name


# ---- Identity and lifetime.


def test_same_tensor_is_same_object():
    x = flow.ones(3, requires_grad=True)
    x.grad = flow.zeros(3)
    assert x.grad is x.grad
    assert x.fill_ and x.detach() is not x.detach()
    y = x.detach()
    assert y.add_(1) is y and y.zero_() is y and y.contiguous() is y
    y += 1
    assert x.tolist() == [1, 1, 1]


def test_object_dies_and_comes_back():
    x = flow.ones(4)
    v = x[1:]
    base = weakref.ref(x)
    del x
    assert base() is None  # nothing in Python holds it; C++ keeps the tensor as the base
    again = v._base
    assert type(again) is Tensor and again.tolist() == [1, 1, 1, 1]
    assert v._base is again


@pytest.mark.parametrize("rounds", [1, 3])
def test_class_and_attributes_outlive_the_object(rounds):
    x = Named(flow.ones(4), "alice")
    x.extra = [1]
    v = x[1:]
    del x
    for _ in range(rounds):
        gc.collect()
        base = v._base
        assert type(base) is Named and base.name == "alice" and base.extra == [1]
        del base
    extra = v._base.extra
    count = sys.getrefcount(extra)
    del v
    gc.collect()
    assert sys.getrefcount(extra) == count - 1  # freed with the tensor


def test_parked_attributes_are_freed_by_another_thread():
    """The last handle may go without the interpreter's lock, inside of backward."""
    token = type("Token", (), {})()
    alive = weakref.ref(token)
    x = flow.ones(20000, requires_grad=True)
    h = x * 2
    h.token = token
    y = (h * h).sum()  # saves h
    del h, token
    assert alive() is not None
    y.backward()
    for _ in range(1000):  # the drop waits for the interpreter's next pause
        if alive() is None:
            break
    assert alive() is None


def test_cycles_are_collected():
    x = flow.ones(3)
    x.self = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None

    x = flow.ones(3, requires_grad=True)
    x.register_hook(lambda g, x=x: g * x)  # tensor -> hook -> function -> tensor
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_no_references_leak():
    x, d, dim = flow.randn(3, 4), flow.float32, 1
    obj = object()

    def everything():
        y = flow.softmax(x, dim, dtype=d)
        y[0, 1:], y[..., None], y.shape, y.dtype, y.device, y.T, y.numpy(), y.tolist()
        y[0] = 1
        y += 1
        -y + 2 * x
        x.view(4, 3), x.sum(0, keepdim=True), x.max(1)
        pickle.loads(pickle.dumps(x)), copy.deepcopy(x), np.from_dlpack(x), flow.from_dlpack(x)
        for bad in (lambda: flow.softmax(x, obj), lambda: flow.softmax(x, 9), lambda: x[obj],
                    lambda: x + obj, lambda: flow.softmax(x, nonsense=obj),
                    lambda: flow.tensor([obj])):  # fmt: skip
            with pytest.raises((TypeError, IndexError)):
                bad()

    everything()
    gc.collect()
    counted = [x, d, obj, Tensor, np.float32]
    before = [sys.getrefcount(o) for o in counted]
    for _ in range(20):
        everything()
    gc.collect()
    after = [sys.getrefcount(o) for o in counted]
    assert after == before


def test_memory_does_not_grow():
    def bytes_now():
        gc.collect()
        return flow._oneflow_lite.memory_stats("cpu")["allocated"]

    x = flow.randn(64, 64, requires_grad=True)
    x.sum().backward()
    before = bytes_now()
    for _ in range(10):
        y = flow.softmax(x, 1)
        y[0].sum().backward()
        x.numpy(force=True), y.detach().numpy(), flow.from_dlpack(y.detach())
    del y
    assert bytes_now() == before


# ---- Attributes and small methods.


def test_attributes():
    x = flow.zeros(2, 3, dtype=flow.float64)
    assert x.shape == (2, 3) and isinstance(x.shape, tuple)
    assert x.dtype is flow.float64 and x.device == flow.device("cpu")
    assert (x.ndim, x.dim(), x.numel(), x.nelement()) == (2, 2, 6, 6)
    assert (x.itemsize, x.element_size(), x.nbytes) == (8, 8, 48)
    assert (x.size(), x.size(1), x.size(-2), x.stride(), x.stride(0)) == ((2, 3), 3, 2, (3, 1), 3)
    assert (
        x.T.shape == (3, 2) and x.mT.stride() == (1, 3) and flow.zeros(2, 3, 4).T.shape == (4, 3, 2)
    )
    assert x.is_contiguous() and not x.T.is_contiguous()
    assert x[1].storage_offset() == 3 and x[1].data_ptr() == x.data_ptr() + 24
    assert x.is_cpu and not x.is_cuda and not x.is_meta and x.is_floating_point()
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn, x._base) == (
        False,
        True,
        None,
        None,
        None,
    )
    assert x._version == 0 and x.add_(1)._version == 1
    assert len(x) == 2 and hash(x) == hash(x)
    with pytest.raises(IndexError, match=r"size\(\): dim 2 is out of range \[-2, 1\]"):
        x.size(2)
    with pytest.raises(AttributeError):
        x.shape = (6,)
    with pytest.raises(TypeError, match="no len"):
        len(flow.tensor(1))
    with pytest.raises(TypeError, match="iterated"):
        iter(flow.tensor(1))


def test_data_shares_and_replaces():
    x = flow.ones(3, requires_grad=True)
    x.data.add_(1)
    assert x.tolist() == [2, 2, 2] and not x.data.requires_grad
    array = x.detach().numpy()
    x.data = flow.zeros(2, 2, dtype=flow.float64)
    assert x.shape == (2, 2) and x.dtype is flow.float64 and x.requires_grad
    assert array.tolist() == [2, 2, 2]  # the old memory is still the array's
    with pytest.raises(flow.DTypeError):
        x.data = flow.tensor([1])
    with pytest.raises(TypeError):
        x.data = np.ones(3)


def test_item_and_numbers():
    assert flow.tensor(3).item() == 3 and type(flow.tensor(3).item()) is int
    assert flow.tensor([[2.5]]).item() == 2.5
    assert flow.tensor(True).item() is True
    assert flow.tensor(2.9, dtype=flow.bfloat16).item() == 2.90625
    assert (int(flow.tensor(2.9)), float(flow.tensor(2)), bool(flow.tensor([0.0]))) == (
        2,
        2.0,
        False,
    )
    assert [10, 20, 30][flow.tensor(1)] == 20
    with pytest.raises(RuntimeError, match=r"item\(\): only a tensor with one element"):
        flow.ones(2).item()
    with pytest.raises(RuntimeError, match=r"bool\(\): only a tensor with one element"):
        bool(flow.ones(2))
    for number in (int, float):  # ValueError as in PyTorch, which has RuntimeError for item()
        with pytest.raises(ValueError, match=f"{number.__name__}.*only a tensor with one"):
            number(flow.ones(2))
    with pytest.raises(TypeError, match="index"):
        [1][flow.tensor(0.0)]
    with pytest.raises(RuntimeError, match="has no data"):
        flow.zeros(1, device="meta").item()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tolist(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    x = flow.from_numpy(a)
    assert x.tolist() == a.tolist() and x.T.tolist() == a.T.tolist()
    assert flow.zeros(2, 0).tolist() == [[], []] and flow.tensor(5).tolist() == 5


# ---- Copies and pickles.


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pickle(dtype):
    x = flow.arange(6).reshape(2, 3).T.to(getattr(flow, dtype))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype is x.dtype and y.shape == (3, 2) and y.tolist() == x.tolist()


def test_pickle_keeps_class_attributes_and_sharing():
    x = Named(flow.ones(2), "bob")
    x.requires_grad_()
    x.extra = {"k": 1}
    a, b = pickle.loads(pickle.dumps([x, x]))
    assert a is b and type(a) is Named and (a.name, a.extra) == ("bob", {"k": 1})
    assert a.requires_grad and a.is_leaf
    p = flow.nn.Parameter(flow.ones(2))
    assert type(pickle.loads(pickle.dumps(p))) is flow.nn.Parameter
    assert pickle.loads(pickle.dumps(x * 2)).requires_grad is False


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_copies_keep_the_order_of_dims_in_memory(order, device):
    x = flow.arange(24.0, device=device).view(2, 3, 4).permute(order)
    for copied in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert copied.stride() == x.stride() and copied.tolist() == x.tolist()
        assert copied.device == x.device and copied.dtype is x.dtype
    part = x[:, 1:2]  # without what lies between
    loaded = pickle.loads(pickle.dumps(part))
    assert loaded.tolist() == part.tolist()
    for found, want, size in zip(loaded.stride(), part.clone().stride(), part.shape, strict=True):
        assert found == want or size == 1
    parameter = pickle.loads(pickle.dumps(flow.nn.Parameter(x)))
    assert parameter.stride() == x.stride() and parameter.requires_grad and parameter.is_leaf
    for empty in (x[:0].transpose(0, 2), flow.ones(1, 3).expand(2, 3).t()):
        loaded = pickle.loads(pickle.dumps(empty))
        assert loaded.shape == empty.shape and loaded.tolist() == empty.tolist()


def test_pickle_of_small_classes():
    for o in (flow.float32, flow.bool, flow.device("cuda:1"), flow.device("cpu"), flow.softmax):
        assert pickle.loads(pickle.dumps(o)) == o
        assert copy.deepcopy(o) == o
    assert pickle.loads(pickle.dumps(flow.float32)) is flow.float32


def test_rebuild_refuses_nonsense():
    rebuild = flow._oneflow_lite._rebuild_tensor
    for args in [
        (),
        (int, b"", flow.float32, (), "cpu", 0),
        (Tensor, b"1", flow.float32, (2,), "cpu", 0),
        (Tensor, b"", flow.float32, (-1,), "cpu", 0),
        (Tensor, b"", 3, (0,), "cpu", 0),
        (Tensor, b"", flow.float32, (0,), "gpu", 0),
        (Tensor, b"1234", flow.float32, (1, 1), "cpu", 0, (1, 1)),
        (Tensor, b"1234", flow.float32, (1, 1), "cpu", 0, (0,)),
        (Tensor, b"1234", flow.float32, (1, 1), "cpu", 0, (0, 2)),
        (Tensor, b"1234", flow.float32, (1, 1), "cpu", 0, [1, 0]),
    ]:
        with pytest.raises((TypeError, ValueError)):
            rebuild(*args)


def test_deepcopy_and_copy():
    x = Named(flow.ones(2), "carol")
    x.requires_grad_()
    x.shared = [1]
    (x * 2).sum().backward()
    y = copy.deepcopy({"a": x, "b": x})
    assert y["a"] is y["b"] and y["a"] is not x
    y = y["a"]
    assert type(y) is Named and y.name == "carol" and y.shared == [1] and y.shared is not x.shared
    assert y.requires_grad and y.grad.tolist() == [2, 2] and y.grad is not x.grad
    y.data.zero_()
    assert x.tolist() == [1, 1]
    z = copy.copy(x)
    assert (
        type(z) is Named
        and z.shared is x.shared
        and z.data_ptr() == x.data_ptr()
        and z.requires_grad
    )
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(x * 2)


def test_new_and_subclasses():
    assert Tensor().shape == (0,) and Tensor([1.0, 2.0]).tolist() == [1, 2]
    x = flow.ones(2)
    y = Tensor(x, requires_grad=True)
    assert y is not x and y.data_ptr() == x.data_ptr() and y.requires_grad and not x.requires_grad
    assert type(Named(x)) is Named and type(Named(x) + 1) is Tensor
    p = flow.nn.Parameter(x)
    assert isinstance(p, Tensor) and p.requires_grad and p.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError):
        Tensor._make_subclass(int, x)
    with pytest.raises(TypeError):
        Tensor._make_subclass(Named, [1])
    assert Tensor([1, 2]).dtype is flow.float32 and Tensor(np.arange(2.0)).dtype is flow.float32
    assert Tensor([1, 2], dtype=flow.int8, device="cpu").dtype is flow.int8
    assert Tensor(x, dtype=flow.float64).dtype is flow.float64
    assert Tensor(2, 3).shape == (2, 3) and Tensor(4).dtype is flow.float32
    assert Tensor(0, 3, requires_grad=True).requires_grad
    with pytest.raises(TypeError):
        Tensor(1, 2, "3")
    with pytest.raises(ValueError, match="-1"):
        Tensor(2, -1)
    with pytest.raises(TypeError):
        Tensor([1], dtype=3)


def test_tensors_inside_a_sequence():
    assert flow.tensor([flow.ones(2), [3, 4.5]]).tolist() == [[1, 1], [3, 4.5]]
    # A tensor without data is refused at once, not read element by element.
    with pytest.raises(RuntimeError, match="meta"):
        flow.tensor([flow.empty(1 << 30, 1 << 20, device="meta")])


def test_equal_and_allclose():
    nan, inf = float("nan"), float("inf")
    x = flow.tensor([1.0, inf, -inf, 100.0])
    assert x.equal(x.clone()) and flow.equal(x, x)
    assert not x.equal(x.reshape(2, 2))
    assert not flow.tensor([nan]).equal(flow.tensor([nan]))
    assert x.allclose(flow.tensor([1.0, inf, -inf, 100.0009]))
    assert not x.allclose(flow.tensor([1.0, inf, -inf, 100.01]))
    assert x.allclose(flow.tensor([1.0, inf, -inf, 100.01]), rtol=1e-3)
    assert not x.allclose(flow.tensor([1.0, -inf, -inf, 100.0]))
    assert not x.allclose(flow.tensor([inf, inf, -inf, 100.0]))
    assert not flow.allclose(flow.tensor([nan]), flow.tensor([nan]))
    assert flow.allclose(flow.tensor([nan]), flow.tensor([nan]), equal_nan=True)


def test_shapes_of_another_tensor():
    x, y = flow.arange(6), flow.zeros(2, 3)
    assert x.view_as(y).shape == x.reshape_as(y).shape == (2, 3)
    assert flow.ones(3).expand_as(y).stride() == (0, 1)


def test_reversed_is_a_tensor():
    x = flow.arange(6).view(2, 3)
    assert reversed(x).tolist() == [[3, 4, 5], [0, 1, 2]] and reversed(x[0]).tolist() == [2, 1, 0]
    assert reversed(flow.tensor(5.0)).item() == 5


def test_what_cannot_require_grad_is_named_by_who_was_called():
    whole = flow.tensor([1])
    calls = {
        "tensor": lambda: flow.tensor([1], requires_grad=True),
        "Parameter": lambda: flow.nn.Parameter(whole),
        "Tensor": lambda: flow.Tensor(whole, requires_grad=True),
        "zeros": lambda: flow.zeros(1, dtype=flow.int64, requires_grad=True),
        "requires_grad_": whole.requires_grad_,
    }
    many = {"dtype": flow.int8, "requires_grad": True}  # of which nothing is made before
    calls |= {
        "empty": lambda: flow.empty(1 << 45, **many),
        "ones": lambda: flow.ones(1 << 45, **many),
        "full": lambda: flow.full((1 << 45,), 1, **many),
        "zeros_like": lambda: flow.zeros_like(flow.ones(1).expand(1 << 45), **many),
        "arange": lambda: flow.arange(100, **many),
        "eye": lambda: flow.eye(1 << 22, **many),
        "randint": lambda: flow.randint(9, (1 << 45,), **many),
        "randperm": lambda: flow.randperm(100, **many),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=rf"^{name}\(\): only floating tensors can require"):
            call()


@pytest.mark.parametrize("name", ["mT", "mH", "H"])
def test_a_vector_has_no_transpose(name):
    """A RuntimeError, as in PyTorch, so that hasattr raises it too."""
    with pytest.raises(RuntimeError, match=rf"^{name}\(\): the tensor has shape \[3\], expected"):
        hasattr(flow.ones(3), name)
