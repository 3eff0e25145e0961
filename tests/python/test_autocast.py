# SPDX-License-Identifier: Apache-2.0
"""Autocast: which dtype each op computes in, where, for how long; and that gradients follow."""

import threading

import numpy as np
import pytest
from numerics import flow, host
from op_table import OPS

nn, F = flow.nn, flow.nn.functional
BF16, F16, F32, F64 = flow.bfloat16, flow.float16, flow.float32, flow.float64


def drawn(*shape, dtype=F32, device="cpu", grad=False):
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    x = flow.tensor(values, dtype=dtype, device=device)
    return x.requires_grad_() if grad else x


def calls(device):
    """An op of each policy, by name: the call of one float32 and one bfloat16 tensor."""
    x = drawn(4, 4, device=device).abs() + 1
    y = x.to(BF16)
    target = flow.zeros([4], dtype=flow.int64, device=device)
    return {
        "matmul": lambda: x @ x, "mixed matmul": lambda: x @ y, "bmm": lambda: x[None].bmm(x[None]),
        "linear": lambda: F.linear(x, x, x[0]), "addmm": lambda: flow.addmm(x, x, x),
        "exp": lambda: y.exp(), "log": lambda: y.log(), "pow": lambda: y**2.5,
        "rsqrt": lambda: y.rsqrt(), "sum": lambda: y.sum(), "mean": lambda: y.mean(1),
        "cumsum": lambda: y.cumsum(0), "norm": lambda: y.norm(),
        "mse_loss": lambda: F.mse_loss(y, y), "cross_entropy": lambda: F.cross_entropy(y, target),
        "nll_loss": lambda: F.nll_loss(y, target), "softmax": lambda: y.softmax(1),
        "layer_norm": lambda: F.layer_norm(y, (4,), x[0], x[0]),
        "rms_norm": lambda: F.rms_norm(y, (4,), x[0]), "add": lambda: x + y, "mul": lambda: y * 2,
        "cat": lambda: flow.cat([x, y]), "ops.cat": lambda: flow.ops.cat([x, y], axis=0),
        "where": lambda: flow.where(x > 1, x, y), "relu": lambda: y.relu(),
        "gelu": lambda: F.gelu(y),
        "float64": lambda: x.double() @ x.double(), "sum of float64": lambda: x.double().sum(),
        "integers": lambda: x.long() @ x.long(), "transpose": lambda: x.T,
        "sum to float64": lambda: y.sum(dtype=F64),
    }  # fmt: skip


LOWER = "matmul, mixed matmul, bmm, linear, addmm".split(", ")
WIDE = ("exp, log, pow, rsqrt, sum, mean, cumsum, norm, mse_loss, cross_entropy, nll_loss, add, "
        "cat, ops.cat, where, transpose").split(", ")  # fmt: skip
KEPT = "softmax, layer_norm, rms_norm, mul, relu, gelu".split(", ")


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_each_op_chooses_its_dtype(device, dtype):
    with flow.autocast(device, dtype):
        found = {name: call().dtype for name, call in calls(device).items()}
    for name in LOWER:
        assert found[name] is dtype, name
    for name in WIDE:
        assert found[name] is F32, name
    for name in KEPT:
        assert found[name] is BF16, name
    assert found["float64"] is found["sum of float64"] is found["sum to float64"] is F64
    assert found["integers"] is flow.int64


def test_every_row_of_the_table_is_an_op():
    policies = flow._oneflow_lite.autocast_policies()
    assert set(policies) <= set(flow.ops.list(""))
    assert policies["matmul"] == ("lower",) * 3 and policies["softmax"][1] == "float32"
    assert "autocast: float32" in flow.ops.describe("exp")
    assert "autocast: as is" in flow.ops.describe("relu")


def test_the_defaults_are_those_of_pytorch(device):
    kind = {"cpu": BF16, "cuda": F16}[device]
    x = drawn(3, 3, device=device)
    with flow.autocast(device):
        assert (x @ x).dtype is kind is flow.get_autocast_dtype(device)
    assert flow.amp.autocast is flow.autocast
    assert flow.amp.is_autocast_available(device)


