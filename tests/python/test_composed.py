# SPDX-License-Identifier: Apache-2.0
"""The functions that Python composes: values against NumPy, gradients, errors."""

import math

import numpy as np
import pytest
from numerics import flow, host, tensor

F = flow.nn.functional
RNG = np.random.default_rng(4)
X = RNG.standard_normal((3, 4)) * 3
Y = RNG.standard_normal((3, 4))
POSITIVE = RNG.uniform(0.1, 3, (3, 4))
INTEGERS = RNG.integers(-9, 10, (3, 4))
DIVISORS = np.where(RNG.random((3, 4)) < 0.5, -3, 4)
CUBE = RNG.standard_normal((2, 3, 4))
GROUPS = RNG.standard_normal((2, 4, 3))


def np_softplus(x, beta=1.0):
    return np.logaddexp(0, beta * x) / beta


def np_pad(x, widths, value=0.0):
    return np.pad(x, [(0, 0), (widths[0], widths[1])], constant_values=value)


def np_group_norm(x, groups, weight, bias):
    rows = x.reshape(len(x), groups, -1)
    y = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    return y.reshape(x.shape) * weight[:, None] + bias[:, None]


def np_attention(q, k, v, causal=False):
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[-2:]
        scores = np.where(np.arange(m) <= np.arange(n)[:, None] + m - n, scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


HEADS = RNG.standard_normal((2, 3, 5, 4))
# name, function, NumPy's, arguments (arrays become tensors)
CASES = [
    ("clamp", flow.clamp, np.clip, X, Y, Y + 1),
    ("clamp_min", flow.clamp_min, np.maximum, X, Y[0]),
    ("dot", flow.dot, np.dot, X[0], Y[0]), ("mv", flow.mv, np.matmul, X, Y[0]),
    ("addcdiv", flow.addcdiv, lambda a, b, c: a + b / c, X, Y, POSITIVE),
    ("floor_divide", flow.floor_divide, np.floor_divide, X, POSITIVE),
    ("remainder", flow.remainder, np.remainder, X, DIVISORS * 1.0),
    ("lerp", flow.lerp, lambda a, b, w: a + w * (b - a), X, Y, 0.3),
    ("addcmul", flow.addcmul, lambda a, b, c: a + b * c, X, Y, POSITIVE),
    ("movedim", flow.movedim, np.moveaxis, CUBE, 0, -1),
    ("repeat", flow.Tensor.repeat, np.tile, X, (2, 1, 3)), ("tile", flow.tile, np.tile, CUBE, (2,)),
    ("repeat_interleave", flow.repeat_interleave, np.repeat, CUBE, 2, 1),
    ("repeat_interleave flat", flow.repeat_interleave, np.repeat, X, 3),
    ("flip", flow.flip, np.flip, CUBE, (0, -1)), ("roll", flow.roll, np.roll, X, 5),
    ("roll along", flow.roll, np.roll, X, -1, 1),
    ("broadcast_to", flow.broadcast_to, np.broadcast_to, X, (2, 3, 4)),
    ("unflatten", flow.unflatten, lambda x, d, s: x.reshape(3, 2, 2), X, 1, (2, 2)),
    ("tril", flow.tril, np.tril, CUBE, -1), ("triu", flow.triu, np.triu, X, 1),
    ("diagonal of dims", flow.diagonal, np.diagonal, CUBE, -1, 2, 0),
    ("diagonal to the right", flow.diagonal, np.diagonal, CUBE, 2, -1, 1),
    ("diagonal outside", flow.diagonal, np.diagonal, X, 9),
    ("diag", flow.diag, np.diag, X[0], -2), ("diag of a matrix", flow.diag, np.diag, X, 1),
    ("diagonal", flow.diagonal, np.diagonal, X), ("mm", flow.mm, np.matmul, X, Y.T),
    ("bmm", flow.bmm, np.matmul, CUBE, np.swapaxes(CUBE, 1, 2)),
    ("addmm", flow.addmm, lambda a, b, c: a + b @ c, Y[0, :3], X, Y.T),
    ("outer", flow.outer, np.outer, X[0], Y[0]),
    ("norm", flow.norm, lambda x: np.sqrt((x * x).sum()), X),
    ("norm 1", flow.norm, lambda x, p, d: np.abs(x).sum(d), X, 1, 1),
    ("norm inf", flow.norm, lambda x, p, d: np.abs(x).max(d), X, math.inf, 0),
    ("norm 3", flow.norm, lambda x, p, d: (np.abs(x) ** 3).sum(d) ** (1 / 3), X, 3, -1),
    ("normalize", F.normalize, lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), X),
    ("leaky_relu", F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), X),
    ("elu", F.elu, lambda x: np.where(x > 0, x, np.expm1(x)), X),
    ("softplus", F.softplus, np_softplus, np.array([-700.0, -50.0, -1.0, 0.0, 3.0, 19.0])),
    ("softplus beta", F.softplus, np_softplus, X, 2.0),
    ("logsigmoid", F.logsigmoid, lambda x: -np_softplus(-x), np.array([-1e4, -30.0, 0.0, 9.0])),
    ("pad", F.pad, np_pad, X, (1, 2)), ("mse_loss", F.mse_loss, lambda a, b: np.mean((a - b) ** 2),
                                        X, Y),
    ("l1_loss", F.l1_loss, lambda a, b, r: np.abs(a - b).sum(), X, Y, "sum"),
    ("smooth_l1_loss", F.smooth_l1_loss, lambda a, b, r: np.where(
        np.abs(a - b) < 1, (a - b) ** 2 / 2, np.abs(a - b) - 0.5), X, Y, "none"),
    ("bce", F.binary_cross_entropy_with_logits, lambda x, t: np.mean(
        t * np_softplus(-x) + (1 - t) * np_softplus(x)), X, POSITIVE / 3),
    ("bce of probabilities", F.binary_cross_entropy, lambda p, t: -np.mean(
        t * np.log(p) + (1 - t) * np.log(1 - p)), POSITIVE / 4, POSITIVE / 3),
    ("bce of 0 and 1", F.binary_cross_entropy, lambda p, t, w, r: w * 100.0 * (p != t),
     np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]), np.array([3.0, 1.0, 2.0]), "none"),
    ("huber_loss", F.huber_loss, lambda a, b, r, d: np.where(
        np.abs(a - b) < d, (a - b) ** 2 / 2, d * (np.abs(a - b) - d / 2)), X, Y, "none", 0.5),
    ("group_norm", F.group_norm, np_group_norm, GROUPS, 2, RNG.uniform(1, 2, 4), np.arange(4.0)),
    ("kl_div", F.kl_div, lambda x, t: np.mean(t * (np.log(t) - x)), X, POSITIVE),
    ("attention", F.scaled_dot_product_attention, np_attention, HEADS, HEADS + 1, HEADS * 2),
    ("causal attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
     lambda q, k, v: np_attention(q, k, v, True), HEADS, HEADS + 1, HEADS * 2),
]  # fmt: skip
# Constant between jumps: gradcheck has nothing to see, and at 0 a kink.
WITHOUT_GRADCHECK = {
    "clamp", "clamp_min", "floor_divide", "softplus", "logsigmoid", "l1_loss", "bce of 0 and 1",
}  # fmt: skip
by_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])


