# SPDX-License-Identifier: Apache-2.0
"""Values of tensors in float64, and how far two may be apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor

# |error| <= tolerance * (|value| + the largest |value| of the tensor): some roundings of the dtype.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-11}
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def host(t: Tensor) -> np.ndarray:
    """The exact values: float64, int64 or bool."""
    t = t.detach().cpu()
    if t.dtype is _ext.bool:
        return t.numpy().copy()
    return (t.double() if t.dtype.is_floating_point else t.long()).numpy().copy()


def bits(t: Tensor) -> bytes:
    """The memory of a tensor, for comparisons bit by bit."""
    t = t.detach().cpu().contiguous()
    return (t.float() if t.dtype is _ext.bfloat16 else t).numpy().tobytes()


def difference(
    actual: Tensor,
    expected: np.ndarray,
    tolerance: Mapping[str, float] = TOLERANCE,
    inputs: Sequence[Tensor] = (),
) -> str | None:
    """What is wrong with a tensor that should have these values; None where nothing is.

    With the inputs it came from, a result may be as inexact as the least of their dtypes, and where
    they or products of two of them cancel, as those are.
    """
    name = actual.dtype.name
    if tuple(actual.shape) != expected.shape:
        return f"the shape is {shape_text(actual.shape)}, expected {shape_text(expected.shape)}"
    values = host(actual)
    with np.errstate(all="ignore"):
        allowed = np.zeros(values.shape)
        if actual.dtype.is_floating_point:
            # What overflows the dtype is infinite there.
            rounded = host(_ext.from_numpy(np.array(expected, np.float64)).to(actual.dtype))
            expected = np.where(np.isfinite(rounded), expected, rounded)
            finite = np.abs(expected[np.isfinite(expected)])
            floats = [t for t in inputs if t.dtype.is_floating_point]
            least = max([name, *(t.dtype.name for t in floats)], key=_EPSILON.__getitem__)
            allowed = tolerance[least] * (np.abs(expected) + finite.max(initial=0.0))
            terms = max([1.0, *(t.numel() / max(1, actual.numel()) for t in floats)])
            sizes = sorted([0.0, 0.0, *map(_largest, floats)])
            allowed += _EPSILON[least] * terms * sizes[-1] * max(1.0, sizes[-2])
            allowed = np.where(np.isfinite(expected), allowed, 0.0)
        same = (values == expected) | ((values != values) & (expected != expected))
        wrong = ~same & ~(np.abs(values.astype(float) - expected) <= allowed)
    if not np.any(wrong):
        return None
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
    return (
        f"{int(wrong.sum())} of {wrong.size} elements of the {name} result are wrong, the first at "
        f"{[int(i) for i in at]}: {values[at]:.6g}, expected {expected[at]:.6g} within "
        f"{allowed[at]:.1e}"
    )


def _largest(t: Tensor) -> float:
    values = host(t)
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def shape_text(shape: Sequence[int]) -> str:
    return str([int(n) for n in shape])


def tensor_text(t: Tensor) -> str:
    return f"{t.dtype.name}{shape_text(t.shape)}"
