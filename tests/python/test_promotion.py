# SPDX-License-Identifier: Apache-2.0
"""Which dtype comes out, asked beforehand: what the operation itself gives."""

import itertools

import numpy as np
import pytest
from numerics import ALL, FLOATS, INTEGERS, flow

PAIRS = list(itertools.product(ALL, ALL))


def make(dtype, shape):
    return flow.ones(shape, dtype=getattr(flow, dtype))


def test_promote_types_is_what_a_sum_gives():
    for a, b in PAIRS:
        expected = (make(a, [1]) + make(b, [1])).dtype
        assert flow.promote_types(getattr(flow, a), getattr(flow, b)) is expected, (a, b)


def test_result_type_is_what_a_product_gives():
    for a, b in PAIRS:
        for left, right in itertools.product(([], [2]), repeat=2):
            x, y = make(a, left), make(b, right)
            assert flow.result_type(x, y) is (x * y).dtype, (a, left, b, right)
        for number in (True, 2, 1.5):
            assert flow.result_type(make(a, [2]), number) is (make(a, [2]) * number).dtype
            assert flow.result_type(number, make(a, [])) is (number * make(a, [])).dtype
    assert flow.result_type(1, 1.5) is flow.float32 and flow.result_type(True, 2) is flow.int64


def test_result_type_computes_nothing():
    huge = flow.empty(1 << 40, 8, device="meta")
    assert flow.result_type(huge, 1) is flow.float32
    assert flow.result_type(huge.int(), np.float32(1)) is flow.float32
    with pytest.raises(TypeError, match=r"result_type\(\): takes Tensors and numbers, not str"):
        flow.result_type("a", huge)


def test_can_cast_goes_up_the_kinds():
    for a, b in PAIRS:
        kinds = [0 if t == "bool" else 1 if t in INTEGERS else 2 for t in (a, b)]
        assert flow.can_cast(getattr(flow, a), getattr(flow, b)) == (kinds[0] <= kinds[1]), (a, b)


@pytest.mark.parametrize("dtype", ALL)
def test_sums_come_in_the_dtype_asked_for(dtype, device):
    """Integers are added up in int64; the result has the dtype that the caller named."""
    values = np.array([[100, 27, 3], [1, 0, 90]])
    for given in ("int8", "int64", "float32", "bool"):
        x = flow.tensor(values, device=device).to(getattr(flow, given))
        for call in (flow.sum, flow.nansum):
            for y in (
                call(x, dtype=getattr(flow, dtype)),
                call(x, 1, True, dtype=getattr(flow, dtype)),
            ):
                assert y.dtype is getattr(flow, dtype), (given, call)
        if dtype != "bool":
            exact = values.astype(bool if given == "bool" else np.int64).sum()
            wanted = exact.astype(np.float64 if dtype in FLOATS else dtype)
            assert float(flow.sum(x, dtype=getattr(flow, dtype))) == float(wanted)


def test_numpys_functions_take_tensors():
    # They pass out=None to the method of the same name.
    x = flow.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert np.sum(x).item() == 11 and np.mean(x).item() == 2.75
    assert np.sum(x, axis=0).tolist() == [4.0, 7.0] and np.argmax(x).item() == 3
    with pytest.raises(TypeError, match="out"):
        x.sum(out=flow.empty([]))


MIXED = [
    (("float64", 4), ("bfloat16", 4)), (("float32", 4), ("float16", 0)),
    (("bfloat16", 4), ("float16", 4)), (("bfloat16", 4), ("float64", 0)),
    (("int64", 4), ("float16", 0)), (("float16", 0), ("bool", 4)),
]  # fmt: skip


@pytest.mark.parametrize("kinds", MIXED, ids=str)
@pytest.mark.parametrize("name", ["xlogy", "hypot", "logaddexp", "addcmul", "addcdiv"])
def test_operands_are_promoted_before_they_are_computed_with(name, kinds):
    """A 0-dim operand counts as a number, as in arithmetic: halves take it unrounded."""
    rng = np.random.default_rng(0)
    arity = 3 if name.startswith("addc") else 2
    given = [kinds[0], kinds[1], kinds[1]][:arity]
    args = [flow.tensor(rng.uniform(1, 4, [n] if n else [])).to(getattr(flow, kind))
            for kind, n in given]  # fmt: skip
    function = getattr(flow, name)
    kind = flow.result_type(args[0], args[1])
    wide = flow.float32 if kind.itemsize == 2 else kind
    expected = function(*((a.to(kind) if a.ndim else a).to(wide) for a in args)).to(kind)
    got = function(*args)
    assert got.dtype is expected.dtype and got.tolist() == expected.tolist()
    exact = function(*(a.to(kind).double() for a in args)).numpy()
    eps = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-13}[kind.name]
    np.testing.assert_allclose(got.double().numpy(), exact, rtol=eps)


def test_of_several_tensors_those_with_dims_come_first():
    """As all at once in PyTorch, not one pair after the other."""
    x, y = flow.ones(2, dtype=flow.int64), flow.tensor(1.0, dtype=flow.bfloat16)
    assert flow.addcmul(x, y, flow.ones(2, dtype=flow.float16)).dtype is flow.float16
    assert flow.addcmul(x, y, flow.tensor(1.0, dtype=flow.float64)).dtype is flow.float64


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
def test_type_as_takes_the_dtype_of_another(dtype, device):
    x = flow.tensor([[0.0, 2.5], [-1.0, 3.0]], device=device, requires_grad=True)
    other = flow.zeros(3, dtype=getattr(flow, dtype), device=device)
    y = x.type_as(other)
    assert y.dtype == other.dtype and y.device == x.device
    np.testing.assert_array_equal(
        y.detach().cpu().numpy(), x.detach().to(other.dtype).cpu().numpy()
    )
    assert x.type_as(flow.zeros(1)).dtype == flow.float32
    if other.is_floating_point():
        y.sum().backward()
        assert x.grad.tolist() == [[1.0, 1.0]] * 2
