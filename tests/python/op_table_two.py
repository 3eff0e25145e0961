# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: functions of two and of three operands beside the arithmetic."""

from dataclasses import replace

import numpy as np
from numerics import ALL, INTEGERS, NUMERIC, flow
from op_row import Bad, Op, S, T, always, floating, ones


def pairs(first="normal", second=None):
    second = second or first
    shapes = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (3,)), ((2, 3, 4), (4,)), ((0, 3), (1, 3)),
              ((), ()), ((130,), (130,))]  # fmt: skip
    return [S(T(a, first), T(b, second)) for a, b in shapes] + [
        S(T((3, 4), first), 2), S(2, T((3, 4), second)),
    ]  # fmt: skip


def triples(*domains):
    shapes = [((3, 4), (3, 4), (3, 4)), ((3, 1), (1, 4), ()), ((2, 3, 4), (4,), (3, 1)),
              ((0, 3), (1, 3), (3,)), ((), (), ()), ((130,), (130,), (130,))]  # fmt: skip
    return [S(*(T(s, d) for s, d in zip(three, domains, strict=True))) for three in shapes]


def without_gradient(samples):
    return [S(*(replace(a, grad=False) if isinstance(a, T) else a for a in s.args), **s.kwargs)
            for s in samples]  # fmt: skip


def into(name):
    return lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs)


def in_place(name, reference, dtypes, second="normal", **kwargs):
    """The row of a method that overwrites its first argument."""
    samples = [S(T((3, 4)), T((3, 4), second)), S(T((3, 4)), T((4,), second)), S(T((3, 4)), 2),
               S(T((0, 3)), T((3,), second)), S(T((130,)), T((130,), second))]  # fmt: skip
    kwargs.setdefault("bound", "pointwise")
    return Op(name, samples, reference, dtypes, call=into(name), **kwargs)


def of_floats(x):
    return np.asarray(x).astype(float)


def np_xlogy(x, y, log=np.log):
    x, y = of_floats(x), of_floats(y)
    return np.where(x == 0, 0, x * log(y))


def np_hypot(x, y):
    return np.hypot(of_floats(x), of_floats(y))


def np_atan2(x, y):
    return np.arctan2(of_floats(x), of_floats(y))


def np_next(dtype):
    """nextafter among the numbers of a dtype: bfloat16's are the upper halves of float32's."""

    def next_bfloat16(a, b):
        a, b = np.broadcast_arrays(np.float32(a), np.float32(b))
        steps = np.where(np.abs(a) == 0, 0, np.where((b > a) == (a > 0), 1, -1)) * 2**16
        there = (a.view(np.int32) + steps.astype(np.int32)).view(np.float32)
        least = np.copysign(np.float32(2.0**-133), b)
        return np.where(a == b, b, np.where(a == 0, least, there))

    def next_other(a, b):
        return np.nextafter(np.asarray(a, dtype), np.asarray(b, dtype))

    return next_bfloat16 if dtype == "bfloat16" else next_other


def np_ldexp(x, n):
    return of_floats(x) * np.exp2(of_floats(n))


def no_tensor(name):
    return Bad(lambda d: getattr(flow, name)(1, 2), TypeError,
               f"{name}(): one of the operands must be a tensor")  # fmt: skip


def only(name, kinds):
    return Bad(
        lambda d: getattr(flow, name)(ones(d, 2), ones(d, 2)),
        flow.DTypeError,
        f"{name}(): an operand has dtype float32, but it must be one of {kinds}",
    )


FLOATING = {"dtypes": ALL, "bound": "pointwise", "result": floating}
FLOATS_ONLY = ("float16", "bfloat16", "float32", "float64")
COUNTS = "uint8, int8, int16, int32, int64"

DIVISIONS = [
    Op("fmod", pairs("normal", "positive"), np.fmod, NUMERIC, errors=[no_tensor("fmod")]),
    Op("remainder", pairs("normal", "positive"), np.remainder, NUMERIC, bound="pointwise",
       errors=[no_tensor("remainder")]),
    Op("floor_divide", pairs("normal", "positive"), np.floor_divide, NUMERIC, twice=False,
       errors=[no_tensor("floor_divide")]),
    Op("div[floor]", pairs("normal", "positive"), np.floor_divide, NUMERIC, twice=False,
       call=lambda a, b: flow.div(a, b, rounding_mode="floor")),
    Op("div[trunc]", pairs("normal", "positive"), lambda a, b: np.trunc(np.true_divide(a, b)),
       NUMERIC, twice=False, call=lambda a, b: flow.div(a, b, rounding_mode="trunc"), errors=[
        Bad(lambda d: flow.div(ones(d, 2), 2, rounding_mode="up"), ValueError,
            'div(): rounding_mode is "up", but it must be None, "floor" or "trunc"')]),
    in_place("fmod_", np.fmod, NUMERIC, "positive"),
    in_place("remainder_", np.remainder, NUMERIC, "positive"),
    in_place("floor_divide_", np.floor_divide, NUMERIC, "positive", twice=False),
    Op("div_[trunc]", [S(T((3, 4)), T((3, 4), "positive")), S(T((0, 3)), T((3,), "positive"))],
       lambda a, b: np.trunc(np.true_divide(a, b)), NUMERIC, twice=False,
       call=lambda a, b: a.clone().div_(b, rounding_mode="trunc")),
]  # fmt: skip

