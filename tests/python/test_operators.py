# SPDX-License-Identifier: Apache-2.0
"""Operators of tensors, with numbers, arrays and strangers."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")


def test_operators_with_numbers_and_tensors():
    a = np.array([[1.0, -2.0], [3.0, 0.5]])
    x, y = flow.from_numpy(a), flow.from_numpy(a.T + 1)
    b = y.numpy()
    pairs = [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x @ y, a @ b), (-x, -a),
        (x + 1, a + 1), (1 - x, 1 - a), (2 * x, 2 * a), (1 / y, 1 / b), (+x, a),
        (x == y, a == b), (x != 1, a != 1), (x < y, a < b), (x <= 1, a <= 1), (1 > x, 1 > a),
        (x >= y, a >= b), (np.float32(2) * x, 2 * a), (x * np.float64(2), 2 * a),
        (x + np.int32(1), a + 1), (x + True, a + 1),
    ]  # fmt: skip
    for got, expected in pairs:
        np.testing.assert_array_equal(got.numpy(), expected)
        assert got.dtype is (flow.bool if expected.dtype == bool else flow.float64)


def test_operators_in_place():
    x = flow.ones(3)
    p, same = x.data_ptr(), x
    x += 2
    x *= flow.tensor([1.0, 2.0, 3.0])
    x -= 1
    x /= 2
    assert x is same and x.data_ptr() == p and x.tolist() == [1, 2.5, 4]


def test_operators_with_others():
    class Other:
        def __radd__(self, other):
            return "radd"

        def __eq__(self, other):
            return "eq"

    x = flow.ones(2)
    assert x + Other() == "radd" and (x == Other()) == "eq"
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    for bad in (lambda: x + "a", lambda: [1] + x, lambda: x @ 2, lambda: 2 @ x, lambda: x < "a",
                lambda: x + 1j, lambda: x + np.complex64(1), lambda: x + None):  # fmt: skip
        with pytest.raises(TypeError):
            bad()
    assert (x + 2**64).tolist() == [2.0**64] * 2
    for bad in (lambda: x.long() + 2**64, lambda: 2**64 - x.long(), lambda: x + 10**400):
        with pytest.raises(OverflowError):
            bad()


def test_numbers_of_numpy_bring_their_dtype():
    for name in ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"):
        x = flow.tensor(getattr(np, name + "_" * (name == "bool"))(1))
        assert x.dtype.name == name and x.shape == () and x.item() == 1
    assert flow.tensor(np.float64(2), dtype=flow.float16).dtype is flow.float16
    assert flow.tensor(np.uint32(2)).dtype is flow.int64  # there is no tensor of uint32
    assert flow.tensor(2.0).dtype is flow.float32 and flow.tensor(True).dtype is flow.bool


def test_operators_of_powers_and_conditions():
    x = flow.tensor([-2.0, 3.0])
    assert (x**2).tolist() == [4, 9] and (2**x).tolist() == [0.25, 8] and abs(x).tolist() == [2, 3]
    assert (x**3).tolist() == [-8, 27] and (x**0).tolist() == [1, 1]
    assert (~(x > 0)).tolist() == [True, False]
    assert ((x > 0) & (x < 2)).tolist() == [False, False]
    assert ((x > 0) | (x < -1)).tolist() == [True, True]
    for wrong in (lambda: x & x, lambda: (x > 0) | x, lambda: ~x, lambda: pow(x, 2, 3)):
        with pytest.raises(TypeError):
            wrong()


def test_what_is_not_chosen_may_be_nan_and_gets_no_gradient():
    x = flow.tensor([0.0, 4.0], requires_grad=True)
    y = flow.where(x > 0, x.rsqrt(), 0)
    assert y.tolist() == [0, 0.5]
    flow.where(x > 0, flow.tensor([float("nan"), 1.0]) * x, x).sum().backward()
    assert x.grad[1].item() == 1


@pytest.mark.parametrize("sign", ["+", "-", "*", "//", "%", "**", "|", "&", "^", "<<", ">>"])
def test_integers_are_not_stored_in_place_as_bool(sign):
    for other in (flow.tensor([2]), flow.tensor([2], dtype=flow.uint8)):
        given = {"x": flow.tensor([True]), "other": other}
        with pytest.raises(flow.DTypeError, match="which cannot be stored in a tensor of shape"):
            exec(f"x {sign}= other", given)
        assert given["x"].tolist() == [True]
    given = {"x": flow.tensor([3], dtype=flow.int8), "other": flow.tensor([2])}
    exec(f"x {sign}= other", given)  # of the same kind, as in PyTorch
    assert given["x"].dtype is flow.int8
