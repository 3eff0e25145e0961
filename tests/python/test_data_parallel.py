# SPDX-License-Identifier: Apache-2.0
"""DataParallel: gradients are the mean over ranks, whatever takes part, and as one process's."""

import subprocess
import sys

import numpy as np
import pytest
from gloo import needs_gloo
from rank_group import DEVICE

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402

nn, F = flow.nn, flow.nn.functional
ROWS = 12


class Net(nn.Module):
    """Parameters that are larger than a bucket of 200 bytes, smaller, without dims, shared, of two
    dtypes, and two branches of which a batch may take one."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 7)
        self.left, self.right = nn.Linear(7, 7), nn.Linear(7, 7)
        self.again = nn.Linear(7, 7, bias=False)
        self.again.weight = self.left.weight
        self.last = nn.Linear(7, 3)
        self.never = nn.Linear(2, 2)
        self.double()
        self.scale = nn.Parameter(flow.ones(3))
        self.factor = nn.Parameter(flow.tensor(1.5))  # without dims

    def forward(self, x, branches=("left", "right")):
        x = F.gelu(self.first(x))
        for name in branches:
            x = x + getattr(self, name)(x)
        return self.last(self.again(x)) * self.scale * self.factor


def fresh(seed=3):
    flow.manual_seed(seed)
    return Net().to(DEVICE)


def data(step=0, rows=ROWS):
    rng = np.random.default_rng(step)
    return rng.standard_normal((rows, 6)), rng.standard_normal((rows, 3))


def mine(rank, size, *arrays):
    """The rows of a rank."""
    return [flow.tensor(np.array_split(a, size)[rank], device=DEVICE) for a in arrays]


def grads(model):
    return {n: None if p.grad is None else p.grad.numpy() for n, p in model.named_parameters()}


def check_equal(got, want, atol=1e-13):
    assert list(got) == list(want)
    for name, w in want.items():
        assert (got[name] is None) == (w is None), name
        if w is not None:
            tolerance = atol if w.dtype == np.float64 else 1e-6
            np.testing.assert_allclose(got[name], w, rtol=0, atol=tolerance, err_msg=name)


def check_same_bits(model):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, {n: None if g is None else g.tobytes()
                                      for n, g in grads(model).items()})  # fmt: skip
    assert all(other == everyone[0] for other in everyone)


def whole_gradients(branches_of, size, steps=1):
    """What one process has, over all rows; each rank's rows take that rank's branches."""
    alone = fresh()
    for k in range(steps):
        total = 0
        for r in range(size):
            x, y = mine(r, size, *data(k))
            total = total + F.mse_loss(alone(x, branches_of(r)), y, reduction="sum")
        (total / (ROWS * 3)).backward()
    return grads(alone)


def both(rank):
    return ("left", "right")


def by_rank(rank):
    return (("left", "right")[rank % 2],)


def only_left(rank):
    return ("left",)


BRANCHES = {"both": both, "by rank": by_rank, "one unused": only_left}


def reduced(rank, size, branches, bucket_mb):
    branches_of = BRANCHES[branches]
    model = dist.DataParallel(fresh(3 + rank), bucket_mb)  # rank 0's values count
    x, y = mine(rank, size, *data())
    F.mse_loss(model(x, branches_of(rank)), y).backward()
    got = grads(model.module)
    check_equal(got, whole_gradients(branches_of, size))
    assert got["never.weight"] is None
    check_same_bits(model.module)


@pytest.mark.parametrize("bucket_mb", [25, 200 / 2**20, 0], ids=["one", "some", "each"])
@pytest.mark.parametrize("branches", list(BRANCHES))
def test_gradients_are_the_mean_over_ranks(ranks, two_ranks, branches, bucket_mb):
    ranks.run(reduced, 4, branches, bucket_mb)
    two_ranks.run(reduced, 2, branches, bucket_mb)


def accumulated(rank, synced_last):
    """Two batches, of which the first is not reduced, or is reduced too."""
    model = dist.DataParallel(fresh(), 300 / 2**20)
    for k in range(2):
        x, y = mine(rank, 2, *data(k))
        branches = both(rank) if k == 0 else only_left(rank)  # the first's gradient stays there
        if k == 0 and synced_last:
            with model.no_sync():
                F.mse_loss(model(x, branches), y).backward()
            everyone = [None, None]
            dist.all_gather_object(everyone, model.module.first.bias.grad.tolist())
            assert everyone[0] != everyone[1]
        else:
            F.mse_loss(model(x, branches), y).backward()
    alone = fresh()
    for k in range(2):
        x, y = (flow.tensor(a, device=DEVICE) for a in data(k))
        F.mse_loss(alone(x, both(rank) if k == 0 else only_left(rank)), y).backward()
    check_equal(grads(model.module), grads(alone))
    check_same_bits(model.module)


@pytest.mark.parametrize("synced_last", [True, False], ids=["no_sync", "each reduced"])
def test_gradients_of_several_backwards_add_up(two_ranks, synced_last):
    two_ranks.run(accumulated, synced_last)


class Leaves(nn.Module):
    """Parameters of which each goes by itself where buckets are small, and one without dims."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(flow.ones(50, 40)) for _ in range(3))
        self.d = nn.Parameter(flow.tensor(1.0))

    def forward(self, *names):
        total = getattr(self, names[0])
        for name in names[1:]:
            total = total + getattr(self, name)
        return total


