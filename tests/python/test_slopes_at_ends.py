# SPDX-License-Identifier: Apache-2.0
"""Gradients of composed functions where an operand is 0, infinite or large: never a NaN of a branch
that is not taken.
"""

import math

import numpy as np
import pytest
from numerics import HALVES, flow, host

F = flow.nn.functional
INF = math.inf


def slopes(function, *values, dtype="float64", device="cpu"):
    options = {"dtype": getattr(flow, dtype), "device": device, "requires_grad": True}
    tensors = [flow.tensor([v], **options) for v in values]
    return [g.item() for g in flow.autograd.grad(function(*tensors).sum(), tensors)]


# fmt: off
@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
@pytest.mark.parametrize("function, values, expected", [
    (flow.logaddexp, (INF, 1.0), [1, 0]), (flow.logaddexp, (2.0, INF), [0, 1]),
    (flow.logaddexp, (INF, -INF), [1, 0]), (flow.logaddexp, (-INF, 3.0), [0, 1]),
    (flow.logaddexp, (4.0, 4.0), [0.5, 0.5]),
    (flow.remainder, (0.0, 2.0), [1, 0]), (flow.remainder, (7.0, 2.0), [1, -3]),
    (flow.remainder, (-7.0, 2.0), [1, 4]), (flow.remainder, (5.0, INF), [1, 0]),
    (flow.remainder, (-5.0, INF), [1, 1]), (flow.remainder, (0.0, -INF), [1, 0]),
    (flow.fmod, (0.0, 2.0), [1, 0]), (flow.fmod, (-0.0, 2.0), [1, 0]),
    (flow.fmod, (7.0, 2.0), [1, -3]), (flow.fmod, (-7.0, 2.0), [1, 3]),
    (flow.fmod, (7.0, -2.0), [1, 3]), (flow.fmod, (5.0, -INF), [1, 0]),
    (flow.sinh, (1e4,), [INF]), (flow.sinh, (-INF,), [INF]), (flow.sinh, (0.0,), [1]),
    (flow.cosh, (1e4,), [INF]), (flow.cosh, (-1e4,), [-INF]), (flow.cosh, (0.0,), [0]),
    (flow.logit, (0.0,), [INF]), (flow.logit, (1.0,), [INF]), (flow.logit, (0.5,), [4]),
    (flow.round, (INF,), [0]), (flow.round, (2.5,), [0]), (flow.round, (1e30,), [0]),
])
def test_slopes(function, values, expected, dtype):
    assert slopes(function, *values, dtype=dtype) == expected
# fmt: on


@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
@pytest.mark.parametrize(
    "point, expected",
    [((0.0, 0.0), [0, 0]), ((-0.0, -0.0), [0, 0]), ((0.0, 2.0), [0.5, 0]), ((-2.0, 0.0), [0, 0.5])],
)
def test_slopes_of_atan2_at_the_origin_and_the_axes(point, expected, dtype, device):
    assert slopes(flow.atan2, *point, dtype=dtype, device=device) == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fused", [False, True])
def test_slopes_of_atan2_far_away_are_0(fused, dtype, device):
    """The second ones, too; beside NaN they are NaN."""
    function = flow.fuse.elements(lambda a, b: flow.atan2(a, b)) if fused else flow.atan2
    options = {"dtype": getattr(flow, dtype), "device": device, "requires_grad": True}
    for point in [(INF, 1.0), (-2.0, INF), (0.0, -INF), (-INF, 0.0), (INF, INF), (-INF, INF),
                  (math.nan, INF), (INF, math.nan), (math.nan, 0.0)]:  # fmt: skip
        a, b = (flow.tensor([v], **options) for v in point)
        first = flow.autograd.grad(function(a, b), (a, b), create_graph=True)
        second = flow.autograd.grad(first[0] + first[1], (a, b))
        for slope in (*first, *second):
            if math.nan in point:
                assert math.isnan(slope.item()), point
            else:
                assert slope.item() == 0, point