def test_values_are_those_of_casts_by_hand(device):
    x, w, b = drawn(5, 7, device=device), drawn(3, 7, device=device), drawn(3, device=device)
    with flow.autocast(device, BF16):
        y = F.linear(x, w, b)
        loss = F.cross_entropy(y, flow.zeros([5], dtype=flow.int64, device=device))
        total = y.sum()
    hand = F.linear(x.to(BF16), w.to(BF16), b.to(BF16))
    np.testing.assert_array_equal(host(y), host(hand))
    target = flow.zeros([5], dtype=flow.int64, device=device)
    np.testing.assert_allclose(loss.item(), F.cross_entropy(hand.float(), target).item(), rtol=1e-6)
    np.testing.assert_allclose(total.item(), hand.float().sum().item(), rtol=1e-6)


def test_gradients_have_the_dtypes_of_the_leaves(device):
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)).to(device)
    x, target = drawn(4, 6, device=device), flow.tensor([0, 1, 2, 0], device=device)
    F.cross_entropy(model(x), target).backward()
    exact = [host(p.grad) for p in model.parameters()]
    for inside in (False, True):
        model.zero_grad()
        with flow.autocast(device, BF16):
            loss = F.cross_entropy(model(x), target)
            assert loss.dtype is F32
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        for p, g in zip(model.parameters(), exact, strict=True):
            assert p.grad.dtype is F32
            np.testing.assert_allclose(host(p.grad), g, atol=0.02 * np.abs(g).max() + 1e-3)


def test_backward_inside_gives_the_bits_of_backward_outside(device):
    grads = []
    for inside in (False, True):
        x, w = drawn(4, 6, device=device, grad=True), drawn(6, 5, device=device, grad=True)
        with flow.autocast(device, BF16):
            y = ((x @ w).exp() + w.sum(0)).softmax(1)
            if inside:
                y.backward(flow.ones_like(y))
        if not inside:
            y.backward(flow.ones_like(y))
        grads.append((host(x.grad), host(w.grad)))
    for a, b in zip(*grads, strict=True):
        np.testing.assert_array_equal(a, b)


def test_contexts_nest_and_end_with_an_error(device):
    x = drawn(3, 3, device=device)
    with flow.autocast(device, BF16):
        with flow.autocast(device, F16):
            assert (x @ x).dtype is F16
            with flow.autocast(device, enabled=False):
                assert (x @ x).dtype is F32 and not flow.is_autocast_enabled(device)
            assert (x @ x).dtype is F16 and flow.get_autocast_dtype(device) is F16
        assert (x @ x).dtype is BF16
        with pytest.raises(ZeroDivisionError), flow.autocast(device, F16):
            raise ZeroDivisionError
        assert (x @ x).dtype is BF16 and flow.is_autocast_enabled(device)
    assert (x @ x).dtype is F32 and not flow.is_autocast_enabled(device)


def test_one_context_may_be_entered_again_and_decorate():
    mixed, x = flow.autocast("cpu", BF16), drawn(3, 3)
    with mixed, mixed:
        assert (x @ x).dtype is BF16
    assert (x @ x).dtype is F32

    @mixed
    def product(n):
        """Says so."""
        return (x @ x).dtype if n == 0 else product(n - 1)

    assert product(3) is BF16 and product.__doc__ == "Says so." and (x @ x).dtype is F32


def test_a_thread_has_its_own():
    x, seen = drawn(3, 3), []

    def look():
        seen.append((x @ x).dtype)
        with flow.autocast("cpu", F16):
            seen.append((x @ x).dtype)

    with flow.autocast("cpu", BF16):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert (x @ x).dtype is BF16
    assert seen == [F32, F16]


@pytest.mark.cuda
def test_another_device_is_left_alone():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x, y = drawn(3, 3), drawn(3, 3, device="cuda")
    with flow.autocast("cuda", BF16):
        assert (x @ x).dtype is F32 and (y @ y).dtype is BF16
    with flow.autocast("cpu", BF16):
        assert (x @ x).dtype is BF16 and (y @ y).dtype is F32


