# SPDX-License-Identifier: Apache-2.0
"""Threads train side by side; a forked child computes."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
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
    return losses


def test_threads_train_at_once():
    alone = [train(seed) for seed in range(4)]
    results, errors = {}, []

    def work(seed):
        try:
            results[seed] = train(seed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [results[seed] for seed in range(4)] == alone
    assert alone[0][-1] < alone[0][0]


def test_threads_share_leaves():
    """Gradients of two backward passes at once add up."""
    w = flow.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (w.grad.numpy() == 200).all()


def test_recording_is_switched_per_thread():
    seen = []
    with flow.no_grad():
        thread = threading.Thread(target=lambda: seen.append(flow.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_then_compute():
    """Threads of the parent do not exist in the child: it must not wait for them."""
    script = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import numpy as np, oneflow_lite as flow
from test_threads_fork import train
x = flow.randn(1024, 512)
before, losses = flow.softmax(x, 1).numpy().copy(), train(0)   # starts the threads
child = os.fork()
if child == 0:
    # One thread sums in another order than several.
    same = np.array_equal(before, flow.softmax(x, 1).numpy())
    os._exit(0 if same and np.allclose(train(0), losses, rtol=1e-4) else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script],
                               start_new_session=True)  # fmt: skip
    try:
        assert process.wait(timeout=60) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("the child hangs")
