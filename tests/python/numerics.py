# SPDX-License-Identifier: Apache-2.0
"""What the tests of values share: tensors from float64, their values as NumPy sees them, the bounds
on the error by family of op, and the layouts that a tensor may have.
"""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.op_check.layouts import LAYOUTS  # noqa: E402, F401 (for the tests)

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
NUMERIC = FLOATS + INTEGERS
ALL = NUMERIC + ("bool",)
HALVES = ("float16", "bfloat16")

# Fraction bits and the smallest normal exponent.
_FORMAT = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
}


def tensor(values, dtype, device="cpu"):
    """The values rounded to a dtype."""
    return flow.tensor(np.asarray(values), device="cpu").to(getattr(flow, dtype)).to(device)


def host(t):
    """The exact values of a tensor: float64, int64 or bool."""
    t = t.detach().cpu()
    if t.dtype is flow.bool:
        return t.numpy().copy()
    return (t.double() if t.dtype.is_floating_point else t.long()).numpy().copy()


def bits(t):
    """The memory of a tensor, for comparisons bit by bit."""
    t = t.detach().cpu().contiguous()
    return (t.float() if t.dtype is flow.bfloat16 else t).numpy().tobytes()


def ulp(values, dtype):
    """The distance of neighbouring numbers of a dtype at each value."""
    fraction, least = _FORMAT[dtype]
    exponent = np.frexp(np.where(np.isfinite(values), np.abs(values), 1.0))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, least) - fraction)


def rounded(values, dtype):
    """float64 values rounded to a dtype and back."""
    if dtype not in FLOATS:
        kind = bool if dtype == "bool" else np.dtype(dtype)
        return np.asarray(values).astype(kind).astype(bool if dtype == "bool" else np.int64)
    if dtype == "bfloat16":  # halfway cases go to the even neighbour, as rint does
        step = ulp(values, dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.rint(values / step) * step
            return np.where(np.abs(near) >= 2.0**128, np.copysign(np.inf, near), near)
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(dtype).astype(np.float64)


def half_step(device):
    """How far a 16-bit result may be from the exact one, in its units: functions have a form of
    fewer instructions for 16 bits on CUDA, whose own error is up to a tenth of a unit."""
    return 0.6 if device == "cuda" else 0.5


def near(got, want, dtype, device):
    """Where a 16-bit result is the number nearest to float64's, or as far off as half_step says."""
    with np.errstate(invalid="ignore", over="ignore"):
        same = (got == rounded(want, dtype)) | (np.isnan(got) & np.isnan(want))
        close = np.abs(got - want) <= half_step(device) * ulp(want, dtype)
        return same | close if device == "cuda" else same


def _bound(relative, absolute):
    """|error| <= max(relative of the value, absolute), by dtype; halves add a rounding step."""

    def allowed(reference, magnitude, dtype):
        key = "float64" if dtype == "float64" else "float32"
        size = np.abs(reference)
        error = np.maximum(relative[key] * size, absolute[key] * magnitude(reference))
        return error + (ulp(reference, dtype) if dtype in HALVES else 0)

    return allowed


def _several_steps(reference, magnitude, dtype):
    """A composition of ops that each round to the dtype."""
    scale = magnitude(reference)
    if dtype in HALVES:
        return 4 * ulp(np.maximum(scale, np.abs(reference)), dtype)
    return (1e-13 if dtype == "float64" else 1e-5) * scale


# The error that each family of ops is allowed; what float64 may have is as many times its epsilon
# as float32's, or less.
BOUNDS = {
    "pointwise": _bound({"float32": 4e-6, "float64": 1e-14}, {"float32": 1e-7, "float64": 2e-16}),
    "softmax": _bound({"float32": 4e-6, "float64": 1e-14}, {"float32": 1e-7, "float64": 1e-15}),
    "log_softmax": _bound({"float32": 4e-6, "float64": 1e-14}, {"float32": 4e-6, "float64": 1e-14}),
    "norm": _bound({"float32": 4e-6, "float64": 1e-14}, {"float32": 4e-6, "float64": 1e-14}),
    "sum": _bound({"float32": 0, "float64": 0}, {"float32": 1e-5, "float64": 1e-14}),
    "composite": _several_steps,
}


def assert_close(actual, reference, family, magnitude=None, where=""):
    """The tensor has the reference's shape, and its values within the family's bound.

    "exact" wants the reference rounded to the tensor's dtype. ``magnitude`` is what the family's
    absolute error is a share of: for sums, the sum of the terms' absolute values.
    """
    dtype = actual.dtype.name
    assert tuple(actual.shape) == np.shape(reference), f"{where}: shape {tuple(actual.shape)}"
    values = host(actual)
    if family == "exact" or dtype not in FLOATS:
        wrong = ~np.equal(values, rounded(reference, dtype))
        if dtype in FLOATS:
            wrong &= ~(np.isnan(values) & np.isnan(reference))
        allowed = np.zeros(np.shape(reference))
    else:
        reference = np.asarray(reference, np.float64)
        scale = (lambda y: 1.0) if magnitude is None else (lambda y: magnitude)
        allowed = BOUNDS[family](reference, scale, dtype) * np.ones(reference.shape)
        with np.errstate(invalid="ignore"):
            error = np.abs(values - reference)
        special = ~np.isfinite(reference)
        same = (values == reference) | (np.isnan(values) & np.isnan(reference))
        wrong = np.where(special, ~same, ~(error <= allowed))
    if np.any(wrong):
        at = np.unravel_index(int(np.argmax(wrong)), np.shape(wrong)) if np.ndim(wrong) else ()
        raise AssertionError(
            f"{where}: {int(np.sum(wrong))} of {np.size(wrong)} elements are wrong ({dtype}, "
            f"{family}), the first at {tuple(int(i) for i in at)}: {values[at]!r}, expected "
            f"{np.asarray(reference)[at]!r} within {allowed[at]:.3g}"
        )
