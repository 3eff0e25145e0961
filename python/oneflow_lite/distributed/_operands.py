# SPDX-License-Identifier: Apache-2.0
"""What a collective may be given: tensors whose elements lie in this process's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.distributed._world import Group

if TYPE_CHECKING:
    from oneflow_lite import Tensor


def check_local(function: str, argument: str, given: Any) -> None:
    """Raises, in the name of the function that was called, for what has no elements here.

    Raises
    ------
    TypeError
        For what is no tensor.
    RuntimeError
        For a meta tensor.
    ValueError
        For a global tensor, whose parts other processes have.
    """
    if not isinstance(given, _ext.Tensor):
        raise TypeError(f"{function}(): {argument} must be a Tensor, not {type(given).__name__}")
    if given.is_meta:
        raise RuntimeError(f"{function}(): {argument} is a meta tensor, which has no data")
    if given.is_global:
        raise ValueError(f"{function}(): {argument} is a global tensor; give its to_local()")


def check_list(function: str, argument: str, given: Sequence[Tensor], group: Group) -> None:
    """Raises for what is no list or tuple of a local tensor for each rank of the group."""
    if not isinstance(given, list | tuple):
        raise TypeError(
            f"{function}(): {argument} must be a list or tuple of Tensors, not "
            f"{type(given).__name__}"
        )
    if len(given) != group.size:
        raise ValueError(
            f"{function}(): {argument} has {len(given)} tensors for {group.size} ranks"
        )
    for i, tensor in enumerate(given):
        check_local(function, f"{argument}[{i}]", tensor)
