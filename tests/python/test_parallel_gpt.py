# SPDX-License-Identifier: Apache-2.0
"""A GPT trained 50 steps data-parallel, tensor-parallel and with a split optimizer: as one process.

float64 within 1e-10; of float32 the first gradients within 1e-5 of the largest, losses within 1e-4.
"""

import functools

import numpy as np
import pytest
from rank_group import DEVICE, unchecked

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402
from oneflow_lite.models import gpt  # noqa: E402

nn, F = flow.nn, flow.nn.functional
FEWER = 15  # steps of four ranks, which share two cores
STEPS, ROWS, LENGTH, VOCAB = 50, 6, 8, 21  # a vocabulary that no number of ranks here divides
# Bits, and what a gradient, relative to the largest, and a loss may differ by.
CLOSE = {"float64": (1e-10, 1e-10), "float32": (1e-5, 1e-4)}
KINDS = {"gpt2": "tiny", "llama": "tiny-llama"}


def data():
    """Sequences in which each number follows from the one before."""
    ids = [np.random.default_rng(2).integers(0, VOCAB, (STEPS, ROWS))]
    for _ in range(LENGTH):
        ids.append((3 * ids[-1] + 1) % VOCAB)
    return np.stack(ids, -1)


def fresh(kind, dtype, layers=1):
    flow.manual_seed(4)
    config = gpt.PRESETS[KINDS[kind]].replaced(
        length=LENGTH, vocab=VOCAB, layers=layers, width=16, hidden=24 if kind == "llama" else None
    )
    return gpt.build(flow, config).to(DEVICE, getattr(flow, dtype))


def options(model):
    return gpt.parameter_groups(model, 0.1)


def train(model, optimizer, batch_of, mean_of=None, gradient_of=None, steps=STEPS):
    """The losses, and the gradients of the first step by name."""
    losses, first = [], {}
    for ids in data()[:steps]:
        ids = batch_of(flow.tensor(ids, device=DEVICE))
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        if mean_of:
            loss = mean_of(loss, ids.shape[0])
        optimizer.zero_grad()
        loss.backward()
        if not first:
            get = gradient_of or (lambda p: p.grad)
            first = {n: get(p).numpy().copy() for n, p in model.named_parameters()}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return losses, first


@functools.cache
def in_one_process(kind, dtype):
    model = fresh(kind, dtype)
    optimizer = flow.optim.AdamW(options(model), lr=3e-3)
    losses, first = train(model, optimizer, lambda ids: ids)
    assert losses[-1].item() < losses[0].item() - 0.1
    return [x.item() for x in losses], first


def check(kind, dtype, losses, first):
    want, gradients = in_one_process(kind, dtype)
    of_gradients, of_losses = CLOSE[dtype]
    np.testing.assert_allclose(losses, want[: len(losses)], rtol=0, atol=of_losses)
    for name, g in gradients.items():
        error = np.abs(first[name].reshape(g.shape) - g).max()
        assert error <= of_gradients * np.abs(g).max(), (name, error)


@unchecked()
def data_parallel(rank, size, kind, dtype, zero, steps=STEPS):
    """Uneven batches on four ranks: six rows."""
    wrapped = dist.DataParallel(fresh(kind, dtype), 2000 / 2**20)
    model = wrapped.module
    if zero:
        optimizer = dist.ZeroOptimizer(flow.optim.AdamW, options(model), stage=zero, lr=3e-3)
    else:
        optimizer = flow.optim.AdamW(options(model), lr=3e-3)

    def rows(ids):
        return flow.tensor(np.array_split(ids.cpu().numpy(), size)[rank], device=DEVICE)

    def mean(loss, count):
        return dist.global_mean(loss * count, count)

    get = optimizer.split_gradient if zero == 2 else None
    losses, first = train(model, optimizer, rows, mean, get, steps)
    total = flow.stack(losses)
    dist.all_reduce(total, "avg")
    check(kind, dtype, total.numpy(), first)


