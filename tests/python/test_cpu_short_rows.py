# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of the CPU over rows of a few elements.

Rows below 256 elements share a chunk of 512; a row that is repeated is gathered once. Rows are
moved by vectors of 16 to 64 bytes, the last of which begins within the one before, and by one
masked vector where they are shorter. An element for each row is set in one vector where the row has
no more. Arithmetic of floats goes through rows of 64 elements as they lie.
"""

import numpy as np
import pytest
from numerics import flow

RNG = np.random.default_rng(64)
COLS = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 50, 63, 64, 65, 100, 127, 128, 129, 170, 171,
        255, 256, 257, 511, 512, 513]  # fmt: skip
DTYPES = ["float32", "float64", "bfloat16", "int64", "int16", "uint8"]


def integers(dtype, *shape):
    """Small ones, exact in each dtype, as a tensor and an array."""
    values = RNG.integers(0, 50, shape)
    return flow.tensor(values).to(getattr(flow, dtype)), values


def check(found, want):
    np.testing.assert_array_equal(found.to(flow.int64).numpy(), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_repeated(dtype):
    for cols in COLS:
        rows = 3 + 2500 // cols
        x, a = integers(dtype, rows, cols)
        y, b = integers(dtype, cols)
        column, c = integers(dtype, rows, 1)
        check(x + y, a + b)
        check(y - y + x, a)
        check(x + column, a + c)
        check(y + column, b + c)
        check(x < y, a < b)
        check(flow.where(x < y, y, column), np.where(a < b, b, c))
        check(x.masked_fill(y < 25, 3), np.where(b < 25, 3, a))
        check(flow.where(column < 25, x, y), np.where(c < 25, a, b))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_functions_of_an_element_for_each_row(dtype):
    for cols in COLS[8:]:
        x, a = integers(dtype, 20, cols)
        y, b = integers(dtype, 20, 1)
        x, a = x - 25, a - 25
        check(flow.copysign(x, y - 25), np.copysign(a, np.where(b == 25, 0.0, b - 25)))
        check(flow.copysign(y, x), np.copysign(b, a))
        check(flow.maximum(x, y), np.maximum(a, b))
        check(y - x, b - a)
        check(x * (y > 9), a * (b > 9))
        check(flow.minimum(x[:, 1:-1], y[:, :]), np.minimum(a[:, 1:-1], b))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_three_dims(dtype):
    for cols in COLS[:20]:
        for outer, middle in ((2, 90), (60, 3), (11, 20)):
            x, a = integers(dtype, outer, middle, cols)
            for shape in (
                (outer, 1, cols),
                (middle, cols),
                (middle, 1),
                (outer, 1, 1),
                (1, 1, cols),
            ):
                y, b = integers(dtype, *shape)
                check(x + y, a + b)
                check(y >= x, b >= a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_views(dtype):
    for cols in COLS[3:]:
        x, a = integers(dtype, 5 + 2500 // cols, cols)
        check(x[:, 1:] + x[:, :-1], a[:, 1:] + a[:, :-1])
        check(x[:, ::2] + 1, a[:, ::2] + 1)
        check(x[::2, 1:] + 1, a[::2, 1:] + 1)
        check(x[:, : cols // 2] * 2, a[:, : cols // 2] * 2)
        check(x[:, -3:].contiguous(), a[:, -3:])
        to_double = x[:, 1:].to(flow.float64 if dtype != "float64" else flow.int32)
        check(to_double, a[:, 1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_writing_to_rows_of_views(dtype):
    for cols in COLS[3:]:
        x, a = integers(dtype, 5 + 2500 // cols, cols)
        y, b = integers(dtype, cols - 2)
        for part in (np.s_[:, 1:-1], np.s_[:, : cols // 2], np.s_[::2, 1:], np.s_[:, ::3]):
            there, expected = x.clone(), a.copy()
            there[part] += 1
            expected[part] += 1
            check(there, expected)
            there[part] = x[part]
            expected[part] = a[part]
            check(there, expected)
        there, expected = x.clone(), a.copy()
        there[:, 1:-1] += y
        expected[:, 1:-1] += b
        check(there, expected)
        flow.add(x[:, 1:-1], y, out=there[:, 2:])
        expected[:, 2:] = a[:, 1:-1] + b
        check(there, expected)


def test_threads_share_short_rows(threads):
    for cols in (3, 16, 100, 256):
        x, a = integers("float32", 100_000 // cols, cols)
        y, b = integers("float32", cols)
        column, c = integers("float32", len(a), 1)
        check(x + y, a + b)
        check(x * column, a * c)
        check(flow.where(x < y, x, column), np.where(a < b, a, c))
        check(x[:, 1:] + x[:, :-1], a[:, 1:] + a[:, :-1])
        x[:, 1:] += y[1:]
        a[:, 1:] += b[1:]
        check(x, a)
