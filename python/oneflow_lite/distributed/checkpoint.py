# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of many ranks: a file of each, and a manifest that is written last.

>>> state = {"model": model.state_dict(), "optimizer": optimizer.split_state_dict()}
>>> checkpoint.save(state, "run/checkpoint")           # on every rank
>>> checkpoint.load("run/checkpoint", into=state)      # on as many ranks as there are then
>>> optimizer.load_state_dict(state["optimizer"])

The folder holds ``manifest.npz`` and the files that it names, each as ``flow.save`` writes it. A
save writes files of other names first, then replaces the manifest as a whole, then deletes the
files that are no longer named: whenever the processes are killed, the checkpoint is the old one or
the new one. ``save_whole`` writes one file instead, which ``flow.load`` reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from typing import IO, Any, NamedTuple

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite import _serialization, _structure
from oneflow_lite._absent import public_face
from oneflow_lite._archive import Damaged
from oneflow_lite._atomic_file import replacing
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.distributed._collectives import all_gather_object
from oneflow_lite.distributed._world import Group, group_of
from oneflow_lite.sbp import broadcast, partial_sum

__all__ = ["load", "save", "save_whole"]

MANIFEST = "manifest.npz"
_VERSION = 1
_PART = re.compile(r"part-[0-9a-f]{16}-\d+\.npz")
_Box = tuple[tuple[int, int], ...]  # begin and end in each dim
_Path = str | os.PathLike


class _Piece(NamedTuple):
    """A part of a tensor, and who has it: a place in the group."""

    owner: int
    box: _Box


def _everywhere(shape: Iterable[int]) -> _Box:
    return tuple((0, n) for n in shape)


def _box_of(x: Tensor, position: int) -> _Box:
    return tuple(_ext._box_of_shard(list(x.shape), x.placement, x.sbp, position))


def _positions(x: Tensor) -> list[int]:
    ranks = np.array(x.placement.ranks).reshape(-1)
    return ranks.tolist()


def _pieces(value: Tensor | np.ndarray, number: int, group: Group) -> list[_Piece]:
    """How the ranks divide the writing of a leaf: each element is one rank's."""
    if not isinstance(value, Tensor) or not value.is_global:
        return [_Piece(number % group.size, _everywhere(value.shape))]  # alike on all: any will do
    pieces: dict[_Box, int] = {}
    for position, rank in enumerate(_positions(value)):
        if rank not in group.ranks:
            raise ValueError(f"save(): a tensor lies on rank {rank} too, which is not in the group "
                             f"{list(group.ranks)}")  # fmt: skip
        pieces.setdefault(_box_of(value, position), group.ranks.index(rank))
    return [_Piece(owner, box) for box, owner in pieces.items()]


def _whole_sums(leaf: _structure.Leaf) -> _structure.Leaf:
    """A partial sum as what it is the sum to: no file has a rank's term."""
    x = leaf.value
    if isinstance(x, Tensor) and x.is_global and partial_sum in x.sbp:
        return leaf._replace(value=x.to_global(sbp=[broadcast] * len(x.sbp)))
    return leaf


class _Agreement:
    """Steps that succeed on all ranks, or raise on all."""

    def __init__(self, function: str, group: Group | None) -> None:
        self.group = group_of(function, group)
        self._function = function

    def step(self, work: Callable[[], Any]) -> list[Any]:
        """What ``work`` gives on each rank."""
        error = result = None
        try:
            result = work()
        except Exception as e:  # told to the others before it is raised
            error = e
        everyone: list[Any] = [None] * self.group.size
        text = None if error is None else f"{type(error).__name__}: {error}"
        all_gather_object(everyone, (text, result), self.group)
        if error is not None:
            raise error
        for rank, (other, _) in zip(self.group.ranks, everyone, strict=True):
            if other is not None:
                raise RuntimeError(f"{self._function}(): on rank {rank}: {other}")
        return [result for _, result in everyone]

    def compare(self, given: list[str]) -> None:
        """Raises where the ranks do not save the same tensors."""
        for rank, other in zip(self.group.ranks, given, strict=True):
            if other != given[0]:
                raise ValueError(f"{self._function}(): ranks {self.group.ranks[0]} and {rank} save "
                                 "tensors of other names, shapes, dtypes or places")  # fmt: skip


