# SPDX-License-Identifier: Apache-2.0
"""What all schedules of step sizes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oneflow_lite._numbers import check_number
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._warnings import warn
from oneflow_lite.optim.optimizer import Optimizer, is_captured


def _initial(group: dict[str, Any]) -> Any:
    """The step size that a group begins with; of a tensor, which may be changed, a copy."""
    lr = group["lr"]
    return group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)


def check_optimizer(scheduler: Any, optimizer: Any) -> None:
    """TypeError in the scheduler's name for what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(scheduler).__name__}(): optimizer must be an Optimizer, not "
                        f"{type(optimizer).__name__}")  # fmt: skip


def check_positive(scheduler: Any, name: str, value: float) -> None:
    """ValueError in the scheduler's name for a number of epochs that is not positive."""
    check_number(f"{type(scheduler).__name__}()", name, value)
    if value <= 0:
        raise ValueError(f"{type(scheduler).__name__}(): {name} is {value}, but it must be "
                         "positive")  # fmt: skip


def check_capture(optimizer: Optimizer) -> None:
    """RuntimeError within the capture of a CUDA graph, or within a step of ``cuda.graphed_step``.

    Before anything of a schedule is changed.
    """
    if optimizer.in_graphed_step():
        raise RuntimeError("step(): within a step of graphed_step no schedule can go on: a replay "
                           "does not repeat it; call it beside the step")  # fmt: skip
    if is_captured(p for group in optimizer.param_groups for p in group["params"]):
        raise RuntimeError("step(): while a CUDA graph is captured no schedule can go on: a replay "
                           "does not repeat it; call it beside the replays")  # fmt: skip


def begin_step(scheduler: LRScheduler) -> None:
    """What each ``step()`` of a schedule begins with.

    Raises what :func:`check_capture` raises, and warns where the first step of the schedule comes
    before that of its optimizer, which would never use the first step size.
    """
    check_capture(scheduler.optimizer)
    if scheduler._step_count == 1 and not scheduler.optimizer._opt_called:
        warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first step "
             "size of the schedule is skipped; call `optimizer.step()` first")  # fmt: skip
    scheduler._step_count += 1


def set_lr(group: dict[str, Any], lr: Any) -> None:
    """Changes the step size; a tensor in its memory, where the steps of a CUDA graph read it."""
    if not isinstance(group["lr"], Tensor):
        group["lr"] = lr
    elif isinstance(lr, Tensor):
        group["lr"].copy_(lr)
    else:
        group["lr"].fill_(lr)


def start_again(optimizer: Optimizer) -> None:
    """Gives the groups the step sizes of the start."""
    for group in optimizer.param_groups:
        set_lr(group, group["initial_lr"])


def _followed(lr: Any, old: Any, new: Any, least: float) -> Any:
    """``new`` where ``lr`` is the schedule's ``old``; else ``lr`` as the schedule changed its own.

    What is above ``least`` is multiplied. Where the schedule had nothing above it, the change is
    added. A tensor is not read: the host would wait for its device.
    """
    if not isinstance(old, Tensor):
        if old == new:
            return lr
        if old == least:
            return lr + (new - old)
    moved = least + (lr - least) * ((new - least) / (old - least))
    if not isinstance(lr, Tensor):
        return new if lr == old else moved
    moved = _C.where(lr == old, new, moved)
    return _C.where(old == least, lr + (new - old), moved) if isinstance(old, Tensor) else moved


def check_parts(name: str, schedulers: Any, optimizer: Optimizer | None) -> None:
    """Raises where these are not schedules of one optimizer, which is the one given."""
    for s in schedulers if isinstance(schedulers, Sequence) else [schedulers]:
        if not isinstance(s, LRScheduler):
            raise TypeError(f"{name}(): schedulers must be LRSchedulers, not {type(s).__name__}")
        if s._of_a_metric:
            raise TypeError(f"{name}(): {type(s).__name__} goes by a metric, which step() of "
                            f"{name} is not given; call it beside this")  # fmt: skip
    if not schedulers:
        raise ValueError(f"{name}(): schedulers is empty")
    for i, scheduler in enumerate(schedulers):
        if scheduler.optimizer is not (optimizer or schedulers[0].optimizer):
            raise ValueError(f"{name}(): scheduler {i} has another optimizer")


