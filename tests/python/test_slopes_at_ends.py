# SPDX-License-Identifier: Apache-2.0
"""Gradients of composed functions where an operand is 0, infinite or large: never a NaN of a branch
that is not taken.
"""

import math

import pytest
from numerics import HALVES, flow

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
