# SPDX-License-Identifier: Apache-2.0
"""scatter and scatter_add of columns: the result is that of the index's order, whoever writes it.

On CUDA columns of 64 elements and more are read 256 at a time and held in shared memory, whole ones
of up to some 14,000 float32 numbers, longer ones in parts; a line of 32,768 is summed by sorting.
"""

import warnings

import numpy as np
import pytest
from numerics import bits, flow, host, tensor

RNG = np.random.default_rng(5)


def summed(x, dim, places, source):
    """In the order of the index, in the dtype of x."""
    y = np.moveaxis(x, dim, 0).copy()
    at, of = np.moveaxis(places, dim, 0), np.moveaxis(source, dim, 0)
    columns = np.ix_(*(np.arange(n) for n in at.shape[1:]))
    for k in range(len(at)):
        y[(at[k], *columns)] += of[k]
    return np.moveaxis(y, 0, dim)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 700])
@pytest.mark.parametrize("dim", [0, 1])
def test_columns_are_summed_in_their_order(dtype, count, dim, device):
    shape, size = [9, 9], 40
    shape[dim] = count
    whole = [9, 9]
    whole[dim] = size
    source = RNG.standard_normal(shape) if dtype[0] == "f" else RNG.integers(0, 90, shape)
    source, x = source.astype(dtype), np.ones(whole, dtype)
    places = RNG.integers(0, size, shape)
    got = tensor(x, dtype, device).scatter_add(
        dim, flow.tensor(places).to(device), tensor(source, dtype, device))  # fmt: skip
    np.testing.assert_array_equal(got.cpu().numpy(), summed(x, dim, places, source))


