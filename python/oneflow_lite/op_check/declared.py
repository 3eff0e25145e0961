# SPDX-License-Identifier: Apache-2.0
"""The checks of what an op declares: schema, SBP signatures, cost.

A function declares nothing itself; the ops that its samples come to are checked in its place.
"""

from __future__ import annotations

import contextlib
import inspect
import keyword
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.op_check.calls import Call, Subject
from oneflow_lite.op_check.outcome import Failed, Skipped
from oneflow_lite.op_check.values import difference, host


def schema(subject: Subject) -> str:
    """The signature can be shown and its names be used, and there is documentation."""
    info = subject.info
    if info is None:
        names = dict.fromkeys(op.name for op, _ in subject.ops)
        raise Skipped(f"a function of {', '.join(names) or 'no ops'}")
    inspect.signature(subject.function)
    for name in [n for n, _ in info["inputs"] + info["attrs"]] + info["outputs"]:
        if not name.isidentifier():
            raise Failed(f"{subject.schema}: {name!r} is no name")
    for name, _ in info["attrs"]:
        if keyword.iskeyword(name):
            raise Failed(f"{subject.schema}: {name!r} is a keyword of Python")
    if not info["doc"].strip():
        raise Failed("there is no documentation")
    return subject.schema


# Sharding -------------------------------------------------------------------------------------


def _axis(entry: str) -> int | None:
    return int(entry[2:-1]) if entry.startswith("S") else None