def weights(rank):
    """What a rank gives as the gradient: small integers, of which means of 2 and 4 are exact."""
    rng = np.random.default_rng([7, rank])
    return rng.integers(-8, 8, (50, 40)).astype(np.float32)


def by_themselves(rank, size):
    """Gradients that are reduced where they lie: what others hold keeps its values."""
    mean = np.mean([weights(r) for r in range(size)], 0)
    here, w = weights(rank), flow.tensor(weights(rank), device=DEVICE)

    def check(p, want):
        np.testing.assert_array_equal(p.grad.cpu().numpy(), want)

    def wrapped(hook=None):
        leaves = Leaves().to(DEVICE)
        if hook:
            leaves.a.register_post_accumulate_grad_hook(hook)
        return dist.DataParallel(leaves, 0), leaves

    # One tensor is the gradient of both, and the caller's.
    addresses = []
    model, leaves = wrapped(lambda p: addresses.append(p.grad.data_ptr()))
    model("a", "b").backward(w)
    check(leaves.a, mean)
    check(leaves.b, mean)
    np.testing.assert_array_equal(w.cpu().numpy(), here)
    assert len({t.data_ptr() for t in (leaves.a.grad, leaves.b.grad, w)}) == 3
    assert addresses == [leaves.a.grad.data_ptr()]  # it was not copied
    assert leaves.c.grad is None and leaves.d.grad is None
    # Added to, in this memory too.
    with model.no_sync():
        model("a", "b").backward(w)
    model("a", "b").backward(w)
    check(leaves.a, 3 * mean)
    assert set(addresses) == {leaves.a.grad.data_ptr()}
    check_same_bits(leaves)

    # Used by some ranks, by none, and without dims.
    model, leaves = wrapped()
    model(*(("a", "b") if rank == 0 else ("a",)), "d").backward(w)
    check(leaves.a, mean)
    check(leaves.b, weights(0) / size)
    assert leaves.c.grad is None
    np.testing.assert_array_equal(leaves.d.grad.item(), mean.sum(dtype=np.float64))
    check_same_bits(leaves)

    # What the caller has of .grad stays this rank's own. The second backward adds to it in place.
    for keep in (lambda g: g, lambda g: g.detach(), lambda g: g.view(-1)):
        model, leaves = wrapped()
        with model.no_sync():
            model("a", "b").backward(w)
        kept = keep(leaves.a.grad)
        model("a", "b").backward(w)
        check(leaves.a, 2 * mean)
        np.testing.assert_array_equal(kept.cpu().numpy().ravel(), 2 * here.ravel())
    kept = []
    model, leaves = wrapped(lambda p: kept.append(p.grad))
    leaves.b.register_hook(lambda g: kept.append(g))
    model("a", "b").backward(w)
    check(leaves.a, mean)
    check(leaves.b, mean)
    for t in kept:
        np.testing.assert_array_equal(t.cpu().numpy(), here)

    # A gradient with a history, and one that is not dense.
    model, leaves = wrapped()
    leaves.a.grad = flow.zeros(40, 50, device=DEVICE).t()
    (model("a", "b") * w).sum().backward(create_graph=True)
    check(leaves.a, mean)
    check(leaves.b, mean)


def test_a_parameter_by_itself_is_reduced_where_it_lies(ranks, two_ranks):
    ranks.run(by_themselves, 4)
    two_ranks.run(by_themselves, 2)


def test_a_gradient_of_its_own():
    """Nobody but .grad holds it: neither an object of Python's nor a view nor an array."""
    own = flow._oneflow_lite._has_grad_of_its_own
    x = flow.ones(3, requires_grad=True)
    assert not own(x)
    (2 * x).sum().backward()
    assert own(x)
    for keep in (lambda g: g, lambda g: g[1:], lambda g: g.detach(), lambda g: g.numpy()):
        kept = keep(x.grad)
        assert not own(x)
        del kept
        assert own(x)
    x.grad = flow.ones(6)[::2]
    assert not own(x)  # not dense
    x.grad = None
    (x * x).sum().backward(create_graph=True)
    assert not own(x)  # has a history


