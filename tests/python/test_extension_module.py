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
    """softmax of 4 x 64 from Python, all of it: 1.5 us, or on a slow machine three NumPy calls."""
    x = flow.randn(4, 64)
    array = np.ones((4, 64), np.float32)
    ours, numpys = [], []
    how = {"timer": time.thread_time, "number": 1000, "repeat": 1}
    for _ in range(50):
        ours += timeit.repeat(lambda: flow.softmax(x, 1), **how)
        numpys += timeit.repeat(lambda: np.add(array, array), **how)
    assert min(ours) < max(1.5e-3, 3 * min(numpys))


# ---- Facts.


def test_op_info():
    info = ext.op_info("softmax")
    assert info["schema"] == "softmax(Tensor in, int axis, dtype? out_dtype=None) -> (Tensor out)"
    assert info["inputs"] == [("in", "required")]
    assert info["attrs"] == [("axis", "int"), ("out_dtype", "dtype")]
    assert info["place"].startswith("ops/softmax.cpp:") and info["has_backward"]
    assert flow.float16 in info["kernels"][0]["dtypes"]
    assert "softmax" in ext.list_ops()
    with pytest.raises(NotImplementedError, match="softmx"):
        ext.op_info("softmx")


def test_an_op_is_asked_about_a_call_without_running_it():
    x = flow.empty(1 << 30, 6, device="meta")
    assert ext.op_infer("softmax", [x, 1, None]) == [((1 << 30, 6), flow.float32)]
    assert ext.op_cost("softmax", [x, 1, None]) == (48 * 2.0**30, 30 * 2.0**30)
    assert ext.op_signatures("softmax", [x, 1, None]) == [(["S(0)"], ["S(0)"])]
    shard = flow.empty(1 << 29, 6, device="meta")
    attrs, outputs, weight = ext.op_infer_shard("softmax", [x, 1, None], 0, 1, 2, [shard])
    assert attrs == [1, None] and outputs == [((1 << 29, 6), flow.float32)] and weight == 1
    with pytest.raises(IndexError, match="no such signature or part"):
        ext.op_infer_shard("softmax", [x, 1, None], 1, 0, 2, [shard])
    with pytest.raises(IndexError, match="axis 2"):
        ext.op_infer("softmax", [x, 2, None])
    with pytest.raises(TypeError, match="3 arguments are wanted"):
        ext.op_infer("softmax", [x])
    with pytest.raises(TypeError, match="'axis' must be int"):
        ext.op_cost("softmax", [x, "1", None])


def test_attributes_that_speak_of_the_whole_become_those_of_a_shard():
    x, shard = flow.empty(5, 6, device="meta"), flow.empty(2, 6, device="meta")
    split, linear = (["S(0)"], ["S(0)"]), (["P"], ["P"])
    inner = ["S(1)"], ["S(1)"]  # of 6 elements 3 and 3, which are 1 and 1 of 2 rows of 3
    assert ext.op_signatures("view", [x, (5, 2, 3)]) == [split, inner, linear]
    assert ext.op_signature_sizes("view", [x, (5, 2, 3)]) == [0, 2, 0]
    assert ext.op_signature_sizes("view", [x, (30,)]) == [5, 0]
    attrs, outputs, weight = ext.op_infer_shard("view", [x, (5, 2, 3)], 0, 1, 2, [shard])
    assert attrs == [(2, 2, 3)] and outputs == [((2, 2, 3), flow.float32)] and weight == 1
    # A mean over a dim that is split: each shard's mean, by its share of the elements.
    signatures = ext.op_signatures("mean", [x, [0], False, None])
    number = signatures.index((["S(0)"], ["P"]))
    assert ext.op_infer_shard("mean", [x, [0], False, None], number, 1, 2, [shard])[2] == 2 / 5


def test_recorded_ops_come_with_their_arguments():
    x = flow.ones(2, 3, requires_grad=True)
    calls = ext.record_ops(lambda: flow.autograd.grad(x.sum(1), x, flow.ones(2)))
    assert [name for name, _ in calls] == ["sum", "full", "view", "expand"]
    tensor, dims, keepdim, dtype = calls[0][1]
    assert tensor.shape == (2, 3) and (dims, keepdim, dtype) == ((1,), False, None)
    assert not tensor.requires_grad
    with pytest.raises(KeyError):
        ext.record_ops(lambda: {}["mine"])


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
    for bad, error in [
        (0, ValueError),
        (-1, ValueError),
        ("a", TypeError),
        (2**40, ValueError),
        (1025, ValueError),
        (2**80, ValueError),
        (True, TypeError),
    ]:
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
