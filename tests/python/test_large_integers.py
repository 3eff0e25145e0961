# SPDX-License-Identifier: Apache-2.0
"""Python's integers beyond int64, next to its ends too: beside an integer dtype a number that does
not fit, beside a floating one the double nearest to it. SEMANTICS: comparisons give the
mathematical answer, bounds saturate, what else takes one refuses it.
"""

import math
import operator

import numpy as np
import pytest
from numerics import FLOATS, INTEGERS, flow, host

F = flow.nn.functional
# Of the first ones the nearest double is -2^63, which int64 holds.
BELOW = [-(2**63) - 1, -(2**63) - 2, -(2**63) - 1023, -(2**63) - 1024, -(2**63) - 1025,
         -(2**63) - 2048, -(2**64) - 1, -(2**100) - 1]  # fmt: skip
ABOVE = [2**63, 2**63 + 1, 2**63 + 1023, 2**63 + 1024, 2**63 + 1025, 2**64 - 1, 2**64, 2**64 + 1,
         2**100 + 1]  # fmt: skip
LARGE = [*BELOW, *ABOVE]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("number", LARGE)
def test_as_a_double_it_is_the_nearest_one(number):
    near = float(number)
    zeros = flow.zeros(2, dtype=flow.float64)
    assert (zeros + number).tolist() == [near] * 2
    assert (number - zeros).tolist() == [near] * 2
    assert flow.full([1], number, dtype=flow.float64).item() == near
    assert flow.tensor([number, 0.5], dtype=flow.float64).tolist() == [near, 0.5]
    assert zeros.clone().fill_(number).tolist() == [near] * 2
    assert flow.clamp(zeros, min=number).tolist() == [max(near, 0.0)] * 2
    assert flow.where(flow.tensor([True, False]), number, zeros).tolist() == [near, 0.0]
    assert (flow.full([1], near, dtype=flow.float64) == number).item()
    assert flow.add(zeros, 1, alpha=number).tolist() == [near] * 2
    assert flow.linspace(number, number, 2, dtype=flow.float64).tolist() == [near] * 2
    written = zeros.clone()
    written[0] = number
    assert written.tolist() == [near, 0.0]
    with np.errstate(over="ignore"):
        for dtype in FLOATS:
            if dtype != "bfloat16":
                y = flow.full([1], number, dtype=getattr(flow, dtype))
                assert host(y).item() == np.dtype(dtype).type(near), dtype


def test_a_number_times_0_is_0():
    for number in (2**63, 2**70, -(2**64)):
        assert flow.add(flow.tensor([1]), number, alpha=0).tolist() == [1]
        assert flow.sub(flow.tensor([1]), 0, alpha=number).tolist() == [1]


@pytest.mark.parametrize("a", [2**31, -(2**31), 2**62, 3**39, -(3**39), 2**63 - 1, -(2**63)])
def test_a_number_times_alpha_is_rounded_once(a):
    zeros = flow.zeros(1, dtype=flow.float64)
    for b in (2**32, -(2**32), 2, 4, 3**20, 7**22, 2**63 - 1):
        assert flow.add(zeros, a, alpha=b).item() == float(a * b)
        integers = flow.zeros(1, dtype=flow.int64)
        if -(2**63) <= a * b < 2**63:
            assert flow.add(integers, a, alpha=b).item() == a * b
        else:
            with pytest.raises(OverflowError, match=r"^add\(\): the number .* of int64$"):
                flow.add(integers, a, alpha=b)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("number", LARGE)
def test_no_integer_equals_it(number, dtype):
    ends = np.iinfo(dtype)
    values = [int(ends.min), int(ends.min) + 1, 0, int(ends.max) - 1, int(ends.max)]
    x = flow.tensor(values, dtype=getattr(flow, dtype))
    for f in COMPARISONS:
        assert f(x, number).tolist() == [f(v, number) for v in values], f
        assert f(number, x).tolist() == [f(number, v) for v in values], f
    assert number not in x


