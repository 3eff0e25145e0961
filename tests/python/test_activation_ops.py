# SPDX-License-Identifier: Apache-2.0
"""The activations' values and slopes: all 65536 inputs of the 16-bit floats, float32 within 4 ulp,
the ends, forms in place, what backward keeps, and how many ops run.
"""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, flow, half_step, host, rounded, tensor, ulp

F = flow.nn.functional


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1.0) / (1 + np.exp(-np.abs(x)))


def tanhshrink(x):
    t = x * x
    near = x * t * (1 / 3 + t * (-2 / 15 + t * (17 / 315 + t * (-62 / 2835 + t * 1382 / 155925))))
    return np.where(np.abs(x) < 0.03, near, x - np.tanh(x))


def softplus(x, beta=1.0, threshold=20.0):
    z = beta * x
    soft = np.where(z > 0, x, 0.0) + np.log1p(np.exp(-np.abs(z))) / beta
    return np.where(z > threshold, x, soft)


def mish_slope(x):
    t, s = np.tanh(softplus(x, 1.0, np.inf)), sigmoid(x)
    y = t + x * s * (1 - t) * (1 + t)
    return np.where(x > 30, 1.0, np.where(x < -745, 0.0, y))


def elu(x, a=1.0, b=1.0, c=1.0):
    return np.where(x <= 0, a * np.expm1(np.minimum(x, 0) * c), x * b)


def elu_slope(x, a=1.0, b=1.0, c=1.0):
    return np.where(x <= 0, a * c * np.exp(np.minimum(x, 0) * c), b)


def silu_slope(x):
    return sigmoid(x) * (1 + x * sigmoid(-x))


def between(low, high):
    return lambda x: np.where((x <= low) | (x >= high), 0.0, 1.0)


def outside(lambd):
    return lambda x: np.where(np.abs(x) <= lambd, 0.0, 1.0)


SELU = (1.0507009873554805 * 1.6732632423543772, 1.0507009873554805)
# function, the formula and its slope in float64, what backward keeps, and keeps in place (None:
# there is no such form): "x" is the input, as in PyTorch, and "y" the output.
CASES = {
    "silu": (F.silu, lambda x: x * sigmoid(x), silu_slope, "x", "x"),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x, 1.0, np.inf)), mish_slope, "x", "x"),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip((x + 3) / 6, 0, 1),
                    lambda x: between(-3, 3)(x) / 6, "x", "x"),
    "hardswish": (F.hardswish, lambda x: x * np.clip((x + 3) / 6, 0, 1),
                  lambda x: np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (2 * x + 3) / 6)),
                  "x", "x"),
    "relu": (F.relu, lambda x: np.where(x < 0, 0.0, x), lambda x: np.where(x <= 0, 0.0, 1.0),
             "y", "y"),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6), between(0, 6), "x", "y"),
    "hardtanh": (lambda x, **k: F.hardtanh(x, -0.5, 2.0, **k), lambda x: np.clip(x, -0.5, 2),
                 between(-0.5, 2), "x", "y"),
    "leaky_relu": (lambda x, **k: F.leaky_relu(x, 0.1, **k),
                   lambda x: np.where(x > 0, x, x * 0.1), lambda x: np.where(x > 0, 1.0, 0.1),
                   "x", "y"),
    "leaky_relu < 0": (lambda x, **k: F.leaky_relu(x, -0.5, **k),
                       lambda x: np.where(x > 0, x, x * -0.5),
                       lambda x: np.where(x > 0, 1.0, -0.5), "x", "x"),
    "elu": (lambda x, **k: F.elu(x, 0.75, **k), lambda x: elu(x, 0.75),
            lambda x: elu_slope(x, 0.75), "x", "y"),
    "celu": (lambda x, **k: F.celu(x, 0.7, **k), lambda x: elu(x, 0.7, 1, 1 / 0.7),
             lambda x: elu_slope(x, 0.7, 1, 1 / 0.7), "x", "y"),
    "selu": (F.selu, lambda x: elu(x, *SELU), lambda x: elu_slope(x, *SELU), "x", "y"),
    "elu < 0": (lambda x, **k: F.elu(x, -0.5, **k), lambda x: elu(x, -0.5),
                lambda x: elu_slope(x, -0.5), "x", "x"),
    "softplus": (F.softplus, softplus, lambda x: np.where(x > 20, 1.0, sigmoid(x)), "x", None),
    "softplus 0.7": (lambda x: F.softplus(x, 0.7, 5.0), lambda x: softplus(x, 0.7, 5.0),
                     lambda x: np.where(0.7 * x > 5, 1.0, sigmoid(0.7 * x)), "x", None),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x, 1.0, np.inf), lambda x: sigmoid(-x),
                   "x", None),
    "softsign": (F.softsign, lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
                 lambda x: 1 / (1 + np.abs(x)) / (1 + np.abs(x)), "x", None),
    "tanhshrink": (F.tanhshrink, tanhshrink, lambda x: np.tanh(x) ** 2, "x", None),
    "softshrink": (F.softshrink, lambda x: np.where(np.abs(x) <= 0.5, 0, x - np.copysign(0.5, x)),
                   outside(0.5), "x", None),
    "hardshrink": (F.hardshrink, lambda x: np.where(np.abs(x) <= 0.5, 0, x), outside(0.5), "x",
                   None),
    "threshold": (lambda x, **k: F.threshold(x, 0.1, 20.0, **k),
                  lambda x: np.where(x <= np.float32(0.1), 20.0, x),
                  lambda x: np.where(x <= np.float32(0.1), 0.0, 1.0), "x", "x"),
    "threshold <= 0": (lambda x, **k: F.threshold(x, 0.5, -1.0, **k),
                       lambda x: np.where(x <= 0.5, -1.0, x),
                       lambda x: np.where(x <= 0.5, 0.0, 1.0), "x", "y"),
}  # fmt: skip
by_name = pytest.mark.parametrize("name", CASES)
IN_PLACE = [name for name, case in CASES.items() if case[4] is not None]
# The formula of these at -inf is infinity times 0; its limit is 0.
AT_LEAST = {"silu": 0.0, "mish": 0.0, "hardswish": 0.0}


