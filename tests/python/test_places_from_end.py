# SPDX-License-Identifier: Apache-2.0
"""Places of one tensor: negative ones, those outside, and the ways that kernels take.

CUDA reads places in pairs where the index and the result allow it, holds rows of x in shared memory
where there are 256 of them and as many places in each, and takes whole slices where the index is
expanded. Where thousands of rows share 2048 places and more, a block keeps the places.
"""

import math

import numpy as np
import pytest
from numerics import ALL, flow, host, tensor

RNG = np.random.default_rng(24)


def values(dtype, *shape):
    """Numbers that each dtype has, and that tell where they come from."""
    x = RNG.integers(0, 2 if dtype == "bool" else 100, shape)
    return x.astype(bool) if dtype == "bool" else x


def both_ends(size, *shape):
    return RNG.integers(-size, size, shape)


def as_index(places, device):
    return flow.tensor(np.asarray(places, np.int64)).to(device)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 4097])
def test_take_counts_from_the_end(dtype, n, device):
    x, places = values(dtype, 6, 7), both_ends(42, n)
    got = flow.take(tensor(x, dtype, device), as_index(places, device))
    np.testing.assert_array_equal(host(got), x.reshape(-1)[places])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "float64"])
@pytest.mark.parametrize("rows", [3, 256, 300])
@pytest.mark.parametrize("shape", [(64, 256), (65, 257), (1, 256), (900, 256), (40, 255)], ids=str)
def test_rows_by_their_own_places(dtype, rows, shape, device):
    """gather and take_along_dim of rows, held and not, in pairs and not."""
    size, count = shape
    x, places = values(dtype, rows, size), both_ends(size, rows, count)
    of, at = tensor(x, dtype, device), as_index(places, device)
    wanted = np.take_along_axis(x, places, 1)
    np.testing.assert_array_equal(host(flow.take_along_dim(of, at, 1)), wanted)
    np.testing.assert_array_equal(host(of.gather(1, at % size)), wanted)


@pytest.mark.parametrize("rows", [256, 257, 259])
@pytest.mark.parametrize("size, count", [(100, 257), (10_000, 2600), (20_000, 5000)])
def test_rows_that_share_their_places(rows, size, count, device):
    """On CUDA a block holds 4, 2 or 1 of these rows, and the last one perhaps fewer."""
    x, places = values("float16", rows, size), RNG.integers(0, size, count)
    got = tensor(x, "float16", device).index_select(1, as_index(places, device))
    np.testing.assert_array_equal(host(got), x[:, places])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("size, count", [(16, 2048), (640, 2064), (48, 8208), (5000, 2041)])
