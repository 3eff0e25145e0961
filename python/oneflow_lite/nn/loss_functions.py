# SPDX-License-Identifier: Apache-2.0
"""Losses composed of functions, reduced by "mean", "sum" or not ("none")."""

from __future__ import annotations

from typing import Any

import numpy as np

from oneflow_lite._C import logsigmoid
from oneflow_lite._math import as_given, wide
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite._warnings import warn


def _reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f'{name}(): reduction is "{reduction}", but it must be "none", "sum" or '
                         '"mean"')  # fmt: skip
    return loss if reduction == "none" else getattr(loss, reduction)()


def _check_shapes(name: str, input: Tensor, target: Tensor, *, warned: bool = True) -> None:
    """ShapeError where two shapes do not broadcast; where they do, a warning."""
    if input.shape == target.shape:
        return
    shapes = f"{name}(): target has shape {list(target.shape)}, input {list(input.shape)}: they"
    try:
        np.broadcast_shapes(input.shape, target.shape)
    except ValueError:
        raise ShapeError(f"{shapes} do not broadcast") from None
    if warned:
        warn(f"{shapes} broadcast, which is seldom meant")


def _weighted(
    name: str, input: Tensor, target: Tensor, loss: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    """The loss of each element times its weight, reduced; a mean is over the weights' sum."""
    if weight is None:
        return _reduced(name, loss, reduction)
    if weight.shape != input.shape:
        raise ShapeError(f"{name}(): weight has shape {list(weight.shape)}, expected "
                         f"{list(input.shape)}")  # fmt: skip
    loss = loss * weight
    if reduction != "mean":
        return _reduced(name, loss, reduction)
    # A sum of 16 bits that overflows may have a mean that does not.
    total, weights = loss.sum(dtype=wide(loss)), weight.sum(dtype=wide(weight))
    return as_given(total / weights, loss)


def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", *, weight: Tensor | None = None
) -> Tensor:
    """``(input - target)^2``, reduced by "mean", "sum" or not ("none").

    ``weight``, of the input's shape, multiplies each loss; the mean is over its sum.
    """
    _check_shapes("mse_loss", input, target)
    difference = input - target
    return _weighted("mse_loss", input, target, difference * difference, weight, reduction)


def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", *, weight: Tensor | None = None
) -> Tensor:
    """``|input - target|``, weighted and reduced as in :func:`mse_loss`."""
    _check_shapes("l1_loss", input, target)
    return _weighted("l1_loss", input, target, abs(input - target), weight, reduction)


def _smooth_l1(input: Tensor, target: Tensor, beta: float) -> Tensor:
    size = abs(input - target)
    if beta == 0:
        return size
    given, size = size, size.to(None, wide(size))  # the square of 16 bits soon overflows
    near = _C.clamp(size, None, beta)  # an infinite one would leave NaN in the gradient
    loss = _C.where(size < beta, near * near * (0.5 / beta), size - 0.5 * beta)
    return as_given(loss, given)


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """:func:`l1_loss` less ``beta / 2``, and below ``beta`` a parabola that joins it."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss(): beta is {beta}, but it must not be negative")
    _check_shapes("smooth_l1_loss", input, target)
    loss = _smooth_l1(input, target, beta)
    return _weighted("smooth_l1_loss", input, target, loss, None, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``delta`` times :func:`smooth_l1_loss` with that ``beta``; weighted as :func:`mse_loss`."""
    if delta <= 0:
        raise ValueError(f"huber_loss(): delta is {delta}, but it must be positive")
    _check_shapes("huber_loss", input, target)
    loss = _smooth_l1(input, target, delta) * delta
    return _weighted("huber_loss", input, target, loss, weight, reduction)


def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """``target * (log(target) - input)``, input being log-probabilities; 0 where target is 0.

    ``reduction="batchmean"`` divides the sum by the first dim.
    """
    _check_shapes("kl_div", input, target, warned=False)
    if log_target:
        loss = _C.exp(target) * (target - input)
    else:
        absent = target == 0
        log = _C.log(_C.where(absent, 1.0, target))
        loss = _C.where(absent, 0.0, target * (log - input))
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim > 0 else 1)
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
    loss = positive * -logsigmoid(input) + (1 - target) * -logsigmoid(-input)
    loss = loss if weight is None else loss * weight
    return _reduced("binary_cross_entropy_with_logits", loss, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """``-target * log(x) - (1 - target) * log(1 - x)`` of probabilities; logarithms from -100 on.

    ``weight`` multiplies each loss. ValueError where an input or a target is outside [0, 1]; a GPU,
    which would have to be waited for, does not look.
    """
    if input.shape != target.shape:
        raise ShapeError(
            f"binary_cross_entropy(): target has shape {list(target.shape)}, expected "
            f"{list(input.shape)}"
        )
    for name, shares in (("input", input), ("target", target)):
        _check_shares(name, shares.detach())
    x, y = input.to(None, wide(input)), target.to(None, wide(input))
    loss = -y * _log_from(x) - (1 - y) * _log_from(1 - x)
    loss = loss.to(None, input.dtype)
    loss = loss if weight is None else loss * weight
    return _reduced("binary_cross_entropy", loss, reduction)


def _check_shares(name: str, x: Tensor) -> None:
    if x.device.type != "cpu" or x.numel() == 0:
        return
    least, most = x.amin().item(), x.amax().item()
    if not (least >= 0 and most <= 1):
        raise ValueError(f"binary_cross_entropy(): {name} has elements from {least} to {most}, but "
                         "they must be in [0, 1]")  # fmt: skip


def _log_from(x: Tensor) -> Tensor:
    """The logarithm, not below -100, with the slope of the logarithm but of 1e-12 at least."""
    outside = x < 1e-12
    # Below, the value alone is right: the slope there is that of a line. The logarithm's own slope
    # at 0 must not be met, not even by a gradient of 0.
    value = _C.clamp(_C.log(x.detach()), -100.0)
    line = _C.where(outside, x, 0.0) * 1e12
    return _C.where(outside, line - line.detach() + value, _C.log(_C.where(outside, 1.0, x)))
