# SPDX-License-Identifier: Apache-2.0
"""uint8 as an index is a mask, with a warning; other integers are places."""

import warnings

import numpy as np
import pytest
from numerics import flow, host

A = np.arange(24.0).reshape(2, 3, 4)
MASKS = {
    "whole": (A % 3 == 0,), "rows": (np.array([True, False]),),
    "two dims": (np.array([[True, False, True], [False, True, False]]),),
    "behind a slice": (slice(None), np.array([True, False, True])),
    "last": (Ellipsis, np.array([False, True, True, False])),
    "with an int": (1, np.array([True, True, False])),
    "with places": (np.array([True, True]), np.array([0, 2])),
    "none": (np.zeros(A.shape, bool),), "new dim": (np.array(True),), "nothing": (np.array(False),),
}  # fmt: skip


def as_uint8(item, kind):
    if not (isinstance(item, np.ndarray) and item.dtype == bool):
        return item
    values = np.asarray(item.astype(np.uint8) * 7, np.uint8)  # any number but 0 is true
    return flow.tensor(values) if kind == "tensor" else values


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("name", MASKS)
def test_uint8_is_a_mask(name, kind):
    index = MASKS[name]
    given = tuple(as_uint8(item, kind) for item in index)
    given = given[0] if len(given) == 1 else given
    x = flow.tensor(A, requires_grad=True)
    with pytest.warns(UserWarning, match="uint8 is a mask") as caught:
        y = x[given]
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(host(y), A[index])
    y.sum().backward()
    expected = np.zeros_like(A)
    expected[index] = 1
    np.testing.assert_array_equal(host(x.grad), expected)
    for value in (-1.0, np.arange(A[index].size, dtype=float).reshape(A[index].shape)):
        z, b = flow.tensor(A), A.copy()
        with pytest.warns(UserWarning, match="uint8 is a mask"):
            z[given] = flow.tensor(value) if isinstance(value, np.ndarray) else value
        b[index] = value
        np.testing.assert_array_equal(host(z), b)


def test_index_put_takes_masks_and_whole_dims():
    x, mask = flow.tensor(A), flow.tensor([1, 0], dtype=flow.uint8)
    with pytest.warns(UserWarning, match="uint8"):
        y = x.index_put([mask], flow.tensor(-1.0, dtype=flow.float64))
    assert (y[0] == -1).all() and flow.equal(y[1], x[1])
    with pytest.warns(UserWarning, match="uint8"):
        y = x.index_put([mask], flow.tensor(1.0, dtype=flow.float64), accumulate=True)
    assert flow.equal(y[0], x[0] + 1) and flow.equal(y[1], x[1])
    y = x.index_put([None, flow.tensor([2])], flow.tensor(0.0, dtype=flow.float64))
    assert (y[:, 2] == 0).all() and flow.equal(y[:, :2], x[:, :2])


def test_a_mask_of_another_shape_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(IndexError, match=r"a mask of shape \[3\] does not go with dims \[2\]"):
            flow.tensor(A)[flow.ones(3, dtype=flow.uint8)]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_other_integers_are_places(dtype):
    x, places = flow.tensor(A), flow.tensor([1, 0, -1], dtype=getattr(flow, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(host(x[:, :, places]), A[:, :, [1, 0, -1]])
        assert x[places[1]].shape == (3, 4)  # a number: a view
        assert x[np.uint8(1)].shape == (3, 4)


@pytest.mark.parametrize("shape", [(0,), (1,), (4095,), (4097,), (3, 0, 2), (70, 61, 3)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_places_and_elements_where_a_mask_holds(shape, share, device):
    """Around the 4096 elements that a block of CUDA numbers, also where more are asked for."""
    rng = np.random.default_rng(7)
    mask, x = rng.random(shape) < share, rng.integers(1, 99, shape)
    holds, given = flow.tensor(mask).to(device), flow.tensor(x).to(device)
    np.testing.assert_array_equal(host(flow.nonzero(holds)), np.argwhere(mask))
    np.testing.assert_array_equal(host(given.masked_select(holds)), x[mask])
    count = int(mask.sum())
    for asked in {min(count + 7, mask.size), max(count - 3, 0)}:
        places = np.zeros((asked, len(shape)), int)
        places[:count] = np.argwhere(mask)[:asked]
        np.testing.assert_array_equal(host(flow.ops.nonzero(holds, count=asked)), places)
        taken = np.zeros(asked, int)
        taken[:count] = x[mask][:asked]
        np.testing.assert_array_equal(host(flow.ops.masked_take(given, holds, count=asked)), taken)
