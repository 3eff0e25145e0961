# SPDX-License-Identifier: Apache-2.0
"""Losses of margins, pairs and distributions as modules: the functions with their options kept."""

import pytest
from numerics import flow

nn, F = flow.nn, flow.nn.functional


def rows(seed, *shape):
    return flow.randn(*shape, generator=flow.Generator().manual_seed(seed)).double()


X, Y, Z = (rows(seed, 6, 5) for seed in (1, 2, 3))
SIGNS = flow.tensor([1, -1, 1, 1, -1, -1])
LABELS = flow.tensor([0, 4, 2, 2, 1, 3])
MANY = flow.tensor([[0, 3, -1, 1, 2]] * 6)
WEIGHT = flow.arange(1, 6).double()


def l1(a, b):
    return (a - b).abs().sum(-1)


# The module's name, its options, the operands; the function has their names.
CASES = [
    ("MarginRankingLoss", {"margin": 0.3}, (X[:, 0], Y[:, 0], SIGNS)),
    ("HingeEmbeddingLoss", {"margin": 0.4}, (X[:, 0], SIGNS)),
    ("CosineEmbeddingLoss", {"margin": 0.2}, (X, Y, SIGNS)),
    ("TripletMarginLoss", {"margin": 0.5, "p": 1.0, "eps": 1e-3, "swap": True}, (X, Y, Z)),
    ("TripletMarginWithDistanceLoss", {"distance_function": l1, "margin": 0.5, "swap": True},
     (X, Y, Z)),
    ("SoftMarginLoss", {}, (X[:, 0], SIGNS)),
    ("MultiMarginLoss", {"p": 2, "margin": 0.7, "weight": WEIGHT}, (X, LABELS)),
    ("MultiLabelMarginLoss", {}, (X, MANY)),
    ("MultiLabelSoftMarginLoss", {"weight": WEIGHT}, (X, Y.sigmoid())),
    ("PoissonNLLLoss", {"log_input": False, "full": True, "eps": 1e-3}, (X.exp(), Y.exp())),
    ("GaussianNLLLoss", {"full": True, "eps": 1e-2}, (X, Y, Z.exp())),
]  # fmt: skip
NAMES = {"MultiLabelMarginLoss": "multilabel_margin_loss", "PoissonNLLLoss": "poisson_nll_loss",
         "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss",
         "GaussianNLLLoss": "gaussian_nll_loss"}  # fmt: skip


def function(name):
    parts = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
    return getattr(F, NAMES.get(name, parts))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "operands"), CASES)
def test_a_module_is_its_function(name, options, operands, reduction):
    module = getattr(nn, name)(**options, reduction=reduction)
    first = operands[0].clone().requires_grad_()
    y = module(first, *operands[1:])
    assert flow.equal(y, function(name)(*operands, **options, reduction=reduction))
    for option, value in {**options, "reduction": reduction}.items():
        assert getattr(module, option) is value or getattr(module, option) == value
    assert list(module.state_dict()) == (["weight"] if "weight" in options else [])
    y.sum().backward()
    assert first.grad.abs().sum() > 0


@pytest.mark.parametrize(("name", "options", "operands"), CASES)
def test_an_option_changes_the_loss_and_defaults_are_those_of_the_function(name, options, operands):
    module, loss = getattr(nn, name)(), function(name)
    assert flow.equal(module(*operands), loss(*operands)) and module.reduction == "mean"
    if options:
        assert module(*operands).item() != loss(*operands, **options).item()


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_older_arguments(name):
    cls = getattr(nn, name)
    if name in ("GaussianNLLLoss", "TripletMarginWithDistanceLoss"):
        with pytest.raises(TypeError, match="size_average"):
            cls(size_average=False)
        return
    with pytest.warns(UserWarning, match=f"{name}.*reduction='sum'"):
        assert cls(size_average=False).reduction == "sum"


def test_a_loss_of_its_operands_says_what_is_meant():
    with pytest.raises(TypeError, match=r"TripletMarginLoss\(\)\(input, target\)"):
        nn.TripletMarginLoss(X, Y, Z)
