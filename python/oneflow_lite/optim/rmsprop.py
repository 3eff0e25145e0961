# SPDX-License-Identifier: Apache-2.0
"""RMSprop (Tieleman and Hinton, 2012)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.optim._multi_tensor import (
    MASTER,
    MultiTensorOptimizer,
    kept,
    kept_steps,
    zeros_for,
)
from oneflow_lite.optim.optimizer import check_not_negative


class RMSprop(MultiTensorOptimizer):
    """Gradient descent by the gradient over its root mean square; as PyTorch's.

    For each parameter p with gradient g (its negative if ``maximize``)::

        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g^2
        a = alpha * a + (1 - alpha) * g             (centered; else a = 0)
        d = g / (sqrt(v - a^2) + eps)
        b = momentum * b + d
        p = p - lr * (b with momentum, else d)

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr, alpha, eps, weight_decay, momentum : float
        The factors above.
    centered, maximize : bool
        As above.
    capturable, master_weights : bool
        As for :class:`Adam`.
    foreach : bool, optional
        Taken and without effect: one op steps all parameters of a device and dtype.
    differentiable : bool
        Not supported: NotImplementedError where True.

    Raises
    ------
    ValueError
        A negative factor.
    """

    moments = ("square_avg", "grad_avg", "momentum_buffer")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        *,
        master_weights: bool = False,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "maximize": maximize,
            "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        names = ("lr", "eps", "momentum", "weight_decay", "alpha")
        check_not_negative("RMSprop", group, names)

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["square_avg"] = zeros_for(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_for(p)
        if group["centered"]:
            state["grad_avg"] = zeros_for(p)

    def kind(self, state: dict[str, Any]) -> Any:
        return "grad_avg" in state, "momentum_buffer" in state

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        _C.rmsprop_(
            params, grads, kept(states, "square_avg"),
            kept(states, "grad_avg") if group["centered"] else [],
            kept(states, "momentum_buffer") if group["momentum"] > 0 else [],
            kept(states, MASTER), kept_steps(states), alpha=group["alpha"], eps=group["eps"],
            weight_decay=group["weight_decay"], momentum=group["momentum"],
            maximize=group["maximize"], **numbers,
        )  # fmt: skip
