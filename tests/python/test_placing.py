# SPDX-License-Identifier: Apache-2.0
"""Masks, diagonals, windows and blocks: NumPy's values, gradients, and what does not fit."""

import itertools
import math

import numpy as np
import pytest
from numerics import flow, host

X = np.arange(24, dtype=np.float64).reshape(2, 3, 4)


def same(got, want):
    assert tuple(got.shape) == np.shape(want)
    np.testing.assert_array_equal(host(got), want)


def test_masked_scatter():
    x = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    source = flow.tensor([10.0, 20.0, 30.0, 40.0], requires_grad=True)
    mask = flow.tensor([[True, False, True], [False, True, False]])
    y = x.masked_scatter(mask, source)
    same(y, [[10, 2, 20], [4, 30, 6]])
    (y * flow.arange(1.0, 7).view(2, 3)).sum().backward()
    same(x.grad, [[0, 2, 0], [4, 0, 6]])
    same(source.grad, [1, 3, 5, 0])
    same(
        flow.masked_scatter(flow.zeros(2, 2), flow.tensor([True, False]), source),
        [[10, 0], [20, 0]],
    )
    z = flow.zeros(2, 3)
    assert z.masked_scatter_(mask, source.detach()) is z and z.sum().item() == 60
    same(z.masked_scatter(flow.zeros(3, dtype=flow.bool), flow.zeros(0)), z.numpy())
    with pytest.raises(flow.ShapeError, match="2 elements for 3 places"):
        x.masked_scatter(mask, source[:2])
    with pytest.raises(flow.DTypeError, match="source has dtype int64"):
        x.masked_scatter(mask, flow.arange(4))
    with pytest.raises(flow.DTypeError, match="mask has dtype int64"):
        x.masked_scatter(mask.long(), source)


def test_diagonals():
    for offset in (0, 1, -2):
        x = flow.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = flow.diag_embed(x, offset)
        same(y, np.diag([1.0, 2, 3], offset))
        (y * y).sum().backward()
        same(x.grad, [2, 4, 6])
    batch = flow.tensor(X).diag_embed(1, 0, 2)
    assert batch.shape == (5, 2, 5, 3)
    same(batch.diagonal(1, 0, 2), X)
    x = flow.zeros(2, 3)
    assert x.fill_diagonal_(7) is x
    same(x, [[7, 0, 0], [0, 7, 0]])
    same(flow.zeros(2, 2, 2).fill_diagonal_(1), np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]]))
    wide = flow.zeros(3, 4).t()[1:]
    wide.fill_diagonal_(1)
    same(wide, np.eye(3))
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(flow.ShapeError, match="fill_diagonal_"):
            flow.zeros(shape).fill_diagonal_(1)


def test_blocks_and_products():
    a, b = np.arange(6.0).reshape(2, 3), np.array([[7.0], [8.0]])
    y = flow.block_diag(flow.tensor(a), flow.tensor([9.0], dtype=flow.float64), flow.tensor(b))
    want = np.zeros((5, 5))
    want[:2, :3], want[2, 3], want[3:, 4:] = a, 9, b
    same(y, want)
    narrow = flow.tensor([9.0], dtype=flow.float32)  # promoted, and beside a block with a gradient
    same(flow.block_diag(flow.tensor(a), narrow, flow.tensor(b)), want)
    x = flow.tensor(a, requires_grad=True)
    flow.block_diag(x, flow.tensor(b).T, x[:0]).sum().backward()
    same(x.grad, np.ones_like(a))
    across = flow.block_diag(flow.tensor(a.T.copy()).T, flow.zeros(0, 2, dtype=flow.float64))
    same(across, np.concatenate([a, np.zeros((2, 2))], 1))
    with pytest.raises(flow.ShapeError, match="tensor 1 has shape"):
        flow.block_diag(flow.ones(1), flow.ones(1, 1, 1))
    x, z = flow.tensor([1, 2]), flow.tensor([3, 4, 5])
    same(flow.cartesian_prod(x, z), list(itertools.product([1, 2], [3, 4, 5])))
    assert flow.cartesian_prod(x) is x


@pytest.mark.parametrize("k", range(-1, 5))
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (-1, 1)])
def test_rot90(k, dims):
    same(flow.rot90(flow.tensor(X), k, dims), np.rot90(X, k, dims))
    with pytest.raises(ValueError, match="a dim occurs twice"):
        flow.rot90(flow.tensor(X), k, (0, -3))


@pytest.mark.parametrize(("dim", "size", "step"), [(2, 2, 1), (-1, 3, 2), (1, 2, 3), (0, 0, 1)])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_unfold(dim, size, step, requires_grad):
    x = flow.tensor(X, requires_grad=requires_grad)
    y = x.unfold(dim, size, step)
    axis = dim % 3
    starts = range(0, X.shape[axis] - size + 1, step)
    want = np.stack([np.moveaxis(X.take(range(s, s + size), axis), axis, -1) for s in starts], axis)
    same(y, want)
    if requires_grad:
        y.sum().backward()
        count = np.zeros(X.shape[axis])
        for s in starts:
            count[s : s + size] += 1
        shape = [-1 if d == axis else 1 for d in range(3)]
        same(x.grad, np.broadcast_to(count.reshape(shape), X.shape))
    elif size:
        x.fill_(1)
        assert y.sum().item() == y.numel()  # a view


