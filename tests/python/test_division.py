# SPDX-License-Identifier: Apache-2.0
"""floor_divide and remainder: the same bits as NumPy's."""

import math

import numpy as np
import pytest
from numerics import flow, host, tensor

# The ratio rounds up to an integer; signs; an infinite divisor; a ratio that float32 cannot hold.
DIVIDED = [(1.0, 0.1), (-1.0, 0.1), (5.3, 0.1), (-5.3, -0.1), (5.0, math.inf), (-5.0, math.inf),
           (5.0, -math.inf), (0.0, -math.inf), (1e7, 3.0), (65504.0, 3.0), (7.0, 0.0)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("pair", DIVIDED)
def test_division_rounded_down(pair, dtype, device):
    a, b = (tensor(np.array([v]), dtype, device) for v in pair)
    x, y = host(a).astype(dtype), host(b).astype(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(host(a // b), (x // y).astype(np.float64))
        np.testing.assert_array_equal(host(a % b), (x % y).astype(np.float64))


def test_an_integer_over_0():
    x = flow.tensor([3, -3])
    assert (x // 0).tolist() == [0, 0] and (x // flow.tensor([0, 2])).tolist() == [0, -2]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_integers_are_divided_exactly(dtype, device):
    limits = np.iinfo(dtype)
    edges = [limits.max, limits.max - 1, limits.min, limits.min + 7, limits.max // 2 + 1, 7, 0]
    divisors = [limits.max, limits.max - 6, limits.min + 9, limits.max // 2, 10, 3, 1]
    divisors += [-1, -7] if limits.min < 0 else []
    # The quotient of the least by -1 overflows.
    x = np.array([[a] for a in edges if limits.min == 0 or a != limits.min], dtype)
    y = np.array(divisors, dtype)
    got = tensor(x, dtype, device), tensor(y, dtype, device)
    assert (got[0] // got[1]).tolist() == (x // y).tolist()
    assert (got[0] % got[1]).tolist() == (x % y).tolist()


def divided(x, y):
    """The four divisions of integers; 0 and x over 0, and what overflows wraps around."""
    a, b = x.astype(object), np.where(y == 0, 1, y).astype(object)
    quotient, rest, short = a // b, a % b, abs(a) // abs(b)
    short = np.where((a < 0) != (b < 0), -short, short)
    least, count = np.iinfo(x.dtype).min, 1 << 8 * x.dtype.itemsize
    found = {"floor": (quotient, 0), "remainder": (rest, a), "trunc": (short, 0),
             "fmod": (a - short * b, a)}  # fmt: skip
    return {name: ((np.where(y == 0, over_0, v) - least) % count + least).astype(x.dtype)
            for name, (v, over_0) in found.items()}  # fmt: skip


DIVISIONS = {"floor": flow.floor_divide, "remainder": flow.remainder, "fmod": flow.fmod,
             "trunc": lambda a, b: flow.div(a, b, rounding_mode="trunc")}  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_every_pair_of_8_bits_is_divided_exactly(dtype, device):
    limits = np.iinfo(dtype)
    line = np.arange(limits.min, limits.max + 1).astype(dtype)
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(line, line, indexing="ij"))
    a, b, n = (tensor(v, dtype, device) for v in (x, y, line))
    for name, want in divided(x, y).items():
        f = DIVISIONS[name]
        np.testing.assert_array_equal(f(a, b).numpy(force=True), want, name)
        np.testing.assert_array_equal(f(n[:, None], n).numpy(force=True), want, name)
        for k in range(0, 256, 5):
            got = f(n, int(line[k])).numpy(force=True)
            np.testing.assert_array_equal(got, want[:, k], f"{name} by {line[k]}")


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_ends_of_integers_are_divided_exactly(dtype, device):
    limits = np.iinfo(dtype)
    near = [k for e in (limits.min, limits.max, limits.max // 2, 0, 181, 46341)
            for k in range(e - 3, e + 4) if limits.min <= k <= limits.max]  # fmt: skip
    random = np.random.default_rng(5).integers(limits.min, limits.max, 30).tolist()
    line = np.array(near + random, dtype)
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(line, line, indexing="ij"))
    for name, want in divided(x, y).items():
        got = DIVISIONS[name](tensor(x, dtype, device), tensor(y, dtype, device))
        np.testing.assert_array_equal(got.numpy(force=True), want, name)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_rounded_quotient_has_no_slope(mode, dtype, device):
    values = [1.0, -3.0, 5.0, math.inf, 0.0], [0.0, 2.0, math.inf, 2.0, 0.0]
    a, b = (tensor(v, dtype, device).requires_grad_() for v in values)
    for x, y in ((a, b), (a, b[:1]), (a, 0.0), (math.inf, b), (a, b.detach().long())):
        flow.div(x, y, rounding_mode=mode).sum().backward()
        for given in (x, y):
            if isinstance(given, flow.Tensor) and given.is_leaf and given.requires_grad:
                assert given.grad.tolist() == [0] * 5 and given.grad.dtype is given.dtype
                given.grad = None
    (a // b).sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [0] * 5
