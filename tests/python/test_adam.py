# SPDX-License-Identifier: Apache-2.0
"""Adam and AdamW against their formulas in NumPy float64, and against PyTorch where it is there."""

import numpy as np
import pytest
from numerics import flow

Adam, AdamW = flow.optim.Adam, flow.optim.AdamW
CASES = [
    (Adam, {"lr": 0.1}),
    (Adam, {"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-2}),
    (Adam, {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    (Adam, {"lr": 0.1, "amsgrad": True}),
    (AdamW, {"lr": 0.1}),
    (AdamW, {"lr": 0.1, "betas": (0.9, 0.95), "weight_decay": 0.1}),
    (AdamW, {"weight_decay": 0.0, "amsgrad": True, "maximize": True}),
]
by_case = pytest.mark.parametrize("optimizer, options", CASES)


def reference(p, grads, optimizer, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=None,
              amsgrad=False, maximize=False):  # fmt: skip
    if weight_decay is None:
        weight_decay = 1e-2 if optimizer is AdamW else 0
    m = v = most = np.zeros_like(p)
    for step, g in enumerate(grads, 1):
        g = -g if maximize else g
        if optimizer is AdamW:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        most = np.maximum(most, v) if amsgrad else v
        root = np.sqrt(most / (1 - betas[1] ** step)) + eps
        p = p - lr / (1 - betas[0] ** step) * m / root
    return p


def draw():
    rng = np.random.default_rng(0)
    # Gradients that grow smaller: with amsgrad the largest second moment is not the last.
    return rng.standard_normal((3, 4)), [rng.standard_normal((3, 4)) / k for k in range(1, 7)]


def run(p, grads, optimizer, options):
    parameter = flow.tensor(p, requires_grad=True)
    stepper = optimizer([parameter], **options)
    for g in grads:
        parameter.grad = flow.tensor(g)
        stepper.step()
    return parameter.detach().numpy()


@by_case
def test_the_formula(optimizer, options):
    p, grads = draw()
    expected = reference(p, grads, optimizer, **options)
    np.testing.assert_allclose(run(p, grads, optimizer, options), expected, rtol=1e-11)


@by_case
def test_pytorchs(optimizer, options):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: no parity check")
    p, grads = draw()
    parameter = torch.tensor(p, requires_grad=True)
    stepper = getattr(torch.optim, optimizer.__name__)([parameter], **options)
    for g in grads:
        parameter.grad = torch.tensor(g)
        stepper.step()
    expected = parameter.detach().numpy()
    np.testing.assert_allclose(run(p, grads, optimizer, options), expected, rtol=1e-11)


@by_case
def test_a_state_that_is_loaded_goes_on_where_it_was(optimizer, options):
    p, grads = draw()
    first = flow.tensor(p, requires_grad=True)
    stepper = optimizer([first], **options)
    for k, g in enumerate(grads):
        if k == 3:
            state, first = stepper.state_dict(), first.detach().clone().requires_grad_()
            stepper = optimizer([first])
            stepper.load_state_dict(state)
        first.grad = flow.tensor(g)
        stepper.step()
    np.testing.assert_array_equal(first.detach().numpy(), run(p, grads, optimizer, options))


@pytest.mark.parametrize("options", [{"lr": -1}, {"eps": -1}, {"weight_decay": -1},
                                     {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}])  # fmt: skip
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError, match=r"AdamW\(\)"):
        AdamW([flow.ones(1, requires_grad=True)], **options)


def test_squares_of_half_gradients_do_not_overflow():
    x = flow.ones(2, dtype=flow.float16, requires_grad=True)
    optimizer = flow.optim.Adam([x], lr=0.1, eps=1e-3)
    x.grad = flow.tensor([300.0, -300.0], dtype=flow.float16)
    optimizer.step()
    assert np.allclose(x.detach().numpy(), [0.9, 1.1], atol=2e-3)
    assert np.isfinite(optimizer.state_dict()["state"][0]["exp_avg_sq"].numpy()).all()


@pytest.mark.parametrize("capturable", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_amsgrad_may_be_turned_on_later(first, capturable):
    parameters = [flow.ones(3, requires_grad=True) for _ in range(2)]
    stepper = Adam(parameters, lr=0.1, betas=(0.5, 0.5), capturable=capturable)
    parameters[first].grad = flow.ones(3)
    stepper.step()  # only one has a state
    stepper.param_groups[0]["amsgrad"] = True
    for g in (4.0, 0.0):
        for p in parameters:
            p.grad = flow.full((3,), g)
        stepper.step()
    most = [stepper.state[p]["max_exp_avg_sq"].tolist() for p in parameters]
    assert most[1 - first] == pytest.approx([8.0] * 3)  # of the first step, the larger one
    assert most[first] == pytest.approx([8.25] * 3)
