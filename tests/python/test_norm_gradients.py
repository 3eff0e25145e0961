# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm: which gradients, which layouts, with and without a residual."""

import itertools

import numpy as np
import pytest
from norm_reference import (
    by_dtype,
    by_kept,
    by_norm,
    check,
    ext,
    norm,
    problem,
)
from numerics import LAYOUTS, bits, flow, host, tensor


@by_norm
@by_kept
@pytest.mark.parametrize("residual", [False, True], ids=["alone", "with residual"])
@pytest.mark.parametrize("shape", [(5, 7), (40, 130), (3, 4100), (3, 0), (0, 3)])
def test_every_subset_of_gradients(name, memory_efficient, residual, shape, device):
    """The same bits, whatever else is asked for; but a bias alone is summed another way."""
    rows, cols = shape
    x, weight, bias, dy = problem(rows, cols, "float32", device)
    r = tensor(np.random.default_rng(5).standard_normal(shape), "float32", device)
    tensors = [x, r, weight, bias]
    places = [i for i in range(4) if (residual or i != 1) and (name == "layer_norm" or i != 3)]

    def gradients(chosen):
        leaves = [t.detach().requires_grad_() if i in chosen else t for i, t in enumerate(tensors)]
        x, r, weight, bias = leaves
        y = norm(name, x, cols, weight, bias, memory_efficient, residual=r if residual else None)
        (y[0] if residual else y).backward(dy)
        assert all(t.grad is None for i, t in enumerate(leaves) if i not in chosen)
        return {i: leaves[i].grad for i in chosen}

    whole = gradients(places)
    for n in range(1, len(places)):
        for chosen in itertools.combinations(places, n):
            for i, grad in gradients(chosen).items():
                assert grad.shape == tensors[i].shape
                if chosen == (3,):
                    allowed = 1e-5 * np.abs(host(dy)).sum(0)
                    assert (np.abs(host(grad) - host(whole[i])) <= allowed).all()
                else:
                    assert bits(grad) == bits(whole[i]), f"{i} of {chosen}"


@by_norm
@by_kept
def test_second_order_of_every_subset(name, memory_efficient, device):
    x, weight, bias, _ = problem(3, 4, "float64", device)
    r = x.clone() * 0.5
    tensors = [x, weight, bias, r] if name == "layer_norm" else [x, weight, r]
    for n in range(1, len(tensors) + 1):
        for chosen in itertools.combinations(range(len(tensors)), n):
            leaves = [t.detach().requires_grad_() if i in chosen else t
                      for i, t in enumerate(tensors)]  # fmt: skip

            def call(x, weight, *rest):
                bias, r = rest if len(rest) == 2 else (None, *rest)
                return norm(name, x, 4, weight, bias, memory_efficient, residual=r)

            assert flow.autograd.gradgradcheck(call, leaves), chosen
            if leaves[-1].requires_grad:
                continue
            assert flow.autograd.gradgradcheck(
                lambda x, weight, *rest: norm(
                    name, x, 4, weight, rest[0] if len(rest) == 2 else None, memory_efficient
                ),
                leaves,
            ), chosen


@by_norm
def test_gradients_through_the_statistics(name, device):
    op = getattr(flow.ops, name)
    x, weight, bias, _ = (t.requires_grad_() for t in problem(3, 4, "float64", device))
    columns = [weight, bias] if name == "layer_norm" else [weight]
    for memory_efficient in (False, True):

        def call(x, *columns):
            return list(op(x, *columns, memory_efficient=memory_efficient))  # noqa: B023

        assert flow.autograd.gradcheck(call, [x, *columns])
        assert flow.autograd.gradgradcheck(call, [x, *columns])
        rstd = op(x, *columns, memory_efficient=memory_efficient)[-1]
        assert flow.autograd.grad(rstd, x, flow.ones_like(rstd))[0].shape == x.shape


@by_norm
@pytest.mark.parametrize("residual", [False, True])
def test_statistics_are_made_where_a_gradient_may_need_them(name, residual, device):
    x, weight, bias, r = problem(5, 24, "float32", device)
    columns = [weight, bias] if name == "layer_norm" else [weight]
    op = getattr(flow.ops, f"add_{name}" if residual else name)
    tensors = [x, r, *columns] if residual else [x, *columns]
    first = 2 if residual else 1
    kept, without = op(*tensors), op(*tensors, statistics=False)
    assert [t.shape for t in kept[first:]] == [(5, 1)] * (len(kept) - first)
    assert [t.shape for t in without[first:]] == [(0,)] * (len(kept) - first)
    for a, b in zip(kept[:first], without, strict=False):
        assert bits(a) == bits(b)
    # The functions ask for them by themselves: for a weight alone, not under no_grad.
    weight.requires_grad_()
    y = norm(name, x, 24, weight, bias, residual=r if residual else None)
    y = y[0] if residual else y
    assert flow.autograd.grad(y, weight, flow.ones_like(y))[0].shape == weight.shape
    with flow.no_grad():
        quiet = norm(name, x, 24, weight, bias, residual=r if residual else None)
    assert bits(quiet[0] if residual else quiet) == bits(y)
    y = op(*tensors, statistics=False)[0]
    with pytest.raises(flow.ShapeError, match="rstd"):
        flow.autograd.grad(y, weight, flow.ones_like(y))


