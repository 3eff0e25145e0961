# SPDX-License-Identifier: Apache-2.0
"""Which devices go together, where no C++ function looks."""

from __future__ import annotations

from oneflow_lite._oneflow_lite import Tensor


def check_one_device(name: str, **tensors: Tensor) -> None:
    """RuntimeError where tensors, given by their arguments' names, are on different devices."""
    (first, one), *others = tensors.items()
    for argument, t in others:
        if t.device != one.device:
            raise RuntimeError(f"{name}(): all tensors must be on one device, but {first} is on "
                               f"{one.device} and {argument} on {t.device}")  # fmt: skip


def check_index_device(x: Tensor, index: Tensor) -> None:
    """RuntimeError for an index on a GPU, or the meta device, where ``x`` is not."""
    if not index.is_cpu and index.device != x.device:
        raise RuntimeError("index(): indices should be either on cpu or on the same device as the "
                           f"indexed tensor ({x.device}), not on {index.device}")  # fmt: skip
