# SPDX-License-Identifier: Apache-2.0
"""What a check ends in, and the report."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


class CheckError(AssertionError):
    """An op failed a check; the message is the report of what failed."""


class Failed(Exception):
    """Ends a check: the op is wrong."""


class Random(Failed):
    """Ends a check: equal calls differ, so that no other check of values can say anything."""


class Skipped(Exception):
    """Ends a check: it could not run, or has nothing to say."""


def counted(calls: int) -> str:
    """The number and its noun: 1 call, 3 calls."""
    return f"{calls} call{'' if calls == 1 else 's'}"


@dataclass(frozen=True)
class Check:
    """One line of the report: ``status`` is "ok", "FAILED" or "skipped"."""

    name: str
    status: str
    detail: str

    def __str__(self) -> str:
        head = f"  {self.name:<20} {self.status:<8} "
        lines = [w for line in self.detail.splitlines() or [""]
                 for w in textwrap.wrap(line, 100 - len(head)) or [""]]  # fmt: skip
        return (head + ("\n" + " " * len(head)).join(lines)).rstrip()


@dataclass(frozen=True)
class CheckResult:
    """All checks of one op."""

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.status == "FAILED")

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def summary(self) -> str:
        counts = [(status, sum(c.status == status for c in self.checks))
                  for status in ("ok", "FAILED", "skipped")]  # fmt: skip
        return f"check_op({self.name}): " + ", ".join(f"{n} {s}" for s, n in counts if n)

    def __str__(self) -> str:
        return "\n".join([self.summary(), *map(str, self.checks)])
