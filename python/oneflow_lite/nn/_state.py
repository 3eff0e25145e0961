# SPDX-License-Identifier: Apache-2.0
"""The state of a module: as a dict, and taken over with errors that name every key that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite._oneflow_lite import ShapeError, Tensor, from_numpy
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.nn._hooks import HookHandle
from oneflow_lite.nn.parameter import Parameter

ANYTHING = object()  # in the place of an extra state: a module takes what it will


_EXTRA = "_extra_state"  # its name in a state


class LoadResult(NamedTuple):
    """The names that only one side had."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        missing, unexpected = self
        return f"LoadResult(missing_keys={missing}, unexpected_keys={unexpected})"


def _mismatch(name: str, own: Any, given: Any) -> str | None:
    if own is ANYTHING:
        return None
    if not isinstance(given, Tensor | np.ndarray):
        return f"{name}: a tensor is needed, not a {type(given).__name__}"
    if tuple(given.shape) != tuple(own.shape):
        return (f"size mismatch for {name}: shape {list(given.shape)} is given, "
                f"{list(own.shape)} is needed")  # fmt: skip
    return None


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def as_tensor(value: Tensor | np.ndarray) -> Tensor:
    """The tensor itself, or one of an array's values, over its memory where that is possible."""
    if not isinstance(value, np.ndarray):
        return value
    plain = value.flags.writeable and value.flags.aligned and min(value.strides, default=0) >= 0
    dtype = value.dtype.newbyteorder("=")
    return from_numpy(value.astype(dtype, order="C", copy=not plain))


def check_fit(
    own: dict[str, Tensor], given: Mapping[str, Any], strict: bool, what: str
) -> LoadResult:
    """The names that only one side has.

    Raises
    ------
    TypeError
        ``given`` is no dict.
    ShapeError
        A ValueError and a RuntimeError, with all missing, unexpected (unless not ``strict``) and
        mismatched names.
    """
    if not isinstance(given, Mapping):
        raise TypeError("load_state_dict(): Expected state_dict to be dict-like, not a "
                        f"{type(given).__name__}")  # fmt: skip
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    common = [name for name in own if name in given]
    problems = list(filter(None, (_mismatch(name, own[name], given[name]) for name in common)))
    result = LoadResult(missing, unexpected)
    _raise_unfit(result, strict, problems, what)
    return result


def _raise_unfit(result: LoadResult, strict: bool, problems: list[str], what: str) -> None:
    if strict and result.unexpected_keys:
        names = _quoted(result.unexpected_keys)
        problems = [f"Unexpected key(s) in state_dict: {names}.", *problems]
    if strict and result.missing_keys:
        problems = [f"Missing key(s) in state_dict: {_quoted(result.missing_keys)}.", *problems]
    if problems:
        raise ShapeError(
            "\n  ".join([f"load_state_dict(): the state does not fit {what}", *problems])
        )


def load_into(
    own: dict[str, Tensor], given: Mapping[str, Any], strict: bool, what: str
) -> LoadResult:
    """Copies ``given[name]`` into ``own[name]`` in place, all or nothing; see :func:`check_fit`."""
    result = check_fit(own, given, strict, what)
    taken = [(tensor, as_tensor(given[name])) for name, tensor in own.items()
             if name in given and tensor is not ANYTHING]  # fmt: skip
    with no_grad():
        for tensor, value in taken:
            tensor.copy_(value.detach().to(tensor.device))
    return result


def _overrides(module: Any) -> bool:
    return type(module)._load_from_state_dict is not Stateful._load_from_state_dict


