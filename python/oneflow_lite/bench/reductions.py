# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans and sorts, as cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite.bench.calls import Case, find, named

SEVERAL = """sum mean amax amin var std nansum count_nonzero any all norm logsumexp"""
SINGLE = """prod argmax argmin max median nanmedian aminmax quantile"""
SCANS = """cumsum cumprod cummax cummin logcumsumexp"""
# What a function takes beside the tensor and the dims.
BETWEEN: dict[str, tuple[Any, ...]] = {"norm": (2,), "quantile": (0.3,)}
# PyTorch's quantile of more than 2^24 elements of a row is an error.
MOST = {"quantile": 1 << 24}


def along(name: str, dim: Any) -> Callable[..., Any]:
    """A reduction of a dim, or of several."""
    between = BETWEEN.get(name, ())
    if name in ("prod", "cumprod"):
        return lambda m, f, near: find(m, f, name)(near, *between, dim)
    if name == "aminmax":
        return lambda m, f, x: m.aminmax(x, dim=dim)
    if name in ("any", "all"):
        return lambda m, f, truth: find(m, f, name)(truth, *between, dim)
    return lambda m, f, x: find(m, f, name)(x, *between, dim)


def whole(name: str) -> Callable[..., Any]:
    """A reduction of all elements."""
    between = BETWEEN.get(name, ())
    if name == "logsumexp":
        return along(name, (0, 1))
    if name == "prod":
        return lambda m, f, near: m.prod(near)
    if name in ("any", "all"):
        return lambda m, f, truth: find(m, f, name)(truth)
    return lambda m, f, x: find(m, f, name)(x, *between)


def of_four(name: str, dims: tuple[int, ...]) -> Callable[..., Any]:
    """A reduction of dims of a 4-D tensor."""
    between = BETWEEN.get(name, ())
    return lambda m, f, four: find(m, f, name)(four, *between, dims)


def cases() -> Iterator[Case]:
    for name in [*SEVERAL.split(), *SINGLE.split()]:
        for dim in (1, 0):
            yield Case(f"{name}({dim})", "reduction", along(name, dim))
        # Each of 64 M products rounds once: together they are off by the root of their number.
        yield Case(f"{name}()", "reduction", whole(name), most=MOST.get(name, 1 << 62),
                   tolerance=10_000 if name == "prod" else 1)  # fmt: skip
    for name in SEVERAL.split():
        for dims in ((1, 3), (0, 2)):
            label = f"{name}({dims[0]}, {dims[1]}) of 4-D"
            yield Case(label, "reduction", of_four(name, dims))
    for name in SCANS.split():
        for dim in (1, 0):
            yield Case(f"{name}({dim})", "scan", along(name, dim))
    sorts: dict[str, Callable[..., Any]] = {
        "sort(1)": lambda m, f, x: m.sort(x, 1),
        "sort(0)": lambda m, f, x: m.sort(x, 0),
        "sort(1, descending)": lambda m, f, x: m.sort(x, 1, True),
        "sort() of all": lambda m, f, x: m.sort(x.reshape(-1)),
        "argsort(1)": lambda m, f, x: m.argsort(x, dim=1, stable=True),
        "topk(8, 1)": lambda m, f, x: m.topk(x, 8, 1),
        "topk(8, 0)": lambda m, f, x: m.topk(x, 8, 0),
        "topk(100, 1)": lambda m, f, x: m.topk(x, min(100, x.shape[1]), 1),
        "topk(8) of all": lambda m, f, x: m.topk(x.reshape(-1), 8),
        "kthvalue(5, 1)": lambda m, f, x: m.kthvalue(x, 5, 1),
        "kthvalue(5, 0)": lambda m, f, x: m.kthvalue(x, 5, 0),
        "unique": lambda m, f, x: m.unique(x),
        "unique int32": lambda m, f, i: m.unique(i),
    }
    for label, f in sorts.items():
        yield Case(label, "sort", f)
    small = "sum mean amax any cumsum"
    yield from named("small", small, lambda name: lambda m, f, a: find(m, f, name)(a, 1),
                     label="{}(1) 4x64")  # fmt: skip
    yield Case("sum() 4x64", "small", lambda m, f, a: m.sum(a))
