# SPDX-License-Identifier: Apache-2.0
"""Modified Bessel functions on vectors: every length, both series, and the numbers at the ends."""

import numpy as np
import pytest
from numerics import flow, host, tensor
from op_table_special import np_i, scaled

RNG = np.random.default_rng(31)
FUNCTIONS = {"i0": np_i(0), "i1": np_i(1), "i0e": scaled(np_i(0)), "i1e": scaled(np_i(1))}
DTYPES = ["float32", "float64"]
LENGTHS = [0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100]
ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 8.0, -8.0, np.nextafter(8, 9), 1e-300, 700.0, 1e30]


def of(name, x):
    return host(getattr(flow.special, name)(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_either_side_of_eight(name, dtype):
    a = np.concatenate([np.linspace(-12, 12, 193), 8 + np.linspace(-1e-3, 1e-3, 5)])
    x = tensor(a, dtype)
    want, got = FUNCTIONS[name](host(x)), of(name, x)
    some = np.abs(host(x)) > 0.1  # below, the integral of i1 loses digits
    error = np.abs(got - want) / np.abs(want)
    assert error[some].max() < (6e-8 if dtype == "float32" else 4e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_place_of_every_length(name, dtype):
    for n in LENGTHS:
        x = tensor(RNG.standard_normal(n) * 5, dtype)
        alone = [of(name, x[i : i + 1])[0] for i in range(n)]
        np.testing.assert_array_equal(of(name, x), np.array(alone, host(x).dtype))
        wide = tensor(np.zeros((n, 3)), dtype)
        wide[:, 1] = x
        np.testing.assert_array_equal(of(name, wide[:, 1]), of(name, x))


@pytest.mark.parametrize("dtype", [*DTYPES, "float16", "bfloat16"])
def test_ends(dtype):
    x = tensor(ENDS, dtype)
    for name in FUNCTIONS:
        y, alone = of(name, x), [of(name, t.reshape(1))[0] for t in x]
        np.testing.assert_array_equal(y, alone)
        odd = name.startswith("i1")
        at_zero, at_infinity = 0.0 if odd else 1.0, 0.0 if name.endswith("e") else np.inf
        np.testing.assert_array_equal(y[:3], [at_zero, at_zero, at_infinity])
        np.testing.assert_array_equal(y[3], -at_infinity if odd else at_infinity)
        assert np.isnan(y[4])
        if odd:
            np.testing.assert_array_equal(np.signbit(y[:4]), [False, True, False, True])


def test_far_numbers():
    x = flow.tensor([1e10, -1e10], dtype=flow.float64)
    want = 1 / np.sqrt(2 * np.pi * 1e10)
    np.testing.assert_allclose(of("i0e", x), [want, want], rtol=1e-10)
    np.testing.assert_allclose(of("i1e", x), [want, -want], rtol=1e-10)
    # exp(x) is beyond the range, which the product is not.
    x = flow.tensor([711.0, 713.0], dtype=flow.float64)
    assert np.isfinite(of("i0", x)).all() and np.isfinite(of("i1", x)).all()
