# SPDX-License-Identifier: Apache-2.0
"""Schedules of optim.lr_scheduler beside torch's: step sizes and momenta over 50 steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import oneflow_lite as flow

STEPS, SAVED = 50, 20
Make = Callable[[Any, Any], Any]

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "LambdaLR": [{"lr_lambda": lambda e: 0.95**e},
                 {"lr_lambda": [lambda e: 1 / (e + 1), lambda e: 0.9**e]}],
    "MultiplicativeLR": [{"lr_lambda": lambda e: 0.95},
                         {"lr_lambda": [lambda e: 0.9, lambda e: 0.8]}],
    "StepLR": [{"step_size": 3}, {"step_size": 7, "gamma": 0.5}],
    "MultiStepLR": [{"milestones": [2, 5, 5, 20], "gamma": 0.3}],
    "ConstantLR": [{}, {"factor": 0.5, "total_iters": 9}, {"factor": 1.0, "total_iters": 0}],
    "LinearLR": [{}, {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 11}],
    "ExponentialLR": [{"gamma": 0.9}],
    "PolynomialLR": [{}, {"total_iters": 20, "power": 2.0}],
    "CosineAnnealingLR": [{"T_max": 10}, {"T_max": 7, "eta_min": 0.01}, {"T_max": 60}],
    "CosineAnnealingWarmRestarts": [{"T_0": 5}, {"T_0": 3, "T_mult": 2, "eta_min": 0.001}],
    "OneCycleLR": [
        {"max_lr": 1.0, "total_steps": 60}, {"max_lr": 1.0, "total_steps": 60, "three_phase": True},
        {"max_lr": [1.0, 0.5], "epochs": 10, "steps_per_epoch": 6, "anneal_strategy": "linear",
         "pct_start": 0.2, "div_factor": 10.0, "final_div_factor": 100.0},
        {"max_lr": 1.0, "total_steps": 60, "cycle_momentum": False},
    ],
    "CyclicLR": [
        {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 7},
        {"base_lr": [0.01, 0.02], "max_lr": [1.0, 0.5], "step_size_up": 4, "step_size_down": 9,
         "mode": "triangular2", "base_momentum": [0.7, 0.8], "max_momentum": 0.95},
        {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 5, "mode": "exp_range", "gamma": 0.97},
        {"base_lr": 0.01, "max_lr": 1.0, "step_size_up": 5, "cycle_momentum": False,
         "scale_fn": lambda step: 0.5 ** (step / 20), "scale_mode": "iterations"},
        {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 6},
    ],
    "ReduceLROnPlateau": [
        {}, {"mode": "max", "patience": 2, "factor": 0.5},
        {"patience": 1, "cooldown": 3, "min_lr": [0.01, 0.02], "threshold": 0.1,
         "threshold_mode": "abs"},
    ],
}  # fmt: skip

SEQUENCES = [
    ("LinearLR", "CosineAnnealingLR"), ("ConstantLR", "ExponentialLR"),
    ("LinearLR", "CosineAnnealingWarmRestarts"), ("LinearLR", "OneCycleLR"),
    ("ExponentialLR", "PolynomialLR"), ("CosineAnnealingLR", "StepLR"), ("LinearLR", "MultiStepLR"),
    ("LinearLR", "LambdaLR"), ("CyclicLR", "ExponentialLR"),
]  # fmt: skip


def _one(name: str, options: dict[str, Any]) -> Make:
    return lambda module, optimizer: getattr(module, name)(optimizer, **options)


def _sequence(names: tuple[str, ...]) -> Make:
    return lambda module, optimizer: module.SequentialLR(
        optimizer, [_one(n, OPTIONS[n][-1])(module, optimizer) for n in names], milestones=[6]
    )


def _chain(names: tuple[str, ...]) -> Make:
    return lambda module, optimizer: module.ChainedScheduler(
        [_one(n, OPTIONS[n][-1])(module, optimizer) for n in names]
    )


CASES: dict[str, list[tuple[str, Make]]] = {
    **{name: [(", ".join(map(str, o)), _one(name, o)) for o in options]
       for name, options in OPTIONS.items()},
    "SequentialLR": [(", ".join(names), _sequence(names)) for names in SEQUENCES],
    "ChainedScheduler": [(", ".join(names), _chain(names)) for names in
                         (("ConstantLR", "ExponentialLR"), ("CosineAnnealingLR", "StepLR"))],
}  # fmt: skip
NAMES = list(CASES)


def _optimizer(library: Any, adam: bool) -> Any:
    groups = [{"params": [library.ones(2).requires_grad_()]},
              {"params": [library.ones(3).requires_grad_()], "lr": 0.3}]  # fmt: skip
    if adam:
        return library.optim.Adam(groups, lr=0.1)
    return library.optim.SGD(groups, lr=0.1, momentum=0.9)


def _seen(optimizer: Any) -> list[float]:
    groups = optimizer.param_groups
    return [float(g["lr"]) for g in groups] + [
        float(g["momentum"] if "momentum" in g else g["betas"][0]) for g in groups
    ]


def compared(make: Make, adam: bool, state_of: str) -> Iterator[tuple[str, str]]:
    """Steps of both, on from a state after some of them."""
    modules = (torch.optim.lr_scheduler, flow.optim.lr_scheduler)
    pair = [_optimizer(torch, adam), _optimizer(flow, adam)]
    both = [make(module, o) for module, o in zip(modules, pair, strict=True)]
    rng = np.random.default_rng(0)
    for step in range(STEPS):
        seen = [_seen(o) for o in pair]
        if not np.allclose(*seen, rtol=1e-9, atol=1e-12):
            yield "rate", f"at step {step} {seen[1]}, torch has {seen[0]}"
            return
        if not np.allclose(*(s.get_last_lr() for s in both)):
            yield "rate", f"get_last_lr() at step {step}"
        metric = (float(rng.random()),) if hasattr(both[0], "num_bad_epochs") else ()
        for optimizer, scheduler in zip(pair, both, strict=True):
            optimizer.step()
            scheduler.step(*metric)
        if step == SAVED:
            state, kept = copy.deepcopy(both[state_of == "ours"].state_dict()), pair[1].state_dict()
            pair[1] = _optimizer(flow, adam)
            both[1] = make(modules[1], pair[1])
            both[1].load_state_dict(state)
            pair[1].load_state_dict(copy.deepcopy(kept))


def run(name: str) -> tuple[int, set[tuple[str, str, str]]]:
    """How many runs there are, and ("", kind, text) of each difference."""
    count, found = 0, set()
    for text, make in CASES[name]:
        for adam in (False, True):
            for state_of in ("ours", "torch's"):
                count += 1
                try:
                    found |= {("", kind, f"({text}), then {state_of}: {what}")
                              for kind, what in compared(make, adam, state_of)}  # fmt: skip
                except Exception as e:
                    found.add(("", "refused", f"({text}), then {state_of}: "
                               f"{type(e).__name__}: {e}"))  # fmt: skip
    return count, found
