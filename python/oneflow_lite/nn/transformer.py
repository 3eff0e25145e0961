# SPDX-License-Identifier: Apache-2.0
"""The decoder of a transformer, and encoder and decoder together; names are PyTorch's.

>>> model = nn.Transformer(d_model=64, nhead=4, batch_first=True)
>>> y = model(source, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(20))
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite.nn import functional as F
from oneflow_lite.nn import init
from oneflow_lite.nn._checked import check_sizes
from oneflow_lite.nn.activations import Dropout
from oneflow_lite.nn.attention import (
    MultiheadAttention,
    TransformerEncoder,
    TransformerEncoderLayer,
    activation_named,
)
from oneflow_lite.nn.containers import ModuleList
from oneflow_lite.nn.layers import Linear
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.norms import LayerNorm, add_and_norm

if TYPE_CHECKING:
    import oneflow_lite as flow


class TransformerDecoderLayer(Module):
    """Attention to itself, attention to a memory, and two linear layers, each with a residual.

    Parameters are those of :class:`TransformerEncoderLayer`.

    Notes
    -----
    ``forward`` takes the target and the encoder's result, ``memory``; masks are as in
    :class:`MultiheadAttention`, for either attention.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation_named("TransformerDecoderLayer", activation)
        self.norm_first = norm_first
        where: dict[str, Any] = {"device": device, "dtype": dtype}

        def attention() -> MultiheadAttention:
            return MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first,
                                      **where)  # fmt: skip

        self.self_attn, self.multihead_attn = attention(), attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **where)
        for i in (1, 2, 3):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, True, bias, **where))
        for i in (1, 2, 3):
            setattr(self, f"dropout{i}", Dropout(dropout))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def to_itself(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask,
                                  is_causal=tgt_is_causal)[0]  # fmt: skip

        def to_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(x, memory, memory, memory_key_padding_mask, False,
                                       memory_mask, is_causal=memory_is_causal)[0]  # fmt: skip

        def feed_forward(x: Tensor) -> Tensor:
            return self.linear2(self.dropout(self.activation(self.linear1(x))))

        parts = [(self.norm1, to_itself, self.dropout1), (self.norm2, to_memory, self.dropout2),
                 (self.norm3, feed_forward, self.dropout3)]  # fmt: skip
        if not self.norm_first:
            for norm, part, dropout in parts:
                tgt, _ = add_and_norm(norm, dropout(part(tgt)), tgt)
            return tgt
        added: Tensor | None = None  # what is still to be added
        for norm, part, dropout in parts:
            if added is None:
                normed = norm(tgt)
            else:
                normed, tgt = add_and_norm(norm, added, tgt)
            added = dropout(part(normed))
        assert added is not None
        return tgt + added


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm where one is given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        check_sizes(self, num_layers=num_layers)
        self.layers = ModuleList(copy.deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                        memory_key_padding_mask, bool(tgt_is_causal), memory_is_causal)  # fmt: skip
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder that attends to its result, each with a norm at its end.

    Parameters
    ----------
    d_model, nhead : int
        Features and heads.
    num_encoder_layers, num_decoder_layers : int
        How many layers of each.
    custom_encoder, custom_decoder : Module, optional
        To be used instead.
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As in :class:`TransformerEncoderLayer`.
    device, dtype : optional
        Where and as what the parameters are made.

    Notes
    -----
    ``forward`` takes source and target; ShapeError where they do not go together or have another
    number of features than ``d_model``.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        common: Any = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                       batch_first, norm_first, bias, device, dtype)  # fmt: skip
        end: Any = (d_model, layer_norm_eps, True, bias, device, dtype)
        # Not by truth: a container without modules is False, and may be wanted all the same.
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*common), num_encoder_layers, LayerNorm(*end)
        )  # fmt: skip
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*common), num_decoder_layers, LayerNorm(*end)
        )  # fmt: skip
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: flow.device | str | None = None, dtype: flow.dtype | None = None
    ) -> Tensor:
        """``[sz, sz]``: minus infinity behind a query's own place, else 0."""
        return _C.full([sz, sz], -math.inf, dtype=dtype, device=device).triu(1)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        fits = src.ndim == tgt.ndim and src.shape[-1] == tgt.shape[-1] == self.d_model
        if not fits or (src.ndim == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ShapeError(f"Transformer: src and tgt have shapes {list(src.shape)} and "
                             f"{list(tgt.shape)}, expected one batch and {self.d_model} "
                             "features")  # fmt: skip
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                            memory_key_padding_mask, tgt_is_causal, memory_is_causal)  # fmt: skip
