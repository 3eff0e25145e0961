# SPDX-License-Identifier: Apache-2.0
"""What torch.compile, torch.export and torch.library.opcheck ask of the operators.

Every operator gets a fake kernel: shapes and dtypes without data, which serves meta tensors too.
The forwards without an underscore get gradients of torch.library.register_autograd.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from ._library import ops
from ._support import compute_type

_NAMESPACE = "oneflow_lite_torch"


def _like(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return torch.empty(x.shape, dtype=dtype or x.dtype, device=x.device)


def _numbers(x: Tensor, shape, dtype: torch.dtype | None = None) -> Tensor:
    return torch.empty(shape, dtype=dtype or compute_type(x.dtype), device=x.device)


def _statistics(x: Tensor, dims: int) -> Tensor:
    return _numbers(x, [*x.shape[: x.ndim - dims], *[1] * dims])


def _softmax(x, dim, log, to_float32, invariant=False):
    return _like(x, torch.float32 if to_float32 and x.dtype.itemsize == 2 else None)


def _softmax_backward(dy, y, dim, log, invariant=False):
    return _like(y)


def _scale_mask_softmax(x, mask, scale, causal, zero_masked_rows, invariant=False):
    return _like(x)


def _scale_mask_softmax_backward(dy, y, scale, causal, invariant=False):
    return _like(y)


def _layer_norm(x, weight, bias, dims, eps, invariant=False):
    return _like(x), _statistics(x, dims), _statistics(x, dims)


def _rms_norm(x, weight, dims, eps, invariant=False):
    return _like(x), _statistics(x, dims)


def _add_layer_norm(x, residual, weight, bias, dims, eps, invariant=False):
    return _like(x), _like(x), _statistics(x, dims), _statistics(x, dims)


def _add_rms_norm(x, residual, weight, dims, eps, invariant=False):
    return _like(x), _like(x), _statistics(x, dims)


def _layer_norm_inference(x, weight, bias, dims, eps, invariant=False):
    return _like(x)


def _rms_norm_inference(x, weight, dims, eps, invariant=False):
    return _like(x)


def _gradient(like: Tensor | None, needed: bool, x: Tensor) -> Tensor:
    return _like(like) if needed and like is not None else x.new_empty(0)


def _layer_norm_backward(
    dy,
    dsum,
    x,
    mean,
    rstd,
    weight,
    bias,
    dims,
    need_dx,
    need_dweight,
    need_dbias,
    invariant=False,
):
    return (
        _gradient(x, need_dx, x),
        _gradient(weight, need_dweight, x),
        _gradient(bias, need_dbias, x),
    )


def _rms_norm_backward(dy, dsum, x, rstd, weight, dims, need_dx, need_dweight, invariant=False):
    return _gradient(x, need_dx, x), _gradient(weight, need_dweight, x)


def _cross_entropy(x, target, ignore_index, smoothing, invariant=False):
    return _numbers(x, [x.shape[0]]), _numbers(x, [x.shape[0], 2])


def _cross_entropy_backward(x, target, stats, dloss, ignore_index, smoothing):
    return _like(x)


def _cross_entropy_in_place(x, target, scale, ignore_index, smoothing, invariant=False):
    return _numbers(x, [x.shape[0]])


def _mean_weight(target, ignore_index, dtype):
    return _numbers(target, [], compute_type(dtype))


def _reduce_loss(loss, target, ignore_index, dtype):
    return _numbers(loss, [], dtype), _numbers(loss, [], compute_type(dtype))


def _scale_rows(x, factor):
    return None


_FORWARDS = {
    "softmax": _softmax,
    "scale_mask_softmax": _scale_mask_softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "add_layer_norm": _add_layer_norm,
    "add_rms_norm": _add_rms_norm,
    "cross_entropy": _cross_entropy,
}
_OTHERS = {
    "layer_norm_inference": _layer_norm_inference,
    "rms_norm_inference": _rms_norm_inference,
    "softmax_backward": _softmax_backward,
    "scale_mask_softmax_backward": _scale_mask_softmax_backward,
    "layer_norm_backward": _layer_norm_backward,
    "rms_norm_backward": _rms_norm_backward,
    "cross_entropy_backward": _cross_entropy_backward,
    "cross_entropy_": _cross_entropy_in_place,
    "mean_weight": _mean_weight,
    "reduce_loss": _reduce_loss,
    "scale_rows_": _scale_rows,
}


# ---- gradients: what a forward keeps (setup), and what its backward makes of it -----------------


def _keep_softmax(ctx, inputs, output):
    x, dim, log, _, invariant = inputs
    ctx.save_for_backward(output)
    ctx.how = dim, log, x.dtype, invariant


def _back_softmax(ctx, dy):
    dim, log, dtype, invariant = ctx.how
    dx = ops.softmax_backward(dy, *ctx.saved_tensors, dim, log, invariant)
    return dx.to(dtype), None, None, None, None


def _keep_mask_softmax(ctx, inputs, output):
    _, mask, scale, causal, _, invariant = inputs
    ctx.save_for_backward(output, mask)
    ctx.how = scale, causal, invariant


def _back_mask_softmax(ctx, dy):
    y, mask = ctx.saved_tensors
    scale, causal, invariant = ctx.how
    if not ctx.needs_input_grad[1]:
        return ops.scale_mask_softmax_backward(dy, y, scale, causal, invariant), *[None] * 5
    dsum = ops.scale_mask_softmax_backward(dy, y, 1.0, causal, invariant)
    return dsum * scale, dsum.sum_to_size(mask.shape).to(mask.dtype), *[None] * 4


def _keep_layer_norm(ctx, inputs, output):
    x, weight, bias, dims, _, invariant = inputs
    ctx.save_for_backward(x, *output[1:], weight, bias)
    ctx.how = dims, invariant


def _back_layer_norm(ctx, dy, *_):
    needs = ctx.needs_input_grad[:3]
    x, mean, rstd, weight, bias = ctx.saved_tensors
    dims, invariant = ctx.how
    got = ops.layer_norm_backward(dy, None, x, mean, rstd, weight, bias, dims, *needs, invariant)
    return *(g if n else None for g, n in zip(got, needs, strict=True)), None, None, None


def _keep_rms_norm(ctx, inputs, output):
    x, weight, dims, _, invariant = inputs
    ctx.save_for_backward(x, output[1], weight)
    ctx.how = dims, invariant


def _back_rms_norm(ctx, dy, *_):
    needs = ctx.needs_input_grad[:2]
    x, rstd, weight = ctx.saved_tensors
    dims, invariant = ctx.how
    got = ops.rms_norm_backward(dy, None, x, rstd, weight, dims, *needs, invariant)
    return *(g if n else None for g, n in zip(got, needs, strict=True)), None, None, None


def _keep_add_layer_norm(ctx, inputs, output):
    _, _, weight, bias, dims, _, invariant = inputs
    ctx.save_for_backward(*output[1:], weight, bias)
    ctx.how = dims, invariant


def _back_add_layer_norm(ctx, dy, dsum, *_):
    of_x, of_residual, *columns = ctx.needs_input_grad[:4]
    s, mean, rstd, weight, bias = ctx.saved_tensors
    needs = (of_x or of_residual, *columns)
    dims, invariant = ctx.how
    dx, *rest = ops.layer_norm_backward(
        dy, dsum, s, mean, rstd, weight, bias, dims, *needs, invariant
    )
    others = (g if n else None for g, n in zip(rest, columns, strict=True))
    return dx if of_x else None, dx if of_residual else None, *others, None, None, None


def _keep_add_rms_norm(ctx, inputs, output):
    _, _, weight, dims, _, invariant = inputs
    ctx.save_for_backward(*output[1:], weight)
    ctx.how = dims, invariant


def _back_add_rms_norm(ctx, dy, dsum, *_):
    of_x, of_residual, of_weight = ctx.needs_input_grad[:3]
    s, rstd, weight = ctx.saved_tensors
    needs = (of_x or of_residual, of_weight)
    dims, invariant = ctx.how
    dx, dweight = ops.rms_norm_backward(dy, dsum, s, rstd, weight, dims, *needs, invariant)
    kept = (dx if of_x else None, dx if of_residual else None, dweight if of_weight else None)
    return *kept, None, None, None


def _keep_cross_entropy(ctx, inputs, output):
    x, target, ignore_index, smoothing, _ = inputs  # the gradient needs no other rows
    ctx.save_for_backward(x, target, output[1])
    ctx.how = ignore_index, smoothing


def _back_cross_entropy(ctx, dloss, *_):
    return ops.cross_entropy_backward(*ctx.saved_tensors, dloss, *ctx.how), *[None] * 4


_GRADIENTS = {
    "softmax": (_keep_softmax, _back_softmax),
    "scale_mask_softmax": (_keep_mask_softmax, _back_mask_softmax),
    "layer_norm": (_keep_layer_norm, _back_layer_norm),
    "rms_norm": (_keep_rms_norm, _back_rms_norm),
    "add_layer_norm": (_keep_add_layer_norm, _back_add_layer_norm),
    "add_rms_norm": (_keep_add_rms_norm, _back_add_rms_norm),
    "cross_entropy": (_keep_cross_entropy, _back_cross_entropy),
}


def _of_one_device(fake: Callable, name: str) -> Callable:
    """The fake kernel, which refuses real tensors that one on "meta" beside them brings here."""

    @functools.wraps(fake)
    def checked(*args):
        devices = {a.device for a in args if isinstance(a, Tensor)}
        if len(devices) > 1:
            found = ", ".join(sorted(map(str, devices)))
            raise RuntimeError(f"{name}(): tensors are on several devices: {found}")
        return fake(*args)

    return checked


def _register() -> None:
    underscored = {f"_{name}": fake for name, fake in _FORWARDS.items()}
    for name, fake in (_FORWARDS | underscored | _OTHERS).items():
        torch.library.register_fake(f"{_NAMESPACE}::{name}", _of_one_device(fake, name))
    for name, (setup, backward) in _GRADIENTS.items():
        torch.library.register_autograd(f"{_NAMESPACE}::{name}", backward, setup_context=setup)


_register()
