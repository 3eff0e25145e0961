# SPDX-License-Identifier: Apache-2.0
"""The files of a checkpoint, read: where the pieces of each tensor are, checked before believed.

A manifest says which pieces there are, in which files, and where in the tensor each belongs. Here
it is held against the files: the pieces of a tensor tile it, each is as large and of the dtype that
the manifest says, and no file is named that a save does not write. So nothing is left unwritten in
what is loaded, and nothing is allocated that the files do not hold.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from typing import IO, Any

import numpy as np

from oneflow_lite import _npy, _serialization, _structure
from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._archive import Damaged, shown
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.sbp import partial_sum

MANIFEST = "manifest.npz"
VERSION = 1
PART = re.compile(r"part-[0-9a-f]{16}-\d+\.npz")
Box = tuple[tuple[int, int], ...]  # begin and end in each dim


def everywhere(shape: Iterable[int]) -> Box:
    """The box of all of a tensor."""
    return tuple((0, n) for n in shape)


def box_of(x: Tensor, position: int) -> Box:
    """What the rank at a position of the placement has of a global tensor."""
    return tuple(_ext._box_of_shard(list(x.shape), x.placement, x.sbp, position))


def ranks_of(x: Tensor) -> list[int]:
    """The ranks of a global tensor's placement, by position."""
    return np.array(x.placement.ranks).reshape(-1).tolist()


def _shape_of(box: Box) -> tuple[int, ...]:
    return tuple(high - low for low, high in box)


def _overlap(a: Box, b: Box) -> Box | None:
    common = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return common if all(low < high for low, high in common) else None


def _slices(box: Box, within: Box | None = None) -> tuple[slice, ...]:
    base = within or tuple((0, 0) for _ in box)
    return tuple(slice(low - b, high - b) for (low, high), (b, _) in zip(box, base, strict=True))


class Piece:
    """A box of a tensor, and the leaf of a file that holds it."""

    def __init__(self, box: Box, find: Callable[[], tuple[_serialization.Opened, Any]]) -> None:
        self.box = box
        self._find = find  # gives the file and the JSON of the leaf

    def size(self) -> int:
        """The bytes that the file has for it."""
        opened, node = self._find()
        return opened.size(node)

    def read(self, source: Source) -> Tensor | np.ndarray:
        """The elements, which are as many and of the dtype that the source says."""
        opened, node = self._find()
        found = opened.read(node)
        is_tensor = isinstance(found, Tensor)
        dtype = found.dtype.name if is_tensor else found.dtype.str
        if (is_tensor, dtype, tuple(found.shape)) != (
            source.is_tensor, source.dtype, _shape_of(self.box)
        ):  # fmt: skip
            raise Damaged(f"a part is of shape {list(found.shape)} and dtype {dtype}, but should be"
                          f" of {list(_shape_of(self.box))} and {source.dtype}")  # fmt: skip
        return found


