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
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import _serialization, _structure
from oneflow_lite._absent import public_face
from oneflow_lite._archive import Damaged
from oneflow_lite._atomic_file import delete_forgotten, replacing
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.distributed._checkpoint_files import (
    MANIFEST,
    PART,
    VERSION,
    Box,
    Files,
    Source,
    box_of,
    everywhere,
    ranks_of,
    tree_of_file,
    tree_of_folder,
)
from oneflow_lite.distributed._collectives import all_gather_object
from oneflow_lite.distributed._world import Group, get_rank, group_of
from oneflow_lite.sbp import broadcast, partial_sum

__all__ = ["load", "save", "save_whole"]

_Path = str | os.PathLike


class _Piece(NamedTuple):
    """A part of a tensor, and who has it: a place in the group."""

    owner: int
    box: Box


def _pieces(value: Tensor | np.ndarray, number: int, group: Group) -> list[_Piece]:
    """How the ranks divide the writing of a leaf: each element is one rank's."""
    if not isinstance(value, Tensor) or not value.is_global:
        return [_Piece(number % group.size, everywhere(value.shape))]  # alike on all: any will do
    pieces: dict[Box, int] = {}
    for position, rank in enumerate(ranks_of(value)):
        if rank not in group.ranks:
            raise ValueError(f"save(): a tensor lies on rank {rank} too, which is not in the group "
                             f"{list(group.ranks)}")  # fmt: skip
        pieces.setdefault(box_of(value, position), group.ranks.index(rank))
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
        "distributed": VERSION, "tree": json.dumps(tree[0]), "files": files,
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
        if PART.fullmatch(name) and name not in named:
            os.remove(os.path.join(folder, name))
    delete_forgotten(folder)


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


def _check_into(saved: Any, into: Any, path: str) -> None:
    """Raises where a tensor of ``into`` is not in a tree of sources, or cannot be filled from it.

    Nothing is written yet. What ``into`` has beside tensors need not be in the tree.
    """
    name, dot = path or "the object", path + "." if path else ""
    if isinstance(into, Tensor):
        if not isinstance(saved, Source):
            raise _other_kind(name, "a tensor", saved)
        saved.check(into, name)
    elif isinstance(into, dict):
        if not isinstance(saved, dict) and _has_tensors(into):
            raise _other_kind(name, "a dict", saved)
        for key, x in into.items():
            if isinstance(saved, dict) and key in saved:
                _check_into(saved[key], x, f"{dot}{key}")
            elif _has_tensors(x):
                raise ValueError(f"load(): the checkpoint has no {dot}{key}")
    elif isinstance(into, list | tuple):
        if isinstance(saved, list | tuple) and len(into) == len(saved):
            for i, (x, y) in enumerate(zip(saved, into, strict=True)):
                _check_into(x, y, f"{dot}{i}")
        elif _has_tensors(into):
            raise _other_kind(name, f"a {type(into).__name__} of {len(into)} items", saved)
    elif hasattr(into, "state_dict"):
        raise TypeError(f"load(): {name} is a {type(into).__name__} in into; give its state_dict()")


def _other_kind(name: str, given: str, saved: Any) -> ValueError:
    """The error for a place that has tensors in ``into`` and another structure in the file."""
    kind = type(saved).__name__
    if isinstance(saved, Source):
        kind = "tensor" if saved.is_tensor else "array"
    of = f" of {len(saved)} items" if isinstance(saved, list | tuple) else ""
    return ValueError(f"load(): {name} is {given} in into, but of kind {kind}{of} in the "
                      "checkpoint")  # fmt: skip


def _resolve(saved: Any, into: Any) -> Any:
    """The value of a tree of sources; tensors that are given are filled, and stand in it."""
    if isinstance(saved, Source):
        if isinstance(into, Tensor):
            saved.fill(into, get_rank())
            return into
        return saved.whole()
    if isinstance(saved, dict):
        given = into if isinstance(into, dict) else {}
        return {k: _resolve(x, given.get(k)) for k, x in saved.items()}
    if isinstance(saved, list | tuple):
        alike = isinstance(into, list | tuple) and len(into) == len(saved)
        given = into if alike else [None] * len(saved)
        return type(saved)(_resolve(x, y) for x, y in zip(saved, given, strict=True))
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
        A structure as the one that was saved. Each tensor in it is filled in place and takes part
        in the result: a local one as a whole, of a global one this rank's shard, of which no more
        is read than it has in common with the parts that were saved. It may have other placements
        and SBPs than were saved, another dtype, and be flat where the saved one is not. Arrays and
        numbers in it are not changed.

    Returns
    -------
    object
        What was saved; tensors for which ``into`` has none are whole, local, on the CPU.

    Raises
    ------
    ValueError
        Damaged or foreign files. By its place, a tensor of ``into`` that the checkpoint does not
        have there, or has with another shape; nothing is filled then.
    TypeError
        A module or an optimizer in ``into``, in the place of its ``state_dict()``.
    FileNotFoundError
        There is no such checkpoint.
    """
    name = os.fsdecode(os.fspath(path))
    is_file = os.path.isfile(name)
    files = Files(os.path.dirname(name) if is_file else name)
    try:
        tree = tree_of_file(name, files) if is_file else tree_of_folder(name, files)
        _check_into(tree, into, "")
        return _resolve(tree, into)
    except Damaged as error:
        raise ValueError(f"load(): {name} is no checkpoint, or is damaged: {error}") from error
    except RecursionError:
        raise ValueError(f"load(): {name} is nested too deep") from None
    finally:
        files.close()


speak_for_themselves(globals(), __all__)
__getattr__, __dir__ = public_face(__name__)
