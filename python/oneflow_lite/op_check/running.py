# SPDX-License-Identifier: Apache-2.0
"""The checks that run an op: values, memory, dtypes and devices.

Each takes a Subject and a device, gives the detail of its line, and ends early with Failed or
Skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, dtype
from oneflow_lite.autograd import no_grad
from oneflow_lite.op_check.calls import Call, Subject, widest
from oneflow_lite.op_check.layouts import LAYOUTS
from oneflow_lite.op_check.outcome import Failed, Random, Skipped, counted
from oneflow_lite.op_check.values import bits, difference, host, shape_text


def described(subject: Subject, call: Call) -> str:
    return f"{subject.name}{call}"


def calls_on(subject: Subject, where: str) -> list[Call]:
    return [subject.on(call, where) for call in subject.calls]


def variants(subject: Subject, call: Call, size: int) -> Iterator[Call]:
    """The call with this for one of its sizes (0: empty), wherever infer allows it."""
    for changed in subject.resized(call, lambda n: size):
        yield changed.replaced([
            _C.zeros(m.shape, dtype=m.dtype, device=t.device) if m.shape != t.shape else t
            for t, m in zip(call.tensors, changed.tensors, strict=True)
        ])  # fmt: skip


def shapes_of_size(subject: Subject, where: str, size: int) -> int:
    """In how many variants of that size a run gave the shapes that infer says."""
    seen = 0
    for call in (v for c in calls_on(subject, where) for v in variants(subject, c, size)):
        wanted = [tuple(shape) for shape, _ in subject.infer(call)]
        try:
            shapes = [tuple(y.shape) for y in subject.run(call)]
        except (IndexError, ValueError):
            if all(t.dtype.is_floating_point for t in call.tensors):
                raise
            continue  # the values refuse it: an index into nothing
        if shapes != wanted:
            raise Failed(f"{described(subject, call)}: gave shapes {shapes}, not {wanted}")
        seen += 1
    return seen


def _inferred(subject: Subject, call: Call) -> list[tuple[tuple[int, ...], dtype]]:
    try:
        return subject.infer(call)
    except RuntimeError as error:
        if subject.info is None and " on meta" in str(error):
            raise Skipped(f"a function that uses tensors of its own: {error}") from None
        raise


def inference(subject: Subject, where: str) -> str:
    """What infer says is what a run gives."""
    for call in calls_on(subject, where):
        inferred = _inferred(subject, call)
        outputs = subject.run(call)
        depends = bool(subject.info and subject.info["data_dependent_shape"])
        for i, (y, (shape, kind)) in enumerate(zip(outputs, inferred, strict=True)):
            if y.dtype is not kind or not (depends or tuple(y.shape) == tuple(shape)):
                raise Failed(
                    f"{described(subject, call)}: infer says {kind.name}{shape_text(shape)} for "
                    f"output {i}, the run gives {y.dtype.name}{shape_text(y.shape)}"
                )
            if y.device.type != where:
                raise Failed(
                    f"{described(subject, call)}: output {i} is on {y.device}, not {where}"
                )
    if not (subject.info and subject.info["data_dependent_shape"]):
        shapes_of_size(subject, where, 1)
    return f"shapes, dtypes and devices of {counted(len(subject.calls))}{_blind_spot(subject)}"


def _blind_spot(subject: Subject) -> str:
    """A warning where every sample is square: a shape with two dims exchanged would pass."""
    shapes = [t.shape for call in subject.calls for t in call.tensors if t.ndim > 1]
    if not shapes or any(len(set(shape)) > 1 for shape in shapes):
        return ""
    return "; the sizes of each sample are equal, which hides exchanged dims: add one like (3, 4)"


def repetition(subject: Subject, where: str) -> str:
    """The same call twice gives the same bits."""
    for call in calls_on(subject, where):
        first, second = ([bits(y) for y in subject.run(call)] for _ in range(2))
        if first != second:
            why = _cause(subject, call)
            raise Random(f"{described(subject, call)}: two equal calls differ. {why}")
    return "two runs give the same bits"


def _cause(subject: Subject, call: Call) -> str:
    """Whether equal seeds make two calls equal; the generator goes on from where it was."""
    generator = _ext.default_generator(call.tensors[0].device if call.tensors else "cpu")
    state, runs = generator._get_state(), []
    try:
        for _ in range(2):
            generator.manual_seed(0)
            runs.append([bits(y) for y in subject.run(call)])
    finally:
        generator._set_state(state)
    if runs[0] == runs[1]:
        return ("The function is random: it draws from flow's generator. Check it without: "
                "module.eval(), p=0, or flow.manual_seed in the function")  # fmt: skip
    return ("With equal seeds too: the function draws random numbers elsewhere, keeps a state, or "
            "is not deterministic")  # fmt: skip


def mutation(subject: Subject, where: str) -> str:
    """Inputs stay as they are, but for the one that the schema marks."""
    for call in calls_on(subject, where):
        tensors = [t.clone() for t in call.tensors]
        before = [(bits(t), t._version) for t in tensors]
        outputs = subject.run_as_is(call, tensors)
        for i, (t, (old, version)) in enumerate(zip(tensors, before, strict=True)):
            if i == 0 and subject.kind("mutated"):
                if outputs[0] is not t or t._version == version:
                    raise Failed(
                        f"{described(subject, call)}: {subject.input_name(i)} is marked as "
                        "written, but is not the result, or its version was not counted up"
                    )
            elif bits(t) != old:
                raise Failed(
                    f"{described(subject, call)}: {subject.input_name(i)} was changed, but "
                    f"{subject.schema} does not mark it as Tensor(a!)"
                )
    return f"only {subject.input_name(0)}" if subject.kind("mutated") else "no input is changed"


def layouts(subject: Subject, where: str) -> str:
    """Views of larger tensors give what their contiguous copies give."""
    if not any(call.tensors for call in subject.calls):
        raise Skipped("no input is a tensor")
    for call, (name, layout) in itertools.product(calls_on(subject, where), LAYOUTS.items()):
        laid = [layout(t) for t in call.tensors]
        if name == "expanded" and subject.kind("mutated"):
            laid[0] = laid[0].contiguous()  # several elements in one place cannot be written
        dense = [t.contiguous() for t in laid]
        expected = [host(y) for y in subject.run(call, dense)]
        outputs = subject.run_as_is(call, laid)
        for y, e in zip(outputs, expected, strict=True):
            if wrong := difference(y, e, inputs=laid):
                raise Failed(f"{described(subject, call)}, inputs {name}: {wrong}")
    return ", ".join(LAYOUTS)


def empty(subject: Subject, where: str) -> str:
    """Wherever infer allows a size to be 0, a run gives the empty result."""
    if seen := shapes_of_size(subject, where, 0):
        return f"{counted(seen)} with a size of 0"
    raise Skipped("no size of the samples may be 0")


def same_values(subject: Subject, call: Call, low: Call, reference: dtype) -> Call:
    """The call in the reference's dtype, of the values that it has in a lower one."""
    wide = subject.in_dtype(call, reference)
    return low.with_kinds(wide.kinds) if low.tensors else wide


