# SPDX-License-Identifier: Apache-2.0
"""Products of tensors beside matmul, and distances, composed of C++ functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
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
        return _C.tensordot(a, b, *dims)
    if not 0 <= dims <= min(a.ndim, b.ndim):
        raise _ext.ShapeError(f"tensordot(): there are no {dims} dims in shapes {list(a.shape)} "
                              f"and {list(b.shape)}")  # fmt: skip
    return _C.tensordot(a, b, range(a.ndim - dims, a.ndim), range(dims))


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference."""
    return norm(input - other, p)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "") -> Tensor:
    """The p-norms of the differences of all pairs of rows.

    Parameters
    ----------
    x1, x2 : Tensor
        ``[..., m, d]`` and ``[..., n, d]``; the result is ``[..., m, n]``.
    compute_mode : str
        Whether Euclidean distances (``p = 2``) of float32 and float64 come from a product of
        matrices, ``|a|^2 + |b|^2 - 2 a b``, which loses the digits that rows near each other share:
        ``"use_mm_for_euclid_dist_if_necessary"``, the default, where ``m`` or ``n`` is above 25;
        ``"use_mm_for_euclid_dist"`` or ``"donot_use_mm_for_euclid_dist"``.

    Raises
    ------
    ShapeError
        Rows of different lengths.
    ValueError
        Another ``compute_mode``, or ``p`` below 0.
    """
    if not p >= 0:
        raise ValueError(f"cdist(): p is {p}, but it must be at least 0")
    if compute_mode not in _MODES:
        raise ValueError(f'cdist(): compute_mode is "{compute_mode}", but it must be '
                         + ", ".join(f'"{m}"' for m in _MODES if m))  # fmt: skip
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise _ext.ShapeError(f"cdist(): rows of shapes {list(x1.shape)} and {list(x2.shape)} do "
                              "not go together")  # fmt: skip
    direct = _is_direct(x1, x2, p, compute_mode)
    if direct and x1.ndim == 2 and x2.ndim == 2:
        return _distances(x1.unsqueeze(0), x2.unsqueeze(0), float(p), False).squeeze(0)
    batch = common_shape("cdist", [tuple(x1.shape[:-2]), tuple(x2.shape[:-2])])
    if direct:
        count = math.prod(batch)
        a, b = (x.expand((*batch, *x.shape[-2:])).reshape((count, *x.shape[-2:]))
                for x in (x1, x2))  # fmt: skip
        return _distances(a, b, float(p), False).reshape((*batch, x1.shape[-2], x2.shape[-2]))
    if p == 2 and x1.dtype == x2.dtype and x1.dtype in (_ext.float32, _ext.float64):
        least = _MODES[compute_mode]
        if x1.shape[-2] > least or x2.shape[-2] > least:
            from oneflow_lite.amp.autocast_mode import without_autocast

            with without_autocast():
                return _by_products(x1, x2)
    differences = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if x1.shape[-1] == 0:  # which has no largest one
        return differences.sum(-1)
    if p == math.inf and differences.requires_grad:
        return _longest(differences)
    return norm(differences, p, -1)


_distances = _ext.op_function("distances")
# Squares of so many differences cost no more than a product of matrices.
_MOST_SQUARES = 64


def _is_direct(x1: Tensor, x2: Tensor, p: float, mode: str) -> bool:
    """Whether one op gives the distances: of floats on the CPU of which none is recorded."""
    if p not in (0, 1, 2, math.inf) or (p == 2 and mode == "use_mm_for_euclid_dist"):
        return False
    if p == 2 and x1.shape[-1] > _MOST_SQUARES and mode != "donot_use_mm_for_euclid_dist":
        return False
    if _ext.is_grad_enabled() and (x1.requires_grad or x2.requires_grad):
        return False
    return all(x.is_cpu and not x.is_global and x.dtype in (_ext.float32, _ext.float64)
               and x.dtype == x1.dtype for x in (x1, x2))  # fmt: skip


# Products of matrices from so many rows on.
_MODES = {"": 25, "use_mm_for_euclid_dist_if_necessary": 25, "use_mm_for_euclid_dist": -1,
          "donot_use_mm_for_euclid_dist": math.inf}  # fmt: skip


def _by_products(a: Tensor, b: Tensor) -> Tensor:
    """The Euclidean distances, as one product of ``[-2 a, |a|^2, 1]`` and ``[b, 1, |b|^2]``."""
    a_squares, b_squares = (a * a).sum(-1, keepdim=True), (b * b).sum(-1, keepdim=True)
    left = _C.cat([a * -2, a_squares, _C.ones_like(a_squares)], -1)
    right = _C.cat([b, _C.ones_like(b_squares), b_squares], -1)
    squares = left @ right.transpose(-1, -2)
    if not squares.requires_grad:
        return squares.clamp_(min=0).sqrt_()
    # The slope is 0 where the distance is.
    nothing = squares <= 0
    return _C.where(nothing, 0.0, _C.where(nothing, 1.0, squares).sqrt())


def _longest(x: Tensor) -> Tensor:
    """The largest size along the last dim; of several that are alike each has the whole slope."""
    x = abs(x)
    longest = x.detach().amax(-1)
    terms = _C.where(x == longest.unsqueeze(-1), x, 0.0).sum(-1)
    return _C.where(longest.isfinite(), longest + (terms - terms.detach()), longest + terms)


FUNCTIONS = (cdist, dist, tensordot)
METHODS = (dist,)
