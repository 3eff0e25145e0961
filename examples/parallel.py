# SPDX-License-Identifier: Apache-2.0
"""One model on two processes, in five ways; `make parallel` runs this on the CPU.

$ .venv/bin/python -m oneflow_lite.launch --nproc 2 --device cpu examples/parallel.py

Each process runs this file from top to bottom. The text explains each step; docs/distributed.md has
the words.
"""

import oneflow_lite as flow
from oneflow_lite import distributed as dist
from oneflow_lite import nn

STEPS, ROWS, FEATURES, HIDDEN, CLASSES = 20, 64, 32, 128, 10
split, whole = flow.sbp.split, flow.sbp.broadcast
rank, size = dist.get_rank(), dist.get_world_size()


def say(text=""):
    """Prints on one rank alone. Nothing that talks to other ranks may stand in its arguments."""
    if rank == 0:
        print(text, flush=True)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES)
        self.up, self.down = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(self.norm(x))))


def batches():
    """The same on every rank: all begin with the same seed."""
    flow.manual_seed(3)
    teacher = flow.randn(FEATURES, CLASSES, dtype=flow.float64)
    for _ in range(STEPS):
        x = flow.randn(ROWS, FEATURES, dtype=flow.float64)
        yield x, (x @ teacher).argmax(1)


def fresh():
    flow.manual_seed(7)
    return Mlp().double()


def train(model, place, optimizer=None):
    """Losses of each step, and the bytes that this rank sent in the last, by collective."""
    optimizer = optimizer or flow.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for x, target in batches():
        x, target = place(x), place(target)
        with flow.profiler.profile() as profile:
            loss = nn.functional.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses, {s.name: s.bytes for s in profile.stats("collective")}


class SplitState:
    """ZeRO-1: each rank steps a part of every parameter, and keeps that part's state alone."""

    def __init__(self, model):
        self.parameters = list(model.parameters())
        self.parts = [p.detach().to_global(sbp=split(0)).requires_grad_() for p in self.parameters]
        self.inner = flow.optim.AdamW(self.parts, lr=0.01)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for p, part in zip(self.parameters, self.parts, strict=True):
            part.grad = p.grad.to_global(sbp=split(0))  # reduce_scatter
        self.inner.step()
        with flow.no_grad():
            for p, part in zip(self.parameters, self.parts, strict=True):
                p.copy_(part.detach().to_global(sbp=whole))  # all_gather


def on_every_rank(p):
    """Local tensors that all ranks have alike, as whole global ones."""
    return lambda t: t.to_global(p, whole)


def by_rows(p):
    return lambda t: t.to_global(p, whole).to_global(sbp=split(0))


def compare(title, losses, sent, reference):
    worst = max(abs(a - b) for a, b in zip(losses, reference, strict=True))
    moved = ", ".join(f"{name} {nbytes:,.0f}" for name, nbytes in sorted(sent.items()) if nbytes)
    say(f"  {title:<22} last loss {losses[-1]:.6f}, farthest from one process {worst:.1e}")
    say(f"  {'':<22} bytes that a rank sends in a step: {moved or 'none'}")
    assert worst < 1e-10, (title, worst)


def main():
    p = flow.placement("cpu", list(range(size)))
    say(f"1. {size} processes. A global tensor is one tensor on all of them; each holds its shard:")
    a = by_rows(p)(flow.arange(12.0).reshape(4, 3))
    say(f"   a has shape {tuple(a.shape)}, rank 0 holds {tuple(a.to_local().shape)}, SBP {a.sbp}")

    say("2. Each op chooses how it runs on the shards, by the bytes that it would have to send:")
    b = on_every_rank(p)(flow.ones(3, 5))
    text = flow.ops.describe("matmul", a, b)
    say("   S(0) is a split by dim 0, B the whole (broadcast), P a term of a sum (partial sum).")
    say("\n".join(f" {line}" for line in text[text.index("    on placement") :].splitlines()))

    say("3. What each rank has a term of is a sum that nobody has made yet:")
    total = a.sum()
    say(f"   a.sum() has SBP {total.sbp}, here {total.to_local().item():g}")
    whole_sum = total.item()  # all ranks call this: it adds up
    say(f"   a.sum().item() is {whole_sum:g} on every rank")
    assert whole_sum == 66

    say("4. The same model and loop, alone and on all ranks; the losses are the same:")
    reference, nothing = train(fresh(), lambda t: t)
    compare("one process", reference, nothing, reference)

    model = fresh().to_global(p, whole)
    compare("data parallel", *train(model, by_rows(p)), reference)

    model = fresh().to_global(p, whole)
    compare("ZeRO-1", *train(model, by_rows(p), SplitState(model)), reference)

    model = fresh().to_global(p, whole)
    model.up.to_global(sbp=split(0))
    model.down.weight.data = model.down.weight.data.to_global(sbp=split(1))
    compare("tensor parallel", *train(model, on_every_rank(p)), reference)

    model = fresh().to_global(p, whole)
    model.down.to_global(sbp=split(0))  # each rank has some of the classes
    compare("vocabulary parallel", *train(model, on_every_rank(p)), reference)

    say("5. What that costs on 8 or 512 GPUs, without any: python -m oneflow_lite.distributed.plan")
    dist.barrier()


if __name__ == "__main__":
    main()
