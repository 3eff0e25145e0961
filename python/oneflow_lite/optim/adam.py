# SPDX-License-Identifier: Apache-2.0
"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

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
from oneflow_lite.optim.optimizer import check_betas, check_not_negative


class Adam(MultiTensorOptimizer):
    """Gradient descent by the moments of the gradient; formulas and defaults are PyTorch's.

    For each parameter p with gradient g (its negative if ``maximize``), at step t::

        g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g^2
        p = p - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + eps)

    Parameters
    ----------
    params : iterable of Tensor or of dict
        As for :class:`Optimizer`.
    lr : float
        The step size.
    betas : pair of float
        In [0, 1).
    eps, weight_decay : float
        As above.
    amsgrad : bool
        Takes the largest v there was in place of v; turned on later, the largest since then.
    maximize : bool
        Climb instead of descending.
    master_weights : bool
        Keeps 16-bit parameters in float32 too (``state["master_weight"]``), which is stepped in
        their place; a parameter is its rounding. What else writes into a parameter is overwritten
        by the next step.
    foreach, fused : bool, optional
        Taken and without effect: one launch steps all parameters of a device and dtype.
    capturable : bool
        Whether a CUDA graph may capture steps: t is then a tensor on the parameter's device, where
        each replay counts on. A loaded state's becomes of this kind.
    differentiable : bool
        Not supported: NotImplementedError where True.

    Raises
    ------
    ValueError
        A negative factor, a beta outside [0, 1).
    RuntimeError
        A step is captured without ``capturable``.

    Notes
    -----
    The moments of 16-bit parameters are kept in float32. A loaded state's become so.
    """

    moments = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    _decoupled = False  # whether the decay goes past the moments

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "capturable": capturable,
            "master_weights": master_weights,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        name = type(self).__name__
        check_not_negative(name, group, ("lr", "eps", "weight_decay"))
        check_betas(name, group)

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        state.update(exp_avg=zeros_for(p), exp_avg_sq=zeros_for(p))

    def _complete(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        super()._complete(p, group, state)
        if group["amsgrad"] and "max_exp_avg_sq" not in state:  # it may be turned on later
            state["max_exp_avg_sq"] = zeros_for(p)

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        (beta1, beta2), steps = group["betas"], kept_steps(states)
        _C.adam_(
            params, grads, kept(states, "exp_avg"), kept(states, "exp_avg_sq"),
            kept(states, "max_exp_avg_sq") if group["amsgrad"] else [], kept(states, MASTER), steps,
            beta1=beta1, beta2=beta2, eps=group["eps"], weight_decay=group["weight_decay"],
            decoupled=self._decoupled, maximize=group["maximize"],
            step=1 if steps else states[0]["step"] + 1, **numbers,
        )  # fmt: skip


class AdamW(Adam):
    """:class:`Adam` whose decay goes past the moments: ``p = p - lr * weight_decay * p`` first."""

    _decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        master_weights: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
                         capturable=capturable, differentiable=differentiable,
                         master_weights=master_weights)  # fmt: skip
