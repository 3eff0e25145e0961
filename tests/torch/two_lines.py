# SPDX-License-Identifier: Apache-2.0
"""The example of docs/pytorch.md, which test_two_lines.py runs."""

import oneflow_lite_torch as rows
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
rows.patch(device)  # PyTorch's own softmax and norms, from here on

model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 10)).to(device)
replaced = rows.apply_to(model)  # or module by module
assert replaced == ["1: LayerNorm"]

x, target = torch.randn(8, 64, device=device), torch.randint(0, 10, (8,), device=device)
logits = model(x)
loss = rows.cross_entropy(logits, target, inplace_backward=True)  # logits become their gradient
loss.backward()
rows.unpatch()

batch = rows.softmax(x, invariant=True)  # the same bits for this row in a batch of 1 and of 512
assert torch.equal(rows.softmax(x[3:4], invariant=True), batch[3:4])
