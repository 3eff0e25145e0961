# SPDX-License-Identifier: Apache-2.0
"""Ops on global tensors that need not gather do not: views, dropout, split classes. What describe
says of it.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import itertools
import re
import time

import numpy as np
import pytest
from rank_group import DEVICE, GRID, LINE

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.models import gpt  # noqa: E402

nn, F = flow.nn, flow.nn.functional
split, whole = flow.sbp.split, flow.sbp.broadcast


def spread(values, p, sbp):
    every = [whole] * len(p.shape)
    return flow.tensor(values).to_global(p, every).to_global(sbp=sbp)


def sent(prof):
    return {s.name: s.bytes for s in prof.stats("collective") if s.bytes}


VIEWS = [
    ((8, 6), (48,), 0), ((8, 6), (2, 4, 6), 1), ((8, 6), (4, 2, 3, 2), 0), ((4, 3, 5), (12, 5), 2),
    ((48,), (8, 6), 0), ((3, 8), (3, 4, 2), 1), ((3, 8), (3, 8, 1), 1), ((1, 8, 3), (8, 3), 1),
    ((5, 7), (5, 1, 7), 0), ((5, 7), (5, 7, 1), 1), ((5, 8), (5, 4, 2), 1), ((5, 8), (40,), 1),
    ((6, 4), (24,), 0), ((2, 4, 3), (8, 3), 0), ((0, 4), (4, 0), 1), ((1, 3), (1, 3, 1), 0),
]  # fmt: skip


def views(rank, ranks):
    p = flow.placement("cpu", ranks)
    free = []
    for shape, to, axis in VIEWS:
        values = np.arange(np.prod(shape), dtype=float).reshape(shape)
        g = np.cos(np.arange(values.size)).reshape(to)
        sbp = [split(axis)] * len(p.shape)
        x = spread(values, p, sbp).detach().requires_grad_()
        with flow.profiler.profile() as prof:
            y = x.view(*to)
        free.append(not prof.stats("collective"))
        np.testing.assert_array_equal(y.detach().numpy(), values.reshape(to))
        y.backward(spread(g, p, y.sbp))
        np.testing.assert_array_equal(x.grad.numpy(), g.reshape(shape))
    return free


# Not the first of dims that become one, uneven parts, or no elements.
MOVED = [((5, 8), (40,), 1), ((6, 4), (24,), 0), ((2, 4, 3), (8, 3), 0), ((0, 4), (4, 0), 1)]


@pytest.mark.parametrize("placement", [LINE, GRID], ids=["line", "grid"])
def test_views_keep_a_split_where_parts_are_even(ranks, placement):
    found = ranks.run(views, placement)
    assert all(f == found[0] for f in found)
    assert [v for v, free in zip(VIEWS, found[0], strict=True) if not free] == MOVED


def cuts(rank):
    """Slices and selections: their gradients split the dims that are whole."""
    p = flow.placement("cpu", LINE)
    values = np.arange(7.0 * 6 * 5).reshape(7, 6, 5)
    silent = 0
    for axis in range(3):
        for cut in (lambda t: t[:, 1:5:2], lambda t: t[2], lambda t: t[..., -1],
                    lambda t: t[1:6, ::3, 2:3], lambda t: t.permute(2, 0, 1)[1:],
                    lambda t: t.chunk(3, 1)[2], lambda t: t.unbind(0)[6]):  # fmt: skip
            plain = flow.tensor(values, requires_grad=True)
            want = cut(plain)
            g = np.sin(np.arange(want.numel())).reshape(want.shape)
            want.backward(flow.tensor(g))
            x = spread(values, p, [split(axis)]).detach().requires_grad_()
            with flow.profiler.profile() as forward:
                y = cut(x)
            np.testing.assert_array_equal(y.detach().numpy(), want.detach().numpy())
            g = spread(g, p, y.sbp)
            with flow.profiler.profile() as prof:
                y.backward(g)
            np.testing.assert_array_equal(x.grad.numpy(), plain.grad.numpy())
            if not sent(forward):
                assert not sent(prof) and x.grad.sbp == (split(axis),), (axis, y.shape)
                silent += 1
    assert silent >= 10


def test_gradients_of_slices_are_not_gathered(ranks):
    ranks.run(cuts)


def moved(rank):
    p = flow.placement("cpu", LINE)
    values = np.arange(1.0, 13)
    x = spread(values, p, [split(0)]).detach().requires_grad_()
    y, dy = x.exp(), spread(values, p, [split(0)])
    with flow.profiler.profile() as prof:
        y.backward(dy)
    np.testing.assert_allclose(x.grad.numpy(), values * np.exp(values))
    return {s.name for s in prof.stats()}


def test_a_gradient_that_nobody_else_holds_is_moved(ranks):
    assert all("cast" not in names and len(names) > 0 for names in ranks.run(moved))


SHAPES = [(8, 12), (4, 8, 4), (16,), (4, 1, 8)]


def dropped(rank, ranks, function, dtype):
    """The same elements on any number of ranks, and nothing sent for it."""
    p = flow.placement("cpu", ranks)
    for shape in SHAPES:
        if function != "dropout" and len(shape) < 3:
            continue
        run = getattr(F, function)
        values = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)
        flow.manual_seed(5)
        flow.rand(3, device=DEVICE)  # begin somewhere
        plain = flow.tensor(values, device=DEVICE, requires_grad=True)
        want = run(plain, 0.4)
        want.sum().backward()
        for a in range(len(shape)):
            for b in range(len(shape)) if len(p.shape) == 2 else (0,):
                sbp = [split(a), split(b)][: len(p.shape)]
                x = spread(values, p, sbp).detach().requires_grad_()
                flow.manual_seed(5)
                flow.rand(3, device=DEVICE)
                with flow.profiler.profile() as prof:
                    y = run(x, 0.4)
                    y.backward(flow.ones(*shape, dtype=x.dtype, placement=p, sbp=sbp))
                np.testing.assert_array_equal(y.detach().numpy(), want.detach().numpy())
                np.testing.assert_array_equal(x.grad.numpy(), plain.grad.numpy())
                parts = [1] * len(shape)
                for axis, n in zip((a, b), p.shape, strict=False):
                    parts[axis] *= n
                if all(n % k == 0 for n, k in zip(shape, parts, strict=True)):
                    assert not sent(prof) and y.sbp == tuple(sbp), (shape, sbp)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["dropout", "dropout2d", "alpha_dropout"])
@pytest.mark.parametrize("placement", [LINE, GRID], ids=["line", "grid"])
def test_dropout_draws_by_the_place_in_the_whole(ranks, placement, function, dtype):
    ranks.run(dropped, placement, function, dtype)


def drawn_anew(rank, ranks):
    """A plan that was kept draws elsewhere each time, and is the one that a new process makes."""
    p = flow.placement("cpu", ranks)
    x = spread(np.ones((8, 12)), p, [split(0)] * len(p.shape))
    q = spread(np.ones((4, 2, 8, 4)), p, [split(0)] * len(p.shape))
    for draw in (lambda: F.dropout(x), lambda: x.clone().normal_(), lambda: x.clone().bernoulli_(),
                 lambda: flow.rand(8, 12, placement=p, sbp=x.sbp),
                 lambda: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)):  # fmt: skip
        runs = []
        for _ in range(2):
            flow.manual_seed(1)
            runs.append([draw().numpy() for _ in range(3)])
        np.testing.assert_array_equal(runs[0], runs[1])
        assert not np.array_equal(runs[0][0], runs[0][1])
        assert not np.array_equal(runs[0][1], runs[0][2])


@pytest.mark.parametrize("placement", [LINE, GRID], ids=["line", "grid"])
def test_each_call_draws_anew(ranks, placement):
    ranks.run(drawn_anew, placement)


def overheads(rank):
    """Microseconds by which calls on one rank are longer than local ones: with a plan, without."""
    local = flow.ones(8, 4)
    x = local.to_global(flow.placement("cpu", [0]), split(0))
    if rank:
        return None
    others = iter(np.linspace(0.1, 0.9, 10_000))  # another p, another plan

    def lasts(t, chances):
        best = 1.0
        for _ in range(30):
            given = [float(next(chances)) for _ in range(200)]
            start = time.perf_counter()
            for p in given:
                F.dropout(t, p)
            best = min(best, (time.perf_counter() - start) / 200)
        return best * 1e6

    again = itertools.repeat(0.5)
    return [lasts(x, chances) - lasts(local, again) for chances in (again, others)]


def test_dropout_plans_once(ranks):
    times = [ranks.run(overheads)[0] for _ in range(3)]  # beside other work one of them may do
    assert any(planned < 0.75 * planning for planned, planning in times), times


def classes(rank, ranks, sbps, smoothing, count):
    p = flow.placement("cpu", ranks)
    kinds = {"B": whole, "0": split(0), "1": split(1)}
    sbp = [kinds[s] for s in sbps]
    rng = np.random.default_rng(1)
    values, target = 30 * rng.standard_normal((8, count)), rng.integers(0, count, 8)
    target[3] = -100
    rows = [kinds["0" if s == "0" else "B"] for s in sbps]

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)

    for in_place in (False, True):
        plain = flow.tensor(values, requires_grad=True)
        want = F.cross_entropy(plain, flow.tensor(target), label_smoothing=smoothing)
        want.backward()
        x = spread(values, p, sbp).detach().requires_grad_()
        t = spread(target, p, rows)
        with flow.profiler.profile() as prof:
            got = F.cross_entropy(x * 1, t, label_smoothing=smoothing, inplace_backward=in_place)
            got.backward()
        close(got.item(), want.item())
        close(x.grad.numpy(), plain.grad.numpy())
        assert x.grad.sbp == tuple(sbp)
        assert sum(sent(prof).values()) < 8 * count * 8 / 2  # of logits that were gathered
    plain = flow.tensor(values, requires_grad=True)
    want = F.log_softmax(plain, 1)
    (want * want).sum().backward()
    x = spread(values, p, sbp).detach().requires_grad_()
    got = F.log_softmax(x, 1)
    (got * got).sum().backward()
    assert got.sbp == tuple(sbp) and x.grad.sbp == tuple(sbp)
    close(got.detach().numpy(), want.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), plain.grad.numpy(), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_classes_that_are_split_are_not_gathered(ranks, smoothing):
    for count in (41, 40):
        ranks.run(classes, LINE, "1", smoothing, count)
    for sbps in ("01", "10", "B1"):
        ranks.run(classes, GRID, sbps, smoothing, 42)
    ranks.run(classes, LINE, "1", smoothing, 33)


def whole_step(rank, preset):
    """Forward and backward of a data-parallel GPT send counts of targets, nothing else."""
    config = gpt.PRESETS[preset].replaced(length=12, vocab=40)
    p = flow.placement("cpu", LINE)
    model = gpt.build(flow, config).to_global(p, whole)
    ids = spread(np.zeros((8, 12), np.int64), p, [split(0)])
    with flow.profiler.profile() as prof:
        model.loss(ids, ids).backward()
    assert all(q.grad.sbp == (flow.sbp.partial_sum,) for q in model.parameters())
    return sum(sent(prof).values())


@pytest.mark.parametrize("preset", ["tiny", "tiny-llama"])
def test_a_data_parallel_gpt_sends_its_gradients_alone(ranks, preset):
    assert max(ranks.run(whole_step, preset)) <= 32


def test_describe_shows_the_choice_without_other_processes():
    p = flow.placement("meta", LINE)
    a = flow.zeros(8, 16, placement=p, sbp=split(0))
    b = flow.zeros(16, 4, placement=p, sbp=split(0))
    with flow.profiler.profile() as prof:
        text = flow.ops.describe("matmul", a, b)
    assert not prof.stats("collective")
    assert re.findall(r"^ +(\(.*\) -> \(.*\)): (.*), chosen$", text, re.M) == [
        ("(S(1), S(0)) -> (P)", "96 bytes")
    ]
    for line in (
        "(S(0), B) -> (S(0)): 192 bytes",
        "(B, B) -> (B): 576 bytes",
        "(P, B) -> (P): - (terms of a sum",
        "input 0: S(0) -> S(1) by all_to_all, 96 bytes",
        "each rank sends 96 bytes for it",
    ):
        assert line in text
    with flow.profiler.profile() as prof:
        flow.matmul(a, b)
    assert sent(prof) == {"all_to_all": 96}
    odd = flow.zeros(6, 4, placement=p, sbp=split(0))
    assert "its parts would not be even" in flow.ops.describe("view", odd, (24,))
    grid = flow.placement("meta", GRID)
    text = flow.ops.describe("exp", flow.zeros(4, 4, placement=grid, sbp=[split(0), whole]))
    assert "along dim 0 of the grid" in text and "along dim 1 of the grid" in text


def test_a_placement_without_devices():
    p = flow.placement("meta", [7, 3, 5])
    x = flow.zeros(7, 4, placement=p, sbp=split(0))
    assert x.is_meta and tuple(x.to_local().shape) == (3, 4)  # the first of the ranks
    y = flow.zeros(2, 3, device="meta").to_global(p, split(1))
    assert tuple(y.shape) == (2, 9)
    with flow.profiler.profile() as prof:
        z = x.to_global(flow.placement("meta", [1, 2]), split(1))
    assert tuple(z.to_local().shape) == (7, 2)
    assert sent(prof) == {"all_gather": 4 * 28 * 2 / 3, "send": 4 * 14}
    with pytest.raises(ValueError, match="the meta device has no data"):
        x.to_global(flow.placement("cpu", [0]), split(0))
    with pytest.raises(RuntimeError):
        x.numpy()
    with pytest.raises(ValueError, match="ranks from 0 on"):
        flow.placement("meta", [-1])
