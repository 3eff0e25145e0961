# SPDX-License-Identifier: Apache-2.0
"""Functions composed of those in C++, where their speed matters less than that they are there."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import check_one_device
from oneflow_lite._division import floor_divide, fmod, remainder, without_slope
from oneflow_lite._einsum import einsum
from oneflow_lite._oneflow_lite import _C, Tensor, dtype
from oneflow_lite._promotion import common_dtype

_Operand = Tensor | float


def wide(x: Tensor) -> dtype:
    """What 16-bit floats are computed in, to be rounded once."""
    return _ext.float64 if x.dtype is _ext.float64 else _ext.float32


def as_given(y: Tensor, input: Tensor) -> Tensor:
    """The result in the dtype of a floating input."""
    return y.to(None, input.dtype) if input.dtype.is_floating_point else y


def as_float(input: Tensor) -> Tensor:
    """Integers and bool as float32; floats as they are."""
    return input if input.dtype.is_floating_point else input.to(None, _ext.float32)


def rounded_once(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of tensors of one dtype, that which they are promoted to; of 16 bits, computed
    in float32.
    """

    @functools.wraps(function)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        tensors = [t for t in (input, *args, *kwargs.values()) if isinstance(t, Tensor)]
        given = tensors[0].dtype if tensors else None
        mixed = any(t.dtype is not given for t in tensors)
        if mixed:
            given = common_dtype(tensors)
        narrow = given in (_ext.float16, _ext.bfloat16)
        if not mixed and not narrow:
            return function(input, *args, **kwargs)

        def cast(t: Any) -> Any:
            if not isinstance(t, Tensor):
                return t
            t = t.to(None, given)
            return t.to(None, _ext.float32) if narrow else t

        named = {name: cast(t) for name, t in kwargs.items()}
        y = function(cast(input), *map(cast, args), **named)
        return y.to(None, given) if narrow else y

    return call


