# SPDX-License-Identifier: Apache-2.0
"""The cells by which two builds are compared: every op in every dtype, every tier of every op.

Pairs are covered, not their product, so that the set takes three minutes of a GPU. ``planted``
gives the cases whose results are compared bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.bench.cases import Case
from oneflow_lite.bench.problem import Problem
from oneflow_lite.bench.workloads import WORKLOADS

DTYPES = ["float16", "bfloat16", "float32", "float64"]
Cell = tuple[str, str, Case]  # op, dtype, shape

# A shape for each way in which rows are worked on (primitive/cuda/rows/policy.h), and the axis.
_ROWS = [
    Case("width", (1 << 20, 64)), Case("awkward", (1 << 17, 1000), offset=1),
    Case("width", (49152, 1024)), Case("width", (49152, 4096)), Case("awkward", (16384, 4097)),
    Case("width", (16384, 16384)), Case("awkward", (4096, 50257)), Case("width", (4096, 65536)),
    Case("width", (512, 262144)), Case("few", (16, 262144)), Case("real", (1024, 4096)),
]  # fmt: skip
_AXIS = [Case("dim", (64, 1000, 64, 64), dim=1), Case("dim", (8192, 8192), dim=0)]
_SHAPES = {
    "softmax": [*_ROWS, _AXIS[0]],
    "norm": [*_ROWS[:8], _ROWS[9], _ROWS[10]],
    "cross_entropy": [Case("vocabulary", (4096, cols)) for cols in (1000, 32000, 50257, 128256)],
    "attention": [Case("attention", (4, 16, n, n)) for n in (256, 1000, 1024, 2048)],
    "residual": [Case("residual", (rows, cols))
                 for rows, cols in ((49152, 768), (16384, 4096), (1024, 7168), (4096, 1000))],
}  # fmt: skip
# On the CPU, in cache and out of it.
_CPU = {
    "softmax": [Case("width", shape) for shape in ((4096, 768), (64, 50257), (16384, 1000))],
    "norm": [Case("width", shape) for shape in ((4096, 768), (1024, 4096), (16384, 1000))],
    "cross_entropy": [Case("vocabulary", (256, 50257))],
    "attention": [Case("attention", (2, 8, 256, 256))],
    "residual": [Case("residual", (4096, 1024))],
}


def cells(device: str) -> list[Cell]:
    """At most 120 on a GPU: an op's shapes take the dtypes in turn, each op from another on."""
    found = []
    for start, w in enumerate(WORKLOADS.values()):
        shapes = (_SHAPES if device == "cuda" else _CPU)[w.family]
        shapes = shapes * -(-len(DTYPES) // len(shapes))  # every dtype at least once
        for k, case in enumerate(shapes):
            found.append((w.name, DTYPES[(start + k) % len(DTYPES)], case))
    return found


class Planted(Problem):
    """A problem of numbers that depend on nothing but a seed, with special values among them."""

    def randn(self, *shape: int) -> Any:
        """Normal numbers; of ``awkward`` cases some are NaN, infinite, or zeros of both signs."""
        generator = np.random.default_rng(self.t.setdefault("seed", 0))
        self.t["seed"] += 1
        values = generator.standard_normal(shape, dtype=np.float32) * 4
        if self.case.kind == "awkward" and values.size:
            flat = values.reshape(-1)
            special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 3e38, 1e-42], np.float32)
            places = generator.integers(0, flat.size, max(1, flat.size // 3000))
            flat[places] = special[generator.integers(0, special.size, places.size)]
        return flow.tensor(values).to(device=self.device, dtype=getattr(flow, self.dtype))


def planted(count: int) -> Iterator[Cell]:
    """Small cases, their widths, offsets and strides drawn from a seed."""
    generator = np.random.default_rng(0)
    names = list(WORKLOADS)
    for k in range(count):
        w = WORKLOADS[names[k % len(names)]]
        dtype = DTYPES[k // len(names) % len(DTYPES)]
        cols = int(np.exp(generator.uniform(0, np.log(70_000))))
        rows = int(generator.integers(1, max(2, min(64, 200_000 // cols))))
        kind = "awkward" if k % 3 else "width"
        if w.family == "attention":
            yield w.name, dtype, Case(kind, (1, 2, min(rows, cols), min(cols, 2000) + rows))
        elif w.family == "cross_entropy":
            yield w.name, dtype, Case(kind, (rows, cols))
        elif w.family == "softmax" and k % 5 == 0:
            yield w.name, dtype, Case(kind, (3, min(cols, 3000), 1 + k % 40), dim=1)
        else:
            pad, offset = int(generator.integers(0, 9)), int(generator.integers(0, 9))
            yield w.name, dtype, Case(kind, (rows, cols), pad=pad * (k % 2), offset=offset)