@pytest.mark.parametrize(("dim", "size", "step"), [(0, 2, 1), (1, 3, 1), (2, 2, 2), (2, 4, 1)])
def test_unfold_of_an_expanded_leaf(dim, size, step, device):
    """Each element has its own gradient, though several are one place."""
    for shape in ((3, 1, 4), (1, 5, 1), (3, 5, 1)):
        values = np.arange(float(np.prod(shape))).reshape(shape)
        x = flow.tensor(values, device=device).expand(3, 5, 4).requires_grad_()
        plain = x.detach().clone().requires_grad_()
        y = x.unfold(dim, size, step)
        g = flow.arange(float(y.numel()), device=device, dtype=flow.float64).view(y.shape)
        y.backward(g)
        plain.unfold(dim, size, step).backward(g)
        want = np.zeros(x.shape)
        windows = np.moveaxis(want, dim, -1)  # a view
        given = np.moveaxis(g.cpu().numpy(), dim, 0)
        for i in range(given.shape[0]):
            windows[..., i * step : i * step + size] += given[i]
        for leaf in (x, plain):
            same(leaf.grad.cpu(), want)


def test_second_order_of_unfold():
    x = flow.tensor(X, dtype=flow.float64, requires_grad=True)
    assert flow.autograd.gradgradcheck(lambda x: x.unfold(1, 2, 1) ** 3, [x])


def test_unfold_that_does_not_fit():
    for size, step, text in ((5, 1, r"size is 5, but it must be in \[0, 4\]"), (2, 0, "step is 0")):
        with pytest.raises(ValueError, match=text):
            flow.tensor(X).unfold(2, size, step)
    same(flow.tensor(3.0).unfold(0, 1, 1), [3])


def test_isin():
    x, others = np.array([[1, 5, 2], [0, 9, 5]]), np.array([5, 0, 7])
    same(flow.isin(flow.tensor(x), flow.tensor(others)), np.isin(x, others))
    same(flow.isin(flow.tensor(x), flow.tensor(others), invert=True), ~np.isin(x, others))
    same(flow.isin(flow.tensor(x), flow.tensor([4.5, 5.0, math.nan])), x == 5)
    same(flow.isin(flow.tensor([1.0, math.nan]), flow.tensor([math.nan])), [False, False])
    assert flow.isin(flow.tensor(x), 9).sum().item() == 1 and flow.isin(5, flow.tensor(x)).item()
    assert not flow.isin(flow.tensor(x), flow.tensor([])).any()
    same(flow.isin(flow.tensor([True, False]), flow.tensor([True])), [True, False])


def test_shapes_and_stacks():
    assert flow.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    with pytest.raises(flow.ShapeError, match=r"\[2\] and \[3\] do not broadcast"):
        flow.broadcast_shapes((2,), (3,))
    a, b = X[0], X[1]
    same(flow.dstack([flow.tensor(a), flow.tensor(b)]), np.dstack([a, b]))
    same(flow.dstack([flow.tensor(a[0]), flow.tensor(b[0])]), np.dstack([a[0], b[0]]))
    parts = flow.hsplit(flow.tensor(X), 3), flow.vsplit(flow.tensor(X), [1])
    for got, want in zip(parts, (np.hsplit(X, 3), np.vsplit(X, [1])), strict=True):
        for g, w in zip(got, want, strict=True):
            same(g, w)
    assert [t.shape for t in flow.hsplit(flow.arange(4), 2)] == [(2,), (2,)]
    for least, make in enumerate((flow.atleast_1d, flow.atleast_2d, flow.atleast_3d), 1):
        for x in (np.float64(3), a[0], a, X):
            same(make(flow.tensor(x)), (np.atleast_1d, np.atleast_2d, np.atleast_3d)[least - 1](x))
        several = make(flow.tensor(1), flow.ones(2))
        assert type(several) is tuple and [t.ndim for t in several] == [least, least]
        assert len(make([flow.tensor(1)])) == 1
    same(flow.moveaxis(flow.tensor(X), 0, 2), np.moveaxis(X, 0, 2))


def test_numbers_and_nan():
    x, y = (
        flow.tensor([1.0, math.nan, math.nan, -math.inf]),
        flow.tensor([math.nan, 2, math.nan, 0]),
    )
    same(flow.fmax(x, y), [1, 2, math.nan, 0])
    same(flow.fmin(x, y), [1, 2, math.nan, -math.inf])
    same(flow.fmax(flow.tensor([1, 5]), flow.tensor([2, 3])), [2, 5])
    same(x.isneginf(), [False, False, False, True])
    same((-x).isposinf(), [False, False, False, True])
    z = flow.ones(2)
    assert z.multiply_(3).subtract_(1).negative_() is z and z.tolist() == [-2, -2]


def test_exponential_and_normal():
    flow.manual_seed(3)
    x = flow.empty(1 << 16).exponential_(2.0)
    assert x.min().item() > 0 and abs(x.mean().item() - 0.5) < 0.01
    assert abs(x.std().item() - 0.5) < 0.02
    with pytest.raises(ValueError, match="lambd is 0"):
        x.exponential_(0)
    y = flow.normal(3.0, 0.5, (1 << 16,))
    assert abs(y.mean().item() - 3) < 0.01 and abs(y.std().item() - 0.5) < 0.01
    means = flow.arange(4.0, dtype=flow.float64)
    assert flow.normal(means, 0.0).tolist() == [0, 1, 2, 3]
    assert flow.normal(means, flow.zeros(3, 1, dtype=flow.float64)).shape == (3, 4)
    with pytest.raises(TypeError, match=r"normal\(\) takes a size"):
        flow.normal(0.0, 1.0)
    with pytest.raises(ValueError, match="std is -1"):
        flow.normal(means, -1.0)
