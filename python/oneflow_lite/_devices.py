# SPDX-License-Identifier: Apache-2.0
"""Which devices and shapes go together, where no C++ function looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from oneflow_lite._oneflow_lite import ShapeError, Tensor


def common_shape(name: str, shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """What shapes broadcast to; ShapeError where they do not."""
    given = [tuple(shape) for shape in shapes]
    try:
        return np.broadcast_shapes(*given)
    except ValueError:
        texts = " and ".join(str(list(shape)) for shape in given)
        raise ShapeError(f"{name}(): the shapes {texts} do not broadcast") from None


def check_index_device(x: Tensor, index: Tensor) -> None:
    """RuntimeError for an index on a GPU, or the meta device, where ``x`` is not."""
    if not index.is_cpu and index.device != x.device:
        raise RuntimeError("index(): indices should be either on cpu or on the same device as the "
                           f"indexed tensor ({x.device}), not on {index.device}")  # fmt: skip
