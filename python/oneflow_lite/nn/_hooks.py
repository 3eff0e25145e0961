# SPDX-License-Identifier: Apache-2.0
"""Hooks around a module's call: their handles, and the call that runs them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from oneflow_lite.nn._backward_hooks import WatchedCall


class HookHandle:
    """What registering a hook gives; ``remove()`` takes the hook away again.

    As a context manager it takes the hook away at the end of the block.
    """

    def __init__(
        self,
        hooks: dict[HookHandle, Callable],
        hook: Callable,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> None:
        if not callable(hook):
            raise TypeError(f"argument 'hook' must be callable, not {type(hook).__name__}")
        self._hooks = hooks
        self.with_kwargs, self.always_call = with_kwargs, always_call
        others = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[self] = hook
        hooks.update(others)

    def remove(self) -> None:
        """Takes the hook away; calling it twice does no harm."""
        self._hooks.pop(self, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _arguments(module: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    for handle, hook in tuple(module._pre_hooks.items()):
        if handle.with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError("a forward pre-hook with kwargs must give None or a tuple of "
                                   f"args and kwargs, not {changed!r}")  # fmt: skip
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def call_with_hooks(module: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The pre-hooks, ``forward`` and the hooks of a module, its backward hooks watching."""
    called: set[HookHandle] = set()
    result: Any = None

    def after(handle: HookHandle, hook: Callable) -> None:
        nonlocal result
        called.add(handle)
        given = (module, args, kwargs, result) if handle.with_kwargs else (module, args, result)
        changed = hook(*given)
        if changed is not None:
            result = changed

    try:
        args, kwargs = _arguments(module, args, kwargs)
        hooks, pre_hooks = module._backward_hooks, module._backward_pre_hooks
        watched = WatchedCall(module, tuple(hooks.values()), tuple(pre_hooks.values()))
        args = watched.arguments(args) if hooks else args
        result = module.forward(*args, **kwargs)
        for handle, hook in tuple(module._hooks.items()):
            after(handle, hook)
        return watched.result(result) if hooks or pre_hooks else result
    except Exception:
        for handle, hook in tuple(module._hooks.items()):
            if handle.always_call and handle not in called:
                try:
                    after(handle, hook)
                except Exception as error:  # the first one is what went wrong
                    text = f"a forward hook with always_call=True raised an exception, too: {error}"
                    warnings.warn(text, stacklevel=3)
        raise
