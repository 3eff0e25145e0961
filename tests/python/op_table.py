# SPDX-License-Identifier: Apache-2.0
"""The op table: one row per function, from which test_op_table.py draws every check.

A row says how to call a function, on which arguments, what NumPy makes of them in float64, and how
far the result may be off. Adding an op is adding a row:

    Op("softplus", UNARY, lambda x: np.logaddexp(x, 0), bound="pointwise", result=floating)

Values, gradients, second order, meta inference, empties, layouts, CUDA, the method of the same name
and the list of functions without a row follow from it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numerics import ALL, FLOATS, INTEGERS, NUMERIC, flow
from op_reference import (
    np_all,
    np_any,
    np_argmax,
    np_as_strided,
    np_divide,
    np_erf,
    np_expand,
    np_flatten,
    np_gelu,
    np_linear,
    np_logsumexp,
    np_max,
    np_mean,
    np_min,
    np_narrow,
    np_slice,
    np_squeeze,
    np_sum,
    np_var,
)
from op_row import Bad, Op, S, T, always, floating, ones, same, summed, truth
from op_table_activations import ACTIVATIONS
from op_table_attention import ATTENTIONS
from op_table_fused import FUSED
from op_table_linalg import LINALG
from op_table_losses import LOSSES
from op_table_moves import MOVES
from op_table_numerical import NUMERICAL_ROWS
from op_table_places import PUT_BY_PLACES
from op_table_random import RANDOM
from op_table_reductions import REDUCTIONS
from op_table_rows import BANDS, ROWS
from op_table_shapes import SHAPED
from op_table_sorts import SORTS
from op_table_special import SPECIAL_ROWS
from op_table_two import TWO_AND_THREE
from op_table_unary import UNARY_ROWS

DTypeError, ShapeError = flow.DTypeError, flow.ShapeError


# ---------------------------------------------------------------------------------------------
# Samples. Sizes go around the vector widths (4 to 64 elements) and their tails.

SHAPES = [(), (1,), (0,), (7,), (129,), (3, 0, 2), (3, 4), (2, 3, 4), (33, 17)]
UNARY = [S(T(s)) for s in SHAPES]


def of_domain(domain: str) -> list[S]:
    return [S(T(s, domain)) for s in SHAPES]


def broadcasting(domain: str = "normal", second: str | None = None) -> list[S]:
    second = second or domain
    pairs = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (3,)), ((2, 3, 4), (4,)), ((4,), (2, 3, 4)),
             ((0, 3), (1, 3)), ((), ()), ((5, 1, 2), (3, 1)), ((130,), (130,))]  # fmt: skip
    return [S(T(a, domain), T(b, second)) for a, b in pairs] + [
        S(T((3, 4), domain), 2), S(2, T((3, 4), second)),
    ]  # fmt: skip


TRUTHS = [S(T((3, 4)), T((3, 4))), S(T((3, 1)), T((4,))), S(T((0, 2)), T(())), S(T((9,)), True)]

REDUCED = [
    S(T(())), S(T((7,))), S(T((0,))), S(T((3, 4))), S(T((3, 4)), 1), S(T((3, 4)), (0,)),
    S(T((2, 3, 4)), (0, 2)), S(T((2, 3, 4)), (-1, 1), True), S(T((2, 3, 4)), 1, keepdim=True),
    S(T((2, 0, 4)), 1), S(T((2, 0, 4)), 2), S(T((2, 3, 4, 5)), (1, 2)), S(T((33, 130)), 0),
    S(T((3, 1025)), 1), S(T((2, 3)), ()),
]  # fmt: skip


VARIED = [
    S(T((7,))), S(T((3, 4))), S(T((3, 4)), 1), S(T((3, 4)), (0,), False),
    S(T((2, 3, 4)), (0, 2), True, True), S(T((2, 3, 4)), 1, keepdim=True, correction=0),
    S(T((33, 130)), 0, unbiased=False), S(T((0, 3)), 1),
]  # fmt: skip


MATMUL = [
    S(T((3, 4)), T((4, 2))), S(T((4,)), T((4,))), S(T((4,)), T((4, 3))), S(T((2, 4)), T((4,))),
    S(T((2, 3, 4)), T((2, 4, 5))), S(T((2, 3, 4)), T((4, 5))), S(T((2, 1, 3, 4)), T((3, 4, 2))),
    S(T((0, 4)), T((4, 2))), S(T((3, 0)), T((0, 2))), S(T((0, 3, 4)), T((0, 4, 2))),
    S(T((65, 33)), T((33, 17))), S(T((4,)), T((2, 4, 3))), S(T((1, 1)), T((1, 1))),
]  # fmt: skip
LINEAR = [
    S(T((3, 4)), T((2, 4)), T((2,))), S(T((3, 4)), T((2, 4))), S(T((4,)), T((2, 4)), T((2,))),
    S(T((2, 3, 4)), T((5, 4)), T((5,))), S(T((0, 4)), T((2, 4)), T((2,))), S(T((3, 4)), T((4,))),
    S(T((4,)), T((4,)), T(())),
]  # fmt: skip


MAXIMA = [
    S(T((), "distinct")), S(T((9,), "distinct")), S(T((3, 4), "distinct")),
    S(T((2, 3, 4), "distinct")), S(T((3, 37), "distinct")),
]  # fmt: skip
MAXIMA_ALONG = [
    S(T((9,), "distinct"), 0), S(T((3, 4), "distinct"), 1), S(T((3, 4), "distinct"), -2),
    S(T((2, 3, 4), "distinct"), 1, True), S(T((0, 3), "distinct"), 1), S(T((3, 37), "distinct"), 1),
    S(T((), "distinct"), 0),
]  # fmt: skip


def into(name: str) -> Callable[..., Any]:
    """An in-place method on a copy of its first argument, as a function."""
    return lambda self, *args: getattr(self.clone(), name)(*args)


IN_PLACE = [
    S(T((3, 4)), T((3, 4))), S(T((3, 4)), T((4,))), S(T((3, 4)), T((1, 1))), S(T((3, 4)), 2),
    S(T((0, 3)), T((3,))), S(T(()), T(())), S(T((130,)), T((130,))),
]  # fmt: skip


def full_of(value):
    return lambda size, **kwargs: np.full(size, float(value))


def like_of(value):
    return lambda x, **kwargs: np.full(x.shape, float(value))


SIZES = [S(()), S((3,)), S((2, 0)), S((2, 3, 4)), S([5])]


def shape_mismatch(name, call):
    return Bad(lambda d: call(ones(d, 2, 3), ones(d, 4)), ShapeError,
               f"{name}(): the second operand has shape [4], expected one that broadcasts with "
               "[2, 3]")  # fmt: skip


def arithmetic(name, reference, dtypes=NUMERIC, second="normal", result=same, **kwargs):
    return Op(name, broadcasting("normal", second), reference, dtypes, result=result,
              in_place=name + "_" if result is same else None,
              errors=[shape_mismatch(name, getattr(flow, name)),
                      Bad(lambda d: getattr(flow, name)(1, 2), TypeError,
                          f"{name}(): one of the operands must be a tensor"),
                      Bad(lambda d: getattr(flow, name)(ones(d, 2), "x"), TypeError,
                          f"{name}(): argument 'other' must be Tensor or a number, not str")],
              **kwargs)  # fmt: skip


def bitwise(name, reference):
    return [
        Op(name, broadcasting(), reference, INTEGERS, differentiable=False, errors=[
            Bad(lambda d: getattr(flow, name)(ones(d, 2), 1), DTypeError,
                f"{name}(): an operand has dtype float32, but it must be one of bool, uint8, "
                "int8, int16, int32, int64")]),
        Op(f"{name}[bool]", TRUTHS, reference, ("bool",), differentiable=False),
    ]  # fmt: skip


def comparison(name, reference):
    return Op(name, broadcasting("few"), reference, ALL, result=always("bool"),
              differentiable=False, errors=[shape_mismatch(name, getattr(flow, name))])  # fmt: skip


# ---------------------------------------------------------------------------------------------
# The table.

OPS = [
    *ROWS,
    *UNARY_ROWS,
    *SPECIAL_ROWS,
    *NUMERICAL_ROWS,
    *TWO_AND_THREE,
    *ACTIVATIONS,
    *REDUCTIONS,
    *SORTS,

    # Elementwise, one tensor.
    Op("neg", UNARY, lambda x: -x, NUMERIC, errors=[
        Bad(lambda d: flow.neg(ones(d, 2, dtype="bool")), DTypeError,
            "neg(): the input has dtype bool, but it must be one of uint8, int8, int16, int32, "
            "int64, float16, bfloat16, float32, float64")]),
    Op("exp", UNARY, lambda x: np.exp(x.astype(float)), ALL, bound="pointwise", result=floating),
    Op("log", of_domain("positive"), lambda x: np.log(x.astype(float)), ALL, bound="pointwise",
       result=floating),
    Op("abs", of_domain("distinct"), np.abs, NUMERIC, twice=False),
    Op("sqrt", of_domain("positive"), lambda x: np.sqrt(x.astype(float)), ALL, bound="pointwise",
       result=floating),
    Op("rsqrt", of_domain("positive"), lambda x: 1 / np.sqrt(x.astype(float)), ALL,
       bound="pointwise", result=floating),
    Op("tanh", UNARY, lambda x: np.tanh(x.astype(float)), ALL, bound="pointwise", result=floating),
    Op("sigmoid", UNARY, lambda x: 1 / (1 + np.exp(-x.astype(float))), ALL, bound="pointwise",
       result=floating),
    Op("sin", UNARY, lambda x: np.sin(x.astype(float)), ALL, bound="pointwise", result=floating),
    Op("cos", UNARY, lambda x: np.cos(x.astype(float)), ALL, bound="pointwise", result=floating),
    Op("erf", UNARY, np_erf, ALL, bound="pointwise", result=floating),
    Op("floor", of_domain("distinct"), np.floor, NUMERIC),
    Op("gelu", [*UNARY, S(T((33,)), "tanh")], np_gelu, ALL, bound="pointwise", result=floating,
       errors=[Bad(lambda d: flow.gelu(ones(d, 2), "erf"), ValueError,
                   'gelu(): approximate is "erf", but it must be "none" or "tanh"')]),
    *(Op(name, UNARY, reference, ALL, result=always("bool"), differentiable=False)
      for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite),
                              ("logical_not", np.logical_not))),

    # Elementwise, two operands.
    arithmetic("add", np.add),
    arithmetic("sub", np.subtract),
    arithmetic("mul", np.multiply),
    arithmetic("div", np_divide, ALL, second="positive", result=floating),
    Op("add[bool]", TRUTHS, np.logical_or, ("bool",), differentiable=False),
    Op("mul[bool]", TRUTHS, np.logical_and, ("bool",), differentiable=False),
    comparison("eq", np.equal),
    comparison("ne", np.not_equal),
    comparison("lt", np.less),
    comparison("le", np.less_equal),
    comparison("gt", np.greater),
    comparison("ge", np.greater_equal),
    Op("maximum", broadcasting("distinct"), np.maximum, NUMERIC, twice=False),
    Op("minimum", broadcasting("distinct"), np.minimum, NUMERIC, twice=False),
    Op("pow", broadcasting("positive"), np.power, bound="composite", magnitude=np.power, errors=[
        Bad(lambda d: flow.pow(ones(d, 2, dtype="bool"), ones(d, 2, dtype="bool")), DTypeError,
            "pow(): an operand has dtype bool, but it must be one of uint8, int8, int16, int32, "
            "int64, float16, bfloat16, float32, float64"),
        Bad(lambda d: flow.pow(ones(d, 2, dtype="int64"), -2), ValueError,
            "pow(): exponent is -2, but integers have no negative powers; convert input to a "
            "floating dtype")]),
    Op("pow[half]", [S(T(s, "positive"), 0.5) for s in SHAPES], np.power, bound="pointwise"),
    Op("pow[minus half]", [S(T(s, "positive"), -0.5) for s in SHAPES], np.power,
       bound="pointwise"),
    Op("pow[integer]", [S(T(s, "few"), 2) for s in SHAPES] + [S(T((5,), "few"), 3)], np.power,
       NUMERIC, bound="composite", magnitude=np.power),
    Op("pow[integers]", broadcasting("few", "positive"), lambda a, b: np.power(a, b), INTEGERS,
       differentiable=False),
    *bitwise("bitwise_and", np.bitwise_and),
    *bitwise("bitwise_or", np.bitwise_or),
    *bitwise("bitwise_xor", np.bitwise_xor),
    Op("bitwise_not", UNARY, np.invert, (*INTEGERS, "bool"), differentiable=False, errors=[
        Bad(lambda d: flow.bitwise_not(ones(d, 2)), DTypeError,
            "bitwise_not(): the input has dtype float32, but it must be one of bool, uint8, "
            "int8, int16, int32, int64")]),
    Op("where", [S(BANDS, T((5, 9)), T((5, 9))), S(BANDS, T((9,)), 2), S(BANDS, 0, T((5, 1))),
                 S(np.array(True), T((3,)), T((2, 1))), S(BANDS[:0], T((0, 9)), T((1, 9))),
                 S(BANDS, T(()), T((2, 5, 1))), S(np.arange(2100) % 3 < 1, T((2100,)), 1)],
       np.where, NUMERIC, errors=[
        Bad(lambda d: flow.where(ones(d, 2), ones(d, 2), 0), DTypeError,
            "where(): condition has dtype float32, expected bool"),
        Bad(lambda d: flow.where(ones(d, 2) > 0, ones(d, 3), 0), ShapeError,
            "where(): input has shape [3], expected one that broadcasts with [2]"),
        Bad(lambda d: flow.where(ones(d, 2, 1) > 0, ones(d, 3), ones(d, 4)), ShapeError,
            "where(): other has shape [4], expected one that broadcasts with [2, 3]")]),
    Op("masked_fill", [S(T((5, 9)), BANDS, 3), S(T((0, 9)), BANDS[:0], 3), S(T((9,)), BANDS, 1),
                       S(T((5, 1)), BANDS, 0)],
       lambda x, m, v: np.where(m, np.asarray(v, x.dtype), x), NUMERIC, errors=[
        Bad(lambda d: ones(d, 2).masked_fill(ones(d, 2), 0), DTypeError,
            "masked_fill(): mask has dtype float32, expected bool")]),
    Op("clamp", [S(T((33,), "distinct"), 1, 5), S(T((3, 4), "distinct"), 1),
                 S(T((7,), "distinct"), max=2), S(T((0,), "distinct"), 0, 1)],
       lambda x, min=None, max=None: np.clip(x, min, max), NUMERIC, twice=False, errors=[
        Bad(lambda d: flow.clamp(ones(d, 2)), ValueError,
            "clamp(): min is None, like max, but it must be a number, or max")]),
    Op("add_", IN_PLACE, np.add, NUMERIC, call=into("add_")),
    Op("sub_", IN_PLACE, np.subtract, NUMERIC, call=into("sub_")),
    Op("mul_", IN_PLACE, np.multiply, NUMERIC, call=into("mul_")),
    Op("div_", [S(T((3, 4)), T((3, 4), "positive")), S(T((3, 4)), T((4,), "positive")),
                S(T((3, 4)), 2), S(T((0, 3)), T((3,), "positive"))],
       np_divide, call=into("div_"), errors=[
        Bad(lambda d: ones(d, 2, dtype="int64").div_(2), DTypeError,
            "div_(): the result has dtype float32, which cannot be stored in a tensor of shape [2] "
            "(int64, {device})")]),
    Op("zero_", UNARY, np.zeros_like, ALL, call=into("zero_")),
    Op("fill_", [S(T(s), 3) for s in SHAPES], lambda x, v: np.full(x.shape, v), NUMERIC,
       call=into("fill_")),
    Op("copy_", [S(T((3, 4)), T((3, 4))), S(T((3, 4)), T((4,))), S(T((2, 0)), T((1, 0))),
                 S(T((3, 4)), T((3, 4), dtype="float64")), S(T(()), T(()))],
       lambda x, y: np.broadcast_to(y, x.shape).copy(), call=into("copy_"), errors=[
        Bad(lambda d: ones(d, 2, 3).copy_(ones(d, 4)), ShapeError,
            "copy_(): a tensor of shape [4] (float32, {device}) does not expand to [2, 3]")]),

    # Reductions.
    Op("sum", REDUCED, np_sum, ALL, bound="sum",
       magnitude=lambda x, *a, **k: np_sum(np.abs(x), *a, **k), result=summed, errors=[
        Bad(lambda d: flow.sum(ones(d, 2, 3), 2), IndexError,
            "sum(): dim 2 is out of range [-2, 1] for a tensor of shape [2, 3] "
            "(float32, {device})"),
        Bad(lambda d: flow.sum(ones(d, 2, 3), (1, -1)), ValueError,
            "sum(): dim is [1, -1], but it must be a list without repetition")]),
    Op("mean", REDUCED, np_mean, bound="sum",
       magnitude=lambda x, *a, **k: np_mean(np.abs(x), *a, **k), errors=[
        Bad(lambda d: flow.mean(ones(d, 2, dtype="int32")), DTypeError,
            "mean(): the input has dtype int32, but it must be float16, bfloat16, float32 or "
            "float64")]),
    Op("amax", [*MAXIMA, S(T((3, 4), "distinct"), 0), S(T((2, 3, 4), "distinct"), (0, 2), True),
                S(T((0, 4), "distinct"), 1)],
       lambda x, dim=None, keepdim=False: np.max(x, axis=dim, keepdims=keepdim), NUMERIC,
       twice=False, errors=[
        Bad(lambda d: flow.amax(ones(d, 2, 0), 1), IndexError,
            "amax(): there is no maximum of no elements: shape [2, 0]")]),
    Op("max", [*MAXIMA, S(T((2, 3), "distinct"), None, True)],
       lambda x, dim=None, keepdim=False: np.max(x, keepdims=keepdim), NUMERIC, twice=False),
    Op("max[dim]", MAXIMA_ALONG, np_max, NUMERIC, twice=False, result=[same, always("int64")],
       errors=[Bad(lambda d: flow.max(ones(d, 2, 0), 1), IndexError,
                   "max(): there is no maximum of no elements: shape [2, 0]")]),
    Op("argmax", [*MAXIMA, *MAXIMA_ALONG, S(T((2, 3), "few"), 1)], np_argmax, NUMERIC,
       result=always("int64"), differentiable=False, errors=[
        Bad(lambda d: flow.argmax(ones(d, 2), 1), IndexError,
            "argmax(): dim 1 is out of range [-1, 0] for a tensor of shape [2] "
            "(float32, {device})")]),

    Op("amin", [*MAXIMA, S(T((3, 4), "distinct"), 0), S(T((2, 3, 4), "distinct"), (0, 2), True)],
       lambda x, dim=None, keepdim=False: np.min(x, axis=dim, keepdims=keepdim), NUMERIC,
       twice=False),
    Op("min", [*MAXIMA, S(T((2, 3), "distinct"), None, True)],
       lambda x, dim=None, keepdim=False: np.min(x, keepdims=keepdim), NUMERIC, twice=False),
    Op("min[dim]", MAXIMA_ALONG, np_min, NUMERIC, twice=False, result=[same, always("int64")],
       errors=[Bad(lambda d: flow.min(ones(d, 2, 0), 1), IndexError,
                   "min(): there is no minimum of no elements: shape [2, 0]")]),
    Op("argmin", [*MAXIMA, *MAXIMA_ALONG], lambda x, *a, **k: np_argmax(-x, *a, **k), NUMERIC,
       result=always("int64"), differentiable=False),
    Op("any", REDUCED, np_any, ALL, result=truth, differentiable=False),
    Op("all", REDUCED, np_all, ALL, result=truth, differentiable=False),
    Op("var", VARIED, np_var, bound="composite", magnitude=lambda *a, **k: 64.0, errors=[
        Bad(lambda d: flow.var(ones(d, 2, dtype="int32")), DTypeError,
            "var(): the input has dtype int32, but it must be float16, bfloat16, float32 or "
            "float64")]),
    Op("std", VARIED, lambda x, *a, **k: np.sqrt(np_var(x, *a, **k)), bound="composite",
       magnitude=lambda *a, **k: 16.0),
    Op("logsumexp", [S(T((7,))), S(T((3, 4)), 1), S(T((2, 3, 4)), (0, 2), True), S(T(())),
                     S(T((5, 131)), 0), S(T((0, 3)), 1)],
       np_logsumexp, bound="composite", magnitude=lambda *a, **k: 16.0),

    # Matrix products.
    Op("matmul", MATMUL, np.matmul, bound="sum",
       magnitude=lambda a, b: np.matmul(np.abs(a), np.abs(b)), errors=[
        Bad(lambda d: flow.matmul(ones(d, 2, 3), ones(d, 4, 5)), ShapeError,
            "matmul(): other has shape [4, 5], expected [3, 5] to go with [2, 3]"),
        Bad(lambda d: flow.matmul(ones(d, 2, 3), ones(d, 3, 2, dtype="float64")), DTypeError,
            "matmul(): other has dtype float64, expected float32"),
        Bad(lambda d: flow.matmul(ones(d), ones(d, 3)), ShapeError,
            "matmul(): input has shape [], expected at least 1 dim")]),
    Op("linear", LINEAR, np_linear, bound="composite",
       magnitude=lambda x, w, b=0.0: np_linear(np.abs(x), np.abs(w), np.abs(b)), errors=[
        Bad(lambda d: flow.linear(ones(d, 2, 3), ones(d)), ShapeError,
            "linear(): weight has shape [], expected 1 or 2 dims")]),

    # Views.
    Op("view", [S(T((3, 4)), (2, 6)), S(T((3, 4)), (-1,)), S(T(()), (1, 1)), S(T((0, 3)), (3, 0)),
                S(T((2, 3, 4)), (6, -1))],
       lambda x, s: x.reshape(s), ALL, layouts=False, errors=[
        Bad(lambda d: ones(d, 2, 3).view(4, -1), ShapeError,
            "view(): size [4, -1] does not go with a tensor of shape [2, 3] (float32, {device})"),
        Bad(lambda d: ones(d, 2, 3).t().view(6), ShapeError,
            "view(): a tensor of shape [3, 2] (float32, {device}) with strides [1, 3] cannot be "
            "seen as [6] without a copy; use reshape()")]),
    Op("reshape", [S(T((3, 4)), (2, 6)), S(T((3, 4)), (-1,)), S(T(()), (1,)), S(T((0, 3)), (3, 0)),
                   S(T((2, 3, 4)), (4, -1))],
       lambda x, s: x.reshape(s), ALL),
    Op("permute", [S(T((2, 3, 4)), (2, 0, 1)), S(T((2, 3)), (-1, 0)), S(T(()), ()),
                   S(T((0, 3)), (1, 0))],
       lambda x, d: np.transpose(x, d), ALL, errors=[
        Bad(lambda d: flow.permute(ones(d, 2, 3), (0, 0)), ValueError,
            "permute(): dims [0, 0] are not an order of the dims of a tensor of shape [2, 3] "
            "(float32, {device})")]),
    Op("transpose", [S(T((2, 3, 4)), 0, 2), S(T((2, 3)), -1, 0), S(T((0, 3)), 0, 1),
                     S(T((3,)), 0, 0)],
       np.swapaxes, ALL),
    Op("t", [S(T((2, 3))), S(T((3,))), S(T(())), S(T((0, 3)))], np.transpose, ALL, errors=[
        Bad(lambda d: flow.t(ones(d, 1, 2, 3)), ShapeError,
            "t(): input has shape [1, 2, 3], expected at most 2 dims")]),
    Op("slice", [S(T((5, 4)), 0, 1, 4), S(T((5, 4)), 1, None, None, 3), S(T((5,)), 0, -2),
                 S(T((5,)), 0, 3, 1), S(T((9,)), 0, 1, 100, 2), S(T((0, 3)), 1, 1),
                 S(T((2, 7)), -1, 2, -1)],
       np_slice, ALL, errors=[
        Bad(lambda d: flow.slice(ones(d, 3), 0, 0, 3, 0), ValueError,
            "slice(): step is 0, but it must be positive")]),
    Op("narrow", [S(T((5, 4)), 0, 1, 3), S(T((5, 4)), 1, -2, 2), S(T((5,)), 0, 5, 0),
                  S(T((0, 3)), 1, 1, 2)],
       np_narrow, ALL,
       errors=[Bad(lambda d: flow.narrow(ones(d, 3), 0, 2, 2), IndexError,
                   "narrow(): start 2 and length 2 go beyond dim 0 of size 3")]),
    Op("select", [S(T((5, 4)), 0, 1), S(T((5, 4)), -1, -2), S(T((3,)), 0, 2), S(T((3, 0)), 0, 1)],
       lambda x, dim, i: np.take(x, i, axis=dim), ALL, errors=[
        Bad(lambda d: flow.select(ones(d, 3, 2), 0, 3), IndexError,
            "select(): index 3 is out of range [-3, 2] for dim 0 of size 3")]),
    Op("expand", [S(T((3, 1)), (3, 4)), S(T((1, 3)), (2, -1, 3)), S(T(()), (2, 2)),
                  S(T((1, 3)), (0, 3))],
       np_expand, ALL, errors=[
        Bad(lambda d: ones(d, 2).expand(3), ShapeError,
            "expand(): a tensor of shape [2] (float32, {device}) does not expand to [3]")]),
    Op("squeeze", [S(T((1, 3, 1))), S(T((1, 3, 1)), 0), S(T((1, 3, 1)), (0, -1)), S(T((2, 1)), 0),
                   S(T((1, 0)))],
       np_squeeze, ALL),
    Op("unsqueeze", [S(T((2, 3)), 0), S(T((2, 3)), -1), S(T(()), 0), S(T((0,)), 1)], np.expand_dims,
       ALL, errors=[
        Bad(lambda d: flow.unsqueeze(ones(d, 2), 3), IndexError,
            "unsqueeze(): dim 3 is out of range [-2, 1] for a tensor of shape [2] "
            "(float32, {device})")]),
    Op("flatten", [S(T((2, 3, 4))), S(T((2, 3, 4)), 1), S(T((2, 3, 4)), 0, 1), S(T(())),
                   S(T((2, 0, 4)), 1)],
       np_flatten, ALL, errors=[
        Bad(lambda d: flow.flatten(ones(d, 2, 3), 1, 0), ValueError,
            "flatten(): start_dim 1 lies after end_dim 0")]),
    Op("as_strided", [S(T((3, 4)), (2, 3), (4, 1), 1), S(T((12,)), (3, 2), (2, 6)),
                      S(T((5,)), (0, 2), (1, 1)), S(T((6,)), (), (), 3)],
       np_as_strided, ALL, layouts=False, errors=[
        Bad(lambda d: flow.as_strided(ones(d, 4), (3,), (2,)), ValueError,
            "as_strided(): shape [3] with strides [2] and offset 0 does not lie within a storage "
            "of 4 elements")]),

    # Copies.
    Op("contiguous", UNARY, np.copy, ALL),
    Op("clone", UNARY, np.copy, ALL),
    Op("detach", UNARY, np.copy, ALL, differentiable=False),
    *(Op(f"to[{to}]", [S(T(s, "positive")) for s in SHAPES], np.copy if to != "bool" else
         lambda x: x != 0, ALL, call=lambda x, to=to: x.to(getattr(flow, to)), result=always(to),
         bound="exact", differentiable=to == "float64") for to in FLOATS),
    *(Op(f"to[{to}]", [S(T(s, "positive")) for s in SHAPES],
         (lambda x: x != 0) if to == "bool" else np.trunc, ALL,
         call=lambda x, to=to: x.to(getattr(flow, to)), result=always(to), differentiable=False)
      for to in (*INTEGERS, "bool")),

    # Creation.
    Op("zeros", SIZES, full_of(0), ALL, factory=True, errors=[
        Bad(lambda d: flow.zeros(2, -1, device=d), ValueError,
            "zeros(): the size is [2, -1], but it must be a list of non-negative dims")]),
    Op("ones", SIZES, full_of(1), ALL, factory=True),
    Op("empty", SIZES, None, ALL, factory=True),
    Op("full", [S(s.args[0], 3) for s in SIZES], lambda size, v: np.full(size, float(v)), NUMERIC,
       factory=True, errors=[
        Bad(lambda d: flow.full((2,), float("nan"), dtype=flow.int32, device=d),
            OverflowError, "full(): the number nan is out of range [-2147483648, 2147483647] of "
            "int32")]),
    Op("arange", [S(5), S(0), S(2, 9), S(1, 8, 3), S(7, 0, -2), S(3, 3)],
       lambda *a: np.arange(*a).astype(float), tuple(t for t in NUMERIC if t != "uint8"),
       factory=True, errors=[
        Bad(lambda d: flow.arange(0, 3, 0, device=d), ValueError,
            "arange(): start 0, end 3 and step 0 must be finite, and the step not 0"),
        Bad(lambda d: flow.arange(0, 3, -1, device=d), ValueError,
            "arange(): from 0 no step of -1 leads to 3")]),
    Op("linspace", [S(0, 3, 7), S(2.5, -1.5, 5), S(1, 2, 1), S(1, 2, 0)], np.linspace, FLOATS,
       bound="pointwise", factory=True, errors=[
        Bad(lambda d: flow.linspace(0, 1, -1, device=d), ValueError,
            "linspace(): steps is -1, but it must not be negative")]),
    Op("logspace", [S(0, 3, 7), S(2.5, -1.5, 5, 2.0), S(1, 2, 1), S(1, 2, 0)],
       lambda start, end, steps, base=10.0: np.logspace(start, end, steps, base=base), FLOATS,
       bound="pointwise", factory=True),
    Op("rand", SIZES, None, FLOATS, factory=True, errors=[
        Bad(lambda d: flow.rand(2, dtype=flow.int32, device=d), DTypeError,
            "rand(): the result has dtype int32, but it must be float16, bfloat16, float32 or "
            "float64")]),
    Op("randn", SIZES, None, FLOATS, factory=True),
    Op("random_bits", SIZES, None, ("int64",), factory=True,
       call=lambda size, dtype, device: flow.random_bits(size, device=device)),
    Op("zeros_like", UNARY, like_of(0), ALL, differentiable=False),
    Op("ones_like", UNARY, like_of(1), ALL, differentiable=False),
    Op("full_like", [S(T(s), 3) for s in SHAPES], lambda x, v: np.full(x.shape, float(v)), NUMERIC,
       differentiable=False),
    Op("empty_like", UNARY, None, ALL, differentiable=False),
    Op("rand_like", UNARY, None, differentiable=False),
    Op("randn_like", UNARY, None, differentiable=False),

    *MOVES,
    *FUSED,
    *SHAPED,
    *LOSSES,
    *LINALG,
    *ATTENTIONS,
    *RANDOM,
    *PUT_BY_PLACES,
]  # fmt: skip
