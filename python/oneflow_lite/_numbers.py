# SPDX-License-Identifier: Apache-2.0
"""Arguments that must be numbers, and what is said of those that are none."""

from __future__ import annotations

import numbers
from typing import Any

from oneflow_lite._oneflow_lite import Tensor


def check_number(call: str, name: str, value: Any, *, tensors: bool = False) -> None:
    """TypeError for what is no real number, nor with ``tensors`` a tensor.

    ``call`` is who says so, such as ``"StepLR()"``, and ``name`` the argument.
    """
    if not isinstance(value, numbers.Real) and not (tensors and isinstance(value, Tensor)):
        raise TypeError(f"{call}: {name} must be a number, not {type(value).__name__}")


def as_number(call: str, name: str, value: Any) -> float:
    """A number, or what ``float`` makes one of, such as a tensor of one; TypeError for others."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{call}: {name} must be a number, not {value!r}") from None
