# SPDX-License-Identifier: Apache-2.0
"""Moves, random numbers and losses, as cases.

A move has few distinct rows or columns in its way; what lies anywhere in memory, or where an
element of the result has any number of sources, is of the kind "indexed".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite.bench.calls import BACKWARD, BOTH, Case

Calls = dict[str, Callable[..., Any]]

MOVES: Calls = {
    "clone": lambda m, f, x: x.clone(),
    "x.T to rows": lambda m, f, x: x.T.contiguous(),
    "permute(0, 2, 1, 3) to rows": lambda m, f, four: four.permute(0, 2, 1, 3).contiguous(),
    "permute(0, 1, 3, 2) to rows": lambda m, f, four: four.permute(0, 1, 3, 2).contiguous(),
    "permute(3, 2, 1, 0) to rows": lambda m, f, four: four.permute(3, 2, 1, 0).contiguous(),
    "permute(0, 2, 3, 1) to rows": lambda m, f, four: four.permute(0, 2, 3, 1).contiguous(),
    "expand a row to rows": lambda m, f, x, row: row.expand(x.shape).contiguous(),
    "expand a column to rows": lambda m, f, x, column: column.expand(x.shape).contiguous(),
    "cat(0)": lambda m, f, x, y: m.cat([x, y], 0),
    "cat(1)": lambda m, f, x, y: m.cat([x, y], 1),
    "cat(1) of 3": lambda m, f, x, y, z: m.cat([x, y[:, :-3], z[:, 1:]], 1),
    "stack(0)": lambda m, f, x, y: m.stack([x, y], 0),
    "stack(2)": lambda m, f, x, y: m.stack([x, y], 2),
    "flip(0)": lambda m, f, x: m.flip(x, (0,)),
    "flip(1)": lambda m, f, x: m.flip(x, (1,)),
    "flip(0, 1)": lambda m, f, x: m.flip(x, (0, 1)),
    "rot90": lambda m, f, x: m.rot90(x),
    "roll(3, 0)": lambda m, f, x: m.roll(x, 3, 0),
    "roll(3, 1)": lambda m, f, x: m.roll(x, 3, 1),
    "roll() of all": lambda m, f, x: m.roll(x, 3),
    "tril": lambda m, f, x: m.tril(x),
    "triu": lambda m, f, x: m.triu(x, 1),
    "repeat_interleave(2, 0)": lambda m, f, x: m.repeat_interleave(x, 2, 0),
    "repeat_interleave(2, 1)": lambda m, f, x: m.repeat_interleave(x, 2, 1),
    "tile(2, 1)": lambda m, f, x: m.tile(x, (2, 1)),
    "tile(1, 2)": lambda m, f, x: m.tile(x, (1, 2)),
    "pad(1, 2)": lambda m, f, x: f.pad(x, (1, 2)),
    "pad(1, 2, 3, 4) of 4-D": lambda m, f, four: f.pad(four, (1, 2, 3, 4)),
    "pad reflect": lambda m, f, four: f.pad(four, (1, 2, 3, 4), mode="reflect"),
    "pad replicate": lambda m, f, four: f.pad(four, (1, 2, 3, 4), mode="replicate"),
    "pad circular": lambda m, f, four: f.pad(four, (1, 2, 3, 4), mode="circular"),
    "index_select(0)": lambda m, f, x, index: m.index_select(x, 0, index),
    "index_select(1)": lambda m, f, x, cols: m.index_select(x, 1, cols),
    "x[index]": lambda m, f, x, index: x[index],
    "embedding": lambda m, f, table, words: f.embedding(words, table),
    "gather(1)": lambda m, f, x, places: m.gather(x, 1, places),
    "gather(0) of rows": lambda m, f, x, index: m.gather(
        x, 0, index.unsqueeze(1).expand(x.shape[0], x.shape[1])
    ),
    "one_hot": lambda m, f, classes, table: f.one_hot(classes, table.shape[1]),
}
# Places are written once, because of several values for one place PyTorch writes any.
INDEXED: Calls = {
    "gather(0)": lambda m, f, x, places0: m.gather(x, 0, places0),
    "take": lambda m, f, x, places: m.take(x, places),
    "scatter(1) of a number": lambda m, f, x, places: m.scatter(x, 1, places, 0.5),
    "scatter(1) of an order": lambda m, f, x, y, order: m.scatter(x, 1, order, y),
    "scatter_add(1)": lambda m, f, x, places, y: m.scatter_add(x, 1, places, y),
    "scatter_add(0)": lambda m, f, x, places0, y: m.scatter_add(x, 0, places0, y),
    "index_add(0)": lambda m, f, x, index, y: m.index_add(x, 0, index, y),
    "index_put": lambda m, f, x, shuffled, y: m.index_put(x, (shuffled,), y),
    "index_put accumulate": lambda m, f, x, index, y: m.index_put(x, (index,), y, accumulate=True),
    "index_copy(0)": lambda m, f, x, shuffled, y: m.index_copy(x, 0, shuffled, y),
    "masked_select": lambda m, f, x, truth: m.masked_select(x, truth),
    "x[truth]": lambda m, f, x, truth: x[truth],
    "masked_scatter": lambda m, f, x, truth, y: m.masked_scatter(x, truth, y),
    "nonzero": lambda m, f, truth: m.nonzero(truth),
}
RANDOM: Calls = {
    "rand": lambda m, f, like: m.rand(like.shape, dtype=like.dtype, device=like.device),
    "randn": lambda m, f, like: m.randn(like.shape, dtype=like.dtype, device=like.device),
    "randint": lambda m, f, like: m.randint(0, 100, like.shape, device=like.device),
    "bernoulli": lambda m, f, x: m.bernoulli(x),
    "uniform_": lambda m, f, like: m.empty_like(like).uniform_(1, 3),
    "normal_": lambda m, f, like: m.empty_like(like).normal_(1, 3),
    "exponential_": lambda m, f, like: m.empty_like(like).exponential_(2),
    "dropout": lambda m, f, x: f.dropout(x, 0.3),
    "rand_like": lambda m, f, like: m.rand_like(like),
}
LOSSES: Calls = {
    "mse_loss": lambda m, f, s, t: f.mse_loss(s, t),
    "l1_loss": lambda m, f, s, t: f.l1_loss(s, t),
    "smooth_l1_loss": lambda m, f, s, t: f.smooth_l1_loss(s, t),
    "huber_loss": lambda m, f, s, t: f.huber_loss(s, t),
    "binary_cross_entropy": lambda m, f, x, y: f.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda m, f, s, y: f.binary_cross_entropy_with_logits(s, y),
    "kl_div": lambda m, f, s, x: f.kl_div(s, x),
    "nll_loss": lambda m, f, s, target: f.nll_loss(s, target),
    "cross_entropy": lambda m, f, s, target: f.cross_entropy(s, target),
    "poisson_nll_loss": lambda m, f, x, y: f.poisson_nll_loss(x, y),
    "gaussian_nll_loss": lambda m, f, s, t, x: f.gaussian_nll_loss(s, t, x),
    "soft_margin_loss": lambda m, f, s, sign: f.soft_margin_loss(s, sign),
    "hinge_embedding_loss": lambda m, f, s, sign: f.hinge_embedding_loss(s, sign),
    "margin_ranking_loss": lambda m, f, s, t, sign: f.margin_ranking_loss(s, t, sign),
    "multi_margin_loss": lambda m, f, s, target: f.multi_margin_loss(s, target),
    "cosine_embedding_loss": lambda m, f, s, t, row_sign: f.cosine_embedding_loss(s, t, row_sign),
    "triplet_margin_loss": lambda m, f, s, t, u: f.triplet_margin_loss(s, t, u),
}
# How many of a loss's operands get a gradient, where it is not the first alone.
INPUTS = {"margin_ranking_loss": 2, "cosine_embedding_loss": 2, "triplet_margin_loss": 3}
SMALL: Calls = {
    "clone": lambda m, f, a: a.clone(),
    "a.T to rows": lambda m, f, a: a.T.contiguous(),
    "cat": lambda m, f, a, b: m.cat([a, b]),
    "reshape": lambda m, f, a: a.reshape(64, 4),
    "x[1:3]": lambda m, f, a: a[1:3],
    "index_select": lambda m, f, a, d: m.index_select(a, 0, d),
    "embedding": lambda m, f, a, d: f.embedding(d, a),
    "flip": lambda m, f, a: m.flip(a, (1,)),
    "masked_fill": lambda m, f, a, e: a.masked_fill(e, 0.0),
    "tril": lambda m, f, a: m.tril(a),
    "mse_loss": lambda m, f, a, b: f.mse_loss(a, b),
    "cross_entropy": lambda m, f, a, d: f.cross_entropy(a, d),
    "softmax": lambda m, f, a: f.softmax(a, -1),
    "layer_norm": lambda m, f, a, c: f.layer_norm(a, (64,), c, c),
}

# Fractions of the operands that are read, where not all are.
PARTS: dict[str, tuple[float, ...]] = {
    "tril": (0.5,), "triu": (0.5,), "one_hot": (1, 0), "nll_loss": (0, 1),
    "expand a row to rows": (0, 1), "expand a column to rows": (0, 1),
    "bernoulli": (1,), "dropout": (1,),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for label, f in MOVES.items():
        yield Case(label, "move", f, part=PARTS.get(label, ()))
    for label in ("embedding", "index_select(0)"):
        yield Case(f"{label} backward", "indexed", MOVES[label], BACKWARD, (0, 1))
    for label, f in INDEXED.items():
        yield Case(label, "indexed", f)
    for label, f in RANDOM.items():
        yield Case(label, "random", f, part=PARTS.get(label, (0,)), random=True)
    yield Case("dropout backward", "random", RANDOM["dropout"], BACKWARD, (0,), random=True)
    for label, f in LOSSES.items():
        read, jumps = PARTS.get(label, ()), 0.1 if "margin" in label or "hinge" in label else 0
        yield Case(label, "loss", f, part=read)
        yield Case(f"{label} with backward", "loss", f, BOTH, read, INPUTS.get(label, 1),
                   jumps=jumps)  # fmt: skip
    for label, f in SMALL.items():
        yield Case(f"{label} 4x64", "small", f)
    yield Case("dropout 4x64", "small", lambda m, f, a: f.dropout(a, 0.3), random=True)
