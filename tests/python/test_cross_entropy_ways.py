# SPDX-License-Identifier: Apache-2.0
"""cross_entropy where it is not the plain call: columns of wider logits, class weights, and the
composition through log_softmax."""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, bits, flow, host, tensor, ulp
from op_reference import np_softmax
from test_cross_entropy import (
    REDUCTIONS,
    assert_gradient,
    assert_loss,
    backward,
    labels,
    logits,
)

F = flow.nn.functional


@pytest.mark.parametrize("dtype", FLOATS)
def test_columns_of_a_padded_vocabulary(dtype, device):
    """Logits that are a slice are read where they lie; the padding gets a gradient of 0."""
    for classes, padded in ((33, 64), (1000, 1024), (50257, 50304)):
        wide = logits((6, padded), dtype, device).detach().requires_grad_()
        target = flow.tensor(labels(6, classes), device=device)
        loss = flow.cross_entropy(wide[:, :classes], target, label_smoothing=0.1)
        (dx,) = flow.autograd.grad(loss, wide)
        dense = wide.detach()[:, :classes].contiguous().requires_grad_()
        same = flow.cross_entropy(dense, target, label_smoothing=0.1)
        (want,) = flow.autograd.grad(same, dense)
        if device == "cpu":
            np.testing.assert_array_equal(bits(dx[:, :classes]), bits(want))
        else:  # rows that start elsewhere within 16 bytes may be added up in another order
            step = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-13}[dtype]
            np.testing.assert_allclose(host(dx[:, :classes]), host(want), rtol=step, atol=1e-9)
        assert (host(dx[:, classes:]) == 0).all()
        np.testing.assert_allclose(host(loss), host(same), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_class_weights(dtype, reduction, device):
    """They multiply rows; compared with nll_loss of log-probabilities in float64."""
    classes = 300
    x = logits((9, classes), dtype, device).requires_grad_()
    target = flow.tensor(labels(9, classes), device=device)
    for kind in {dtype, "float32" if dtype in HALVES else dtype}:
        weight = tensor(np.linspace(0.0, 2.0, classes), kind, device)
        loss = flow.cross_entropy(x, target, weight, reduction=reduction)
        (dx,) = flow.autograd.grad(loss, x, flow.ones_like(loss))
        assert loss.dtype is x.dtype and dx.dtype is x.dtype
        y = x.detach().double().requires_grad_()
        logp = flow.log_softmax(y, 1)
        exact = flow.nll_loss(logp, target, weight.double(), reduction=reduction)
        (want,) = flow.autograd.grad(exact, y, flow.ones_like(exact))
        assert_loss(loss, host(exact), dtype, reduction, terms=30.0)
        assert_gradient(dx, host(want), dtype, np.full(9, 2.0), reduction)
    nothing = flow.tensor([-100] * 9, device=device)
    assert (host(flow.cross_entropy(x, nothing, weight, reduction="none")) == 0).all()


def test_the_composition_says_the_same(device):
    """Class weights of 1 take the way through log_softmax where there is smoothing."""
    for dtype, bound in (("float64", 1e-13), ("float32", 1e-5)):
        x, target = logits((8, 77), dtype, device), flow.tensor(labels(8, 77), device=device)
        weight = flow.ones(77, dtype=x.dtype, device=device)
        for reduction in REDUCTIONS:
            kwargs = {"reduction": reduction, "label_smoothing": 0.2}
            fused = backward(x, target, 2.0, False, **kwargs)
            composed = backward(x, target, 2.0, False, weight=weight, **kwargs)
            for a, b in zip(fused, composed, strict=True):
                np.testing.assert_allclose(host(a), host(b), rtol=bound, atol=bound)


@pytest.mark.parametrize("kind", ["classes", "weights", "smoothing", "all", "probabilities"])
@pytest.mark.parametrize("dtype", HALVES)
def test_the_composition_computes_16_bits_in_float32(dtype, kind, device):
    # Over 20000 rows the sum of the losses overflows float16, their mean does not; nor does a
    # smoothed loss, which sums 9000 logarithms.
    for shape in ((40, 10, 500), (2, 9000, 3)):
        x = logits(shape, dtype, device, seed=5)
        classes = shape[1]
        target = np.random.default_rng(4).integers(0, classes, (shape[0], shape[2]))
        weight = tensor(np.linspace(0.5, 2, classes), dtype, device)
        share = tensor(np_softmax(host(x) / 2, 1), dtype, device)
        options = {
            "classes": {},
            "weights": {"weight": weight},
            "smoothing": {"label_smoothing": 0.3},
            "all": {"weight": weight, "label_smoothing": 0.3},
            "probabilities": {"label_smoothing": 0.3},
        }[kind]
        given = share if kind == "probabilities" else flow.tensor(target).to(device)
        for reduction in ("none", "mean"):
            y = flow.cross_entropy(x, given, reduction=reduction, **options)
            exact = flow.cross_entropy(
                x.double(),
                given.double() if kind == "probabilities" else given,
                reduction=reduction,
                **{k: v.double() if k == "weight" else v for k, v in options.items()},
            )
            assert y.dtype is x.dtype
            close = ulp(host(exact), dtype) + 4e-6 * np.abs(host(exact))
            assert (np.abs(host(y) - host(exact)) <= close).all()
    logp = flow.log_softmax(logits((20000, 100), dtype, device), 1)
    classes = flow.zeros(20000, dtype=flow.int64, device=device)
    y, exact = flow.nll_loss(logp, classes), flow.nll_loss(logp.double(), classes)
    np.testing.assert_allclose(host(y), host(exact), rtol=2.0**-7)


# Gradients of class weights, and where no row counts.

PLACES = [(4,), (4, 3), (4, 3, 2), ()]  # of the targets, without the classes


def problem(places, kind, seed=3):
    """Logits of 5 classes, targets of a kind and weights, in float64."""
    rng = np.random.default_rng(seed)
    shape = (*places[:1], 5, *places[1:])
    x = flow.tensor(rng.standard_normal(shape))
    if kind == "probabilities":
        target = flow.softmax(flow.tensor(rng.standard_normal(shape)), min(1, len(places)))
    else:
        target = flow.tensor(rng.integers(0, 5, places))
    if kind == "some ignored" and places:
        target[0] = 3
    return x, target, flow.tensor(rng.uniform(0.5, 2, 5))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["classes", "some ignored", "probabilities"])
