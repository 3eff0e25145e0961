# SPDX-License-Identifier: Apache-2.0
"""Gradients at corners: overwritten tensors, kinks, overlapping strides, batches, other devices."""

import copy
import math

import numpy as np
import pytest
from numerics import flow, host

grad, gradcheck, gradgradcheck = (
    flow.autograd.grad, flow.autograd.gradcheck, flow.autograd.gradgradcheck,
)  # fmt: skip
F = flow.nn.functional


def leaf(values, dtype=flow.float64):
    return flow.tensor(values, dtype=dtype, requires_grad=True)


# ---------------------------------------------------------------------------------------------
# In place: a leaf refuses, what was overwritten has the gradient 0.

OVERWRITES = {
    "zero_": lambda y: y.zero_(),
    "fill_": lambda y: y.fill_(3),
    "copy_": lambda y: y.copy_(flow.ones(4, dtype=flow.float64)),
    "uniform_": lambda y: y.uniform_(),
    "normal_": lambda y: y.normal_(),
    "item of all": lambda y: y.__setitem__(..., 2.0),
    "masked_fill_": lambda y: y.masked_fill_(y.detach() == y.detach(), 1.0),
}


@pytest.mark.parametrize("name", OVERWRITES)
def test_what_was_overwritten_has_the_gradient_0(name):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 2
    OVERWRITES[name](y)
    assert y.requires_grad and not y.is_leaf
    (y * 3).sum().backward()
    assert x.grad.tolist() == [0] * 4 and x.grad.dtype == flow.float64


@pytest.mark.parametrize("name", OVERWRITES)
def test_a_leaf_that_requires_grad_is_not_overwritten(name):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    for t in (x, x[1:].detach().requires_grad_(), x.view(4)):
        before = t.tolist()
        with pytest.raises(RuntimeError, match="leaf that requires grad cannot be changed in plac"):
            OVERWRITES[name](t if t.shape == (4,) else x)
        assert t.tolist() == before
    with flow.no_grad():
        OVERWRITES[name](x)
    assert x.is_leaf and x.requires_grad and x.grad is None


def test_part_of_a_tensor_overwritten():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 2
    y[1:3].zero_()
    y[3].fill_(5)
    (y * flow.arange(1, 5)).sum().backward()
    assert x.grad.tolist() == [2, 0, 0, 0]


def test_fill_with_a_tensor_passes_its_gradient():
    x, v = leaf([1.0, 2.0]), leaf(3.0)
    y = (x * 2).fill_(v)
    assert y.tolist() == [3, 3]
    (y * flow.tensor([2.0, 5.0])).sum().backward()
    assert x.grad.tolist() == [0, 0] and v.grad.item() == 7
    assert flow.zeros(2).fill_(flow.tensor(3)).tolist() == [3, 3]
    with pytest.raises(flow.ShapeError, match=r"fill_\(\): value has shape \[1\]"):
        flow.zeros(2).fill_(flow.ones(1))


# ---------------------------------------------------------------------------------------------
# Second derivatives where the first jumps.

KINKED = {
    "abs": lambda x: x.abs(),
    "l1_loss": lambda x: F.l1_loss(x, flow.zeros(5, dtype=flow.float64)),
    "norm 1": lambda x: x.norm(1),
    "norm inf": lambda x: x.norm(math.inf),
    "norm -inf": lambda x: x.norm(-math.inf),
    "dist 1": lambda x: flow.dist(x, flow.zeros(5, dtype=flow.float64), 1),
    "cdist 1": lambda x: flow.cdist(x.view(1, 5), flow.zeros(2, 5, dtype=flow.float64), 1),
    "cdist inf": lambda x: flow.cdist(x.view(1, 5), flow.zeros(2, 5, dtype=flow.float64), math.inf),
    "normalize 1": lambda x: F.normalize(x, 1, 0),
    "relu": lambda x: x.relu(),
    "norm 2": lambda x: x.norm(),
    "norm 3": lambda x: x.norm(3),
}


@pytest.mark.parametrize("name", KINKED)
def test_second_derivatives_where_the_first_jumps(name):
    values = [-2.5, -0.4, 0.3, 1.7, 7.0]
    x = leaf(values)
    (g,) = grad(KINKED[name](x).sum(), x, create_graph=True)
    assert g.requires_grad, "the gradient has no history"
    (h,) = grad(g.sum(), x, create_graph=True)
    assert h.shape == x.shape and h.isfinite().all()
    assert gradgradcheck(KINKED[name], leaf(values))


