# SPDX-License-Identifier: Apache-2.0
"""cross_entropy and linear_cross_entropy for PyTorch's tensors."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ._library import direct, direct_loss, direct_loss_backward, ops
from ._support import (
    check_tensors,
    compute_type,
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

_forward = direct(ops._cross_entropy.default)
_backward = direct(ops.cross_entropy_backward.default)
_in_place = direct(ops.cross_entropy_.default)
_mean_weight = direct(ops.mean_weight.default)
_reduce = direct(ops.reduce_loss.default)
_scale_rows = direct(ops.scale_rows_.default)

_REDUCTIONS = ("mean", "sum", "none")
# One block of a GPU adds up so many losses in less time than several general operations take.
_ROWS_OF_ONE_BLOCK = 1 << 16


def _mean_weight_of(target: Tensor, ignore_index: int, dtype: torch.dtype) -> Tensor:
    """1 over the number of targets that count."""
    if target.numel() <= _ROWS_OF_ONE_BLOCK:
        return _mean_weight(target, ignore_index, dtype)
    return (target != ignore_index).sum().to(dtype).reciprocal()


def _reduced(
    loss: Tensor, target: Tensor, ignore_index: int, reduction: str, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The reduced loss in `dtype`, and the weight of a row in a mean."""
    if reduction == "none":
        return loss.to(dtype), None
    mean = reduction == "mean"
    if loss.numel() <= _ROWS_OF_ONE_BLOCK:
        value, weight = _reduce(loss, target if mean else None, ignore_index, dtype)
        return value, weight if mean else None
    weight = _mean_weight_of(target, ignore_index, loss.dtype) if mean else None
    total = loss.sum()
    return (total * weight if mean else total).to(dtype), weight


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target, how):
        ignore_index, reduction, smoothing, dtype, invariant = how
        wide = dtype != x.dtype
        made = direct_loss(x, target, ignore_index, reduction, smoothing, wide, invariant, True)
        if made is not None:
            value, stats, weight = made
        else:
            loss, stats = _forward(x, target, ignore_index, smoothing, invariant)
            value, weight = _reduced(loss, target, ignore_index, reduction, dtype)
        ctx.save_for_backward(x, target, stats, weight)
        ctx.how = ignore_index, reduction, smoothing
        return value

    @staticmethod
    def backward(ctx, dvalue):
        x, target, stats, weight = ctx.saved_tensors
        ignore_index, reduction, smoothing = ctx.how
        if torch.is_grad_enabled():
            loss = F.cross_entropy(
                x.to(dvalue.dtype),
                target,
                ignore_index=ignore_index,
                reduction=reduction,
                label_smoothing=smoothing,
            )
            return *torch.autograd.grad(loss, x, dvalue, create_graph=True), None, None
        dloss = dvalue if dvalue.dtype == stats.dtype else dvalue.to(stats.dtype)
        if weight is not None:
            dloss = dloss * weight
        dx = direct_loss_backward(x, target, stats, dloss, ignore_index, smoothing)
        if dx is None:
            dx = _backward(x, target, stats, dloss, ignore_index, smoothing)
        return dx, None, None


_apply_quickly = quick_apply(_CrossEntropy)


def _refuse_second_derivatives(name: str) -> None:
    """In a backward whose gradients are recorded: they would seem to be constants."""
    if torch.is_grad_enabled():
        raise RuntimeError(
            f"{name} has no second derivatives, but backward runs with create_graph=True"
        )


class _CrossEntropyInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target, how):
        ignore_index, reduction, smoothing, dtype, invariant = how
        mean = reduction == "mean"
        weight = _mean_weight_of(target, ignore_index, compute_type(x.dtype)) if mean else None
        logits = x.detach()
        loss = _in_place(logits, target, weight, ignore_index, smoothing, invariant)
        torch.autograd.graph.increment_version(logits)
        ctx.gradient = logits
        summed = "sum" if mean else reduction  # the weight is in the losses
        return _reduced(loss, target, ignore_index, summed, dtype)[0]

    @staticmethod
    def backward(ctx, dvalue):
        _refuse_second_derivatives("cross_entropy(inplace_backward=True)")
        dx = ctx.gradient
        if dx is None:
            raise RuntimeError(
                "cross_entropy(): backward ran already; with inplace_backward=True it runs once, "
                "because the gradient lies where the logits were"
            )
        ctx.gradient = None
        _scale_rows(dx, dvalue.to(compute_type(dx.dtype)))
        torch.autograd.graph.increment_version(dx)
        return dx, None, None


