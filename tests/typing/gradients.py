# SPDX-License-Identifier: Apache-2.0
"""Gradients, functions with gradients of their own, hooks and ops; typed strictly."""

from __future__ import annotations

from typing import Any

import oneflow_lite as flow
from oneflow_lite import Tensor, nn
from oneflow_lite.autograd import Function


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        dx: Tensor = 3 * x**2 * dy
        return dx


def penalty(model: nn.Module, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    (gradient,) = flow.autograd.grad(model(x).sum(), x, create_graph=True)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


def hooked(x: Tensor) -> list[Tensor]:
    seen: list[Tensor] = []
    x = x.detach().requires_grad_(True)
    handle = x.register_hook(lambda g: seen.append(g))
    y = Cube.apply(x)
    y.backward(flow.ones_like(y))
    handle.remove()
    if x.grad is not None:
        x.grad.zero_()
        x.grad = None
    return seen


def measured(x: Tensor) -> Tensor:
    with flow.no_grad():
        y = x * 2
    with flow.enable_grad(), flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * 2).sum()
    assert flow.autograd.gradcheck(lambda t: t * t, [x.double().detach().requires_grad_()])
    jacobian = flow.autograd.functional.jacobian(lambda t: t * 2, x)
    assert isinstance(jacobian, Tensor) and not flow.is_grad_enabled() or y.requires_grad
    return y


@flow.inference_mode()
def inferred(model: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = model(x)
    return y


if __name__ == "__main__":
    layer = nn.Linear(3, 2)
    penalty(layer, flow.rand(4, 3)).backward()
    hooked(flow.rand(3))
    measured(flow.rand(3, requires_grad=True))
    inferred(layer, flow.rand(1, 3))
    flow.check_op("exp", [(flow.rand(2, 3),)], verbose=False)
