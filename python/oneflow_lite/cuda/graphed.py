# SPDX-License-Identifier: Apache-2.0
"""graphed_step: a training step as one CUDA graph."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

from oneflow_lite._oneflow_lite import CUDAGraph, Tensor, device
from oneflow_lite.autograd._grad_mode import no_grad

_RULES = ("In a captured step nothing may wait for the GPU (.item(), float(t), printing a tensor, "
          "a copy to the CPU), and what is made in Python is made once")  # fmt: skip


class GraphedStep:
    """What :func:`graphed_step` gives; see there.

    Attributes
    ----------
    captured : bool
        Whether the graph is there, so that calls replay it.
    optimizers : list of Optimizer
        Those that took a step in the function.
    """

    def __init__(self, fn: Callable[..., Any], warmup: int, where: Any) -> None:
        if not callable(fn):
            raise TypeError(f"graphed_step(): fn must be callable, not {type(fn).__name__}")
        if not isinstance(warmup, int) or warmup < 1:
            raise ValueError(f"graphed_step(): warmup is {warmup!r}, but it must be 1 or more: a "
                             "step before the capture makes the optimizer's state")  # fmt: skip
        functools.update_wrapper(self, fn, updated=())
        self._fn, self._left, self._where = fn, warmup, where
        self._graph: CUDAGraph | None = None
        self._static: list[Tensor] = []
        self._form: Any = None
        self._outputs: Any = None
        self._options: list[dict[str, Any]] = []
        self._drops = False
        self.optimizers: list[Any] = []

    @property
    def captured(self) -> bool:
        return self._graph is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One step. The tensors that it gives hold the values of the last call."""
        from oneflow_lite import cuda
        from oneflow_lite.optim.optimizer import in_graphed_step

        if self._form is None:
            self._where = device("cuda", cuda._index(self._where))
        tensors: list[Tensor] = []
        form = _describe((args, kwargs), tensors)
        with no_grad():
            self._take(form, tensors)
        given, named = _rebuild((args, kwargs), iter(self._static))
        if self._graph is not None:
            self._check_options()
            for optimizer in self.optimizers:
                optimizer.refresh_lr()
            self._graph.replay()
            return self._outputs
        with in_graphed_step(self.optimizers):
            if self._left > 0:
                return self._warm_up(given, named)
            self._capture(given, named)
        self._graph.replay()
        return self._outputs

    def _take(self, form: Any, tensors: list[Tensor]) -> None:
        """Copies the inputs to where the graph reads them."""
        if self._form is None:
            self._form = form
            self._static = [t.detach().to(self._where, copy=True) for t in tensors]
            return
        if not _is_same(form, self._form):
            raise ValueError(f"graphed_step(): called with {_words(form)}, but the first call had "
                             f"{_words(self._form)}; a step has one graph: make another "
                             "graphed_step for other shapes")  # fmt: skip
        for static, t in zip(self._static, tensors, strict=True):
            static.copy_(t.detach())

    def _warm_up(self, args: Any, kwargs: Any) -> Any:
        self._left -= 1
        before = self._gradients()
        result = _map(self._fn(*args, **kwargs), lambda t: t.detach())
        after = self._gradients()
        # Whether the step starts from gradients of its own: those of now are not needed then.
        self._drops = all(b is None or b is not a for b, a in zip(before, after, strict=False))
        return result

    def _parameters(self) -> list[Tensor]:
        return [p for optimizer in self.optimizers for group in optimizer.param_groups
                for p in group["params"]]  # fmt: skip

    def _gradients(self) -> list[Tensor | None]:
        return [p.grad for p in self._parameters()]

    def _capture(self, args: Any, kwargs: Any) -> None:
        from oneflow_lite import cuda

        parameters, before = self._parameters(), self._gradients()
        if self._drops:
            for p in parameters:
                p.grad = None
            before = [None] * len(before)
        gc.collect()
        cuda.synchronize(self._where)
        cuda.empty_cache(self._where)
        for optimizer in self.optimizers:
            optimizer.refresh_lr()
        lrs = self._read_lrs()
        graph = CUDAGraph()
        try:
            with cuda.graph(graph, cuda.Stream(self._where)):
                outputs = _map(self._fn(*args, **kwargs), lambda t: t.detach())
        except Exception as error:
            for p, grad in zip(parameters, before, strict=True):
                p.grad = grad
            raise RuntimeError(f"graphed_step(): {self._name()} cannot be captured: {error}. "
                               f"{_RULES}") from error  # fmt: skip
        if self._read_lrs() != lrs:
            raise RuntimeError(f"graphed_step(): {self._name()} changes an lr, which no replay "
                               "would; change it beside the step")  # fmt: skip
        self._graph, self._outputs = graph, outputs
        self._options = self._read_options()

    def _name(self) -> str:
        return getattr(self._fn, "__name__", type(self._fn).__name__)

    def _read_lrs(self) -> list[Any]:
        lrs = [g.get("lr") for optimizer in self.optimizers for g in optimizer.param_groups]
        return [id(lr) if isinstance(lr, Tensor) else lr for lr in lrs]

    def _read_options(self) -> list[dict[str, Any]]:
        return [{name: value for name, value in group.items()
                 if name in optimizer.defaults and name != "lr"}
                for optimizer in self.optimizers for group in optimizer.param_groups]  # fmt: skip

    def _check_options(self) -> None:
        """The lr reaches the replay; what else an optimizer is told was fixed by the capture."""
        now = self._read_options()
        if now == self._options:
            return
        if len(now) != len(self._options):
            raise RuntimeError("graphed_step(): a group was added to an optimizer after the "
                               "capture; make a new graphed_step")  # fmt: skip
        for group, captured in zip(now, self._options, strict=True):
            for name, value in group.items():
                if value != captured.get(name):
                    raise RuntimeError(f"graphed_step(): {name} of an optimizer is {value}, but "
                                       f"was {captured.get(name)} in the capture; only lr may "
                                       "change: make a new graphed_step")  # fmt: skip


