# SPDX-License-Identifier: Apache-2.0
"""Checks of what a layer is made with: the errors name the layer and its argument."""

from __future__ import annotations

import operator
from typing import Any


def check_sizes(layer: Any, least: int = 0, **sizes: Any) -> None:
    """TypeError where a size is no int, ValueError where it is below ``least``."""
    name = type(layer).__name__
    for argument, size in sizes.items():
        try:
            number = operator.index(size)
        except TypeError:
            raise TypeError(f"{name}: {argument} must be int, not {type(size).__name__}") from None
        if number < least:
            must = "positive" if least > 0 else "non-negative"
            raise ValueError(f"{name}: {argument} is {number}, but it must be {must}")


def check_bools(layer: Any, **flags: Any) -> None:
    """TypeError where a flag is no bool, such as a tensor that was meant for the call."""
    for argument, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{type(layer).__name__}: {argument} must be bool, not "
                            f"{type(flag).__name__}")  # fmt: skip
