# SPDX-License-Identifier: Apache-2.0
"""Starts a script several times, as ranks that compute together.

    python -m oneflow_lite.launch --nproc 2 script.py --its --arguments
    python -m oneflow_lite.launch --nproc 4 --device cpu -m package.module

Each process has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
OFL_MASTER_PORT and OMP_NUM_THREADS in its environment, and its lines of output begin with its rank.
When one fails the others hear why, and are ended where they do not end by themselves. On Linux they
end with the launcher too, however that ends.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import IO

# Seconds for ranks to end by themselves after the first failure, then after SIGTERM.
_PATIENCE = 7.0
_LAST_PATIENCE = 2.0
_LOOPBACK = "127.0.0.1"


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m oneflow_lite.launch", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--nproc", type=int, help="processes on this machine; all GPUs where absent"
    )
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], help="cpu hides the GPUs, cuda insists on one a rank"
    )
    parser.add_argument("--nnodes", type=int, default=1, help="machines, of --nproc each")
    parser.add_argument("--node-rank", type=int, default=0, help="which of them this is")
    parser.add_argument("--master-addr", help="the address of the first machine")
    parser.add_argument(
        "--master-port", type=int, help="a port of it, of which the next is free too"
    )
    parser.add_argument("--timeout", type=float, help="seconds that a collective may take")
    parser.add_argument("-m", dest="module", action="store_true", help="script is a module's name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    _check(parser, options)
    return options


def _gpus() -> int:
    from oneflow_lite import cuda

    return cuda.device_count() if cuda.is_available() else 0


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.nproc is None:
        options.nproc = 1 if options.device == "cpu" else max(_gpus(), 1)
    if options.nproc < 1:
        parser.error(f"--nproc is {options.nproc}, but must be at least 1")
    if not 0 <= options.node_rank < options.nnodes:
        parser.error(f"--node-rank {options.node_rank} of --nnodes {options.nnodes} cannot be")
    if options.nnodes > 1 and not (options.master_addr and options.master_port):
        parser.error("several machines need --master-addr and --master-port")
    if options.master_port and not 0 < options.master_port < 65535:
        parser.error(f"--master-port is {options.master_port}, but it and the next must be ports")
    if options.device == "cuda" and options.nproc > _gpus():
        parser.error(f"--nproc {options.nproc} is more than the {_gpus()} GPUs of this machine")


def _listen(address: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        s = socket.socket(family, kind, protocol)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(where)
    except (OSError, UnicodeError) as error:
        sys.exit(f"launch: cannot listen at port {port} of {address}: {error}")
    s.listen(1024)
    return s


class _Rank:
    """One process and what it has said so far."""

    def __init__(self, rank: int, process: subprocess.Popen) -> None:
        self.rank, self.process = rank, process
        self.said = {process.stdout: b"", process.stderr: b""}

    def say(self, pipe: IO[bytes], width: int, end: bool = False) -> None:
        """Passes whole lines on, and at the end the rest."""
        target = sys.stdout.buffer if pipe is self.process.stdout else sys.stderr.buffer
        *lines, rest = self.said[pipe].split(b"\n")
        if end and rest:
            lines, rest = [*lines, rest], b""
        self.said[pipe] = rest
        for line in lines:
            target.write(b"[%*d] %b\n" % (width, self.rank, line))
        target.flush()


def _environment(options: argparse.Namespace, local: int, port: int | None) -> dict[str, str]:
    size = options.nnodes * options.nproc
    e = dict(os.environ)
    e |= {
        "RANK": str(options.node_rank * options.nproc + local),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(options.nproc),
        "MASTER_ADDR": options.master_addr or _LOOPBACK,
        "PYTHONUNBUFFERED": "1",
    }
    if port is None:
        e |= {
            "MASTER_PORT": str(options.master_port),
            "OFL_MASTER_PORT": str(options.master_port + 1),
        }
    else:
        e |= {"MASTER_PORT": str(port - 1), "OFL_MASTER_PORT": str(port)}
    e.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // options.nproc)))
    if options.device == "cpu":
        e["CUDA_VISIBLE_DEVICES"] = ""
    if options.timeout is not None:
        e["OFL_TIMEOUT"] = str(options.timeout)
    return e


def _bind_to_me() -> Callable[[], None] | None:
    """What a child runs first, so that the system kills it when this process has ended.

    A rank that is left behind may keep a GPU busy for ever.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def bind() -> None:
        prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG, which exec keeps
        if os.getppid() != parent:  # it has ended before that
            os._exit(1)

    return bind


