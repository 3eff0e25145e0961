# SPDX-License-Identifier: Apache-2.0
"""The models that ``distributed.plan`` counts: GPT-2 and Llama, on the meta device.

Queries, keys and values have a product each, so that a part of its rows is a number of heads.
"""

from __future__ import annotations

from typing import Any

from oneflow_lite import Tensor, arange, nn
from oneflow_lite.models.gpt import Config


class Attention(nn.Module):
    """Each head by itself; split by heads where the products are split by rows."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.heads, self.kv_heads = c.heads, c.kv_heads or c.heads
        kv = c.width // c.heads * self.kv_heads
        self.q = nn.Linear(c.width, c.width, c.bias, device="meta")
        self.k = nn.Linear(c.width, kv, c.bias, device="meta")
        self.v = nn.Linear(c.width, kv, c.bias, device="meta")
        self.out = nn.Linear(c.width, c.width, c.bias, device="meta")

    def forward(self, x: Tensor, rotary: Any) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            y.view(batch, length, heads, width // self.heads).transpose(1, 2)
            for y, heads in (
                (self.q(x), self.heads),
                (self.k(x), self.kv_heads),
                (self.v(x), self.kv_heads),
            )
        )
        if rotary is not None:
            q, k = rotary(q), rotary(k)
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=self.kv_heads != self.heads
        )
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    """gelu, or SwiGLU."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.up = nn.Linear(c.width, c.mlp_width, c.bias, device="meta")
        self.gate = nn.Linear(c.width, c.mlp_width, c.bias, device="meta") if c.llama else None
        self.down = nn.Linear(c.mlp_width, c.width, c.bias, device="meta")

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(nn.functional.gelu(self.up(x), approximate="tanh"))
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def norm(c: Config) -> nn.Module:
    return nn.RMSNorm(c.width, device="meta") if c.llama else nn.LayerNorm(c.width, device="meta")


class Block(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.norm1, self.attention = norm(c), Attention(c)
        self.norm2, self.mlp = norm(c), Mlp(c)

    def forward(self, x: Tensor, rotary: Any) -> Tensor:
        x = x + self.attention(self.norm1(x), rotary)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    """Layers [first, last) of a model; the embeddings go with the first, the head with the last."""

    def __init__(self, c: Config, first: int = 0, last: int | None = None) -> None:
        super().__init__()
        last = c.layers if last is None else last
        self.config, self.begins, self.ends = c, first == 0, last == c.layers
        self.token = nn.Embedding(c.vocab, c.width, device="meta") if self.begins else None
        learned = self.begins and not c.llama
        self.place = nn.Embedding(c.length, c.width, device="meta") if learned else None
        size = c.width // c.heads
        self.rotary = nn.RotaryEmbedding(size, c.length).to("meta") if c.llama else None
        self.blocks = nn.ModuleList([Block(c) for _ in range(first, last)])
        self.norm = norm(c) if self.ends else None
        self.head = nn.Linear(c.width, c.vocab, False, device="meta") if self.ends else None
        if self.head is not None and self.token is not None and not c.llama:
            self.head.weight = self.token.weight

    def forward(self, x: Tensor) -> Tensor:
        """From ids, or from what the layers before gave, to logits or to the layers after."""
        if self.token is not None:
            length = x.shape[1]
            x = self.token(x)
            if self.place is not None:
                x = x + self.place(arange(length, device="meta"))
        for block in self.blocks:
            x = block(x, self.rotary)
        return x if self.norm is None or self.head is None else self.head(self.norm(x))
