# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions of elements over tensors: ``np.sqrt(x)``, ``array + x``, ``array += x``.

The operators of arrays count an array as a tensor of its dtype, as the operators of tensors do; all
other functions are NumPy's own, dtypes included. Results are tensors in host memory, unless they
are written to an array. A tensor that requires grad, or is on a GPU, is refused.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._named_errors import renamed
from oneflow_lite._oneflow_lite import Tensor

# What an array's operators call: the methods of a tensor that stands on the left, on the right.
_OPERATORS = {
    np.add: ("__add__", "__radd__"), np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"), np.true_divide: ("__truediv__", "__rtruediv__"),
    np.floor_divide: ("__floordiv__", "__rfloordiv__"), np.remainder: ("__mod__", "__rmod__"),
    np.power: ("__pow__", "__rpow__"), np.matmul: ("__matmul__", "__rmatmul__"),
    np.bitwise_and: ("__and__", "__rand__"), np.bitwise_or: ("__or__", "__ror__"),
    np.bitwise_xor: ("__xor__", "__rxor__"), np.left_shift: ("__lshift__", "__rlshift__"),
    np.right_shift: ("__rshift__", "__rrshift__"), np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"), np.less: ("__lt__", "__gt__"),
    np.less_equal: ("__le__", "__ge__"), np.greater: ("__gt__", "__lt__"),
    np.greater_equal: ("__ge__", "__le__"),
}  # fmt: skip
_KNOWN = (Tensor, np.ndarray, np.generic, numbers.Number, list, tuple)


def _array(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


def _tensor(name: str, result: Any) -> Any:
    """What NumPy computed as a tensor; unsigned integers of more than 8 bits as int64."""
    if isinstance(result, tuple):
        return tuple(_tensor(name, part) for part in result)
    if not isinstance(result, np.ndarray | np.generic):
        return result
    if result.dtype.kind == "u" and result.dtype.itemsize > 1:
        if result.dtype.itemsize == 8 and np.any(result > np.iinfo(np.int64).max):
            raise OverflowError(f"{name}(): a result is too large for int64")
        result = result.astype(np.int64)
    try:
        return _ext.tensor(result)
    except _ext.DTypeError:
        raise _ext.DTypeError(f"{name}(): the result has dtype {result.dtype}, which no tensor has;"
                              " call .numpy() on the tensors first") from None  # fmt: skip


def _operate(ufunc: Any, first: Any, second: Any) -> Any:
    on_left = isinstance(first, Tensor)
    tensor, other = (first, second) if on_left else (second, first)
    other = np.asarray(other) if isinstance(other, list | tuple) else other
    if (
        isinstance(other, np.ndarray)
        and other.ndim == 0
        and (tensor.requires_grad or tensor.device.type != "cpu")
    ):
        other = other[()]  # what NumPy makes of a number of its own, which any tensor may meet
    return getattr(tensor, _OPERATORS[ufunc][not on_left])(other)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """A function of elements of NumPy's, or its reduce, accumulate, outer, reduceat or at."""
    out = kwargs.pop("out", ())
    where = kwargs.get("where", True)
    name = f"numpy.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    if not all(isinstance(x, _KNOWN) for x in inputs if x is not None):
        return NotImplemented  # another class that knows of tensors
    if method == "__call__" and not out and not kwargs and ufunc in _OPERATORS:
        return _operate(ufunc, *inputs)
    for x in (*inputs, *out, where):
        if isinstance(x, Tensor):
            _ext.check_beside_array(name, x)
    if isinstance(where, Tensor):
        kwargs["where"] = where.numpy()
    try:
        return _apply(name, ufunc, method, inputs, out, kwargs)
    except Exception as error:
        raise renamed(error, name)  # noqa: B904  (it is the same exception)


def _apply(
    name: str, ufunc: Any, method: str, inputs: Any, out: Any, kwargs: dict[str, Any]
) -> Any:
    """What NumPy computes of arrays, as tensors."""
    function = getattr(ufunc, method)
    if method == "at":  # changes its first input
        changed = _array(inputs[0])
        changed = changed.copy() if isinstance(inputs[0], Tensor) else changed
        function(changed, *map(_array, inputs[1:]), **kwargs)
        if isinstance(inputs[0], Tensor):
            inputs[0].copy_(_ext.from_numpy(changed))
        return None
    if not out:
        return _tensor(name, function(*map(_array, inputs), **kwargs))
    # Written aside first, so that a tensor's history learns of the change.
    targets = tuple(t.numpy().copy() if isinstance(t, Tensor) else t for t in out)
    found = function(*map(_array, inputs), out=targets, **kwargs)
    results = found if isinstance(found, tuple) else (found,)
    written = tuple(
        given.copy_(_ext.from_numpy(target)) if isinstance(given, Tensor)
        else given if given is not None else _tensor(name, result)
        for given, target, result in zip(out, targets, results, strict=True)
    )  # fmt: skip
    return written if isinstance(found, tuple) else written[0]


def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """A result of one of NumPy's other functions (np.linalg.inv, np.cumsum) as a tensor."""
    try:
        return _tensor("numpy", array)
    except _ext.DTypeError:
        return array  # of complex numbers, say
