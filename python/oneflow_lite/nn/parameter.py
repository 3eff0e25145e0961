# SPDX-License-Identifier: Apache-2.0
"""Parameter: a tensor that a module learns."""

from __future__ import annotations

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

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()