REFUSED = {
    "full": lambda x, v: flow.full([2], v, dtype=x.dtype),
    "tensor": lambda x, v: flow.tensor([v], dtype=x.dtype),
    "fill_": lambda x, v: x.fill_(v),
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "remainder": operator.mod,
    "floor_divide": operator.floordiv, "bitwise_and": operator.and_,
    "maximum": flow.maximum, "minimum": flow.minimum,
    "where": lambda x, v: flow.where(x == 0, x, v),
    "masked_fill": lambda x, v: x.masked_fill(x == 0, v),
    "setitem": lambda x, v: operator.setitem(x, 0, v),
    "threshold": lambda x, v: F.threshold(x, 0, v),
    "addcmul": lambda x, v: flow.addcmul(x, x, x, value=v),
    "arange": lambda x, v: flow.arange(v, v + 1, dtype=x.dtype),
    "linspace": lambda x, v: flow.linspace(v, v, 2, dtype=x.dtype),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_computes_with_integers_refuses_it(name, dtype):
    x = flow.tensor([1, 2], dtype=getattr(flow, dtype))
    for number in LARGE:
        with pytest.raises(OverflowError, match="is out of range"):
            REFUSED[name](x, number)
    assert x.tolist() == [1, 2]


def test_factors_of_a_product_of_integers():
    x = flow.ones(2, 2, dtype=flow.int64)
    for number in LARGE:
        for factors in ({"beta": number}, {"alpha": number}):
            with pytest.raises(OverflowError, match=r"^addmm\(\): the number .* of int64$"):
                flow.addmm(x, x, x, **factors)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bounds_beyond_all_integers_saturate(dtype):
    ends = np.iinfo(dtype)
    values = [int(ends.min), int(ends.min) + 1, 7, int(ends.max)]
    x = flow.tensor(values, dtype=getattr(flow, dtype))
    for low in BELOW:
        assert flow.clamp(x, min=low).tolist() == values
        assert flow.clamp(x, max=low).tolist() == [ends.min] * 4
        for high in ABOVE:
            assert flow.clamp(x, low, high).tolist() == values
    for high in ABOVE:
        assert flow.clamp(x, max=high).tolist() == values
        assert flow.clamp(x, min=high).tolist() == [ends.max] * 4


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_threshold_below_all_integers_lets_all_through(dtype):
    ends = np.iinfo(dtype)
    values = [int(ends.min), int(ends.min) + 1, 0, int(ends.max)]
    x = flow.tensor(values, dtype=getattr(flow, dtype))
    for below in (int(ends.min) - 1, *BELOW, -1e30, -math.inf):
        y = F.threshold(x, below, 3)
        assert y.tolist() == values
        assert F.threshold(x.clone(), below, 3, inplace=True).tolist() == values
        y.zero_()
        assert x.tolist() == values  # a tensor of its own
    for above in (*ABOVE, int(ends.max), 1e30, math.inf):
        assert F.threshold(x, above, 3).tolist() == [3] * 4
    assert F.threshold(x[:2], int(ends.min), 3).tolist() == [3, values[1]]


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_a_search_finds_none(dtype):
    kind = getattr(flow, dtype)
    ends = np.iinfo(dtype) if dtype != "bool" else None
    values = [False, True] if ends is None else [int(ends.min)] * 2 + [0] + [int(ends.max)] * 2
    x = flow.tensor(values, dtype=kind)
    none = [False] * len(values)
    for number in LARGE:
        assert flow.isin(x, number).tolist() == none
        assert flow.isin(x, number, invert=True).tolist() == [True] * len(values)
        assert flow.isin(number, x).item() is False
        if dtype == "bool":
            continue
        for right in (False, True):
            place = len(values) if number > 0 else 0
            assert flow.searchsorted(x, number, right=right).item() == place
            assert flow.bucketize(number, x, right=right).item() == place
