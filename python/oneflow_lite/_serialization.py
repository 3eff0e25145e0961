# SPDX-License-Identifier: Apache-2.0
"""``save`` and ``load``: state dicts in a file that holds data and no code.

The file is an .npz: NumPy's ``load`` opens it and finds the tensors by their names. One more entry,
``structure.json``, tells how they are nested and which are bfloat16 (stored as float32, without
loss). Loading never runs anything from the file, so files of strangers are safe to open.

Since format 2 the structure gives each tensor's shape, dtype and the CRC-32 of its entry, header
included, and begins with a SHA-256 of itself; what is loaded was compared with both. Format 1,
which had neither, is read too. _sharing.py tells which tensors share memory. PyTorch's files, which
are pickles, are read by _pytorch_file.py.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

from oneflow_lite import _npy, _sharing, _structure, sbp
from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._archive import Archive, Damaged, Entry
from oneflow_lite._atomic_file import replacing
from oneflow_lite._oneflow_lite import Tensor, device
from oneflow_lite._structure import ENTRY

_VERSION = 2
_SEALED = re.compile(
    rb'\{"oneflow_lite": 2, "sha256": "([0-9a-f]{64})", "value": (.*)\}', re.DOTALL
)
_LARGE = 1 << 30  # bytes from which an entry is written as zip's format for large files wants it
_File = str | os.PathLike | IO[bytes]


def save(
    obj: Any,
    f: _File,
    pickle_module: Any = None,
    pickle_protocol: int | None = None,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Writes tensors, and dicts, lists and tuples of them, to a file.

    Parameters
    ----------
    obj : dict, list, tuple, Tensor, array, number, str or None
        Such as a module's or an optimizer's ``state_dict()``, nested up to 128 deep. Each tensor
        is written by itself. When loaded, one that was there twice is one again, and those that
        lay within the memory of another one, which was contiguous, share it. NumPy arrays of
        numbers are loaded as arrays, NumPy's scalars as Python numbers, subclasses of the types
        above as these types; but an array with more than its elements, such as a mask, is refused.
    f : path or binary file
        A path is written completely or not at all, whatever ends the program and whoever else
        writes to it: to a file beside it that then takes its place. A symbolic link, a device and
        a FIFO stay what they are; a file's mode stays too.
    pickle_module, pickle_protocol, _use_new_zipfile_serialization
        PyTorch's arguments, which mean nothing: nothing is pickled.

    Raises
    ------
    TypeError
        For any other object, with its place. Of a module or an optimizer save the
        ``state_dict()``.
    ValueError
        For strings with NUL or half of a surrogate pair in them, for what contains itself or is
        nested deeper, for meta tensors, with their place; for a file that is closed or cannot be
        written.
    OSError
        What the system says of the path; the file that was there is still there.
    """
    encoder = _structure.Encoder()
    tree = encoder.encode(obj)  # before anything is written
    _sharing.note(encoder.leaves)
    if isinstance(f, str | os.PathLike):
        with replacing(f) as stream:
            write(tree, encoder.leaves, stream)
        return
    _check_stream("save", f, "write")
    write(tree, encoder.leaves, f)


