# SPDX-License-Identifier: Apache-2.0
"""Layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.nn import init
from oneflow_lite.nn._checked import check_sizes
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter

if TYPE_CHECKING:
    import oneflow_lite as flow


class Identity(Module):
    """Gives its input back; takes and ignores any arguments when made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Module):
    """Joins the dims ``start_dim`` to ``end_dim`` into one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return _C.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dim as several: the opposite of :class:`Flatten`."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return _C.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int
        Size of the last dim of the input and of the output.
    bias : bool
        Whether a bias is added and learned.
    device, dtype : optional
        Where and as what the parameters are made.

    Attributes
    ----------
    weight : Parameter
        Of shape ``[out_features, in_features]``, at first uniform within
        ``1 / sqrt(in_features)`` of 0.
    bias : Parameter or None
        Of shape ``[out_features]``, likewise.

    Notes
    -----
    ``forward`` takes ``[..., in_features]`` and gives ``[..., out_features]``; ShapeError for
    another last dim.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.empty([out_features, in_features], dtype=dtype, device=device))
        added = _C.empty([out_features], dtype=dtype, device=device) if bias else None
        self.register_parameter("bias", None if added is None else Parameter(added))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # a bound of 1 / sqrt(in_features)
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        parameters = self._parameters
        try:  # by name, since an attribute takes longer than a small product
            weight, bias = parameters["weight"], parameters["bias"]
        except KeyError:  # no parameters any more: a program computes them
            weight, bias = self.weight, self.bias
        return _C.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")  # fmt: skip


class Softmax(Module):
    """Softmax over one dim.

    Parameters
    ----------
    dim : int, optional
        By default 0 for tensors of 0, 1 or 3 dims, else 1.
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return _C.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Softmax):
    """Softmax of ``-x``: the smaller an element, the larger its share."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.softmax(-input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of ``[N, C, H, W]`` or ``[C, H, W]``."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: the input has shape {list(input.shape)}, but it must "
                             "have 3 or 4 dims")  # fmt: skip
        return _C.softmax(input, -3)


class LogSoftmax(Softmax):
    """The logarithm of :class:`Softmax`, exact where the softmax is tiny."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.log_softmax(input, self.dim)
