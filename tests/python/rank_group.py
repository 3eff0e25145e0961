# SPDX-License-Identifier: Apache-2.0
"""Processes that compute together, for tests: started once, they run one function after another.

    def body(rank):                      # at module level of a test file, run on each rank
        return rank

    def test_it(ranks):                  # the fixture `ranks`: four of them
        assert ranks.run(body) == [0, 1, 2, 3]

A function that raises on a rank fails the test with that rank's traceback. One that does not end in
time ends the group, and the next test gets a new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# What bodies compute on, "cpu" or "cuda", and the placements that they take, of all ranks.
DEVICE = os.environ.get("OFL_TEST_DEVICE", "cpu")
_SIZE = int(os.environ.get("WORLD_SIZE", "4"))
LINE = list(range(_SIZE))
GRID = [LINE[: _SIZE // 2], LINE[_SIZE // 2 :]] if _SIZE > 3 else [LINE]


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def size() -> int:
    """How many ranks there are."""
    return _SIZE


def _send(stream: Any, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def _receive(stream: Any) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<q", header)[0]))


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """On a rank, a context in which the ranks do not compare each collective through the store.

    For long runs of what shorter ones do with checks: comparing takes most of the time.
    """
    before = os.environ.get("OFL_CHECK_COLLECTIVES", "0")
    os.environ["OFL_CHECK_COLLECTIVES"] = "0"
    try:
        yield
    finally:
        os.environ["OFL_CHECK_COLLECTIVES"] = before


def _errors(of: dict[int, str]) -> str:
    return "".join(f"\nrank {r}: {e}" for r, e in sorted(of.items()))


class RankGroup:
    """So many processes, each with one thread."""

    def __init__(self, size: int, **environment: str) -> None:
        self.size = size
        port = str(_free_port())
        self.processes = []
        for rank in range(size):
            env = os.environ | {
                "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                "OMP_NUM_THREADS": "1", "OFL_CHECK_COLLECTIVES": "1", "OFL_TIMEOUT": "60",
            } | environment  # fmt: skip
            self.processes.append(subprocess.Popen(
                [sys.executable, str(HERE / "rank_group.py")], cwd=HERE, env=env,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE))  # fmt: skip
        self.alive = True

    def run(self, body: Callable[..., Any], *args: Any, timeout: float = 120) -> list[Any]:
        """``body(rank, *args)`` on each rank; what each gives must pickle."""
        for p in self.processes:
            _send(p.stdin, (body.__module__, body.__qualname__, args))
        results: dict[int, Any] = {}
        failed = {}
        with selectors.DefaultSelector() as waiting:
            for rank, p in enumerate(self.processes):
                waiting.register(p.stdout, selectors.EVENT_READ, rank)
            end = time.monotonic() + timeout
            while waiting.get_map():
                ready = waiting.select(max(0, end - time.monotonic()))
                if not ready:
                    missing = [key.data for key in waiting.get_map().values()]
                    self.close()
                    raise TimeoutError(f"{body.__qualname__}{args}: ranks {missing} did not end "
                                       f"within {timeout} s" + _errors(failed))  # fmt: skip
                for key, _ in ready:
                    waiting.unregister(key.fileobj)
                    try:
                        error, results[key.data] = _receive(key.fileobj)
                    except EOFError:
                        error = "the process ended"
                    if error:
                        failed[key.data] = error
                        end = min(end, time.monotonic() + 15)  # the others may wait for it
        if failed:
            self.close()  # what was under way is of no further use
            raise AssertionError(_errors(failed))
        return [results[rank] for rank in range(self.size)]

    def close(self) -> None:
        self.alive = False
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()
            p.stdin.close()
            p.stdout.close()


def _serve() -> None:
    """A rank: takes functions until there are no more."""
    if sys.platform.startswith("linux"):  # killed when pytest has ended, even inside of a function
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed must not go between the answers
    rank = int(os.environ["RANK"])
    sys.path.insert(0, str(HERE))
    if DEVICE == "cuda":
        import on_cuda

        on_cuda.install()
    while True:
        try:
            module, name, args = _receive(requests)
        except EOFError:
            return
        try:
            body: Any = importlib.import_module(module)
            for part in name.split("."):
                body = getattr(body, part)
            _send(answers, (None, body(rank, *args)))
        except BaseException:
            _send(answers, (traceback.format_exc(), None))


if __name__ == "__main__":
    _serve()
