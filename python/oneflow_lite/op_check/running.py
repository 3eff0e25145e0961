# SPDX-License-Identifier: Apache-2.0
"""The checks that run an op: values, memory, dtypes, devices and gradients.

Each takes a Subject and a device, gives the detail of its line, and ends early with Failed or
Skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import DTypeError, ShapeError, Tensor, _C, dtype
from oneflow_lite.autograd import GradcheckError, enable_grad, gradcheck, gradgradcheck, no_grad
from oneflow_lite.op_check.calls import Call, Subject
from oneflow_lite.op_check.layouts import LAYOUTS
from oneflow_lite.op_check.outcome import Failed, Skipped
from oneflow_lite.op_check.values import TOLERANCE, bits, difference, host, shape_text

MOST_ELEMENTS = 120  # of the inputs, for a check that costs two runs per element


def _where(subject: Subject, call: Call) -> str:
    return f"{subject.name}{call}"


def _calls(subject: Subject, where: str) -> list[Call]:
    return [subject.on(call, where) for call in subject.calls]


def inference(subject: Subject, where: str) -> str:
    """What infer says is what a run gives."""
    for call in _calls(subject, where):
        inferred = subject.infer(call)
        outputs = subject.run(call)
        depends = bool(subject.info and subject.info["data_dependent_shape"])
        for i, (y, (shape, kind)) in enumerate(zip(outputs, inferred, strict=True)):
            if y.dtype is not kind or not (depends or tuple(y.shape) == tuple(shape)):
                raise Failed(
                    f"{_where(subject, call)}: infer says {kind.name}{shape_text(shape)} for "
                    f"output {i}, the run gives {y.dtype.name}{shape_text(y.shape)}"
                )
            if y.device.type != where:
                raise Failed(f"{_where(subject, call)}: output {i} is on {y.device}, not {where}")
    return f"shapes, dtypes and devices of {len(subject.calls)} calls"


def repetition(subject: Subject, where: str) -> str:
    """The same call twice gives the same bits."""
    for call in _calls(subject, where):
        first, second = ([bits(y) for y in subject.run(call)] for _ in range(2))
        if first != second:
            raise Failed(f"{_where(subject, call)}: two runs differ")
    return "two runs give the same bits"


def mutation(subject: Subject, where: str) -> str:
    """Inputs stay as they are, but for the one that the schema marks."""
    for call in _calls(subject, where):
        tensors = [t.clone() for t in call.tensors]
        before = [(bits(t), t._version) for t in tensors]
        outputs = subject.run_as_is(call, tensors)
        for i, (t, (old, version)) in enumerate(zip(tensors, before, strict=True)):
            if i == 0 and subject.kind("mutated"):
                if outputs[0] is not t or t._version == version:
                    raise Failed(
                        f"{_where(subject, call)}: {subject.input_name(i)} is marked as written, "
                        "but is not the result, or its version was not counted up"
                    )
            elif bits(t) != old:
                raise Failed(
                    f"{_where(subject, call)}: {subject.input_name(i)} was changed, but "
                    f"{subject.schema} does not mark it as Tensor(a!)"
                )
    return f"only {subject.input_name(0)}" if subject.kind("mutated") else "no input is changed"


def layouts(subject: Subject, where: str) -> str:
    """Views of larger tensors give what their contiguous copies give."""
    if not any(call.tensors for call in subject.calls):
        raise Skipped("no input is a tensor")
    for call, (name, layout) in itertools.product(_calls(subject, where), LAYOUTS.items()):
        laid = [layout(t) for t in call.tensors]
        if name == "expanded" and subject.kind("mutated"):
            laid[0] = laid[0].contiguous()  # several elements in one place cannot be written
        expected = [host(y) for y in subject.run(call, [t.clone() for t in laid])]
        if subject.kind("mutated"):  # copied into the same layout: a copy would be contiguous
            laid[0] = layout(call.tensors[0]) if name != "expanded" else laid[0]
        outputs = subject.run_as_is(call, laid)
        for y, e in zip(outputs, expected, strict=True):
            if wrong := difference(y, e):
                raise Failed(f"{_where(subject, call)}, inputs {name}: {wrong}")
    return ", ".join(LAYOUTS)


def empty(subject: Subject, where: str) -> str:
    """Wherever infer allows a size to be 0, a run gives the empty result."""
    seen = 0
    for call, small in ((c, v) for c in _calls(subject, where) for v in subject.resized(c, 0)):
        tensors = [_C.zeros(m.shape, dtype=m.dtype, device=where) if m.shape != t.shape else t
                   for t, m in zip(call.tensors, small.tensors, strict=True)]  # fmt: skip
        variant = small.replaced(tensors)
        wanted = subject.infer(variant)
        try:
            shapes = [tuple(y.shape) for y in subject.run(subject.on(variant, where))]
        except ShapeError:
            raise
        except (IndexError, ValueError):
            continue  # the values refuse it: an index into nothing
        if shapes != [tuple(shape) for shape, _ in wanted]:
            raise Failed(f"{_where(subject, variant)}: gave shapes {shapes}")
        seen += 1
    if not seen:
        raise Skipped("no size of the samples may be 0")
    return f"{seen} calls with a size of 0"


def _sweep(subject: Subject, where: str) -> list[dtype]:
    """The dtypes that the kernels are registered for and infer takes, of the first sample."""
    taken = []
    for target in subject.kernel_dtypes(where):
        try:
            call = subject.in_dtype(subject.calls[0], target)
            subject.infer(call)
            if subject.info is None:
                subject.run(call)
        except (DTypeError, NotImplementedError):
            continue
        taken.append(target)
    return taken


def _widest(kinds: Sequence[dtype], floating: bool) -> dtype | None:
    same = [k for k in kinds if k.is_floating_point == floating and k is not _ext.bool]
    return max(same, key=lambda k: k.itemsize, default=None)


def _wide(subject: Subject, call: Call, kinds: Sequence[dtype]) -> Call:
    """The call in float64, or as near to it as there is a kernel."""
    widest = _widest(kinds, True)
    if widest is None or call.main is None or not call.main.is_floating_point:
        return call
    return call.cast(widest)


def dtypes(subject: Subject, where: str, tolerance: dict[str, float]) -> str:
    """Each dtype against the widest of its kind, on the same rounded values."""
    kinds = _sweep(subject, where)
    if not kinds:
        raise Skipped(f"no kernel for {where} takes the samples")
    random = bool(subject.info and subject.info["random"])
    compared = []
    for call, kind in itertools.product(_calls(subject, where), kinds):
        low = subject.in_dtype(call, kind)
        outputs = subject.run(low)
        widest = _widest(kinds, kind.is_floating_point)
        if random or kind is _ext.bool or widest in (kind, None):
            continue
        for y, w in zip(outputs, subject.run(subject.in_dtype(low, widest)), strict=True):
            w = w if w.dtype.is_floating_point else w.to(y.dtype)  # integers wrap around
            if wrong := difference(y, host(w), tolerance):
                raise Failed(f"{_where(subject, low)} against {widest.name}: {wrong}")
        compared += [kind] if kind.is_floating_point and kind not in compared else []
    bounds = [f"{k.name} within {tolerance[k.name]:.1g}" for k in compared]
    others = [k.name for k in kinds if k not in compared]
    return ", ".join([*others, *bounds])


def parity(subject: Subject, where: str, tolerance: dict[str, float]) -> str:
    """A device against the CPU."""
    kinds = [k for k in _sweep(subject, where) if k in _sweep(subject, "cpu")]
    if not kinds:
        raise Skipped(f"no dtype has a kernel for cpu and for {where}")
    for call, kind in itertools.product(_calls(subject, "cpu"), kinds):
        here = subject.in_dtype(call, kind)
        there = subject.on(here, where)
        if subject.info and subject.info["random"]:
            continue
        for a, b in zip(subject.run(here), subject.run(there), strict=True):
            if wrong := difference(b, host(a), tolerance):
                raise Failed(f"{_where(subject, there)} on {where} against cpu: {wrong}")
    return ", ".join(k.name for k in kinds)


# Gradients ------------------------------------------------------------------------------------


def _names(subject: Subject, places: Sequence[int]) -> str:
    return ", ".join(subject.input_name(i) for i in places)


class _Differentiable:
    """A call as gradcheck wants it: a function of float64 tensors, narrowed where it must be."""

    def __init__(self, subject: Subject, call: Call, kinds: Sequence[dtype]) -> None:
        self._subject, self._call = subject, _wide(subject, call, kinds)
        self.narrow = self._call.main
        self.places = [i for i, t in enumerate(call.tensors) if t.dtype.is_floating_point]

    # Differences in float32 need a longer step, and see less.
    @property
    def options(self) -> dict[str, float]:
        wide = self.narrow is _ext.float64
        return {} if wide else {"eps": 1e-2, "atol": 2e-3, "rtol": 2e-2}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        given = [t.to(self.narrow) if t.dtype is _ext.float64 else t for t in tensors]
        outputs = self._subject.run(self._call, given)
        return [y.double() if y.dtype.is_floating_point else y for y in outputs]

    def leaves(self, chosen: Sequence[int]) -> list[Tensor]:
        tensors = [t.double() if t.dtype.is_floating_point else t for t in self._call.tensors]
        for i in chosen:
            tensors[i] = tensors[i].detach().clone().requires_grad_()
        return tensors


def _differentiables(subject: Subject, where: str) -> list[tuple[Call, _Differentiable]]:
    if subject.info and not subject.info["differentiable"]:
        raise Skipped("the op says that it has none")
    if subject.info and not subject.info["has_backward"]:
        raise Skipped("the op has no backward")
    kinds = _sweep(subject, where)
    found = []
    for call in _calls(subject, where):
        f = _Differentiable(subject, call, kinds)
        if f.places and not call.is_empty():
            found.append((call, f))
    if not found:
        raise Skipped("no sample has a floating input that is not empty")
    if found[0][1].narrow not in (_ext.float64, _ext.float32):
        raise Skipped("differences need float32 at least, and there is no kernel for it")
    small = [(c, f) for c, f in found if sum(t.numel() for t in c.tensors) <= MOST_ELEMENTS]
    if not small:
        raise Skipped(f"no sample has at most {MOST_ELEMENTS} elements, and each costs two runs")
    return small


def _without(f: _Differentiable) -> tuple[list[int], dict[int, str]]:
    """The inputs that have a gradient, and why the others have none."""
    having, reasons = [], {}
    for i in f.places:
        leaves = f.leaves([i])
        with enable_grad():
            outputs = [y for y in f(*leaves) if y.requires_grad]
        if not outputs:
            reasons[i] = "the outputs do not depend on it"
            continue
        seeds = [_C.ones_like(y) for y in outputs]
        try:
            _ext.grad(outputs, [leaves[i]], seeds, False, False, True)
            having.append(i)
        except NotImplementedError as error:
            reasons[i] = str(error)
    return having, reasons


def _subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    """All of a few; of many, the single ones and all at once."""
    if len(places) <= 4:
        return [s for n in range(1, len(places) + 1) for s in itertools.combinations(places, n)]
    return [*((i,) for i in places), tuple(places)]


def gradients(subject: Subject, where: str) -> str:
    """Each subset of inputs against differences; expanded incoming gradients as contiguous ones."""
    checked: dict[str, None] = {}
    left_out: dict[str, None] = {}
    narrow = None
    for call, f in _differentiables(subject, where):
        having, reasons = _without(f)
        left_out |= {f"{subject.input_name(i)}: {why}": None for i, why in reasons.items()}
        for chosen in _subsets(having):
            try:
                gradcheck(f, f.leaves(chosen), **f.options)
            except GradcheckError as error:
                raise Failed(
                    f"{_where(subject, call)}, {_names(subject, chosen)} requiring a gradient: "
                    f"{error}"
                ) from None
            checked[_names(subject, chosen)] = None
            narrow = f.narrow
        if having:
            _expanded_gradient(subject, call, f, having)
    if not checked:
        raise Skipped("; ".join(left_out))
    text = "; ".join([f"of {' / '.join(checked)}", *(f"none of {r}" for r in left_out)])
    return text if narrow is _ext.float64 else f"{text}; in float32, within 2e-2"


def _expanded_gradient(subject: Subject, call: Call, f: _Differentiable, chosen: list[int]) -> None:
    """The gradient of a sum is one element, expanded."""
    results = []
    for dense in (True, False):
        leaves = f.leaves(chosen)
        with enable_grad():
            outputs = [y for y in f(*leaves) if y.requires_grad]
        one = _C.ones([], dtype=_ext.float64, device=call.tensors[0].device)
        seeds = [one.expand(y.shape).contiguous() if dense else one.expand(y.shape)
                 for y in outputs]  # fmt: skip
        results.append(_ext.grad(outputs, [leaves[i] for i in chosen], seeds, False, False, True))
    for i, a, b in zip(chosen, *results, strict=True):
        wrong = difference(b, host(a)) if a is not None else None
        if wrong:
            raise Failed(
                f"{_where(subject, call)}: gradient of {subject.input_name(i)} from an expanded "
                f"incoming gradient: {wrong}"
            )


def second_order(subject: Subject, where: str) -> str:
    """The gradient's gradient against differences of the gradient."""
    reason = ""
    checked = 0
    for call, f in _differentiables(subject, where):
        having, _ = _without(f)
        if not having:
            continue
        try:
            if not _records_backward(f, having):
                reason = "backward is not recorded, so it has no gradient"
                continue
            gradgradcheck(f, f.leaves(having), **f.options)
        except NotImplementedError as error:
            reason = str(error)
            continue
        except GradcheckError as error:
            raise Failed(f"{_where(subject, call)}: {error}") from None
        checked += 1
    if not checked:
        raise Skipped(reason or "no input has a gradient")
    return f"{checked} calls" + (f"; not all: {reason}" if reason else "")


def _records_backward(f: _Differentiable, chosen: list[int]) -> bool:
    leaves = f.leaves(chosen)
    with enable_grad():
        outputs = [y for y in f(*leaves) if y.requires_grad]
        seeds = [_C.ones_like(y).requires_grad_() for y in outputs]
        grads = _ext.grad(outputs, [leaves[i] for i in chosen], seeds, True, True, True)
    return any(g is not None and g.requires_grad for g in grads)


def without_grad(check: Callable[..., str]) -> Callable[..., str]:
    def run(*args: Any) -> str:
        with no_grad():
            return check(*args)

    return run
