# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: special functions (functional/special.cpp)."""

import math
from statistics import NormalDist

import numpy as np
from numerics import FLOATS, NUMERIC, flow
from op_row import DOMAINS, Bad, Op, S, T, always, floating, same
from op_table_unary import SHAPES, each, of_floats

DOMAINS["above 2"] = lambda rng, shape, dtype: (
    rng.uniform(2.1, 9, shape) if dtype in FLOATS else rng.integers(3, 9, shape)
)


def np_i(order):
    """Bessel's integral, by the trapezoidal rule, which is exact to the last digits here."""
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)

    def function(x):
        x = np.asarray(x, float)[..., None]
        return (np.cos(order * turn) * np.exp(x * np.cos(turn))).mean(-1)

    return function


def scaled(function):
    return lambda x: function(x) * np.exp(-np.abs(x))


def np_zeta(s, q):
    """The first 30 terms, and Euler's and Maclaurin's formula for the others."""
    s, q = np.broadcast_arrays(np.asarray(s, float), np.asarray(q, float))
    total, a = sum(((q + k) ** -s for k in range(30)), np.zeros(s.shape)), q + 30
    total = total + a ** (1 - s) / (s - 1) + 0.5 * a**-s + s / 12 * a ** (-s - 1)
    total = total - s * (s + 1) * (s + 2) / 720 * a ** (-s - 3)
    rising = s * (s + 1) * (s + 2) * (s + 3) * (s + 4)
    return total + rising / 30240 * a ** (-s - 5)


def np_polygamma(n, x):
    return (-1) ** (n + 1) * math.factorial(n) * np_zeta(n + 1.0, x)


def np_mvlgamma(x, p):
    gammas = (each(math.lgamma)(x - k / 2) for k in range(p))
    return sum(gammas, np.full(np.shape(x), p * (p - 1) / 4 * math.log(math.pi)))


def np_frexp(x):
    mantissa, exponent = np.frexp(np.asarray(x, float))
    return [mantissa, exponent]


def np_ndtri(x):
    ends = {0.0: -math.inf, 1.0: math.inf}
    return each(lambda p: ends.get(p) if p in ends else NormalDist().inv_cdf(p))(x)


def np_ndtr(x):
    return each(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x)


def sized(x, *_):
    return np.ones(np.shape(x))


SPECIAL_ROWS = [
    of_floats("special_ndtr", np_ndtr),
    of_floats("special_log_ndtr", lambda x: np.log(np_ndtr(x))),
    of_floats("special_ndtri", np_ndtri, "share"),
    of_floats("special_entr", lambda x: -x * np.log(x), "positive"),
    of_floats("special_erfcx", lambda x: np.exp(x * x) * each(math.erfc)(x), "unit"),
    of_floats("special_i0e", scaled(np_i(0))), of_floats("special_i1", np_i(1), "above 1"),
    of_floats("special_i1e", scaled(np_i(1)), "above 1"),
    Op("special_zeta", [S(T(s, "above 2", grad=False), T(q, "positive"))
                        for s, q in (((), ()), ((0,), (0,)), ((7,), (7,)), ((3, 1), (1, 4)))],
       np_zeta, FLOATS, bound="composite", magnitude=lambda s, q: np.abs(np_zeta(s, q)),
       call=lambda s, q: flow.special.zeta(s.detach(), q)),
    Op("polygamma", [S(n, T(s, "positive"))
                     for n, s in ((2, ()), (1, (3, 4)), (3, (7,)), (2, (0,)))],
       np_polygamma, FLOATS, bound="composite", magnitude=lambda n, x: np.abs(np_polygamma(n, x)),
       errors=[Bad(lambda d: flow.polygamma(-1, flow.ones(2, device=d)), ValueError,
                   "polygamma(): n is -1, but it must be at least 0")]),
    Op("mvlgamma", [S(T(s, "above 2"), p) for s, p in (((), 1), ((3, 4), 3), ((7,), 5), ((0,), 2))],
       np_mvlgamma, NUMERIC, bound="composite", magnitude=sized, result=floating, errors=[
        Bad(lambda d: flow.ones(2, device=d).mvlgamma(0), ValueError,
            "mvlgamma(): p is 0, but it must be from 1 to 65536")]),
    Op("frexp", [S(T(s)) for s in SHAPES], np_frexp, FLOATS, result=[same, always("int32")]),
]  # fmt: skip
