# SPDX-License-Identifier: Apache-2.0
"""What training loops need beside the model."""

from oneflow_lite.utils import data

__all__ = ["data"]
