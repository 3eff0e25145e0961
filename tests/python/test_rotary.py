# SPDX-License-Identifier: Apache-2.0
"""RotaryEmbedding and SwiGLU, against their formulas in NumPy."""

import numpy as np
import pytest
from numerics import flow, host, tensor
from test_launches import work

nn, F = flow.nn, flow.nn.functional


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


def tables(length, half, dtype="float32", device="cpu"):
    """Some places and columns of wider tables."""
    return [tensor(f(np.arange((length + 2) * 2 * half)).reshape(length + 2, -1), dtype, device)
            .narrow(0, 1, length).narrow(1, 0, half) for f in (np.cos, np.sin)]  # fmt: skip


def launches_of(call, x, device):
    """Of the function, and of its gradient."""
    y = call(x)
    dy = flow.ones_like(y)
    forward = work(lambda: call(x.detach()), device)
    backward = work(lambda: flow.autograd.grad(y, x, dy, retain_graph=True), device)
    return sum(forward.values()), sum(backward.values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_launch_each_way(dtype, device):
    x = tensor(np.ones((2, 3, 48)), dtype, device).requires_grad_()
    cos, sin = tables(3, 8, "float32", device)
    assert launches_of(lambda x: F.rotary_embedding(x, cos, sin, 32), x, device) == (1, 1)
    assert launches_of(F.swiglu, x, device) == launches_of(F.glu, x, device) == (1, 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("call", ["rotary", "swiglu", "glu"])
def test_any_layout_gives_the_same_bits(call, dtype, device):
    """Beside a boundary of 16 bytes, transposed, and every other column."""
    cos, sin = tables(4, 8, "float32", device)
    function = getattr(F, call, lambda x: F.rotary_embedding(x, cos, sin))
    values = tensor(np.random.default_rng(3).standard_normal((4, 32)), dtype, device)
    room = flow.empty(4 * 32 + 1, dtype=values.dtype, device=device)
    every = flow.empty(4, 64, dtype=values.dtype, device=device)
    layouts = [room[1:].view(4, 32), values.t().contiguous().t(), every[:, ::2]]
    for x in layouts:
        x.copy_(values)

    def both(x):
        x = x.detach().requires_grad_()
        y = function(x)
        (dx,) = flow.autograd.grad((y * y).sum(), x)
        return host(y.detach()), host(dx)

    want = both(values)
    for x in layouts:
        for got, expected in zip(both(x), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_turning_back_is_the_gradient_and_others_are_copied(device):
    x = tensor(np.random.default_rng(4).standard_normal((3, 12)), "float64", device)
    cos, sin = tables(3, 2, "float64", device)
    y = F.rotary_embedding(x.requires_grad_(), cos, sin, 8)
    np.testing.assert_array_equal(host(y.detach())[:, 8:], host(x.detach())[:, 8:])
    (back,) = flow.autograd.grad(y, x, y.detach())
    np.testing.assert_allclose(host(back), host(x.detach()), rtol=1e-12)  # an isometry


def test_tables_have_no_gradient():
    cos, sin = tables(3, 2)
    y = F.rotary_embedding(flow.ones(3, 4), cos.clone().requires_grad_(), sin)
    with pytest.raises(NotImplementedError, match="cos and sin have no gradient"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gates_at_the_ends(dtype, device):
    """Where the exponential overflows, silu and its slope are 0 or the identity's; NaN stays."""
    gate = np.array([-1e4, -1000.0, 0.0, 200.0, 1e4, np.nan, 3e38, -3e38])
    x = tensor(np.concatenate([gate, np.full(8, 2.0)]), dtype, device).requires_grad_()
    y = F.swiglu(x)
    (dx,) = flow.autograd.grad(y.sum(), x)
    at = host(x.detach())[:8]
    with np.errstate(over="ignore"):
        silu = np.where(at < -100, 0, np.where(at > 100, at, at / (1 + np.exp(-np.abs(at)))))
        twice = (2 * silu).astype(np.float32 if dtype != "float64" else np.float64)
    np.testing.assert_array_equal(host(y.detach()), host(tensor(twice, dtype)))
    np.testing.assert_array_equal(host(dx)[:8], [0, 0, 1, 2, 2, np.nan, 2, 0])
    np.testing.assert_array_equal(host(dx)[8:], silu)
