# SPDX-License-Identifier: Apache-2.0
"""Calls past the dispatcher: the same bits, and none where something has to see the call."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from oneflow_lite_torch import _library
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

OFF = os.environ.get("OFL_TORCH_DIRECT") == "0"
pytestmark = pytest.mark.skipif(
    OFF or sys.implementation.name != "cpython", reason="calls go through the dispatcher here"
)
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
X, W, B = torch.randn(5, 64), torch.randn(64), torch.randn(64)

CALLS = {
    "softmax": (
        lambda x: _library.direct_softmax(x, -1, False, False),
        lambda x: rows.softmax(x, -1),
        lambda x: F.softmax(x, -1),
    ),
    "log_softmax": (
        lambda x: _library.direct_softmax(x, 0, True, False),
        lambda x: rows.log_softmax(x, 0),
        lambda x: F.log_softmax(x, 0),
    ),
    "layer_norm": (
        lambda x: _norm(x, (64,), W.to(x.dtype), B.to(x.dtype), 1e-5, True),
        lambda x: rows.layer_norm(x, (64,), W.to(x.dtype), B.to(x.dtype)),
        lambda x: F.layer_norm(x, (64,), W.to(x.dtype), B.to(x.dtype)),
    ),
    "rms_norm": (
        lambda x: _norm(x, 64, W.to(x.dtype), None, None, False),
        lambda x: rows.rms_norm(x, 64, W.to(x.dtype)),
        lambda x: F.rms_norm(x, (64,), W.to(x.dtype)),
    ),
}
every_call = pytest.mark.parametrize("direct, ours, torchs", CALLS.values(), ids=CALLS)


def _norm(x, shape, weight, bias, eps, centre, statistics=False):
    return _library.direct_norm(x, shape, weight, bias, eps, centre, False, statistics)


def test_it_is_there():
    assert _library.direct_softmax is not _library._not_there


@every_call
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_it_gives_the_bits_of_the_operator(direct, ours, torchs, dtype, monkeypatch):
    x = X.to(dtype)
    for given in (x, torch.randn(200, 64, dtype=dtype), x.view(1, 5, 64), torch.inf * x):
        y = direct(given)
        assert type(y) is torch.Tensor and y.dtype == dtype and not y.requires_grad
        assert torch.equal(y.nan_to_num(), ours(given).nan_to_num())
        with torch.autograd.profiler.profile():  # goes through the dispatcher
            expected = ours(given)
        assert torch.equal(y.view(torch.uint8), expected.view(torch.uint8))
        torch.testing.assert_close(y, torchs(given), equal_nan=True)


def test_statistics_come_along():
    y, mean, rstd = _norm(X, 64, W, B, 1e-5, True, True)
    assert mean.shape == rstd.shape == (5, 1)
    torch.testing.assert_close(mean, X.mean(-1, keepdim=True))
    assert torch.equal(y, rows.layer_norm(X, 64, W, B))
    y, rstd = _norm(X, 64, None, None, 1e-5, False, True)
    torch.testing.assert_close(rstd, (X.square().mean(-1, keepdim=True) + 1e-5).rsqrt())


GRADIENTS = {
    "softmax": lambda x, w, b, t, f: f.softmax(x, -1),
    "log_softmax": lambda x, w, b, t, f: f.log_softmax(x, -1),
    "layer_norm": lambda x, w, b, t, f: f.layer_norm(x, (64,), w, b),
    "bare layer_norm": lambda x, w, b, t, f: f.layer_norm(x, (64,)),
    "rms_norm": lambda x, w, b, t, f: f.rms_norm(x, (64,), w, 1e-5),
    "cross_entropy": lambda x, w, b, t, f: f.cross_entropy(x, t, label_smoothing=0.1),
    "losses": lambda x, w, b, t, f: f.cross_entropy(x, t, reduction="none"),
}


def _gradients(name, dtype, functions, needs=(True, True, True)):
    torch.manual_seed(1)
    leaves = [torch.randn(*s, dtype=dtype) for s in ((5, 64), (64,), (64,))]
    for leaf, needed in zip(leaves, needs, strict=True):
        leaf.requires_grad_(needed)
    y = GRADIENTS[name](*leaves, torch.tensor([1, 63, -100, 0, 7]), functions)
    dy = torch.randn(y.shape, dtype=dtype)
    inputs = [leaf for leaf in leaves if leaf.requires_grad]
    return [y.detach(), *torch.autograd.grad(y, inputs, dy, allow_unused=True)]


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_gradients_are_those_of_the_operator(name, dtype):
    direct = _gradients(name, dtype, rows)
    with torch.autograd.profiler.profile():  # goes through the dispatcher
        other = _gradients(name, dtype, rows)
    for d, o in zip(direct, other, strict=True):
        assert (d is None) == (o is None)
        assert d is None or torch.equal(d.view(-1).view(torch.uint8), o.view(-1).view(torch.uint8))


@pytest.mark.parametrize("needs", itertools.product((True, False), repeat=3))
def test_gradients_that_are_not_needed(needs):
    if any(needs):
        torch.testing.assert_close(
            _gradients("layer_norm", torch.float64, rows, needs),
            _gradients("layer_norm", torch.float64, F, needs),
        )


def test_gradients_go_past_the_dispatcher(monkeypatch):
    """No operator is called: neither forward nor backward."""
    from oneflow_lite_torch import _losses, _norms, _softmax

    def refuse(*arguments):
        raise AssertionError("through the dispatcher")

    for module, names in (
        (_softmax, ("_forward", "_backward")),
        (_norms, ("_layer", "_rms", "_layer_backward", "_rms_backward")),
        (_losses, ("_forward", "_backward", "_reduce")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, refuse)
    for name in GRADIENTS:
        _gradients(name, torch.float32, rows)


def test_gradients_for_the_dispatcher():
    """Of other layouts, dtypes and devices, and of gradients that are recorded."""
    y = X.softmax(-1)
    backward = _library.direct_softmax_backward
    assert backward(X, y, -1, False, False) is not None
    others = (X.t(), X.double(), X.to("meta"), X[:3], X[:, :1].expand(5, 64), None, 3)
    assert all(backward(other, y, -1, False, False) is None for other in others)
    assert backward(X.clone().requires_grad_(), y, -1, False, False) is None
    mean, rstd = X.mean(-1, keepdim=True), X.std(-1, keepdim=True).reciprocal()
    norm = lambda *given: _library.direct_norm_backward(*given, True, False, True, True, True)  # noqa: E731
    given = [X, X, mean, rstd, W, B]
    with torch.no_grad():
        assert norm(*given) is not None
        for place in range(6):
            for other in (given[place].to("meta"), given[place].half(), 3):
                assert norm(*given[:place], other, *given[place + 1 :]) is None
        assert norm(X, X, None, rstd, W, B) is None and norm(X, X, mean, rstd, None, B) is None
    assert norm(*given) is None  # gradients are recorded
    x = X.clone().requires_grad_()
    first = torch.autograd.grad(rows.softmax(x).square().sum(), x, create_graph=True)[0]
    assert torch.autograd.grad(first.sum(), x)[0].isfinite().all()


def test_losses_for_the_dispatcher():
    target = torch.tensor([1, 63, -100, 0, 7])
    call = lambda x=X, t=target, n="mean", s=0.0, wide=False: _library.direct_loss(  # noqa: E731
        x, t, -100, n, s, wide, False, False
    )
    torch.testing.assert_close(call(), F.cross_entropy(X, target))
    assert call(n="all") is None and call(s=1.5) is None and call(s=0) is None
    assert call(x=X[0]) is None and call(t=target[:4]) is None and call(t=target.int()) is None
    assert call(x=X.half(), n="none") is None and call(x=X.half(), n="none", wide=True) is not None
    assert call(t=torch.full((5,), 64)) is None and call(t=target.to("meta")) is None
    with pytest.raises(IndexError, match="target"):
        rows.cross_entropy(X, torch.full((5,), 64))
    with pytest.raises(IndexError, match="target"):
        rows.cross_entropy(X.clone().requires_grad_(), torch.full((5,), 64))
    with pytest.raises(ValueError, match="reduction"):
        rows.cross_entropy(X.clone().requires_grad_(), target, reduction="all")


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


class SeenFunctions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


@every_call
@pytest.mark.parametrize("mode", [Seen, SeenFunctions])
def test_modes_see_the_operator(direct, ours, torchs, mode):
    watching = mode()
    watching.names = []
    with watching:
        assert direct(X) is None
        ours(X)
    assert any("oneflow_lite_torch" in name for name in watching.names)


@every_call
def test_the_profiler_sees_the_operator(direct, ours, torchs):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        assert direct(X) is None
        ours(X)
    assert any("oneflow_lite_torch" in event.key for event in p.key_averages())


@every_call
@pytest.mark.filterwarnings("ignore")
def test_a_trace_holds_the_operator(direct, ours, torchs):
    traced = torch.jit.trace(ours, (X,), check_trace=False)
    other = torch.randn(5, 64)
    torch.testing.assert_close(traced(other), torchs(other))


@every_call
def test_transforms_are_seen(direct, ours, torchs):
    batch = torch.randn(3, 5, 64)
    torch.testing.assert_close(torch.vmap(ours)(batch), torch.vmap(torchs)(batch))
    loss = lambda f: lambda x: f(x).square().sum()  # noqa: E731
    torch.testing.assert_close(torch.func.grad(loss(ours))(X), torch.func.grad(loss(torchs))(X))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, torch.ones_like(X))
        assert direct(dual) is None and direct(X) is None
        tangents = [forward_ad.unpack_dual(f(dual)).tangent for f in (ours, torchs)]
    torch.testing.assert_close(*tangents)


@every_call
def test_gradients_are_recorded(direct, ours, torchs):
    x = X.clone().requires_grad_()
    assert direct(x) is None and ours(x).requires_grad
    found = [torch.autograd.grad(f(x).square().sum(), x)[0] for f in (ours, torchs)]
    torch.testing.assert_close(*found)
    with torch.no_grad():
        assert direct(x) is not None and not ours(x).requires_grad
    with torch.inference_mode():
        assert direct(x).is_inference()


@pytest.mark.parametrize("place", [0, 1])
def test_gradients_of_columns_are_recorded(place):
    columns = [W.clone(), B.clone()]
    columns[place] = torch.nn.Parameter(columns[place])
    assert _norm(X, 64, *columns, 1e-5, True) is None
    assert rows.layer_norm(X, 64, *columns).requires_grad
    with torch.no_grad():
        assert _norm(X, 64, *columns, 1e-5, True) is not None


def test_autocast_is_asked_for_floats_of_16_bits():
    half = X.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert _library.direct_softmax(half, -1, False, False) is None
        assert rows.softmax(half).dtype == F.softmax(half, -1).dtype
        assert rows.softmax(X).dtype == F.softmax(X, -1).dtype == torch.float32


class Sub(torch.Tensor):
    pass


z = torch.randn(5, 64, dtype=torch.complex64)
ELSEWHERE = {
    "meta": X.to("meta"),
    "sparse": X.to_sparse(),
    "integers": X.long(),
    "complex": z,
    "subclass": X.as_subclass(Sub),
    "a view of complex numbers": z.conj().imag,
    "one column of them": z.conj()[:, :1].imag,
    "transposed": torch.randn(64, 5).t(),
    "empty": X[:0],
    "a number": X[0, 0],
    "nested": torch.nested.nested_tensor([X, X[:2]]),
    "no tensor": [1.0, 2.0],
}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.filterwarnings("ignore")
def test_others_are_left_to_the_dispatcher(name):
    x = ELSEWHERE[name]
    assert _library.direct_softmax(x, -1, False, False) is None
    assert _norm(x, 64, W, B, 1e-5, True) is None
    outcomes = []
    for f in (rows.softmax, F.softmax):
        try:
            y = f(x, -1)
            outcomes.append(y.to_dense() if y.layout is torch.sparse_coo else y)
        except Exception as error:
            outcomes.append(type(error))
    if isinstance(outcomes[1], torch.Tensor) and name not in ("meta", "nested"):
        torch.testing.assert_close(*outcomes)
    else:
        assert type(outcomes[0]) is type(outcomes[1])


@pytest.mark.parametrize(
    "arguments",
    [
        (X, 63, W, B, 1e-5),
        (X, (5, 64), W, B, 1e-5),
        (X, (64,), W[:63], B, 1e-5),
        (X, (64,), W.view(1, 64), B, 1e-5),
        (X, (64,), W.double(), B, 1e-5),
        (X, (64,), W.to("meta"), B, 1e-5),
        (X, (64,), W, B.half(), 1e-5),
        (X, (64,), W.as_subclass(Sub), B, 1e-5),
        (X, (64,), W, 3, 1e-5),
        (X, 2**70, W, B, 1e-5),
        (X, "64", W, B, 1e-5),
        (X, (64,), W, B, "eps"),
    ],
)
def test_norms_that_are_none_are_left_to_the_dispatcher(arguments):
    assert _norm(*arguments, True) is None


def test_wrong_arguments_are_errors():
    for dim in (2, -3, 2**70):
        with pytest.raises(Exception) as theirs:  # whichever PyTorch has for it
            F.softmax(X, dim)
        with pytest.raises(theirs.type):
            rows.softmax(X, dim)
    assert _library.direct_softmax(X, 0) is None and _library.direct_norm() is None


def test_nothing_is_kept():
    gc.collect()  # what tests before this one left in cycles, which has references to None
    held = X._use_count(), W._use_count()
    before = sys.getrefcount(X), sys.getrefcount(W), sys.getrefcount(None)
    made = weakref.WeakSet()
    for _ in range(1000):
        made.add(rows.softmax(X)), made.update(_gradients("layer_norm", torch.float32, rows))
        rows.softmax(X), rows.layer_norm(X, 64, W, B), rows.softmax(X, 5 and 1)
        _norm(X, 64, W, B, 1e-5, True, True), _norm(X, 63, W, B, 1e-5, True)
    gc.collect()
    after = sys.getrefcount(X), sys.getrefcount(W), sys.getrefcount(None)
    assert all(abs(b - a) < 100 for a, b in zip(before, after, strict=True))
    assert held == (X._use_count(), W._use_count()) and len(made) == 0


def test_threads_run_at_the_same_time():
    x, expected, wrong = torch.randn(300, 64), rows.softmax(torch.ones(300, 64)), []
    whole = rows.layer_norm(x, 64, W, B)

    def work():
        for _ in range(200):
            if not torch.equal(rows.layer_norm(x, 64, W, B), whole):
                wrong.append("layer_norm")
            if not torch.equal(rows.softmax(torch.ones(300, 64)), expected):
                wrong.append("softmax")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


EXIT = """
import sys, threading, time, torch
import oneflow_lite_torch as rows

made = []  # PyTorch itself ends the process where a thread that Python ends drops a tensor

def forever(work):
    while True: made.append(work())

torch.set_num_threads(1)
x = torch.randn(128, 64)  # enough for Python's lock to be given away
for work in (lambda: rows.softmax(x), lambda: rows.layer_norm(x, 64)) * 2:
    threading.Thread(target=forever, args=(work,), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0.02", "0.05", "0.08"])
def test_daemon_threads_do_not_disturb_the_end(seconds):
    """Python ends a thread that asks for its lock by then: it must not unwind what is in here."""
    done = subprocess.run(
        [sys.executable, "-c", EXIT, seconds], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_environment_turns_it_off(value):
    script = (
        "import torch, oneflow_lite_torch as rows\n"
        "from oneflow_lite_torch import _library\n"
        "x = torch.randn(3, 64)\n"
        "torch.testing.assert_close(rows.softmax(x), torch.softmax(x, -1))\n"
        "print(_library.direct_softmax is _library._not_there)\n"
    )
    environment = os.environ | {"OFL_TORCH_DIRECT": value}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == str(value == "0"), done.stderr