def _describe(value: Any, tensors: list[Tensor]) -> Any:
    """What two calls must have in common; the tensors in it are put into the list."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return "tensor", tuple(value.shape), value.dtype
    if isinstance(value, dict):
        return "dict", [(key, _describe(item, tensors)) for key, item in value.items()]
    if type(value) in (list, tuple):
        return type(value).__name__, [_describe(item, tensors) for item in value]
    # As text a NaN is one; True, 1 and 1.0 differ by their types.
    return "value", type(value), repr(value) if isinstance(value, float | complex) else value


def _is_same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays, which are the same where they are one
        return False


def _rebuild(value: Any, static: Any) -> Any:
    """The same with the graph's tensors in place of those that were given."""
    return _map(value, lambda t: next(static))


def _map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_map(item, change) for item in value)
    return value


def _words(form: Any) -> str:
    kind, *rest = form
    if kind == "tensor":
        return f"{rest[1]}{list(rest[0])}"
    if kind == "value":
        return rest[1] if issubclass(rest[0], float | complex) else repr(rest[1])
    if kind == "dict":
        return ", ".join(f"{key}={_words(item)}" for key, item in rest[0])
    return f"({', '.join(filter(None, map(_words, rest[0])))})"


def graphed_step(
    fn: Callable[..., Any] | None = None, *, warmup: int = 3, device: Any = None
) -> Any:
    """A function whose calls are captured into one CUDA graph and then replayed.

    ``fn`` is a step of training: forward, backward, ``optimizer.step()``, ``zero_grad()``. The
    first ``warmup`` calls run as they are, on real data, and make the optimizer's state; the next
    call captures and runs the graph, and so does each that follows. So each call is one step, and
    n calls leave what n calls of ``fn`` leave.

    Tensors among the arguments, in tuples, lists and dicts too, are copied to tensors of the graph
    on the GPU, from the CPU or from elsewhere; their shapes and all other arguments are the same in
    each call. Tensors that ``fn`` gives are overwritten by the next call, and have no history.
    Gradients are accumulated by several ``backward()`` in ``fn``, or over calls by one that does
    not drop them.

    ``param_group["lr"]`` may change between calls, as a scheduler does: it is written to the GPU
    before the replay. Steps are counted there, without ``capturable=True``. Memory that the first
    calls left over is given back before the capture. Nothing waits for the GPU after it.

    Parameters
    ----------
    fn : callable
        Without it, a decorator is returned.
    warmup : int
        Calls before the capture, 1 or more.
    device : device, optional
        Which GPU; by default the current one.

    Raises
    ------
    RuntimeError
        The step cannot be captured (the message says why), an option of an optimizer other than lr
        has changed since, there is no GPU.
    ValueError
        A call differs from the first in shapes, dtypes or other arguments.

    Examples
    --------
    >>> @flow.cuda.graphed_step
    ... def step(x, y):
    ...     loss = flow.cross_entropy(model(x), y)
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    ...     return loss
    >>> for x, y in batches:
    ...     loss = step(x, y)
    """
    if fn is None:
        return lambda function: GraphedStep(function, warmup, device)
    return GraphedStep(fn, warmup, device)
