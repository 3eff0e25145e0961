# SPDX-License-Identifier: Apache-2.0
"""gelu and its slope: all 65536 inputs of the 16-bit floats, the tails, and second derivatives."""

import decimal
import math

import numpy as np
import pytest
from numerics import HALVES, flow, host, rounded, tensor, ulp

gelu = flow.nn.functional.gelu
FORMS = ["none", "tanh"]
erfc = np.vectorize(math.erfc, otypes=[float])
K = math.sqrt(2 / math.pi)


def value(x, form):
    with np.errstate(all="ignore"):
        if form == "none":
            y = 0.5 * x * erfc(-x / math.sqrt(2))
        else:
            y = x / (1 + np.exp(-2 * K * (x + 0.044715 * x**3)))
    return np.where(x == -np.inf, 0.0, np.where(x == np.inf, np.inf, y))


def slope(x, form):
    with np.errstate(all="ignore"):
        if form == "none":
            y = 0.5 * erfc(-x / math.sqrt(2)) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        else:
            v = 2 * K * (x + 0.044715 * x**3)
            s, rest = 1 / (1 + np.exp(-v)), 1 / (1 + np.exp(v))
            y = s + x * s * rest * 2 * K * (1 + 3 * 0.044715 * x * x)
    return np.where(np.abs(x) > 40, np.where(x > 0, 1.0, 0.0), y)


def every(dtype):
    """All values of a 16-bit float."""
    numbers = np.arange(65536, dtype=np.uint32)
    with np.errstate(invalid="ignore"):
        if dtype == "bfloat16":
            return (numbers << 16).view(np.float32).astype(np.float64)
        return numbers.astype(np.uint16).view(np.float16).astype(np.float64)


def steps(got, want, dtype):
    """How many rounding steps of the dtype lie between."""
    near = rounded(want, dtype)
    with np.errstate(invalid="ignore"):
        apart = np.abs(got - want) / ulp(want, dtype)
    same = (got == near) | (np.isnan(got) & np.isnan(near))
    return np.where(same, 0.0, np.where(np.isfinite(got) & np.isfinite(near), apart, np.inf))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", HALVES)
def test_every_16_bit_input(dtype, form, device):
    x = every(dtype)
    t = tensor(x, dtype, device).requires_grad_()
    x = host(t)
    y = gelu(t, form)
    (grad,) = flow.autograd.grad(y.sum(), t)
    for name, got, want in (("value", y, value(x, form)), ("slope", grad, slope(x, form))):
        off = steps(host(got), want, dtype)
        wrong = np.flatnonzero(off > 1)
        assert len(wrong) == 0, (name, len(wrong), x[wrong[:4]], off[wrong[:4]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tails(dtype, form, device):
    corners = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e30, 1e-40, -0.7517916, 3e38, -3e38]
    x = np.concatenate([np.linspace(-45, 45, 4001), corners])
    t = tensor(x, dtype, device).requires_grad_()
    x = host(t)
    y = gelu(t, form)
    (grad,) = flow.autograd.grad(y.sum(), t)
    relative, absolute = (4e-6, 1e-7) if dtype == "float32" else (1e-14, 1e-15)
    for got, want in ((y, value(x, form)), (grad, slope(x, form))):
        np.testing.assert_allclose(host(got), want, rtol=relative, atol=absolute)
    # No cancellation to the left, down to where exp leaves the normal numbers.
    far = (x < -1) & (np.abs(want) > (1e-36 if dtype == "float32" else 1e-300))
    loose = 4e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(host(grad)[far], want[far], rtol=loose)


def exact_tanh_form(x):
    """By decimals, since exp of a float64 argument has its rounding some hundred times."""
    with decimal.localcontext() as context:
        context.prec = 40
        pi = decimal.Decimal("3.14159265358979323846264338327950288419717")
        x = decimal.Decimal(float(x))
        v = 2 * (2 / pi).sqrt() * (x + decimal.Decimal("0.044715") * x**3)
        return float(x / (1 + (-v).exp()))


def test_float64_left_tail_of_the_tanh_form(device):
    x = np.concatenate([np.linspace(-21.5, -0.5, 500), np.linspace(0.5, 6, 100)])
    want = np.array([exact_tanh_form(number) for number in x])
    got = host(gelu(tensor(x, "float64", device), "tanh"))
    assert np.max(np.abs(got - want) / ulp(want, "float64")) <= 4


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_of_every_order(form, device):
    x = tensor([-6.0, -2.5, -0.75, -0.1, 0.0, 0.3, 1.7, 5.0], "float64", device).requires_grad_()
    assert flow.autograd.gradcheck(lambda t: gelu(t, form), [x])
    assert flow.autograd.gradgradcheck(lambda t: gelu(t, form), [x])

    @flow.enable_grad()
    def second(t):
        t = t if t.requires_grad else t.detach().requires_grad_()
        (first,) = flow.autograd.grad(gelu(t, form).sum(), t, create_graph=True)
        return flow.autograd.grad((first * first).sum(), t, create_graph=True)[0]

    assert flow.autograd.gradcheck(second, [x])


def test_one_op_each():
    x = flow.ones(3, requires_grad=True)
    for form, name in (("none", "gelu"), ("tanh", "gelu_tanh")):
        with flow.profiler.profile() as seen:
            gelu(x, form).backward(flow.ones(3))
        assert {name, f"{name}_backward"} <= {s.name for s in seen.stats()}
