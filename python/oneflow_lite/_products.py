# SPDX-License-Identifier: Apache-2.0
"""Products of tensors beside matmul, and distances, composed of C++ functions."""

from __future__ import annotations

from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import norm
from oneflow_lite._oneflow_lite import _C, Tensor


def tensordot(a: Tensor, b: Tensor, dims: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over dims of both: the other dims of ``a``, then those of ``b``.

    Parameters
    ----------
    dims : int or (ints, ints)
        How many, the last ones of ``a`` with the first ones of ``b``; or which of each, in pairs.
        Of a pair, a dim of size 1 is repeated to the other's size.

    Raises
    ------
    ShapeError
        A pair has different sizes, none of them 1; a tensor has fewer dims than are given.
    """
    if not isinstance(dims, int):
        return _C.tensordot(a, b, *_ext._own_list("tensordot", "dims", dims))
    if not 0 <= dims <= min(a.ndim, b.ndim):
        raise _ext.ShapeError(f"tensordot(): there are no {dims} dims in shapes {list(a.shape)} "
                              f"and {list(b.shape)}")  # fmt: skip
    return _C.tensordot(a, b, range(a.ndim - dims, a.ndim), range(dims))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(input - other, p)


FUNCTIONS = (dist, tensordot)
METHODS = (dist,)