class LRScheduler:
    """The base: a subclass defines ``factor(epoch)``, by which the first step size is multiplied.

    Or it defines ``get_lr()``, the step sizes at ``self.last_epoch``, from those that the groups
    have or from ``self.base_lrs``.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups' ``lr`` is changed, at once and at each ``step()``; a tensor in place.
    last_epoch : int
        -1 for a start. Else training goes on: the epoch before the present one, whose step sizes
        the groups have already; those of the start are their ``initial_lr``.

    Attributes
    ----------
    base_lrs : list of float
        The step sizes of the groups at the start.

    Raises
    ------
    KeyError
        Training goes on, and a group has no ``initial_lr``.
    """

    _of_the_epoch = False  # get_lr() of a subclass depends on last_epoch and on no step size
    _of_the_groups = False  # it changes the step sizes that the groups have
    eta_min: float = 0.0  # what no step multiplies; of a subclass, its argument
    _of_a_metric = False  # its step() is given one, and no epoch

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(self, optimizer)
        goes_on = last_epoch != -1
        for i, group in enumerate(optimizer.param_groups):
            if goes_on and "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}(): group {i} has no 'initial_lr', which "
                               f"training from epoch {last_epoch} on needs")  # fmt: skip
        self.optimizer = optimizer
        self.base_lrs = [_initial(group) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        if goes_on and (self._factors() or self._of_the_groups):
            self.last_epoch += 1
        else:
            self.step()
        self._step_count = 1

    def _factors(self) -> bool:
        """Whether each step multiplies the step sizes by what the schedule changes its own by."""
        return type(self).get_lr is LRScheduler.get_lr or self._of_the_epoch

    def factor(self, epoch: int) -> float:
        """What the step size at the start is multiplied with."""
        raise NotImplementedError(f"{type(self).__name__} does not define factor()")

    def get_lr(self) -> list[float]:
        """The step sizes of the groups at the present epoch."""
        return [base * self.factor(self.last_epoch) for base in self.base_lrs]

    def get_last_lr(self) -> list[float]:
        """The step sizes that the groups have."""
        lrs = [group["lr"] for group in self.optimizer.param_groups]
        return [lr.clone() if isinstance(lr, Tensor) else lr for lr in lrs]

    def step(self, epoch: int | None = None) -> None:
        """On to the next epoch, or to the one given.

        Where something else changed a group's step size, another scheduler say, it is multiplied by
        what this schedule changes its own by; unless there is an epoch, or a ``get_lr`` that may
        see what the step sizes are.
        """
        begin_step(self)
        groups = self.optimizer.param_groups
        # A new list: that before may be part of a state that was taken.
        added = map(_initial, groups[len(self.base_lrs) :])
        self.base_lrs = [*self.base_lrs, *added]
        if epoch is not None or not self._factors():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            self._set(self.get_lr())
            return
        before = self.get_lr() if self.last_epoch >= 0 else self.base_lrs
        self.last_epoch += 1
        for group, old, new in zip(groups, before, self.get_lr(), strict=True):
            set_lr(group, _followed(group["lr"], old, new, self.eta_min))

    def start_over(self) -> None:
        """To epoch 0, as at a milestone of ``SequentialLR``."""
        self.step(0)

    def _set(self, lrs: list[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            set_lr(group, lr)

    def state_dict(self) -> dict[str, Any]:
        """All that is no function and no optimizer."""
        return {key: value for key, value in self.__dict__.items()
                if not callable(value) and not isinstance(value, Optimizer)}  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` gave."""
        self.__dict__.update(state_dict)
