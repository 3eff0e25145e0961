# SPDX-License-Identifier: Apache-2.0
"""Joining, cutting, picking and putting elements: what the op table's samples do not show."""

import pickle

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor

RNG = np.random.default_rng(11)


def raises(error, text, call):
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


@pytest.mark.parametrize("n", [63, 64, 65, 129])
def test_cat_of_many(n, device):
    """An op's inputs have a bit each in 64: more are joined in steps."""
    values = RNG.standard_normal((n, 1, 3)).astype(np.float32)
    parts = [flow.tensor(v, device=device, requires_grad=i % 2 == 0) for i, v in enumerate(values)]
    y = flow.cat(parts)
    np.testing.assert_array_equal(host(y), values[:, 0])
    (y * flow.arange(float(n), device=device).reshape(n, 1)).sum().backward()
    for i, part in enumerate(parts):
        assert (part.grad is None) == (i % 2 == 1)
        assert part.grad is None or host(part.grad).tolist() == [[i] * 3]


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat_of_small_and_large(dim, dtype, device):
    """Small parts share a launch on CUDA, 16 of them at most; strided ones do not."""
    sizes = [1, 3, 0, 64, 8, 7, 2, 1, 16, 5, 1, 1, 1, 32, 9, 4, 1, 2, 3, 100000, 6, 8, 8]
    values, parts = [], []
    for i, size in enumerate(sizes):
        shape = [2, 3, 4]
        shape[dim] = size
        numbers = RNG.integers(0, 100, [n + (i % 5 == 4) for n in shape]).astype(dtype)
        part = flow.tensor(numbers, device=device)
        if i % 5 == 4:  # no dense memory, and an odd offset
            part, numbers = part[1:, 1:, 1:], numbers[1:, 1:, 1:]
        if i % 5 == 3:
            part = part.transpose(0, 1).contiguous().transpose(0, 1)
        parts.append(part)
        values.append(numbers)
    np.testing.assert_array_equal(host(flow.cat(parts, dim)), np.concatenate(values, dim))
    few = [parts[i] for i in (3, 4, 20)]
    expected = np.concatenate([values[i] for i in (3, 4, 20)], dim)
    np.testing.assert_array_equal(host(flow.cat(few, dim)), expected)


# On CUDA a launch takes 2 MB of any parts; where all are words of 16 bytes, 64 MB of each.
@pytest.mark.parametrize("first", [0, 1, 8, 16])
@pytest.mark.parametrize("sizes", [[2**20] * 2, [2**20] * 3, [2**21 + 16, 16, 2**21], [2**24] * 2,
                                   [2**26 + 16, 32, 2**26], [600 * 16] * 17])  # fmt: skip
def test_cat_of_parts_of_a_launch(first, sizes, device):
    sizes = [first, *sizes] if first else sizes
    values = [RNG.integers(0, 256, n).astype(np.uint8) for n in sizes]
    parts = [flow.tensor(v, device=device) for v in values]
    np.testing.assert_array_equal(host(flow.cat(parts)), np.concatenate(values))
    if len({*sizes}) == 1:
        rows = [p.reshape(-1, 16 * 100) if p.numel() % 1600 == 0 else p[None] for p in parts]
        whole = [v.reshape(p.shape) for v, p in zip(values, rows, strict=True)]
        np.testing.assert_array_equal(host(flow.cat(rows, 1)), np.concatenate(whole, 1))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_stacks_along_the_last_dim(n, dtype, device):
    """Two to four lines share a launch on CUDA, whatever their length and offset."""
    for rows, cols, offset in (
        (1, 1, 0),
        (3, 5, 0),
        (7, 129, 0),
        (64, 64, 0),
        (1, 4099, 1),
        (5, 67, 3),
    ):
        values = RNG.integers(0, 100, (n, rows * cols + offset)).astype(dtype)
        parts = [flow.tensor(v, device=device)[offset:].view(rows, cols) for v in values]
        expected = values[:, offset:].reshape(n, rows, cols)
        np.testing.assert_array_equal(host(flow.stack(parts, -1)), np.stack(expected, -1))
        columns = [p.unsqueeze(2) for p in parts]
        np.testing.assert_array_equal(host(flow.cat(columns, 2)), np.stack(expected, -1))


def test_cat_of_nothing_that_requires_grad():
    nothing = flow.empty(0, requires_grad=True)
    for parts in ([nothing, flow.empty(0)], [flow.ones(2), nothing], [nothing]):
        y = flow.cat(parts)
        assert y.requires_grad
        nothing.grad = None
        y.sum().backward()
        assert nothing.grad.shape == (0,)


