# SPDX-License-Identifier: Apache-2.0
"""Activations composed of functions; with ``inplace`` the result is written into the input."""

from __future__ import annotations

import math
from collections.abc import Callable

from oneflow_lite._math import as_given, wide
from oneflow_lite._oneflow_lite import (
    _C,
    Generator,
    ShapeError,
    Tensor,
    dtype,
    is_grad_enabled,
)


def kept(input: Tensor, inplace: bool) -> Tensor:
    """What backward may keep: a copy of an input that will be overwritten."""
    return input.clone() if inplace and input.requires_grad and is_grad_enabled() else input


def into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, written into the input's memory where wanted."""
    return input.copy_(result) if inplace else result


def once(input: Tensor, compute: Callable[[Tensor], Tensor], inplace: bool = False) -> Tensor:
    """What ``compute`` makes of the input; of 16-bit floats in float32, rounded once."""
    y = compute(kept(input, inplace).to(None, wide(input)))
    return into(input, as_given(y, input), inplace)


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


def _elu(x: Tensor, alpha: float) -> Tensor:
    positive = x > 0
    # exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), without cancellation below 0.
    t = _C.tanh(_C.where(positive, 0.0, x) * 0.5)
    return _C.where(positive, x, 2 * alpha * t / (1 - t))


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, else ``alpha * (exp(x) - 1)``."""
    return once(input, lambda x: _elu(x, alpha), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x > threshold``."""

    def of_wide(x: Tensor) -> Tensor:
        x = x * beta
        straight = x > min(threshold, 40.0)  # where the rest rounds to nothing, and exp is finite
        bent = _C.log1p(_C.exp(_C.where(straight, 0.0, x)))
        return _C.where(straight, x, bent) / beta

    return once(input, of_wide)


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))`` without overflow."""
    return -softplus(-input, threshold=math.inf)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element itself where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""
    return once(input, lambda x: _elu(x / alpha, 1.0) * alpha, inplace)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """:func:`elu` scaled so that mean 0 and variance 1 stay."""
    return once(input, lambda x: _elu(x, _SELU_ALPHA) * _SELU_SCALE, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return once(input, lambda x: x * _C.tanh(softplus(x)), inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """The element, not below ``min_val`` and not above ``max_val``."""
    if min_val > max_val:
        raise ValueError(f"hardtanh(): min_val {min_val} is above max_val {max_val}")
    y = _C.clamp(kept(input, inplace), min_val, max_val)
    return into(input, y.to(None, input.dtype), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The element, not below 0 and not above 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``x / 6 + 1 / 2``, not below 0 and not above 1."""
    return once(input, lambda x: _C.clamp(x / 6 + 0.5, 0.0, 1.0), inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """X times its :func:`hardsigmoid`."""
    return once(input, lambda x: x * hardsigmoid(x), inplace)


def softsign(input: Tensor) -> Tensor:
    """``x / (1 + |x|)``."""
    return once(input, lambda x: x / (1 + abs(x)))


def tanhshrink(input: Tensor) -> Tensor:
    """``x - tanh(x)``."""
    return once(input, lambda x: x - _C.tanh(x))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where ``|x| <= lambd``, else the element."""
    return _C.where(abs(input) <= lambd, 0.0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """The element moved by ``lambd`` towards 0, and 0 where that passes it."""
    if lambd < 0:
        raise ValueError(f"softshrink(): lambd is {lambd}, but it must not be negative")
    moved = _C.where(input > 0, input - lambd, input + lambd)
    return _C.where(abs(input) <= lambd, 0.0, moved)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """The element where it is above ``threshold``, else ``value``; compared in float32 at least."""
    x = kept(input, inplace)
    narrow = x.dtype.is_floating_point and x.dtype.itemsize < 4
    low = (x.float() if narrow else x) <= threshold
    return into(input, _C.where(low, value, x), inplace)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The element where it is positive, else ``weight`` times it.

    ``weight`` has one number, or one per channel, dim 1; ShapeError otherwise.
    """
    if weight.numel() > 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.numel() != channels:
            raise ShapeError(f"prelu(): weight has shape {list(weight.shape)}, expected [1] or "
                             f"[{channels}]")  # fmt: skip
        weight = weight.view([-1, *[1] * (input.ndim - 2)])
    elif input.ndim == 0:
        weight = weight.view(())
    return _C.where(input > 0, input, input * weight)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dim times the sigmoid of the second."""
    size = input.shape[dim] if input.ndim > 0 else 1
    if size % 2:
        raise ShapeError(f"glu(): input has shape {list(input.shape)}, expected an even size of "
                         f"dim {dim}")  # fmt: skip
    value, gate = _C.chunk(input, 2, dim)
    return once(gate, lambda x: value * _C.sigmoid(x))


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """A sample of each row's distribution, as shares that have a gradient.

    ``softmax((logits + g) / tau)`` with g from the Gumbel distribution, by Jang, Gu and Poole,
    "Categorical Reparameterization with Gumbel-Softmax".

    Parameters
    ----------
    logits : Tensor
        Logarithms of probabilities, up to a number per row.
    tau : float
        Near 0 the shares come near to 0 and 1.
    hard : bool
        Exactly 1 at the largest and 0 elsewhere, with the gradient of the shares.
    eps : float
        Means nothing: the numbers drawn need no guard.
    generator : Generator, optional
        Where they come from.
    """
    drawn = _C.rand(list(logits.shape), dtype=wide(logits), device=logits.device,
                    generator=generator)  # fmt: skip
    noise = -_C.log(-_C.log1p(-drawn))  # of 1 - drawn, which is in (0, 1]; -log of it may be 0
    shares = _C.softmax((logits + noise.clamp(None, 60.0).to(None, logits.dtype)) / tau, dim)
    if not hard:
        return shares
    place = shares.detach().argmax(dim, keepdim=True)
    return _C.zeros_like(shares).scatter(dim, place, 1.0) - shares.detach() + shares
