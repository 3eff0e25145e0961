# SPDX-License-Identifier: Apache-2.0
"""A language model in mixed precision, matrices, and functions of one's own; typed strictly."""

from __future__ import annotations

import math
from typing import Any

import oneflow_lite as flow
import oneflow_lite.nn.functional as F
from oneflow_lite import Tensor, amp, fuse, linalg, nn, optim, special
from oneflow_lite.amp import GradScaler, autocast
from oneflow_lite.models import gpt

swiglu = fuse.elements(lambda x, gate, s=1.0: s * x * F.silu(gate))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.rotary = nn.RotaryEmbedding(width // heads, length)
        self.mlp = nn.SwiGLU(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(
            self.rotary(q), self.rotary(k), v, is_causal=True, scale=1 / math.sqrt(q.shape[-1])
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        z: Tensor = x + self.mlp(x)
        return z


def mixed_precision(model: nn.Module, x: Tensor, y: Tensor) -> float:
    optimizer = optim.Lion(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
    scaler = GradScaler("cpu", init_scale=2.0**4, enabled=True)
    loss = flow.zeros(())
    for _ in range(2):
        with autocast("cpu", dtype=flow.bfloat16):
            loss = F.mse_loss(model(x).float(), y)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm: Tensor = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert math.isfinite(norm.item())
        scaler.step(optimizer)
        scaler.update()
    kept: dict[str, Any] = scaler.state_dict()
    scaler.load_state_dict(kept)
    assert scaler.get_scale() == 16.0 and flow.is_autocast_enabled("cpu") is False
    return loss.item()


@autocast("cpu")
def halved(x: Tensor) -> Tensor:
    return flow.matmul(x, x)


class Scaled(flow.autograd.Function):
    @staticmethod
    @amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    @amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        return dy * 2


def matrices(a: Tensor) -> Tensor:
    symmetric = a @ a.mT + flow.eye(a.shape[0])
    values, vectors = linalg.eigh(symmetric)
    u, s, vh = linalg.svd(a, full_matrices=False)
    q, r = linalg.qr(a)
    sign, logarithm = linalg.slogdet(symmetric)
    factor = linalg.cholesky(symmetric)
    solved = linalg.solve(symmetric, a[:, 0])
    try:
        linalg.inv(flow.zeros(2, 2))
    except linalg.LinAlgError as error:
        assert "singular" in str(error)
    parts = [vectors @ values.diag_embed() @ vectors.mT - symmetric, (u * s) @ vh - a, q @ r - a,
             factor @ factor.mT - symmetric, symmetric @ solved - a[:, 0]]  # fmt: skip
    largest = max(linalg.vector_norm(part, math.inf).item() for part in parts)
    assert largest < 1e-3 and sign.item() == 1.0
    return logarithm + linalg.matrix_norm(a, "fro") + linalg.cond(a)


def elementwise(x: Tensor) -> tuple[Tensor, ...]:
    y = swiglu(x, flow.ones(x.shape[-1]), 0.5)
    both = flow.fuse_elements("x, y: t = exp(x); t + y, t > y", [x, x])
    assert isinstance(y, Tensor) and both[1].dtype is flow.bool
    places = x.argsort(dim=-1, descending=True, stable=True)
    top, where = x.topk(2, dim=-1)
    edges: flow.Tensor = x.histogram(4).bin_edges
    assert len(edges) == len(flow.histogram(x, 4).hist) + 1
    found = flow.searchsorted(x.sort().values, top)
    return (special.expit(x), special.xlogy(x.abs(), 2.0), special.logit(x.sigmoid(), eps=1e-6),
            special.erfinv(x.tanh()), places, where, found, x.flip(0).roll(1, 0),
            F.pad(x, (1, 1), value=-1.0), F.gelu(x, approximate="tanh"), x.clamp(min=0, max=1),
            x.new_zeros(2).scatter_add(0, flow.tensor([0, 1]), top[0, :2]))  # fmt: skip


def train() -> None:
    flow.manual_seed(0)
    model = Attention(16, 2, 8)
    x = flow.randn(2, 8, 16)
    assert math.isfinite(mixed_precision(model, x, flow.randn(2, 8, 16)))
    assert halved(flow.eye(3)).dtype is flow.bfloat16
    leaf = flow.ones(2, requires_grad=True)
    doubled: Tensor = Scaled.apply(leaf)
    doubled.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [2.0, 2.0]
    assert matrices(flow.randn(4, 4) + 4 * flow.eye(4)).ndim == 0
    assert len(elementwise(flow.randn(3, 5))) == 12
    config = gpt.PRESETS["tiny"].replaced(layers=1)
    language = gpt.build(flow, config)
    adam = optim.AdamW(gpt.parameter_groups(language, 0.1), lr=1e-3, master_weights=True)
    schedule = optim.lr_scheduler.CosineAnnealingLR(adam, 10)
    ids = flow.randint(0, config.vocab, (2, 9))
    language.loss(ids[:, :-1], ids[:, 1:]).backward()
    adam.step()
    schedule.step()
    averaged = optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)


if __name__ == "__main__":
    train()
