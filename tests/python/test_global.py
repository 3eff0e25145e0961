# SPDX-License-Identifier: Apache-2.0
"""Global tensors on four ranks: what they are, boxing between all SBPs, views, errors.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import copy
import gc
import itertools
import weakref

import numpy as np
import pytest
from rank_group import DEVICE, GRID, LINE

flow = pytest.importorskip("oneflow_lite")

SHAPES = [(4, 4), (6, 8), (5, 7), (1, 3)]
SBPS = ["S0", "S1", "B", "P"]


def sbp_of(text):
    return {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}.get(text) or flow.sbp.split(
        int(text[1:])
    )


def values_of(shape, dtype="float64"):
    n = int(np.prod(shape, dtype=np.int64))
    return (np.arange(n) * 7 % 31 - 11).reshape(shape).astype(dtype)


def shard_of(values, sbps, grid_shape, place):
    """What NumPy says lies at a place of the grid; of a sum a term of its own for each rank."""
    for sbp, parts, part in zip(sbps, grid_shape, place, strict=True):
        if sbp.startswith("S"):
            n = values.shape[int(sbp[1:])]
            ends = np.cumsum([n // parts + (i < n % parts) for i in range(parts)])
            start = 0 if part == 0 else ends[part - 1]
            values = np.take(values, range(start, ends[part]), int(sbp[1:]))
        elif sbp == "P":
            shares = [2.0 ** -(i + 1) for i in range(parts)]
            shares[-1] = 1 - sum(shares[:-1])
            values = values * shares[part]
    return values


def place_of(rank, ranks):
    found = np.argwhere(np.array(ranks) == rank)
    return tuple(int(i) for i in found[0]) if len(found) else None


def make(values, ranks, sbps, rank):
    p = flow.placement("cpu", ranks)
    place = place_of(rank, ranks)
    local = np.zeros(1)
    if place is not None:
        local = shard_of(values, sbps, p.shape, place)
    return flow.tensor(np.ascontiguousarray(local)).to_global(p, [sbp_of(s) for s in sbps])


def check(x, values, ranks, sbps, rank):
    """x lies as NumPy says, sums added up."""
    assert x.is_global and tuple(x.shape) == values.shape
    assert x.sbp == tuple(sbp_of(s) for s in sbps)
    place = place_of(rank, ranks)
    local = x.to_local().numpy()
    if place is None:
        assert local.size == 0
    elif "P" not in sbps:
        expected = shard_of(values, sbps, np.shape(ranks), place)
        assert local.shape == expected.shape
        np.testing.assert_array_equal(local, expected)
    if "P" in sbps:
        whole = x.to_global(sbp=[flow.sbp.broadcast] * np.ndim(ranks))
        if place is not None:
            np.testing.assert_allclose(whole.to_local().numpy(), values, rtol=0, atol=1e-12)


def box_all(rank, ranks, pairs, shape):
    values = values_of(shape)
    for before, after in pairs:
        x = make(values, ranks, before, rank)
        y = x.to_global(sbp=[sbp_of(s) for s in after])
        check(y, values, ranks, after, rank)
        check(x, values, ranks, before, rank)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_boxing_on_a_line(ranks, shape):
    pairs = list(itertools.product([(s,) for s in SBPS], repeat=2))
    assert len(pairs) == 16
    ranks.run(box_all, LINE, pairs, shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_boxing_on_a_grid(ranks, shape):
    pairs = list(itertools.product(itertools.product(SBPS, repeat=2), repeat=2))
    assert len(pairs) == 256
    ranks.run(box_all, GRID, pairs, shape)


def box_across(rank, source, target, shape, one, two):
    values = values_of(shape)
    for before, after in itertools.product(one, two):
        x = make(values, source, before, rank)
        y = x.to_global(flow.placement("cpu", target), [sbp_of(s) for s in after])
        check(y, values, target, after, rank)


@pytest.mark.parametrize("source, target", [
    (LINE, GRID), (GRID, LINE), (LINE, [3, 2, 1, 0]), ([0, 1], [2, 3]), ([0, 1], [1, 2]),
    ([2], LINE), (LINE, [1]), ([0, 1, 2], [3]), (GRID, [0, 3]), ([1, 2], GRID),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("shape", [(6, 8), (5, 7), (1, 3)], ids=str)
def test_boxing_to_another_placement(ranks, source, target, shape):
    def ways(placement):
        one = [(s,) for s in SBPS]
        return one if np.ndim(placement) == 1 else [("S0", "S0"), ("S0", "S1"), ("B", "P"),
                                                    ("P", "S1")]  # fmt: skip

    ranks.run(box_across, source, target, shape, ways(source), ways(target))


def box_dtypes(rank):
    for dtype in ("float16", "bfloat16", "float32", "int64", "int32", "int8", "uint8", "bool"):
        values = values_of((5, 6)) % (2 if dtype == "bool" else 50)
        x = flow.tensor(values).to(getattr(flow, dtype))
        p = flow.placement("cpu", LINE)
        split = x.to_global(p, flow.sbp.broadcast).to_global(p, flow.sbp.split(0))
        for way in (flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum):
            y = split.to_global(sbp=way)
            assert y.dtype is x.dtype
            whole = y.to_global(sbp=flow.sbp.broadcast).to_local()
            np.testing.assert_array_equal(whole.double().numpy(), x.double().numpy())


def test_boxing_of_each_dtype(ranks):
    ranks.run(box_dtypes)


def gradients(rank):
    p = flow.placement("cpu", LINE)
    values = values_of((5, 7))
    weight = flow.tensor(np.cos(values))
    for before, after in itertools.product(SBPS, repeat=2):
        local = flow.tensor(np.ascontiguousarray(shard_of(values, [before], [len(LINE)], [rank])))
        local.requires_grad_()
        x = local.to_global(p, sbp_of(before))
        y = x.to_global(sbp=sbp_of(after))
        w = weight.to_global(p, flow.sbp.broadcast)
        (y * w).sum().backward()
        expected = shard_of(np.cos(values), [before if before != "P" else "B"],
                            [len(LINE)], [rank])  # fmt: skip
        np.testing.assert_allclose(local.grad.numpy(), expected, rtol=0, atol=1e-14)
    # grad_sbp says how the gradient lies.
    leaf = weight.to_global(p, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    leaf = leaf.detach().requires_grad_()
    leaf.to_global(sbp=flow.sbp.broadcast, grad_sbp=flow.sbp.split(1)).sum().backward()
    assert leaf.grad.sbp == (flow.sbp.split(1),)
    np.testing.assert_array_equal(leaf.grad.numpy(), np.ones((5, 7)))
    # To a local tensor and on.
    part = leaf.detach().requires_grad_()
    (part.to_local() * 3).sum().backward()
    assert part.grad.sbp == (flow.sbp.split(0),)
    np.testing.assert_array_equal(part.grad.numpy(), np.full((5, 7), 3.0))


def test_boxing_is_differentiable(ranks):
    ranks.run(gradients)


def what_it_is(rank):
    p = flow.placement("cpu", ranks=[0, 1, 2, 3])
    assert p == flow.placement("cpu", range(4)) and p != flow.placement("cpu", GRID)
    assert p.ranks == LINE and p.shape == (4,) and p.type == "cpu"
    assert flow.placement("cpu", GRID).ranks == GRID
    assert repr(p) == 'oneflow_lite.placement("cpu", ranks=[0, 1, 2, 3])'
    assert repr(flow.sbp.split(1)) == "oneflow_lite.sbp.split(1)"
    x = flow.full((5, 3), float(rank)).to_global(p, flow.sbp.broadcast)
    assert x.is_global and x.placement == p and x.sbp == (flow.sbp.broadcast,)
    assert not x.to_local().is_global
    local = flow.ones(2)
    with pytest.raises(RuntimeError, match="local tensor, which has none"):
        _ = local.placement
    if rank == 1:  # nobody else takes part
        text = repr(x.to_global(sbp=flow.sbp.broadcast))
        assert "1., 1., 1." in text and "size=(5, 3)" in text
        assert 'placement("cpu", ranks=[0, 1, 2, 3])' in text and "sbp=(B)" in text
    s = flow.arange(5).to_global(p, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(-1))
    assert s.sbp == (flow.sbp.split(0),) and s.to_local().shape == ((2,), (1,), (1,), (1,))[rank]
    assert s.numpy().tolist() == [0, 1, 2, 3, 4] and s.tolist() == [0, 1, 2, 3, 4]
    assert s.sum().item() == 10 and int(s[3]) == 3
    few = flow.arange(2).to_global(p, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    assert few.to_local().shape == ((1,), (1,), (0,), (0,))[rank]
    assert (few * 2).tolist() == [0, 2]


def test_what_a_global_tensor_is(ranks):
    ranks.run(what_it_is)


def factories(rank):
    p, grid = flow.placement("cpu", LINE), flow.placement("cpu", GRID)
    for sbp in (flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum):
        x = flow.ones(5, 3, dtype=flow.float64, placement=p, sbp=sbp, requires_grad=True)
        assert x.sbp == (sbp,) and x.is_leaf and x.requires_grad
        np.testing.assert_array_equal(x.detach().numpy(), np.ones((5, 3)))
    z = flow.zeros((4, 6), placement=grid, sbp=[flow.sbp.split(0), flow.sbp.split(0)])
    assert z.to_local().shape == (4 // len(LINE), 6) and z.numpy().sum() == 0
    for sbp in (flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum):
        np.testing.assert_array_equal(flow.eye(5, 3, placement=p, sbp=sbp).numpy(), np.eye(5, 3))
        places = flow.tril_indices(4, 3, placement=grid, sbp=[sbp, flow.sbp.split(1)])
        np.testing.assert_array_equal(places.numpy(), np.tril_indices(4, 0, 3))
        assert places.sbp == (sbp, flow.sbp.split(1))
    a = flow.arange(7, placement=p, sbp=flow.sbp.split(0))
    assert a.tolist() == list(range(7))
    flow.manual_seed(3)
    alone = flow.randn(5, 4, device=DEVICE).numpy()
    flow.manual_seed(3)
    spread = flow.randn(5, 4, placement=p, sbp=flow.sbp.split(1))
    np.testing.assert_array_equal(spread.numpy(), alone)
    like = flow.zeros_like(spread)
    assert like.sbp == spread.sbp and like.to_local().shape == spread.to_local().shape
    for make in (flow.rand_like, flow.randn_like, lambda x: flow.randint_like(x, 10)):
        flow.manual_seed(4)
        alone = make(flow.zeros(5, 4, device=DEVICE)).numpy()
        flow.manual_seed(4)
        like = make(spread)
        assert like.sbp == spread.sbp
        np.testing.assert_array_equal(like.numpy(), alone)
    with pytest.raises(TypeError, match=r"zeros\(\): a placement needs an sbp"):
        flow.zeros(2, placement=p)
    with pytest.raises(TypeError, match="leave out 'device'"):
        flow.zeros(2, placement=p, sbp=flow.sbp.broadcast, device="cpu")
    with pytest.raises(TypeError, match="unexpected keyword argument 'placement'"):
        flow.exp(z, placement=p)
    with pytest.raises(ValueError, match="one entry per dim of the placement, 1"):
        flow.zeros(2, placement=p, sbp=[flow.sbp.broadcast] * 2)


def test_factories(ranks):
    ranks.run(factories)


INDICES = [np.s_[1:3], np.s_[2], np.s_[..., 1:5:2], np.s_[1:, None, 3], np.s_[4:4], np.s_[-1, 0],
           np.s_[:], np.s_[[0, 3]], np.s_[::2, 1:2]]  # fmt: skip


def written_by_index(rank, ranks):
    """x[...] = value reaches x, whatever lies where; x keeps its SBP and its shard's memory."""
    p = flow.placement("cpu", ranks)
    whole = [flow.sbp.broadcast] * len(p.shape)
    kinds = [flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast]
    for first in kinds:
        sbp = [first, flow.sbp.split(0)][: len(p.shape)]
        for index in INDICES:
            expected = values_of((5, 6))
            x = flow.tensor(expected).to_global(p, whole).to_global(sbp=sbp)
            place, cut = x.to_local().data_ptr(), expected[index]
            x[index] = 7
            expected[index] = 7
            np.testing.assert_array_equal(x.numpy(), expected)
            value = values_of((6,))[: cut.shape[-1]] if cut.ndim else np.float64(3)
            x[index] = flow.tensor(value).to_global(p, whole)
            expected[index] = value
            np.testing.assert_array_equal(x.numpy(), expected)
            assert x.sbp == tuple(sbp) and x.to_local().data_ptr() == place
    # Gradients of what was written and of what stayed, against one process.
    grads = []
    for spread in (lambda t: t, lambda t: t.to_global(p, whole)):
        a = spread(flow.tensor(values_of((5, 6)))).requires_grad_()
        v = spread(flow.tensor(values_of((2, 6)))).requires_grad_()
        w = a * 2
        if w.is_global:
            w = w.to_global(sbp=[flow.sbp.split(0)] * len(p.shape))
        w[1:3] = v * 3
        w[0, 0] = 1.0
        (w * w).sum().backward()
        grads.append([t.grad.numpy() for t in (a, v)])
    for one, other in zip(*grads, strict=True):
        np.testing.assert_array_equal(one, other)
    # A leaf refuses and stays.
    x = (
        flow.tensor(values_of((5, 6)))
        .to_global(p, whole)
        .to_global(sbp=[flow.sbp.split(0)] * len(p.shape))
    )
    leaf = x.detach().clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[1:3] = 0
    np.testing.assert_array_equal(leaf.detach().numpy(), values_of((5, 6)))
    with flow.no_grad():
        leaf[1:3] = 0
    assert float(leaf.detach()[1:3].abs().sum()) == 0


