# SPDX-License-Identifier: Apache-2.0
"""Gradients through a tensor of which a view was changed in place.

NumPy's float64 has the values; of what was overwritten nothing flows back, an infinite slope
neither.
"""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

CHANGES = {
    "select": lambda y: y[0].fill_(0),
    "slice": lambda y: y[0:1].fill_(0),
    "assignment": lambda y: y.__setitem__((slice(None), slice(0, 2)), 0),
    "diagonal": lambda y: y.diagonal().fill_(0),
    "view": lambda y: y.view(-1)[::2].zero_(),
    "whole": lambda y: y.unsqueeze(0).zero_(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_infinite_slope_of_what_is_overwritten_stays_there(change):
    x = flow.arange(1.0, 13.0, dtype=flow.float64).view(3, 4).requires_grad_()
    y = x * 3
    CHANGES[change](y)
    kept = y.detach().numpy() != 0
    y.sqrt().sum().backward()  # infinite at 0
    want = np.where(kept, 1.5 / np.sqrt(3 * x.detach().numpy()), 0)
    np.testing.assert_allclose(x.grad.numpy(), want)


def test_an_infinite_slope_of_what_is_scaled_is_scaled():
    x = flow.tensor([0.0, 1.0, 4.0], requires_grad=True)
    y = x * 1
    y[0] *= 2
    y.sqrt().sum().backward()
    assert x.grad.tolist() == [float("inf"), 0.5, 0.25]


def test_nan_beside_the_view_stays_beside_it():
    x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[1:] = y[1:] * 2
    y.backward(flow.tensor([float("nan"), 1.0, 1.0]))
    assert np.isnan(x.grad[0].item()) and x.grad[1:].tolist() == [2.0, 2.0]


# Bases that are no views and lie in another order, or with gaps.
BASES = {
    "transposed result": lambda x: x.t() * 1,
    "permuted result": lambda x: x.view(2, 3, 4).permute(2, 0, 1) * 1,
    "transposed": lambda x: (x.detach() * 0).t().detach(),
    "gaps": lambda x: flow.zeros(5, 9, dtype=x.dtype)[1:4, ::2].detach(),
    "rows apart": lambda x: flow.zeros(3, 9, dtype=x.dtype)[:, 1:5].detach(),
}
WRITES = {
    "select": lambda y, s: y[0].copy_(s),
    "last dim": lambda y, s: y[..., 1:3].mul_(s),
    "transpose": lambda y, s: y.transpose(0, 1)[1].add_(s),
    "whole": lambda y, s: y.transpose(0, 1).add_(s),
    "assignment": lambda y, s: y.__setitem__((..., 0), s * 2),
    "diagonal": lambda y, s: y.diagonal(0, 0, 1).add_(s),
    "twice": lambda y, s: (y[0].copy_(s), y[..., 0].mul_(s)),
    "earlier view": lambda y, s: [v.mul_(s) for v in (y[1], y.transpose(0, 1))],
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("base", BASES)
def test_views_of_tensors_in_any_order_are_changed(base, write):
    def function(x, s):
        y = BASES[base](x)
        assert not y.is_contiguous()
        view = y.transpose(0, 1)  # cut before the change
        WRITES[write](y, s)
        return y * y, view.sum(0)

    x = flow.randn(4, 6, dtype=flow.float64, requires_grad=True)
    s = flow.tensor(1.5, dtype=flow.float64, requires_grad=True)
    inputs = (x, s) if base.endswith("result") else (s,)
    call = (lambda *a: function(*a)) if base.endswith("result") else (lambda a: function(x, a))
    assert flow.autograd.gradcheck(call, inputs)
    assert flow.autograd.gradgradcheck(call, inputs)


def test_values_and_gradient_in_numbers():
    x = flow.arange(6.0).view(2, 3).requires_grad_()
    y = x.t() * 2
    y[1] = x[0, 0] + 7
    (y * flow.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert y.tolist() == [[0, 6], [7, 7], [4, 10]]
    assert x.grad.tolist() == [[2 + 7, 0, 10], [4, 0, 12]]


def test_a_view_of_an_expanded_tensor_is_refused():
    s = flow.ones([], requires_grad=True)
    y = flow.zeros(3).expand(2, 3).detach()
    with pytest.raises(NotImplementedError, match="a view of an expanded tensor"):
        y[0].mul_(s)


def test_a_view_is_no_leaf_once_its_base_has_a_history():
    base = flow.zeros(2, 3)
    view, row = base.view(6), base[0]
    assert view.is_leaf
    row.mul_(flow.ones([], requires_grad=True))
    assert view.requires_grad and not view.is_leaf and not row.is_leaf and not base.is_leaf
    assert flow.zeros(2).is_leaf and flow.zeros(2, requires_grad=True).is_leaf


# Ops that save their output, so that a second derivative leads through its history, too.
HALF = flow.tensor(0.5, dtype=flow.float64)
SAVED_OUTPUTS = {
    "relu": (lambda y: y.relu_(), lambda y: y.relu()),
    "hypot": (lambda y: y.hypot_(HALF), lambda y: y.hypot(HALF)),
}


@pytest.mark.parametrize("name", SAVED_OUTPUTS)
@pytest.mark.parametrize("rows", [slice(None), slice(1, 3)], ids=["all", "some"])
def test_a_second_derivative_after_a_change_of_a_view_that_saved_its_output(name, rows):
    in_place, beside = SAVED_OUTPUTS[name]

    def derivatives(value):
        x = flow.linspace(-1.0, 1.5, 12, dtype=flow.float64).view(4, 3).requires_grad_()
        (first,) = flow.autograd.grad((value(x * 1) ** 3).sum(), x, create_graph=True)
        loss = (first * first).sum()
        (second,) = flow.autograd.grad(loss, x)
        with pytest.raises(RuntimeError, match="a second time"):
            flow.autograd.grad(loss, x)
        return np.stack([first.detach().numpy(), second.numpy()])

    def changed(y):
        in_place(y.view(4, 3)[rows])
        return y

    def composed(y):
        return y.slice_scatter(beside(y[rows]), 0, rows.start, rows.stop)

    np.testing.assert_allclose(derivatives(changed), derivatives(composed), rtol=1e-13)


def test_a_view_of_what_lies_outside_of_its_tensor_is_not_changed_in_place():
    cut = flow.zeros(4, 4)[2:, 2:].detach()
    outside = cut.as_strided((2, 2), (4, 1), 0)
    with pytest.raises(NotImplementedError, match="outside of the tensor it was cut from"):
        outside.add_(flow.ones(2, 2, requires_grad=True))
    inside = cut.as_strided((2, 2), (4, 1))
    w = flow.ones(2, 2, requires_grad=True)
    inside.add_(w)
    (cut * 2).sum().backward()
    assert w.grad.tolist() == [[2, 2], [2, 2]]


def test_a_view_whose_history_is_refused_is_refused_at_each_use():
    cut = flow.zeros(8)[:4].detach()
    outside = cut.as_strided((4,), (1,), 2)
    cut.mul_(flow.ones(4, requires_grad=True))
    for _ in range(2):  # the second use took it for a constant once
        with pytest.raises(NotImplementedError, match="outside of the tensor it was cut from"):
            outside * 1