def uneven(rank, rows, ignore):
    """Batches of other sizes on each rank, an empty one too, weigh as in one process."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((sum(rows), 6))
    t = rng.integers(0, 3, sum(rows))
    if ignore:
        t[::3] = -100
    begin = sum(rows[:rank])
    here = slice(begin, begin + rows[rank])
    alone = fresh()
    x, t = (flow.tensor(a, device=DEVICE) for a in (x, t))
    want = F.cross_entropy(alone(x).double(), t)
    want.backward()
    model = dist.DataParallel(fresh())
    total = F.cross_entropy(model(x[here]), t[here], reduction="sum")
    loss = dist.global_mean(total, int((t[here] != -100).sum()) if rank else
                            (t[here] != -100).sum())  # fmt: skip
    loss.backward()
    check_equal(grads(model.module), grads(alone))
    shown = loss.detach().clone()
    dist.all_reduce(shown, "avg")
    np.testing.assert_allclose(shown.item(), want.item(), rtol=1e-12)


@pytest.mark.parametrize("ignore", [False, True], ids=["all", "some ignored"])
@pytest.mark.parametrize("rows", [(5, 2), (4, 0)], ids=str)
def test_uneven_batches_weigh_as_in_one_process(two_ranks, rows, ignore):
    two_ranks.run(uneven, rows, ignore)


def states(rank):
    model = dist.DataParallel(fresh())
    assert list(model.state_dict()) == list(model.module.state_dict())
    assert [n for n, _ in model.named_parameters()][0] == "module.scale"
    other = fresh(17).state_dict()
    model.load_state_dict(other)
    assert flow.equal(model.module.first.weight, other["first.weight"])
    outer = nn.Sequential(model)
    outer.load_state_dict(outer.state_dict())
    assert model.train(False).module.training is False
    with pytest.raises(ValueError, match="assign=True"):
        model.load_state_dict(other, assign=True)
    with pytest.raises(TypeError, match="take its .module"):
        import copy

        copy.deepcopy(model)


def test_the_state_is_the_modules(two_ranks):
    two_ranks.run(states)


def random_numbers(rank):
    flow.manual_seed(5)
    model = dist.DataParallel(nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5)).to(DEVICE))
    everyone = [None, None]
    dist.all_gather_object(everyone, model(flow.ones(1, 64, device=DEVICE)).tolist())
    assert everyone[0] != everyone[1]
    flow.manual_seed(5)
    dist.DataParallel(nn.Linear(2, 2).to(DEVICE), per_rank_seed=False)
    dist.all_gather_object(everyone, flow.rand(4, device=DEVICE).tolist())
    assert everyone[0] == everyone[1]


def test_ranks_draw_different_numbers(two_ranks):
    two_ranks.run(random_numbers)


def overlapping(rank):
    """Collectives start before backward has ended, in the order of buckets on every rank."""
    from oneflow_lite.distributed import _lane

    events = []
    model = dist.DataParallel(fresh(), 200 / 2**20)
    count = len(model._reducer.buckets)
    model.module.first.weight.register_hook(lambda g: events.append("the first layer"))
    before = _lane.Lane.submit

    def submit(self, work):
        events.append("bucket")
        return before(self, work)

    _lane.Lane.submit = submit
    try:
        x, y = mine(rank, 2, *data())
        F.mse_loss(model(x), y).backward()
    finally:
        _lane.Lane.submit = before
    # "never" is in the first, and holds back all others until backward has ended.
    assert events.count("bucket") == count > 3
    model = dist.DataParallel(nn.Sequential(nn.Linear(9, 9), nn.Linear(9, 9)).to(DEVICE), 0)
    events.clear()
    model.module[0].weight.register_hook(lambda g: events.append("the first layer"))
    _lane.Lane.submit = submit
    try:
        model(flow.ones(2, 9, device=DEVICE)).sum().backward()
    finally:
        _lane.Lane.submit = before
    assert events.index("the first layer") >= 2


def test_buckets_go_while_backward_computes(two_ranks):
    two_ranks.run(overlapping)


def beside_others(rank):
    """Collectives in backward, of the same ranks, do not get between those of the buckets."""

    class Sum(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            g = g.clone()
            dist.all_reduce(g)
            return g

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8).double() for _ in range(6)])

        def forward(self, x):
            for layer in self.layers:
                x = Sum.apply(layer(x))
            return x

    flow.manual_seed(0)
    model = dist.DataParallel(Layers().to(DEVICE), 0)
    x = flow.tensor(np.ones((2, 8)), device=DEVICE)
    for _ in range(10):
        model(x).sum().backward()
    check_same_bits(model)


def test_collectives_in_backward_do_not_mix_with_the_buckets(two_ranks):
    two_ranks.run(beside_others)


def wrong(rank):
    def error(make, kind, *parts):
        with pytest.raises(kind) as e:
            make()
        for part in parts:
            assert part in str(e.value), str(e.value)

    net = nn.Linear(3, 4 + rank)
    error(lambda: dist.DataParallel(net), ValueError, "parameter 'weight' is float32 of shape "
          "[4, 3] on rank 0, but float32 of shape [5, 3] on rank 1", "'bias'")  # fmt: skip
    net = nn.Linear(3, 4, bias=rank == 0)
    error(lambda: dist.DataParallel(net), ValueError,
          "parameter 'bias' is float32 of shape [4] on rank 0, but absent on rank 1")  # fmt: skip
    net = nn.Linear(3, 4)
    net.bias.requires_grad = rank == 1
    error(lambda: dist.DataParallel(net), ValueError, "frozen on rank 0")
    error(lambda: dist.DataParallel(nn.Linear(3, 4), 1 + rank), ValueError, "bucket_mb is 1.0 on")
    error(lambda: dist.DataParallel(nn.Linear(3, 4), -1), ValueError, "bucket_mb is -1")
    error(lambda: dist.DataParallel([1]), TypeError, "must be an nn.Module, not list")
    error(lambda: dist.DataParallel(nn.Identity()), ValueError, "no parameter of Identity")
    p = flow.placement("cpu", [0, 1])
    error(lambda: dist.DataParallel(nn.Linear(3, 4).to_global(p, flow.sbp.broadcast)), ValueError,
          "'weight' is global")  # fmt: skip


def test_what_is_wrong_is_said_on_every_rank(two_ranks):
    two_ranks.run(wrong)


def twice(rank):
    """A backward within backward: the same parameter again."""
    model = dist.DataParallel(nn.Linear(3, 3), 0)

    class Inner(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            with flow.enable_grad():
                model.module(flow.ones(1, 3)).sum().backward()
            return g

    x = flow.ones(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="gradient of 'weight' came twice|'bias' came twice"):
        model.module(Inner.apply(model.module(x))).sum().backward()


def test_a_backward_within_backward_is_refused(two_ranks):
    two_ranks.run(twice)
    two_ranks.close()  # the buckets of that backward were not all reduced


FAILS = """
import oneflow_lite as flow
from oneflow_lite import distributed as dist
layers = [flow.nn.Linear(64, 64) for _ in range(6)]
model = dist.DataParallel(flow.nn.Sequential(*layers), 0)
if dist.get_rank() == 1:
    def fail(g):
        raise KeyError("in the middle")
    layers[1].weight.register_hook(fail)
