# SPDX-License-Identifier: Apache-2.0
"""Copying a state dict into tensors, with errors that name every key that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from oneflow_lite._oneflow_lite import ShapeError, Tensor, from_numpy
from oneflow_lite.autograd._grad_mode import no_grad


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
    if not isinstance(own, Tensor):  # an extra state: whatever the module takes
        return None
    if not isinstance(given, Tensor | np.ndarray):
        return f"{name}: a tensor is needed, not a {type(given).__name__}"
    if tuple(given.shape) != tuple(own.shape):
        return f"{name}: shape {list(given.shape)} is given, {list(own.shape)} is needed"
    return None


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
        raise TypeError(f"load_state_dict(): a dict is needed, not {type(given).__name__}")
    missing = [name for name in own if name not in given]
    unexpected = [name for name in given if name not in own]
    common = [name for name in own if name in given]
    problems = list(filter(None, (_mismatch(name, own[name], given[name]) for name in common)))
    if strict and unexpected:
        problems.insert(0, "unexpected: " + ", ".join(map(str, unexpected)))
    if strict and missing:
        problems.insert(0, "missing: " + ", ".join(missing))
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
            if name in given and isinstance(tensor, Tensor):
                tensor.copy_(as_tensor(given[name]).detach().to(tensor.device))
    return result
