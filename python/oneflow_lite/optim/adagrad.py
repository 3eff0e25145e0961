# SPDX-License-Identifier: Apache-2.0
"""Adagrad (Duchi, Hazan and Singer, 2011)."""

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


class Adagrad(MultiTensorOptimizer):
    """Gradient descent by the gradient over the root of its squares so far; as PyTorch's.

    For each parameter p with gradient g (its negative if ``maximize``), at step t::

        g = g + weight_decay * p
        s = s + g^2                                 (initial_accumulator_value at first)
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr, lr_decay, weight_decay, initial_accumulator_value, eps : float
        The numbers above.
    maximize : bool
        As above.
    capturable, master_weights : bool
        As for :class:`Adam`.
    foreach, fused : bool, optional
        Taken and without effect: one op steps all parameters of a device and dtype.
    differentiable : bool
        Not supported: NotImplementedError where True.

    Raises
    ------
    ValueError
        A negative number.
    """

    moments = ("sum",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
            "capturable": capturable, "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        names = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        check_not_negative("Adagrad", group, names)

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["sum"] = zeros_for(p).fill_(group["initial_accumulator_value"])

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        steps = kept_steps(states)
        _C.adagrad_(params, grads, kept(states, "sum"), kept(states, MASTER), steps,
                    lr_decay=group["lr_decay"], eps=group["eps"],
                    weight_decay=group["weight_decay"], maximize=group["maximize"],
                    step=1 if steps else states[0]["step"] + 1, **numbers)  # fmt: skip