@pytest.mark.parametrize("function", [flow.fmod, flow.remainder])
def test_slopes_of_slopes(function):
    """The quotient is constant between its jumps."""
    x = flow.tensor([7.1, -7.3, 0.25], dtype=flow.float64, requires_grad=True)
    y = flow.tensor([[2.0], [-1.5]], dtype=flow.float64, requires_grad=True)
    assert flow.autograd.gradcheck(function, (x, y))
    assert flow.autograd.gradgradcheck(lambda a, b: function(a * a, b * b), (x, y))


@pytest.mark.parametrize("x", [-30.0, -20.5, -3.0, 0.0, 20.5, 30.0, 39.0])
def test_cross_entropy_of_logits_is_exact_in_float64(x):
    loss = lambda t: F.binary_cross_entropy_with_logits(t, flow.ones_like(t))  # noqa: E731
    exact = math.log1p(math.exp(-x)) if x > 0 else -x + math.log1p(math.exp(x))
    got = loss(flow.tensor([x], dtype=flow.float64)).item()
    assert got == pytest.approx(exact, rel=1e-15)
    slope = -math.exp(-x) / (1 + math.exp(-x)) if x > 0 else -1 / (1 + math.exp(x))
    assert slopes(loss, x) == pytest.approx([slope], rel=1e-14)


def derivatives(function, values, dtype, device):
    """The first and the second."""
    options = {"dtype": getattr(flow, dtype), "device": device, "requires_grad": True}
    x = flow.tensor(values, **options)
    (first,) = flow.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = flow.autograd.grad(first.sum(), x)
    return host(first).astype(float), host(second).astype(float), host(x).astype(float)


def bessel(n, x):
    """I_n of a small x."""
    return math.fsum((x / 2) ** (2 * k + n) / (math.factorial(k) * math.factorial(k + n))
                     for k in range(30))  # fmt: skip


BOUND = {"float32": 3e-5, "float64": 1e-11}


@pytest.mark.parametrize("dtype", BOUND)
def test_second_derivatives_of_bessel_functions_near_0(dtype, device):
    near = [1e-30, -1e-30, 1e-8, -1e-4, 1e-3, 0.01, -0.1, 0.2499, 0.2501, -0.3, 1.0, -2.5]
    _, second, x = derivatives(flow.special.i1, near, dtype, device)
    want = [(3 * bessel(1, v) + bessel(3, v)) / 4 for v in x]
    np.testing.assert_allclose(second, want, rtol=BOUND[dtype])
    _, second, x = derivatives(flow.special.i1e, near, dtype, device)
    bows = [(3 * bessel(1, v) + bessel(3, v)) / 4 - bessel(0, v) - bessel(2, v) + bessel(1, v)
            for v in np.abs(x)]  # fmt: skip
    np.testing.assert_allclose(second, np.sign(x) * np.exp(-np.abs(x)) * bows, rtol=BOUND[dtype])


def slopes_at(function, values, device):
    x = flow.tensor(values, dtype=flow.float64, device=device, requires_grad=True)
    return flow.autograd.grad(function(x).sum(), x)[0].tolist()


def test_the_slope_of_i1_where_i1_overflows(device):
    first = slopes_at(flow.special.i1, [713.0, 713.9, 714.0, 800.0, -800.0, 1e300], device)
    assert first[0] < INF and first[2:] == [INF] * 4


@pytest.mark.parametrize("dtype", BOUND)
def test_derivatives_of_erfcx_far_out(dtype, device):
    far = [12.0, 12.5, 23.9, 24.1, 100.0, 1e4, 1e8, 1e10]
    far += [1e30, 1e100] if dtype == "float64" else []
    first, second, x = derivatives(flow.special.erfcx, far, dtype, device)
    odd = [math.prod(range(1, 2 * k, 2)) / (-2) ** k for k in range(14)]  # of the series in 1 / x
    slope = [math.fsum(-c * (2 * k + 1) * v ** (-2 * k) for k, c in enumerate(odd)) for v in x]
    bow = [math.fsum(c * (2 * k + 1) * (2 * k + 2) * v ** (-2 * k) for k, c in enumerate(odd))
           for v in x]  # fmt: skip
    np.testing.assert_allclose(first * x * x * math.sqrt(math.pi), slope, rtol=BOUND[dtype])
    np.testing.assert_allclose(second * x * x * x * math.sqrt(math.pi), bow,
                               rtol=1e-3 if dtype == "float32" else 1e-9)  # fmt: skip
