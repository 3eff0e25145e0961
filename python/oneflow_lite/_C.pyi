# SPDX-License-Identifier: Apache-2.0
# Written by `python -m oneflow_lite._stubs`; the signatures are in functional/*.cpp.
"""The registered functions, as C++ parses them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from oneflow_lite._oneflow_lite import Generator, Tensor
from oneflow_lite._oneflow_lite import device as _device
from oneflow_lite._oneflow_lite import dtype as _dtype

class _Sorted(NamedTuple):
    values: Tensor
    indices: Tensor

class _Extremes(NamedTuple):
    min: Tensor
    max: Tensor

class _LInfo(NamedTuple):
    L: Tensor
    info: Tensor

class _LUPivots(NamedTuple):
    LU: Tensor
    pivots: Tensor

class _LUPivotsInfo(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class _PLU(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _QR(NamedTuple):
    Q: Tensor
    R: Tensor

class _USV(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class _USVh(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class _EigenvaluesEigenvectors(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class _InverseInfo(NamedTuple):
    inverse: Tensor
    info: Tensor

class _MantissaExponent(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class _ResultInfo(NamedTuple):
    result: Tensor
    info: Tensor

class _SignLogabsdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class _SolutionClonedCoefficient(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class _SolutionResidualsRankSingularValues(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def adadelta_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    acc_deltas: Sequence[Tensor],
    masters: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float = 1.0,
    rho: float = 0.9,
    eps: float = 1e-06,
    weight_decay: float = 0.0,
    maximize: bool = False,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def adagrad_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    sums: Sequence[Tensor],
    masters: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float = 0.01,
    lr_decay: float = 0.0,
    eps: float = 1e-10,
    weight_decay: float = 0.0,
    maximize: bool = False,
    step: int = 1,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def adam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor],
    masters: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-08,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    maximize: bool = False,
    step: int = 1,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def add(
    input: Tensor | float,
    other: Tensor | float,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def add_layer_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    memory_efficient: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    memory_efficient: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, Tensor]: ...
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addcdiv(
    input: Tensor | float,
    tensor1: Tensor | float,
    tensor2: Tensor | float,
    *,
    value: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addcmul(
    input: Tensor | float,
    tensor1: Tensor | float,
    tensor2: Tensor | float,
    *,
    value: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addmv(
    input: Tensor,
    mat: Tensor,
    vec: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def addr(
    input: Tensor,
    vec1: Tensor,
    vec2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def all(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def all(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def all(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def all(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
def alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amax(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amax(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amin(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amin(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Extremes: ...
@overload
def aminmax(
    input: Tensor,
    *,
    axis: int | None,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Extremes: ...
@overload
def aminmax(
    input: Tensor,
    *,
    axis: int | None,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Extremes: ...
@overload
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Extremes: ...
def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def any(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def any(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def any(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def any(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def arange(
    start: float,
    end: float | None = None,
    step: float | None = None,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def arange(
    *,
    end: float,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arccosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arcsin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arcsinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arctan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def arctan2(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def arctanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def argmax(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmax(
    input: Tensor,
    *,
    axis: int | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmax(
    input: Tensor,
    *,
    axis: int | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmin(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmin(
    input: Tensor,
    *,
    axis: int | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmin(
    input: Tensor,
    *,
    axis: int | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def argsort(
    input: Tensor,
    *,
    axis: int,
    descending: bool = False,
    stable: bool | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def argwhere(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atan2(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def atleast_1d(
    *tensors: Tensor | Sequence[Tensor],
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
def atleast_2d(
    *tensors: Tensor | Sequence[Tensor],
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
def atleast_3d(
    *tensors: Tensor | Sequence[Tensor],
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
def attention_packed(
    qkv: Tensor,
    num_heads: int | None = None,
    num_kv_heads: int | None = None,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bincount(
    input: Tensor,
    weights: Tensor | None = None,
    minlength: int = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_and(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_left_shift(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def bitwise_or(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_right_shift(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_xor(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def block_diag(*tensors: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor: ...
def bmm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def broadcast_tensors(
    *tensors: Tensor | Sequence[Tensor],
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def broadcast_to(
    input: Tensor,
    size: int | Sequence[int],
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def broadcast_to(input: Tensor, *size: int, out: Tensor | None = None) -> Tensor: ...
def bucketize(
    input: Tensor | float,
    boundaries: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def cartesian_prod(*tensors: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor: ...
@overload
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def cat(tensors: Sequence[Tensor], *, axis: int, out: Tensor | None = None) -> Tensor: ...
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def celu(
    input: Tensor,
    alpha: float = 1.0,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def celu_(input: Tensor, alpha: float = 1.0, *, out: Tensor | None = None) -> Tensor: ...
def chain_matmul(*matrices: Tensor | Sequence[Tensor], out: Tensor | None = None) -> Tensor: ...
def channel_shuffle(input: Tensor, groups: int, *, out: Tensor | None = None) -> Tensor: ...
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def cholesky_inverse(L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def cholesky_solve(
    B: Tensor,
    L: Tensor,
    upper: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def chunk(
    input: Tensor,
    chunks: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def chunk(
    input: Tensor,
    chunks: int,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def clamp(
    input: Tensor,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def clamp_max(input: Tensor, max: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def clamp_min(input: Tensor, min: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def clip(
    input: Tensor,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def clone(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def combinations(
    input: Tensor,
    r: int = 2,
    with_replacement: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def concat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def concat(tensors: Sequence[Tensor], *, axis: int, out: Tensor | None = None) -> Tensor: ...
@overload
def concatenate(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def concatenate(tensors: Sequence[Tensor], *, axis: int, out: Tensor | None = None) -> Tensor: ...
def constant_pad_nd(
    input: Tensor,
    pad: int | Sequence[int],
    value: float = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def copysign(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def corrcoef(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def count_nonzero(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def count_nonzero(input: Tensor, *dim: int, out: Tensor | None = None) -> Tensor: ...
@overload
def count_nonzero(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    out: Tensor | None = None,
) -> Tensor: ...
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cross(
    input: Tensor,
    other: Tensor,
    dim: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cross(
    input: Tensor,
    other: Tensor,
    *,
    axis: int | None,
    out: Tensor | None = None,
) -> Tensor: ...
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    inplace_backward: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cummax(input: Tensor, dim: int, *, out: Tensor | Sequence[Tensor] | None = None) -> _Sorted: ...
@overload
def cummax(
    input: Tensor,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def cummin(input: Tensor, dim: int, *, out: Tensor | Sequence[Tensor] | None = None) -> _Sorted: ...
@overload
def cummin(
    input: Tensor,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def cumprod(
    input: Tensor,
    dim: int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumprod(
    input: Tensor,
    *,
    axis: int,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumsum(
    input: Tensor,
    *,
    axis: int,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumulative_trapezoid(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def cumulative_trapezoid(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    axis: int,
    out: Tensor | None = None,
) -> Tensor: ...
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def det(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def detach(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def diag_embed(
    input: Tensor,
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def diagflat(input: Tensor, offset: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def diagonal(
    input: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def diagonal_scatter(
    input: Tensor,
    src: Tensor,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def diff(
    input: Tensor,
    n: int = 1,
    *,
    axis: int,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def div(
    input: Tensor | float,
    other: Tensor | float,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def divide(
    input: Tensor | float,
    other: Tensor | float,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def dot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def dropout1d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def dropout2d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def dropout3d(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def dsplit(
    input: Tensor,
    indices_or_sections: int,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def dsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int],
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def dsplit(
    input: Tensor,
    *indices_or_sections: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def elu(
    input: Tensor,
    alpha: float = 1.0,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def elu_(input: Tensor, alpha: float = 1.0, *, out: Tensor | None = None) -> Tensor: ...
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def empty(
    size: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def empty(
    *size: int,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def empty_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def eq(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def equal(input: Tensor, other: Tensor) -> bool: ...
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def feature_alpha_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def feature_dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def fill(input: Tensor, value: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def flatten(
    input: Tensor,
    start_dim: int = 0,
    end_dim: int = -1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def flip(input: Tensor, dims: int | Sequence[int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def flip(input: Tensor, *dims: int, out: Tensor | None = None) -> Tensor: ...
@overload
def flip(input: Tensor, *, axis: int | Sequence[int], out: Tensor | None = None) -> Tensor: ...
def fliplr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def flipud(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def float_power(
    input: Tensor | float,
    exponent: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def floor_divide(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fmax(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def fmin(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def fmod(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def frexp(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> _MantissaExponent: ...
def full(
    size: int | Sequence[int],
    fill_value: float,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def full_like(
    input: Tensor,
    fill_value: float,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def fuse_elements(
    expression: str,
    tensors: Sequence[Tensor],
    numbers: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def fused_scale_mask_softmax(
    input: Tensor,
    mask: Tensor | None = None,
    scale: float = 1.0,
    masked_row: str = "nan",
    causal: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def gather(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def gather(input: Tensor, *, axis: int, index: Tensor, out: Tensor | None = None) -> Tensor: ...
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def gcd(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def ge(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor: ...
def ger(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def glu(input: Tensor, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def glu(input: Tensor, *, axis: int, out: Tensor | None = None) -> Tensor: ...
def greater(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def greater_equal(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def gt(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def hardsigmoid(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def hardswish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def hardtanh_(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def heaviside(
    input: Tensor | float,
    values: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def histc(
    input: Tensor,
    bins: int = 100,
    min: float = 0,
    max: float = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def hsplit(
    input: Tensor,
    indices_or_sections: int,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def hsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int],
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def hsplit(
    input: Tensor,
    *indices_or_sections: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def hypot(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def index_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_add(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    source: Tensor,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_copy(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_copy(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    source: Tensor,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_fill(
    input: Tensor,
    dim: int,
    index: Tensor,
    value: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_fill(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    value: Tensor | float,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_reduce(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_select(
    input: Tensor,
    dim: int,
    index: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def index_select(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    out: Tensor | None = None,
) -> Tensor: ...
def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isin(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isreal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def kl_div(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    log_target: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def kthvalue(
    input: Tensor,
    k: int,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def kthvalue(
    input: Tensor,
    k: int,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def kthvalue(
    input: Tensor,
    k: int,
    dim: int = -1,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    weight: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    memory_efficient: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lcm(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def ldexp(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def le(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def leaky_relu_(
    input: Tensor,
    negative_slope: float = 0.01,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lerp(
    input: Tensor | float,
    end: Tensor | float,
    weight: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def less(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def less_equal(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor: ...
def linalg_cholesky_ex(
    A: Tensor,
    *,
    upper: bool = False,
    check_errors: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _LInfo: ...
@overload
def linalg_cond(A: Tensor, p: float | None = None, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_cond(A: Tensor, p: str, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_cross(
    input: Tensor,
    other: Tensor,
    *,
    dim: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_cross(
    input: Tensor,
    other: Tensor,
    *,
    axis: int,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_diagonal(
    A: Tensor,
    *,
    offset: int = 0,
    dim1: int = -2,
    dim2: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_eigh(
    A: Tensor,
    UPLO: str = "L",
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _EigenvaluesEigenvectors: ...
def linalg_eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor: ...
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_inv_ex(
    A: Tensor,
    *,
    check_errors: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _InverseInfo: ...
def linalg_lstsq(
    A: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _SolutionResidualsRankSingularValues: ...
def linalg_lu(
    A: Tensor,
    *,
    pivot: bool = True,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _PLU: ...
def linalg_lu_factor(
    A: Tensor,
    *,
    pivot: bool = True,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _LUPivots: ...
def linalg_lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _LUPivotsInfo: ...
def linalg_lu_solve(
    LU: Tensor,
    pivots: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    adjoint: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_matrix_exp(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: str = "fro",
    dim: int | Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: str = "fro",
    *,
    axis: int | Sequence[int],
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: str = "fro",
    *,
    axis: int | Sequence[int],
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: str = "fro",
    dim: int | Sequence[int] = (-2, -1),
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: float,
    dim: int | Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: float,
    *,
    axis: int | Sequence[int],
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: float,
    *,
    axis: int | Sequence[int],
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_norm(
    A: Tensor,
    ord: float,
    dim: int | Sequence[int] = (-2, -1),
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_matrix_rank(
    A: Tensor,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_rank(
    A: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_matrix_rank(
    A: Tensor,
    tol: float,
    hermitian: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: float | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: float | None = None,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: float | None = None,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: float | None = None,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: str,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: str,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: str,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_norm(
    A: Tensor,
    ord: str,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    A: Tensor,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    A: Tensor,
    rcond: float,
    hermitian: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_pinv(
    A: Tensor,
    *,
    atol: Tensor | None = None,
    rtol: Tensor | None = None,
    hermitian: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_qr(
    A: Tensor,
    mode: str = "reduced",
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _QR: ...
def linalg_slogdet(
    A: Tensor,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _SignLogabsdet: ...
def linalg_solve(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _ResultInfo: ...
def linalg_solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_svd(
    A: Tensor,
    full_matrices: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _USVh: ...
def linalg_svdvals(A: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def linalg_tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_tensorsolve(
    A: Tensor,
    B: Tensor,
    dims: int | Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_tensorsolve(
    A: Tensor,
    B: Tensor,
    *,
    axis: int | Sequence[int] | None,
    out: Tensor | None = None,
) -> Tensor: ...
def linalg_vander(x: Tensor, *, N: int | None = None, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_vecdot(x: Tensor, y: Tensor, *, axis: int, out: Tensor | None = None) -> Tensor: ...
@overload
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def linalg_vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linear_cross_entropy(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    chunks: int = 1,
    bias: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def lion_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    exp_avgs: Sequence[Tensor],
    masters: Sequence[Tensor],
    *,
    lr: float = 0.0001,
    beta1: float = 0.9,
    beta2: float = 0.99,
    weight_decay: float = 0.0,
    maximize: bool = False,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def log_softmax(
    input: Tensor,
    *,
    axis: int | None,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def logaddexp(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logaddexp2(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def logcumsumexp(input: Tensor, *, axis: int, out: Tensor | None = None) -> Tensor: ...
def logdet(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_and(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logical_or(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logical_xor(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor: ...
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logsumexp(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logsumexp(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
def lt(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def lu(
    A: Tensor,
    pivot: bool = True,
    get_infos: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def lu_solve(
    b: Tensor,
    LU_data: Tensor,
    LU_pivots: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _PLU: ...
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def masked_fill(
    input: Tensor,
    mask: Tensor,
    value: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def masked_scatter(
    input: Tensor,
    mask: Tensor,
    source: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(
    input: Tensor,
    dim: None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Tensor: ...
@overload
def max(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def max(
    input: Tensor,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def max(
    input: Tensor,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def max(
    input: Tensor,
    dim: int,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def maximum(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def median(
    input: Tensor,
    dim: None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Tensor: ...
@overload
def median(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def median(
    input: Tensor,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def median(
    input: Tensor,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def median(
    input: Tensor,
    dim: int,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def meshgrid(
    *tensors: Tensor | Sequence[Tensor],
    indexing: str = "ij",
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def min(
    input: Tensor,
    dim: None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Tensor: ...
@overload
def min(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def min(
    input: Tensor,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def min(
    input: Tensor,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def min(
    input: Tensor,
    dim: int,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def minimum(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def mish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def mm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def mode(
    input: Tensor,
    dim: int = -1,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def mode(
    input: Tensor,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def mode(
    input: Tensor,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def mode(
    input: Tensor,
    dim: int = -1,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def moveaxis(
    input: Tensor,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def movedim(
    input: Tensor,
    source: int | Sequence[int],
    destination: int | Sequence[int],
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def mse_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    weight: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mul(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def multi_clamp_(
    tensors: Sequence[Tensor],
    least: float,
    most: float,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def multi_fill_(
    tensors: Sequence[Tensor],
    value: float,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def multi_lerp_(
    tensors: Sequence[Tensor],
    ends: Sequence[Tensor],
    weight: float,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def multi_norm(
    tensors: Sequence[Tensor],
    p: float = 2.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def multi_scale_(
    tensors: Sequence[Tensor],
    factor: float,
    scale: Tensor | None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def multi_unscale_(
    tensors: Sequence[Tensor],
    flags: Sequence[Tensor],
    scale: Tensor | None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def multiply(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor: ...
def nan_to_num(
    input: Tensor,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor,
    dim: None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def nanmedian(
    input: Tensor,
    *,
    axis: int,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def nanmedian(
    input: Tensor,
    *,
    axis: int,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def nanmedian(
    input: Tensor,
    dim: int,
    *,
    keepdims: bool,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    *,
    axis: int | None,
    keepdim: bool = False,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    *,
    axis: int | None,
    keepdims: bool,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    *,
    keepdims: bool,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nansum(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nansum(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def narrow(
    input: Tensor,
    dim: int,
    start: int,
    length: int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def narrow(
    input: Tensor,
    *,
    axis: int,
    start: int,
    length: int,
    out: Tensor | None = None,
) -> Tensor: ...
def ne(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def nextafter(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def nonzero_static(
    input: Tensor,
    *,
    size: int,
    fill_value: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
def not_equal(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nuclear_norm(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nuclear_norm(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nuclear_norm(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def nuclear_norm(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def ones(
    size: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def ones(
    *size: int,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def ones_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def outer(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def pad(
    input: Tensor,
    pad: int | Sequence[int],
    mode: str = "constant",
    value: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def pdist(input: Tensor, p: float = 2.0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(input: Tensor, dims: int | Sequence[int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(input: Tensor, *dims: int, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(input: Tensor, *, axis: int | Sequence[int], out: Tensor | None = None) -> Tensor: ...
def pinverse(input: Tensor, rcond: float = 1e-15, *, out: Tensor | None = None) -> Tensor: ...
def pixel_shuffle(input: Tensor, upscale_factor: int, *, out: Tensor | None = None) -> Tensor: ...
def pixel_unshuffle(
    input: Tensor,
    downscale_factor: int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def positive(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def pow(
    input: Tensor | float,
    exponent: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def prod(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def prod(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def put(
    input: Tensor,
    index: Tensor,
    source: Tensor,
    accumulate: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def qr(
    input: Tensor,
    some: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _QR: ...
@overload
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def quantile(
    input: Tensor,
    q: Tensor | float,
    *,
    axis: int | None,
    keepdim: bool = False,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def quantile(
    input: Tensor,
    q: Tensor | float,
    *,
    axis: int | None,
    keepdims: bool,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    *,
    keepdims: bool,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor: ...
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def rand(
    size: int | Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def rand(
    *size: int,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def rand_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def randint(
    low: int,
    high: int,
    size: int | Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def randint(
    high: int,
    size: int | Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def randint_like(
    input: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def randn(
    size: int | Sequence[int],
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def randn(
    *size: int,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def randn_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def random_bits(
    size: int | Sequence[int],
    *,
    generator: Generator | None = None,
    device: _device | str | int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def random_bits(
    *size: int,
    generator: Generator | None = None,
    device: _device | str | int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def ravel(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def real(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def relu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def relu6(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def relu_(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def remainder(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def renorm(
    input: Tensor,
    p: float,
    dim: int,
    maxnorm: float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def renorm(
    input: Tensor,
    p: float,
    *,
    axis: int,
    maxnorm: float,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: int,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: int,
    *,
    axis: int | None,
    output_size: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    *,
    output_size: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: Tensor,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def repeat_interleave(
    input: Tensor,
    repeats: Tensor,
    *,
    axis: int | None,
    output_size: int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def reshape(input: Tensor, shape: int | Sequence[int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def reshape(input: Tensor, *shape: int, out: Tensor | None = None) -> Tensor: ...
def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    memory_efficient: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def rmsprop_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    square_avgs: Sequence[Tensor],
    grad_avgs: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    masters: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float = 0.01,
    alpha: float = 0.99,
    eps: float = 1e-08,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    maximize: bool = False,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def roll(
    input: Tensor,
    shifts: int | Sequence[int],
    dims: int | Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def roll(
    input: Tensor,
    shifts: int | Sequence[int],
    *,
    axis: int | Sequence[int] | None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def rot90(
    input: Tensor,
    k: int = 1,
    dims: int | Sequence[int] = (0, 1),
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def rot90(
    input: Tensor,
    k: int = 1,
    *,
    axis: int | Sequence[int],
    out: Tensor | None = None,
) -> Tensor: ...
def rotary_embedding(
    input: Tensor,
    cos: Tensor,
    sin: Tensor,
    rotated: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor: ...
def row_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def rsub(
    input: Tensor,
    other: Tensor | float,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    causal_bottom_right: bool = False,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    src: Tensor | float,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter_add(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    src: Tensor,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def scatter_reduce(
    input: Tensor,
    *,
    axis: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def select(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def select(input: Tensor, *, axis: int, index: int, out: Tensor | None = None) -> Tensor: ...
@overload
def select_scatter(
    input: Tensor,
    src: Tensor,
    dim: int,
    index: int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def select_scatter(
    input: Tensor,
    src: Tensor,
    *,
    axis: int,
    index: int,
    out: Tensor | None = None,
) -> Tensor: ...
def selu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def selu_(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sgd_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momentum_buffers: Sequence[Tensor],
    masters: Sequence[Tensor],
    *,
    lr: float = 0.001,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
    first: bool = False,
    lr_tensor: Tensor | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def silu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor: ...
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def slice(
    input: Tensor,
    dim: int,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def slice(
    input: Tensor,
    *,
    axis: int,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def slice_scatter(
    input: Tensor,
    src: Tensor,
    *,
    axis: int,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def slogdet(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> _SignLogabsdet: ...
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    beta: float = 1.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def softmax(
    input: Tensor,
    *,
    axis: int | None,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def softmin(
    input: Tensor,
    dim: int | None = None,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def softmin(
    input: Tensor,
    *,
    axis: int | None,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def softplus(
    input: Tensor,
    beta: float = 1.0,
    threshold: float = 20.0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor: ...
def softsign(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def sort(
    input: Tensor,
    *,
    axis: int,
    descending: bool = False,
    stable: bool | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def special_entr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_expit(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_multigammaln(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor: ...
def special_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_psi(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def special_zeta(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def split(
    tensor: Tensor,
    split_size_or_sections: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def split(
    tensor: Tensor,
    split_size_or_sections: int,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int],
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int],
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def split_with_sizes(
    input: Tensor,
    split_sizes: int | Sequence[int],
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def split_with_sizes(
    input: Tensor,
    split_sizes: int | Sequence[int],
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def squeeze(input: Tensor, *dim: int, out: Tensor | None = None) -> Tensor: ...
@overload
def squeeze(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
@overload
def stack(tensors: Sequence[Tensor], *, axis: int, out: Tensor | None = None) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    *,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def std_mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def std_mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    *,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def sub(
    input: Tensor | float,
    other: Tensor | float,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
def subtract(
    input: Tensor | float,
    other: Tensor | float,
    *,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def sum(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def sum(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def svd(
    input: Tensor,
    some: bool = True,
    compute_uv: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _USV: ...
def swapaxes(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
def swapdims(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def swiglu(input: Tensor, dim: int = -1, *, out: Tensor | None = None) -> Tensor: ...
@overload
def swiglu(input: Tensor, *, axis: int, out: Tensor | None = None) -> Tensor: ...
def t(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    dim: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def take_along_dim(
    input: Tensor,
    indices: Tensor,
    *,
    axis: int | None,
    out: Tensor | None = None,
) -> Tensor: ...
def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tanhshrink(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: int,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int],
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int],
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: Tensor,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def tensor_split(
    input: Tensor,
    indices_or_sections: Tensor,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def tensordot(
    a: Tensor,
    b: Tensor,
    a_dims: int | Sequence[int],
    b_dims: int | Sequence[int],
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def threshold_(
    input: Tensor,
    threshold: float,
    value: float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def tile(input: Tensor, dims: int | Sequence[int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def tile(input: Tensor, *dims: int, out: Tensor | None = None) -> Tensor: ...
@overload
def tile(input: Tensor, *, axis: int | Sequence[int], out: Tensor | None = None) -> Tensor: ...
@overload
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
@overload
def topk(
    input: Tensor,
    k: int,
    *,
    axis: int,
    largest: bool = True,
    sorted: bool = True,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def trace(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def transpose(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def trapezoid(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trapezoid(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    axis: int,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trapz(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    dim: int = -1,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def trapz(
    y: Tensor,
    x: Tensor | None = None,
    *,
    dx: float | None = None,
    axis: int,
    out: Tensor | None = None,
) -> Tensor: ...
def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _SolutionClonedCoefficient: ...
def tril(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def triu(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def true_divide(
    input: Tensor | float,
    other: Tensor | float,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def unbind(
    input: Tensor,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unbind(
    input: Tensor,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unflatten(
    input: Tensor,
    dim: int,
    sizes: int | Sequence[int],
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def unflatten(
    input: Tensor,
    *,
    axis: int,
    sizes: int | Sequence[int],
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    axis: int | None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    axis: int | None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Any: ...
@overload
def unravel_index(
    indices: Tensor,
    shape: int | Sequence[int],
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unravel_index(
    indices: Tensor,
    *shape: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unsafe_chunk(
    input: Tensor,
    chunks: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unsafe_chunk(
    input: Tensor,
    chunks: int,
    *,
    axis: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unsqueeze(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor: ...
@overload
def unsqueeze(input: Tensor, *, axis: int, out: Tensor | None = None) -> Tensor: ...
def update_scale_(
    scale: Tensor,
    found_inf: Tensor,
    growth_count: Tensor,
    growth: float = 2.0,
    backoff: float = 0.5,
    interval: int = 2000,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    *,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def var_mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdim: bool = False,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def var_mean(
    input: Tensor,
    *,
    axis: int | Sequence[int] | None,
    unbiased: bool = True,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    *,
    keepdims: bool,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def vector_norm(
    input: Tensor,
    p: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def vector_norm(
    input: Tensor,
    p: float = 2,
    *,
    axis: int | Sequence[int] | None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def vector_norm(
    input: Tensor,
    p: float = 2,
    *,
    axis: int | Sequence[int] | None,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def vector_norm(
    input: Tensor,
    p: float = 2,
    dim: int | Sequence[int] | None = None,
    *,
    keepdims: bool,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def vsplit(
    input: Tensor,
    indices_or_sections: int,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def vsplit(
    input: Tensor,
    indices_or_sections: int | Sequence[int],
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def vsplit(
    input: Tensor,
    *indices_or_sections: int,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor: ...
def where(
    condition: Tensor,
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def xlog1py(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def xlogy(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
@overload
def zeros(
    size: int | Sequence[int],
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def zeros(
    *size: int,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...
def zeros_like(
    input: Tensor,
    *,
    dtype: _dtype | None = None,
    device: _device | str | int | None = None,
    requires_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor: ...

class TensorFunctions:
    def abs(self) -> Tensor: ...
    def abs_(self) -> Tensor: ...
    def absolute(self) -> Tensor: ...
    def absolute_(self) -> Tensor: ...
    def acos(self) -> Tensor: ...
    def acos_(self) -> Tensor: ...
    def acosh(self) -> Tensor: ...
    def acosh_(self) -> Tensor: ...
    def add(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def add_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def addbmm(
        self,
        batch1: Tensor,
        batch2: Tensor,
        *,
        beta: float = 1,
        alpha: float = 1,
    ) -> Tensor: ...
    def addbmm_(
        self,
        batch1: Tensor,
        batch2: Tensor,
        *,
        beta: float = 1,
        alpha: float = 1,
    ) -> Tensor: ...
    def addcdiv(
        self,
        tensor1: Tensor | float,
        tensor2: Tensor | float,
        *,
        value: float = 1,
    ) -> Tensor: ...
    def addcdiv_(
        self,
        tensor1: Tensor | float,
        tensor2: Tensor | float,
        *,
        value: float = 1,
    ) -> Tensor: ...
    def addcmul(
        self,
        tensor1: Tensor | float,
        tensor2: Tensor | float,
        *,
        value: float = 1,
    ) -> Tensor: ...
    def addcmul_(
        self,
        tensor1: Tensor | float,
        tensor2: Tensor | float,
        *,
        value: float = 1,
    ) -> Tensor: ...
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor: ...
    def addmm_(
        self,
        mat1: Tensor,
        mat2: Tensor,
        *,
        beta: float = 1,
        alpha: float = 1,
    ) -> Tensor: ...
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor: ...
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor: ...
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor: ...
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor: ...
    @overload
    def all(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def all(self, *, axis: int | Sequence[int] | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def all(self, *, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor: ...
    @overload
    def all(self, dim: int | Sequence[int] | None = None, *, keepdims: bool) -> Tensor: ...
    @overload
    def amax(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def amax(self, *, axis: int | Sequence[int] | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def amax(self, *, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor: ...
    @overload
    def amax(self, dim: int | Sequence[int] | None = None, *, keepdims: bool) -> Tensor: ...
    @overload
    def amin(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def amin(self, *, axis: int | Sequence[int] | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def amin(self, *, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor: ...
    @overload
    def amin(self, dim: int | Sequence[int] | None = None, *, keepdims: bool) -> Tensor: ...
    @overload
    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> _Extremes: ...
    @overload
    def aminmax(self, *, axis: int | None, keepdim: bool = False) -> _Extremes: ...
    @overload
    def aminmax(self, *, axis: int | None, keepdims: bool) -> _Extremes: ...
    @overload
    def aminmax(self, *, dim: int | None = None, keepdims: bool) -> _Extremes: ...
    def angle(self) -> Tensor: ...
    @overload
    def any(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def any(self, *, axis: int | Sequence[int] | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def any(self, *, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor: ...
    @overload
    def any(self, dim: int | Sequence[int] | None = None, *, keepdims: bool) -> Tensor: ...
    def arccos(self) -> Tensor: ...
    def arccos_(self) -> Tensor: ...
    def arccosh(self) -> Tensor: ...
    def arccosh_(self) -> Tensor: ...
    def arcsin(self) -> Tensor: ...
    def arcsin_(self) -> Tensor: ...
    def arcsinh(self) -> Tensor: ...
    def arcsinh_(self) -> Tensor: ...
    def arctan(self) -> Tensor: ...
    def arctan2(self, other: Tensor | float) -> Tensor: ...
    def arctan2_(self, other: Tensor | float) -> Tensor: ...
    def arctan_(self) -> Tensor: ...
    def arctanh(self) -> Tensor: ...
    def arctanh_(self) -> Tensor: ...
    @overload
    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def argmax(self, *, axis: int | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def argmax(self, *, axis: int | None, keepdims: bool) -> Tensor: ...
    @overload
    def argmax(self, dim: int | None = None, *, keepdims: bool) -> Tensor: ...
    @overload
    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
    @overload
    def argmin(self, *, axis: int | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def argmin(self, *, axis: int | None, keepdims: bool) -> Tensor: ...
    @overload
    def argmin(self, dim: int | None = None, *, keepdims: bool) -> Tensor: ...
    @overload
    def argsort(
        self,
        dim: int = -1,
        descending: bool = False,
        *,
        stable: bool | None = None,
    ) -> Tensor: ...
    @overload
    def argsort(
        self,
        *,
        axis: int,
        descending: bool = False,
        stable: bool | None = None,
    ) -> Tensor: ...
    def argwhere(self) -> Tensor: ...
    def as_strided(
        self,
        size: int | Sequence[int],
        stride: int | Sequence[int],
        storage_offset: int | None = None,
    ) -> Tensor: ...
    def asin(self) -> Tensor: ...
    def asin_(self) -> Tensor: ...
    def asinh(self) -> Tensor: ...
    def asinh_(self) -> Tensor: ...
    def atan(self) -> Tensor: ...
    def atan2(self, other: Tensor | float) -> Tensor: ...
    def atan2_(self, other: Tensor | float) -> Tensor: ...
    def atan_(self) -> Tensor: ...
    def atanh(self) -> Tensor: ...
    def atanh_(self) -> Tensor: ...
    def baddbmm(
        self,
        batch1: Tensor,
        batch2: Tensor,
        *,
        beta: float = 1,
        alpha: float = 1,
    ) -> Tensor: ...
    def baddbmm_(
        self,
        batch1: Tensor,
        batch2: Tensor,
        *,
        beta: float = 1,
        alpha: float = 1,
    ) -> Tensor: ...
    def bernoulli(
        self,
        p: float | None = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    @overload
    def bernoulli_(self, p: float = 0.5, *, generator: Generator | None = None) -> Tensor: ...
    @overload
    def bernoulli_(self, p: Tensor, *, generator: Generator | None = None) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor: ...
    def bitwise_and(self, other: Tensor | float) -> Tensor: ...
    def bitwise_and_(self, other: Tensor | float) -> Tensor: ...
    def bitwise_left_shift(self, other: Tensor | float) -> Tensor: ...
    def bitwise_left_shift_(self, other: Tensor | float) -> Tensor: ...
    def bitwise_not(self) -> Tensor: ...
    def bitwise_not_(self) -> Tensor: ...
    def bitwise_or(self, other: Tensor | float) -> Tensor: ...
    def bitwise_or_(self, other: Tensor | float) -> Tensor: ...
    def bitwise_right_shift(self, other: Tensor | float) -> Tensor: ...
    def bitwise_right_shift_(self, other: Tensor | float) -> Tensor: ...
    def bitwise_xor(self, other: Tensor | float) -> Tensor: ...
    def bitwise_xor_(self, other: Tensor | float) -> Tensor: ...
    def bmm(self, other: Tensor) -> Tensor: ...
    @overload
    def broadcast_to(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def broadcast_to(self, *size: int) -> Tensor: ...
    def cauchy_(
        self,
        median: float = 0,
        sigma: float = 1,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    def ceil(self) -> Tensor: ...
    def ceil_(self) -> Tensor: ...
    def cholesky(self, upper: bool = False) -> Tensor: ...
    def cholesky_inverse(self, upper: bool = False) -> Tensor: ...
    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor: ...
    @overload
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def chunk(self, chunks: int, *, axis: int) -> tuple[Tensor, ...]: ...
    def clamp(
        self,
        min: Tensor | float | None = None,
        max: Tensor | float | None = None,
    ) -> Tensor: ...
    def clamp_(
        self,
        min: Tensor | float | None = None,
        max: Tensor | float | None = None,
    ) -> Tensor: ...
    def clamp_max(self, max: Tensor | float) -> Tensor: ...
    def clamp_max_(self, max: Tensor | float) -> Tensor: ...
    def clamp_min(self, min: Tensor | float) -> Tensor: ...
    def clamp_min_(self, min: Tensor | float) -> Tensor: ...
    def clip(
        self,
        min: Tensor | float | None = None,
        max: Tensor | float | None = None,
    ) -> Tensor: ...
    def clip_(
        self,
        min: Tensor | float | None = None,
        max: Tensor | float | None = None,
    ) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def contiguous(self) -> Tensor: ...
    @overload
    def copy_(self, src: Tensor) -> Tensor: ...
    @overload
    def copy_(self, src: float, non_blocking: bool = False) -> Tensor: ...
    @overload
    def copy_(self, src: Tensor, non_blocking: bool) -> Tensor: ...
    def copysign(self, other: Tensor | float) -> Tensor: ...
    def copysign_(self, other: Tensor | float) -> Tensor: ...
    def corrcoef(self) -> Tensor: ...
    def cos(self) -> Tensor: ...
    def cos_(self) -> Tensor: ...
    def cosh(self) -> Tensor: ...
    def cosh_(self) -> Tensor: ...
    @overload
    def count_nonzero(self, dim: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def count_nonzero(self, *dim: int) -> Tensor: ...
    @overload
    def count_nonzero(self, *, axis: int | Sequence[int] | None) -> Tensor: ...
    def cov(
        self,
        *,
        correction: int = 1,
        fweights: Tensor | None = None,
        aweights: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def cross(self, other: Tensor, dim: int | None = None) -> Tensor: ...
    @overload
    def cross(self, other: Tensor, *, axis: int | None) -> Tensor: ...
    @overload
    def cummax(self, dim: int) -> _Sorted: ...
    @overload
    def cummax(self, *, axis: int) -> _Sorted: ...
    @overload
    def cummin(self, dim: int) -> _Sorted: ...
    @overload
    def cummin(self, *, axis: int) -> _Sorted: ...
    @overload
    def cumprod(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumprod(self, *, axis: int, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumprod_(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumprod_(self, *, axis: int, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumsum(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumsum(self, *, axis: int, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumsum_(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def cumsum_(self, *, axis: int, dtype: _dtype | None = None) -> Tensor: ...
    def deg2rad(self) -> Tensor: ...
    def deg2rad_(self) -> Tensor: ...
    def det(self) -> Tensor: ...
    def detach(self) -> Tensor: ...
    def diag(self, diagonal: int = 0) -> Tensor: ...
    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor: ...
    def diagflat(self, offset: int = 0) -> Tensor: ...
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor: ...
    def diagonal_scatter(
        self,
        src: Tensor,
        offset: int = 0,
        dim1: int = 0,
        dim2: int = 1,
    ) -> Tensor: ...
    @overload
    def diff(
        self,
        n: int = 1,
        dim: int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor: ...
    @overload
    def diff(
        self,
        n: int = 1,
        *,
        axis: int,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor: ...
    def digamma(self) -> Tensor: ...
    def digamma_(self) -> Tensor: ...
    def div(self, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor: ...
    def div_(self, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor: ...
    def divide(self, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor: ...
    def divide_(self, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor: ...
    def dot(self, other: Tensor) -> Tensor: ...
    @overload
    def dsplit(self, indices_or_sections: int) -> tuple[Tensor, ...]: ...
    @overload
    def dsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
    @overload
    def dsplit(self, *indices_or_sections: int) -> tuple[Tensor, ...]: ...
    def eq(self, other: Tensor | float) -> Tensor: ...
    def equal(self, other: Tensor) -> bool: ...
    def erf(self) -> Tensor: ...
    def erf_(self) -> Tensor: ...
    def erfc(self) -> Tensor: ...
    def erfc_(self) -> Tensor: ...
    def erfinv(self) -> Tensor: ...
    def erfinv_(self) -> Tensor: ...
    def exp(self) -> Tensor: ...
    def exp2(self) -> Tensor: ...
    def exp2_(self) -> Tensor: ...
    def exp_(self) -> Tensor: ...
    @overload
    def expand(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def expand(self, *size: int) -> Tensor: ...
    def expand_as(self, other: Tensor) -> Tensor: ...
    def expm1(self) -> Tensor: ...
    def expm1_(self) -> Tensor: ...
    def exponential_(self, lambd: float = 1, *, generator: Generator | None = None) -> Tensor: ...
    def fill_(self, value: Tensor | float) -> Tensor: ...
    def fill_diagonal_(self, fill_value: float, wrap: bool = False) -> Tensor: ...
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
    @overload
    def flip(self, dims: int | Sequence[int]) -> Tensor: ...
    @overload
    def flip(self, *dims: int) -> Tensor: ...
    @overload
    def flip(self, *, axis: int | Sequence[int]) -> Tensor: ...
    def fliplr(self) -> Tensor: ...
    def flipud(self) -> Tensor: ...
    def float_power(self, exponent: Tensor | float) -> Tensor: ...
    def floor(self) -> Tensor: ...
    def floor_(self) -> Tensor: ...
    def floor_divide(self, other: Tensor | float) -> Tensor: ...
    def floor_divide_(self, other: Tensor | float) -> Tensor: ...
    def fmax(self, other: Tensor | float) -> Tensor: ...
    def fmin(self, other: Tensor | float) -> Tensor: ...
    def fmod(self, other: Tensor | float) -> Tensor: ...
    def fmod_(self, other: Tensor | float) -> Tensor: ...
    def frac(self) -> Tensor: ...
    def frac_(self) -> Tensor: ...
    def frexp(self) -> _MantissaExponent: ...
    @overload
    def gather(self, dim: int, index: Tensor) -> Tensor: ...
    @overload
    def gather(self, *, axis: int, index: Tensor) -> Tensor: ...
    def gcd(self, other: Tensor | float) -> Tensor: ...
    def gcd_(self, other: Tensor | float) -> Tensor: ...
    def ge(self, other: Tensor | float) -> Tensor: ...
    def geometric_(self, p: float, *, generator: Generator | None = None) -> Tensor: ...
    def ger(self, other: Tensor) -> Tensor: ...
    def greater(self, other: Tensor | float) -> Tensor: ...
    def greater_equal(self, other: Tensor | float) -> Tensor: ...
    def gt(self, other: Tensor | float) -> Tensor: ...
    def hardshrink(self, lambd: float = 0.5) -> Tensor: ...
    def heaviside(self, values: Tensor | float) -> Tensor: ...
    def heaviside_(self, values: Tensor | float) -> Tensor: ...
    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Tensor: ...
    @overload
    def hsplit(self, indices_or_sections: int) -> tuple[Tensor, ...]: ...
    @overload
    def hsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
    @overload
    def hsplit(self, *indices_or_sections: int) -> tuple[Tensor, ...]: ...
    def hypot(self, other: Tensor | float) -> Tensor: ...
    def hypot_(self, other: Tensor | float) -> Tensor: ...
    def i0(self) -> Tensor: ...
    def i0_(self) -> Tensor: ...
    @overload
    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor: ...
    @overload
    def index_add(
        self,
        *,
        axis: int,
        index: Tensor,
        source: Tensor,
        alpha: float = 1,
    ) -> Tensor: ...
    @overload
    def index_add_(
        self,
        dim: int,
        index: Tensor,
        source: Tensor,
        *,
        alpha: float = 1,
    ) -> Tensor: ...
    @overload
    def index_add_(
        self,
        *,
        axis: int,
        index: Tensor,
        source: Tensor,
        alpha: float = 1,
    ) -> Tensor: ...
    @overload
    def index_copy(self, dim: int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_copy(self, *, axis: int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_copy_(self, dim: int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_copy_(self, *, axis: int, index: Tensor, source: Tensor) -> Tensor: ...
    @overload
    def index_fill(self, dim: int, index: Tensor, value: Tensor | float) -> Tensor: ...
    @overload
    def index_fill(self, *, axis: int, index: Tensor, value: Tensor | float) -> Tensor: ...
    @overload
    def index_fill_(self, dim: int, index: Tensor, value: Tensor | float) -> Tensor: ...
    @overload
    def index_fill_(self, *, axis: int, index: Tensor, value: Tensor | float) -> Tensor: ...
    @overload
    def index_reduce(
        self,
        dim: int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def index_reduce(
        self,
        *,
        axis: int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def index_reduce_(
        self,
        dim: int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def index_reduce_(
        self,
        *,
        axis: int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def index_select(self, dim: int, index: Tensor) -> Tensor: ...
    @overload
    def index_select(self, *, axis: int, index: Tensor) -> Tensor: ...
    def inner(self, other: Tensor) -> Tensor: ...
    def inverse(self) -> Tensor: ...
    def isclose(
        self,
        other: Tensor,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> Tensor: ...
    def isfinite(self) -> Tensor: ...
    def isinf(self) -> Tensor: ...
    def isnan(self) -> Tensor: ...
    def isneginf(self) -> Tensor: ...
    def isposinf(self) -> Tensor: ...
    def isreal(self) -> Tensor: ...
    def kron(self, other: Tensor) -> Tensor: ...
    @overload
    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> _Sorted: ...
    @overload
    def kthvalue(self, k: int, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def kthvalue(self, k: int, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def kthvalue(self, k: int, dim: int = -1, *, keepdims: bool) -> _Sorted: ...
    def lcm(self, other: Tensor | float) -> Tensor: ...
    def lcm_(self, other: Tensor | float) -> Tensor: ...
    def ldexp(self, other: Tensor | float) -> Tensor: ...
    def ldexp_(self, other: Tensor | float) -> Tensor: ...
    def le(self, other: Tensor | float) -> Tensor: ...
    def lerp(self, end: Tensor | float, weight: Tensor | float) -> Tensor: ...
    def lerp_(self, end: Tensor | float, weight: Tensor | float) -> Tensor: ...
    def less(self, other: Tensor | float) -> Tensor: ...
    def less_equal(self, other: Tensor | float) -> Tensor: ...
    def lgamma(self) -> Tensor: ...
    def lgamma_(self) -> Tensor: ...
    def log(self) -> Tensor: ...
    def log10(self) -> Tensor: ...
    def log10_(self) -> Tensor: ...
    def log1p(self) -> Tensor: ...
    def log1p_(self) -> Tensor: ...
    def log2(self) -> Tensor: ...
    def log2_(self) -> Tensor: ...
    def log_(self) -> Tensor: ...
    def log_normal_(
        self,
        mean: float = 1,
        std: float = 2,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    @overload
    def log_softmax(self, dim: int | None = None, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def log_softmax(self, *, axis: int | None, dtype: _dtype | None = None) -> Tensor: ...
    def logaddexp(self, other: Tensor | float) -> Tensor: ...
    def logaddexp2(self, other: Tensor | float) -> Tensor: ...
    @overload
    def logcumsumexp(self, dim: int) -> Tensor: ...
    @overload
    def logcumsumexp(self, *, axis: int) -> Tensor: ...
    def logdet(self) -> Tensor: ...
    def logical_and(self, other: Tensor | float) -> Tensor: ...
    def logical_and_(self, other: Tensor | float) -> Tensor: ...
    def logical_not(self) -> Tensor: ...
    def logical_not_(self) -> Tensor: ...
    def logical_or(self, other: Tensor | float) -> Tensor: ...
    def logical_or_(self, other: Tensor | float) -> Tensor: ...
    def logical_xor(self, other: Tensor | float) -> Tensor: ...
    def logical_xor_(self, other: Tensor | float) -> Tensor: ...
    def logit(self, eps: float | None = None) -> Tensor: ...
    def logit_(self, eps: float | None = None) -> Tensor: ...
    @overload
    def logsumexp(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
    ) -> Tensor: ...
    @overload
    def logsumexp(self, *, axis: int | Sequence[int] | None, keepdim: bool = False) -> Tensor: ...
    @overload
    def logsumexp(self, *, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor: ...
    @overload
    def logsumexp(self, dim: int | Sequence[int] | None = None, *, keepdims: bool) -> Tensor: ...
    def lt(self, other: Tensor | float) -> Tensor: ...
    def lu(self, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]: ...
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor: ...
    def masked_fill(self, mask: Tensor, value: Tensor | float) -> Tensor: ...
    def masked_fill_(self, mask: Tensor, value: Tensor | float) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor: ...
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor: ...
    def masked_select(self, mask: Tensor) -> Tensor: ...
    def matmul(self, other: Tensor) -> Tensor: ...
    def matrix_exp(self) -> Tensor: ...
    def matrix_power(self, n: int) -> Tensor: ...
    @overload
    def max(self, dim: None = None) -> Tensor: ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def max(self, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def max(self, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def max(self, dim: int, *, keepdims: bool) -> _Sorted: ...
    def maximum(self, other: Tensor | float) -> Tensor: ...
    @overload
    def mean(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def mean(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def mean(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def mean(
        self,
        dim: int | Sequence[int] | None = None,
        *,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def median(self, dim: None = None) -> Tensor: ...
    @overload
    def median(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def median(self, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def median(self, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def median(self, dim: int, *, keepdims: bool) -> _Sorted: ...
    @overload
    def min(self, dim: None = None) -> Tensor: ...
    @overload
    def min(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def min(self, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def min(self, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def min(self, dim: int, *, keepdims: bool) -> _Sorted: ...
    def minimum(self, other: Tensor | float) -> Tensor: ...
    def mm(self, other: Tensor) -> Tensor: ...
    @overload
    def mode(self, dim: int = -1, keepdim: bool = False) -> _Sorted: ...
    @overload
    def mode(self, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def mode(self, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def mode(self, dim: int = -1, *, keepdims: bool) -> _Sorted: ...
    def moveaxis(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor: ...
    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor: ...
    def msort(self) -> Tensor: ...
    def mul(self, other: Tensor | float) -> Tensor: ...
    def mul_(self, other: Tensor | float) -> Tensor: ...
    def multinomial(
        self,
        num_samples: int,
        replacement: bool = False,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    def multiply(self, other: Tensor | float) -> Tensor: ...
    def multiply_(self, other: Tensor | float) -> Tensor: ...
    def mv(self, vec: Tensor) -> Tensor: ...
    def mvlgamma(self, p: int) -> Tensor: ...
    def nan_to_num(
        self,
        nan: float = 0.0,
        posinf: float | None = None,
        neginf: float | None = None,
    ) -> Tensor: ...
    def nan_to_num_(
        self,
        nan: float = 0.0,
        posinf: float | None = None,
        neginf: float | None = None,
    ) -> Tensor: ...
    @overload
    def nanmean(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nanmean(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nanmean(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nanmean(
        self,
        dim: int | Sequence[int] | None = None,
        *,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nanmedian(self, dim: None = None) -> Tensor: ...
    @overload
    def nanmedian(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def nanmedian(self, *, axis: int, keepdim: bool = False) -> _Sorted: ...
    @overload
    def nanmedian(self, *, axis: int, keepdims: bool) -> _Sorted: ...
    @overload
    def nanmedian(self, dim: int, *, keepdims: bool) -> _Sorted: ...
    @overload
    def nanquantile(
        self,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def nanquantile(
        self,
        q: Tensor | float,
        *,
        axis: int | None,
        keepdim: bool = False,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def nanquantile(
        self,
        q: Tensor | float,
        *,
        axis: int | None,
        keepdims: bool,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def nanquantile(
        self,
        q: Tensor | float,
        dim: int | None = None,
        *,
        keepdims: bool,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def nansum(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nansum(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nansum(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def nansum(
        self,
        dim: int | Sequence[int] | None = None,
        *,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def narrow(self, dim: int, start: int, length: int) -> Tensor: ...
    @overload
    def narrow(self, *, axis: int, start: int, length: int) -> Tensor: ...
    def ne(self, other: Tensor | float) -> Tensor: ...
    def neg(self) -> Tensor: ...
    def neg_(self) -> Tensor: ...
    def negative(self) -> Tensor: ...
    def negative_(self) -> Tensor: ...
    def nextafter(self, other: Tensor | float) -> Tensor: ...
    def nextafter_(self, other: Tensor | float) -> Tensor: ...
    def nonzero_static(self, *, size: int, fill_value: int = -1) -> Tensor: ...
    def normal_(
        self,
        mean: float = 0,
        std: float = 1,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    def not_equal(self, other: Tensor | float) -> Tensor: ...
    def outer(self, other: Tensor) -> Tensor: ...
    @overload
    def permute(self, dims: int | Sequence[int]) -> Tensor: ...
    @overload
    def permute(self, *dims: int) -> Tensor: ...
    @overload
    def permute(self, *, axis: int | Sequence[int]) -> Tensor: ...
    def pinverse(self, rcond: float = 1e-15) -> Tensor: ...
    def positive(self) -> Tensor: ...
    def pow(self, exponent: Tensor | float) -> Tensor: ...
    def pow_(self, exponent: Tensor | float) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor: ...
    @overload
    def prod(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def prod(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def prod(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def prod(
        self,
        dim: int | Sequence[int] | None = None,
        *,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def put(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor: ...
    def put_(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor: ...
    def qr(self, some: bool = True) -> _QR: ...
    @overload
    def quantile(
        self,
        q: Tensor | float,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def quantile(
        self,
        q: Tensor | float,
        *,
        axis: int | None,
        keepdim: bool = False,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def quantile(
        self,
        q: Tensor | float,
        *,
        axis: int | None,
        keepdims: bool,
        interpolation: str = "linear",
    ) -> Tensor: ...
    @overload
    def quantile(
        self,
        q: Tensor | float,
        dim: int | None = None,
        *,
        keepdims: bool,
        interpolation: str = "linear",
    ) -> Tensor: ...
    def rad2deg(self) -> Tensor: ...
    def rad2deg_(self) -> Tensor: ...
    def random_(
        self,
        low: int | None = None,
        high: int | None = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    def ravel(self) -> Tensor: ...
    def reciprocal(self) -> Tensor: ...
    def reciprocal_(self) -> Tensor: ...
    def relu(self, inplace: bool = False) -> Tensor: ...
    def relu_(self) -> Tensor: ...
    def remainder(self, other: Tensor | float) -> Tensor: ...
    def remainder_(self, other: Tensor | float) -> Tensor: ...
    @overload
    def renorm(self, p: float, dim: int, maxnorm: float) -> Tensor: ...
    @overload
    def renorm(self, p: float, *, axis: int, maxnorm: float) -> Tensor: ...
    @overload
    def repeat(self, sizes: int | Sequence[int]) -> Tensor: ...
    @overload
    def repeat(self, *sizes: int) -> Tensor: ...
    @overload
    def repeat_interleave(
        self,
        repeats: int,
        dim: int | None = None,
        *,
        output_size: int | None = None,
    ) -> Tensor: ...
    @overload
    def repeat_interleave(
        self,
        repeats: int,
        *,
        axis: int | None,
        output_size: int | None = None,
    ) -> Tensor: ...
    @overload
    def repeat_interleave(self, *, output_size: int | None = None) -> Tensor: ...
    @overload
    def repeat_interleave(
        self,
        repeats: Tensor,
        dim: int | None = None,
        *,
        output_size: int | None = None,
    ) -> Tensor: ...
    @overload
    def repeat_interleave(
        self,
        repeats: Tensor,
        *,
        axis: int | None,
        output_size: int | None = None,
    ) -> Tensor: ...
    @overload
    def reshape(self, shape: int | Sequence[int]) -> Tensor: ...
    @overload
    def reshape(self, *shape: int) -> Tensor: ...
    def reshape_as(self, other: Tensor) -> Tensor: ...
    @overload
    def roll(
        self,
        shifts: int | Sequence[int],
        dims: int | Sequence[int] | None = None,
    ) -> Tensor: ...
    @overload
    def roll(self, shifts: int | Sequence[int], *, axis: int | Sequence[int] | None) -> Tensor: ...
    @overload
    def rot90(self, k: int = 1, dims: int | Sequence[int] = (0, 1)) -> Tensor: ...
    @overload
    def rot90(self, k: int = 1, *, axis: int | Sequence[int]) -> Tensor: ...
    def round(self, *, decimals: int = 0) -> Tensor: ...
    def round_(self, *, decimals: int = 0) -> Tensor: ...
    def rsqrt(self) -> Tensor: ...
    def rsqrt_(self) -> Tensor: ...
    @overload
    def scatter(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    @overload
    def scatter(self, *, axis: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    @overload
    def scatter_(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    @overload
    def scatter_(self, *, axis: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    @overload
    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor: ...
    @overload
    def scatter_add(self, *, axis: int, index: Tensor, src: Tensor) -> Tensor: ...
    @overload
    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor: ...
    @overload
    def scatter_add_(self, *, axis: int, index: Tensor, src: Tensor) -> Tensor: ...
    @overload
    def scatter_reduce(
        self,
        dim: int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce(
        self,
        *,
        axis: int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce_(
        self,
        dim: int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def scatter_reduce_(
        self,
        *,
        axis: int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        include_self: bool = True,
    ) -> Tensor: ...
    @overload
    def select(self, dim: int, index: int) -> Tensor: ...
    @overload
    def select(self, *, axis: int, index: int) -> Tensor: ...
    @overload
    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor: ...
    @overload
    def select_scatter(self, src: Tensor, *, axis: int, index: int) -> Tensor: ...
    def sgn(self) -> Tensor: ...
    def sgn_(self) -> Tensor: ...
    def sigmoid(self) -> Tensor: ...
    def sigmoid_(self) -> Tensor: ...
    def sign(self) -> Tensor: ...
    def sign_(self) -> Tensor: ...
    def signbit(self) -> Tensor: ...
    def sin(self) -> Tensor: ...
    def sin_(self) -> Tensor: ...
    def sinc(self) -> Tensor: ...
    def sinc_(self) -> Tensor: ...
    def sinh(self) -> Tensor: ...
    def sinh_(self) -> Tensor: ...
    @overload
    def slice_scatter(
        self,
        src: Tensor,
        dim: int = 0,
        start: int | None = None,
        end: int | None = None,
        step: int = 1,
    ) -> Tensor: ...
    @overload
    def slice_scatter(
        self,
        src: Tensor,
        *,
        axis: int,
        start: int | None = None,
        end: int | None = None,
        step: int = 1,
    ) -> Tensor: ...
    def slogdet(self) -> _SignLogabsdet: ...
    @overload
    def softmax(self, dim: int | None = None, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def softmax(self, *, axis: int | None, dtype: _dtype | None = None) -> Tensor: ...
    @overload
    def sort(
        self,
        dim: int = -1,
        descending: bool = False,
        *,
        stable: bool | None = None,
    ) -> _Sorted: ...
    @overload
    def sort(
        self,
        *,
        axis: int,
        descending: bool = False,
        stable: bool | None = None,
    ) -> _Sorted: ...
    @overload
    def split(self, split_size_or_sections: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def split(self, split_size_or_sections: int, *, axis: int) -> tuple[Tensor, ...]: ...
    @overload
    def split(
        self,
        split_size_or_sections: int | Sequence[int],
        dim: int = 0,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def split(
        self,
        split_size_or_sections: int | Sequence[int],
        *,
        axis: int,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def split_with_sizes(
        self,
        split_sizes: int | Sequence[int],
        dim: int = 0,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def split_with_sizes(
        self,
        split_sizes: int | Sequence[int],
        *,
        axis: int,
    ) -> tuple[Tensor, ...]: ...
    def sqrt(self) -> Tensor: ...
    def sqrt_(self) -> Tensor: ...
    def square(self) -> Tensor: ...
    def square_(self) -> Tensor: ...
    @overload
    def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def squeeze(self, *dim: int) -> Tensor: ...
    @overload
    def squeeze(self, *, axis: int | Sequence[int] | None) -> Tensor: ...
    @overload
    def squeeze_(self, dim: int | Sequence[int] | None = None) -> Tensor: ...
    @overload
    def squeeze_(self, *dim: int) -> Tensor: ...
    @overload
    def squeeze_(self, *, axis: int | Sequence[int] | None) -> Tensor: ...
    @overload
    def std(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def std(
        self,
        *,
        axis: int | Sequence[int] | None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def std(
        self,
        *,
        axis: int | Sequence[int] | None,
        unbiased: bool = True,
        keepdims: bool,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def std(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        *,
        keepdims: bool,
        correction: float | None = None,
    ) -> Tensor: ...
    def sub(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def sub_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def subtract(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def subtract_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    @overload
    def sum(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def sum(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def sum(
        self,
        *,
        axis: int | Sequence[int] | None,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def sum(
        self,
        dim: int | Sequence[int] | None = None,
        *,
        keepdims: bool,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def sum_to_size(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def sum_to_size(self, *size: int) -> Tensor: ...
    def svd(self, some: bool = True, compute_uv: bool = True) -> _USV: ...
    def swapaxes(self, dim0: int, dim1: int) -> Tensor: ...
    def swapaxes_(self, dim0: int, dim1: int) -> Tensor: ...
    def swapdims(self, dim0: int, dim1: int) -> Tensor: ...
    def swapdims_(self, dim0: int, dim1: int) -> Tensor: ...
    def t(self) -> Tensor: ...
    def t_(self) -> Tensor: ...
    def take(self, index: Tensor) -> Tensor: ...
    @overload
    def take_along_dim(self, indices: Tensor, dim: int | None = None) -> Tensor: ...
    @overload
    def take_along_dim(self, indices: Tensor, *, axis: int | None) -> Tensor: ...
    def tan(self) -> Tensor: ...
    def tan_(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    def tanh_(self) -> Tensor: ...
    @overload
    def tensor_split(self, indices_or_sections: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(self, indices_or_sections: int, *, axis: int) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(
        self,
        indices_or_sections: int | Sequence[int],
        dim: int = 0,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(
        self,
        indices_or_sections: int | Sequence[int],
        *,
        axis: int,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(self, indices_or_sections: Tensor, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def tensor_split(self, indices_or_sections: Tensor, *, axis: int) -> tuple[Tensor, ...]: ...
    @overload
    def tile(self, dims: int | Sequence[int]) -> Tensor: ...
    @overload
    def tile(self, *dims: int) -> Tensor: ...
    @overload
    def tile(self, *, axis: int | Sequence[int]) -> Tensor: ...
    def to(
        self,
        device: _device | str | int | None = None,
        dtype: _dtype | None = None,
        copy: bool = False,
    ) -> Tensor: ...
    @overload
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> _Sorted: ...
    @overload
    def topk(self, k: int, *, axis: int, largest: bool = True, sorted: bool = True) -> _Sorted: ...
    def trace(self) -> Tensor: ...
    def transpose(self, dim0: int, dim1: int) -> Tensor: ...
    def transpose_(self, dim0: int, dim1: int) -> Tensor: ...
    def triangular_solve(
        self,
        A: Tensor,
        upper: bool = True,
        transpose: bool = False,
        unitriangular: bool = False,
    ) -> _SolutionClonedCoefficient: ...
    def tril(self, diagonal: int = 0) -> Tensor: ...
    def tril_(self, diagonal: int = 0) -> Tensor: ...
    def triu(self, diagonal: int = 0) -> Tensor: ...
    def triu_(self, diagonal: int = 0) -> Tensor: ...
    def true_divide(self, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor: ...
    def true_divide_(
        self,
        other: Tensor | float,
        *,
        rounding_mode: str | None = None,
    ) -> Tensor: ...
    def trunc(self) -> Tensor: ...
    def trunc_(self) -> Tensor: ...
    def type_as(self, other: Tensor) -> Tensor: ...
    @overload
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def unbind(self, *, axis: int) -> tuple[Tensor, ...]: ...
    @overload
    def unflatten(self, dim: int, sizes: int | Sequence[int]) -> Tensor: ...
    @overload
    def unflatten(self, *, axis: int, sizes: int | Sequence[int]) -> Tensor: ...
    def unfold(self, dimension: int, size: int, step: int) -> Tensor: ...
    def uniform_(
        self,
        a: float = 0,
        b: float = 1,
        *,
        generator: Generator | None = None,
    ) -> Tensor: ...
    @overload
    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any: ...
    @overload
    def unique(
        self,
        sorted: bool = True,
        return_inverse: bool = False,
        return_counts: bool = False,
        *,
        axis: int | None,
    ) -> Any: ...
    @overload
    def unique_consecutive(
        self,
        return_inverse: bool = False,
        return_counts: bool = False,
        dim: int | None = None,
    ) -> Any: ...
    @overload
    def unique_consecutive(
        self,
        return_inverse: bool = False,
        return_counts: bool = False,
        *,
        axis: int | None,
    ) -> Any: ...
    @overload
    def unsafe_chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def unsafe_chunk(self, chunks: int, *, axis: int) -> tuple[Tensor, ...]: ...
    @overload
    def unsqueeze(self, dim: int) -> Tensor: ...
    @overload
    def unsqueeze(self, *, axis: int) -> Tensor: ...
    @overload
    def unsqueeze_(self, dim: int) -> Tensor: ...
    @overload
    def unsqueeze_(self, *, axis: int) -> Tensor: ...
    @overload
    def var(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def var(
        self,
        *,
        axis: int | Sequence[int] | None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def var(
        self,
        *,
        axis: int | Sequence[int] | None,
        unbiased: bool = True,
        keepdims: bool,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def var(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        *,
        keepdims: bool,
        correction: float | None = None,
    ) -> Tensor: ...
    def vdot(self, other: Tensor) -> Tensor: ...
    @overload
    def view(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def view(self, *size: int) -> Tensor: ...
    @overload
    def view(self, size: _dtype) -> Tensor: ...
    def view_as(self, other: Tensor) -> Tensor: ...
    @overload
    def vsplit(self, indices_or_sections: int) -> tuple[Tensor, ...]: ...
    @overload
    def vsplit(self, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]: ...
    @overload
    def vsplit(self, *indices_or_sections: int) -> tuple[Tensor, ...]: ...
    def xlog1py(self, other: Tensor | float) -> Tensor: ...
    def xlogy(self, other: Tensor | float) -> Tensor: ...
    def xlogy_(self, other: Tensor | float) -> Tensor: ...
    def zero_(self) -> Tensor: ...
