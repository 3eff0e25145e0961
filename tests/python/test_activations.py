# SPDX-License-Identifier: Apache-2.0
"""The activations composed in Python: their formulas, gradients, modules, in place."""

import numpy as np
import pytest
from numerics import flow, host, near, tensor

F, nn = flow.nn.functional, flow.nn
RNG = np.random.default_rng(8)
X = RNG.standard_normal((4, 6)) * 3


def np_elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def clip(low, high):
    return lambda x: np.clip(x, low, high)


# function, its module, the numbers of both, NumPy's formula
CASES = [
    (F.celu, nn.CELU, {"alpha": 0.7}, lambda x: 0.7 * np_elu(x / 0.7, 1)),
    (F.selu, nn.SELU, {}, lambda x: 1.0507009873554805 * np_elu(x, 1.6732632423543772)),
    (F.mish, nn.Mish, {}, lambda x: x * np.tanh(np.logaddexp(0, x))),
    (F.hardtanh, nn.Hardtanh, {"min_val": -0.5, "max_val": 2.0}, clip(-0.5, 2.0)),
    (F.relu6, nn.ReLU6, {}, clip(0, 6)),
    (F.hardsigmoid, nn.Hardsigmoid, {}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    (F.hardswish, nn.Hardswish, {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    (F.softsign, nn.Softsign, {}, lambda x: x / (1 + np.abs(x))),
    (F.tanhshrink, nn.Tanhshrink, {}, lambda x: x - np.tanh(x)),
    (F.hardshrink, nn.Hardshrink, {"lambd": 1.0}, lambda x: np.where(np.abs(x) <= 1, 0, x)),
    (F.softshrink, nn.Softshrink, {"lambd": 1.0},
     lambda x: np.sign(x) * np.maximum(np.abs(x) - 1, 0)),
    (F.threshold, nn.Threshold, {"threshold": 0.5, "value": -2.0},
     lambda x: np.where(x > 0.5, x, -2.0)),
    (F.glu, nn.GLU, {"dim": 0}, lambda x: x[:2] / (1 + np.exp(-x[2:]))),
]  # fmt: skip
by_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)


@by_case
def test_formulas(case, device):
    function, module, numbers, formula = case
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 3e-2)):
        x = tensor(X, dtype, device)
        y = function(x, **numbers)
        assert y.dtype is x.dtype
        np.testing.assert_allclose(host(y), formula(host(x)), rtol=bound, atol=bound)
        assert flow.equal(module(**numbers)(x), y)
        assert flow.equal(module(*numbers.values())(x), y)


@by_case
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_once(case, dtype, device):
    function, _, numbers, _ = case
    x = tensor(np.concatenate([np.linspace(-6, 6, 401), np.linspace(-0.05, 0.05, 401)]), dtype,
               device)  # fmt: skip
    x = x.reshape(2, -1).requires_grad_() if function is F.glu else x.requires_grad_()
    exact = x.detach().float().requires_grad_()
    y, want = function(x, **numbers), function(exact, **numbers)
    y.sum().backward()
    want.sum().backward()
    for got, expected in ((y, want), (x.grad, exact.grad)):
        # A clamp's own edge is moved by no rounding: its gradient there is one of two.
        assert (
            near(host(got), host(expected), dtype, device).all()
            or function is F.glu
            and flow.allclose(got.float(), expected, 2**-10 if dtype == "float16" else 2**-7, 1e-6)
        )


@by_case
def test_gradients(case):
    function, _, numbers, _ = case
    x = flow.tensor(X, requires_grad=True)
    assert flow.autograd.gradcheck(lambda t: function(t, **numbers), [x])


@by_case
def test_in_place(case):
    function, module, numbers, formula = case
    if "inplace" not in module(**numbers).numbers:
        return
    leaf = flow.tensor(X, requires_grad=True)
    x = leaf * 1
    assert function(x, **numbers, inplace=True) is x
    np.testing.assert_allclose(host(x), formula(X), rtol=1e-12, atol=1e-12)
    x.sum().backward()
    other = flow.tensor(X, requires_grad=True)
    function(other, **numbers).sum().backward()
    np.testing.assert_allclose(host(leaf.grad), host(other.grad), rtol=1e-9)  # of x, or of y
    assert "inplace=True" in repr(module(**numbers, inplace=True))


def test_modules_show_their_numbers():
    assert repr(nn.Hardtanh()) == "Hardtanh(min_val=-1.0, max_val=1.0)"
    assert repr(nn.GLU()) == "GLU(dim=-1)" and repr(nn.Mish()) == "Mish()"
    with pytest.raises(TypeError):
        nn.Mish(1, 2, 3)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("weight", [0.25, -1.0, 0.0, np.inf, np.nan])
