# SPDX-License-Identifier: Apache-2.0
"""Schedules in turn, at once and beside each other go as PyTorch's."""

import warnings

import pytest
from numerics import flow
from schedules import S, made, optimizer_with, rates

# Most of these schedules go on without an optimizer that steps.
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")


@pytest.mark.parametrize("chain", [lambda o, parts: S.SequentialLR(o, parts, [2]),
                                   lambda o, parts: S.ChainedScheduler(parts, o)],
                         ids=["sequence", "chain"])  # fmt: skip
def test_parts_that_do_not_go_together(chain):
    optimizer = made()
    step = S.StepLR(optimizer, 1)
    with pytest.raises(ValueError, match="scheduler 1 has another optimizer"):
        chain(optimizer, [step, S.StepLR(made(), 1)])
    with pytest.raises(TypeError, match="ReduceLROnPlateau goes by a metric, which"):
        chain(optimizer, [step, S.ReduceLROnPlateau(optimizer)])
    with pytest.raises(TypeError, match="must be LRSchedulers, not SGD"):
        chain(optimizer, [step, optimizer])


def chained(*makes):
    return lambda s, o: s.ChainedScheduler([make(s, o) for make in makes])


def in_turn(milestones, *makes):
    return lambda s, o: s.SequentialLR(o, [make(s, o) for make in makes], milestones)


def multiplied(s, o):
    return s.MultiplicativeLR(o, lambda e: 0.5)


def cycle(s, o):
    return s.OneCycleLR(o, 1.0, 8, div_factor=4.0, cycle_momentum=False)


def cosine(s, o):
    return s.CosineAnnealingLR(o, 3, eta_min=0.01)


def linear(s, o):
    return s.LinearLR(o, 0.1, 1.0, 3)


def constant(s, o):
    return s.ConstantLR(o, 0.1, 2)


# Rates of torch 2.15, from 0.1, over 6 steps; in the last two the rate is set to 0.8 after 2 steps.
PYTORCHS = {
    "a factor of what there is, first": (
        in_turn([3], multiplied, linear), [0.1, 0.05, 0.025, 0.01, 0.04, 0.07]),
    "a factor of what there is, second": (
        in_turn([3], linear, multiplied), [0.01, 0.04, 0.07, 0.035, 0.0175, 0.00875]),
    "a cycle made later": (
        in_turn([3], linear, cycle), [0.025, 0.1, 0.175, 0.25, 0.858808676, 0.971942367]),
    "a cycle, first": (
        in_turn([2], cycle, constant), [0.25, 0.858808676, 0.025, 0.025, 0.25, 0.25]),
    "a chain of a sequence": (
        chained(constant, in_turn([2], linear, cosine)),
        [0.01, 0.04, 0.1, 0.0775, 0.0325, 0.01]),
    "a chain of cosines": (
        chained(cosine, linear, cosine), [0.01, 0.0325, 0.016875, 0.01, 0.055, 0.415]),
    "set in a sequence": (in_turn([4], linear, constant), [0.01, 0.04, 0.8, 1.142857, 0.01, 0.01]),
    "set under a cosine": (cosine, [0.1, 0.0775, 0.8, 0.01, 0.0325, 0.0775]),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTORCHS)
def test_schedules_beside_each_other_go_as_pytorchs(name):
    make, want = PYTORCHS[name]
    optimizer = optimizer_with(0.1)
    scheduler, seen = make(S, optimizer), []
    for step in range(6):
        if step == 2 and name.startswith("set"):
            optimizer.param_groups[0]["lr"] = 0.8
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert seen == pytest.approx(want, rel=1e-5), seen


@pytest.mark.parametrize("make", [linear, cosine, cycle, multiplied, in_turn([2], linear, cosine),
                                  chained(linear, cosine),
                                  lambda s, o: s.CosineAnnealingWarmRestarts(o, 2)])  # fmt: skip
def test_a_first_step_before_the_optimizers_is_warned_of(make):
    """As in PyTorch: the first step size of the schedule is never used."""
    early, due = make(S, optimizer_with()), make(S, optimizer_with())
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        early.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        early.optimizer.step()
        early.step()
        due.optimizer.step()
        for _ in range(4):
            due.step()
        resumed = make(S, optimizer_with())
        resumed.load_state_dict(due.state_dict())
        resumed.step()


def test_a_chain_in_a_sequence():
    """Before its milestone it has not begun; there it starts from the rates of the start."""
    optimizer = optimizer_with(1.0)
    chain = chained(constant, lambda s, o: s.ExponentialLR(o, 0.5))
    scheduler = in_turn([2], multiplied, chain)(S, optimizer)
    seen = [pair[0] for pair in rates(optimizer, scheduler, 6)]
    assert seen == pytest.approx([1, 0.5, 0.1, 0.05, 0.25, 0.125])
    first = in_turn([3], chain, multiplied)(S, optimizer_with(1.0))
    seen = [pair[0] for pair in rates(first.optimizer, first, 5)]
    assert seen == pytest.approx([0.1, 0.05, 0.25, 0.125, 0.0625])
    again = in_turn([3], chain, multiplied)(S, optimizer_with(1.0))
    again.load_state_dict(first.state_dict())
    assert again.last_epoch == 5 and [s.last_epoch for s in again._schedulers] == [2, 2]
    assert isinstance(chain(S, optimizer), S.LRScheduler)


def test_two_schedules_multiply():
    optimizer = made()
    first, second = S.ExponentialLR(optimizer, 0.9), S.MultiStepLR(optimizer, [2], 0.1)
    seen = []
    for _ in range(3):
        first.step()
        second.step()
        seen.append(optimizer.param_groups[0]["lr"])
    base = made().param_groups[0]["lr"]
    assert seen == pytest.approx([base * 0.9, base * 0.81 * 0.1, base * 0.729 * 0.1])


def test_schedules_chained():
    def chained(optimizer):
        return S.ChainedScheduler(
            [S.ConstantLR(optimizer, 0.1, 2), S.ExponentialLR(optimizer, 0.9)]
        )

    scheduler = chained(optimizer_with())
    seen = scheduler.get_last_lr()
    for _ in range(3):
        scheduler.step()
        seen += scheduler.get_last_lr()
    assert seen == pytest.approx([0.1, 0.09, 0.81, 0.729])
    other = chained(optimizer_with())
    other.load_state_dict(scheduler.state_dict())
    assert [s.last_epoch for s in other._schedulers] == [3, 3]
    with pytest.raises(ValueError, match="scheduler 1 has another optimizer"):
        S.ChainedScheduler([S.StepLR(optimizer_with(), 1), S.StepLR(optimizer_with(), 1)])
    with pytest.raises(ValueError, match="schedulers is empty"):
        S.ChainedScheduler([])


def test_schedules_of_a_tensor_multiply():
    lrs = []
    for lr in (0.5, flow.tensor(0.5)):
        optimizer = optimizer_with(lr)
        schedules = S.ExponentialLR(optimizer, 0.5), S.ConstantLR(optimizer, 0.25, 2)
        lrs.append([])
        for _ in range(4):
            for schedule in schedules:
                schedule.step()
                lrs[-1].append(float(optimizer.param_groups[0]["lr"]))
    assert lrs[0] == lrs[1] and lrs[0][1] == 0.5 * 0.5 * 0.25
