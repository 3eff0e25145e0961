# SPDX-License-Identifier: Apache-2.0
"""NVIDIA apex: the kernels of FusedLayerNorm and FusedRMSNorm, without their autograd classes."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from oneflow_lite.bench import peers
from oneflow_lite.bench.problem import EPS, Candidate, Problem, Unsupported


def available() -> str:
    import torch  # noqa: F401, I001  (its libraries first)
    import fused_layer_norm_cuda  # noqa: F401

    return metadata.version("apex")


def make(p: Problem) -> Candidate:
    import fused_layer_norm_cuda as apex
    import torch

    if p.op not in ("layer_norm", "rms_norm", "layer_norm_backward", "rms_norm_backward"):
        raise Unsupported(f"has no {p.op}")
    peers.share_stream(p)
    t: dict[str, Any] = peers.torch_tensors(p)
    x, w, b, shape = t["x"], t["weight"], t["bias"], (p.case.cols,)
    if not x.is_contiguous():
        raise Unsupported("needs contiguous tensors")
    rstd = t["rstd"].flatten() if "rstd" in t else None
    calls = {
        "layer_norm": lambda: apex.forward_affine(x, shape, w, b, EPS)[:1],
        "rms_norm": lambda: apex.rms_forward_affine(x, shape, w, EPS)[:1],
        "layer_norm_backward": lambda: apex.backward_affine(
            t["dy"], t["mean"].flatten(), rstd, x, shape, w, b, EPS, False
        ),
        "rms_norm_backward": lambda: apex.rms_backward_affine(
            t["dy"], rstd, x, shape, w, EPS, False
        ),
    }
    return Candidate(torch.no_grad()(calls[p.op]))
