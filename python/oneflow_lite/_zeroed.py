# SPDX-License-Identifier: Apache-2.0
"""What ``zero_grad`` of modules and of optimizers do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor


def zero_gradients(parameters: Iterable[Tensor], set_to_none: bool) -> None:
    """Drops all gradients, or fills them with zeros, on a GPU by one op of all alike."""
    alike: dict[Any, list[Tensor]] = defaultdict(list)
    for p in parameters:
        if set_to_none:
            p.grad = None
        elif (grad := p.grad) is not None:
            p.grad = grad = grad.detach()
            if grad.is_cpu:  # where an op takes less time than to find its like
                grad.zero_()
                continue
            alike[grad.device, grad.dtype, _ext._placement_of(grad)].append(grad)
    for grads in alike.values():
        _C.multi_fill_(grads, 0.0)
