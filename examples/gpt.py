# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT, in seconds, on sums that it reads as text, some of which it is never shown.

.venv/bin/python examples/gpt.py
"""

from __future__ import annotations

import argparse

import numpy as np

import oneflow_lite as flow
from oneflow_lite import nn, optim

CHARACTERS = "0123456789+=\n"
LENGTH = 24  # characters that it sees at once


def ids(text: str) -> np.ndarray:
    return np.array([CHARACTERS.index(c) for c in text])


class GPT(nn.Module):
    """Ids [batch, length] to logits of the next character, [batch, length, characters]."""

    def __init__(self, features: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.character = nn.Embedding(len(CHARACTERS), features)
        self.place = nn.Embedding(LENGTH, features)
        block = nn.TransformerEncoderLayer(features, heads, 4 * features, 0.0, "gelu",
                                           batch_first=True, norm_first=True)  # fmt: skip
        self.blocks = nn.TransformerEncoder(block, layers, nn.LayerNorm(features))
        self.head = nn.Linear(features, len(CHARACTERS))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        places = flow.arange(x.shape[1], device=x.device)
        return self.head(self.blocks(self.character(x) + self.place(places), is_causal=True))


@flow.no_grad()
def complete(model: GPT, prompt: str, device: str) -> str:
    """What it writes after a prompt, to the end of the line, the likeliest character each time."""
    text = "\n" + prompt
    while len(text) < LENGTH and not text.endswith("\n", 1):
        x = flow.from_numpy(ids(text)[None]).to(device)
        text += CHARACTERS[int(model(x)[0, -1].argmax().item())]
    return text[1 + len(prompt) :]


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small GPT on sums.")
    parser.add_argument("--device", default="cuda" if flow.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=600, help="(%(default)s)")
    args = parser.parse_args()
    flow.manual_seed(0)
    rng = np.random.default_rng(0)
    sums = rng.permutation([f"{a}+{b}={a + b}\n" for a in range(20) for b in range(20)])
    shown, hidden = np.split(sums, [360])
    model = GPT().to(args.device)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps)
    for step in range(args.steps):
        rows = [ids("\n" + "".join(rng.choice(shown, 6)))[: LENGTH + 1] for _ in range(64)]
        x = flow.from_numpy(np.stack(rows)).to(args.device)
        loss = flow.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    for name, some in {"shown": shown[:40], "never shown": hidden}.items():
        pairs = [line.partition("=") for line in some]
        right = sum(complete(model, a + "=", args.device) == c for a, _, c in pairs)
        print(f"sums {name}: {right} of {len(pairs)} right")


if __name__ == "__main__":
    main()
