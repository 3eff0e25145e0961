# SPDX-License-Identifier: Apache-2.0
"""What is computed once and measured with many candidates: tensors of one op, dtype and shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite.bench.cases import Case

EPS = 1e-5


class Unsupported(Exception):
    """A candidate does not do this op, dtype or shape; the text says why."""


@dataclass
class Candidate:
    """One way to compute a problem.

    ``call`` gives the results, in the order of the op's outputs. ``prepare`` restores inputs that
    it overwrites; it runs before each call, outside the measured time. ``note`` goes to the record.
    Where another process computes, ``timer(batch, repeats)`` gives its microseconds per call; batch
    0 asks for a single one, to warm up.
    """

    call: Callable[[], Sequence[Any]]
    prepare: Callable[[], Any] | None = None
    note: str = ""
    timer: Callable[[int, int], list[float]] | None = None


@dataclass
class Problem:
    """Tensors of one measurement; ``t["x"]`` and so on are tensors of oneflow_lite."""

    op: str
    dtype: str
    device: str
    case: Case
    t: dict[str, Any] = field(default_factory=dict)

    @property
    def itemsize(self) -> int:
        return {"float64": 8, "float32": 4}.get(self.dtype, 2)

    @property
    def accumulator(self) -> Any:
        """The dtype of statistics."""
        return flow.float64 if self.dtype == "float64" else flow.float32

    def randn(self, *shape: int) -> Any:
        return flow.randn(*shape, dtype=getattr(flow, self.dtype), device=self.device)

    def input(self) -> Any:
        """A random tensor that lies as the case says."""
        c = self.case
        if not c.pad and not c.offset:
            return self.randn(*c.shape)
        stride = c.cols + c.pad
        return self.randn(c.offset + c.rows * stride).as_strided(c.shape, (stride, 1), c.offset)

    def classes(self) -> Any:
        """A random class for each row."""
        drawn = np.random.default_rng(0).integers(0, self.case.cols, self.case.rows)
        return flow.tensor(drawn, device=self.device)


def find(name: str) -> Any:
    """``flow.<name>``, where this build has it."""
    value: Any = flow
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise Unsupported(f"this build has no flow.{name}") from None
    return value
