# SPDX-License-Identifier: Apache-2.0
"""Loads the library of operators, and says what keeps it from serving."""

from pathlib import Path

import torch

_OLDEST = (2, 10)
_FILE = "liboneflow_lite_torch.so"


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split("+")[0].split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()))


def load() -> None:
    """Register the operators with PyTorch.

    Raises
    ------
    ImportError
        PyTorch is older than 2.10, or the library cannot be opened.
    """
    if _release(torch.__version__) < _OLDEST:
        raise ImportError(
            f"oneflow_lite_torch needs PyTorch 2.10 or newer; this is {torch.__version__}"
        )
    path = Path(__file__).with_name(_FILE)
    if not path.exists():
        raise ImportError(f"oneflow_lite_torch: {_FILE} is missing beside {Path(__file__).name}")
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise ImportError(f"oneflow_lite_torch: {error}") from error


load()
ops = torch.ops.oneflow_lite_torch


def direct(overload: torch._ops.OpOverload):
    """What an operator's __call__ calls: a Python frame less."""
    return getattr(overload, "_op", overload)
