# SPDX-License-Identifier: Apache-2.0
"""kill -9 while a process saves, anywhere between its first save and its last.

The path always loads, as the old content or the new; what the dead left beside it is deleted by a
later save once it is an hour old.
"""

import itertools
import os
import signal
import tempfile
import time
from pathlib import Path

from _frame import run

import oneflow_lite as flow

PREFIX = ".oneflow_lite-partial-"


def value(n):
    return {"n": n, "x": flow.full([200_000], n % 100), "y": [flow.full([n % 7 + 1], n)]}


def check(path):
    got = flow.load(path)
    n = got["n"]
    assert got["x"].shape == (200_000,) and (got["x"] == n % 100).all(), f"{n}: a mixture"
    assert got["y"][0].tolist() == [n] * (n % 7 + 1)
    return n


def saver(path, first, ready):
    """Saves until it is killed."""
    for n in itertools.count(first):
        flow.save(value(n), path)
        if n == first:
            os.write(ready, b"1")


def kill_one(path, first, seconds):
    """The number of the file that a saver, killed after so long, left."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            saver(path, first, write)
        finally:
            os._exit(1)
    os.close(write)
    began = os.read(read, 1)
    os.close(read)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert began and os.WTERMSIG(status) == signal.SIGKILL, f"the saver ended with {status}"
    return check(path)


def rounds(rng, say):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        flow.save(value(0), path)
        last = 0
        for n in itertools.count(1):
            say(f"round {n}")
            found = kill_one(path, last + 1, rng.random() * 0.02)
            assert found > last, f"{found} after {last}: a save that had ended is lost"
            last = found
            left = [name for name in os.listdir(folder) if name != "checkpoint"]
            assert len(left) <= 1 and all(name.startswith(PREFIX) for name in left), left
            for name in left:  # an hour later, somebody saves
                os.utime(Path(folder) / name, (0, 0))
            last += 1
            flow.save(value(last), path)
            assert os.listdir(folder) == ["checkpoint"], os.listdir(folder)
            yield "amid a save" if left else "between two"


if __name__ == "__main__":
    run(rounds, full={"count": 500})
