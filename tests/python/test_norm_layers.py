# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm: threads, memory, modules, ops."""

import warnings

import numpy as np
import pytest
from norm_reference import F, assert_within, by_dtype, by_norm, check, ext, forward, nn, problem
from numerics import bits, flow, host


@by_norm
def test_bits_do_not_depend_on_threads_or_on_other_rows(name):
    before = flow.get_num_threads()
    try:
        for rows, cols in ((5000, 40), (700, 1024), (8, 5000)):
            x, weight, bias, dy = problem(rows, cols, "float32", "cpu")
            seen = set()
            for threads in (1, 2, 3, 7):
                flow.set_num_threads(threads)
                y, grads = check(name, x, weight, bias, dy)
                seen.add((bits(y), *map(bits, grads)))
            assert len(seen) == 1, f"{rows} x {cols}"
            few, _ = check(name, x[:3], weight, bias, dy[:3])
            assert bits(few) == bits(y[:3])
    finally:
        flow.set_num_threads(before)


def bytes_held(module, layers, rows, cols, memory_efficient, device):
    """What a stack of norm and linear, as in a transformer, keeps between forward and backward."""
    model = nn.Sequential(*(
        layer for _ in range(layers)
        for layer in (module(cols, memory_efficient=memory_efficient), nn.Linear(cols, cols))
    )).to(device)  # fmt: skip
    x = flow.randn(rows, cols, device=device)
    model(x)
    before = ext.memory_stats(device)["allocated"]
    y = model(x)
    held = ext.memory_stats(device)["allocated"] - before
    y.sum().backward()
    return held


@pytest.mark.parametrize("module", [nn.LayerNorm, nn.RMSNorm])
def test_memory_efficient_layers_hold_half_as_much(module, device):
    """A linear keeps the norm's result in any case: only the norm's input is saved."""
    layers, rows, cols = 8, 512, 64
    from_x, from_y = (bytes_held(module, layers, rows, cols, me, device) for me in (False, True))
    tensor_bytes, row_bytes = rows * cols * 4, 2 * layers * rows * 4  # mean and rstd
    # From x: the input (of the first layer it is the caller's) and the result of each norm, and the
    # last result. From y: the results alone.
    assert 2 * layers * tensor_bytes <= from_x <= 2 * layers * tensor_bytes + row_bytes
    assert (layers + 1) * tensor_bytes <= from_y <= (layers + 1) * tensor_bytes + row_bytes


# Modules and ops ------------------------------------------------------------------------------


def test_an_eps_below_zero_leaves_nan_where_it_outweighs_the_variance(device):
    x = flow.tensor([[0.0, 4.0], [0.0, 1.0]], device=device)  # variances of 4 and 1/4
    np.testing.assert_allclose(
        host(F.layer_norm(x, 2, eps=-1.0)), [np.array([-2, 2]) / np.sqrt(3), [np.nan] * 2], 1e-6
    )
    np.testing.assert_allclose(
        host(F.rms_norm(x, 2, eps=-1.0)), [[0, 4 / np.sqrt(7)], [np.nan] * 2], 1e-6
    )


@pytest.mark.parametrize("module", [nn.LayerNorm, nn.RMSNorm])
def test_the_shape_of_a_module(module):
    assert module(np.int64(5)).normalized_shape == module([5]).normalized_shape == (5,)
    for wrong in ("5", None, 5.0, [2, 5.5], flow.ones(2)):
        with pytest.raises(
            TypeError, match="Norm: normalized_shape must be int or a tuple of ints"
        ):
            module(wrong)


def test_modules():
    assert repr(nn.LayerNorm(4)) == "LayerNorm((4,), eps=1e-05, elementwise_affine=True)"
    assert repr(nn.LayerNorm((2, 3), 1e-6, bias=False)) == (
        "LayerNorm((2, 3), eps=1e-06, elementwise_affine=True, bias=False)"
    )
    assert repr(nn.RMSNorm(4)) == "RMSNorm((4,), eps=None, elementwise_affine=True)"
    assert repr(nn.RMSNorm([2, 4], 1e-6, False, memory_efficient=True)) == (
        "RMSNorm((2, 4), eps=1e-06, elementwise_affine=False, memory_efficient=True)"
    )
    assert list(nn.LayerNorm(4).state_dict()) == ["weight", "bias"]
    assert list(nn.LayerNorm(4, bias=False).state_dict()) == ["weight"]
    assert list(nn.LayerNorm(4, elementwise_affine=False).state_dict()) == []
    assert list(nn.RMSNorm(4).state_dict()) == ["weight"]
    layer = nn.LayerNorm((2, 3), dtype=flow.float16)
    assert layer.weight.shape == (2, 3) and layer.bias.dtype is flow.float16
    assert (host(layer.weight) == 1).all() and (host(layer.bias) == 0).all()


