# SPDX-License-Identifier: Apache-2.0
"""L-BFGS (Liu and Nocedal, 1989), with a line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd._grad_mode import enable_grad, no_grad
from oneflow_lite.optim.optimizer import (
    Optimizer,
    check_not_negative,
    check_numbers,
    is_captured,
)

_ENOUGH_DECREASE, _FLAT_ENOUGH = 1e-4, 0.9  # Wolfe's conditions, as shares of the first slope
_LEAST_CURVATURE = 1e-10


class _Point(NamedTuple):
    """A step ``t`` along the direction: the loss there, its gradient, and the slope along."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def _cubic_minimum(a: _Point, b: _Point, least: float, most: float) -> float:
    """Where the cubic through two points is least, within bounds; their middle without one."""
    if a.t > b.t:
        a, b = b, a
    width = b.t - a.t
    if width > 0:
        mean = a.slope + b.slope - 3 * (b.loss - a.loss) / width
        square = mean * mean - a.slope * b.slope
        root = math.sqrt(square) if square >= 0 else math.nan
        across = b.slope - a.slope + 2 * root
        if across != 0 and not math.isnan(root):
            return min(max(b.t - width * (b.slope + root - mean) / across, least), most)
    return (least + most) / 2


def _away_from_ends(t: float, least: float, most: float, again: bool) -> tuple[float, bool]:
    """A trial within a bracket, and whether it is near an end.

    One on an end, or near one for the second time, is moved a tenth of the bracket inwards.
    """
    margin = 0.1 * (most - least)
    if min(most - t, t - least) >= margin:
        return t, False
    if not again and least < t < most:
        return t, True
    return (most - margin if most - t < t - least else least + margin), False


def _strong_wolfe(
    evaluate: Callable[[float], _Point], start: _Point, t: float, narrow: float, tries: int
) -> tuple[_Point, int]:
    """A point that is lower and flatter than the start, and how many were evaluated.

    A bracket of less than ``narrow`` is not searched further; nor is it after so many tries beside
    the first, whatever the best point is then.
    """

    def is_high(p: _Point) -> bool:
        return p.loss > start.loss + _ENOUGH_DECREASE * p.t * start.slope

    def is_flat(p: _Point) -> bool:
        return abs(p.slope) <= -_FLAT_ENOUGH * start.slope

    tried, before, found = 0, start, evaluate(t)
    while tried < tries:
        if is_high(found) or (tried > 1 and found.loss >= before.loss):
            break
        if is_flat(found):
            return found, tried + 1
        if found.slope >= 0:
            break
        beyond = found.t + 0.01 * (found.t - before.t)
        t = _cubic_minimum(before, found, beyond, 10 * found.t)
        before, found, tried = found, evaluate(t), tried + 1
    else:
        return (start if start.loss <= found.loss else found), tried + 1

    low, high = (before, found) if before.loss <= found.loss else (found, before)
    near_end = False
    while tried < tries and not abs(high.t - low.t) < narrow:
        least, most = sorted((low.t, high.t))
        t = _cubic_minimum(low, high, least, most)
        t, near_end = _away_from_ends(t, least, most, near_end)
        found, tried = evaluate(t), tried + 1
        if is_high(found) or found.loss >= low.loss:
            low, high = (low, found) if low.loss <= found.loss else (found, low)
        elif is_flat(found):
            return found, tried + 1
        else:
            low, high = found, (low if found.slope * (high.t - low.t) >= 0 else high)
    return low, tried + 1


