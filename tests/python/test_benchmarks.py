# SPDX-License-Identifier: Apache-2.0
"""The benchmarks in Python run, if only for a moment; their figures are no test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("oneflow_lite")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("program", "cases", "host"),
    [("softmax_cpu", 17, "softmax host 4x64 1t"), ("norm_cpu", 34, "rms_norm host 4x64 1t")],
)
def test_cpu_benchmarks_run_without_their_peer(program, cases, host, tmp_path):
    output = tmp_path / "figures.json"
    command = [sys.executable, BENCHMARKS / f"{program}.py", "--quick", "--output", output]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "no --torch-python: oneflow_lite alone" in done.stdout
    report = json.loads(output.read_text())
    times = report["times"]["oneflow_lite"]["median"]
    assert len(times) == cases and all(t > 0 for t in times.values())
    assert host in times and set(times) == set(report["rounds"]["oneflow_lite"][0]["times"])
