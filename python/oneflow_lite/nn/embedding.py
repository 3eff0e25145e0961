# SPDX-License-Identifier: Apache-2.0
"""A table of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import norm
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite.autograd._grad_mode import no_grad
from oneflow_lite.nn import init
from oneflow_lite.nn._checked import check_sizes
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.parameter import Parameter

if TYPE_CHECKING:
    import oneflow_lite as flow


def _refuse(name: str, scale_grad_by_freq: bool) -> None:
    if scale_grad_by_freq:
        raise NotImplementedError(f"{name}: scale_grad_by_freq=True is not supported")


@no_grad()
def _bound(weight: Tensor, input: Tensor, most: float, norm_type: float) -> None:
    if not _ext._takes_part(input):
        return
    rows = _C.unique(input)  # in order
    for row in rows[[0, -1]].tolist() if rows.numel() else ():
        if not 0 <= row < weight.shape[0]:  # before the table changes
            raise IndexError(f"embedding(): index {row} is out of range [0, {weight.shape[0] - 1}]")
    found = weight.detach()[rows]
    norms = norm(found, norm_type, -1, keepdim=True)
    weight[rows] = _C.where(norms > most, found * (most / (norms + 1e-7)), found)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of ``weight`` at the integers of ``input``: ``[*input.shape, columns]``.

    The arguments mean what they mean for :class:`Embedding`; ``padding_idx`` gets no gradient.
    """
    _refuse("embedding()", scale_grad_by_freq)
    if max_norm is not None:
        _bound(weight, input, max_norm, norm_type)
    return _C.embedding(input, weight, padding_idx)


class Embedding(Module):
    """The vector of each integer: a table that is learned.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        How many vectors of what length.
    padding_idx : int, optional
        A row that starts at 0 and gets no gradient; a negative one counts from the last.
    max_norm, norm_type : float, optional
        A row that is looked up is first, in the table, brought to this norm at most. Which rows
        these are is counted on the host: each ``forward`` waits for the device.
    scale_grad_by_freq : bool
        Not supported: NotImplementedError where True.
    sparse : bool
        Taken for PyTorch's sake; the gradient is dense.
    _weight : Tensor, optional
        The table, which is used as it is, and not learned if ``_freeze``.
    device, dtype : optional
        Where and as what the table is made.

    Attributes
    ----------
    weight : Parameter
        Of shape ``[num_embeddings, embedding_dim]``, at first standard normal.

    Notes
    -----
    ``forward`` takes int64 of any shape and gives ``[*shape, embedding_dim]``; IndexError on the
    CPU, and with ``max_norm`` everywhere, for an integer that has no row.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        _refuse("Embedding", scale_grad_by_freq)
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx is {padding_idx}, but there are "
                             f"{num_embeddings} rows")  # fmt: skip
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        if _weight is not None:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError(f"Embedding: _weight has shape {list(_weight.shape)}, expected "
                                 f"{[num_embeddings, embedding_dim]}")  # fmt: skip
            self.weight = Parameter(_weight, not _freeze)
            return
        self.weight = Parameter(
            _C.empty([num_embeddings, embedding_dim], dtype=dtype, device=device)
        )
        self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """One with a table that is there already; it is not learned unless ``freeze=False``."""
        if embeddings.ndim != 2:
            raise ShapeError(f"Embedding.from_pretrained(): embeddings has shape "
                             f"{list(embeddings.shape)}, expected 2 dims")  # fmt: skip
        return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   embeddings, freeze)  # fmt: skip

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Tensor) -> Tensor:
        weight = self._parameters.get("weight")
        if weight is None:  # no parameter any more: a program computes it
            weight = self.weight
        if self.max_norm is not None:
            _bound(weight, input, self.max_norm, self.norm_type)
        return _C.embedding(input, weight, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        return text + ", sparse=True" * self.sparse
