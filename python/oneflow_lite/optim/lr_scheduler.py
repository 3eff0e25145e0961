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
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oneflow_lite._absent import public_face
from oneflow_lite._numbers import check_number
from oneflow_lite.optim._lr_base import (
    LRScheduler,
    begin_step,
    check_capture,
    check_optimizer,
    check_parts,
    check_positive,
    start_again,
)
from oneflow_lite.optim._lr_cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from oneflow_lite.optim._lr_plateau import ReduceLROnPlateau
from oneflow_lite.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip


_LRScheduler = LRScheduler  # the base's name in older programs


class LambdaLR(LRScheduler):
    """The factor is what a function gives for the epoch; a list has one per group.

    Whatever else changed the step sizes is overwritten. Of functions that are objects, the state
    has their attributes.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        count = len(optimizer.param_groups)
        if not callable(lr_lambda) and not isinstance(lr_lambda, Sequence):
            raise TypeError(f"{type(self).__name__}(): lr_lambda must be a function or a list of "
                            f"functions, not {type(lr_lambda).__name__}")  # fmt: skip
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(f"{type(self).__name__}(): {len(self.lr_lambdas)} functions for "
                             f"{count} groups")  # fmt: skip
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * function(self.last_epoch)
                for base, function in zip(self.base_lrs, self.lr_lambdas, strict=True)]  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        kept = [None if isinstance(f, types.FunctionType) else dict(vars(f))
                for f in self.lr_lambdas]  # fmt: skip
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for function, kept in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            if kept is not None:
                vars(function).update(kept)
        super().load_state_dict(state)


class MultiplicativeLR(LambdaLR):
    """Times what a function gives for the epoch, at each; a list has one per group."""

    _of_the_groups = True

    def get_lr(self) -> list[float]:
        lrs = self.get_last_lr()
        if self._step_count <= 1:  # made, or put at the start of a sequence
            return lrs
        return [lr * function(self.last_epoch)
                for lr, function in zip(lrs, self.lr_lambdas, strict=True)]  # fmt: skip


class StepLR(LRScheduler):
    """Times ``gamma`` every ``step_size`` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        check_optimizer(self, optimizer)
        check_positive(self, "step_size", step_size)
        check_number("StepLR()", "gamma", gamma)
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
        check_optimizer(self, optimizer)
        if not isinstance(milestones, Iterable):
            raise TypeError("MultiStepLR(): milestones must be a list of numbers, not "
                            f"{type(milestones).__name__}")  # fmt: skip
        check_number("MultiStepLR()", "gamma", gamma)
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return self.gamma ** bisect.bisect_right(self.milestones, epoch)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As of any schedule; the milestones may be counts of each, as torch's state has them."""
        super().load_state_dict(state_dict)
        if isinstance(self.milestones, Mapping):
            self.milestones = sorted(Counter(self.milestones).elements())


class ExponentialLR(LRScheduler):
    """Times ``gamma`` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        check_number("ExponentialLR()", "gamma", gamma)
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
        check_optimizer(self, optimizer)
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
    """Times ``factor`` within the first ``total_iters`` epochs.

    Attributes
    ----------
    factor : float
        As given; in most schedules it is a method.
    """

    _of_the_epoch = True
    factor: float = 1 / 3  # type: ignore[assignment]

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR(): factor is {factor}, but it must be in [0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to 0 within ``total_iters`` epochs, as a power of what is left of them."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        check_optimizer(self, optimizer)
        if total_iters < 1:
            raise ValueError(f"PolynomialLR(): total_iters is {total_iters}, but it must be at "
                             "least 1")  # fmt: skip
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return (1 - min(epoch, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the start to ``eta_min`` within ``T_max`` epochs, and on like that."""

    _of_the_epoch = True

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        check_optimizer(self, optimizer)
        check_positive(self, "T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class SequentialLR(LRScheduler):
    """One schedule after the other: each from its milestone on, where it starts from 0.

    The first one starts from the groups' ``initial_lr``, whatever making the others has changed. A
    milestone overwrites what else changed the step sizes; between milestones each schedule steps as
    it does alone. So does a ``ChainedScheduler`` or ``SequentialLR`` among them: PyTorch refuses it
    behind the first, and takes the first a step too far.

    Parameters
    ----------
    optimizer : Optimizer
        That of all schedulers.
    schedulers : sequence of LRScheduler
        In their order.
    milestones : sequence of int
        The epochs at which the next one takes over; one fewer than schedulers.

    Raises
    ------
    ValueError
        Another number of milestones, or a schedule of another optimizer.
    TypeError
        A part that is no LRScheduler, or goes by a metric.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR(): {len(milestones)} milestones do not part "
                             f"{len(schedulers)} schedulers")  # fmt: skip
        check_parts("SequentialLR", schedulers, optimizer)
        self._schedulers, self.milestones = list(schedulers), list(milestones)
        if last_epoch == -1:
            check_capture(optimizer)
            start_again(optimizer)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """On to the next epoch, or to the one given, by the step of the schedule of that epoch."""
        begun = self._step_count > 0
        begin_step(self)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        at = bisect.bisect_right(self.milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        since = self.last_epoch - (self.milestones[at - 1] if at else 0)
        if epoch is not None:
            scheduler.step(since)
        elif since == 0 and at > 0:
            scheduler.start_over()
        else:
            scheduler.last_epoch = since - 1
            if not begun:
                scheduler._step_count = 0
            scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return {**state, "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        for scheduler, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(own)
        super().load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each multiplies the step sizes in its turn.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        All of one optimizer; ValueError otherwise.
    optimizer : Optimizer, optional
        Theirs.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        check_parts("ChainedScheduler", schedulers, optimizer)
        self.optimizer = optimizer or schedulers[0].optimizer
        self._schedulers = list(schedulers)

    @property
    def last_epoch(self) -> int:  # type: ignore[override]
        """That of the first schedule; set, it is that of all."""
        return self._schedulers[0].last_epoch

    @last_epoch.setter
    def last_epoch(self, epoch: int) -> None:
        for scheduler in self._schedulers:
            scheduler.last_epoch = epoch

    @property
    def _step_count(self) -> int:
        return self._schedulers[0]._step_count

    @_step_count.setter
    def _step_count(self, count: int) -> None:
        for scheduler in self._schedulers:
            scheduler._step_count = count

    def step(self) -> None:  # type: ignore[override]
        """On to the next epoch of each."""
        for scheduler in self._schedulers:
            scheduler.step()

    def start_over(self) -> None:
        check_capture(self.optimizer)
        start_again(self.optimizer)
        self.last_epoch = -1
        self.step()

    def get_last_lr(self) -> list[float]:
        """The step sizes that the groups have."""
        return self._schedulers[-1].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The states of all."""
        return {"_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        for scheduler, own in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(own)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
