# SPDX-License-Identifier: Apache-2.0
"""Forms of calls that PyTorch still takes, with a warning: lists of masks, uint8, size_average."""

import itertools

import numpy as np
import pytest
from numerics import bits, flow, host

F = flow.nn.functional
X = np.arange(24).reshape(2, 3, 4)
MASK2, MASK23 = np.array([True, False]), X[..., 0] % 3 > 0


@pytest.fixture
def x(device):
    return flow.tensor(X, device=device)


@pytest.mark.parametrize("source", ["tensor", "array"])
@pytest.mark.parametrize(
    "index",
    [
        [MASK2],
        [MASK23],
        [MASK2, 1],
        [MASK2, slice(1, 3)],
        [MASK23, 2],
        [MASK2, None],
        [slice(None), np.array([True, False, True])],
        [np.zeros(2, bool)],
    ],
    ids=str,
)
def test_a_list_that_holds_masks_is_an_index_for_each_dim(index, source, x):
    given = [
        flow.tensor(i, device=x.device) if source == "tensor" and isinstance(i, np.ndarray) else i
        for i in index
    ]
    with pytest.warns(UserWarning, match="a list that holds masks"):
        found = x[given]
    assert np.array_equal(host(found), X[tuple(index)])
    with pytest.warns(UserWarning, match="a list that holds masks"):
        x[given] = -1
    expected = X.copy()
    expected[tuple(index)] = -1
    assert np.array_equal(host(x), expected)


def test_masks_of_uint8_in_a_list(x):
    with pytest.warns(UserWarning, match="a list that holds masks"):
        found = x[[flow.tensor([1, 0], dtype=flow.uint8, device=x.device)]]
    assert np.array_equal(host(found), X[MASK2])


def test_other_lists_are_places(x, recwarn):
    for index in ([0, 1], [True, False], [np.array([0, 1]), np.array([1, 0])], []):
        expected = X[np.array(index, dtype=bool if index and index[0] is True else int)]
        assert np.array_equal(host(x[index]), expected)
    assert not recwarn.list


def test_a_list_of_masks_that_do_not_fit(x):
    with pytest.warns(UserWarning), pytest.raises(IndexError, match="mask of shape"):
        x[[np.ones(3, bool)]]
    with pytest.warns(UserWarning), pytest.raises(IndexError, match="too many indices"):
        x[[MASK23, MASK23]]


def test_a_condition_of_uint8(x):
    condition = flow.tensor([[2], [0], [1]], dtype=flow.uint8, device=x.device)
    expected = np.where(np.array([[True], [False], [True]]), X, -1)
    with pytest.warns(UserWarning, match=r"where\(\): a condition of dtype uint8"):
        assert np.array_equal(host(flow.where(condition, x, -1)), expected)
    with pytest.warns(UserWarning, match=r"where\(\): a condition of dtype uint8"):
        assert np.array_equal(host(x.where(condition, -1)), expected)
    assert [t.tolist() for t in flow.where(condition)] == [[0, 2], [0, 0]]
    for dtype in (flow.int8, flow.int64, flow.float32):
        with pytest.raises(flow.DTypeError, match="condition"):
            flow.where(condition.to(dtype), x, -1)


A, B = np.array([0.2, 0.7, 0.4]), np.array([0.5, 0.1, 0.9])
LOSSES = {
    "mse_loss": lambda a, b, **how: F.mse_loss(a, b, **how),
    "l1_loss": lambda a, b, **how: F.l1_loss(a, b, **how),
    "smooth_l1_loss": lambda a, b, **how: F.smooth_l1_loss(a, b, **how),
    "kl_div": lambda a, b, **how: F.kl_div(a, b, **how),
    "binary_cross_entropy": lambda a, b, **how: F.binary_cross_entropy(a, b, **how),
    "binary_cross_entropy_with_logits": lambda a, b, **how: F.binary_cross_entropy_with_logits(
        a, b, **how
    ),
    "soft_margin_loss": lambda a, b, **how: F.soft_margin_loss(a, b, **how),
    "nll_loss": lambda a, b, **how: F.nll_loss(a.view(1, 3), flow.tensor([1]).to(a.device), **how),
    "cross_entropy": lambda a, b, **how: F.cross_entropy(
        a.view(1, 3), flow.tensor([1]).to(a.device), **how
    ),
}
MODULES = {
    "MSELoss": lambda a, b: (a, b),
    "L1Loss": lambda a, b: (a, b),
    "SmoothL1Loss": lambda a, b: (a, b),
    "KLDivLoss": lambda a, b: (a, b),
    "BCELoss": lambda a, b: (a, b),
    "BCEWithLogitsLoss": lambda a, b: (a, b),
    "NLLLoss": lambda a, b: (a.view(1, 3), flow.tensor([1])),
    "CrossEntropyLoss": lambda a, b: (a.view(1, 3), flow.tensor([1])),
}


def meant_by(size_average, reduce):
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


GIVEN = [g for g in itertools.product((None, True, False), repeat=2) if g != (None, None)]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_size_average_and_reduce(name, given, device):
    a, b = (flow.tensor(v, device=device) for v in (A, B))
    meant = meant_by(*given)
    with pytest.warns(UserWarning, match=rf"{name}\(\): .*reduction='{meant}'"):
        loss = LOSSES[name](a, b, size_average=given[0], reduce=given[1])
    assert bits(loss) == bits(LOSSES[name](a, b, reduction=meant))
    with pytest.warns(UserWarning):  # over what reduction says
        loss = LOSSES[name](a, b, reduction="none", size_average=given[0], reduce=given[1])
    assert bits(loss) == bits(LOSSES[name](a, b, reduction=meant))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_size_average_and_reduce_of_modules(name, given):
    cls = getattr(flow.nn, name)
    with pytest.warns(UserWarning, match=rf"{name}\(\): .*reduction='{meant_by(*given)}'"):
        module = cls(size_average=given[0], reduce=given[1])
    assert module.reduction == meant_by(*given)
    operands = MODULES[name](flow.tensor(A), flow.tensor(B))
    assert bits(module(*operands)) == bits(cls(reduction=meant_by(*given))(*operands))


def test_nothing_is_said_where_nothing_is_given(recwarn):
    a, b = flow.tensor(A), flow.tensor(B)
    assert bits(F.mse_loss(a, b, size_average=None, reduce=None)) == bits(F.mse_loss(a, b))
    assert flow.nn.MSELoss(size_average=None, reduce=None).reduction == "mean"
    assert not recwarn.list


def test_functions_without_reduction_do_not_take_them():
    for call in (
        lambda: flow.softmax(flow.tensor(A), 0, reduce=True),
        lambda: flow.exp(flow.tensor(A), size_average=True),
        lambda: F.mse_loss(flow.tensor(A), flow.tensor(B), sizeaverage=True),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            call()
