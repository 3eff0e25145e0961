# SPDX-License-Identifier: Apache-2.0
"""A zip archive whose every claim is checked before it is believed.

Read are archives of stored entries, as ``save`` and ``torch.save`` write them. An entry is where
both its headers say, lies in the file, overlaps no other, and its bytes have their CRC-32: they are
given away only when they were compared with it. Nothing is allocated that the file does not hold.
"""

from __future__ import annotations

import errno
import struct
import zlib
from typing import IO, NamedTuple

import numpy as np

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s4B4HL2L5H2L")
_LOCAL = struct.Struct("<4s2B4HL2L2H")
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF  # the number stands in a record for larger files
_DESCRIPTOR, _UTF8 = 1 << 3, 1 << 11  # flags: CRC and sizes follow the data; the name is UTF-8
_CHUNK = 1 << 20


class Damaged(ValueError):
    """What is wrong with the content of a file."""


class Entry(NamedTuple):
    """Where the bytes of an entry are, and their CRC-32."""

    start: int
    size: int
    crc: int


class _Record(NamedTuple):
    """What the central directory says of an entry."""

    name: bytes
    flags: int
    crc: int
    size: int
    offset: int


class Archive:
    """The entries of a stream that can seek, by name.

    Raises
    ------
    Damaged
        Where the stream is no such archive.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        stream.seek(0, 2)
        self._size = stream.tell()
        count, start, end, shift = self._find_directory()
        records = _central_records(self._at(start, end - start), count)
        self.entries: dict[str, Entry] = {}
        spans = []
        for record in records:
            name = _text(record.name)
            if name in self.entries:
                raise Damaged(f"two entries are called {shown(name)}")
            first, entry = self._local(record, record.offset + shift, start)
            self.entries[name] = entry
            spans.append((first, entry.start + entry.size, name))
        spans.sort()
        for (_, before, one), (after, _, other) in zip(spans, spans[1:], strict=False):
            if after < before:
                raise Damaged(f"the entries {shown(one)} and {shown(other)} overlap")

    def read(self, name: str) -> np.ndarray:
        """The bytes of an entry, uint8; they have the CRC-32 that the archive gives."""
        if name not in self.entries:
            raise Damaged(f"there is no entry {shown(name)}")
        start, size, crc = self.entries[name]
        data = np.empty(size, np.uint8)
        self._stream.seek(start)
        found = 0
        for at in range(0, size, _CHUNK):  # a chunk is still in the cache when its sum is taken
            part = memoryview(data[at : at + _CHUNK])
            self._fill(part)
            found = zlib.crc32(part, found)
        if found != crc:
            raise Damaged(f"the entry {shown(name)} has the CRC-32 {found:08x}, not {crc:08x}")
        return data

    def _fill(self, part: memoryview) -> None:
        done = 0
        while done < len(part):
            n = self._read_some(part[done:])
            if n == 0:
                raise Damaged("it became shorter while it was read")
            done += n

    def _read_some(self, part: memoryview) -> int:
        """What one call of the stream reads into the part: 0 bytes at its end."""
        if hasattr(self._stream, "readinto"):
            n, name = self._stream.readinto(part), "readinto"
        else:
            piece, name = self._stream.read(len(part)), "read"
            n = len(piece) if isinstance(piece, bytes | bytearray | memoryview) else None
            if n is not None and n <= len(part):
                part[:n] = piece
        if not isinstance(n, int) or not 0 <= n <= len(part):
            raise OSError(errno.EIO, f"load(): {name}() of the file gave {n} of {len(part)} bytes")
        return n

    def _at(self, start: int, size: int) -> bytes:
        if start < 0 or size < 0 or start + size > self._size:
            raise Damaged("it is cut off, or its directory points out of it")
        data = bytearray(size)
        self._stream.seek(start)
        self._fill(memoryview(data))
        return bytes(data)

    def _find_directory(self) -> tuple[int, int, int, int]:
        """The number of entries, the directory's start and end, and what stands before the zip."""
        at = self._size - _END.size
        if at < 0:
            raise Damaged("it is no zip archive")
        mark, disk, first, here, count, size, offset, comment = _END.unpack(self._at(at, _END.size))
        if mark != b"PK\5\6":
            raise Damaged("it is no zip archive, or something was cut off or added at its end")
        if disk or first or here != count or comment:
            raise Damaged("the end of its directory contradicts itself")
        end, place = at, None
        locator = self._at(at - _LOCATOR.size, _LOCATOR.size) if at >= _LOCATOR.size else b""
        if locator.startswith(b"PK\6\7"):
            end = at - _LOCATOR.size - _END64.size
            short = (count, size, offset)
            count, size, offset = _large_end(self._at(end, _END64.size), short)
            place = _LOCATOR.unpack(locator)
        shift = end - size - offset
        if shift < 0:
            raise Damaged("its directory lies outside of it")
        if place is not None and place[1:] != (0, end - shift, 1):
            raise Damaged("the end of its directory contradicts itself")
        return count, end - size, end, shift

    def _local(self, record: _Record, at: int, limit: int) -> tuple[int, Entry]:
        """Where the entry begins, and its data, by the header in front of it."""
        name = shown(_text(record.name))
        if at + _LOCAL.size > limit:
            raise Damaged(f"the entry {name} lies outside of it")
        head = _LOCAL.unpack(self._at(at, _LOCAL.size))
        mark, _, _, flags, method, _, _, crc, packed, size, name_size, extra_size = head
        start = at + _LOCAL.size + name_size + extra_size
        if mark != b"PK\3\4" or start + record.size > limit:
            raise Damaged(f"the entry {name} lies outside of it")
        rest = self._at(at + _LOCAL.size, name_size + extra_size)
        sizes = _large(rest[name_size:], [size, packed])
        later = flags & _DESCRIPTOR  # then these numbers follow the data, and may be 0 here
        if (
            rest[:name_size] != record.name
            or flags != record.flags
            or method != 0
            or not (crc == record.crc or later and crc == 0)
            or any(n != record.size and not (later and n in (0, _FULL32)) for n in sizes)
        ):
            raise Damaged(f"the two headers of the entry {name} contradict each other")
        return at, Entry(start, record.size, record.crc)


