# SPDX-License-Identifier: Apache-2.0
"""The list of differences that stand: differences.txt, a line each.

    NAMES | KINDS | DTYPES | TEXT | REASON

NAMES and KINDS and DTYPES are patterns with blanks between them; TEXT is a regular expression that
is found in what the check says of the difference, or empty.
"""

from __future__ import annotations

import dataclasses
import re
from fnmatch import fnmatchcase
from pathlib import Path


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
