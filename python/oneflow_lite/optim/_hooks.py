# SPDX-License-Identifier: Apache-2.0
"""Hooks around an optimizer's step, state_dict and load_state_dict, be they a subclass's own."""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from oneflow_lite.nn._hooks import HookHandle

_Hooks = dict[HookHandle, Callable[..., Any]]

# Those of all optimizers, by what they are around: "step pre" and so on.
everywhere: dict[str, _Hooks] = {"step pre": {}, "step post": {}}


def _step(step: Callable[..., Any], pre: list[Any], post: list[Any], args: Any, kwargs: Any) -> Any:
    self = args[0]
    for hook in pre:
        changed = hook(self, args, kwargs)
        if changed is None:
            continue
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(f"{type(self).__name__}.step(): a pre-hook must give None or a tuple"
                               f" of args and kwargs, not {changed!r}")  # fmt: skip
        args, kwargs = changed
    result = step(*args, **kwargs)
    for hook in post:
        hook(self, args, kwargs)
    return result


def _state_dict(
    method: Callable[..., Any], pre: list[Any], post: list[Any], args: Any, kwargs: Any
) -> Any:
    self = args[0]
    for hook in pre:
        hook(self)
    state = method(*args, **kwargs)
    for hook in post:
        changed = hook(self, state)
        state = state if changed is None else changed
    return state


def _load_state_dict(
    method: Callable[..., Any], pre: list[Any], post: list[Any], args: Any, kwargs: Any
) -> Any:
    self, *rest = args
    state = rest.pop(0) if rest else kwargs.pop("state_dict")
    state = dict(state) if pre and isinstance(state, dict) else state  # hooks may change it
    for hook in pre:
        changed = hook(self, state)
        state = state if changed is None else changed
    result = method(self, state, *rest, **kwargs)
    for hook in post:
        hook(self)
    return result


_METHODS = {"step": _step, "state_dict": _state_dict, "load_state_dict": _load_state_dict}


def _hooked(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    run, steps = _METHODS[name], name == "step"

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if steps and args:
            args[0]._opt_called = True
        own = getattr(args[0], "_hooks", None) if args else None
        if not own and not any(everywhere.values()):
            return method(*args, **kwargs)
        own = {} if own is None else own
        pre = [*everywhere.get(f"{name} pre", {}).values(), *own.get(f"{name} pre", {}).values()]
        post = [*own.get(f"{name} post", {}).values(), *everywhere.get(f"{name} post", {}).values()]
        under_way = args[0].__dict__.setdefault("_under_way", set())
        if name in under_way:  # super().step()
            return method(*args, **kwargs)
        under_way.add(name)
        try:
            return run(method, pre, post, args, kwargs)
        finally:
            under_way.discard(name)

    return call


@contextmanager
def within(optimizer: Hooked, name: str) -> Iterator[None]:
    """A context in which a method of the optimizer is a part of another's, whose hooks run."""
    under_way = optimizer.__dict__.setdefault("_under_way", set())
    under_way.add(name)
    try:
        yield
    finally:
        under_way.discard(name)


class Hooked:
    """What lets an optimizer have hooks: around the outermost of its methods that are called.

    A copy of an optimizer, or one from a pickle, has none.
    """

    _hooks: dict[str, _Hooks]
    _opt_called = False  # whether step() was called

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in _METHODS:
            if inspect.isfunction(method := cls.__dict__.get(name)):
                setattr(cls, name, _hooked(name, method))

    def __getstate__(self) -> dict[str, Any]:
        left = ("_hooks", "_under_way", "_opt_called")
        return {k: v for k, v in self.__dict__.items() if k not in left}

    def _add_hook(self, around: str, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        hooks = self.__dict__.setdefault("_hooks", defaultdict(dict))
        return HookHandle(hooks[around], hook, prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step.

        ``args`` are those of ``step``, the optimizer among them. A hook may give others, as a
        tuple of ``args`` and ``kwargs``.
        """
        return self._add_hook("step pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return self._add_hook("step post", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls ``hook(optimizer)`` before ``state_dict``; with ``prepend`` before other hooks."""
        return self._add_hook("state_dict pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls ``hook(optimizer, state_dict)``, which may give another dict, after it."""
        return self._add_hook("state_dict post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls ``hook(optimizer, state_dict)`` before ``load_state_dict``.

        The dict is a shallow copy of what is loaded; a hook may change it or give another.
        """
        return self._add_hook("load_state_dict pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls ``hook(optimizer)`` after ``load_state_dict``."""
        return self._add_hook("load_state_dict post", hook, prepend)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return HookHandle(everywhere["step pre"], hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return HookHandle(everywhere["step post"], hook)
