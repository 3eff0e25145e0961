# SPDX-License-Identifier: Apache-2.0
"""The libraries that we are measured beside, each in a module of its own with the same face.

    available() -> str            the version, or ImportError with what is missing
    make(problem) -> Candidate    or Unsupported, with the reason

They work on our tensors' memory (DLPack) and on our stream, so that the same events time all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench.problem import Candidate, Problem, Unsupported

# name: module; the first is always asked, the others where they are installed
MODULES = {
    "torch": "torch_eager", "compile": "torch_compile", "liger": "liger", "quack": "quack",
    "apex": "apex", "cudnn": "cudnn",
}  # fmt: skip


def load(name: str) -> ModuleType:
    """The module of a peer."""
    return importlib.import_module(f"{__name__}.{MODULES[name]}")


def torch_tensors(p: Problem) -> dict[str, Any]:
    """The problem's tensors as PyTorch's, over the same memory; numbers as they are."""
    import torch

    return {
        name: torch.from_dlpack(value.detach()) if isinstance(value, flow.Tensor) else value
        for name, value in p.t.items()
    }


def rows_of(p: Problem, x: Any) -> Any:
    """``x`` seen as rows x cols, where the op goes along the last dim."""
    if p.case.dim not in (-1, len(p.case.shape) - 1):
        raise Unsupported("goes along the last dim only")
    return x.flatten(0, -2) if x.ndim > 2 else x


def share_stream(p: Problem) -> None:
    """PyTorch works on our current stream from now on, where the problem is on a GPU."""
    on_our_stream(p.device)


def on_our_stream(device: str) -> None:
    """PyTorch works on our current stream from now on, where ``device`` is a GPU."""
    import torch

    if device != "cuda":
        return
    ours = flow.cuda.current_stream().cuda_stream
    if ours != torch.cuda.current_stream().cuda_stream:
        torch.cuda.set_stream(torch.cuda.ExternalStream(ours))


def candidate_of(
    p: Problem, makers: Mapping[str, Callable[[Problem, dict[str, Any]], Candidate]]
) -> Candidate:
    """What one of ``makers``, by the op's name, makes of PyTorch's tensors, without autograd."""
    import torch

    if p.op not in makers:
        raise Unsupported(f"has no {p.op}")
    share_stream(p)
    candidate = makers[p.op](p, torch_tensors(p))
    candidate.call = torch.no_grad()(candidate.call)
    return candidate
