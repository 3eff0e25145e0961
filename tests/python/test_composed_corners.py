# SPDX-License-Identifier: Apache-2.0
"""Corners of functions that Python composes: infinities, bool, integers, sizes that do not fit."""

import math

import numpy as np
import pytest
from numerics import ALL, INTEGERS, flow, host

F = flow.nn.functional
INF, NAN = math.inf, math.nan


def test_hypot_is_infinite_where_a_side_is():
    sides = [(INF, NAN), (NAN, -INF), (INF, 1.0), (NAN, 2.0), (0.0, 0.0), (3.0, 4.0)]
    a, b = np.array(sides).T
    np.testing.assert_array_equal(host(flow.hypot(flow.tensor(a), flow.tensor(b))), np.hypot(a, b))


@pytest.mark.parametrize("function", [flow.hypot, flow.xlogy])
def test_two_operands_give_the_float_they_are_promoted_to(function):
    for a in ALL:
        for b in ALL:
            x, y = flow.ones(3, dtype=getattr(flow, a)), flow.ones(3, dtype=getattr(flow, b))
            kind = flow.promote_types(x.dtype, y.dtype)
            wanted = kind if kind.is_floating_point else flow.float32
            assert function(x, y).dtype is wanted, (a, b)


def test_xlogy_of_a_number_keeps_the_dtype():
    a = np.array([0.1, 0.0, 3.0])
    x = flow.tensor(a)
    for got in (flow.xlogy(x, 0.3), x.xlogy(np.float64(0.3)), x.clone().xlogy_(0.3)):
        np.testing.assert_allclose(host(got), a * math.log(0.3), rtol=1e-15)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(host(flow.xlogy(0.3, x)), 0.3 * np.log(a), rtol=1e-15)
    assert flow.xlogy(x.half(), 0.3).dtype is flow.float16
    assert flow.xlogy(flow.tensor([2]), 2).dtype is flow.float32
    assert flow.xlogy(x, -1.0).isnan().tolist() == [True, False, True]


def test_sums_with_products_of_integers_take_integers_alone():
    x, batch = flow.ones(2, 2, dtype=flow.int64), flow.ones(1, 2, 2, dtype=flow.int64)
    for function, m in ((flow.addmm, x), (flow.baddbmm, batch)):
        got = function(m, m, m, beta=3.0, alpha=2)
        assert got.dtype is flow.int64 and (got == 7).all()
        for name, value in (("alpha", 0.5), ("beta", 1.5), ("beta", INF)):
            with pytest.raises(ValueError, match=rf"{function.__name__}\(\): {name} is {value}"):
                function(m, m, m, **{name: value})
        assert (function(m.float(), m, m, alpha=0.5) == 2).all()


def test_functions_of_integers_and_bool_are_those_of_floats():
    for dtype in (*INTEGERS, "bool"):
        x = flow.tensor([0, 1, 1]).to(getattr(flow, dtype))
        for function in (flow.cosh, flow.sinh, flow.logit):
            got, wanted = function(x), function(x.float())
            assert got.dtype is flow.float32
            np.testing.assert_array_equal(host(got), host(wanted))
    two = flow.tensor([2], dtype=flow.uint8)  # 1 - 2 is no uint8
    assert flow.logit(two).isnan().item()


def test_bool():
    x, y = flow.tensor([True, False, True]), flow.tensor([True, True, False])
    for squared in (flow.square(x), x**2, x.square()):
        assert squared.dtype is flow.int64 and squared.tolist() == [1, 0, 1]
    assert flow.isclose(x, y).tolist() == [True, False, False]
    assert flow.allclose(x, x) and not flow.allclose(x, y)
    assert flow.fmod(x, flow.tensor([2], dtype=flow.int8)).tolist() == [1, 0, 1]
    assert flow.einsum("i,i->", x, y).item() is True
    assert flow.einsum("i,j->ij", x, y).dtype is flow.bool


def test_einsum_promotes_and_takes_lists_of_numbers():
    a, b = np.arange(6).reshape(2, 3), np.arange(12.0).reshape(3, 4) / 5
    x, y = flow.tensor(a), flow.tensor(b)
    np.testing.assert_allclose(host(flow.einsum("ij,jk->ik", x, y)), a @ b)
    np.testing.assert_allclose(host(flow.einsum(x, [0, 1], y, [1, 2], [0, 2])), a @ b)
    np.testing.assert_allclose(host(flow.einsum(y, [..., 51], [51, ...])), b.T)
    np.testing.assert_allclose(host(flow.einsum(x, [0, 1])), a)
    for bad in ((x, 3), (x, y), (x, [52, 0]), (x, [-1, 0]), (x, ["i", "j"])):
        with pytest.raises((TypeError, ValueError), match=r"einsum\(\): "):
            flow.einsum(*bad)