@pytest.mark.parametrize("placement", [LINE, GRID], ids=["line", "grid"])
def test_item_assignment_reaches_the_tensor(ranks, placement):
    ranks.run(written_by_index, placement)


def in_place(rank):
    p = flow.placement("cpu", LINE)

    def split(shape, sbp):
        return flow.tensor(values_of(shape)).to_global(p, flow.sbp.broadcast).to_global(sbp=sbp)

    x = split((5, 6), flow.sbp.split(0))
    expected = values_of((5, 6))
    x.mul_(2).add_(x)
    np.testing.assert_array_equal(x.numpy(), expected * 4)
    assert x.sbp == (flow.sbp.split(0),)
    # A view along what is not split shares the shard.
    x[:, 1:3].fill_(7)
    expected = expected * 4
    expected[:, 1:3] = 7
    np.testing.assert_array_equal(x.numpy(), expected)
    x.t()[2].add_(1)
    expected[:, 2] += 1
    np.testing.assert_array_equal(x.numpy(), expected)
    # Of one along the split dim elements moved. What is written elsewhere reaches its shard when an
    # op next uses it; what may not talk to other ranks says that it is out of date.
    x[1:3].clone().fill_(0)
    apart, beside = x[1:3], x[:, :2]
    again = apart[0]
    x.add_(1)
    expected += 1
    np.testing.assert_array_equal(beside.numpy(), expected[:, :2])
    np.testing.assert_array_equal(x[1:3].numpy(), expected[1:3])
    with pytest.raises(RuntimeError, match="was cut before that tensor changed"):
        apart.to_local()
    assert "out of date" in repr(apart) and "out of date" not in repr(beside)
    np.testing.assert_array_equal((again + 1).numpy(), expected[1] + 1)
    np.testing.assert_array_equal(apart.to_global(sbp=flow.sbp.broadcast).numpy(), expected[1:3])
    assert "out of date" not in repr(apart)
    check(apart, expected[1:3], LINE, ["S1"], rank)
    # What else to_local may raise is no matter of age.
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError, match="another"):
        patch.setattr(flow.Tensor, "to_local", lambda self: exec("raise RuntimeError('another')"))
        repr(x)
    x.sub_(1)
    expected -= 1
    # The operand moves, what is changed does not.
    x.add_(split((5, 6), flow.sbp.split(1)))
    assert x.sbp == (flow.sbp.split(0),)
    np.testing.assert_array_equal(x.numpy(), expected + values_of((5, 6)))
    # Without a signature that keeps the SBP: computed aside and put back.
    y = split((6,), flow.sbp.partial_sum)
    shard = y.to_local()
    y.clamp_(min=0)
    assert y.sbp == (flow.sbp.partial_sum,)
    np.testing.assert_array_equal(y.numpy(), np.maximum(values_of((6,)), 0))
    assert shard.data_ptr() == y.to_local().data_ptr()
    a = split((6,), flow.sbp.split(0))
    flow.manual_seed(1)
    a.normal_()
    flow.manual_seed(1)
    alone = flow.empty(6, dtype=flow.float64, device=DEVICE).normal_()
    np.testing.assert_array_equal(a.numpy(), alone.numpy())
    assert a.sbp == (flow.sbp.split(0),)
    # A recorded write through a view.
    base = split((5, 6), flow.sbp.split(0)).requires_grad_()
    w = base * 1
    w[:, 0].mul_(3)
    w.sum().backward()
    seen = np.ones((5, 6))
    seen[:, 0] = 3
    np.testing.assert_array_equal(base.grad.numpy(), seen)


