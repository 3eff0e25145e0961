# SPDX-License-Identifier: Apache-2.0
"""Data sets, their parts, and batches of their items."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from oneflow_lite._oneflow_lite import _C, Generator, Tensor, float64, from_numpy, tensor


class Dataset:
    """The base of data sets; a subclass defines ``__getitem__(index)`` and ``__len__()``."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__()")


class TensorDataset(Dataset):
    """Tensors of one length; item i is a tuple with row i of each. ValueError for other lengths."""

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {len(t) for t in tensors}
        if len(lengths) != 1:
            raise ValueError(f"TensorDataset(): the tensors have the lengths {sorted(lengths)}, but"
                             " must have one")  # fmt: skip
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """The items of a data set at some places, in their order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator | None = None
) -> list[Subset]:
    """Parts of a data set that share no item, of items drawn at random.

    Parameters
    ----------
    dataset : object with a length
        Its items are not looked at.
    lengths : sequence of int or of float
        How many items each part has, or its share; what rounding leaves goes to the first parts.
    generator : Generator, optional
        By default the CPU's.

    Raises
    ------
    ValueError
        The lengths do not add up to that of the data set, nor to 1.
    """
    count, sizes = len(dataset), list(lengths)
    if sizes and min(sizes) >= 0 and max(sizes) <= 1 and math.isclose(sum(sizes), 1):
        sizes = [math.floor(count * share) for share in lengths]
        for i in range(count - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != count or any(size < 0 or size != int(size) for size in sizes):
        raise ValueError(f"random_split(): lengths are {list(lengths)}, but must add up to {count} "
                         "items, or to 1 as shares")  # fmt: skip
    order = iter(_C.randperm(count, generator=generator).tolist())
    return [Subset(dataset, [next(order) for _ in range(int(size))]) for size in sizes]


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one: tensors, arrays and numbers are stacked, within dicts and lists too.

    Tuples become lists, and texts a list of them. RuntimeError where lists differ in length,
    TypeError for what cannot be stacked.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _C.stack(list(batch))
    if isinstance(first, np.ndarray | np.generic):
        return from_numpy(np.stack(batch))
    if isinstance(first, int | float):
        return tensor(list(batch), dtype=float64 if isinstance(first, float) else None)
    if isinstance(first, str | bytes):
        return list(batch)
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, Sequence):
        if len({len(item) for item in batch}) != 1:
            raise RuntimeError("default_collate(): items of a batch are lists of different lengths")
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise TypeError("default_collate(): items must be tensors, arrays, numbers, texts, dicts or "
                    f"lists, not {type(first).__name__}")  # fmt: skip


def _rows_at(dataset: Any, places: list[int]) -> list[Tensor] | None:
    """What ``default_collate`` gives of rows of tensors, without a tensor for each row."""
    while type(dataset) is Subset:
        dataset, places = dataset.dataset, [dataset.indices[i] for i in places]
    if type(dataset) is not TensorDataset:
        return None
    index = tensor([operator.index(i) for i in places])
    return [t[index.to(t.device)] for t in dataset.tensors]


class _Shuffled:
    """All places of a data set in an order that is drawn anew each time."""

    def __init__(self, dataset: Sized, generator: Generator | None) -> None:
        self.dataset, self.generator = dataset, generator

    def __iter__(self) -> Iterator[int]:
        return iter(_C.randperm(len(self.dataset), generator=self.generator).tolist())

    def __len__(self) -> int:
        return len(self.dataset)


class DataLoader:
    """The items of a data set in batches, each time it is iterated over.

    The batches are made in this process, as they are asked for.

    Parameters
    ----------
    dataset : object with ``__getitem__`` and a length
        A :class:`Dataset`, or a list.
    batch_size : int, optional
        How many items a batch has; None for items that are no batches.
    shuffle : bool
        In another order each time.
    sampler : iterable of int, optional
        The places of the items, in its order, such as a :class:`DistributedSampler`.
    batch_sampler : iterable of list of int, optional
        The places of each batch; in place of the four others.
    num_workers : int
        0. NotImplementedError for others.
    collate_fn : callable, optional
        Makes a batch of a list of items; :func:`default_collate` where None.
    pin_memory : bool
        Taken and without effect: copies are ordered by the stream.
    drop_last : bool
        Leaves out a last batch with fewer items.
    generator : Generator, optional
        Draws the orders of ``shuffle``; by default the CPU's.

    Raises
    ------
    ValueError
        Arguments that do not go together, or a ``batch_size`` that is not positive.

    Examples
    --------
    >>> data = TensorDataset(images, labels)
    >>> for x, y in DataLoader(data, batch_size=64, shuffle=True):
    ...     loss = loss_fn(model(x), y)
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        *,
        generator: Generator | None = None,
    ) -> None:
        if num_workers != 0:
            raise NotImplementedError(f"DataLoader(): num_workers is {num_workers}, but batches are"
                                      " made in this process alone: pass 0")  # fmt: skip
        if sampler is not None and shuffle:
            raise ValueError("DataLoader(): sampler and shuffle are both given; a sampler shuffles "
                             "itself")  # fmt: skip
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("DataLoader(): beside batch_sampler there can be no batch_size, "
                                 "shuffle, sampler or drop_last")  # fmt: skip
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("DataLoader(): without a batch_size there is no last batch to drop")
        elif batch_size is not None and operator.index(batch_size) < 1:
            raise ValueError(f"DataLoader(): batch_size is {batch_size}, but it must be positive")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.batch_sampler, self.num_workers, self.generator = batch_sampler, 0, generator
        self.pin_memory, self.collate_fn = pin_memory, collate_fn
        self.sampler: Any = sampler
        if sampler is None:
            self.sampler = _Shuffled(dataset, generator) if shuffle else range(len(dataset))

    def __iter__(self) -> Iterator[Any]:
        if self.batch_sampler is None and self.batch_size is None:
            convert = self.collate_fn or _converted
            yield from (convert(self.dataset[i]) for i in self.sampler)
            return
        for places in self._places() if self.batch_sampler is None else self.batch_sampler:
            batch = _rows_at(self.dataset, list(places)) if self.collate_fn is None else None
            if batch is None:
                batch = (self.collate_fn or default_collate)([self.dataset[i] for i in places])
            yield batch

    def _places(self) -> Iterator[list[int]]:
        places: list[int] = []
        for i in self.sampler:
            places.append(i)
            if len(places) == self.batch_size:
                yield places
                places = []
        if places and not self.drop_last:
            yield places

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        count = len(self.sampler)
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _converted(item: Any) -> Any:
    """An item with its arrays as tensors."""
    if isinstance(item, np.ndarray | np.generic):
        return from_numpy(np.asarray(item))
    if isinstance(item, Mapping):
        return {key: _converted(value) for key, value in item.items()}
    if isinstance(item, tuple | list):
        parts = [_converted(value) for value in item]
        return type(item)(*parts) if hasattr(item, "_fields") else parts
    return item
