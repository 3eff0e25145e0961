# SPDX-License-Identifier: Apache-2.0
"""Normalisation layers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite._warnings import warn
from oneflow_lite.cuda import current_stream
from oneflow_lite.nn import functional, init
from oneflow_lite.nn._checked import check_sizes
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter

if TYPE_CHECKING:
    import oneflow_lite as flow

_warned = False


def _warn_of_zero_weights(weight: Tensor) -> None:
    """Says once per process what a memory-efficient norm does to a weight of 0."""
    global _warned
    if _warned or weight.is_meta or not _ext._takes_part(weight):
        return
    if not _C.eq(weight.detach(), 0).sum().item():
        return
    _warned = True
    warn(
        "a memory-efficient norm has weights of exactly 0: its backward divides the output by the "
        "weight, so their gradient is 0 and they stay 0; initialise them otherwise, or pass "
        "memory_efficient=False"
    )


class _Norm(Module):
    """What the norms over the last dims share: the shape, the weight, the ways of keeping."""

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None,
        elementwise_affine: bool,
        memory_efficient: bool,
        device: flow.device | str | None,
        dtype: flow.dtype | None,
    ) -> None:
        super().__init__()
        several = isinstance(normalized_shape, Sequence) and not isinstance(normalized_shape, str)
        try:
            dims = normalized_shape if several else [normalized_shape]
            self.normalized_shape = tuple(operator.index(n) for n in dims)
        except TypeError:
            raise TypeError(f"{type(self).__name__}: normalized_shape must be int or a tuple of "
                            f"ints, not {normalized_shape!r}") from None  # fmt: skip
        if any(n < 0 for n in self.normalized_shape):
            raise ShapeError(f"{type(self).__name__}: normalized_shape is "
                             f"{list(self.normalized_shape)}, but its sizes must be "
                             "non-negative")  # fmt: skip
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.memory_efficient = memory_efficient
        self._weights_seen = False
        self._add("weight", elementwise_affine, device, dtype)

    def _add(
        self,
        name: str,
        wanted: bool,
        device: flow.device | str | None,
        dtype: flow.dtype | None,
    ) -> None:
        made = _C.empty(self.normalized_shape, dtype=dtype, device=device) if wanted else None
        self.register_parameter(name, None if made is None else Parameter(made))

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                init.constant_(parameter, 1.0 if name == "weight" else 0.0)

    def _look_at_weights(self) -> None:
        # The first call only, since the look waits for the device; a capture must not wait.
        weight = self.weight
        if self._weights_seen or weight is None:
            return
        if weight.is_cuda and current_stream(weight.device).capturing:
            return
        self._weights_seen = True
        _warn_of_zero_weights(weight)

    def extra_repr(self) -> str:
        kept = ", memory_efficient=True" if self.memory_efficient else ""
        return (f"{self.normalized_shape}, eps={self.eps}, "
                f"elementwise_affine={self.elementwise_affine}{kept}")  # fmt: skip


class LayerNorm(_Norm):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the last dims.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the last dims, over which mean and variance (divided by the count) are taken.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there is a weight, and with ``bias`` a bias.
    bias : bool
        Whether a bias is added and learned.
    device, dtype : optional
        Where and as what the parameters are made. float32 parameters go with 16-bit inputs too.
    memory_efficient : bool
        Keep the result for backward instead of the input. A weight nearer to 0 than 1e-5 counts as
        1e-5 there; one that is exactly 0 gets the gradient 0 and stays 0, of which a warning tells
        once.

    Attributes
    ----------
    weight, bias : Parameter or None
        Of shape ``normalized_shape``, at first 1 and 0.

    Notes
    -----
    ``forward`` takes and gives ``[..., *normalized_shape]``; ShapeError for another shape,
    DTypeError for an input that is not floating.
    """

    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
        *,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, memory_efficient, device, dtype)
        self._add("bias", elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        if self.memory_efficient:
            self._look_at_weights()
        parameters = self._parameters
        try:
            weight, bias = parameters["weight"], parameters["bias"]
        except KeyError:  # no parameters any more: a program computes them
            weight, bias = self.weight, self.bias
        return _C.layer_norm(input, self.normalized_shape, weight, bias, self.eps,
                             self.memory_efficient)  # fmt: skip

    def extra_repr(self) -> str:
        missing = ", bias=False" if self.elementwise_affine and self.bias is None else ""
        return super().extra_repr() + missing


class RMSNorm(_Norm):
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dims.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The sizes of the last dims, over which the mean is taken.
    eps : float, optional
        Added to the mean of the squares; by default the epsilon of float32, for float64 inputs that
        of float64.
    elementwise_affine : bool
        Whether there is a weight.
    device, dtype, memory_efficient : optional
        As for :class:`LayerNorm`.

    Attributes
    ----------
    weight : Parameter or None
        Of shape ``normalized_shape``, at first 1.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
        *,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, memory_efficient, device, dtype)
        self.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        if self.memory_efficient:
            self._look_at_weights()
        try:
            weight = self._parameters["weight"]
        except KeyError:  # no parameter any more: a program computes it
            weight = self.weight
        return _C.rms_norm(x, self.normalized_shape, weight, self.eps, self.memory_efficient)


def add_and_norm(norm: Module, y: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    """``norm(residual + y)`` and the sum itself: of a norm over rows, which nobody watches by a
    hook, in one kernel, whose gradient is one too.
    """
    watched = norm._pre_hooks or norm._hooks or norm._backward_hooks or norm._backward_pre_hooks
    if (
        watched
        or not isinstance(norm, LayerNorm | RMSNorm)
        or type(norm).forward not in (LayerNorm.forward, RMSNorm.forward)
        or norm.memory_efficient
        or y.dtype is not residual.dtype
        or y.shape != residual.shape
    ):
        total = residual + y
        return norm(total), total
    if isinstance(norm, RMSNorm):
        normed, total = _C.add_rms_norm(y, residual, norm.normalized_shape, norm.weight, norm.eps)
    else:
        normed, total = _C.add_layer_norm(y, residual, norm.normalized_shape, norm.weight,
                                          norm.bias, norm.eps)  # fmt: skip
    return normed, total


class GroupNorm(Module):
    """:class:`LayerNorm` of each group of channels, with weight and bias per channel.

    Parameters
    ----------
    num_groups, num_channels : int
        Dim 1 has ``num_channels``, in groups of one size.
    eps : float
        Added to the variance.
    affine : bool
        Whether there are a weight and a bias, of shape ``[num_channels]``, at first 1 and 0.
    device, dtype : optional
        Where and as what they are made.
    bias : bool
        False: a weight alone.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not make {num_groups} groups")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        for name in ("weight", "bias"):
            wanted = affine and (bias or name == "weight")
            made = _C.empty([num_channels], dtype=dtype, device=device) if wanted else None
            self.register_parameter(name, None if made is None else Parameter(made))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        missing = ", bias=False" if self.affine and self.bias is None else ""
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
                f"affine={self.affine}{missing}")  # fmt: skip
