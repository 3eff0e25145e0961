# SPDX-License-Identifier: Apache-2.0
"""torch.compile of the formula or of PyTorch's own function; slow to make: for chosen widths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite.bench import peers
from oneflow_lite.bench.problem import EPS, Candidate, Problem, Unsupported


def available() -> str:
    import torch
    import triton

    return f"{torch.__version__}, Triton {triton.__version__}"


def _softmaxes(t: dict[str, Any], dim: int) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    import torch

    if "dy" in t:
        given = [t["y"], t["dy"]]
        return {
            "softmax_backward": (lambda y, dy: [_softmax_dx(y, dy, dim)], given),
            "log_softmax_backward": (lambda y, dy: [_log_softmax_dx(y, dy, dim)], given),
        }
    return {
        "softmax": (lambda x: [torch.softmax(x, dim)], [t["x"]]),
        "log_softmax": (lambda x: [torch.log_softmax(x, dim)], [t["x"]]),
    }


def _softmax_dx(y: Any, dy: Any, dim: int) -> Any:
    wide, g = y.float(), dy.float()
    return (wide * (g - (wide * g).sum(dim, keepdim=True))).to(y.dtype)


def _log_softmax_dx(y: Any, dy: Any, dim: int) -> Any:
    g = dy.float()
    return (g - y.float().exp() * g.sum(dim, keepdim=True)).to(y.dtype)


def _norm_dx(x: Any, dy: Any, w: Any, rstd: Any, mean: Any) -> list[Any]:
    centred = x.float() if mean is None else x.float() - mean
    x_hat, g = centred * rstd, dy.float() * w.float()
    dx = g - x_hat * (g * x_hat).mean(-1, keepdim=True)
    if mean is not None:
        dx = dx - g.mean(-1, keepdim=True)
    sums = [(dy.float() * x_hat).sum(0).to(w.dtype)]
    if mean is not None:
        sums.append(dy.float().sum(0).to(w.dtype))
    return [(dx * rstd).to(x.dtype), *sums]


def _norms(t: dict[str, Any], cols: int) -> dict[str, tuple[Callable[..., Any], list[Any]]]:
    import torch

    F = torch.nn.functional
    x, w = t["x"], t["weight"]
    if "residual" in t:

        def add_rms_norm(x: Any, residual: Any, w: Any) -> Any:
            s = x + residual
            return F.rms_norm(s, [cols], w, EPS), s

        return {"add_rms_norm": (add_rms_norm, [x, t["residual"], w])}
    if "dy" in t:
        given = [x, t["dy"], w, t["rstd"]]
        return {
            "layer_norm_backward": (_norm_dx, [*given, t["mean"]]),
            "rms_norm_backward": (_norm_dx, [*given, None]),
        }
    return {
        "layer_norm": (lambda x, w, b: [F.layer_norm(x, [cols], w, b, EPS)], [x, w, t["bias"]]),
        "rms_norm": (lambda x, w: [F.rms_norm(x, [cols], w, EPS)], [x, w]),
    }


def _loss(p: Problem, t: dict[str, Any]) -> Candidate:
    import torch

    loss = torch.compile(torch.nn.functional.cross_entropy, dynamic=False)
    if p.op == "cross_entropy":
        return Candidate(torch.no_grad()(lambda: [loss(t["x"], t["target"])]))
    x = t["x"].detach().requires_grad_()

    def gradient() -> list[Any]:
        value = loss(x, t["target"])
        return [value.detach(), *torch.autograd.grad(value, x)]

    return Candidate(gradient, note="through autograd")


def make(p: Problem) -> Candidate:
    import torch

    if p.dtype == "float64":
        raise Unsupported("not measured in float64")
    peers.share_stream(p)
    # Each shape is compiled for itself, as a user's fixed shape would be.
    torch._dynamo.reset()
    t = peers.torch_tensors(p)
    if "target" in t:
        return _loss(p, t)
    if "hidden" in t:
        scale = t["scale"]

        def masked(x: Any, hidden: Any) -> list[Any]:
            return [torch.softmax((x * scale).masked_fill(hidden, float("-inf")), -1)]

        function, given = masked, [t["x"], t["hidden"]]
    else:
        known = _norms(t, p.case.cols) if "weight" in t else _softmaxes(t, p.case.dim)
        function, given = known[p.op]
    compiled = torch.compile(function, dynamic=False)
    return Candidate(torch.no_grad()(lambda: compiled(*given)))