def _signature(leaves: list[_structure.Leaf]) -> str:
    """What must be alike on all ranks."""
    digest = hashlib.sha256()
    for name, value, node in leaves:
        at = (value.placement, value.sbp) if isinstance(value, Tensor) and value.is_global else ()
        digest.update(repr((name, node.get("dtype"), node["shape"], at)).encode())
    return digest.hexdigest()


@no_grad()
def save(value: Any, folder: _Path, group: Group | None = None) -> None:
    """Writes what ``flow.save`` writes, each rank its part; all ranks of the group call it.

    Parameters
    ----------
    value : dict, list, tuple, Tensor, array, number, str or None
        Of the same tensors on all ranks. Of a global tensor each rank writes its shard, and
        nothing is gathered. A local tensor, an array or a number is taken to be alike on all
        ranks: one of them writes it. What differs, such as a generator's state, put under a key
        of each rank with ``all_gather_object``.
    folder : path
        Seen by all ranks; made if it is not there. Nothing else saves to it at the same time.
    group : Group, optional
        Who saves; all where None.

    Raises
    ------
    TypeError, ValueError, OSError
        As ``flow.save`` raises them, on every rank (as RuntimeError on those that did not meet
        it); the checkpoint that was there is still there.
    """
    agreement = _Agreement("save", group)
    members, path = agreement.group, os.fspath(folder)

    def prepare() -> tuple[str, str]:
        os.makedirs(path, exist_ok=True)
        return _signature(leaves_of()), os.urandom(8).hex()

    encoder = _structure.Encoder()
    tree: list[Any] = []

    def leaves_of() -> list[_structure.Leaf]:
        tree.append(encoder.encode(value))
        return encoder.leaves

    prepared = agreement.step(prepare)
    agreement.compare([signature for signature, _ in prepared])
    leaves = [_whole_sums(leaf) for leaf in encoder.leaves]
    pieces = [_pieces(leaf.value, i, members) for i, leaf in enumerate(leaves)]
    files = [f"part-{prepared[0][1]}-{i}.npz" for i in range(members.size)]
    mine = os.path.join(path, files[members.rank])
    agreement.step(lambda: _serialization.save(_parts_of(leaves, pieces, members.rank), mine))
    manifest = {
        "distributed": _VERSION, "tree": json.dumps(tree[0]), "files": files,
        "pieces": json.dumps([[leaf.name, pieces[i]] for i, leaf in enumerate(leaves)]),
    }  # fmt: skip
    where = os.path.join(path, MANIFEST)
    agreement.step(lambda: _serialization.save(manifest, where) if members.rank == 0 else None)
    agreement.step(lambda: _tidy(path, set(files)) if members.rank == 0 else None)


def _parts_of(
    leaves: list[_structure.Leaf], pieces: list[list[_Piece]], rank: int
) -> dict[str, Tensor | np.ndarray]:
    """What a rank writes, by the number of the leaf."""
    parts = {}
    for i, (leaf, of) in enumerate(zip(leaves, pieces, strict=True)):
        if rank in [piece.owner for piece in of]:
            x = leaf.value
            is_global = isinstance(x, Tensor) and x.is_global
            parts[str(i)] = x.detach().to_local() if is_global else x
    return parts


def _tidy(folder: str, named: set[str]) -> None:
    """Deletes the files of older manifests, and of saves that were killed."""
    for name in os.listdir(folder):
        if _PART.fullmatch(name) and name not in named:
            os.remove(os.path.join(folder, name))


