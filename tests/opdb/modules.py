# SPDX-License-Identifier: Apache-2.0
"""Holds the modules of nn against PyTorch's module samples (torch.testing's module_db).

    python tests/opdb/modules.py [--only PATTERN...] [--all]

Each sample of each module that nn has is built in both with the same arguments and state. Names of
the state, attributes, repr, copies, values, dtypes, shapes, gradients of inputs and parameters,
gradients of those and errors must be torch's, or the difference stands in module_differences.txt.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import inspect
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import differences
import samples
import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import oneflow_lite as flow

DTYPES = (torch.float32, torch.float64, torch.bfloat16)
Found = Iterator[tuple[str, str]]


@dataclasses.dataclass
class Pair:
    """A module of torch's and ours with the same state, and what it is called with."""

    theirs: torch.nn.Module
    mine: flow.nn.Module
    sample: Any
    text: str


def ours(value: Any, seen: dict) -> Any:
    """As samples.ours, and the one module that is an argument of another."""
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        heads, bias = value.self_attn.num_heads, value.linear1.bias is not None
        return flow.nn.TransformerEncoderLayer(
            value.linear1.in_features, heads, value.linear1.out_features, value.dropout.p,
            ours(value.activation, seen), value.norm1.eps, value.self_attn.batch_first,
            value.norm_first, bias,
        )  # fmt: skip
    if inspect.isbuiltin(value):
        return getattr(flow.nn.functional, value.__name__)
    if isinstance(value, (list, tuple)):
        return type(value)(ours(v, seen) for v in value)
    return samples.ours(value, seen)


def called(function: Any, given: Any, seen: dict) -> Any:
    return function(*ours(given.args, seen), **{k: ours(v, seen) for k, v in given.kwargs.items()})


def leaves_of(given: Any) -> Any:
    """The arguments with tensors of their own, all leaves."""

    def one(v: Any) -> Any:
        if isinstance(v, (list, tuple)):
            return type(v)(map(one, v))
        return v.detach().clone().requires_grad_(v.requires_grad) if torch.is_tensor(v) else v

    kwargs = {k: one(v) for k, v in given.kwargs.items()}
    return types.SimpleNamespace(args=one(tuple(given.args)), kwargs=kwargs)


def shown(given: Any) -> str:
    def one(v: Any) -> str:
        if isinstance(v, torch.nn.Module):
            return type(v).__name__
        return f"{list(v.shape)}" if torch.is_tensor(v) else getattr(v, "__name__", repr(v))

    return ", ".join([*map(one, given.args), *(f"{k}={one(v)}" for k, v in given.kwargs.items())])


def pairs(info: Any, dtype: torch.dtype, training: bool) -> Iterator[Pair | tuple[str, str]]:
    torch.manual_seed(0)
    for sample in info.module_inputs_func(info, "cpu", dtype, True, training):
        given, text = sample.constructor_input, shown(sample.constructor_input)
        theirs = info.module_cls(*given.args, **given.kwargs).to(dtype).train(training)
        try:
            mine = called(getattr(flow.nn, info.name.removeprefix("nn.")), given, {})
        except Exception as e:
            yield "refused", f"({text}): {type(e).__name__}: {e}"
            continue
        mine = mine.to(getattr(flow, samples.name_of(dtype))).train(training)
        yield Pair(theirs, mine, leaves_of(sample.forward_input), text)


def same_state(pair: Pair) -> Found:
    theirs, mine = pair.theirs.state_dict(), pair.mine.state_dict()
    kinds = [[(k, tuple(v.shape)) for k, v in state.items()] for state in (theirs, mine)]
    if kinds[0] != kinds[1]:
        yield "state", f"({pair.text}): {kinds[1]}, torch has {kinds[0]}"
        return
    pair.mine.load_state_dict({k: samples.tensor_of(v) for k, v in theirs.items()})
    names = [[n for n, _ in m.named_parameters()] for m in (pair.theirs, pair.mine)]
    if names[0] != names[1]:
        yield "state", f"({pair.text}): parameters {names[1]}, torch has {names[0]}"
    texts = [repr(pair.theirs).replace("NonDynamicallyQuantizable", ""), repr(pair.mine)]
    for a, b in zip(*(text.splitlines() for text in texts), strict=False):
        if a != b:
            yield "repr", f"{b.strip()}, torch has {a.strip()}"
    if texts[0].count("\n") != texts[1].count("\n"):
        yield "repr", f"{texts[1]}, torch has {texts[0]}"


def same_attributes(pair: Pair) -> Found:
    for name, value in vars(pair.theirs).items():
        if name.startswith("_"):
            continue
        if not hasattr(pair.mine, name):
            yield "attribute", f"{name} is not there"
        elif isinstance(value, (int, float, str, tuple, type(None))):
            own = getattr(pair.mine, name)
            if value != own or type(value) is not type(own):
                yield "attribute", f"{name} is {own!r}, torch has {value!r}"


def same_copies(module: flow.nn.Module) -> Found:
    for kind, other in (("pickle", pickle.loads(pickle.dumps(module))),
                        ("deepcopy", copy.deepcopy(module))):  # fmt: skip
        states = [m.state_dict() for m in (module, other)]
        same = list(states[0]) == list(states[1]) and repr(module) == repr(other)
        same &= all(flow.equal(a, states[1][k]) for k, a in states[0].items())
        same &= all(a is not states[1][k] for k, a in states[0].items())
        if not same or [m.training for m in module.modules()] != [
            m.training for m in other.modules()
        ]:
            yield "copy", f"{kind} gives another module"


