# SPDX-License-Identifier: Apache-2.0
"""The modules of the GPT, for the library that is put into ``lib`` before this file runs: gpt.py
runs it once for each library.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

# oneflow_lite or torch; imported by itself, the file is for oneflow_lite.
lib: Any = globals().get("lib") or importlib.import_module("oneflow_lite")
nn, F = lib.nn, lib.nn.functional
ours = hasattr(F, "add_layer_norm")


def rotary_tables(length: int, dim: int, theta: float) -> tuple[Any, Any]:
    """Cos and sin [length, dim] of place times theta^(-2 i / dim), the halves alike."""
    steps = lib.arange(0, dim, 2, dtype=lib.float64) / dim
    angles = lib.arange(length, dtype=lib.float64)[:, None] * (theta**-steps)[None, :]
    angles = lib.cat([angles, angles], -1)
    return angles.cos().float(), angles.sin().float()


class Rotary(nn.Module):
    """Turns pairs of features by angles that grow with the place (Su et al., 2021)."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        cos, sin = rotary_tables(c.length, c.width // c.heads, c.theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Any, start: int) -> Any:
        places = slice(start, start + x.shape[-2])
        cos, sin = self.cos[places].to(x.dtype), self.sin[places].to(x.dtype)
        first, second = x.chunk(2, -1)
        return x * cos + lib.cat([-second, first], -1) * sin