def test_in_place(ranks):
    ranks.run(in_place)


def errors(rank):
    p, half = flow.placement("cpu", LINE), flow.placement("cpu", [0, 1])
    x = flow.ones(4, 4, placement=p, sbp=flow.sbp.split(0))
    with pytest.raises(RuntimeError, match=r"add\(\): other is a local tensor .*to_global\(\)"):
        x + flow.ones(4, 4)
    with pytest.raises(RuntimeError, match=r"add\(\): other lies on .* but another input on "):
        x + flow.ones(4, 4, placement=half, sbp=flow.sbp.split(0))
    with pytest.raises(IndexError, match="sbp splits dim 2, which a tensor of shape"):
        x.to_global(sbp=flow.sbp.split(2))
    with pytest.raises(ValueError, match="one entry per dim of the placement"):
        x.to_global(flow.placement("cpu", GRID), flow.sbp.split(0))
    with pytest.raises(TypeError, match="must be an SBP"):
        x.to_global(p, "S(0)")
    with pytest.raises(TypeError, match="must be a placement, not str"):
        x.to_global("cpu", flow.sbp.broadcast)
    with pytest.raises(TypeError, match="a local tensor needs a placement"):
        flow.ones(2).to_global(sbp=flow.sbp.broadcast)
    with pytest.raises(RuntimeError, match=r"to_local\(\): .* is a local tensor already"):
        flow.ones(2).to_local()
    with pytest.raises(RuntimeError, match=r"data_ptr\(\): .* is global"):
        x.data_ptr()
    with pytest.raises(BufferError, match="__dlpack__.*is global"):
        x.__dlpack__()
    for ranks in ([], [0, 0], [-1], [4], [[0, 1], [2]], [[[0]]]):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            flow.placement("cpu", ranks)
    # Shards that do not go together: the same error everywhere.
    with pytest.raises(flow.ShapeError, match="rank 1 has a shard of shape"):
        flow.ones(2 + (rank == 1)).to_global(p, flow.sbp.broadcast)
    with pytest.raises(flow.ShapeError, match="parts are as even as can be"):
        flow.ones(1 + rank, 2).to_global(p, flow.sbp.split(0))
    with pytest.raises(flow.DTypeError, match="rank 2 has a shard of float64"):
        dtype = flow.float64 if rank == 2 else flow.float32
        flow.ones(2, dtype=dtype).to_global(p, flow.sbp.broadcast)
    uneven = flow.ones(2 - (rank > 1), 3).to_global(p, flow.sbp.split(0))
    assert uneven.shape == (6, 3)


