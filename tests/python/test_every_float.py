# SPDX-License-Identifier: Apache-2.0
"""Functions of one element over the float32 numbers, beside the same function in float64.

On a GPU over all 2^32 of them; on a CPU over every 4099th. What float64 gives is compared with
NumPy and Python in test_unary.py and test_activation_ops.py.
"""

import pytest
from numerics import flow

F = flow.nn.functional
special = flow.special
ALL = 1 << 32
CHUNK = 1 << 25
LEAST = -126  # the exponent of the least normal number of float32
FRACTION = 23  # bits of its fraction
LARGEST = 2.0**128 * (1 - 2.0**-21)  # four units below the largest number

# Functions of one float32, within 4 units in the last place.
WITHIN_4 = {
    **{
        name: getattr(flow, name)
        for name in (
            "acos acosh asin asinh atan atanh cos cosh erf erfc erfinv exp exp2 expm1 log log10 "
            "log1p log2 logit reciprocal rsqrt sigmoid sin sinc sinh sqrt square tan tanh"
        ).split()
    },
    **{
        name: getattr(F, name)
        for name in "gelu logsigmoid mish selu silu softplus softsign tanhshrink".split()
    },
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "elu 0.75": lambda x: F.elu(x, 0.75),
    "celu 0.75": lambda x: F.celu(x, 0.75),
    # A product with 0.75 would be rounded next to the threshold.
    "softplus 0.5": lambda x: F.softplus(x, 0.5, 5.0),
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "erfcx": special.erfcx,
    "entr": special.entr,
}
# Within 8 units, or 1e-6 near their zeros. The base and the exponents are exact in float32.
WITHIN_8 = {
    "digamma": flow.digamma,
    "lgamma": flow.lgamma,
    "i0": special.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "x ** 0.75": lambda x: x**0.75,
    "x ** -1.5": lambda x: x**-1.5,
    "x ** 7": lambda x: x**7,
    "1.25 ** x": lambda x: 1.25**x,
    "0.375 ** x": lambda x: 0.375**x,
}


def floats(first, step, count, device):
    """The float32 numbers of the bit patterns first, first + step, ..."""
    raw = flow.arange(first, first + step * count, step, dtype=flow.int64, device=device)
    return (raw - ALL * (raw >= ALL // 2)).to(flow.int32).view(flow.float32)


def unit_of(values):
    """The distance of neighbouring float32 numbers at float64 values."""
    exponent = flow.frexp(values.abs().nan_to_num(0, 0, 0)).exponent - 1
    return flow.exp2((exponent.clamp(LEAST, 127) - FRACTION).double())


def largest_error(function, x, absolute):
    """In units of float32, and the number at which it is; infinite where one is NaN alone."""
    got, want = function(x).double(), function(x.double())
    same = (got == want) | got.isnan() & want.isnan()
    # Beside the largest number a unit decides of infinity.
    same |= got.isinf() & (got * want > 0) & (want.abs() > LARGEST)
    off = (got - want).abs()
    error = flow.where(same | (off <= absolute), 0.0, off / unit_of(want))
    error = error.nan_to_num(nan=float("inf"), posinf=float("inf"))
    place = error.argmax()
    return error[place].item(), x[place].item(), got[place].item(), want[place].item()


def check(function, units, absolute, device):
    step = 4099 if device == "cpu" else 1
    count = min(CHUNK, ALL // step)
    for first in range(0, ALL - step * count + 1, step * count):
        x = floats(first, step, count, device)
        error, *where = largest_error(function, x, absolute)
        assert error <= units, (error, *where)


@pytest.mark.parametrize("name", WITHIN_4)
def test_within_4_units(name, device):
    check(WITHIN_4[name], 4, 0, device)


@pytest.mark.parametrize("name", WITHIN_8)
def test_within_8_units(name, device):
    check(WITHIN_8[name], 8, 1e-6, device)