def _loss_of_graph(x, target, ignore_index, reduction, smoothing, dtype, invariant):
    """For torch.compile and torch.export, which fuse the reduction themselves."""
    loss = ops.cross_entropy(x, target, ignore_index, smoothing, invariant)[0]
    if reduction == "none":
        return loss.to(dtype)
    total = loss.sum()
    if reduction == "mean":
        total = total / (target != ignore_index).sum()
    return total.to(dtype)


def _is_served(x: Tensor, target: Tensor, weight: Tensor | None) -> bool:
    return (
        weight is None
        and is_served(x)
        and x.ndim == 2
        and target.dtype == torch.int64
        and target.ndim == 1
        and target.shape[0] == x.shape[0]
        and target.device == x.device
        and (is_compiling() or (x.numel() > 0 and type(target) is Tensor))
    )


def _is_quick(x: Tensor, target: Tensor) -> bool:
    """Whether the operator's own checks are enough, but for the range of targets."""
    return (
        is_ordinary(x)
        and type(target) is Tensor
        and x.dim() == 2
        and target.dim() == 1
        and x.numel() > 0
        and x.get_device() == target.get_device()
    )


def _as_index_error(error: RuntimeError, name: str) -> Exception:
    """A target out of range, which is a RuntimeError on its way, in the name of a function."""
    told = "cross_entropy(): target "
    where, found, rest = str(error).partition(told)
    return IndexError(f"{name}(): target {rest}") if found and not where else error


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    inplace_backward: bool = False,
    dtype: torch.dtype | None = None,
    autocast: str = "torch",
    invariant: bool = False,
) -> Tensor:
    """Cross entropy of logits, as torch.nn.functional.cross_entropy.

    Logits [N, C] with integer targets [N] and no class weights are computed without the
    probabilities ever being stored; all else is PyTorch's.

    Parameters
    ----------
    inplace_backward : bool
        Let the call write the gradient into input's memory while it computes the loss: input's
        values are lost, backward runs once, and there is no second derivative. Not of float16,
        whose small gradients would be lost before a loss scale reaches them.
    dtype : torch.dtype, optional
        The loss's; input's own by default. float32 beside logits of 16 bits costs nothing: the loss
        is computed in it.
    autocast : {"torch", "keep"}
        As softmax's.
    invariant : bool
        As softmax's, for the losses of rows (reduction="none") and the logits' gradient; a mean or
        sum adds them up in an order that follows from their number.
    """
    plain = weight is None and dtype is None and autocast == "torch" and not is_traced()
    if plain:
        loss = direct_loss(
            input, target, ignore_index, reduction, label_smoothing, False, invariant, False
        )
        if loss is not None:
            return loss
    if reduction not in _REDUCTIONS:
        raise ValueError(f'reduction is "{reduction}"; allowed are "mean", "sum" and "none"')
    if plain and not inplace_backward and 0.0 <= label_smoothing <= 1.0:
        if _is_quick(input, target) and needs_grad(input):
            how = ignore_index, reduction, label_smoothing, input.dtype, invariant
            try:
                return _apply_quickly(input, target, how)
            except RuntimeError as error:
                raise_failure(error)  # else not served: PyTorch's function, or its error
    tensors = isinstance(input, Tensor) and isinstance(target, Tensor)  # or torch.fx traces
    if tensors and widens(input, autocast, is_loss=True):
        input = input.float()
    result = dtype if dtype is not None or not tensors else input.dtype
    known = tensors and 0.0 <= label_smoothing <= 1.0
    known = known and result in (input.dtype, compute_type(input.dtype))
    if not known or not _is_served(input, target, weight):
        loss = F.cross_entropy(
            input.to(result) if dtype is not None else input,
            target,
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
        not_served("cross_entropy", input, invariant)
        return loss
    how = ignore_index, reduction, label_smoothing, result, invariant
    if is_compiling():
        return _loss_of_graph(input, target, *how)
    try:
        if not needs_grad(input):
            loss, _ = _forward(input, target, ignore_index, label_smoothing, invariant)
            return _reduced(loss, target, ignore_index, reduction, result)[0]
        # Of float16 a loss scale arrives too late for a gradient that was rounded before.
        in_place = inplace_backward and input.is_contiguous() and input.dtype != torch.float16
        function = _CrossEntropyInPlace if in_place else _CrossEntropy
        return function.apply(input, target, how)
    except RuntimeError as error:
        raise _as_index_error(error, "cross_entropy") from None


def _chunk_rows(rows: int, classes: int, features: int) -> int:
    """So many rows at a time that their logits take about the room of all inputs."""
    chunks = max(1, -(-classes // max(1, features)))
    chunk = -(-rows // chunks)
    return min(rows, max(1, 1 << (chunk - 1).bit_length()))


class _LinearCrossEntropy(torch.autograd.Function):
    """Loss and gradients together, a chunk of rows at a time, so that few logits are ever there."""

    @staticmethod
    def forward(ctx, x, weight, bias, target, ignore_index, reduction, smoothing, dtype):
        compute = compute_type(x.dtype)
        of_x, of_weight, of_bias = ctx.needs_input_grad[:3]
        scale = _mean_weight_of(target, ignore_index, compute) if reduction == "mean" else None
        rows, step = x.shape[0], _chunk_rows(x.shape[0], *weight.shape)
        dx = torch.empty_like(x) if of_x else None
        dweight = torch.zeros(weight.shape, dtype=compute, device=x.device) if of_weight else None
        dbias = torch.zeros(bias.shape, dtype=compute, device=x.device) if of_bias else None
        losses = []
        for begin in range(0, rows, step):
            part = x[begin : begin + step]
            logits = F.linear(part, weight, bias)
            chunk = target[begin : begin + step]
            losses.append(_in_place(logits, chunk, scale, ignore_index, smoothing))
            if of_x:
                torch.mm(logits, weight, out=dx[begin : begin + step])
            if of_weight:
                dweight += logits.t() @ part
            if of_bias:
                dbias += logits.sum(0, dtype=compute)
        ctx.gradients = [
            dx,
            None if dweight is None else dweight.to(weight.dtype),
            None if dbias is None else dbias.to(bias.dtype),
        ]
        loss = losses[0] if len(losses) == 1 else torch.cat(losses)
        return loss.sum().to(dtype)

    @staticmethod
    def backward(ctx, dvalue):
        _refuse_second_derivatives("linear_cross_entropy()")
        if ctx.gradients is None:
            raise RuntimeError("linear_cross_entropy(): backward ran already; it runs once")
        gradients, ctx.gradients = ctx.gradients, None
        for g in gradients:
            if g is not None:  # a number of no dims would be rounded to g's 16 bits on CUDA
                g.mul_(dvalue.reshape(1))
        return *gradients, None, None, None, None, None


def linear_cross_entropy(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    autocast: str = "torch",
) -> Tensor:
    """cross_entropy(linear(input, weight, bias), target) without all logits at once.

    Parameters
    ----------
    input : Tensor
        Hidden states [N, H].
    weight : Tensor
        The output layer's weight [C, H], of input's dtype; bias [C].
    target : Tensor
        Integer classes [N].
    reduction : {"mean", "sum", "none"}
        With "none" nothing is saved: the logits are formed as a whole.
    autocast : {"torch", "keep"}
        Inside torch.autocast the logits have its dtype; with "torch" the loss is float32 on CUDA.
    """
    if reduction not in _REDUCTIONS:
        raise ValueError(f'reduction is "{reduction}"; allowed are "mean", "sum" and "none"')
    check_tensors("linear_cross_entropy", input=input, weight=weight, target=target)
    device = input.device.type
    if torch.is_autocast_enabled(device) and input.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
        input, weight = input.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    given = [weight] if bias is None else [weight, bias]
    served = (
        reduction != "none"
        and not is_compiling()
        and input.ndim == 2
        and _is_served(input, target, None)
        and all(is_served(t) and t.dtype == input.dtype for t in given)
        and all(t.device == input.device for t in given)
        and weight.ndim == 2
        and weight.shape[1] == input.shape[1]
        and weight.shape[0] > 0
        and (bias is None or bias.shape == weight.shape[:1])
        and needs_grad(input, *given)
    )
    if not served:
        logits = F.linear(input, weight, bias)
        return cross_entropy(
            logits,
            target,
            None,
            ignore_index,
            reduction,
            label_smoothing,
            autocast=autocast,
        )
    dtype = torch.float32 if widens(input, autocast, is_loss=True) else input.dtype
    with torch.autocast(device, enabled=False):
        try:
            return _LinearCrossEntropy.apply(
                input, weight, bias, target, ignore_index, reduction, label_smoothing, dtype
            )
        except RuntimeError as error:
            raise _as_index_error(error, "linear_cross_entropy") from None
