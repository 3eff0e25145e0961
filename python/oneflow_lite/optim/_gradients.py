# SPDX-License-Identifier: Apache-2.0
"""Where the gradient of a parameter is."""

from __future__ import annotations

from collections.abc import Callable

from oneflow_lite._oneflow_lite import Tensor

_Source = Callable[[Tensor], Tensor | None]
_sources: list[_Source] = []


def add_source(source: _Source) -> None:
    """Adds who may have the gradient of a parameter whose ``.grad`` is None."""
    _sources.append(source)


def gradient_of(p: Tensor) -> Tensor | None:
    """``p.grad``, or the gradient that an optimizer keeps for it, split over ranks."""
    if p.grad is not None:
        return p.grad
    return next((found for source in _sources if (found := source(p)) is not None), None)
