# SPDX-License-Identifier: Apache-2.0
"""patch(): PyTorch's operators on these kernels, and what goes back to PyTorch's own."""

import ctypes
import itertools
import warnings

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from oneflow_lite_torch import _patch, _support

ops = torch.ops.aten


@pytest.fixture
def patched(device, monkeypatch):
    """The device, patched; `.fallbacks` counts what went to PyTorch's own kernels."""
    names = rows.patch(device)
    assert f"{device}: _softmax" in names and f"{device}: native_layer_norm" in names
    counts = {}

    class Counting:
        def __init__(self, name, kernel):
            self.name, self.kernel = name, kernel

        def call_boxed(self, *args):
            counts[self.name] = counts.get(self.name, 0) + 1
            return self.kernel.call_boxed(*args)

    for (where, name), kernel in list(_patch._before.items()):
        if where == device:
            monkeypatch.setitem(_patch._before, (where, name), Counting(name, kernel))
    yield type("Patched", (), {"device": device, "fallbacks": counts})
    rows.unpatch()


def _near(a, b, dtype=torch.float32):
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}.get(dtype, 1e-5)
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_devices_are_named_in_three_ways():
    for devices in "cpu", torch.device("cpu"), [torch.device("cpu", 0), "cpu"]:
        assert "cpu: _softmax" in rows.patch(devices)
        rows.unpatch()
    for devices in None, 3:
        with pytest.raises(TypeError, match="devices must be named"):
            rows.patch(devices)


def test_served_calls_do_not_fall_back(patched):
    x = torch.randn(6, 100, device=patched.device, requires_grad=True)
    wide = torch.randn(6, 200, device=patched.device)[:, 50:150]
    for y in (
        torch.softmax(x, -1),
        torch.log_softmax(x, 0),
        F.layer_norm(x, (100,)),
        torch.nn.LayerNorm(100, device=patched.device)(x),
    ):
        y.backward(torch.randn_like(y))
    torch.softmax(wide, -1)
    F.layer_norm(wide, (100,))
    assert patched.fallbacks == {}


def test_values_are_those_of_pytorch(patched, dtype):
    device = patched.device
    x = torch.randn(6, 100, device=device).to(dtype).requires_grad_()
    w = torch.randn(100, device=device).to(dtype).requires_grad_()
    functions = [
        lambda: torch.softmax(x, -1),
        lambda: torch.log_softmax(x, 0),
        lambda: F.layer_norm(x, (100,), w, w),
        lambda: F.rms_norm(x, (100,), w),
        lambda: F.rms_norm(x, (100,), w, 1e-3),
        lambda: F.cross_entropy(x, torch.arange(6, device=device)),
        lambda: torch.softmax(x, -1, dtype=torch.float32),
    ]
    for function in functions:
        y = function()
        dy = torch.randn_like(y)
        ours = torch.autograd.grad(y, (x, w), dy, allow_unused=True)
        rows.unpatch()
        e = function()
        theirs = torch.autograd.grad(e, (x, w), dy, allow_unused=True)
        rows.patch(device)
        assert y.dtype == e.dtype and y.stride() == e.stride()
        _near(y, e, dtype)
        for o, t in zip(ours, theirs, strict=True):
            assert (o is None) == (t is None)
            if t is not None:
                _near(o, t, torch.bfloat16 if dtype.itemsize == 2 else dtype)


# (what falls back, call): each gives what PyTorch gives without the patch.
def _cases(device):
    x = torch.randn(2, 5, 4, device=device)
    half = torch.randn(6, 8, device=device).half()
    return {
        "a layout that is not rows": ("_softmax", lambda: torch.softmax(x.transpose(0, 2), 1)),
        "log_softmax of it": ("_log_softmax", lambda: torch.log_softmax(x.transpose(0, 2), 1)),
        "no elements": ("_softmax", lambda: torch.softmax(torch.empty(0, 3, device=device), -1)),
        "no rows": (
            "native_layer_norm",
            lambda: F.layer_norm(torch.empty(0, 3, device=device), (3,)),
        ),
        "rows that do not lie regularly": (
            "native_layer_norm",
            lambda: F.layer_norm(x.transpose(1, 2), (5,)),
        ),
        "another dim than the last, widened": (
            "_softmax",
            lambda: ops._softmax(half, 0, True) if device == "cuda" else None,
        ),
    }


@pytest.mark.parametrize("case", list(_cases("cpu")))
def test_each_fallback(case, patched):
    name, call = _cases(patched.device)[case]
    if call() is None:
        pytest.skip("half_to_float is for CUDA alone")
    y = call()
    assert patched.fallbacks.get(name, 0) >= 1
    rows.unpatch()
    assert torch.equal(y, call())


