# SPDX-License-Identifier: Apache-2.0
"""Reads the files that ``torch.save`` writes, without PyTorch and without running anything.

Such a file is a zip archive: ``data.pkl``, a pickle in which each tensor names its storage, offset,
shape and strides, and an entry of raw bytes per storage. Of what a pickle may call only those names
are known here that dicts of tensors need; any other is refused before it is looked up.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._archive import Archive, Damaged, shown
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._pickled import Budget, Call, Machine, Stand, fill

_STORAGES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16",
    "IntStorage": "int32", "LongStorage": "int64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "FloatStorage": "float32", "DoubleStorage": "float64",
}  # fmt: skip
_BYTES = {kind: 2 if kind == "bfloat16" else np.dtype(kind).itemsize for kind in _STORAGES.values()}
_MOST_DIMS = 64
_CHUNK = 1 << 18  # numbers that are widened at a time


def _values(raw: np.ndarray, dtype: str) -> Tensor:
    """The elements of a storage, 1-D; they are over its bytes where their dtype allows it."""
    if dtype == "bool":
        return _ext.from_numpy(raw != 0)  # any other byte than 0 and 1 is no bool
    if dtype != "bfloat16":
        stored = raw.view(np.dtype(dtype).newbyteorder("<"))
        return _ext.from_numpy(stored.astype(dtype, copy=False))
    stored = raw.view("<u2")
    x = _C.empty([len(stored)], dtype=_ext.bfloat16)
    for at in range(0, len(stored), _CHUNK):
        upper = stored[at : at + _CHUNK].astype(np.uint32) << 16  # it is the half of a float32
        x[at : at + _CHUNK].copy_(_ext.from_numpy(upper.view(np.float32)))
    return x


def _is_shape(value: Any) -> bool:
    return (
        type(value) is tuple
        and len(value) <= _MOST_DIMS
        and all(type(n) is int and 0 <= n < 1 << 63 for n in value)
    )


def _ordered_dict(args: tuple, budget: Budget) -> collections.OrderedDict:
    made: collections.OrderedDict = collections.OrderedDict()
    if args and (len(args) > 1 or type(args[0]) not in (list, tuple)):
        raise Damaged("it makes an OrderedDict of other things than pairs")
    pairs = args[0] if args else ()
    budget.spend(len(pairs))
    for pair in pairs:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise Damaged("it makes an OrderedDict of other things than pairs")
        fill(made, list(pair), budget)
    return made


def _size(args: tuple, budget: Budget) -> tuple[int, ...]:
    if len(args) != 1 or not _is_shape(tuple(args[0]) if type(args[0]) is list else args[0]):
        raise Damaged("it holds a torch.Size of other things than sizes")
    budget.spend(len(args[0]))
    return tuple(args[0])


def _device(args: tuple, budget: Budget) -> str:
    kind, *index = args or (None,)
    if type(kind) is not str or len(index) > 1 or not _is_shape(tuple(index)):
        raise Damaged("it holds a torch.device of other things than a name and a number")
    budget.spend(len(kind))
    return ":".join(map(str, args))


def _layout(args: tuple, _: Budget) -> str:
    if len(args) != 1 or type(args[0]) is not str:
        raise Damaged("it holds a torch.layout without a name")
    return args[0]


def _rebuild_parameter(args: tuple, budget: Budget) -> Tensor:
    if len(args) < 2 or type(args[0]) is not Tensor or type(args[1]) is not bool:
        raise Damaged("it holds a parameter of other things than a tensor and a bool")
    budget.spend(args[0].dim())
    return _with_grad(args[0].detach(), args[1])


def _with_grad(x: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad and not x.dtype.is_floating_point:
        raise Damaged(f"it holds a tensor of {x.dtype.name} that requires a gradient")
    return x.requires_grad_(requires_grad)


def _rebuild_tensor(args: tuple, budget: Budget) -> Tensor:
    """A view of a storage; tensors that share a storage there share their memory here."""
    if len(args) < 5:
        raise Damaged("it holds a tensor without all of its numbers")
    storage, offset, size, stride, requires_grad = args[:5]
    if (
        type(storage) is not Stand
        or type(storage.value) is not Tensor
        or not _is_shape((offset,))
        or not _is_shape(size)
        or not _is_shape(stride)
        or len(size) != len(stride)
        or type(requires_grad) is not bool
    ):
        raise Damaged("it holds a tensor of other things than numbers")
    budget.spend(len(size))
    whole = storage.value
    if 0 in size:
        x, last = whole[:0], -1
    else:
        x = whole
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if last >= whole.numel():
        raise Damaged(f"a tensor reaches to element {last} of a storage of {whole.numel()}")
    try:
        x = x.reshape(list(size)) if 0 in size else x.as_strided(list(size), list(stride), offset)
    except (RuntimeError, ValueError, OverflowError) as error:
        raise Damaged(f"it holds a tensor that cannot be made: {error}") from error
    return _with_grad(x, requires_grad)


_CALLS = {
    ("collections", "OrderedDict"): Call(_ordered_dict),
    ("torch", "Size"): Call(_size),
    ("torch", "device"): Call(_device),
    ("torch.serialization", "_get_layout"): Call(_layout),
    ("torch._utils", "_rebuild_tensor_v2"): Call(_rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): Call(_rebuild_parameter),
}


def _find(module: str, name: str) -> Any:
    if (module, name) in _CALLS:
        return _CALLS[module, name]
    if module == "torch" and name in _STORAGES:
        return Stand(_STORAGES[name])
    if module == "torch" and isinstance(getattr(_ext, name, None), _ext.dtype):
        return getattr(_ext, name)
    what = shown(f"{module}.{name}")[1:-1]
    raise Damaged(f"it holds {what}; only dicts, lists, tuples, numbers, strings and dense tensors "
                  "are read: save a state_dict() instead")  # fmt: skip


class _Storages:
    """The storages of the file, each read once."""

    def __init__(
        self, archive: Archive, folder: str, place: Callable[[Tensor, str], Tensor]
    ) -> None:
        self._archive, self._folder, self._place = archive, folder, place
        self._known: dict[str, tuple[str, Stand]] = {}

    def find(self, pid: Any) -> Stand:
        """The storage of a persistent id: ("storage", its kind, its key, its device, its size)."""
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage":
            raise Damaged("it holds something that is stored as no storage")
        _, kind, key, location, count = pid
        if type(kind) is not Stand or type(kind.value) is not str or type(key) is not str:
            raise Damaged("it holds a storage of no kind that there is")
        if key not in self._known:
            name = f"{self._folder}data/{key}"
            empty = type(count) is int and count == 0 and name not in self._archive.entries
            raw = np.empty(0, np.uint8) if empty else self._archive.read(name)
            if type(count) is not int or count * _BYTES[kind.value] != len(raw):
                raise Damaged(f"the storage {shown(key)} has {len(raw)} bytes, and should have "
                              f"another number of {kind.value}")  # fmt: skip
            x = self._place(_values(raw, kind.value), location if type(location) is str else "cpu")
            self._known[key] = kind.value, Stand(x)
        if self._known[key][0] != kind.value:
            raise Damaged(f"the storage {shown(key)} is of two dtypes")
        return self._known[key][1]


def read(archive: Archive, folder: str, place: Callable[[Tensor, str], Tensor]) -> Any:
    """What the file holds; ``place`` puts a tensor, from a device of that name, somewhere."""
    order = f"{folder}byteorder"
    if order in archive.entries and archive.read(order).tobytes() != b"little":
        raise Damaged("its numbers are big-endian")
    pickled = archive.read(f"{folder}data.pkl").tobytes()
    return Machine(pickled, _find, _Storages(archive, folder, place).find).run()
