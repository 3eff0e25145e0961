# SPDX-License-Identifier: Apache-2.0
"""Which tensors the operators serve, and what autocast asks for.

Whatever is not served takes PyTorch's own function: other dtypes and devices, subclasses such as
DTensor, sparse layouts, torch.func transforms and forward-mode differentiation.
"""

import functools
import warnings

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._library import nothing_in_the_way, ops

FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
_PLAIN = frozenset({Tensor, torch.nn.Parameter})
_STRIDED = torch.strided
_transformed = torch._C._are_functorch_transforms_active
_any_autocast = torch._C._is_any_autocast_enabled
_is_compiling = torch.compiler.is_compiling
_is_recorded_by_jit = torch._C._is_tracing
is_traced = torch.compiler.is_dynamo_compiling
_is_grad_enabled = torch.is_grad_enabled
_FAILURES = (torch.OutOfMemoryError, torch.AcceleratorError)
# rms_norm came to autocast's list after PyTorch 2.11.
RMS_NORM_WIDENS = torch._C._dispatch_has_kernel_for_dispatch_key("aten::rms_norm", "AutocastCUDA")


def is_compiling() -> bool:
    """Whether a call becomes part of a graph: an operator with gradients of its own is called then.

    torch.jit.trace records twice, with gradients and without, and compares.
    """
    return _is_compiling() or _is_recorded_by_jit()


@functools.cache
def runs_on(index: int) -> bool:
    """Whether the kernels run on a CUDA device; a warning says once why not."""
    try:
        ops.check_device(index)
    except RuntimeError as error:
        warnings.warn(f"{error}. PyTorch's own functions are called on cuda:{index}", stacklevel=4)
        return False
    return True


def is_served(x: Tensor) -> bool:
    """Whether the kernels take x; not: whether its shape suits a function."""
    if is_compiling():  # tensors are symbols there, and twins take any that are plain
        return x.dtype in FLOATS and x.device.type in ("cpu", "cuda")
    return (
        type(x) in _PLAIN
        and x.dtype in FLOATS
        and (x.is_cpu or (x.is_cuda and runs_on(x.device.index)))
        and x.layout is _STRIDED
        and not x.is_nested
        and not _transformed()
        and forward_ad._current_level < 0
    )


def is_ordinary(x: Tensor) -> bool:
    """Whether a call may go straight to its operator, which checks dtype and layout itself.

    An operator that refuses raises RuntimeError (raise_failure); is_served and its kin then say
    what to do. Every
    call asks this: what is cheap comes first. torch.export's tensors are a subclass.
    """
    return type(x) is Tensor and not is_traced() and not _any_autocast() and nothing_in_the_way()


def raise_failure(error: RuntimeError) -> None:
    """Raise what is no refusal: PyTorch's function would fail as well, or hide the fault.

    A refusal is an operator's that does not serve its arguments, and PyTorch's where none serves
    them. Memory that is not there and faults of the GPU are none.
    """
    if isinstance(error, _FAILURES) or str(error).startswith("oneflow_lite_torch failed: "):
        raise error


def quick_apply(function: type[torch.autograd.Function]):
    """function.apply without a look at torch.func's transforms, which is_ordinary rules out."""
    return super(torch.autograd.Function, function).apply


def is_column(w: Tensor | None, x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether w can be the weight or bias of a norm of x over dims of that shape."""
    if w is None:
        return True
    return (
        is_served(w)
        and (w.dtype == x.dtype or (w.dtype == torch.float32 and x.dtype.itemsize == 2))
        and w.device == x.device
        and w.shape == shape
    )


def needs_grad(*tensors: Tensor | None) -> bool:
    """Whether a call must be recorded."""
    if _is_grad_enabled():
        for t in tensors:
            if t is not None and t.requires_grad:
                return True
    return False


def compute_type(dtype: torch.dtype) -> torch.dtype:
    """The type in which a dtype is computed: float32 for the floats of 16 bits."""
    return torch.float32 if dtype.itemsize == 2 else dtype


def check_tensors(function: str, **given: object) -> None:
    """Refuse what is no tensor, nor stands for one as torch.fx's proxies do."""
    for name, t in given.items():
        if not isinstance(t, Tensor) and not hasattr(type(t), "__torch_function__"):
            raise TypeError(f"{function}(): {name} must be a Tensor, not {type(t).__name__}")


def check_autocast(autocast: str) -> None:
    """Refuse other values of the argument."""
    if autocast not in ("torch", "keep"):
        raise ValueError(f'autocast is "{autocast}"; allowed are "torch" and "keep"')


def widens(x: Tensor, autocast: str, is_loss: bool = False) -> bool:
    """Whether autocast turns x, of 16 bits, into float32 for a softmax, norm or loss.

    PyTorch's lists do so on CUDA; on the CPU for losses alone.
    """
    check_autocast(autocast)
    if autocast == "keep" or not _any_autocast() or x.dtype.itemsize != 2:
        return False
    device = x.device.type
    listed = device == "cuda" or (device == "cpu" and is_loss)
    return listed and torch.is_autocast_enabled(device)


def not_served(name: str, x: Tensor, invariant: bool) -> None:
    """Refuse invariant=True where PyTorch's own function is called, which does not promise it."""
    if not invariant or x.numel() == 0:
        return
    raise NotImplementedError(
        f"{name}(): invariant=True is not served for this call ({type(x).__name__} of {x.dtype}, "
        f"shape {tuple(x.shape)}, on {x.device}); allowed are plain float tensors on CUDA or the "
        "CPU, with arguments that the kernels take. Without it PyTorch's function is called"
    )
