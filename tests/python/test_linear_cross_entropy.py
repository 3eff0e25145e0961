# SPDX-License-Identifier: Apache-2.0
"""linear_cross_entropy against linear and cross_entropy one after the other."""

import itertools

import numpy as np
import pytest
from numerics import FLOATS, HALVES, bits, flow, host, tensor

F = flow.nn.functional
REDUCTIONS = ("mean", "sum", "none")
# The error of a gradient by its largest element: rounding of the logits, and of sums of parts.
BOUND = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def operands(dtype, device, rows=(3, 7), width=8, classes=11, bias=True, seed=0):
    rng = np.random.default_rng(seed)
    x = tensor(rng.standard_normal((*rows, width)), dtype, device).requires_grad_()
    weight = tensor(rng.standard_normal((classes, width)) * 0.5, dtype, device).requires_grad_()
    b = tensor(rng.standard_normal(classes), dtype, device).requires_grad_() if bias else None
    target = rng.integers(0, classes, rows)
    target.reshape(-1)[::5] = -100
    return x, weight, b, flow.tensor(target, device=device)


def composed(x, weight, bias, target, reduction, smoothing=0.0):
    logits = F.linear(x, weight, bias)
    loss = F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction=reduction,
                           label_smoothing=smoothing)  # fmt: skip
    return loss.reshape(target.shape) if reduction == "none" else loss


def gradients(loss, leaves, seed=5):
    dloss = np.random.default_rng(seed).standard_normal(tuple(loss.shape))
    dloss = tensor(dloss, loss.dtype.name, loss.device)
    return flow.autograd.grad(loss, [t for t in leaves if t is not None], dloss)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("chunks", [1, 2, 4, 21, 1000])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_it_is_the_composition(device, dtype, chunks, reduction):
    for bias, smoothing in itertools.product((True, False), (0.0, 0.2)):
        x, weight, b, target = operands(dtype, device, bias=bias)
        want = composed(*(t if t is None else t.detach().double().requires_grad_()
                          for t in (x, weight, b)), target, reduction, smoothing)  # fmt: skip
        got = F.linear_cross_entropy(x, weight, target, chunks, b, reduction=reduction,
                                     label_smoothing=smoothing)  # fmt: skip
        assert got.dtype is x.dtype and got.shape == want.shape
        scale = np.abs(host(want)).max()
        np.testing.assert_allclose(host(got), host(want), rtol=0, atol=BOUND[dtype] * scale)
        leaves = [x, weight, b]
        wide = [t if t is None else t.detach().double().requires_grad_() for t in leaves]
        expected = gradients(composed(*wide, target, reduction, smoothing), wide)
        for g, e in zip(gradients(got, leaves), expected, strict=True):
            assert g.dtype is x.dtype
            bound = 2 * BOUND[dtype] * np.abs(host(e)).max()
            np.testing.assert_allclose(host(g), host(e), rtol=0, atol=bound)


@pytest.mark.parametrize("wanted", list(itertools.product((True, False), repeat=3))[:-1])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_gradcheck_of_every_subset(wanted, reduction):
    x, weight, bias, target = operands("float64", "cpu", (2, 3), 3, 4)
    for t, want in zip((x, weight, bias), wanted, strict=True):
        t.requires_grad_(want)

    def loss(x, weight, bias):
        return F.linear_cross_entropy(x, weight, target, 4, bias, reduction=reduction)

    assert flow.autograd.gradcheck(loss, (x, weight, bias))
    assert flow.autograd.gradgradcheck(loss, (x, weight, bias))


def test_backward_may_run_again(device):
    """The second pass computes anew what the first one took; both add up."""
    x, weight, b, target = operands("float32", device)
    loss = F.linear_cross_entropy(x, weight, target, 3, b)
    loss.backward(flow.tensor(3.0, device=device), retain_graph=True)
    first = [host(t.grad) for t in (x, weight, b)]
    loss.backward(flow.tensor(2.0, device=device))
    for t, g in zip((x, weight, b), first, strict=True):
        np.testing.assert_allclose(host(t.grad), g * 5 / 3, rtol=1e-5, atol=1e-7)
    with pytest.raises(RuntimeError, match=r"linear_cross_entropy"):
        loss.backward()


