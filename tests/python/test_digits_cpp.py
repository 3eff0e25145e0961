# SPDX-License-Identifier: Apache-2.0
"""examples/digits.cpp, built against the installed package: C++ alone learns the digits."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")
datasets = pytest.importorskip("sklearn.datasets")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_it_is_short():
    lines = (EXAMPLES / "digits.cpp").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 80


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_it_learns_the_digits(tmp_path):
    prefix = Path(flow.__file__).parent
    run = lambda *a: subprocess.run(a, capture_output=True, text=True, timeout=1200)  # noqa: E731
    made = run("cmake", "-S", EXAMPLES, "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release",
               f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    assert made.returncode == 0, made.stderr
    built = run("cmake", "--build", tmp_path / "build")
    assert built.returncode == 0, built.stdout
    packed = Path(datasets.__file__).parent / "data" / "digits.csv.gz"
    (tmp_path / "digits.csv").write_bytes(gzip.decompress(packed.read_bytes()))
    done = run(tmp_path / "build" / "digits", tmp_path / "digits.csv")
    assert done.returncode == 0, done.stderr
    assert float(re.fullmatch(r"test accuracy ([0-9.]+)%\n", done.stdout)[1]) >= 95
    missing = run(tmp_path / "build" / "digits", tmp_path / "no_such_file")
    assert missing.returncode == 1 and "no images were read" in missing.stderr
