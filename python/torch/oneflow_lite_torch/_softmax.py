# SPDX-License-Identifier: Apache-2.0
"""softmax, log_softmax and scale_mask_softmax for PyTorch's tensors."""

import numbers

import torch
import torch.nn.functional as F
from torch import Tensor

from ._library import direct, direct_softmax, direct_softmax_backward, ops
from ._support import (
    check_tensors,
    is_compiling,
    is_ordinary,
    is_served,
    is_traced,
    needs_grad,
    not_served,
    quick_apply,
    raise_failure,
    widens,
)

_is_grad_enabled = torch.is_grad_enabled
_forward = direct(ops._softmax.default)
_backward = direct(ops.softmax_backward.default)
_mask_forward = direct(ops._scale_mask_softmax.default)
_mask_backward = direct(ops.scale_mask_softmax_backward.default)


def _gradient(dy: Tensor, y: Tensor, dim: int, log: bool) -> Tensor:
    """The gradient as PyTorch's operations, which can be differentiated again."""
    if log:
        return dy - y.exp() * dy.sum(dim, keepdim=True)
    return y * (dy - (y * dy).sum(dim, keepdim=True))


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        dim, log, to_float32, invariant = how
        y = None if to_float32 else direct_softmax(x, dim, log, invariant)
        if y is None:
            y = _forward(x, dim, log, to_float32, invariant)
        ctx.save_for_backward(y)
        ctx.how = dim, log, x.dtype, invariant
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        dim, log, dtype, invariant = ctx.how
        if _is_grad_enabled():
            dx = _gradient(dy, y, dim, log)
        else:
            dx = direct_softmax_backward(dy, y, dim, log, invariant)
            if dx is None:
                dx = _backward(dy, y, dim, log, invariant)
        return dx if dx.dtype == dtype else dx.to(dtype), None


_apply_quickly = quick_apply(_Softmax)


def _quick(x: Tensor, dim: int, log: bool, invariant: bool) -> Tensor:
    """Straight to the operator."""
    if x.requires_grad and _is_grad_enabled():
        return _apply_quickly(x, (dim, log, False, invariant))
    return _forward(x, dim, log, False, invariant)


def _is_dim(dim: object, ndim: int) -> bool:
    """Whether dim is a number of one of the dims; None and what is an error are PyTorch's."""
    whole = isinstance(dim, numbers.Integral) and not isinstance(dim, bool)
    return whole and -max(1, ndim) <= dim < max(1, ndim)


def _softmax(
    x: Tensor, dim: int, dtype: torch.dtype | None, log: bool, autocast: str, invariant: bool
) -> Tensor:
    name = "log_softmax" if log else "softmax"
    if type(x) is not Tensor:
        check_tensors(name, input=x)
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"{name}(): dtype must be a torch.dtype, not {type(dtype).__name__}")
    if dtype is None and widens(x, autocast):
        dtype = torch.float32
    served = is_served(x) and (dtype is None or dtype.is_floating_point)
    if not served or not _is_dim(dim, x.ndim):
        y = F.log_softmax(x, dim, dtype=dtype) if log else F.softmax(x, dim, dtype=dtype)
        not_served(name, x, invariant)
        return y
    dim = int(dim)
    if invariant and -x.ndim <= dim < x.ndim - 1 and dim != -1:  # its rows are of the last dim
        turned = x.transpose(dim, -1).contiguous()
        return _softmax(turned, -1, dtype, log, autocast, True).transpose(dim, -1)
    to_float32 = False
    if dtype is not None and dtype != x.dtype:
        last = dim in (-1, x.ndim - 1)
        to_float32 = dtype == torch.float32 and x.dtype.itemsize == 2 and last and x.is_cuda
        to_float32 = to_float32 and not invariant
        if not to_float32:
            x = x.to(dtype)
    if is_compiling():
        return ops.softmax(x, dim, log, to_float32, invariant)
    if x.requires_grad and torch.is_grad_enabled():
        return _Softmax.apply(x, (dim, log, to_float32, invariant))
    return _forward(x, dim, log, to_float32, invariant)


