# SPDX-License-Identifier: Apache-2.0
"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from oneflow_lite._math import wide
from oneflow_lite._oneflow_lite import _C, Tensor, float64
from oneflow_lite.optim.optimizer import Optimizer

_MOMENTS = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "master_weight"}


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
        for option in ("lr", "eps", "weight_decay"):
            if not group[option] >= 0:
                raise ValueError(f"{name}(): {option} is {group[option]}; it must not be negative")
        if not all(0 <= beta < 1 for beta in group["betas"]):
            raise ValueError(f"{name}(): betas are {group['betas']}; they must be in [0, 1)")

    def update_group(
        self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]
    ) -> None:
        """Steps the parameters: one launch for those of one device, dtype and number of steps."""
        alike: dict[Any, list[tuple[Tensor, Tensor, dict[str, Any]]]] = defaultdict(list)
        for p, grad in zip(params, grads, strict=True):
            state = self.state[p]
            if not state:
                self._begin(p, group, state)
            _count_as(group["capturable"], state, p)
            count = None if group["capturable"] else state["step"]
            alike[p.device, p.dtype, count, "master_weight" in state].append((p, grad, state))
        for members in alike.values():
            self._step_alike(group, *map(list, zip(*members, strict=True)))

    def _begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        kind = wide(p)
        state.update(step=0, exp_avg=_C.zeros_like(p, dtype=kind),
                     exp_avg_sq=_C.zeros_like(p, dtype=kind))  # fmt: skip
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _C.zeros_like(p, dtype=kind)
        if group["master_weights"] and p.dtype != kind:
            state["master_weight"] = p.detach().to(None, kind)

    def _step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
    ) -> None:
        def kept(name: str, wanted: bool = True) -> list[Tensor]:
            return [state[name] for state in states] if wanted else []

        lr, (beta1, beta2), step = group["lr"], group["betas"], states[0]["step"]
        on_device, counted = isinstance(lr, Tensor), not isinstance(step, Tensor)
        _C.adam_(
            params, grads, kept("exp_avg"), kept("exp_avg_sq"),
            kept("max_exp_avg_sq", group["amsgrad"]),
            kept("master_weight", "master_weight" in states[0]), kept("step", not counted),
            lr=0.0 if on_device else lr, beta1=beta1, beta2=beta2, eps=group["eps"],
            weight_decay=group["weight_decay"], decoupled=self._decoupled,
            maximize=group["maximize"], step=step + 1 if counted else 1,
            lr_tensor=lr.to(params[0].device) if on_device else None,
        )  # fmt: skip
        if counted:
            for state in states:
                state["step"] += 1

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
                state = self.state.get(p)
                if state:
                    _count_as(group["capturable"], state, p)
                    for name in _MOMENTS & state.keys():
                        state[name] = state[name].to(None, wide(p))


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