class Stateful:
    """The part of :class:`~oneflow_lite.nn.Module` that saves and loads."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _transient: set[str]
    _state_pre_hooks: dict[HookHandle, Callable]
    _state_hooks: dict[HookHandle, Callable]
    _load_pre_hooks: dict[HookHandle, Callable]
    _load_hooks: dict[HookHandle, Callable]
    named_modules: Any
    get_submodule: Any

    def _own_state(self, prefix: str, keep_vars: bool) -> dict[str, Any]:
        own = (*self._parameters.items(), *self._buffers.items())
        return {prefix + name: tensor if keep_vars else tensor.detach() for name, tensor in own
                if tensor is not None and name not in self._transient}  # fmt: skip

    def state_dict(
        self,
        prefix: str = "",
        keep_vars: bool = False,
        *,
        destination: dict[str, Any] | None = None,
    ) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name, detached, sharing memory with the module.

        What two places of the tree share stands under both names. With ``keep_vars`` they are the
        parameters themselves. A ``destination`` is filled and given back.
        """
        for hook in tuple(self._state_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        state = {} if destination is None else destination
        self._save_to_state_dict(state, prefix, keep_vars)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            state[prefix + _EXTRA] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                below = module.state_dict(prefix=f"{prefix}{name}.", keep_vars=keep_vars)
                state.update(below)
        for hook in tuple(self._state_hooks.values()):
            if hook(self, state, prefix, {}) is not None:
                raise RuntimeError("state_dict post-hook must return None: it changes the dict")
        return state

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Puts this module's own part into ``state_dict``; published layers override it."""
        destination.update(self._own_state(prefix, keep_vars))

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Lets this module's own part of a state be loaded; published layers override it.

        An override changes ``state_dict``, which has what begins with the prefix, and calls this
        one; the tensors are copied later. One that does not call it has loaded them itself.
        """
        own = self._own_state(prefix, False)
        missing_keys.extend(name for name in own if name not in state_dict)
        self.__dict__["_loads"] = True

    def register_state_dict_pre_hook(self, hook: Callable) -> HookHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before this module's part of ``state_dict``."""
        return HookHandle(self._state_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> HookHandle:
        """Calls ``hook(module, state, prefix, {})`` after this module's part of ``state_dict``.

        The hook changes the dict in place; the names of this module and of those below begin with
        the prefix.
        """
        return HookHandle(self._state_hooks, hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable) -> HookHandle:
        """Calls a hook with this module's part of the state to be loaded, which it may change.

        It is ``hook(module, state, prefix, {}, strict, missing_keys, unexpected_keys, errors)``.
        What is added to the last three lists is reported as if the state had it.
        """
        return HookHandle(self._load_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> HookHandle:
        def without_module(module: Any, *args: Any) -> None:
            hook(*args)

        return self.register_load_state_dict_pre_hook(hook if with_module else without_module)

    def register_load_state_dict_post_hook(self, hook: Callable) -> HookHandle:
        """Calls ``hook(module, result)`` after a state was loaded.

        ``result`` is the LoadResult of the whole; names that the hook takes off its lists are no
        errors.
        """
        return HookHandle(self._load_hooks, hook)

    def _before_loading(
        self, state_dict: Mapping[str, Any], strict: bool, what: str
    ) -> tuple[Mapping[str, Any], LoadResult, set[str]]:
        """The state, as hooks and overrides want it, the names they report, and those they have
        dealt with.
        """
        result, errors = LoadResult([], []), []
        done: set[str] = set()
        modules = [(p, m) for p, m in self.named_modules(remove_duplicate=False)
                   if m._load_pre_hooks or _overrides(m)]  # fmt: skip
        if modules and isinstance(state_dict, Mapping):
            state_dict = dict(state_dict)
            for path, module in modules:
                prefix = path + "." if path else ""
                own = {k: state_dict.pop(k) for k in list(state_dict)
                       if isinstance(k, str) and k.startswith(prefix)}  # fmt: skip
                for hook in tuple(module._load_pre_hooks.values()):
                    hook(module, own, prefix, {}, strict, *result, errors)
                if _overrides(module):
                    module._load_from_state_dict(own, prefix, {}, strict, *result, errors)
                    names = set(module._own_state(prefix, False))
                    if module.__dict__.pop("_loads", False):
                        done |= names - own.keys()
                    else:
                        done |= names
                        own = {k: v for k, v in own.items() if k not in names}
                state_dict.update(own)
            _raise_unfit(result, False, errors, what)
        return state_dict, result, done

    def _after_loading(self, result: LoadResult) -> None:
        for module in filter(None, self._modules.values()):
            module._after_loading(result)
        for hook in tuple(self._load_hooks.values()):
            if hook(self, result) is not None:
                raise RuntimeError("load_state_dict post-hook must return None: it changes the "
                                   "lists of names")  # fmt: skip

    def get_extra_state(self) -> Any:
        """What the state has beside tensors, for a subclass to define with ``set_extra_state``."""
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Takes over what ``get_extra_state`` gave; called by ``load_state_dict``."""
        raise RuntimeError(f"{type(self).__name__} does not define set_extra_state()")

    def _expected(self, keep_vars: bool = False) -> dict[str, Any]:
        """What a state to load must have: as ``state_dict``, with ANYTHING for extra states."""
        expected: dict[str, Any] = {}
        for path, module in self.named_modules(remove_duplicate=False):
            dot = path + "." if path else ""
            expected.update(module._own_state(dot, keep_vars))
            if type(module).set_extra_state is not Stateful.set_extra_state:
                expected[dot + _EXTRA] = ANYTHING
        return expected

    def _load_extra_state(self, expected: dict[str, Any], state_dict: Mapping[str, Any]) -> None:
        for path, own in expected.items():
            if own is ANYTHING and path in state_dict:
                self.get_submodule(path.rpartition(".")[0]).set_extra_state(state_dict[path])

    def load_state_dict(
        self, state_dict: dict[str, Tensor], strict: bool = True, assign: bool = False
    ) -> LoadResult:
        """Copies the tensors of a state into this module's, whatever their device and dtype.

        Parameters
        ----------
        state_dict : dict
            As ``state_dict`` gives it; arrays are taken as well.
        strict : bool
            Names that only one side has are errors.
        assign : bool
            Take the tensors themselves instead of copying them: of their device and dtype.

        Returns
        -------
        LoadResult
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        ShapeError
            A ValueError and a RuntimeError, with all missing, unexpected and mismatched names;
            nothing has been copied then.
        """
        what = type(self).__name__
        state_dict, reported, done = self._before_loading(state_dict, strict, what)
        expected = {k: v for k, v in self._expected(keep_vars=assign).items() if k not in done}
        # Hooks have the last word on names.
        at_once = strict and not any(m._load_hooks for _, m in self.named_modules())
        if at_once and any(reported):  # nothing is copied then
            found = check_fit(expected, state_dict, False, what)
            both = (a + b for a, b in zip(found, reported, strict=True))
            _raise_unfit(LoadResult(*both), strict, [], what)
        load = self._assign if assign else load_into
        result = load(expected, state_dict, at_once, what)
        self._load_extra_state(expected, state_dict)
        result.missing_keys.extend(reported.missing_keys)
        result.unexpected_keys.extend(reported.unexpected_keys)
        self._after_loading(result)
        _raise_unfit(result, strict, [], what)
        return result

    def _assign(
        self, expected: dict[str, Any], state_dict: Mapping[str, Any], strict: bool, what: str
    ) -> LoadResult:
        result = check_fit(expected, state_dict, strict, what)
        taken = {}  # all of them before the first is assigned: any may be an error
        for path, own in expected.items():
            if path not in state_dict or own is ANYTHING:
                continue
            given = as_tensor(state_dict[path]).detach()
            is_parameter = isinstance(own, Parameter)
            taken[path] = Parameter(given, own.requires_grad) if is_parameter else given
        for path, given in taken.items():
            owner, _, name = path.rpartition(".")
            setattr(self.get_submodule(owner), name, given)
        return result
