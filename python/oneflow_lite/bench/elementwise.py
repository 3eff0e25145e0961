# SPDX-License-Identifier: Apache-2.0
"""The functions of one, two and three elements, their gradients, layouts and casts, as cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite.bench.calls import BACKWARD, Case, find, named

# Of x in (0, 1), where all are defined.
ONE = """abs neg exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan
asinh atanh erf erfc erfinv lgamma digamma i0 sqrt rsqrt reciprocal square sigmoid floor ceil trunc
round frac sign sgn positive isnan isinf isfinite isneginf isposinf nan_to_num logit signbit sinc
deg2rad rad2deg logical_not entr erfcx i0e i1 i1e ndtr ndtri log_ndtr"""
# Of both signs.
ACTIVATIONS = """relu gelu silu mish softplus elu selu celu hardswish hardsigmoid hardtanh relu6
leaky_relu logsigmoid softsign tanhshrink softshrink hardshrink"""
TWO = """add sub mul div fmod remainder floor_divide atan2 hypot logaddexp logaddexp2 maximum
minimum fmax fmin pow copysign xlogy xlog1py eq ne lt le gt ge logical_and logical_or logical_xor
heaviside nextafter ldexp float_power isclose"""
WHOLE = """bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm"""
# Functions whose gradient is a function of what was saved.
SLOPES = """abs exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh
atanh erf erfc erfinv lgamma digamma i0 sqrt rsqrt reciprocal square sigmoid logit sinc nan_to_num
entr erfcx i0e i1 i1e ndtr ndtri log_ndtr"""
SLOPES_OF_TWO = """mul div fmod atan2 hypot logaddexp logaddexp2 maximum minimum fmax fmin pow
copysign xlogy xlog1py"""
SMALL = "add mul div exp tanh gelu silu maximum pow lt"


def of_x(name: str) -> Callable[..., Any]:
    return lambda m, f, x: find(m, f, name)(x)


def of_s(name: str) -> Callable[..., Any]:
    return lambda m, f, s: find(m, f, name)(s)


def of_two(name: str) -> Callable[..., Any]:
    return lambda m, f, x, y: find(m, f, name)(x, y)


def of_whole(name: str) -> Callable[..., Any]:
    return lambda m, f, i, j: find(m, f, name)(i, j)


def of_small(name: str) -> Callable[..., Any]:
    if name in TWO.split():
        return lambda m, f, a, b: find(m, f, name)(a, b)
    return lambda m, f, a: find(m, f, name)(a)


def functions() -> Iterator[Case]:
    yield from named("function", ONE, of_x)
    yield from named("function", ACTIVATIONS, of_s)
    yield from named("function", TWO, of_two)
    yield from named("function", WHOLE, of_whole)
    more: dict[str, Callable[..., Any]] = {
        "acosh": lambda m, f, large: m.acosh(large),
        "zeta": lambda m, f, large, x: m.special.zeta(large, x),
        "bitwise_not": lambda m, f, i: m.bitwise_not(i),
        "gelu tanh": lambda m, f, s: f.gelu(s, approximate="tanh"),
        "threshold": lambda m, f, s: f.threshold(s, 0.5, 2.0),
        "prelu": lambda m, f, s, y: f.prelu(s, y[0]),
        "div trunc": lambda m, f, x, y: m.div(x, y, rounding_mode="trunc"),
        "frexp": lambda m, f, x: m.frexp(x),
        "polygamma": lambda m, f, x: m.polygamma(1, x),
        "round decimals": lambda m, f, x: m.round(x, decimals=2),
        "clamp": lambda m, f, x: m.clamp(x, 0.25, 0.625),
        "clamp min": lambda m, f, x: m.clamp(x, min=0.375),
        "clamp tensors": lambda m, f, x, y, z: m.clamp(x, y, z),
        "lerp": lambda m, f, x, y: m.lerp(x, y, 0.3),
        "lerp tensor": lambda m, f, x, y, z: m.lerp(x, y, z),
        "addcmul": lambda m, f, x, y, z: m.addcmul(x, y, z, value=0.5),
        "addcdiv": lambda m, f, x, y, z: m.addcdiv(x, y, z, value=0.5),
        "where": lambda m, f, truth, x, y: m.where(truth, x, y),
        "masked_fill": lambda m, f, x, truth: x.masked_fill(truth, 0.0),
        "x ** 2": lambda m, f, x: x**2,
        "x ** 2.5": lambda m, f, x: x**2.5,
        "x + 1": lambda m, f, x: x + 1.0,
        "2 - x": lambda m, f, x: 2.0 - x,
        "x * 2": lambda m, f, x: x * 2.0,
        "1 / x": lambda m, f, x: 1.0 / x,
        "x < 0.5": lambda m, f, x: x < 0.5,
        "add alpha": lambda m, f, x, y: m.add(x, y, alpha=0.5),
    }
    for label, f in more.items():
        yield Case(label, "function", f)


def gradients() -> Iterator[Case]:
    label = "{} backward"
    yield from named("gradient", SLOPES, of_x, label=label, way=BACKWARD)
    yield from named("gradient", ACTIVATIONS, of_s, label=label, way=BACKWARD)
    yield from named("gradient", SLOPES_OF_TWO, of_two, label=label, way=BACKWARD)
    more: dict[str, Callable[..., Any]] = {
        "acosh": lambda m, f, large: m.acosh(large),
        "gelu tanh": lambda m, f, s: f.gelu(s, approximate="tanh"),
        "polygamma": lambda m, f, x: m.polygamma(1, x),
        "threshold": lambda m, f, s: f.threshold(s, 0.5, 2.0),
        "prelu": lambda m, f, s, y: f.prelu(s, y[0]),
        "clamp": lambda m, f, x: m.clamp(x, 0.25, 0.625),
        "x ** 2.5": lambda m, f, x: x**2.5,
        "lerp tensor": lambda m, f, x, y, z: m.lerp(x, y, z),
        "addcmul": lambda m, f, x, y, z: m.addcmul(x, y, z, value=0.5),
        "addcdiv": lambda m, f, x, y, z: m.addcdiv(x, y, z, value=0.5),
    }
    for name, f in more.items():
        yield Case(label.format(name), "gradient", f, BACKWARD,
                   jumps=0.02 if name == "clamp" else 0)  # fmt: skip
    yield Case("where backward", "gradient", lambda m, f, truth, x, y: m.where(truth, x, y),
               way=BACKWARD, part=(1, 0, 0))  # fmt: skip


def layouts() -> Iterator[Case]:
    """Broadcasts, strides, offsets and dtypes that meet in one op."""
    cases: dict[str, Callable[..., Any]] = {
        "x + y.T": lambda m, f, x, y: x + y.T,
        "x.T + y.T": lambda m, f, x, y: x.T + y.T,
        "x[1:] + y[:-1]": lambda m, f, x, y: x[1:] + y[:-1],
        "flat x[1:] + y[:-1]": lambda m, f, x, y: x.reshape(-1)[1:] + y.reshape(-1)[:-1],
        "x[:, 1:-2] + 1": lambda m, f, x: x[:, 1:-2] + 1.0,
        "x + row": lambda m, f, x, row: x + row,
        "x * column": lambda m, f, x, column: x * column,
        "row + column": lambda m, f, row, column: row + column,
        "x.T + row": lambda m, f, x, row: x.T + row[: x.shape[0]],
        "5-D x + y": lambda m, f, deep, deeper: deep.permute(0, 2, 1, 3, 4) + deeper,
        "x + other float": lambda m, f, x, other: x + other,
        "x < other float": lambda m, f, x, other: x < other,
        "x + int32": lambda m, f, x, i: x + i,
        "x to other float": lambda m, f, x: x.to(m.float16 if x.dtype is m.float32 else m.float32),
        "x to float64": lambda m, f, x: x.to(m.float64),
        "x to int32": lambda m, f, x: x.to(m.int32),
        "x to int64": lambda m, f, x: x.to(m.int64),
        "x to bool": lambda m, f, x: x.to(m.bool),
        "uint8 to x": lambda m, f, byte, c: byte.to(c.dtype),
        "int32 to x": lambda m, f, i, c: i.to(c.dtype),
        "bool to x": lambda m, f, truth, c: truth.to(c.dtype),
        "other to x": lambda m, f, other, c: other.to(c.dtype),
        "x.T to other float": lambda m, f, x: x.T.to(
            m.float16 if x.dtype is m.float32 else m.float32
        ),
    }
    for label, f in cases.items():
        yield Case(label, "layout", f)
    # Memory moves sectors of 32 bytes: every other element costs as much as all of them.
    yield Case("x[:, ::2] + y", "layout", lambda m, f, wide, y: wide[:, ::2] + y)


def cases() -> Iterator[Case]:
    yield from functions()
    yield from gradients()
    yield from layouts()
    yield from named("small", SMALL, of_small, label="{} 4x64")
    small: dict[str, Callable[..., Any]] = {
        "x + 1 4x64": lambda m, f, a: a + 1.0,
        "x + row 4x64": lambda m, f, a, c: a + c,
        "where 4x64": lambda m, f, e, a, b: m.where(e, a, b),
        "clamp 4x64": lambda m, f, a: m.clamp(a, 0.25, 0.625),
        "to float64 4x64": lambda m, f, a: a.to(m.float64),
    }
    for label, f in small.items():
        yield Case(label, "small", f)
    yield Case("gelu backward 4x64", "small", lambda m, f, a: f.gelu(a), way=BACKWARD)
