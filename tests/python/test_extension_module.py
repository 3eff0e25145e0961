# SPDX-License-Identifier: Apache-2.0
"""The extension module: threads and the lock, facts, the end of the process."""

import os
import subprocess
import sys
import threading
import time
import timeit

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
ext = flow._oneflow_lite


# ---- Threads.


def test_large_work_lets_other_threads_run():
    """While C++ multiplies large matrices, another thread counts."""
    a = flow.randn(700, 700)
    stop, count = threading.Event(), [0]

    def work():
        while not stop.is_set():
            count[0] += 1
            time.sleep(1e-4)

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # the lock changes hands only where it is given away
    try:
        thread.start()
        most = 0
        for _ in range(20):
            before = count[0]
            flow.matmul(a, a)
            most = max(most, count[0] - before)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert most > 1


def test_threads_share_tensors():
    x, errors = flow.randn(64, 64, requires_grad=True), []

    def work():
        try:
            for i in range(200):
                y = flow.softmax(x, i % 2)
                y[0].sum().backward()
                assert x.detach().numpy().shape == (64, 64)
                assert x.grad is not None
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and np.isfinite(x.grad.numpy()).all()


# ---- Cost.


@pytest.mark.slow
def test_a_call_costs_little():
    """softmax of 4 x 64 from Python, all of it: at most 1.5 us, the best of many runs."""
    x = flow.randn(4, 64)
    times = timeit.repeat(lambda: flow.softmax(x, 1), number=1000, repeat=50)
    assert min(times) / 1000 < 1.5e-6


# ---- Facts.


def test_describe_op():
    text = ext.describe_op("softmax")
    assert text.startswith("softmax(Tensor in, int axis) -> (Tensor out)")
    assert "ops/softmax.cpp:" in text and "float16, bfloat16, float32, float64" in text
    assert "has a gradient" in text
    assert "softmax" in ext.list_ops()
    with pytest.raises(NotImplementedError, match="softmx"):
        ext.describe_op("softmx")


def test_build_config():
    config = ext.build_config()
    assert (
        isinstance(config["CUDA"], bool) and config["version"] and config["SIMD"] and config["BLAS"]
    )


def test_threads_setting():
    before = flow.get_num_threads()
    flow.set_num_threads(1)
    assert flow.get_num_threads() == 1
    flow.set_num_threads(before)
    for bad, error in [(0, ValueError), (-1, ValueError), ("a", TypeError), (2**40, TypeError)]:
        with pytest.raises(error):
            flow.set_num_threads(bad)


def test_cuda_without_cuda():
    if flow.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert ext.cuda_device_count() == 0 and ext.cuda_current_device() == 0
    for call in (
        ext.cuda_synchronize,
        ext.cuda_current_stream,
        ext.cuda_device_properties,
        flow.cuda.Stream,
        lambda: ext.cuda_set_device(0),
        lambda: ext.memory_stats("cuda"),
        flow.cuda.CUDAGraph().capture_begin,
        flow.cuda.Event().record,
    ):
        with pytest.raises(RuntimeError, match="CUDA is not available"):
            call()
    with pytest.raises(RuntimeError, match="nothing was captured"):
        flow.cuda.CUDAGraph().replay()
    assert ext.memory_stats("cpu")["peak_allocated"] >= ext.memory_stats("cpu")["allocated"]


def test_exit_with_everything_alive():
    """Objects that C++ holds when the interpreter ends do no harm."""
    script = """
import numpy as np, oneflow_lite as flow, threading
class Sub(flow.Tensor): pass
x = Sub(flow.ones(30000)).requires_grad_()
x.extra = x
x.register_hook(lambda g: g)
y = (x * x).sum()
keep = flow.from_numpy(np.ones(5))[1:]
view = keep[0]
flow._oneflow_lite.push_observer(lambda name, run: run())
flow._oneflow_lite.push_saved_tensors_hooks(lambda t: t, lambda t: t)
t = threading.Thread(target=y.backward); t.start(); t.join()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, env=os.environ)
