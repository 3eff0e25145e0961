# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: dropout and random numbers.

A function draws from a generator of its own with one seed, and NumPy makes of the same generator's
32-bit integers what the function should have made of them.
"""

import numpy as np
from numerics import ALL, FLOATS, NUMERIC, flow
from op_row import Bad, Op, S, T, ones

DTypeError, ShapeError = flow.DTypeError, flow.ShapeError


def seeded(function):
    """The function with numbers that are the same in every call."""
    return lambda *args, **kwargs: function(
        *args, generator=flow.Generator().manual_seed(7), **kwargs
    )


def into(name):
    """An in-place method on a copy of its first argument, so seeded."""
    return seeded(lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs))


def words(n):
    return np.array(seeded(flow.random_bits)(int(n)).tolist(), dtype=np.uint64)


def uniform(shape):
    """As float32 and narrower floats have them."""
    return ((words(np.prod(shape, dtype=int)) >> np.uint64(8)) * 2.0**-24).reshape(shape)


def uniform_double(n):
    high, low = words(2 * n).reshape(n, 2).T
    return (((high << np.uint64(32)) | low) >> np.uint64(11)) * 2.0**-53


def dropped(x, p, channels=None):
    """Which elements are; ``channels`` dims in front draw each for itself."""
    front = x.shape if channels is None else x.shape[:channels]
    draws = uniform(front) < p
    return np.broadcast_to(draws.reshape(front + (1,) * (x.ndim - len(front))), x.shape)


def np_dropout(channels=None):
    def reference(x, p=0.5):
        scale = 1 / (1 - p) if p < 1 else 0.0
        return np.where(dropped(x, p, channels(x) if channels else None), 0.0, x * scale)

    return reference


def np_alpha_dropout(channels=None):
    def reference(x, p=0.5, training=True):
        if not training:
            return x
        alpha = 1.7580993408473766
        a = 1 / np.sqrt((alpha**2 * p + 1) * (1 - p))
        gone = dropped(x, p, channels)
        return np.where(gone, -alpha * a, a * x) + alpha * a * p

    return reference


def np_random(x, low, high):
    count = np.uint64(high - low)
    drawn = low + ((words(x.size) * count) >> np.uint64(32)).astype(np.int64)
    return drawn.reshape(x.shape)


def np_randint(low, high, size):
    return np_random(np.empty(size), low, high)


LINES = [S(T((7,)), 0.3), S(T((3, 4)), 0.5), S(T(()), 0.9), S(T((0, 3)), 0.5), S(T((5, 130)), 0.25),
         S(T((4,)), 1.0)]  # fmt: skip
CHANNELS = [S(T((2, 3, 5)), 0.5), S(T((3, 4)), 0.4), S(T((0, 3, 2)), 0.5), S(T((3, 2, 70)), 0.6)]
IMAGES = [S(T((2, 3, 2, 2)), 0.5), S(T((2, 5, 3, 5)), 0.4), S(T((1, 0, 2, 2)), 0.5)]
BOOLS = [S(T((3, 4)), 0, 2), S(T((130,)), 0, 1), S(T((0, 3)), 0, 2), S(T(()), 1, 2)]
RANGES = BOOLS + [S(T((3, 40)), 3, 101)]

FLOATING = "float16, bfloat16, float32 or float64"


def too_likely(name, function):
    return Bad(lambda d: function(ones(d, 2, 3), 1.5), ValueError,
               f"{name}(): p is 1.5, but it must be in [0, 1]")  # fmt: skip


RANDOM = [
    Op("dropout", LINES, np_dropout(), call=seeded(flow.dropout), bound="composite", errors=[
        too_likely("dropout", flow.dropout),
        Bad(lambda d: flow.dropout(ones(d, 2, dtype="int64")), DTypeError,
            f"dropout(): input has dtype int64, but it must be {FLOATING}")]),
    Op("dropout1d", CHANNELS, np_dropout(lambda x: x.ndim - 1), call=seeded(flow.dropout1d),
       bound="composite", errors=[
        Bad(lambda d: flow.dropout1d(ones(d, 2)), ShapeError,
            "dropout1d(): input has shape [2], expected 2 or 3 dims")]),
    Op("dropout2d", IMAGES, np_dropout(lambda x: 2), call=seeded(flow.dropout2d),
       bound="composite", errors=[
        Bad(lambda d: flow.dropout2d(ones(d, 2)), ShapeError,
            "dropout2d(): input has shape [2], expected at least 2 dims")]),
    Op("dropout3d", [S(T((2, 3, 2, 1, 3)), 0.5), S(T((4, 2, 1, 3)), 0.5), S(T((0, 1, 1, 1, 1)))],
       np_dropout(lambda x: 1 if x.ndim == 4 else 2), call=seeded(flow.dropout3d),
       bound="composite"),
    Op("feature_dropout", CHANNELS, np_dropout(lambda x: 2), call=seeded(flow.feature_dropout),
       bound="composite"),
    Op("alpha_dropout", [S(T((7,)), 0.3, True), S(T((3, 40)), 0.5, training=True), S(T((0,))),
                         S(T((2, 3)), 0.5, training=False)],
       np_alpha_dropout(), call=seeded(flow.alpha_dropout), bound="composite",
       errors=[too_likely("alpha_dropout", flow.alpha_dropout)]),
    Op("feature_alpha_dropout", [S(T((2, 3, 5)), 0.3, True), S(T((0, 2)), 0.5, True)],
       np_alpha_dropout(2), call=seeded(flow.feature_alpha_dropout), bound="composite"),

    # Real numbers: test_random.py has their values.
    *[Op(name, [S(T((3, 4)), *args), S(T((0, 2)), *args), S(T((130,)), *args)], None, FLOATS,
         call=into(name), errors=[Bad(
             lambda d, name=name: getattr(ones(d, 2, dtype="int64"), name)(), DTypeError,
             f"{name}(): self has dtype int64, but it must be {FLOATING}")] + errors)
      for name, args, errors in (
        ("uniform_", (-1.0, 3.0), [
            Bad(lambda d: ones(d, 2).uniform_(1, 0), ValueError,
                "uniform_(): there are no numbers from a = 1 to b = 0")]),
        ("normal_", (2.0, 0.5), [
            Bad(lambda d: ones(d, 2).normal_(0, -1), ValueError,
                "normal_(): std is -1, but it must not be negative")]),
        ("exponential_", (2.0,), [
            Bad(lambda d: ones(d, 2).exponential_(0), ValueError,
                "exponential_(): lambd is 0, but it must be positive")]))],
    Op("random_", RANGES, np_random, NUMERIC, call=into("random_"), errors=[
        Bad(lambda d: ones(d, 2).random_(3, 3), ValueError,
            "random_(): there is no integer from 3 on and below 3"),
        Bad(lambda d: ones(d, 2, dtype="uint8").random_(0, 257), OverflowError,
            "random_(): the number 256 is out of range [0, 255] of uint8")]),
    Op("random_[bool]", BOOLS, np_random, ("bool",), call=into("random_")),
    Op("bernoulli_", LINES, lambda x, p: (uniform(x.shape) < p) * 1.0, ALL,
       call=into("bernoulli_"), errors=[
        too_likely("bernoulli_", flow.Tensor.bernoulli_)]),
    Op("bernoulli", [S(T((3, 4), "probability")), S(T((0,), "probability")), S(T((130,)), 0.25)],
       lambda x, p=None: (uniform(x.shape) < (x if p is None else p)) * 1.0,
       call=seeded(flow.bernoulli), differentiable=False, errors=[
        too_likely("bernoulli", flow.bernoulli)]),
    Op("randint", [S(0, 9, (3, 4)), S(3, 101, (130,)), S(2, 3, (0, 2))], np_randint,
       ("int8", "int32", "int64", "float32", "float64"), call=seeded(flow.randint), factory=True,
       errors=[
        Bad(lambda d: flow.randint(3, 3, (2,), device=d), ValueError,
            "randint(): there is no integer from 3 on and below 3"),
        Bad(lambda d: flow.randint(2**33, (2,), dtype=flow.int32, device=d), OverflowError,
            "randint(): the number 8589934591 is out of range [-2147483648, 2147483647] of "
            "int32")]),
    Op("randint_like", RANGES, np_random, NUMERIC, call=seeded(flow.randint_like),
       differentiable=False),
    Op("randperm", [S(7), S(130), S(0)], lambda n: np.argsort(uniform_double(n), kind="stable"),
       ("int32", "int64"), call=seeded(flow.randperm), factory=True, errors=[
        Bad(lambda d: flow.randperm(-1, device=d), ValueError,
            "randperm(): n is -1, but it must not be negative")]),
]  # fmt: skip
