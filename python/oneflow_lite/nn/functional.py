# SPDX-License-Identifier: Apache-2.0
"""The functions of neural networks: most are the C++ functions themselves, without a Python frame.

>>> F.softmax(x, dim=None, dtype=None)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite._C import (
    add_layer_norm,
    add_rms_norm,
    cross_entropy,
    embedding,
    fused_scale_mask_softmax,
    gelu,
    layer_norm,
    linear,
    log_softmax,
    nll_loss,
    relu,
    rms_norm,
    sigmoid,
    silu,
    softmax,
    tanh,
)
from oneflow_lite._math import log1p, norm
from oneflow_lite._oneflow_lite import (
    _C,
    Generator,
    ShapeError,
    Tensor,
    dtype,
    float32,
    float64,
    int64,
)

__all__ = [
    "add_layer_norm", "add_rms_norm", "binary_cross_entropy_with_logits", "cross_entropy",
    "dropout", "elu", "embedding", "fused_scale_mask_softmax", "gelu", "kl_div", "l1_loss",
    "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mse_loss", "nll_loss",
    "normalize", "one_hot", "pad", "relu", "rms_norm", "scaled_dot_product_attention", "sigmoid",
    "silu", "smooth_l1_loss", "softmax", "softmin", "softplus", "tanh",
]  # fmt: skip


def _wide(x: Tensor) -> dtype:
    """What 16-bit floats are computed in, to be rounded once."""
    return float64 if x.dtype is float64 else float32


def softmin(input: Tensor, dim: int | None = None, dtype: dtype | None = None) -> Tensor:
    """Softmax of ``-input``."""
    return softmax(-input, dim, dtype)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """X where x > 0, else ``negative_slope * x``."""
    return _C.where(input > 0, input, input * negative_slope)


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """X where x > 0, else ``alpha * (exp(x) - 1)``."""
    x = input.to(None, _wide(input))
    positive = x > 0
    # exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2), without cancellation below 0.
    t = _C.tanh(_C.where(positive, 0.0, x) * 0.5)
    y = _C.where(positive, x, 2 * alpha * t / (1 - t))
    return y.to(None, input.dtype) if input.dtype.is_floating_point else y


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and x where ``beta * x > threshold``."""
    x = input.to(None, _wide(input)) * beta
    straight = x > min(threshold, 40.0)  # where the rest rounds to nothing, and exp is finite
    bent = log1p(_C.exp(_C.where(straight, 0.0, x)))
    y = _C.where(straight, x, bent) / beta
    return y.to(None, input.dtype) if input.dtype.is_floating_point else y


def logsigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(x))`` without overflow."""
    return -softplus(-input, threshold=math.inf)


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Elements set to 0 with probability ``p``, the others times ``1 / (1 - p)``.

    Parameters
    ----------
    p : float
        In [0, 1].
    training : bool
        False: ``input`` itself.
    inplace : bool
        Write the result into ``input``.
    generator : Generator, optional
        Where the numbers come from; the same seed drops the same elements on every device.

    Raises
    ------
    ValueError
        For another ``p``.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout(): p is {p}, but it must be in [0, 1]")
    if not training or p == 0:
        return input
    drawn = _C.rand(list(input.shape), device=input.device, generator=generator)
    factor = (drawn >= p).to(None, _wide(input)) * (1 / (1 - p) if p < 1 else 0.0)
    result = (input.to(None, _wide(input)) * factor).to(None, input.dtype)
    return input.copy_(result) if inplace else result


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 ``[..., num_classes]``: 1 at the class that each element names, else 0.

    With ``num_classes=-1`` there are as many as the largest one says, which waits for the device.
    """
    if tensor.dtype is not int64:
        raise TypeError(f"one_hot(): takes a tensor of int64, not of {tensor.dtype.name}")
    largest = int(tensor.amax()) if tensor.numel() > 0 else -1
    if num_classes == -1:
        if tensor.numel() == 0:
            raise ValueError("one_hot(): an empty tensor does not tell num_classes")
        num_classes = largest + 1
    if tensor.numel() > 0 and not (int(tensor.amin()) >= 0 and largest < num_classes):
        raise ValueError(f"one_hot(): a class is out of range [0, {num_classes - 1}]")
    classes = _C.arange(num_classes, device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).long()


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """``input`` over its p-norm along a dim, which counts as ``eps`` at least."""
    return input / _C.clamp(norm(input, p, dim, keepdim=True), eps)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    """``value`` put before and after: ``pad`` has a pair per dim, from the last one on.

    Only ``mode="constant"``; a negative width cuts.
    """
    if mode != "constant":
        raise NotImplementedError(f'pad(): mode is "{mode}", but only "constant" is there')
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ValueError(f"pad(): {list(pad)} are not at most {input.ndim} pairs")
    for i in range(0, len(pad), 2):
        dim, (before, after) = input.ndim - 1 - i // 2, pad[i : i + 2]
        size = input.shape[dim]
        start, length = max(0, -before), size + min(0, before) + min(0, after)
        parts = [input.narrow(dim, start, length)]
        for width, at in ((before, 0), (after, 2)):
            shape = [*input.shape[:dim], max(0, width), *input.shape[dim + 1 :]]
            filled = _C.full(shape, value, dtype=input.dtype, device=input.device)
            parts.insert(at, filled)
        input = _C.cat(parts, dim)
    return input


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """``softmax(query @ key^T * scale + mask) @ value``, the scores in one fused softmax.

    Parameters
    ----------
    query, key, value : Tensor
        ``[..., queries, d]``, ``[..., keys, d]``, ``[..., keys, dv]``.
    attn_mask : Tensor, optional
        True keeps a score (bool), or it is added; broadcast to ``[..., queries, keys]``.
    dropout_p : float
        Share of the probabilities that are dropped.
    is_causal : bool
        A query sees the keys up to its own, counted from the last ones.
    scale : float, optional
        ``1 / sqrt(d)`` where absent.
    """
    scores = _C.matmul(query, key.mT)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    shares = fused_scale_mask_softmax(scores, attn_mask, scale, causal=is_causal)
    return _C.matmul(dropout(shares, dropout_p, training=dropout_p > 0), value)


# Losses ---------------------------------------------------------------------------------------


def _reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'{name}(): reduction is "{reduction}", but it must be "none", "sum" or '
                         '"mean"')  # fmt: skip
    return loss if reduction == "none" else getattr(loss, reduction)()


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``(input - target)^2``, reduced by "mean", "sum" or not ("none")."""
    difference = input - target
    return _reduced("mse_loss", difference * difference, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """``|input - target|``, reduced as in :func:`mse_loss`."""
    return _reduced("l1_loss", abs(input - target), reduction)


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """:func:`l1_loss` less ``beta / 2``, and below ``beta`` a parabola that joins it."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss(): beta is {beta}, but it must not be negative")
    size = abs(input - target)
    if beta == 0:
        return _reduced("smooth_l1_loss", size, reduction)
    loss = _C.where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta)
    return _reduced("smooth_l1_loss", loss, reduction)


def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """``target * (log(target) - input)``, input being log-probabilities; 0 where target is 0.

    ``reduction="batchmean"`` divides the sum by the first dim.
    """
    if log_target:
        loss = _C.exp(target) * (target - input)
    else:
        absent = target == 0
        log = _C.log(_C.where(absent, 1.0, target))
        loss = _C.where(absent, 0.0, target * (log - input))
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return _reduced("kl_div", loss, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``-target * log(sigmoid(x)) - (1 - target) * log(sigmoid(-x))``, without overflow.

    ``weight`` multiplies each loss, ``pos_weight`` its first term.
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"binary_cross_entropy_with_logits(): target has shape {list(target.shape)}, expected "
            f"{list(input.shape)}"
        )
    positive: Any = target if pos_weight is None else target * pos_weight
    loss = positive * softplus(-input) + (1 - target) * softplus(input)
    loss = loss if weight is None else loss * weight
    return _reduced("binary_cross_entropy_with_logits", loss, reduction)
