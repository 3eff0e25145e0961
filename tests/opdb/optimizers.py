# SPDX-License-Identifier: Apache-2.0
"""Holds optim against PyTorch's optimizer samples (torch.testing's optim_db), and the schedules.

    python tests/opdb/optimizers.py [--only PATTERN...] [--all]

Each sample of each optimizer that optim has takes 10 steps in both from the same parameters, with
the same gradients, of which some are None; LBFGS, which evaluates a loss itself, with the same
loss. Parameters, options and states must be torch's, and go on alike from the other library's
state. Schedules take 50 steps, the last 30 from a state. What differs stands in
optimizer_differences.txt.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import differences
import numpy as np
import samples
import schedules
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import oneflow_lite as flow

SHAPES = [(), (3,), (4, 5), (2, 3, 4), (0,)]
BOUND = {torch.float32: 1e-5, torch.float64: 1e-9, torch.bfloat16: 3e-2}
STEPS = 10
# LBFGS decides by differences of losses, which float32 rounds another way in each library.
NOT_OF = {"LBFGS": (torch.float32, torch.bfloat16)}
SCRATCH = {"al"}  # in a state of torch's
Found = Iterator[tuple[str, str]]


def ours(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """As samples.ours, with sets; of a state, too."""
    seen = {} if seen is None else seen
    if isinstance(value, dict):
        return {k: ours(v, seen) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(ours(v, seen) for v in value)
    return samples.ours(value, seen)


def theirs(value: Any) -> Any:
    """A state of ours as torch's."""
    if isinstance(value, dict):
        return {k: theirs(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(theirs, value))
    if not isinstance(value, flow.Tensor):
        return value
    wide = torch.from_numpy(value.detach().to(flow.float64).numpy().copy())
    return wide.to(getattr(torch, value.dtype.name))


def numbers(x: Any) -> np.ndarray:
    if isinstance(x, list):
        return np.concatenate([np.zeros(0), *(numbers(v).reshape(-1) for v in x)])
    if isinstance(x, torch.Tensor):
        return x.detach().double().numpy()
    return x.detach().to(flow.float64).numpy() if isinstance(x, flow.Tensor) else np.asarray(x)


def loss_of(params: list[Any]) -> Any:
    """A convex loss of all parameters but one, whose gradient is None."""
    total = 0
    for i, p in enumerate(params):
        if i == 1 or p.numel() == 0:
            continue
        x = p.reshape(-1)
        total = total + ((x - i) ** 2).sum() + 0.1 * ((x[1:] - x[:-1]) ** 4).sum()
        total = total + 3 * (x[0] + x[-1]) ** 2
    return total


@dataclasses.dataclass
class Run:
    """Both optimizers, their parameters, and how far they have come."""

    name: str
    options: dict[str, Any]
    dtype: torch.dtype
    params: list[torch.Tensor]
    own: list[flow.Tensor]
    optimizer: Any = None
    mine: Any = None
    step: int = 0

    def make(self) -> Run:
        self.optimizer = getattr(torch.optim, self.name)(self.params, **copy.deepcopy(self.options))
        self.mine = getattr(flow.optim, self.name)(self.own, **ours(self.options))
        return self

    def copied(self) -> Run:
        """Another one, at the same place, with new optimizers."""
        params = [p.detach().clone().requires_grad_() for p in self.params]
        own = [p.detach().clone().requires_grad_() for p in self.own]
        return Run(self.name, self.options, self.dtype, params, own, step=self.step).make()

    def closures(self, optimizer: Any, params: list[Any]) -> tuple[Callable[[], Any], ...]:
        """What step() is given."""
        if self.name != "LBFGS":
            return ()

        def closure() -> Any:
            optimizer.zero_grad()
            loss = loss_of(params) * (-1 if self.options.get("maximize") else 1)
            loss.backward()
            return loss

        return (closure,)

    def go(self, steps: int) -> Found:
        bound = BOUND[self.dtype]
        for _ in range(steps):
            rng = np.random.default_rng(self.step)
            for i, (p, q) in enumerate(zip(self.params, self.own, strict=True)):
                grad = np.asarray(rng.standard_normal(tuple(p.shape)))
                left_out = (self.step + i) % 4 == 3
                p.grad = None if left_out else torch.from_numpy(grad).to(p.dtype)
                q.grad = None if left_out else flow.from_numpy(grad).to(q.dtype)
            for optimizer, params in ((self.optimizer, self.params), (self.mine, self.own)):
                optimizer.step(*self.closures(optimizer, params))
            for i, (p, q) in enumerate(zip(self.params, self.own, strict=True)):
                if not np.allclose(numbers(p), numbers(q), rtol=bound, atol=bound):
                    yield "value", f"parameter {i} at step {self.step}"
                    return
            self.step += 1


def starts(name: str, options: dict[str, Any], dtype: torch.dtype) -> Run:
    rng = np.random.default_rng(0)
    params = [torch.from_numpy(np.asarray(rng.standard_normal(s))).to(dtype) for s in SHAPES]
    own = [samples.tensor_of(p).requires_grad_() for p in params]
    return Run(name, options, dtype, [p.requires_grad_() for p in params], own)


def shown(options: dict[str, Any]) -> str:
    return ", ".join(f"{k}=tensor({v.item():g})" if torch.is_tensor(v) else f"{k}={v}"
                     for k, v in options.items())  # fmt: skip


def same_groups(run: Run) -> Found:
    a, b = run.optimizer.param_groups[0], run.mine.param_groups[0]
    for key in a.keys() - {"params"}:
        if key not in b:
            yield "group", f"{key} is not there"
        elif not np.array_equal(numbers(a[key]), numbers(b[key])):
            yield "group", f"{key} is {b[key]}, torch has {a[key]}"


def same_states(run: Run) -> Found:
    a, b = run.optimizer.state_dict()["state"], run.mine.state_dict()["state"]
    if a.keys() != b.keys():
        yield "state", f"of parameters {sorted(b)}, torch's of {sorted(a)}"
        return
    bound = 3 * BOUND[run.dtype]
    for key, kept in a.items():
        kept = {k: v for k, v in kept.items() if v is not None and k not in SCRATCH}
        if set(kept) != set(b[key]):
            yield "state", f"{sorted(b[key])}, torch has {sorted(kept)}"
            return
        for name, value in b[key].items():
            if not np.allclose(numbers(kept[name]), numbers(value), rtol=bound, atol=bound):
                yield "state", f"{name} of parameter {key}"


def same_loaded(run: Run) -> Found:
    """Both go on alike from the other one's state."""
    for what in ("torch's", "ours"):
        other = run.copied()
        state = run.optimizer.state_dict() if what == "torch's" else run.mine.state_dict()
        mine, its = (ours(state), state) if what == "torch's" else (state, theirs(state))
        try:
            other.mine.load_state_dict(copy.deepcopy(mine))
            other.optimizer.load_state_dict(copy.deepcopy(its))
            yield from ((kind, f"from a state of {what}: {text}") for kind, text in other.go(4))
        except Exception as e:
            yield "refused", f"a state of {what}: {type(e).__name__}: {e}"


def same_run(name: str, options: dict[str, Any], dtype: torch.dtype) -> Found:
    run = starts(name, options, dtype)
    try:
        run.make()
    except Exception as e:
        yield "refused", f"{type(e).__name__}: {e}"
        return
    yield from same_groups(run)
    found = list(run.go(STEPS))
    yield from found or [*same_states(run), *same_loaded(run)]


def same_errors(info: Any) -> Found:
    for error in info.optim_error_inputs_func("cpu", torch.float32):
        given = error.optimizer_error_input
        params = [torch.ones(2, 2)] if given.params is None else given.params
        wanted, got = error.error_type.__name__, "none"
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                made = getattr(flow.optim, info.name)(ours(params), **ours(given.kwargs))
                if error.error_on is OptimizerErrorEnum.STEP_ERROR:
                    made.step()
                got = "a warning" if warned else got
            except Exception as e:
                got = type(e).__name__
                if isinstance(e, error.error_type):
                    continue
        if not (got == "a warning" and issubclass(error.error_type, Warning)):
            yield "error", f"{given.desc}: {got}, torch has {wanted}"


def same_signature(info: Any) -> Found:
    own = inspect.signature(getattr(flow.optim, info.name)).parameters
    for name, p in inspect.signature(info.optim_cls).parameters.items():
        if name not in own:
            yield "signature", f"{name} is not there"
        elif own[name].default != p.default:
            yield "signature", f"{name}={own[name].default}, torch has {p.default}"


def run(info: Any) -> tuple[int, set[tuple[str, str, str]]]:
    """How many samples there are, and (dtype, kind, text) of each difference."""
    given = [sample.kwargs for sample in info.optim_inputs_func("cpu")]
    given += [{**options, way: True} for way in info.supported_impls for options in given[:2]]
    found = {("", *one) for part in (same_signature(info), same_errors(info)) for one in part}
    dtypes = [d for d in BOUND if d not in NOT_OF.get(info.name, ())]
    for options, dtype in itertools.product(given, dtypes):
        found |= {(samples.name_of(dtype), kind, f"({shown(options)}): {text}")
                  for kind, text in same_run(info.name, options, dtype)}  # fmt: skip
    return len(given) * len(dtypes), found


def main() -> int:
    options = differences.options(__doc__)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    infos = [info for info in optim_db if info.name in dir(flow.optim)]
    report = differences.Report("optimizer_differences.txt", options)
    for info in infos:
        if report.wanted(info.name):
            report.add(info.name, *run(info))
    print(f"{len(infos)} of {len(optim_db)} optimizers are in optim.")
    for name in schedules.NAMES:
        if report.wanted(name):
            report.add(name, *schedules.run(name))
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