class _Sink:
    """Takes bytes for a stream that it never asks where it stands, so that any will do.

    A raw file may write less than it is given. After an error nothing more is written.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream: IO[bytes] | None = stream

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        while self._stream is not None and len(left):
            stream, self._stream = self._stream, None
            n = stream.write(left)
            if n is None and isinstance(stream, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "save(): the file would block")
            n = len(left) if n is None else n
            if not isinstance(n, int) or not 0 < n <= len(left):
                raise OSError(errno.EIO, f"save(): write() of the file gave {n!r} for {len(left)} "
                                         "bytes")  # fmt: skip
            left = left[n:]
            self._stream = stream
        return len(data)

    def end(self) -> None:
        """What is written from now on goes nowhere."""
        self._stream = None

    def flush(self) -> None:
        if self._stream is not None and hasattr(self._stream, "flush"):
            self._stream.flush()


def write(tree: Any, leaves: list[_structure.Leaf], stream: IO[bytes]) -> None:
    with _archive_in(stream) as archive:
        for name, value, node in leaves:
            array = array_of_tensor(value) if isinstance(value, Tensor) else value
            with archive.open(name + ".npy", "w", force_zip64=array.nbytes >= _LARGE) as entry:
                for part in _npy.parts(array):
                    entry.write(part)
            node["crc32"] = archive.getinfo(name + ".npy").CRC
        text = json.dumps(tree, allow_nan=False).encode()
        seal = hashlib.sha256(text).hexdigest()
        with archive.open(ENTRY, "w", force_zip64=len(text) >= _LARGE) as entry:
            entry.write(b'{"oneflow_lite": 2, "sha256": "%s", "value": ' % seal.encode())
            entry.write(text + b"}")


@contextlib.contextmanager
def _archive_in(stream: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    """An archive that is ended where its block ends, and left as it is where the block raises.

    ZipFile's own block ends it in both cases. Where an entry was being opened, that raises a
    ValueError in place of what the block raised: a KeyboardInterrupt would be lost.
    """
    sink = _Sink(stream)
    archive = zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED)
    try:
        yield archive
        archive.close()
    except BaseException:
        sink.end()
        archive.fp = None  # to ZipFile it is closed
        raise


def array_of_tensor(x: Tensor) -> np.ndarray:
    """As it is stored; of a global tensor the whole, which is a collective."""
    x = x.detach()
    if x.is_global:
        x = x.to_global(sbp=[sbp.broadcast] * len(x.placement.shape)).to_local()
    x = x.cpu()
    return np.asarray((x.float() if x.dtype == _ext.bfloat16 else x).numpy())


_Place = Callable[[Tensor, str], Tensor]  # of a tensor in host memory, and where it was


def _as_it_is(x: Tensor, location: str) -> Tensor:
    return x


def _placing(map_location: Any) -> _Place:
    """How tensors come to where they are wanted; TypeError for what says nothing of that."""
    if map_location is None:
        return _as_it_is
    if isinstance(map_location, Mapping):
        known = {str(name): _placing(place) for name, place in map_location.items()}
        return lambda x, location: known.get(location, _as_it_is)(x, location)
    if callable(map_location):

        def placed(x: Tensor, location: str) -> Tensor:
            found = map_location(x, location)
            if not isinstance(found, Tensor | None):
                raise TypeError("load(): map_location must give what it was given, somewhere, or "
                                f"None, not {type(found).__name__}")  # fmt: skip
            return x if found is None else found

        return placed
    if not isinstance(map_location, str | int | _ext.device):
        raise TypeError("load(): map_location must be a device, a dict of names of devices or a "
                        f"function, not {type(map_location).__name__}")  # fmt: skip
    where = _ext.device(map_location)
    return lambda x, location: x.to(where)


def load(
    f: _File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    device: device | str | None = None,
) -> Any:
    """Reads what :func:`save` wrote, or a state dict that ``torch.save`` wrote.

    Parameters
    ----------
    f : path or binary file
        Nothing in it is run, and nothing in it is believed that a checksum does not cover: a
        damaged file is an error. It takes no more memory than a small multiple of its size. Of
        PyTorch's files those since 1.6 are read, with dicts, lists, tuples, numbers, strings and
        tensors in them.
    map_location : device, str, dict or callable, optional
        Where the tensors are wanted, by default the CPU; ``device`` is another name for it. A dict
        has the wanted place for the names of places where tensors were (``{"cuda:0": "cpu"}``). A
        function gets what lies in host memory and that name, and gives it where it is wanted, or
        None. Our own files do not tell where tensors were: the name is "cpu".
    pickle_module, weights_only, mmap
        Mean nothing: there is never more than data in the file, and it is read as a whole.

    Returns
    -------
    object
        Of the same structure.

    Raises
    ------
    ValueError
        Where the file is neither, is damaged, of a later format, or holds something else, with its
        name and the reason; where it is closed or cannot seek.
    OSError
        What the system says of the path.
    """
    place = _placing(map_location if device is None else device)
    with _opened(f) as (stream, name):
        try:
            return _read(stream, place, name)
        except Damaged as error:
            raise ValueError(f"load(): {name} was not written by oneflow_lite.save, or is damaged: "
                             f"{error}") from error  # fmt: skip
        except RecursionError:
            raise ValueError(f"load(): {name} is nested too deep") from None


@contextlib.contextmanager
def _opened(file: _File) -> Iterator[tuple[IO[bytes], str]]:
    """The stream, and its name for messages."""
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as stream:
            _check_stream("load", stream, "seek", os.fsdecode(os.fspath(file)))
            yield stream, os.fsdecode(os.fspath(file))
        return
    _check_stream("load", file, "seek")
    yield file, str(getattr(file, "name", "the file"))


def _check_stream(function: str, file: Any, need: str, name: str = "the file") -> None:
    if not hasattr(file, need) or need == "seek" and not hasattr(file, "read"):
        raise TypeError(f"{function}(): file must be a path or a binary file, not "
                        f"{type(file).__name__}")  # fmt: skip
    if isinstance(file, io.TextIOBase) or hasattr(file, "encoding"):
        raise TypeError(f"{function}(): file must be a path or a binary file, not one in text mode")
    if getattr(file, "closed", False):
        raise ValueError(f"{function}(): {name} is closed")
    able, verb = ("seekable", "seek") if need == "seek" else ("writable", "be written")
    if hasattr(file, able) and not getattr(file, able)():
        hint = "; give io.BytesIO(file.read())" if need == "seek" else ""
        raise ValueError(f"{function}(): {name} cannot {verb}{hint}")


def _read(stream: IO[bytes], place: _Place, name: str) -> Any:
    archive = Archive(stream)
    if ENTRY not in archive.entries:
        return _from_pytorch(archive, place, name)
    tree, sealed = _tree_of(archive, name)
    leaves = _Leaves(archive, place, sealed)
    joined = _sharing.Joined(leaves.read)
    value = _structure.Decoder(joined.read).decode(tree)
    leaves.check_all_read()
    joined.join()
    return value


class Opened:
    """A file of :func:`save`, of which tensors are read one by one.

    ``tree`` is its JSON, for a ``Decoder``; ``read(node)`` gives the tensor or array of a leaf.
    What is damaged raises ``Damaged``.
    """

    def __init__(self, stream: IO[bytes], name: str) -> None:
        archive = Archive(stream)
        self.tree, sealed = _tree_of(archive, name)
        self._leaves = _Leaves(archive, _as_it_is, sealed)

    def read(self, node: dict[str, Any]) -> Tensor | np.ndarray:
        """May be called again for a leaf."""
        return self._leaves.read(node, once=False)

    def size(self, node: dict[str, Any]) -> int:
        """The bytes of a leaf's entry, which are there."""
        return self._leaves.entry(node)[1].size


