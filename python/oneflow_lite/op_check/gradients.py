# SPDX-License-Identifier: Apache-2.0
"""The checks of an op's gradient, against differences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd import GradcheckError, enable_grad, gradcheck, gradgradcheck
from oneflow_lite.op_check.calls import Call, Subject
from oneflow_lite.op_check.outcome import Failed, Skipped
from oneflow_lite.op_check.running import calls_on, described
from oneflow_lite.op_check.values import difference, host

MOST_ELEMENTS = 120  # of the inputs: each costs two runs


def _names(subject: Subject, places: Sequence[int]) -> str:
    return ", ".join(subject.input_name(i) for i in places)


class _Differentiable:
    """A call as gradcheck wants it: a function of float64 tensors, narrowed where it must be."""

    def __init__(self, subject: Subject, call: Call, where: str) -> None:
        self._subject, self._call = subject, subject.widened(call, where)
        self._kinds = [t.dtype for t in self._call.tensors]
        self.places = [i for i, k in enumerate(self._kinds) if k.is_floating_point]
        self.narrow = min((self._kinds[i] for i in self.places), key=lambda k: k.itemsize,
                          default=_ext.float64)  # fmt: skip

    # Differences in float32 need a longer step, and see less.
    @property
    def options(self) -> dict[str, float]:
        wide = self.narrow is _ext.float64
        return {} if wide else {"eps": 1e-2, "atol": 2e-3, "rtol": 2e-2}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        given = [t.to(kind) for t, kind in zip(tensors, self._kinds, strict=True)]
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
    found = []
    for call in calls_on(subject, where):
        f = _Differentiable(subject, call, where)
        if f.places and not call.is_empty():
            found.append((call, f))
    if not found:
        raise Skipped("no sample has a floating input that is not empty")
    found = [(c, f) for c, f in found if f.narrow.itemsize >= 4]
    if not found:
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


def first_order(subject: Subject, where: str) -> str:
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
                    f"{described(subject, call)}, {_names(subject, chosen)} requiring a gradient: "
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
                f"{described(subject, call)}: gradient of {subject.input_name(i)} from an expanded "
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
            recorded = _records_backward(f, having)
        except RuntimeError as error:  # NotImplementedError is one
            reason = f"backward has no gradient: {error}"
            continue
        if not recorded:
            reason = "backward is not recorded, so it has no gradient"
            continue
        try:
            gradgradcheck(f, f.leaves(having), **f.options)
        except GradcheckError as error:
            raise Failed(f"{described(subject, call)}: {error}") from None
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
