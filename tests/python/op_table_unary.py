# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: the functions of one element (functional/unary.cpp)."""

import math
from statistics import NormalDist

import numpy as np
from numerics import ALL, FLOATS, NUMERIC, flow
from op_row import DOMAINS, Bad, Op, S, T, always, floating, ones

SHAPES = [(), (1,), (0,), (7,), (129,), (3, 0, 2), (3, 4), (2, 3, 4), (33, 17)]

DOMAINS["unit"] = lambda rng, shape, dtype: (
    rng.uniform(-0.9, 0.9, shape) if dtype in FLOATS else rng.integers(0, 1, shape)
)
DOMAINS["share"] = lambda rng, shape, dtype: (
    rng.uniform(0.05, 0.95, shape) if dtype in FLOATS else rng.integers(0, 2, shape)
)
DOMAINS["above 1"] = lambda rng, shape, dtype: (
    rng.uniform(1.1, 9, shape) if dtype in FLOATS else rng.integers(1, 2, shape)
)
DOMAINS["special"] = lambda rng, shape, dtype: (
    np.where(rng.uniform(size=shape) < 0.5, rng.choice([np.nan, np.inf, -np.inf], shape),
             rng.standard_normal(shape)) if dtype in FLOATS else rng.integers(0, 2, shape)
)  # fmt: skip


def of(domain, *args, **kwargs):
    return [S(T(s, domain), *args, **kwargs) for s in SHAPES]


def quiet(function):
    """The reference on float64, without warnings."""

    def reference(x, *args, **kwargs):
        with np.errstate(all="ignore"):
            return function(np.asarray(x, float), *args, **kwargs)

    return reference


def each(function):
    return np.vectorize(function, otypes=[float])


def np_erfinv(x):
    return each(lambda v: NormalDist().inv_cdf((v + 1) / 2) / math.sqrt(2))(x)


def np_digamma(x):
    """By the recurrence to 30 and the asymptotic expansion; x > 0."""
    x, below = np.array(x, float), np.zeros(np.shape(x))
    for _ in range(30):
        below = below + 1 / x
        x = x + 1
    return (
        np.log(x)
        - 0.5 / x
        - 1 / (12 * x**2)
        + 1 / (120 * x**4)
        - 1 / (252 * x**6)
        + 1 / (240 * x**8)
        - below
    )


def np_logit(x, eps=None):
    x = x if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


def np_nan_to_num(x, nan=0.0, posinf=7.0, neginf=-9.0):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def of_floats(name, reference, domain="normal", *args, **kwargs):
    """A function whose result of integers and bool is float32."""
    return Op(name, of(domain, *args), quiet(reference), ALL, bound="pointwise", result=floating,
              **kwargs)  # fmt: skip


def whole(name, reference):
    return Op(name, of("distinct"), reference, NUMERIC, in_place=name + "_")


UNARY_ROWS = [
    whole("ceil", np.ceil), whole("trunc", np.trunc), whole("round", np.round),
    Op("round[decimals]", of("distinct", decimals=1), lambda x, decimals: np.round(x, decimals),
       FLOATS, bound="pointwise", call=lambda x, **k: flow.round(x, **k)),
    Op("frac", of("distinct"), lambda x: x - np.trunc(x), NUMERIC, in_place="frac_", errors=[
        Bad(lambda d: flow.frac(ones(d, 2, dtype="bool")), flow.DTypeError,
            "frac(): the input has dtype bool, but it must be one of uint8, int8, int16, int32, "
            "int64, float16, bfloat16, float32, float64")]),
    Op("sign", of("distinct"), np.sign, NUMERIC, in_place="sign_"),
    Op("square", of("distinct"), np.square, NUMERIC, bound="pointwise", in_place="square_"),
    Op("positive", of("normal"), lambda x: x, NUMERIC, errors=[
        Bad(lambda d: flow.positive(ones(d, 2, dtype="bool")), flow.DTypeError,
            "positive(): the input has dtype bool, but it must be one of uint8, int8, int16, "
            "int32, int64, float16, bfloat16, float32, float64")]),
    of_floats("reciprocal", lambda x: 1 / x, "positive"),
    of_floats("deg2rad", np.deg2rad), of_floats("rad2deg", np.rad2deg),
    Op("nan_to_num", of("special", 2.0, 7.0, -9.0), np_nan_to_num, FLOATS, differentiable=False,
       call=lambda x, *a: flow.nan_to_num(x.detach(), *a)),
    Op("nan_to_num[numbers]", of("distinct"), lambda x: x, ALL),
    of_floats("exp2", np.exp2), of_floats("expm1", np.expm1),
    of_floats("log1p", np.log1p, "positive"), of_floats("log2", np.log2, "positive"),
    of_floats("log10", np.log10, "positive"), of_floats("logit", np_logit, "share"),
    of_floats("logit[eps]", np_logit, "share", 0.25),
    of_floats("tan", np.tan, "unit"), of_floats("sinh", np.sinh), of_floats("cosh", np.cosh),
    of_floats("asin", np.arcsin, "unit"), of_floats("acos", np.arccos, "unit"),
    of_floats("atan", np.arctan), of_floats("asinh", np.arcsinh),
    of_floats("acosh", np.arccosh, "above 1"), of_floats("atanh", np.arctanh, "unit"),
    of_floats("sinc", np.sinc), of_floats("erfc", each(math.erfc)),
    of_floats("erfinv", np_erfinv, "unit"), of_floats("i0", np.i0),
    # Near their zeros the error is that of the terms.
    Op("lgamma", of("positive"), quiet(each(math.lgamma)), ALL, bound="composite",
       magnitude=lambda x: np.ones(np.shape(x)), result=floating),
    Op("digamma", of("positive"), quiet(np_digamma), ALL, bound="composite",
       magnitude=lambda x: np.ones(np.shape(x)), result=floating),
    *(Op(name, of("special"), reference, ALL, result=always("bool"), differentiable=False)
      for name, reference in (("isposinf", lambda x: np.asarray(x, float) == np.inf),
                              ("isneginf", lambda x: np.asarray(x, float) == -np.inf),
                              ("signbit", lambda x: np.signbit(np.asarray(x, float))))),
]  # fmt: skip
