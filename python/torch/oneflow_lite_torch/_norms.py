# SPDX-License-Identifier: Apache-2.0
"""layer_norm, rms_norm and their forms with a residual for PyTorch's tensors.

rms_norm is layer_norm without a centre: it has no bias and no mean. Both are one code here.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ._library import direct, direct_norm, direct_norm_backward, ops
from ._support import (
    RMS_NORM_WIDENS,
    check_autocast,
    check_tensors,
    compute_type,
    is_column,
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

_PLAIN = (Tensor, torch.nn.Parameter)
_layer = direct(ops._layer_norm.default)
_rms = direct(ops._rms_norm.default)
_layer_y = direct(ops.layer_norm_inference.default)
_rms_y = direct(ops.rms_norm_inference.default)
_add_layer = direct(ops._add_layer_norm.default)
_add_rms = direct(ops._add_rms_norm.default)
_layer_backward = direct(ops.layer_norm_backward.default)
_rms_backward = direct(ops.rms_norm_backward.default)
_is_grad_enabled = torch.is_grad_enabled


def _gradients(saved, how, needs, dy, dsum):
    """Those of x, weight and bias; None in place of what is not needed."""
    x, mean, rstd, weight, bias = saved
    dims, _, centre, invariant = how
    of_x, of_weight, of_bias = needs
    if dims == 1 and dsum is None:
        made = direct_norm_backward(
            dy, x, mean, rstd, weight, bias, centre, invariant, of_x, of_weight, of_bias
        )
        if made is not None:
            return made
    if centre:
        dx, dweight, dbias = _layer_backward(
            dy, dsum, x, mean, rstd, weight, bias, dims, of_x, of_weight, of_bias, invariant
        )
    else:
        dx, dweight = _rms_backward(dy, dsum, x, rstd, weight, dims, of_x, of_weight, invariant)
        dbias = None
    return dx if of_x else None, dweight if of_weight else None, dbias if of_bias else None


def _again(saved, how, needs, dy):
    """Gradients that can be differentiated again: PyTorch's own."""
    x, _, _, weight, bias = saved
    dims, eps, centre, _ = how
    shape = x.shape[x.ndim - dims :]
    column = bias if weight is None else weight
    wide = x if column is None else x.to(column.dtype)  # PyTorch's norms are of one dtype on CUDA
    if centre:
        y = F.layer_norm(wide, shape, weight, bias, eps).to(x.dtype)
    else:
        y = F.rms_norm(wide, shape, weight, eps).to(x.dtype)
    inputs = [t for t, n in zip((x, weight, bias), needs, strict=True) if n]
    found = iter(torch.autograd.grad(y, inputs, dy, create_graph=True))
    return [next(found) if n else None for n in needs]


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, how):
        dims, eps, centre, invariant = how
        mean = made = None
        if dims == 1:
            made = direct_norm(x, x.shape[-1], weight, bias, eps, centre, invariant, True)
        if centre:
            y, mean, rstd = made or _layer(x, weight, bias, dims, eps, invariant)
        else:
            y, rstd = made or _rms(x, weight, dims, eps, invariant)
        ctx.save_for_backward(x, mean, rstd, weight, bias)
        ctx.how = how
        return y

    @staticmethod
    def backward(ctx, dy):
        needs = ctx.needs_input_grad[:3]
        if _is_grad_enabled():
            return *_again(ctx.saved_tensors, ctx.how, needs, dy), None
        got = _gradients(ctx.saved_tensors, ctx.how, needs, dy, None)
        return *got, None


_apply_quickly = quick_apply(_Norm)


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, dims, eps, centre, invariant):
        mean = None
        if centre:
            y, s, mean, rstd = _add_layer(x, residual, weight, bias, dims, eps, invariant)
        else:
            y, s, rstd = _add_rms(x, residual, weight, dims, eps, invariant)
        ctx.save_for_backward(s, mean, rstd, weight, bias)
        ctx.how = dims, eps, centre, invariant
        ctx.set_materialize_grads(False)
        return y, s

    @staticmethod
    def backward(ctx, dy, dsum):
        if dy is None:
            return dsum, dsum, *[None] * 6
        of_x, of_residual, *columns = ctx.needs_input_grad[:4]
        needs = (of_x or of_residual, *columns)
        if _is_grad_enabled():
            dx, dweight, dbias = _again(ctx.saved_tensors, ctx.how, needs, dy)
            dx = dx + dsum if needs[0] and dsum is not None else dx
        else:
            dx, dweight, dbias = _gradients(ctx.saved_tensors, ctx.how, needs, dy, dsum)
        of_inputs = dx if of_x else None, dx if of_residual else None
        return *of_inputs, dweight, dbias, None, None, None, None


