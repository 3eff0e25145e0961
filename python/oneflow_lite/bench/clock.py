# SPDX-License-Identifier: Apache-2.0
"""Timing calls, each in turn with the others.

On a GPU: events around the call; before it the L2 is emptied by a read of 256 MB and a kernel spins
for as long as the host needs to enqueue, so that the GPU never waits for the host. A call that was
late all the same (it waits for the GPU itself, say) is counted. Each repetition shuffles the
candidates: what ran just before moves a call of a few microseconds by some percent. On the CPU: the
clock around batches of calls.
"""

from __future__ import annotations

import functools
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import streams
from oneflow_lite.bench.problem import Candidate

ROUNDS = 3
REPEATS = 21  # per round; fewer where the budget does not last, at least 7, so 21 in all
# The clock of the events ticks every 32 ns, which is 0.6 % of 5 us, and the median of 63 such calls
# moves by 1 % from run to run: calls this short are repeated so many times as often.
SHORT_SECONDS, SHORT_TIMES = 20e-6, 5
FLUSH_BYTES = 256 << 20
FLUSH_US = 55.0  # of the spin's work is done by the flush
MARGIN_US = 15.0
# Candidates so many times slower than the fastest are called once a round: cuDNN's gradient of
# softmax takes up to a second, 1000 times as long as the others.
SLOW_TIMES = 50
HOST_BATCH = 400  # calls that the queue takes without waiting for the GPU


@dataclass
class Timing:
    """Microseconds of one candidate."""

    median: float
    fastest: float
    rounds: list[float]  # the median of each
    repeats: int
    host: float = 0.0  # what the host needs to enqueue a call
    late: int = 0  # repetitions in which the GPU waited for the host

    def record(self) -> dict[str, Any]:
        out: dict[str, Any] = {"median": self.median, "fastest": self.fastest}
        out |= {"rounds": self.rounds, "repeats": self.repeats}
        if self.host:
            out["host"] = self.host
        if self.late:
            out["late"] = self.late
        return {k: _short(v) for k, v in out.items()}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(v) for v in value]
    return round(value, 3) if isinstance(value, float) else value


def timing(rounds: list[list[float]], **more: Any) -> Timing:
    every = [t for r in rounds for t in r]
    medians = [statistics.median(r) for r in rounds]
    return Timing(statistics.median(every), min(every), medians, len(every), **more)


