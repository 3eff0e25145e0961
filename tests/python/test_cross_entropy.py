# SPDX-License-Identifier: Apache-2.0
"""cross_entropy with class targets: losses and gradients against float64 NumPy, in both forms."""

import math

import numpy as np
import pytest
from numerics import FLOATS, HALVES, LAYOUTS, bits, flow, host, tensor, ulp
from op_reference import np_cross_entropy, np_softmax

# Vectors, lanes and blocks per row, split rows, the tiers of softmax for the form in place.
WIDTHS = [1, 2, 5, 33, 128, 257, 1000, 2048, 2049, 4097, 8200, 32000, 50257, 70001]
REDUCTIONS = ("none", "sum", "mean")
in_place = pytest.mark.parametrize("in_place", [False, True], ids=["saved", "in place"])


def logits(shape, dtype, device, seed=0, scale=3.0, mean=0.0):
    values = np.random.default_rng(seed).standard_normal(shape) * scale + mean
    return tensor(values, dtype, device)


def labels(rows, classes, ignore_index=-100):
    target = np.random.default_rng(rows + classes).integers(0, classes, rows)
    target[3::4] = ignore_index
    return target


def np_gradient(x, target, dloss, ignore_index=-100, smoothing=0.0):
    """Of the losses of rows [N, C], times dloss [N]."""
    counted = target != ignore_index
    share = np.full(x.shape, smoothing / x.shape[1])
    share[np.arange(len(target)), np.where(counted, target, 0)] += 1 - smoothing
    return np.where(counted[:, None], (np_softmax(x, 1) - share) * dloss[:, None], 0.0)


def np_weights(target, reduction, ignore_index=-100):
    """What each row's loss counts in the reduced one."""
    rows = len(target)
    return np.full(rows, 1 / max(1, (target != ignore_index).sum()) if reduction == "mean" else 1.0)


def backward(x, target, grad, in_place, **kwargs):
    """The loss and the gradient of the logits; the form in place gets a tensor of its own."""
    leaf = x.detach().requires_grad_()
    used = leaf.clone() if in_place else leaf
    loss = flow.cross_entropy(used, target, inplace_backward=in_place, **kwargs)
    grad = flow.ones_like(loss) * grad
    return loss.detach(), flow.autograd.grad(loss, leaf, grad)[0]


def assert_loss(loss, reference, dtype, where, terms=1.0):
    bound = (1e-13 if dtype == "float64" else 4e-6) * np.maximum(terms, np.abs(reference))
    if dtype in HALVES:
        bound = bound + ulp(reference, dtype)
    assert (np.abs(host(loss) - reference) <= bound).all(), where


def assert_gradient(dx, reference, dtype, dloss, where):
    bound = (1e-13 if dtype == "float64" else 4e-6) * np.abs(dloss)[:, None]
    if dtype in HALVES:  # a half's upstream gradient and the scale in place are rounded as well
        bound = bound + 2 * ulp(np.maximum(np.abs(reference), 1e-7), dtype)
        bound = bound + (2.0**-10 if dtype == "float16" else 2.0**-7) * np.abs(reference)
    assert (np.abs(host(dx) - reference) <= bound).all(), where


@in_place
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_and_gradients_at_every_width(dtype, in_place, device):
    for classes in WIDTHS:
        x, target = logits((7, classes), dtype, device, classes), labels(7, classes)
        for reduction in REDUCTIONS:
            where = f"{classes} classes, {reduction}"
            smoothing = 0.1 if classes % 2 else 0.0
            kwargs = {"reduction": reduction, "label_smoothing": smoothing}
            t = flow.tensor(target, device=device)
            loss, dx = backward(x, t, 0.5, in_place, **kwargs)
            exact = np_cross_entropy(host(x), target, **kwargs)
            terms = np.abs(np_cross_entropy(host(x), target, reduction="none")).sum()
            assert loss.dtype is x.dtype
            assert_loss(loss, exact, dtype, where, 1 if reduction == "none" else max(1.0, terms))
            dloss = 0.5 * np_weights(target, reduction)
            gradient = np_gradient(host(x), target, dloss, smoothing=smoothing)
            assert_gradient(dx, gradient, dtype, dloss, where)
            again = backward(x, t, 0.5, in_place, **kwargs)
            assert [bits(a) for a in again] == [bits(loss), bits(dx)], where