def _start(options: argparse.Namespace) -> list[_Rank]:
    """Starts all ranks. Rank 0 inherits the socket, so that nobody can take its port before it."""
    command = [sys.executable, *(["-m"] if options.module else []), options.script]
    command += options.arguments
    alone = options.nnodes == 1
    listening = None
    if alone:
        port = options.master_port + 1 if options.master_port else 0
        listening = _listen(options.master_addr or _LOOPBACK, port)
    port = listening.getsockname()[1] if listening else None
    ranks = []
    bind = _bind_to_me()
    # That a fork of several threads may hang: between fork and exec nothing takes a lock here.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for local in range(options.nproc):
        environment = _environment(options, local, port)
        passed: tuple[int, ...] = ()
        if local == 0 and listening:
            passed = (listening.fileno(),)
            environment["OFL_STORE_FD"] = str(listening.fileno())
        process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=bind,
        )
        for pipe in (process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        ranks.append(_Rank(int(environment["RANK"]), process))
    if listening:
        listening.close()
    return ranks


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "?"
    return f"was ended by signal {-code} ({name})"


class _Overseer:
    """Passes output on until all ranks have ended, and ends them all when one has failed."""

    def __init__(self, ranks: list[_Rank]) -> None:
        self.ranks = ranks
        self.width = len(str(ranks[-1].rank))
        self.selector = selectors.DefaultSelector()
        for r in ranks:
            for pipe in r.said:
                self.selector.register(pipe, selectors.EVENT_READ, (r, pipe))
        self.exit_code = 0
        self.deadline: float | None = None
        self.sent = 0  # SIGTERM, then SIGKILL

    def run(self) -> int:
        running = list(self.ranks)
        while running:
            self._pass_on(0.1)
            ended = [r for r in running if r.process.poll() is not None]
            # Of several at a time, one that was killed is the cause.
            for r in sorted(ended, key=lambda r: r.process.returncode):
                running.remove(r)
                self._ended(r, running)
            self._press(running)
        # What a grandchild that lives on may write later is not waited for.
        self._pass_on(0)
        for r in self.ranks:
            for pipe in r.said:
                r.say(pipe, self.width, end=True)
        return self.exit_code

    def interrupt(self, number: int) -> None:
        """The launcher itself was told to end."""
        if self.exit_code == 0:
            self.exit_code = 128 + number
        for r in self.ranks:
            if r.process.poll() is None:
                r.process.send_signal(number)
        self.deadline, self.sent = time.monotonic() + _LAST_PATIENCE, 1

    def _pass_on(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds) if self.selector.get_map() else []:
            r, pipe = key.data
            while True:
                try:
                    got = os.read(pipe.fileno(), 65536)
                except BlockingIOError:
                    break
                if not got:
                    self.selector.unregister(pipe)
                    break
                r.said[pipe] += got
            r.say(pipe, self.width)

    def _ended(self, r: _Rank, running: list[_Rank]) -> None:
        code = r.process.returncode
        if code == 0 or self.exit_code:
            return
        self._pass_on(0)
        self.exit_code = code if code > 0 else 128 - code
        others = "1 other is" if len(running) == 1 else f"{len(running)} others are"
        rest = f"; {others} still to end" if running else ""
        print(f"launch: rank {r.rank} {_how(code)}{rest}", file=sys.stderr, flush=True)
        self.deadline = time.monotonic() + _PATIENCE

    def _press(self, running: list[_Rank]) -> None:
        if self.deadline is None or time.monotonic() < self.deadline:
            return
        for r in running:
            r.process.kill() if self.sent else r.process.terminate()
        if running:
            names = ", ".join(str(r.rank) for r in running)
            what = "SIGKILL" if self.sent else "SIGTERM"
            print(f"launch: {what} to ranks that did not end: {names}", file=sys.stderr, flush=True)
        self.sent += 1
        self.deadline = time.monotonic() + _LAST_PATIENCE


def main(words: list[str] | None = None) -> int:
    """Runs the command line; gives the exit code of the first rank that failed, else 0."""
    ranks = _start(_arguments(words))
    overseer = _Overseer(ranks)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: overseer.interrupt(n))
    return overseer.run()


if __name__ == "__main__":
    sys.exit(main())