class LBFGS(Optimizer):
    """A quasi-Newton method for few parameters and a loss without noise; as PyTorch's.

    Each iteration goes along the gradient times an approximation of the inverse Hessian, which the
    last ``history_size`` changes of parameters and gradients give. A step is up to ``max_iter``
    iterations, and evaluates the loss several times; so it needs a closure::

        def closure():
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)

    Parameters
    ----------
    params : iterable of Tensor
        One group, on one device.
    lr : float
        The length of a step along the direction, or the first one that a line search tries.
    max_iter : int
        The most iterations of a step.
    max_eval : int, optional
        The most evaluations of a step; ``max_iter * 5 // 4`` where None.
    tolerance_grad : float
        A step ends where no element of the gradient is larger.
    tolerance_change : float
        And where no parameter or the loss changes by more.
    history_size : int
        As above.
    line_search_fn : str, optional
        "strong_wolfe", or None for steps of length ``lr``.
    maximize : bool
        Goes up.

    Raises
    ------
    ValueError
        A negative number, several groups, another line search.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        check_numbers("LBFGS", {"max_iter": max_iter}, ("max_iter",))
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn, "maximize": maximize,
        })  # fmt: skip

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The one group; ValueError for a second."""
        if self.param_groups:
            raise ValueError("LBFGS(): takes one group of parameters: all move along one direction")
        super().add_param_group(param_group)

    def check_options(self, group: dict[str, Any]) -> None:
        names = ("lr", "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size")
        check_not_negative("LBFGS", group, names)
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS(): line_search_fn is {group['line_search_fn']!r}, but it must "
                             'be "strong_wolfe" or None')  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to ``max_iter`` iterations; gives the loss before the first.

        Raises
        ------
        TypeError
            ``closure`` cannot be called.
        RuntimeError
            The step is captured into a CUDA graph: it reads losses on the host.
        """
        if not callable(closure):
            raise TypeError("LBFGS.step(): closure must be a function that computes the loss and "
                            f"its gradients anew, not {type(closure).__name__}")  # fmt: skip
        params = self.param_groups[0]["params"]
        if self.in_graphed_step() or is_captured(params):
            raise RuntimeError("LBFGS.step(): how far it goes depends on the losses, which a CUDA "
                               "graph cannot read")  # fmt: skip
        with no_grad():
            return self._step(closure, params)

    def _step(self, closure: Callable[[], Any], params: list[Tensor]) -> Any:
        group = self.param_groups[0]
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        first, loss, grad = self._evaluate(closure)
        if not params:
            return first
        state = self.state[params[0]]
        state.setdefault("n_iter", 0)
        state["func_evals"] = state.get("func_evals", 0) + 1
        evaluated = 1
        for iteration in range(1, group["max_iter"] + 1):
            if _largest(grad) <= group["tolerance_grad"]:
                break
            d = self._direction(state, grad)
            begin = state["n_iter"] == 1
            t = lr * min(1.0, 1.0 / float(grad.abs().sum())) if begin else lr
            slope = float(grad.dot(d))
            state.update(d=d, t=t, prev_flat_grad=grad, prev_loss=loss)
            if slope > -tolerance:
                break
            start, more = _Point(0.0, loss, grad, slope), 0
            if group["line_search_fn"] is not None:
                found, more = self._search(closure, start, d, t, group["max_eval"] - evaluated)
                t, loss, grad = found.t, found.loss, found.grad
                self._move(t, d)
            else:
                self._move(t, d)
                if iteration < group["max_iter"]:  # what the last one comes to is the next step's
                    (_, loss, grad), more = self._evaluate(closure), 1
            state["t"] = t
            evaluated += more
            state["func_evals"] += more
            still = abs(t) * _largest(d) <= tolerance or abs(loss - start.loss) < tolerance
            if evaluated >= group["max_eval"] or still:
                break
        return first

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float, Tensor]:
        """What the closure gives, and the loss and all gradients in one row as they are to fall."""
        with enable_grad():
            result = closure()
        params = self.param_groups[0]["params"]
        if not params:
            return result, 0.0, _C.zeros([0])
        grads = [_C.zeros_like(p) if p.grad is None else p.grad for p in params]
        row = _C.cat([g.detach().reshape(-1) for g in grads])
        loss = float(result)
        return (result, -loss, -row) if self.param_groups[0]["maximize"] else (result, loss, row)

    def _move(self, t: float, d: Tensor) -> None:
        params = self.param_groups[0]["params"]
        parts = _C.split_with_sizes(d, [p.numel() for p in params])
        for p, part in zip(params, parts, strict=True):
            p.add_(part.view(p.shape), alpha=t)

    def _search(
        self, closure: Callable[[], Any], start: _Point, d: Tensor, t: float, tries: int
    ) -> tuple[_Point, int]:
        """A line search from where the parameters are, which they are again afterwards."""
        params = self.param_groups[0]["params"]
        places = [p.clone() for p in params]

        def evaluate(t: float) -> _Point:
            self._move(t, d)
            _, loss, grad = self._evaluate(closure)
            for p, place in zip(params, places, strict=True):
                p.copy_(place)
            return _Point(t, loss, grad, float(grad.dot(d)))

        tolerance, size = self.param_groups[0]["tolerance_change"], _largest(d)
        narrow = tolerance / size if size > 0 else math.inf
        return _strong_wolfe(evaluate, start, t, narrow, tries)

    def _direction(self, state: dict[str, Any], grad: Tensor) -> Tensor:
        """Down the gradient, times the inverse Hessian as the history has it; one more in it."""
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = grad - state["prev_flat_grad"], state["d"] * float(state["t"])
        curvature = float(change.dot(step))
        if curvature > _LEAST_CURVATURE:
            for kept, new in ((changes, change), (steps, step), (ro, 1 / curvature)):
                kept.append(new)
                del kept[: -self.param_groups[0]["history_size"] or None]
            state["H_diag"] = curvature / float(change.dot(change))
        d, shares = -grad, []
        for i in reversed(range(len(changes))):
            shares.append(float(steps[i].dot(d)) * float(ro[i]))
            d.add_(changes[i], alpha=-shares[-1])
        d.mul_(float(state["H_diag"]))
        for i in range(len(changes)):
            share = float(changes[i].dot(d)) * float(ro[i])
            d.add_(steps[i], alpha=shares.pop() - share)
        return d


def _largest(x: Tensor) -> float:
    """The largest size of an element; 0 where there is none."""
    return float(x.abs().max()) if x.numel() > 0 else 0.0