def _shape_of(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    is_number = isinstance(normalized_shape, int)
    return (normalized_shape,) if is_number else tuple(normalized_shape)


def _are_served(x: Tensor, shape: tuple[int, ...], *columns: Tensor | None) -> bool:
    given = [c for c in columns if c is not None]
    return (
        is_served(x)
        and 0 < len(shape) <= x.ndim
        and x.shape[x.ndim - len(shape) :] == shape
        and (is_compiling() or x.numel() > 0)
        and all(is_column(c, x, shape) for c in given)
        and len({c.dtype for c in given}) < 2
    )


def _widened(*tensors: Tensor | None) -> list[Tensor | None]:
    return [t if t is None else t.float() for t in tensors]


def _is_quick(
    x: Tensor, shape: int | Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> bool:
    """Whether the operator's own checks are enough: a norm over the last dim."""
    if not is_ordinary(x) or x.dim() == 0:
        return False
    cols = shape if type(shape) is int else shape[0] if len(shape) == 1 else -1
    return (
        x.size(-1) == cols
        and (weight is None or (type(weight) in _PLAIN and weight.dim() == 1))
        and (bias is None or (type(bias) in _PLAIN and bias.dim() == 1))
    )


def default_eps(dtype: torch.dtype) -> float:
    """PyTorch's eps of rms_norm where none is given."""
    return torch.finfo(compute_type(dtype)).eps


def _norm(x, normalized_shape, weight, bias, eps, centre, invariant, autocast):
    """Either norm of any tensor, by the operator or by PyTorch's function."""
    check_autocast(autocast)
    if (centre or RMS_NORM_WIDENS) and widens(x, autocast):
        x, weight, bias = _widened(x, weight, bias)
    shape = _shape_of(normalized_shape)
    number = isinstance(eps, float | int) or (eps is None and not centre)  # else an error
    if not number or not _are_served(x, shape, weight, bias):
        if centre:
            y = F.layer_norm(x, shape, weight, bias, eps)
        else:
            y = F.rms_norm(x, shape, weight, eps)
        not_served("layer_norm" if centre else "rms_norm", x, invariant)
        return y
    if eps is None:
        eps = default_eps(x.dtype)
    dims = len(shape)
    if is_compiling():
        if centre:
            return ops.layer_norm(x, weight, bias, dims, eps, invariant)[0]
        return ops.rms_norm(x, weight, dims, eps, invariant)[0]
    if needs_grad(x, weight, bias):
        return _Norm.apply(x, weight, bias, (dims, eps, centre, invariant))
    if centre:
        return _layer_y(x, weight, bias, dims, eps, invariant)
    return _rms_y(x, weight, dims, eps, invariant)


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """Layer normalisation over the last dims, as torch.nn.functional.layer_norm.

    weight and bias may be float32 beside an input of 16 bits. `autocast` and `invariant` as
    softmax's; the gradients of weight and bias are sums over the batch.
    """
    if autocast == "torch" and not is_traced():
        y = direct_norm(input, normalized_shape, weight, bias, eps, True, invariant, False)
        if y is not None:
            return y
    if autocast == "torch" and _is_quick(input, normalized_shape, weight, bias):
        try:
            if needs_grad(input, weight, bias):
                return _apply_quickly(input, weight, bias, (1, eps, True, invariant))
            return _layer_y(input, weight, bias, 1, eps, invariant)
        except RuntimeError as error:
            raise_failure(error)  # else not served: PyTorch's function, or its error
    return _norm(input, normalized_shape, weight, bias, eps, True, invariant, autocast)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """Root-mean-square normalisation, as torch.nn.functional.rms_norm.

    weight may be float32 beside an input of 16 bits; the result has input's dtype. `autocast` and
    `invariant` as layer_norm's.
    """
    if autocast == "torch" and not is_traced():
        y = direct_norm(input, normalized_shape, weight, None, eps, False, invariant, False)
        if y is not None:
            return y
    if autocast == "torch" and eps is not None and _is_quick(input, normalized_shape, weight, None):
        try:
            if needs_grad(input, weight):
                return _apply_quickly(input, weight, None, (1, eps, False, invariant))
            return _rms_y(input, weight, 1, eps, invariant)
        except RuntimeError as error:
            raise_failure(error)  # else not served: PyTorch's function, or its error
    return _norm(input, normalized_shape, weight, None, eps, False, invariant, autocast)


def _can_add(x: Tensor, residual: Tensor) -> bool:
    alike = x.shape == residual.shape and x.dtype == residual.dtype and x.device == residual.device
    return alike and is_served(residual)


def _add_norm(x, residual, normalized_shape, weight, bias, eps, centre, invariant, autocast):
    """Either norm of x + residual, and that sum."""
    if type(x) is not Tensor or type(residual) is not Tensor:
        name = "add_layer_norm" if centre else "add_rms_norm"
        check_tensors(name, input=x, residual=residual)
    shape = _shape_of(normalized_shape)
    listed = centre or RMS_NORM_WIDENS
    check_autocast(autocast)
    wide = listed and (widens(x, autocast) or widens(residual, autocast))
    if wide or not (_are_served(x, shape, weight, bias) and _can_add(x, residual)):
        total = x + residual
        y = _norm(total, shape, weight, bias, eps, centre, invariant, autocast)
        return y, total
    if eps is None:
        eps = default_eps(x.dtype)
    dims = len(shape)
    if is_compiling():
        if centre:
            return ops.add_layer_norm(x, residual, weight, bias, dims, eps, invariant)[:2]
        return ops.add_rms_norm(x, residual, weight, dims, eps, invariant)[:2]
    if needs_grad(x, residual, weight, bias):
        return _AddNorm.apply(x, residual, weight, bias, dims, eps, centre, invariant)
    if centre:
        return _add_layer(x, residual, weight, bias, dims, eps, invariant)[:2]
    return _add_rms(x, residual, weight, dims, eps, invariant)[:2]


def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> tuple[Tensor, Tensor]:
    """layer_norm of input + residual, and that sum, in one pass. Parameters as layer_norm's."""
    return _add_norm(
        input, residual, normalized_shape, weight, bias, eps, True, invariant, autocast
    )


def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    autocast: str = "torch",
    invariant: bool = False,
) -> tuple[Tensor, Tensor]:
    """rms_norm of input + residual, and that sum, in one pass. Parameters as rms_norm's."""
    return _add_norm(
        input, residual, normalized_shape, weight, None, eps, False, invariant, autocast
    )
