# SPDX-License-Identifier: Apache-2.0
"""Batches of arrays and data sets, and which rows each of several processes takes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Tensor, device, from_numpy
from oneflow_lite.utils._loader import (
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)
from oneflow_lite.utils._sampler import DistributedSampler

__all__ = ["DataLoader", "Dataset", "DistributedSampler", "Subset", "TensorDataset", "batches",
           "default_collate", "random_split"]  # fmt: skip


def batches(
    *arrays: np.ndarray | Tensor,
    size: int,
    rng: np.random.Generator | None = None,
    device: device | str = "cpu",
    sampler: Iterable[int] | None = None,
) -> Iterator[tuple[Tensor, ...]]:
    """One pass over arrays of equal length, in batches.

    Parameters
    ----------
    *arrays : numpy.ndarray or Tensor
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
    TypeError
        Where no array is given, or what is none.

    Examples
    --------
    >>> for x, y in batches(images, labels, size=64, rng=np.random.default_rng(0)):
    ...     loss = loss_fn(model(x), y)
    """
    if not arrays:
        raise TypeError("batches(): one array or more must be given")
    for i, array in enumerate(arrays):
        if not isinstance(array, np.ndarray | Tensor):
            raise TypeError(f"batches(): array {i} must be a numpy.ndarray or a Tensor, not "
                            f"{type(array).__name__}")  # fmt: skip
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"batches(): the arrays have different lengths: {sorted(lengths)}")
    if not isinstance(size, int | np.integer):
        raise TypeError(f"batches(): size must be an int, not {type(size).__name__}")
    if size < 1:
        raise ValueError(f"batches(): size is {size}; it must be positive")
    if rng is not None and not isinstance(rng, np.random.Generator | np.random.RandomState):
        raise TypeError("batches(): rng must be a numpy.random.Generator, not "
                        f"{type(rng).__name__}")  # fmt: skip
    if rng is not None and sampler is not None:
        raise ValueError("batches(): rng and sampler are both given; a sampler shuffles itself")
    rows = range(lengths.pop()) if sampler is None else map(operator.index, sampler)
    order = np.fromiter(rows, np.int64)
    if rng is not None:
        rng.shuffle(order)
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        taken = (array[chosen] for array in arrays)
        yield tuple((t if isinstance(t, Tensor) else from_numpy(t)).to(device) for t in taken)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
