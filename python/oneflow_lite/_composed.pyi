# SPDX-License-Identifier: Apache-2.0
"""The methods of Tensor that Python composes, for type checkers: see _math.py and others."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal, overload

from oneflow_lite._numerical import Histogram
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite._oneflow_lite import dtype as _dtype

_Operand = Tensor | builtins.float

class TensorFunctions:
    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor: ...
    def dist(self, other: Tensor, p: builtins.float = 2) -> Tensor: ...
    def histogram(
        self,
        bins: builtins.int | Tensor = 100,
        *,
        range: tuple[builtins.float, builtins.float] | None = None,
        weight: Tensor | None = None,
        density: builtins.bool = False,
    ) -> Histogram: ...
    def get_device(self) -> builtins.int: ...
    def index_put(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor: ...
    def index_put_(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor: ...
    def is_complex(self) -> builtins.bool: ...
    def ndimension(self) -> builtins.int: ...
    def new(self, *args: Any) -> Tensor: ...
    def new_empty(self, size: Sequence[builtins.int], **kwargs: Any) -> Tensor: ...
    def new_full(
        self,
        size: Sequence[builtins.int],
        fill_value: builtins.float,
        **kwargs: Any,
    ) -> Tensor: ...
    def new_ones(self, *size: Any, **kwargs: Any) -> Tensor: ...
    def new_tensor(self, data: Any, **kwargs: Any) -> Tensor: ...
    def new_zeros(self, *size: Any, **kwargs: Any) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def norm(
        self,
        p: builtins.float | str | None = 2,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        dtype: _dtype | None = None,
    ) -> Tensor: ...
    def type(self, dtype: Any = None, non_blocking: builtins.bool = False) -> Any: ...
    def where(self, condition: Tensor, other: Tensor | builtins.float) -> Tensor: ...
    @overload
    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: _Operand | None = None,
        *,
        value: builtins.float | None = None,
        reduce: str | None = None,
    ) -> Tensor: ...
    @overload
    def scatter(
        self,
        *,
        axis: builtins.int,
        index: Tensor,
        src: _Operand | None = None,
        value: builtins.float | None = None,
        reduce: str | None = None,
    ) -> Tensor: ...
    @overload
    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: _Operand | None = None,
        *,
        value: builtins.float | None = None,
        reduce: str | None = None,
    ) -> Tensor: ...
    @overload
    def scatter_(
        self,
        *,
        axis: builtins.int,
        index: Tensor,
        src: _Operand | None = None,
        value: builtins.float | None = None,
        reduce: str | None = None,
    ) -> Tensor: ...
    def std(self, *args: Any, **kwargs: Any) -> Tensor: ...
    def var(self, *args: Any, **kwargs: Any) -> Tensor: ...