def as_case(pair: Pair, expected: Any, wide: bool = False) -> samples.Case:
    process = types.SimpleNamespace(output_process_fn_grad=lambda y: y)
    return samples.Case(None, None, process, expected, pair.text, wide)


def same_results(pair: Pair, dtype: torch.dtype, second: bool) -> Found:
    given, seen = pair.sample, {}
    try:
        expected = pair.theirs(*given.args, **given.kwargs)
    except Exception:  # torch does not take it
        return
    try:
        actual = called(pair.mine, given, seen)
    except samples.Complex:
        return
    except Exception as e:
        yield "refused", f"({pair.text}) called with ({shown(given)}): {type(e).__name__}: {e}"
        return
    for a, b in zip(pair.theirs.parameters(), pair.mine.parameters(), strict=True):
        seen[id(a)] = (a, b)
    case = as_case(pair, expected)
    found = samples.compared(case, actual, seen, False)
    if found and dtype is torch.bfloat16 and not differs_from_float64(pair, actual, seen):
        return
    for kind, what in found:
        yield kind, f"({pair.text}): {what}"
    if second and not found:
        yield from same_second(case, actual, seen)


def differs_from_float64(pair: Pair, actual: Any, seen: dict) -> bool:
    """Of 16-bit numbers: whether we are off what float64 gives, too."""
    theirs = copy.deepcopy(pair.theirs).double()
    wide = leaves_of(pair.sample)
    pick = [*wide.args, *wide.kwargs.values()]
    to_wide = {id(t): t.detach().double().requires_grad_(t.requires_grad)
               for t in pick if torch.is_tensor(t) and t.is_floating_point()}  # fmt: skip
    expected = theirs(*(to_wide.get(id(t), t) for t in wide.args),
                      **{k: to_wide.get(id(t), t) for k, t in wide.kwargs.items()})  # fmt: skip
    own = [*pair.sample.args, *pair.sample.kwargs.values()]
    again = {}
    for a, w in zip(own, pick, strict=True):
        if id(a) in seen and id(w) in to_wide:
            again[id(to_wide[id(w)])] = (to_wide[id(w)], seen[id(a)][1])
    for a, b in zip(theirs.parameters(), pair.mine.parameters(), strict=True):
        again[id(a)] = (a, b)
    return bool(samples.compared(as_case(pair, expected, True), actual, again, False))


def same_second(case: samples.Case, actual: Any, seen: dict) -> Found:
    """The gradients of the gradients."""
    pairs = zip(samples.leaves(case.expected), samples.leaves(actual), strict=True)
    pairs = [(a, b) for a, b in pairs if torch.is_tensor(a) and a.requires_grad]
    inputs = [(t, x) for t, x in seen.values() if t.requires_grad]
    if not pairs or not inputs:
        return
    theirs = torch.autograd.grad(sum(a.sum() for a, _ in pairs), [t for t, _ in inputs],
                                 create_graph=True, allow_unused=True)  # fmt: skip
    total = pairs[0][1].sum()
    for _, b in pairs[1:]:
        total = total + b.sum()
    mine = flow.autograd.grad(total, [x for _, x in inputs], create_graph=True, allow_unused=True)
    first = [(a, b) for a, b in zip(theirs, mine, strict=True)
             if a is not None and b is not None and a.requires_grad]  # fmt: skip
    if not all(b.requires_grad for _, b in first):
        yield "second", f"({case.text}): a gradient has none, torch's has one"
        return
    if not first:
        return
    expected, result = [a.square() for a, _ in first], [b.square() for _, b in first]
    for _, what in samples.gradients_compared(
        dataclasses.replace(case, expected=expected), result, seen
    ):
        yield "second", f"({case.text}): {what}"


def same_errors(info: Any) -> Found:
    for error in info.module_error_inputs_func(info, "cpu", torch.float32, False, False):
        given = error.module_error_input
        text = shown(given.constructor_input)
        try:
            made = called(getattr(flow.nn, info.name.removeprefix("nn.")),
                          given.constructor_input, {})  # fmt: skip
            if error.error_on is not ModuleErrorEnum.CONSTRUCTION_ERROR:
                called(made, given.forward_input, {})
            yield "error", f"({text}): none, torch has {error.error_type.__name__}"
        except samples.Complex:
            continue
        except Exception as e:
            wanted = getattr(builtins, error.error_type.__name__, Exception)
            if not isinstance(e, wanted):
                yield "error", f"({text}): {type(e).__name__}, torch has {wanted.__name__}"


def run(info: Any) -> tuple[int, set[tuple[str, str, str]]]:
    """How many samples there are, and (dtype, kind, text) of each difference."""
    count, found = 0, set()
    for dtype in DTYPES:
        second = info.supports_gradgrad and dtype is torch.float64
        for training in (True, False):
            for pair in pairs(info, dtype, training):
                count += 1
                if not isinstance(pair, Pair):
                    found.add((samples.name_of(dtype), *pair))
                    continue
                parts = [same_state(pair), same_attributes(pair), same_copies(pair.mine),
                         same_results(pair, dtype, second)]  # fmt: skip
                found |= {(samples.name_of(dtype), *one) for part in parts for one in part}
    if info.module_error_inputs_func:
        found |= {("float32", *one) for one in same_errors(info)}
    return count, found


def main() -> int:
    options = differences.options(__doc__)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    infos = [i for i in module_db if i.name.startswith("nn.") and i.name[3:] in dir(flow.nn)]
    report = differences.Report("module_differences.txt", options)
    for info in infos:
        if report.wanted(info.name[3:]):
            report.add(info.name[3:], *run(info))
    print(f"{len(infos)} of {len(module_db)} modules are in nn.")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
