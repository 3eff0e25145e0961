# SPDX-License-Identifier: Apache-2.0
"""Reads the files that ``torch.save`` writes, without PyTorch and without running anything.

Such a file is a zip archive: ``data.pkl``, a pickle in which each tensor names its storage, offset,
shape and strides, and an entry of raw bytes per storage. Of what a pickle may call only those names
are known here that dicts of tensors need; any other is refused before it is looked up.
"""

from __future__ import annotations

import collections
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor

_STORAGES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16",
    "IntStorage": "int32", "LongStorage": "int64", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "FloatStorage": "float32", "DoubleStorage": "float64",
}  # fmt: skip
_PLAIN = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("torch", "Size"): tuple,
    ("torch", "device"): lambda *parts: ":".join(map(str, parts)),
    ("torch.serialization", "_get_layout"): str,
}


def _values(raw: bytes, dtype: str) -> Tensor:
    """The elements of a storage, 1-D."""
    if dtype != "bfloat16":
        return _ext.from_numpy(np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).astype(dtype))
    upper = np.frombuffer(raw, "<u2").astype(np.uint32) << 16  # bfloat16 is the half of a float32
    return _ext.from_numpy(upper.view(np.float32)).to(None, _ext.bfloat16)


class _Unpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, folder: str, place: Callable[..., Tensor]) -> None:
        super().__init__(archive.open(f"{folder}data.pkl"))
        self._archive, self._folder, self._place = archive, folder, place
        self._storages: dict[str, Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return _PLAIN[module, name]
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_parameter"):
            return getattr(self, name)
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        if module == "torch" and isinstance(getattr(_ext, name, None), _ext.dtype):
            return getattr(_ext, name)
        raise ValueError(f"it holds {module}.{name}; only dicts, lists, tuples, numbers, strings "
                         "and dense tensors are read: save a state_dict() instead")  # fmt: skip

    def persistent_load(self, pid: Any) -> Tensor:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, str):
            raise ValueError(f"it holds something stored as {kind!r}")
        if key not in self._storages:
            raw = self._archive.read(f"{self._folder}data/{key}") if count else b""
            self._storages[key] = self._place(_values(raw, dtype))
        return self._storages[key]

    @staticmethod
    def _rebuild_tensor_v2(
        storage: Tensor, offset: int, size: Any, stride: Any, requires_grad: bool, *_: Any
    ) -> Tensor:
        # Tensors that share a storage there share their memory here.
        x = storage.as_strided(list(size), list(stride), offset) if storage.numel() \
            else storage.reshape(list(size))  # fmt: skip
        return x.requires_grad_() if requires_grad else x

    @staticmethod
    def _rebuild_parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
        return data.requires_grad_(requires_grad)


def read(archive: zipfile.ZipFile, folder: str, place: Callable[..., Tensor]) -> Any:
    """What the file holds; ``place`` puts a tensor where it is wanted."""
    if (
        f"{folder}byteorder" in archive.namelist()
        and archive.read(f"{folder}byteorder") != b"little"
    ):
        raise ValueError("its numbers are big-endian")
    try:
        return _Unpickler(archive, folder, place).load()
    except (pickle.UnpicklingError, AttributeError, RuntimeError, EOFError) as error:
        raise ValueError(f"it is damaged ({error})") from error
