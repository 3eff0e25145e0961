# SPDX-License-Identifier: Apache-2.0
"""Batches of arrays, and which rows each of several processes takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Tensor, device, from_numpy
from oneflow_lite.utils._sampler import DistributedSampler

__all__ = ["DistributedSampler", "batches"]


def batches(
    *arrays: np.ndarray,
    size: int,
    rng: np.random.Generator | None = None,
    device: device | str = "cpu",
    sampler: Iterable[int] | None = None,
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
    sampler : iterable of int, optional
        The rows, in its order, such as a :class:`DistributedSampler`; in place of ``rng``.

    Yields
    ------
    tuple of Tensor
        One per array.

    Raises
    ------
    ValueError
        Where the lengths differ, ``size`` is not positive, or both ``rng`` and ``sampler`` are
        given.

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
    if rng is not None and sampler is not None:
        raise ValueError("batches(): rng and sampler are both given; a sampler shuffles itself")
    rows = range(lengths.pop()) if sampler is None else sampler
    order = np.fromiter(rows, np.int64)
    if rng is not None:
        rng.shuffle(order)
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield tuple(from_numpy(array[chosen]).to(device) for array in arrays)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
