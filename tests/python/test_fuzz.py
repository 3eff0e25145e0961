# SPDX-License-Identifier: Apache-2.0
"""200,000 random calls end with results or Python exceptions of the kinds that are promised.

The calls run in processes of their own (fuzzer.py), so that a crash is a failure with the seed and
the last call, and not the end of the suite.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("oneflow_lite")

FUZZER = Path(__file__).with_name("fuzzer.py")
CALLS, PROCESSES = 200_000, 4


def last_call(log):
    text = log.read_bytes().split(b"\0")[0].decode(errors="replace") if log.exists() else "none"
    return f"the last call was {text}"


@pytest.mark.slow
def test_random_calls_never_crash(tmp_path):
    logs = [tmp_path / f"call{i}" for i in range(PROCESSES)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    running, done = [], []
    for seed, log in enumerate(logs):
        command = [sys.executable, str(FUZZER), str(seed), str(CALLS // PROCESSES), str(log)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        if len(running) - len(done) == 2:  # two at a time
            done.append(running[len(done)].communicate(timeout=240))
    done += [process.communicate(timeout=240) for process in running[len(done) :]]
    results = raised = 0
    for seed, (process, (out, err), log) in enumerate(zip(running, done, logs, strict=True)):
        assert process.returncode == 0, (
            f"seed {seed}: exit status {process.returncode}; {last_call(log)}\n{err[-4000:]}"
        )
        summary = dict(pair.split("=") for pair in out.split())
        assert int(summary["calls"]) == CALLS // PROCESSES
        results += int(summary["results"])
        raised += int(summary["exceptions"])
        assert int(summary["megabytes"]) < 600, "memory is given back"
        assert summary["never"] == "", "each function works at times"
    # Both happen often enough that the calls get past the parser and into the ops.
    assert results + raised == CALLS
    assert results > CALLS // 5 and raised > CALLS // 5