def head_slice(device, dtype):
    """The first of three heads' rows: strided rows, dense columns."""
    packed = problem(12, 3 * 64, dtype, device)[0]
    return packed.view(12, 3, 64)[:, 1]


@by_norm
@by_dtype
def test_strided_rows(name, dtype, device):
    x = head_slice(device, dtype)
    assert not x.is_contiguous()
    _, weight, bias, dy = problem(12, 64, dtype, device)
    leaves = [(x if strided else x.contiguous()).detach().requires_grad_() for strided in (1, 0)]
    ys = [norm(name, leaf, 64, weight, bias) for leaf in leaves]
    assert bits(ys[0]) == bits(ys[1]) and ys[0].is_contiguous()
    dxs = [flow.autograd.grad(y, leaf, dy)[0] for y, leaf in zip(ys, leaves, strict=True)]
    assert bits(dxs[0]) == bits(dxs[1])
    residual = problem(12, 64, dtype, device, seed=3)[0]
    fused = [norm(name, v, 64, weight, bias, residual=residual) for v in (x, x.contiguous())]
    assert [bits(t) for t in fused[0]] == [bits(t) for t in fused[1]]


@by_norm
def test_strided_rows_are_not_copied(name):
    packed = flow.ones(1000, 3 * 1024)
    x, weight = packed[:, 1024:2048], flow.ones(1024)
    ext.reset_peak_memory("cpu")
    before = ext.memory_stats("cpu")["allocated"]
    y = norm(name, x, 1024, weight)
    taken = ext.memory_stats("cpu")["peak_allocated"] - before
    assert taken < 1.1 * y.numel() * 4


@by_norm
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_every_tensor(name, layout, device):
    x, weight, bias, dy = problem(6, 40, "float32", device)
    x, weight, bias, dy = (LAYOUTS[layout](t) for t in (x, weight, bias, dy))
    check(name, x, weight, bias, dy, layout)


# The residual forms ---------------------------------------------------------------------------


@by_norm
@by_dtype
@by_kept
def test_the_fused_form_is_the_norm_of_the_rounded_sum(name, dtype, memory_efficient, device):
    steps = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "float64": 1e-14}[dtype]

    def same(a, b):
        """The same bits; on CUDA other kernels may add a row up in another order."""
        if bits(a) == bits(b):
            return True
        most = max(1.0, float(np.abs(host(b)).max()))
        return device == "cuda" and bool((np.abs(host(a) - host(b)) <= steps * most).all())

    for rows, cols in ((5, 33), (300, 96), (3, 4100), (1, 140_000)):
        x, weight, bias, dy = problem(rows, cols, dtype, device)
        r, _, _, dsum = problem(rows, cols, dtype, device, seed=9)
        leaves = [t.detach().requires_grad_() for t in (x, r, weight, bias)]
        y, s = norm(name, leaves[0], cols, leaves[2], leaves[3], memory_efficient,
                    residual=leaves[1])  # fmt: skip
        assert bits(s) == bits(x + r)
        other = [t.detach().requires_grad_() for t in (s, weight, bias)]
        assert same(norm(name, other[0], cols, *other[1:], memory_efficient), y)

        n = 4 if name == "layer_norm" else 3
        grads = flow.autograd.grad([y, s], leaves[:n], [dy, dsum], retain_graph=True)
        assert bits(grads[0]) == bits(grads[1])
        alone = flow.autograd.grad(
            norm(name, other[0], cols, *other[1:], memory_efficient), other[: n - 1], dy
        )
        assert all(same(g, a) for g, a in zip(grads[2:], alone[1:], strict=True))
        total = host(alone[0]) + host(dsum)
        scale = np.abs(host(alone[0])) + np.abs(host(dsum)) + 1
        assert (np.abs(host(grads[0]) - total) <= steps * scale).all()
        (only_sum,) = flow.autograd.grad(s, leaves[:1], dsum, retain_graph=True)
        assert bits(only_sum) == bits(dsum)
        (only_norm,) = flow.autograd.grad(y, leaves[1:2], dy)
        assert same(only_norm, alone[0])


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("cols", [100, 1000, 2048, 2049, 4096, 16384, 100_003])
def test_the_weights_gradient_of_few_rows(rows, cols, device):
    """It is little more than one x_hat then, which may lie near 0: what the mean's rounding left of
    the centre shows, be it ever so small."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, dy = (tensor(rng.standard_normal((rows, cols)) + 3, "float32", device) for _ in range(2))
        weight = flow.ones(cols, device=device, requires_grad=True)
        flow.layer_norm(x, [cols], weight).backward(dy)
        exact, g = host(x), host(dy)
        centred = exact - exact.mean(1, keepdims=True)
        x_hat = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        error = np.abs(host(weight.grad) - (g * x_hat).sum(0))
        bound = 1e-5 * np.abs(g * x_hat).sum(0)
        assert (error <= bound).all(), (seed, (error / bound).max())
