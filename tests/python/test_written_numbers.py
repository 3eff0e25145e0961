# SPDX-License-Identifier: Apache-2.0
"""Numbers that an integer dtype does not hold: what writes or computes with one refuses it, bounds
saturate. Comparisons are in test_compared_numbers.py.
"""

import math
import operator

import numpy as np
import pytest
from numerics import FLOATS, INTEGERS, flow

F = flow.nn.functional
INF, NAN = math.inf, math.nan
MASK = flow.tensor([True, False])
FIRST = flow.tensor([0])


def written(x, index, value):
    x[index] = value
    return x


# What writes a number into a tensor, and the name that it speaks of.
WRITES = {
    "full": lambda x, v: flow.full([2], v, dtype=x.dtype),
    "full_like": lambda x, v: flow.full_like(x, v),
    "new_full": lambda x, v: x.new_full([2], v),
    "tensor": lambda x, v: flow.tensor([v, 0], dtype=x.dtype),
    "new_tensor": lambda x, v: x.new_tensor([v, 0]),
    "fill_": lambda x, v: x.fill_(v),
    "masked_fill": lambda x, v: x.masked_fill(MASK, v),
    "masked_fill_": lambda x, v: x.masked_fill_(MASK, v),
    "index_fill": lambda x, v: x.index_fill(0, FIRST, v),
    "scatter": lambda x, v: x.scatter(0, FIRST, v),
    "scatter value": lambda x, v: x.scatter(0, FIRST, value=v),
    "scatter_": lambda x, v: x.scatter_(0, FIRST, v),
    "pad": lambda x, v: F.pad(x, (1, 0), value=v),
    "setitem": lambda x, v: written(x, 0, v),
    "setitem ...": lambda x, v: written(x, ..., v),
    "setitem mask": lambda x, v: written(x, MASK, v),
    "setitem places": lambda x, v: written(x, [0], v),
    "setitem list": lambda x, v: written(x, slice(None), [v, 0]),
}
# Whose message names the function inside that met the number.
INNER = {
    "scatter value": "scatter", "setitem ...": "setitem",
    "setitem mask": "setitem", "setitem places": "setitem", "setitem list": "tensor",
}  # fmt: skip
# What computes with a number.
COMPUTES = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": flow.fmod,
    "pow": operator.pow, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift, "maximum": flow.maximum, "minimum": flow.minimum,
    "where": lambda a, b: flow.where(MASK, a, b),
}  # fmt: skip
IN_PLACE = {
    "add_": operator.iadd, "sub_": operator.isub, "mul_": operator.imul,
    "floor_divide_": operator.ifloordiv, "remainder_": operator.imod, "pow_": operator.ipow,
    "bitwise_and_": operator.iand, "bitwise_or_": operator.ior, "bitwise_xor_": operator.ixor,
    "bitwise_left_shift_": operator.ilshift, "bitwise_right_shift_": operator.irshift,
}  # fmt: skip


def limits(dtype):
    found = np.iinfo(dtype)
    return int(found.min), int(found.max)


def beyond(dtype):
    """Numbers that the dtype does not hold: next to its ends, far off, and no numbers."""
    least, most = limits(dtype)
    ints = [least - 1, most + 1, -(2**63) - 1, 2**63, 2**70, -(2**70), 10**400, -(10**400)]
    return ints, [1e30, -1e30, float(2 * most + 2), INF, -INF, NAN]


def shown(value):
    if abs(value) > 1e308 and isinstance(value, int):
        return "beyond 1e308" if value > 0 else "below -1e308"
    whole = isinstance(value, int) and -(2**63) <= value < 2**63
    return str(value) if whole else f"{float(value):.6g}"


def refused(call, name, value, dtype):
    with pytest.raises(OverflowError) as caught:
        call()
    least, most = limits(dtype)
    want = f"the number {shown(value)} is out of range [{least}, {most}] of {dtype}"
    function, _, text = str(caught.value).partition("(): ")
    assert (function, text) == (name, want)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", WRITES)
def test_a_number_that_does_not_fit_is_not_written(name, dtype):
    ints, floats = beyond(dtype)
    for value in (*ints, *floats):
        x = flow.tensor([1, 2], dtype=getattr(flow, dtype))
        refused(lambda: WRITES[name](x, value), INNER.get(name, name), value, dtype)  # noqa: B023
        assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", WRITES)
def test_a_number_that_just_fits_is_written(name, dtype):
    for value in limits(dtype):
        x = flow.zeros(2, dtype=getattr(flow, dtype))
        assert value in WRITES[name](x, value).tolist()
    least, most = limits(dtype)
    for value in (least, float(least), most // 2 + 0.9 if most < 2**50 else 7.9):
        y = WRITES[name](flow.zeros(2, dtype=getattr(flow, dtype)), value)
        assert int(value) in y.tolist()  # a fraction is left off


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype, value, want", [
    ("bool", 7, True), ("bool", 2**70, True), ("float16", 1e9, INF), ("float64", 2**70, 2.0**70),
    ("float32", -(2**70), -(2.0**70)),
])  # fmt: skip
def test_other_dtypes_take_any_number(name, dtype, value, want):
    assert want in WRITES[name](flow.zeros(2, dtype=getattr(flow, dtype)), value).tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", COMPUTES)
