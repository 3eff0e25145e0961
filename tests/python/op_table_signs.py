# SPDX-License-Identifier: Apache-2.0
"""Rows on the sign of a zero: what NumPy, and C behind it, give for operands around zero.

PENDING names the functions that lose a sign until they have kernels of their own: issue 24.
"""

import math

import numpy as np
from numerics import flow

# Zeros, what rounds to zero, what a division leaves nothing of, and the ends.
ONE = [0.0, -0.0, 0.25, -0.25, 0.5, -0.5, 0.75, -0.75, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 1e-40,
       -1e-40, 6e-8, -6e-8, np.inf, -np.inf, np.nan]  # fmt: skip
TWO = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, -6.0, 0.5, -0.5, np.inf, -np.inf, np.nan]

# name: the function, and NumPy's.
OF_ONE = {
    "abs": (flow.abs, np.abs),
    "ceil": (flow.ceil, np.ceil),
    "expm1": (flow.expm1, np.expm1),
    "floor": (flow.floor, np.floor),
    "log1p": (flow.log1p, np.log1p),
    "neg": (flow.neg, np.negative),
    "round": (flow.round, np.round),
    "sin": (flow.sin, np.sin),
    "sinh": (flow.sinh, np.sinh),
    "sqrt": (flow.sqrt, np.sqrt),
    "tan": (flow.tan, np.tan),
    "tanh": (flow.tanh, np.tanh),
    "trunc": (flow.trunc, np.trunc),
    # Of functional/unary.cpp beside these.
    "arcsinh": (flow.asinh, np.arcsinh),
    "arctan": (flow.atan, np.arctan),
    "arctanh": (flow.atanh, lambda x: np.arctanh(x)),
    "arcsin": (flow.asin, lambda x: np.arcsin(x)),
    "deg2rad": (flow.deg2rad, np.deg2rad),
    "erf": (flow.erf, lambda x: np.copysign(np.vectorize(math.erf)(x), x)),
    "frac": (flow.frac, lambda x: np.where(np.isinf(x), np.nan, np.modf(x)[0])),
    "rad2deg": (flow.rad2deg, np.rad2deg),
    "round decimals": (lambda x: flow.round(x, decimals=1), lambda x: np.round(x, 1)),
    "square": (flow.square, np.square),
}
OF_TWO = {
    "div": (flow.div, np.divide),
    "floor_divide": (flow.floor_divide, np.floor_divide),
    "fmod": (flow.fmod, np.fmod),
    "mul": (flow.mul, np.multiply),
    "remainder": (flow.remainder, np.remainder),
}
PENDING: set[str] = set()
