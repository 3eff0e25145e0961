# SPDX-License-Identifier: Apache-2.0
"""RotaryEmbedding and SwiGLU, against their formulas in NumPy."""

import numpy as np
import pytest
from numerics import flow, host, tensor

nn = flow.nn


@pytest.mark.parametrize("start", [0, 3])
def test_pairs_are_turned(device, start):
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 8))
    rotary = nn.RotaryEmbedding(8, 16, 100.0).to(device)
    y = host(rotary(tensor(x, "float32", device), start))
    place = np.arange(start, start + 5)[:, None]
    angle = place * 100.0 ** (-np.arange(0, 8, 2) / 8)
    pairs = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angle)
    np.testing.assert_allclose(y, np.concatenate([pairs.real, pairs.imag], -1), atol=2e-6)


def test_products_depend_on_the_distance_alone():
    rotary = nn.RotaryEmbedding(16, 64)
    rng = np.random.default_rng(1)
    q, k = (tensor(rng.standard_normal((1, 16)), "float32") for _ in range(2))
    products = [(rotary(q, at + 7) * rotary(k, at)).sum().item() for at in (0, 20, 50)]
    np.testing.assert_allclose(products, products[0], rtol=1e-4)


def test_tables_are_no_state_and_take_dtypes():
    rotary = nn.RotaryEmbedding(4, 8)
    assert rotary.state_dict() == {} and "max_length=8" in repr(rotary)
    assert rotary(flow.ones(2, 4, dtype=flow.bfloat16)).dtype is flow.bfloat16
    x = flow.ones(3, 4, dtype=flow.float64, requires_grad=True)
    assert flow.autograd.gradcheck(nn.RotaryEmbedding(4, 8, dtype=flow.float64), (x,))


@pytest.mark.parametrize("shape, start", [((4,), 0), ((2, 6), 0), ((9, 4), 0), ((2, 4), 7)])
def test_what_does_not_fit_is_refused(shape, start):
    with pytest.raises(flow.ShapeError, match=r"RotaryEmbedding\(\).*within 8 places"):
        nn.RotaryEmbedding(4, 8)(flow.ones(*shape), start)
    with pytest.raises(ValueError, match="dim is 5"):
        nn.RotaryEmbedding(5)


@pytest.mark.parametrize("bias", [False, True])
def test_swiglu(device, bias):
    m = nn.SwiGLU(6, 10, 4, bias=bias).to(device)
    x = np.random.default_rng(2).standard_normal((3, 6))
    up = x @ host(m.up.weight).T + (host(m.up.bias) if bias else 0)
    gate, value = up[:, :10], up[:, 10:]
    y = (gate / (1 + np.exp(-gate)) * value) @ host(m.down.weight).T
    y = y + (host(m.down.bias) if bias else 0)
    np.testing.assert_allclose(host(m(tensor(x, "float32", device))), y, atol=2e-5)
    assert nn.SwiGLU(6, 10)(flow.ones(2, 6)).shape == (2, 6)
