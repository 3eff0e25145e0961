# SPDX-License-Identifier: Apache-2.0
"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from oneflow_lite._math import wide
from oneflow_lite._oneflow_lite import _C, Tensor, float64
from oneflow_lite.optim.optimizer import Optimizer


def _count_as(capturable: bool, state: dict[str, Any], p: Tensor) -> None:
    """The number of steps as a tensor on the device, or as an int; PyTorch's is of float32."""
    step = state["step"]
    if not capturable:
        state["step"] = int(step)
    elif not isinstance(step, Tensor):
        # In float64, beta^t and what it leaves of 1 are as exact as Python's.
        state["step"] = _C.full([], step, dtype=float64, device=p.device)
    else:
        state["step"] = step.to(p.device, float64)


class Adam(Optimizer):
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
        Takes the largest v there was in place of v.
    maximize : bool
        Climb instead of descending.
    foreach, fused : bool, optional
        Taken and without effect: the step is computed in one way.
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
    """

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
    ) -> None:
        self.refuse(differentiable)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "capturable": capturable,
        })  # fmt: skip

    def check_options(self, group: dict[str, Any]) -> None:
        name = type(self).__name__
        for option in ("lr", "eps", "weight_decay"):
            if not group[option] >= 0:
                raise ValueError(f"{name}(): {option} is {group[option]}; it must not be negative")
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"{name}(): betas are {group['betas']}; they must be in [0, 1)")

    def decay(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        """The gradient with the decay of the weights in it."""
        return grad + p * group["weight_decay"] if group["weight_decay"] else grad

    def update(self, p: Tensor, grad: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        grad = self.decay(p, -grad if group["maximize"] else grad, group)
        if not state:
            state.update(step=0, exp_avg=_C.zeros_like(p), exp_avg_sq=_C.zeros_like(p))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = _C.zeros_like(p)
        _count_as(group["capturable"], state, p)
        state["step"] += 1  # in place where it is a tensor
        (beta1, beta2), step = group["betas"], state["step"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(beta1).add_(grad * (1 - beta1))
        scaled = grad * math.sqrt(1 - beta2)  # whose square overflows later than the gradient's
        square.mul_(beta2).add_(scaled * scaled)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(_C.maximum(state["max_exp_avg_sq"], square))
        root, rate = square.sqrt(), group["lr"] / (1 - beta1**step)
        if isinstance(step, Tensor):
            # A tensor beside 16-bit floats is rounded to them, as a number is not.
            kind = wide(p)
            root = root.to(None, kind) * ((1 - beta2**step) ** -0.5).to(None, kind)
            rate = rate.to(None, kind)
        else:
            root = root * (1 / math.sqrt(1 - beta2**step))
        p.sub_(mean / (root + group["eps"]) * rate)

    def check_capture(self, group: dict[str, Any]) -> None:
        super().check_capture(group)
        states = [self.state[p] for p in group["params"] if p in self.state]
        if not group["capturable"]:
            raise RuntimeError(f"{type(self).__name__}.step(): a CUDA graph is captured, whose "
                               "replays would all take the step number of the capture; pass "
                               "capturable=True")  # fmt: skip
        if not all(isinstance(state["step"], Tensor) for state in states if state):
            raise RuntimeError(f"{type(self).__name__}.step(): the steps were counted without "
                               "capturable=True; take one with it before the capture")  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            for p in group["params"]:
                if self.state.get(p):
                    _count_as(group["capturable"], self.state[p], p)


class AdamW(Adam):
    """:class:`Adam` whose decay goes past the moments: ``p = p - lr * weight_decay * p`` first."""

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
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize,
                         capturable=capturable, differentiable=differentiable)  # fmt: skip

    def decay(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
        p.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
