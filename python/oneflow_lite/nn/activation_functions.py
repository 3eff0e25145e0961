# SPDX-License-Identifier: Apache-2.0
"""Activations composed of functions; with ``inplace`` the result is written into the input."""

from __future__ import annotations

import math

from oneflow_lite._math import log1p
from oneflow_lite._oneflow_lite import _C, Tensor, dtype, float32, float64, is_grad_enabled


def wide(x: Tensor) -> dtype:
    """What 16-bit floats are computed in, to be rounded once."""
    return float64 if x.dtype is float64 else float32


def kept(input: Tensor, inplace: bool) -> Tensor:
    """What backward may keep: a copy of an input that will be overwritten."""
    return input.clone() if inplace and input.requires_grad and is_grad_enabled() else input


def into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, written into the input's memory where wanted."""
    return input.copy_(result) if inplace else result


def softmin(
    input: Tensor, dim: int | None = None, dtype: dtype | None = None, *, _stacklevel: int = 3
) -> Tensor:
    """Softmax of ``-input``; ``_stacklevel`` means nothing."""
    return _C.softmax(-input, dim, dtype)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; NaN stays NaN."""
    return into(input, _C.relu(input), inplace)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x / (1 + exp(-x))``, also known as swish."""
    return into(input, _C.silu(kept(input, inplace)), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, else ``negative_slope`` times it."""
    x = kept(input, inplace)
    return into(input, _C.where(x > 0, x, x * negative_slope), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, else ``alpha * (exp(x) - 1)``."""
    x = kept(input, inplace).to(None, wide(input))
    positive = x > 0
    # exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), without cancellation below 0.
    t = _C.tanh(_C.where(positive, 0.0, x) * 0.5)
    y = _C.where(positive, x, 2 * alpha * t / (1 - t))
    return into(input, y.to(None, input.dtype) if input.dtype.is_floating_point else y, inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x > threshold``."""
    x = input.to(None, wide(input)) * beta
    straight = x > min(threshold, 40.0)  # where the rest rounds to nothing, and exp is finite
    bent = log1p(_C.exp(_C.where(straight, 0.0, x)))
    y = _C.where(straight, x, bent) / beta
    return y.to(None, input.dtype) if input.dtype.is_floating_point else y


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))`` without overflow."""
    return -softplus(-input, threshold=math.inf)
