# SPDX-License-Identifier: Apache-2.0
"""Reads a pickle of data. Nothing that the pickle says can run or change anything.

A pickle is a program for a machine with a stack and a memo. This machine knows the opcodes of data
alone; its lists and dicts are those that the same pickle has made. A global name is no object but
the reader's own answer to that name, and what can be called is a :class:`Call` that the reader has
made. Its memory and its time are a small multiple of the pickle's length: lengths and indices
allocate nothing, and what is kept once and used often is counted at each use (:class:`Budget`).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from oneflow_lite._archive import Damaged, shown

_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))
_CUT = "it is damaged: the pickle is cut off"
_LONGEST_INT = 8  # bytes of an int that is a key: of longer ones, many can have the same hash
_FREE = 1 << 16  # what the shortest pickle may spend


class Budget:
    """What a pickle may still make out of parts that it holds once and uses any number of times.

    It is twice the length of the pickle, and a constant: what files of ``torch.save`` call, they
    call with few and short arguments, or with arguments of the call's own.
    """

    def __init__(self, length: int) -> None:
        self._left = _FREE + 2 * length
        self._tuples: dict[int, list[tuple]] = {}  # the keys that are tuples, by their hash

    def spend(self, count: int) -> None:
        """Counts items or characters that are about to be made."""
        self._left -= count
        if self._left < 0:
            raise Damaged("its calls and keys use the same parts again and again, which makes far "
                          "more than it holds")  # fmt: skip

    def spend_on_key(self, key: Any) -> None:
        """Counts what it takes to look up a key: less per part than to make one."""
        if type(key) in (str, bytes):
            self.spend(len(key) >> 6)
        elif type(key) is tuple:
            self.spend(len(key) >> 3)
            self.spend(sum(len(part) >> 6 for part in key if type(part) in (str, bytes)))

    def spend_on_hash(self, key: tuple) -> None:
        """Counts the tuples of the same hash that a lookup compares: -1 and -2 have one hash."""
        same = self._tuples.setdefault(hash(key), [])
        self.spend(len(key) * len(same) >> 3)
        if key not in same:
            same.append(key)


class Call(NamedTuple):
    """What a global name stands for where the pickle may call it: ``function(args, budget)``."""

    function: Callable[[tuple, Budget], Any]


class Stand(NamedTuple):
    """What a global name or a persistent id stands for where it is no data: a kind of storage."""

    value: Any


class Machine:
    """Runs one pickle.

    Parameters
    ----------
    data : bytes
        The pickle.
    find : callable
        ``find(module, name)`` gives the data, the :class:`Call` or the :class:`Stand` of a name.
    persistent : callable
        ``persistent(pid)`` gives what a persistent id stands for.
    """

    def __init__(
        self,
        data: bytes,
        find: Callable[[str, str], Any],
        persistent: Callable[[Any], Any],
    ) -> None:
        self._data, self._at = data, 0
        self._find, self._persistent = find, persistent
        self._budget = Budget(len(data))
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each mark
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """What the pickle holds.

        Raises
        ------
        Damaged
            Where it is cut off, contradicts itself, or holds what is no data.
        """
        data, steps = self._data, _STEPS
        while True:
            if self._at >= len(data):
                raise Damaged(_CUT)
            self._at += 1
            step = steps[data[self._at - 1]]
            if step is None:
                raise Damaged(f"it holds the opcode {data[self._at - 1]:#04x}, which makes more "
                              "than data")  # fmt: skip
            size, call = step
            start = self._at
            self._at = end = start + size
            if end > len(data):
                raise Damaged(_CUT)
            if call is None:
                break
            call(self, data[start:end])
        result = self._pop()
        _check_data(result)
        return result

    # The bytes.

    def _take(self, n: int) -> bytes:
        end = self._at + n
        if n < 0 or end > len(self._data):
            raise Damaged(_CUT)
        part = self._data[self._at : end]
        self._at = end
        return part

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at)
        if end < 0:
            raise Damaged(_CUT)
        text = self._utf8(self._take(end - self._at))
        self._at = end + 1
        return text

    @staticmethod
    def _utf8(data: bytes) -> str:
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise Damaged("it is damaged: a text is no UTF-8") from None

    # The stack.

    def _pop(self) -> Any:
        if not self._stack:
            raise Damaged("it is damaged: the pickle takes more than it has made")
        return self._stack.pop()

    def _top(self, *kinds: type) -> Any:
        if not self._stack or type(self._stack[-1]) not in kinds:
            raise Damaged("it is damaged: the pickle changes what is no list or dict of its own")
        return self._stack[-1]

    def _mark(self, _: bytes) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _items(self) -> list[Any]:
        """What was pushed since the last mark."""
        if not self._outer:
            raise Damaged("it is damaged: the pickle takes more than it has made")
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _tuple(self, n: int) -> None:
        items = tuple(self._stack[-n:])
        if len(items) != n:
            raise Damaged("it is damaged: the pickle takes more than it has made")
        self._stack[-n:] = [items]

    def _fold(self, kind: type) -> None:
        items = self._items()  # which gives the stack below the mark back
        self._stack.append(kind(items))

    # Containers.

    def _append(self, items: list[Any]) -> None:
        self._top(list).extend(items)

    def _set(self, items: list[Any]) -> None:
        fill(self._top(dict, OrderedDict), items, self._budget)

    def _new_dict(self, _: bytes) -> None:
        items = self._items()
        self._stack.append({})
        self._set(items)

    # The memo.

    def _get(self, arg: bytes) -> None:
        index = _number(arg)
        if index not in self._memo:
            raise Damaged("it is damaged: the pickle recalls what it has not kept")
        self._stack.append(self._memo[index])

    def _put(self, arg: bytes) -> None:
        self._keep(_number(arg))

    def _keep(self, index: int) -> None:
        if not self._stack:
            raise Damaged("it is damaged: the pickle takes more than it has made")
        self._memo[index] = self._stack[-1]

    # Names and calls.

    def _global(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise Damaged("it is damaged: a name in the pickle is no text")
        self._stack.append(self._find(module, name))

    def _stack_global(self, _: bytes) -> None:
        name = self._pop()
        self._global(self._pop(), name)

    def _reduce(self, _: bytes) -> None:
        args, call = self._pop(), self._pop()
        if type(call) is not Call or type(args) is not tuple:
            raise Damaged(f"it calls a {shown(call)}")
        self._stack.append(call.function(args, self._budget))

    def _build(self, _: bytes) -> None:
        """The attributes of an OrderedDict, such as the ``_metadata`` of a state dict."""
        state = self._pop()
        made = self._top(OrderedDict)
        if type(state) is not dict:
            raise Damaged(f"it gives an OrderedDict the state {shown(state)}")
        self._budget.spend(len(state))
        for name, value in state.items():
            if type(name) is str:
                self._budget.spend(len(name))
            if type(name) is not str or not name.isidentifier() or hasattr(OrderedDict, name):
                raise Damaged(f"it gives an OrderedDict the attribute {shown(name)}")
            setattr(made, name, value)


def fill(target: dict[Any, Any], items: list[Any], budget: Budget) -> None:
    """Enters keys and values, which alternate.

    A key is plain, or a tuple of what is plain: the hash of a deep one would overflow the stack.
    """
    if len(items) % 2:
        raise Damaged("it is damaged: a dict has a key without a value")
    for key, value in zip(items[::2], items[1::2], strict=True):
        budget.spend_on_key(key)
        for part in key if type(key) is tuple else (key,):
            if type(part) not in _PLAIN_KEYS or (
                type(part) is int and part.bit_length() > 8 * _LONGEST_INT
            ):
                raise Damaged(f"it holds a dict with the key {shown(part)}")
        if type(key) is tuple:
            budget.spend_on_hash(key)
        target[key] = value


def _check_data(value: Any) -> None:
    """Raises where a name or a storage that is no data is left in the value."""
    seen, left = set(), [value]
    while left:
        item = left.pop()
        if type(item) in (Call, Stand):
            raise Damaged("it holds a name or a storage where data should be")
        if type(item) in (list, tuple, dict, OrderedDict) and id(item) not in seen:
            seen.add(id(item))
            left.extend(item.values() if isinstance(item, dict) else item)
            if type(item) is OrderedDict:
                left.extend(vars(item).values())


def _number(arg: bytes) -> int:
    return int.from_bytes(arg, "little")


def _text(machine: Machine, arg: bytes) -> None:
    machine._stack.append(machine._utf8(machine._take(_number(arg))))


def _bytes(machine: Machine, arg: bytes) -> None:
    machine._stack.append(machine._take(_number(arg)))


def _unsigned(machine: Machine, arg: bytes) -> None:
    machine._stack.append(_number(arg))


def _signed(machine: Machine, arg: bytes) -> None:
    machine._stack.append(int.from_bytes(arg, "little", signed=True))


def _long(machine: Machine, arg: bytes) -> None:
    _signed(machine, machine._take(_number(arg)))


_Step = tuple[int, Callable[[Machine, bytes], Any] | None]  # bytes of its argument; what it does
_STEPS: list[_Step | None] = [None] * 256
_OPCODES: dict[int | str, _Step] = {
    ".": (0, None),  # STOP
    0x80: (1, lambda m, a: None),  # PROTO: the opcodes tell
    0x95: (8, lambda m, a: None),  # FRAME: all of the pickle is in memory already
    "(": (0, Machine._mark),
    "0": (0, lambda m, a: m._pop() if m._stack else m._items()),  # POP
    "1": (0, lambda m, a: m._items()),  # POP_MARK
    "N": (0, lambda m, a: m._stack.append(None)),
    0x88: (0, lambda m, a: m._stack.append(True)),
    0x89: (0, lambda m, a: m._stack.append(False)),
    "K": (1, _unsigned),  # BININT1
    "M": (2, _unsigned),  # BININT2
    "J": (4, _signed),  # BININT
    0x8A: (1, _long),  # LONG1
    0x8B: (4, _long),  # LONG4
    "G": (8, lambda m, a: m._stack.append(struct.unpack(">d", a)[0])),  # BINFLOAT
    0x8C: (1, _text),  # SHORT_BINUNICODE
    "X": (4, _text),  # BINUNICODE
    0x8D: (8, _text),  # BINUNICODE8
    "C": (1, _bytes),  # SHORT_BINBYTES
    "B": (4, _bytes),  # BINBYTES
    0x8E: (8, _bytes),  # BINBYTES8
    ")": (0, lambda m, a: m._stack.append(())),
    0x85: (0, lambda m, a: m._tuple(1)),
    0x86: (0, lambda m, a: m._tuple(2)),
    0x87: (0, lambda m, a: m._tuple(3)),
    "t": (0, lambda m, a: m._fold(tuple)),
    "]": (0, lambda m, a: m._stack.append([])),
    "l": (0, lambda m, a: m._fold(list)),
    "a": (0, lambda m, a: m._append([m._pop()])),
    "e": (0, lambda m, a: m._append(m._items())),
    "}": (0, lambda m, a: m._stack.append({})),
    "d": (0, Machine._new_dict),
    "s": (0, lambda m, a: m._set([m._pop(), m._pop()][::-1])),
    "u": (0, lambda m, a: m._set(m._items())),
    "h": (1, Machine._get),  # BINGET
    "j": (4, Machine._get),  # LONG_BINGET
    "q": (1, Machine._put),  # BINPUT
    "r": (4, Machine._put),  # LONG_BINPUT
    0x94: (0, lambda m, a: m._keep(len(m._memo))),  # MEMOIZE
    "c": (0, lambda m, a: m._global(m._line(), m._line())),
    0x93: (0, Machine._stack_global),
    "R": (0, Machine._reduce),
    "b": (0, Machine._build),
    "Q": (0, lambda m, a: m._stack.append(m._persistent(m._pop()))),  # BINPERSID
}
for _code, _step in _OPCODES.items():
    _STEPS[ord(_code) if isinstance(_code, str) else _code] = _step
