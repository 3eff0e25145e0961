# SPDX-License-Identifier: Apache-2.0
"""The functions of neural networks: those of rows are the C++ functions, without a Python frame.

>>> F.softmax(x, dim=None, dtype=None)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oneflow_lite._absent import public_face
from oneflow_lite._C import (
    add_layer_norm,
    add_rms_norm,
    alpha_dropout,
    attention_packed,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    celu,
    celu_,
    channel_shuffle,
    cosine_embedding_loss,
    cross_entropy,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    elu,
    elu_,
    feature_alpha_dropout,
    fused_scale_mask_softmax,
    gaussian_nll_loss,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    hinge_embedding_loss,
    kl_div,
    layer_norm,
    leaky_relu,
    leaky_relu_,
    linear,
    linear_cross_entropy,
    log_softmax,
    logsigmoid,
    margin_ranking_loss,
    mish,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    pad,
    pdist,
    pixel_shuffle,
    pixel_unshuffle,
    poisson_nll_loss,
    prelu,
    relu,
    relu6,
    relu_,
    rms_norm,
    rotary_embedding,
    scaled_dot_product_attention,
    selu,
    selu_,
    sigmoid,
    silu,
    soft_margin_loss,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    swiglu,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
    triplet_margin_loss,
)
from oneflow_lite._math import in_float32, norm, rounded_once
from oneflow_lite._named_errors import named
from oneflow_lite._numbers import check_number
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor, int64
from oneflow_lite._shapes import wrapped_dim
from oneflow_lite.nn.activation_functions import gumbel_softmax, wide
from oneflow_lite.nn.embedding import embedding
from oneflow_lite.nn.loss_functions import (
    huber_loss,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
    triplet_margin_with_distance_loss,
)

__all__ = [
    "add_layer_norm", "add_rms_norm", "alpha_dropout", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "cosine_similarity", "cross_entropy",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding",
    "feature_alpha_dropout", "fused_scale_mask_softmax", "gaussian_nll_loss", "gelu", "glu",
    "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "layer_norm",
    "leaky_relu", "leaky_relu_", "linear", "log_softmax", "logsigmoid", "margin_ranking_loss",
    "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rotary_embedding",
    "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "swiglu",
    "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip
__all__ += ["attention_packed", "linear_cross_entropy"]
__all__ += ["channel_shuffle", "cosine_embedding_loss", "multi_margin_loss",
            "multilabel_margin_loss", "multilabel_soft_margin_loss", "pdist", "pixel_shuffle",
            "pixel_unshuffle", "triplet_margin_loss",
            "triplet_margin_with_distance_loss"]  # fmt: skip


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 ``[..., num_classes]``: 1 at the class that each element names, else 0.

    With ``num_classes=-1`` there are as many as the largest one says, which waits for the device.
    A class out of range is a ValueError; on CUDA, where ``num_classes`` is given, its row is 0.
    """
    if tensor.dtype is not int64:
        raise TypeError(f"one_hot(): takes a tensor of int64, not of {tensor.dtype.name}")
    if tensor.numel() == 0:
        if num_classes == -1:
            raise ValueError("one_hot(): an empty tensor does not tell num_classes")
        return _C.zeros((*tensor.shape, num_classes), dtype=int64, device=tensor.device)
    if tensor.is_cpu and num_classes > 0 and not tensor.is_global:
        y = _C.zeros((*tensor.shape, num_classes), dtype=int64)
        try:
            return y.scatter_(-1, tensor.unsqueeze(-1), 1)
        except IndexError:  # _known_classes says which class is out of range
            pass
    if num_classes < 1 or tensor.is_cpu or tensor.is_global:
        num_classes = _known_classes(tensor, num_classes)
    # Few pairs are compared at once: fewer calls than zeros and then 1s.
    if tensor.is_global or tensor.numel() * num_classes <= _FEW_PAIRS:
        classes = _C.arange(num_classes, device=tensor.device)
        return (tensor.unsqueeze(-1) == classes).long()
    # Rows of a small identity matrix are one pass over the result, zeros and then the 1s two.
    if tensor.is_cuda and 0 < num_classes <= min(tensor.numel(), _ROWS_OF_IDENTITY):
        rows = _C.eye(num_classes, dtype=int64, device=tensor.device)
        return _C.embedding(tensor, rows)
    y = _C.zeros((*tensor.shape, num_classes), dtype=int64, device=tensor.device)
    return y.scatter_(-1, tensor.unsqueeze(-1), 1)


