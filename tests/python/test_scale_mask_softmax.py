# SPDX-License-Identifier: Apache-2.0
"""fused_scale_mask_softmax against float64 NumPy: masks of every kind and layout, causal matrices,
rows of which nothing is left, and gradients.
"""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, LAYOUTS, assert_close, bits, flow, host, tensor
from op_reference import np_scale_mask_softmax

fused = flow.fused_scale_mask_softmax
SHAPE = (2, 3, 4, 40)
# What broadcasts against SHAPE; the 0-dim mask is one number for all.
BROADCASTS = [(), (40,), (4, 40), (4, 1), (1,), (3, 1, 1), (2, 1, 1, 40), (2, 1, 4, 40),
              (1, 3, 1, 40), (1, 3, 4, 1), (2, 3, 4, 40), (2, 1, 4, 1), (2, 3, 1, 1)]  # fmt: skip


def random(shape, seed=0, scale=2.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


def boolean(shape, seed=1):
    return np.asarray(np.random.default_rng(seed).random(shape) < 0.7)


def check(x, mask=None, where="", **kwargs):
    reference = np_scale_mask_softmax(host(x), None if mask is None else host(mask), **kwargs)
    y = fused(x, mask, **kwargs)
    assert y.dtype is x.dtype and y.device == x.device
    assert_close(y, reference, "softmax", where=where)
    assert bits(fused(x, mask, **kwargs)) == bits(y), where
    return y


@pytest.mark.parametrize("dtype", FLOATS)
def test_masks_of_every_broadcast_shape(dtype, device):
    x = tensor(random(SHAPE), dtype, device)
    kinds = ["bool", dtype] + (["float32"] if dtype in HALVES else [])
    for shape in BROADCASTS:
        for kind in kinds:
            values = boolean(shape) if kind == "bool" else random(shape, 2)
            if kind != "bool":
                values = np.where(boolean(shape, 3), values, -np.inf)
            mask = flow.tensor(values, device=device) if kind == "bool" else tensor(
                values, kind, device)  # fmt: skip
            for causal in (False, True):
                for masked_row in ("nan", "zero"):
                    kwargs = {"scale": 0.3, "causal": causal, "masked_row": masked_row}
                    check(x, mask, f"{shape} {kind} {kwargs}", **kwargs)


def test_masks_of_every_layout(device):
    x = tensor(random(SHAPE), "float32", device)
    for shape in [(4, 40), (2, 1, 4, 40), (1, 3, 1, 40)]:
        for values in (boolean(shape), random(shape).astype(np.float32)):
            mask = flow.tensor(values, device=device)
            for name, layout in LAYOUTS.items():
                check(x, layout(mask), f"{shape} {name}")
            check(x, mask.expand(SHAPE), f"{shape} expanded")
            check(layout(x), mask, f"x, {shape}")


def test_a_mask_that_broadcasts_in_many_places(device):
    shape = (2, 3, 2, 3, 2, 3, 5)
    x = tensor(random(shape), "float64", device)
    for mask_shape in [(2, 1, 2, 1, 2, 1, 5), (1, 3, 1, 3, 1, 3, 1), (2, 1, 2, 1, 2, 3, 5)]:
        check(x, flow.tensor(boolean(mask_shape), device=device), str(mask_shape))
        mask = tensor(random(mask_shape), "float64", device).requires_grad_()
        dy = tensor(random(shape, 5), "float64", device)
        (dmask,) = flow.autograd.grad(fused(x, mask), mask, dy)
        whole = mask.detach().expand(shape).contiguous().requires_grad_()
        (expected,) = flow.autograd.grad(fused(x, whole), whole, dy)
        axes = tuple(i for i, n in enumerate(mask_shape) if n == 1)
        total = host(expected).sum(axes, keepdims=True)
        np.testing.assert_allclose(host(dmask), total, atol=1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
def test_causal(dtype, device):
    """The diagonal ends in the lower right corner, and what it hides is not even looked at."""
    for queries, keys in [(1, 1), (1, 8), (5, 5), (3, 70), (70, 3), (33, 129), (128, 128)]:
        values = random((2, queries, keys))
        hidden = np.arange(keys) > np.arange(queries)[:, None] + keys - queries
        for masked_row in ("nan", "zero"):
            y = check(tensor(values, dtype, device), None, f"{queries} x {keys}", scale=0.5,
                      causal=True, masked_row=masked_row)  # fmt: skip
            poisoned = tensor(np.where(hidden, np.nan, values), dtype, device)
            assert bits(fused(poisoned, None, 0.5, masked_row, True)) == bits(y)


def test_rows_of_which_nothing_is_left(device):
    for keys in (3, 64, 2048, 20000):
        x = tensor(random((3, keys)), "float32", device).requires_grad_()
        keep = boolean((3, keys))
        keep[1] = False
        for mask in (
            flow.tensor(keep, device=device),
            tensor(np.where(keep, 0, -np.inf), "float32", device),
        ):
            nan, zero = fused(x, mask), fused(x, mask, masked_row="zero")
            assert np.isnan(host(nan)[1]).all() and (host(zero)[1] == 0).all()
            np.testing.assert_array_equal(host(nan)[::2], host(zero)[::2])
            dy = tensor(random((3, keys), 4), "float32", device)
            (dx,) = flow.autograd.grad(zero, x, dy)
            assert np.isfinite(host(dx)).all() and (host(dx)[1] == 0).all()


def test_a_boolean_mask_hides_nan_and_infinity(device):
    values = random((2, 50))
    values[0, 3], values[1, 7] = np.nan, np.inf
    keep = np.ones((2, 50), bool)
    keep[0, 3] = keep[1, 7] = False
    y = fused(tensor(values, "float32", device), flow.tensor(keep, device=device))
    assert np.isfinite(host(y)).all() and host(y)[0, 3] == host(y)[1, 7] == 0
    assert np.isnan(host(fused(tensor(values, "float32", device)))).all()


def test_wide_rows(device):
    for dtype in ("float16", "float32"):
        for keys in (8200, 33000, 70000):
            x = tensor(random((3, keys)), dtype, device)
            mask = flow.tensor(boolean((3, keys)), device=device)
            check(x, mask, f"{keys}", scale=0.4)
            check(x, None, f"{keys} causal", causal=True)


def test_gradients(device):
    x = tensor(random((2, 3, 5)), "float64", device).requires_grad_()
    keep = flow.tensor(boolean((3, 5)), device=device)
    for causal in (False, True):
        for shape in [(), (5,), (3, 1), (2, 1, 5), (2, 3, 5)]:
            bias = tensor(random(shape, 3), "float64", device).requires_grad_()

            def call(x, bias, causal=causal):
                return fused(x, bias, 0.7, "zero", causal)

            assert flow.autograd.gradcheck(call, (x, bias))
            assert flow.autograd.gradgradcheck(call, (x, bias))

        def masked(x, causal=causal):
            return fused(x, keep, 0.7, "zero", causal)

        assert flow.autograd.gradcheck(masked, (x,))
        assert flow.autograd.gradgradcheck(masked, (x,))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_composition_says_the_same(dtype, device):
    bound = {"float64": 1e-14, "float32": 2e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    for shape in [(4, 7, 40), (4, 7, 41), (3, 2048)]:
        bias = tensor(random(shape[-1:], 1), dtype, device)
        dy = tensor(random(shape, 2), dtype, device)
        results = []
        for composed in (False, True):
            x = tensor(random(shape), dtype, device).requires_grad_()
            y = flow.softmax(x * 0.5 + bias, -1) if composed else fused(x, bias, 0.5)
            results.append((host(y), host(flow.autograd.grad(y, x, dy)[0])))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, atol=bound)


def test_gradient_of_a_float32_mask_over_half(device):
    x = tensor(random((2, 3, 40)), "float16", device).requires_grad_()
    mask = tensor(random((3, 1), 1), "float32", device).requires_grad_()
    dy = tensor(random((2, 3, 40), 2), "float16", device)
    dx, dmask = flow.autograd.grad(fused(x, mask, 0.5), (x, mask), dy)
    assert dx.dtype is flow.float16 and dmask.dtype is flow.float32
    assert dmask.shape == (3, 1) and np.abs(host(dmask)).max() < 5e-2  # rows of dscores sum to 0


def test_errors(device):
    x = flow.ones(2, 3, 4, device=device)
    for mask, error in [
        (flow.ones(2, 2, 3, 4, device=device), flow.ShapeError),
        (flow.ones(3, 5, device=device), flow.ShapeError),
        (flow.ones(3, 4, dtype=flow.float64, device=device), flow.DTypeError),
        (flow.ones(3, 4, dtype=flow.float16, device=device), flow.DTypeError),
    ]:
        with pytest.raises(error, match="scale_mask_softmax\\(\\): mask has"):
            fused(x, mask)
    with pytest.raises(flow.ShapeError):
        flow.ops.scale_mask_softmax_backward(x, x[:1])