def test_many_rows_that_share_their_places(dtype, size, count, device):
    """More than 8 for each of an H200's 396 blocks, and other sizes than whole packs of 16 bytes;
    8192 columns are a block's.
    """
    rows = 3200
    x, places = values(dtype, rows, size), RNG.integers(0, size, count)
    of = tensor(x, dtype, device)
    got = of.index_select(1, as_index(places, device))
    np.testing.assert_array_equal(host(got), x[:, places])
    if device == "cuda" and dtype.startswith("float"):
        places[[1, 2, count - 1]] = size, 70_000, -size - 1
        got = host(of.index_select(1, as_index(places, device)))
        inside = (places >= 0) & (places < size)
        assert np.isnan(got[:, ~inside]).all()
        np.testing.assert_array_equal(got[:, inside], x[:, places[inside]])


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_rows_of_views(offset, device):
    """Odd offsets and steps of x, of the index and of the result."""
    x, places = values("float16", 300, 70), both_ends(60, 300, 260)
    of = tensor(x, "float16", device)[:, offset : offset + 60]
    at = as_index(places, device)
    for index, wanted in ((at, places), (at[:, offset:], places[:, offset:]),
                          (at[:, ::2], places[:, ::2]), (at.T.contiguous().T, places)):  # fmt: skip
        got = flow.take_along_dim(of, index, 1)
        rows = x[:, offset : offset + 60]
        np.testing.assert_array_equal(host(got), np.take_along_axis(rows, wanted, 1))
    # Along the first dim, and of a transposed tensor.
    down = both_ends(300, 9, 60)
    got = flow.take_along_dim(of, as_index(down, device), 0)
    np.testing.assert_array_equal(host(got), np.take_along_axis(rows, down, 0))
    got = flow.take_along_dim(of.T, as_index(places[:, :5].T, device), 0)
    np.testing.assert_array_equal(host(got), np.take_along_axis(rows, places[:, :5], 1).T)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_an_expanded_index_takes_slices(dim, device):
    x = values("float32", 5, 6, 8)
    line = [1, -1, 0, 3]
    shape = [5, 6, 8]
    shape[dim] = len(line)
    index = as_index(line, device).view(*(-1 if d == dim else 1 for d in range(3))).expand(*shape)
    of = tensor(x, "float32", device).requires_grad_()
    wanted = np.take(x, line, dim)
    y = flow.take_along_dim(of, index, dim)
    np.testing.assert_array_equal(host(y), wanted)
    weights = np.arange(wanted.size, dtype=float).reshape(wanted.shape)
    y.backward(tensor(weights, "float32", device))
    np.testing.assert_array_equal(host(of.grad), adjoint(x.shape, line, dim, weights))
    # With fewer of the other dims than x has.
    cut = index[:, :4] if dim != 1 else index[:3]
    got = of.gather(dim, cut % x.shape[dim])
    part = wanted[:, :4] if dim != 1 else wanted[:3]
    np.testing.assert_array_equal(host(got), part)


def adjoint(shape, line, dim, weights):
    sums = np.zeros(shape)
    np.add.at(np.moveaxis(sums, dim, 0), line, np.moveaxis(weights, dim, 0))
    return sums


