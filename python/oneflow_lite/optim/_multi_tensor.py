# SPDX-License-Identifier: Apache-2.0
"""What the optimizers share that step all parameters of a device and dtype by one op."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from oneflow_lite._math import wide
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor, float64
from oneflow_lite.optim.optimizer import Optimizer

MASTER = "master_weight"


class MultiTensorOptimizer(Optimizer):
    """The base: a subclass says what state a parameter begins with, and calls its op.

    The state of a parameter has its number of steps (``"step"``, where ``counts``), tensors of the
    compute type of its dtype (``moments``), and a master where the option ``master_weights`` wants
    one. ``grad_scale`` and ``found_inf`` (of each device) are set by ``amp.GradScaler`` while it
    steps.
    """

    steps_on_device = True
    counts = True
    moments: tuple[str, ...] = ()

    def begin(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Puts into the state what a parameter begins with, but its step and master."""
        raise NotImplementedError

    def step_alike(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        states: list[dict[str, Any]],
        numbers: dict[str, Any],
    ) -> None:
        """Steps parameters that are alike in all that :meth:`kind` says.

        ``numbers`` are lr, lr_tensor, grad_scale and found_inf as the ops take them.
        """
        raise NotImplementedError

    def kind(self, state: dict[str, Any]) -> Any:
        """What one call must have in common, beside device, dtype, step and masters."""
        return None

    def counts_on_device(self, group: dict[str, Any]) -> bool:
        """Whether the number of steps is a tensor, which the op counts on."""
        return bool(group.get("capturable") or self.found_inf or self.in_graphed_step())

    def update_group(
        self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]
    ) -> None:
        """Steps the parameters: one op for those of one device, dtype and number of steps."""
        on_device = self.counts_on_device(group)
        alike: dict[Any, list[tuple[Tensor, Tensor, dict[str, Any]]]] = defaultdict(list)
        for p, grad in zip(params, grads, strict=True):
            state = self.state[p]
            self._complete(p, group, state)
            step = None
            if self.counts:
                count_as(on_device, state, p)
                step = None if on_device else state["step"]
            key = p.device, p.dtype, step, MASTER in state, self.kind(state)
            alike[key].append((p, grad, state))
        for members in alike.values():
            ps, gs, states = map(list, zip(*members, strict=True))
            self.step_alike(group, ps, gs, states, self._numbers(group, ps[0]))
            if self.counts and not on_device:
                for state in states:
                    state["step"] += 1

    def begin_all(self) -> None:
        """Makes the state of every parameter that has none yet."""
        for group in self.param_groups:
            for p in group["params"]:
                self._complete(p, group, self.state[p])

    def _complete(self, p: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        if self.moments[0] not in state and "step" not in state:
            if self.counts:
                state["step"] = 0
            self.begin(p, group, state)
        if group.get("master_weights") and MASTER not in state and p.dtype != wide(p):
            state[MASTER] = p.detach().to(None, wide(p))

    def _numbers(self, group: dict[str, Any], p: Tensor) -> dict[str, Any]:
        lr = self.device_lr(group, p) if self.in_graphed_step() else group["lr"]
        on_device = isinstance(lr, Tensor)
        scale = self.grad_scale
        return {
            "lr": 0.0 if on_device else lr,
            "lr_tensor": lr.to(p.device) if on_device else None,
            "grad_scale": None if scale is None else scale.to(p.device),
            "found_inf": self.found_inf.get(p.device),
        }

    def check_capture(self, group: dict[str, Any]) -> None:
        super().check_capture(group)
        if not self.counts or "capturable" not in group:
            return
        if not self.counts_on_device(group):
            raise RuntimeError(f"{type(self).__name__}.step(): a CUDA graph is captured, whose "
                               "replays would all take the step number of the capture; pass "
                               "capturable=True")  # fmt: skip
        states = [self.state[p] for p in group["params"] if p in self.state]
        if not all(isinstance(state["step"], Tensor) for state in states if state):
            raise RuntimeError(f"{type(self).__name__}.step(): the steps were counted without "
                               "capturable=True; take one with it before the capture")  # fmt: skip

    def check_state(self, number: int, p: Tensor, kept: dict[str, Any]) -> None:
        for name in (*self.moments, MASTER):
            value = kept.get(name)
            if isinstance(value, Tensor) and value.shape != p.shape:
                raise ShapeError(f"load_state_dict(): {name} of parameter {number} has shape "
                                 f"{list(value.shape)}, expected {list(p.shape)}")  # fmt: skip
        if self.counts and "step" in kept and self.moments[0] not in kept:
            raise ValueError(f"load_state_dict(): the state of parameter {number} has {list(kept)},"
                             f" but {type(self).__name__} needs {self.moments[0]!r}")  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state.get(p)
                if not state:
                    continue
                for name in [name for name, kept in state.items() if kept is None]:
                    del state[name]
                if self.counts and "step" in state:
                    count_as(bool(group.get("capturable")), state, p)
                for name in {*self.moments, MASTER} & state.keys():
                    state[name] = state[name].to(None, wide(p))


def zeros_for(p: Tensor) -> Tensor:
    """State of zeros for a parameter, in the compute type of its dtype."""
    return _C.zeros_like(p, dtype=wide(p))


def kept(states: list[dict[str, Any]], name: str) -> list[Tensor]:
    """That entry of all states; empty where they have none."""
    return [state[name] for state in states] if name in states[0] else []


def kept_steps(states: list[dict[str, Any]]) -> list[Tensor]:
    """The numbers of steps where the device counts them; else empty."""
    return kept(states, "step") if isinstance(states[0]["step"], Tensor) else []


def count_as(on_device: bool, state: dict[str, Any], p: Tensor) -> None:
    """The number of steps as a tensor on the device, or as an int; PyTorch's is of float32."""
    step = state["step"]
    if not on_device:
        state["step"] = int(step)
    elif not isinstance(step, Tensor):
        # In float64, beta^t and what it leaves of 1 are as exact as Python's.
        state["step"] = _C.full([], step, dtype=float64, device=p.device)
    else:
        state["step"] = step.to(p.device, float64)
