# SPDX-License-Identifier: Apache-2.0
"""Named tuples as results of functions composed in Python, of the kind that C++ functions give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from oneflow_lite import _oneflow_lite as _ext

_F = TypeVar("_F", bound=Callable[..., Any])


def with_results(*fields: str) -> Callable[[_F], _F]:
    """The function, whose tuples of results have names where users call it: see ``named``."""

    def decorate(function: _F) -> _F:
        function.results = _ext.results_type(function.__name__, fields)  # type: ignore[attr-defined]
        return function

    return decorate
