# SPDX-License-Identifier: Apache-2.0
"""layer_norm, rms_norm and their forms with a residual for PyTorch's tensors."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ._library import direct, ops
from ._support import (
    RMS_NORM_WIDENS,
    check_autocast,
    compute_type,
    is_column,
    is_compiling,
    is_ordinary,
    is_served,
    needs_grad,
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


def _again(function, needs, tensors, dy):
    """Gradients that can be differentiated again: PyTorch's own."""
    inputs = [t for t, n in zip(tensors, needs, strict=True) if n]
    found = iter(torch.autograd.grad(function(*tensors), inputs, dy, create_graph=True))
    return tuple(next(found) if n else None for n in needs)


def _kept(needs, gradients):
    """None in place of what is not needed."""
    return tuple(g if n else None for n, g in zip(needs, gradients, strict=True))


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, dims, eps):
        y, mean, rstd = _layer(x, weight, bias, dims, eps)
        ctx.save_for_backward(x, mean, rstd, weight, bias)
        ctx.how = dims, eps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, mean, rstd, weight, bias = ctx.saved_tensors
        dims, eps = ctx.how
        of_x, of_weight, of_bias, _, _ = needs = ctx.needs_input_grad
        if _is_grad_enabled():
            shape = x.shape[x.ndim - dims :]
            norm = lambda x, w, b: F.layer_norm(x, shape, w, b, eps)  # noqa: E731
            return *_again(norm, needs[:3], (x, weight, bias), dy), None, None
        dx, dweight, dbias = _layer_backward(
            dy, None, x, mean, rstd, weight, bias, dims, of_x, of_weight, of_bias
        )
        kept = dx if of_x else None, dweight if of_weight else None, dbias if of_bias else None
        return *kept, None, None


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, dims, eps):
        y, rstd = _rms(x, weight, dims, eps)
        ctx.save_for_backward(x, rstd, weight)
        ctx.how = dims, eps
        return y

    @staticmethod
    def backward(ctx, dy):
        x, rstd, weight = ctx.saved_tensors
        dims, eps = ctx.how
        of_x, of_weight, _, _ = needs = ctx.needs_input_grad
        if _is_grad_enabled():
            shape = x.shape[x.ndim - dims :]
            norm = lambda x, w: F.rms_norm(x, shape, w, eps)  # noqa: E731
            return *_again(norm, needs[:2], (x, weight), dy), None, None
        dx, dweight = _rms_backward(dy, None, x, rstd, weight, dims, of_x, of_weight)
        return dx if of_x else None, dweight if of_weight else None, None, None


class _AddLayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, bias, dims, eps):
        y, s, mean, rstd = _add_layer(x, residual, weight, bias, dims, eps)
        ctx.save_for_backward(s, mean, rstd, weight, bias)
        ctx.dims = dims
        ctx.set_materialize_grads(False)
        return y, s

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, dsum):
        if dy is None:
            return dsum, dsum, None, None, None, None
        s, mean, rstd, weight, bias = ctx.saved_tensors
        of_x, of_residual, *columns = ctx.needs_input_grad[:4]
        needs = (of_x or of_residual, *columns)
        got = _layer_backward(dy, dsum, s, mean, rstd, weight, bias, ctx.dims, *needs)
        dx, dweight, dbias = _kept(needs, got)
        return dx if of_x else None, dx if of_residual else None, dweight, dbias, None, None


class _AddRmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, dims, eps):
        y, s, rstd = _add_rms(x, residual, weight, dims, eps)
        ctx.save_for_backward(s, rstd, weight)
        ctx.dims = dims
        ctx.set_materialize_grads(False)
        return y, s

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, dsum):
        if dy is None:
            return dsum, dsum, None, None, None
        s, rstd, weight = ctx.saved_tensors
        of_x, of_residual, of_weight = ctx.needs_input_grad[:3]
        needs = (of_x or of_residual, of_weight)
        dx, dweight = _kept(needs, _rms_backward(dy, dsum, s, rstd, weight, ctx.dims, *needs))
        return dx if of_x else None, dx if of_residual else None, dweight, None, None


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


