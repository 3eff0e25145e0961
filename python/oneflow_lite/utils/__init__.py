# SPDX-License-Identifier: Apache-2.0
"""Batches for training loops, checkpoints within a model, and ops from C++ source."""

import os
from typing import Any

from oneflow_lite._absent import absent_names
from oneflow_lite.utils import checkpoint, data

__all__ = ["checkpoint", "cmake_prefix_path", "data", "load_inline"]

# What CMake's find_package(oneflow_lite) needs as CMAKE_PREFIX_PATH.
cmake_prefix_path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def __getattr__(name: str) -> Any:
    # Compiling needs modules that a program which does not compile should not wait for.
    if name == "load_inline":
        from oneflow_lite.utils.extension import load_inline

        return load_inline
    return absent_names(__name__)(name)