if ours:

    class Rotary(nn.RotaryEmbedding):  # noqa: F811 (the library's own)
        def __init__(self, c: Any) -> None:
            super().__init__(c.width // c.heads, c.length, c.theta)


class Attention(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads = c.heads, c.kv_heads or c.heads
        self.size, self.dropout = c.width // c.heads, c.dropout
        self.qkv = nn.Linear(c.width, (c.heads + 2 * self.kv_heads) * self.size, bias=c.bias)
        self.out = nn.Linear(c.width, c.width, bias=c.bias)

    def forward(self, x: Any, rotary: Any, cache: Any) -> Any:
        batch, length, width = x.shape
        qkv = self.qkv(x)
        if ours and cache is None:  # nothing is copied, nor its gradient
            if rotary is not None:
                qkv = rotary(qkv, 0, (self.heads + self.kv_heads) * self.size)
            dropped = self.dropout if self.training else 0.0
            y = F.attention_packed(qkv, self.heads, self.kv_heads, None, dropped, True)
            return self.out(y)
        if self.kv_heads == self.heads:
            qkv = qkv.view(batch, length, 3, self.heads, self.size)
            q, k, v = (t.transpose(1, 2) for t in qkv.unbind(2))
        else:
            sizes = [self.heads * self.size] + 2 * [self.kv_heads * self.size]
            q, k, v = (t.reshape(batch, length, -1, self.size).transpose(1, 2)
                       for t in qkv.split(sizes, -1))  # fmt: skip
        start = cache.length if cache is not None else 0
        if rotary is not None:
            q, k = rotary(q, start), rotary(k, start)
        if cache is not None:
            k, v = cache.extend(k, v)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=start == 0, dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=self.kv_heads != self.heads,
        )  # fmt: skip
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Mlp(nn.Module):
    """gelu, or SwiGLU (Shazeer, 2020): silu(x W) * (x V), in one product."""

    def __init__(self, c: Any) -> None:
        super().__init__()
        self.gated = c.llama
        self.up = nn.Linear(c.width, c.mlp_width * (2 if self.gated else 1), bias=c.bias)
        self.down = nn.Linear(c.mlp_width, c.width, bias=c.bias)

    def forward(self, x: Any) -> Any:
        y = self.up(x)
        if self.gated:
            if ours:
                return self.down(F.swiglu(y))
            gate, value = y.chunk(2, -1)
            return self.down(F.silu(gate) * value)
        return self.down(F.gelu(y, approximate="tanh"))


def norm(c: Any) -> Any:
    return nn.RMSNorm(c.width, eps=1e-5) if c.llama else nn.LayerNorm(c.width, bias=c.bias)


def add_norm(layer: Any, y: Any, residual: Any) -> tuple[Any, Any]:
    """The norm of y + residual, and that sum; in one kernel where there is one."""
    if y is None:
        return layer(residual), residual
    if y.dtype != residual.dtype:
        y = y.to(residual.dtype)
    if not ours:
        residual = residual + y
        return layer(residual), residual
    shape = layer.normalized_shape
    if isinstance(layer, nn.RMSNorm):
        return F.add_rms_norm(y, residual, shape, layer.weight, layer.eps)
    return F.add_layer_norm(y, residual, shape, layer.weight, layer.bias, layer.eps)


class Block(nn.Module):
    def __init__(self, c: Any) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = (
            norm(c),
            Attention(c),
            norm(c),
            Mlp(c),
        )
        self.drop = nn.Dropout(c.dropout) if c.dropout else nn.Identity()

    def forward(self, y: Any, residual: Any, rotary: Any, cache: Any) -> tuple[Any, Any]:
        """What is still to be added to the stream, and the stream, before and after."""
        x, residual = add_norm(self.norm1, y, residual)
        y = self.drop(self.attention(x, rotary, cache))
        x, residual = add_norm(self.norm2, y, residual)
        return self.drop(self.mlp(x)), residual


class Cache:
    """Keys and values of one layer, of the places so far."""

    def __init__(self, c: Any, like: Any, batch: int) -> None:
        shape = (batch, c.kv_heads or c.heads, c.length, c.width // c.heads)
        self.keys = lib.empty(shape, dtype=like.dtype, device=like.device)
        self.values = lib.empty(shape, dtype=like.dtype, device=like.device)
        self.length = 0

    def extend(self, k: Any, v: Any) -> tuple[Any, Any]:
        start, self.length = self.length, self.length + k.shape[2]
        self.keys[:, :, start : self.length].copy_(k)
        self.values[:, :, start : self.length].copy_(v)
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]


class GPT(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        c = self.config = config
        self.token = nn.Embedding(c.vocab, c.width)
        self.place = None if c.llama else nn.Embedding(c.length, c.width)
        self.rotary = Rotary(c) if c.llama else None
        self.drop = nn.Dropout(c.dropout) if c.dropout else nn.Identity()
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.norm = norm(c)
        self.head = nn.Linear(c.width, c.vocab, bias=False)
        if not c.llama:
            self.head.weight = self.token.weight
        self.residual_dtype = None  # of the stream; as the embeddings' where None
        self.loss_chunks = 1  # parts of the logits, one of which is there at a time: less memory
        for name, p in self.named_parameters():
            if p.ndim > 1:
                last = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, 0.0, 0.02 / math.sqrt(2 * c.layers) if last else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids: Any, caches: Any = None, targets: Any = None) -> Any:
        """The logits of the id that follows each, [batch, length, vocab]; with targets ``loss``."""
        hidden = self.hidden(ids, caches)
        if targets is None:
            return self.head(hidden)
        return F.linear_cross_entropy(hidden, self.head.weight, targets, self.loss_chunks)

    def hidden(self, ids: Any, caches: Any = None) -> Any:
        """What the head makes logits of, [batch, length, width]."""
        start = caches[0].length if caches is not None else 0
        x = self.token(ids)
        if self.place is not None:
            places = lib.arange(start, start + ids.shape[1], device=ids.device)
            x = x + self.place(places)
        if self.residual_dtype is not None:
            x = x.to(self.residual_dtype)
        y, residual = None, self.drop(x)
        for i, block in enumerate(self.blocks):
            cache = caches[i] if caches is not None else None
            y, residual = block(y, residual, self.rotary, cache)
        return add_norm(self.norm, y, residual)[0]

    def loss(self, ids: Any, targets: Any) -> Any:
        """The mean cross entropy of targets [batch, length]."""
        if ours:  # the logits become their gradient, and are gone
            return self(ids, None, targets)
        logits = self(ids)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))

    def generate(self, ids: Any, count: int, temperature: float = 1.0, top_k: int = 0,
                 generator: Any = None) -> Any:  # fmt: skip
        """Ids [batch, n] and ``count`` more; at temperature 0 the likeliest each time.

        Where the context is full, the latter half of it is read anew.
        """
        with lib.no_grad():
            caches, given = None, ids
            for _ in range(count):
                if caches is None or caches[0].length + given.shape[1] > self.config.length:
                    if caches is not None:
                        given = ids[:, -max(1, self.config.length // 2) :]
                    given = given[:, -self.config.length :]
                    caches = [Cache(self.config, self._keys_like(), ids.shape[0])
                              for _ in self.blocks]  # fmt: skip
                logits = self(given, caches)[:, -1].float()
                given = choose(logits, temperature, top_k, generator)
                ids = lib.cat([ids, given], 1)
        return ids

    def _keys_like(self) -> Any:
        """A tensor of the dtype and on the device of the keys."""
        product = self.blocks[0].attention.qkv
        return product(product.weight[:1])


def choose(logits: Any, temperature: float, top_k: int, generator: Any) -> Any:
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits / temperature
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1]), -1)[0][:, -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    return lib.multinomial(F.softmax(logits, dim=-1), 1, generator=generator)
