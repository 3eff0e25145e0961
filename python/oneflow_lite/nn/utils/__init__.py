# SPDX-License-Identifier: Apache-2.0
"""Gradients kept within bounds, and parameters as one vector."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.nn.utils import rnn
from oneflow_lite.nn.utils._gradient_norm import (
    alike,
    bound_of,
    check_finite,
    gradients_of,
    keep_below,
    norm_of,
    order_of,
)

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "rnn",
           "vector_to_parameters"]  # fmt: skip


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
    grads = gradients_of("clip_grad_norm_", parameters)
    norm_type, max_norm = order_of(norm_type), bound_of("clip_grad_norm_", "max_norm", max_norm)
    if not grads:
        return _C.zeros([])
    total = norm_of(grads, norm_type)
    if error_if_nonfinite:
        check_finite(total, norm_type)
    keep_below(grads, total, max_norm)
    return total


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Brings each element of the gradients into ``[-clip_value, clip_value]``.

    ``foreach`` is taken for PyTorch's sake; it changes nothing.
    """
    clip_value = bound_of("clip_grad_value_", "clip_value", clip_value)
    for some in alike(gradients_of("clip_grad_value_", parameters)):
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
