# SPDX-License-Identifier: Apache-2.0
"""Nested values as JSON, with the tensors and arrays in them set aside, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite import _npy
from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._archive import Damaged, shown
from oneflow_lite._oneflow_lite import Tensor

ENTRY = "structure.json"
_DEEPEST = 128  # lists in lists; JSON nests three times as deep, within Python's limit of 1000
_LONGEST = 200  # bytes of an entry's name
_WORD = 1 << 63
_BARE = (np.ndarray, np.memmap, np.matrix, np.recarray)  # arrays that are their elements alone
_ODD_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": -float("inf")}


class Leaf(NamedTuple):
    """A tensor or an array, the name of its entry, and its JSON, which gets the CRC-32 later."""

    name: str
    value: Tensor | np.ndarray
    node: dict[str, Any]


class Encoder:
    """Turns a value into JSON and collects its leaves; writes nothing.

    Raises
    ------
    TypeError
        For what cannot be saved, with its place.
    ValueError
        For values of a type that is saved which cannot be: the same.
    """

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self._names = {ENTRY}  # which NumPy finds under its whole name
        self._inside: set[int] = set()  # the containers around the value

    def encode(self, value: Any, path: str = "") -> Any:
        """The JSON of the value that lies at a path such as ``model.0``."""
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            value = value.item()
        if isinstance(value, str):
            return _text(value, path)
        if value is None or isinstance(value, bool | int | float):
            return _number(value)
        if isinstance(value, Tensor | np.ndarray):
            return self._leaf(value, path)
        if isinstance(value, list | tuple | dict):
            return self._container(value, path)
        raise _unsaved(value, path)

    def _container(self, value: list | tuple | dict, path: str) -> Any:
        if id(value) in self._inside:
            raise ValueError(f"save(): {_place(path)} contains itself")
        if len(self._inside) == _DEEPEST:
            raise ValueError(f"save(): {_place(path)} lies in more than {_DEEPEST} dicts, lists "
                             "and tuples")  # fmt: skip
        self._inside.add(id(value))
        dot = path + "." if path else ""
        if isinstance(value, dict):
            items = [(_key(key, path), item) for key, item in list(value.items())]
            node = {"dict": [[key, self.encode(item, f"{dot}{key}")] for key, item in items]}
        else:
            kind = "list" if isinstance(value, list) else "tuple"
            node = {kind: [self.encode(item, f"{dot}{i}") for i, item in enumerate(value)]}
        self._inside.remove(id(value))
        return node

    def _leaf(self, value: Tensor | np.ndarray, path: str) -> dict[str, Any]:
        if isinstance(value, Tensor):
            if value.is_meta:
                raise ValueError(f"save(): {_place(path)} is a meta tensor, which has no data")
            node = {"tensor": self._name(path), "dtype": value.dtype.name}
            node["requires_grad"] = value.is_leaf and value.requires_grad
        else:
            if _holds_more(value):
                raise TypeError(f"save(): {_place(path)} is a {type(value).__name__}, which holds "
                                "more than its elements; save np.asarray() of it, and the rest "
                                "beside it")  # fmt: skip
            value = value.view(np.ndarray)  # a matrix has two dims even where it is flat
            if not _npy.is_numbers(value.dtype):
                raise TypeError(f"save(): {_place(path)} is an array of {value.dtype}; saved are "
                                "arrays of numbers and bool")  # fmt: skip
            node = {"array": self._name(path), "dtype": value.dtype.str}
        node["shape"] = list(value.shape)
        self.leaves.append(Leaf(node.get("tensor") or node["array"], value, node))
        return node

    def _name(self, path: str) -> str:
        base = (path or "tensor").replace("/", "_")
        while len(base.encode()) > _LONGEST:
            base = base[: len(base) * 9 // 10]
        name, count = base, 1
        while name in self._names:  # different paths may read alike
            name, count = f"{base}~{count}", count + 1
        self._names.add(name)
        return name


def _place(path: str) -> str:
    if not path:
        return "the object"
    return path if len(path) <= 200 else f"{path[:100]}...{path[-100:]}"


def _holds_more(array: np.ndarray) -> bool:
    """Whether a subclass has something beside its elements: a mask, a unit."""
    kind = type(array)
    if kind in _BARE:
        return False
    return bool(getattr(array, "__dict__", None)) or any(
        getattr(base, "__slots__", ()) for base in kind.__mro__
    )


def _unsaved(value: Any, path: str) -> TypeError:
    hint = "; saved are dicts, lists and tuples of tensors, arrays, numbers, strings, None"
    if callable(getattr(value, "state_dict", None)):
        hint = ", whose code a file cannot hold; save its state_dict(), and give that to " \
               "load_state_dict() of a new one"  # fmt: skip
    return TypeError(f"save(): {_place(path)} is a {type(value).__name__}{hint}")


def _text(value: str, path: str) -> str:
    value = str.__str__(value)  # of a subclass, the text alone
    if "\0" in value or not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError(f"save(): {_place(path)} has {shown(value)}, with a NUL or half of a "
                         "surrogate pair in it, which no file keeps")  # fmt: skip
    return value


def _number(value: bool | int | float | None) -> Any:
    """None and numbers as JSON has them; NaN, infinities and what is beyond 64 bits in words."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        value = int.__int__(value)
        return value if -_WORD <= value < _WORD else {"int": hex(value)}
    value = float.__float__(value)
    return value if abs(value) < float("inf") else {"float": repr(value)}


