# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions: Jacobians, Hessians, and their products with vectors.

>>> flow.autograd.functional.jacobian(lambda x: x.softmax(0), flow.randn(3))    # [3, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd._grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_Inputs = Tensor | Sequence[Tensor]


def _tensors(what: str, given: Any) -> list[Tensor]:
    """A tensor or several as a list; TypeError for anything else."""
    several = list(given) if isinstance(given, tuple | list) else [given]
    for t in several:
        if not isinstance(t, Tensor):
            raise TypeError(f"autograd.functional: {what} must be a Tensor or a tuple of Tensors, "
                            f"not {type(t).__name__}")  # fmt: skip
    return several


def _leaves(inputs: _Inputs, create_graph: bool) -> list[Tensor]:
    given = _tensors("inputs", inputs)
    if create_graph:  # a history of their own, that leads on to the inputs
        return [x.view(x.shape) if x.requires_grad else x.detach().requires_grad_() for x in given]
    return [x.detach().requires_grad_() for x in given]


def _like(inputs: _Inputs, results: list[Tensor]) -> Any:
    return results[0] if isinstance(inputs, Tensor) else tuple(results)


def _refuse(strict: str, what: str) -> None:
    raise RuntimeError(f"{strict}(): {what}, which strict=True does not allow")


def _check_outputs(strict: str, outputs: list[Tensor]) -> None:
    for i, y in enumerate(outputs):
        if strict and not y.requires_grad:
            _refuse(strict, f"output {i} does not depend on the inputs")


