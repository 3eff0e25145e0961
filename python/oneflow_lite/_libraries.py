# SPDX-License-Identifier: Apache-2.0
"""Where NVIDIA's libraries lie that came as Python packages, which the system's loader cannot know.

Beside our own package they are found anyway; not so where ours is in another folder of ``sys.path``
than theirs, as after ``pip install --target``.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from oneflow_lite import _oneflow_lite as _ext


def nvidia_homes(folders: Iterable[str]) -> list[str]:
    """The folders of the packages of ``nvidia`` below ``folders``, which have ``lib`` in them.

    The working directory, which ``sys.path`` has as an empty string, is left out.
    """
    return [
        str(home)
        for folder in folders if Path(folder).is_absolute()
        for home in sorted((Path(folder) / "nvidia").glob("*")) if home.is_dir()
    ]  # fmt: skip


_ext.add_library_homes(nvidia_homes(sys.path))
