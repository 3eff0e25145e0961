# SPDX-License-Identifier: Apache-2.0
"""`make parallel`: the tutorial on two processes."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gloo import needs_gloo

pytest.importorskip("oneflow_lite")
pytestmark = needs_gloo

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "parallel.py"


@pytest.mark.parametrize("nproc", [1, 2])
def test_the_tutorial_trains_alike_in_each_way(nproc, tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", str(nproc)]
    start = time.perf_counter()
    run = subprocess.run([*command, "--device", "cpu", str(SCRIPT)], cwd=tmp_path, text=True,
                         env=environment, capture_output=True, timeout=120)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert time.perf_counter() - start < 60
    losses = re.findall(r"last loss ([0-9.]+), farthest from one process ([0-9.e+-]+)", run.stdout)
    assert len(losses) == 5 and len({loss for loss, _ in losses}) == 1
    assert all(float(worst) < 1e-10 for _, worst in losses)
    sent = re.findall(r"bytes that a rank sends in a step: (.*)", run.stdout)
    if nproc == 1:
        assert set(sent) == {"none"}
        return
    parameters = 8 * (2 * 32 + 32 * 128 + 128 + 128 * 10 + 10)
    assert sent[0] == "none"
    numbers = [{n: int(b.replace(",", "")) for n, b in re.findall(r"(\w+) ([0-9,]+)", s)}
               for s in sent]  # fmt: skip
    loss = 8 + 8  # the sums of the losses and of the rows that count
    assert 0 <= numbers[1]["all_reduce"] - parameters <= loss
    assert numbers[2]["reduce_scatter"] == numbers[2]["all_gather"] == parameters / 2
    assert "placement(" in run.stdout and "(S(0), B)" in run.stdout
    assert "(S(1), S(0)) -> (P): 16 bytes" in run.stdout  # what the next step shows