def test_gradients_that_lie_otherwise_are_served(patched, dtype):
    """The gradient of a sum is one number, expanded; others are transposed."""
    x = torch.randn(2, 5, 4, device=patched.device).to(dtype).requires_grad_()
    w = torch.ones(4, device=patched.device, requires_grad=True)
    functions = [
        lambda: torch.softmax(x, -1),
        lambda: torch.log_softmax(x, -1),
        lambda: torch.log_softmax(x, 1),
        lambda: F.layer_norm(x, (4,), w.to(dtype)),
        lambda: F.rms_norm(x, (4,), w.to(dtype)),
    ]
    expanded = torch.randn((), device=patched.device).to(dtype).expand(2, 5, 4)
    transposed = torch.randn(4, 5, 2, device=patched.device).to(dtype).transpose(0, 2)
    for function, dy in itertools.product(functions, (expanded, transposed)):
        ours = torch.autograd.grad(function(), (x, w), dy, allow_unused=True)
        if patched.device == "cuda" or dtype.itemsize > 2:
            assert patched.fallbacks == {}
        rows.unpatch()
        theirs = torch.autograd.grad(function(), (x, w), dy, allow_unused=True)
        rows.patch(patched.device)
        assert ours[0].stride() == theirs[0].stride()
        for o, t in zip(ours, theirs, strict=True):
            assert (o is None) == (t is None)
            if t is not None:
                _near(o, t, torch.bfloat16 if dtype.itemsize == 2 else dtype)


def test_gradients_fall_back(patched):
    x = torch.randn(2, 5, 4, device=patched.device, requires_grad=True)
    y = torch.randn(4, 5, 2, device=patched.device).transpose(0, 2)  # lies otherwise
    dy = torch.randn(2, 5, 4, device=patched.device)
    calls = [
        lambda: ops._softmax_backward_data(dy, y, -1, torch.float32),
        lambda: ops._log_softmax_backward_data(dy, y, -1, torch.float32),
        lambda: torch.autograd.grad(F.layer_norm(x.transpose(1, 2), (5,)).sum(), x)[0],
    ]
    ours = [call() for call in calls]
    for name in (
        "_softmax_backward_data",
        "_log_softmax_backward_data",
        "native_layer_norm",
        "native_layer_norm_backward",
    ):
        assert patched.fallbacks.get(name, 0) == 1, name
    rows.unpatch()
    for o, call in zip(ours, calls, strict=True):
        torch.testing.assert_close(o, call())


def _raised(call):
    with pytest.raises(Exception) as error:
        call()
    return error.value


def test_errors_are_those_of_pytorch(patched):
    device = patched.device
    x = torch.ones(3, 4, device=device)
    calls = [
        lambda: torch.softmax(x, 5),
        lambda: torch.log_softmax(x, -3),
        lambda: torch.softmax(x.int(), -1),
        lambda: torch.softmax(x.to(torch.complex64), 0),
        lambda: F.layer_norm(x.to(torch.complex64), (4,)),
        lambda: F.layer_norm(x, (5,)),
        lambda: F.layer_norm(x, (4,), x[0].double()),
    ]
    ours = [_raised(call) for call in calls]
    rows.unpatch()
    for call, error in zip(calls, ours, strict=True):
        theirs = _raised(call)
        assert type(error) is type(theirs)
        assert str(error).splitlines()[0] == str(theirs).splitlines()[0]


def _is_exported(error):
    """Whether this PyTorch's libc10 has the class that Python's error comes of."""
    name = error.__name__
    return all(
        hasattr(ctypes.CDLL("libc10.so"), f"{what}N3c10{len(name)}{name}E")
        for what in ("_ZTI", "_ZTV")
    )


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError, IndexError, NotImplementedError, TypeError, ValueError]
)
def test_errors_of_a_fallback_keep_their_class(error, patched, monkeypatch):
    def fails(*_):
        raise error("told by the kernel")

    key = patched.device, "_softmax"
    monkeypatch.setitem(_patch._before, key, type("Kernel", (), {"call_boxed": fails})())
    x = torch.ones(0, 4, device=patched.device, requires_grad=True)
    with pytest.raises((error, RuntimeError), match="told by the kernel") as caught:
        torch.softmax(x, -1)
    assert caught.type is (error if _is_exported(error) else RuntimeError)


