# SPDX-License-Identifier: Apache-2.0
"""The gradient of all parts of a tensor: split, chunk, unbind and tensor_split join what flows back
to their parts once, instead of putting each into zeros of the whole.
"""

import itertools

import numpy as np
import pytest
from numerics import flow, host, tensor
from test_launches import work

CUTS = {
    "split": lambda x: x.split(2, 1),  # the last part is smaller
    "split_with_sizes": lambda x: x.split([1, 0, 4], -1),
    "chunk": lambda x: x.chunk(3, 1),
    "tensor_split": lambda x: x.tensor_split(3, 1),
    "unbind": lambda x: x.unbind(0),
    "unbind of the last dim": lambda x: x.unbind(-1),
}
by_cut = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())


def leaf(device="cpu", shape=(3, 5)):
    x = np.random.default_rng(0).standard_normal(shape)
    return tensor(x, "float64", device).requires_grad_()


def places(cut, x):
    """The elements of each part as indices into x."""
    return [host(p) for p in cut(flow.arange(x.numel()).reshape(*x.shape))]


@by_cut
def test_every_subset_of_the_parts(cut, device):
    x = leaf(device)
    where = places(cut, x)
    for used in itertools.product([False, True], repeat=len(where)):
        parts = cut(x)
        loss = sum((i + 2) * (p * p).sum() for i, p in enumerate(parts) if used[i])
        if not any(used):
            continue
        (dx,) = flow.autograd.grad(loss, x)
        expected = np.zeros(15)
        for i, at in enumerate(where):
            if used[i]:
                expected[at] = 2 * (i + 2) * host(x.detach()).reshape(-1)[at]
        assert dx.is_contiguous()
        np.testing.assert_array_equal(host(dx), expected.reshape(3, 5))


@by_cut
def test_gradients_of_gradients(cut):
    def run(x):
        parts = cut(x)
        return parts[0].sin(), parts[-1].exp()

    x = leaf()
    assert flow.autograd.gradcheck(run, (x,))
    assert flow.autograd.gradgradcheck(run, (x,))


@by_cut
def test_one_op_backward(cut, device):
    x = leaf(device)
    parts = cut(x)
    dy = [flow.ones_like(p) for p in parts]
    seen = work(lambda: flow.autograd.grad(parts, x, dy, retain_graph=True), device)
    copies = sum(p.numel() > 0 for p in parts)
    assert sum(seen.values()) <= (copies if device == "cuda" else 1), seen
    # One part: it is put between zeros in one pass.
    seen = work(lambda: flow.autograd.grad(parts[0], x, dy[0], retain_graph=True), device)
    assert sum(seen.values()) == 1, seen


@by_cut
def test_parts_are_views(cut):
    x = leaf()
    y = x * 1
    parts = cut(y)
    with flow.no_grad():
        parts[0].fill_(7)
    assert (host(y.detach()).reshape(-1)[places(cut, x)[0]] == 7).all()


@by_cut
def test_a_part_changed_in_place(cut):
    """The others, and the whole, have the gradient of what they are now."""

    def run(x):
        y = x * 1
        parts = cut(y)
        parts[0].mul_(3)
        return (y * y).sum() + (parts[-1] ** 3).sum() + parts[0].sin().sum()

    x = leaf()
    given, where = host(x.detach()).reshape(-1), places(cut, x)
    factor, first, last = np.ones(15), np.zeros(15), np.zeros(15)
    factor[where[0]], first[where[0]], last[where[-1]] = 3, 1, 1
    now = factor * given
    slope = factor * (2 * now + last * 3 * now**2 + first * np.cos(now))
    (dx,) = flow.autograd.grad(run(x), x)
    np.testing.assert_allclose(host(dx).reshape(-1), slope, rtol=1e-12)


@by_cut
def test_the_whole_changed_in_place(cut):
    x = leaf()
    y = x * 1
    parts = cut(y)
    y.mul_(2)
    (dx,) = flow.autograd.grad(sum((p * p).sum() for p in parts), x)
    np.testing.assert_allclose(host(dx), 8 * host(x.detach()), rtol=1e-12)


def test_a_part_of_a_leaf_cannot_be_changed():
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        leaf().unbind(0)[0].mul_(2)


def test_of_views_hooks_and_no_parts(device):
    x = leaf(device)
    seen = []
    parts = x.t().chunk(2, 0)  # of 3 and 2 rows
    parts[1].register_hook(lambda g: seen.append(g.shape) or 2 * g)
    parts[1].retain_grad()
    assert parts[0].grad_fn is not None and not parts[0].is_leaf
    (parts[0].sum() + parts[1].sum()).backward()
    assert seen == [(2, 3)] and (host(parts[1].grad) == 2).all()
    np.testing.assert_array_equal(host(x.grad), [[1, 1, 1, 2, 2]] * 3)
    empty = flow.ones(0, 3, requires_grad=True)
    assert len(empty.unbind(0)) == 0
    (dx,) = flow.autograd.grad([p.sum() for p in empty.chunk(2, 0)], empty)
    assert dx.shape == (0, 3)
    with flow.no_grad():
        assert not x.unbind(0)[0].requires_grad
    many = flow.ones(130, requires_grad=True)  # more than one cat takes
    (dx,) = flow.autograd.grad(sum(many.unbind(0)[::2]), many)
    np.testing.assert_array_equal(host(dx), [1, 0] * 65)
