# SPDX-License-Identifier: Apache-2.0
"""What the attacks share: options, a child that may die, the last line, the exit status.

The last line of an attack that went well ends with the resident memory of its process after the
first round, after a quarter of the rounds, and at the end.

from _frame import run

def rounds(rng, say):  # a generator without an end; rng is a random.Random of the seed
    while True:
        say("what is tried next")  # printed where the child dies or hangs
        ...  # an exception fails the attack
        yield "refused"  # one round is over; rounds are counted by these words

if __name__ == "__main__":
    run(rounds, full={"count": 100_000})
"""

import argparse
import collections
import faulthandler
import mmap
import os
import random
import signal
import sys
import time
from pathlib import Path

_NOTE = 4000  # bytes of the text that say() leaves for the parent
_MOST_GROWTH = 64 << 20


class _Board:
    """Memory that the child writes and the parent reads: rounds so far, a pulse, a text."""

    def __init__(self):
        self.memory = mmap.mmap(-1, _NOTE + 16)
        self.pulse = self.rounds = 0

    def _put(self, place, number):
        self.memory[place : place + 8] = number.to_bytes(8, "little")

    def beat(self, rounds):
        self.pulse += 1
        self.rounds = rounds
        self._put(0, rounds)
        self._put(8, self.pulse)

    def say(self, text):
        data = text.encode(errors="backslashreplace")[:_NOTE]
        self.memory[16:] = data.ljust(_NOTE, b"\0")
        self.beat(self.rounds)

    def seen(self):
        """Rounds, pulse and text, as the child left them."""
        numbers = [int.from_bytes(self.memory[i : i + 8], "little") for i in (0, 8)]
        return *numbers, self.memory[16:].rstrip(b"\0").decode(errors="replace")


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def _sanitized():
    """Under AddressSanitizer freed memory stays for a while."""
    return "libasan" in Path("/proc/self/maps").read_text()


def _attack(name, rounds, options, flat, board):
    """The child: rounds until the count or the seconds are over. Returns the exit status."""
    counts, done, start = collections.Counter(), 0, time.monotonic()
    first = early = None  # bytes of memory after a round, and after a quarter of all
    for kind in rounds(random.Random(options.seed), board.say):
        counts[kind] += 1
        done += 1
        board.beat(done)
        seconds = time.monotonic() - start
        share = done / options.count if options.count else seconds / options.seconds
        first = first or _resident()
        if early is None and share >= 0.25:
            early = _resident()
        if share >= 1:
            break
    took = f"{time.monotonic() - start:.1f} s, seed {options.seed}"
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
    last = _resident()
    memory = " -> ".join(str(size >> 20) for size in (first, early, last))
    print(f"{name}: {done} rounds in {took}: {kinds}; {memory} MiB", flush=True)
    growth = last - early
    if flat and growth > _MOST_GROWTH and not _sanitized():
        print(f"{name}: memory grew by {growth >> 20} MiB over the last three quarters")
        return 1
    return 0


def _wait(pid, board, patience):
    """The child's status as subprocess has it, and whether it stood still for too long."""
    pulse, since = -1, time.monotonic()
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), False
        now = board.seen()[1]
        if now != pulse:
            pulse, since = now, time.monotonic()
        elif time.monotonic() - since > patience:
            os.kill(pid, signal.SIGABRT)  # faulthandler prints where it stands
            time.sleep(2)
            os.kill(pid, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), True
        time.sleep(0.02)


def run(rounds, *, full, patience=120, flat=False):
    """Runs an attack and ends the program.

    Parameters
    ----------
    rounds : callable
        ``rounds(rng, say)`` gives a generator; see above.
    full : dict
        What ``--full`` means: ``{"count": n}`` or ``{"seconds": s}``.
    patience : float
        Seconds that a round may take before it counts as a hang.
    flat : bool
        Fail where memory grows after the first quarter.
    """
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(prog=name, description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("--seed", type=int, default=0)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--seconds", type=float, help="attack for so long")
    size.add_argument("--count", type=int, help="attack so many times")
    size.add_argument("--full", action="store_true", help=f"attack at full size: {full}")
    options = parser.parse_args()
    if options.full:
        vars(options).update(full)
    elif not options.count and not options.seconds:
        options.seconds = 10.0
    board = _Board()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        faulthandler.enable()
        sys.exit(_attack(name, rounds, options, flat, board))  # the end of Python is attacked too
    status, hung = _wait(pid, board, patience)
    if status != 0:
        done, _, text = board.seen()
        ended = (f"hung for {patience} s" if hung else f"died of {signal.Signals(-status).name}"
                 if status < 0 else f"failed with status {status}")  # fmt: skip
        print(f"{name}: {ended} after {done} rounds, seed {options.seed}, at: {text}")
    sys.exit(0 if status == 0 else 1)
