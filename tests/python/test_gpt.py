# SPDX-License-Identifier: Apache-2.0
"""The example of a transformer learns to add, also what it was not shown."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("oneflow_lite")

GPT = Path(__file__).resolve().parents[2] / "examples" / "gpt.py"


@pytest.mark.slow
def test_the_transformer_learns_to_add():
    if not GPT.exists():
        pytest.skip("the examples are not here")
    run = subprocess.run([sys.executable, GPT], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", run.stdout)]
    assert len(losses) == 6 and losses[-1] < 1 < losses[0]
    shown, hidden = (int(n) for n in re.findall(r"(\d+) of 40 right", run.stdout))
    assert shown >= 32 and hidden >= 8  # 40 and 25 of 40; one in 39 by guessing
