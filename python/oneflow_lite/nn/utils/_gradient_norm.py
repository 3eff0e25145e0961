# SPDX-License-Identifier: Apache-2.0
"""The joint norm of gradients, which may lie on several placements, and scaling to a bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from oneflow_lite._math import norm
from oneflow_lite._numbers import as_number
from oneflow_lite._oneflow_lite import _C, Tensor, float32, float64, placement
from oneflow_lite.optim._gradients import gradient_of
from oneflow_lite.sbp import broadcast


def gradients_of(name: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """The gradients that there are; TypeError, by the name of the call, for what is no tensor."""
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in given:
        if not isinstance(p, Tensor):
            raise TypeError(f"{name}(): a parameter must be a Tensor, not {type(p).__name__}")
    return [grad for p in given if (grad := gradient_of(p)) is not None]


def _placement_of(t: Tensor) -> Any:
    return t.placement if t.is_global else None


def alike(grads: list[Tensor]) -> list[list[Tensor]]:
    """By device, dtype and placement: what one op takes."""
    kinds: dict[Any, list[Tensor]] = defaultdict(list)
    for grad in grads:
        kinds[grad.device, grad.dtype, _placement_of(grad)].append(grad.detach())
    return list(kinds.values())


def _brought(numbers: list[Tensor], to: Tensor) -> list[Tensor]:
    """The numbers on the device of ``to``; global ones on all ranks that have one of them."""
    places = {p for n in numbers if (p := _placement_of(n)) is not None}
    if len(places) < 2:
        return [n.to(to.device) for n in numbers]
    ranks = sorted({int(r) for p in places for r in np.ravel(p.ranks)})
    everywhere = placement(to.device.type, ranks)
    return [n.to_global(everywhere, broadcast) if n.is_global else n for n in numbers]


def _beside(number: Tensor, t: Tensor) -> Tensor:
    """A number as an op on ``t`` takes it."""
    place = _placement_of(t)
    if place is None or place == _placement_of(number):
        return number.to(t.device)
    return number.to_global(place, [broadcast] * len(place.shape))


def _number(call: str, name: str, value: Any) -> float:
    number = as_number(f"{call}()", name, value)
    if number != number:
        raise ValueError(f"{call}(): {name} is NaN")
    return number


def order_of(norm_type: Any) -> float:
    """The p of a p-norm."""
    return _number("clip_grad_norm_", "norm_type", norm_type)


def bound_of(call: str, name: str, value: Any) -> Any:
    """What no gradient may exceed; of tensors nothing is checked, which would wait for them."""
    if isinstance(value, Tensor):
        return value
    number = _number(call, name, value)
    if number < 0:  # the gradients would change their signs
        raise ValueError(f"{call}(): {name} is {number}, but it must not be negative")
    return number


def norm_of(grads: list[Tensor], norm_type: float) -> Tensor:
    """The norm of the norms of some gradients, at least one."""
    if norm_type > 0:
        norms = _brought([_C.multi_norm(some, norm_type) for some in alike(grads)], grads[0])
        return norm(norms[0] if len(norms) == 1 else _C.cat(norms), norm_type)
    each = _brought([norm(grad, norm_type) for grad in grads], grads[0])
    return norm(_C.stack(each), norm_type)


def check_finite(total: Tensor, norm_type: float) -> None:
    """RuntimeError where a norm is no finite number; waits for the device."""
    if not total.isfinite():
        raise RuntimeError(f"clip_grad_norm_(): The total norm of order {norm_type} for gradients "
                           f"is {total.item()}, so they cannot be clipped")  # fmt: skip


def keep_below(grads: list[Tensor], total: Tensor, max_norm: Any) -> None:
    """Scales gradients of a total norm by the factor that brings it to ``max_norm`` at most."""
    factor = _C.clamp(max_norm / (total + 1e-6), None, 1.0)
    for some in alike(grads):
        by = _beside(factor, some[0])
        if some[0].dtype is not float64:
            _C.multi_scale_(some, 1.0, by.to(None, float32))
            continue
        for grad in some:  # the op's factor has float32's digits
            grad.mul_(by)
