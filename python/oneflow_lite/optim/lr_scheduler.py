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

from oneflow_lite.optim.optimizer import Optimizer


class LRScheduler:
    """The base: a subclass defines ``factor(epoch)``, by which the first step size is multiplied.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups' ``lr`` is changed, at once and at each ``step()``.
    last_epoch : int
        How many steps have been taken, -1 for a start.

    Attributes
    ----------
    base_lrs : list of float
        The step sizes of the groups at the start.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def factor(self, epoch: int) -> float:
        """What the step size at the start is multiplied with."""
        raise NotImplementedError(f"{type(self).__name__} does not define factor()")

    def get_lr(self) -> list[float]:
        """The step sizes of the groups at the present epoch."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The step sizes that the groups have."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """On to the next epoch.

        Where something else changed a group's step size, another scheduler say, it is multiplied by
        what this schedule changes its own by.
        """
        groups = self.optimizer.param_groups
        for group in groups[len(self.base_lrs) :]:  # added since
            self.base_lrs.append(group.setdefault("initial_lr", group["lr"]))
        before = self.get_lr() if self.last_epoch >= 0 else self.base_lrs
        self.last_epoch += 1
        for group, old, new in zip(groups, before, self.get_lr(), strict=True):
            alone = group["lr"] == old or old == 0
            group["lr"] = new if alone else group["lr"] * (new / old)

    def _set(self, lrs: list[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            group["lr"] = lr

    def state_dict(self) -> dict[str, Any]:
        """All that is no function and no optimizer."""
        return {key: value for key, value in self.__dict__.items()
                if not callable(value) and not isinstance(value, Optimizer)}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        self.__dict__.update(state_dict)


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
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        if self.total_iters == 0:
            return self.start_factor
        share = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * share


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
