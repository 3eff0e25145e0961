# SPDX-License-Identifier: Apache-2.0
"""Short programs on global tensors, however these lie: what they give on local ones.

The functions without "test" in their names run on each rank (rank_group.py). A program takes a
function that makes its tensors.
"""

import copy
import pickle

import numpy as np
import pytest
from rank_group import GRID, LINE

flow = pytest.importorskip("oneflow_lite")

nn, F = flow.nn, flow.nn.functional
FLOATS = np.cos(np.arange(30.0)).reshape(5, 6)
OTHERS = np.sin(np.arange(30.0)).reshape(5, 6) + 2
INTS = np.arange(30).reshape(5, 6) * 7 % 11


def sbp_of(text):
    kinds = {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}
    return kinds.get(text) or flow.sbp.split(int(text[1:]))


def maker(ranks, sbps):
    """Makes global tensors; a dim that a tensor has not is not split."""
    place = flow.placement("cpu", ranks)

    def make(values):
        x = flow.tensor(np.asarray(values)).to_global(place, [sbp_of("B")] * len(sbps))
        ways = [s if not s.startswith("S") or int(s[1:]) < x.ndim else "B" for s in sbps]
        return x.to_global(sbp=[sbp_of(s) for s in ways])

    return make


WAYS = [(LINE, [s]) for s in ("S0", "S1", "B", "P")]
WAYS += [(GRID, s) for s in (["P", "P"], ["S0", "P"], ["P", "S1"], ["B", "P"], ["S0", "S0"])]


def numbers_in_place(make):
    """A number beside a partial sum counts once, not once on each rank."""
    x = make(FLOATS)
    x += 2
    x -= flow.tensor(0.5, dtype=flow.float64)
    x.add_(3, alpha=2)
    x.sub_(1, alpha=3)
    x *= 2
    x /= 4
    yield x
    y = make(FLOATS).sum(0)
    y += 1
    yield y
    y -= 3
    yield from (y, y + 1, 1 - y, y.exp())
    n = make(INTS).sum(0)
    n += 1
    yield n
    z = make(FLOATS)
    z.copy_(flow.tensor(7.0, dtype=flow.float64))
    yield z
    w = make(FLOATS)
    w.lerp_(make(OTHERS), 0.25)
    w.add_(make(np.float64(1.5)))
    yield w
    w.clamp_(0, 1)
    yield w


def numbers_in_place_with_gradients(make):
    x = make(FLOATS).requires_grad_()
    y = x * 1
    y += 1
    y.mul_(x)
    y.sum().backward()
    yield from (y, x.grad)


def indices_that_are_no_tensors(make):
    """They are the same on all ranks, as numbers are."""
    x = make(FLOATS)
    yield from (x[[0, 2]], x[:, [1, 1, -1]], x[[0, 2], [1, 3]], x[range(3)], x[[]], x[..., [0]])
    yield from (x[np.array([3, 0])], x[1:4, [2, 0]], x[[True, False, True, False, True]])
    yield from (x[FLOATS > 0], x[[[0, 1], [2, 3]]], x[[0, 1], 2], x[None, [1]], x[True])
    leaf = make(FLOATS).requires_grad_()
    (leaf[[0, 0, 3]].sum() + leaf[:, [5, 1]].square().sum()).backward()
    yield leaf.grad


def writing_by_indices_that_are_no_tensors(make):
    for index in ([0, 2], np.array([1, -1]), (slice(None), [1, 4]), FLOATS > 0, ([0, 1], [2, 3])):
        x = make(FLOATS)
        x[index] = 5
        yield x
        x[index] = flow.tensor(6.0, dtype=flow.float64)
        yield x
    x = make(FLOATS)
    x[[0, 2]] = make(OTHERS[:2])
    yield x
    x[[4, 1]] += 1
    yield x
    x.index_put_((make(np.array([0, 0])),), make(np.array(2.0)), accumulate=True)
    yield x


def functions_that_make_tensors(make):
    """What a function makes for its global arguments goes with them, by keyword too."""
    x, n = make(FLOATS), make(INTS)
    yield from (flow.histc(x, 5, -1, 1), flow.histc(input=x, bins=5, min=-1, max=1))
    yield from (F.one_hot(n, 11), F.one_hot(tensor=n, num_classes=11))
    yield flow.index_put(input=x, indices=(make(np.array([1])),), values=make(np.array(2.0)))
    for init in (nn.init.orthogonal_, nn.init.eye_, nn.init.xavier_normal_, nn.init.trunc_normal_):
        flow.manual_seed(5)
        yield init(make(FLOATS))


