# SPDX-License-Identifier: Apache-2.0
"""scatter with its older arguments: a number, a reduction by name."""

from __future__ import annotations

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor

_Source = Tensor | float | None
_scatter_ = Tensor.scatter_


def _source(name: str, src: _Source, value: float | None) -> Tensor | float:
    if (src is None) == (value is None):
        raise TypeError(f"{name}() takes src or value")
    return value if src is None else src  # type: ignore[return-value]


def _with_reduction(
    name: str, input: Tensor, dim: int, index: Tensor, source: Tensor | float, reduce: str
) -> Tensor:
    if reduce not in ("add", "multiply"):
        raise ValueError(f'{name}(): reduce is "{reduce}", but it must be "add" or "multiply"')
    if not isinstance(source, Tensor):
        number = _C.full([], source, dtype=input.dtype, device=input.device)
        source = number.expand(index.shape)
    if reduce == "add":
        return _C.scatter_add(input, dim, index, source)
    return _C.scatter_reduce(input, dim, index, source, "prod")


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: _Source = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
) -> Tensor:
    """``input`` with ``src``, a tensor or a number, at the places that ``index`` gives along a dim.

    A place out of range is an IndexError on the CPU; on CUDA nothing goes there.

    Parameters
    ----------
    index : Tensor
        int64 or int32, of as many dims as the input.
    src : Tensor or float
        At least as large as the index, of the input's dtype; ``value``, a number, stands for it.
    reduce : str, optional
        "add" or "multiply": what is there, and all that meets there, is joined so.
    """
    source = _source("scatter", src, value)
    if reduce is None:
        return _C.scatter(input, dim, index, source)
    return _with_reduction("scatter", input, dim, index, source, reduce)


def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: _Source = None,
    *,
    value: float | None = None,
    reduce: str | None = None,
) -> Tensor:
    """Overwrites the tensor with the result of ``scatter``."""
    source = _source("scatter_", src, value)
    if reduce is None:
        return _scatter_(self, dim, index, source)
    recorded = self.requires_grad and _ext.is_grad_enabled()
    x = self.clone() if recorded else self
    return self.copy_(_with_reduction("scatter_", x, dim, index, source, reduce))


FUNCTIONS = (scatter,)
METHODS = (scatter, scatter_)