class Source:
    """A leaf: the JSON that describes it, and its pieces."""

    def __init__(self, node: dict[str, Any], pieces: list[Piece]) -> None:
        self.is_tensor = "tensor" in node
        self.shape = tuple(_checked_shape(node.get("shape")))
        self.dtype, self._itemsize = _checked_dtype(node.get("dtype"), self.is_tensor)
        self.requires_grad = node.get("requires_grad", False)
        floating = self.is_tensor and getattr(_ext, self.dtype).is_floating_point
        if type(self.requires_grad) is not bool or self.requires_grad and not floating:
            raise Damaged(f"a tensor of {self.dtype} cannot require a gradient")
        self.pieces = pieces
        _check_tiles(self.shape, [piece.box for piece in pieces])
        if not self.is_tensor and len(pieces) != 1:
            raise Damaged("an array is in several parts")

    def whole(self) -> Any:
        """All of it, local; as ``flow.load`` gives it."""
        if len(self.pieces) == 1:
            found: Any = self.pieces[0].read(self)
        else:
            for piece in self.pieces:  # what is allocated is in the files
                if piece.size() < math.prod(_shape_of(piece.box)) * self._itemsize:
                    raise Damaged("a part is shorter than the manifest says")
            found = _ext._C.empty(self.shape, dtype=getattr(_ext, self.dtype))
            for piece in self.pieces:
                found[_slices(piece.box)].copy_(_tensor(piece.read(self)))
        if self.requires_grad:
            found = found.detach().requires_grad_()
        return found

    def check(self, target: Tensor, name: str) -> None:
        """ValueError, by the name of its place, for a tensor that cannot be filled from this."""
        if target.is_meta:
            raise ValueError(f"load(): {name} is a meta tensor in into, which has no data")
        if target.is_global and partial_sum in target.sbp:
            raise ValueError(f"load(): {name} is a partial sum, which cannot be loaded into")
        if tuple(target.shape) != self.shape and not self._is_flat_of(target):
            raise ValueError(f"load(): {name} has shape {list(self.shape)} in the checkpoint, but "
                             f"{list(target.shape)} here")  # fmt: skip

    def fill(self, target: Tensor, rank: int) -> None:
        """Writes into a tensor, or into the shard that this rank has of it, and reads no more.

        Precondition: ``check`` has passed.
        """
        here = target.detach()
        box: Box | None = everywhere(target.shape)
        if target.is_global:
            here, ranks = here.to_local(), ranks_of(target)
            box = box_of(target, ranks.index(rank)) if rank in ranks else None
        if box is None:  # nothing of it lies on this rank
            return
        if tuple(target.shape) == self.shape:
            for piece in self.pieces:
                if (common := _overlap(piece.box, box)) is not None:
                    part = _tensor(piece.read(self))[_slices(common, piece.box)]
                    here[_slices(common, box)].copy_(part.to(here.device))
        else:
            flat = _tensor(self.whole()).reshape(target.shape)
            here.copy_(flat[_slices(box)].to(here.device))

    def _is_flat_of(self, target: Tensor) -> bool:
        count = math.prod(self.shape)
        return target.numel() == count and 1 in (target.ndim, len(self.shape))


def _tensor(x: Tensor | np.ndarray) -> Tensor:
    return x.detach() if isinstance(x, Tensor) else _ext.from_numpy(x)


def _checked_shape(given: Any) -> list[int]:
    # More dims than NumPy has, of any size, would take long to multiply.
    if (
        not isinstance(given, list)
        or len(given) > 64
        or not all(type(n) is int and 0 <= n < 1 << 63 for n in given)
    ):
        raise Damaged("a tensor has no shape that there can be")
    return given


def _checked_dtype(given: Any, is_tensor: bool) -> tuple[str, int]:
    """The name, and the bytes of an element."""
    if type(given) is str:
        if is_tensor and isinstance(getattr(_ext, given, None), _ext.dtype):
            return given, getattr(_ext, given).itemsize
        if not is_tensor and re.fullmatch(r"[<>|][biufc]\d{1,2}", given):
            try:
                if _npy.is_numbers(dtype := np.dtype(given)):
                    return given, dtype.itemsize
            except TypeError:
                pass
    raise Damaged("a tensor has no dtype that there is")


def _check_tiles(shape: tuple[int, ...], boxes: list[Box]) -> None:
    """Raises where boxes do not make up a tensor, each element once.

    Splits cut all of a dim at the same places, so the boxes are the cells of a grid.
    """
    for box in boxes:
        if len(box) != len(shape) or not all(
            0 <= low <= high <= n for (low, high), n in zip(box, shape, strict=True)
        ):
            raise Damaged(f"a part lies outside of a tensor of shape {list(shape)}")
    cells = [box for box in boxes if 0 not in _shape_of(box)]
    cuts = [sorted({end for pair in column for end in pair}) for column in zip(*cells, strict=True)]
    next_cut = [dict(zip(at, at[1:], strict=False)) for at in cuts]
    is_grid = len(set(cells)) == len(cells) and all(
        next_cut[dim].get(low) == high for box in cells for dim, (low, high) in enumerate(box)
    )
    count = sum(math.prod(_shape_of(box)) for box in cells)
    if not boxes or not is_grid or count != math.prod(shape):
        raise Damaged(f"the parts of a tensor of shape {list(shape)} do not make it up")


