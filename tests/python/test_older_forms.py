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


def test_dims_one_by_one(device):
    x = flow.ones(1, 2, 1, device=device)
    assert x.squeeze(0, 2).shape == (2,) and x.squeeze(0, -1).shape == (2,)
    assert x.clone().squeeze_(0, 2).shape == (2,)
    assert x.count_nonzero(0, 1).tolist() == [2]
    assert x.new_empty(2, 3).shape == x.new_empty((2, 3)).shape == x.new_empty(size=(2, 3)).shape
    with pytest.raises(TypeError, match="argument 'dim' must be ints, but item 1 is float"):
        x.squeeze(0, 2.0)
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        x.squeeze(0, 2, dim=1)


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


W = np.array([0.5, 2.0, 1.0])
# In PyTorch's order, of a and b and a weight: what comes before size_average, and after `reduce`
# and the reduction; those with ignore_index or eps between the two are apart.
BY_PLACE = {
    "mse_loss": ([], []), "l1_loss": ([], []), "smooth_l1_loss": ([], [0.3]),
    "kl_div": ([], [True]),
    "binary_cross_entropy": ([W], []), "binary_cross_entropy_with_logits": ([W], [W]),
    "soft_margin_loss": ([], []), "hinge_embedding_loss": ([0.7], []),
    "multilabel_soft_margin_loss": ([W], []),
}  # fmt: skip
IN_MODULES = {
    "mse_loss": "MSELoss", "l1_loss": "L1Loss", "smooth_l1_loss": "SmoothL1Loss",
    "kl_div": "KLDivLoss", "binary_cross_entropy": "BCELoss", "soft_margin_loss": "SoftMarginLoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    "hinge_embedding_loss": "HingeEmbeddingLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss",
}  # fmt: skip


def tensors(values):
    return [flow.tensor(v) if isinstance(v, np.ndarray) else v for v in values]


@pytest.mark.filterwarnings("ignore:.*older arguments")
@pytest.mark.parametrize("name", BY_PLACE)
def test_size_average_and_reduce_by_place(name):
    function, cls = getattr(F, name), getattr(flow.nn, IN_MODULES[name])
    front, rest = map(tensors, BY_PLACE[name])
    a, b = flow.tensor(A), flow.tensor(B)
    for reduction in ("none", "sum", "mean"):
        want = bits(function(a, b, *front, reduction, *rest))
        assert bits(function(a, b, *front, None, None, reduction, *rest)) == want
        assert bits(cls(*front, None, None, reduction, *rest)(a, b)) == want
        assert bits(cls(*front, reduction, *rest)(a, b)) == want
    for size_average, reduce in GIVEN:
        meant = meant_by(size_average, reduce)
        want = bits(function(a, b, *front, meant))
        assert bits(function(a, b, *front, size_average, reduce)) == want
        assert bits(cls(*front, size_average, reduce)(a, b)) == want
    with pytest.warns(UserWarning, match=rf"{name}\(\): .*reduction='sum'"):
        assert bits(function(a, b, *front, False)) == bits(function(a, b, *front, "sum"))


@pytest.mark.filterwarnings("ignore:.*older arguments")
def test_size_average_before_other_arguments_by_place():
    logits, target = flow.tensor(X[0], dtype=flow.float64), flow.tensor([1, 2, 1])
    weight = flow.tensor([1.0, 2.0, 0.5, 1.0], dtype=flow.float64)
    for function, cls in ((F.cross_entropy, "CrossEntropyLoss"), (F.nll_loss, "NLLLoss")):
        made = getattr(flow.nn, cls)
        want = function(logits, target, weight, 2, "sum").item()
        assert function(logits, target, weight, None, 2, None, "sum").item() == want
        assert function(logits, target, weight, False, 2).item() == want
        assert made(weight, None, 2, None, "sum")(logits, target).item() == want
        assert made(weight, False, 2)(logits, target).item() == want
        assert made(None, True, 2).ignore_index == 2
    want = F.cross_entropy(logits, target, weight, 2, "sum", 0.2).item()
    assert F.cross_entropy(logits, target, weight, None, 2, None, "sum", 0.2).item() == want
    rates = flow.tensor(A)
    want = F.poisson_nll_loss(rates, rates, False, True, 0.1, "sum").item()
    assert F.poisson_nll_loss(rates, rates, False, True, None, 0.1, None, "sum").item() == want
    made = flow.nn.PoissonNLLLoss(False, True, None, 0.1, None, "sum")
    assert made(rates, rates).item() == want
    for wrong in (
        lambda: F.nll_loss(logits, target, weight, 2.5),
        lambda: F.mse_loss(rates, rates, 1),
        lambda: F.kl_div(rates, rates, None, 3),
    ):
        with pytest.raises(TypeError):
            wrong()


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