def casts(function):
    """How many casts run in it."""
    with flow.profiler.profile() as prof:
        function()
    return {s.name: s.calls for s in prof.stats()}.get("cast", 0)


def test_weights_are_cast_once(device):
    x, w = drawn(4, 4, device=device).to(BF16), drawn(4, 4, device=device, grad=True)

    def three():
        for _ in range(3):
            assert (x @ w).dtype is BF16

    with flow.autocast(device, BF16):
        assert casts(three) == 1
        assert casts(three) == 0
        with flow.no_grad():  # what records nothing is no history
            assert casts(three) == 1
        y = x @ w
        y.sum().backward()
        assert w.grad is not None
        with flow.no_grad():
            w.mul_(2)
        assert casts(three) == 1  # the weight has changed
        np.testing.assert_array_equal(host(x @ w), host(x @ w.detach().to(BF16)))
        with flow.autocast(device, BF16):
            assert casts(three) == 0
        assert casts(three) == 0
    with flow.autocast(device, BF16):
        assert casts(three) == 1  # dropped at the end of the outermost
    with flow.autocast(device, BF16, cache_enabled=False):
        assert casts(three) == 3
        with flow.autocast(device, F16):
            assert casts(three_of(x, w)) == 6  # x is no leaf that requires grad
    with flow.autocast(device, BF16):
        assert casts(lambda: [x.float() @ w.detach() for _ in range(2)]) > 2


def three_of(x, w):
    return lambda: [x @ w for _ in range(3)]


def test_no_weight_gets_the_cast_of_another():
    x = drawn(4, 4)
    with flow.autocast("cpu", BF16):
        for k in range(50):  # the place of a weight may be taken by the next
            w = flow.full([4, 4], float(k)).requires_grad_()
            np.testing.assert_array_equal(host(x @ w), host(x.to(BF16) @ w.detach().to(BF16)))
            del w


def test_two_leaves_over_one_memory_keep_their_gradients():
    w = drawn(4, 4, grad=True)
    other = w.detach().requires_grad_()
    x = drawn(4, 4)
    with flow.autocast("cpu", BF16):
        (x @ w).sum().backward()
        (x @ other).sum().backward()
    np.testing.assert_array_equal(host(w.grad), host(other.grad))


def test_a_step_trains_in_bfloat16(device):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4)).to(device)
    optimizer = flow.optim.AdamW(model.parameters(), lr=1e-2)
    x = drawn(64, 8, device=device)
    target = (x[:, :4]).argmax(1)
    losses = []
    for _ in range(60):
        with flow.autocast(device, BF16):
            loss = F.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert all(p.dtype is F32 for p in model.parameters())