def _is_no_key(key: Any) -> bool:
    """Neither text nor a number of 64 bits; of larger ones, many can have the same hash."""
    if isinstance(key, str):
        return False
    return not isinstance(key, int) or isinstance(key, bool) or not -_WORD <= key < _WORD


def _key(key: Any, path: str) -> str | int:
    if isinstance(key, str):
        return _text(key, path)
    if _is_no_key(key):
        raise TypeError(f"save(): {_place(path)} has the key {shown_key(key)}; keys are str or int "
                        "of 64 bits")  # fmt: skip
    return int.__int__(key)


def shown_key(key: Any) -> str:
    """A key for a message."""
    return repr(key)[:100] if isinstance(key, bool | float) or key is None else shown(key)


def parse(text: bytes) -> Any:
    """JSON, or Damaged."""
    try:
        return json.loads(text.decode("utf-8"))
    except RecursionError:
        raise Damaged("its structure is nested too deep") from None
    except ValueError as error:  # no UTF-8, no JSON
        raise Damaged(f"its structure cannot be read: {error}") from error


class Decoder:
    """The way back; ``leaf`` makes a tensor or an array of its JSON.

    Raises
    ------
    Damaged
        For what the encoder does not write.
    """

    def __init__(self, leaf: Callable[[dict[str, Any]], Any]) -> None:
        self._leaf = leaf

    def decode(self, value: Any) -> Any:
        """The value of some JSON."""
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise Damaged("its structure holds a bare list")
            return value
        if "tensor" in value or "array" in value:
            return self._leaf(value)
        if len(value) == 1:
            ((kind, content),) = value.items()
            if kind == "int" and isinstance(content, str):
                return _decode_int(content)
            if kind == "float" and isinstance(content, str) and content in _ODD_FLOATS:
                return _ODD_FLOATS[content]
            if isinstance(content, list):
                if kind == "dict":
                    return self._dict(content)
                if kind in ("list", "tuple"):
                    items = [self.decode(item) for item in content]
                    return items if kind == "list" else tuple(items)
        raise Damaged(f"its structure holds a {shown(next(iter(value), ''))}")

    def _dict(self, pairs: list[Any]) -> dict[str | int, Any]:
        result: dict[str | int, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2:
                raise Damaged("its structure holds a dict of other things than pairs")
            key = pair[0]
            if _is_no_key(key) or key in result:
                raise Damaged(f"its structure holds the key {shown_key(key)}, or holds it twice")
            result[key] = self.decode(pair[1])
        return result


def _decode_int(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise Damaged(f"its structure holds the number {shown(text)}") from None


def tensor_of(array: np.ndarray, node: dict[str, Any]) -> Tensor:
    """The tensor over an array's memory, as its JSON describes it."""
    dtype = node.get("dtype")
    stored = "float32" if dtype == "bfloat16" else dtype
    if array.dtype.name != stored or not isinstance(node.get("requires_grad"), bool):
        raise Damaged(f"a tensor of {shown(dtype)} is stored as {array.dtype.name}")
    try:
        x = _ext.from_numpy(array)
        return x.to(_ext.bfloat16) if dtype == "bfloat16" else x
    except (TypeError, ValueError) as error:
        raise Damaged(f"a tensor cannot be read: {error}") from error
