# SPDX-License-Identifier: Apache-2.0
"""Schedules that go up and down: with restarts, once over the whole training, and in cycles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.optim._lr_base import (
    LRScheduler,
    begin_step,
    check_optimizer,
    check_positive,
    set_lr,
)
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


def _per_group(scheduler: Any, name: str, value: Any) -> list[Any]:
    """A value for each group, which may be one for all."""
    groups = scheduler.optimizer.param_groups
    values = list(value) if isinstance(value, Sequence) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(f"{type(scheduler).__name__}(): {len(values)} {name} for {len(groups)} "
                         "groups")  # fmt: skip
    return values


def _check_momentum(scheduler: Any) -> None:
    """ValueError where the optimizer has no momentum that could change."""
    if not {"momentum", "betas"} & set(scheduler.optimizer.defaults):
        raise ValueError(f"{type(scheduler).__name__}(): cycle_momentum needs an optimizer with "
                         "momentum or betas")  # fmt: skip


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


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
        self.optimizer = optimizer
        largest = _per_group(self, "max_lr", max_lr)
        if cycle_momentum:
            _check_momentum(self)
        self.total_steps, self.anneal_strategy = steps, anneal_strategy
        self.cycle_momentum, self.momenta = cycle_momentum, (base_momentum, max_momentum)
        up = pct_start * steps - 1
        # The last step of each phase, and which of first, max and min it leads to.
        self.phases = [(up, "first", "max"), (steps - 1, "max", "min")]
        if three_phase:
            self.phases = [(up, "first", "max"), (2 * up, "max", "first"),
                           (steps - 1, "first", "min")]  # fmt: skip
        for group, most in zip(optimizer.param_groups, largest, strict=True):
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
            _set_momentum(group, momentum)

    def get_lr(self) -> list[float]:
        def ends(group: dict[str, Any]) -> dict[str, float]:
            return {"first": group["initial_lr"], "max": group["max_lr"], "min": group["min_lr"]}

        return [self._between(ends(group)) for group in self.optimizer.param_groups]


_SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda at, gamma: 1.0),
    "triangular2": ("cycle", lambda at, gamma: 1 / 2.0 ** (at - 1)),
    "exp_range": ("iterations", lambda at, gamma: gamma**at),
}


class CyclicLR(LRScheduler):
    """Up to ``max_lr`` and down to ``base_lr`` in straight lines, again and again: Smith, "Cyclical
    Learning Rates".

    Parameters
    ----------
    optimizer : Optimizer
        Whose step sizes are changed, and the momentum (Adam's first beta) where
        ``cycle_momentum``.
    base_lr, max_lr : float or sequence of float
        The least and the largest step size, or those of each group.
    step_size_up, step_size_down : int
        How many steps go up, and down; as many down as up where None.
    mode : str
        What the height of a cycle is multiplied by: "triangular" by 1, "triangular2" by half as
        much in each cycle, "exp_range" by ``gamma`` at each step.
    gamma : float
        As above.
    scale_fn : callable, optional
        In place of ``mode``: of the number of the cycle, from 1, or of the step, by ``scale_mode``.
    scale_mode : str
        "cycle" or "iterations": what ``scale_fn`` takes.
    base_momentum, max_momentum : float or sequence of float
        Between which the momentum goes, against the step size.
    last_epoch : int
        How many steps have been taken, -1 for a start.

    Raises
    ------
    ValueError
        Another mode, another number of step sizes than of groups, no momentum to change.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        check_positive(self, "step_size_up", step_size_up)
        check_positive(self, "step_size_down", down)
        if scale_fn is None and mode not in _SCALES:
            raise ValueError(f'CyclicLR(): mode is "{mode}", but it must be one of '
                             f"{', '.join(_SCALES)}")  # fmt: skip
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f'CyclicLR(): scale_mode is "{scale_mode}", but it must be "cycle" or '
                             '"iterations"')  # fmt: skip
        self.optimizer, self.cycle_momentum = optimizer, cycle_momentum
        self.mode, self.gamma, self._scale_fn = mode, gamma, scale_fn
        self.scale_mode = _SCALES[mode][0] if scale_fn is None else scale_mode
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        least = _per_group(self, "base_lr", base_lr)
        self.max_lrs = _per_group(self, "max_lr", max_lr)
        if cycle_momentum:
            _check_momentum(self)
            self.base_momentums = _per_group(self, "base_momentum", base_momentum)
            self.max_momentums = _per_group(self, "max_momentum", max_momentum)
        for group, lr in zip(optimizer.param_groups, least, strict=True):
            if last_epoch == -1:
                set_lr(group, lr)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = least

    def _height(self) -> float:
        """How far up the present step is, from 0 to what the cycle is scaled by."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        share = 1 + self.last_epoch / self.total_size - cycle
        up = share <= self.step_ratio
        height = share / self.step_ratio if up else (share - 1) / (self.step_ratio - 1)
        at = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self._scale_fn is not None:
            return height * self._scale_fn(at)
        return height * _SCALES[self.mode][1](at, self.gamma)

    def get_lr(self) -> list[float]:
        height = self._height()
        return [least + (most - least) * height
                for least, most in zip(self.base_lrs, self.max_lrs, strict=True)]  # fmt: skip

    def step(self, epoch: int | None = None) -> None:
        """On to the next step, or to the one given."""
        super().step(epoch)
        if not self.cycle_momentum:
            return
        height, groups = self._height(), self.optimizer.param_groups
        for group, least, most in zip(groups, self.base_momentums, self.max_momentums, strict=True):
            _set_momentum(group, most - (most - least) * height)
