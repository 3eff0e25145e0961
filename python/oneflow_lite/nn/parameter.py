# SPDX-License-Identifier: Apache-2.0
"""Parameter and Buffer: tensors that a module keeps by the attribute they are assigned to."""

from __future__ import annotations

from typing import Any

from oneflow_lite._oneflow_lite import _C, Tensor


class Parameter(Tensor):
    """A leaf tensor that :class:`~oneflow_lite.nn.Module` registers when it is assigned to one.

    Parameters
    ----------
    data : Tensor, optional
        Its values, shared and not copied; without it there are none.
    requires_grad : bool
        False freezes it.

    Raises
    ------
    TypeError
        Where ``data`` is no tensor.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _C.empty([0])
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): data must be a Tensor, not {type(data).__name__}")
        return super().__new__(cls, data, requires_grad)  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict[Any, Any]) -> Parameter:
        """A copy without the gradient: that of a model starts with none."""
        copied = super().__deepcopy__(memo)
        copied.grad = None
        return copied  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that :class:`~oneflow_lite.nn.Module` registers as a buffer when it is assigned.

    Parameters
    ----------
    data : Tensor, optional
        Its values, shared and not copied; without it there are none.
    persistent : bool
        False leaves it out of ``state_dict``.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = _C.empty([0])
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer(): data must be a Tensor, not {type(data).__name__}")
        self = super().__new__(cls, data, False)
        self.persistent = persistent
        return self  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "Buffer containing:\n" + super().__repr__()
