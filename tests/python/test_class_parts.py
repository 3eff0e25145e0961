# SPDX-License-Identifier: Apache-2.0
"""The ops of cross entropy whose classes lie in parts, on one device, against float64 NumPy and the
ops of whole rows: what split logits are computed by (test_global_head.py).
"""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, flow, host, tensor, ulp

ops = flow.ops
# Of the compute type, by the largest of what is compared.
BOUND = {"float64": 1e-13, "float32": 4e-6, "float16": 4e-6, "bfloat16": 4e-6}
IGNORED = -100
# Narrow rows, packs of 16 bytes and beside them, several turns of a block, and on the CPU the parts
# that a long row has.
CLASSES = [1, 2, 7, 8, 33, 1000, 1001, 4099, 140001]


def logits_of(rows, classes, dtype, device, seed=0):
    values = 4 * np.random.default_rng(seed).standard_normal((rows, classes))
    x = tensor(values, dtype, device)
    return x, host(x)


def targets_of(rows, classes, device, seed=1):
    target = np.random.default_rng(seed).integers(0, classes, rows)
    target[rows // 2] = IGNORED
    return flow.tensor(target, device=device), target


def starts_of(classes, parts):
    sizes = [classes // parts + (k < classes % parts) for k in range(parts)]
    return [sum(sizes[:k]) for k in range(parts)], sizes


def numbers(x, target, first, smoothing):
    """What cross_entropy_parts gives of one part's logits."""
    out = np.zeros((len(x), 4))
    for r, (row, t) in enumerate(zip(x, target, strict=True)):
        if t == IGNORED:
            continue
        most = row.max(initial=-np.inf)
        shift = most if np.isfinite(most) else 0
        here = first <= t < first + len(row)
        deviation = (row - shift).sum() if smoothing else 0
        out[r] = most, np.exp(row - shift).sum(), row[t - first] if here else 0, deviation
    return out


def close(got, want, dtype, extra=0.0):
    want = np.asarray(want)
    finite = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    np.testing.assert_allclose(got, want, rtol=BOUND[dtype], atol=BOUND[dtype] * finite + extra)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_parts_and_what_they_say_together(device, dtype, classes, smoothing):
    rows = 5
    x, values = logits_of(rows, classes, dtype, device)
    t, target = targets_of(rows, classes, device)
    whole = flow._oneflow_lite.op_function("cross_entropy")(x, t, IGNORED, smoothing)
    for parts in (1, 2, 3, 4):
        got = ops.cross_entropy_parts(x, t, IGNORED, smoothing, 0, 0, parts)
        assert got.shape == (parts, rows, 4)
        starts, sizes = starts_of(classes, parts)
        for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
            want = numbers(values[:, start : start + size], target, start, smoothing)
            close(host(got[k])[:, :3], want[:, :3], dtype)
            # A sum of so many terms, of which each is off by a rounding.
            np.testing.assert_allclose(host(got[k])[:, 3], want[:, 3], rtol=1e-5, atol=1e-5)
        loss, stats = ops.cross_entropy_of_parts(x, t, got, IGNORED, smoothing)
        close(host(loss), host(whole[0]), dtype)
        close(host(stats), host(whole[1]), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_of_a_part(device, dtype, classes, smoothing):
    rows, parts = 5, 3
    x, values = logits_of(rows, classes, dtype, device)
    t, target = targets_of(rows, classes, device)
    dloss = tensor(np.linspace(-1, 2, rows), "float64" if dtype == "float64" else "float32", device)
    _, stats = ops.cross_entropy(x, t, IGNORED, smoothing)
    most = values.max(1, keepdims=True)
    p = np.exp(values - most)
    want = p / p.sum(1, keepdims=True) - smoothing / classes
    for r, k in enumerate(target):
        want[r, k if k != IGNORED else 0] -= 1 - smoothing
        want[r] *= 0 if k == IGNORED else host(dloss)[r]
    for start, size in zip(*starts_of(classes, parts), strict=True):
        part = x[:, start : start + size]  # rows that lie apart and begin anywhere
        for mine in (part, part.contiguous()):
            got = ops.cross_entropy_backward(
                mine, t, stats, dloss, IGNORED, smoothing, start, classes
            )
            step = ulp(want[:, start : start + size], dtype) if dtype in HALVES else 0
            np.testing.assert_allclose(
                host(got), want[:, start : start + size], rtol=0,
                atol=np.max(step, initial=0) + 4 * BOUND[dtype],
            )  # fmt: skip
        for there in (part.contiguous(), x.clone()[:, start : start + size]):
            again = ops.cross_entropy_gradient_(
                there, t, stats, dloss, IGNORED, smoothing, start, classes
            )
            assert again is there
            np.testing.assert_array_equal(host(again), host(got))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("classes", [9, 4100, 140001])
def test_infinities_in_one_part(device, dtype, classes):
    """A part that is masked poisons nothing; a row of -inf alone, +inf or NaN is NaN, no other."""
    x, values = logits_of(6, classes, dtype, device)
    half = classes // 2
    values = values.copy()
    values[0, :half] = -np.inf
    values[1, :] = -np.inf
    values[2, half + 1] = np.inf
    values[3, 0] = np.nan
    x = tensor(values, dtype, device)
    target = np.full(6, classes - 1)
    t = flow.tensor(target, device=device)
    want, stats = ops.cross_entropy(x, t, IGNORED, 0.0)
    got, merged = ops.cross_entropy_of_parts(
        x, t, ops.cross_entropy_parts(x, t, IGNORED, 0.0, 0, 0, 2), IGNORED, 0.0
    )
    assert np.isnan(host(got)).tolist() == [False, True, True, True, False, False]
    close(host(got)[[0, 4, 5]], host(want)[[0, 4, 5]], dtype)
    dloss = flow.ones(6, dtype=got.dtype, device=device)
    g = ops.cross_entropy_backward(x[:, :half], t, merged, dloss, IGNORED, 0.0, 0, classes)
    assert (host(g)[0] == 0).all() and np.isnan(host(g)[1:4]).all()
    assert np.isfinite(host(g)[4:]).all()


@pytest.mark.parametrize("target", [-1, 7, 1 << 40])
def test_a_target_that_is_no_class(device, target):
    x, _ = logits_of(3, 7, "float32", device)
    t = flow.tensor([1, target, IGNORED], device=device)
    parts = ops.cross_entropy_parts(x, t, IGNORED, 0.0, 0, 0, 2)
    if device == "cpu":
        with pytest.raises(IndexError, match=f"target {target} is out of range"):
            ops.cross_entropy_of_parts(x, t, parts, IGNORED, 0.0)
        stats = flow.zeros(3, 2)
    else:
        loss, stats = ops.cross_entropy_of_parts(x, t, parts, IGNORED, 0.0)
        assert np.isnan(host(loss)).tolist() == [False, True, False]
    g = ops.cross_entropy_backward(x, t, stats, flow.ones(3, device=device), IGNORED, 0.0, 0, 7)
    assert host(g)[0].any() and not host(g)[1:].any()


def test_no_rows_and_no_classes(device):
    t = flow.zeros(0, dtype=flow.int64, device=device)
    parts = ops.cross_entropy_parts(flow.zeros(0, 5, device=device), t, IGNORED, 0.0, 0, 0, 2)
    assert parts.shape == (2, 0, 4)
    loss, stats = ops.cross_entropy_of_parts(
        flow.zeros(0, 5, device=device), t, parts, IGNORED, 0.0
    )
    assert loss.shape == (0,) and stats.shape == (0, 2)
    t = flow.tensor([3, IGNORED], device=device)
    parts = ops.cross_entropy_parts(flow.zeros(2, 0, device=device), t, IGNORED, 0.1, 5, 5)
    assert host(parts).tolist() == [[[-np.inf, 0, 0, 0], [0, 0, 0, 0]]]


def test_what_is_refused():
    x, t = flow.zeros(3, 7), flow.zeros(3, dtype=flow.int64)
    stats, one = flow.zeros(3, 2), flow.ones(3)
    with pytest.raises(ValueError, match="classes is 6, but it must be 0 or at least the 7"):
        ops.cross_entropy_backward(x, t, stats, one, IGNORED, 0.0, 0, 6)
    with pytest.raises(ValueError, match=r"first is 4, but it must be in \[0, 3\]"):
        ops.cross_entropy_gradient_(x, t, stats, one, IGNORED, 0.0, 4, 10)
    with pytest.raises(ValueError, match="parts is 0, but it must be at least 1"):
        ops.cross_entropy_parts(x, t, IGNORED, 0.0, 0, 0, 0)
    with pytest.raises(flow.ShapeError, match=r"parts has shape \[2, 3, 3\]"):
        ops.cross_entropy_of_parts(x, t, flow.zeros(2, 3, 3), IGNORED, 0.0)
    part = flow.zeros(3, 7, requires_grad=True)
    g = ops.cross_entropy_backward(part, t, stats, one, IGNORED, 0.0, 0, 9)
    with pytest.raises(NotImplementedError, match="a part of the classes"):
        g.sum().backward()
