# SPDX-License-Identifier: Apache-2.0
"""Batches of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Tensor, device, from_numpy

__all__ = ["batches"]


def batches(
    *arrays: np.ndarray,
    size: int,
    rng: np.random.Generator | None = None,
    device: device | str = "cpu",
) -> Iterator[tuple[Tensor, ...]]:
    """One pass over arrays of equal length, in batches.

    Parameters
    ----------
    *arrays : numpy.ndarray
        Of the same length.
    size : int
        Rows of a batch; the last one may have fewer.
    rng : numpy.random.Generator, optional
        Shuffles the rows; by default they come in order.
    device : device or str
        Where the tensors are wanted.

    Yields
    ------
    tuple of Tensor
        One per array.

    Raises
    ------
    ValueError
        Where the lengths differ, or ``size`` is not positive.

    Examples
    --------
    >>> for x, y in batches(images, labels, size=64, rng=np.random.default_rng(0)):
    ...     loss = loss_fn(model(x), y)
    """
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"batches(): the arrays have different lengths: {sorted(lengths)}")
    if size < 1:
        raise ValueError(f"batches(): size is {size}; it must be positive")
    order = np.arange(lengths.pop())
    if rng is not None:
        rng.shuffle(order)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        yield tuple(from_numpy(array[rows]).to(device) for array in arrays)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
