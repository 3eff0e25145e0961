# SPDX-License-Identifier: Apache-2.0
"""L-BFGS: minima that are known, what a step evaluates, states, and PyTorch's where it is there."""

import copy

import numpy as np
import pytest
from numerics import flow, host

LBFGS = flow.optim.LBFGS
START = [-1.2, 1.0, -0.5, 2.0]
TIGHT = {"tolerance_change": 1e-15}
WAYS = {
    "fixed steps": {"lr": 0.1, "max_iter": 40},
    "a line search": {"line_search_fn": "strong_wolfe"},
}


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum()


def bowl(x):
    return ((x - 3) ** 4).sum() + (x * x).sum()


class Descent:
    """An optimizer with its parameters, in parts of some shapes, and the losses it evaluated."""

    def __init__(self, library, loss, device=None, **options):
        where = {} if device is None else {"device": device}
        make = lambda v: library.tensor(v, dtype=library.float64, **where).requires_grad_()  # noqa: E731
        self.params = [make(START[:1]), make([START[1:3]]), make(START[3])]
        self.library, self.loss, self.losses = library, loss, []
        self.optimizer = library.optim.LBFGS(self.params, **options)

    def closure(self):
        self.optimizer.zero_grad()
        sign = -1 if self.optimizer.param_groups[0]["maximize"] else 1
        loss = sign * self.loss(self.library.cat([p.reshape(-1) for p in self.params]))
        loss.backward()
        self.losses.append(float(loss))
        return loss

    def step(self, count=1):
        for _ in range(count):
            self.optimizer.step(self.closure)
        return np.concatenate([host(p).reshape(-1) for p in self.params])


def test_a_line_search_finds_the_valley(device):
    descent = Descent(flow, rosenbrock, device, line_search_fn="strong_wolfe", **TIGHT)
    np.testing.assert_allclose(descent.step(8), np.ones(4), atol=1e-6)
    assert len(descent.losses) < 200


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("maximize", [False, True])
def test_the_minimum_of_a_bowl(way, maximize, device):
    descent = Descent(flow, bowl, device, maximize=maximize, **TIGHT, **WAYS[way])
    x = descent.step(8)
    np.testing.assert_allclose(4 * (x - 3) ** 3 + 2 * x, np.zeros(4), atol=1e-5)
    first = descent.losses[0]
    assert float(descent.optimizer.step(descent.closure)) != first


def test_a_step_gives_the_loss_before_it_and_counts():
    descent = Descent(flow, bowl, max_iter=3, max_eval=20, line_search_fn="strong_wolfe")
    first = descent.optimizer.step(descent.closure)
    assert float(first) == descent.losses[0]
    state = descent.optimizer.state[descent.params[0]]
    assert state["func_evals"] == len(descent.losses) and state["n_iter"] == 3
    assert len(state["old_dirs"]) == 2
    few = Descent(flow, bowl, max_iter=50, max_eval=4)
    few.step()
    assert len(few.losses) == 4
    short = Descent(flow, rosenbrock, history_size=2, line_search_fn="strong_wolfe")
    short.step()
    assert len(short.optimizer.state[short.params[0]]["ro"]) == 2


def test_a_small_gradient_ends_a_step():
    descent = Descent(flow, bowl, tolerance_grad=1e9)
    before = descent.step(0)
    np.testing.assert_array_equal(descent.step(), before)
    assert len(descent.losses) == 1


def test_a_parameter_without_a_gradient_stays():
    p, still = flow.tensor([2.0], requires_grad=True), flow.tensor([5.0], requires_grad=True)
    optimizer = LBFGS([p, still])

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert still.item() == 5 and abs(p.item()) < 1e-3


@pytest.mark.parametrize("way", WAYS)
def test_a_loaded_state_goes_on(way):
    options = {**WAYS[way], "max_iter": 3}
    whole, half = (Descent(flow, rosenbrock, **options) for _ in range(2))
    want = whole.step(6)
    half.step(3)
    state = copy.deepcopy(half.optimizer.state_dict())
    half.optimizer = LBFGS(half.params, **options)
    half.optimizer.load_state_dict(state)
    np.testing.assert_array_equal(half.step(3), want)


def test_hooks_run_around_a_step():
    descent, seen = Descent(flow, bowl), []
    descent.optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    descent.optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    descent.step()
    assert seen == ["before", "after"]


def test_errors():
    p, q = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"^LBFGS\(\): takes one group of parameters"):
        LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(ValueError, match=r"^LBFGS\(\): line_search_fn is 'armijo'"):
        LBFGS([p], line_search_fn="armijo")
    with pytest.raises(ValueError, match=r"^LBFGS\(\): lr is -1"):
        LBFGS([p], lr=-1)
    for closure in (None, 3.0):
        with pytest.raises(TypeError, match=r"^LBFGS.step\(\): closure must be a function that"):
            LBFGS([p]).step(closure)


@pytest.mark.parametrize("way", WAYS)
def test_steps_are_pytorchs(way):
    torch = pytest.importorskip("torch")
    ours, theirs = (Descent(library, rosenbrock, **WAYS[way]) for library in (flow, torch))
    for _ in range(3):
        ours.step()
        theirs.optimizer.step(theirs.closure)
    assert len(ours.losses) == len(theirs.losses)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-6)
