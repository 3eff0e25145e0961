# SPDX-License-Identifier: Apache-2.0
"""What functions composed in Python ask of dims."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite._oneflow_lite import Tensor


def wrapped_dim(name: str, input: Tensor, dim: int) -> int:
    """The dim counted from the front; an IndexError in the name of a function if there is none."""
    n = max(1, input.ndim)
    if not -n <= dim < n:
        raise IndexError(f"{name}(): dim {dim} is out of range [{-n}, {n - 1}] for a tensor of "
                         f"shape {list(input.shape)}")  # fmt: skip
    return dim % n


def wrapped_dims(name: str, input: Tensor, dims: Sequence[int]) -> list[int]:
    """As :func:`wrapped_dim` of each; a ValueError where one occurs twice."""
    axes = [wrapped_dim(name, input, d) for d in dims]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}(): a dim occurs twice in {list(dims)}")
    return axes