def _is_quick(x: Tensor, shape: int | Sequence[int], *columns: Tensor | None) -> bool:
    """Whether the operator's own checks are enough: a norm over the last dim."""
    if not is_ordinary(x) or x.ndim == 0:
        return False
    if x.shape[-1] != (shape if isinstance(shape, int) else shape[0] if len(shape) == 1 else 0):
        return False
    return all(c is None or (type(c) in _PLAIN and c.ndim == 1) for c in columns)


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    autocast: str = "torch",
) -> Tensor:
    """Layer normalisation over the last dims, as torch.nn.functional.layer_norm.

    weight and bias may be float32 beside an input of 16 bits. `autocast` as softmax's.
    """
    if autocast == "torch" and _is_quick(input, normalized_shape, weight, bias):
        try:
            if needs_grad(input, weight, bias):
                return _LayerNorm.apply(input, weight, bias, 1, eps)
            return _layer_y(input, weight, bias, 1, eps)
        except RuntimeError:  # not served: PyTorch's function, or its error
            pass
    if widens(input, autocast):
        input, weight, bias = _widened(input, weight, bias)
    shape = _shape_of(normalized_shape)
    if not _are_served(input, shape, weight, bias):
        return F.layer_norm(input, shape, weight, bias, eps)
    if is_compiling():
        return ops.layer_norm(input, weight, bias, len(shape), eps)[0]
    if needs_grad(input, weight, bias):
        return _LayerNorm.apply(input, weight, bias, len(shape), eps)
    return _layer_y(input, weight, bias, len(shape), eps)


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    autocast: str = "torch",
) -> Tensor:
    """Root-mean-square normalisation, as torch.nn.functional.rms_norm.

    weight may be float32 beside an input of 16 bits; the result has input's dtype. `autocast` as
    softmax's.
    """
    if autocast == "torch" and eps is not None and _is_quick(input, normalized_shape, weight):
        try:
            if needs_grad(input, weight):
                return _RmsNorm.apply(input, weight, 1, eps)
            return _rms_y(input, weight, 1, eps)
        except RuntimeError:  # not served: PyTorch's function, or its error
            pass
    check_autocast(autocast)
    if RMS_NORM_WIDENS and widens(input, autocast):
        input, weight = _widened(input, weight)
    shape = _shape_of(normalized_shape)
    if not _are_served(input, shape, weight):
        return F.rms_norm(input, shape, weight, eps)
    if eps is None:
        eps = default_eps(input.dtype)
    if is_compiling():
        return ops.rms_norm(input, weight, len(shape), eps)[0]
    if needs_grad(input, weight):
        return _RmsNorm.apply(input, weight, len(shape), eps)
    return _rms_y(input, weight, len(shape), eps)


def default_eps(dtype: torch.dtype) -> float:
    """PyTorch's eps of rms_norm where none is given."""
    return torch.finfo(compute_type(dtype)).eps


def _can_add(x: Tensor, residual: Tensor) -> bool:
    alike = x.shape == residual.shape and x.dtype == residual.dtype and x.device == residual.device
    return alike and is_served(residual)


def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    autocast: str = "torch",
) -> tuple[Tensor, Tensor]:
    """layer_norm of input + residual, and that sum, in one pass. Parameters as layer_norm's."""
    shape = _shape_of(normalized_shape)
    wide = widens(input, autocast) or widens(residual, autocast)
    if wide or not (_are_served(input, shape, weight, bias) and _can_add(input, residual)):
        total = input + residual
        return layer_norm(total, shape, weight, bias, eps, autocast=autocast), total
    if is_compiling():
        return ops.add_layer_norm(input, residual, weight, bias, len(shape), eps)[:2]
    if needs_grad(input, residual, weight, bias):
        return _AddLayerNorm.apply(input, residual, weight, bias, len(shape), eps)
    return _add_layer(input, residual, weight, bias, len(shape), eps)[:2]


def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    autocast: str = "torch",
) -> tuple[Tensor, Tensor]:
    """rms_norm of input + residual, and that sum, in one pass. Parameters as rms_norm's."""
    shape = _shape_of(normalized_shape)
    wide = RMS_NORM_WIDENS and (widens(input, autocast) or widens(residual, autocast))
    if wide or not (_are_served(input, shape, weight) and _can_add(input, residual)):
        total = input + residual
        return rms_norm(total, shape, weight, eps, autocast=autocast), total
    if eps is None:
        eps = default_eps(input.dtype)
    if is_compiling():
        return ops.add_rms_norm(input, residual, weight, len(shape), eps)[:2]
    if needs_grad(input, residual, weight):
        return _AddRmsNorm.apply(input, residual, weight, len(shape), eps)
    return _add_rms(input, residual, weight, len(shape), eps)[:2]
