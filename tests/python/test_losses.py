# SPDX-License-Identifier: Apache-2.0
"""Losses of each element: values in float64, dtypes, reductions, gradients of both orders."""

import numpy as np
import pytest
from numerics import flow, host, tensor

F = flow.nn.functional
RNG = np.random.default_rng(11)
X, T = RNG.standard_normal((2, 3, 5))
P, Q = RNG.uniform(0.1, 0.9, (2, 3, 5))
COUNTS = RNG.uniform(1.5, 6, (3, 5))
SIGNS = np.where(Q > 0.5, 1.0, -1.0)
PER_CLASS = RNG.uniform(1, 2, 5)


def softplus(x):
    return np.logaddexp(0, x)


def near(x, t, beta):
    d = np.abs(x - t)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


# name, function, reference, operands, options
CASES = [
    ("mse", F.mse_loss, lambda x, t: (x - t) ** 2, (X, T), {}),
    ("l1", F.l1_loss, lambda x, t: np.abs(x - t), (X, T), {}),
    ("smooth_l1", F.smooth_l1_loss, lambda x, t: near(x, t, 0.5), (X, T), {"beta": 0.5}),
    ("huber", F.huber_loss, lambda x, t: 0.7 * near(x, t, 0.7), (X, T), {"delta": 0.7}),
    ("kl_div", F.kl_div, lambda x, t: t * (np.log(t) - x), (X, P), {}),
    ("kl_div of logs", F.kl_div, lambda x, t: np.exp(t) * (t - x), (X, T), {"log_target": True}),
    ("bce", F.binary_cross_entropy, lambda x, t: -t * np.log(x) - (1 - t) * np.log1p(-x), (P, Q),
     {}),
    ("bce_with_logits", F.binary_cross_entropy_with_logits,
     lambda x, t: t * softplus(-x) + (1 - t) * softplus(x), (X, Q), {}),
    ("pos_weight", lambda x, t, p, **k: F.binary_cross_entropy_with_logits(
        x, t, pos_weight=p, **k), lambda x, t, p: p * t * softplus(-x) + (1 - t) * softplus(x),
     (X, Q, PER_CLASS), {}),
    ("poisson of logs", F.poisson_nll_loss, lambda x, t: np.exp(x) - t * x, (X, P), {}),
    ("poisson", F.poisson_nll_loss, lambda x, t: x - t * np.log(x + 1e-8), (P, Q),
     {"log_input": False}),
    ("poisson, full", F.poisson_nll_loss,
     lambda x, t: np.exp(x) - t * x + t * np.log(t) - t + np.log(2 * np.pi * t) / 2, (X, COUNTS),
     {"full": True}),
    ("gaussian", F.gaussian_nll_loss, lambda x, t, v: (np.log(v) + (x - t) ** 2 / v) / 2,
     (X, T, P), {}),
    ("gaussian, full", F.gaussian_nll_loss,
     lambda x, t, v: (np.log(2 * np.pi * v[:, None]) + (x - t) ** 2 / v[:, None]) / 2,
     (X, T, P[:, 0].copy()), {"full": True}),
    ("soft_margin", F.soft_margin_loss, lambda x, t: softplus(-t * x), (X, SIGNS), {}),
    ("margin_ranking", F.margin_ranking_loss,
     lambda a, b, t: np.maximum(0, 0.3 - t * (a - b)), (X, T, SIGNS), {"margin": 0.3}),
    ("hinge_embedding", F.hinge_embedding_loss,
     lambda x, t: np.where(t == 1, x, np.maximum(0, 1 - x)), (X, SIGNS), {}),
]  # fmt: skip
by_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
REDUCED = {"none": lambda y: y, "mean": np.mean, "sum": np.sum}


@by_case
@pytest.mark.parametrize("reduction", REDUCED)
def test_values(case, reduction, device):
    _, loss, reference, operands, options = case
    expected = REDUCED[reduction](reference(*operands))
    for dtype, bound in (("float64", 1e-12), ("float32", 3e-6)):
        tensors = [tensor(a, dtype, device) for a in operands]
        got = loss(*tensors, reduction=reduction, **options)
        assert str(got.dtype).endswith(dtype)
        np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


@by_case
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_are_rounded_once(case, dtype, device):
    _, loss, reference, operands, options = case
    tensors = [tensor(a, dtype, device) for a in operands]
    if case[0].startswith("margin") or case[0].startswith("hinge"):
        options = options | {"margin": 0.25}
        reference = {"margin_ranking": lambda a, b, t: np.maximum(0, 0.25 - t * (a - b)),
                     "hinge_embedding": lambda x, t: np.where(
                         t == 1, x, np.maximum(0, 0.25 - x))}[case[0]]  # fmt: skip
    exact = reference(*map(host, tensors))
    step = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    for reduction, reduce in REDUCED.items():
        got = loss(*tensors, reduction=reduction, **options)
        assert str(got.dtype).endswith(dtype)
        np.testing.assert_allclose(host(got), reduce(exact), rtol=1.01 * step, atol=2e-6)