def of_its_own(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which copies where it would give its input or a view of it."""

    @functools.wraps(function)
    def call(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = function(input, *args, **kwargs)
        if not isinstance(input, Tensor):
            return found
        base = input if input._base is None else input._base
        parts = [found] if isinstance(found, Tensor) else list(found)
        parts = [t.clone() if t is input or t._base is base else t for t in parts]
        return parts[0] if isinstance(found, Tensor) else tuple(parts)

    return call


# From 1 to the next number.
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

# Elementwise ----------------------------------------------------------------------------------


def square(input: Tensor) -> Tensor:
    """x^2; of bool as int64."""
    return _C.pow(input, 2)


def reciprocal(input: Tensor) -> Tensor:
    """1 / x."""
    return 1 / input


@of_its_own
def ceil(input: Tensor) -> Tensor:
    """The smallest integer not below each element."""
    return -_C.floor(-input) if input.dtype.is_floating_point else input


def trunc(input: Tensor) -> Tensor:
    """Each element without its fraction."""
    return _C.where(input < 0, ceil(input), _C.floor(input))


@of_its_own
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest integer, the even one where two are; or so many digits after the point."""
    if not input.dtype.is_floating_point:
        return input
    x = input * 10.0**decimals if decimals else input
    plain = x.detach()
    # From here on all numbers are integers: a sum with it is rounded to one, a half to the even.
    whole = 1 / _EPSILON[x.dtype.name]
    size = abs(plain)
    near = (size + whole) - whole
    y = _C.where(plain < 0, -near, near)
    y = _C.where(size < whole, y, plain)
    y = _C.where(y == 0, x * 0, y)  # which has the sign, and a gradient
    return y / 10.0**decimals if decimals else y


@rounded_once
def expm1(input: Tensor) -> Tensor:
    """exp(x) - 1, for small x too."""
    # 2 t / (1 - t) with t = tanh(x / 2): no cancellation; exp itself where t is near 1.
    large = input > 1
    t = _C.tanh(_C.where(large, 0.0, input) * 0.5)
    return _C.where(large, _C.exp(input) - 1, 2 * t / (1 - t))


def sign(input: Tensor) -> Tensor:
    """1, 0 or -1; NaN where x is; its gradient is 0."""
    x = input.detach()
    y = (x > 0).to(None, x.dtype) - (x < 0).to(None, x.dtype) if x.dtype is not _ext.bool else x
    return _C.where(x == x, y, input) if x.dtype.is_floating_point else y


@rounded_once
def log1p(input: Tensor) -> Tensor:
    """log(1 + x), for small x too."""
    u = 1 + input
    # What the addition rounded off, through the derivative.
    lost = (u - 1 - input).detach() / u.detach()
    return _C.log(u) - _C.where(lost.isfinite(), lost, 0.0)


@rounded_once
def log2(input: Tensor) -> Tensor:
    """The logarithm to the base 2."""
    return _C.log(input) * (1 / math.log(2))


@rounded_once
def exp2(input: Tensor) -> Tensor:
    """2^x."""
    return _C.exp(input * math.log(2))


def _truth(x: Tensor) -> Tensor:
    return x if x.dtype is _ext.bool else x != 0


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Whether neither is 0."""
    return _truth(input) & _truth(other)


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Whether one is not 0."""
    return _truth(input) | _truth(other)


def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Whether exactly one is not 0."""
    return _truth(input) != _truth(other)


def check_tolerances(name: str, rtol: float, atol: float) -> None:
    """ValueError in the name of a function for one that is negative."""
    for which, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise ValueError(f"{name}(): {which} is {value}, but it must not be negative")


def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Where ``|input - other| <= atol + rtol * |other|``; see :func:`allclose`."""
    check_tolerances("isclose", rtol, atol)
    if input.dtype is _ext.bool and other.dtype is _ext.bool:
        return input == other
    within = abs(input - other) <= atol + rtol * abs(other)
    close = (input == other) | within & other.isfinite()
    return close | input.isnan() & other.isnan() if equal_nan else close


@of_its_own
def nan_to_num(
    input: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN and the infinities replaced, by default by 0 and the dtype's largest numbers."""
    if not input.dtype.is_floating_point:
        return input
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38,
               "float32": 3.4028234663852886e38}  # fmt: skip
    most = largest.get(input.dtype.name, 1.7976931348623157e308)
    y = _C.where(input.isnan(), nan, input)
    y = _C.where(y == math.inf, most if posinf is None else posinf, y)
    return _C.where(y == -math.inf, -most if neginf is None else neginf, y)


@rounded_once
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return input + tensor1 * tensor2 * value


@rounded_once
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return input + tensor1 / tensor2 * value


@rounded_once
def lerp(input: Tensor, end: Tensor, weight: _Operand) -> Tensor:
    """``input + weight * (end - input)``."""
    return input + weight * (end - input)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, 1-D. Waits for the device."""
    if mask.dtype is not _ext.bool:
        raise _ext.DTypeError(f"masked_select(): mask has dtype {mask.dtype.name}, expected bool")
    check_one_device("masked_select", input=input, mask=mask)
    shape = _C.where(mask, input.detach(), 0).shape if input.shape != mask.shape else mask.shape
    return input.expand(shape)[mask.expand(shape)]


# Sums and products ----------------------------------------------------------------------------


def mm(input: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices."""
    if input.ndim != 2 or other.ndim != 2:
        raise _ext.ShapeError(f"mm(): takes matrices, not shapes {list(input.shape)} and "
                              f"{list(other.shape)}")  # fmt: skip
    return _C.matmul(input, other)


def bmm(input: Tensor, other: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    if input.ndim != 3 or other.ndim != 3 or input.shape[0] != other.shape[0]:
        raise _ext.ShapeError(f"bmm(): takes batches of matrices, not shapes {list(input.shape)} "
                              f"and {list(other.shape)}")  # fmt: skip
    return _C.matmul(input, other)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """The inner product of two 1-D tensors."""
    if input.ndim != 1 or other.ndim != 1:
        raise _ext.ShapeError(f"dot(): takes tensors of 1 dim, not shapes {list(input.shape)} and "
                              f"{list(other.shape)}")  # fmt: skip
    return _C.matmul(input, other)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a 1-D tensor."""
    if input.ndim != 2 or vec.ndim != 1:
        raise _ext.ShapeError(f"mv(): takes a matrix and a tensor of 1 dim, not shapes "
                              f"{list(input.shape)} and {list(vec.shape)}")  # fmt: skip
    return _C.matmul(input, vec)


def _integer(name: str, which: str, factor: float) -> int:
    if not float(factor).is_integer():
        raise ValueError(f"{name}(): {which} is {factor}, but it must be an integer for tensors of "
                         "integers")  # fmt: skip
    return int(factor)


@rounded_once
def plus_product(input: Tensor, product: Tensor, beta: float, alpha: float, name: str) -> Tensor:
    """``beta * input + alpha * product``; where beta is 0, input gives its shape alone."""
    if not input.dtype.is_floating_point:  # then a float that is an integer counts as one
        alpha, beta = _integer(name, "alpha", alpha), _integer(name, "beta", beta)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product + _C.zeros_like(input)
    return (input if beta == 1 else input * beta) + product


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``; where beta is 0, input gives its shape alone."""
    return plus_product(input, mm(mat1, mat2), beta, alpha, "addmm")


def outer(input: Tensor, other: Tensor) -> Tensor:
    """Each element of one 1-D tensor times each of another."""
    if input.ndim != 1 or other.ndim != 1:
        raise _ext.ShapeError(f"outer(): takes tensors of 1 dim, not shapes {list(input.shape)} "
                              f"and {list(other.shape)}")  # fmt: skip
    return input.view(-1, 1) * other.view(1, -1)


def norm(
    input: Tensor,
    p: float | str | None = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
) -> Tensor:
    """The p-norm over dims, or over all; p may be infinite."""
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm(): p is "{p}", but it must be a number or "fro"')
    return _C.vector_norm(input, 2.0 if p is None or p == "fro" else p, dim, keepdim, dtype)


def clamp(input: Tensor, min: _Operand | None = None, max: _Operand | None = None) -> Tensor:
    """Each element, not below ``min`` and not above ``max``: numbers, or tensors that broadcast."""
    if not isinstance(min, Tensor) and not isinstance(max, Tensor):
        return _C.clamp(input, min, max)
    y = input if min is None else _C.maximum(input, min)
    return y if max is None else _C.minimum(y, max)


def clamp_min(input: Tensor, min: _Operand) -> Tensor:
    """Each element, not below ``min``."""
    return clamp(input, min)


def clamp_max(input: Tensor, max: _Operand) -> Tensor:
    """Each element, not above ``max``."""
    return clamp(input, None, max)


def div(input: _Operand, other: _Operand, *, rounding_mode: str | None = None) -> Tensor:
    """The ratio; with ``rounding_mode`` "floor" rounded down, with "trunc" towards 0."""
    if rounding_mode is None:
        return _C.div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode != "trunc":
        raise ValueError(f'div(): rounding_mode is "{rounding_mode}", but it must be None, "floor" '
                         'or "trunc"')  # fmt: skip
    down = floor_divide(input, other)
    if down.dtype.is_floating_point:
        return without_slope(lambda a, b: trunc(_C.div(a, b)), input, other)
    # Of integers: rounded down is one too few where there is a rest and the signs differ.
    return down + ((down < 0) & (remainder(input, other) != 0)).to(None, down.dtype)


FUNCTIONS = (
    addcdiv, addcmul, addmm, bmm, ceil, clamp, clamp_max, clamp_min, div, dot,
    einsum, exp2, expm1, floor_divide, fmod, isclose, lerp, log1p, log2, logical_and, logical_or,
    logical_xor, masked_select, mm, mv, nan_to_num, norm, outer, reciprocal, remainder, round,
    sign, square, trunc,
)  # fmt: skip
METHODS = tuple(f for f in FUNCTIONS if f is not einsum)
# PyTorch's other names for the same; functional/aliases.cpp has those of C++ functions.
ALIASES = {"clip": "clamp", "divide": "div", "moveaxis": "movedim", "true_divide": "div"}
IN_PLACE = (
    "abs", "absolute", "addcdiv", "addcmul", "addmm", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "cos", "cumprod",
    "cumsum", "erf", "exp", "exp2", "expm1", "floor", "floor_divide", "fmod", "lerp", "log",
    "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "masked_fill",
    "nan_to_num", "neg", "negative", "pow", "reciprocal", "relu", "remainder", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sqrt", "square", "tanh", "tril", "triu", "trunc",
)  # fmt: skip
