# SPDX-License-Identifier: Apache-2.0
"""Warnings that name the user's line."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """A UserWarning at the nearest line outside of this package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("oneflow_lite"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
