# SPDX-License-Identifier: Apache-2.0
"""Numbers written into tensors: what the dtype cannot hold is refused, by whatever writes it."""

import math

import pytest

import oneflow_lite as flow


def written(x, index, value):
    x[index] = value
    return x


INF, NAN = math.inf, math.nan
# What writes a number into a tensor that is there, and what it says of itself.
WRITES = {
    "full": lambda x, v: flow.full([2], v, dtype=x.dtype),
    "fill_": lambda x, v: x.fill_(v),
    "masked_fill": lambda x, v: x.masked_fill(flow.tensor([True, False]), v),
    "setitem": lambda x, v: written(x, 0, v),
    "tensor": lambda x, v: written(x, flow.tensor([True, False]), v),
    "scatter_": lambda x, v: x.scatter(0, flow.tensor([0]), v),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype, value, allowed", [
    ("int64", INF, "finite for int64"), ("int64", NAN, "finite for int64"),
    ("int32", 2**31, "in [-2147483648, 2147483647] for int32"),
    ("int64", 1e19, "in [-9223372036854775808, 9223372036854775807] for int64"),
    ("uint8", 300, "in [-255, 255] for uint8"), ("int8", 1000, "in [-128, 127] for int8"),
    ("int8", -129.0, "in [-128, 127] for int8"),
])  # fmt: skip
def test_a_number_that_does_not_fit_is_not_written(name, dtype, value, allowed):
    x = flow.tensor([1, 2], dtype=getattr(flow, dtype))
    with pytest.raises(ValueError) as caught:
        WRITES[name](x, value)
    text = str(caught.value)
    assert x.tolist() == [1, 2]
    if name == "tensor":
        assert text == f"tensor(): {value!r} does not fit in {dtype}"
    else:
        shown = f"{value:.6g}" if isinstance(value, float) else value
        assert text == f"{name}(): the value is {shown}, but it must be {allowed}"


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("dtype, value, want", [
    ("int8", 127, 127), ("int8", -128.9, -128), ("uint8", 255.9, 255),
    ("int64", -(2**63), -(2**63)), ("int64", -(2.0**63), -(2**63)),
    ("bool", 7, True), ("float16", 1e9, INF),
])  # fmt: skip
def test_a_number_that_just_fits_is_written(name, dtype, value, want):
    x = flow.zeros(2, dtype=getattr(flow, dtype))
    assert WRITES[name](x, value)[0].item() == want


@pytest.mark.parametrize("value", [300, -300, 2**40])
def test_where_refuses_numbers_that_do_not_fit(value):
    x = flow.tensor([1, 2], dtype=flow.uint8)
    for call in (lambda: flow.where(x > 1, x, value), lambda: flow.where(x > 1, value, x)):
        with pytest.raises(ValueError) as caught:
            call()
        assert (
            str(caught.value)
            == f"where(): the value is {value}, but it must be in [-255, 255] for uint8"
        )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_bounds_that_no_element_reaches_change_nothing(dtype):
    limits = flow.iinfo(getattr(flow, dtype))
    values = [limits.min, limits.min + 1, 5, limits.max]
    x = flow.tensor(values, dtype=getattr(flow, dtype))
    for low, high in (
        (limits.min - 1, limits.max + 1),
        (-(2**40), 2**40),
        (limits.min, limits.max),
    ):
        y = flow.clamp(x, low, high)
        assert y.dtype is x.dtype and y.tolist() == values
        y.zero_()
        assert x.tolist() == values  # a tensor of its own
    for name, bound in (("min", limits.max + 1), ("max", limits.min - 1)):
        with pytest.raises(ValueError) as caught:
            flow.clamp(x, **{name: bound})
        allowed = f"in [{limits.min}, {limits.max}] for {dtype}"
        assert str(caught.value) == f"clamp(): {name} is {bound}, but it must be {allowed}"
    assert flow.clamp(flow.tensor([True]), max=5).tolist() == [1]
