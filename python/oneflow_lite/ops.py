# SPDX-License-Identifier: Apache-2.0
"""What ops there are, below the functions.

>>> print(flow.ops.describe("softmax"))
"""

from __future__ import annotations

import builtins

from oneflow_lite import _oneflow_lite as _ext

__all__ = ["describe", "list"]


def list() -> builtins.list[str]:
    """The names of all ops, sorted."""
    return _ext.list_ops()


def describe(name: str) -> str:
    """Schema, place, kernels and gradient of an op as text to read.

    Parameters
    ----------
    name : str
        One of :func:`list`.

    Raises
    ------
    NotImplementedError
        There is no such op.
    """
    return _ext.describe_op(name)