def every(dtype):
    """All values of a 16-bit float."""
    numbers = np.arange(65536, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        if dtype == "bfloat16":
            return (numbers << 16).view(np.float32).astype(np.float64)
        return numbers.astype(np.uint16).view(np.float16).astype(np.float64)


def wanted(name, x):
    """Values and slopes in float64; NaN stays."""
    _, formula, slope, _, _ = CASES[name]
    with np.errstate(all="ignore"):
        y, s = formula(x), slope(x)
        y = np.where(x == -np.inf, AT_LEAST.get(name, y), y)
        end = np.where(x > 0, slope(np.float64(1e300)), slope(np.float64(-1e300)))
        s = np.where(np.isinf(x), end, s)
    return np.where(np.isnan(x), np.nan, y), s


def run(name, x, dtype, device):
    """The values that the tensor has, the results and the slopes there."""
    t = tensor(x, dtype, device).requires_grad_()
    y = CASES[name][0](t)
    (grad,) = flow.autograd.grad(y, t, flow.ones_like(y))
    assert y.dtype is grad.dtype is t.dtype
    return host(t), host(y), host(grad)


@by_name
@pytest.mark.parametrize("dtype", HALVES)
def test_every_16_bit_input_is_rounded_once(name, dtype, device):
    """float32 within 4 ulp, rounded: the nearest number, or the other one of a near tie; on CUDA
    what half_step allows."""
    x, y, grad = run(name, every(dtype), dtype, device)
    number = ~np.isnan(x)
    for got, want, slack in zip((y, grad), wanted(name, x), (6e-7, 1e-6), strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(want)
            # A slope is a sum near its own root: an error of what is summed.
            error = slack * np.maximum(size, 1e-1 if got is grad else 0) + 2.0**-149
            least, most = rounded(want - error, dtype), rounded(want + error, dtype)
        right = (got >= least) & (got <= most) | (got == want)
        right |= np.isnan(got) & np.isnan(want)
        if device == "cuda":
            with np.errstate(invalid="ignore"):
                right |= np.abs(got - want) <= half_step(device) * ulp(want, dtype) + error
        wrong = np.flatnonzero(~right & number)
        assert len(wrong) == 0, (len(wrong), x[wrong[:4]], got[wrong[:4]], want[wrong[:4]])
    assert np.isnan(y[~number]).all()


def spread(dtype):
    """Numbers of all sizes and signs; more of those where the functions bend and vanish."""
    rng = np.random.default_rng(5)
    size = np.concatenate([np.exp2(rng.uniform(-40, 8, 20000)), rng.uniform(0, 10, 20000),
                           rng.uniform(80, 115, 4000), np.exp2(rng.uniform(-149, 127, 4000)),
                           [3.0, 6.0, 0.5, 2.0, 20.0, 1.5, 120.0, 64.0, 1e30]])  # fmt: skip
    x = np.concatenate([size, -size])
    return x.astype(dtype).astype(np.float64)


@by_name
def test_float32_within_4_ulp(name, device):
    x, y, grad = run(name, spread("float32"), "float32", device)
    for what, got, want in zip(("y", "slope"), (y, grad), wanted(name, x), strict=True):
        with np.errstate(over="ignore"):
            want = np.where(np.abs(want) > np.finfo(np.float32).max, np.sign(want) * np.inf, want)
        same = got == want
        with np.errstate(invalid="ignore"):
            off = np.where(same, 0, np.abs(got - want) / ulp(want, "float32"))
        # The slopes are sums that pass through 0; far out they are less than a normal number.
        allowed = 4 if what == "y" else np.maximum(8, 2e-7 / ulp(want, "float32"))
        worst = np.argmax(np.where(np.isnan(off), np.inf, off) - allowed)
        assert (off <= allowed).all(), (what, x[worst], got[worst], want[worst], off[worst])


@by_name
def test_float64(name, device):
    x, y, grad = run(name, spread("float64"), "float64", device)
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("the reference needs more digits than NumPy's long double has here")
    for got, want, atol in zip(
        (y, grad), wanted(name, x.astype(np.longdouble)), (0, 1e-15), strict=True
    ):
        near = np.abs(got - want) <= 4 * ulp(want.astype(float), "float64") + atol
        wrong = np.flatnonzero(~near)
        assert len(wrong) == 0, (len(wrong), x[wrong[:4]], got[wrong[:4]], want[wrong[:4]])


@by_name
@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_nan(name, dtype, device):
    x, y, grad = run(name, [np.inf, -np.inf, np.nan], dtype, device)
    want, slopes = wanted(name, np.array(x))
    np.testing.assert_array_equal(y, rounded(want, dtype))
    np.testing.assert_array_equal(grad[:2], rounded(slopes, dtype)[:2])


@by_name
def test_the_slope_has_a_history(name):
    """Of second order by differences; where the slope is constant, it is zeros, not an error."""
    x = flow.tensor([-7.3, -2.7, -1.1, -0.3, 0.26, 0.7, 1.3, 4.1, 7.7],
                    dtype=flow.float64, requires_grad=True)  # fmt: skip
    function = CASES[name][0]
    assert flow.autograd.gradcheck(function, [x])
    assert flow.autograd.gradgradcheck(function, [x])
    (first,) = flow.autograd.grad(function(x).sum(), x, create_graph=True)
    assert first.requires_grad
    (second,) = flow.autograd.grad(first.sum(), x)
    assert second.isfinite().all()


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_in_place(name, dtype, device):
    function = CASES[name][0]
    values = np.array([-7.3, -2.7, -1.1, -0.3, 0.0, 0.26, 0.7, 1.3, 4.1, 7.7])
    leaf, other = (tensor(values, dtype, device).requires_grad_() for _ in range(2))
    x = leaf * 1
    y = function(x, inplace=True)
    assert y is x
    (y * y).sum().backward()
    z = function(other)
    (z * z).sum().backward()
    np.testing.assert_array_equal(host(y), host(z))
    np.testing.assert_allclose(host(leaf.grad), host(other.grad), rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="leaf"):
        function(leaf, inplace=True)
    with flow.no_grad():
        assert function(leaf, inplace=True) is leaf
    np.testing.assert_array_equal(host(leaf), host(y))
    strided = tensor(np.stack([values, values]), dtype, device).T
    assert function(strided, inplace=True) is strided
    np.testing.assert_array_equal(host(strided), host(flow.stack([y, y], 1)))


@pytest.mark.parametrize("name", IN_PLACE)
def test_second_order_in_place(name):
    x = flow.tensor([-2.7, -0.3, 0.7, 4.1], dtype=flow.float64, requires_grad=True)
    function = lambda t: CASES[name][0](t * 1, inplace=True)  # noqa: E731
    assert flow.autograd.gradgradcheck(function, [x])


@by_name
def test_backward_keeps_one_tensor(name):
    function, _, _, keeps, in_place = CASES[name]
    kept = []

    def pack(t):
        kept.append(t.detach().clone())
        return t

    x = flow.tensor([-2.7, -0.3, 0.7, 4.1], requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = function(x)
    assert [t.nbytes for t in kept] == [x.nbytes]
    assert flow.equal(kept[0], (x if keeps == "x" else y).detach())
    if in_place is not None:
        z = x * 1
        kept.clear()
        with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            function(z, inplace=True)
        assert [t.nbytes for t in kept] == [x.nbytes]
        assert flow.equal(kept[0], (x if in_place == "x" else z).detach())


@by_name
def test_one_op_forward_and_one_backward(name, device):
    function, _, _, _, in_place = CASES[name]
    x = flow.ones(300, device=device, requires_grad=True)
    with flow.profiler.profile() as seen:
        y = function(x)
    assert sum(s.calls for s in seen.stats()) == 1
    dy = flow.ones_like(y)
    with flow.profiler.profile() as seen:
        flow.autograd.grad(y, x, dy)
    assert sum(s.calls for s in seen.stats()) == 1
    if in_place is not None:
        z = x.detach()
        with flow.profiler.profile() as seen:
            function(z, inplace=True)
        assert sum(s.calls for s in seen.stats()) == 1


def test_functions_in_place(device):
    values = [-3.0, -0.5, 0.5, 8.0]
    for name, numbers, want in (
        ("relu_", (), [0, 0, 0.5, 8]), ("hardtanh_", (), [-1, -0.5, 0.5, 1]),
        ("hardtanh_", (-2.0, 3.0), [-2, -0.5, 0.5, 3]), ("threshold_", (0.5, 9.0), [9, 9, 9, 8]),
        ("leaky_relu_", (0.5,), [-1.5, -0.25, 0.5, 8]),
        ("elu_", (2.0,), [2 * np.expm1(-3), 2 * np.expm1(-0.5), 0.5, 8]),
        ("celu_", (1.0,), [np.expm1(-3), np.expm1(-0.5), 0.5, 8]),
        ("selu_", (), elu(np.array(values), *SELU)),
    ):  # fmt: skip
        x = tensor(values, "float32", device)
        assert getattr(F, name)(x, *numbers) is x
        np.testing.assert_allclose(host(x), want, rtol=1e-6)
    assert tensor(values, "float32", device).relu_().tolist() == [0, 0, 0.5, 8]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_integers(dtype, device):
    x = tensor([0, 1, 5, 6, 7, 100], dtype, device)
    for function, want in (
        (F.relu6, [0, 1, 5, 6, 6, 6]), (lambda t: F.hardtanh(t, 0.5, 6.9), [0, 1, 5, 6, 6, 6]),
        (lambda t: F.hardtanh(t, -1e300, np.inf), [0, 1, 5, 6, 7, 100]),
        (lambda t: F.threshold(t, 5.5, 3), [3, 3, 3, 6, 7, 100]),
        (lambda t: F.threshold(t, 5, 3), [3, 3, 3, 6, 7, 100]),
        (lambda t: F.threshold(t.clone(), 5, 3, inplace=True), [3, 3, 3, 6, 7, 100]),
    ):  # fmt: skip
        y = function(x)
        assert y.dtype is x.dtype and y.tolist() == want
    large = flow.tensor([2**62 + 1, 2**62 + 3], device=device)
    assert F.hardtanh(large, 0, 2**62 + 2).tolist() == [2**62 + 1, 2**62 + 2]
    assert F.threshold(large, 2**62 + 1, 4).tolist() == [4, 2**62 + 3]
    assert F.elu(x).dtype is flow.float32


def test_softplus_at_its_threshold(device):
    x = tensor([19.9, 20.0, 20.1], "float64", device)
    want = [np.log1p(np.exp(19.9)), np.log1p(np.exp(20.0)), 20.1]
    np.testing.assert_allclose(host(F.softplus(x)), want, rtol=1e-15)
    np.testing.assert_allclose(host(F.softplus(-x, -1.0, np.inf)), [-v for v in
                               np.log1p(np.exp(host(x)))], rtol=1e-15)  # fmt: skip


def test_errors():
    x = flow.ones(2, dtype=flow.int64)
    for name in ("silu", "mish", "hardswish", "hardsigmoid", "leaky_relu", "elu", "celu", "selu"):
        with pytest.raises(flow.DTypeError, match=rf"{name}\(\): the input has dtype int64"):
            getattr(F, name)(x, inplace=True)
    for call in (lambda: F.elu(flow.ones(2), "a"), lambda: F.softplus(flow.ones(2), None),
                 lambda: F.silu([1.0]), lambda: F.threshold(flow.ones(2), 1)):  # fmt: skip
        with pytest.raises(TypeError):
            call()
