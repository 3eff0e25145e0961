# SPDX-License-Identifier: Apache-2.0
"""Indexing with ints, slices, None and ..., against NumPy."""

import numpy as np
import pytest
from drawing import properties

flow = pytest.importorskip("oneflow_lite")


def draw_item(draw, n):
    kind = draw.choice(["int", "slice", "slice", "full"])
    if kind == "int" and n > 0:
        return draw.integer(-n, n - 1)
    if kind == "slice":
        ends = [None, *range(-n - 2, n + 3)]
        return slice(draw.choice(ends), draw.choice(ends), draw.choice([None, 1, 2, 3]))
    return slice(None)


def draw_index(draw, shape):
    items = [draw_item(draw, n) for n in shape[: draw.integer(0, len(shape))]]
    if draw.integer(0, 1):
        place = draw.integer(0, len(items))
        # What follows an ellipsis speaks of the last dims.
        after = [draw_item(draw, n) for n in shape[len(shape) - (len(items) - place) :]]
        items = [*items[:place], Ellipsis, *(after if len(items) > place else [])]
    for _ in range(draw.integer(0, 2)):
        items.insert(draw.integer(0, len(items)), None)
    return items[0] if len(items) == 1 and draw.integer(0, 1) else tuple(items)


@properties(300)
def test_getitem_is_numpys(draw):
    shape = [draw.integer(0, 4) for _ in range(draw.integer(0, 4))]
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    index = draw_index(draw, shape)
    x = flow.from_numpy(a)
    y, expected = x[index], a[index]
    assert y.shape == expected.shape, index
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y is not x and (y.numel() == 0 or y._base is x)  # a view


@properties(200)
def test_setitem_is_numpys(draw):
    shape = [draw.integer(0, 4) for _ in range(draw.integer(0, 3))]
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    x = flow.from_numpy(a.copy())
    index = draw_index(draw, shape)
    value = draw.choice(["number", "tensor", "broadcast", "array"])
    target = a[index].shape
    if value == "number":
        x[index] = a[index] = 7
    elif value == "broadcast" and target:
        v = np.arange(target[-1], dtype=np.float64)
        x[index] = flow.from_numpy(v)
        a[index] = v
    else:
        v = np.array(-np.arange(np.prod(target, dtype=int), dtype=np.float64).reshape(target) - 1)
        x[index] = v if value == "array" else flow.from_numpy(v)
        a[index] = v
    np.testing.assert_array_equal(x.numpy(), a)


def test_index_items_of_numpy_and_tensors():
    x = flow.arange(5)
    assert x[np.int64(2)].item() == 2 and x[flow.tensor(3)].item() == 3
    assert x[flow.tensor(1) : np.int32(3)].tolist() == [1, 2]
    assert [int(v) for v in x] == [0, 1, 2, 3, 4]
    assert 3 in x and 9 not in x


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (5, IndexError, r"\(\): index 5 is out of range \[-3, 2\] for dim 0 of size 3"),
        ((0, -5), IndexError, r"index -5 is out of range \[-4, 3\] for dim 1 of size 4"),
        ((0, None, 0, 0), IndexError, r"too many indices: 3 for a tensor of shape \[3, 4\]"),
        ((..., ...), IndexError, "only one ellipsis"),
        (slice(None, None, -1), ValueError, "positive"),
        (slice(None, None, 0), ValueError, "zero"),
        ("a", TypeError, "arrays, lists and tuples of them, not with str"),
        (1.0, IndexError, "not with float"),
        (slice("a", None), TypeError, None),
        (2**80, OverflowError, None),
    ],
)
def test_index_errors(index, error, text):
    x = flow.zeros(3, 4)
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x[index] = 0
    assert x.sum().item() == 0


def test_setitem_errors():
    x = flow.zeros(3, 4)
    with pytest.raises(TypeError, match="deleted"):
        del x[0]
    with pytest.raises(flow.ShapeError):
        x[0] = flow.zeros(3)
    with pytest.raises(TypeError):
        x[0] = "a"
    assert x.sum().item() == 0


def test_indexing_is_differentiable():
    x = flow.from_numpy(np.arange(12.0).reshape(3, 4)).requires_grad_()
    (x[1:, ::2] * 3 + x[None, 0, ..., 1]).sum().backward()
    expected = np.zeros((3, 4))
    expected[1:, ::2] = 3
    expected[0, 1] += 4
    np.testing.assert_array_equal(x.grad.numpy(), expected)

    y = flow.from_numpy(np.ones((3, 4))).requires_grad_()
    z = y * 2
    z[1] = 5
    z[:, 0] = y[:, 1]
    z.sum().backward()
    expected = np.full((3, 4), 2.0)
    expected[1] = 0
    expected[:, 0] = 0
    expected[:, 1] += 1
    np.testing.assert_array_equal(y.grad.numpy(), expected)
    with pytest.raises(RuntimeError, match="leaf"):
        y[0] = 1


def test_the_name_of_a_new_dim():
    x = flow.arange(3)
    assert flow.newaxis is None and "newaxis" in dir(flow)
    assert x[:, flow.newaxis].tolist() == [[0], [1], [2]] and x[flow.newaxis].shape == (1, 3)
