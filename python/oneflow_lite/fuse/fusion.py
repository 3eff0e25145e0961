# SPDX-License-Identifier: Apache-2.0
"""What a fused op is made of, for those who run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.fuse.bases import Base
from oneflow_lite.fuse.expression import Graph


class Fusion:
    """A base op, and the expressions of its elements before it and after it."""

    __name__: str
    base: Base
    load: Graph | None
    store: Graph | None
    input: str  # the name of the input
    registered: dict[Any, Callable[..., Tensor]]  # by kinds of operands: kernel.py

    @property
    def is_norm(self) -> bool:
        return self.base.name.endswith("norm")
