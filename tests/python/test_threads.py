# SPDX-License-Identifier: Apache-2.0
"""Training on several threads at once, and in forked processes."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numerics import assert_close, flow, host
from op_reference import np_softmax

nn = flow.nn


def train(seed, steps=30):
    """The losses of a small training; all it needs is its own."""
    rng = np.random.default_rng(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 5))
    model.load_state_dict({name: rng.standard_normal(tuple(t.shape)).astype(np.float32) / 8
                           for name, t in model.state_dict().items()})  # fmt: skip
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = flow.from_numpy(rng.standard_normal((256, 32)).astype(np.float32))
    y = flow.from_numpy(rng.integers(0, 5, 256))
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    return losses


def side_by_side(*functions):
    """Runs each function on a thread of its own, and raises the first exception that there was."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


def test_threads_train_at_once():
    alone = [train(seed) for seed in range(4)]
    together = {}
    side_by_side(*(lambda s=seed: together.setdefault(s, train(s)) for seed in range(4)))
    assert [together.get(seed) for seed in range(4)] == alone


def test_threads_share_leaves():
    """Gradients of two backward passes at once add up."""
    w = flow.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 2).sum().backward()

    side_by_side(work, work)
    assert (w.grad.numpy() == 200).all()


def test_recording_is_switched_per_thread():
    seen = []
    with flow.no_grad():
        side_by_side(lambda: seen.append(flow.is_grad_enabled()))
    assert seen == [True]


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
@pytest.mark.parametrize("last", ["product", "attention", "linalg"])
@pytest.mark.parametrize("started", [True, False])
def test_fork_then_compute(started, last):
    """In a process of its own, whose child gets an alarm: it must not wait for absent threads.

    ``last``: which use of the BLAS was the last before, each of which has its own threads.
    """
    script = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_threads import flow, np, train
x = flow.randn(2048, 512)
w = flow.randn(512, 512)
if {started}:  # OpenMP's and the BLAS's threads
    x @ w
    rows, losses = flow.softmax(x, 1).numpy(), train(0)
    if {last!r} == "attention":
        flow.nn.functional.scaled_dot_product_attention(*[x.view(4, 8, 256, 128)] * 3)
    elif {last!r} == "linalg":
        flow.linalg.solve(w, w)
child = os.fork()
if child == 0:
    signal.alarm(40)
    now = flow.softmax(x, 1).numpy(), train(0)
    same = abs(flow.softmax(x @ w, 1).sum().item() / 2048 - 1) < 1e-4
    for n in (64, 70, 90, 200):  # on either side of where a product is cut
        same = same and bool(flow.allclose(flow.ones(n, n) @ flow.ones(n, n), flow.tensor(1.0 * n)))
    if {started}:  # rows have the same bits on any number of threads; a product's sums have not
        same = same and np.array_equal(now[0], rows) and np.allclose(now[1], losses, rtol=1e-4)
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


def _turns_of_another_thread(call):
    """How often another thread ran while `call` did."""
    turns, running = 0, True

    def count():
        nonlocal turns
        while running:
            turns += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    time.sleep(0.01)
    before = turns
    call()
    found = turns - before
    running = False
    thread.join()
    return found


def test_calls_on_lists_and_operators_let_other_threads_run():
    parts = [flow.ones(1 << 22) for _ in range(8)]
    whole = flow.ones(1 << 25)
    for call in (lambda: flow.cat(parts), lambda: -whole, lambda: abs(whole)):
        assert max(_turns_of_another_thread(call) for _ in range(4)) > 3
