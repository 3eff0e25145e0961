# SPDX-License-Identifier: Apache-2.0
"""A fused op as functors, one after the other: on the CPU, and wherever no kernel serves.

Everything is computed in float32, or float64 where an operand is, and rounded once at the end: what
the kernel does too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, dtype, float32, float64
from oneflow_lite.fuse.bases import Base, Options
from oneflow_lite.fuse.expression import Graph, Step
from oneflow_lite.fuse.functions import FUNCTIONS

Values = dict[str, "Tensor | float"]


def compute_dtype(values: Values) -> dtype:
    """float64 where a tensor is, else float32."""
    wide = any(isinstance(v, Tensor) and v.dtype is float64 for v in values.values())
    return float64 if wide else float32


def evaluate(graph: Graph, values: Values, like: Tensor) -> Tensor:
    """The expression's value for every element of `like`, in its shape and dtype."""

    def leaf(step: Step) -> Any:
        return values[str(step.value)] if step.kind == "parameter" else step.value

    def apply(operation: str, args: list[Any]) -> Tensor:
        if not any(isinstance(a, Tensor) for a in args):  # of numbers alone: one element
            args[0] = _ext._C.full((), args[0], dtype=like.dtype, device=like.device)
        return FUNCTIONS[operation](*args)

    result = graph.evaluate(leaf, apply)[graph.result]
    if not isinstance(result, Tensor):
        return _ext._C.full_like(like, result)
    return result if result.shape == like.shape else result.expand(like.shape)


def check_operands(name: str, x: Tensor, values: Values) -> None:
    """An error where an operand does not broadcast to x."""
    for key, value in values.items():
        if not isinstance(value, Tensor):
            continue
        if value.device != x.device:
            raise RuntimeError(f"{name}: {key} is on {value.device}, the input is on {x.device}")
        own, whole = value.shape, x.shape
        fits = len(own) <= len(whole) and all(
            mine in (1, size) for mine, size in zip(own[::-1], whole[::-1], strict=False)
        )
        if not fits:
            raise _ext.ShapeError(
                f"{name}: {key} of shape {list(value.shape)} does not broadcast to the input's "
                f"shape {list(x.shape)}"
            )


def compose(
    base: Base, load: Graph | None, store: Graph | None, x: Tensor, values: Values, options: Options
) -> Tensor:
    """store(base(load(x))), in x's dtype."""
    computed = compute_dtype(values)
    wide = {k: v.to(dtype=computed) if isinstance(v, Tensor) else v for k, v in values.items()}
    widened = x.to(dtype=computed)
    y = base.call(widened if load is None else evaluate(load, wide, widened), options)
    if store is not None:
        y = evaluate(store, {**wide, store.parameters[0]: y}, y)
    return y.to(dtype=x.dtype)


def as_number(value: Any) -> float | None:
    """A Python or NumPy number as a float; None for what is none."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        return float(value) if value.dtype.kind in "biuf" else None
    return None