_FEW_PAIRS = 4096
_ROWS_OF_IDENTITY = 1024  # 8 MB, of which a GPU's L2 holds several times as many


def _known_classes(classes: Tensor, num_classes: int) -> int:
    """How many there are, ValueError where the least or the largest one is none."""
    # One copy from a GPU; a CPU needs none.
    ends = _C.aminmax(classes)
    least, largest = map(Tensor.item, ends) if classes.is_cpu else _C.stack(ends).tolist()
    known = largest + 1 if num_classes == -1 else num_classes
    if num_classes < 1 and num_classes != -1:
        raise ValueError(f"one_hot(): num_classes is {num_classes}, but it must be positive or -1")
    if least < 0:
        raise ValueError(f"one_hot(): class {least} is out of range: it is negative")
    if largest >= known:
        raise ValueError(f"one_hot(): class {largest} is out of range [0, {known - 1}]")
    return known


def _check_eps(name: str, eps: Any) -> None:
    check_number(f"{name}()", "argument 'eps'", eps, tensors=True)


@rounded_once
def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12
) -> Tensor:
    """``input`` over its p-norm along a dim or several, which counts as ``eps`` at least."""
    _check_eps("normalize", eps)
    if isinstance(dim, int):
        dim = wrapped_dim("normalize", input, dim)
    return input / _C.clamp(norm(input, p, dim, True, in_float32(input)), eps)


@rounded_once
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dim; each norm counts as ``eps`` at least."""
    _check_eps("cosine_similarity", eps)
    x1, x2 = _C.broadcast_tensors(x1, x2)
    dim = wrapped_dim("cosine_similarity", x1, dim)
    lengths = (_C.clamp(norm(x, 2, dim, True, in_float32(x)), eps) for x in (x1, x2))
    return (x1 / next(lengths) * (x2 / next(lengths))).sum(dim)


@rounded_once
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of ``x1 - x2 + eps`` along the last dim; eps keeps its slope finite."""
    if in_float32(x1):
        x1 = x1.float()
    return norm(x1 - x2 + eps, p, -1, keepdim)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """:func:`layer_norm` of each group of channels, dim 1; weight and bias are per channel."""
    channels = input.shape[1] if input.ndim > 1 else 0
    if num_groups < 1 or channels == 0 or channels % num_groups:
        raise ShapeError(f"group_norm(): input has shape {list(input.shape)}, expected channels in "
                         f"dim 1 that make {num_groups} groups")  # fmt: skip
    size = math.prod(input.shape[1:]) // num_groups
    rows = input.reshape(input.shape[0], num_groups, size)
    if weight is not None or bias is not None:  # 16 bits are rounded once, at the end
        rows = rows.to(None, wide(input))
    y = layer_norm(rows, rows.shape[2:], None, None, eps).reshape(input.shape)
    per_channel = [-1, *[1] * (input.ndim - 2)]
    y = y if weight is None else y * weight.view(per_channel)
    y = y if bias is None else y + bias.view(per_channel)
    return y.to(None, input.dtype)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    masked_row: str,
    causal: bool,
    dropout_p: float,
) -> tuple[Tensor, Tensor]:
    """The attention, and the shares of the values before dropout, of which those of 16 bits are in
    float32 on the CPU: for who asks for the shares. scaled_dot_product_attention keeps none.

    Scores of 16 bits would overflow before they are scaled, and lose digits: the CPU computes all
    in float32, a GPU scales the query first, by a power of two, which keeps its digits.
    """
    given = query.dtype
    if given.is_floating_point and given.itemsize == 2:
        if query.is_cuda:
            power = 2.0 ** min(math.frexp(scale)[1] - 1, 0)
            query, scale = query * power, scale / power
        elif key.dtype is given and value.dtype is given:
            query, key, value = (t.float() for t in (query, key, value))
            mask = mask.float() if mask is not None and mask.dtype is given else mask
    shares = fused_scale_mask_softmax(_C.matmul(query, key.mT), mask, scale, masked_row, causal)
    y = _C.matmul(dropout(shares, dropout_p, training=dropout_p > 0), value)
    return y.to(None, given), shares


globals().update({n: named(globals()[n], __name__, out=n == "normalize") for n in __all__})

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