@pytest.mark.parametrize("module", [nn.LayerNorm, nn.RMSNorm])
def test_modules_compute_and_learn(module, device):
    layer = module(16).to(device)
    x = flow.randn(8, 16, device=device)
    name = {"LayerNorm": "layer_norm", "RMSNorm": "rms_norm"}[module.__name__]
    eps = 1e-5 if module is nn.LayerNorm else 2.0**-23
    assert_within(layer(x), forward(name, host(x), eps=eps)[0], 1e-5, name)
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        loss = ((layer(x) - 0.5) * (layer(x) - 0.5)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    assert layer(x.half()).dtype is flow.float16  # float32 parameters, half input


def test_zero_weights_of_memory_efficient_modules_warn_once(monkeypatch):
    monkeypatch.setattr(nn.norms, "_warned", False)
    good, bad, worse = (nn.LayerNorm(4, memory_efficient=True) for _ in range(3))
    for layer in (bad, worse):
        nn.init.zeros_(layer.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good(flow.ones(2, 4))
        nn.LayerNorm(4)(flow.ones(2, 4))
    with pytest.warns(UserWarning, match="weights of exactly 0") as seen:
        bad(flow.ones(2, 4))
        bad(flow.ones(2, 4))
        worse(flow.ones(2, 4))
    assert len(seen) == 1 and seen[0].filename == __file__


@by_norm
@by_dtype
def test_ops_give_the_statistics_in_the_compute_type(name, dtype, device):
    x = problem(3, 20, dtype, device)[0].view(3, 4, 5)
    outputs = getattr(flow.ops, name)(x, axis=1)
    _, _, rstd = forward(name, host(x).reshape(3, 20))
    compute = flow.float64 if dtype == "float64" else flow.float32
    for statistic in outputs[1:]:
        assert statistic.shape == (3, 1, 1) and statistic.dtype is compute
    np.testing.assert_allclose(host(outputs[-1]).reshape(3, 1), rstd, rtol=1e-5)
    if name == "layer_norm":
        np.testing.assert_allclose(host(outputs[1]).reshape(3), host(x).mean((1, 2)), atol=1e-6)


def test_what_the_ops_refuse(device):
    x = flow.ones(2, 3, device=device)
    y, mean, rstd = flow.ops.layer_norm(x)
    bad = [
        (lambda: flow.ops.layer_norm(x, axis=2), IndexError,
         "layer_norm(): axis 2 is out of range [-2, 1] for shape [2, 3]"),
        (lambda: flow.ops.layer_norm_backward(x, rstd), ValueError,
         "layer_norm_backward(): either x or y must be given"),
        (lambda: flow.ops.layer_norm_backward(x, rstd, x, y), ValueError,
         "layer_norm_backward(): either x or y must be given"),
        (lambda: flow.ops.layer_norm_backward(x, rstd, x), ValueError,
         "layer_norm_backward(): x needs its mean"),
        (lambda: flow.ops.rms_norm_backward(x, rstd, x, wanted=2), ValueError,
         "rms_norm_backward(): wanted is 2, but it must be bits of 1"),
        (lambda: flow.ops.rms_norm_backward(x, mean[:1], x), flow.ShapeError,
         "rms_norm_backward(): rstd has shape [1, 1], expected [2, 1]"),
        (lambda: flow.ops.rms_norm_backward(x, rstd.double(), x), flow.DTypeError,
         "rms_norm_backward(): rstd has dtype float64, expected float32"),
    ]  # fmt: skip
    for call, error, text in bad:
        with pytest.raises(error) as raised:
            call()
        assert type(raised.value) is error and str(raised.value) == text
