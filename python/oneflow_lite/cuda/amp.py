# SPDX-License-Identifier: Apache-2.0
"""Mixed precision on CUDA, under the older names of PyTorch; ``flow.amp`` has it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oneflow_lite.amp as _amp
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import dtype, float16
from oneflow_lite.amp import GradScaler, custom_bwd, custom_fwd

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_amp.autocast):
    """``flow.autocast("cuda", ...)``."""

    def __init__(
        self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
