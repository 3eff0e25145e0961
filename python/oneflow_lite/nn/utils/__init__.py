# SPDX-License-Identifier: Apache-2.0
"""Gradients kept within bounds, and parameters as one vector."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite._absent import public_face
from oneflow_lite._math import norm
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite._oneflow_lite import _C, Tensor, float32, float64, placement
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.nn.utils import rnn
from oneflow_lite.optim._gradients import gradient_of
from oneflow_lite.sbp import broadcast

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "rnn",
           "vector_to_parameters"]  # fmt: skip


def _gradients(name: str, parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in given:
        if not isinstance(p, Tensor):
            raise TypeError(f"{name}(): a parameter must be a Tensor, not {type(p).__name__}")
    return [grad for p in given if (grad := gradient_of(p)) is not None]


def _placement(t: Tensor) -> Any:
    return t.placement if t.is_global else None


def _alike(grads: list[Tensor]) -> list[list[Tensor]]:
    """By device, dtype and placement: what one op takes."""
    kinds: dict[Any, list[Tensor]] = defaultdict(list)
    for grad in grads:
        kinds[grad.device, grad.dtype, _placement(grad)].append(grad.detach())
    return list(kinds.values())


def _brought(numbers: list[Tensor], to: Tensor) -> list[Tensor]:
    """The numbers on the device of ``to``; global ones on all ranks that have one of them."""
    places = {p for n in numbers if (p := _placement(n)) is not None}
    if len(places) < 2:
        return [n.to(to.device) for n in numbers]
    ranks = sorted({int(r) for p in places for r in np.ravel(p.ranks)})
    everywhere = placement(to.device.type, ranks)
    return [n.to_global(everywhere, broadcast) if n.is_global else n for n in numbers]


def _beside(number: Tensor, t: Tensor) -> Tensor:
    """A number as an op on ``t`` takes it."""
    place = _placement(t)
    if place is None or place == _placement(number):
        return number.to(t.device)
    return number.to_global(place, [broadcast] * len(place.shape))


def _number(call: str, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{call}(): {name} must be a number, not {value!r}") from None
    if number != number:
        raise ValueError(f"{call}(): {name} is NaN")
    return number


def _bound(call: str, name: str, value: Any) -> float:
    number = _number(call, name, value)
    if number < 0:  # the gradients would change their signs
        raise ValueError(f"{call}(): {name} is {number}, but it must not be negative")
    return number


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients by one factor so that their joint norm is ``max_norm`` at most.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those without a gradient are passed over.
    max_norm : float
        The bound.
    norm_type : float
        p of the p-norm; may be infinite.
    error_if_nonfinite : bool
        RuntimeError where the norm is NaN or infinite, before anything is changed; this waits for
        the device.
    foreach : bool, optional
        Taken for PyTorch's sake; it changes nothing.

    Returns
    -------
    Tensor
        The norm that the gradients had.

    Raises
    ------
    ValueError
        ``max_norm`` is negative or NaN, ``norm_type`` NaN: nothing is changed.
    """
    grads = _gradients("clip_grad_norm_", parameters)
    norm_type = _number("clip_grad_norm_", "norm_type", norm_type)
    if not isinstance(max_norm, Tensor):
        max_norm = _bound("clip_grad_norm_", "max_norm", max_norm)
    if not grads:
        return _C.zeros([])
    alike = _alike(grads)
    if norm_type > 0:
        norms = _brought([_C.multi_norm(some, norm_type) for some in alike], grads[0])
        total = norm(norms[0] if len(norms) == 1 else _C.cat(norms), norm_type)
    else:
        each = _brought([norm(grad, norm_type) for grad in grads], grads[0])
        total = norm(_C.stack(each), norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(f"clip_grad_norm_(): The total norm of order {norm_type} for gradients "
                           f"is {total.item()}, so they cannot be clipped")  # fmt: skip
    factor = _C.clamp(max_norm / (total + 1e-6), None, 1.0)
    for some in alike:
        by = _beside(factor, some[0])
        if some[0].dtype is not float64:
            _C.multi_scale_(some, 1.0, by.to(None, float32))
            continue
        for grad in some:  # the op's factor has float32's digits
            grad.mul_(by)
    return total


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Brings each element of the gradients into ``[-clip_value, clip_value]``.

    ``foreach`` is taken for PyTorch's sake; it changes nothing.
    """
    clip_value = _bound("clip_grad_value_", "clip_value", clip_value)
    for some in _alike(_gradients("clip_grad_value_", parameters)):
        _C.multi_clamp_(some, -clip_value, clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flat, one after the other."""
    return _C.cat([p.reshape(-1) for p in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes what :func:`parameters_to_vector` gave back into the parameters."""
    start = 0
    for p in parameters:
        p.copy_(vec[start : start + math.prod(p.shape)].view(p.shape))
        start += math.prod(p.shape)


speak_for_themselves(globals(), __all__)
if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