def _tree_of(archive: Archive, name: str) -> tuple[Any, bool]:
    """The JSON of the structure, and whether checksums go with it."""
    text = archive.read(ENTRY).tobytes()
    sealed = _SEALED.fullmatch(text)
    if sealed is not None:
        if hashlib.sha256(sealed[2]).hexdigest().encode() != sealed[1]:
            raise Damaged("its structure has another SHA-256 than it says")
        tree = _structure.parse(sealed[2])
    else:
        whole = _structure.parse(text)
        version = whole.get("oneflow_lite") if isinstance(whole, dict) else None
        if type(version) is int and version > _VERSION:
            raise ValueError(f"load(): {name} has format {version}; this version of oneflow_lite "
                             f"reads up to {_VERSION}")  # fmt: skip
        if type(version) is not int or version != 1 or "value" not in whole:
            raise Damaged("its structure is of no format that there is")
        tree = whole["value"]
    return tree, sealed is not None


class _Leaves:
    """Reads the tensors and arrays of an archive, each once."""

    def __init__(self, archive: Archive, place: _Place, sealed: bool) -> None:
        self._archive, self._place, self._sealed = archive, place, sealed
        self._left = set(archive.entries) - {ENTRY}

    def entry(self, node: dict[str, Any]) -> tuple[str, Entry]:
        """The name and the place of a leaf that was not read yet."""
        name = f"{node.get('tensor', node.get('array'))}.npy"
        if name not in self._left:
            raise Damaged(f"there is no entry {_structure.shown(name)}, or two tensors are in it")
        return name, self._archive.entries[name]

    def read(self, node: dict[str, Any], once: bool = True) -> Tensor | np.ndarray:
        name, entry = self.entry(node)
        if once:
            self._left.remove(name)
        if self._sealed and entry.crc != node.get("crc32"):
            raise Damaged(f"the entry {_structure.shown(name)} is not the one that was saved")
        array = _npy.array_of(self._archive.read(name))
        if self._sealed and list(array.shape) != node.get("shape"):
            raise Damaged(f"{_structure.shown(name)} has the shape {list(array.shape)}")
        if "tensor" not in node:
            if array.dtype.str != node.get("dtype"):
                raise Damaged(f"{_structure.shown(name)} has the dtype {array.dtype.name}")
            return array
        x = self._place(_structure.tensor_of(array, node), "cpu")
        if node["requires_grad"]:
            if not x.dtype.is_floating_point:
                raise Damaged(f"{_structure.shown(name)} requires a gradient as {x.dtype.name}")
            x.requires_grad_()
        return x

    def check_all_read(self) -> None:
        if self._left:
            raise Damaged(f"its structure leaves out the entry {_structure.shown(min(self._left))}")


def _from_pytorch(archive: Archive, place: _Place, name: str) -> Any:
    found = [n for n in archive.entries if n.rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise Damaged(f"it holds no {ENTRY}, and is no file of PyTorch either")
    from oneflow_lite import _pytorch_file  # which most programs do without

    folder = found[0].removesuffix("data.pkl")
    try:
        return _pytorch_file.read(archive, folder, place)
    except Damaged as error:
        raise ValueError(f"load(): {name} was written by PyTorch, but {error}") from error
