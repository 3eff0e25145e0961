# SPDX-License-Identifier: Apache-2.0
"""Step sizes that change while training; names and numbers are PyTorch's.

>>> scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
>>> for x, y in data:
...     loss(model(x), y).backward()
...     optimizer.step()
...     scheduler.step()
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite.optim._lr_base import LRScheduler
from oneflow_lite.optim._lr_cycles import CosineAnnealingWarmRestarts, OneCycleLR
from oneflow_lite.optim._lr_plateau import ReduceLROnPlateau
from oneflow_lite.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


class LambdaLR(LRScheduler):
    """The factor is what a function gives for the epoch; a list has one per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups)
        self._functions = (lr_lambda,) * count if callable(lr_lambda) else tuple(lr_lambda)
        if len(self._functions) != count:
            raise ValueError(f"LambdaLR(): {len(self._functions)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def step(self) -> None:
        """On to the next epoch; whatever else changed the step sizes is overwritten."""
        self.last_epoch += 1
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        return [base * function(self.last_epoch)
                for base, function in zip(self.base_lrs, self._functions, strict=True)]  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        return {k: v for k, v in super().state_dict().items() if k != "_functions"}


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times ``gamma`` at each of the epochs in ``milestones``."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma**epoch


class LinearLR(LRScheduler):
    """From ``start_factor`` to ``end_factor`` within ``total_iters`` epochs, in equal steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"LinearLR(): start_factor is {start_factor}, but it must be in (0, 1]"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR(): end_factor is {end_factor}, but it must be in [0, 1]")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        if self.total_iters == 0:
            return self.start_factor
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


class ConstantLR(LRScheduler):
    """Times ``factor`` within the first ``total_iters`` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR(): factor is {factor}, but it must be in [0, 1]")
        self.first_factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.first_factor if epoch < self.total_iters else 1.0


class PolynomialLR(LRScheduler):
    """Down to 0 within ``total_iters`` epochs, as a power of what is left of them."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        if total_iters < 1:
            raise ValueError(f"PolynomialLR(): total_iters is {total_iters}, but it must be at "
                             "least 1")  # fmt: skip
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return (1 - min(epoch, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the start to ``eta_min`` within ``T_max`` epochs, and on like that."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after the other: each from its milestone on, where it starts from 0.

    Parameters
    ----------
    optimizer : Optimizer
        That of all schedulers.
    schedulers : sequence of LRScheduler
        In their order.
    milestones : sequence of int
        The epochs at which the next one takes over; one fewer than schedulers.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR(): {len(milestones)} milestones do not part "
                             f"{len(schedulers)} schedulers")  # fmt: skip
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def step(self) -> None:
        """On to the next epoch; whatever else changed the step sizes is overwritten."""
        self.last_epoch += 1
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        at = bisect.bisect_right(self.milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        scheduler.last_epoch = self.last_epoch - (self.milestones[at - 1] if at else 0)
        return scheduler.get_lr()

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        super().load_state_dict(state)
