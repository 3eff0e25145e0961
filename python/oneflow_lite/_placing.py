# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements where masks say, composed of others."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _C, Tensor


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Where the mask holds the elements of ``source``, in their order, else those of the input.

    Raises
    ------
    ShapeError
        ``source`` has too few elements.
    DTypeError
        ``source`` has another dtype, or the mask is not of bool.
    """
    if source.dtype is not input.dtype:
        raise _ext.DTypeError(f"masked_scatter(): source has dtype {source.dtype.name}, expected "
                              f"{input.dtype.name}")  # fmt: skip
    if mask.dtype is not _ext.bool:
        raise _ext.DTypeError(f"masked_scatter(): mask has dtype {mask.dtype.name}, expected bool")
    shape = common_shape("masked_scatter", (input.shape, mask.shape))
    mask = mask.expand(shape).reshape(-1)
    wanted = int(mask.sum())
    if wanted > source.numel():
        raise _ext.ShapeError(f"masked_scatter(): source has {source.numel()} elements for {wanted}"
                              " places")  # fmt: skip
    if wanted == 0:
        return input.expand(shape).clone()
    place = (mask.to(None, _ext.int64).cumsum(0) - 1).clamp(0)
    values = source.reshape(-1).index_select(0, place)
    return _C.where(mask, values, input.expand(shape).reshape(-1)).view(shape)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes come to; ShapeError where they do not go together."""
    given = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if not all(isinstance(n, int) for shape in given for n in shape):
        raise TypeError("broadcast_shapes(): takes ints and tuples of ints")
    return common_shape("broadcast_shapes", given)


FUNCTIONS = (broadcast_shapes, masked_scatter)
METHODS = (masked_scatter,)
IN_PLACE = ("masked_scatter",)
