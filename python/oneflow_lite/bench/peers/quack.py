# SPDX-License-Identifier: Apache-2.0
"""QuACK (CuTe DSL): its kernels through the functions below its autograd classes.

Each width is compiled at its first use; QUACK_CACHE_DIR keeps what was compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from oneflow_lite.bench import peers
from oneflow_lite.bench.problem import EPS, Candidate, Problem, Unsupported

MOST_COLUMNS = 1 << 20  # its softmax does not launch at 2^24, its norms compile for minutes


def available() -> str:
    import quack  # noqa: F401

    compiler = metadata.version("nvidia-cutlass-dsl")
    return f"{metadata.version('quack-kernels')}, CuTe DSL {compiler}"


def _softmax(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.softmax import softmax_fwd

    x = peers.rows_of(p, t["x"])
    return Candidate(lambda: [softmax_fwd(x).view(p.case.shape)])


def _softmax_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.softmax import softmax_bwd

    y, dy = peers.rows_of(p, t["y"]), peers.rows_of(p, t["dy"])
    return Candidate(lambda: [softmax_bwd(dy, y).view(p.case.shape)])


def _layer_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.rmsnorm import layernorm_fwd

    x, w, b = t["x"], t["weight"].float(), t["bias"].float()
    return Candidate(lambda: [layernorm_fwd(x, w, b, EPS)], note="float32 weight and bias")


def _layer_norm_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.rmsnorm import layernorm_bwd

    x, dy, w = t["x"], t["dy"], t["weight"].float()
    mean, rstd = t["mean"].flatten(), t["rstd"].flatten()
    return Candidate(lambda: layernorm_bwd(x, w, dy, rstd, mean), note="float32 weight")


def _rms_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.rmsnorm import rmsnorm_fwd

    x, w = t["x"], t["weight"]
    return Candidate(lambda: [rmsnorm_fwd(x, w, eps=EPS)[0]])


def _rms_norm_backward(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.rmsnorm import rmsnorm_bwd

    x, dy, w, rstd = t["x"], t["dy"], t["weight"], t["rstd"].flatten()
    return Candidate(lambda: rmsnorm_bwd(x, w, dy, rstd)[:2])


def _add_rms_norm(p: Problem, t: dict[str, Any]) -> Candidate:
    from quack.rmsnorm import rmsnorm_fwd

    x, residual, w = (t[n] for n in ("x", "residual", "weight"))
    return Candidate(lambda: rmsnorm_fwd(x, w, residual=residual, eps=EPS)[:2])


def _cross_entropy(p: Problem, t: dict[str, Any]) -> Candidate:
    import torch
    from quack.cross_entropy import cross_entropy_bwd, cross_entropy_fwd

    x, target = t["x"], t["target"]
    if p.op == "cross_entropy":
        return Candidate(lambda: [cross_entropy_fwd(x, target).mean()])
    in_place = p.op.endswith("in_place")
    logits = x.clone() if in_place else x
    weight = torch.full((x.shape[0],), 1 / x.shape[0], dtype=torch.float32, device=x.device)

    def call() -> Sequence[Any]:
        loss, lse = cross_entropy_fwd(logits, target, return_lse=True)
        return loss.mean(), cross_entropy_bwd(
            logits, target, weight, lse, inplace_backward=in_place
        )

    return Candidate(call, prepare=(lambda: logits.copy_(x)) if in_place else None)


MAKERS: dict[str, Callable[[Problem, dict[str, Any]], Candidate]] = {
    "softmax": _softmax, "softmax_backward": _softmax_backward, "layer_norm": _layer_norm,
    "layer_norm_backward": _layer_norm_backward, "rms_norm": _rms_norm,
    "rms_norm_backward": _rms_norm_backward, "add_rms_norm": _add_rms_norm,
    "cross_entropy": _cross_entropy, "cross_entropy_gradient": _cross_entropy,
    "cross_entropy_gradient_in_place": _cross_entropy,
}  # fmt: skip


def make(p: Problem) -> Candidate:
    if p.dtype == "float64":
        raise Unsupported("has no float64")
    if p.case.cols % (16 // p.itemsize):
        raise Unsupported(f"needs widths divisible by {16 // p.itemsize}")
    if p.case.cols > MOST_COLUMNS:
        raise Unsupported(f"not measured beyond {MOST_COLUMNS} columns")
    return peers.candidate_of(p, MAKERS)