@unchecked()
def tensor_parallel(rank, grid, kind, dtype, steps=STEPS):
    place = flow.placement("cpu", grid)
    whole, split = flow.sbp.broadcast, flow.sbp.split
    dims = len(place.shape)
    model = gpt.split_weights(fresh(kind, dtype), place, dims - 1)
    optimizer = flow.optim.AdamW(options(model), lr=3e-3)
    assert model.token.weight.sbp[-1] == split(0)
    rows = [split(0), whole] if dims == 2 else [whole]

    def batch(ids):
        return ids.to_global(place, [whole] * dims).to_global(sbp=rows)

    losses, first = train(model, optimizer, batch, steps=steps)
    check(kind, dtype, [x.item() for x in losses], first)
    state = optimizer.state[model.blocks[0].mlp.down.weight]["exp_avg"]
    assert state.sbp == model.blocks[0].mlp.down.weight.sbp
    assert state.sbp[-1] == split(1)


class First(nn.Module):
    """The embeddings and the first of two blocks."""

    def __init__(self, model):
        super().__init__()
        self.token, self.place, self.block = model.token, model.place, model.blocks[0]

    def forward(self, ids):
        x = self.token(ids) + self.place(flow.arange(ids.shape[1], device=ids.device))
        return self.block(None, x, None, None)


class Last(nn.Module):
    """The other block and the head, whose weight is that of the embedding."""

    def __init__(self, model):
        super().__init__()
        self.block, self.norm, self.head = model.blocks[1], model.norm, model.head

    def forward(self, y, residual):
        y, residual = self.block(y, residual, None, None)
        return self.head(gpt.library(flow).add_norm(self.norm, y, residual)[0])


def loss_of(logits, targets):
    return F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))


@unchecked()
def pipeline(rank, dtype, steps=STEPS):
    """Two stages and a weight that both have; micro-batches of two rows."""
    of_gradients, of_losses = CLOSE[dtype]
    alone, model = fresh("gpt2", dtype, 2), fresh("gpt2", dtype, 2)
    reference = [First(alone), Last(alone)]
    place = flow.placement("cpu", [0, 1])
    stages = dist.Pipeline([First(model), Last(model)], place, 3, loss_of)
    ours = flow.optim.AdamW(stages.parameters(), lr=3e-3)
    theirs = flow.optim.AdamW(alone.parameters(), lr=3e-3)
    for k, ids in enumerate(data()[:steps]):
        ids = flow.tensor(ids, device=DEVICE)
        x, t = ids[:, :-1], ids[:, 1:]
        want = loss_of(reference[1](*reference[0](x)), t)
        for optimizer in (ours, theirs):
            optimizer.zero_grad()
        want.backward()
        loss = stages.step(x if rank == 0 else None, t if rank == 1 else None)
        np.testing.assert_allclose(loss.item(), want.item(), rtol=0, atol=of_losses)
        if k == 0:
            for p, q in zip(stages.stage.parameters(), reference[rank].parameters(), strict=True):
                error = (p.grad - q.grad).abs().max().item()
                assert error <= of_gradients * q.grad.abs().max().item()
        ours.step()
        theirs.step()
    assert k == steps - 1 and want.item() < 3.0


@pytest.mark.parametrize("dtype", list(CLOSE))
def test_pipeline(two_ranks, dtype):
    two_ranks.run(pipeline, dtype)


@pytest.mark.parametrize("dtype", list(CLOSE))
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_data_parallel(two_ranks, zero, dtype):
    two_ranks.run(data_parallel, 2, "gpt2", dtype, zero)


@pytest.mark.parametrize("kind, dtype", [("gpt2", "float64"), ("gpt2", "float32"),
                                         ("llama", "float64")])  # fmt: skip
def test_tensor_parallel(two_ranks, kind, dtype):
    two_ranks.run(tensor_parallel, [0, 1], kind, dtype)


def test_uneven_rows_on_four_ranks(ranks):
    ranks.run(data_parallel, 4, "llama", "float64", 2, FEWER)


def test_rows_and_weights_on_a_grid(ranks):
    ranks.run(tensor_parallel, [[0, 1], [2, 3]], "gpt2", "float64", FEWER)
