# SPDX-License-Identifier: Apache-2.0
"""Losses of a difference, which warn of shapes that broadcast; the losses themselves are in C++."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._warnings import warn


def _warn_of_shapes(name: str, input: Tensor, target: Tensor) -> None:
    """A warning where two shapes differ and yet broadcast, so that a loss came of them."""
    if input.shape != target.shape:
        warn(f"{name}(): target has shape {list(target.shape)}, input {list(input.shape)}: they "
             "broadcast, which is seldom meant")  # fmt: skip


def mse_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *by_place: Any,
    weight: Tensor | None = None,
    **older: bool | None,
) -> Tensor:
    """``(input - target)^2``, reduced by "mean", "sum" or not ("none").

    ``weight``, of the input's shape, multiplies each loss; the mean is over its sum. ``older`` are
    ``size_average`` and ``reduce``, which ``reduction`` has replaced; by place they come before it.
    """
    loss = _C.mse_loss(input, target, reduction, *by_place, weight=weight, **older)
    _warn_of_shapes("mse_loss", input, target)
    return loss


def l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *by_place: Any,
    weight: Tensor | None = None,
    **older: bool | None,
) -> Tensor:
    """``|input - target|``, weighted and reduced as in :func:`mse_loss`."""
    loss = _C.l1_loss(input, target, reduction, *by_place, weight=weight, **older)
    _warn_of_shapes("l1_loss", input, target)
    return loss


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    beta: float = 1.0,
    *by_place: Any,
    **older: bool | None,
) -> Tensor:
    """:func:`l1_loss` less ``beta / 2``, and below ``beta`` a parabola that joins it."""
    if reduction is None or isinstance(reduction, bool):  # size_average, and beta is `reduce`
        by_place = (
            (beta, *by_place) if beta is None or isinstance(beta, bool) else (None, "mean", beta)
        )
        loss = _C.smooth_l1_loss(input, target, reduction, *by_place, **older)
    else:
        loss = _C.smooth_l1_loss(input, target, reduction, beta, *by_place, **older)
    _warn_of_shapes("smooth_l1_loss", input, target)
    return loss


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``delta`` times :func:`smooth_l1_loss` with that ``beta``.

    ``weight`` multiplies each loss; unlike :func:`mse_loss`'s, the mean is over their number.
    """
    loss = _C.huber_loss(input, target, reduction, delta, weight)
    _warn_of_shapes("huber_loss", input, target)
    return loss


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` by any distance, ``pairwise_distance`` where absent."""
    if distance_function is None:
        return _C.triplet_margin_loss(anchor, positive, negative, margin, swap=swap,
                                      reduction=reduction)  # fmt: skip
    if margin <= 0:
        raise ValueError(f"triplet_margin_with_distance_loss(): margin is {margin}, but it must be "
                         "positive")  # fmt: skip
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = _C.minimum(far, distance_function(positive, negative))
    # margin_ranking_loss with the target -1 is max(0, near - far + margin).
    return _C.margin_ranking_loss(near, far, _C.full([], -1.0, dtype=near.dtype,
                                  device=near.device), margin, reduction)  # fmt: skip
