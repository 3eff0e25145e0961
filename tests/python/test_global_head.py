# SPDX-License-Identifier: Apache-2.0
"""A head whose classes are split over ranks: linear_cross_entropy and cross_entropy of global
tensors against one process, what they run, and what they send.

The functions without "test" in their names run on each rank (rank_group.py), of CPUs here and of
GPUs in test_two_gpus.py.
"""

import itertools

import numpy as np
import pytest
from rank_group import GRID, LINE

flow = pytest.importorskip("oneflow_lite")

F = flow.nn.functional
KINDS = {"B": flow.sbp.broadcast, "0": flow.sbp.split(0), "1": flow.sbp.split(1),
         "P": flow.sbp.partial_sum}  # fmt: skip
# By the largest of what is compared.
CLOSE = {"float64": 1e-10, "float32": 1e-5, "bfloat16": 3e-2}
ROWS, WIDTH = 10, 6


def sbp_of(text):
    return [KINDS[s] for s in text]


def spread(t, p, sbp):
    """A global tensor of that SBP; a partial sum has its values on the first ranks."""
    whole = t.detach().to_global(p, [KINDS["B"]] * len(p.shape))
    return whole.to_global(sbp=sbp_of(sbp)).detach()


def whole(t):
    return t.detach().to_global(sbp=[KINDS["B"]] * len(t.placement.shape)).to_local()


def close(got, want, dtype, what, least=0.1):
    if got.shape != want.shape and got.numel() == 0:
        return  # this rank is none of the placement
    a, b = (t.detach().double().cpu().numpy() for t in (got, want))
    scale = max(np.abs(b).max(initial=0), least)
    np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE[dtype] * scale, err_msg=what)


