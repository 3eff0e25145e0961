# SPDX-License-Identifier: Apache-2.0
"""Tensors on some of the ranks: all ranks run one program, those outside of the placement too.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import functools

import numpy as np
import pytest
from rank_group import DEVICE, size

flow = pytest.importorskip("oneflow_lite")

F = flow.nn.functional
SQUARE = [[4.0, 1.0], [1.0, 3.0]]
BATCH = [SQUARE, [[2.0, 0.5], [0.5, 1.0]]]


def written(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def scaled_rows(g):
    weight = g([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    y = F.embedding(g([1, 2]), weight, max_norm=5.0)
    return y + weight.sum()


def efficient_norm(g):
    norm = flow.nn.LayerNorm(2, memory_efficient=True)
    norm.weight.data, norm.bias.data = g([1.0, 2.0]), g([0.0, 1.0])
    return norm(g(SQUARE))


# What has a shape that follows from shapes; `g` makes a tensor of its argument.
PROGRAMS = {
    "x[places]": lambda g: g(SQUARE)[g([1, 0, 1])],
    "x[:, places]": lambda g: g(SQUARE)[:, g([-1])],
    "x[a, b]": lambda g: g(SQUARE)[g([1, 0]), g([0, 1])],
    "x[list]": lambda g: g(SQUARE)[[1]],
    "x[places] =": lambda g: written(g(SQUARE), g([1]), 5.0),
    "x[:, places] =": lambda g: written(g(SQUARE), (slice(None), g([1])), g([[7.0], [8.0]])),
    "x[mask] = number": lambda g: written(g(SQUARE), g(SQUARE) > 2, 0.0),
    "index_put": lambda g: g(SQUARE).index_put((g([1]),), g([1.0]), accumulate=True),
    "inv": lambda g: flow.linalg.inv(g(SQUARE)),
    "inv of a batch": lambda g: flow.linalg.inv(g(BATCH)),
    "cholesky": lambda g: flow.linalg.cholesky(g(SQUARE)),
    "solve": lambda g: flow.linalg.solve(g(SQUARE), g([1.0, 2.0])),
    "lu_factor": lambda g: flow.linalg.lu_factor(g(SQUARE))[0],
    "eigvalsh": lambda g: flow.linalg.eigvalsh(g(SQUARE)),
    "svdvals": lambda g: flow.linalg.svdvals(g(SQUARE)),
    "pinv": lambda g: flow.linalg.pinv(g(SQUARE)),
    "det": lambda g: flow.linalg.det(g(SQUARE)),
    "binary_cross_entropy": lambda g: F.binary_cross_entropy(g([0.3, 0.6]), g([0.0, 1.0])),
    "masked_scatter": lambda g: g(SQUARE).masked_scatter(g(SQUARE) > 2, g([1.0, 2.0, 3.0])),
    "histc": lambda g: flow.histc(g([1.0, 2.0, 3.0, 7.0]), 3),
    "cov": lambda g: flow.cov(g(SQUARE), aweights=g([1.0, 2.0])),
    "quantile": lambda g: flow.quantile(g([1.0, 2.0, 4.0]), g([0.5, 1.0])),
    "embedding(max_norm)": scaled_rows,
    "efficient norm": efficient_norm,
}  # fmt: skip


def spread(values, placement, sbp):
    return flow.tensor(values).to_global(placement, flow.sbp.broadcast).to_global(sbp=sbp)


def runs_everywhere(rank):
    """Each program on ranks 1 and 2, or on rank 0; what it gives, by rank."""
    found = {}
    for ranks in ([0], [1, 2] if size() > 2 else [1]):
        placement = flow.placement(DEVICE, ranks=ranks)
        for name, program in PROGRAMS.items():
            for sbp in (flow.sbp.broadcast, flow.sbp.split(0)):
                y = program(functools.partial(spread, placement=placement, sbp=sbp))
                whole = y.detach().to_global(sbp=flow.sbp.broadcast)
                value = whole.to_local().cpu().numpy() if rank in ranks else None
                found[name, tuple(ranks), str(sbp)] = tuple(y.shape), str(y.sbp), value
    return found


def test_what_has_a_known_shape_runs_on_ranks_outside(ranks):
    of_ranks = ranks.run(runs_everywhere)
    for key in of_ranks[0]:
        name, inside, _ = key
        expected = PROGRAMS[name](flow.tensor).detach().numpy()
        for rank, found in enumerate(of_ranks):
            shape, sbp, value = found[key]
            assert (shape, sbp) == (expected.shape, of_ranks[inside[0]][key][1]), (key, rank)
            assert (value is None) == (rank not in inside)
            if value is not None:
                np.testing.assert_allclose(value, expected, 1e-5, err_msg=str((key, rank)))


def draws(rank):
    placement = flow.placement(DEVICE, ranks=[0])
    rates = flow.tensor([0.0, 1.0, 1.0]).to_global(placement, flow.sbp.broadcast)
    y = flow.multinomial(rates, 2)
    assert y.shape == (2,)
    return sorted(y.to_local().tolist()) if rank == 0 else None


def test_multinomial_draws_where_its_weights_are(ranks):
    assert ranks.run(draws)[0] == [1, 2]


def outcomes_that_only_data_know(rank):
    x = flow.tensor([1.0, 0.0]).to_global(flow.placement(DEVICE, ranks=[0]), flow.sbp.broadcast)
    found = []
    for program in (lambda: x[x > 0], x.unique, x.nonzero, x.item, lambda: bool(x[0] > 0)):
        try:
            program()
            found.append(None)
        except RuntimeError as error:
            found.append(str(error))
    return found


def test_what_only_the_data_know_names_the_placement(ranks):
    first, *others = ranks.run(outcomes_that_only_data_know)
    assert [error is None for error in first] == [True, True, True, False, True]
    for errors in others:
        assert all("of which this rank is none" in error for error in [*errors[:3], errors[4]])
