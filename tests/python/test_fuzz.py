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
PROCESSES = 4
CALLS = {"cpu": 50_000, "cuda": 10_000}  # of each process


def last_call(log):
    text = log.read_bytes().split(b"\0")[0].decode(errors="replace") if log.exists() else "none"
    return f"the last call was {text}"


@pytest.mark.slow
def test_random_calls_never_crash(device, tmp_path):
    logs = [tmp_path / f"call{i}" for i in range(PROCESSES)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    if device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    running, done = [], []
    try:
        for seed, log in enumerate(logs):
            command = [sys.executable, str(FUZZER), str(seed), str(CALLS[device]), str(log), device]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            running.append(subprocess.Popen(command, env=environment, text=True, **pipes))
            if len(running) - len(done) == 2:  # two at a time
                done.append(running[len(done)].communicate(timeout=240))
        done += [process.communicate(timeout=240) for process in running[len(done) :]]
    except subprocess.TimeoutExpired:
        pytest.fail(f"seed {len(done)} does not end; {last_call(logs[len(done)])}")
    finally:
        for process in running:
            process.kill()
    results = raised = 0
    never: list[set[str]] = []
    for seed, (process, (out, err), log) in enumerate(zip(running, done, logs, strict=True)):
        assert process.returncode == 0, (
            f"seed {seed}: exit status {process.returncode}; {last_call(log)}\n{err[-4000:]}"
        )
        summary = dict(pair.split("=") for pair in out.split())
        assert int(summary["calls"]) == CALLS[device]
        results += int(summary["results"])
        raised += int(summary["exceptions"])
        assert int(summary["megabytes"]) < (600 if device == "cpu" else 4000), "memory is kept"
        never.append(set(filter(None, summary["never"].split(","))))
    # Random tensors are no lists of parameters and their states, nor a row of small counts, nor a
    # matrix and a vector, or three batches of matrices, that go together.
    seldom = {"adam_", "adadelta_", "adagrad_", "lion_", "rmsprop_", "sgd_", "multi_unscale_",
              "multi_lerp_", "addbmm", "baddbmm", "bincount", "mv"}  # fmt: skip
    assert device == "cuda" or set.intersection(*never) <= seldom, "each function works at times"
    # Both happen often enough that the calls get past the parser and into the ops.
    total = PROCESSES * CALLS[device]
    assert results + raised == total and min(results, raised) > total // 5
