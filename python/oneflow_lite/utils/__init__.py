# SPDX-License-Identifier: Apache-2.0
"""Batches for training loops, checkpoints within a model, and ops from C++ source."""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from oneflow_lite._absent import public_face as _public_face
from oneflow_lite.utils import checkpoint, data

__all__ = ["checkpoint", "cmake_prefix_path", "data", "load_inline"]

# What CMake's find_package(oneflow_lite) needs as CMAKE_PREFIX_PATH.
cmake_prefix_path = _os.path.dirname(_os.path.dirname(_os.path.abspath(__file__)))


if _TYPE_CHECKING:
    from oneflow_lite.utils.extension import load_inline
else:
    _absent, __dir__ = _public_face(__name__)

    def __getattr__(name: str) -> _Any:
        # Compiling needs modules that a program which does not compile should not wait for.
        if name == "load_inline":
            from oneflow_lite.utils.extension import load_inline

            return load_inline
        return _absent(name)
