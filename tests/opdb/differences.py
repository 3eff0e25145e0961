# SPDX-License-Identifier: Apache-2.0
"""The differences that stand: differences.txt and, of modules and optimizers, lists beside it.

    NAMES | KINDS | DTYPES | TEXT | REASON

NAMES and KINDS and DTYPES are patterns with blanks between them; TEXT is a regular expression that
is found in what the check says of the difference, or empty.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import re
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


@dataclasses.dataclass
class Entry:
    line: str
    names: list[str]
    kinds: list[str]
    dtypes: list[str]
    text: re.Pattern[str]
    reason: str
    used: bool = False


def _any(value: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(value, p) for p in patterns)


def read(path: Path) -> list[Entry]:
    entries = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 5 or not fields[4]:
            raise ValueError(f"{path.name}: five fields, the last a reason, expected in: {line}")
        names, kinds, dtypes = (field.split() for field in fields[:3])
        entries.append(Entry(line, names, kinds, dtypes, re.compile(fields[3]), fields[4]))
    return entries


def match(entries: list[Entry], name: str, dtype: str, kind: str, text: str) -> Entry | None:
    for entry in entries:
        if (_any(name, entry.names) and _any(kind, entry.kinds) and _any(dtype, entry.dtypes)
                and entry.text.search(text)):  # fmt: skip
            entry.used = True
            return entry
    return None


def stale(entries: list[Entry], ran: set[str]) -> list[Entry]:
    """Entries that matched nothing, of which a name ran."""
    return [e for e in entries if not e.used and any(_any(name, e.names) for name in ran)]


def options(text: str) -> argparse.Namespace:
    """The command line of a check without dtypes to choose from."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--all", action="store_true", help="print known differences too")
    return parser.parse_args()


class Report:
    """Counts what was found and prints what stands in no entry of a list."""

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        self.name, self.given = name, given
        self.known = read(Path(__file__).parent / name)
        self.ran: set[str] = set()
        self.new: collections.Counter[tuple[str, ...]] = collections.Counter()
        self.count = self.differ = self.unknown = 0
        self.start = time.monotonic()

    def wanted(self, name: str) -> bool:
        return _any(name, self.given.only)

    def add(self, name: str, count: int, found: Any) -> None:
        """So many samples of the name, and (dtype, kind, text) of each difference."""
        self.ran.add(name)
        self.count += count
        for dtype, kind, text in sorted(found):
            entry = match(self.known, name, dtype, kind, text)
            self.differ, self.unknown = self.differ + 1, self.unknown + (entry is None)
            if entry is None or self.given.all:
                self.new["" if entry is None else "known: ", name, kind, text] += 1

    def end(self) -> int:
        """Prints all; the exit status."""
        for (mark, name, kind, text), times in sorted(self.new.items()):
            print(f"{mark}{name} | {kind} | {text} | {times}x")
        print(f"{self.count} samples in {time.monotonic() - self.start:.0f} s: {self.differ} "
              f"differ, of which {self.unknown} stand in no entry of {self.name}.")  # fmt: skip
        old = stale(self.known, self.ran)
        for entry in old:
            print("no longer differs:", entry.line)
        return 1 if self.unknown or old else 0