def operands(dtype, classes, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (ROWS, WIDTH), (classes, WIDTH), (classes,)
    x, weight, bias = (
        flow.tensor(2 * rng.standard_normal(s)).to(getattr(flow, dtype)) for s in shapes
    )
    target = rng.integers(0, classes, ROWS)
    target[::4] = -100
    return x, weight, bias, flow.tensor(target)


def loss_of(x, weight, bias, target, **options):
    return F.linear_cross_entropy(x, weight, target, options.pop("chunks", 1), bias, **options)


def plain_loss(x, weight, bias, target, chunks=1, **options):
    return F.cross_entropy(F.linear(x, weight, bias), target, **options)


def head(rank, ranks, x_sbp, w_sbp, classes, dtype, with_bias, function, options):
    """Values and gradients, in one pass of backward and in the next, are one process's."""
    p = flow.placement("cpu", ranks)
    run = {"fused": loss_of, "plain": plain_loss}[function]
    x, weight, bias, target = operands(dtype, classes)
    rows = "".join("0" if s == "0" else "B" for s in x_sbp)
    leaves = [x, weight, *([bias] if with_bias else [])]
    b_sbp = "".join("B" if s == "1" else s for s in w_sbp)
    given = [spread(t, p, sbp) for t, sbp in zip(leaves, (x_sbp, w_sbp, b_sbp), strict=False)]
    t = spread(target, p, rows)
    for passes in (1, 2):
        mine = [v.detach().requires_grad_() for v in leaves]
        want = run(*mine, *([] if with_bias else [None]), target, **options)
        here = [v.detach().requires_grad_() for v in given]
        got = run(*here, *([] if with_bias else [None]), t, **options)
        what = f"{x_sbp} {w_sbp} {classes} {dtype} {options}"
        close(whole(got), want, dtype, what)
        for _ in range(passes):  # the second computes the logits anew
            for loss in (want, got):
                (loss * 3).sum().backward(retain_graph=True)
        least = 1 if classes == 1 else 0.1  # of one class all are 0: differences of larger numbers
        for a, b in zip(here, mine, strict=True):
            close(whole(a.grad), b.grad, dtype, f"gradient, {what}", least)


OPTIONS = [{}, {"reduction": "sum", "chunks": 3}, {"reduction": "none", "chunks": 2},
           {"label_smoothing": 0.2, "chunks": 2}]  # fmt: skip


@pytest.mark.parametrize("dtype", list(CLOSE))
@pytest.mark.parametrize("classes", [12, 13, 3])
def test_a_head_that_is_split_by_class(ranks, dtype, classes):
    for bias, options in itertools.product((False, True), OPTIONS):
        ranks.run(head, LINE, "B", "0", classes, dtype, bias, "fused", options)
        ranks.run(head, LINE[:2], "B", "0", classes, dtype, bias, "fused", options)


@pytest.mark.parametrize("placement, x_sbp, w_sbp", [
    (LINE, "0", "0"), (LINE, "1", "0"), (LINE, "P", "0"), (LINE, "0", "B"), (LINE, "P", "B"),
    (LINE, "B", "1"), (LINE, "1", "1"), (LINE, "B", "P"),
    (GRID, "0B", "B0"), (GRID, "B0", "0B"), (GRID, "BB", "B0"), (GRID, "00", "B0"),
    (GRID, "BB", "00"), (GRID, "0B", "BB"), (GRID, "BB", "01"),
], ids=str)  # fmt: skip
def test_rows_and_weights_that_lie_in_any_way(ranks, placement, x_sbp, w_sbp):
    for bias, options in itertools.product((False, True), OPTIONS):
        ranks.run(head, placement, x_sbp, w_sbp, 13, "float64", bias, "fused", options)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("placement, x_sbp, w_sbp", [(LINE, "B", "0"), (GRID, "0B", "B0")], ids=str)
def test_cross_entropy_of_its_logits(ranks, placement, x_sbp, w_sbp, reduction):
    for dtype, smoothing in (("float64", 0.0), ("float64", 0.3), ("float32", 0.0)):
        options = {"reduction": reduction, "label_smoothing": smoothing}
        ranks.run(head, placement, x_sbp, w_sbp, 13, dtype, True, "plain", options)


def weights(rank, ranks, w_sbp):
    """A weight per class, whole or split as the classes are."""
    p = flow.placement("cpu", ranks)
    rng = np.random.default_rng(3)
    logits, per_class = (flow.tensor(rng.standard_normal(s)) for s in ((ROWS, 13), (13,)))
    per_class = per_class.abs() + 0.1
    target = operands("float64", 13)[3]
    for smoothing, reduction in itertools.product((0.0, 0.2), ("mean", "sum", "none")):
        options = {"reduction": reduction, "label_smoothing": smoothing}
        plain = logits.detach().requires_grad_()
        want = F.cross_entropy(plain, target, per_class, **options)
        (want * want).sum().backward()
        x = spread(logits, p, "1").requires_grad_()
        got = F.cross_entropy(x, spread(target, p, "B"), spread(per_class, p, w_sbp), **options)
        (got * got).sum().backward()
        close(whole(got), want, "float64", str(options))
        close(whole(x.grad), plain.grad, "float64", str(options))


@pytest.mark.parametrize("w_sbp", ["B", "0"])
def test_weights_of_classes(ranks, w_sbp):
    ranks.run(weights, LINE, w_sbp)


def second_order(rank, ranks):
    """Gradients of gradients, through the logits computed anew."""
    p = flow.placement("cpu", ranks)
    x, weight, _, target = operands("float64", 13)

    def twice(x, weight, target):
        leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
        loss = loss_of(*leaves, None, target)
        first = flow.autograd.grad(loss, leaves, create_graph=True)
        total = sum((g * g).sum() for g in first)
        return first + flow.autograd.grad(total, leaves)

    want = twice(x, weight, target)
    got = twice(spread(x, p, "B"), spread(weight, p, "0"), spread(target, p, "B"))
    for a, b in zip(got, want, strict=True):
        close(whole(a), b, "float64", "second order")


def test_gradients_of_gradients(ranks):
    ranks.run(second_order, LINE)


def passes(rank, ranks, classes):
    """One reading of the logits, one pass that makes their gradient, 16 bytes a row in between."""
    p = flow.placement("cpu", ranks)
    x, weight, _, target = operands("float32", classes)
    h = spread(x, p, "B").requires_grad_()
    w = spread(weight, p, "0").requires_grad_()
    t = spread(target, p, "B")

    def step():
        loss_of(h, w, None, t).backward()

    step()
    with flow.profiler.profile() as prof:
        step()
    names = {s.name for s in prof.stats("op")}
    ran = {n for n in names if "entropy" in n}
    assert ran == {"cross_entropy_parts", "cross_entropy_of_parts", "cross_entropy_gradient_"}
    assert not names & {"exp", "sub", "amax", "softmax", "gather"}
    parts = len(ranks)
    sent = {s.name: s.bytes for s in prof.stats("collective") if s.bytes}
    assert sent == {"all_gather": parts * ROWS * 16 * (parts - 1) / parts}
    assert h.grad.sbp == (KINDS["P"],) and w.grad.sbp == (KINDS["0"],)


@pytest.mark.parametrize("classes", [12, 13])
def test_what_a_split_head_runs_and_sends(ranks, classes):
    ranks.run(passes, LINE, classes)


def a_bad_target(rank, ranks):
    """IndexError on each rank; on CUDA, which cannot stop, NaN."""
    p = flow.placement("cpu", ranks)
    x, weight, _, target = operands("float64", 13)
    target[1] = 13
    args = spread(x, p, "B"), spread(weight, p, "0"), None, spread(target, p, "B")
    if p.type == "cpu":
        with pytest.raises(IndexError, match=r"target 13 is out of range \[0, 12\]"):
            loss_of(*args)
    else:
        assert np.isnan(loss_of(*args).item())


def test_a_target_that_is_no_class(ranks):
    ranks.run(a_bad_target, LINE)