def softmax(
    input: Tensor,
    dim: int = -1,
    dtype: torch.dtype | None = None,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """Softmax along `dim`, as torch.nn.functional.softmax.

    Parameters
    ----------
    input : Tensor
        Of any shape. Rows that lie apart at equal distances are read in place.
    dtype : torch.dtype, optional
        What the result is computed and returned in; input's own by default.
    autocast : {"torch", "keep"}
        Inside torch.autocast: the result's dtype as PyTorch's (float32 on CUDA), or input's own.
    invariant : bool
        What a row becomes, and its gradient, depends to the last bit on that row alone: neither on
        how many rows there are nor on where it stands among them. A call that the kernels do not
        serve is refused.
    """
    if dtype is None and autocast == "torch" and not is_traced():
        y = direct_softmax(input, dim, False, invariant)
        if y is not None:
            return y
    if dtype is None and autocast == "torch" and type(dim) is int and is_ordinary(input):
        try:
            return _quick(input, dim, False, invariant)
        except RuntimeError as error:
            raise_failure(error)  # else not served: PyTorch's function, or its error
    return _softmax(input, dim, dtype, False, autocast, invariant)


def log_softmax(
    input: Tensor,
    dim: int = -1,
    dtype: torch.dtype | None = None,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """The logarithm of softmax along `dim`; parameters as softmax's."""
    if dtype is None and autocast == "torch" and not is_traced():
        y = direct_softmax(input, dim, True, invariant)
        if y is not None:
            return y
    if dtype is None and autocast == "torch" and type(dim) is int and is_ordinary(input):
        try:
            return _quick(input, dim, True, invariant)
        except RuntimeError as error:
            raise_failure(error)  # else not served: PyTorch's function, or its error
    return _softmax(input, dim, dtype, True, autocast, invariant)


class _ScaleMaskSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, mask, scale, causal, zero, invariant):
        y = _mask_forward(x, mask, scale, causal, zero, invariant)
        ctx.save_for_backward(y)
        ctx.how = scale, causal, None if mask is None else (mask.shape, mask.dtype), invariant
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        scale, causal, mask, invariant = ctx.how
        if torch.is_grad_enabled():
            dsum = _gradient(dy, y, -1, False)
            dx = dsum * scale
        elif ctx.needs_input_grad[1]:  # what is added to the scores is not scaled
            dsum = _mask_backward(dy, y, 1.0, causal, invariant)
            dx = dsum * scale
        else:
            dx = _mask_backward(dy, y, scale, causal, invariant)
        dmask = None
        if ctx.needs_input_grad[1]:
            shape, dtype = mask
            dmask = dsum.sum_to_size(shape).to(dtype)
        return dx, dmask, None, None, None, None


def _composed(
    x: Tensor, mask: Tensor | None, scale: float, causal: bool, masked_row: str
) -> Tensor:
    """The same of PyTorch's operations, for tensors that are not served."""
    scores = x * scale
    if causal:
        queries, keys = x.shape[-2] if x.ndim > 1 else 1, x.shape[-1]
        seen = torch.ones_like(scores if x.ndim > 1 else scores[None], dtype=torch.bool)
        seen = seen.tril(keys - queries)  # of x's own type: a DTensor's is one
        scores = scores.masked_fill(~(seen if x.ndim > 1 else seen[0]), float("-inf"))
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    if masked_row == "nan":
        return torch.softmax(scores, -1).to(x.dtype)
    nothing = (scores == float("-inf")).all(-1, keepdim=True)
    y = torch.softmax(scores.masked_fill(nothing, 0), -1).to(x.dtype)  # else gradients are NaN
    return y.masked_fill(nothing, 0)


def scale_mask_softmax(
    input: Tensor,
    mask: Tensor | None = None,
    scale: float = 1.0,
    *,
    causal: bool = False,
    masked_row: str = "nan",
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """softmax(scale * input + mask) over the last dim in one pass: attention's scores.

    Parameters
    ----------
    input : Tensor
        Scores [..., queries, keys].
    mask : Tensor, optional
        Broadcasts against input. A boolean one keeps where it is True; a floating one is added.
    causal : bool
        Query q sees the keys up to keys - queries + q.
    masked_row : {"nan", "zero"}
        What a row becomes of which nothing is left.
    autocast : {"torch", "keep"}
        As softmax's.
    invariant : bool
        As softmax's.
    """
    if masked_row not in ("nan", "zero"):
        raise ValueError(f'masked_row is "{masked_row}"; allowed are "nan" and "zero"')
    if mask is not None and not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a Tensor or None, not {type(mask).__name__}; see scale=")
    if type(input) is not Tensor:
        check_tensors("scale_mask_softmax", input=input)
    if widens(input, autocast):
        input = input.float()
    x = input
    takes_mask = mask is None or (
        (mask.dtype in (torch.bool, x.dtype) or (mask.dtype == torch.float32 and is_served(mask)))
        and mask.dtype.itemsize <= max(4, x.dtype.itemsize)
        and mask.device == x.device
        and (is_compiling() or type(mask) in (Tensor, torch.nn.Parameter))
    )
    if takes_mask and mask is not None and x.dtype == torch.float64:
        takes_mask = mask.dtype in (torch.bool, torch.float64)
    if not is_served(x) or not takes_mask or x.ndim == 0:
        y = _composed(x, mask, scale, causal, masked_row)
        not_served("scale_mask_softmax", x, invariant)
        return y
    zero = masked_row == "zero"
    if is_compiling():
        return ops.scale_mask_softmax(x, mask, scale, causal, zero, invariant)
    if needs_grad(x, mask):
        return _ScaleMaskSoftmax.apply(x, mask, scale, causal, zero, invariant)
    return _mask_forward(x, mask, scale, causal, zero, invariant)