def test_cat_promotes_and_passes_over_nothing():
    y = flow.cat([flow.ones(2, dtype=flow.int64), flow.ones(1, dtype=flow.float16)])
    assert y.dtype == flow.float16 and y.tolist() == [1, 1, 1]
    assert flow.cat([flow.empty(0), flow.ones(2, 3)]).shape == (2, 3)
    assert flow.cat([flow.empty(0), flow.empty(0)]).shape == (0,)
    raises(TypeError, "cat(): argument 'tensors' must be", lambda: flow.cat(flow.ones(2)))


def test_what_is_cut_shares_memory():
    x = flow.zeros(4, 3)
    for part in (*x.split(2), *x.chunk(2), *x.unbind()):
        part.add_(1)
    assert x.tolist() == [[3.0] * 3] * 4
    assert isinstance(x.split(1), tuple) and len(x.split([4])) == len(x.split(9)) == 1
    assert [p.shape for p in flow.split(x, (1, 2), dim=1)] == [(4, 1), (4, 2)]


def test_results_have_names():
    x = flow.tensor([[3.0, 1.0, 2.0]])
    for result in (x.max(1), x.min(dim=1), x.sort(), x.topk(2), flow.max(x, -1, True)):
        assert isinstance(result, tuple) and len(result) == 2
        values, indices = result
        assert result.values is values is result[0] and result.indices is indices
        assert pickle.loads(pickle.dumps(result)).values.tolist() == values.tolist()
    assert type(x.max(1)) is type(x.max(0)) and "values=" in repr(x.max(1))
    assert x.max().item() == 3


def test_sort_puts_nan_last_and_keeps_the_order_of_equals(device):
    x = flow.tensor([2.0, float("nan"), -np.inf, 2.0, np.inf, -0.0, 0.0], device=device)
    assert x.sort().indices.tolist() == [2, 5, 6, 0, 3, 4, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 4, 0, 3, 5, 6, 2]


@pytest.mark.parametrize("dtype", HALVES)
def test_half_gradients_of_rows_are_summed_in_float32(dtype, device):
    """Ones added up in the dtype itself would stop at 256 (bfloat16) or 2048."""
    n = 5000
    weight = tensor(np.zeros((2, 3)), dtype, device).requires_grad_()
    flow.embedding(flow.zeros(n, dtype=flow.int64, device=device), weight).sum().backward()
    expected = tensor(np.array([[n] * 3, [0] * 3]), dtype)
    assert weight.grad.tolist() == expected.tolist()
    zeros, ones = (tensor(np.full(k, v), dtype, device) for k, v in ((1, 0), (n, 1)))
    put = zeros.scatter_add(0, flow.zeros(n, dtype=flow.int64, device=device), ones)
    assert put.tolist() == tensor([n], dtype).tolist()


@pytest.mark.parametrize("columns", [1, 5, 768])
def test_scatter_add_in_the_order_of_the_index(columns, device):
    """The same bits as a loop, however many threads share a column's places."""
    count, size = 700, 97
    index = RNG.integers(0, size, (count, columns))
    src = RNG.standard_normal((count, columns)).astype(np.float32)
    expected = np.zeros((size, columns), np.float32)
    for row, places in zip(src, index, strict=True):
        expected[places, np.arange(columns)] += row
    got = flow.zeros(size, columns, device=device).scatter_add_(
        0, flow.tensor(index, device=device), flow.tensor(src, device=device)
    )
    np.testing.assert_array_equal(host(got), expected.astype(np.float64))


def test_of_several_the_last_one_stays(device):
    places = flow.tensor([1, 1, 1, 0], device=device)
    y = flow.zeros(3, device=device).scatter_(0, places, flow.arange(1.0, 5, device=device))
    assert y.tolist() == [4, 3, 0]


def test_the_padding_row_has_no_gradient(device):
    for padding in (1, -3):
        weight = flow.ones(4, 2, device=device, requires_grad=True)
        y = flow.embedding(flow.tensor([[0, 1], [1, 3]], device=device), weight, padding)
        assert y.shape == (2, 2, 2)
        y.sum().backward()
        assert weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [1, 1]]


def test_places_outside_the_dim():
    x, outside = flow.ones(2, 3), flow.tensor([[0, 3]])
    raises(IndexError, "gather(): index 3 is out of range [0, 2]", lambda: x.gather(1, outside))
    raises(IndexError, "index -1 is out of range [0, 1]",
           lambda: x.index_select(0, flow.tensor([0, -1])))  # fmt: skip
    raises(IndexError, "scatter_(): index 3 is out of range", lambda: x.scatter_(1, outside, 0))
    raises(IndexError, "index 2 is out of range [0, 1]",
           lambda: flow.embedding(flow.tensor(2), x))  # fmt: skip


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=pytest.mark.cuda)], indirect=True)
def test_places_outside_the_dim_on_cuda(device):
    """A kernel cannot stop: NaN or 0 is read there, and nothing is written."""
    outside = flow.tensor([0, 3, -1], device=device)
    x = flow.ones(3, device=device)
    np.testing.assert_array_equal(host(x.gather(0, outside)), [1, np.nan, np.nan])
    assert x.long().gather(0, outside).tolist() == [1, 0, 0]
    assert x.scatter(0, outside, 5).tolist() == [5, 1, 1]


