# SPDX-License-Identifier: Apache-2.0
"""Results of several tensors have names, in functions composed in Python as in those in C++."""

import pickle

import numpy as np
import pytest
from numerics import ALL, flow, host

X = np.array([[3.0, 1.0, 2.0, 1.0], [0.0, 5.0, 5.0, 4.0]])
VALUES = [("median", ()), ("nanmedian", ()), ("kthvalue", (2,)), ("cummax", ()), ("cummin", ()),
          ("mode", ()), ("max", ()), ("min", ()), ("sort", ()), ("topk", (2,))]  # fmt: skip


@pytest.mark.parametrize("name, arguments", VALUES)
def test_values_and_indices(name, arguments):
    x = flow.tensor(X)
    for call in (lambda **options: getattr(flow, name)(x, *arguments, **options),
                 lambda **options: getattr(x, name)(*arguments, **options)):  # fmt: skip
        for options in ({"dim": 1}, {"dim": 0}, {"axis": -1}):
            y = call(**options)
            values, indices = y
            assert y.values is values is y[0] and y.indices is indices is y[1]
            assert isinstance(y, tuple) and len(y) == 2 and f"_{name}_results" in repr(y)
            assert indices.dtype is flow.int64 and values.shape == indices.shape
            if values.ndim == x.ndim:
                found = np.take_along_axis(X, host(indices), options.get("dim", -1))
                np.testing.assert_array_equal(host(values), found)
        again = pickle.loads(pickle.dumps(y))
        assert type(again) is type(y) and flow.equal(again.values, y.values)


@pytest.mark.parametrize("name, arguments", VALUES)
def test_named_results_are_written(name, arguments):
    x = flow.tensor(X)
    expected = getattr(flow, name)(x, *arguments, dim=1)
    for function in (getattr(flow, name), getattr(flow._C, name, getattr(flow, name))):
        for kind in (tuple, list):
            out = kind([flow.empty(0, dtype=flow.float64), flow.empty(0, dtype=flow.int64)])
            y = function(x, *arguments, dim=1, out=out)
            assert y.values is out[0] and y.indices is out[1] and type(y) is type(expected)
            assert flow.equal(out[0], expected.values) and flow.equal(out[1], expected.indices)
        with pytest.raises(TypeError, match="tuple of as many Tensors as results"):
            function(x, *arguments, dim=1, out=out[0])


def test_aminmax():
    y = flow.aminmax(flow.tensor(X), dim=1)
    assert y.min.tolist() == [1, 0] and y.max.tolist() == [3, 5] and y == tuple(y)


def test_without_a_dim_it_is_one_tensor():
    x = flow.tensor(X)
    for name in ("median", "nanmedian", "max", "min"):
        assert isinstance(getattr(x, name)(), flow.Tensor)


@pytest.mark.parametrize("dtype", ALL)
def test_mode(dtype):
    a = np.random.default_rng(5).integers(0, 3, (4, 7, 3))
    x = flow.tensor(a).to(getattr(flow, dtype))
    numbers = host(x)
    for dim in range(3):
        y = flow.mode(x, dim)
        assert y.values.dtype is x.dtype
        rows, found = (
            np.moveaxis(numbers, dim, -1).reshape(-1, a.shape[dim]),
            host(y.values).ravel(),
        )
        for row, value, place in zip(rows, found, host(y.indices).ravel(), strict=True):
            kinds, counts = np.unique(row, return_counts=True)
            assert value == kinds[counts.argmax()]
            assert place == np.flatnonzero(row == value)[-1]
        kept = x.mode(dim, keepdim=True)
        assert kept.values.shape[dim] == 1 and flow.equal(kept.values.squeeze(dim), y.values)


def test_mode_at_the_edges():
    y = flow.mode(flow.tensor(5.0))
    assert y.values.item() == 5 and y.indices.item() == 0
    assert flow.mode(flow.zeros(0, 3), 1).values.shape == (0,)
    assert flow.mode(flow.tensor([7])).values.item() == 7
    nan, inf = float("nan"), float("inf")
    assert flow.mode(flow.tensor([inf, 1.0, inf, -inf])).values.item() == inf
    assert flow.mode(flow.tensor([nan, 2.0, nan])).values.isnan().item()
    with pytest.raises(IndexError, match="no elements"):
        flow.mode(flow.zeros(3, 0))
    with pytest.raises(IndexError, match=r"mode\(\): dim 2 is out of range"):
        flow.mode(flow.zeros(3, 2), 2)
    x = flow.tensor([2.0, 1.0, 2.0], requires_grad=True)
    flow.mode(x).values.backward()
    assert x.grad.tolist() == [0, 0, 1]
