# SPDX-License-Identifier: Apache-2.0
"""What bench.py times beside oneflow_lite_torch, where it is installed.

A peer is a function that gives its functions by name, each of (x, weight, bias, target), or raises
ImportError. oneflow_lite has tensors and gradients of its own: it reads PyTorch's memory in place.
"""

import importlib
from collections.abc import Callable

import torch
from torch import Tensor

Functions = dict[str, Callable]


def _liger() -> Functions:
    norm = importlib.import_module("liger_kernel.ops.layer_norm").LigerLayerNormFunction
    rms = importlib.import_module("liger_kernel.ops.rms_norm").LigerRMSNormFunction
    softmax = importlib.import_module("liger_kernel.ops.softmax").LigerSoftmaxFunction
    loss = importlib.import_module("liger_kernel.transformers.functional").liger_cross_entropy
    return {
        "softmax": lambda x, w, b, t: softmax.apply(x),
        "layer_norm": lambda x, w, b, t: norm.apply(x, w, b, 1e-5),
        "rms_norm": lambda x, w, b, t: rms.apply(x, w, 1e-5),
        "cross_entropy": lambda x, w, b, t: loss(x.clone() if x.requires_grad else x, t),
    }


def _quack() -> Functions:
    quack = importlib.import_module("quack")
    return {
        "softmax": lambda x, w, b, t: quack.softmax(x),
        "rms_norm": lambda x, w, b, t: quack.rmsnorm(x, w, eps=1e-5),
        "cross_entropy": lambda x, w, b, t: quack.cross_entropy(x, t, reduction="mean"),
    }


def _shared(t: Tensor):
    """oneflow_lite's tensor over the memory of t, made once."""
    if not hasattr(t, "_rows_shared"):
        flow = importlib.import_module("oneflow_lite")
        t._rows_shared = flow.from_dlpack(t.detach()).requires_grad_(t.requires_grad)
    return t._rows_shared


def _oneflow_lite() -> Functions:
    flow = importlib.import_module("oneflow_lite")
    if not hasattr(flow, "from_dlpack"):  # a folder of that name, as in a checkout
        raise ImportError("oneflow_lite here is a folder, not the library")

    def of(function: Callable) -> Callable:
        return lambda *tensors: function(*(_shared(t) for t in tensors))

    return {
        "softmax": of(lambda x, w, b, t: flow.softmax(x, -1)),
        "log_softmax": of(lambda x, w, b, t: flow.log_softmax(x, -1)),
        "layer_norm": of(lambda x, w, b, t: flow.layer_norm(x, x.shape[-1:], w, b)),
        "rms_norm": of(lambda x, w, b, t: flow.rms_norm(x, x.shape[-1:], w, 1e-5)),
        "cross_entropy": of(lambda x, w, b, t: flow.cross_entropy(x, t)),
    }


PEERS = {"oneflow_lite": _oneflow_lite, "liger": _liger, "quack": _quack}


def find() -> tuple[dict[str, Functions], list[str]]:
    """The peers that are installed, and a line for each that is not."""
    found, absent = {}, []
    for name, peer in PEERS.items():
        try:
            found[name] = peer()
        except (
            Exception
        ) as error:  # a peer that fails to import is as absent as one that is not there
            absent.append(f"{name} is absent: {type(error).__name__}: {error}")
    return found, absent


def gradients(y, tensors, dy: Tensor) -> None:
    """Backward of y to those of `tensors` that ask for it, by the library that made y."""
    inputs = [t for t in tensors if t.requires_grad]
    if isinstance(y, Tensor):
        torch.autograd.grad(y, inputs, dy, allow_unused=True)
        return
    flow = importlib.import_module("oneflow_lite")
    flow.autograd.grad(y, [_shared(t) for t in inputs], _shared(dy), allow_unused=True)
