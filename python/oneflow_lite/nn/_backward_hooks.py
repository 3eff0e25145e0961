# SPDX-License-Identifier: Apache-2.0
"""Calls hooks with the gradients of what goes into a module and of what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.autograd.function import Function


class _Seen(Function):
    """Passes tensors on; ``see(grads)`` in backward may give other gradients."""

    @staticmethod
    def forward(ctx: Any, see: Callable[[tuple], tuple], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.see = see
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return (None, *ctx.see(grads))

    @classmethod
    def _passed_on(cls, x: Tensor, flows: bool) -> Tensor:
        """Its own tensor: what a module gets or gives may be changed in place."""
        return x.detach()


def _watched(values: Any, see: Callable[[tuple], tuple]) -> tuple[Any, list[bool]]:
    """The tensors among a tensor or a tuple through ``see``, and which they are."""
    several = isinstance(values, tuple | list)
    given = list(values) if several else [values]
    watched = [isinstance(v, Tensor) and v.requires_grad for v in given]
    if any(watched):
        passed = iter(_Seen.apply(see, *(v for v, w in zip(given, watched, strict=True) if w)))
        given = [next(passed) if w else v for v, w in zip(given, watched, strict=True)]
    if not several:
        return given[0], watched
    made = getattr(type(values), "_make", type(values))  # of a named tuple, or tuple and list
    return made(given), watched


def _spread(grads: tuple, watched: list[bool]) -> tuple:
    found = iter(grads)
    return tuple(next(found) if w else None for w in watched)


class WatchedCall:
    """One call of a module with backward hooks: watches its arguments, then its result."""

    def __init__(
        self, module: Any, hooks: Sequence[Callable], pre_hooks: Sequence[Callable] = ()
    ) -> None:
        self._module, self._hooks, self._pre_hooks = module, hooks, pre_hooks
        self._inputs: list[bool] = []
        self._outputs: list[bool] = []
        self._grad_output: tuple = ()

    def arguments(self, args: tuple) -> tuple:
        """The arguments to go on with."""
        args, self._inputs = _watched(args, self._see_inputs)
        return args

    def result(self, result: Any) -> Any:
        """The result to give."""
        result, self._outputs = _watched(result, self._see_outputs)
        return result

    def _see_outputs(self, grads: tuple) -> tuple:
        self._grad_output = _spread(grads, self._outputs)
        for hook in self._pre_hooks:
            changed = hook(self._module, self._grad_output)
            if changed is not None:
                self._grad_output = self._fit("pre-hook", changed, len(self._outputs))
        if not any(self._inputs):  # then nothing comes back to the arguments
            if any(g is not None for g in self._call((None,) * len(self._inputs))):
                raise RuntimeError(f"{type(self._module).__name__}: a backward hook gave gradients "
                                   "where no input requires gradient")  # fmt: skip
        return tuple(g for g, w in zip(self._grad_output, self._outputs, strict=True) if w)

    def _see_inputs(self, grads: tuple) -> tuple:
        changed = self._call(_spread(grads, self._inputs))
        return tuple(g for g, w in zip(changed, self._inputs, strict=True) if w)

    def _call(self, grad_input: tuple) -> tuple:
        for hook in self._hooks:
            changed = hook(self._module, grad_input, self._grad_output)
            if changed is not None:
                grad_input = self._fit("hook", changed, len(grad_input))
        return grad_input

    def _fit(self, what: str, changed: Any, wanted: int) -> tuple:
        given = changed if isinstance(changed, tuple) else (changed,)
        if len(given) != wanted:
            raise RuntimeError(f"{type(self._module).__name__}: a backward {what} gave gradients: "
                               f"got {len(given)}, but expected {wanted}")  # fmt: skip
        return given
