# SPDX-License-Identifier: Apache-2.0
"""Gradients: running backward, switching recording, checking gradients against differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    if isinstance(tensors, Tensor) or not isinstance(tensors, Iterable):
        return [tensors]  # the binding says what is wrong with what is no tensor
    return list(tensors)


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


def _zeros(x: Tensor, requires_grad: bool, batched: Any) -> Tensor:
    """Of the shape of ``x``, after the size of the batch where gradients are batched."""
    first = [] if batched is None else [_batch_size(_as_list(batched))]
    return _C.zeros([*first, *x.shape], dtype=x.dtype, device=x.device, requires_grad=requires_grad)


def _batch_size(grad_outputs: list[Tensor | None] | None) -> int:
    shapes = [g.shape for g in grad_outputs or () if g is not None]
    sizes = {shape[0] if shape else None for shape in shapes}
    if len(sizes) != 1 or None in sizes:
        given = [list(shape) for shape in shapes]
        raise ValueError("grad(): with is_grads_batched the tensors in grad_outputs must have a "
                         f"first dim, of one size, but the shapes are {given}")  # fmt: skip
    return sizes.pop()


def _batched(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None] | None,
    retain_graph: bool,
    create_graph: bool,
    allow_unused: bool,
) -> list[Tensor | None]:
    """What ``_ext.grad`` gives for each of a batch of gradients, stacked."""
    size = _batch_size(grad_outputs)
    runs = []
    # Without any, one of zeros shows which inputs are used.
    for i in range(max(size, 1)):
        seeds = [g if g is None else g[i] if size else _C.zeros(g.shape[1:], dtype=g.dtype,
                 device=g.device) for g in grad_outputs or ()]  # fmt: skip
        keep = retain_graph or i + 1 < size
        runs.append(_ext.grad(outputs, inputs, seeds, keep, create_graph, allow_unused))
    stacked = [None if any(g is None for g in grads) else _C.stack(list(grads))
               for grads in zip(*runs, strict=True)]  # fmt: skip
    return [g if g is None else g[:size] for g in stacked]


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
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
    is_grads_batched : bool
        Each of ``grad_outputs`` has a first dim more than its output: a batch of gradients. So have
        the results. Each of the batch is a backward pass of its own.
    materialize_grads : bool
        Zeros for an input that no output depends on.

    Returns
    -------
    tuple of Tensor
        One per input, of the input's shape and dtype.

    Raises
    ------
    RuntimeError
        As in :func:`backward`, and for an unused input unless ``allow_unused``.
    ValueError
        Batched gradients that are not of one number.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("grad(): materialize_grads gives zeros to what allow_unused=False refuses")
    if not only_inputs:
        raise ValueError("grad(): only_inputs is False, but it must be True; see backward()")
    retain = create_graph if retain_graph is None else retain_graph
    wanted = _as_list(inputs)
    if not wanted:
        raise ValueError("grad(): inputs is empty; grad requires non-empty inputs.")
    unused = materialize_grads or (False if allow_unused is None else allow_unused)
    run = _batched if is_grads_batched else _ext.grad
    grads = run(_as_list(outputs), wanted, _as_list(grad_outputs), retain, create_graph, unused)
    if materialize_grads:
        grads = [_zeros(x, create_graph, grad_outputs if is_grads_batched else None)
                 if g is None else g for g, x in zip(grads, wanted, strict=True)]  # fmt: skip
    # None for what is unused, which only those who allow it meet.
    return cast("tuple[Tensor, ...]", tuple(grads))


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
