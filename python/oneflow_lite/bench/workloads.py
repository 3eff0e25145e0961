# SPDX-License-Identifier: Apache-2.0
"""The ops that are measured: their tensors, our call, what is right, and the bytes of the limit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import reference
from oneflow_lite.bench.cases import Case
from oneflow_lite.bench.problem import EPS, Candidate, Problem, Unsupported, find


@dataclass(frozen=True)
class Workload:
    """One op.

    ``pattern`` is that of the stream it is measured by, ``nbytes`` what must move: each input read
    once, each output written once, statistics among them. ``read_by_reference`` names tensors.
    """

    name: str
    family: str
    pattern: str
    tensors: Callable[[Problem], dict[str, Any]]
    ours: Callable[[Problem], Candidate]
    reference: Callable[..., list[Any]]
    read_by_reference: Sequence[str]
    nbytes: Callable[[Problem], int]

    def problem(self, dtype: str, device: str, case: Case) -> Problem:
        p = Problem(self.name, dtype, device, case)
        p.t = self.tensors(p)
        return p


def _tensor_bytes(p: Problem) -> int:
    return p.case.numel * p.itemsize


# softmax and log_softmax -------------------------------------------------------------------------


def _x(p: Problem) -> dict[str, Any]:
    return {"x": p.input()}


def _y_dy(forward: str) -> Callable[[Problem], dict[str, Any]]:
    def tensors(p: Problem) -> dict[str, Any]:
        y = getattr(flow, forward)(p.randn(*p.case.shape), p.case.dim)
        if p.case.pad or p.case.offset:
            y = p.input().copy_(y)
        return {"y": y, "dy": p.input()}

    return tensors


def _softmax(p: Problem) -> Candidate:
    function, x, dim = find(p.op), p.t["x"], p.case.dim
    return Candidate(lambda: [function(x, dim)])


def _softmax_backward(p: Problem) -> Candidate:
    function, y, dy = find(f"ops.{p.op}"), p.t["y"], p.t["dy"]
    axis = p.case.dim % len(p.case.shape)
    return Candidate(lambda: [function(y, dy, axis)])


def _softmaxes() -> list[Workload]:
    out = []
    for name in ("softmax", "log_softmax"):
        out.append(Workload(name, "softmax", "1R1W", _x, _softmax, getattr(reference, name), ["x"],
                            lambda p: 2 * _tensor_bytes(p)))  # fmt: skip
        backward = f"{name}_backward"
        out.append(Workload(backward, "softmax", "2R1W", _y_dy(name), _softmax_backward,
                            getattr(reference, backward), ["y", "dy"],
                            lambda p: 3 * _tensor_bytes(p)))  # fmt: skip
    return out


GRAD_X, GRAD_WEIGHT, GRAD_BIAS = 1, 2, 4  # bits of the ops' `wanted`

# The norms ---------------------------------------------------------------------------------------


def _norm_tensors(p: Problem) -> dict[str, Any]:
    return {"x": p.input(), "weight": p.randn(p.case.cols), "bias": p.randn(p.case.cols)}


def _norm_gradient_tensors(p: Problem) -> dict[str, Any]:
    t = {**_norm_tensors(p), "dy": p.randn(*p.case.shape)}
    parts = []
    for lo, hi in reference.row_chunks(p):
        x = t["x"][lo:hi].to(dtype=flow.float64)
        parts.append(reference.statistics(x, p.op.startswith("layer")))
    for name, columns in zip(("mean", "rstd"), zip(*parts, strict=True), strict=True):
        t[name] = flow.empty(*p.case.shape[:-1], 1, dtype=p.accumulator, device=p.device)
        for (lo, hi), column in zip(reference.row_chunks(p), columns, strict=True):
            t[name][lo:hi].copy_(column.to(dtype=p.accumulator))
    return t


def _norm(p: Problem) -> Candidate:
    function, x, shape = find(p.op), p.t["x"], (p.case.cols,)
    weight, bias = p.t["weight"], p.t["bias"]
    if p.op == "layer_norm":
        return Candidate(lambda: [function(x, shape, weight, bias, EPS)])
    return Candidate(lambda: [function(x, shape, weight, EPS)])


def _norm_backward(p: Problem) -> Candidate:
    """The op itself, for all its gradients."""
    function = find(f"ops.{p.op}")
    names = ["dy", "rstd", "x", "weight"]
    wanted = GRAD_X | GRAD_WEIGHT
    if p.op.startswith("layer"):
        names += ["bias", "mean"]
        wanted |= GRAD_BIAS
    given = {name: p.t[name] for name in names}
    axis = len(p.case.shape) - 1
    return Candidate(lambda: function(**given, axis=axis, wanted=wanted))


def _statistics_bytes(p: Problem) -> int:
    per_row = 8 if p.dtype == "float64" else 4
    return per_row * p.case.rows * (2 if p.op.startswith("layer") else 1)


def _affine_bytes(p: Problem) -> int:
    return p.case.cols * p.itemsize * (2 if p.op.startswith("layer") else 1)


def _norm_bytes(p: Problem) -> int:
    # without a gradient no statistics are written
    return 2 * _tensor_bytes(p) + _affine_bytes(p)


def _norm_backward_bytes(p: Problem) -> int:
    # weight is read, the gradients of weight and bias are written
    written = _affine_bytes(p)
    return 3 * _tensor_bytes(p) + _statistics_bytes(p) + p.case.cols * p.itemsize + written


def _norms() -> list[Workload]:
    out = []
    for name, names in (("layer_norm", ["x", "weight", "bias"]), ("rms_norm", ["x", "weight"])):
        out.append(Workload(name, "norm", "1R1W", _norm_tensors, _norm, getattr(reference, name),
                            names, _norm_bytes))  # fmt: skip
        backward = f"{name}_backward"
        out.append(Workload(backward, "norm", "2R1W", _norm_gradient_tensors, _norm_backward,
                            getattr(reference, backward), ["x", "dy", "weight"],
                            _norm_backward_bytes))  # fmt: skip
    return out


# cross_entropy -----------------------------------------------------------------------------------


def _logits(p: Problem) -> dict[str, Any]:
    return {"x": p.input(), "target": p.classes(), "rows": p.case.rows}


def _cross_entropy(p: Problem) -> Candidate:
    function, x, target = flow.nn.functional.cross_entropy, p.t["x"], p.t["target"]
    return Candidate(lambda: [function(x, target)])


def _cross_entropy_gradient(p: Problem) -> Candidate:
    function, target = flow.nn.functional.cross_entropy, p.t["target"]
    x = p.t["x"].detach().requires_grad_()

    def call() -> Sequence[Any]:
        loss = function(x, target)
        (dx,) = flow.autograd.grad(loss, x)
        return loss.detach(), dx

    return Candidate(call, note="through autograd")


def _cross_entropy_in_place(p: Problem) -> Candidate:
    """The gradient is written over the logits during the forward."""
    function, target = flow.nn.functional.cross_entropy, p.t["target"]
    if "inplace_backward" not in inspect.signature(function).parameters:
        raise Unsupported("this build's cross_entropy has no inplace_backward")
    logits = p.t["x"].clone()
    x = logits.detach().requires_grad_()

    def call() -> Sequence[Any]:
        loss = function(x, target, inplace_backward=True)
        (dx,) = flow.autograd.grad(loss, x)
        return loss.detach(), dx

    return Candidate(call, prepare=lambda: logits.copy_(p.t["x"]), note="through autograd")


def _cross_entropies() -> list[Workload]:
    names = ["x", "target", "rows"]
    in_place = "cross_entropy_gradient_in_place"
    return [
        Workload("cross_entropy", "cross_entropy", "1R", _logits, _cross_entropy,
                 reference.cross_entropy, names, _tensor_bytes),
        Workload("cross_entropy_gradient", "cross_entropy", "2R1W", _logits,
                 _cross_entropy_gradient, reference.cross_entropy_gradient, names,
                 lambda p: 3 * _tensor_bytes(p)),
        Workload(in_place, "cross_entropy", "1R1W", _logits, _cross_entropy_in_place,
                 reference.cross_entropy_gradient, names, lambda p: 2 * _tensor_bytes(p)),
    ]  # fmt: skip


# Fusions -----------------------------------------------------------------------------------------

SCALE = 0.125


def _masked_bytes(p: Problem) -> int:
    return 2 * _tensor_bytes(p) + p.t["mask"].numel()


def _causal_bytes(p: Problem) -> int:
    """What is seen is read; all is written."""
    rows, cols = p.case.shape[-2:]
    seen = sum(max(0, cols - rows + query + 1) for query in range(rows))
    return _tensor_bytes(p) + p.itemsize * (p.case.numel // (rows * cols)) * seen


def _masked(p: Problem) -> dict[str, Any]:
    """Scores of [batch, heads, rows, cols] and a mask that all heads share.

    ``mask`` is true where ours keeps, ``hidden`` where the others leave out.
    """
    batch, _, rows, cols = p.case.shape
    drawn = flow.rand(batch, 1, rows, cols, device=p.device)
    return {"x": p.input(), "mask": drawn >= 0.25, "hidden": drawn < 0.25, "scale": SCALE}


def _causal(p: Problem) -> dict[str, Any]:
    rows, cols = p.case.shape[-2:]
    if rows > cols:
        raise Unsupported("causal scores of more queries than keys: the first see nothing")
    # The last query sees all keys, the ones before it one less each.
    queries = flow.arange(cols - rows, cols, device=p.device).unsqueeze(1)
    hidden = flow.arange(cols, device=p.device) > queries
    hidden = hidden.reshape(1, 1, rows, cols).expand(p.case.shape[0], 1, rows, cols)
    return {"x": p.input(), "hidden": hidden, "scale": SCALE}


def _scale_mask_softmax(p: Problem) -> Candidate:
    function, x, mask = find("fused_scale_mask_softmax"), p.t["x"], p.t["mask"]
    return Candidate(lambda: [function(x, mask, SCALE)])


def _causal_softmax(p: Problem) -> Candidate:
    function, x = find("fused_scale_mask_softmax"), p.t["x"]
    return Candidate(lambda: [function(x, None, SCALE, causal=True)])


def _with_residual(p: Problem) -> dict[str, Any]:
    return {"x": p.input(), "residual": p.input(), "weight": p.randn(p.case.cols)}


def _add_rms_norm(p: Problem) -> Candidate:
    function, x, residual = find("add_rms_norm"), p.t["x"], p.t["residual"]
    weight, shape = p.t["weight"], (p.case.cols,)
    return Candidate(lambda: function(x, residual, shape, weight, EPS))


def _fusions() -> list[Workload]:
    names = ["x", "hidden", "scale"]
    return [
        Workload("scale_mask_softmax", "attention", "1R1W", _masked, _scale_mask_softmax,
                 reference.masked_softmax, names, _masked_bytes),
        Workload("causal_softmax", "attention", "1R1W", _causal, _causal_softmax,
                 reference.masked_softmax, names, _causal_bytes),
        Workload("add_rms_norm", "residual", "1R1W", _with_residual, _add_rms_norm,
                 reference.add_rms_norm, ["x", "residual", "weight"],
                 lambda p: 4 * _tensor_bytes(p)),
    ]  # fmt: skip


WORKLOADS = {w.name: w for w in (*_softmaxes(), *_norms(), *_cross_entropies(), *_fusions())}

__all__ = ["WORKLOADS", "Unsupported", "Workload"]
