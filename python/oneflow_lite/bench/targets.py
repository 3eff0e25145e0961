# SPDX-License-Identifier: Apache-2.0
"""When a cell passes.

Our time is at most the stream's over ``share``, or we are at least ``ratio`` times the best peer;
and in either case not slower than 0.985 times the best peer. Under 20 us the stream plus a
microsecond passes as well (4 for the gradients of norms).
"""

from __future__ import annotations

from dataclasses import dataclass

FLOOR = 0.985
SHORT_US = 20.0
MIB = 1 << 20
SHARED_BYTES = 227 << 10  # that a block may have


@dataclass(frozen=True)
class Target:
    """What is asked of a cell; ``slack_us`` is granted on top of the stream at any length."""

    share: float
    ratio: float
    slack_us: float = 0.0
    short_slack_us: float = 1.0


@dataclass(frozen=True)
class Verdict:
    """``share`` of the stream, ``ratio`` to the best peer (None: no peer ran), and the outcome."""

    share: float
    ratio: float | None
    passed: bool
    target: Target


def reads_twice(kind: str, resident_bytes: int) -> bool:
    """Few rows that the chip does not hold: they must be read a second time."""
    return kind == "few" and resident_bytes > 48 * MIB


def _few(resident_bytes: int) -> Target:
    if resident_bytes <= 24 * MIB:
        return Target(0.85, 3, slack_us=2.0)
    return Target(0.70, 3) if resident_bytes <= 48 * MIB else Target(0.93, 3)


def _norm_backward(kind: str, cols: int) -> Target:
    slack = 4.0
    if kind == "tall":
        return Target(0.85, 3, short_slack_us=slack)
    if cols <= 16384:
        return Target(0.90, 1.5, short_slack_us=slack)
    return Target(0.75 if cols <= 65536 else 0.55, 1.5, short_slack_us=slack)


FUSIONS = {
    "cross_entropy": Target(0.90, 1.8), "cross_entropy_gradient": Target(1 / 1.1, 1.8),
    "cross_entropy_gradient_in_place": Target(1 / 1.15, 1.8),
    "scale_mask_softmax": Target(0.90, 1.5), "causal_softmax": Target(0.90, 1.5),
    "add_rms_norm": Target(0.90, 1.0),
}  # fmt: skip


def target(op: str, dtype: str, kind: str, cols: int, resident_bytes: int,
           device: str = "cuda", slab_bytes: int = 0) -> Target:  # fmt: skip
    """What is asked of a cell; ``slab_bytes`` of one slice along a dim that is not the last."""
    if device == "cpu":
        return Target(0.85, 1.2, short_slack_us=0.0)
    norm_backward = op in ("layer_norm_backward", "rms_norm_backward")
    if dtype == "float64" and op not in FUSIONS:
        return Target(0.90, 1.0, short_slack_us=4.0 if norm_backward else 1.0)
    if op in FUSIONS:
        return FUSIONS[op]
    if kind == "few":
        return _few(resident_bytes)
    if kind == "dim":
        return Target(0.90 if slab_bytes <= SHARED_BYTES else 0.60, 2.5)
    if norm_backward:
        return _norm_backward(kind, cols)
    if op.endswith("_backward"):
        return Target(0.95, 2)
    if kind in ("awkward", "layout"):
        return Target(0.93, 1.5)
    return Target(0.97 if cols >= 1024 else 0.92, 1.05)


def judge(asked: Target, ours: float, stream: float, best: float | None) -> Verdict:
    """Times in microseconds; ``best`` is the best peer's, None where none ran."""
    near = ours <= stream / asked.share + asked.slack_us
    near = near or (ours < SHORT_US and ours <= stream + asked.short_slack_us)
    ahead = best is not None and best >= asked.ratio * ours
    slower = best is not None and best < FLOOR * ours
    ratio = None if best is None else best / ours
    return Verdict(stream / ours, ratio, (near or ahead) and not slower, asked)


def judge_host(ours: float, launch: float, eager: float | None) -> Verdict:
    """At most 0.6 of eager PyTorch's time, each above that of a bare launch."""
    asked = Target(0.0, 1 / 0.6)
    if eager is None:
        return Verdict(launch / ours, None, False, asked)
    ratio = (eager - launch) / max(ours - launch, 1e-3)
    return Verdict(launch / ours, ratio, ratio >= asked.ratio, asked)