def test_an_older_error_is_not_told_again(patched, monkeypatch):
    """Where a fallback fails before Python notes anything."""

    class Silent(Exception):
        def __str__(self):
            return ""

    def fails(*_):
        raise Silent

    torch.ops.oneflow_lite_torch.note_error("IndexError", "an older error")
    key = patched.device, "_softmax"
    monkeypatch.setitem(_patch._before, key, type("Kernel", (), {"call_boxed": fails})())
    monkeypatch.setattr(_patch.ops, "note_error", lambda *_: None)
    error = _raised(lambda: torch.softmax(torch.ones(0, 4, device=patched.device), -1))
    assert type(error) is RuntimeError and "an older error" not in str(error)


def test_statistics_of_16_bits_on_the_cpu_are_pytorchs():
    rows.patch("cpu")
    try:
        x = torch.randn(4, 8).bfloat16()
        mean = torch.native_layer_norm(x, (8,), None, None, 1e-5)[1]
    finally:
        rows.unpatch()
    assert mean.dtype == torch.native_layer_norm(x, (8,), None, None, 1e-5)[1].dtype


def test_subclasses_and_transforms(patched):
    x = torch.randn(3, 4, 5, device=patched.device)
    expected = torch.stack([torch.softmax(row, -1) for row in x])
    _near(torch.vmap(lambda t: torch.softmax(t, -1))(x), expected)
    _near(rows.softmax(x), expected)
    _near(torch.vmap(lambda t: rows.softmax(t))(x), expected)

    class Own(torch.Tensor):
        pass

    own = x.as_subclass(Own)
    assert type(rows.softmax(own)) is Own and type(torch.softmax(own, -1)) is Own
    parameter = torch.nn.Parameter(x)
    torch.softmax(parameter, -1).sum().backward()
    assert parameter.grad is not None


def test_forward_mode(patched):
    x, t = torch.randn(3, 4, device=patched.device), torch.randn(3, 4, device=patched.device)
    _, ours = torch.func.jvp(lambda x: rows.softmax(x), (x,), (t,))
    _, patched_one = torch.func.jvp(lambda x: torch.softmax(x, -1), (x,), (t,))
    _near(ours, patched_one)


def test_unpatch_gives_back_the_same_bits(device):
    x = torch.randn(7, 1001, device=device)
    before = torch.softmax(x, -1), F.layer_norm(x, (1001,))
    rows.patch(device)
    during = torch.softmax(x, -1)
    rows.unpatch()
    after = torch.softmax(x, -1), F.layer_norm(x, (1001,))
    assert all(torch.equal(b, a) for b, a in zip(before, after, strict=True))
    _near(during, before[0])
    rows.unpatch()  # and again: nothing happens


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_served_goes_to_the_kernel_that_was_there_when_it_was_patched():
    """Somebody else's, put in place between two calls of patch()."""
    rows.patch("cpu")
    rows.unpatch()
    calls = []

    def theirs(self, dim, half_to_float):
        calls.append(dim)
        return torch.full_like(self, 7)

    library = torch.library.Library("aten", "IMPL")
    try:
        library.impl("_softmax", theirs, "CPU")
        rows.patch("cpu")
        x = torch.randn(3, 4, 5)
        _near(torch.softmax(x, -1).sum(-1), torch.ones(3, 4))
        assert calls == []
        torch.softmax(x.transpose(0, 2), 1)
        assert calls == [1]
    finally:
        rows.unpatch()
        library._destroy()
    _near(torch.softmax(x.transpose(0, 2), 1).sum(1), torch.ones(5, 3))
    assert calls == [1]


def test_composites_are_not_patched():
    assert not {"softmax.int", "layer_norm", "rms_norm", "cross_entropy_loss"} & set(_patch.PATCHED)


def test_bad_devices():
    with pytest.raises(ValueError, match='device is "mps"'):
        rows.patch("mps")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no CUDA device"):
            rows.patch()


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels run on the GPU that is here")
def test_a_gpu_on_which_the_kernels_do_not_run_is_left_to_pytorch():
    """No driver, one of an older CUDA, or a build without CUDA: said once for each device."""
    _support.runs_on.cache_clear()
    with pytest.warns(UserWarning, match="oneflow_lite_torch.* PyTorch's own functions .* cuda:0"):
        assert not _support.runs_on(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not _support.runs_on(0)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 3)])
def test_a_gpu_without_measured_plans_is_named(capability, monkeypatch):
    """patch("cuda") says so once for each such GPU, and is quiet on the others."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Some GPU")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _patch._warn_unmeasured(0)
    if capability in _patch.MEASURED:
        assert said == []
        return
    (one,) = said
    assert f"Some GPU (compute capability {capability[0]}.{capability[1]}" in str(one.message)
    assert "no plan was measured" in str(one.message)
