# SPDX-License-Identifier: Apache-2.0
"""Step sizes over the epochs: formulas, restarts, and PyTorch's where it is there."""

import math
from collections import Counter

import pytest
from numerics import flow
from schedules import SGD, S, made, optimizer_with, rates

# Most of these schedules go on without an optimizer that steps.
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")


def sequence(schedulers, optimizer):
    parts = [
        schedulers.LinearLR(optimizer, 0.1, 1.0, 3),
        schedulers.CosineAnnealingLR(optimizer, 4),
    ]
    return schedulers.SequentialLR(optimizer, parts, milestones=[2])


def after_two(make):
    """Another schedule in a sequence, from epoch 2 on."""

    def sequenced(schedulers, optimizer):
        parts = [schedulers.LinearLR(optimizer, 0.1, 1.0, 3), make(schedulers, optimizer)]
        return schedulers.SequentialLR(optimizer, parts, milestones=[2])

    return sequenced


SCHEDULERS = {
    "lambda": (lambda s, o: s.LambdaLR(o, lambda e: 0.5**e), lambda e: 0.5**e),
    "step": (lambda s, o: s.StepLR(o, 2, gamma=0.1), lambda e: 0.1 ** (e // 2)),
    "milestones": (lambda s, o: s.MultiStepLR(o, [3, 1]), lambda e: 0.1 ** ((e >= 1) + (e >= 3))),
    "exponential": (lambda s, o: s.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "linear": (lambda s, o: s.LinearLR(o, 0.1, 1.0, 3), lambda e: 0.1 + 0.3 * min(e, 3)),
    "cosine": (lambda s, o: s.CosineAnnealingLR(o, 4, eta_min=0.1),
               lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * e / 4)) / 2),
    "constant": (lambda s, o: s.ConstantLR(o, 0.25, 3), lambda e: 0.25 if e < 3 else 1.0),
    "polynomial": (lambda s, o: s.PolynomialLR(o, 4, 2.0), lambda e: (1 - min(e, 4) / 4) ** 2),
    "restarts": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, eta_min=0.1),
                 lambda e: 0.1 + 0.9 * (1 + math.cos(math.pi * (e % 2) / 2)) / 2),
    "longer restarts": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 2),
                        lambda e: (1, 1, 0.5, 1, 0.8535533905932737, 0.5, 0.1464466094067262)[e]),
    "one cycle": (lambda s, o: s.OneCycleLR(o, 1.0, 8, pct_start=0.5, anneal_strategy="linear",
                                            cycle_momentum=False, div_factor=4.0,
                                            final_div_factor=1.0),
                  lambda e: 0.25 + 0.25 * e if e <= 3 else 1 - 0.1875 * (e - 3)),
    "cycles": (lambda s, o: s.CyclicLR(o, 0.25, 1.0, 2, 1, cycle_momentum=False),
               lambda e: (0.25, 0.625, 1.0)[e % 3]),
    "cycles of half the height": (lambda s, o: s.CyclicLR(o, 0.0, 1.0, 1, mode="triangular2",
                                                          cycle_momentum=False),
                                  lambda e: (e % 2) * 0.5 ** (e // 2)),
    "cycles of a range": (lambda s, o: s.CyclicLR(o, 0.0, 1.0, 1, mode="exp_range", gamma=0.9,
                                                  cycle_momentum=False),
                          lambda e: (e % 2) * 0.9**e),
    "cycles by a function": (lambda s, o: s.CyclicLR(o, 0.0, 1.0, 1, scale_fn=lambda e: 1 / e,
                                                     cycle_momentum=False),
                             lambda e: (e % 2) / (e // 2 + 1)),
    "cycles in a sequence": (after_two(lambda s, o: s.CyclicLR(o, 1.0, 3.0, 2,
                                                               cycle_momentum=False)),
                             lambda e: 0.1 + 0.3 * e if e < 2 else (1, 2, 3, 2)[(e - 2) % 4]),
    "restarts in a sequence": (after_two(lambda s, o: s.CosineAnnealingWarmRestarts(o, 2)),
                               lambda e: 0.1 + 0.3 * e if e < 2 else (1, 0.5)[e % 2]),
    "one cycle in a sequence": (after_two(lambda s, o: s.OneCycleLR(
        o, 1.0, 8, pct_start=0.5, anneal_strategy="linear", cycle_momentum=False, div_factor=1.0,
        final_div_factor=4.0)),
        lambda e: 0.1 + 0.3 * e if e < 2 else min(1, 1.75 - 0.1875 * (e - 1))),
    "sequence in a sequence": (after_two(sequence), lambda e: 0.1 + 0.3 * (e % 2) if e < 4
                               else (1 + math.cos(math.pi * (e - 4) / 4)) / 2),
    "sequence": (sequence, lambda e: 0.1 + 0.3 * e if e < 2
                 else (1 + math.cos(math.pi * (e - 2) / 4)) / 2),
}  # fmt: skip
by_name = pytest.mark.parametrize("name", SCHEDULERS)


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
    if name == "sequence in a sequence":
        pytest.skip("PyTorch refuses it behind the first")
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


def test_one_cycle_in_a_sequence_has_its_momentum():
    optimizer = SGD([flow.ones(1, requires_grad=True)], lr=1.0, momentum=0.5)
    cycle = S.OneCycleLR(optimizer, 1.0, 4, pct_start=0.5, anneal_strategy="linear",
                         base_momentum=0.25, max_momentum=0.75)  # fmt: skip
    scheduler = S.SequentialLR(optimizer, [S.ConstantLR(optimizer, 1.0, 1), cycle], [1])
    seen = []
    for _ in range(4):
        scheduler.step()
        seen.append(optimizer.param_groups[0]["momentum"])
    assert seen == pytest.approx([0.75, 0.25, 0.5, 0.75])


@pytest.mark.parametrize("adam", [False, True])
def test_cycles_move_momentum_against_the_rate(adam):
    p = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.Adam([p]) if adam else SGD([p], lr=1.0, momentum=0.5)
    group, seen = optimizer.param_groups[0], []
    scheduler = S.CyclicLR(optimizer, 0.1, 0.9, 2, base_momentum=0.25, max_momentum=0.75)
    for _ in range(6):
        seen.append((group["lr"], group["betas"][0] if adam else group["momentum"]))
        scheduler.step()
    rates_ = [0.1, 0.5, 0.9, 0.5, 0.1, 0.5]
    assert [lr for lr, _ in seen] == pytest.approx(rates_)
    assert [m for _, m in seen] == pytest.approx([0.75, 0.5, 0.25, 0.5, 0.75, 0.5])
    with pytest.raises(ValueError, match=r"^CyclicLR\(\): cycle_momentum needs"):
        S.CyclicLR(flow.optim.Adagrad([p]), 0.1, 0.9)
    for wrong, text in (({"mode": "square"}, "mode is"), ({"scale_mode": "x"}, "scale_mode is"),
                        ({"step_size_up": 0}, "step_size_up is 0"),
                        ({"base_momentum": [1, 2]}, "2 base_momentum for 1 groups"),
                        ({"max_lr": [1, 2]}, "2 max_lr for 1 groups")):  # fmt: skip
        with pytest.raises(ValueError, match=rf"^CyclicLR\(\): {text}"):
            S.CyclicLR(optimizer, **{"base_lr": 0.1, "max_lr": 0.9, **wrong})


def test_a_plateau_is_told_its_epoch():
    scheduler = S.ReduceLROnPlateau(made())
    scheduler.step(1.0, 7)
    assert scheduler.last_epoch == 7
    scheduler.step(1.0)
    scheduler.step(1.0, epoch=3)
    assert scheduler.last_epoch == 3


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


@pytest.mark.parametrize("phases", [2, 3])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("adam", [False, True])
def test_one_cycle_moves_momentum_against_the_rate(phases, strategy, adam):
    x = flow.ones(1, requires_grad=True)
    optimizer = flow.optim.AdamW([x]) if adam else SGD([x], lr=9.0, momentum=0.9)
    scheduler = S.OneCycleLR(optimizer, 2.0, epochs=2, steps_per_epoch=10,
                             anneal_strategy=strategy, three_phase=phases == 3)  # fmt: skip
    found = []
    for _ in range(20):
        (group,) = optimizer.param_groups
        found.append((group["lr"], group["betas"][0] if adam else group["momentum"]))
        optimizer.step()
        scheduler.step()
    assert found[0] == pytest.approx((2 / 25, 0.95)) and found[5] == pytest.approx((2, 0.85))
    assert found[-1] == pytest.approx((2 / 25 / 1e4, 0.95))
    if phases == 3:
        assert found[10] == pytest.approx((2 / 25, 0.95))
    assert adam is False or group["betas"][1] == 0.999
    with pytest.raises(ValueError, match="this is step 21 of 20"):
        scheduler.step()


def test_restarts_within_an_epoch():
    optimizer = made()
    scheduler = S.CosineAnnealingWarmRestarts(optimizer, 2)
    for epoch in (0.5, 1.0, 2.0, 3.5):
        scheduler.step(epoch)
        share = (1 + math.cos(math.pi * (epoch % 2) / 2)) / 2
        assert scheduler.get_last_lr() == pytest.approx([share] * 2)
    scheduler.step()
    assert scheduler.last_epoch == 4


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_a_plateau_lowers_the_rate(mode, threshold_mode):
    optimizer = made()
    scheduler = S.ReduceLROnPlateau(optimizer, mode, 0.5, 1, 0.1, threshold_mode, 1, [0.4, 0.0])
    sign = 1 if mode == "min" else -1
    metrics = [2.0, 1.0, 0.95, 0.95, 0.5, 0.5, 0.5, 0.5, 0.5]
    if mode == "max":
        metrics = [1.0, 2.0, 2.05, 2.05, 3.0, 3.0, 3.0, 3.0, 3.0]
    found = []
    for metric in metrics:
        scheduler.step(flow.tensor(metric))
        found.append(optimizer.param_groups[1]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25] and sign * scheduler.best in (
        0.5,
        -3,
    )
    assert optimizer.param_groups[0]["lr"] == 0.4 and scheduler.get_last_lr() == [0.4, 0.25]
    fresh = S.ReduceLROnPlateau(made(), mode, 0.5, 1, 0.1, threshold_mode, 1, [0.4, 0.0])
    fresh.load_state_dict(scheduler.state_dict())
    assert fresh.best == scheduler.best and fresh.num_bad_epochs == scheduler.num_bad_epochs
    optimizer.add_param_group({"params": [flow.ones(1, requires_grad=True)]})
    with pytest.raises(ValueError, match="2 min_lr for 3 groups"):
        for _ in range(4):
            scheduler.step(metrics[-1])


@pytest.mark.parametrize("make, text", [
    (lambda o: S.ConstantLR(o, 1.5), "factor is 1.5"),
    (lambda o: S.LinearLR(o, 0.0), "start_factor is 0.0"),
    (lambda o: S.LinearLR(o, 0.5, 2.0), "end_factor is 2.0"),
    (lambda o: S.CosineAnnealingWarmRestarts(o, 0), "T_0 is 0"),
    (lambda o: S.CosineAnnealingWarmRestarts(o, 2, 1.5), "T_mult is 1.5"),
    (lambda o: S.OneCycleLR(o, 1.0), "total_steps"), (lambda o: S.OneCycleLR(o, 1, 5.5), "5.5 st"),
    (lambda o: S.OneCycleLR(o, 1.0, 5, pct_start=2.0), "pct_start is 2.0"),
    (lambda o: S.OneCycleLR(o, 1.0, 5, anneal_strategy="up"), 'anneal_strategy is "up"'),
    (lambda o: S.OneCycleLR(o, [1.0], 5), "1 max_lr for 2 groups"),
    (lambda o: S.PolynomialLR(o, 0), "total_iters is 0"),
    (lambda o: S.ReduceLROnPlateau(o, factor=1.0), "factor is 1.0"),
    (lambda o: S.ReduceLROnPlateau(o, "least"), 'mode is "least"'),
    (lambda o: S.ReduceLROnPlateau(o, min_lr=[0.1]), "1 min_lr for 2 groups"),
])  # fmt: skip
def test_bad_numbers_of_schedules(make, text):
    with pytest.raises(ValueError, match=text):
        make(made())


@pytest.mark.parametrize("three_phase", [False, True])
def test_a_phase_without_a_length_is_over_at_once(three_phase):
    optimizer = made()
    scheduler = S.OneCycleLR(optimizer, 1.0, 10, pct_start=0.1, anneal_strategy="linear",
                             div_factor=4.0, final_div_factor=5.0, cycle_momentum=False,
                             three_phase=three_phase)  # fmt: skip
    top = 0.25 if three_phase else 1.0  # behind the first step, of 1, where the last phase starts
    last = [top + (0.05 - top) * e / 9 for e in range(1, 10)]
    found = [pair[0] for pair in rates(optimizer, scheduler, 10)]
    assert found == pytest.approx([1.0, *last])
    whole = made()
    scheduler = S.OneCycleLR(whole, 1.0, 4, pct_start=1.0, cycle_momentum=False,
                             final_div_factor=5.0)  # fmt: skip
    assert rates(whole, scheduler, 4)[3] == [1.0, 1.0]
    assert scheduler.get_last_lr() == pytest.approx([0.008] * 2)


def test_a_plateau_has_pytorchs_attributes():
    optimizer = made()
    scheduler = S.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, min_lr=0.3)
    assert scheduler.factor == 0.5 and scheduler.min_lrs == [0.3, 0.3]
    scheduler.step(1.0)
    scheduler.step(1.0)
    assert scheduler.base_lrs == [1.0, 1.0] and scheduler.get_lr() == [0.5, 0.5]
    assert "initial_lr" not in optimizer.param_groups[0]  # a schedule made later starts from 0.5
    optimizer.add_param_group({"params": [flow.ones(1, requires_grad=True)], "lr": 8.0})
    scheduler.step(1.0)
    assert scheduler.min_lrs == [0.3] * 3 and scheduler.base_lrs == [1.0, 1.0, 8.0]
    assert scheduler.get_lr() == scheduler.get_last_lr() == [0.3, 0.3, 4.0]
    fresh = S.ReduceLROnPlateau(made())
    fresh.load_state_dict(scheduler.state_dict())
    assert fresh.factor == 0.5 and fresh.min_lrs == [0.3] * 3


def test_a_schedule_from_the_step_sizes_there_are():
    class Halving(S.LRScheduler):
        def get_lr(self):
            groups = self.optimizer.param_groups
            return [g["lr"] * (0.5 if self.last_epoch > 0 else 1) for g in groups]

    optimizer = optimizer_with()
    scheduler = Halving(optimizer)
    seen = [scheduler.get_last_lr()[0]]
    for _ in range(3):
        scheduler.step()
        seen += scheduler.get_last_lr()
    assert seen == [1, 0.5, 0.25, 0.125]
    optimizer.param_groups[0]["lr"] = 8.0
    scheduler.step()
    assert scheduler.get_last_lr() == [4]


def test_factors_that_multiply():
    optimizer = optimizer_with(2.0)
    scheduler = S.MultiplicativeLR(optimizer, lambda epoch: 1 / epoch)
    seen = scheduler.get_last_lr()
    for _ in range(3):
        scheduler.step()
        seen += scheduler.get_last_lr()
    assert seen == pytest.approx([2, 2, 1, 1 / 3])
    with pytest.raises(ValueError, match=r"MultiplicativeLR\(\): 2 functions for 1 groups"):
        S.MultiplicativeLR(optimizer, [abs, abs])


@pytest.mark.parametrize("name", [n for n in SCHEDULERS if n != "one cycle"])
def test_a_step_to_an_epoch(name):
    make, expected = SCHEDULERS[name]
    scheduler = make(S, optimizer_with())
    for epoch in (3, 1):
        scheduler.step(epoch)
        assert scheduler.last_epoch == epoch
        assert scheduler.get_last_lr() == pytest.approx([expected(epoch)])
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([expected(2)])


def test_the_state_of_functions_that_are_objects():
    class Power:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    scheduler = S.LambdaLR(optimizer_with(), Power(0.5))
    scheduler.step()
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [{"base": 0.5}]
    other = S.LambdaLR(optimizer_with(), Power(0.1))
    other.load_state_dict(state)
    other.step()
    assert other.get_last_lr() == [0.25]
    plain = S.LambdaLR(optimizer_with(), lambda epoch: 1.0)
    assert plain.state_dict()["lr_lambdas"] == [None]
    plain.load_state_dict(plain.state_dict())


def test_a_tensor_as_step_size():
    lr = flow.tensor(0.5)
    optimizer = optimizer_with(lr)
    scheduler = S.ExponentialLR(optimizer, 0.5)
    lr.mul_(10)
    scheduler.step(1)
    assert [float(v) for v in scheduler.base_lrs + scheduler.get_last_lr()] == [0.5, 0.25]


def test_a_tensor_as_step_size_is_not_read():
    # Nobody can read a tensor on "meta"; one on a GPU would be waited for.
    optimizer = optimizer_with()
    lr = optimizer.param_groups[0]["lr"] = flow.tensor(0.5).to("meta")
    S.ExponentialLR(optimizer, 0.5).step()
    S.LambdaLR(optimizer, lambda epoch: 0.0).step()
    assert optimizer.param_groups[0]["lr"] is lr


@pytest.mark.parametrize("name", [n for n in S.__all__ if n != "ChainedScheduler"])
def test_a_schedule_takes_an_optimizer(name):
    count = {"SequentialLR": 3, "CyclicLR": 3, "LRScheduler": 1}.get(name, 2)
    with pytest.raises(TypeError, match=rf"{name}\(\): optimizer must be an Optimizer, not int"):
        getattr(S, name)(*[3] * count)


def test_schedules_say_which_number_is_wrong():
    optimizer = optimizer_with()
    for epochs in (0, -1):
        with pytest.raises(ValueError, match=rf"StepLR\(\): step_size is {epochs}, but it must be"):
            S.StepLR(optimizer, epochs)
        with pytest.raises(ValueError, match=rf"CosineAnnealingLR\(\): T_max is {epochs}, but"):
            S.CosineAnnealingLR(optimizer, epochs)
    for wrong in (3, [3]):
        with pytest.raises(TypeError, match="schedulers must be LRSchedulers, not int"):
            S.ChainedScheduler(wrong, optimizer)


RESUMED = {
    "LambdaLR": (lambda e: 0.9**e,), "MultiplicativeLR": (lambda e: 0.9,), "StepLR": (3,),
    "MultiStepLR": ([3, 4, 8],), "ExponentialLR": (0.9,), "LinearLR": (0.1, 0.8, 8),
    "ConstantLR": (0.5, 6), "PolynomialLR": (9, 2.0), "CosineAnnealingLR": (7, 0.01),
    "CosineAnnealingWarmRestarts": (3, 2), "OneCycleLR": (1.0, 20),
}  # fmt: skip


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("name", RESUMED)
def test_a_schedule_goes_on_where_training_stopped(name, epochs):
    whole, args = optimizer_with(0.5), RESUMED[name]
    whole.param_groups[0]["momentum"] = 0.9
    scheduler = getattr(S, name)(whole, *args)
    rates(whole, scheduler, epochs)
    other = optimizer_with(0.5)
    other.load_state_dict(whole.state_dict())
    resumed = getattr(S, name)(other, *args, last_epoch=epochs - 1)
    assert resumed.last_epoch == scheduler.last_epoch
    for a, b in zip(rates(whole, scheduler, 5), rates(other, resumed, 5), strict=True):
        assert a == pytest.approx(b, rel=1e-12)


@pytest.mark.parametrize("name", RESUMED)
def test_a_schedule_that_goes_on_needs_the_rates_of_the_start(name):
    with pytest.raises(KeyError, match=rf"{name}\(\): group 0 has no 'initial_lr'"):
        getattr(S, name)(optimizer_with(), *RESUMED[name], last_epoch=3)


def test_the_factor_of_a_constant_schedule_is_what_was_given():
    scheduler = S.ConstantLR(optimizer_with(), 0.25, 3)
    assert scheduler.factor == 0.25
    # As torch.optim.lr_scheduler's state has it.
    scheduler.load_state_dict({"factor": 0.5, "total_iters": 4, "base_lrs": [1.0],
                               "last_epoch": 2, "_step_count": 3, "_last_lr": [0.5]})  # fmt: skip
    scheduler.optimizer.param_groups[0]["lr"] = 0.5
    for rate in (0.5, 0.5, 1.0):
        assert scheduler.get_last_lr() == [rate]
        scheduler.step()


@pytest.mark.parametrize("counts", [Counter([5, 2, 5]), {5: 2, 2: 1}])
def test_milestones_that_are_counted(counts):
    """As torch.optim.lr_scheduler's state has them."""
    optimizer = optimizer_with()
    scheduler = S.MultiStepLR(optimizer, [1], gamma=0.5)
    state = {**scheduler.state_dict(), "milestones": counts}
    scheduler.load_state_dict(state)
    seen = [rate for (rate,) in rates(optimizer, scheduler, 7)]
    assert seen == [1, 1, 0.5, 0.5, 0.5, 0.125, 0.125] and state["milestones"] is counts
    assert scheduler.state_dict()["milestones"] == [2, 5, 5]


def test_the_base_by_its_older_name():
    class Warmup(S._LRScheduler):
        def get_lr(self):
            return [base * min(1, (self.last_epoch + 1) / 4) for base in self.base_lrs]

    optimizer = optimizer_with()
    assert rates(optimizer, Warmup(optimizer), 4) == [[0.25], [0.5], [0.75], [1]]


def test_a_state_that_was_taken_knows_nothing_of_groups_to_come():
    optimizer = optimizer_with()
    scheduler = S.StepLR(optimizer, 1)
    state = scheduler.state_dict()
    optimizer.add_param_group({"params": [flow.nn.Parameter(flow.ones(1))]})
    optimizer.step()
    scheduler.step()
    assert len(state["base_lrs"]) == 1 and len(scheduler.state_dict()["base_lrs"]) == 2