def dtypes(subject: Subject, where: str, tolerance: dict[str, float]) -> str:
    """Each dtype against the widest of its kind, on the same rounded values."""
    kinds = subject.dtypes(where)
    if not kinds:
        raise Skipped(f"no kernel for {where} takes the samples")
    random = bool(subject.info and subject.info["random"])
    compared = []
    for call, kind in itertools.product(calls_on(subject, where), kinds):
        low = subject.in_dtype(call, kind)
        if low is None:
            continue
        outputs = subject.run(low)
        reference = widest(kinds, kind.is_floating_point)
        if random or kind is _ext.bool or reference in (kind, None):
            continue
        for y, w in zip(outputs, subject.run(same_values(subject, call, low, reference)),
                        strict=True):  # fmt: skip
            w = w if w.dtype.is_floating_point else w.to(y.dtype)  # integers wrap around
            if wrong := difference(y, host(w), tolerance, low.tensors):
                raise Failed(f"{described(subject, low)} against {reference.name}: {wrong}")
        compared += [kind] if kind.is_floating_point and kind not in compared else []
    bounds = [f"{k.name} within {tolerance[k.name]:.2g}" for k in compared]
    others = [k.name for k in kinds if k not in compared]
    return ", ".join([*others, *bounds])


def parity(subject: Subject, where: str, tolerance: dict[str, float]) -> str:
    """A device against the CPU."""
    kinds = [k for k in subject.dtypes(where) if k in subject.dtypes("cpu")]
    if not kinds:
        raise Skipped(f"no dtype has a kernel for cpu and for {where}")
    for call, kind in itertools.product(calls_on(subject, "cpu"), kinds):
        here = subject.in_dtype(call, kind)
        if here is None or (subject.info and subject.info["random"]):
            continue
        there = subject.on(here, where)
        for a, b in zip(subject.run(here), subject.run(there), strict=True):
            if wrong := difference(b, host(a), tolerance, here.tensors):
                raise Failed(f"{described(subject, there)} on {where} against cpu: {wrong}")
    return ", ".join(k.name for k in kinds)


def without_grad(check: Callable[..., str]) -> Callable[..., str]:
    def run(*args: Any) -> str:
        with no_grad():
            return check(*args)

    return run
