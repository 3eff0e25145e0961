# SPDX-License-Identifier: Apache-2.0
"""Functions composed of those in C++, where their speed matters less than that they are there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
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


_NARROW = (_ext.float16, _ext.bfloat16)


def in_float32(x: Tensor) -> dtype | None:
    """For the dtype of a reduction: float32 for 16-bit floats, else what it is anyway."""
    return _ext.float32 if x.dtype in _NARROW else None


def _is_read(x: Tensor) -> bool:
    return x.is_cpu and not x.is_global and not (x.requires_grad and _ext.is_grad_enabled())


def rounded_once(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of tensors of one dtype, that which they are promoted to; of 16 bits, computed
    in float32. On the CPU the function itself reads them, and results in float32, if nothing is
    recorded: gradients would be rounded each for itself.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        given = tensors[0].dtype if tensors else None
        mixed = any(t.dtype is not given for t in tensors)
        if mixed:
            given = common_dtype(tensors)
        narrow = given in _NARROW
        if not mixed and not narrow:
            return function(*args, **kwargs)
        if not mixed and all(_is_read(t) for t in tensors):
            return function(*args, **kwargs).to(None, given)

        def cast(t: Any) -> Any:
            if not isinstance(t, Tensor):
                return t
            t = t.to(None, given)
            return t.to(None, _ext.float32) if narrow else t

        named = {name: cast(t) for name, t in kwargs.items()}
        y = function(*map(cast, args), **named)
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


# Elementwise ----------------------------------------------------------------------------------


def check_tolerances(name: str, rtol: float, atol: float) -> None:
    """ValueError in the name of a function for one that is negative."""
    for which, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise ValueError(f"{name}(): {which} is {value}, but it must not be negative")


# Sums and products ----------------------------------------------------------------------------


def norm(
    input: Tensor,
    p: float | str | None = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
) -> Tensor:
    """The p-norm over dims, or over all; p may be infinite; "nuc" is the sum of a matrix's singular
    values.
    """
    if p == "nuc":
        dims = (-2, -1) if dim is None else _ext._own_list("norm", "dim", dim)
        return _C.linalg_norm(input, p, dims, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f'norm(): p is "{p}", but it must be a number, "fro" or "nuc"')
    return _C.vector_norm(input, 2.0 if p is None or p == "fro" else p, dim, keepdim, dtype)


FUNCTIONS = (einsum, norm)
METHODS = tuple(f for f in FUNCTIONS if f is not einsum)
