# SPDX-License-Identifier: Apache-2.0
"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.optim.optimizer import Optimizer


class SGD(Optimizer):
    """Gradient descent with momentum; formulas and defaults are PyTorch's.

    For each parameter p with gradient g (its negative if ``maximize``)::

        g = g + weight_decay * p
        b = momentum * b + (1 - dampening) * g      (b = g the first time)
        g = g + momentum * b  if nesterov else  b
        p = p - lr * g

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr, momentum, dampening, weight_decay : float
        The factors above.
    nesterov : bool
        Needs momentum and no dampening.
    maximize : bool
        Climb instead of descending.
    foreach, fused : bool, optional
        Taken and without effect: the step is computed in one way.
    differentiable : bool
        Not supported: NotImplementedError where True.

    Raises
    ------
    ValueError
        A negative factor; nesterov without momentum or with dampening.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        for option in ("lr", "momentum", "weight_decay"):
            if not group[option] >= 0:
                raise ValueError(f"SGD(): {option} is {group[option]}; it must not be negative")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD(): nesterov needs a momentum and no dampening")

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad + p * group["weight_decay"]
        momentum = group["momentum"]
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone()
            else:
                buffer.mul_(momentum).add_(grad * (1 - group["dampening"]))
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        p.sub_(grad * group["lr"])
