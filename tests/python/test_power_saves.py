# SPDX-License-Identifier: Apache-2.0
"""What x ** number keeps for backward, seen by changes in place: as in PyTorch its input alone."""

import numpy as np
import pytest
from numerics import FLOATS, flow, host, tensor

POWERS = [0.5, -0.5, 2, 3, 2.0, -1, 1, 0.25, 1.5]
WAYS = {
    "operator": lambda x, p: x**p,
    "function": lambda x, p: flow.pow(x, p),
    "float_power": lambda x, p: x.float_power(p),
}


def made(dtype="float64", device="cpu"):
    return tensor([0.25, 1.0, 4.0], dtype, device).requires_grad_()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("power", POWERS)
def test_the_result_may_be_changed(way, power, device):
    x = made(device=device)
    y = WAYS[way](x, power)
    y.mul_(3)
    y.sum().backward()
    np.testing.assert_allclose(host(x.grad), 3 * power * host(x) ** (power - 1.0), rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("power", POWERS)
def test_the_operand_may_not_be_changed(way, power, device):
    x = made(device=device)
    z = x + 0
    y = WAYS[way](z, power)
    z.add_(1)
    with pytest.raises(RuntimeError, match="changed|in place|in-place"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("power, root", [(0.5, flow.sqrt), (-0.5, flow.rsqrt)])
def test_roots_are_those_of_the_functions(power, root, dtype, device):
    x, same = made(dtype, device), made(dtype, device)
    y, wanted = x**power, root(same)
    assert y.dtype == wanted.dtype and np.array_equal(host(y), host(wanted))
    y.sum().backward()
    wanted.sum().backward()
    assert np.array_equal(host(x.grad), host(same.grad))


@pytest.mark.parametrize("power", [0.5, -0.5])
def test_second_order(power, device):
    x = made(device=device)
    assert flow.autograd.gradcheck(lambda t: t**power, (x,))
    assert flow.autograd.gradgradcheck(lambda t: t**power, (x,))


@pytest.mark.parametrize("power", [0.5, -0.5])
def test_integers_and_ends(power, device):
    whole = flow.tensor([1, 4, 16], device=device) ** power
    assert whole.dtype == flow.float32
    assert host(whole).tolist() == [1, 2, 4] if power > 0 else [1, 0.5, 0.25]
    ends = flow.tensor([0.0, float("inf"), -1.0], device=device, requires_grad=True)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(host(ends**power), host(ends) ** power)
