# SPDX-License-Identifier: Apache-2.0
"""How a tensor lies in memory, by the names that code for PyTorch passes: there is one way here."""

from __future__ import annotations

from typing import Any

from oneflow_lite._oneflow_lite import Tensor


class _Name:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"oneflow_lite.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Name):
    """The kind of memory: ``flow.strided`` is what every tensor has."""


class memory_format(_Name):
    """The order of a copy's elements: row by row, whichever of the two names is given. Casts alone
    leave the dims' order in memory as it is, but for ``contiguous_format``.
    """


def laid_out(function: str, x: Tensor, given: Any) -> Tensor:
    """``x``, row by row in memory where ``contiguous_format`` is given; TypeError for what is no
    memory format.
    """
    if not isinstance(given, memory_format | None):
        raise TypeError(f"{function}(): argument 'memory_format' must be oneflow_lite.memory_format"
                        f" or None, not {type(given).__name__}")  # fmt: skip
    return x.contiguous() if given is contiguous_format else x


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