@pytest.mark.parametrize("size", [1, 2, 14_600, 40_000])
@pytest.mark.parametrize("dim", [0, 1])
def test_columns_of_one_place_and_of_several_parts(size, dim, device):
    shape, whole = [3, 3], [3, 3]
    shape[dim], whole[dim] = 3000, size
    places = RNG.integers(0, size, shape)
    source, x = RNG.standard_normal(shape).astype("float32"), np.zeros(whole, "float32")
    got = tensor(x, "float32", device).scatter_add(
        dim, flow.tensor(places).to(device), tensor(source, "float32", device))  # fmt: skip
    np.testing.assert_array_equal(got.cpu().numpy(), summed(x, dim, places, source))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("count, size", [
    (0, 7), (1, 7), (63, 40),  # short: summed in a copy
    (64, 40), (257, 40), (64, 1024), (8192, 8192),  # held
    (64, 1025), (100, 1601),  # sparse: in a copy
    (1500, 14_601), (3000, 40_000),  # held whole in 16 bits only, and in parts
])  # fmt: skip
def test_sums_of_16_bits_are_rounded_once(count, size, dim, dtype, device):
    """oneflow_lite/core/held_columns.h says which columns CUDA holds; x begins at an odd offset."""
    shape, whole = [3, 3], [4, 4]
    shape[dim], whole[dim] = count, size + 1
    given = tensor(RNG.standard_normal(whole), dtype, device)
    source = tensor(RNG.standard_normal(shape), dtype, device)
    places = RNG.integers(0, size, shape)
    at, x = flow.tensor(places).to(device), given[1:, 1:]
    got = x.scatter_add(dim, at, source)
    exact = summed(host(x).astype("float64"), dim, places, host(source).astype("float64"))
    terms = summed(np.abs(host(x)).astype("float64"), dim, places, np.abs(host(source)))
    step = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
    assert (np.abs(host(got) - exact) <= step * np.abs(exact) + 1e-6 * terms + 2**-25).all()
    assert flow.equal(got, x.float().scatter_add(dim, at, source.float()).to(got.dtype))
    into = given.clone()
    into[1:, 1:].scatter_add_(dim, at, source)
    assert flow.equal(into[1:, 1:], got)
    assert flow.equal(into[0], given[0]) and flow.equal(into[:, 0], given[:, 0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("count", [32_767, 32_768, 50_001])
def test_a_long_line(dtype, count, device):
    size = 1000
    places, source = RNG.integers(0, size, count), RNG.standard_normal(count)
    given = tensor(source, dtype, device)
    got = flow.ones(size, dtype=getattr(flow, dtype), device=device).scatter_add(
        0, flow.tensor(places).to(device), given)  # fmt: skip
    exact, size_of_terms = np.ones(size), np.ones(size)
    np.add.at(exact, places, host(given))
    np.add.at(size_of_terms, places, np.abs(host(given)))
    step = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 0, "float64": 0}[dtype]
    near = 1e-13 if dtype == "float64" else 1e-5
    bound = near * size_of_terms + step * np.abs(exact)
    assert (np.abs(host(got) - exact) <= bound).all()


@pytest.mark.parametrize("layout", ["columns", "steps", "expanded"])
def test_layouts(layout, device):
    """Operands that are no rows of their own; an index and a source that are one row for all."""
    x = RNG.standard_normal((20, 6)).astype("float32")
    places, source = RNG.integers(0, 20, (100, 6)), RNG.standard_normal((100, 6)).astype("float32")
    given, at, of = (flow.tensor(t).to(device) for t in (x, places, source))
    if layout == "columns":
        given, at, of = (t.T.contiguous().T for t in (given, at, of))
    if layout == "steps":
        of = flow.stack([of, of], 2).reshape(100, 12)[:, ::2]
    if layout == "expanded":
        at, of = at[:, :1].expand(100, 6), of[:1].expand(100, 6)
        places, source = host(at), of.cpu().numpy()
    got = given.scatter_add(0, at, of)
    np.testing.assert_array_equal(got.cpu().numpy(), summed(x, 0, places, source))


@pytest.mark.parametrize("count", [64, 100, 255, 256, 257, 513])
def test_the_last_stays_at_every_length(count, device):
    places, source = RNG.integers(-40, 40, (5, count)), RNG.integers(1, 99, (5, count))
    want = np.zeros((5, 40), int)
    for k in range(count):
        want[np.arange(5), places[:, k]] = source[:, k]
    index = flow.tensor(places % 40).to(device)
    got = flow.zeros(5, 40, device=device).scatter(1, index, tensor(source, "float32", device))
    np.testing.assert_array_equal(host(got), want)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bool"])
@pytest.mark.parametrize("size", [1, 30, 1000, 60_000, 300_000])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_last_of_several_stays(dtype, size, dim, device):
    """Of places that are met often and seldom, of columns that are held, in parts, and not."""
    shape, whole = [4, 4], [4, 4]
    shape[dim], whole[dim] = 4000, size
    places = RNG.integers(0, size, shape)
    source = RNG.integers(0, 2 if dtype == "bool" else 99, shape)
    x = np.zeros(whole, int)
    at, of, y = (np.moveaxis(t, dim, 0) for t in (places, source, x))
    for k in range(len(at)):
        y[at[k], np.arange(4)] = of[k]
    got = flow.zeros(*whole, dtype=getattr(flow, dtype), device=device).scatter(
        dim, flow.tensor(places).to(device), tensor(source, dtype, device))  # fmt: skip
    np.testing.assert_array_equal(host(got).astype(int), x)


def test_the_same_bits_every_time(device):
    places = flow.tensor(RNG.integers(0, 50, (64, 4000))).to(device)
    source = flow.tensor(RNG.standard_normal((64, 4000)).astype("float32")).to(device)
    x = flow.zeros(64, 50, device=device)
    first = x.scatter_add(1, places, source)
    assert all(flow.equal(first, x.scatter_add(1, places, source)) for _ in range(5))


@pytest.mark.parametrize("count", [3, 200])
def test_places_outside(count, device):
    places = np.zeros((2, count), np.int64)
    places[0, 1], places[1, 2] = 5, -1
    x, index = flow.zeros(2, 5, device=device), flow.tensor(places).to(device)
    if device == "cpu":
        with pytest.raises(IndexError, match=r"out of range \[0, 4\]"):
            x.scatter_add(1, index, flow.ones(2, count))
        return
    got = host(x.scatter_add(1, index, flow.ones(2, count, device=device)))
    np.testing.assert_array_equal(got, [[count - 1, 0, 0, 0, 0]] * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("inner", [1, 2, 16, 17, 63, 64, 127, 128, 129, 300])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_in_their_order(dtype, inner, threads):
    """Of each number of threads the same bits, whether these share columns or places."""
    rng = np.random.default_rng(inner)
    places = rng.integers(0, 23, 211)
    y, x = (rng.integers(-9, 9, (n, inner)).astype(dtype) for n in (23, 211))
    if dtype != "int64":
        x = (x / 7).astype(dtype)
    added, copied = y.copy(), y.copy()
    for place, row in zip(places, x, strict=True):
        added[place] += row * np.array(3, dtype)
        copied[place] = row
    before = flow.get_num_threads()
    try:
        flow.set_num_threads(threads)
        index, rows = flow.tensor(places), flow.tensor(x)
        got = flow.tensor(y).index_add_(0, index, rows, alpha=3)
        np.testing.assert_array_equal(got.numpy(), added)
        got = flow.tensor(y.T.copy()).index_add_(1, index, rows.t(), alpha=3)
        np.testing.assert_array_equal(got.numpy().T, added)
        got = flow.tensor(y).index_copy_(0, index, rows)
        np.testing.assert_array_equal(got.numpy(), copied)
    finally:
        flow.set_num_threads(before)


def test_a_factor_of_integers_is_exact_or_refused():
    here, one = flow.tensor([0]), flow.ones(1, dtype=flow.int64)
    for alpha in (2**53 + 1, -(2**53) - 1, 2**62, -3):
        got = flow.zeros(1, dtype=flow.int64).index_add(0, here, one, alpha=alpha)
        assert got.tolist() == [alpha]
    with pytest.raises(OverflowError, match=r"^index_add\(\): .*int8"):
        one.to(flow.int8).index_add(0, here, one.to(flow.int8), alpha=259)
    with pytest.raises(OverflowError, match=r"^index_add_\(\): .*int64"):
        one.clone().index_add_(0, here, one, alpha=10**20)


@pytest.mark.parametrize(("inner", "threads"), [(4289, 67), (4290, 67), (6145, 96), (64, 128)])
def test_more_threads_than_columns_divide_into(inner, threads):
    """Each row of the result is what goes there, and its neighbours stay."""
    before = flow.get_num_threads()
    x = np.arange(3 * inner, dtype=np.float32).reshape(3, inner) + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of more threads than there are cores
            flow.set_num_threads(threads)
        index = flow.tensor([2, 0, 2])
        got = flow.zeros(4, inner).index_copy_(0, index, flow.tensor(x)).numpy()
        np.testing.assert_array_equal(got, np.stack([x[1], 0 * x[0], x[2], 0 * x[0]]))
        got = flow.zeros(4, inner).index_add_(0, index, flow.tensor(x)).numpy()
        np.testing.assert_array_equal(got, np.stack([x[1], 0 * x[0], x[0] + x[2], 0 * x[0]]))
    finally:
        flow.set_num_threads(before)


# In a copy of float32 up to 128 elements a row, where places are few; else by the places.
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("inner", [1, 2, 16, 17, 64, 65, 128, 129])
def test_index_add_of_16_bits_is_rounded_once(dtype, inner, device):
    rng = np.random.default_rng(inner)
    for size, count in ((7, 40), (40, 40), (90, 40), (800, 40), (900, 40), (3, 1)):
        x, y = rng.standard_normal((2, size, inner)), rng.standard_normal((2, count, inner))
        at = rng.integers(0, size, count)
        got = tensor(x, dtype, device)
        want, added = host(got).astype(np.float32), host(tensor(y, dtype)).astype(np.float32)
        for k, place in enumerate(at):
            want[:, place] += added[:, k] * np.float32(1.5)
        got.index_add_(1, flow.tensor(at, device=device), tensor(y, dtype, device), alpha=1.5)
        assert bits(got) == bits(tensor(want, "float32").to(got.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
def test_extremes_of_special_numbers_at_a_place(dtype, device):
    values = [0.0, -0.0, 1, 2] if "float" in dtype else [0, 1, 2, 3]
    values += [np.nan, np.inf, -np.inf, -1] if "float" in dtype else []
    for way, better in (("amax", lambda a, b: a > b), ("amin", lambda a, b: a < b)):
        for first in values:
            for then in values:
                x = tensor([first], dtype, device)
                x.scatter_reduce_(0, flow.zeros(1, dtype=flow.int64, device=device),
                                  tensor([then], dtype, device), way)  # fmt: skip
                want = then if better(then, first) or then != then else first
                want = first if first != first else want
                if want != want:
                    assert np.isnan(host(x.float())).all()  # its bits are the device's choice
                else:
                    assert bits(x) == bits(tensor([want], dtype, device))
