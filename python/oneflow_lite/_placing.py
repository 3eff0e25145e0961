# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements where masks say, composed of others."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._searching import searchsorted


def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is among the others; with ``invert``, whether it is not."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): elements or test_elements must be a Tensor, but they are "
                        f"{type(elements).__name__} and "
                        f"{type(test_elements).__name__}")  # fmt: skip
    where = next(t for t in (elements, test_elements) if isinstance(t, Tensor)).device
    x, others = (t if isinstance(t, Tensor) else _ext.tensor(t, device=where)
                 for t in (elements, test_elements))  # fmt: skip
    if others.numel() == 0:
        return _C.full(list(x.shape), invert, dtype=_ext.bool, device=x.device)
    both = (x.reshape(-1)[:0] + others.reshape(-1)[:0]).dtype
    both = _ext.uint8 if both is _ext.bool else both
    x, others = x.detach().to(None, both), others.detach().to(None, both)
    ordered = _C.sort(others.reshape(-1))[0]
    place = searchsorted(ordered, x).clamp(None, ordered.numel() - 1)
    found = ordered.index_select(0, place.reshape(-1)).view(x.shape) == x
    return ~found if invert else found


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes come to; ShapeError where they do not go together."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if not all(isinstance(n, int) for shape in given for n in shape):
        raise TypeError("broadcast_shapes(): takes ints and tuples of ints")
    return common_shape("broadcast_shapes", given)


FUNCTIONS = (broadcast_shapes, isin)