def check_rows(rows, classes, dtype, smoothing, in_place, device):
    x, target = logits((rows, classes), dtype, device), labels(rows, classes)
    t, kwargs = flow.tensor(target, device=device), {"label_smoothing": smoothing}
    loss, dx = backward(x, t, 1.0, in_place, reduction="none", **kwargs)
    exact = np_cross_entropy(host(x), target, reduction="none", **kwargs)
    assert_loss(loss, exact, dtype, (rows, classes))
    ones = np.ones(rows)
    gradient = np_gradient(host(x), target, ones, smoothing=smoothing)
    assert_gradient(dx, gradient, dtype, ones, (rows, classes))


@in_place
def test_many_rows(in_place, device):
    for rows, classes in [(3001, 10), (600, 1003), (1200, 2048)]:
        check_rows(rows, classes, "float32", 0.0, in_place, device)


# More than half as many rows as multiprocessors, of whole packs: the widths between which the
# kernels of rows/whole_policy.h take turns, the last of clusters of blocks.
@pytest.mark.parametrize("dtype, widths", [
    ("float32", [1020, 1028, 12288, 12292, 33000]),
    ("bfloat16", [1032, 10240, 10248, 16384, 16392, 50256]),
])  # fmt: skip
def test_many_rows_of_whole_packs(dtype, widths, device):
    for smoothing, classes in zip((0.0, 0.1) * len(widths), widths, strict=False):
        check_rows(70, classes, dtype, smoothing, True, device)


@in_place
@pytest.mark.parametrize("grad", [0.0, 1.0, -2.5, "per row"])
def test_any_upstream_gradient(grad, in_place, device):
    x, target = logits((5, 300), "float64", device), labels(5, 300)
    upstream = np.array([1.0, 2.0, 1.0, -3.0, 0.0]) if grad == "per row" else np.full(5, grad)
    g = flow.tensor(upstream, device=device)
    t = flow.tensor(target, device=device)
    _, dx = backward(x, t, g, in_place, reduction="none")
    np.testing.assert_allclose(host(dx), np_gradient(host(x), target, upstream), atol=1e-14)


def test_the_form_in_place_uses_the_memory_of_the_logits(device):
    x = logits((4, 100), "float32", device).requires_grad_()
    target = flow.tensor(labels(4, 100), device=device)
    _, expected = backward(x, target, 1.0, False)
    hidden = x * 1
    loss = flow.cross_entropy(hidden, target, inplace_backward=True)
    np.testing.assert_allclose(host(hidden), host(expected), atol=1e-7)  # that of the mean
    before = bits(hidden)
    loss.backward()
    assert bits(x.grad) == before
    # Without a gradient to compute, nothing is overwritten.
    for no_grad in (x.detach(), x):
        before = bits(no_grad)
        with flow.no_grad():
            flow.cross_entropy(no_grad, target, inplace_backward=True)
        assert bits(no_grad) == before


def test_the_form_in_place_of_a_leaf_and_of_a_view(device):
    x = logits((6, 50), "float64", device)
    target = flow.tensor(labels(6, 50), device=device)
    _, expected = backward(x, target, 3.0, False)
    leaf = x.clone().requires_grad_()
    (flow.cross_entropy(leaf, target, inplace_backward=True) * 3).backward()
    np.testing.assert_allclose(host(leaf.grad), host(expected), atol=1e-15)
    for layout in LAYOUTS.values():
        leaf = x.clone().requires_grad_()
        seen = layout(leaf.detach()).requires_grad_()
        reference = backward(seen.detach(), target, 1.0, False)[1]
        flow.cross_entropy(seen, target, inplace_backward=True).backward()
        np.testing.assert_allclose(host(seen.grad), host(reference), atol=1e-15)