def _large_end(data: bytes, short: tuple[int, int, int]) -> tuple[int, int, int]:
    """Count, size and offset of the directory from the record for large files."""
    mark, size, _, _, disk, first, here, *large = _END64.unpack(data)
    limits = (_FULL16, _FULL32, _FULL32)
    if (
        (mark, size, disk, first, here) != (b"PK\6\6", _END64.size - 12, 0, 0, large[0])
        or any(a != b and a != full for a, b, full in zip(short, large, limits, strict=True))
    ):  # fmt: skip
        raise Damaged("the end of its directory contradicts itself")
    return large[0], large[1], large[2]


def _central_records(data: bytes, count: int) -> list[_Record]:
    records, at = [], 0
    while at < len(data):
        if len(data) - at < _CENTRAL.size or len(records) == count:
            raise Damaged("its directory contradicts itself")
        head = _CENTRAL.unpack_from(data, at)
        flags, method, crc, packed, size = head[5], head[6], *head[9:12]
        name_size, extra_size, comment, disk, _, _, offset = head[12:]
        name_end = at + _CENTRAL.size + name_size
        end = name_end + extra_size + comment
        if head[0] != b"PK\1\2" or disk or end > len(data):
            raise Damaged("its directory contradicts itself")
        name = data[at + _CENTRAL.size : name_end]
        size, packed, offset = _large(data[name_end : name_end + extra_size],
                                      [size, packed, offset])  # fmt: skip
        if method or flags & ~(_DESCRIPTOR | _UTF8) or size != packed:
            raise Damaged(f"the entry {shown(_text(name))} is compressed or encrypted; entries are "
                          "read as they are stored")  # fmt: skip
        records.append(_Record(name, flags, crc, size, offset))
        at = end
    if len(records) != count:
        raise Damaged("its directory contradicts itself")
    return records


def _large(extra: bytes, numbers: list[int]) -> list[int]:
    """The numbers, those of 32 bits that are full replaced from the extra field for large files."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            more = list(struct.unpack_from(f"<{min(size, len(extra) - at) // 8}Q", extra, at))
            return [more.pop(0) if n == _FULL32 and more else n for n in numbers]
        at += size
    return numbers


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise Damaged("the name of an entry is no UTF-8") from None


def shown(value: object) -> str:
    """A value from a file for a message: on one line, and short whatever it is."""
    text = repr(value[:60]) if isinstance(value, str | bytes) else type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."
