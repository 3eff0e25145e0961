# SPDX-License-Identifier: Apache-2.0
"""The rows of the op table for the activations, functional/activation.cpp."""

from __future__ import annotations

import numpy as np
from numerics import ALL, NUMERIC, flow
from op_row import Bad, Op, S, T, floating, ones

F = flow.nn.functional
SHAPES = [(), (1,), (0,), (7,), (129,), (3, 0, 2), (3, 4), (2, 3, 4), (33, 17)]


def samples(*numbers, domain="normal"):
    return [S(T(shape, domain), *numbers) for shape in SHAPES]


def fresh(name):
    """The form that overwrites its first argument, on a copy of it."""
    return lambda x, *numbers: getattr(flow, name)(x.clone(), *numbers)


def inplace(name):
    return lambda x, *numbers: getattr(flow, name)(x.clone(), *numbers, inplace=True)


def np_silu(x):
    return x / (1 + np.exp(-x.astype(float)))


def np_mish(x):
    return x * np.tanh(np.logaddexp(0, x.astype(float)))


def np_hardsigmoid(x):
    return np.clip((x + 3) / 6, 0, 1)


def np_hardswish(x):
    return x * np_hardsigmoid(x)


def np_elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    low = alpha * np.expm1(np.minimum(x, 0) * input_scale)
    return np.where(x > 0, x * scale, low)


def np_celu(x, alpha=1.0):
    return np_elu(x, alpha, 1.0, 1 / alpha)


def np_selu(x):
    return np_elu(x, 1.0507009873554805 * 1.6732632423543772, 1.0507009873554805)


def np_leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, x * negative_slope)


def np_softplus(x, beta=1.0, threshold=20.0):
    z = beta * x
    return np.where(z > threshold, x, np.logaddexp(0, z) / beta)


def np_softshrink(x, lambd=0.5):
    x = x.astype(float)
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def np_hardtanh(x, min_val=-1.0, max_val=1.0):
    return np.clip(x, min_val, max_val)


def np_threshold(x, threshold, value):
    return np.where(x > threshold, x, value).astype(x.dtype)


def np_softmin(x, dim):
    x = np.exp(-x - np.max(-x, axis=dim, keepdims=True, initial=-np.inf))
    return x / x.sum(dim, keepdims=True)


def pointwise(name, given, reference, **kwargs):
    return Op(name, given, reference, ALL, bound="pointwise", result=floating, **kwargs)


def in_place(name, given, reference, call, **kwargs):
    return Op(name, given, reference, bound="pointwise", call=call, **kwargs)


KINKED = samples(domain="distinct")

ACTIVATIONS = [
    pointwise("silu", samples(), np_silu),
    in_place("silu[inplace]", samples(), np_silu, inplace("silu")),
    pointwise("mish", samples(), np_mish),
    in_place("mish[inplace]", samples(), np_mish, inplace("mish")),
    pointwise("hardsigmoid", KINKED, np_hardsigmoid),
    in_place("hardsigmoid[inplace]", KINKED, np_hardsigmoid, inplace("hardsigmoid")),
    pointwise("hardswish", KINKED, np_hardswish),
    in_place("hardswish[inplace]", KINKED, np_hardswish, inplace("hardswish")),
    Op("relu", KINKED, lambda x: np.maximum(x, 0), NUMERIC, twice=False, in_place="relu_"),
    Op("relu_", KINKED, lambda x: np.maximum(x, 0), NUMERIC, call=fresh("relu_"), errors=[
        Bad(lambda d: flow.relu_(ones(d, 2, dtype="bool")), flow.DTypeError,
            "relu_(): the input has dtype bool, but it must be one of uint8, int8, int16, int32, "
            "int64, float16, bfloat16, float32, float64")]),
    Op("relu6", KINKED, lambda x: np.clip(x, 0, 6), NUMERIC, errors=[
        Bad(lambda d: flow.relu6(ones(d, 2, dtype="bool")), flow.DTypeError,
            "relu6(): the input has dtype bool, but it must be one of uint8, int8, int16, int32, "
            "int64, float16, bfloat16, float32, float64")]),
    Op("hardtanh", [*KINKED, *samples(-2, 3, domain="distinct")], np_hardtanh, NUMERIC, errors=[
        Bad(lambda d: flow.hardtanh(ones(d, 2), 2, 1), ValueError,
            "hardtanh(): min_val 2 is above max_val 1")]),
    Op("hardtanh_", [*KINKED, *samples(-2, 3, domain="distinct")], np_hardtanh, NUMERIC,
       call=fresh("hardtanh_")),
    pointwise("leaky_relu", [*KINKED, *samples(0.2, domain="distinct"),
                             *samples(-0.5, domain="distinct")], np_leaky_relu),
    in_place("leaky_relu_", [*KINKED, *samples(-0.5, domain="distinct")], np_leaky_relu,
             fresh("leaky_relu_"), errors=[
        Bad(lambda d: flow.leaky_relu_(ones(d, 2, dtype="int64")), flow.DTypeError,
            "leaky_relu_(): the input has dtype int64, but it must be one of float16, bfloat16, "
            "float32, float64")]),
    pointwise("elu", [*KINKED, *samples(0.7, domain="distinct"), *samples(-2, domain="distinct")],
              np_elu),
    in_place("elu_", [*KINKED, *samples(0.7, domain="distinct"), *samples(-2, domain="distinct")],
             np_elu, fresh("elu_")),
    pointwise("celu", [*KINKED, *samples(0.7, domain="distinct")], np_celu, errors=[
        Bad(lambda d: flow.celu(ones(d, 2), 0.0), ValueError,
            "celu(): alpha is 0, but it must be another number")]),
    in_place("celu_", [*KINKED, *samples(1.5, domain="distinct")], np_celu, fresh("celu_")),
    pointwise("selu", KINKED, np_selu),
    in_place("selu_", KINKED, np_selu, fresh("selu_"), errors=[
        Bad(lambda d: flow.selu_(ones(d, 2, dtype="int64")), flow.DTypeError,
            "selu_(): the input has dtype int64, but it must be one of float16, bfloat16, float32, "
            "float64")]),
    pointwise("softplus", [*samples(), *samples(2.0), *samples(0.7, 3.0)], np_softplus),
    pointwise("logsigmoid", samples(), lambda x: -np.logaddexp(0, -x.astype(float))),
    pointwise("softsign", KINKED, lambda x: x / (1 + np.abs(x))),
    pointwise("tanhshrink", samples(), lambda x: x - np.tanh(x.astype(float))),
    pointwise("softshrink", [*KINKED, *samples(1.0, domain="distinct")], np_softshrink, errors=[
        Bad(lambda d: flow.softshrink(ones(d, 2), -1), ValueError,
            "softshrink(): lambd is -1, but it must not be negative")]),
    pointwise("hardshrink", [*KINKED, *samples(1.0, domain="distinct")],
              lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0)),
    Op("threshold", [*samples(2, 7, domain="distinct"), *samples(0, 0, domain="distinct")],
       np_threshold, NUMERIC, errors=[
        Bad(lambda d: flow.threshold(ones(d, 2, dtype="int8"), 0, 300), OverflowError,
            "threshold(): the number 300 is out of range [-128, 127] of int8")]),
    Op("threshold_", [*samples(2, 7, domain="distinct"), *samples(0, 0, domain="distinct")],
       np_threshold, NUMERIC, call=fresh("threshold_")),
    Op("softmin", [S(T((3, 4)), 1), S(T((2, 3, 4)), 0), S(T((0, 4)), 1), S(T((7,)), -1)],
       np_softmin, bound="softmax"),
]  # fmt: skip