OF_INTEGERS = [
    *(Op(name, pairs("few"), reference, INTEGERS, differentiable=False, errors=[
        only(name, COUNTS), no_tensor(name)])
      for name, reference in (("gcd", np.gcd), ("lcm", np.lcm))),
    *(Op(name, pairs("few"), reference, INTEGERS, differentiable=False)
      for name, reference in (("bitwise_left_shift", np.left_shift),
                              ("bitwise_right_shift", np.right_shift))),
    *(in_place(f"{name}_", reference, INTEGERS, "few", differentiable=False, bound="exact")
      for name, reference in (("gcd", np.gcd), ("lcm", np.lcm), ("bitwise_and", np.bitwise_and),
                              ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor),
                              ("bitwise_right_shift", np.right_shift))),
    in_place("bitwise_left_shift_", lambda a, n: a * 2**n, ("int32", "int64"), "few",
             differentiable=False, bound="exact"),
]  # fmt: skip

LOGICAL = [
    Op(name, pairs("few"), reference, ALL, result=always("bool"), differentiable=False)
    for name, reference in (("logical_and", np.logical_and), ("logical_or", np.logical_or),
                            ("logical_xor", np.logical_xor))
]  # fmt: skip

OF_FLOATS = [
    Op("fmax", pairs("distinct"), np.fmax, NUMERIC, twice=False),
    Op("fmin", pairs("distinct"), np.fmin, NUMERIC, twice=False),
    Op("hypot", pairs("positive"), np_hypot, **FLOATING, errors=[no_tensor("hypot")]),
    Op("atan2", pairs("positive"), np_atan2, **FLOATING),
    Op("logaddexp", pairs(), lambda a, b: np.logaddexp(of_floats(a), of_floats(b)), ALL,
       bound="composite", magnitude=lambda a, b: np.hypot(of_floats(a), of_floats(b)) + 1,
       result=floating),
    Op("logaddexp2", pairs(), lambda a, b: np.logaddexp2(of_floats(a), of_floats(b)), ALL,
       bound="composite", magnitude=lambda a, b: np.hypot(of_floats(a), of_floats(b)) + 1,
       result=floating),
    Op("xlogy", pairs("positive"), np_xlogy, **FLOATING),
    Op("xlog1py", pairs("normal", "positive"), lambda a, b: np_xlogy(a, b, np.log1p), **FLOATING),
    Op("copysign", pairs("distinct"), np.copysign, ALL, result=floating),
    # In all dtypes with gradients, then in each to the bit.
    Op("nextafter", pairs(), np.nextafter, FLOATS_ONLY, bound="pointwise", twice=False, errors=[
        Bad(lambda d: flow.nextafter(ones(d, 2, dtype="int64"), 1), flow.DTypeError,
            "nextafter(): an operand has dtype int64, but it must be one of float16, bfloat16, "
            "float32, float64")]),
    *(Op(f"nextafter[{dtype}]", without_gradient(pairs()), np_next(dtype), (dtype,),
         differentiable=False) for dtype in FLOATS_ONLY),
    Op("ldexp", pairs("normal", "few"), np_ldexp, **FLOATING),
    Op("heaviside", pairs("distinct", "normal"),
       lambda x, v: np.where(x == 0, v, x > 0), NUMERIC, twice=False),
    Op("float_power", pairs("positive"), lambda a, b: np.float_power(a, b), ALL,
       bound="pointwise", result=always("float64")),
    in_place("hypot_", np.hypot, FLOATS_ONLY, "positive"),
    in_place("atan2_", np.arctan2, FLOATS_ONLY, "positive"),
    in_place("xlogy_", np_xlogy, FLOATS_ONLY, "positive"),
    in_place("copysign_", np.copysign, FLOATS_ONLY, "distinct"),
    in_place("nextafter_", np.nextafter, FLOATS_ONLY, twice=False),
    in_place("ldexp_", np_ldexp, FLOATS_ONLY, "few"),
    in_place("heaviside_", lambda x, v: np.where(x == 0, v, x > 0), FLOATS_ONLY, twice=False),
    Op("pow_", [S(T((3, 4), "positive"), T((3, 4), "positive")), S(T((7,), "positive"), 3),
                S(T((0, 3)), T((3,)))],
       np.power, bound="composite", magnitude=np.power, call=into("pow_")),
]  # fmt: skip

