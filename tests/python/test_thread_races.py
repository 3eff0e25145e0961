# SPDX-License-Identifier: Apache-2.0
"""Threads that start teams at once where a limit leaves room for few: each gets the right result,
on fewer threads, or OutOfMemoryError. OpenMP ends the process that gets no thread, and OpenBLAS
waits for ever for room for its buffers.
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("oneflow_lite")

sanitized = "libasan" in open("/proc/self/maps").read()
pytestmark = pytest.mark.skipif(sanitized, reason="AddressSanitizer maps more than the limits here")

START = """
import os, resource, signal, sys, threading
import oneflow_lite as flow
signal.alarm(40)
kind, (room, count, team) = sys.argv[1], map(int, sys.argv[2:5])
few, some, many = flow.ones(2, 40000), flow.ones(600, 600), flow.ones(1000, 1000)
results = {
    "exp": lambda: abs(many.exp().sum().item() / 2.718281828e6 - 1) < 1e-4,
    "few": lambda: abs(flow.softmax(few, 1).sum().item() - 2) < 1e-4,
    "product": lambda: (some @ some).max().item() == 600,
    "memory": lambda: flow.ones(5_000_000).max().item() == 1,
}
jobs = [results[name] for name in sys.argv[5].split()] * 3

def used(name):
    return int(open("/proc/self/status").read().split(name + ":")[1].split()[0])

def limit():
    if kind == "processes":
        resource.setrlimit(resource.RLIMIT_NPROC, (used("Threads") + room, hard))
    else:
        resource.setrlimit(resource.RLIMIT_AS, ((used("VmSize") << 10) + (room << 20), hard))

if kind == "processes":  # of a user of its own, as root has no limit
    os.setuid(100_000 + os.getpid())
which = resource.RLIMIT_NPROC if kind == "processes" else resource.RLIMIT_AS
hard = resource.getrlimit(which)[1]
outcomes = []

def outcome(job):
    try:
        return job()
    except flow.OutOfMemoryError:
        return "out of memory"

def work(start):
    start.wait()
    outcomes.extend([outcome(job) for job in jobs])
"""

ROUNDS = (
    START
    + """
# New threads, with new teams, while those of the last round still end.
for _ in range(6):
    flow.set_num_threads(team)
    start = threading.Barrier(count + 1)
    threads = [threading.Thread(target=work, args=(start,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    limit()
    start.wait()
    for thread in threads:
        thread.join()
    resource.setrlimit(which, (hard, hard))
print(len(outcomes) - 18 * count * (len(jobs) // 3), set(outcomes) - {True, "out of memory"})
sys.stdout.flush()
os._exit(0)
"""
)


def run(script, *arguments):
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], text=True,
                          capture_output=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.parametrize("room, count, team, jobs", [
    (40, 8, 8, "exp"),
    (100, 4, 8, "exp"),
    (100, 8, 8, "exp product"),
    (200, 4, 8, "product exp"),
    (350, 8, 8, "few exp memory"),
    (700, 4, 8, "product"),
    (1200, 4, 8, "product few exp"),
])  # fmt: skip
def test_teams_that_start_at_once_share_the_address_space(room, count, team, jobs):
    for _ in range(2):
        assert run(ROUNDS, "memory", room, count, team, jobs) == "0 set()\n"


@pytest.mark.skipif(os.getuid() != 0, reason="takes the identity of a user without processes")
@pytest.mark.parametrize("room, count, team, jobs", [(12, 4, 8, "exp"), (9, 6, 4, "few exp")])
def test_teams_that_start_at_once_share_the_threads(room, count, team, jobs):
    for _ in range(2):
        assert run(ROUNDS, "processes", room, count, team, jobs) == "0 set()\n"


FORKS = (
    START
    + """
# A child is made while other threads look for room, and waits for none of them. It may wait for
# one that calls a function for the first time.
flow.ones(2).exp().sum().item(), flow.ones(2).max().item()
start = threading.Barrier(count + 1)
threads = [threading.Thread(target=work, args=(start,)) for _ in range(count)]
for thread in threads:
    thread.start()
limit()
children = []
start.wait()
for _ in range(8):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if all(outcome(job) for job in jobs) else 1)
    children.append(child)
for thread in threads:
    thread.join()
print([os.waitpid(child, 0)[1] for child in children], set(outcomes) - {True, "out of memory"})
sys.stdout.flush()
os._exit(0)
"""
)


def test_a_child_forked_meanwhile_computes_too():
    for room in (150, 600):
        assert run(FORKS, "memory", room, 4, 8, "exp memory") == f"{[0] * 8} set()\n"


FLIPS = """
import os, sys, threading, time
import oneflow_lite as flow
a, end, results = (flow.eye(40) * 2).expand(512, 40, 40).contiguous(), time.monotonic() + 2, set()
b = (flow.arange(120_000) * 7919 % 120_000).reshape(3000, 40)
functions = {
    "inv": lambda: (flow.linalg.inv(a).sum(dim=(1, 2)) == 20).all(),
    "sort": lambda: (flow.sort(b, 1)[0].diff(dim=1) > 0).all(),
    "topk": lambda: (flow.topk(b, 20, 1)[0].amax(1) == b.amax(1)).all(),
    "median": lambda: ((b <= flow.median(b, 1, True)[0]).sum(1) == 20).all(),
}
function = functions[sys.argv[1]]

def flip():
    while time.monotonic() < end:
        flow.set_num_threads(1)
        flow.set_num_threads(16)

def compute():
    while time.monotonic() < end:
        results.add(function().item())

threads = [threading.Thread(target=work) for work in (flip, compute, compute)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("function", ["inv", "sort", "topk", "median"])
def test_a_number_of_threads_that_changes_within_a_call(function):
    """Workspaces were for as many parts as there were threads: most of the runs crashed."""
    assert run(FLIPS, function) == "{True}\n"
