# SPDX-License-Identifier: Apache-2.0
"""Step sizes over the epochs: formulas, restarts, and PyTorch's where it is there."""

import math

import pytest
from numerics import flow

SGD, S = flow.optim.SGD, flow.optim.lr_scheduler


def sequence(schedulers, optimizer):
    parts = [
        schedulers.LinearLR(optimizer, 0.1, 1.0, 3),
        schedulers.CosineAnnealingLR(optimizer, 4),
    ]
    return schedulers.SequentialLR(optimizer, parts, milestones=[2])


SCHEDULERS = {
    "lambda": (lambda s, o: s.LambdaLR(o, lambda e: 0.5**e), lambda e: 0.5**e),
    "step": (lambda s, o: s.StepLR(o, 2, gamma=0.1), lambda e: 0.1 ** (e // 2)),
    "milestones": (lambda s, o: s.MultiStepLR(o, [3, 1]), lambda e: 0.1 ** ((e >= 1) + (e >= 3))),
    "exponential": (lambda s, o: s.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "linear": (lambda s, o: s.LinearLR(o, 0.1, 1.0, 3), lambda e: 0.1 + 0.3 * min(e, 3)),
    "cosine": (lambda s, o: s.CosineAnnealingLR(o, 4, eta_min=0.1),
               lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 4)) / 2),
    "sequence": (sequence, lambda e: 0.1 + 0.3 * e if e < 2
                 else (1 + math.cos(math.pi * (e - 2) / 4)) / 2),
}  # fmt: skip
by_name = pytest.mark.parametrize("name", SCHEDULERS)


def rates(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        found.append(scheduler.get_last_lr())
        optimizer.step()
        scheduler.step()
    return found


def made():
    a, b = flow.ones(1, requires_grad=True), flow.ones(1, requires_grad=True)
    return SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=1.0)


@by_name
def test_the_rates(name):
    make, expected = SCHEDULERS[name]
    optimizer = made()
    found = rates(optimizer, make(S, optimizer), 7)
    for epoch, pair in enumerate(found):
        assert pair == pytest.approx([expected(epoch)] * 2), epoch


@by_name
def test_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: no parity check")
    make, _ = SCHEDULERS[name]
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    theirs = rates(optimizer, make(torch.optim.lr_scheduler, optimizer), 7)
    ours = made()
    for epoch, (pair, want) in enumerate(zip(rates(ours, make(S, ours), 7), theirs, strict=True)):
        assert pair[0] == pytest.approx(want[0], abs=1e-12), epoch


@by_name
def test_a_schedule_goes_on_from_its_state(name):
    make, expected = SCHEDULERS[name]
    optimizer = made()
    scheduler = make(S, optimizer)
    rates(optimizer, scheduler, 3)
    resumed = made()
    again = make(S, resumed)
    resumed.load_state_dict(optimizer.state_dict())
    again.load_state_dict(scheduler.state_dict())
    again.step()
    assert again.get_last_lr() == pytest.approx([expected(4)] * 2)


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


def test_a_rate_set_by_hand_and_a_group_added_later():
    optimizer = made()
    scheduler = S.StepLR(optimizer, 2, 0.5)
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.add_param_group({"params": [flow.ones(1, requires_grad=True)], "lr": 8.0})
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.25
    scheduler.step()
    assert [optimizer.param_groups[k]["lr"] for k in (0, -1)] == [0.125, 4.0]
    assert S.LinearLR(made(), 0.5, 1.0, 0).get_last_lr()[0] == made().param_groups[0]["lr"] * 0.5


def test_groups_keep_their_own_rates():
    a, b = flow.ones(1, requires_grad=True), flow.ones(1, requires_grad=True)
    optimizer = SGD([{"params": [a]}, {"params": [b], "lr": 10.0}], lr=1.0)
    scheduler = S.LambdaLR(optimizer, [lambda e: 1.0, lambda e: 1 / (1 + e)])
    scheduler.step()
    assert scheduler.get_last_lr() == [1.0, 5.0] and scheduler.base_lrs == [1.0, 10.0]


def test_errors():
    optimizer = made()
    with pytest.raises(ValueError, match="1 functions for 2 groups"):
        S.LambdaLR(optimizer, [lambda e: 1.0])
    with pytest.raises(ValueError, match="0 milestones do not part 2"):
        S.SequentialLR(optimizer, [S.StepLR(optimizer, 1), S.StepLR(optimizer, 1)], [])
    with pytest.raises(NotImplementedError, match="factor"):
        S.LRScheduler(optimizer)
