# SPDX-License-Identifier: Apache-2.0
"""Loads the library of operators, and says what keeps it from serving."""

import os
from pathlib import Path

import torch
from torch.autograd import forward_ad

_OLDEST = (2, 10)
_FILE = "liboneflow_lite_torch.so"


def _release(version: str) -> tuple[int, int]:
    major, minor = version.split("+")[0].split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()))


def load() -> None:
    """Register the operators with PyTorch.

    Raises
    ------
    ImportError
        PyTorch is older than 2.10, or the library cannot be opened.
    """
    if _release(torch.__version__) < _OLDEST:
        raise ImportError(
            f"oneflow_lite_torch needs PyTorch 2.10 or newer; this is {torch.__version__}"
        )
    path = Path(__file__).with_name(_FILE)
    if not path.exists():
        raise ImportError(f"oneflow_lite_torch: {_FILE} is missing beside {Path(__file__).name}")
    try:
        torch.ops.load_library(path)
    except OSError as error:
        raise ImportError(f"oneflow_lite_torch: {error}") from error


load()
ops = torch.ops.oneflow_lite_torch


_DIRECT = ("softmax", "softmax_backward", "norm", "norm_backward", "loss", "loss_backward")


def _not_there(*arguments: object) -> None:
    """In the place of a function of _direct: every call is one for the dispatcher."""


def _nothing_in_the_way() -> bool:
    """Whether no transform, trace or forward mode has to see a call."""
    core = torch._C
    return not (
        core._are_functorch_transforms_active()
        or core._is_tracing()
        or forward_ad._current_level >= 0
    )


def _open_direct() -> tuple:
    """The functions of direct/module.c, which call past PyTorch's dispatcher.

    OFL_TORCH_DIRECT=0 in the environment leaves every call to the dispatcher.
    """
    nowhere = (*(_not_there,) * len(_DIRECT), _nothing_in_the_way)
    if os.environ.get("OFL_TORCH_DIRECT", "1") == "0":
        return nowhere
    try:
        from . import _direct

        core = torch._C
        forward, profiler = vars(forward_ad), vars(torch.autograd.profiler)
        checks = (  # what is something else where a call is recorded, traced or replaced
            (forward, "_current_level", -1),
            (profiler, "_is_profiler_enabled", False),
            (core._len_torch_dispatch_stack, None, 0),
            (core._len_torch_function_stack, None, 0),
        )
        path = str(Path(__file__).with_name(_FILE))
        # PyTorch has had stable functions for tensors of Python since 2.14. Before, what
        # AOTInductor calls gives a handle of one.
        stable = _release(torch.__version__) >= (2, 14)
        to_capsule = None if stable else core._aoti.unsafe_alloc_void_ptr_from_tensor
        opened = _direct.open(
            path,
            torch.Tensor,
            torch.nn.Parameter,
            torch.is_grad_enabled,
            core._is_any_autocast_enabled,
            checks,
            to_capsule,
            core._are_functorch_transforms_active,
            core.DispatchKeySet(core.DispatchKey.FuncTorchDynamicLayerFrontMode).raw_repr(),
            core._is_tracing,
        )
    except (
        ImportError,
        AttributeError,
        KeyError,
    ):  # another Python, or a PyTorch without one of these
        opened = False
    if not opened:
        return nowhere
    return (*(getattr(_direct, name) for name in _DIRECT), _direct.nothing_in_the_way)


(
    direct_softmax,
    direct_softmax_backward,
    direct_norm,
    direct_norm_backward,
    direct_loss,
    direct_loss_backward,
    nothing_in_the_way,
) = _open_direct()


def direct(overload: torch._ops.OpOverload):
    """What an operator's __call__ calls: a Python frame less."""
    return getattr(overload, "_op", overload)
