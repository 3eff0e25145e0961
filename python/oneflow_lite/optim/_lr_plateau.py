# SPDX-License-Identifier: Apache-2.0
"""A schedule that looks at how well training goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite.optim._lr_base import LRScheduler
from oneflow_lite.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Times ``factor`` when a metric has stopped to improve.

    Parameters
    ----------
    optimizer : Optimizer
        Whose step sizes are changed.
    mode : str
        "min" or "max": which metric is better.
    factor : float
        Below 1.
    patience : int
        How many epochs in a row may be without an improvement.
    threshold, threshold_mode : float, str
        What is one: by that share of the best metric ("rel") or by that much ("abs").
    cooldown : int
        How many epochs after a change do not count.
    min_lr : float or sequence of float
        The least step size, or that of each group.
    eps : float
        Smaller changes are not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau(): factor is {factor}, but it must be below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f'ReduceLROnPlateau(): mode is "{mode}" and threshold_mode '
                             f'"{threshold_mode}", but they must be "min" or "max", and "rel" or '
                             '"abs"')  # fmt: skip
        self.optimizer = optimizer
        self.min_lr = min_lr
        self._least()
        self.mode, self.decay, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0

    def _better(self, metric: float) -> bool:
        by = self.threshold if self.mode == "max" else -self.threshold
        bound = self.best * (1 + by) if self.threshold_mode == "rel" else self.best + by
        return metric > bound if self.mode == "max" else metric < bound

    def _least(self) -> list[float]:
        count = len(self.optimizer.param_groups)
        if not isinstance(self.min_lr, Sequence):
            return [self.min_lr] * count
        if len(self.min_lr) != count:
            raise ValueError(f"ReduceLROnPlateau(): {len(self.min_lr)} min_lr for {count} groups")
        return list(self.min_lr)

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """One epoch, which ended with this metric, a number or a tensor of one."""
        self.last_epoch += 1
        metric = float(metrics)
        if self._better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            for group, least in zip(self.optimizer.param_groups, self._least(), strict=True):
                lr = max(group["lr"] * self.decay, least)
                if group["lr"] - lr > self.eps:
                    group["lr"] = lr
