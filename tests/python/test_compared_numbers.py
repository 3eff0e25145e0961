# SPDX-License-Identifier: Apache-2.0
"""Numbers compared with tensors: the mathematical answer, be the number one of the dtype or not."""

import math
import operator

import numpy as np
import pytest
from numerics import FLOATS, INTEGERS, flow, host, tensor

OPERATORS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
FUNCTIONS = [flow.eq, flow.ne, flow.lt, flow.le, flow.gt, flow.ge]
ENDS = [(int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in INTEGERS]
# The ends of every dtype and their neighbours, what is between integers, what no dtype holds.
NUMBERS = sorted({e + step for ends in ENDS for e in ends for step in (-1, 0, 1)} | {2, 3, 259})
NUMBERS += [2**64, 2**70, -(2**70), 10**30, 10**400, -(10**400), True, False]
NUMBERS += [2.5, -2.5, 0.0, -0.0, 0.1, 2.0**31, 2.0**53, -(2.0**63), 2.0**63, 127.5, -128.5, 255.5,
            1e30, -1e30, 1e300, math.inf, -math.inf, math.nan, 5e-324]  # fmt: skip

named = pytest.mark.parametrize("f", OPERATORS, ids=lambda f: f.__name__)


def check(f, x, values):
    """Python compares its numbers exactly."""
    for number in NUMBERS:
        at = f"{f.__name__} {number!r}"
        assert f(x, number).tolist() == [f(v, number) for v in values], at
        assert f(number, x).tolist() == [f(number, v) for v in values], at
        function = FUNCTIONS[OPERATORS.index(f)]
        assert function(x, number).tolist() == [f(v, number) for v in values], at


@pytest.mark.parametrize("dtype", INTEGERS)
@named
def test_of_integers(f, dtype, device):
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    values = [least, least + 1, 0, 1, 2, 3, most // 2, most - 1, most]
    if most > 2**60:
        values += [2**53, 2**53 + 1, 2**24 + 1, -(2**53) - 1, most - 512]
    x = flow.tensor(values, dtype=getattr(flow, dtype), device=device)
    check(f, x, values)
    assert f(x[1], 300).item() is f(values[1], 300)  # of 0 dims
    assert f(x, 10**30).dtype is flow.bool and f(x[:0], 10**30).shape == (0,)
    assert f(x.view(-1, 1).expand(len(values), 3), 300)[:, 1].tolist() == [
        f(v, 300) for v in values
    ]


@named
def test_of_truths(f, device):
    check(f, flow.tensor([True, False], device=device), [True, False])


@pytest.mark.parametrize("dtype", FLOATS)
@named
def test_of_floats(f, dtype, device):
    """A number is rounded to the dtype, but a finite one stays finite."""
    largest = flow.finfo(getattr(flow, dtype)).max
    x = tensor([0, -1, 2, 2.5, 259, largest, -largest, np.inf, -np.inf, np.nan], dtype, device)
    values = host(x)
    for number in NUMBERS:
        try:
            near = float(number)
        except OverflowError:
            near = math.inf if number > 0 else -math.inf
        with np.errstate(over="ignore"):
            near = host(tensor(near, dtype)).item()
        if math.isinf(near) and not (isinstance(number, float) and math.isinf(number)):
            # Beyond all finite elements, and nearer than the infinity.
            sides = np.where(values == near, near, -near)
            sides = np.where(np.isnan(values), np.nan, sides)
            want, mirrored = f(sides, 0.0), f(0.0, sides)
        else:
            want, mirrored = f(values, near), f(near, values)
        np.testing.assert_array_equal(host(f(x, number)), want, f"{f.__name__} {number!r}")
        np.testing.assert_array_equal(host(f(number, x)), mirrored, f"{number!r} {f.__name__}")


def test_on_meta_and_of_numpys_numbers():
    x = flow.zeros(2, 3, dtype=flow.int8)
    assert (x.to("meta") == 300).shape == (2, 3) and (x.to("meta") < 2**70).dtype is flow.bool
    for number in (np.int64(300), np.uint64(2**63), np.float32(300), np.float64(1e300)):
        assert not (x == number).any() and (x < number).all() and not (x >= number).any()


def test_elements_among_others():
    x = flow.tensor([3, 7], dtype=flow.int8)
    assert 259 not in x and 3 in x and 2**70 not in x and 3.5 not in x
    assert flow.tensor([2**24 + 1]).eq(2.0**24).tolist() == [False]


LOGIC = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("name", LOGIC)
def test_logic_asks_whether_the_number_is_zero(name, dtype, device):
    x = flow.tensor([0, 1, 2], device=device).to(getattr(flow, dtype))
    truths, stays = x.bool().tolist(), x.tolist()
    for number in (*NUMBERS, 200, -200, 1e-30):
        expected = [LOGIC[name](t, bool(number)) for t in truths]
        assert getattr(flow, name)(x, number).tolist() == expected, number
        assert getattr(flow, name)(number, x).tolist() == expected, number
        assert getattr(x, name)(number).dtype is flow.bool
        assert getattr(x.clone(), f"{name}_")(number).bool().tolist() == expected, number
    assert x.tolist() == stays
