# SPDX-License-Identifier: Apache-2.0
"""Averages of a model's parameters over the steps of training."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import _C, Tensor, device, float32, float64, int64
from oneflow_lite._oneflow_lite import bool as bool_
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.nn.module import Module

__all__ = ["AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn"]


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Averages that forget: ``average = decay * average + (1 - decay) * parameter``."""
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_multi_avg_fn(): decay is {decay}, but it must be in [0, 1]")

    def average(averages: list[Tensor], params: list[Tensor], averaged: int) -> None:
        _approach(averages, params, 1 - decay)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """:func:`get_ema_multi_avg_fn` for one parameter at a time."""
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn(): decay is {decay}, but it must be in [0, 1]")

    def average(average: Tensor, param: Tensor, averaged: int) -> Tensor:
        if average.is_floating_point():
            return decay * average + (1 - decay) * param
        return _between(average, param, 1 - decay)

    return average


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """The mean of all models seen, for one parameter at a time."""

    def average(average: Tensor, param: Tensor, averaged: int) -> Tensor:
        if average.is_floating_point():
            return average + (param - average) / (averaged + 1)
        return _between(average, param, 1 / (averaged + 1))

    return average


def _mean(averages: list[Tensor], params: list[Tensor], averaged: int) -> None:
    _approach(averages, params, 1 / (averaged + 1))


def _approach(averages: list[Tensor], params: list[Tensor], weight: float) -> None:
    """Moves averages of one dtype towards the parameters, in place."""
    if averages[0].is_floating_point():
        _C.multi_lerp_(averages, params, weight)
        return
    for average, param in zip(averages, params, strict=True):
        average.copy_(_between(average, param, weight))


def _between(average: Tensor, param: Tensor, weight: float) -> Tensor:
    """The average of integers, with its fraction.

    The distance, which no integer dtype need hold, is exact. Its share is one of float32, as in
    PyTorch, where 0.1 times 10 is 1.
    """
    wide = average.to(None, float64)
    return wide + (param.to(None, float64) - wide).to(None, float32) * weight


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model had.

    Parameters
    ----------
    model : Module
        It is copied; ``update_parameters`` takes it, or one of the same shape, again.
    device : device, optional
        Where the copy is.
    avg_fn : callable, optional
        ``avg_fn(average, parameter, averaged)`` gives the new average of one parameter.
    multi_avg_fn : callable, optional
        ``multi_avg_fn(averages, parameters, averaged)`` changes the averages in place; all of one
        device and dtype at a time. Without either, the mean of all models.
    use_buffers : bool
        Averages buffers too; else they are copied.

    Of parameters and buffers of integers, the averages lose their fractions at each update, as in
    PyTorch; those of bool are copied.

    Examples
    --------
    >>> ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    >>> optimizer.step()
    >>> ema.update_parameters(model)
    """

    def __init__(
        self,
        model: Module,
        device: device | str | int | None = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel(): avg_fn and multi_avg_fn cannot both be given")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.zeros([], dtype=int64))
        self.avg_fn, self.multi_avg_fn = avg_fn, multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the averages; the first ones are the averages."""
        pairs: list[tuple[Tensor, Tensor]] = list(
            zip(self.module.parameters(), model.parameters(), strict=True)
        )
        buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        if self.use_buffers:
            pairs, buffers = pairs + buffers, []
        buffers += [pair for pair in pairs if pair[0].dtype is bool_]
        pairs = [pair for pair in pairs if pair[0].dtype is not bool_]
        averaged = int(self.n_averaged.item())
        alike: dict[Any, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for average, param in pairs:
            now = param.detach().to(average.device, average.dtype)
            if averaged == 0:
                average.detach().copy_(now)
            elif self.avg_fn is not None:
                average.detach().copy_(self.avg_fn(average.detach(), now, averaged))
            else:
                alike[average.device, average.dtype].append((average.detach(), now))
        for members in alike.values():
            averages, params = map(list, zip(*members, strict=True))
            (self.multi_avg_fn or _mean)(averages, params, averaged)
        for mine, its in buffers:
            mine.detach().copy_(its.detach().to(mine.device, mine.dtype))
        self.n_averaged += 1


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
