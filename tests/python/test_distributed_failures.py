# SPDX-License-Identifier: Apache-2.0
"""One rank fails, hangs, leaves or disagrees: a clear error on every rank, in time."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from gloo import needs_gloo

HERE = Path(__file__).parent
TIMEOUT = 4  # seconds that a collective may take here
LIMIT = 180  # seconds of a case; none takes as long, but the machine may be busy

pytest.importorskip("oneflow_lite")
pytestmark = needs_gloo


def launch(case, *, nproc=2, checks=False, device="cpu", timeout=TIMEOUT, limit=LIMIT):
    """The launcher's run of the case, its exit code and all output; and when it ended."""
    environment = os.environ | {
        "OFL_TEST_DEVICE": device,
        "OFL_TIMEOUT": str(timeout),
        "OFL_CHECK_COLLECTIVES": "1" if checks else "0",
        "OMP_NUM_THREADS": "1",
    }
    environment.pop("RANK", None)
    script = [str(HERE / "distributed_failures.py"), case]
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", str(nproc), *script]
    with tempfile.TemporaryDirectory() as folder:
        environment["STARTED"] = folder
        try:  # where it is late the launcher is killed, and the ranks end with it
            run = subprocess.run(
                command, env=environment, text=True, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired as e:
            pytest.fail(f"{case} did not end within {limit} s: {e.stdout} {e.stderr}")
    return run, time.time()


def errors_of(run, rank):
    """What the rank wrote on stderr."""
    lines = re.findall(rf"^\[{rank}\] (.*)$", run.stderr, re.M)
    return "\n".join(lines)


def when_it_failed(run):
    return float(re.search(r"fails at ([0-9.]+)", run.stdout)[1])


ENDED = "its process ended without a word"


@pytest.mark.parametrize("nproc", [2, 4])
@pytest.mark.parametrize(
    ("case", "failed", "message"),
    [
        ("killed", 1, ENDED),
        ("killed_at_rank_0", 0, ENDED),
        ("killed_before_it_connects", 1, ENDED),
        ("raises", 1, "KeyError: 'of my own'"),
        ("raises_while_others_compute", 1, "KeyError: 'of my own'"),
        ("global_raises", 1, "KeyError: 'of my own'"),
        ("pipeline_raises", 1, "KeyError: 'of my own'"),
        ("pipeline_killed", 1, ENDED),
    ],
)
def test_the_others_hear_of_a_failure(case, failed, message, nproc):
    run, _ = launch(case, nproc=nproc)
    for rank in range(nproc):
        if rank != failed:
            assert f"rank {failed} failed: " in errors_of(run, rank), run.stderr
            assert message in errors_of(run, rank), run.stderr
    killed = "killed" in case
    assert run.returncode == (128 + 9 if killed else 1), run.stderr
    how = "was ended by signal 9 (SIGKILL)" if killed else "ended with exit code 1"
    assert f"launch: rank {failed} {how}" in run.stderr or not killed


def test_all_end_within_ten_seconds_of_an_exception():
    """Of which those that compute, and call nothing, hear too."""
    run, ended = launch("raises_in_time", nproc=3)
    assert run.returncode == 1, run.stderr
    assert ended - when_it_failed(run) < 10, run.stderr


def test_a_hung_stage_is_named():
    run, _ = launch("pipeline_hangs", nproc=3)
    for rank in (0, 2):
        assert f"no end after {TIMEOUT} s" in errors_of(run, rank), run.stderr
    assert re.search(r"rank 1 is in no collective call, the last was \w+ number", run.stderr)
    assert run.returncode == 1


@pytest.mark.parametrize("checks", [False, True])
def test_a_hung_rank_is_named(checks):
    run, _ = launch("hangs", nproc=3, checks=checks)
    for rank in (0, 2):
        assert f"no end after {TIMEOUT} s" in errors_of(run, rank), run.stderr
    assert "rank 1 is in no collective call, the last was all_reduce number 1" in run.stderr
    assert "rank 1 ends, because" in errors_of(run, 1), run.stderr
    assert run.returncode == 1


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("case", ["leaves", "leaves_before_it_connects", "leaves_before_a_message"])
def test_a_rank_that_left_is_not_waited_for(case, checks):
    """With the time-out of users, within which the case ends only because it is noticed."""
    run, _ = launch(case, nproc=3, checks=checks, timeout=300, limit=60)
    assert "rank 1 has ended, and takes part no more" in errors_of(run, 0), run.stderr
    what = {"leaves_before_a_message": "rank 1", "leaves": "all_reduce(max)"}
    assert what.get(case, "cannot be connected") in errors_of(run, 2), run.stderr
    assert not errors_of(run, 1)
    assert run.returncode == 1


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        ("different_counts", ["all_reduce(sum) of 3 float32", "all_reduce(sum) of 4 float32"]),
        ("different_dtypes", ["all_reduce(sum) of 3 int32", "all_reduce(sum) of 3 float32"]),
        ("wrong_order", ["all_reduce(sum) of 3 float32", "broadcast of 3 float32 from member 0"]),
        ("different_splits", ["rank 0 sends 3 elements to rank 1, which expects 1"]),
        ("global_wrong_order", ["all_reduce(sum) of 3 float32", "all_gather of [3, 3] float32"]),
        ("different_messages", ["rank 1 sends 4 float32, rank 0 receives 3 float32"]),
    ],
)
def test_checks_say_what_disagrees(case, parts):
    run, _ = launch(case, checks=True)
    for rank in range(2):
        assert "the members do not agree" in errors_of(run, rank), run.stderr
        for part in parts:
            assert part in errors_of(run, rank), run.stderr


@pytest.mark.parametrize("case", ["different_counts", "different_dtypes", "wrong_order"])
def test_without_checks_a_disagreement_is_a_time_out(case):
    run, _ = launch(case)
    for rank in range(2):
        assert f"no end after {TIMEOUT} s" in errors_of(run, rank), run.stderr
    assert run.returncode == 1


def test_a_missing_library_is_told_to_all():
    run, _ = launch("missing_library", nproc=3)
    for rank in range(3):
        assert "collectives on the CPU go through Gloo" in errors_of(run, rank), run.stderr
        assert "/nowhere/libgloo.so" in errors_of(run, rank)
        assert "libgloo-dev" in errors_of(run, rank)
    assert run.returncode == 1


SLEEPER = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(str(os.getpid()))
time.sleep(300)
"""


def lives(pid):
    """Whether there is such a process that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux kills them")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_ranks_end_with_their_launcher(tmp_path, number):
    """Even where it is killed: a rank that is left behind keeps its GPU busy."""
    script, pids = tmp_path / "sleeper.py", tmp_path / "pids"
    script.write_text(SLEEPER)
    pids.mkdir()
    launcher = subprocess.Popen(
        [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "2", str(script), str(pids)],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else 0,
    )
    files = [pids / "0", pids / "1"]
    try:
        assert wait_until(lambda: all(f.exists() and f.read_text() for f in files))
        ranks = [int(f.read_text()) for f in files]
        assert all(map(lives, ranks))
        launcher.send_signal(number)
        launcher.wait(60)
        assert wait_until(lambda: not any(map(lives, ranks)))
    finally:
        launcher.kill()
        launcher.wait()
