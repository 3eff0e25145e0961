# SPDX-License-Identifier: Apache-2.0
"""The shapes that are measured, by kind, the same for every op of a family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

WIDTHS = [2**k for k in range(5, 19)]  # 32 to 262144
AWKWARD = [33, 1000, 4097, 50257, 128256]
HIDDEN = [768, 2048, 4096, 5120, 7168, 12288]
TOKENS = [1024, 16384]
ROWS = 49152  # up to width 16384; beyond, rows x width stays the same
ELEMENTS = ROWS * 16384
KINDS = ["width", "awkward", "real", "few", "layout", "dim", "tall", "vocabulary", "attention",
         "residual", "host", "recorded"]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One shape. ``pad`` elements lie between its rows, ``offset`` before its first."""

    kind: str
    shape: tuple[int, ...]
    dim: int = -1
    pad: int = 0
    offset: int = 0
    threads: int = 0  # on the CPU

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def cols(self) -> int:
        return self.shape[self.dim]

    @property
    def rows(self) -> int:
        return self.numel // max(1, self.cols)

    @property
    def label(self) -> str:
        """Names the case in tables and records."""
        text = "x".join(map(str, self.shape))
        text += f" dim {self.dim}" if self.dim != -1 else ""
        text += f" pad {self.pad}" if self.pad else ""
        text += f" offset {self.offset}" if self.offset else ""
        text += f" {self.kind}" if self.kind in ("host", "recorded") else ""
        return text + (f" {self.threads}t" if self.threads else "")


def _wide(kind: str, widths: Sequence[int]) -> Iterator[Case]:
    for width in widths:
        yield Case(kind, (max(1, min(ROWS, ELEMENTS // width)), width))


def _common() -> Iterator[Case]:
    yield from _wide("width", WIDTHS)
    yield from _wide("awkward", AWKWARD)
    for tokens in TOKENS:
        for hidden in HIDDEN:
            yield Case("real", (tokens, hidden))
    yield Case("few", (1, 1 << 24))
    yield Case("few", (16, 262144))
    yield Case("few", (128, 128256))
    yield Case("layout", (ROWS, 4096), pad=8)
    yield Case("layout", (ROWS, 1000), pad=1)
    yield Case("layout", (ROWS, 4096), offset=1)
    yield Case("host", (4, 64))
    yield Case("recorded", (4, 64))


def _softmax() -> Iterator[Case]:
    yield from _common()
    yield Case("real", (16, 2048, 2048))  # attention
    yield Case("dim", (64, 1000, 64, 64), dim=1)
    yield Case("dim", (16384, 16384), dim=0)
    yield Case("dim", (256, 64, 4096), dim=1)


def _norm() -> Iterator[Case]:
    yield from _common()
    yield Case("tall", (1 << 20, 128))
    for head in (64, 128):  # the queries of [tokens, heads, 3, head]
        yield Case("layout", (1 << 19, head), pad=2 * head)


def _vocabulary() -> Iterator[Case]:
    for rows, vocabulary in ((8192, 32000), (8192, 50257), (4096, 128256), (4096, 151936)):
        yield Case("vocabulary", (rows, vocabulary))


def _attention() -> Iterator[Case]:
    yield Case("attention", (16, 16, 2048, 2048))
    yield Case("attention", (16, 16, 1024, 1024))
    yield Case("attention", (1, 16, 4096, 4096))


def _residual() -> Iterator[Case]:
    yield Case("residual", (ROWS, 4096))
    for tokens in TOKENS:
        for hidden in HIDDEN:
            yield Case("residual", (tokens, hidden))


FAMILIES = {
    "softmax": _softmax, "norm": _norm, "cross_entropy": _vocabulary, "attention": _attention,
    "residual": _residual,
}  # fmt: skip
# What --quick measures, by family: small enough for a CPU and for a test.
QUICK = {
    "softmax": [Case("width", (256, 128)), Case("awkward", (64, 1000)),
                Case("dim", (4, 64, 32), dim=1), Case("layout", (64, 100), pad=4, offset=1),
                Case("host", (4, 64))],
    "norm": [Case("width", (256, 128)), Case("layout", (64, 64), pad=128), Case("host", (4, 64))],
    "cross_entropy": [Case("vocabulary", (64, 1000))],
    "attention": [Case("attention", (2, 2, 32, 32))],
    "residual": [Case("residual", (64, 128))],
}  # fmt: skip
# On the CPU, in cache and out of it.
CPU = {
    "softmax": [(4096, 1024), (64, 50257), (4096, 768), (16384, 4096), (49152, 128)],
    "norm": [(4096, 768), (4096, 4096), (16384, 4096), (49152, 128)],
    "cross_entropy": [(1024, 50257)],
    "attention": [(2, 8, 512, 512)],
    "residual": [(4096, 4096)],
}


def cases(family: str, dtype: str, *, device: str = "cuda", quick: bool = False,
          widths: Sequence[int] | None = None) -> list[Case]:  # fmt: skip
    """What is measured of an op.

    Parameters
    ----------
    family : str
        A key of ``FAMILIES``.
    dtype : str
        float64 has a quarter of the rows.
    device, quick : str, bool
        Which list is taken.
    widths : sequence of int, optional
        Measure these widths alone, each with the rows that the full list would give it.
    """
    if quick:
        chosen = QUICK[family]
    elif device == "cpu":
        chosen = [Case("width", shape) for shape in CPU[family]]
        if family in ("softmax", "norm"):
            chosen.append(Case("host", (4, 64)))
    else:
        chosen = list(FAMILIES[family]())
    if widths is not None:
        chosen = _of_widths(chosen, widths, family, quick or device == "cpu")
    if dtype == "float64" and device != "cpu" and not quick:
        chosen = [_quarter(c) for c in chosen]
    return chosen


def _of_widths(chosen: list[Case], widths: Sequence[int], family: str, small: bool) -> list[Case]:
    if family not in ("softmax", "norm"):
        return [c for c in chosen if c.cols in widths]
    if small:
        made = [Case("width", (max(1, min(4096, (1 << 22) // w)), w)) for w in widths]
    else:
        made = list(_wide("width", widths))
    return [replace(c, kind="awkward") if c.cols % 8 or c.cols in AWKWARD else c for c in made]


def _quarter(case: Case) -> Case:
    if case.kind in ("few", "host", "recorded") or case.dim != -1:
        return case
    return replace(case, shape=(max(1, case.shape[0] // 4), *case.shape[1:]))
