# SPDX-License-Identifier: Apache-2.0
"""Training on several threads, and in forked processes."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numerics import assert_close, flow, host, tensor
from op_reference import np_softmax

ext = flow._oneflow_lite


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
from test_threads import flow, np, train
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