OF_THREE = [
    Op("lerp", [*triples("normal", "normal", "probability"), S(T((3, 4)), T((3, 4)), 0.5)],
       lambda a, b, w: a + w * (b - a), bound="composite",
       magnitude=lambda a, b, w: np.abs(a) + np.abs(b)),
    Op("addcmul", triples("normal", "normal", "normal"), lambda a, b, c: a + b * c, NUMERIC,
       bound="composite", magnitude=lambda a, b, c: np.abs(a) + np.abs(b * c)),
    Op("addcmul[value]", [S(T((3, 4)), T((4,)), T((3, 1)), value=3),
                          S(T((0, 4)), T((4,)), T(()), value=3)],
       lambda a, b, c, value: a + value * b * c, ("int16", "int32", "int64", *FLOATS_ONLY),
       bound="composite", magnitude=lambda a, b, c, value: np.abs(a) + value * np.abs(b * c),
       errors=[Bad(lambda d: flow.addcmul(*[ones(d, 2, dtype="int8")] * 3, value=999),
                   OverflowError, "addcmul(): the number 999 is out of range [-128, 127] of "
                   "int8")]),
    Op("addcdiv", triples("normal", "normal", "positive"), lambda a, b, c: a + b / c,
       bound="composite", magnitude=lambda a, b, c: np.abs(a) + np.abs(b / c)),
    Op("addcdiv[value]", [S(T((3, 4)), T((4,)), T((3, 1), "positive"), value=0.5),
                          S(T((0, 4)), T((4,)), T((1, 1), "positive"), value=0.5)],
       lambda a, b, c, value: a + value * b / c, bound="composite",
       magnitude=lambda a, b, c, value: np.abs(a) + np.abs(b / c)),
    Op("lerp_", [S(T((3, 4)), T((4,)), T((3, 1), "probability")), S(T((9,)), T((9,)), 0.25),
                 S(T((0, 4)), T((4,)), T((1, 1), "probability"))],
       lambda a, b, w: a + w * (b - a), bound="composite",
       magnitude=lambda a, b, w: np.abs(a) + np.abs(b), call=into("lerp_")),
    Op("addcmul_", [S(T((3, 4)), T((4,)), T((3, 1))), S(T((0, 4)), T((4,)), T((1, 1)))],
       lambda a, b, c: a + b * c,
       bound="composite", magnitude=lambda a, b, c: np.abs(a) + np.abs(b * c),
       call=into("addcmul_")),
    Op("addcdiv_", [S(T((3, 4)), T((4,)), T((3, 1), "positive")),
                    S(T((0, 4)), T((4,)), T((1, 1), "positive"))], lambda a, b, c: a + b / c,
       bound="composite", magnitude=lambda a, b, c: np.abs(a) + np.abs(b / c),
       call=into("addcdiv_")),
    Op("clamp[tensors]", triples("distinct", "normal", "positive"),
       lambda x, low, high: np.minimum(np.maximum(x, low), high), NUMERIC, twice=False,
       call=flow.clamp),
    Op("clamp_", [S(T((33,), "distinct"), 1, 5), S(T((7,), "distinct"), max=2),
                  S(T((0, 3), "distinct"), 1, 5)],
       lambda x, min=None, max=None: np.clip(x, min, max), NUMERIC, twice=False,
       call=into("clamp_")),
    *(Op(name, [S(T((3, 4), "distinct"), 1), S(T((3, 4), "distinct"), T((4,))),
                S(T((0, 4), "distinct"), T((4,)))], reference, NUMERIC, twice=False)
      for name, reference in (("clamp_min", np.maximum), ("clamp_max", np.minimum))),
    Op("isclose", [S(T((3, 4), "few"), T((3, 4), "few")), S(T((3, 1), "few"), T((4,), "few")),
                   S(T((0, 3)), T((3,))), S(T((7,), "few"), T((7,), "few"), 0.5, 0.25)],
       np.isclose, ALL, result=always("bool"), differentiable=False, errors=[
        Bad(lambda d: flow.isclose(ones(d, 2), ones(d, 2), -1), ValueError,
            "isclose(): rtol is -1, but it must not be negative")]),
    Op("add[alpha]", [S(T((3, 4)), T((4,)), alpha=3), S(T((130,)), T((130,)), alpha=-2),
                      S(T((0, 4)), T((4,)), alpha=3)],
       lambda a, b, alpha: a + alpha * b, ("int16", "int32", "int64", *FLOATS_ONLY),
       bound="composite", magnitude=lambda a, b, alpha: np.abs(a) + 3 * np.abs(b)),
    Op("sub[alpha]", [S(T((3, 4)), T((4,)), alpha=3), S(T((0, 4)), T((4,)), alpha=3)],
       lambda a, b, alpha: a - alpha * b,
       ("int16", "int32", "int64", *FLOATS_ONLY), bound="composite",
       magnitude=lambda a, b, alpha: np.abs(a) + 3 * np.abs(b)),
    Op("rsub", [S(T((3, 4)), T((4,))), S(T((3, 4)), 2), S(T((0, 4)), T((4,)))],
       lambda a, b: b - a, NUMERIC[1:]),
]  # fmt: skip

TWO_AND_THREE = [*DIVISIONS, *OF_INTEGERS, *LOGICAL, *OF_FLOATS, *OF_THREE]
