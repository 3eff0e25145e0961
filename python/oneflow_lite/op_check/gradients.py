# SPDX-License-Identifier: Apache-2.0
"""The checks of an op's gradient, against differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.autograd import GradcheckError, enable_grad, gradcheck, gradgradcheck
from oneflow_lite.op_check.calls import Call, Subject, widest
from oneflow_lite.op_check.layouts import LAYOUTS
from oneflow_lite.op_check.outcome import Failed, Skipped, counted
from oneflow_lite.op_check.running import calls_on, described, same_values, variants
from oneflow_lite.op_check.values import bits, difference, host, shape_text

MOST_ELEMENTS = 120  # of the inputs: each costs two runs


def _names(subject: Subject, places: Sequence[int]) -> str:
    return ", ".join(subject.input_name(i) for i in places)


class _Differentiable:
    """A call as gradcheck wants it: a function of float64 tensors, narrowed where it must be."""

    def __init__(self, subject: Subject, call: Call, where: str) -> None:
        self.subject, self.call = subject, subject.widened(call, where)
        self.places = [i for i, k in enumerate(self.call.kinds) if k.is_floating_point]
        self.narrow = min((self.call.kinds[i] for i in self.places), key=lambda k: k.itemsize,
                          default=_ext.float64)  # fmt: skip
        self.outputs: list[int] | None = None  # those that have a gradient; None: not known yet

    # Differences in float32 need a longer step, and see less.
    @property
    def options(self) -> dict[str, float]:
        wide = self.narrow is _ext.float64
        if wide:
            return {"atol": 1e-6, "rtol": 1e-4}
        return {"eps": 1e-2, "atol": 2e-3, "rtol": 2e-2}

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        given = [t.to(k) for t, k in zip(tensors, self.call.kinds, strict=True)]
        outputs = self.pick(self.subject.run(self.call, given))
        return [y.double() if y.dtype.is_floating_point else y for y in outputs]

    def pick(self, outputs: list[Tensor]) -> list[Tensor]:
        return outputs if self.outputs is None else [outputs[o] for o in self.outputs]

    def leaves(self, chosen: Sequence[int]) -> list[Tensor]:
        tensors = [t.double() if t.dtype.is_floating_point else t for t in self.call.tensors]
        return _leaves(self.call.replaced(tensors), chosen)


def _differentiables(
    subject: Subject, where: str, most: int | None = MOST_ELEMENTS
) -> list[tuple[Call, _Differentiable]]:
    """The calls that have a gradient to check, with inputs of at most so many elements."""
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
    if most is None:
        return found
    found = [(c, f) for c, f in found if f.narrow.itemsize >= 4]
    if not found:
        raise Skipped("differences need float32 at least, and there is no kernel for it")
    small = [(c, f) for c, f in found if sum(t.numel() for t in c.tensors) <= most]
    if not small:
        raise Skipped(f"not looked at: no sample of at most {most} elements; each costs two runs")
    return small


def _settle(f: _Differentiable, left_out: dict[str, None]) -> Iterator[list[int]]:
    """Inputs that have a gradient from the same outputs, to which f is limited meanwhile.

    Why others have none goes to ``left_out``.
    """
    f.outputs = None
    able: dict[int, set[int]] = {i: set() for i in f.places}  # input: outputs
    reasons: dict[tuple[int, int], str] = {}
    for i in f.places:
        leaves = f.leaves([i])
        with enable_grad():
            outputs = f(*leaves)
        for o, y in enumerate(outputs):
            if not y.requires_grad or y.numel() == 0:
                continue
            try:
                _ext.grad([y], [leaves[i]], [_C.ones_like(y)], True, False, True)
                able[i].add(o)
            except NotImplementedError as error:
                reasons[i, o] = str(error)
    for i in f.places:
        if not able[i] and all(i != j for j, _ in reasons):
            left_out[f"not of {f.subject.input_name(i)}, on which no output depends"] = None
    left_out |= {f"not all: {why}": None for why in reasons.values()}
    for reached in dict.fromkeys(tuple(sorted(able[i])) for i in f.places if able[i]):
        f.outputs = [*reached]
        yield [i for i in f.places if able[i].issuperset(reached)]


def _settled(
    subject: Subject, where: str, most: int | None = MOST_ELEMENTS,
    left_out: dict[str, None] | None = None,
) -> Iterator[tuple[Call, _Differentiable, list[int]]]:  # fmt: skip
    for call, f in _differentiables(subject, where, most):
        for having in _settle(f, {} if left_out is None else left_out):
            yield call, f, having


def _subsets(places: Sequence[int]) -> list[tuple[int, ...]]:
    """All of a few; of many, the single ones and all at once."""
    if len(places) <= 4:
        return [s for n in range(1, len(places) + 1) for s in itertools.combinations(places, n)]
    return [*((i,) for i in places), tuple(places)]


def _too_coarse(f: _Differentiable) -> str:
    """What more there is to say of outputs whose dtype does not show differences of the inputs."""
    outputs = f.pick(f.subject.run(f.call))
    kinds = {y.dtype for y in outputs if y.dtype.is_floating_point}
    coarse = sorted(k.name for k in kinds if k.itemsize < f.narrow.itemsize)
    if not coarse:
        return ""
    return (f"; but the output is {coarse[0]}, too coarse for differences of {f.narrow.name} "
            f"inputs: compute in {f.narrow.name}, have infer refuse it with flow.DTypeError, or "
            "skip this check")  # fmt: skip


def first_order(subject: Subject, where: str) -> str:
    """Each subset of inputs against differences; expanded incoming gradients as contiguous ones."""
    checked: dict[str, None] = {}
    left_out: dict[str, None] = {}
    narrow = None
    for call, f, having in _settled(subject, where, left_out=left_out):
        for chosen in _subsets(having):
            try:
                gradcheck(f, f.leaves(chosen), **f.options)
            except GradcheckError as error:
                raise Failed(
                    f"{described(subject, call)}, {_names(subject, chosen)} requiring a gradient: "
                    f"{error}{_too_coarse(f)}"
                ) from None
            checked[_names(subject, chosen)] = None
            narrow = f.narrow
        _other_memory(f, having)
        _empty_gradient(f, having)
    if not checked:
        raise Skipped("; ".join(left_out))
    text = "; ".join([f"of {' / '.join(checked)}", *left_out])
    return text if narrow is _ext.float64 else f"{text}; in float32, within 2e-2"


def _gradients(f: _Differentiable, call: Call, leaves: Sequence[Tensor], places: Sequence[int],
               seed: Callable[[Tensor], Tensor]) -> list[Tensor | None]:  # fmt: skip
    with enable_grad():
        outputs = [y for y in f.pick(f.subject.run(call, leaves)) if y.requires_grad]
    seeds = [seed(y) for y in outputs]
    before = [bits(t) for t in (*leaves, *seeds)]
    grads = _ext.grad(outputs, [leaves[i] for i in places], seeds, False, False, True)
    for i, (t, old) in enumerate(zip((*leaves, *seeds), before, strict=True)):
        if bits(t) != old:
            name = f.subject.input_name(i) if i < len(leaves) else "an incoming gradient"
            raise Failed(f"{described(f.subject, call)}: backward changed {name}")
    return grads


def _leaves(
    call: Call, chosen: Sequence[int], layout: Callable[[Tensor], Tensor] = _C.clone
) -> list[Tensor]:
    tensors = list(call.tensors)
    for i in chosen:
        tensors[i] = layout(tensors[i].detach()).detach().requires_grad_()
    return tensors


def _other_memory(f: _Differentiable, chosen: Sequence[int]) -> None:
    """Inputs and incoming gradients that lie otherwise; a sum's gradient is one element, expanded.

    And backward writes into nothing (_gradients).
    """

    def one(y: Tensor) -> Tensor:
        return _C.ones([], dtype=y.dtype, device=y.device).expand(y.shape)

    transposed = LAYOUTS["transposed"]
    leaves, turned = _leaves(f.call, chosen), _leaves(f.call, chosen, transposed)
    dense = _gradients(f, f.call, leaves, chosen, _seed)
    ones = _gradients(f, f.call, leaves, chosen, _C.ones_like)
    for what, given, seed, expected in [
        ("from an expanded incoming gradient", leaves, one, ones),
        ("from a transposed incoming gradient", leaves, lambda y: transposed(_seed(y)), dense),
        ("of transposed inputs", turned, _seed, dense),
    ]:
        found = _gradients(f, f.call, given, chosen, seed)
        for i, a, b in zip(chosen, expected, found, strict=True):
            if a is None or b is None:
                continue
            if wrong := difference(b, host(a), inputs=f.call.tensors):
                name = f.subject.input_name(i)
                raise Failed(f"{described(f.subject, f.call)}: gradient of {name} {what}: {wrong}")


def _empty_gradient(f: _Differentiable, chosen: Sequence[int]) -> None:
    for variant in variants(f.subject, f.call, 0):
        leaves = _leaves(variant, chosen)
        try:
            grads = _gradients(f, variant, leaves, chosen, _C.ones_like)
        except (IndexError, ValueError):
            if all(t.dtype.is_floating_point for t in leaves):
                raise
            continue  # the values refuse it: an index into nothing
        for i, g in zip(chosen, grads, strict=True):
            if g is not None and g.shape != leaves[i].shape:
                raise Failed(
                    f"{described(f.subject, variant)}: the gradient of {f.subject.input_name(i)} "
                    f"has shape {shape_text(g.shape)}"
                )


def dtypes(subject: Subject, where: str, tolerance: Mapping[str, float]) -> str:
    """Each floating dtype against the widest, from the same rounded values; a few roundings more.

    The error is held against the largest gradient, or 1: what cancels in one dtype may not in
    another.
    """
    kinds = [k for k in subject.dtypes(where) if k.is_floating_point]
    reference = widest(kinds, floating=True)
    settled = _settled(subject, where, most=None)
    for (call, f, having), kind in ((s, k) for s in settled for k in kinds):
        low = subject.in_dtype(call, kind)
        if low is None:
            continue
        wide = same_values(subject, call, low, reference)
        grads = _gradients(f, low, _leaves(low, having), having, _seed)
        exact = _gradients(f, wide, _leaves(wide, having), having, _seed)
        for i, g, e in zip(having, grads, exact, strict=True):
            if g is None or e is None:
                continue
            what = f"{described(subject, low)}: the gradient of {subject.input_name(i)}"
            if g.dtype is not low.tensors[i].dtype:
                raise Failed(f"{what} is {g.dtype.name}")
            found, right = host(g), host(e)
            scale = 1 + np.abs(right[np.isfinite(right)]).max(initial=0.0)
            same = (found == right) | (np.isnan(found) & np.isnan(right))
            with np.errstate(invalid="ignore"):
                error = np.where(same, 0.0, np.abs(found - right)).max(initial=0.0)
            if not error <= 4 * tolerance[kind.name] * scale:  # NaN is not
                raise Failed(f"{what} is off by {error:.2g} where the largest is {scale - 1:.2g}")
    return ", ".join(k.name for k in kinds)


def _seed(y: Tensor) -> Tensor:
    """Of small numbers that every dtype has."""
    values = np.random.default_rng(0).integers(-2, 3, tuple(y.shape)) / 2
    return _ext.from_numpy(np.array(values)).to(y.device).to(y.dtype)


def second_order(subject: Subject, where: str) -> str:
    """The gradient's gradient against differences of the gradient."""
    reason = ""
    checked = 0
    for call, f, having in _settled(subject, where):
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
            raise Failed(f"{described(subject, call)}: {error}{_too_coarse(f)}") from None
        checked += 1
    if not checked:
        raise Skipped(reason or "no input has a gradient")
    return counted(checked) + (f"; not all: {reason}" if reason else "")


def _records_backward(f: _Differentiable, chosen: list[int]) -> bool:
    leaves = f.leaves(chosen)
    with enable_grad():
        outputs = [y for y in f(*leaves) if y.requires_grad]
        seeds = [_C.ones_like(y).requires_grad_() for y in outputs]
        grads = _ext.grad(outputs, [leaves[i] for i in chosen], seeds, True, True, True)
    return any(g is not None and g.requires_grad for g in grads)