@by_case
@pytest.mark.parametrize("reduction", REDUCED)
def test_gradients_of_both_orders(case, reduction):
    name, loss, _, operands, options = case
    tensors = [flow.tensor(a, requires_grad=True) for a in operands]
    if name == "hinge_embedding":  # a label has no slope
        tensors[1] = tensors[1].detach()
    wanted = [t for t in tensors if t.requires_grad]

    def call(*given):
        return loss(*given, *tensors[len(given):], reduction=reduction, **options)  # fmt: skip

    assert flow.autograd.gradcheck(call, wanted)
    y = call(*wanted).sum()
    first = flow.autograd.grad(y, wanted, create_graph=True)
    total = sum((g * g).sum() for g in first)
    second = flow.autograd.grad(total, wanted)
    # The derivative along a direction, by differences of the first gradients.
    step, direction = 1e-6, [flow.tensor(RNG.standard_normal(t.shape)) for t in wanted]
    sums = []
    for sign in (1, -1):
        moved = [(t.detach() + sign * step * d).requires_grad_() for t, d in zip(
            wanted, direction, strict=True)]  # fmt: skip
        grads = flow.autograd.grad(call(*moved).sum(), moved)
        sums.append(sum((g * g).sum() for g in grads).item())
    slope = sum((s * d).sum() for s, d in zip(second, direction, strict=True)).item()
    np.testing.assert_allclose(slope, (sums[0] - sums[1]) / (2 * step), rtol=2e-4, atol=1e-6)


def test_a_loss_is_one_op_forward_and_one_backward():
    x, t = flow.randn(4, 5, requires_grad=True), flow.randn(4, 5)
    with flow.profiler.profile() as profile:
        F.mse_loss(x, t).backward()
    calls = {entry.name: entry.calls for entry in profile.stats()}
    assert calls["loss"] == calls["loss_slope"] == 1
    assert not {"sub", "mul", "mean", "sum"} & set(calls)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 16384, 16385, 100003])
def test_sums_of_many(n, device):
    x, t = RNG.standard_normal((2, n)).astype("float32")
    expected = ((x.astype(float) - t) ** 2).sum()
    a, b = flow.tensor(x, device=device), flow.tensor(t, device=device)
    got = F.mse_loss(a, b, "sum")
    np.testing.assert_allclose(host(got), expected, rtol=1e-6)
    assert F.mse_loss(a, b, "sum").item() == got.item()
    mean = F.mse_loss(a, b).item()
    np.testing.assert_allclose(mean, expected / n if n else np.nan, rtol=1e-6)
    # At an odd offset the same elements give the same sum but for its order.
    if n > 1:
        np.testing.assert_allclose(
            F.l1_loss(a[1:], b[1:], "sum").item(), np.abs(x - t)[1:].astype(float).sum(), rtol=1e-6
        )


def test_what_is_0_or_beyond():
    zero = flow.zeros(2)
    assert F.kl_div(flow.full([2], -np.inf), zero, "sum").item() == 0
    assert F.binary_cross_entropy(flow.tensor([0.0, 1.0]), flow.tensor([1.0, 0.0])).item() == 100
    x = flow.tensor([200.0, -200.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(x, flow.tensor([0.0, 1.0]), reduction="sum").backward()
    assert x.grad.tolist() == [1.0, -1.0]
    y = F.smooth_l1_loss(flow.tensor([np.inf, np.nan]), zero, "none").tolist()
    assert y[0] == np.inf and np.isnan(y[1])


def test_errors():
    x = flow.ones(2, 3)
    with pytest.raises(ValueError, match=r'mse_loss\(\): reduction is "all", but it must be'):
        F.mse_loss(x, x, "all")
    with pytest.raises(flow.ShapeError, match=r"soft_margin_loss\(\): target has shape \[4\], inp"):
        F.soft_margin_loss(x, flow.ones(4))
    with pytest.raises(ValueError, match=r"gaussian_nll_loss\(\): var has elements from -1"):
        F.gaussian_nll_loss(x, x, -x)
    with pytest.raises(ValueError, match=r"gaussian_nll_loss\(\): eps is 0, but it must be pos"):
        F.gaussian_nll_loss(x, x, x, eps=0.0)
    with pytest.raises(ValueError, match=r"gaussian_nll_loss\(\): var has elements from -1"):
        F.gaussian_nll_loss(x, x, -1.0)
    with pytest.raises(ValueError, match=r'loss\(\): kind is "log", but it must be one of mse, '):
        flow.ops.loss(x, x, kind="log")
    with pytest.raises(
        flow.ShapeError, match=r"loss\(\): p has shape \[2\], expected the last dim"
    ):
        flow.ops.loss(x, x, flow.ones(2), kind="mse")
    t = flow.tensor([1.0], requires_grad=True)
    y = F.soft_margin_loss(t, flow.ones(1))
    for _ in range(2):
        (y,) = flow.autograd.grad(y.sum(), t, create_graph=True)
    with pytest.raises(NotImplementedError, match="soft_margin has no derivative of the third"):
        flow.autograd.grad(y.sum(), t)


@pytest.mark.parametrize("var", [2, 0.5, 0.0])
def test_a_variance_that_is_a_number(var, device):
    x, y = (flow.tensor(v, device=device) for v in ([1.0, 2.0, 4.0], [1.5, 0.0, 4.0]))
    want = F.gaussian_nll_loss(x, y, flow.full_like(x, var), full=True)
    for got in (F.gaussian_nll_loss(x, y, var, full=True),
                flow.nn.GaussianNLLLoss(full=True)(x, y, var)):  # fmt: skip
        assert got.item() == want.item()


def test_weights_of_elements():
    """The mean of squares and of sizes is over the weights' sum, that of huber_loss is not."""
    x, t, w = (flow.tensor(v, dtype=flow.float64) for v in (X, T, P))
    for function, loss, divisor in (
        (F.mse_loss, (X - T) ** 2, P.sum()),
        (F.l1_loss, np.abs(X - T), P.sum()),
        (F.huber_loss, near(X, T, 1.0), X.size),
    ):
        np.testing.assert_allclose(host(function(x, t, reduction="none", weight=w)), loss * P)
        total = function(x, t, reduction="sum", weight=w).item()
        np.testing.assert_allclose(total, (loss * P).sum())
        mean = function(x, t, weight=w).item()
        np.testing.assert_allclose(mean, (loss * P).sum() / divisor)