def test_the_form_in_place_leaves_small_gradients_to_a_scale(device):
    """Of float16 the factor that arrives in backward counts before the gradient is rounded."""
    x = logits((64, 8192), "float16", device, scale=1.0)
    target = flow.tensor(labels(64, 8192), device=device)
    _, want = backward(x, target, 1024.0, False)
    _, got = backward(x, target, 1024.0, True)
    np.testing.assert_array_equal(host(got), host(want))
    assert (host(got)[host(target) != -100] != 0).all()
    leaf, memories = x.clone().requires_grad_(), []
    hidden = leaf * 1
    hidden.register_hook(lambda grad: memories.append(grad.data_ptr()))
    flow.cross_entropy(hidden, target, inplace_backward=True).backward()
    assert memories == [hidden.data_ptr()]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_the_form_in_place_cannot_do_is_an_error(dtype, device):
    x = logits((3, 20), dtype, device).requires_grad_()
    target = flow.tensor(labels(3, 20), device=device)
    loss = flow.cross_entropy(x * 1, target, inplace_backward=True)
    with pytest.raises(RuntimeError, match="second derivative"):
        flow.autograd.grad(loss, x, create_graph=True)
    loss = flow.cross_entropy(x * 1, target, inplace_backward=True) * 2
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()
    # Whoever kept the logits for a gradient of their own finds out.
    hidden = x * 1
    other = flow.exp(hidden) * hidden
    flow.cross_entropy(hidden, target, inplace_backward=True).backward()
    with pytest.raises(RuntimeError, match="changed in place"):
        other.sum().backward()


