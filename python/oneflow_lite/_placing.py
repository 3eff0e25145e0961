# SPDX-License-Identifier: Apache-2.0
"""The shape that tensors come to."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _own_list


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes come to; ShapeError where they do not go together."""
    given = [(s,) if isinstance(s, int) else tuple(_own_list("broadcast_shapes", "shapes", s))
             for s in shapes]  # fmt: skip
    if not all(isinstance(n, int) for shape in given for n in shape):
        raise TypeError("broadcast_shapes(): takes ints and tuples of ints")
    return common_shape("broadcast_shapes", given)


FUNCTIONS = (broadcast_shapes,)
