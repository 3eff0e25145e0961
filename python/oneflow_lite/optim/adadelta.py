# SPDX-License-Identifier: Apache-2.0
"""Adadelta (Zeiler, 2012)."""

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


class Adadelta(MultiTensorOptimizer):
    """Gradient descent whose steps have the size of the steps before; as PyTorch's.

    For each parameter p with gradient g (its negative if ``maximize``)::

        g = g + weight_decay * p
        s = rho * s + (1 - rho) * g^2
        d = sqrt(u + eps) / sqrt(s + eps) * g
        u = rho * u + (1 - rho) * d^2
        p = p - lr * d

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr, eps, weight_decay : float
        The numbers above.
    rho : float
        As above, in [0, 1].
    maximize : bool
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
        A negative number, or a rho above 1.
    """

    moments = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
        master_weights: bool = False,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        check_not_negative("Adadelta", group, ("lr", "rho", "eps", "weight_decay"))
        if group["rho"] > 1:
            raise ValueError(f"Adadelta(): rho is {group['rho']}, but it must be in [0, 1]")

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["square_avg"], state["acc_delta"] = zeros_for(p), zeros_for(p)

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        _C.adadelta_(params, grads, kept(states, "square_avg"), kept(states, "acc_delta"),
                     kept(states, MASTER), kept_steps(states), rho=group["rho"], eps=group["eps"],
                     weight_decay=group["weight_decay"], maximize=group["maximize"],
                     **numbers)  # fmt: skip