def test_second_derivatives_of_abs_at_0_and_beyond():
    x = leaf([0.0, -0.0, math.inf, -math.inf, 3.0])
    (g,) = grad(x.abs().sum(), x, create_graph=True)
    assert g.tolist() == [0, 0, 1, -1, 1]
    (h,) = grad((g * g).sum(), x)
    assert h.tolist() == [0] * 5


# ---------------------------------------------------------------------------------------------
# as_strided of what is not contiguous.


def numbers(*shape):
    return flow.arange(1, 1 + math.prod(shape), dtype=flow.float64).reshape(shape)


STRIDED = {
    "transposed": (lambda x: x.t(), (4, 3), (1, 4), 0),
    "transposed, some": (lambda x: x.t(), (2, 3), (1, 4), 1),
    "transposed, overlapping": (lambda x: x.t(), (5, 3), (2, 1), 0),
    "sliced": (lambda x: x[:, 1:3], (3, 2), (4, 1), 1),
    "sliced, before it": (lambda x: x[1:, 1:3], (2, 2), (4, 1), 5),
    "strided": (lambda x: x[:, ::2], (3, 2), (4, 2), 0),
    "expanded": (lambda x: x[:1].expand(3, 4), (2, 4), (0, 1), 0),
    "expanded, part": (lambda x: x[0, :1].expand(6), (3,), (0,), 0),
    "contiguous": (lambda x: x, (2, 2), (3, 2), 1),
}


@pytest.mark.parametrize("name", STRIDED)
def test_as_strided_of_any_layout(name):
    cut, shape, strides, offset = STRIDED[name]
    x = numbers(3, 4).requires_grad_()
    y = cut(x).as_strided(shape, strides, offset)
    flat = np.lib.stride_tricks.as_strided(
        host(x).ravel()[offset:], shape, [8 * s for s in strides]
    )
    np.testing.assert_array_equal(host(y), flat)
    if "expanded" not in name and "before" not in name:
        assert gradcheck(lambda x: cut(x).as_strided(shape, strides, offset), x)
        assert gradgradcheck(lambda x: cut(x).as_strided(shape, strides, offset), x)


def test_as_strided_gradients_by_hand():
    x = numbers(3, 4).requires_grad_()
    (x.t().as_strided((2, 2), (1, 4)) * flow.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 3, 0, 0], [2, 4, 0, 0], [0] * 4]
    x.grad = None
    base = x[:1].expand(3, 4)  # each element three times: the three share what flows to it
    base.retain_grad()
    base.as_strided((4,), (1,)).sum().backward()
    assert base.grad.tolist() == [[1 / 3] * 4] * 3
    np.testing.assert_allclose(host(x.grad)[0], 1)
    with pytest.raises(ValueError, match="input_strides"):
        flow.ops.as_strided(x, [2], [1], 0, input_strides=[1, 3, 5])


# ---------------------------------------------------------------------------------------------
# Batches of gradients.


def test_batched_gradients_are_those_of_each():
    x, w = leaf([1.0, 2.0, 3.0]), leaf([[1.0, 0.0, 2.0], [0.5, 1.0, 1.0]])
    y, z = w @ x, (x * x).sum()
    seeds = flow.randn(5, 2, dtype=flow.float64), flow.randn(5, dtype=flow.float64)
    each = [grad((y, z), (x, w), (a, b), retain_graph=True)
            for a, b in zip(*seeds, strict=True)]  # fmt: skip
    got = grad((y, z), (x, w), seeds, retain_graph=True, is_grads_batched=True)
    for one, many in zip(zip(*each, strict=True), got, strict=True):
        np.testing.assert_array_equal(np.stack([host(g) for g in one]), host(many))
    (jacobian,) = grad(y, x, flow.eye(2, dtype=flow.float64), is_grads_batched=True)
    assert jacobian.tolist() == w.tolist()
    with pytest.raises(RuntimeError, match="second time"):
        grad(y, x, flow.eye(2, dtype=flow.float64), is_grads_batched=True)


