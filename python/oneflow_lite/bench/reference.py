# SPDX-License-Identifier: Apache-2.0
"""What is right: the ops in float64, of elementwise ops and sums, on the device, in chunks of rows.

A reference takes the tensors of a chunk and gives the outputs of these rows; outputs that are sums
over all rows (gradients of weights) are named in ``SUMS`` and added up over the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench.problem import EPS, Candidate, Problem

CHUNK = 1 << 25  # elements in float64: 256 MB for each of some ten temporaries
# Of an element: relative, and as a share of the largest element.
TOLERANCE = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 1e-4, "float64": 1e-9}

Tensors = dict[str, Any]


def softmax(t: Tensors, dim: int) -> list[Any]:
    e = (t["x"] - t["x"].amax(dim, keepdim=True)).exp()
    return [e / e.sum(dim, keepdim=True)]


def log_softmax(t: Tensors, dim: int) -> list[Any]:
    s = t["x"] - t["x"].amax(dim, keepdim=True)
    return [s - s.exp().sum(dim, keepdim=True).log()]


def softmax_backward(t: Tensors, dim: int) -> list[Any]:
    return [t["y"] * (t["dy"] - (t["y"] * t["dy"]).sum(dim, keepdim=True))]


def log_softmax_backward(t: Tensors, dim: int) -> list[Any]:
    return [t["dy"] - t["y"].exp() * t["dy"].sum(dim, keepdim=True)]


def statistics(x: Any, centred: bool) -> tuple[Any, Any]:
    """Mean and rstd per row, in float64."""
    mean = flow.mean(x, -1, keepdim=True)
    c = x - mean if centred else x
    return mean, ((c * c).mean(-1, keepdim=True) + EPS).log().mul(-0.5).exp()


def _normalised(x: Any, centred: bool) -> tuple[Any, Any]:
    mean, rstd = statistics(x, centred)
    return (x - mean if centred else x) * rstd, rstd


def layer_norm(t: Tensors, dim: int) -> list[Any]:
    return [_normalised(t["x"], True)[0] * t["weight"] + t["bias"]]


def rms_norm(t: Tensors, dim: int) -> list[Any]:
    return [_normalised(t["x"], False)[0] * t["weight"]]


def layer_norm_backward(t: Tensors, dim: int) -> list[Any]:
    x_hat, rstd = _normalised(t["x"], True)
    g = t["dy"] * t["weight"]
    dx = g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)
    return [dx * rstd, (t["dy"] * x_hat).sum(0), t["dy"].sum(0)]


def rms_norm_backward(t: Tensors, dim: int) -> list[Any]:
    x_hat, rstd = _normalised(t["x"], False)
    g = t["dy"] * t["weight"]
    dx = g - x_hat * (g * x_hat).mean(-1, keepdim=True)
    return [dx * rstd, (t["dy"] * x_hat).sum(0)]


def add_rms_norm(t: Tensors, dim: int) -> list[Any]:
    s = t["x"] + t["residual"]
    return [_normalised(s, False)[0] * t["weight"], s]


def _one_hot(t: Tensors) -> Any:
    classes = flow.arange(t["x"].shape[1], device=t["x"].device)
    return (classes == t["target"].unsqueeze(1)).to(dtype=t["x"].dtype)


def cross_entropy(t: Tensors, dim: int) -> list[Any]:
    return [-(log_softmax(t, 1)[0] * _one_hot(t)).sum() / t["rows"]]


def cross_entropy_gradient(t: Tensors, dim: int) -> list[Any]:
    logp, hot = log_softmax(t, 1)[0], _one_hot(t)
    return [-(logp * hot).sum() / t["rows"], (logp.exp() - hot) / t["rows"]]


def masked_softmax(t: Tensors, dim: int) -> list[Any]:
    """softmax(x scale), without what ``hidden`` (1 or 0) marks."""
    return softmax({"x": t["x"] * t["scale"] - t["hidden"] * 1e9}, -1)


# Which outputs are sums over all rows.
SUMS = {
    "layer_norm_backward": {1, 2}, "rms_norm_backward": {1}, "cross_entropy": {0},
    "cross_entropy_gradient": {0}, "cross_entropy_gradient_in_place": {0},
}  # fmt: skip
# The tensors that are the same for all rows.
SHARED = {"weight", "bias", "scale", "rows"}


def _chunk(p: Problem, lo: int, hi: int, names: Sequence[str]) -> Tensors:
    def widened(value: Any) -> Any:
        floating = isinstance(value, flow.Tensor) and value.dtype != flow.int64
        return value.to(dtype=flow.float64) if floating else value

    # Python numbers, the shared tensors as they are, rows of the others.
    return {n: widened(p.t[n] if n in SHARED else p.t[n][lo:hi]) for n in names if n in p.t}


def _abs(x: Any) -> Any:
    return x.relu() + (-x).relu()


class _Wanted:
    """An output, or rows of it, and how far from it counts as right."""

    def __init__(self, want: Any, tolerance: float) -> None:
        self.want = want
        size = _abs(want)
        self.relative = size * tolerance
        self.allowed = size.amax() * tolerance + 1e-300

    def error(self, given: Any) -> float:
        """The largest error in tolerances: right is at most 1. NaN stays NaN."""
        given = given if isinstance(given, flow.Tensor) else flow.from_dlpack(given)
        given = given.reshape(tuple(self.want.shape)).to(dtype=flow.float64)
        excess = _abs(given - self.want) - self.relative
        return (excess.amax() / self.allowed).item()


def _worse(a: float, b: float) -> float:
    return a if a != a or a > b else b


def row_chunks(p: Problem) -> Iterator[tuple[int, int]]:
    rows = p.case.shape[0]
    step = rows
    if p.case.dim in (-1, len(p.case.shape) - 1):
        step = max(1, CHUNK // (p.case.numel // rows))
    for lo in range(0, rows, step):
        yield lo, min(rows, lo + step)


def poisoned(candidate: Candidate) -> Sequence[Any]:
    """The results, written into memory that held NaN where the allocator gives it again."""
    if candidate.prepare:
        candidate.prepare()
    first = candidate.call()
    for result in first:
        result.fill_(float("nan"))
    del first
    if candidate.prepare:
        candidate.prepare()
    return candidate.call()


def errors(p: Problem, reference: Callable[[Tensors, int], list[Any]], names: Sequence[str],
           results: dict[str, Sequence[Any]]) -> dict[str, float]:  # fmt: skip
    """The largest error of each candidate, in tolerances: right is at most 1.

    Parameters
    ----------
    names : sequence of str
        The tensors that the reference reads.
    results : dict
        Outputs by candidate.
    """
    sums = SUMS.get(p.op, set())
    worst = dict.fromkeys(results, 0.0)

    def compare(i: int, want: Any, rows: Any) -> None:
        wanted = _Wanted(want, TOLERANCE[p.dtype])
        for name, outputs in results.items():
            worst[name] = _worse(worst[name], wanted.error(outputs[i][rows]))

    totals: dict[int, Any] = {}
    with flow.no_grad():
        for lo, hi in row_chunks(p):
            for i, want in enumerate(reference(_chunk(p, lo, hi, names), p.case.dim)):
                if i in sums:
                    totals[i] = totals[i] + want if i in totals else want
                else:
                    compare(i, want, slice(lo, hi))
        for i, want in totals.items():
            compare(i, want, slice(None) if want.shape else ...)
    return worst
