# SPDX-License-Identifier: Apache-2.0
"""Lion (Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms")."""

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
from oneflow_lite.optim.optimizer import check_betas, check_not_negative


class Lion(MultiTensorOptimizer):
    """Steps of one size, by the sign of a mean of gradients.

    For each parameter p with gradient g (its negative if ``maximize``)::

        p = p * (1 - lr * weight_decay)
        p = p - lr * sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr : float
        The size of a step; a third to a tenth of what AdamW takes.
    betas : pair of float
        In [0, 1).
    weight_decay : float
        As above; three to ten times what AdamW takes.
    maximize : bool
        As above.
    master_weights : bool
        As for :class:`Adam`.

    Raises
    ------
    ValueError
        A negative factor, a beta outside [0, 1).
    """

    counts = False
    moments = ("exp_avg",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, {
            "lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize,
            "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        check_not_negative("Lion", group, ("lr", "weight_decay"))
        check_betas("Lion", group)

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state["exp_avg"] = zeros_for(p)

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        beta1, beta2 = group["betas"]
        _C.lion_(params, grads, kept(states, "exp_avg"), kept(states, MASTER), beta1=beta1,
                 beta2=beta2, weight_decay=group["weight_decay"], maximize=group["maximize"],
                 **numbers)  # fmt: skip