@pytest.mark.parametrize("dtype", ["int64", "float32", "bfloat16", "bool"])
def test_unique_slices(dtype):
    a = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]], [[1, 0], [0, 1]]])
    x = flow.tensor(a).to(getattr(flow, dtype))
    for dim in (0, 1, 2, -1):
        got = flow.unique(x, return_inverse=True, return_counts=True, dim=dim)
        expected = np.unique(a, return_inverse=True, return_counts=True, axis=dim)
        assert got[0].dtype is x.dtype
        for t, wanted in zip(got, expected, strict=True):
            np.testing.assert_array_equal(host(t), wanted.reshape(t.shape))
        assert len(flow.unique(x, return_counts=True, dim=dim)) == 2
        np.testing.assert_array_equal(host(flow.unique(x, dim=dim)), expected[0])
    with pytest.raises(IndexError, match="unique"):
        flow.unique(x, dim=3)


def test_circular_padding_goes_round_what_is_left():
    x = flow.arange(6.0).view(1, 6)
    assert F.pad(x, (-1, 2), "circular").tolist() == [[1, 2, 3, 4, 5, 1, 2]]
    assert F.pad(x, (2, -3), "circular").tolist() == [[1, 2, 0, 1, 2]]
    with pytest.raises(ValueError, match="at most 3"):
        F.pad(x, (4, -3), "circular")


@pytest.mark.parametrize("correction", [0, 1, 0.5, 2.25, 7, 100])
def test_variance_takes_any_correction(correction):
    a = np.random.default_rng(3).standard_normal((5, 7))
    got = flow.var(flow.tensor(a), 1, correction=correction)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = ((a - a.mean(1, keepdims=True)) ** 2).sum(1) / max(0, 7 - correction)
    np.testing.assert_allclose(host(got), expected)
    for y in (flow.std(flow.tensor(a), 1, correction=correction),
              flow.std_mean(flow.tensor(a), 1, correction=correction)[0]):  # fmt: skip
        np.testing.assert_allclose(host(y), expected**0.5)


def test_division_in_place_rounds():
    for mode in ("floor", "trunc", None):
        x = flow.tensor([7.0, -7.0])
        expected = flow.div(x, 2.0, rounding_mode=mode)
        assert x.div_(2.0, rounding_mode=mode) is x and x.tolist() == expected.tolist()
    whole = flow.tensor([7, -7])
    assert whole.divide_(2, rounding_mode="trunc").tolist() == [3, -3]
    with pytest.raises(flow.DTypeError):
        whole.div_(2)


def test_casts_take_what_pytorchs_take():
    x = flow.ones(2)
    assert x.to("cpu", flow.float64, True, True).dtype is flow.float64
    assert x.to(flow.float32, True) is x and x.to(flow.float32, False, True) is not x
    assert x.to(x, False, True) is not x
    assert x.half(memory_format=flow.preserve_format).dtype is flow.float16
    for dtype in ALL:
        y = x.to(getattr(flow, dtype))
        assert x.type(y.type()).dtype is y.dtype
    assert x.type("flow.LongTensor").dtype is flow.int64
    for name in ("LongTensors", "Tensor", "float31", ""):
        with pytest.raises(ValueError, match="there is no dtype"):
            x.type(name)