@by_case
def test_values(case, device):
    _, function, reference, *args = case
    with np.errstate(divide="ignore"):
        expected = reference(*args)
    for dtype, bound in (("float64", 1e-12), ("float32", 2e-5)):
        made = [tensor(a, dtype, device) if isinstance(a, np.ndarray) else a for a in args]
        got = function(*made)
        assert got.dtype.name == dtype and got.device.type == device
        with np.errstate(over="ignore"):
            want = expected.astype(dtype).astype(float)
        np.testing.assert_allclose(host(got), want, rtol=bound, atol=bound * 1e-2)


@pytest.mark.parametrize("case", [c for c in CASES if c[0] not in WITHOUT_GRADCHECK],
                         ids=lambda c: c[0])  # fmt: skip
def test_gradients(case):
    _, function, _, *args = case
    made = [flow.tensor(a, requires_grad=True) if isinstance(a, np.ndarray) else a for a in args]
    assert flow.autograd.gradcheck(function, made)


def test_gradients_at_zero_and_far_out():
    for function, slopes in (
        (F.softplus, [0, 0.5, 1]), (F.logsigmoid, [1, 0.5, 0]), (flow.log1p, None),
    ):  # fmt: skip
        x = flow.tensor([-800.0, 0.0, 800.0] if slopes else [1e-20, 3.0], requires_grad=True)
        function(x).sum().backward()
        np.testing.assert_allclose(host(x.grad), slopes or [1, 0.25], atol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_integer_division(dtype):
    a = INTEGERS if dtype != "uint8" else np.abs(INTEGERS)
    b = DIVISORS if dtype != "uint8" else np.abs(DIVISORS)
    x, y = tensor(a, dtype), tensor(b, dtype)
    for got, want in ((x // y, a // b), (x % y, a % b), (x // 4, a // 4), (x % 4, a % 4),
                      (7 // y, 7 // b), (7 % y, 7 % b)):  # fmt: skip
        assert got.dtype.name == dtype
        np.testing.assert_array_equal(host(got), want)
    assert (x // 2.0).dtype == flow.float32 and (flow.tensor([-7.0]) // 2).tolist() == [-4]


def test_truth():
    a, b = flow.tensor([0, 2, 0, 3]), flow.tensor([0.0, 0.0, 1.0, 2.0])
    assert flow.logical_and(a, b).tolist() == [False, False, False, True]
    assert a.logical_or(b).tolist() == [False, True, True, True]
    assert a.logical_xor(b).tolist() == [False, True, True, False]
    assert a.count_nonzero().item() == 2 and flow.nonzero(b).tolist() == [[2], [3]]
    assert flow.sign(flow.tensor([-2.0, 0.0, np.nan, 3.0])).tolist()[:2] == [-1, 0]
    assert b.masked_select(a > 0).tolist() == [0, 2]
    x = flow.tensor([np.nan, np.inf, -np.inf, 1.0])
    assert x.nan_to_num(2.0, 9.0).tolist() == [2, 9, flow.finfo(flow.float32).min, 1]
    assert flow.isclose(x, x, equal_nan=True).all() and not flow.isclose(x, x)[0]


def test_norm_corners():
    x = flow.tensor([300.0, 400.0], dtype=flow.float16)
    assert x.norm().item() == 500 and x.norm().dtype is flow.float16  # its squares overflow
    assert F.normalize(x, dim=0).isfinite().all()
    assert flow.tensor([1.0, 0.0, 3.0]).norm(0).item() == 2
    for p in (2, 3):
        zero = flow.zeros(3, requires_grad=True)
        zero.norm(p).backward()
        assert zero.grad.tolist() == [0, 0, 0]


def test_division_rounded_either_way():
    for a, b in ((X, DIVISORS * 1.0), (INTEGERS, DIVISORS)):
        x, y = flow.tensor(a), flow.tensor(b)
        floor, trunc = (flow.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc"))
        assert floor.dtype is trunc.dtype is x.dtype
        np.testing.assert_array_equal(host(floor), np.floor_divide(a, b))
        np.testing.assert_array_equal(host(trunc), np.trunc(a / b))
    assert x.div(y, rounding_mode=None).dtype is flow.float32
    with pytest.raises(ValueError, match='rounding_mode is "up"'):
        x.div(y, rounding_mode="up")


def test_tensors_joined_and_spread():
    x, y = flow.arange(3), flow.arange(2)
    assert flow.hstack([x, y]).tolist() == [0, 1, 2, 0, 1]
    assert flow.hstack([x.view(1, 3), y.view(1, 2)]).tolist() == [[0, 1, 2, 0, 1]]
    assert flow.vstack([x, x.view(1, 3)]).tolist() == [[0, 1, 2], [0, 1, 2]]
    for indexing in ("ij", "xy"):
        want = np.meshgrid(host(x), host(y), indexing=indexing)
        for got in (flow.meshgrid(x, y, indexing=indexing),
                    flow.meshgrid([x, y], indexing=indexing)):  # fmt: skip
            assert [g.tolist() for g in got] == [w.tolist() for w in want]
    a, b = flow.broadcast_tensors(x.view(3, 1), y)
    assert a.shape == b.shape == (3, 2) and a.data_ptr() == x.data_ptr()
    assert flow.flip(x, dims=[0]).tolist() == x.flip(0).tolist() == [2, 1, 0]
    assert (flow.tensor([True, False]) ^ flow.tensor([True, True])).tolist() == [False, True]
    with pytest.raises(ValueError, match='indexing is "yx"'):
        flow.meshgrid(x, y, indexing="yx")
    with pytest.raises(flow.ShapeError, match="1 or 2 dims"):
        flow.diag(flow.zeros(1, 1, 1))


def test_the_diagonal_that_diag_takes_out_is_a_copy():
    x = flow.arange(9.0).view(3, 3).requires_grad_()
    line = x.diag()
    line.mul_(2).sum().backward()
    assert x.diagonal().tolist() == [0, 4, 8] and line.tolist() == [0, 8, 16]
    assert x.grad.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert flow.diag(flow.eye(3), 1).is_contiguous()


def test_diagonal_of_a_view():
    x = flow.arange(20.0).view(4, 5).requires_grad_()
    for view in (x, x[1:, 1:], x[:, :2], x.T):
        (grad,) = flow.autograd.grad(view.diagonal().sum(), x)
        expected = flow.zeros(4, 5)
        expected.view(-1)[view.detach().diagonal().long()] = 1
        assert grad.tolist() == expected.tolist()
        assert view.detach().diagonal().tolist() == np.diagonal(host(view)).tolist()
    y = flow.zeros(3, 4)
    y[:, 1:].diagonal().fill_(1)
    assert y.sum().item() == 3


def test_dims_and_sizes():
    x = flow.tensor(CUBE)
    for call in (lambda: x.movedim(3, 0), lambda: x.repeat_interleave(2, 3), lambda: x.flip(-4),
                 lambda: x.roll(1, 3), lambda: x.unflatten(3, (2, 2))):  # fmt: skip
        with pytest.raises(IndexError, match="is out of range"):
            call()
    for call in (lambda: x.flip(0, -3), lambda: x.roll((1, 2), 0), lambda: x.repeat(-1, 1, 1),
                 lambda: x.movedim((0, 1), 2)):  # fmt: skip
        with pytest.raises(ValueError, match="dim|negative"):
            call()
    with pytest.raises(flow.ShapeError, match="at least 2 dims"):
        x[0, 0].diagonal()
    moved, rolled = np.moveaxis(CUBE, (0, 1), (-1, 0)), np.roll(CUBE, (1, -3), (2, 0))
    np.testing.assert_array_equal(host(x.movedim((0, 1), (-1, 0))), moved)
    np.testing.assert_array_equal(host(x.roll((1, -3), (2, 0))), rolled)
    assert flow.tensor(1.0).movedim(0, -1).item() == flow.tensor(1.0).flip(0).item() == 1


def test_masked_select_broadcasts():
    x, mask = flow.tensor([[1, 2], [3, 4]]), flow.tensor([True, False])
    assert x.masked_select(mask).tolist() == [1, 3]
    assert flow.tensor([5, 6]).masked_select(x > 1).tolist() == [6, 5, 6]
    with pytest.raises(flow.DTypeError, match="expected bool"):
        x.masked_select(x)


def test_slopes_at_0():
    for function, slope in ((lambda x: F.leaky_relu(x, 0.1), 0.1), (lambda x: F.elu(x, 0.5), 0.5)):
        x = flow.zeros(1, dtype=flow.float64, requires_grad=True)
        function(x).sum().backward()
        assert x.grad.item() == slope
    small = flow.tensor([-1e-6])
    np.testing.assert_allclose(host(F.elu(small)), np.expm1(host(small)), rtol=1e-6)


def test_losses_keep_what_is_wrong_visible():
    target = flow.tensor([math.nan, -1.0, 0.0])
    loss = F.kl_div(flow.zeros(3), target, reduction="none")
    assert loss.isnan().tolist() == [True, True, False]
    with pytest.raises(flow.ShapeError, match="expected .3, 1."):
        F.binary_cross_entropy_with_logits(flow.zeros(3, 1), flow.zeros(3))


def test_in_place():
    x = flow.tensor([4.0, 9.0])
    assert x.sqrt_() is x and x.tolist() == [2, 3]
    assert x.clamp_(max=2.5).neg_().tolist() == [-2, -2.5]
    assert x.masked_fill_(x > -2.2, 0).pow_(2).tolist() == [0, 6.25]
    leaf = flow.ones(2, requires_grad=True)
    y = leaf * 2
    y.exp_().sum().backward()
    np.testing.assert_allclose(host(leaf.grad), 2 * math.exp(2), rtol=1e-6)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.relu_()
    whole = flow.tensor([5])
    with pytest.raises(flow.DTypeError, match="sqrt_.*float32, which cannot be stored"):
        whole.sqrt_()
    assert whole.pow_(2).tolist() == [25]


def test_creation(device):
    on = {"device": device}
    np.testing.assert_array_equal(host(flow.eye(2, 3, **on)), np.eye(2, 3))
    for start, end, steps in ((0, 1, 5), (-3, 7, 11), (2, 2, 3), (1, 0, 1), (0, 1, 0), (0, 1, 2)):
        got = flow.linspace(start, end, steps, dtype=flow.float64, **on)
        np.testing.assert_allclose(host(got), np.linspace(start, end, steps), rtol=1e-15)
    x = flow.ones(2, dtype=flow.float16, **on)
    for made, values in ((x.new_zeros(2, 1), [[0], [0]]), (x.new_full((1,), 3), [3]),
                         (x.new_ones((2,)), [1, 1]), (x.new_tensor([5]), [5])):  # fmt: skip
        assert made.dtype == flow.float16 and made.device.type == device
        assert made.tolist() == values
    assert x.new_empty((3,), dtype=flow.int64).dtype == flow.int64
    assert flow.as_tensor(x) is x and flow.as_tensor([1, 2]).dtype == flow.int64
    array = np.zeros(2)
    flow.as_tensor(array).add_(1)
    assert array.tolist() == [1, 1]
    backwards, foreign = np.arange(4.0)[::-1], np.arange(3, dtype=">f4")
    assert flow.as_tensor(backwards).tolist() == [3, 2, 1, 0]
    assert flow.as_tensor(foreign).tolist() == [0, 1, 2]


def test_addmm_without_its_input():
    nan = flow.full((2, 2), math.nan)
    assert flow.addmm(nan, flow.ones(2, 3), flow.ones(3, 2), beta=0).tolist() == [[3, 3], [3, 3]]


def test_outer_takes_lines():
    with pytest.raises(flow.ShapeError, match=r"outer\(\): takes tensors of 1 dim"):
        flow.outer(flow.ones(2, 2), flow.ones(2))


def test_one_hot():
    x = flow.tensor([[0, 2], [1, 0]])
    assert F.one_hot(x, 4).tolist() == np.eye(4, dtype=int)[host(x)].tolist()
    assert F.one_hot(x).shape == (2, 2, 3) and F.one_hot(flow.tensor([], dtype=flow.int64), 3).shape
    for bad in (flow.tensor([-1]), flow.tensor([3])):
        with pytest.raises(ValueError, match="out of range"):
            F.one_hot(bad, 3)


def test_limits():
    for name, numpy_name in (
        ("float16", "float16"),
        ("float32", "float32"),
        ("float64", "float64"),
    ):
        got, want = flow.finfo(getattr(flow, name)), np.finfo(numpy_name)
        assert (got.eps, got.max, got.min, got.tiny, got.bits) == (
            want.eps, want.max, want.min, want.tiny, want.bits)  # fmt: skip
        assert got.resolution == float(str(want.resolution))
    assert flow.finfo(flow.bfloat16).max == 3.3895313892515355e38
    assert flow.finfo(flow.bfloat16).resolution == 0.01
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        got, want = flow.iinfo(getattr(flow, name)), np.iinfo(name)
        assert (got.min, got.max, got.bits) == (want.min, want.max, want.bits)
    with pytest.raises(TypeError):
        flow.iinfo(flow.float32)
    with pytest.raises(TypeError):
        flow.finfo(flow.int8)
    for given in (flow.ones(2), 1.0, "float32", float, np.float32, None):
        for limits in (flow.finfo, flow.iinfo):
            kind = type(given).__name__
            text = (
                rf"^{limits.__name__}\(\): argument 'dtype' must be oneflow_lite.dtype, not {kind}$"
            )
            with pytest.raises(TypeError, match=text):
                limits(given)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.dropout(flow.ones(2), 1.5), ValueError, "p is 1.5, but it must be in [0, 1]"),
        (lambda: flow.nn.Dropout(-0.1), ValueError, "p is -0.1"),
        (lambda: F.mse_loss(flow.ones(2), flow.ones(2), "avg"), ValueError, 'reduction is "avg"'),
        (lambda: F.mse_loss(flow.ones(2), flow.ones(3)), flow.ShapeError, "mse_loss(): target has"),
        (lambda: flow.randint(3, 3, (2,)), ValueError, "no integer from 3 on and below 3"),
        (lambda: flow.randint(3), TypeError, "randint() missing required argument"),
        (lambda: flow.linspace(0, 1, -1), ValueError, "must not be negative"),
        (lambda: flow.tril(flow.ones(2)), ValueError, "at least 2 dims"),
        (lambda: flow.mm(flow.ones(2), flow.ones(2, 2)), flow.ShapeError, "takes matrices"),
        (lambda: flow.ones(2, 2).repeat(2), ValueError, "1 sizes for a tensor of 2 dims"),
        (lambda: F.pad(flow.ones(2), (1,)), ValueError, "are not at most 1 pairs"),
        (lambda: F.pad(flow.ones(3), (1, 1), "odd"), ValueError, "odd"),
        (lambda: flow.empty(2).normal_(0, -1), ValueError, "std is -1"),
        (lambda: flow.nn.Embedding(2, 2, 2), ValueError, "padding_idx is 2"),
        (lambda: F.one_hot(flow.ones(2)), TypeError, "takes a tensor of int64"),
    ],
)  # fmt: skip
def test_errors(call, error, text):
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


EMPTY = [
    ((1, 0), 0),
    ((0, 1), 0),
    ((0, 0), 0),
    ((2, 3), 5),
    ((2, 3), -5),
    ((3, 0), -1),
    ((0, 3), 1),
]


@pytest.mark.parametrize("shape, offset", EMPTY)
def test_diagonals_of_nothing(shape, offset, device):
    x, n = flow.ones(shape, device=device), flow.zeros(0, device=device)
    assert list(x.diagonal(offset).shape) == list(flow.diag(x, offset).shape) == [0]
    assert list(x.expand(2, *shape).diagonal(offset, -2, -1).shape) == [2, 0]
    assert x.tril(offset).shape == x.triu(offset).shape == x.shape
    assert flow.trace(x).item() == np.trace(np.ones(shape))
    size = abs(offset)
    assert list(flow.diag(n, offset).shape) == list(flow.diagflat(n, offset).shape) == [size] * 2


def test_diagflat(device):
    x = tensor(X, "float32", device)
    np.testing.assert_array_equal(host(flow.diagflat(x, -1)), np.diagflat(host(x), -1))
    assert flow.diagflat(flow.tensor(3)).tolist() == [[3]]


def test_logspace(device):
    for start, end, steps, base in ((0, 2, 5, 10), (-1, 1, 4, 2.5), (3, -3, 7, 2), (0.5, 0.5, 1, 3),
                                    (1, 2, 0, 10)):  # fmt: skip
        got = flow.logspace(start, end, steps, base, dtype=flow.float64, device=device)
        expected = np.logspace(start, end, steps, base=base)
        np.testing.assert_allclose(host(got), expected, rtol=1e-14)
        assert flow.logspace(start, end, steps, base=base, device=device).dtype is flow.float32
    for dtype in ("int8", "int32", "int64", "uint8"):
        kind = getattr(flow, dtype)
        for ends, steps, base, expected in (
            ((0, 2), 4, 10, [1, 4, 21, 100]), ((0, 1), 5, 10, [1, 1, 3, 5, 10]),
            ((0, 3), 4, 2, [1, 2, 4, 8]), ((0, 0.9), 3, 10, [1, 1, 1]),
            ((-1, 1), 3, 10, [0, 1, 10]), ((2, 2), 1, 1.5, [2]), ((0, 2), 0, 10, []),
        ):  # fmt: skip
            got = flow.logspace(*ends, steps, base, dtype=kind, device=device)
            assert got.dtype is kind and got.tolist() == expected
    largest = flow.logspace(0, 15, 16, dtype=flow.int64, device=device)
    assert largest.tolist() == [10**k for k in range(16)]
    assert flow.logspace(flow.tensor(0), flow.tensor(1.0), 2).tolist() == [1, 10]
    with pytest.raises(OverflowError, match=r"^logspace\(\): the number 256 .* of int8$"):
        flow.logspace(0, 8, 3, 2, dtype=flow.int8)
    for arguments, error in (((0, 1, -1), ValueError), ((flow.ones(2), 1, 3), TypeError),
                             ((0, 400, 2), None), ((-1, 1, 2, 0), None)):  # fmt: skip
        if error:
            with pytest.raises(error, match=r"^logspace\(\): "):
                flow.logspace(*arguments)
        else:  # infinite, as floats are
            assert not flow.logspace(*arguments).isfinite().all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_logspace_of_fewer_digits_is_the_rounded_power(dtype, device):
    """By exponentials where base and scaled ends are finite and positive, by powers beyond."""
    for base in (10.0, 2.0, 0.5, math.e, 1.0, 1e-300, 1e300, 0.0, -2.0, math.inf, math.nan):
        for start, end, steps in ((0, 2, 3), (-4, 4, 9), (-1, 1, 257), (0, math.inf, 2)):
            with np.errstate(all="ignore"):
                exponents = host(flow.linspace(start, end, steps, dtype=flow.float64))
                expected = flow.tensor(np.power(base, exponents)).to(getattr(flow, dtype))
            got = flow.logspace(start, end, steps, base, dtype=getattr(flow, dtype), device=device)
            np.testing.assert_array_equal(host(got), host(expected))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_linspace_refuses_ends_that_do_not_fit(dtype):
    kind = getattr(flow, dtype)
    least, most = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    assert flow.linspace(least, most, 2, dtype=kind).tolist() == [least, most]
    for start, end in ((least, most + 1), (most + 1, 0), (least - 1, 0), (0, least - 1)):
        with pytest.raises(OverflowError, match=rf"^linspace\(\): .* of {dtype}$"):
            flow.linspace(start, end, 3, dtype=kind)
    assert flow.linspace(0, most + 1, 1, dtype=kind).tolist() == [0]  # which has one end
    out = flow.empty(5, dtype=flow.int32)
    with pytest.raises(flow.DTypeError, match=r"^linspace\(\): out has dtype int32"):
        flow.linspace(0, 1, 5, out=out)


def test_linspace_of_integers_loses_the_fractions_first(device):
    """Those of its ends, and then those of each number; from the nearer end."""
    for start, end, steps in (
        (4.3, -3, 50),
        (4.3, 50, 50),
        (-1.5, 1.5, 8),
        (-3.7, 3.7, 7),
        (5, 9, 1),
    ):
        got = flow.linspace(start, end, steps, dtype=flow.int64, device=device)
        first, last, half = int(start), int(end), max(1, steps // 2)
        step = (last - first) / max(1, steps - 1)
        expected = [first + k * step if k < half else last - (steps - 1 - k) * step
                    for k in range(steps)]  # fmt: skip
        assert got.tolist() == [int(value) for value in expected]
    assert flow.linspace(flow.tensor(0.1, dtype=flow.float64), 1, 3).dtype is flow.float32
    third = flow.linspace(flow.tensor(0), flow.tensor(1), 4, dtype=flow.float64)[1].item()
    assert third == 1 / 3