@no_grad()
def save_whole(value: Any, file: _Path, group: Group | None = None) -> None:
    """Writes one file, as ``flow.save`` does on one process; all ranks of the group call it.

    The group's first rank writes it, one tensor after another: it holds no more than the largest
    as a whole. Arguments and errors are as for :func:`save`; ``flow.load`` and :func:`load` read
    it.
    """
    agreement = _Agreement("save_whole", group)
    encoder = _structure.Encoder()
    tree: list[Any] = []

    def prepare() -> str:
        tree.append(encoder.encode(value))
        return _signature(encoder.leaves)

    agreement.compare(agreement.step(prepare))

    def write() -> None:
        if agreement.group.rank == 0:
            with replacing(file) as stream:
                _serialization.write(tree[0], encoder.leaves, stream)
            return
        for leaf in encoder.leaves:  # those of which the writer needs the rest
            if isinstance(leaf.value, Tensor) and leaf.value.is_global:
                _serialization.array_of_tensor(leaf.value)

    agreement.step(write)


# Loading.


class _Source:
    """The pieces of a leaf: where each lies, and how it is read."""

    def __init__(self, node: dict[str, Any], pieces: list[tuple[_Box, Callable[[], Any]]]) -> None:
        self.shape = tuple(node["shape"])
        self.pieces = pieces
        self.is_tensor = "tensor" in node
        self.requires_grad = bool(node.get("requires_grad"))

    def whole(self) -> Any:
        """All of it, local; as ``flow.load`` gives it."""
        if [box for box, _ in self.pieces] == [_everywhere(self.shape)]:
            found = self.pieces[0][1]()
        else:
            found = None
            for box, read in self.pieces:
                part = _tensor(read())
                if found is None:
                    found = part.new_empty(self.shape)
                found[_slices(box)].copy_(part)
        if self.requires_grad:
            found = found.detach().requires_grad_()
        return found

    def fill(self, target: Tensor, name: str) -> None:
        """Writes into a tensor, or into the shard that this rank has of it, and reads no more."""
        here = target.detach()
        box: _Box | None = _everywhere(target.shape)
        if target.is_global:
            if partial_sum in target.sbp:
                raise ValueError(f"load(): {name} is a partial sum, which cannot be loaded into")
            here, ranks, rank = here.to_local(), _positions(target), _ext.distributed_rank()
            box = _box_of(target, ranks.index(rank)) if rank in ranks else None
        alike = tuple(target.shape) == self.shape
        if not alike and not self._is_flat_of(target):
            raise ValueError(f"load(): {name} has shape {list(self.shape)} in the checkpoint, but "
                             f"{list(target.shape)} here")  # fmt: skip
        if box is None:  # nothing of it lies on this rank
            return
        if alike:
            for place, read in self.pieces:
                if (common := _overlap(place, box)) is not None:
                    part = _tensor(read())[_slices(common, place)]
                    here[_slices(common, box)].copy_(part.to(here.device))
        else:
            flat = _tensor(self.whole()).reshape(target.shape)
            here.copy_(flat[_slices(box)].to(here.device))

    def _is_flat_of(self, target: Tensor) -> bool:
        count = int(np.prod(self.shape, dtype=np.int64))
        return target.numel() == count and 1 in (target.ndim, len(self.shape))


def _tensor(x: Tensor | np.ndarray) -> Tensor:
    return x.detach() if isinstance(x, Tensor) else _ext.from_numpy(x)


def _overlap(a: _Box, b: _Box) -> _Box | None:
    common = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return common if all(low < high for low, high in common) else None


def _slices(box: _Box, within: _Box | None = None) -> tuple[slice, ...]:
    base = within or tuple((0, 0) for _ in box)
    return tuple(slice(low - b, high - b) for (low, high), (b, _) in zip(box, base, strict=True))


