# SPDX-License-Identifier: Apache-2.0
"""Ops with what happens to each element before and after them, as functions of one element.

>>> scaled_softmax = flow.fuse.softmax(load=lambda x, bias, scale: x * scale + bias)
>>> y = scaled_softmax(x, bias, 0.125, dim=-1)

A function is traced once into an expression: operators, comparisons, and the functions below, which
may be called as ``flow.fuse.exp(x)``, as a method ``x.exp()`` and, in the function itself, as
``flow.exp(x)``. On CUDA the expression is compiled into the op's kernel, so that it costs no trip
to memory; elsewhere it runs as a composition of functors. Gradients of every order follow.

:func:`elements` makes an op of any function of elements, of several operands and results.

CUDA kernels around rows compute 16-bit elements in float32, and what they compute in float32 they
divide, take roots, sigmoid and tanh of by the hardware's approximations, within 3e-7 of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite._absent import public_face
from oneflow_lite.fuse import functions
from oneflow_lite.fuse.functions import FUNCTIONS
from oneflow_lite.fuse.fused_elements import FusedElements, elements
from oneflow_lite.fuse.op import FusedOp
from oneflow_lite.fuse.tracer import TraceError, traceable

abs, exp, log, maximum, minimum, relu, rsqrt, sigmoid, sqrt, tanh = (
    traceable(name, FUNCTIONS[name])
    for name in ("abs", "exp", "log", "maximum", "minimum", "relu", "rsqrt", "sigmoid", "sqrt",
                 "tanh")
)  # fmt: skip
where = traceable("where", functions.where)

__all__ = [
    "FusedElements", "FusedOp", "TraceError", "abs", "elements", "exp", "layer_norm", "log",
    "log_softmax", "maximum", "minimum", "relu", "rms_norm", "rsqrt", "sigmoid", "softmax", "sqrt",
    "tanh", "where",
]  # fmt: skip

_Elementwise = Callable[..., Any] | None


def softmax(load: _Elementwise = None, store: _Elementwise = None) -> FusedOp:
    """Softmax with ``load`` applied to each element before it and ``store`` after it.

    On CUDA, wide rows that are no whole packs of 16 bytes read what serves all of them, such as a
    bias, from copies that lie as the rows do; so with the other ops. They take memory while the op
    runs: one for each element in 16 bytes of the input, 8 of a half row.

    Parameters
    ----------
    load : callable, optional
        A function of an element of the input, and of further parameters, which the op's caller
        gives as numbers or as tensors that broadcast to the input. Called once, now.
    store : callable, optional
        Likewise of an element of the result. A parameter that load has too is the same; the name
        of load's first parameter (``x`` without load) is the input.

    Returns
    -------
    FusedOp
        A function of the input, the parameters of load and store in order, and ``dim``. Its result
        has the input's shape and dtype.

    Raises
    ------
    TraceError
        A function does more than arithmetic on single elements; the message says what, and where.
    ValueError
        load and store give a parameter two defaults, or the element has one.
    """
    return FusedOp("softmax", load, store)


def log_softmax(load: _Elementwise = None, store: _Elementwise = None) -> FusedOp:
    """log_softmax with ``load`` and ``store``, as for :func:`softmax`."""
    return FusedOp("log_softmax", load, store)


def layer_norm(load: _Elementwise = None, store: _Elementwise = None) -> FusedOp:
    """layer_norm with ``load`` and ``store``, as for :func:`softmax`.

    The op takes ``normalized_shape``, ``weight``, ``bias`` and ``eps`` by name.
    """
    return FusedOp("layer_norm", load, store)


def rms_norm(load: _Elementwise = None, store: _Elementwise = None) -> FusedOp:
    """rms_norm with ``load`` and ``store``, as for :func:`softmax`.

    The op takes ``normalized_shape``, ``weight`` and ``eps`` by name.
    """
    return FusedOp("rms_norm", load, store)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