def _grads(
    outputs: list[Tensor],
    inputs: list[Tensor],
    seeds: list[Tensor],
    create_graph: bool,
    strict: str = "",
) -> list[Tensor]:
    """The products; ``strict`` is empty, or the function in which no derivative may be a constant.

    Without it what does not depend on an input has zeros for its derivative.
    """
    if not any(y.requires_grad for y in outputs):
        return [_C.zeros_like(x) for x in inputs]
    kept = [i for i, y in enumerate(outputs) if y.requires_grad]
    found = _ext.grad([outputs[i] for i in kept], inputs, [seeds[i] for i in kept], True,
                      create_graph, True)  # fmt: skip
    for i, g in enumerate(found if strict else ()):
        if g is None:
            _refuse(strict, f"the result does not depend on input {i}")
        elif create_graph and not g.requires_grad:
            _refuse(strict, f"the derivative by input {i} does not depend on the inputs")
    return [_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


@enable_grad()
def jacobian(
    func: Callable[..., Any],
    inputs: _Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
) -> Any:
    """The derivative of each element of a result by each element of an input.

    Parameters
    ----------
    func : callable
        Takes the inputs, gives a tensor or several.
    inputs : Tensor or sequence of Tensor
        Where.
    create_graph : bool
        The result can be differentiated.
    strict : bool
        RuntimeError where an output does not depend on an input, or, with ``create_graph``, where a
        derivative does not; else such derivatives are zeros.
    vectorize : bool
        Taken and without effect: each row is a backward pass of its own.

    Returns
    -------
    Tensor, or tuples of Tensor
        Of shape ``[*output, *input]``; a tuple per output and in it per input, where there are
        several.
    """
    return _jacobian(func, inputs, create_graph, "jacobian" if strict else "")


def _jacobian(func: Callable[..., Any], inputs: _Inputs, create_graph: bool, strict: str) -> Any:
    xs = _leaves(inputs, create_graph)
    result = func(*xs)
    rows = []
    ys = _tensors("what func gives", result)
    _check_outputs(strict, ys)
    for y in ys:
        columns: list[list[Tensor]] = []
        for i in range(y.numel()):
            seed = _C.zeros([y.numel()], dtype=y.dtype, device=y.device)
            seed[i] = 1
            columns.append(_grads([y], xs, [seed.view(y.shape)], create_graph, strict))
        rows.append(_like(inputs, [
            _C.stack([c[k] for c in columns]).reshape([*y.shape, *x.shape]) if columns
            else _C.zeros([*y.shape, *x.shape], dtype=x.dtype, device=x.device)
            for k, x in enumerate(xs)
        ]))  # fmt: skip
    return rows[0] if isinstance(result, Tensor) else tuple(rows)


def _gradient_of(
    func: Callable[..., Tensor], inputs: _Inputs, name: str, strict: bool
) -> Callable[..., Any]:
    """The gradient of a scalar function, as a function that can be differentiated."""

    def gradient(*xs: Tensor) -> Any:
        y = func(*xs)
        _tensors("what func gives", y)
        if y.numel() != 1:
            raise ValueError(f"{name}(): func gave shape {list(y.shape)}, expected one element")
        _check_outputs(name if strict else "", [y])
        seed = [_C.ones_like(y)]
        return _like(inputs, _grads([y], list(xs), seed, True, name if strict else ""))

    return gradient


@enable_grad()
def hessian(
    func: Callable[..., Tensor],
    inputs: _Inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
) -> Any:
    """The Jacobian of the gradient of a scalar function; arguments as for :func:`jacobian`."""
    name = "hessian" if strict else ""

    gradient = _gradient_of(func, inputs, "hessian", strict)
    return _jacobian(gradient, inputs, create_graph, name)


@enable_grad()
def vjp(
    func: Callable[..., Any],
    inputs: _Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What ``func`` gives, and the product of a vector of its shape with its Jacobian.

    ``v`` may be left out where the result has one element; ``strict`` as for :func:`jacobian`.
    """
    return _vjp(func, inputs, v, create_graph, "vjp" if strict else "")


def _vjp(
    func: Callable[..., Any], inputs: _Inputs, v: Any, create_graph: bool, strict: str
) -> tuple[Any, Any]:
    xs = _leaves(inputs, create_graph)
    result = func(*xs)
    ys = _tensors("what func gives", result)
    _check_outputs(strict, ys)
    if v is None:
        if len(ys) != 1 or ys[0].numel() != 1:
            raise ValueError("vjp(): v may be left out for a result of one element only")
        v = _C.ones_like(ys[0])
    seeds = _tensors("v", v)
    for y, seed in zip(ys, seeds, strict=True):
        if y.shape != seed.shape:
            raise ValueError(f"vjp(): v has shape {list(seed.shape)}, expected {list(y.shape)}")
    product = _like(inputs, _grads(ys, xs, seeds, create_graph, strict))
    return (result if create_graph else _detached(result)), product


def _vectors(name: str, inputs: list[Tensor], v: Any) -> list[Tensor]:
    """``v`` as a list, of the inputs' shapes; may be left out for one input of one element."""
    if v is None:
        if len(inputs) != 1 or inputs[0].numel() != 1:
            raise ValueError(f"{name}(): v may be left out for an input of one element only")
        return [_C.ones_like(inputs[0])]
    vectors = _tensors("v", v)
    if [x.shape for x in inputs] != [t.shape for t in vectors]:
        raise ValueError(f"{name}(): v has shapes {[list(t.shape) for t in vectors]}, expected "
                         f"{[list(x.shape) for x in inputs]}")  # fmt: skip
    return vectors


@enable_grad()
def jvp(
    func: Callable[..., Any],
    inputs: _Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """What ``func`` gives, and the product of its Jacobian with a vector of the inputs' shape.

    By two backward passes: the product with a vector from the left is linear in that vector.
    ``v`` may be left out where there is one input of one element; ``strict`` as for
    :func:`jacobian`.
    """
    name = "jvp" if strict else ""
    xs = _leaves(inputs, create_graph)
    result = func(*xs)
    ys = _tensors("what func gives", result)
    _check_outputs(name, ys)
    seeds = [_C.zeros_like(y).requires_grad_() for y in ys]
    products = _grads(ys, xs, seeds, True, name)
    vectors = _vectors("jvp", xs, v)
    found = _grads(products, seeds, vectors, create_graph, name)
    return (result if create_graph else _detached(result)), _like(
        result if isinstance(result, Tensor) else ys, found
    )


@enable_grad()
def vhp(
    func: Callable[..., Tensor],
    inputs: _Inputs,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensor, Any]:
    """What a scalar function gives, and the product of a vector with its Hessian.

    ``v`` may be left out where there is one input of one element; ``strict`` as for
    :func:`jacobian`.
    """
    name = "vhp" if strict else ""
    gradient = _gradient_of(func, inputs, "vhp", strict)
    xs = _leaves(inputs, create_graph)
    vectors = _vectors("vhp", xs, v)
    _, product = _vjp(gradient, _like(inputs, xs), _like(inputs, vectors), create_graph, name)
    value = func(*xs)
    return (value if create_graph else value.detach()), product


hvp = vhp  # the Hessian is symmetric


def _detached(result: Any) -> Any:
    return result.detach() if isinstance(result, Tensor) else tuple(y.detach() for y in result)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