def test_errors_are_clear_and_alike_on_all_ranks(ranks):
    ranks.run(errors)


def plans(rank):
    """The choice: fewest bytes, then fewest moves, then split results."""
    p, grid = flow.placement("cpu", LINE), flow.placement("cpu", GRID)
    S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum

    def make(shape, sbp, where=p):
        return flow.zeros(shape, dtype=flow.float64, placement=where, sbp=sbp)

    def way(name, *args):
        args = [*args, False] if name == "matmul" else [*args]  # not in float32, where it is wide
        _, moves, outputs, nbytes, aside = flow._oneflow_lite.op_plan(name, args)
        return [to for _, to in moves], outputs, nbytes, aside

    x, w = make((8, 16), S(0)), make((16, 4), B)
    assert way("matmul", x, w) == ([["S(0)"], ["B"]], [["S(0)"]], 0, False)
    assert way("matmul", make((8, 16), B), make((16, 4), S(1)))[1] == [["S(1)"]]
    assert way("matmul", make((8, 16), S(1)), make((16, 4), S(0)))[1:3] == ([["P"]], 0)
    assert way("matmul", make((8, 16), B), w) == ([["B"], ["B"]], [["B"]], 0, False)
    # Two that do not go together: what is smaller moves, or what moves to other parts.
    assert way("matmul", make((8, 16), S(0)), make((16, 1), S(0)))[0] == [["S(0)"], ["B"]]
    assert way("matmul", make((8, 16), S(0)), make((16, 4), S(0)))[0] == [["S(1)"], ["S(0)"]]
    assert way("matmul", make((8, 16), S(0)), make((16, 400), S(1)))[0] == [["B"], ["S(1)"]]
    assert way("add", make((8, 16), P), make((8, 16), P)) == ([["P"]] * 2, [["P"]], 0, False)
    assert way("mul", make((8, 16), P), make((8, 16), B))[1:3] == ([["P"]], 0)
    # A partial sum that must be added up goes to parts: half the bytes of the whole.
    assert way("exp", make((8, 16), P))[:3] == ([["S(0)"]], [["S(0)"]], 8 * 8 * 16 * 3 / 4)
    assert way("exp", make((3, 16), P))[1] == [["S(1)"]]  # which divides evenly
    assert way("sum", make((8, 16), S(0)), [0, 1], False, None)[1:3] == ([["P"]], 0)
    assert way("mean", make((8, 16), S(0)), [0, 1], False, None)[1:3] == ([["P"]], 0)
    bias = make((4,), B)
    assert way("linear", make((8, 16), S(1)), make((4, 16), S(1)), bias)[1:3] == ([["P"]], 0)
    assert way("add_", make((8, 16), P), make((8, 16), S(0)))[:2] == ([["P"], ["P"]], [["P"]])
    assert way("relu", make((8, 16), P))[1] == [["S(0)"]]
    g = make((8, 16), [S(0), B], grid), make((16, 4), [B, S(1)], grid)
    assert way("matmul", *g) == ([["S(0)", "B"], ["B", "S(1)"]], [["S(0)", "S(1)"]], 0, False)
    text = flow.ops.describe("matmul", make((8, 16), S(0)), make((16, 1), S(0)))
    assert ('on placement("cpu", ranks=[0, 1, 2, 3]): (S(0), S(0) -> B) gives (S(0))') in text
    assert "each rank sends 96 bytes for it" in text


