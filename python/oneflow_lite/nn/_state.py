# SPDX-License-Identifier: Apache-2.0
"""The state of a module: as a dict, and taken over with errors that name every key that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite._oneflow_lite import ShapeError, Tensor, from_numpy
from oneflow_lite.autograd._grad_mode import no_grad
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
    """The tensor itself, or one over an array's memory."""
    if not isinstance(value, np.ndarray):
        return value
    return from_numpy(value if value.flags.writeable else value.copy())


def check_fit(own: dict[str, Tensor], given: dict[str, Any], strict: bool, what: str) -> LoadResult:
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
    if strict and unexpected:
        problems.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}.")
    if strict and missing:
        problems.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}.")
    if problems:
        raise ShapeError(
            "\n  ".join([f"load_state_dict(): the state does not fit {what}", *problems])
        )
    return LoadResult(missing, unexpected)


def load_into(own: dict[str, Tensor], given: dict[str, Any], strict: bool, what: str) -> LoadResult:
    """Copies ``given[name]`` into ``own[name]`` in place, all or nothing; see :func:`check_fit`."""
    result = check_fit(own, given, strict, what)
    with no_grad():
        for name, tensor in own.items():
            if name in given and tensor is not ANYTHING:
                tensor.copy_(as_tensor(given[name]).detach().to(tensor.device))
    return result


class Stateful:
    """The part of :class:`~oneflow_lite.nn.Module` that saves and loads."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _transient: set[str]
    named_modules: Any
    get_submodule: Any

    def _own_state(self, prefix: str, keep_vars: bool) -> dict[str, Any]:
        own = (*self._parameters.items(), *self._buffers.items())
        return {prefix + name: tensor if keep_vars else tensor.detach() for name, tensor in own
                if tensor is not None and name not in self._transient}  # fmt: skip

    def state_dict(self, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name, detached, sharing memory with the module.

        What two places of the tree share stands under both names. With ``keep_vars`` they are the
        parameters themselves.
        """
        state = self._own_state(prefix, keep_vars)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            state[prefix + _EXTRA] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                state.update(module.state_dict(f"{prefix}{name}.", keep_vars))
        return state

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

    def _load_extra_state(self, expected: dict[str, Any], state_dict: dict[str, Any]) -> None:
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
        expected = self._expected(keep_vars=assign)
        if not assign:
            result = load_into(expected, state_dict, strict, what)
            self._load_extra_state(expected, state_dict)
            return result
        result = check_fit(expected, state_dict, strict, what)
        for path, own in expected.items():
            if path not in state_dict or own is ANYTHING:
                continue
            owner, _, name = path.rpartition(".")
            given = as_tensor(state_dict[path]).detach()
            if isinstance(own, Parameter):
                given = Parameter(given, own.requires_grad)
            setattr(self.get_submodule(owner), name, given)
        self._load_extra_state(expected, state_dict)
        return result
