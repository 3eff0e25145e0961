# SPDX-License-Identifier: Apache-2.0
"""The functions that a fused expression may use, for tensors: the library's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor

_C = _ext._C


def where(condition: Any, input: Any, other: Any) -> Tensor:
    """As ``flow.where``; the condition may be a number, or of numbers: other than 0 is true.

    Raises
    ------
    TypeError
        None of the three is a tensor.
    """
    like = next((v for v in (condition, input, other) if isinstance(v, Tensor)), None)
    if like is None:
        raise TypeError("fuse.where(): one of condition, input and other must be a tensor")
    if not isinstance(condition, Tensor):
        condition = _C.full((), condition, device=like.device)
    return _C.where(condition != 0, input, other)


def _where(condition: Any, a: Any, b: Any) -> Tensor:
    """Of tensors of one dtype, which the result has, and numbers."""
    like = next(v for v in (a, b, condition) if isinstance(v, Tensor))
    if not isinstance(condition, Tensor):
        condition = _C.full((), condition, dtype=like.dtype, device=like.device)
    return _C.where(condition != 0, a, b).to(dtype=like.dtype)


def _comparison(name: str) -> Callable[[Any, Any], Tensor]:
    function = getattr(_C, name)

    def compare(a: Any, b: Any) -> Tensor:
        like = a if isinstance(a, Tensor) else b
        return function(a, b).to(dtype=like.dtype)

    return compare


_NAMES = ("add", "sub", "mul", "div", "neg", "exp", "log", "relu", "abs", "sqrt", "rsqrt", "tanh",
          "sigmoid", "maximum", "minimum")  # fmt: skip

# For compose.evaluate, by the names of expression.OPERATIONS; at least one argument is a tensor,
# others may be numbers.
FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(_C, name) for name in _NAMES},
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "where": _where,
}