def test_batched_gradients_second_order_and_unused():
    x, other = leaf([1.0, 2.0]), leaf([1.0])
    y = x**3
    eye = flow.eye(2, dtype=flow.float64)
    (jacobian,) = grad(y, x, eye, create_graph=True, is_grads_batched=True)
    assert jacobian.tolist() == [[3, 0], [0, 12]]
    assert grad(jacobian.sum(), x, retain_graph=True)[0].tolist() == [6, 12]
    keep = {"retain_graph": True, "is_grads_batched": True}
    assert grad(y, (x, other), eye, allow_unused=True, **keep)[1] is None
    assert grad(y, other, eye, materialize_grads=True, **keep)[0].tolist() == [[0], [0]]
    assert grad(y, x, eye[:0], **keep)[0].shape == (0, 2)
    with pytest.raises(RuntimeError, match="no output depends on input 0"):
        grad(y, other, eye, **keep)


@pytest.mark.parametrize("seeds", [None, [None], [flow.ones(2), flow.ones(3)], [flow.tensor(1.0)]])
def test_batched_gradients_of_no_batch(seeds):
    x = leaf([1.0])
    outputs = [x.sum()] * (len(seeds) if seeds else 1)
    with pytest.raises(ValueError, match="must have a first dim, of one size"):
        grad(outputs, x, seeds, is_grads_batched=True)


# ---------------------------------------------------------------------------------------------
# Distances and variances.


