# SPDX-License-Identifier: Apache-2.0
"""The extension module: threads and the lock, facts, the end of the process, random calls."""

import gc
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
_C = flow._C


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


# ---- Nothing that a caller passes may crash.


def pools():
    """Values for each type of a signature, wrong ones among them."""
    tensors = [flow.randn(s) for s in [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4)]]
    tensors += [t.to(d) for t in tensors for d in (flow.int64, flow.bool, flow.float16)]
    tensors += [
        flow.randn(3, 4).T,
        flow.zeros(2, 3, device="meta"),
        flow.randn(2, 3)[1:, ::2],
        flow.randn(2, 3, requires_grad=True),
        flow.randn(3, requires_grad=True) * 2,
    ]
    ints = [0, 1, 2, -1, -2, 3, 7, -(2**62), 2**62, 2**63 - 1, -(2**63)]
    numbers = [True, 0, 2, -1.5, float("nan"), float("inf"), 2**70]
    of_type = {
        "Tensor": tensors, "Tensor[]": [tensors[:2], ()], "int": ints, "float": numbers,
        "int[]": [(), (1,), (-1,), (0, 1), (2, 3), (3, 2, 1), [4, -1], (2**62, 4), (0, -2**63), 2],
        "bool": [True, False], "Scalar": numbers, "Operand": tensors + numbers,
        "dtype": [flow.float32, flow.float16, flow.bfloat16, flow.int8, flow.bool, flow.float64],
        "Device": ["cpu", "meta", flow.device("cpu")], "str": ["mean", "sum", "none", "x"],
        "Generator": [flow.Generator()],
    }  # fmt: skip
    wrong = [None, "x", b"", object(), 1j, np.ones(2), np.float32(1), {}, int, [object()], 0.5, 1]
    return of_type, wrong


def draw_call(rng, f, of_type, wrong):
    """Arguments after the signature of ``f``, by place or by name, some wrong or missing."""
    args, kwargs = [], {}
    for argument in f["signature"].partition("(")[2].rpartition(") ->")[0].split(", "):
        if argument == "*":
            continue
        kind, _, name = argument.partition("=")[0].rpartition(" ")
        pool = of_type[kind.replace("(a!)", "").replace("(a)", "").rstrip("?")]
        pool = wrong if rng.random() < 0.03 else pool
        value = pool[rng.integers(len(pool))]
        if "=" in argument and rng.random() < 0.5:
            continue
        if not kwargs and (name == "self" or rng.random() < 0.6):
            args.append(value)
        else:
            kwargs[name] = value
    return args, kwargs


def test_random_calls_end_with_results_or_exceptions():
    rng = np.random.default_rng(0)
    of_type, wrong = pools()
    listed = ext.list_functions()
    results = 0
    for _ in range(100_000):
        f = listed[rng.integers(len(listed))]
        function = getattr(flow.Tensor if f["method_only"] else _C, f["name"])
        args, kwargs = draw_call(rng, f, of_type, wrong)
        try:
            function(*args, **kwargs)
            results += 1
        except (TypeError, ValueError, RuntimeError, IndexError, OverflowError):
            pass
    assert results > 10_000
    gc.collect()
