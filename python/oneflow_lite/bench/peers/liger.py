# SPDX-License-Identifier: Apache-2.0
"""Liger-Kernel: its Triton kernels through the functions below its autograd classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from oneflow_lite.bench import peers
from oneflow_lite.bench.problem import EPS, Candidate, Problem, Unsupported

LLAMA = "llama"  # its default: float32 statistics, the weight applied in the input's dtype


def available() -> str:
    import liger_kernel.ops.softmax  # noqa: F401

    return metadata.version("liger-kernel")


def _softmax(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.softmax import _softmax_forward

    x = peers.rows_of(p, t["x"])
    return Candidate(lambda: [_softmax_forward(x)[0].view(p.case.shape)])


def _softmax_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.softmax import _softmax_backward
    from liger_kernel.ops.utils import calculate_settings

    y, dy = peers.rows_of(p, t["y"]), peers.rows_of(p, t["dy"])
    block, warps = calculate_settings(y.shape[1])
    return Candidate(lambda: [_softmax_backward(dy, y, block, warps, False).view(p.case.shape)])


def _layer_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.layer_norm import layer_norm_forward

    x, w, b = t["x"], t["weight"], t["bias"]
    return Candidate(lambda: [layer_norm_forward(x, w, b, EPS)[0]])


def _layer_norm_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.layer_norm import layer_norm_backward

    given = [t[n] for n in ("dy", "x", "weight", "bias")]
    given += [t[n].flatten() for n in ("mean", "rstd")]
    return Candidate(lambda: layer_norm_backward(*given))


def _rms_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.rms_norm import rms_norm_forward

    x, w = t["x"], t["weight"]
    return Candidate(lambda: [rms_norm_forward(x, w, EPS, 0.0, LLAMA, None)[0]])


def _rms_norm_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.rms_norm import rms_norm_backward, rms_norm_forward

    x, w, rstd = t["x"], t["weight"], t["rstd"].flatten()
    *_, block, warps, mode = rms_norm_forward(x, w, EPS, 0.0, LLAMA, None)
    dy = t["dy"].clone()

    def call() -> Sequence[Any]:
        return rms_norm_backward(dy, x, w, rstd, 0.0, mode, block, warps, True, None)

    return Candidate(call, prepare=lambda: dy.copy_(t["dy"]), note="dx written over dy")


def _add_rms_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward

    given = [t[n] for n in ("x", "residual", "weight")]
    return Candidate(lambda: fused_add_rms_norm_forward(*given, EPS, 0.0, LLAMA)[:2])


def _cross_entropy(p: Problem, t: dict[str, Any]) -> Candidate:
    from liger_kernel.ops.cross_entropy import cross_entropy_forward

    rest = (t["target"], None, -100, 0.0, 0.0, "mean", None, False)
    if p.op == "cross_entropy":
        return Candidate(lambda: [cross_entropy_forward(t["x"], *rest)[0]])
    x = t["x"].clone().requires_grad_()

    def call() -> Sequence[Any]:
        loss, *_, dx = cross_entropy_forward(x, *rest)
        return loss, dx.detach()

    def restore() -> None:
        x.data.copy_(t["x"])

    return Candidate(call, prepare=restore, note="in place; waits for the GPU inside")


MAKERS: dict[str, Callable[[Problem, dict[str, Any]], Candidate]] = {
    "softmax": _softmax, "softmax_backward": _softmax_backward, "layer_norm": _layer_norm,
    "layer_norm_backward": _layer_norm_backward, "rms_norm": _rms_norm,
    "rms_norm_backward": _rms_norm_backward, "add_rms_norm": _add_rms_norm,
    "cross_entropy": _cross_entropy, "cross_entropy_gradient": _cross_entropy,
    "cross_entropy_gradient_in_place": _cross_entropy,
}  # fmt: skip


def make(p: Problem) -> Candidate:
    if p.dtype == "float64":
        raise Unsupported("computes in float32")
    return peers.candidate_of(p, MAKERS)