for _ in range(3):
    model(flow.ones(2, 64)).sum().backward()
"""


@needs_gloo
def test_a_rank_that_fails_in_backward_ends_the_others(tmp_path):
    """While a thread waits for its bucket: the others hear why, and no process stays."""
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "2", "--device", "cpu"]
    run = subprocess.run([*command, str(script)], text=True, capture_output=True, timeout=60)
    assert run.returncode == 1
    assert "[1] KeyError: 'in the middle'" in run.stderr + run.stdout
    assert "rank 1 failed: KeyError: 'in the middle'" in run.stderr + run.stdout
    assert "terminate called" not in run.stderr + run.stdout


def test_a_process_alone():
    model = dist.DataParallel(fresh())
    x, y = (flow.tensor(a) for a in data())
    F.mse_loss(model(x), y).backward()
    alone = fresh()
    F.mse_loss(alone(x), y).backward()
    check_equal(grads(model.module), grads(alone), 0)


def test_after_backward():
    told = []
    x = flow.ones(2, requires_grad=True)

    def hook(g):
        flow._oneflow_lite.after_backward(told.append)
        if len(told) == 1:
            raise KeyError("no")

    x.register_hook(hook)
    (2 * x).sum().backward()
    assert told == [True]
    with pytest.raises(KeyError):
        (2 * x).sum().backward()
    assert told == [True, False]
    with pytest.raises(RuntimeError, match="no backward is under way"):
        flow._oneflow_lite.after_backward(told.append)
    y = flow.ones(2, requires_grad=True)

    def fails(ok):
        raise ValueError("at the end")

    y.register_hook(lambda g: flow._oneflow_lite.after_backward(fails))
    with pytest.raises(ValueError, match="at the end"):
        (2 * y).sum().backward()
