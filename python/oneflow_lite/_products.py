# SPDX-License-Identifier: Apache-2.0
"""Products of tensors beside matmul, and distances, composed of C++ functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import bmm, dot, norm, plus_product
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._shapes import diagonal, wrapped_dim


def _contracted(
    a: Tensor, b: Tensor, dims: int | tuple[Sequence[int], Sequence[int]]
) -> tuple[list[int], list[int]]:
    """The dims of both that are summed over, in pairs that go together."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise _ext.ShapeError(f"tensordot(): there are no {dims} dims in shapes "
                                  f"{list(a.shape)} and {list(b.shape)}")  # fmt: skip
        of_a, of_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        of_a, of_b = ([wrapped_dim("tensordot", t, d) for d in g]
                      for t, g in zip((a, b), dims, strict=True))  # fmt: skip
    pairs = zip([a.shape[d] for d in of_a], [b.shape[d] for d in of_b], strict=False)
    if len(of_a) != len(of_b) or any(m != n and 1 not in (m, n) for m, n in pairs):
        raise _ext.ShapeError(f"tensordot(): dims {of_a} of shape {list(a.shape)} do not go with "
                              f"dims {of_b} of shape {list(b.shape)}")  # fmt: skip
    return of_a, of_b


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
    of_a, of_b = _contracted(a, b, dims)
    # What is repeated is added up first, where the other's part is the same.
    for d, e in zip(of_a, of_b, strict=True):
        if a.shape[d] != b.shape[e]:
            if a.shape[d] == 1:
                b = b.sum(e, True, dtype=b.dtype)
            else:
                a = a.sum(d, True, dtype=a.dtype)
    sizes = [a.shape[d] for d in of_a]
    free_a = [d for d in range(a.ndim) if d not in of_a]
    free_b = [d for d in range(b.ndim) if d not in of_b]
    inner = math.prod(sizes)
    outer_a, outer_b = [a.shape[d] for d in free_a], [b.shape[d] for d in free_b]
    rows = a.permute(free_a + of_a).reshape(math.prod(outer_a), inner)
    columns = b.permute(of_b + free_b).reshape(inner, math.prod(outer_b))
    return _C.matmul(rows, columns).reshape(outer_a + outer_b)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dims of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise _ext.ShapeError(f"inner(): the last dims of shapes {list(input.shape)} and "
                              f"{list(other.shape)} do not go together")  # fmt: skip
    return tensordot(input, other, ([-1], [-1]))


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two 1-D tensors."""
    return dot(input, other)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """``other`` times each element of ``input``, in its place."""
    n = max(input.ndim, other.ndim)
    a, b = (t.reshape([1] * (n - t.ndim) + list(t.shape)) for t in (input, other))
    pairs = a.reshape([s for size in a.shape for s in (size, 1)]) * b.reshape(
        [s for size in b.shape for s in (1, size)]
    )
    return pairs.reshape([x * y for x, y in zip(a.shape, b.shape, strict=True)])


def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * batch1 @ batch2``; where beta is 0, input gives its shape alone."""
    return plus_product(input, bmm(batch1, batch2), beta, alpha, "baddbmm")


def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise _ext.ShapeError(f"trace(): input has shape {list(input.shape)}, expected 2 dims")
    return diagonal(input).sum()


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
        Means nothing: the differences are always taken, never a product of matrices.

    Raises
    ------
    ShapeError
        Rows of different lengths.
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise _ext.ShapeError(f"cdist(): rows of shapes {list(x1.shape)} and {list(x2.shape)} do "
                              "not go together")  # fmt: skip
    differences = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if p == math.inf and differences.requires_grad:
        return _longest(differences)
    return norm(differences, p, -1)


def _longest(x: Tensor) -> Tensor:
    """The largest size along the last dim; of several that are alike each has the whole slope."""
    x = abs(x)
    longest = x.detach().amax(-1)
    terms = _C.where(x == longest.unsqueeze(-1), x, 0.0).sum(-1)
    return _C.where(longest.isfinite(), longest + (terms - terms.detach()), longest + terms)


FUNCTIONS = (baddbmm, cdist, dist, inner, kron, tensordot, trace, vdot)
METHODS = (baddbmm, dist, inner, kron, trace, vdot)
IN_PLACE = ("baddbmm",)