def _part(size: int, part: int, parts: int) -> tuple[int, int]:
    """Start and length of one part, as even as can be (ShardSize in framework/sbp.h)."""
    length = size // parts + (part < size % parts)
    return part * (size // parts) + min(part, size % parts), length


def _shard(t: Tensor, entry: str, part: int, parts: int) -> Tensor:
    if entry == "B":
        return t
    axis = _axis(entry)
    if axis is not None:
        return t.narrow(axis, *_part(t.shape[axis], part, parts)).contiguous()
    values = host(t)  # partial sums: shares that add up to it
    if t.dtype.is_floating_point:  # what is not finite is one shard's alone
        share = np.nan_to_num(values, nan=0, posinf=0, neginf=0) / (2 * parts)
    else:
        share = values // parts
    mine = share if part else values - (parts - 1) * share
    return _ext.from_numpy(np.array(mine, order="C")).to(t.device).to(t.dtype)


def _combined(shards: Sequence[Tensor], entry: str) -> list[np.ndarray]:
    """The whole that shards of an output make; each of them where it should be the whole."""
    values = [host(s) for s in shards]
    if entry == "B":
        return values
    return [np.concatenate(values, _axis(entry)) if entry != "P" else sum(values)]


def _run_shards(op: Subject, call: Call, number: int, ins: Sequence[str],
                parts: int) -> list[list[Tensor]]:  # fmt: skip
    """The outputs of each shard, run with the attributes that infer_physical gives it."""
    arguments = call.arguments()[0]
    first_attr = len(op.info["inputs"])
    results = []
    for part in range(parts):
        shards = [t if t is None else _shard(t, entry, part, parts)
                  for t, entry in zip(_flat_inputs(op, call), ins, strict=True)]  # fmt: skip
        rest = iter(shards)
        given = [[next(rest) for _ in a] if isinstance(a, list) else next(rest)
                 for a in arguments[:first_attr]]  # fmt: skip
        attrs, inferred, weight = _ext.op_infer_shard(op.name, arguments, number, part, parts,
                                                      shards)  # fmt: skip
        outputs = op.run(Call([*given, *attrs], {}))
        if weight != 1:
            outputs = [y * weight for y in outputs]
        for y, (shape, _) in zip(outputs, inferred, strict=True):
            if tuple(y.shape) != tuple(shape):
                raise Failed(f"infer says {shape} for shard {part}, its run gives {y.shape}")
        results.append(outputs)
    return results


def _flat_inputs(op: Subject, call: Call) -> Iterator[Tensor | None]:
    for a in call.arguments()[0][: len(op.info["inputs"])]:
        yield from a if isinstance(a, list) else [a]


@contextlib.contextmanager
def _raising() -> Iterator[None]:
    """Raises what a Python op's sbp and cost raise, which the framework can only print."""
    heard: list[BaseException] = []
    before = sys.unraisablehook

    def hear(unraisable: Any) -> None:
        heard.append(unraisable.exc_value)
        before(unraisable)

    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = before
        if heard:
            raise heard[0]


def _check_signature(op: Subject, call: Call, number: int, ins: Sequence[str],
                     outs: Sequence[str], parts: int) -> bool:  # fmt: skip
    """Runs one signature in so many parts; False where the sizes are too small for it."""
    whole = op.run(call)
    sizes = [t.shape[_axis(e)] for t, e in zip(_flat_inputs(op, call), ins, strict=True)
             if t is not None and _axis(e) is not None]  # fmt: skip
    sizes += [y.shape[_axis(e)] for y, e in zip(whole, outs, strict=True) if _axis(e) is not None]
    if sizes and min(sizes) < parts:
        return False
    shards = _run_shards(op, call, number, ins, parts)
    for i, (y, entry) in enumerate(zip(whole, outs, strict=True)):
        for values in _combined([s[i] for s in shards], entry):
            made = _ext.from_numpy(np.array(values, order="C"))
            if wrong := difference(made.to(y.dtype), host(y), inputs=call.tensors):
                raise Failed(f"output {op.info['outputs'][i]}: {wrong}")
    return True


def sharding(subject: Subject, where: str) -> str:
    """Every declared signature, run on 2 and 3 shards and put together, gives the whole."""
    held: dict[str, None] = {}
    small: dict[str, None] = {}
    for op, call in subject.ops:
        call = op.widened(op.on(call, where), where)
        with _raising():
            signatures = _ext.op_signatures(op.name, call.arguments()[0])
            sizes = _ext.op_signature_sizes(op.name, call.arguments()[0])
        for number, (ins, outs) in enumerate(signatures):
            text = f"{_side(ins)} -> {_side(outs)}"
            for parts in (2, 3):
                try:
                    ran = sizes[number] % parts == 0 and _check_signature(
                        op, call, number, ins, outs, parts
                    )
                except Failed as wrong:
                    raise Failed(f"{op.name}{call} as {text} in {parts} parts: {wrong}") from None
                except Exception as error:
                    raise Failed(f"{op.name}{call} as {text} in {parts} parts: raised "
                                 f"{type(error).__name__}: {error}") from None  # fmt: skip
                (held if ran else small)[text] = None
    small = {text: None for text in small if text not in held}
    if not held and small:
        raise Skipped(f"no sample is large enough for two parts of {', '.join(small)}")
    if not held:
        raise Skipped("no signature is declared for the samples")
    return ", ".join(held)


def _side(entries: Sequence[str]) -> str:
    return entries[0] if len(entries) == 1 else f"({', '.join(entries)})"


# Cost -----------------------------------------------------------------------------------------


def _weight(op: Subject, call: Call) -> int:
    """The bytes of inputs and outputs."""
    outputs = sum(math.prod(shape) * dtype.itemsize for shape, dtype in op.infer(call))
    return outputs + sum(t.numel() * t.dtype.itemsize for t in call.tensors)


def _cost(op: Subject, call: Call) -> tuple[float, float]:
    with _raising():
        bytes, flops = _ext.op_cost(op.name, call.arguments()[0])
    for what, amount in (("bytes", bytes), ("operations", flops)):
        if not math.isfinite(amount) or amount < 0:
            raise Failed(f"{op.name}{call} costs {amount} {what}")
    return bytes, flops


def _counts_most(op: Subject, call: Call) -> bool:
    """Whether half of what there is is counted, at least where one size is large.

    Small tensors may be left out, an input may be read in part, and one that is overwritten need
    not be read.
    """
    return any(
        _cost(op, c)[0] >= 0.5 * _weight(op, c) for c in (call, *op.resized(call, lambda n: 64 * n))
    )


def _names_no_more(call: Call, large: Call) -> bool:
    """Whether integers name what is read or written, and in the larger call as much as here."""
    tensors = zip(call.tensors, large.tensors, strict=True)
    indices = [(t, m) for t, m in tensors if t.dtype in (_ext.int32, _ext.int64)]
    return bool(indices) and all(t.shape == m.shape for t, m in indices)


def cost(subject: Subject) -> str:
    """Finite, about the bytes of inputs and outputs, and more for larger tensors.

    What no index names may cost nothing.
    """
    detail = ""
    for op, call in subject.ops:
        bytes, flops = _cost(op, call)
        weight = _weight(op, call)
        if op.kind("viewed"):
            if bytes or flops:
                raise Failed(f"{op.name}{call} is a view, but costs {bytes:g} bytes")
            detail = detail or "a view costs nothing"
            continue
        if bytes > 2 * weight or not _counts_most(op, call):
            raise Failed(f"{op.name}{call} costs {bytes:g} bytes; its inputs and outputs have "
                         f"{weight}")  # fmt: skip
        for large in op.resized(call, lambda n: 2 * n):
            more, more_flops = _cost(op, large)
            grows = more > bytes or (more == bytes and _names_no_more(call, large))
            if _weight(op, large) > weight > 0 and not (grows and more_flops >= flops):
                raise Failed(
                    f"{op.name}{large} costs {more:g} bytes and {more_flops:g} operations, no more "
                    f"than {call} with {bytes:g} and {flops:g}"
                )
        if weight:
            detail = f"{bytes:g} bytes and {flops:g} operations for {call}"
    if not detail:
        raise Skipped("every sample is empty")
    return detail
