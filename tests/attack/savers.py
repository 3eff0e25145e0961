# SPDX-License-Identifier: Apache-2.0
"""Savers, in processes and in threads, on one path. Who reads it always finds a complete file."""

import itertools
import os
import tempfile
import threading
from pathlib import Path

from _frame import run

import oneflow_lite as flow

SAVERS = 3
TIMES = 8  # saves of each saver in a round


def value(saver, n):
    """Its size tells one from another too: a mixture of two would be found."""
    return {"who": saver, "n": n, "x": flow.full([5000 * (saver + 1) + 100 * n], saver),
            "y": [flow.full([saver + 1], n)]}  # fmt: skip


def check(got):
    saver, n = got["who"], got["n"]
    x, want = got["x"], value(saver, n)["x"]
    assert x.shape == want.shape and (x == want).all(), f"a mixture: {saver}, {n}, {x.shape}"
    assert got["y"][0].tolist() == [n] * (saver + 1)


def save(path, saver):
    for n in range(TIMES):
        flow.save(value(saver, n), path)


def process(path, saver):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            save(path, saver)
            status = 0
        finally:
            os._exit(status)
    return pid


def by_processes(path):
    left = [process(path, saver) for saver in range(SAVERS)]
    while left:
        check(flow.load(path))
        for pid in list(left):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                assert status == 0, f"a saver ended with {status}"
                left.remove(pid)


def by_threads(path):
    errors = []

    def one(saver):
        try:
            save(path, saver)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(saver,)) for saver in range(SAVERS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        check(flow.load(path))
    for thread in threads:
        thread.join()
    assert not errors, errors


def rounds(rng, say):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        for n in itertools.count():
            flow.save(value(0, 0), path)
            way = (by_processes, by_threads)[n % 2]
            say(f"{way.__name__}, round {n}")
            way(path)
            check(flow.load(path))
            assert os.listdir(folder) == ["checkpoint"], os.listdir(folder)
            yield way.__name__.replace("_", " ")


if __name__ == "__main__":
    run(rounds, full={"count": 60})
