# SPDX-License-Identifier: Apache-2.0
"""kill -9 while examples/gpt/train.py runs, at any moment; --resume goes on to the same bits.

The reference is a run that nobody kills. A run is killed again and again until it ends; then its
losses, weights and what it writes are those of the reference.
"""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _frame import run

import oneflow_lite as flow

TRAIN = Path(__file__).resolve().parents[2] / "examples" / "gpt" / "train.py"
OPTIONS = ["--preset", "tiny", "--device", "cpu", "--batch", "4", "--steps", "60", "--length", "20",
           "--log-every", "1", "--validate-every", "3", "--dropout", "0.1"]  # fmt: skip


def start(folder):
    """A run that begins, or goes on where there is a checkpoint."""
    command = [sys.executable, str(TRAIN), *OPTIONS, "--out", str(folder)]
    if (folder / "checkpoint.npz").exists():
        command.append("--resume")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)  # fmt: skip


def finish(process):
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    return said


def written(said):
    """What it says without the validation loss: a run that was complete does not repeat that."""
    return [line for line in said.splitlines() if not line.startswith("validation loss")]


def compare(folder, other):
    states = [flow.load(f / "checkpoint.npz") for f in (folder, other)]
    for name in ("losses", "held_losses", "step", "rng"):
        assert states[0][name] == states[1][name], name
    for part in ("model",):
        for name, value in states[0][part].items():
            a, b = value.numpy(), states[1][part][name].numpy()
            assert np.array_equal(a.view(np.uint8), b.view(np.uint8)), name


def rounds(rng, say):
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "whole"
        say("the run that nobody kills")
        began = time.monotonic()
        text = finish(start(whole))
        took = time.monotonic() - began
        for n in itertools.count(1):
            folder, kills, amid = Path(name) / f"run{n}", 0, 0
            while True:
                say(f"round {n}, after {kills} kills")
                process = start(folder)
                try:
                    process.wait(rng.uniform(0.3, 1.1) * took)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                if process.wait() == 0:
                    said = finish(process)
                    break
                process.communicate()
                assert process.returncode == -signal.SIGKILL, process.returncode
                kills += 1
                amid += (folder / "checkpoint.npz").exists()
                if kills == 3:  # it may end now
                    said = finish(start(folder))
                    break
            assert written(said) == written(text), said
            compare(folder, whole)
            yield f"killed {kills} times" if amid == kills else "killed before its checkpoint"


if __name__ == "__main__":
    run(rounds, full={"count": 50}, patience=600)
