# SPDX-License-Identifier: Apache-2.0
"""Writes into views of global tensors reach the tensor, and views see what was written elsewhere,
as on one device: also where an index cuts a split dim, so that elements move between ranks.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import itertools

import numpy as np
import pytest
from rank_group import DEVICE, GRID, LINE, unchecked
from test_global import place_of, sbp_of, values_of

flow = pytest.importorskip("oneflow_lite")

SHAPE = (5, 7)  # uneven on two ranks and on four
PLACEMENTS = {"line": LINE, "grid": GRID, "two of four": [1, 3]}
SBPS = {1: [("S0",), ("S1",), ("B",), ("P",)],
        2: [("S0", "S0"), ("S0", "S1"), ("S1", "S0"), ("B", "S0"), ("S1", "P")]}  # fmt: skip

INDICES = ["1:3", "2", "-1, 0", "..., 1:5:2", "1:, None, 3", "4:4", ":", "...", "None", "::2, 1:2",
           "3:, ..., None", "-2:, -3", "..., 6", "[0, 3, 3]", "1:4, [0, 6]"]  # fmt: skip
# v is a row of what the index gives, w of the same dtype and 0-dim.
STATEMENTS = ["x[{}] += v", "x[{}] -= 2", "x[{}] *= v", "x[{}] /= 4", "x[{}] **= 2", "x[{}] //= 3",
              "x[{}] %= w", "x[{}] = v", "x[{}] = 1.5"]  # fmt: skip
INTEGERS = ["x[{}] += v", "x[{}] |= 3", "x[{}] &= 6", "x[{}] ^= v", "x[{}] <<= 1", "x[{}] >>= 1"]
METHODS = ["x[{}].add_(v)", "x[{}].zero_()", "x[{}].fill_(3)", "x[{}].copy_(v)", "x[{}].clamp_(0)",
           "x[{0}].mul_(x[{0}])", "torch_add(x[{0}], v, out=x[{0}])"]  # fmt: skip


def spread(t, ranks, sbp):
    """A local tensor, the same on all ranks, as a global one."""
    p = flow.placement("cpu", ranks)
    return t.to_global(p, [flow.sbp.broadcast] * len(sbp)).to_global(sbp=[sbp_of(s) for s in sbp])


def run(statement, index, **names):
    exec(statement.format(index), {"torch_add": flow.add}, names)


def row_of(x, index):
    """A row to write, of the dtype of x."""
    cut = eval(f"x[{index}]", {}, {"x": x})
    return values_of(cut.shape[-1:]).astype(x.dtype) if cut.ndim else x.dtype.type(3)


@unchecked()
def write(rank, ranks, statements, indices, dtype):
    whole = [flow.sbp.broadcast] * np.ndim(ranks)
    for sbp, statement, index in itertools.product(SBPS[np.ndim(ranks)], statements, indices):
        values = values_of(SHAPE).astype(dtype)
        alone = flow.tensor(values, device=DEVICE)
        x = spread(alone.clone(), ranks, sbp)
        row = flow.tensor(row_of(values, index))
        run(statement, index, x=alone, v=row.to(DEVICE), w=flow.tensor(dtype(5)))
        place = x.to_local().data_ptr()
        run(statement, index, x=x, v=spread(row, ranks, ["B"] * len(sbp)), w=flow.tensor(dtype(5)))
        assert x.sbp == tuple(map(sbp_of, sbp)) and x.to_local().data_ptr() == place
        got = x.to_global(sbp=whole).to_local()
        if place_of(rank, ranks) is not None:
            np.testing.assert_array_equal(got.numpy(), alone.numpy(), f"{sbp} {statement} {index}")


@pytest.mark.parametrize("ranks_of", PLACEMENTS)
def test_augmented_assignment_on_four_ranks(ranks, ranks_of):
    indices = INDICES[::2] if ranks_of == "grid" else INDICES
    ranks.run(write, PLACEMENTS[ranks_of], STATEMENTS, indices, np.float64)
    ranks.run(write, PLACEMENTS[ranks_of], INTEGERS, indices, np.int32)


@pytest.mark.parametrize("ranks_of", PLACEMENTS)
def test_in_place_methods_of_a_view_on_four_ranks(ranks, ranks_of):
    ranks.run(write, PLACEMENTS[ranks_of], METHODS, INDICES[:-2], np.float64)  # places make copies


def test_writes_on_two_ranks(two_ranks):
    two_ranks.run(write, [0, 1], STATEMENTS + METHODS, INDICES[:-2], np.float64)
    two_ranks.run(write, [0, 1], INTEGERS, INDICES, np.int64)


def program(statement, index, spread_it):
    """Gradients of what stayed and of what was written, and a use of the view itself."""
    a = spread_it(flow.tensor(values_of(SHAPE), device=DEVICE), True).requires_grad_()
    row = flow.tensor(row_of(values_of(SHAPE), index), device=DEVICE)
    v = spread_it(row, False).requires_grad_()
    x = a * 2
    run(statement, index, x=x, v=v, w=flow.tensor(np.float64(5)))
    view = x[eval(f"np.s_[{index}]")]
    view *= v
    ((x * x).sum() + view.sum()).backward()
    return [t.numpy() for t in (x.detach(), view.detach(), a.grad, v.grad)]


@unchecked()
def gradients(rank, ranks, statements, indices):
    for sbp, statement, index in itertools.product(SBPS[np.ndim(ranks)], statements, indices):
        alone = program(statement, index, lambda t, split: t.clone())
        together = program(
            statement, index,
            lambda t, split, sbp=sbp: spread(t, ranks, sbp if split else ["B"] * len(sbp)),
        )  # fmt: skip
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12,
                                       err_msg=f"{sbp} {statement} {index}")  # fmt: skip


FOLLOWED = ["x[{}] += v", "x[{}] *= v", "x[{}] /= 4", "x[{}] = v", "x[{}].fill_(3)",
            "x[{0}].mul_(x[{0}] - v)"]  # fmt: skip


@pytest.mark.parametrize("ranks_of", ["line", "grid"])
def test_gradients_are_those_of_one_device(ranks, ranks_of):
    indices = ["1:3", "-1, 0", "1:, None, 3", "::2, 1:2"]
    ranks.run(gradients, PLACEMENTS[ranks_of], FOLLOWED, indices)


def test_gradients_on_two_ranks(two_ranks):
    two_ranks.run(gradients, [0, 1], FOLLOWED, ["1:3", "..., 1:5:2", "4:4"])


def chain(t):
    """What is seen by a tensor and views of it while each of them is written."""
    apart, beside = t[1:4], t[:, 2:]
    inner = apart[1:, 3]
    inner += 1
    yield from (t, apart, beside, inner)
    apart[0] -= 4
    apart.t()[2].mul_(2)
    yield from (t, apart, beside, inner)
    t.mul_(3)
    yield from (inner, apart + 1, beside, apart[0], apart.flatten(), apart.sum(0))
    t[:, 4] = -1
    apart.detach()[:, :2][1:].neg_()
    beside[2].copy_(beside[0])
    yield from (t, apart, beside, inner, inner.sum())
    flow.manual_seed(4)
    apart[:2].normal_()
    yield from (apart, t, t.diagonal()[1:3].fill_(9), t, t.unfold(0, 2, 2)[1], t.view(7, 5)[2:4])
    yield t.select_scatter(t[0], 0, -1)
    yield t.slice_scatter(t[:2], 0, 1, 3)


def views_of_views(rank, ranks):
    for sbp in SBPS[np.ndim(ranks)]:
        alone = flow.tensor(values_of(SHAPE), device=DEVICE)
        together = spread(alone.clone(), ranks, sbp)
        expected = [t.clone().numpy() for t in chain(alone)]
        seen = [t.clone().numpy() for t in chain(together)]
        for k, (one, other) in enumerate(zip(expected, seen, strict=True)):
            np.testing.assert_allclose(other, one, rtol=1e-12, err_msg=f"{sbp} {k}")


@pytest.mark.parametrize("ranks_of", ["line", "grid"])
def test_views_see_what_is_written_elsewhere(ranks, ranks_of):
    ranks.run(views_of_views, PLACEMENTS[ranks_of])


def lists(rank):
    """Ops over lists, as optimizers call them, write views through as well."""
    x = spread(flow.tensor(values_of(SHAPE), device=DEVICE), LINE, ["S0"])
    params = [x[1:3].detach().requires_grad_(), x[4].detach().requires_grad_()]
    for p in params:
        p.grad = flow.ones_like(p)
    flow.optim.SGD(params, lr=0.5).step()
    expected = values_of(SHAPE)
    expected[[1, 2, 4]] -= 0.5
    np.testing.assert_array_equal(x.numpy(), expected)


def test_an_optimizer_reaches_what_its_parameters_are_cut_from(ranks):
    ranks.run(lists)


def refused(rank):
    x = spread(flow.tensor(values_of(SHAPE), device=DEVICE), LINE, ["S0"])
    leaf = x.clone().requires_grad_()
    for write_it in ("x[1:3] += 1", "x[1:3] = 1", "x[1:3].zero_()", "x[1:3] = x[1:3]"):
        with pytest.raises(RuntimeError, match="leaf"):
            exec(write_it, {}, {"x": leaf})
    np.testing.assert_array_equal(leaf.detach().numpy(), values_of(SHAPE))
    with pytest.raises(ValueError, match="the step of a slice of a tensor must be positive"):
        x[::-1] += 1
    with pytest.raises(IndexError, match="out of range"):
        x[5] += 1
    with pytest.raises(RuntimeError, match="local"):
        x[1:3] += flow.ones(7, dtype=flow.float64, device=DEVICE)
    with pytest.raises(RuntimeError, match="expand|overlap|same element"):
        x[1:3].unsqueeze(0).expand(2, 2, 7).add_(1)
    np.testing.assert_array_equal(x.numpy(), values_of(SHAPE))
    # What a backward needs as it was may not change, through whichever view.
    w = leaf * 1
    y = w[1:3].square()
    w[2] += 1
    with pytest.raises(RuntimeError, match="version|changed|in place"):
        y.sum().backward()
    with flow.no_grad():
        leaf[1:3] += 1
    np.testing.assert_array_equal(leaf.detach()[1:3].numpy(), values_of(SHAPE)[1:3] + 1)


def test_what_is_refused_changes_nothing(ranks):
    ranks.run(refused)


@pytest.mark.parametrize("sbp", SBPS[2])
def test_the_gradient_of_a_cut_on_a_grid_in_one_process(sbp):
    p = flow.placement("meta", ranks=[[0, 1], [2, 3]])  # the shards' shapes, which are rank 0's
    for index in [*INDICES, ":, 2:2", "None, :, 2:2", "3:3, 1:4", ":, 7:"]:
        if "[" in index:
            continue
        sbps = [flow.sbp.broadcast if s == "P" else sbp_of(s) for s in sbp]
        x = flow.ones(*SHAPE, device="meta").to_global(p, sbps).requires_grad_()
        y = eval(f"x[{index}]", {}, {"x": x})
        y.sum().backward()
        assert x.grad.shape == x.shape, index