@pytest.mark.parametrize("places", PLACES)
def test_class_weights_have_a_gradient(places, kind, reduction, smoothing):
    x, target, weight = problem(places, kind)
    ignore_index = 3 if kind == "some ignored" and places else -100

    def loss(x, weight):
        return F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing,
                               ignore_index=ignore_index)  # fmt: skip

    inputs = x.requires_grad_(), weight.requires_grad_()
    assert flow.autograd.gradcheck(loss, inputs) and flow.autograd.gradgradcheck(loss, inputs)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("places", PLACES)
def test_the_weights_of_nll_loss_have_a_gradient(places, reduction):
    x, target, weight = problem(places, "classes")
    inputs = x.requires_grad_(), weight.requires_grad_()

    def loss(x, weight):
        return F.nll_loss(x, target, weight, reduction=reduction)

    assert flow.autograd.gradcheck(loss, inputs) and flow.autograd.gradgradcheck(loss, inputs)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("places", PLACES)
def test_derivatives_where_all_rows_are_ignored(places, reduction, weighted, smoothing):
    x, target, weight = problem(places, "classes")
    x.requires_grad_()
    loss = F.cross_entropy(x, target.fill_(-100), weight if weighted else None,
                           reduction=reduction, label_smoothing=smoothing)  # fmt: skip
    first = flow.autograd.grad(loss.sum(), x, create_graph=True)[0]
    second = flow.autograd.grad((first * first).sum() + first.sum(), x)[0]
    assert (first == 0).all() and (second == 0).all()