def test_arithmetic_refuses_an_integer_that_does_not_fit(name, dtype):
    f = COMPUTES[name]
    x = flow.tensor([1, 2], dtype=getattr(flow, dtype))
    for value in beyond(dtype)[0]:
        if name != "pow" or value > 0:  # a negative power of integers is refused by itself
            refused(lambda: f(x, value), name, value, dtype)  # noqa: B023
        refused(lambda: f(value, x), name, value, dtype)  # noqa: B023
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_arithmetic_in_place_refuses_it_too(name, dtype):
    x = flow.tensor([1, 2], dtype=getattr(flow, dtype))
    for value in beyond(dtype)[0]:
        if name == "pow_" and value < 0:
            continue
        refused(lambda: IN_PLACE[name](x, value), name, value, dtype)  # noqa: B023
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum", "bitwise_and",
                                  "bitwise_or", "bitwise_xor", "where"])  # fmt: skip
def test_arithmetic_takes_the_ends(name, dtype):
    numpy_of = {"sub": np.subtract, "add": np.add, "mul": np.multiply,
                "where": lambda a, b: np.where(MASK.numpy(), a, b)}  # fmt: skip
    f = numpy_of.get(name) or getattr(np, name)
    values = np.array([1, 2], dtype)
    for value in limits(dtype):
        got = COMPUTES[name](flow.tensor(values), value)
        with np.errstate(over="ignore"):
            want = f(values, np.array(value, dtype))
        assert got.dtype.name == dtype and got.tolist() == want.tolist()


def test_alpha_does_not_wrap_either():
    x = flow.tensor([1], dtype=flow.int8)
    for call, name in ((lambda: flow.add(x, x, alpha=300), "add"),
                       (lambda: x.sub(2, alpha=150), "sub"),
                       (lambda: x.add_(x, alpha=-129), "add_"),
                       (lambda: x.sub_(1, alpha=2**70), "sub_")):  # fmt: skip
        with pytest.raises(OverflowError, match=rf"^{name}\(\): the number .* of int8$"):
            call()
    with pytest.raises(OverflowError, match=r"^add\(\): the number 1.84.*e\+19 is out of range"):
        flow.tensor([1]).add(4, alpha=2**62)
    assert flow.tensor([1.0]).add(4, alpha=2**62).tolist() == [2.0**64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_take_integers_beyond_64_bits(dtype):
    x = flow.ones(2, dtype=getattr(flow, dtype))
    want = flow.full([2], 2.0**70, dtype=x.dtype)
    assert (x * 2**70).tolist() == flow.where(MASK, 2**70, want).tolist() == want.tolist()
    for call in (
        lambda: x + 10**400,
        lambda: x.fill_(-(10**400)),
        lambda: flow.maximum(x, 10**400),
    ):
        with pytest.raises(OverflowError, match=rf"is out of range of {dtype}|of float32"):
            call()
    assert x.tolist() == [1, 1]


def test_a_unit_more_than_a_byte_of_all_bits():
    x = flow.tensor([0, 3, 255], dtype=flow.uint8)
    assert (~x).tolist() == [255, 252, 0] and x.amin().item() == 0 and x.argmin().item() == 0
    assert x.min(0)[1].item() == 0 and x.sort(descending=True)[0].tolist() == [255, 3, 0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_sequence_does_not_wrap(dtype):
    least, most = limits(dtype)
    kind = getattr(flow, dtype)
    assert flow.arange(most - 1, most, dtype=kind).tolist() == [most - 1]
    assert flow.arange(least, least + 2, dtype=kind).tolist() == [least, least + 1]
    with pytest.raises(OverflowError, match=rf"^arange\(\): the number .* of {dtype}$"):
        flow.arange(least - 1 if least else -1, 5, 1, dtype=kind)
    if most < 2**60:
        assert flow.arange(most - 1, most + 1, dtype=kind).tolist() == [most - 1, most]
        with pytest.raises(OverflowError, match=rf"^arange\(\): the number {most + 1} .*{dtype}$"):
            flow.arange(most - 1, most + 2, dtype=kind)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bounds_saturate(dtype):
    least, most = limits(dtype)
    values = [least, least + 1, 5, most - 1, most]
    x = flow.tensor(values, dtype=getattr(flow, dtype))
    bounds = [None, least - 1, least, least + 1, 0, 5, most - 1, most, most + 1, -(2**70), 2**70,
              -(10**400), 10**400]  # fmt: skip
    for low in bounds:
        for high in bounds:
            if low is None and high is None:
                continue
            if low is not None and high is not None and low > high:
                continue
            want = [v if low is None else max(v, low) for v in values]
            want = [v if high is None else min(v, high) for v in want]
            want = [min(max(v, least), most) for v in want]
            y = flow.clamp(x, low, high)
            assert y.dtype is x.dtype and y.tolist() == want, (low, high)
            y.zero_()
            assert x.tolist() == values  # a tensor of its own
    assert x.clone().clamp_(max=2**70).tolist() == values
    assert flow.clamp(flow.tensor([True]), max=5).tolist() == [1]
    assert flow.clamp(flow.tensor([1.5, INF]), max=10**400).tolist() == [1.5, INF]
