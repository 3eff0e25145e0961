# SPDX-License-Identifier: Apache-2.0
"""tensordot: pairs of dims, a dim of size 1 beside a longer one."""

import numpy as np
import pytest
from numerics import flow, host


def draw(*shape, dtype=flow.float64):
    values = np.random.default_rng(sum(shape)).integers(-4, 5, shape)
    return flow.tensor(values, dtype=dtype, requires_grad=dtype is flow.float64)


CASES = [
    ((2, 1), (3, 4), 1), ((2, 3), (1, 4), 1), ((2, 1), (1, 4), 1), ((1,), (5,), 1), ((5,), (1,), 1),
    ((2, 1), (3, 4), ([1], [0])), ((2, 3, 1), (1, 3, 4), ([1, 2], [1, 0])),
    ((2, 3, 1), (3, 5, 4), ([1, 2], [0, 1])), ((1, 1), (3, 4), 2), ((2, 1, 3), (4, 1, 5), 2),
    ((3, 1), (3, 2), ([-2, -1], [0, 1])), ((2, 3), (4, 5), 0), ((), (2,), 0),
]  # fmt: skip


def expected(a, b, dims):
    """By hand: the pairs repeated to one size, then NumPy's."""
    pairs = (range(a.ndim - dims, a.ndim), range(dims)) if isinstance(dims, int) else dims
    shape_a, shape_b = list(a.shape), list(b.shape)
    for d, e in zip(*pairs, strict=True):
        shape_a[d] = shape_b[e] = max(shape_a[d], shape_b[e])
    wide = np.broadcast_to(a, shape_a), np.broadcast_to(b, shape_b)
    return np.tensordot(*wide, tuple(list(p) for p in pairs))


@pytest.mark.parametrize("a, b, dims", CASES)
def test_tensordot(a, b, dims, device):
    x, y = (draw(*shape).detach().to(device) for shape in (a, b))
    np.testing.assert_allclose(host(flow.tensordot(x, y, dims)), expected(host(x), host(y), dims))
    x, y = draw(*a), draw(*b)
    assert flow.autograd.gradcheck(lambda s, t: flow.tensordot(s, t, dims), (x, y))


def test_the_dtype_stays():
    for dtype in (flow.int32, flow.int8, flow.float32, flow.float64):
        x, y = draw(2, 1, dtype=dtype), draw(3, 4, dtype=dtype)
        assert flow.tensordot(x, y, 1).dtype is dtype is flow.tensordot(y, x, ([0], [1])).dtype


def test_what_does_not_go_together():
    for a, b, dims in (((2, 3), (2, 4), 1), ((2, 3), (3, 2), ([0], [0])), ((2, 3), (3,), 2),
                       ((2,), (2,), -1), ((2, 3), (3, 2), ([0, 1], [1]))):  # fmt: skip
        with pytest.raises(flow.ShapeError, match=r"tensordot\(\)"):
            flow.tensordot(draw(*a), draw(*b), dims)
    with pytest.raises(flow.ShapeError, match=r"inner\(\)"):
        flow.inner(draw(2, 1), draw(2, 3))  # there nothing is repeated, as in PyTorch
