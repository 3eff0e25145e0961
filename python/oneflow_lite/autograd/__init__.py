# SPDX-License-Identifier: Apache-2.0
"""Gradients: running backward, switching recording, checking gradients against differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import _C, Tensor, is_grad_enabled
from oneflow_lite.autograd import functional, graph
from oneflow_lite.autograd._grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from oneflow_lite.autograd.function import Function
from oneflow_lite.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function", "GradcheckError", "Variable", "backward", "enable_grad", "functional", "grad",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled", "no_grad",
    "set_grad_enabled",
]  # fmt: skip

TensorOrTensors = Tensor | Sequence[Tensor]


def _as_list(tensors: Any) -> Any:
    if tensors is None:
        return None
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A leaf over the memory of a tensor, by the name that older programs make it with."""
    return data.detach().requires_grad_(requires_grad)


def backward(
    tensors: TensorOrTensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: TensorOrTensors | None = None,
) -> None:
    """Adds the gradients of ``tensors`` into the ``.grad`` of the leaves they depend on.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What is differentiated.
    grad_tensors : Tensor or sequence of Tensor, optional
        The gradient of each of ``tensors``, of its shape; may be left out for scalars.
    retain_graph : bool, optional
        Keep what was saved, so that backward can run again; by default as ``create_graph``.
    create_graph : bool
        Record backward itself, for gradients of gradients.
    inputs : Tensor or sequence of Tensor, optional
        Only these leaves get gradients; by default all.

    Raises
    ------
    RuntimeError
        Where nothing requires a gradient, the graph was freed, a saved tensor was changed in place,
        or a gradient is left out for a tensor that is no scalar.
    """
    retain = create_graph if retain_graph is None else retain_graph
    wanted = None if inputs is None else _as_list(inputs)
    _ext.backward(_as_list(tensors), _as_list(grad_tensors), retain, create_graph, wanted)


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    *,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``; every ``.grad`` is left alone.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        What is differentiated, and with respect to what.
    grad_outputs : Tensor or sequence of Tensor, optional
        The gradient of each output, of its shape; may be left out for scalars.
    retain_graph, create_graph : bool
        As in :func:`backward`.
    only_inputs : bool
        True: there is no other way. :func:`backward` adds into ``.grad``.
    allow_unused : bool, optional
        None for an input that no output depends on, instead of an error.
    materialize_grads : bool
        Zeros for such an input.

    Returns
    -------
    tuple of Tensor
        One per input, of the input's shape and dtype.

    Raises
    ------
    RuntimeError
        As in :func:`backward`, and for an unused input unless ``allow_unused``.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("grad(): materialize_grads gives zeros to what allow_unused=False refuses")
    if not only_inputs:
        raise ValueError("grad(): only_inputs is False, but it must be True; see backward()")
    retain = create_graph if retain_graph is None else retain_graph
    wanted = _as_list(inputs)
    if not wanted:
        raise ValueError("grad(): inputs is empty; grad requires non-empty inputs.")
    unused = bool(allow_unused) or materialize_grads
    grads = _ext.grad(_as_list(outputs), wanted, _as_list(grad_outputs), retain, create_graph,
                      unused)  # fmt: skip
    if materialize_grads:
        grads = tuple(_C.zeros_like(x, requires_grad=create_graph) if g is None else g
                      for g, x in zip(grads, wanted, strict=True))  # fmt: skip
    # None for what is unused, which only those who allow it meet.
    return cast("tuple[Tensor, ...]", tuple(grads))


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