def test_scatter_into_a_view_and_its_gradient():
    base = flow.zeros(3, 4, dtype=flow.float64)
    src = flow.ones(2, dtype=flow.float64, requires_grad=True)
    y = base * 1
    y[:, 1].scatter_(0, flow.tensor([2, 0]), src * 3)
    assert y.tolist() == [[0, 3, 0, 0], [0] * 4, [0, 3, 0, 0]]
    y.sum().backward()
    assert src.grad.tolist() == [3, 3]


def test_scatter_of_the_tensor_that_it_writes(device):
    places = flow.tensor([1, 2, 0], device=device)
    x = flow.tensor([1.0, 2.0, 3.0], device=device)
    assert x.clone().scatter_(0, places, 0).tolist() == [0, 0, 0]
    assert x.scatter_(0, places, x).tolist() == [3, 1, 2]
    assert x.scatter_add_(0, places, x).tolist() == [5, 4, 3]
    assert places.scatter_(0, places, flow.tensor([5, 6, 7], device=device)).tolist() == [7, 5, 6]


def test_windows_that_overlap_add_up_their_gradients(device):
    x = flow.arange(7.0, device=device).requires_grad_()
    weight = flow.tensor([[1.0, 10.0], [100.0, 1000.0], [1e4, 1e5]], device=device)
    (grad,) = flow.autograd.grad(x.as_strided([3, 2], [2, 1], 0), x, weight)
    assert grad.tolist() == [1, 10, 100, 1000, 1e4, 1e5, 0]
    (grad,) = flow.autograd.grad(x.as_strided([3, 2], [1, 1], 1), x, weight)
    assert grad.tolist() == [0, 1, 110, 11000, 1e5, 0, 0]
    (grad,) = flow.autograd.grad(x.as_strided([2, 2], [0, 0], 5), x, weight[:2])
    assert grad.tolist() == [0, 0, 0, 0, 0, 1111, 0]
    # Of what lies in the storage beside the tensor, nothing goes to it.
    part = x.detach()[2:4].requires_grad_()
    for offset, expected in ((0, [11000, 1e5]), (1, [110, 11000]), (2, [1, 110]), (3, [0, 1])):
        (grad,) = flow.autograd.grad(part.as_strided([3, 2], [1, 1], offset), part, weight)
        assert grad.tolist() == expected
    y = flow.tensor(RNG.standard_normal(6), requires_grad=True)
    for function in (lambda y: y.as_strided([3, 2], [1, 1]) ** 3,
                     lambda y: y.as_strided([2, 3, 2], [2, 1, 1]) ** 3):  # fmt: skip
        assert flow.autograd.gradcheck(function, [y])
        assert flow.autograd.gradgradcheck(function, [y])


def test_alpha():
    x, y = flow.ones(2), flow.tensor([1.0, 2.0], requires_grad=True)
    assert flow.add(x, y, alpha=2).tolist() == x.add(y, alpha=2).tolist() == [3, 5]
    assert x.sub(y, alpha=0.5).tolist() == [0.5, 0] and x.add(3, alpha=2).tolist() == [7, 7]
    assert x.clone().add_(y.detach(), alpha=-1).tolist() == [0, -1]
    assert flow.tensor([5]).sub_(2, alpha=2).tolist() == [1]
    assert flow.tensor([1]).add(4, alpha=2**60).tolist() == [2**62 + 1]
    x.sub(y, alpha=3).sum().backward()
    assert y.grad.tolist() == [-3, -3]


def test_numpys_names_of_arguments():
    x = flow.arange(6.0).view(2, 3)
    assert x.sum(axis=1).tolist() == x.sum(dim=1).tolist() == [3, 12]
    assert flow.softmax(x, axis=0).shape == x.amax(axis=0, keepdims=True).expand(2, 3).shape
    with pytest.raises(TypeError, match="multiple values"):
        x.sum(0, axis=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        x.exp(axis=0)


def test_contains():
    x = flow.tensor([[1.0, 2.0]])
    assert 2.0 in x and 1 in x and 3 not in x and "a" not in x and None not in x


def test_places_of_32_bits(device):
    x = flow.arange(12, device=device).view(4, 3)
    index = flow.tensor([3, 0, 0], dtype=flow.int32, device=device)
    assert x.index_select(0, index).tolist() == x[[3, 0, 0]].tolist()
    assert flow.embedding(index, x).tolist() == x[[3, 0, 0]].tolist()
    raises(flow.DTypeError, "index_select(): index", lambda: x.index_select(0, index.float()))
    raises(flow.DTypeError, "embedding(): input", lambda: flow.embedding(index.float(), x))
