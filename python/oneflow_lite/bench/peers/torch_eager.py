# SPDX-License-Identifier: Apache-2.0
"""PyTorch, eager. Gradients go through the operators of ATen, so that no autograd is timed.

``calls`` needs nothing but PyTorch: the CPU's peer process loads this file alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

EPS = 1e-5
Call = Callable[[], Sequence[Any]]


def _norms(t: dict[str, Any], cols: int, torch: Any) -> dict[str, Call]:
    F, aten, shape = torch.nn.functional, torch.ops.aten, [cols]
    x, w = t["x"], t["weight"]
    if "residual" in t:

        def add_rms_norm() -> Sequence[Any]:
            s = x + t["residual"]
            return F.rms_norm(s, shape, w, EPS), s

        return {"add_rms_norm": add_rms_norm}
    b = t["bias"]
    calls: dict[str, Call] = {
        "layer_norm": lambda: [F.layer_norm(x, shape, w, b, EPS)],
        "rms_norm": lambda: [F.rms_norm(x, shape, w, EPS)],
    }
    if "dy" in t:
        dy = t["dy"]
        column = [*x.shape[:-1], 1]
        rstd = t["rstd"].view(column)
        if "mean" in t:
            mean = t["mean"].view(column)
            calls["layer_norm_backward"] = lambda: aten.native_layer_norm_backward(
                dy, x, shape, mean, rstd, w, b, [True, True, True]
            )
        if x.is_cuda and hasattr(aten, "_fused_rms_norm_backward"):
            calls["rms_norm_backward"] = lambda: aten._fused_rms_norm_backward(
                dy, x, shape, rstd, w, [True, True]
            )
        else:  # no operator of its own there
            calls["rms_norm_backward"] = _through_autograd(
                lambda x, w: F.rms_norm(x, shape, w, EPS), [x, w], dy, torch
            )
    return calls


def _through_autograd(function: Any, inputs: list[Any], dy: Any, torch: Any) -> Call:
    """The gradient alone, of a graph that is recorded once."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = function(*inputs)
    return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)


def _losses(t: dict[str, Any], torch: Any) -> dict[str, Call]:
    aten, x, target = torch.ops.aten, t["x"], t["target"]
    one = torch.ones((), dtype=x.dtype, device=x.device)

    def gradient() -> Sequence[Any]:
        logp = torch.log_softmax(x, 1)
        loss, total = aten.nll_loss_forward(logp, target, None, 1, -100)
        dlogp = aten.nll_loss_backward(one, logp, target, None, 1, -100, total)
        return loss, aten._log_softmax_backward_data(dlogp, logp, 1, x.dtype)

    return {
        "cross_entropy": lambda: [torch.nn.functional.cross_entropy(x, target)],
        "cross_entropy_gradient": gradient, "cross_entropy_gradient_in_place": gradient,
    }  # fmt: skip


def calls(t: dict[str, Any], dim: int, cols: int) -> dict[str, Call]:
    """The ops that these tensors serve, by name."""
    import torch

    aten = torch.ops.aten
    if "weight" in t:
        return _norms(t, cols, torch)
    if "target" in t:
        return _losses(t, torch)
    if "hidden" in t:
        x, scale, hidden = t["x"], t["scale"], t["hidden"]

        def masked() -> Sequence[Any]:
            return [torch.softmax((x * scale).masked_fill(hidden, float("-inf")), -1)]

        return {"scale_mask_softmax": masked, "causal_softmax": masked}
    if "dy" in t:
        y, dy = t["y"], t["dy"]
        return {
            "softmax_backward": lambda: [aten._softmax_backward_data(dy, y, dim, y.dtype)],
            "log_softmax_backward": lambda: [aten._log_softmax_backward_data(dy, y, dim, y.dtype)],
        }
    x = t["x"]
    return {
        "softmax": lambda: [torch.softmax(x, dim)],
        "log_softmax": lambda: [torch.log_softmax(x, dim)],
    }


def available() -> str:
    import torch

    return torch.__version__


def make(p: Any) -> Any:
    import torch

    from oneflow_lite.bench import peers
    from oneflow_lite.bench.problem import Candidate, Unsupported

    peers.share_stream(p)
    t = peers.torch_tensors(p)
    if p.case.kind == "recorded":
        t["x"].requires_grad_()
    call = calls(t, p.case.dim, p.case.cols).get(p.op)
    if call is None:
        raise Unsupported(f"PyTorch {torch.__version__} has no operator for {p.op}")
    return Candidate(call)
