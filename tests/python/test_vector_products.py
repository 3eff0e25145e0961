# SPDX-License-Identifier: Apache-2.0
"""Products of a matrix and a vector on the CPU, which have loops of their own.

Four rows are taken together, with two vectors of 2 to 16 elements a turn, and one row alone with
eight; sums of columns go in blocks of 2048. Below 512 products a plain loop serves, in a batch
below 16384 the BLAS.
"""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, flow, host, rounded, tensor, ulp

RNG = np.random.default_rng(31)
F = flow.nn.functional


def check(got, x, y, start=0.0):
    """x @ y + start, of float64, within 1e-5 of the terms and a rounding."""
    expected = host(x) @ host(y) + start
    terms = np.abs(host(x)) @ np.abs(host(y)) + np.abs(start)
    dtype = str(got.dtype).rpartition(".")[2]
    bound = terms * (1e-14 if dtype == "float64" else 1e-6)
    assert got.shape == expected.shape
    assert (np.abs(host(got) - expected) <= bound + 0.5 * ulp(expected, dtype)).all()


def drawn(shape, dtype, turned=False):
    """Numbers of a dtype; the last two dims lie the other way round in memory if turned."""
    if not turned:
        return tensor(RNG.standard_normal(shape), dtype)
    return tensor(RNG.standard_normal((*shape[:-2], shape[-1], shape[-2])), dtype).mT


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_length(dtype, threads):
    before = flow.get_num_threads()
    flow.set_num_threads(threads)
    try:
        for length in (1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 2047, 2049, 5000):
            for k in (1, 3, 16, 31, 32, 33, 65, 129, 700):
                for turned in (False, True):
                    matrix, row = drawn((k, length), dtype, turned), drawn((1, k), dtype)
                    check(row @ matrix, row, matrix)
                    check(row[0] @ matrix, row[0], matrix)
                    matrix, column = drawn((length, k), dtype, turned), drawn((k, 1), dtype)
                    check(matrix @ column, matrix, column)
                    check(matrix @ column[:, 0], matrix, column[:, 0])
    finally:
        flow.set_num_threads(before)


@pytest.mark.parametrize("dtype", FLOATS)
def test_vectors_that_do_not_lie_in_a_row(dtype):
    matrix, wide = drawn((70, 90), dtype), drawn((90, 5), dtype)
    check(matrix @ wide[:, 2:3], matrix, wide[:, 2:3])
    check(wide.mT[1:2] @ matrix.mT, wide.mT[1:2], matrix.mT)
    check(matrix[:, 1::2] @ wide[::2, 3], matrix[:, 1::2], wide[::2, 3])
    check(matrix[3:, 7:] @ wide[7:, 0], matrix[3:, 7:], wide[7:, 0])  # rows at odd offsets


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_number(dtype):
    for k in (511, 512, 513, 640, 1000, 70000):
        x, y = drawn((k,), dtype), drawn((k,), dtype)
        check(flow.dot(x, y), x, y)
        wide = drawn((k, 3), dtype)
        check(x.view(1, k) @ wide[:, 1:2], x.view(1, k), wide[:, 1:2])
        check(wide.mT[:1] @ y.view(k, 1), wide.mT[:1], y.view(k, 1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("k", [16, 127, 128, 129])  # times 128: around 16384
def test_batches(dtype, k):
    for turned in (False, True):
        x, y = drawn((6, 1, k), dtype), drawn((6, k, 128), dtype, turned)
        check(x @ y, x, y)
        check(x @ y[0], x, y[0])  # one matrix for all
        x, y = drawn((6, 128, k), dtype, turned), drawn((6, k, 1), dtype)
        check(x @ y, x, y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 300, 70), (9, 300, 1), (1, 700, 1)])
def test_a_bias_and_gradients_that_are_added(dtype, shape):
    rows, k, cols = shape
    x, weight = drawn((rows, k), dtype), drawn((cols, k), dtype).requires_grad_()
    bias = drawn((cols,), dtype)
    start = host(bias)
    y = F.linear(x, weight, bias)
    loose = 2.0**-7 if dtype in HALVES else 1e-5
    expected = host(x) @ host(weight).T + start
    np.testing.assert_allclose(host(y), expected, rtol=loose, atol=loose * np.sqrt(k))
    dy = drawn((rows, cols), dtype)
    for turn in (1, 2):
        F.linear(x, weight, bias).backward(dy)
        want = turn * (host(dy).T @ host(x))
        np.testing.assert_allclose(host(weight.grad), want, rtol=2 * loose, atol=4 * loose)


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_of_16_bits_are_rounded_once(dtype):
    x, y = tensor(np.ones((5, 4096)), dtype), tensor(np.full(4096, 1.0), dtype)
    y[0] = 1.5
    np.testing.assert_array_equal(host(x @ y), rounded(np.full(5, 4096.5), dtype))
