# SPDX-License-Identifier: Apache-2.0
"""A forward with a backward of its own: one class, no name in the registry.

>>> class Cube(flow.autograd.Function):
...     @staticmethod
...     def forward(ctx, x):
...         ctx.save_for_backward(x)
...         return x * x * x
...     @staticmethod
...     def backward(ctx, dy):
...         (x,) = ctx.saved_tensors
...         return dy * 3 * x * x
>>> y = Cube.apply(x)

:func:`oneflow_lite.register_op` makes an op of the same two functions: that one has a schema, shape
inference, checks, and shows in the profiler.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd._grad_mode import no_grad


class FunctionCtx:
    """What forward leaves for backward: tensors by ``save_for_backward``, all else as attributes.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of forward whether its gradient is wanted.
    saved_tensors : tuple
        In backward, what was saved; RuntimeError where it was changed in place since.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._saved: tuple[Tensor | None, ...] = ()  # of forward
        self._given: dict[int, tuple[Tensor | None, ...]] = {}  # to backward, by thread
        self._constant: tuple[Tensor, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps inputs, outputs, or what lies between, for backward; called once, in forward."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward(): takes Tensors, not {type(t).__name__}; "
                                "keep other things as attributes of ctx")  # fmt: skip
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        given = self._given.get(threading.get_ident())
        if given is None:  # in a thread that backward started, or in forward
            given = next(iter(self._given.copy().values()), self._saved)
        return given

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """No gradient flows to these outputs."""
        self._constant = outputs

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Forward changed these inputs in place, and gives them as outputs."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for an output without a gradient."""
        self._materialize = value