def np_cdist_gradients(a, b, p, g):
    """PyTorch's: 0 where two rows are the same, and for p < 1 where two elements are."""
    d = a[:, None] - b[None]
    size = np.abs(d)
    with np.errstate(all="ignore"):
        if p == 0:
            slope = np.zeros_like(d)
        elif p == math.inf:
            slope = np.sign(d) * (size == size.max(-1, keepdims=True))
        else:
            length = (size**p).sum(-1, keepdims=True) ** (1 / p)
            slope = np.sign(d) * (size / length) ** (p - 1)
            slope[np.broadcast_to(length == 0, d.shape) | ((d == 0) & (p <= 1))] = 0
    flow_back = slope * g[..., None]
    return flow_back.sum(1), -flow_back.sum(0)


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
def test_gradients_of_distances(p):
    rows = [[0.0, 0, 0], [1, 2, 2], [1, 5, -3], [3, 2, 2], [-1, 1, 1]]
    a, b = leaf(rows[:4]), leaf(rows[1:])
    g = np.random.default_rng(0).standard_normal((4, 4))
    d = flow.cdist(a, b, p)
    d.backward(flow.tensor(g))
    for got, want in zip((a.grad, b.grad), np_cdist_gradients(host(a), host(b), p, g), strict=True):
        np.testing.assert_allclose(host(got), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(host(d), host(flow.cdist(a.detach(), b.detach(), p)))


def test_distances_with_infinities_and_none():
    a = leaf([[math.inf, 1.0], [2.0, 3.0]])
    assert flow.cdist(a, flow.zeros(1, 2, dtype=flow.float64), math.inf).tolist() == [
        [math.inf], [3]
    ]  # fmt: skip
    x = leaf([[1.0, 2.0]])
    flow.cdist(x, flow.zeros(0, 2, dtype=flow.float64)).sum().backward()
    assert x.grad.tolist() == [[0, 0]]


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dim", [None, 1])
def test_the_gradient_of_a_variance_without_freedom(name, dim):
    x = leaf([[2.0]])
    y = getattr(x, name)(dim, correction=1)
    y.sum().backward()
    assert math.isnan(y.item()) and math.isnan(x.grad.item())
    x = leaf([[2.0]])
    getattr(x, name)(dim, correction=0).sum().backward()
    assert x.grad.item() == 0
    x = leaf([[1.0, 3.0]])
    y = getattr(x, name)(dim, correction=2)
    y.sum().backward()
    assert y.item() == math.inf
    want = [math.inf if dim is None else -math.inf, math.inf] if name == "var" else [math.nan] * 2
    np.testing.assert_array_equal(host(x.grad)[0], want)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("dtype", [flow.float32, flow.float64, flow.bfloat16])
@pytest.mark.parametrize("correction", [4, 5, 7.5, math.inf])
def test_the_gradient_of_a_variance_of_all_without_freedom(correction, dtype, create_graph):
    """PyTorch's: infinite times dy whatever the side of the mean, and NaN at the mean."""

    def gradient(values, dy, name="var"):
        x = leaf(values, dtype)
        y = getattr(x, name)(correction=correction)
        (g,) = grad(y, x, flow.tensor(dy, dtype=dtype), create_graph=create_graph)
        return host(g.detach().double()).tolist()

    inf, nan = math.inf, math.nan
    values = [[1.0, 3.0], [3.0, 5.0]]
    np.testing.assert_array_equal(gradient(values, 1.0), [[inf, nan], [nan, inf]])
    np.testing.assert_array_equal(gradient(values, -1.0), [[-inf, nan], [nan, -inf]])
    np.testing.assert_array_equal(gradient(values, 0.0), [[nan] * 2] * 2)
    np.testing.assert_array_equal(gradient([1.0, nan, 2.0, 3.0], 1.0), [inf] * 4)
    np.testing.assert_array_equal(gradient([1.0, inf, 2.0, 3.0], 1.0), [inf, nan, inf, inf])
    np.testing.assert_array_equal(gradient(values, 1.0, "std"), [[nan] * 2] * 2)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_the_gradient_of_a_variance_whose_correction_exceeds_n(name, create_graph):
    """PyTorch's: along dims it divides by n - correction as it is, over all elements by 0."""

    def gradient(values, dim, correction):
        x = leaf(values)
        y = getattr(flow, name)(x, dim, correction=correction)
        y = y[0] if isinstance(y, tuple) else y
        return host(grad(y.sum(), x, create_graph=create_graph)[0])[0]

    one, two = gradient([[2.0]], 1, 2), gradient([[1.0, 3.0]], 1, 3)
    if name.startswith("var"):
        assert one.item() == 0 and math.copysign(1, one.item()) == -1
        np.testing.assert_array_equal(two, [2, -2])
    else:  # over the root, which is NaN and infinite
        assert math.isnan(one.item())
        np.testing.assert_array_equal(two, [0, 0])
    assert math.isnan(gradient([[2.0]], None, 2).item())
    np.testing.assert_array_equal(gradient([[1.0, 3.0]], None, 3), gradient([[1.0, 3.0]], None, 2))


# ---------------------------------------------------------------------------------------------
# Copies that share memory.


def test_copies_go_on_sharing_memory():
    memory = flow.arange(6, dtype=flow.float32)
    a, b = flow.nn.Parameter(memory), flow.nn.Parameter(memory)
    row, column = memory.view(2, 3)[1], memory.view(2, 3).t()
    other = flow.ones(3)
    plain = memory.detach().requires_grad_()
    plain.grad, b.grad = memory.clone(), flow.zeros(6)
    first = {"a": a, "views": [row, column], "b": b, "other": other, "plain": plain,
             "grad": plain.grad}  # fmt: skip
    second = copy.deepcopy(first)
    assert second["a"].data_ptr() == second["b"].data_ptr() != a.data_ptr()
    with flow.no_grad():
        second["a"].fill_(7)
        second["grad"].fill_(5)
    assert second["b"].tolist() == [7] * 6 and isinstance(second["b"], flow.nn.Parameter)
    assert second["views"][0].tolist() == [7] * 3
    assert second["views"][1].tolist() == [[7] * 2] * 3
    assert second["views"][1].stride() == column.stride()
    assert second["plain"].tolist() == [7] * 6 and second["plain"].grad.tolist() == [5] * 6
    assert second["b"].grad is None and b.grad.tolist() == [0] * 6
    assert second["other"].tolist() == [1] * 3 and memory.tolist() == [0, 1, 2, 3, 4, 5]
    third = copy.deepcopy(a)  # another copy, another memory
    assert third.tolist() == [0, 1, 2, 3, 4, 5] and third.data_ptr() != a.data_ptr()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_copies_of_odd_tensors(device):
    base = flow.zeros(5, 7, device=device, dtype=flow.int16)
    for x in (base[1:, ::2], base[2, 3], base[:0], base[0, :1].expand(4), base.t()):
        y = copy.deepcopy(x)
        assert y.shape == x.shape and y.stride() == x.stride() and y.dtype == x.dtype
        assert y.device == x.device
        if device == "cpu":
            assert y.tolist() == x.tolist()


# ---------------------------------------------------------------------------------------------
# A backward that gives what is no gradient of its input.


def bad_gradients(x):
    return {
        "another device": (x.to("meta"), RuntimeError, "on meta.* on cpu|meta"),
        "another shape": (flow.ones(3, dtype=x.dtype), flow.ShapeError, r"\[3\]"),
        "integers": (flow.ones(2, dtype=flow.int64), flow.DTypeError, "int64"),
    }


@pytest.mark.parametrize("name", bad_gradients(flow.ones(2)))
def test_a_function_s_gradient_is_checked_where_it_comes(name):
    class Odd(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, dy):
            return bad_gradients(dy)[name][0]

    _, error, text = bad_gradients(flow.ones(2))[name]
    with pytest.raises(error, match=rf"OddBackward\(\): .*the gradient of tensor 0.*({text})"):
        Odd.apply(leaf([1.0, 2.0], flow.float32)).sum().backward()


given = []


@flow.register_op("gradient_corners::odd")
class odd:  # noqa: N801
    @staticmethod
    def infer(x):
        return x

    @staticmethod
    def forward(x):
        return x * 1

    @staticmethod
    def backward(ctx, dy):
        return given[-1](dy)


@pytest.mark.parametrize("name", bad_gradients(flow.ones(2)))
def test_an_op_s_gradient_is_checked_where_it_comes(name):
    _, error, text = bad_gradients(flow.ones(2))[name]
    given.append(lambda dy: bad_gradients(dy)[name][0])
    with pytest.raises(error, match=rf"odd\(\): .*the gradient of x.*({text})"):
        flow.ops.gradient_corners.odd(leaf([1.0, 2.0], flow.float32)).sum().backward()
    given.append(lambda dy: dy * 2)
    x = leaf([1.0, 2.0], flow.float32)
    flow.ops.gradient_corners.odd(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


# ---------------------------------------------------------------------------------------------
# A slope that is 0 everywhere is 0 for an infinite gradient too.

FLAT = {
    "floor": (lambda x: x.floor(), 0.2),
    "ceil": (lambda x: x.ceil(), -0.2),
    "trunc": (lambda x: x.trunc(), 0.2),
    "round": (lambda x: x.round(), 0.2),
    "round to a decimal": (lambda x: x.round(decimals=1), 0.02),
    "sign": (lambda x: x.sign(), 0.0),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_function_has_the_gradient_0_before_an_infinite_slope(name):
    function, at = FLAT[name]
    x = leaf([at, 3.0])
    y = function(x)
    assert y[0].item() == 0
    y.sqrt().sum().backward()
    assert x.grad.tolist() == [0, 0]


# ---------------------------------------------------------------------------------------------
# These keep their input for backward: the result may be changed in place.

KEEP_INPUT = {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.5),
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.5),
    "relu6": F.relu6,
    "hardshrink": lambda x: F.hardshrink(x, 0.25),
    "threshold": lambda x: F.threshold(x, 0.1, 0.0),
    "elu": F.elu,
}


@pytest.mark.parametrize("name", KEEP_INPUT)
def test_the_result_may_be_changed_in_place(name):
    values = [-1.0, -0.3, 0.2, 0.4, 2.0]
    x, same = leaf(values), leaf(values)
    y = KEEP_INPUT[name](x)
    y += 3
    y.mul_(2)
    y.sum().backward()
    (KEEP_INPUT[name](same) * 2).sum().backward()
    assert x.grad.tolist() == same.grad.tolist()


# fmt: off
@pytest.mark.parametrize("name, values, slopes", [
    ("median", [1.0, 2.0, 2.0, 2.0], [0, 1 / 3, 1 / 3, 1 / 3]), ("median", [3.0, 1.0], [0, 1]),
    ("median", [[2.0, 2.0], [1.0, 3.0]], [[0.5, 0.5], [0, 0]]),
    ("median", [math.nan, 1.0, math.nan], [0.5, 0, 0.5]),
    ("nanmedian", [math.nan, 1.0, 1.0], [0, 0.5, 0.5]), ("median", [math.inf] * 2, [0.5, 0.5]),
    ("nanmedian", [math.nan, math.nan], [0.5, 0.5]), ("median", 5.0, 1),
])
# fmt: on
def test_the_median_of_all_shares_its_gradient(name, values, slopes):
    """Among equal elements, as in PyTorch; along a dim it is that of the place."""
    x = leaf(values)
    getattr(x, name)().backward()
    np.testing.assert_allclose(host(x.grad), slopes)
    y = leaf([[1.0, 2.0, 2.0]])
    found = getattr(y, name)(1)
    found.values.backward()
    assert y.grad[0, found.indices.item()] == 1 and y.grad.sum() == 1
    assert gradgradcheck(lambda t: getattr(t * t, name)(), (leaf([3.0, 1.0, 2.0]),))


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_a_slice_that_renorm_leaves_has_the_slope_1(p):
    rows = [[3.0, math.nan], [0.1, 0.2], [0.0, 0.0], [3.0, 4.0]]
    x = leaf(rows)
    y = flow.renorm(x, p, 0, 1.0)
    np.testing.assert_array_equal(host(y.detach())[:3], rows[:3])
    y.sum().backward()
    assert x.grad[:3].tolist() == [[1, 1]] * 3 and x.grad[3].isfinite().all()
    assert gradcheck(lambda x: flow.renorm(x, p, 0, 1.0), leaf(rows[1:2] + rows[3:]))


@pytest.mark.parametrize("interpolation, weight", [("linear", 0.6), ("midpoint", 0.5)])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("low, high", [
    (1.0, 2.0), (1.0, math.inf), (-math.inf, 2.0), (-math.inf, math.inf), (math.inf, math.inf),
])  # fmt: skip
def test_the_slopes_of_a_quantile_do_not_depend_on_the_elements(
    name, low, high, interpolation, weight
):
    quantile = getattr(flow, name)
    x = leaf([low, high, math.inf])
    y = quantile(x, 0.3, interpolation=interpolation)
    sum_of_both = low + (high - low) * weight if math.isfinite(low + high) else low + high
    np.testing.assert_allclose(y.item(), sum_of_both)
    y.backward()
    np.testing.assert_allclose(host(x.grad), [1 - weight, weight, 0], rtol=1e-12)
    x = leaf([low, high, math.inf])
    y = quantile(x, 0.5, interpolation=interpolation)  # an element itself
    y.backward()
    assert y.item() == high and x.grad.tolist() == [0, 1, 0]


@pytest.mark.parametrize("freeze", [lambda x: x.requires_grad_(False), lambda x: x.detach_()])
def test_a_leaf_that_was_frozen_before_backward_gets_no_gradient(freeze):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    called = []
    x.register_post_accumulate_grad_hook(called.append)
    y = x * w
    freeze(x)
    y.sum().backward()
    assert x.grad is None and not called and w.grad.tolist() == [1, 2]
    x.requires_grad_()
    (x * w).sum().backward()
    assert x.grad.tolist() == [3, 4] and len(called) == 1


@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_into_places_have_gradients_in_place_too(name, reduce, include_self):
    index, results = flow.tensor([0, 0]), []
    for form in name, name + "_":
        x, src = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0])
        y = getattr(x * 1, form)(0, index, src, reduce, include_self=include_self)
        (y * leaf([1.0, 2.0, 4.0])).sum().backward()
        results.append((y.tolist(), x.grad.tolist(), src.grad.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("p", [-0.5, -1, -2.0])
def test_a_norm_of_negative_order_stays_0_where_an_element_is(p, create_graph):
    x = flow.tensor([[0.0, 2.0, 3.0], [1.0, 2.0, 3.0]], dtype=flow.float64, requires_grad=True)
    y = flow.linalg.vector_norm(x, p, 1)
    (dx,) = flow.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert y[0].item() == 0 and dx[0].tolist() == [0, 0, 0]
    row = host(x)[1]
    np.testing.assert_allclose(host(dx)[1], (row / np.sum(row**p) ** (1 / p)) ** (p - 1))
    if create_graph:
        (second,) = flow.autograd.grad(dx.sum(), x)
        assert second[0].tolist() == [0, 0, 0] and np.isfinite(host(second)).all()


@pytest.mark.parametrize("weight", [0.25, flow.tensor([0.25, 0.75])])
def test_lerp_shares_an_infinite_gradient(weight):
    x, end = flow.ones(2, requires_grad=True), flow.zeros(2, requires_grad=True)
    flow.lerp(x, end, weight).backward(flow.tensor([np.inf, -np.inf]))
    assert x.grad.tolist() == end.grad.tolist() == [np.inf, -np.inf]