def test_checkpoints_run_again_as_they_ran(device):
    from oneflow_lite.utils.checkpoint import checkpoint

    model = nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Linear(6, 6)).to(device)
    x, grads = drawn(5, 6, device=device), []
    for call in (lambda m, x: m(x), checkpoint):
        model.zero_grad()
        with flow.autocast(device, BF16):
            y = call(model, x)
        y.float().sum().backward()  # outside: what runs again must know
        grads.append([host(p.grad) for p in model.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_array_equal(a, b)


def test_custom_functions_run_as_their_forward():
    seen = []

    class Product(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @flow.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((g @ b.mT).dtype)
            return (g @ b.mT).to(a.dtype), (a.mT @ g).to(b.dtype)

    class Wide(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd(device_type="cpu", cast_inputs=F32)
        def forward(ctx, a):
            seen.append((a @ a).dtype)
            return a @ a

        @staticmethod
        @flow.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            return g

    a, b = drawn(3, 3, grad=True), drawn(3, 3, grad=True)
    with flow.autocast("cpu", BF16):
        y = Product.apply(a, b)
        Wide.apply(a.to(BF16))
    y.sum().backward()
    assert y.dtype is BF16 and seen == [F32, BF16] and a.grad.dtype is F32


FUNCTIONS = [pytest.param(op, dtype, id=f"{op.name}-{dtype}") for op in OPS
             for dtype in ("bfloat16", "float32")
             if dtype in op.dtypes and not op.factory]  # fmt: skip


@pytest.mark.parametrize("op, dtype", FUNCTIONS)
def test_every_function_works_under_autocast(op, dtype):
    """What the ops inside of a function give each other goes together, and so do gradients."""
    for sample in op.samples:
        given = sample.make(dtype, "cpu")
        expected = op.run(*sample.make(dtype, "cpu"), **sample.kwargs)
        leaves = [given[i].detach().requires_grad_() for i in sample.tensors()
                  if op.differentiable and given[i].is_floating_point()]  # fmt: skip
        for i, leaf in zip(sample.tensors(), leaves, strict=False):
            given[i] = leaf
        with flow.autocast("cpu", BF16):
            found = op.run(*given, **sample.kwargs)
        for y, x in zip(found, expected, strict=True):
            assert y.shape == x.shape and y.is_floating_point() == x.is_floating_point()
            if y.requires_grad:
                y.backward(flow.ones_like(y), retain_graph=True)
        for leaf in leaves:
            assert leaf.grad is None or leaf.grad.dtype is leaf.dtype


@pytest.mark.parametrize("given, error, text", [
    (("tpu",), ValueError, "device_type is 'tpu'.*'cpu', 'cuda'"),
    ((3,), TypeError, "device_type must be"),
    (("cpu", 3), TypeError, "dtype must be a dtype"),
])  # fmt: skip
def test_what_is_of_no_use_is_refused(given, error, text):
    with pytest.raises(error, match=text):
        flow.autocast(*given)
    with pytest.raises(ValueError, match="compat"):
        flow.autocast("cpu", compat="jax")


def test_a_dtype_that_cannot_be_cast_to_is_a_warning():
    x = drawn(3, 3)
    with pytest.warns(UserWarning, match="nothing is cast"):
        mixed = flow.autocast("cpu", F32)
    with mixed:
        assert (x @ x).dtype is F32


def test_compat_gives_the_dtypes_of_pytorch():
    torch = pytest.importorskip("torch")
    x, y = torch.randn(4, 4).abs() + 1, (torch.randn(4, 4).abs() + 1).bfloat16()
    target = torch.zeros(4, dtype=torch.int64)
    tf = torch.nn.functional
    with torch.autocast("cpu", torch.bfloat16):
        theirs = {
            "matmul": x @ x, "linear": tf.linear(x, x, x[0]), "exp": y.exp(), "log": y.log(),
            "pow": y**2.5, "rsqrt": y.rsqrt(), "sum": y.sum(), "mean": y.mean(1),
            "cumsum": y.cumsum(0), "norm": y.norm(), "mse_loss": tf.mse_loss(y, y),
            "cross_entropy": tf.cross_entropy(y, target), "nll_loss": tf.nll_loss(y, target),
            "softmax": y.softmax(1), "add": x + y, "cat": torch.cat([x, y]), "gelu": tf.gelu(y),
            "addmm": torch.addmm(x, x, x),
        }  # fmt: skip
    with flow.autocast("cpu", BF16, compat="torch"):
        ours = {name: call().dtype for name, call in calls("cpu").items()}
    for name, t in theirs.items():
        assert str(ours[name]).rpartition(".")[2] == str(t.dtype).rpartition(".")[2], name


@pytest.mark.cuda
def test_compat_on_cuda():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    with flow.autocast("cuda", F16, compat="torch"):
        found = {name: call().dtype for name, call in calls("cuda").items()}
    for name in ("softmax", "layer_norm", "exp", "sum", "cross_entropy"):
        assert found[name] is F32, name
    assert found["mean"] is found["gelu"] is BF16 and found["linear"] is F16


@pytest.mark.cuda
def test_casts_do_not_cross_a_capture():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x, w = drawn(4, 4, device="cuda").to(BF16), drawn(4, 4, device="cuda", grad=True)
    graph = flow.cuda.CUDAGraph()
    with flow.no_grad(), flow.autocast("cuda", BF16):
        x @ w  # cached
        with flow.cuda.graph(graph):
            y = x @ w  # so the cast is in the graph
        w.copy_(2 * w)
        z = x @ w  # and not of it
        graph.replay()
    np.testing.assert_array_equal(host(y), host(z))