def test_the_signature_is_chosen_by_bytes(ranks):
    ranks.run(plans)


@pytest.fixture
def one_rank():
    return flow.placement("cpu", ranks=[0])


def test_gradients_lie_where_their_tensors_do(one_rank):
    """In one process: nothing is sent."""
    far = flow.ones(3, placement=one_rank, sbp=flow.sbp.split(0))
    near = flow.ones(3, requires_grad=True)
    match = r"the gradient is on placement.*but the tensor a local tensor; local and global"
    with pytest.raises(RuntimeError, match=match):
        near.grad = far
    with pytest.raises(RuntimeError, match=match):
        (near * 2).backward(far)
    near.register_hook(lambda grad: far)
    with pytest.raises(RuntimeError, match=match):
        (near * 2).sum().backward()
    assert near.grad is None
    far.requires_grad_()
    with pytest.raises(RuntimeError, match="the gradient is a local tensor, but the tensor on"):
        far.grad = flow.ones(3)
    far.grad = flow.ones(3, placement=one_rank, sbp=flow.sbp.broadcast)
    assert far.grad.numpy().tolist() == [1, 1, 1]


def test_a_global_module_goes_with_its_last_reference():
    placement = flow.placement("cpu", [0])
    module = flow.nn.Linear(4, 4).to_global(placement, flow.sbp.broadcast)
    copies = copy.copy(module), copy.deepcopy(module)
    gone = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert gone() is None
    finally:
        gc.enable()
    for other in copies:
        assert other(flow.ones(2, 4).to_global(placement, flow.sbp.broadcast)).is_global
    forward = copies[0].forward
    del copies, other
    with pytest.raises(ReferenceError, match="the module that was made global is no more"):
        forward(flow.ones(2, 4))
