# SPDX-License-Identifier: Apache-2.0
"""How a tensor lies in memory, by the names that code for PyTorch passes: there is one way here."""

from __future__ import annotations


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


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
