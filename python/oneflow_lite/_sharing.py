# SPDX-License-Identifier: Apache-2.0
"""Tensors of a file that share memory: noted when they are saved, joined when they are loaded.

Each tensor has its own entry all the same, so that NumPy finds it by its name, and so do versions
that know nothing of this. The JSON of a tensor that lies in another one's memory has ``within``:
the other's name, an offset and strides, in elements of what the other's entry holds; or None in
place of the strides, where it is all of the other one. That of a tensor which is an earlier one has
``same``, the earlier one's name.

>>> flow.save({"embedding": w, "head": w, "first": w[0]}, "model.npz")
>>> state = flow.load("model.npz")
>>> state["head"] is state["embedding"]
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from oneflow_lite._archive import Damaged, shown
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite._structure import Leaf


class _Memory(NamedTuple):
    """The bytes between a tensor's first and last element, and the leaf."""

    start: int
    end: int
    leaf: Leaf


def note(leaves: Iterable[Leaf]) -> None:
    """Writes into the JSON of tensors which others they are, or lie within.

    Noted is a tensor within the memory of a contiguous one of its dtype, and one with the place and
    the strides of an earlier one.
    """
    first: dict[int, str] = {}
    places: dict[tuple[Any, ...], Leaf] = {}
    again: list[tuple[Leaf, Leaf]] = []
    memories = []
    for leaf in leaves:
        x = leaf.value
        if not isinstance(x, Tensor):
            continue
        if id(x) in first:
            leaf.node["same"] = first[id(x)]
            continue
        first[id(x)] = leaf.name
        if x.is_global or x.numel() == 0:
            continue
        start, strides = x.data_ptr(), list(x.stride())
        place = (x.device, x.dtype, start, tuple(x.shape), tuple(strides))
        if place in places:
            again.append((leaf, places[place]))
            continue
        places[place] = leaf
        last = sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True))
        memories.append(_Memory(start, start + (last + 1) * x.dtype.itemsize, leaf))
    _note_views(memories)
    for leaf, other in again:
        leaf.node["within"] = other.node.get("within", [other.name, 0, None])


def _note_views(memories: list[_Memory]) -> None:
    """Of each tensor that lies within a contiguous one; of several, the one that begins first."""
    # At one place the longest, and what is contiguous, comes first.
    memories.sort(key=lambda m: (m.start, -m.end, not m.leaf.value.is_contiguous()))
    around: _Memory | None = None
    for memory in memories:
        x = memory.leaf.value
        if around is not None and memory.end <= around.end:
            base, size = around.leaf.value, x.dtype.itemsize
            offset = memory.start - around.start
            if (x.dtype, x.device) == (base.dtype, base.device) and offset % size == 0:
                memory.leaf.node["within"] = [around.leaf.name, offset // size, list(x.stride())]
        elif x.is_contiguous():
            around = memory


class Joined:
    """Reads leaves by ``read``, and lets those share memory whose JSON says so.

    ``read`` is for a ``Decoder``; ``join`` comes when all were read.
    """

    def __init__(self, read: Callable[[dict[str, Any]], Any]) -> None:
        self._read = read
        self._made: dict[str, Any] = {}
        self._within: list[tuple[Tensor, Any]] = []

    def read(self, node: dict[str, Any]) -> Any:
        """The tensor or array of a leaf."""
        found = self._read(node)
        if not isinstance(found, Tensor):
            return found
        if "same" in node:
            return self._other(node["same"])
        self._made[node["tensor"]] = found
        if "within" in node:
            self._within.append((found, node["within"]))
        return found

    def join(self) -> None:
        """Gives the tensors that lie within others the others' memory.

        Where a function of ``map_location`` has put the two apart, or has changed one, they stay
        apart.
        """
        for x, within in self._within:
            if not isinstance(within, list) or len(within) != 3:
                raise Damaged("it does not say where a tensor lies in another one")
            name, offset, strides = within
            base = self._other(name)
            alike = strides is None and offset == 0 and x.shape == base.shape
            if not alike and not _is_place(offset, strides, x, base):
                raise Damaged(f"a tensor lies outside of {shown(name)}, or not in its elements")
            if base.dtype is x.dtype and base.device == x.device:
                if alike:
                    x.data = base.detach()
                elif base.is_contiguous():
                    x.data = base.detach().as_strided(x.shape, strides, offset)

    def _other(self, name: Any) -> Tensor:
        if type(name) is not str or name not in self._made:
            raise Damaged(f"there is no tensor {shown(name)} that another one could lie in")
        return self._made[name]


def _is_place(offset: Any, strides: Any, x: Tensor, base: Tensor) -> bool:
    """Whether these are an offset and strides of x's elements in those of base."""
    if not isinstance(strides, list) or len(strides) != x.ndim:
        return False
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in (offset, *strides)):
        return False
    return offset + sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True)) < base.numel()
