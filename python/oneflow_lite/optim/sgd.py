# SPDX-License-Identifier: Apache-2.0
"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.optim._multi_tensor import (
    MASTER,
    MultiTensorOptimizer,
    kept,
    zeros_for,
)
from oneflow_lite.optim.optimizer import check_not_negative, check_numbers


class SGD(MultiTensorOptimizer):
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
    master_weights : bool
        Keeps 16-bit parameters in float32 too (``state["master_weight"]``), which is stepped in
        their place; a parameter is its rounding.
    foreach, fused : bool, optional
        Taken and without effect: one op steps all parameters of a device and dtype.
    differentiable : bool
        Not supported: NotImplementedError where True.

    Raises
    ------
    ValueError
        A negative factor; nesterov without momentum or with dampening.

    Notes
    -----
    The momentum of 16-bit parameters is kept in float32. A loaded state's becomes so.
    """

    counts = False
    moments = ("momentum_buffer",)

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
        master_weights: bool = False,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        check_not_negative("SGD", group, ("lr", "momentum", "weight_decay"))
        check_numbers("SGD", group, ("dampening",))
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError("SGD(): nesterov needs a momentum and no dampening")

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """The buffer is made by the first step, which fills it."""

    def kind(self, state: dict[str, Any]) -> Any:
        return "momentum_buffer" in state

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        first = group["momentum"] != 0 and "momentum_buffer" not in states[0]
        if first:
            flag = numbers["found_inf"]
            if flag is not None and group["dampening"] and flag.item():
                return  # the next step is the first then
            for p, state in zip(params, states, strict=True):
                state["momentum_buffer"] = zeros_for(p)
        buffers = kept(states, "momentum_buffer") if group["momentum"] else []
        _C.sgd_(params, grads, buffers, kept(states, MASTER), momentum=group["momentum"],
                dampening=group["dampening"], weight_decay=group["weight_decay"],
                nesterov=group["nesterov"], maximize=group["maximize"], first=first,
                **numbers)  # fmt: skip