@in_place
def test_ignore_index(in_place, device):
    for ignore_index in (-100, 0, 4, -1):
        x, target = logits((6, 5), "float64", device), np.array([0, 1, 4, 2, 0, 4])
        target = np.where(target == 2, ignore_index, target)
        t = flow.tensor(target, device=device)
        for reduction in REDUCTIONS:
            kwargs = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": 0.3}
            loss, dx = backward(x, t, 1.0, in_place, **kwargs)
            exact = np_cross_entropy(host(x), target, **kwargs)
            np.testing.assert_allclose(host(loss), exact, rtol=1e-14)
            dloss = np_weights(target, reduction, ignore_index)
            gradient = np_gradient(host(x), target, dloss, ignore_index, 0.3)
            np.testing.assert_allclose(host(dx), gradient, atol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_rows_count_nothing(smoothing, weighted, device):
    """Also where classes have weights or further dims follow them."""
    values = np.random.default_rng(0).standard_normal((2, 4, 3))
    weight = flow.tensor([1.0, 2.0, 3.0, 4.0], dtype=flow.float64, device=device)

    def loss(x, target):
        by_class = weight if weighted else None
        return flow.cross_entropy(x, target, by_class, label_smoothing=smoothing)

    for target in ([[0, 1, -100], [2, 3, 0]], [[-100] * 3] * 2):
        x = flow.tensor(values, device=device, requires_grad=True)
        places = flow.tensor(target, device=device)
        (dx,) = flow.autograd.grad(loss(x, places), x)
        ignored = (np.array(target) == -100)[:, None].repeat(4, 1)
        assert (host(dx)[ignored] == 0).all() and (host(dx)[~ignored] != 0).all()
        bad = flow.tensor(np.where(ignored, np.nan, values), device=device)
        np.testing.assert_array_equal(host(loss(bad, places)), host(loss(x, places)))


@in_place
def test_rows_that_are_all_ignored(in_place, device):
    x = flow.full((3, 700), float("nan"), device=device)
    t = flow.full((3,), -100, dtype=flow.int64, device=device)
    loss, dx = backward(x, t, 1.0, in_place, reduction="sum")
    assert loss.item() == 0 and (host(dx) == 0).all()
    loss, dx = backward(x, t, 1.0, in_place)
    assert np.isnan(loss.item()) and (host(dx) == 0).all()  # as in PyTorch: 0 / 0


@in_place
@pytest.mark.parametrize("rows", [1, 8193, 65536, 65537])  # one block reduces up to 65536 losses
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_reductions_of_few_and_many_rows(reduction, rows, in_place, device):
    x = logits((rows, 3), "float32", device)
    target = labels(rows, 3)
    target[1::3] = -100
    t = flow.tensor(target, device=device)
    each = host(flow.cross_entropy(x, t, reduction="none")).astype(np.float64)
    counted = (target != -100).sum() if reduction == "mean" else 1
    leaf = x.clone().requires_grad_()
    loss = flow.cross_entropy(leaf * 1, t, reduction=reduction, inplace_backward=in_place)
    np.testing.assert_allclose(loss.item(), each.sum() / counted, rtol=1e-5)
    (3 * loss).backward()
    p = host(x).astype(np.float64)
    p = np.exp(p - p.max(1, keepdims=True))
    want = p / p.sum(1, keepdims=True)
    want[np.arange(rows), np.where(target < 0, 0, target)] -= 1
    want[target < 0] = 0
    np.testing.assert_allclose(host(leaf.grad), 3 * want / counted, atol=1e-5 / counted)


@in_place
def test_infinities_and_nan(in_place, device):
    values = np.random.default_rng(1).standard_normal((5, 600))
    values[0] = -np.inf
    values[1, 1:] = -np.inf
    values[2, 7] = np.inf
    values[3, 599] = np.nan
    x, target = tensor(values, "float32", device), np.zeros(5, np.int64)
    t = flow.tensor(target, device=device)
    loss, dx = backward(x, t, 1.0, in_place, reduction="none")
    exact = np_cross_entropy(values, target, reduction="none")
    nan = np.array([True, False, True, True, False])
    assert (np.isnan(host(loss)) == nan).all() and (np.isnan(host(dx)).any(1) == nan).all()
    np.testing.assert_allclose(host(loss)[~nan], exact[~nan], atol=1e-5)
    assert host(loss)[1] == 0 and (host(dx)[1] == 0).all()
    # An impossible class: an infinite loss, a finite gradient.
    t = flow.tensor(np.array([0, 1, 0, 0, 0]), device=device)
    loss, dx = backward(x, t, 1.0, in_place, reduction="none")
    assert host(loss)[1] == np.inf and host(dx)[1, :2].tolist() == [1.0, -1.0]


def test_large_logits_lose_nothing(device):
    for mean in (1e4, -1e4):
        for smoothing in (0.0, 0.2):
            x, target = logits((4, 3000), "float32", device, mean=mean), labels(4, 3000)
            t = flow.tensor(target, device=device)
            kwargs = {"reduction": "none", "label_smoothing": smoothing}
            for form in (False, True):
                loss, dx = backward(x, t, 1.0, form, **kwargs)
                assert_loss(loss, np_cross_entropy(host(x), target, **kwargs), "float32", mean)
                ones = np.ones(4)
                gradient = np_gradient(host(x), target, ones, smoothing=smoothing)
                assert_gradient(dx, gradient, "float32", ones, mean)


def test_gradients_of_gradients(device):
    x = logits((4, 6), "float64", device).requires_grad_()
    t = flow.tensor(np.array([1, -100, 5, 0]), device=device)
    for reduction in REDUCTIONS:
        for smoothing in (0.0, 0.3):

            def loss(x, reduction=reduction, smoothing=smoothing):
                return flow.cross_entropy(x, t, reduction=reduction, label_smoothing=smoothing)

            assert flow.autograd.gradcheck(loss, (x,))
            assert flow.autograd.gradgradcheck(loss, (x,))


@in_place
def test_one_row_without_a_batch(in_place, device):
    x = logits((9,), "float64", device)
    loss, dx = backward(x, flow.tensor(np.array(4), device=device), 2.0, in_place)
    assert loss.shape == () and dx.shape == (9,)
    exact = np_gradient(host(x)[None], np.array([4]), np.array([2.0]))
    np.testing.assert_allclose(host(dx), exact[0], atol=1e-15)


def test_a_target_out_of_range(device):
    x = logits((2, 5), "float32", device).requires_grad_()
    for bad in (-1, 5, 2**62):
        target = flow.tensor(np.array([0, bad]), device=device)
        for form in (False, True):
            before = bits(x)
            if device == "cpu":
                text = f"cross_entropy\\(\\): target {bad} is out of range \\[0, 4\\]"
                with pytest.raises(IndexError, match=text):
                    flow.cross_entropy(x, target, inplace_backward=form)
                assert bits(x) == before
            else:
                loss = flow.cross_entropy(x.clone(), target, inplace_backward=form)
                assert np.isnan(loss.item())


def test_the_op_refuses_what_kernels_cannot_take(device):
    x, t = flow.ones(2, 3, device=device), flow.tensor(np.array([0, 1]), device=device)
    stats, dloss = flow.ones(2, 2, device=device), flow.ones(2, device=device)
    ops = flow.ops
    for call, error in [
        (lambda: ops.cross_entropy(flow.ones(3, device=device), t), flow.ShapeError),
        (lambda: ops.cross_entropy(x, t[:1]), flow.ShapeError),
        (lambda: ops.cross_entropy(x, x), flow.DTypeError),
        (lambda: ops.cross_entropy(x, t, label_smoothing=-1.0), ValueError),
        (lambda: ops.cross_entropy_backward(x, t, dloss, dloss), flow.ShapeError),
        (lambda: ops.cross_entropy_backward(x, t, stats, stats), flow.ShapeError),
        (lambda: ops.cross_entropy_backward(x, t, stats, dloss.double()), flow.DTypeError),
        (lambda: ops.cross_entropy_in_place(x, t, dloss), flow.ShapeError),
        (lambda: ops.scale_rows_(x, stats), flow.ShapeError),
        (lambda: ops.reduce_loss(stats), flow.ShapeError),
        (lambda: ops.reduce_loss(dloss, t[:1]), flow.ShapeError),
        (lambda: ops.reduce_loss(dloss, dloss), flow.DTypeError),
        (lambda: ops.reduce_loss(dloss.double()), flow.DTypeError),
        (lambda: ops.reduce_loss(dloss, dtype=flow.int64), flow.DTypeError),
    ]:
        with pytest.raises(error):
            call()


def test_the_mean_of_no_rows_is_nan(device):
    x, t = flow.zeros(0, 3, device=device), flow.zeros(0, dtype=flow.int64, device=device)
    for smoothing in (0.0, 0.1):
        assert math.isnan(flow.cross_entropy(x, t, label_smoothing=smoothing).item())
        assert flow.cross_entropy(x, t, None, -100, "sum", smoothing).item() == 0
    assert math.isnan(flow.nll_loss(x, t).item())


def test_the_module(device):
    x, t = logits((4, 8), "float32", device), flow.tensor(labels(4, 8), device=device)
    for form in (False, True):
        module = flow.nn.CrossEntropyLoss(label_smoothing=0.1, inplace_backward=form)
        leaf = x.clone().requires_grad_()
        module(leaf * 1, t).backward()
        expected = backward(x, t, 1.0, False, label_smoothing=0.1)[1]
        np.testing.assert_allclose(host(leaf.grad), host(expected), atol=1e-7)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_targets_of_any_integer_dtype(dtype):
    x = flow.randn(4, 5)
    target = flow.tensor([0, 4, 2, 1])
    narrow = target.to(getattr(flow, dtype))
    assert flow.equal(flow.cross_entropy(x, narrow), flow.cross_entropy(x, target))
    assert flow.equal(flow.nll_loss(x, narrow), flow.nll_loss(x, target))
    with pytest.raises(flow.DTypeError, match="target has dtype bool"):
        flow.cross_entropy(x, target.bool())