def written_into_copies(make):
    """What is written may lie on several ranks."""
    x, y = make(FLOATS).requires_grad_(), make(OTHERS)
    yield x.select_scatter(y[0], 0, 3)
    yield x.select_scatter(y[:, 2], 1, -1)
    parts = x.slice_scatter(y[:2], 0, 1, 3) * y.slice_scatter(x[:, ::2], 1, 0, 6, 2)
    yield from (parts, x.diagonal_scatter(y[0, :5]), x.diagonal_scatter(y[1, :4], 2))
    (parts.square().sum() + x.diagonal_scatter(y[0, :5]).exp().sum()).backward()
    yield x.grad
    for values in (FLOATS, FLOATS.T, INTS, np.zeros((3, 3, 3))):
        yield make(values).fill_diagonal_(7)
    z = x.detach().clone().requires_grad_()
    (z * 1).fill_diagonal_(0.5).square().sum().backward()
    yield z.grad


def places_that_the_host_counts(make):
    """A function finds them on the host; they go with the global tensors."""
    x, counts = make(FLOATS), make(np.array([1, 0, 3, 2, 1]))
    yield from (x.repeat_interleave(counts, 0), flow.repeat_interleave(counts))
    yield from (F.pdist(x), F.pdist(x, 1.0), x.tensor_split(make(np.array([1, 3])))[1])
    yield from (flow.cdist(x, x + 1), flow.cdist(x.repeat(8, 1), x + 1), flow.cdist(x, x, 1.0))
    least = flow.tensor(1e-3, dtype=flow.float64)
    yield from (flow.pinverse(x), flow.linalg.pinv(x, rtol=1e-3), flow.linalg.pinv(x, atol=least))
    yield flow.linalg.matrix_rank(x, 1e-3)


def gradients_of_gradients(make):
    for function in (F.log_softmax, F.softmax):
        x = make(FLOATS).requires_grad_()
        y = function(x, 1)
        (g,) = flow.autograd.grad([(y * y.detach().cos()).sum()], [x], create_graph=True)
        (h,) = flow.autograd.grad([(g * g.detach().sin()).sum()], [x])
        yield from (y, g, h)


PROGRAMS = [
    functions_that_make_tensors,
    written_into_copies,
    places_that_the_host_counts,
    gradients_of_gradients,
    numbers_in_place,
    numbers_in_place_with_gradients,
    indices_that_are_no_tensors,
    writing_by_indices_that_are_no_tensors,
]


def run_program(rank, number):
    program = PROGRAMS[number]
    want = [y.detach().numpy().copy() for y in program(lambda values: flow.tensor(values))]
    for ranks, sbps in WAYS:
        got = [y.detach().numpy() for y in program(maker(ranks, sbps))]
        assert len(got) == len(want)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            assert a.dtype == b.dtype and a.shape == b.shape, (sbps, i)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=f"{sbps} {i}")


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[p.__name__ for p in PROGRAMS])
def test_a_program_gives_what_it_gives_on_local_tensors(ranks, number):
    ranks.run(run_program, number)


def an_index_elsewhere(rank):
    """On a rank that has no shard, too."""
    x = flow.tensor(FLOATS).to_global(flow.placement("cpu", [1, 2]), flow.sbp.broadcast)
    y = x.to_global(sbp=flow.sbp.split(0))[[0, 3], [1, -1]]
    assert y.is_global and y.shape == (2,)
    with pytest.raises(IndexError, match="index 5 is out of range"):
        x[[5]]
    if rank in (1, 2):
        assert y.numpy().tolist() == [FLOATS[0, 1], FLOATS[3, -1]]


def test_an_index_on_a_rank_without_a_shard(ranks):
    ranks.run(an_index_elsewhere)


class Places(nn.Module):
    """Its forward makes a tensor, which goes with the global ones."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.linear(x)) + flow.arange(4, dtype=flow.float64, device=x.device)


def copies(rank):
    flow.manual_seed(1)
    model = Places().double()
    x = flow.tensor(FLOATS)
    want = model(x).detach().numpy()
    place = flow.placement("cpu", LINE)
    model.to_global(place, flow.sbp.broadcast)
    model.linear.to_global(sbp=flow.sbp.split(0))
    shards = x.to_global(place, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    for one in (model, copy.deepcopy(model), copy.deepcopy(copy.deepcopy(model)), copy.copy(model)):
        y = one(shards)
        assert y.is_global
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=0, atol=1e-13)
    clone = copy.deepcopy(model)
    clone.linear.weight.data.zero_()
    assert model.linear.weight.detach().numpy().any(), "a copy shares no parameter"
    # A pickle has the whole, and is local.
    for _ in range(2):
        model = pickle.loads(pickle.dumps(model)).cpu()
        assert not any(p.is_global for p in model.parameters())
        np.testing.assert_allclose(model(x).detach().numpy(), want, rtol=0, atol=1e-13)
    model.to_global(place, flow.sbp.broadcast)
    np.testing.assert_allclose(model(shards).detach().numpy(), want, rtol=0, atol=1e-13)


def test_a_global_module_is_copied_and_pickled(ranks):
    ranks.run(copies)
