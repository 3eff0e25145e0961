# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: products of matrices in 16 bits, what needs it in float32.

>>> scaler = flow.amp.GradScaler("cuda")               # float16 alone needs it
>>> with flow.autocast("cuda", flow.float16):
...     loss = flow.cross_entropy(model(x), target)
>>> scaler.scale(loss).backward()
>>> scaler.step(optimizer)
>>> scaler.update()
"""

from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
)
from oneflow_lite.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler", "autocast", "custom_bwd", "custom_fwd", "get_autocast_dtype",
    "is_autocast_available", "is_autocast_enabled",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
