# SPDX-License-Identifier: Apache-2.0
"""``save`` and ``load``: state dicts in a file that holds data and no code.

The file is an .npz: NumPy's ``load`` opens it and finds the tensors by their names. One more entry,
``structure.json``, tells how they are nested and which are bfloat16 (stored as float32, without
loss). Loading never runs anything from the file, so files of strangers are safe to open.
PyTorch's files, which are pickles, are read by _pytorch_file.py.
"""

from __future__ import annotations

import json
import os
import zipfile
from typing import IO, Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, device

_STRUCTURE = "structure.json"
_VERSION = 1
_File = str | os.PathLike | IO[bytes]


class _Writer:
    """Turns nested values into JSON, and tensors into entries of the archive."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names: set[str] = set()

    def encode(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Tensor):
            return {
                "tensor": self._write(value, path),
                "dtype": value.dtype.name,
                "requires_grad": value.is_leaf and value.requires_grad,
            }
        dot = path + "." if path else ""
        if isinstance(value, list | tuple):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.encode(item, f"{dot}{i}") for i, item in enumerate(value)]}
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str | int) or isinstance(key, bool):
                    raise TypeError(f"save(): {path or 'the object'} has the key {key!r}; keys are "
                                    "str or int")  # fmt: skip
            return {
                "dict": [[key, self.encode(item, f"{dot}{key}")] for key, item in value.items()]
            }
        raise TypeError(f"save(): {path or 'the object'} is a {type(value).__name__}; saved are "
                        "dicts, lists and tuples of tensors, numbers, strings, None")  # fmt: skip

    def _write(self, x: Tensor, path: str) -> str:
        base = (path or "tensor").replace("/", "_")
        name, count = base, 1
        while name in self._names:  # different paths may read alike
            name, count = f"{base}~{count}", count + 1
        self._names.add(name)
        x = x.detach().cpu()
        array = (x.float() if x.dtype == _ext.bfloat16 else x).numpy()
        with self._archive.open(name + ".npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
        return name


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, where: device | str | None) -> None:
        self._archive = archive
        self._where = where

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            return self._read(value)
        if "dict" in value:
            return {key: self.decode(item) for key, item in value["dict"]}
        if "list" in value:
            return [self.decode(item) for item in value["list"]]
        return tuple(self.decode(item) for item in value["tuple"])

    def _read(self, entry: dict[str, Any]) -> Tensor:
        with self._archive.open(entry["tensor"] + ".npy") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        x = _ext.from_numpy(array)
        if entry["dtype"] == "bfloat16":
            x = x.to(_ext.bfloat16)
        if self._where is not None:
            x = x.to(self._where)
        x.requires_grad = bool(entry["requires_grad"])
        return x


def save(value: Any, file: _File) -> None:
    """Writes tensors, and dicts, lists and tuples of them, to a file.

    Parameters
    ----------
    value : dict, list, tuple, Tensor, number, str or None
        Such as a module's or an optimizer's ``state_dict()``; nested as deep as you like.
        Each tensor is written by itself: those that share memory no longer do when loaded.
    file : path or binary file
        A path is written completely or not at all.

    Raises
    ------
    TypeError
        For any other object, with its place.
    """
    if not isinstance(file, str | os.PathLike):
        _save_to(value, file)
        return
    path = os.fspath(file)
    partial = f"{path}.partial-{os.getpid()}"
    try:
        with open(partial, "wb") as stream:
            _save_to(value, stream)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def _save_to(value: Any, stream: IO[bytes]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        structure = {"oneflow_lite": _VERSION, "value": _Writer(archive).encode(value, "")}
        archive.writestr(_STRUCTURE, json.dumps(structure))


def _pytorch_folder(archive: zipfile.ZipFile) -> str | None:
    """Where in the archive is what ``torch.save`` wrote; None where it is another's."""
    found = [n for n in archive.namelist() if n.endswith("data.pkl")]
    return found[0].removesuffix("data.pkl") if len(found) == 1 else None


def _from_pytorch(
    name: str, archive: zipfile.ZipFile, folder: str, where: device | str | None
) -> Any:
    from oneflow_lite import _pytorch_file  # which most programs do without

    try:
        return _pytorch_file.read(archive, folder, lambda x: x if where is None else x.to(where))
    except (ValueError, TypeError) as error:
        raise ValueError(f"load(): {name} was written by PyTorch, but {error}") from error


def load(
    file: _File,
    device: device | str | None = None,
    *,
    map_location: device | str | None = None,
    weights_only: bool = True,
) -> Any:
    """Reads what :func:`save` wrote, or a state dict that ``torch.save`` wrote.

    Parameters
    ----------
    file : path or binary file
        Nothing in it is run. Of PyTorch's files those since 1.6 are read, with dicts, lists,
        tuples, numbers, strings and tensors in them.
    device : device or str, optional
        Where the tensors are wanted, by default the CPU; ``map_location`` is another name for it.
    weights_only : bool
        Means nothing: there is never more than data in the file.

    Returns
    -------
    object
        Of the same structure.

    Raises
    ------
    ValueError
        Where the file is neither, of a later format, or holds something else.
    """
    if not isinstance(file, str | os.PathLike) and not hasattr(file, "seek"):
        raise TypeError(f"load(): file must be a path or a binary file, not {type(file).__name__}")
    name = str(getattr(file, "name", "the file") if hasattr(file, "read") else file)
    try:
        with zipfile.ZipFile(file) as archive:
            folder = _pytorch_folder(archive)
            if folder is not None:
                return _from_pytorch(name, archive, folder, device or map_location)
            structure = json.loads(archive.read(_STRUCTURE))
            if structure["oneflow_lite"] > _VERSION:
                raise ValueError(f"load(): {name} has format {structure['oneflow_lite']}; this "
                                 f"version of oneflow_lite reads up to {_VERSION}")  # fmt: skip
            return _Reader(archive, device or map_location).decode(structure["value"])
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"load(): {name} was not written by oneflow_lite.save, or is damaged "
                         f"({error})") from error  # fmt: skip
