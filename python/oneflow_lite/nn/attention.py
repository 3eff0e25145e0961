# SPDX-License-Identifier: Apache-2.0
"""Attention of several heads, and the encoder of a transformer; parameters are named as PyTorch's.

>>> layer = nn.TransformerEncoderLayer(d_model=64, nhead=4, batch_first=True)
>>> y = nn.TransformerEncoder(layer, num_layers=6)(x)    # [batch, length, 64]
"""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite._oneflow_lite import bool as _bool
from oneflow_lite.nn import functional as F
from oneflow_lite.nn import init
from oneflow_lite.nn._checked import check_sizes
from oneflow_lite.nn.activations import Dropout
from oneflow_lite.nn.containers import ModuleList
from oneflow_lite.nn.layers import Linear
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.norms import LayerNorm, add_and_norm
from oneflow_lite.nn.parameter import Parameter

if TYPE_CHECKING:
    import oneflow_lite as flow


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask that is added to the scores: where a truth hides, minus infinity."""
    if mask.dtype is not _bool:
        return mask
    zeros = _C.zeros(mask.shape, dtype=like.dtype, device=mask.device)
    return zeros.masked_fill(mask, -math.inf)


class MultiheadAttention(Module):
    """Attention of several heads over parts of the features.

    Parameters
    ----------
    embed_dim, num_heads : int
        How many features, and into how many heads they are divided.
    dropout : float
        The share of the attention's weights that is dropped in training.
    bias : bool
        Whether the projections have a bias.
    add_bias_kv : bool
        One more key and value, which are learned.
    add_zero_attn : bool
        One more key and value, which are 0.
    kdim, vdim : int, optional
        Features of key and value, where they are others than ``embed_dim``.
    batch_first : bool
        ``[batch, length, features]``; else ``[length, batch, features]``.
    device, dtype : optional
        Where and as what the parameters are made.

    Notes
    -----
    ``forward`` takes query, key and value (also without a batch). A bool mask hides where True, one
    of numbers is added to the scores: ``attn_mask`` of ``[queries, keys]`` or ``[batch * heads,
    queries, keys]``, ``key_padding_mask`` of ``[batch, keys]``. ``is_causal``,
    without an ``attn_mask``, hides the keys behind a query; of another number of keys than of
    queries, the last key given is that of the last query, with ``add_bias_kv`` and
    ``add_zero_attn`` too. Gives the result and the weights, which are averaged over the heads where
    ``average_attn_weights``, or None without ``need_weights``. ShapeError where shapes do not go
    together.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: flow.device | str | None = None,
        dtype: flow.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, 1, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: embed_dim is {embed_dim}, but it must divide by "
                             f"num_heads, {num_heads}")  # fmt: skip
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn

        def make(name: str, *shape: int, wanted: bool = True) -> None:
            made = Parameter(_C.empty(shape, dtype=dtype, device=device)) if wanted else None
            self.register_parameter(name, made)

        one = self.kdim == self.vdim == embed_dim
        make("in_proj_weight", 3 * embed_dim, embed_dim, wanted=one)
        for name, features in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            make(f"{name}_proj_weight", embed_dim, features, wanted=not one)
        make("in_proj_bias", 3 * embed_dim, wanted=bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        make("bias_k", 1, 1, embed_dim, wanted=add_bias_kv)
        make("bias_v", 1, 1, embed_dim, wanted=add_bias_kv)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def _heads(self, x: Tensor, part: int) -> Tensor:
        """One of the three projections of ``[batch, length, features]``, per head."""
        rows = slice(part * self.embed_dim, (part + 1) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        whole: Any = self.in_proj_weight
        weight = getattr(self, "qkv"[part] + "_proj_weight") if whole is None else whole[rows]
        y = F.linear(x, weight, bias)
        added = (None, self.bias_k, self.bias_v)[part]
        if added is not None:
            y = _C.cat([y, added.expand(y.shape[0], 1, self.embed_dim)], 1)
        if part > 0 and self.add_zero_attn:
            y = F.pad(y, (0, 0, 0, 1))
        size = self.embed_dim // self.num_heads
        return y.reshape([*y.shape[:2], self.num_heads, size]).transpose(1, 2)

    def _to_all(self, mask: Tensor | None) -> Tensor | None:
        """A mask of the keys given, also for those added, which all queries see."""
        more = (self.bias_k is not None) + self.add_zero_attn
        return mask if mask is None or more == 0 else F.pad(mask, (0, more))

    def _mask(self, padding: Tensor | None, mask: Tensor | None, like: Tensor) -> Tensor | None:
        total: Any = None
        if mask is not None:
            total = _added(mask, like)
            if mask.ndim == 3:
                batch = mask.shape[0] // self.num_heads
                total = total.reshape([batch, self.num_heads, *mask.shape[1:]])
        if padding is not None:
            hidden = _added(padding, like)
            hidden = hidden.reshape([*padding.shape[:-1], 1, 1, padding.shape[-1]])
            total = hidden if total is None else total + hidden
        return total

    def _kept(self, padding: Tensor | None, mask: Tensor | None, like: Tensor) -> Tensor | None:
        """The masks as scaled_dot_product_attention takes them: truths that keep, where both hide
        by truths, else what is added.
        """
        if any(m is not None and m.dtype is not _bool for m in (padding, mask)):
            return self._mask(padding, mask, like)
        hidden: Any = None
        if mask is not None:
            hidden = mask if mask.ndim == 2 else mask.reshape([-1, self.num_heads, *mask.shape[1:]])
        if padding is not None:
            alone = padding.reshape([*padding.shape[:-1], 1, 1, padding.shape[-1]])
            hidden = alone if hidden is None else hidden | alone
        return None if hidden is None else ~hidden

    def _attend(self, given: list[Tensor], kept: Tensor | None, causal: bool) -> Tensor:
        """``[batch, queries, features]`` of the inputs, whose weights nobody asks for."""
        dropped = self.dropout if self.training else 0.0
        query, key, value = given
        whole, added = self.in_proj_weight, self.bias_k is not None or self.add_zero_attn
        if query is key is value and whole is not None and not added:
            qkv = F.linear(query, whole, self.in_proj_bias)
            return F.attention_packed(qkv, self.num_heads, None, kept, dropped, causal)
        q, k, v = (self._heads(x, part) for part, x in enumerate(given))
        y = F.scaled_dot_product_attention(q, k, v, kept, dropped, causal_bottom_right=causal)
        return y.transpose(1, 2).flatten(2)

    def _check_shapes(
        self, query: Tensor, key: Tensor, value: Tensor, padding: Tensor | None, mask: Tensor | None
    ) -> None:
        """ShapeError that names the first argument of a shape that does not go with the others."""

        def check(name: str, given: Tensor, *wanted: list[int]) -> None:
            if list(given.shape) not in wanted:
                expected = " or ".join(map(str, wanted))
                raise ShapeError(f"MultiheadAttention: {name} has shape {list(given.shape)}, "
                                 f"expected {expected}")  # fmt: skip

        if query.ndim not in (2, 3):
            raise ShapeError(f"MultiheadAttention: query has shape {list(query.shape)}, expected 2 "
                             "or 3 dims")  # fmt: skip
        check("query", query, [*query.shape[:-1], self.embed_dim])
        if key.ndim != query.ndim:
            raise ShapeError(f"MultiheadAttention: key has shape {list(key.shape)}, expected "
                             f"{query.ndim} dims as of query")  # fmt: skip
        along = 1 if query.ndim == 3 and self.batch_first else 0
        queries, keys = query.shape[along], key.shape[along]
        batch = list(query.shape[:-1])
        del batch[along]
        check("key", key, [*batch[:along], keys, *batch[along:], self.kdim])
        check("value", value, [*key.shape[:-1], self.vdim])
        if padding is not None:
            check("key_padding_mask", padding, [*batch, keys])
        if mask is not None:
            rows = math.prod(batch) * self.num_heads
            check("attn_mask", mask, [queries, keys], [rows, queries, keys])

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        self._check_shapes(query, key, value, key_padding_mask, attn_mask)
        swapped = query.ndim == 3 and not self.batch_first
        one = query is key is value
        given = [
            x.unsqueeze(0) if x.ndim == 2 else x.transpose(0, 1) if swapped else x
            for x in ((query,) if one else (query, key, value))
        ] * (3 if one else 1)
        queries, keys = given[0].shape[1], given[1].shape[1]
        causal = is_causal and attn_mask is None
        if causal and (
            self.bias_k is not None or self.add_zero_attn
        ):  # those are behind all others
            hidden = _C.ones(queries, keys, dtype=_bool, device=query.device)
            attn_mask, causal = hidden.triu(1 + keys - queries), False
        padding, mask = self._to_all(key_padding_mask), self._to_all(attn_mask)
        if not need_weights:
            kept = self._kept(padding, mask, query)
            y = self.out_proj(self._attend(given, kept, causal))
            return self._as_given(y, query, swapped), None
        q, k, v = (self._heads(x, part) for part, x in enumerate(given))
        scale, dropped = 1 / math.sqrt(q.shape[-1]), self.dropout if self.training else 0.0
        # A query that sees no key gets NaN, as in PyTorch; 0 where nobody asks for the weights.
        y, weights = F.attend(q, k, v, self._mask(padding, mask, q), scale, "nan", causal, dropped)
        y = self._as_given(self.out_proj(y.transpose(1, 2).flatten(2)), query, swapped)
        shown = (weights.mean(1) if average_attn_weights else weights).to(None, q.dtype)
        return y, shown.squeeze(0) if query.ndim == 2 else shown

    @staticmethod
    def _as_given(y: Tensor, query: Tensor, swapped: bool) -> Tensor:
        return y.squeeze(0) if query.ndim == 2 else y.transpose(0, 1) if swapped else y


def activation_named(
    layer: str, activation: str | Callable[[Tensor], Tensor]
) -> Callable[[Tensor], Tensor]:
    """The function itself, or the one of that name; ValueError for another name."""
    named = {"relu": F.relu, "gelu": F.gelu}
    if not isinstance(activation, str):
        return activation
    if activation not in named:
        raise ValueError(f'{layer}: activation is "{activation}", but it must be relu, gelu or a '
                         "function")  # fmt: skip
    return named[activation]


class TransformerEncoderLayer(Module):
    """Self-attention and two linear layers, each with a residual and a norm.

    Parameters
    ----------
    d_model, nhead, dim_feedforward : int
        Features, heads, and features between the linear layers.
    dropout : float
        The share that is dropped in training, in four places.
    activation : str or callable
        relu, gelu, or a function.
    layer_norm_eps : float
        Of the norms.
    batch_first : bool
        As for :class:`MultiheadAttention`.
    norm_first : bool
        Norms in front of attention and linear layers, else behind the sums.
    bias : bool
        Whether linear layers and norms have a bias.
    device, dtype : optional
        Where and as what the parameters are made.
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
        self.activation = activation_named("TransformerEncoderLayer", activation)
        self.norm_first = norm_first
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, True, bias, device, dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def _attention(self, x: Tensor, *masks: Any) -> Tensor:
        mask, padding, causal = masks
        y, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)
        return self.dropout1(y)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            normed, x = add_and_norm(self.norm2, self._attention(self.norm1(src), *masks), src)
            return x + self._feed_forward(normed)
        x, _ = add_and_norm(self.norm1, self._attention(src, *masks), src)
        return add_and_norm(self.norm2, self._feed_forward(x), x)[0]


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer one after the other, and a norm where one is given.

    ``enable_nested_tensor`` and ``mask_check`` are taken for PyTorch's sake; they change nothing.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(self, num_layers=num_layers)
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = False,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class SDPBackend(enum.IntEnum):
    """PyTorch's names of what computes ``scaled_dot_product_attention``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Taken for PyTorch's sake: within, attention is what it is outside.

    The arguments decide which engine computes it (docs/attention.md); all of them give the same
    function, and its gradients to any order. :func:`flow.use_deterministic_algorithms` keeps off
    the one whose results may differ from call to call.

    Raises
    ------
    TypeError, ValueError
        ``backends`` is none of :class:`SDPBackend`, or names none that computes.
    """
    given = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in given:
        if not isinstance(backend, SDPBackend):
            raise TypeError(f"sdpa_kernel(): backends must be SDPBackend, not {backend!r}")
    if not set(given) - {SDPBackend.ERROR}:
        raise ValueError("sdpa_kernel(): backends names no way to compute attention")
    yield
