# SPDX-License-Identifier: Apache-2.0
"""Gradients by autograd against central differences, element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor, float64, from_numpy

_Function = Callable[..., Tensor | Sequence[Tensor]]


_PYTORCHS = {
    "check_backward_ad", "check_batched_forward_grad", "check_batched_grad", "check_forward_ad",
    "check_fwd_over_rev", "check_grad_dtypes", "check_rev_over_rev", "check_undefined_grad",
    "fast_mode", "gen_non_contig_grad_outputs", "masked", "nondet_tol",
}  # fmt: skip


class GradcheckError(RuntimeError):
    """A gradient is wrong; the message names the worst element."""


def _take(name: str, options: dict[str, Any]) -> None:
    for option in options.keys() - _PYTORCHS:
        raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")


@contextmanager
def _grad_mode(mode: bool) -> Iterator[None]:
    before = _ext.is_grad_enabled()
    _ext.set_grad_enabled(mode)
    try:
        yield
    finally:
        _ext.set_grad_enabled(before)


def _outputs(function: _Function, inputs: Sequence[Any]) -> list[Tensor]:
    result = function(*inputs)
    return [result] if isinstance(result, Tensor) else list(result)


def _host(x: Tensor) -> np.ndarray:
    return np.array(x.detach().cpu().numpy(), order="C")


def _like(values: np.ndarray, x: Tensor) -> Tensor:
    return from_numpy(np.ascontiguousarray(values)).to(x.device).reshape(list(x.shape))


def _numeric(function: _Function, inputs: Sequence[Any], index: int, eps: float):
    """For each output the matrix of (elements of the input) x (elements of the output)."""
    x = inputs[index]
    values = _host(x)
    flat = values.reshape(-1)

    def at(i: int, value: float) -> list[np.ndarray]:
        before, flat[i] = flat[i], value
        moved = [*inputs[:index], _like(values.copy(), x), *inputs[index + 1 :]]
        flat[i] = before
        with _grad_mode(False):
            return [_host(y).reshape(-1) for y in _outputs(function, moved)]

    rows = []
    for i in range(flat.size):
        high, low = at(i, flat[i] + eps), at(i, flat[i] - eps)
        rows.append([_difference(h, lo) / (2 * eps) for h, lo in zip(high, low, strict=True)])
    return [np.array(columns) for columns in zip(*rows, strict=True)]


def _difference(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """0 where an output stays infinite, and of integers."""
    if high.dtype.kind != "f":
        return 0 * high
    return np.subtract(high, low, out=np.zeros_like(high), where=high != low)


def _analytic(output: Tensor, inputs: Sequence[Tensor]) -> list[np.ndarray]:
    """For each input the matrix of (elements of the input) x (elements of the output)."""
    columns: list[list[np.ndarray]] = [[] for _ in inputs]
    for i in range(output.numel()):
        seed = np.zeros(output.numel())
        seed[i] = 1
        grads = _ext.grad([output], list(inputs), [_like(seed, output)], True, False, True)
        for column, grad, x in zip(columns, grads, inputs, strict=True):
            column.append(np.zeros(x.numel()) if grad is None else _host(grad).reshape(-1))
    return [np.array(column).reshape(output.numel(), x.numel()).T
            for column, x in zip(columns, inputs, strict=True)]  # fmt: skip


def _place(flat: int, shape: Sequence[int]) -> str:
    return str([int(i) for i in np.unravel_index(flat, tuple(shape))]) if len(shape) else "[]"


def _compare(where: str, analytic: np.ndarray, numeric: np.ndarray, x: Tensor, y: Tensor,
             atol: float, rtol: float) -> None:  # fmt: skip
    error = np.abs(analytic - numeric)
    error = np.where(np.isnan(analytic) | np.isnan(numeric), np.inf, error)
    excess = error - (atol + rtol * np.abs(numeric))
    if excess.size == 0 or excess.max() <= 0:
        return
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    raise GradcheckError(
        f"{where}: worst at input element {_place(int(i), x.shape)} and output element "
        f"{_place(int(j), y.shape)}: autograd gives {analytic[i, j]:.6g}, differences "
        f"{numeric[i, j]:.6g} ({int((excess > 0).sum())} of {excess.size} entries are off by more "
        f"than {atol:g} + {rtol:g} * |difference|)"
    )


def _check_inputs(inputs: Sequence[Any]) -> list[int]:
    """The places of the inputs that require a gradient."""
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck(): no input requires a gradient")
    for i in checked:
        if inputs[i].dtype != float64:
            raise ValueError(
                f"gradcheck(): input {i} is {inputs[i].dtype}; differences need float64"
            )
    return checked


def _check_constant(checked: list[int], numeric: list, atol: float) -> None:
    """Outputs of which none requires a gradient must not change with the inputs."""
    for i, differences in zip(checked, numeric, strict=True):
        for o, n in enumerate(differences):
            worst = np.abs(n).max(initial=0)
            if not worst <= atol:
                raise GradcheckError(
                    f"gradcheck(): no output requires a gradient, though output {o} changes with "
                    f"input {i}: a difference is {worst:.6g}"
                )


def _gradcheck(
    function: _Function, inputs: Sequence[Any], eps: float, atol: float, rtol: float
) -> None:
    checked = _check_inputs(inputs)
    with _grad_mode(True):
        outputs = _outputs(function, inputs)
    wanted = [inputs[i] for i in checked]
    numeric = [_numeric(function, inputs, i, eps) for i in checked]
    if not any(y.requires_grad for y in outputs):
        _check_constant(checked, numeric, atol)
    for o, output in enumerate(outputs):
        if not output.requires_grad:
            continue
        analytic = _analytic(output, wanted)
        again = _analytic(output, wanted)
        for i, x, a, b, n in zip(checked, wanted, analytic, again, numeric, strict=True):
            where = f"gradcheck(): gradient of output {o} with respect to input {i}"
            if not n:  # an empty input
                continue
            _compare(where, a, n[o].reshape(a.shape), x, output, atol, rtol)
            if not np.array_equal(a, b, equal_nan=True):
                raise GradcheckError(f"{where}: two runs of backward give different bits")


def gradcheck(
    function: _Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """Compares every entry of the Jacobian by autograd with central differences.

    Parameters
    ----------
    function : callable
        Takes ``inputs``, gives a tensor or a sequence of tensors; the same values every time.
    inputs : Tensor or sequence
        The arguments. Those that require a gradient are checked and must be float64.
    eps : float
        Half the step of the differences.
    atol, rtol : float
        Allowed: ``|autograd - difference| <= atol + rtol * |difference|``.
    raise_exception : bool
        Raise where a gradient is wrong; else give False.
    **options
        Further ones of PyTorch, such as ``nondet_tol`` and ``fast_mode``, are taken and change
        nothing.

    Returns
    -------
    bool
        True where all gradients are right.

    Raises
    ------
    GradcheckError
        A wrong gradient, with the worst element named, or one that differs between two runs; no
        output that requires a gradient, though one changes with an input.
    ValueError
        No input requires a gradient, or one that does is not float64.

    Examples
    --------
    >>> x = flow.randn(3, 4, dtype=flow.float64, requires_grad=True)
    >>> flow.autograd.gradcheck(lambda x: flow.softmax(x, 1), x)
    True
    """
    _take("gradcheck", options)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    try:
        _gradcheck(function, inputs, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    function: _Function,
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """:func:`gradcheck` of the gradient itself, also with respect to the outputs' gradients.

    Parameters and errors are those of :func:`gradcheck`; the gradients of the outputs are drawn
    from a fixed seed.
    """
    _take("gradgradcheck", options)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    checked = _check_inputs(inputs)
    rng = np.random.default_rng(0)
    with _grad_mode(True):
        outputs = _outputs(function, inputs)
    differentiable = [i for i, y in enumerate(outputs) if y.requires_grad]
    seeds = []
    for i in differentiable:
        seed = _like(rng.standard_normal(tuple(outputs[i].shape)), outputs[i])
        seed.requires_grad = True
        seeds.append(seed)

    def gradient(*args):
        with _grad_mode(True):
            given = list(args[: len(inputs)])
            for i in checked:  # differences come as plain leaves
                if not given[i].requires_grad:
                    given[i].requires_grad = True
            results = _outputs(function, given)
            grads = _ext.grad([results[i] for i in differentiable], [given[i] for i in checked],
                              list(args[len(inputs) :]), True, True, True)  # fmt: skip
        return [g for g in grads if g is not None]

    return gradcheck(gradient, [*inputs, *seeds], eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception)  # fmt: skip
