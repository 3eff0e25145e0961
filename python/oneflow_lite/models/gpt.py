# SPDX-License-Identifier: Apache-2.0
"""A GPT in one source for two libraries: ``build(flow, config)``, ``build(torch, config)``.

The files import neither; the modules are in gpt_modules.py. A config says which kind it is: GPT-2's
(LayerNorm, learned places, gelu) or Llama's (RMSNorm, rotary embedding, SwiGLU, grouped queries).

>>> model = build(flow, PRESETS["gpt2"])
>>> loss = model.loss(ids, targets)                   # ids and targets [batch, length]
>>> ids = model.generate(ids, 100, temperature=0.8)   # with the keys and values of before kept
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Config:
    """The shape of a model. ``kv_heads``: as many as ``heads`` where it is None."""

    vocab: int
    length: int
    layers: int
    heads: int
    width: int
    hidden: int | None = None  # of the MLP; 4 widths where None
    kv_heads: int | None = None
    llama: bool = False
    bias: bool = True
    dropout: float = 0.0
    theta: float = 10000.0

    def __post_init__(self) -> None:
        if self.width % self.heads or self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"{self.heads} heads do not divide a width of {self.width}, or "
                             f"{self.kv_heads} heads of keys do not divide them")  # fmt: skip

    def replaced(self, **changes: Any) -> Config:
        return dataclasses.replace(self, **changes)

    @property
    def mlp_width(self) -> int:
        return self.hidden or 4 * self.width


PRESETS = {
    "tiny": Config(128, 32, 2, 2, 32),
    "tiny-llama": Config(128, 32, 2, 4, 32, 88, 2, llama=True, bias=False),
    "small": Config(128, 64, 3, 4, 96),
    "small-llama": Config(128, 64, 3, 4, 96, 256, 2, llama=True, bias=False),
    "baby": Config(128, 256, 6, 6, 384),
    "gpt2": Config(50257, 1024, 12, 12, 768),
    "llama-350m": Config(32000, 1024, 24, 16, 1024, 2816, 8, llama=True, bias=False),
}


@functools.cache
def library(lib: Any) -> Any:
    """The module gpt_modules.py, run for a library."""
    path = Path(__file__).with_name("gpt_modules.py")
    name = f"gpt_modules_of_{lib.__name__}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    module.lib = lib  # type: ignore[attr-defined]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def build(lib: Any, config: Config) -> Any:
    """A GPT of a library, ``oneflow_lite`` or ``torch``."""
    return library(lib).GPT(config)


def parameter_groups(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """The matrices, which decay, and the rest, which does not."""
    params = list(model.parameters())
    return [
        {"params": [p for p in params if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
    ]


def split_weights(model: Any, placement: Any, dim: int = 0) -> Any:
    """Makes oneflow_lite's model tensor-parallel along one dim of a placement; gives it back.

    Split by output are the embedding of tokens (the head's weights too, so that each rank has the
    logits of its part of the vocabulary), qkv and up; by input out and down, whose results are then
    partial sums. The rest is whole everywhere. All ranks hold the same model before.
    """
    from oneflow_lite.sbp import broadcast, split

    whole = [broadcast] * len(placement.shape)

    def move(p: Any, axis: int) -> None:
        sbp = [*whole[:dim], split(axis), *whole[dim + 1 :]]
        p.data = p.detach().to_global(sbp=sbp)

    model.to_global(placement, whole)
    move(model.token.weight, 0)
    if model.head.weight is not model.token.weight:
        move(model.head.weight, 0)
    for block in model.blocks:
        for layer in (block.attention.qkv, block.mlp.up):
            for p in layer.parameters():
                move(p, 0)
        for layer in (block.attention.out, block.mlp.down):
            move(layer.weight, 1)
    return model


def flops_per_token(config: Config) -> float:
    """Of a step, forward and backward: 6 for each weight of a product, 12 for attention's scores.

    Causal attention computes half of its scores: 6 width length for each layer.
    """
    c = config
    kv = (c.kv_heads or c.heads) / c.heads
    layer = c.width * c.width * (2 + 2 * kv) + c.width * c.mlp_width * (3 if c.llama else 2)
    return 6 * (c.layers * layer + c.width * c.vocab) + 6 * c.layers * c.width * c.length
