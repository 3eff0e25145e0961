# SPDX-License-Identifier: Apache-2.0
"""A schedule that looks at how well training goes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite.optim._lr_base import LRScheduler, check_capture, check_optimizer, set_lr
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

    Attributes
    ----------
    factor : float
        As given; in the other schedules it is a method.
    min_lrs : list of float
        The least step size of each group.
    base_lrs : list of float
        The step sizes of the groups at the start.
    """

    _of_a_metric = True
    factor: float  # type: ignore[assignment]

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
        check_optimizer(self, optimizer)
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau(): factor is {factor}, but it must be below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f'ReduceLROnPlateau(): mode is "{mode}" and threshold_mode '
                             f'"{threshold_mode}", but they must be "min" or "max", and "rel" or '
                             '"abs"')  # fmt: skip
        self.optimizer = optimizer
        self.base_lrs: list[float] = []
        # What a group that is added later gets; a list leaves it without one.
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else []
        self._take_groups()
        self.mode, self.factor, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0

    def _better(self, metric: float) -> bool:
        by = self.threshold if self.mode == "max" else -self.threshold
        bound = self.best * (1 + by) if self.threshold_mode == "rel" else self.best + by
        return metric > bound if self.mode == "max" else metric < bound

    def _take_groups(self) -> None:
        """What there is one of per group, also for the groups added since."""
        groups = self.optimizer.param_groups
        # New lists: those before may be part of a state that was taken.
        added = [g.get("initial_lr", g["lr"]) for g in groups[len(self.base_lrs) :]]
        self.base_lrs = [*self.base_lrs, *added]
        if self.default_min_lr is not None:
            self.min_lrs = [self.default_min_lr] * len(groups)
        if len(self.min_lrs) != len(groups):
            raise ValueError(f"ReduceLROnPlateau(): {len(self.min_lrs)} min_lr for {len(groups)} "
                             "groups")  # fmt: skip

    def get_lr(self) -> list[float]:
        """The step sizes that the groups have: those to come depend on the metrics."""
        return self.get_last_lr()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """One epoch, which ended with this metric, a number or a tensor of one.

        ``epoch`` is its number, by default the next; nothing depends on it.
        """
        check_capture(self.optimizer)
        self._take_groups()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        metric = float(metrics)
        if self._better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                lr = max(group["lr"] * self.factor, least)
                if group["lr"] - lr > self.eps:
                    set_lr(group, lr)
