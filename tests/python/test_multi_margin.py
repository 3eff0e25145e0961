# SPDX-License-Identifier: Apache-2.0
"""multi_margin_loss: one launch for the rows and one back, and what it gives in the corners."""

import math

import numpy as np
import pytest
from numerics import FLOATS, flow, host, tensor

F = flow.nn.functional
RNG = np.random.default_rng(3)


def expected(x, t, p, margin):
    rows = np.arange(len(x))
    terms = np.maximum(0, margin - x[rows, t][:, None] + x) ** p
    terms[rows, t] = 0
    slopes = np.where(terms > 0, p * terms ** ((p - 1) / p), 0)
    slopes[rows, t] = -slopes.sum(1)
    return terms.sum(1) / x.shape[1], slopes / x.shape[1]


# Around a pack, a warp's packs, and the 1024 classes from which on CUDA has a block for a row;
# 1000 and 8200 are more than the four packs that a lane of a warp or of a block reads at a time.
@pytest.mark.parametrize(
    "classes", [1, 2, 7, 8, 9, 255, 256, 257, 1000, 1023, 1024, 1025, 5000, 8200]
)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [1, 2])
def test_rows(classes, dtype, p, device):
    rows = 19
    x = tensor(RNG.standard_normal((rows, classes)), dtype, device).requires_grad_()
    t = RNG.integers(0, classes, rows)
    loss = F.multi_margin_loss(x, flow.tensor(t).to(device), p, 0.75, reduction="none")
    flow_back = tensor(RNG.standard_normal(rows), dtype, device)
    loss.backward(flow_back)
    value, slopes = expected(host(x), t, p, 0.75)
    step = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(host(loss), value, rtol=step, atol=1e-7)
    wanted = slopes * host(flow_back)[:, None]
    np.testing.assert_allclose(host(x.grad), wanted, rtol=2 * step, atol=1e-7)


def test_one_pass_each_way(device):
    """Over what is as large as x; views launch nothing."""
    x = flow.randn(20, 30, device=device).requires_grad_()
    t = flow.randint(0, 30, (20,), device=device)
    with flow.profiler.profile() as profile:
        loss = F.multi_margin_loss(x, t, reduction="none")
        flow.autograd.grad(loss, x, flow.ones_like(loss))
    names = [s.name for s in profile.stats() if s.name not in ("view", "ones", "full", "empty")]
    assert sorted(names) == ["multi_margin", "multi_margin_backward"]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_gradients(p, weighted, device):
    x = tensor(RNG.standard_normal((4, 5)), "float64", device).requires_grad_()
    weight = tensor(RNG.random(5) + 0.5, "float64", device).requires_grad_()
    t = flow.tensor([0, 4, 2, 2]).to(device)
    if weighted:

        def call(x, weight):
            return F.multi_margin_loss(x, t, p, 1.0, weight)

        inputs = [x, weight]
    else:

        def call(x):
            return F.multi_margin_loss(x, t, p)

        inputs = [x]
    assert flow.autograd.gradcheck(call, inputs)
    assert flow.autograd.gradgradcheck(call, inputs)


@pytest.mark.parametrize("classes", [6, 1030])
def test_what_is_not_finite_stays_in_its_row(classes, device):
    x = np.zeros((4, classes), np.float32)
    x[0, 2], x[1, 1], x[2, 3] = np.nan, np.inf, -np.inf
    given = flow.tensor(x).to(device).requires_grad_()
    loss = F.multi_margin_loss(given, flow.tensor([0, 1, 0, 0]).to(device), reduction="none")
    got = host(loss)
    assert math.isnan(got[0]) and got[1] == 0
    np.testing.assert_allclose(got[2:], [(classes - 2) / classes, (classes - 1) / classes], 1e-6)
    loss[1:].sum().backward()
    assert np.isfinite(host(given.grad)[2:]).all()


def test_targets_outside(device):
    x, t = flow.zeros(2, 3, device=device), flow.tensor([0, 3]).to(device)
    if device == "cpu":
        with pytest.raises(IndexError, match=r"multi_margin_loss\(\): target 3 is out of range"):
            F.multi_margin_loss(x, t)
        return
    got = host(F.multi_margin_loss(x, t, reduction="none"))
    assert math.isfinite(got[0]) and math.isnan(got[1])


def test_shapes(device):
    assert F.multi_margin_loss(flow.zeros(0, 3, device=device),
                               flow.zeros(0, dtype=flow.int64, device=device),
                               reduction="sum").item() == 0  # fmt: skip
    x = flow.tensor([0.1, 0.9]).to(device)
    assert F.multi_margin_loss(x, flow.tensor(1).to(device), reduction="none").shape == ()
    assert F.multi_margin_loss(x, flow.tensor([1]).to(device), reduction="none").shape == (1,)
    whole = flow.tensor([[1, 5]]).to(device)
    assert F.multi_margin_loss(whole, flow.tensor([0]).to(device)).item() == 2.5
