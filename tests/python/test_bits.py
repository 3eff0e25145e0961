# SPDX-License-Identifier: Apache-2.0
"""Bits moved to the left and the right, and the operators that overwrite their left operand."""

import numpy as np
import pytest
from numerics import INTEGERS, flow, host

with_integers = pytest.mark.parametrize("dtype", INTEGERS)


def samples(dtype):
    """Numbers with the ends of the dtype among them, and places for each."""
    ends = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 77, ends.max, ends.min, ends.min + 1, ends.max // 3], dtype)
    return values[:, None], np.arange(ends.bits, dtype=dtype)


@with_integers
def test_shifts_are_numpys(dtype, device):
    values, places = samples(dtype)
    x, n = flow.tensor(values, device=device), flow.tensor(places, device=device)
    for got, expected in (
        (x << n, values << places), (x >> n, values >> places),
        (x << 3, values << 3), (x >> 3, values >> 3), (1 << n, 1 << places),
        (64 >> n, 64 >> places), (flow.bitwise_left_shift(x, n), values << places),
        (x.bitwise_right_shift(n), values >> places),
    ):  # fmt: skip
        assert got.dtype is x.dtype
        np.testing.assert_array_equal(host(got), expected)


@with_integers
def test_past_the_last_bit_nothing_is_left_but_the_sign(dtype):
    values, _ = samples(dtype)
    x, bits = flow.tensor(values), 8 * np.dtype(dtype).itemsize
    for places in (bits, bits + 1, 100, -1):
        if dtype == "uint8" and places < 0:  # which is none of its numbers
            with pytest.raises(
                OverflowError, match=r"^bitwise_left_shift\(\): the number -1 is out"
            ):
                x << places
            continue
        np.testing.assert_array_equal(host(x << places), np.zeros_like(values))
        np.testing.assert_array_equal(host(x >> places), -(values < 0).astype(np.int64))


def test_dtypes_of_shifts():
    small, large = flow.tensor([3], dtype=flow.int8), flow.tensor([7], dtype=flow.int32)
    assert (small << large).dtype is flow.int32 and (small << large).tolist() == [384]
    for bad in (
        lambda: flow.ones(2) << 1,
        lambda: small >> 1.0,
        lambda: flow.tensor([True]) << True,
    ):
        with pytest.raises(flow.DTypeError, match="bits are moved in integers"):
            bad()
    assert (small << np.int64(2)).tolist() == [12]
    with pytest.raises(TypeError, match="unsupported operand type.*'str'"):
        small << "a"
    with pytest.raises(TypeError, match="one of the operands must be a tensor"):
        flow.bitwise_left_shift(1, 2)


OPERATORS = {
    "**=": lambda x, v: x.__ipow__(v), "//=": lambda x, v: x.__ifloordiv__(v),
    "%=": lambda x, v: x.__imod__(v), "&=": lambda x, v: x.__iand__(v),
    "|=": lambda x, v: x.__ior__(v), "^=": lambda x, v: x.__ixor__(v),
    "<<=": lambda x, v: x.__ilshift__(v), ">>=": lambda x, v: x.__irshift__(v),
}  # fmt: skip


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_with_an_equals_sign_overwrite(operator):
    a = np.array([9, 4, 7])
    for other in (2, np.array([1, 2, 3])):
        x, expected = flow.tensor(a), a.copy()
        view, number = x[1:], flow.tensor(other) if isinstance(other, np.ndarray) else other
        names = {"x": x, "a": expected, "number": number, "other": other}
        exec(f"y = x; y {operator} number; a {operator} other", names)
        assert names["y"] is x and OPERATORS[operator](x.clone(), number).dtype is flow.int64
        np.testing.assert_array_equal(host(x), expected)
        np.testing.assert_array_equal(host(view), expected[1:])


def test_what_operators_with_an_equals_sign_refuse():
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x **= 2
    whole = same = flow.tensor([1, 2])
    whole *= np.int64(1)
    whole **= np.int32(1)
    assert whole is same
    with pytest.raises(flow.DTypeError, match="cannot be stored"):
        whole //= 2.5
    with pytest.raises(TypeError):
        whole &= "a"
    assert whole.tolist() == [1, 2]


def test_gradients_of_operators_with_an_equals_sign():
    x = flow.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y **= 2
    y %= 5
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