class Files:
    """The files of a checkpoint, opened when first read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._streams: list[IO[bytes]] = []
        self._opened: dict[str, tuple[_serialization.Opened, Any]] = {}

    def get(self, name: str) -> tuple[_serialization.Opened, Any]:
        """A file, and its structure with the JSON of the leaves in it."""
        if name not in self._opened:
            path = os.path.join(self._folder, name)
            try:
                stream = open(path, "rb")  # noqa: SIM115 (closed by close)
            except FileNotFoundError:
                raise Damaged(f"{name}, which the manifest names, is not there") from None
            self._streams.append(stream)
            opened = _serialization.Opened(stream, path)
            nodes = _structure.Decoder(lambda node: node).decode(opened.tree)
            self._opened[name] = opened, nodes
        return self._opened[name]

    def piece(self, box: Box, name: str, leaf: str) -> Piece:
        """The piece that a leaf of a file holds."""

        def find() -> tuple[_serialization.Opened, Any]:
            opened, nodes = self.get(name)
            if not isinstance(nodes, dict) or not isinstance(nodes.get(leaf), dict):
                raise Damaged(f"{name} has no tensor {leaf}")
            return opened, nodes[leaf]

        return Piece(box, find)

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def tree_of_folder(folder: str, files: Files) -> Any:
    """The structure, with a source in the place of each tensor."""
    manifest = _serialization.load(os.path.join(folder, MANIFEST))
    version = manifest.get("distributed") if isinstance(manifest, dict) else None
    if type(version) is not int or version != VERSION:
        raise Damaged(f"{MANIFEST} is of no format that there is")
    pieces = _pieces_of(manifest, files)

    def source(node: dict[str, Any]) -> Source:
        name = node.get("tensor", node.get("array"))
        if type(name) is not str or name not in pieces:
            raise Damaged(f"{MANIFEST} has no parts of {shown(name)}, or has it twice")
        return Source(node, pieces.pop(name))

    tree = _structure.Decoder(source).decode(_parsed(manifest, "tree"))
    if pieces:
        raise Damaged(f"the structure of {MANIFEST} leaves out {shown(min(pieces))}")
    return tree


def _parsed(manifest: dict[Any, Any], key: str) -> Any:
    text = manifest.get(key)
    if type(text) is not str:
        raise Damaged(f"{MANIFEST} has no {key}")
    return _structure.parse(text.encode("utf-8", "surrogatepass"))


def _pieces_of(manifest: dict[Any, Any], files: Files) -> dict[str, list[Piece]]:
    """By the name of a leaf. Each owner has one piece of it, in a file of its own."""
    names = manifest.get("files")
    if (
        not isinstance(names, list)
        or not all(type(name) is str and PART.fullmatch(name) for name in names)
        or len(set(names)) != len(names)
    ):
        raise Damaged(f"{MANIFEST} names files that no save writes")
    pieces: dict[str, list[Piece]] = {}
    for i, (leaf, of) in enumerate(_pairs(_parsed(manifest, "pieces"))):
        if type(leaf) is not str or leaf in pieces:
            raise Damaged(f"{MANIFEST} has parts of {shown(leaf)}, or has them twice")
        found, owners = [], set()
        for owner, ends in _pairs(of):
            if type(owner) is not int or not 0 <= owner < len(names) or owner in owners:
                raise Damaged(f"{MANIFEST} has parts of {shown(leaf)} in no file")
            owners.add(owner)
            box = tuple((low, high) for low, high in _pairs(ends))
            if not all(type(end) is int for pair in box for end in pair):
                raise Damaged(f"{MANIFEST} has parts of {shown(leaf)} without a place")
            found.append(files.piece(box, names[owner], str(i)))
        pieces[leaf] = found
    return pieces


def _pairs(given: Any) -> list[Any]:
    if not isinstance(given, list) or not all(isinstance(x, list) and len(x) == 2 for x in given):
        raise Damaged(f"{MANIFEST} does not say where the parts are")
    return given


def tree_of_file(path: str, files: Files) -> Any:
    """The structure of a file that ``flow.save`` or ``save_whole`` wrote."""
    opened, _ = files.get(os.path.basename(path))

    def source(node: dict[str, Any]) -> Source:
        if "shape" not in node:  # of format 1, which said neither
            found = opened.read(node)
            node = node | {"shape": list(found.shape)}
            if not isinstance(found, Tensor):
                node["dtype"] = found.dtype.str
        box = everywhere(_checked_shape(node["shape"]))
        return Source(node, [Piece(box, lambda: (opened, node))])

    return _structure.Decoder(source).decode(opened.tree)
