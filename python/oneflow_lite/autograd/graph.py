# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps for backward, and hooks that change how it is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import Tensor, device

__all__ = ["save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:
    """A context in which ``pack_hook`` is called for each tensor that autograd saves.

    Parameters
    ----------
    pack_hook : callable
        Takes the tensor to be saved, gives anything.
    unpack_hook : callable
        Takes what ``pack_hook`` gave, when backward needs it; gives a tensor of the same values,
        shape, dtype and device.

    Notes
    -----
    Per thread; of nested contexts the innermost counts.

    Examples
    --------
    >>> with flow.autograd.graph.saved_tensors_hooks(write_to_disk, read_from_disk):
    ...     loss = model(x)
    >>> loss.backward()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(hook):
                raise TypeError(f"{type(self).__name__}(): {name} must be callable, not "
                                f"{type(hook).__name__}")  # fmt: skip
        self._hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _ext.push_saved_tensors_hooks(*self._hooks)

    def __exit__(self, *_: object) -> None:
        _ext.pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context in which saved tensors wait for backward in the host's memory.

    ``pin_memory`` is taken and without effect.
    """

    def __init__(self, pin_memory: bool = False) -> None:
        super().__init__(self._pack, self._unpack)

    @staticmethod
    def _pack(x: Tensor) -> tuple[device, Tensor]:
        return x.device, x.detach().cpu()

    @staticmethod
    def _unpack(packed: tuple[device, Tensor]) -> Tensor:
        where, x = packed
        return x.to(where)


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
