# SPDX-License-Identifier: Apache-2.0
# Written by `python -m oneflow_lite._stubs`; the signatures are in functional/*.cpp.
"""The registered functions, as C++ parses them."""

from collections.abc import Sequence
from typing import NamedTuple, overload

from oneflow_lite._oneflow_lite import Generator, Tensor
from oneflow_lite._oneflow_lite import device as _device
from oneflow_lite._oneflow_lite import dtype as _dtype

class _Sorted(NamedTuple):
    values: Tensor
    indices: Tensor

class _Extremes(NamedTuple):
    min: Tensor
    max: Tensor

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def absolute(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
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
def all(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def amax(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def amin(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Extremes: ...
def any(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
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
def argmax(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def argmin(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = True,
    out: Tensor | None = None,
) -> Tensor: ...
def as_strided(
    input: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def bitwise_and(
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
def bitwise_xor(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def chunk(
    input: Tensor,
    chunks: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def clamp(
    input: Tensor,
    min: float | None = None,
    max: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def clone(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def concat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def concatenate(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def count_nonzero(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
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
def cummax(input: Tensor, dim: int, *, out: Tensor | Sequence[Tensor] | None = None) -> _Sorted: ...
def cummin(input: Tensor, dim: int, *, out: Tensor | Sequence[Tensor] | None = None) -> _Sorted: ...
def cumprod(
    input: Tensor,
    dim: int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def cumsum(
    input: Tensor,
    dim: int,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def detach(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def div(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
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
def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def flatten(
    input: Tensor,
    start_dim: int = 0,
    end_dim: int = -1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
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
def fused_scale_mask_softmax(
    input: Tensor,
    mask: Tensor | None = None,
    scale: float = 1.0,
    masked_row: str = "nan",
    causal: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def gather(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def ge(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor: ...
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
def index_select(
    input: Tensor,
    dim: int,
    index: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
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
def le(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def less(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def less_equal(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def log(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor: ...
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def logsumexp(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def lt(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def masked_fill(
    input: Tensor,
    mask: Tensor,
    value: float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
@overload
def max(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Tensor: ...
@overload
def max(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def maximum(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@overload
def min(input: Tensor, *, out: Tensor | Sequence[Tensor] | None = None) -> Tensor: ...
@overload
def min(
    input: Tensor,
    dim: int,
    keepdim: bool = False,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def minimum(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def mul(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def multiply(
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def nansum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def narrow(
    input: Tensor,
    dim: int,
    start: int,
    length: int,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def ne(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor: ...
def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def negative(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def not_equal(
    input: Tensor | float,
    other: Tensor | float,
    *,
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
@overload
def permute(input: Tensor, dims: int | Sequence[int], *, out: Tensor | None = None) -> Tensor: ...
@overload
def permute(input: Tensor, *dims: int, out: Tensor | None = None) -> Tensor: ...
def pow(
    input: Tensor | float,
    exponent: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def prod(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: _dtype | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
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
def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
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
def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def scatter_add(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def select(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor: ...
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def silu(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def slice(
    input: Tensor,
    dim: int,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def sort(
    input: Tensor,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool = True,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def split(
    input: Tensor,
    split_size: int,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def split_with_sizes(
    input: Tensor,
    split_sizes: int | Sequence[int],
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def squeeze(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor: ...
def std(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def std_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
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
def sum(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def swapaxes(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
def swapdims(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
def t(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> _Sorted: ...
def transpose(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor: ...
def unbind(
    input: Tensor,
    dim: int = 0,
    *,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def unsqueeze(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor: ...
def var(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor: ...
def var_mean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]: ...
def vector_norm(
    input: Tensor,
    p: float = 2,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: _dtype | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def where(
    condition: Tensor,
    input: Tensor | float,
    other: Tensor | float,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
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
    def absolute(self) -> Tensor: ...
    def add(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def add_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def all(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    def amax(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    def amin(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> _Extremes: ...
    def any(self, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor: ...
    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor: ...
    def argsort(
        self,
        dim: int = -1,
        descending: bool = False,
        *,
        stable: bool = True,
    ) -> Tensor: ...
    def as_strided(
        self,
        size: int | Sequence[int],
        stride: int | Sequence[int],
        storage_offset: int | None = None,
    ) -> Tensor: ...
    def bitwise_and(self, other: Tensor | float) -> Tensor: ...
    def bitwise_not(self) -> Tensor: ...
    def bitwise_or(self, other: Tensor | float) -> Tensor: ...
    def bitwise_xor(self, other: Tensor | float) -> Tensor: ...
    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    def clamp(self, min: float | None = None, max: float | None = None) -> Tensor: ...
    def clone(self) -> Tensor: ...
    def contiguous(self) -> Tensor: ...
    def copy_(self, src: Tensor) -> Tensor: ...
    def cos(self) -> Tensor: ...
    def count_nonzero(self, dim: int | Sequence[int] | None = None) -> Tensor: ...
    def cummax(self, dim: int) -> _Sorted: ...
    def cummin(self, dim: int) -> _Sorted: ...
    def cumprod(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    def cumsum(self, dim: int, *, dtype: _dtype | None = None) -> Tensor: ...
    def detach(self) -> Tensor: ...
    def div(self, other: Tensor | float) -> Tensor: ...
    def div_(self, other: Tensor | float) -> Tensor: ...
    def eq(self, other: Tensor | float) -> Tensor: ...
    def erf(self) -> Tensor: ...
    def exp(self) -> Tensor: ...
    @overload
    def expand(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def expand(self, *size: int) -> Tensor: ...
    def fill_(self, value: Tensor | float) -> Tensor: ...
    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
    def floor(self) -> Tensor: ...
    def gather(self, dim: int, index: Tensor) -> Tensor: ...
    def ge(self, other: Tensor | float) -> Tensor: ...
    def greater(self, other: Tensor | float) -> Tensor: ...
    def greater_equal(self, other: Tensor | float) -> Tensor: ...
    def gt(self, other: Tensor | float) -> Tensor: ...
    def index_select(self, dim: int, index: Tensor) -> Tensor: ...
    def isfinite(self) -> Tensor: ...
    def isinf(self) -> Tensor: ...
    def isnan(self) -> Tensor: ...
    def le(self, other: Tensor | float) -> Tensor: ...
    def less(self, other: Tensor | float) -> Tensor: ...
    def less_equal(self, other: Tensor | float) -> Tensor: ...
    def log(self) -> Tensor: ...
    def log_softmax(self, dim: int | None = None, dtype: _dtype | None = None) -> Tensor: ...
    def logcumsumexp(self, dim: int) -> Tensor: ...
    def logical_not(self) -> Tensor: ...
    def logsumexp(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
    ) -> Tensor: ...
    def lt(self, other: Tensor | float) -> Tensor: ...
    def masked_fill(self, mask: Tensor, value: float) -> Tensor: ...
    def matmul(self, other: Tensor) -> Tensor: ...
    @overload
    def max(self) -> Tensor: ...
    @overload
    def max(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    def maximum(self, other: Tensor | float) -> Tensor: ...
    def mean(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    @overload
    def min(self) -> Tensor: ...
    @overload
    def min(self, dim: int, keepdim: bool = False) -> _Sorted: ...
    def minimum(self, other: Tensor | float) -> Tensor: ...
    def mul(self, other: Tensor | float) -> Tensor: ...
    def mul_(self, other: Tensor | float) -> Tensor: ...
    def multiply(self, other: Tensor | float) -> Tensor: ...
    def multiply_(self, other: Tensor | float) -> Tensor: ...
    def nanmean(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def nansum(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def narrow(self, dim: int, start: int, length: int) -> Tensor: ...
    def ne(self, other: Tensor | float) -> Tensor: ...
    def neg(self) -> Tensor: ...
    def negative(self) -> Tensor: ...
    def not_equal(self, other: Tensor | float) -> Tensor: ...
    @overload
    def permute(self, dims: int | Sequence[int]) -> Tensor: ...
    @overload
    def permute(self, *dims: int) -> Tensor: ...
    def pow(self, exponent: Tensor | float) -> Tensor: ...
    def prod(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def relu(self) -> Tensor: ...
    @overload
    def reshape(self, shape: int | Sequence[int]) -> Tensor: ...
    @overload
    def reshape(self, *shape: int) -> Tensor: ...
    def rsqrt(self) -> Tensor: ...
    def scatter(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    def scatter_(self, dim: int, index: Tensor, src: Tensor | float) -> Tensor: ...
    def scatter_add(self, dim: int, index: Tensor, src: Tensor) -> Tensor: ...
    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor: ...
    def select(self, dim: int, index: int) -> Tensor: ...
    def sigmoid(self) -> Tensor: ...
    def sin(self) -> Tensor: ...
    def softmax(self, dim: int | None = None, dtype: _dtype | None = None) -> Tensor: ...
    def sort(self, dim: int = -1, descending: bool = False, *, stable: bool = True) -> _Sorted: ...
    def split(self, split_size: int, dim: int = 0) -> tuple[Tensor, ...]: ...
    def split_with_sizes(
        self,
        split_sizes: int | Sequence[int],
        dim: int = 0,
    ) -> tuple[Tensor, ...]: ...
    def sqrt(self) -> Tensor: ...
    def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor: ...
    def std(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor: ...
    def sub(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def sub_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def subtract(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def subtract_(self, other: Tensor | float, *, alpha: float = 1) -> Tensor: ...
    def sum(
        self,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def swapaxes(self, dim0: int, dim1: int) -> Tensor: ...
    def swapdims(self, dim0: int, dim1: int) -> Tensor: ...
    def t(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    def to(
        self,
        device: _device | str | int | None = None,
        dtype: _dtype | None = None,
        copy: bool = False,
    ) -> Tensor: ...
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> _Sorted: ...
    def transpose(self, dim0: int, dim1: int) -> Tensor: ...
    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]: ...
    def unsqueeze(self, dim: int) -> Tensor: ...
    def var(
        self,
        dim: int | Sequence[int] | None = None,
        unbiased: bool = True,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor: ...
    @overload
    def view(self, size: int | Sequence[int]) -> Tensor: ...
    @overload
    def view(self, *size: int) -> Tensor: ...
    def zero_(self) -> Tensor: ...