def test_prelu_beside_infinities(weight, frozen):
    """A positive element has the gradient 1 and gives the weight none, be they infinite or NaN."""
    x = flow.tensor([np.inf, 2.0, -1.0, -0.5], requires_grad=True)
    w = flow.tensor([weight], requires_grad=not frozen)
    y = F.prelu(x, w)
    np.testing.assert_array_equal(
        host(y), np.array([np.inf, 2, -weight, -0.5 * weight], np.float32)
    )
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), np.array([1, 1, weight, weight], np.float32))
    assert w.grad is None if frozen else w.grad.tolist() == [-1.5]
    module = flow.nn.PReLU(init=0.5).requires_grad_(False)
    (dx,) = flow.autograd.grad(module(x).sum(), x)
    assert dx.tolist() == [1, 1, 0.5, 0.5] and module.weight.grad is None


def test_prelu():
    x = flow.tensor(X, dtype=flow.float32)
    one, each = nn.PReLU(), nn.PReLU(6, 0.5)
    np.testing.assert_allclose(host(one(x)), np.where(X > 0, X, X * 0.25), rtol=1e-6)
    np.testing.assert_allclose(host(each(x)), np.where(X > 0, X, X * 0.5), rtol=1e-6)
    each(x).sum().backward()
    np.testing.assert_allclose(host(each.weight.grad), np.minimum(X, 0).sum(0), rtol=1e-5)
    assert one(flow.tensor(-4.0)).item() == -1 and repr(one) == "PReLU(num_parameters=1)"
    with pytest.raises(flow.ShapeError, match=r"weight has shape \[3\], expected \[1\] or \[6\]"):
        F.prelu(x, flow.ones(3))


@pytest.mark.parametrize("channels", [1, 5])
def test_prelu_is_one_op_each_way(channels, device):
    x = flow.tensor(X[:, :5].copy(), device=device, requires_grad=True)
    w = flow.full((channels,), 0.25, dtype=flow.float64, device=device, requires_grad=True)
    names = [n for n, _ in flow._oneflow_lite.record_ops(lambda: F.prelu(x, w).sum().backward())]
    for name in ("prelu", "prelu_slope_a", "loss" if channels == 1 else "prelu_slope_b"):
        assert names.count(name) == 1
    assert not {"where", "gt", "mul"} & set(names)
    assert flow.autograd.gradgradcheck(F.prelu, (x, w))


def test_cosine_similarity():
    a, b = X, X[:1] + 1
    expected = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    got = F.cosine_similarity(flow.tensor(a), flow.tensor(b))
    np.testing.assert_allclose(host(got), expected)
    assert F.cosine_similarity(flow.zeros(2, 3), flow.ones(2, 3)).tolist() == [0, 0]
    made = [flow.tensor(t, requires_grad=True) for t in (a, b)]
    assert flow.autograd.gradcheck(F.cosine_similarity, made)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gumbel_softmax(dtype, device):
    logits = tensor(np.log([0.1, 0.2, 0.7]), dtype, device).expand(20000, 3)
    generator = flow.Generator().manual_seed(3)
    drawn = F.gumbel_softmax(logits, hard=True, generator=generator)
    assert drawn.dtype is logits.dtype and flow.equal(drawn.sum(1), flow.ones_like(drawn[:, 0]))
    np.testing.assert_allclose(host(drawn.double().mean(0)), [0.1, 0.2, 0.7], atol=0.02)
    x = tensor(X, dtype, device).requires_grad_()
    (F.gumbel_softmax(x, 0.5, hard=True, dim=0) * tensor(X, dtype, device)).sum().backward()
    assert bool(x.grad.isfinite().all()) and bool((x.grad != 0).any())


def test_errors():
    x = flow.ones(2, 3)
    for call, error in ((lambda: F.glu(x), flow.ShapeError),
                        (lambda: F.hardtanh(x, 2, 1), ValueError),
                        (lambda: F.softshrink(x, -1), ValueError)):  # fmt: skip
        with pytest.raises(error):
            call()


def test_threshold_is_compared_before_it_is_rounded():
    x = tensor([0.1, 0.09], "bfloat16")  # 0.1 is rounded up
    assert F.threshold(x, 0.1, 20.0).tolist() == [x[0].item(), 20]
    assert F.threshold(flow.tensor([1, 3]), 1, 0).tolist() == [0, 3]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_dropout_takes_floats(dtype):
    x = flow.ones(3, dtype=getattr(flow, dtype))
    for drop in (F.dropout, nn.Dropout(0.5)):
        with pytest.raises(flow.DTypeError, match=rf"dropout\(\): input has dtype {dtype}"):
            drop(x)
    assert F.dropout(x, training=False) is x and nn.Dropout().eval()(x) is x
    for drop in (lambda p: F.dropout(flow.ones(3), p), nn.Dropout):
        with pytest.raises(TypeError, match=r"ropout.*p'? must be (a number|float), not str"):
            drop("a")
