# SPDX-License-Identifier: Apache-2.0
"""What tests of schedules share: optimizers, and the step sizes that they are given."""

from numerics import flow

SGD, S = flow.optim.SGD, flow.optim.lr_scheduler


def optimizer_with(lr=1.0):
    return SGD([flow.ones(1, requires_grad=True)], lr=lr)


def made():
    a, b = flow.ones(1, requires_grad=True), flow.ones(1, requires_grad=True)
    return SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=1.0)


def rates(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        found.append(scheduler.get_last_lr())
        optimizer.step()
        scheduler.step()
    return found