class _Files:
    """The files of a checkpoint, opened when first read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._streams: list[IO[bytes]] = []
        self._opened: dict[str, tuple[_serialization.Opened, dict[str, Any]]] = {}

    def get(self, name: str) -> tuple[_serialization.Opened, dict[str, Any]]:
        """A file, and the JSON of its leaves by their names."""
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

    def reader(self, name: str, leaf: str) -> Callable[[], Any]:
        def read() -> Any:
            opened, nodes = self.get(name)
            if leaf not in nodes:
                raise Damaged(f"{name} has no tensor {leaf}")
            return opened.read(nodes[leaf])

        return read

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def _tree_of_folder(folder: str, files: _Files) -> Any:
    """The structure, with a source in the place of each tensor."""
    manifest = _serialization.load(os.path.join(folder, MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("distributed") != _VERSION:
        raise Damaged(f"{MANIFEST} is of no format that there is")
    pieces = {}
    for i, (leaf, of) in enumerate(json.loads(manifest["pieces"])):
        pieces[leaf] = [(tuple((low, high) for low, high in box),
                         files.reader(manifest["files"][owner], str(i)))
                        for owner, box in of]  # fmt: skip

    def source(node: dict[str, Any]) -> _Source:
        return _Source(node, pieces[node.get("tensor") or node["array"]])

    return _structure.Decoder(source).decode(json.loads(manifest["tree"]))


def _tree_of_file(path: str, files: _Files) -> Any:
    opened, _ = files.get(os.path.basename(path))

    def source(node: dict[str, Any]) -> _Source:
        return _Source(node, [(_everywhere(node["shape"]), lambda: opened.read(node))])

    return _structure.Decoder(source).decode(opened.tree)


def _resolve(saved: Any, into: Any, path: str) -> Any:
    """The value of a tree of sources; tensors that are given are filled, and stand in it."""
    name = path or "the object"
    if isinstance(saved, _Source):
        if isinstance(into, Tensor):
            saved.fill(into, name)
            return into
        return saved.whole()
    dot = path + "." if path else ""
    if isinstance(saved, dict):
        given = into if isinstance(into, dict) else {}
        if missing := [key for key, x in given.items() if key not in saved and _has_tensors(x)]:
            raise ValueError(f"load(): the checkpoint has no {dot}{missing[0]}")
        return {k: _resolve(x, given.get(k), f"{dot}{k}") for k, x in saved.items()}
    if isinstance(saved, list | tuple):
        alike = isinstance(into, list | tuple) and len(into) == len(saved)
        given = into if alike else [None] * len(saved)
        return type(saved)(
            _resolve(x, y, f"{dot}{i}") for i, (x, y) in enumerate(zip(saved, given, strict=True))
        )
    return saved


def _has_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_tensors, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_tensors, value))
    return isinstance(value, Tensor)


@no_grad()
def load(path: _Path, into: Any = None) -> Any:
    """Reads a checkpoint of any number of ranks, or a file of ``save_whole`` or ``flow.save``.

    Nobody waits for anybody: a rank reads what it wants, by itself.

    Parameters
    ----------
    path : path
        The folder, or the file.
    into : object, optional
        A structure as the one that was saved. A tensor in it is filled in place and takes part in
        the result: a local one as a whole, of a global one this rank's shard, of which no more is
        read than it has in common with the parts that were saved. It may have other placements and
        SBPs than were saved, another dtype, and be flat where the saved one is not.

    Returns
    -------
    object
        What was saved; tensors for which ``into`` has none are whole, local, on the CPU.

    Raises
    ------
    ValueError
        Damaged or foreign files; a shape that differs; a tensor of ``into`` that is missing, by
        its place.
    FileNotFoundError
        There is no such checkpoint.
    """
    name = os.fsdecode(os.fspath(path))
    is_file = os.path.isfile(name)
    files = _Files(os.path.dirname(name) if is_file else name)
    try:
        tree = _tree_of_file(name, files) if is_file else _tree_of_folder(name, files)
        return _resolve(tree, into, "")
    except (Damaged, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"load(): {name} is no checkpoint, or is damaged: {error}") from error
    finally:
        files.close()


__getattr__, __dir__ = public_face(__name__)
