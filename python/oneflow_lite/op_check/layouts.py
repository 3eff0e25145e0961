# SPDX-License-Identifier: Apache-2.0
"""The same values in other places of memory: what a view of a larger tensor looks like."""

from __future__ import annotations

from collections.abc import Callable

from oneflow_lite._oneflow_lite import _C, Tensor


def _zeros(shape: list[int], like: Tensor) -> Tensor:
    return _C.zeros(shape, dtype=like.dtype, device=like.device)


def _transposed(x: Tensor) -> Tensor:
    order = list(range(x.ndim))[::-1]
    return x.permute(order).contiguous().permute(order)


def _odd_offset(x: Tensor) -> Tensor:
    base = _zeros([x.numel() + 1], x)
    base[1:].copy_(x.reshape(-1))
    return base[1:].view(x.shape)


def _padded(x: Tensor) -> Tensor:
    if x.ndim == 0:
        return _odd_offset(x)
    base = _zeros([*x.shape[:-1], x.shape[-1] + 3], x)
    view = base[..., 1 : 1 + x.shape[-1]]
    view.copy_(x)
    return view


def _every_other(x: Tensor) -> Tensor:
    if x.ndim == 0:
        return _odd_offset(x)
    base = _zeros([2 * x.shape[0], *x.shape[1:]], x)
    view = base[1::2]
    view.copy_(x)
    return view


def _expanded(x: Tensor) -> Tensor:
    if x.ndim == 0 or x.numel() == 0:
        return x
    return x.narrow(0, 0, 1).expand(x.shape)


# Each gives a tensor of the same shape and, but for "expanded", the same values.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": _transposed,
    "odd offset": _odd_offset,
    "padded rows": _padded,
    "every other": _every_other,
    "expanded": _expanded,
}
