# SPDX-License-Identifier: Apache-2.0
"""Schedules that go up and down: with restarts, and once over the whole training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oneflow_lite.optim._lr_base import LRScheduler, begin_step, check_optimizer
from oneflow_lite.optim.optimizer import Optimizer


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the start to ``eta_min``, again and again.

    Parameters
    ----------
    optimizer : Optimizer
        Whose step sizes are changed.
    T_0 : int
        How many epochs the first half cosine takes.
    T_mult : int
        By how much each takes longer than the one before.
    eta_min : float
        The least step size.
    last_epoch : int
        How many steps have been taken, -1 for a start.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"CosineAnnealingWarmRestarts(): {name} is {value}, but it must "
                                 "be a positive int")  # fmt: skip
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, 0.0
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """On to the next epoch, or to the one given, such as ``3 + batch / batches``."""
        begin_step(self)
        at = self.last_epoch + 1 if epoch is None else epoch
        if at < 0:
            raise ValueError(f"step(): epoch is {epoch}, but it must not be negative")
        self.last_epoch = math.floor(at)
        self.T_i = self.T_0
        if self.T_mult == 1:
            at %= self.T_0
        while at >= self.T_i:
            at, self.T_i = at - self.T_i, self.T_i * self.T_mult
        self.T_cur = at
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up to ``max_lr`` and down to almost nothing, once: Smith and Topin, "Super-Convergence".

    Parameters
    ----------
    optimizer : Optimizer
        Whose step sizes are changed, and the momentum (Adam's first beta) where
        ``cycle_momentum``.
    max_lr : float or sequence of float
        The largest step size, or that of each group.
    total_steps : int, optional
        How many steps there are; or ``epochs`` and ``steps_per_epoch``, whose product it is.
    pct_start : float
        The share of the steps that goes up.
    anneal_strategy : str
        "cos" or "linear".
    base_momentum, max_momentum : float
        Between which the momentum goes, against the step size.
    div_factor, final_div_factor : float
        ``max_lr`` over the first step size, and that over the last.
    three_phase : bool
        Down as fast as up, and then to the last step size, instead of in one.
    last_epoch : int
        How many steps have been taken, -1 for a start.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        steps = (epochs or 0) * (steps_per_epoch or 0) if total_steps is None else total_steps
        if steps <= 0 or steps != int(steps):
            raise ValueError("OneCycleLR(): total_steps, or epochs and steps_per_epoch, must be "
                             f"positive integers, but {steps} steps are given")  # fmt: skip
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR(): pct_start is {pct_start}, but it must be in [0, 1]")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'OneCycleLR(): anneal_strategy is "{anneal_strategy}", but it must '
                             'be "cos" or "linear"')  # fmt: skip
        groups = optimizer.param_groups
        largest = list(max_lr) if isinstance(max_lr, Sequence) else [max_lr] * len(groups)
        if len(largest) != len(groups):
            raise ValueError(f"OneCycleLR(): {len(largest)} max_lr for {len(groups)} groups")
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise ValueError("OneCycleLR(): cycle_momentum needs an optimizer with momentum or "
                             "betas")  # fmt: skip
        self.total_steps, self.anneal_strategy = steps, anneal_strategy
        self.cycle_momentum, self.momenta = cycle_momentum, (base_momentum, max_momentum)
        up = pct_start * steps - 1
        # The last step of each phase, and which of first, max and min it leads to.
        self.phases = [(up, "first", "max"), (steps - 1, "max", "min")]
        if three_phase:
            self.phases = [(up, "first", "max"), (2 * up, "max", "first"),
                           (steps - 1, "first", "min")]  # fmt: skip
        for group, most in zip(groups, largest, strict=True):
            if last_epoch == -1:
                first = most / div_factor
                group.update(initial_lr=first, max_lr=most, min_lr=first / final_div_factor)
        super().__init__(optimizer, last_epoch)

    def _between(self, ends: dict[str, float]) -> float:
        """Where the present step is between the ends of its phase."""
        begin = 0.0
        for end, start, stop in self.phases:
            if self.last_epoch <= end or stop == "min":
                # A phase without a length, as where pct_start * steps is 1, is over as it starts.
                share = (self.last_epoch - begin) / (end - begin) if end != begin else 1.0
                if self.anneal_strategy == "cos":
                    return ends[stop] + (ends[start] - ends[stop]) / 2 * (
                        1 + math.cos(math.pi * share)
                    )
                return ends[start] + (ends[stop] - ends[start]) * share
            begin = end
        raise AssertionError("the last phase leads to min")

    def step(self, epoch: int | None = None) -> None:
        """On to the next step, or to the one given; ValueError behind the last one."""
        begin_step(self)
        at = self.last_epoch + 1 if epoch is None else epoch
        if at > self.total_steps:
            raise ValueError(f"step(): this is step {at} of {self.total_steps}")
        self.last_epoch = at
        self._set(self.get_lr())
        if not self.cycle_momentum:
            return
        low, high = self.momenta
        momentum = self._between({"first": high, "max": low, "min": high})
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum

    def get_lr(self) -> list[float]:
        def ends(group: dict[str, Any]) -> dict[str, float]:
            return {"first": group["initial_lr"], "max": group["max_lr"], "min": group["min_lr"]}

        return [self._between(ends(group)) for group in self.optimizer.param_groups]