ERRORS = [
    (lambda: flow.hsplit(flow.ones(4, 5), 2), "hsplit(): dim 1 of size 5 does not make 2 parts"),
    (lambda: flow.vsplit(flow.ones(4, 5), 0), "vsplit(): dim 0 of size 4 does not make 0 parts"),
    (lambda: flow.vsplit(flow.ones(4), 2), "vsplit(): input has shape [4], expected at least 2"),
    (lambda: flow.hsplit(flow.tensor(1.0), 1), "hsplit(): input has shape [], expected at least 1"),
    (lambda: flow.rot90(flow.ones(2, 3), 1, (0,)), "rot90(): dims are [0], but they must be two"),
    (lambda: flow.diag_embed(flow.ones(3), 0, 1, -1), "diag_embed(): dim1 and dim2 are 1 and -1"),
    (lambda: flow.diag_embed(flow.tensor(1.0)), "diag_embed(): input has shape []"),
    (lambda: flow.fliplr(flow.ones(3)), "fliplr(): input has shape [3], expected at least 2 dims"),
    (lambda: flow.meshgrid(flow.ones(2), flow.ones(1, 2)), "meshgrid(): a tensor has shape [1, 2]"),
    (lambda: F.normalize(flow.ones(2, 3), dim=2), "normalize(): dim 2 is out of range [-2, 1]"),
    (
        lambda: flow.cosine_similarity(flow.ones(2), flow.ones(2)),
        "cosine_similarity(): dim 1 is out",
    ),
    (lambda: flow.eye(2.5), "eye(): argument 'n' must be int, not float"),
    (lambda: flow.einsum(b"i", flow.ones(2)), "einsum(): takes an equation and Tensors"),
    (lambda: flow.einsum("i", [1, 2]), "einsum(): takes an equation and Tensors"),
    (lambda: flow.load(3), "load(): file must be a path or a binary file, not int"),
    (
        lambda: flow.cross_entropy(flow.ones(2, 3, 4).long(), flow.ones(2, 4).long()),
        "cross_entropy(): input has dtype int64",
    ),
    (
        lambda: flow.cross_entropy(flow.ones(2, 3, 5), flow.ones(2, 4).long()),
        "cross_entropy(): target has shape [2, 4], expected [2, 5]",
    ),
    (
        lambda: flow.cross_entropy(flow.ones(2, 3, 1), flow.tensor([[0], [7]])),
        "cross_entropy(): target 7 is out of range",
    ),
    (lambda: flow.eye(-1), "eye(): n is -1, but it must not be negative"),
    (lambda: flow.eye(2, -3), "eye(): m is -3, but it must not be negative"),
    (lambda: flow.multinomial(flow.ones(2), 0), "multinomial(): num_samples is 0, but it must be"),
    (lambda: flow.linspace(flow.ones(2), 3, 2), "linspace(): argument 'start' must be a number"),
    (lambda: flow.median(flow.ones(0, 3), 0), "median(): there is no median of no elements"),
    (lambda: flow.nanmedian(flow.ones(2, 0), 1), "nanmedian(): there is no median of no elements"),
    (lambda: flow.isclose(flow.ones(1), flow.ones(1), -1), "isclose(): rtol is -1, but it must"),
    (lambda: flow.allclose(flow.ones(1), flow.ones(1), atol=-2), "allclose(): atol is -2, but it"),
    (lambda: flow.flipud(flow.tensor(1.0)), "flipud(): input has shape [], expected at least 1"),
    (lambda: flow.xlogy(0.3, 0.2), "xlogy(): one of the operands must be a tensor"),
    (
        lambda: flow.xlogy(flow.ones(1), [0.2]),
        "xlogy(): argument 'other' must be Tensor or a number, not list",
    ),
    (lambda: F.pad(flow.ones(3), (-5, 0)), "pad(): -5 and 0 cut more than dim 0 of size 3 has"),
    (
        lambda: F.pad(flow.ones(1, 3), (2, -4), "reflect"),
        "pad(): 2 and -4 cut more than dim 1 of size 3 has",
    ),
    (lambda: F.group_norm(flow.ones(2, 0, 3), 1), "group_norm(): input has shape [2, 0, 3]"),
    (lambda: flow.linspace(0, 3, 2.5), "linspace(): argument 'steps' must be int, not float"),
]


@pytest.mark.parametrize("call, text", ERRORS, ids=[text.split(",")[0] for _, text in ERRORS])
def test_errors_speak_of_the_function_that_was_called(call, text):
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_splits_at_places_in_tensors():
    x = flow.arange(10).view(2, 5)
    assert [p.shape for p in flow.tensor_split(x, flow.tensor([1, 3]), 1)] == [
        (2, 1),
        (2, 2),
        (2, 2),
    ]
    assert len(flow.tensor_split(x, flow.tensor(2), 1)) == 2
    assert [p.shape for p in flow.hsplit(x, [2])] == [(2, 2), (2, 3)]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_unravel_index_counts_in_int64(dtype):
    places = flow.tensor([0, 100], dtype=getattr(flow, dtype))
    rows, cols = flow.unravel_index(places, (70000, 300))
    assert rows.dtype is cols.dtype is flow.int64
    assert rows.tolist() == [0, 0] and cols.tolist() == [0, 100]
