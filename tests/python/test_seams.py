# SPDX-License-Identifier: Apache-2.0
"""The framework's seams as Python meets them: each stands, and holds."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numerics import assert_close, bits, flow, host, tensor
from op_reference import np_softmax

ext = flow._oneflow_lite


class Observer:
    """Sees every op of the thread while it is entered."""

    def __init__(self):
        self.names, self.calls = [], []

    def __enter__(self):
        ext.push_observer(self.observe)
        return self

    def __exit__(self, *_):
        ext.pop_observer()

    def observe(self, name, run):
        self.names.append(name)
        self.calls.append(run())


# The dispatch chain ---------------------------------------------------------------------------


def test_an_observer_sees_every_op_of_forward_and_backward(device):
    x = flow.randn(4, 5, device=device, requires_grad=True)
    with Observer() as seen:
        y = flow.softmax(x, 1)
        y.view(20).sum().backward()
    assert seen.names[0] == "softmax"
    assert {"softmax", "view", "sum", "expand", "softmax_backward"} <= set(seen.names)
    first = seen.calls[0]
    assert first["op"] == "softmax" and first["seconds"] > 0
    assert first["inputs"] == first["outputs"] == [((4, 5), flow.float32, x.device)]
    assert first["bytes"] == 2 * 4 * 20 and first["flops"] > 0
    count = len(seen.names)
    flow.softmax(x, 1)
    assert len(seen.names) == count


def test_an_observer_sees_ops_on_meta_and_views_and_in_place_ops():
    with Observer() as seen:
        x = flow.zeros(3, 4, device="meta")
        x[1:].t().add_(1)
    assert seen.names == ["full", "slice", "permute", "add_"]


def test_observers_nest_and_see_their_own_thread():
    with Observer() as outer, Observer() as inner:
        flow.exp(flow.ones(2))
        thread = threading.Thread(target=lambda: flow.log(flow.ones(2)))
        thread.start()
        thread.join()
    assert outer.names == inner.names == ["full", "exp"]


def test_an_exception_of_an_observer_comes_back_as_itself():
    class Stop(Exception):
        pass

    def stop(name, run):
        raise Stop(name)

    ext.push_observer(stop)
    try:
        with pytest.raises(Stop, match="full"):
            flow.ones(2)
    finally:
        ext.pop_observer()
    ext.push_observer(lambda name, run: None)
    try:
        with pytest.raises(RuntimeError, match="did not call run"):
            flow.ones(2)
    finally:
        ext.pop_observer()
    with pytest.raises(RuntimeError, match="there is none"):
        ext.pop_observer()
    assert flow.ones(2).sum().item() == 2


def test_an_error_passes_through_an_observer_unchanged():
    with Observer(), pytest.raises(IndexError, match="index 7 is out of range"):
        flow.ones(3)[7]
    with Observer() as seen, pytest.raises(flow.ShapeError):
        flow.ones(3) + flow.ones(4)
    assert seen.names == ["full", "full", "add"]


# Meta -----------------------------------------------------------------------------------------


def test_meta_infers_a_training_step_of_any_size_without_memory():
    before = ext.memory_stats("cpu")["allocated"]
    x = flow.empty(1 << 20, 1 << 16, device="meta")
    w = flow.empty(1 << 18, 1 << 16, device="meta", requires_grad=True)
    labels = flow.empty(1 << 20, dtype=flow.int64, device="meta")
    loss = flow.cross_entropy(flow.linear(x, w), labels)
    loss.backward()
    assert loss.shape == () and loss.is_meta
    assert w.grad.shape == w.shape and w.grad.is_meta and w.grad.data_ptr() == 0
    assert ext.memory_stats("cpu")["allocated"] - before < 1 << 16
    with pytest.raises(IndexError):  # the checks are the same
        flow.softmax(x, 2)


# Autograd -------------------------------------------------------------------------------------


def test_saved_tensors_hooks_see_and_replace_what_is_saved(device):
    packed, unpacked = [], []

    def pack(t):
        packed.append(tuple(t.shape))
        return host(t), t.device

    def unpack(kept):
        unpacked.append(kept[0].shape)
        return tensor(kept[0], "float32", kept[1])

    x = flow.randn(3, 4, device=device, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = flow.softmax(x, 1) * x
    assert (3, 4) in packed and len(packed) == 3 and not unpacked
    plain = flow.softmax(x, 1) * x
    expected = flow.autograd.grad(plain, x, flow.ones_like(plain))[0]
    assert bits(flow.autograd.grad(y, x, flow.ones_like(y))[0]) == bits(expected)
    assert len(unpacked) == 3


def test_an_exception_in_a_hook_comes_back_as_itself():
    def bad(*_):
        raise KeyError("mine")

    x = flow.ones(3, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(bad, bad), pytest.raises(KeyError, match="mine"):
        flow.softmax(x, 0)
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, bad):
        y = flow.softmax(x, 0).sum()
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    y = (x * 2).sum()
    x.register_hook(bad)
    with pytest.raises(KeyError, match="mine"):
        y.backward()


def test_backward_inside_backward():
    """Checkpointing: a hook that runs a forward and a backward of its own."""
    w = flow.ones(3, requires_grad=True)
    inner = []

    def recompute(grad):
        with flow.enable_grad():
            v = flow.ones(3, requires_grad=True)
            (v * v).sum().backward()
            inner.append(v.grad.tolist())
        return grad * 2

    y = w * 3
    y.register_hook(recompute)
    y.sum().backward()
    assert inner == [[2.0] * 3] and w.grad.tolist() == [6.0] * 3


def test_no_grad_records_nothing():
    x = flow.ones(3, requires_grad=True)
    with flow.no_grad():
        y = flow.softmax(x, 0)
        assert not y.requires_grad and y.grad_fn is None
        x.add_(1)  # a leaf may be changed here
        with flow.enable_grad():
            assert flow.softmax(x, 0).requires_grad
    assert flow.softmax(x, 0).requires_grad and x.tolist() == [2.0] * 3
    assert not flow.softmax(x.detach(), 0).requires_grad


def test_a_graph_of_two_hundred_thousand_nodes_is_run_and_freed():
    x = flow.ones(2, requires_grad=True)
    before = ext.memory_stats("cpu")["allocated"]
    y = x
    for _ in range(200_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y
    y = x * 1
    for _ in range(200_000):  # never run: freed as a whole
        y = y * 1
    del y
    x.grad = None
    assert ext.memory_stats("cpu")["allocated"] <= before + 4096


def test_a_deep_graph_is_freed_on_a_thread_with_a_small_stack():
    x = flow.ones(1, requires_grad=True)
    threading.stack_size(256 << 10)
    try:
        y = x
        for _ in range(50_000):
            y = -y
        kept = [y]
        del y
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)


def test_what_autograd_holds_is_given_back():
    before = ext.memory_stats("cpu")["allocated"]
    for _ in range(3):
        x = flow.randn(100, 100, requires_grad=True)
        loss = flow.log_softmax(x @ x, 1).sum()
        loss.backward()
        loop = [x]
        x.loop = loop  # a cycle through the tensor's Python object
        loop.append(loop)
    del x, loss, loop
    gc.collect()
    assert ext.memory_stats("cpu")["allocated"] <= before + 4096


def test_the_same_tensor_is_the_same_object():
    x = flow.ones(2, requires_grad=True)
    y = x * 2
    x.mark = "kept"
    y.sum().backward()
    grad = x.grad
    assert x.grad is grad
    assert y.view(2)._base is y
    seen = []
    x.register_hook(lambda g: seen.append(type(g)))
    (x * 1).sum().backward()
    assert seen == [flow.Tensor] and x.mark == "kept"


# Memory ---------------------------------------------------------------------------------------


def test_memory_is_counted_and_given_back(device):
    gc.collect()
    start = ext.memory_stats(device)
    x = flow.empty(1 << 20, device=device)
    held = ext.memory_stats(device)
    assert 1 << 22 <= held["allocated"] - start["allocated"] <= 2 << 22
    assert held["reserved"] >= held["allocated"]
    view = x[10:]
    del x
    assert ext.memory_stats(device)["allocated"] == held["allocated"]  # the view holds it
    del view
    assert ext.memory_stats(device)["allocated"] == start["allocated"]


def test_freed_memory_is_used_again_and_the_cache_can_be_emptied(device):
    address = flow.empty(1 << 18, device=device).data_ptr()
    assert flow.empty(1 << 18, device=device).data_ptr() == address
    before = ext.memory_stats(device)["reserved"]
    ext.empty_cache(device)
    stats = ext.memory_stats(device)
    assert stats["allocated"] <= stats["reserved"] <= before
    assert device == "cuda" or stats["reserved"] == stats["allocated"]


def test_memory_in_use_displaces_what_only_waits():
    """On the CPU at most 512 MB wait; they must not be of sizes that no one asks for any more."""
    ext.empty_cache("cpu")
    stale = [flow.empty(48 << 20, dtype=flow.uint8) for _ in range(10)]
    del stale
    size = 64 << 20
    flow.empty(size, dtype=flow.uint8)
    waiting = ext.memory_stats("cpu")["reserved"]
    kept = flow.empty(size, dtype=flow.uint8)
    assert ext.memory_stats("cpu")["reserved"] == waiting, "taken from the system once more"
    del kept
    assert waiting <= 512 << 20
    ext.empty_cache("cpu")


def test_the_peak_is_kept_until_it_is_reset(device):
    ext.reset_peak_memory(device)
    base = ext.memory_stats(device)["peak_allocated"]
    flow.empty(1 << 20, device=device)
    assert ext.memory_stats(device)["peak_allocated"] >= base + (1 << 22)
    ext.reset_peak_memory(device)
    assert ext.memory_stats(device)["peak_allocated"] < base + (1 << 22)


def test_out_of_memory_is_survived(device):
    ext.reset_peak_memory(device)
    before = ext.memory_stats(device)
    x = flow.ones(1000, device=device)
    for size in ((1 << 44,), (1 << 30, 1 << 20)):
        with pytest.raises(flow.OutOfMemoryError):
            flow.empty(size, device=device)
        with pytest.raises(flow.OutOfMemoryError):
            flow.zeros(size, device=device, dtype=flow.float64)
    with pytest.raises(flow.OutOfMemoryError):
        flow.softmax(x.view(1000, 1).expand(1000, 1 << 36), 1)
    stats = ext.memory_stats(device)
    assert stats["peak_allocated"] - before["allocated"] < 1 << 20, "nothing was had"
    assert flow.softmax(x, 0).sum().item() == pytest.approx(1)


# Threads and processes ------------------------------------------------------------------------


def train(seed, steps=20):
    rng = np.random.default_rng(seed)
    w = tensor(rng.standard_normal((64, 10)) / 8, "float32").requires_grad_()
    x = tensor(rng.standard_normal((512, 64)), "float32")
    labels = flow.tensor(rng.integers(0, 10, 512))
    losses = []
    for _ in range(steps):
        w.grad = None
        loss = flow.cross_entropy(x @ w, labels)
        loss.backward()
        with flow.no_grad():
            w.sub_(w.grad * 0.5)
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    return losses


def test_two_threads_train_at_once():
    alone = [train(seed) for seed in (0, 1)]
    together = {}
    threads = [
        threading.Thread(target=lambda s=seed: together.setdefault(s, train(s))) for seed in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [together.get(0), together.get(1)] == alone


def test_python_goes_on_while_a_large_op_runs():
    """The GIL is free during long work: another thread counts meanwhile."""
    x = flow.ones(1500, 1500)
    running, counted = threading.Event(), [0]

    def count():
        while not running.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    while time.perf_counter() - start < 0.3:
        x @ x
    running.set()
    thread.join()
    assert counted[0] > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("started", [True, False])
def test_fork_then_compute(started):
    """In a process of its own, whose child gets an alarm: it must not wait for absent threads."""
    script = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_seams import flow, np, train
x = flow.randn(2048, 512)
w = flow.randn(512, 512)
if {started}:  # OpenMP's and the BLAS's threads
    flow.softmax(x @ w, 1)
    expected = train(0)
child = os.fork()
if child == 0:
    signal.alarm(40)
    result = flow.softmax(x @ w, 1).numpy(), train(0)
    same = np.isfinite(result[0]).all() and abs(result[0].sum(1) - 1).max() < 1e-5
    if {started}:
        same = same and np.allclose(result[1], expected, atol=1e-5)  # on one thread
    os._exit(0 if same else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert abs(flow.softmax(x @ w, 1).sum().item() / 2048 - 1) < 1e-4  # the parent goes on
os._exit(0 if status == 0 else 2)
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script], start_new_session=True
    )
    try:
        assert process.wait(timeout=100) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("the child hangs")


def test_the_number_of_threads_is_ours_to_set():
    before = flow.get_num_threads()
    try:
        flow.set_num_threads(3)
        assert flow.get_num_threads() == 3
        x = flow.randn(300, 300)
        assert_close(flow.softmax(x, 1), np_softmax(host(x), 1), "softmax")
    finally:
        flow.set_num_threads(before)


# CUDA -----------------------------------------------------------------------------------------


def needs_gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")


@pytest.mark.cuda
def test_a_softmax_is_captured_and_replayed():
    needs_gpu()
    x = flow.randn(64, 1000, device="cuda")
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        for _ in range(2):
            flow.softmax(x, 1)
    flow.cuda.current_stream().wait_stream(side)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y = flow.softmax(x, 1)
        z = flow.log_softmax(x, 0)
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal((64, 1000))
        x.copy_(tensor(values, "float32", "cuda"))
        graph.replay()
        flow.cuda.synchronize()
        assert_close(y, np_softmax(host(x), 1), "softmax")
        assert_close(z, np_softmax(host(x), 0, True), "log_softmax")


@pytest.mark.cuda
def test_a_training_step_is_captured_and_replayed():
    needs_gpu()
    w = flow.zeros(64, 10, device="cuda", requires_grad=True)
    x = flow.randn(128, 64, device="cuda")
    labels = flow.tensor(np.random.default_rng(0).integers(0, 10, 128), device="cuda")

    def step():
        loss = flow.cross_entropy(x @ w, labels)
        (grad,) = flow.autograd.grad(loss, w)
        with flow.no_grad():
            w.sub_(grad * 0.1)
        return loss

    losses = [step().item() for _ in range(3)]
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        loss = step()
    for _ in range(20):
        graph.replay()
        losses.append(loss.item())
    assert all(later < earlier for earlier, later in zip(losses, losses[1:], strict=False))


@pytest.mark.cuda
def test_streams_and_events_order_work():
    needs_gpu()
    x = flow.ones(1 << 22, device="cuda")
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        for _ in range(50):
            x.mul_(1.0)
        x.add_(1.0)
        done = flow.cuda.Event()
        done.record()
    done.wait()
    assert (x + 1).sum().item() == 3 * (1 << 22)
    assert done.query()


@pytest.mark.cuda
def test_backward_runs_on_the_stream_of_forward():
    needs_gpu()
    x = flow.randn(256, 1000, device="cuda", requires_grad=True)
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        y = flow.softmax(x, 1)
        loss = (y * y).sum()
    loss.backward()
    flow.cuda.synchronize()
    (expected,) = flow.autograd.grad(flow.softmax(x, 1), x, 2 * y.detach())
    assert np.allclose(host(x.grad), host(expected), atol=1e-7)
