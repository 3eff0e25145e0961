# SPDX-License-Identifier: Apache-2.0
"""`pip install .` gives a package that works from anywhere: Python module, libraries, headers."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

USE = """
import numpy as np
import oneflow_lite as flow
x = np.log(np.array([[1.0, 2.0, 5.0]], dtype=np.float32))
y = flow.softmax(flow.tensor(x), dim=1).numpy()
np.testing.assert_allclose(y, [[0.125, 0.25, 0.625]], atol=1e-7)
print(flow.__file__)
"""


@pytest.mark.slow
def test_pip_install(tmp_path):
    if not (ROOT / "CMakeLists.txt").exists() or not importlib.util.find_spec("scikit_build_core"):
        pytest.skip("no scikit-build-core here")
    if not all(shutil.which(program) for program in ("cmake", "ninja", "ccache")):
        pytest.skip("no CMake, Ninja or ccache here; without a cache this compiles all again")
    site = tmp_path / "site"
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", ".", "--no-build-isolation", "--no-deps", "-q"]
        + ["--disable-pip-version-check", "--no-index", "--target", site]
        + ["--config-settings=build-dir=build/packaging"]
        + ["--config-settings=cmake.define.OFL_CUDA=OFF"],
        cwd=ROOT,
        # By the name that CMake uses on its own: the cache tells compilers apart by name.
        env={"CXX": "c++", **os.environ},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr

    package = site / "oneflow_lite"
    for part in (
        "py.typed",
        "lib/liboneflow_lite.so",
        "include/functional/softmax.h",
        "lib/cmake/oneflow_lite/oneflow_liteConfig.cmake",
    ):
        assert (package / part).exists(), f"the package has no {part}"
    result = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(package / "__init__.py")
