# SPDX-License-Identifier: Apache-2.0
"""The functions that a fused expression may use, for tensors: composed of functors.

Those that there is no functor for are ops registered here, with a forward composed of functors that
is exact to a rounding and a gradient that can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, float64, int64
from oneflow_lite.custom_op import register_op

_C = _ext._C


@register_op("fuse::sqrt")
class _Sqrt:
    """The square root: exp(log(x) / 2) in float64."""

    save = ("out",)

    def infer(x):
        return x.shape, x.dtype

    def forward(x):
        return _C.exp(0.5 * _C.log(x.to(dtype=float64))).to(dtype=x.dtype)

    def backward(ctx, dy):
        return 0.5 * dy / ctx.out


@register_op("fuse::sigmoid")
class _Sigmoid:
    """1 / (1 + exp(-x))."""

    save = ("out",)

    def infer(x):
        return x.shape, x.dtype

    def forward(x):
        return 1 / (1 + _C.exp(-x))

    def backward(ctx, dy):
        return dy * ctx.out * (1 - ctx.out)


@register_op("fuse::tanh")
class _Tanh:
    """The hyperbolic tangent: 2 / (1 + exp(-2 x)) - 1 in float64."""

    save = ("out",)

    def infer(x):
        return x.shape, x.dtype

    def forward(x):
        return (2 / (1 + _C.exp(-2 * x.to(dtype=float64))) - 1).to(dtype=x.dtype)

    def backward(ctx, dy):
        return dy * (1 - ctx.out * ctx.out)


@register_op("fuse::where")
class _Where:
    """A where condition is not 0, else b: three tensors of one shape.

    The gather of nll_loss among two classes: arithmetic would let an infinity or a NaN of the side
    that is not chosen through.
    """

    save = ("condition",)

    def infer(condition, a, b):
        return a.shape, a.dtype

    def forward(condition, a, b):
        sides = _C.empty((a.numel(), 2), dtype=a.dtype, device=a.device)
        sides[:, 0].copy_(b.reshape(-1))
        sides[:, 1].copy_(a.reshape(-1))
        chosen = (condition != 0).to(dtype=int64).reshape(-1)
        return (-_C.nll_loss(sides, chosen, reduction="none")).reshape(a.shape)

    def backward(ctx, dy):
        zeros = _C.zeros_like(dy)
        function = _ext.op_function("fuse::where")
        return None, function(ctx.condition, dy, zeros), function(ctx.condition, zeros, dy)


_sqrt, _sigmoid, _tanh, _select = (
    _ext.op_function(f"fuse::{name}") for name in ("sqrt", "sigmoid", "tanh", "where")
)


def _abs(x: Tensor) -> Tensor:
    return _C.relu(x) + _C.relu(-x)


def _where(condition: Any, a: Any, b: Any) -> Tensor:
    given = [v for v in (a, b, condition) if isinstance(v, Tensor)]
    shape = np.broadcast_shapes(*(v.shape for v in given))
    like = {"dtype": given[0].dtype, "device": given[0].device}
    return _select(
        *(
            v.expand(shape) if isinstance(v, Tensor) else _C.full(shape, v, **like)
            for v in (condition, a, b)
        )
    )


def _maximum(a: Any, b: Any) -> Tensor:
    return _where((a > b) + (a != a), a, b)


def _minimum(a: Any, b: Any) -> Tensor:
    return _where((a < b) + (a != a), a, b)


def _comparison(name: str) -> Callable[[Any, Any], Tensor]:
    function = getattr(_C, name)

    def compare(a: Any, b: Any) -> Tensor:
        like = a if isinstance(a, Tensor) else b
        return function(a, b).to(dtype=like.dtype)

    return compare


# By the names of expression.OPERATIONS; at least one argument is a tensor, others may be numbers.
# Where two of maximum and minimum are equal, the gradient goes to the second; abs has 0 at 0.
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(_C, name) for name in ("add", "sub", "mul", "div", "neg", "exp", "log")},
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "relu": _C.relu,
    "abs": _abs,
    "sqrt": _sqrt,
    "rsqrt": lambda x: 1 / _sqrt(x),
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "maximum": _maximum,
    "minimum": _minimum,
    "where": _where,
}
