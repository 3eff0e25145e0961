# SPDX-License-Identifier: Apache-2.0
"""The main job: the classifier learns the digits and draws its picture."""

import re
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

for package in ("oneflow_lite", "sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(package)

DEMO = Path(__file__).resolve().parents[2] / "examples" / "digits.py"


def test_demo_learns_the_digits(tmp_path):
    start = time.perf_counter()
    run = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True,
                         timeout=300)  # fmt: skip
    assert run.returncode == 0, run.stderr
    accuracy = float(re.search(r"test accuracy ([0-9.]+)%", run.stdout)[1])
    assert accuracy >= 97, run.stdout
    assert float(re.search(r"([0-9,]+) images/s", run.stdout)[1].replace(",", "")) > 0
    assert len(run.stdout.split("To try next:\n")[1].splitlines()) == 3
    assert "training: 100%" in run.stderr
    header = (tmp_path / "digits.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:])
    assert width >= 1200 and height >= 500
    assert time.perf_counter() - start < 120  # 30 s are promised for a machine at rest


def test_demo_takes_options(tmp_path):
    run = subprocess.run([sys.executable, DEMO, "--device", "cpu", "--epochs", "1", "--hidden", "8",
                          "--seed", "3", "--out", "other.png"],
                         cwd=tmp_path, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "other.png").exists()


def test_a_folder_that_is_not_there_is_found_before_the_training(tmp_path):
    run = subprocess.run([sys.executable, DEMO, "--out", "absent/digits.png"], cwd=tmp_path,
                         capture_output=True, text=True, timeout=300)  # fmt: skip
    assert run.returncode == 2 and "there is no folder absent" in run.stderr
    assert "training" not in run.stderr