def test_a_small_gradient_in_float16_survives_by_its_scale(device):
    """A mean over many rows: what is scaled up before backward is not lost below float16."""
    rows = 4096
    x = tensor(np.full((rows, 4), 1e-3), "float16", device).requires_grad_()
    weight = tensor(np.eye(4), "float16", device).requires_grad_()
    target = flow.zeros(rows, dtype=flow.int64, device=device)
    scale = flow.tensor(2.0**14, dtype=flow.float16, device=device)
    F.linear_cross_entropy(x, weight, target, 2).backward(scale)
    want = (0.25 - np.eye(4)[0]) * 2.0**14 / rows
    np.testing.assert_allclose(host(x.grad), np.tile(want, (rows, 1)), rtol=2e-3)


def test_leaves_are_left_alone(device):
    x, weight, b, target = operands("float32", device)
    before = [bits(t) for t in (x, weight, b, target)]
    F.linear_cross_entropy(x, weight, target, 2, b).backward()
    assert before == [bits(t) for t in (x, weight, b, target)]
    with pytest.raises(RuntimeError, match="changed in place|modified"):
        loss = F.linear_cross_entropy(x, weight, target, 2, b, reduction="none")
        with flow.no_grad():
            weight.mul_(2)
        loss.sum().backward()


@pytest.mark.parametrize("dtype", [d for d in HALVES if d == "bfloat16"])
def test_under_autocast(device, dtype):
    x, weight, b, target = operands("float32", device)
    with flow.autocast(device, getattr(flow, dtype)):
        loss = F.linear_cross_entropy(x, weight, target, 2, b)
        want = composed(x, weight, b, target, "mean")
    assert loss.dtype is want.dtype is flow.float32
    np.testing.assert_allclose(host(loss), host(want), rtol=1e-2)
    got, expected = (flow.autograd.grad(y, [x, weight, b]) for y in (loss, want))
    for g, e in zip(got, expected, strict=True):
        assert g.dtype is flow.float32
        np.testing.assert_allclose(host(g), host(e), rtol=0, atol=2e-2 * np.abs(host(e)).max())


def test_the_logits_are_not_kept():
    """Memory at the peak and between the passes: one part's logits, none."""
    rows, width, classes = 2048, 64, 4096
    x, weight, _, target = operands("float32", "cpu", (rows,), width, classes, bias=False)
    part = rows * classes * 4 // 8

    with flow.profiler.profile() as prof:
        loss = F.linear_cross_entropy(x, weight, target, 8)
        loss.backward()
    memory = [m for _, m in prof.memory()]
    assert max(memory) - memory[0] < 2 * part + 8 * (rows + classes) * width
    after = F.linear_cross_entropy(x, weight, target, 8)
    with flow.profiler.profile() as seen:
        flow.zeros(1)
    # The gradients of x and weight, with what the allocator rounds up, and no logits.
    assert seen.memory()[0][1] - memory[0] < 4 * (rows + classes) * width * 4
    assert after.requires_grad


def test_meta_and_no_grad():
    x, weight, b, target = operands("float32", "cpu")
    with flow.no_grad():
        loss = F.linear_cross_entropy(x, weight, target, 3, b)
    assert not loss.requires_grad
    np.testing.assert_allclose(host(loss), host(composed(x, weight, b, target, "mean")), rtol=1e-5)
    far = [t.detach().to("meta").requires_grad_() for t in (x, weight, b)]
    loss = F.linear_cross_entropy(far[0], far[1], target.to("meta"), 3, far[2])
    loss.backward()
    assert loss.shape == () and far[1].grad.shape == weight.shape
