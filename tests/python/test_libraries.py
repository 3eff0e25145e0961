# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's libraries that came as Python packages are found wherever sys.path has them."""

import os
import subprocess
import sys

import oneflow_lite as flow
from oneflow_lite._libraries import nvidia_homes


def site(folder):
    """A folder of packages, two of NVIDIA's among them."""
    for home in ("nvidia/cudnn", "nvidia/cu13"):
        (folder / home / "lib").mkdir(parents=True)
    (folder / "nvidia" / "__init__.py").touch()
    return [str(folder / "nvidia" / name) for name in ("cu13", "cudnn")]


def test_homes_are_the_packages_below_each_folder(tmp_path, monkeypatch):
    homes = site(tmp_path / "site")
    (tmp_path / "file.zip").touch()
    monkeypatch.chdir(tmp_path / "site")
    folders = [
        "",
        ".",
        str(tmp_path / "site"),
        str(tmp_path / "absent"),
        str(tmp_path / "file.zip"),
    ]
    assert nvidia_homes(folders) == homes


def test_import_tells_the_library_where_they_are(tmp_path):
    homes = site(tmp_path)
    own = os.path.dirname(os.path.dirname(flow.__file__))
    path = os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH"), str(tmp_path)]))
    code = "import oneflow_lite as flow; print(flow._oneflow_lite.library_homes())"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [home for home in eval(run.stdout) if home in homes] == homes