class CudaClock:
    """Times candidates on the current stream of the current device."""

    def __init__(self, rounds: int = ROUNDS, repeats: int = REPEATS, budget: float = 0.2,
                 least: int = 21) -> None:  # fmt: skip
        """``budget``: about the most seconds for one candidate of one case, unless ``least``
        repeats, in all rounds, take longer.
        """
        streams.load()
        self.least = least
        self.rounds, self.repeats, self.budget = rounds, repeats, budget
        self.flushed = flow.random_bits(FLUSH_BYTES // 8, device="cuda")
        self.one = self.flushed[:1].clone()
        self.read, self.spin = flow.ops.bench.read, flow.ops.bench.spin
        self.events = [(self._event(), self._event()) for _ in range(64 * repeats)]

    @staticmethod
    def _event() -> flow.cuda.Event:
        return flow.cuda.Event(enable_timing=True)

    def _once(self, c: Candidate, spin: int, events: tuple[Any, Any]) -> bool:
        """One repetition; whether the GPU had to wait for the host."""
        start, end = events
        if c.prepare:
            c.prepare()
        self.read(self.flushed)
        self.spin(self.one, nanoseconds=spin)
        start.record()
        c.call()
        end.record()
        return start.query()

    def _warm(self, c: Candidate) -> tuple[float, float]:
        """Seconds of the host and of the GPU for one call, roughly."""
        host = float("inf")
        for _ in range(4):
            if c.prepare:
                c.prepare()
            flow.cuda.synchronize()
            begin = time.perf_counter()
            c.call()
            host = min(host, time.perf_counter() - begin)
        self._once(c, 1000, self.events[0])
        flow.cuda.synchronize()
        return host, self.events[0][0].elapsed_time(self.events[0][1]) / 1e3

    def measure(self, candidates: dict[str, Candidate]) -> dict[str, Timing]:
        """Timings by candidate."""
        warm = {name: self._warm(c) for name, c in candidates.items()}
        spin_us = {
            n: min(2000.0, max(10.0, 1.5 * host * 1e6 + MARGIN_US - FLUSH_US))
            for n, (host, _) in warm.items()
        }
        fastest = min(s for _, s in warm.values())
        slow = {n for n, (_, s) in warm.items() if s > SLOW_TIMES * fastest}
        once = {n: s + (spin_us[n] + FLUSH_US) / 1e6 for n, (_, s) in warm.items() if n not in slow}
        fit = int(self.budget * len(once) / max(sum(once.values()), 1e-9) / self.rounds)
        short = fastest < SHORT_SECONDS
        most = self.repeats * (SHORT_TIMES if short else 1)
        repeats = min(most, max(fit, -(-self.least // self.rounds)))
        times: dict[str, list[list[float]]] = {n: [] for n in candidates}
        late = dict.fromkeys(candidates, 0)
        while len(self.events) < repeats * len(candidates):
            self.events.append((self._event(), self._event()))
        order = list(candidates)
        shuffle = random.Random(0).shuffle
        for _ in range(self.rounds):
            pairs = iter(self.events)
            taken: dict[str, list[tuple[Any, Any]]] = {n: [] for n in candidates}
            for repeat in range(repeats):
                shuffle(order)
                for name in order:
                    if repeat and name in slow:
                        continue
                    pair, c = next(pairs), candidates[name]
                    late[name] += self._once(c, int(spin_us[name] * 1e3), pair)
                    taken[name].append(pair)
            flow.cuda.synchronize()
            for name, used in taken.items():
                times[name].append([a.elapsed_time(b) * 1e3 for a, b in used])
        return {n: timing(times[n], host=warm[n][0] * 1e6, late=late[n]) for n in candidates}

    def host(self, candidates: dict[str, Candidate]) -> dict[str, Timing]:
        """What the host needs for one call, beside ``launch``, that of an empty kernel from C."""
        calls = {
            n: functools.partial(_batches, c.call, HOST_BATCH, 1) for n, c in candidates.items()
        }
        calls["launch"] = self._launches
        times: dict[str, list[float]] = {n: [] for n in calls}
        for _ in range(21):
            for name, call in calls.items():
                flow.cuda.synchronize()
                times[name] += call()
        return {n: timing([found]) for n, found in times.items()}

    def _launches(self) -> list[float]:
        begin = time.perf_counter()
        flow.ops.bench.nothing(self.one, times=HOST_BATCH)
        return [(time.perf_counter() - begin) / HOST_BATCH * 1e6]


def _batches(call: Callable[[], Any], batch: int, repeats: int) -> list[float]:
    """Microseconds per call, of so many batches of calls."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(max(1, batch)):
            call()
        times.append((time.perf_counter() - begin) / max(1, batch) * 1e6)
    return times


class CpuClock:
    """Times candidates on the threads that are set."""

    def __init__(self, rounds: int = ROUNDS, repeats: int = 7, budget: float = 0.2) -> None:
        self.rounds, self.repeats, self.budget = rounds, repeats, budget

    def measure(self, candidates: dict[str, Candidate]) -> dict[str, Timing]:
        """Timings by candidate: of batches, each long enough for the clock."""
        timers = {n: c.timer or functools.partial(_batches, c.call) for n, c in candidates.items()}
        longest = self.budget * 1e6 / (self.rounds * self.repeats)
        batches = {}
        for name, timer in timers.items():
            timer(0, 1)
            once = max(timer(0, 1)[0], 0.1)
            batches[name] = max(1, min(10_000, int(longest / once)))
        times: dict[str, list[list[float]]] = {n: [] for n in candidates}
        for _ in range(self.rounds):
            for name, timer in timers.items():
                times[name].append(timer(batches[name], self.repeats))
        return {n: timing(rounds) for n, rounds in times.items()}

    def host(self, candidates: dict[str, Candidate]) -> dict[str, Timing]:
        """On the CPU a call of a small tensor is host time."""
        return self.measure(candidates)