SLICES = {
    "index_add": (lambda x, p, s: x.index_add(0, p, s), np.add.at),
    "index_copy": (lambda x, p, s: x.index_copy(0, p, s), None),
    "index_fill": (lambda x, p, s: x.index_fill(0, p, 7.0), None),
    "index_put": (lambda x, p, s: x.index_put((p,), s), None),
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("layout", ["dense", "columns", "steps"])
def test_slices_from_the_end(name, layout, device):
    x, source = values("float64", 6, 4), values("float64", 3, 4)
    line = [-1, 2, -6]
    given = tensor(x, "float64", device)
    if layout == "columns":
        given = given.T.contiguous().T
    if layout == "steps":
        wide = flow.zeros(6, 8, dtype=flow.float64, device=device)
        wide[:, ::2] = given
        given = wide[:, ::2]
    call, add = SLICES[name]
    wanted = x.astype(float)
    if add:
        add(wanted, line, source)
    else:
        wanted[line] = 7 if name == "index_fill" else source
    places, rows = as_index(line, device), tensor(source, "float64", device)
    np.testing.assert_array_equal(host(call(given, places, rows)), wanted)
    changed = getattr(given, name + "_", None)
    if name == "index_add":
        changed(0, places, rows)
        np.testing.assert_array_equal(host(given), wanted)


def test_gradients_from_the_end(device):
    x = tensor(RNG.standard_normal((4, 3)), "float64", device).requires_grad_()
    rows = tensor(RNG.standard_normal((3, 3)), "float64", device).requires_grad_()
    line, places = as_index([-1, 0, -1], device), as_index([[0, -1], [-2, 1]], device)
    once = as_index([-1, 0, -3], device)
    calls = {
        "take": (lambda x: x.take(places), [x]),
        "take_along_dim": (lambda x: flow.take_along_dim(x[:2], places, 1), [x]),
        "index_add": (lambda x, r: x.index_add(0, line, r), [x, rows]),
        "index_copy": (lambda x, r: x.index_copy(0, once, r), [x, rows]),
        "x[places]": (lambda x: x[line], [x]),
        "x.T[places]": (lambda x: x.T[places % 3], [x]),
    }
    for name, (call, inputs) in calls.items():
        assert flow.autograd.gradcheck(call, inputs), name
        assert flow.autograd.gradgradcheck(call, inputs), name


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8"])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (0,), (1, 1, 1)], ids=str)
def test_a_tensor_of_places_indexes(dtype, shape, device):
    x, places = values("float32", 5, 3), both_ends(5, *shape)
    given = tensor(x, "float32", device)
    index = flow.tensor(places).to(getattr(flow, dtype)).to(device)
    np.testing.assert_array_equal(host(given[index]), x[places])
    np.testing.assert_array_equal(host(given.T[index % 3]), x.T[places % 3])
    np.testing.assert_array_equal(host(given[:, 0][index]), x[:, 0][places])


@pytest.mark.parametrize("dtype", ALL)
def test_a_mask_of_its_shape_indexes(dtype, device):
    x = values(dtype, 7, 9)
    given = tensor(x, dtype, device)
    for mask in (x > 0, np.zeros_like(x, bool), np.ones_like(x, bool)):
        np.testing.assert_array_equal(host(given[flow.tensor(mask).to(device)]), x[mask])
    with pytest.raises(IndexError, match="a mask of shape"):
        given[flow.ones(7, 8, device=device).bool()]


def test_a_gradient_goes_to_where_the_mask_holds(device):
    x = tensor(RNG.standard_normal((3, 4)), "float32", device).requires_grad_()
    mask = flow.tensor(RNG.random((3, 4)) < 0.5).to(device)
    y = x[mask]
    y.backward(flow.arange(y.numel(), dtype=flow.float32, device=device))
    wanted = np.zeros((3, 4))
    wanted[host(mask)] = np.arange(y.numel())
    np.testing.assert_array_equal(host(x.grad), wanted)


OUTSIDE = {
    "take": (lambda x, p: x.take(p), 12),
    "take_along_dim": (lambda x, p: flow.take_along_dim(x[:1], p.view(1, -1), 1), 4),
    "x[places]": (lambda x, p: x[p], 3),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_places_outside(name, device):
    call, size = OUTSIDE[name]
    x = flow.ones(3, 4, device=device)
    for place in (size, -size - 1):
        index = as_index([0, place], device)
        if device == "cpu":
            with pytest.raises(IndexError, match=rf"index {place} is out of range \[-{size}, "):
                call(x, index)
            continue
        got = host(call(x, index)).reshape(2, -1)
        assert (got[0] == 1).all() and all(math.isnan(v) for v in got[1])


def test_gather_and_index_select_do_not_count_from_the_end(device):
    x, index = flow.ones(3, 4, device=device), as_index([0, -1], device)
    for call in (lambda: x.gather(1, index.view(1, 2)), lambda: x.index_select(1, index),
                 lambda: x.gather(1, index.view(1, 2).expand(3, 2))):  # fmt: skip
        if device == "cpu":
            with pytest.raises(IndexError, match=r"index -1 is out of range \[0, 3\]"):
                call()
        else:
            got = host(call())
            assert (got[:, 0] == 1).all() and np.isnan(got[:, 1]).all()


def test_no_place_at_all(device):
    """Many rows without elements, as a view: on CUDA all that is taken is missing."""
    x, index = flow.ones(3200, 16, device=device)[:, :0], flow.zeros(2048, dtype=flow.int64)
    index = index.to(device)
    for call in (lambda: x.index_select(1, index), lambda: x.gather(1, index.expand(3200, 2048))):
        if device == "cpu":
            with pytest.raises(IndexError):
                call()
        else:
            assert call().isnan().all().item()


def test_writes_outside_go_nowhere(device):
    x, rows = flow.zeros(3, 2, device=device), flow.ones(2, 2, device=device)
    for call in (x.index_add_, x.index_copy_):
        for place in (3, -4):
            index = as_index([0, place], device)
            if device == "cpu":
                with pytest.raises(IndexError, match=rf"index {place} is out of range \[-3, 2\]"):
                    call(0, index, rows)
            else:
                call(0, index, rows)
    assert host(x)[1:].sum() == 0
