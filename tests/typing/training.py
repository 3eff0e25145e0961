# SPDX-License-Identifier: Apache-2.0
"""A model, its training and its checkpoint, as programs have them; typed strictly."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
import oneflow_lite.nn.functional as F
from oneflow_lite import Tensor, nn, optim
from oneflow_lite.optim.lr_scheduler import CosineAnnealingLR, LambdaLR
from oneflow_lite.utils.data import batches

Array = np.ndarray[Any, Any]


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )
        self.scale = nn.Parameter(flow.ones(width))
        self.bias = nn.Parameter(flow.zeros(width), requires_grad=True)
        self.register_buffer("mask", flow.ones(8, 8, dtype=flow.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(x)
        attended, _ = self.attention(y, y, y, need_weights=False)
        x = x + attended
        y = x + self.mlp(x) * self.scale + self.bias
        return y


class Model(nn.Module):
    def __init__(self, words: int, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width, 2) for _ in range(2)])
        self.heads = nn.ModuleDict({"words": nn.Linear(width, words, bias=False)})
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.heads["words"](x)
        return logits

    @flow.no_grad()
    def generate(self, tokens: Tensor, count: int) -> Tensor:
        for _ in range(count):
            logits = self(tokens[:, -8:])[:, -1]
            probabilities = F.softmax(logits / 0.8, dim=-1)
            following = flow.multinomial(probabilities, 1)
            tokens = flow.cat((tokens, following), dim=1)
        return tokens


class Windows:
    """Batches of windows of a text, as a data loader has them."""

    def __init__(self, data: Tensor, length: int, size: int) -> None:
        self.data, self.length, self.size = data, length, size

    def __len__(self) -> int:
        return (len(self.data) - self.length) // self.size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        starts = flow.randint(0, len(self.data) - self.length, (self.size,))
        for _ in range(len(self)):
            windows = [self.data[i : i + self.length + 1] for i in starts.tolist()]
            stacked = flow.stack(windows)
            yield stacked[:, :-1], stacked[:, 1:]


def accuracy(logits: Tensor, target: Tensor) -> float:
    right = (logits.argmax(dim=-1) == target).float().mean()
    return float(right.item())


def train(steps: int, device: flow.device) -> list[float]:
    flow.manual_seed(0)
    model = Model(words=12).to(device)
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    optimizer = optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=1e-3,
        betas=(0.9, 0.95),
    )
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    loader = Windows(flow.arange(64) % 12, length=8, size=4)
    losses: list[float] = []
    model.train()
    for step, (tokens, target) in enumerate(loader):
        if step == steps:
            break
        tokens, target = tokens.to(device), target.to(device, non_blocking=True)
        logits = model(tokens)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), target.reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        print(f"{step}: {loss:.3f}, norm {norm.item():.2f}, lr {scheduler.get_last_lr()[0]:.2e}")
    model.eval()
    assert count > 0 and not math.isnan(sum(losses))
    return losses


def fit(x: Array, y: Array) -> nn.Module:
    model = nn.Sequential(nn.Linear(x.shape[1], 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _epoch in range(2):
        for images, labels in batches(x, y, size=4):
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    with flow.no_grad():
        accuracy(model(flow.from_numpy(x)), flow.from_numpy(y))
    return model


def checkpoint(model: nn.Module, optimizer: optim.Optimizer, folder: Path) -> None:
    path = folder / "model.pt"
    flow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}, path)
    state = flow.load(path, map_location="cpu")
    model.load_state_dict(state["model"], strict=True)
    optimizer.load_state_dict(state["optimizer"])
    for name, parameter in model.named_parameters():
        print(name, tuple(parameter.shape), parameter.dtype, parameter.device.type)


if __name__ == "__main__":
    train(2, flow.device("cuda" if flow.cuda.is_available() else "cpu"))
    rng = np.random.default_rng(0)
    fitted = fit(rng.random((16, 5), dtype=np.float32), rng.integers(0, 3, 16))
    generated = Model(12).generate(flow.zeros(1, 4, dtype=flow.int64), 3)
    assert generated.shape == (1, 7)
    with tempfile.TemporaryDirectory() as name:
        checkpoint(fitted, optim.Adam(fitted.parameters(), lr=1e-3), Path(name))