class Function:
    """Base class: ``forward(ctx, *args)`` and ``backward(ctx, *grads)``, static methods.

    ``forward`` runs unrecorded and gives a tensor or a tuple. ``backward`` gets the gradient of
    each output and gives one per argument of forward, None for what has none; written with
    functions of oneflow_lite it can be differentiated again. Instead of taking ``ctx``, forward may
    leave it to ``setup_context(ctx, inputs, output)``.

    An output that is an input, or a view of one, is refused with a RuntimeError where it is changed
    in place, and where it is used after its memory was: its gradient would pass ``backward`` by.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    _defaults: tuple[Any, ...]

    @classmethod
    def _with_defaults(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments given and the defaults of those left out at the end."""
        # Once per class: inspect.signature takes longer than a small forward.
        if "_defaults" not in cls.__dict__:
            cls._defaults = _positional_defaults(cls.forward)
        absent = cls._defaults[len(args) :]
        # A wrapper may give forward more than it was given itself.
        return args if any(d is inspect.Parameter.empty for d in absent) else (*args, *absent)

    @classmethod
    def _by_place(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of forward in its order, up to the last one that was given."""
        own = () if hasattr(cls, "setup_context") else (None,)  # ctx
        try:
            bound = inspect.signature(cls.forward).bind(*own, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}.apply(): {error}") from None
        parameters = list(bound.signature.parameters.values())
        given = [i for i, p in enumerate(parameters) if p.name in bound.arguments]
        last = parameters[given[-1]]
        if last.kind > inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(f"{cls.__name__}.apply(): forward takes {last.name} by keyword alone, "
                            "so that backward has no place for its gradient")  # fmt: skip
        bound.apply_defaults()
        if last.kind == inspect.Parameter.VAR_POSITIONAL:
            return bound.args[len(own) :]
        return bound.args[len(own) : given[-1] + 1]

    @classmethod
    def _check_dirty(cls, dirty: set[int], args: tuple[Any, ...], outputs: list[Any]) -> None:
        if dirty - {id(o) for o in outputs} or dirty - {id(a) for a in args}:
            raise RuntimeError(f"{cls.__name__}: what mark_dirty names must be an input, and "
                               "an output")  # fmt: skip
        if any(id(a) in dirty and a.requires_grad and a.is_leaf for a in args):
            raise RuntimeError(f"{cls.__name__}: a leaf that requires grad cannot be changed in "
                               "place; use no_grad or detach")  # fmt: skip

    @classmethod
    def _passed_on(cls, x: Tensor, flows: bool) -> Tensor:
        """Another tensor of the input's memory, as a view of it where gradients flow back."""
        if not flows:
            return x.detach()
        with no_grad():
            return x.view(x.shape)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise TypeError(f"{name}: an instance cannot be called; write {name}.apply(...)")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls forward, and records backward where an argument requires a gradient.

        Arguments by keyword are put where forward has them. Backward gives one gradient per
        argument of forward up to the last that was given.
        """
        if not hasattr(cls, "forward"):
            raise NotImplementedError(f"{cls.__name__} does not define forward()")
        if kwargs:
            args = cls._by_place(args, kwargs)
        needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        ctx = FunctionCtx(needs)
        with no_grad():
            if hasattr(cls, "setup_context"):
                result = cls.forward(*args)
                cls.setup_context(ctx, cls._with_defaults(args), result)
            else:
                result = cls.forward(ctx, *args)
        saved, ctx._saved = ctx._saved, ()
        dirty, ctx._dirty = {id(t) for t in ctx._dirty}, ()
        if not (_ext.is_grad_enabled() and any(needs)):
            return result
        if not hasattr(cls, "backward"):
            raise NotImplementedError(f"{cls.__name__} does not define backward(), but argument "
                                      f"{needs.index(True)} requires grad")  # fmt: skip
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        constant = {id(t) for t in ctx._constant}
        flows = [
            isinstance(o, Tensor) and o.dtype.is_floating_point and id(o) not in constant
            for o in outputs
        ]
        cls._check_dirty(dirty, args, outputs)
        # What forward passes on unchanged gets a history of its own.
        passed = {id(a) for a in args} - dirty
        outputs = [
            cls._passed_on(o, f) if id(o) in passed and isinstance(o, Tensor) else o
            for o, f in zip(outputs, flows, strict=True)
        ]
        recorded = [o if f else None for o, f in zip(outputs, flows, strict=True)]
        inputs = [a for a in args if isinstance(a, Tensor)]
        tensors = [o if isinstance(o, Tensor) else None for o in outputs]
        backward = _Backward(cls, ctx, [isinstance(a, Tensor) for a in args], tensors)
        _ext.record_function(f"{cls.__name__}Backward", inputs, recorded, saved, backward)
        return tuple(outputs) if isinstance(result, tuple | list) else outputs[0]


def _positional_defaults(forward: Callable[..., Any]) -> tuple[Any, ...]:
    """The default of each argument by place, ``Parameter.empty`` where there is none."""
    try:
        parameters = inspect.signature(forward).parameters.values()
    except (TypeError, ValueError):  # some functions of C have no signature, and no defaults to see
        return ()
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.default for p in parameters if p.kind in by_place)


class _Backward:
    """What the node calls: the user's backward, its gradients of the tensor arguments."""

    def __init__(
        self, cls: type[Function], ctx: FunctionCtx, tensors: list[bool], outputs: list[Any]
    ) -> None:
        self.cls, self.ctx, self.tensors = cls, ctx, tensors
        # Not the outputs themselves: they keep the node, and the node keeps this.
        self.specs = [None if o is None else (o.shape, o.dtype, o.device) for o in outputs]

    def _gradient(self, grad: Tensor | None, spec: Any) -> Tensor | None:
        if grad is not None or spec is None or not self.ctx._materialize:
            return grad
        shape, dtype, device = spec
        return _C.zeros(shape, dtype=dtype, device=device)

    def __call__(
        self, saved: tuple[Tensor | None, ...], grads: tuple[Tensor | None, ...]
    ) -> list[Tensor | None]:
        given = [self._gradient(g, spec) for g, spec in zip(grads, self.specs, strict=True)]
        # Several threads may run backward through one graph, and backward may do so again.
        thread, all_given = threading.get_ident(), self.ctx._given
        before = all_given.get(thread)
        all_given[thread] = saved
        try:
            results = self.cls.backward(self.ctx, *given)
        finally:
            if before is None:
                del all_given[thread]
            else:
                all_given[thread] = before
        results = list(results) if isinstance(results, tuple | list) else [results]
        while len(results) > len(self.tensors) and results[-1] is None:  # of left-out arguments
            results.pop()
        if len(results) != len(self.tensors):
            raise RuntimeError(f"{self.cls.__name__}: backward gave {len(results)} gradients for "
                               f"{len(self.tensors)} arguments of forward")  # fmt: skip
        return [g for g, is_tensor in zip(results, self.tensors, strict=True) if is_tensor]


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """For a backward that cannot be differentiated again: it runs unrecorded."""

    @functools.wraps(backward)
    def wrapper(ctx: FunctionCtx, *grads: Tensor | None) -> Any:
        with no_grad():
            return backward(ctx, *grads)

    return wrapper
