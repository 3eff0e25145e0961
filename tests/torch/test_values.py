# SPDX-License-Identifier: Apache-2.0
"""Values and gradients beside PyTorch's in float64, around the widths where kernels change."""

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from conftest import assert_near

# One element, odd widths, whole packs of 16 bytes and their neighbours, the ends of tiers: lanes
# (1024 and 2048 in 16 bits), blocks (8192, 16384), clusters.
WIDTHS = (1, 2, 7, 8, 31, 64, 65, 127, 768, 1000, 1024, 1025, 4096, 4099, 16384, 16391)


def both(function, reference, tensors, device, dtype, units=8.0):
    """Compare outputs and gradients of two functions of the same tensors, given in float64."""
    wide = [t.to(dtype).double().requires_grad_() for t in tensors]
    ours = [t.detach().to(device, dtype).requires_grad_() for t in wide]
    expected, actual = reference(*wide), function(*ours)
    for e, a in zip(_tuple(expected), _tuple(actual), strict=True):
        assert_near(a, e, dtype, units=units)
        assert a.dtype == dtype
    cotangents = [torch.randn_like(e).to(dtype).double() for e in _tuple(expected)]
    wanted = torch.autograd.grad(_tuple(expected), wide, cotangents)
    found = torch.autograd.grad(_tuple(actual), ours, [c.to(device, dtype) for c in cotangents])
    for w, f, t in zip(wanted, found, ours, strict=True):
        assert f.dtype == t.dtype and f.device == t.device
        assert_near(f, w, dtype, scale=max(1.0, w.abs().max().item()), units=2 * units)


def _tuple(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name, width, device, dtype):
    x = 3 * torch.randn(5, width, dtype=torch.float64)
    ours, theirs = getattr(rows, name), getattr(F, name)
    both(lambda t: ours(t, -1), lambda t: theirs(t, -1), [x], device, dtype, units=16)


@pytest.mark.parametrize("shape, dim", [((3, 17, 5), 1), ((4, 9), 0), ((2, 3, 8, 64), 1), ((), 0)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_along_other_dims(name, shape, dim, device, dtype):
    x = torch.randn(shape, dtype=torch.float64)
    ours, theirs = getattr(rows, name), getattr(F, name)
    both(lambda t: ours(t, dim), lambda t: theirs(t, dim), [x], device, dtype, units=16)


@pytest.mark.parametrize("width", WIDTHS)
def test_layer_norm(width, device, dtype):
    x, w, b = torch.randn(6, width), torch.randn(width), torch.randn(width)
    both(
        lambda x, w, b: rows.layer_norm(x, width, w, b),
        lambda x, w, b: F.layer_norm(x, (width,), w, b),
        [t.double() for t in (x, w, b)],
        device,
        dtype,
        units=32 if width > 1 else 1e4,  # rstd is 316 where the variance is 0
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_rms_norm(width, device, dtype):
    x, w = torch.randn(6, width) + 0.1, torch.randn(width)
    both(
        lambda x, w: rows.rms_norm(x, width, w, 1e-6),
        lambda x, w: F.rms_norm(x, (width,), w, 1e-6),
        [t.double() for t in (x, w)],
        device,
        dtype,
        units=32,
    )


@pytest.mark.parametrize("width", (7, 64, 1000, 1024, 4099))
def test_norms_with_a_residual(width, device, dtype):
    x, r = torch.randn(6, width).double(), torch.randn(6, width).double()
    w, b = torch.randn(width).double(), torch.randn(width).double()

    def layer(x, r, w, b):
        s = x + r
        return F.layer_norm(s, (width,), w, b), s

    def rms(x, r, w):
        s = x + r
        return F.rms_norm(s, (width,), w, 1e-5), s

    # Multiples of 1/8: the sum is not rounded, so that both sides normalise the same numbers.
    x, r = (t.mul(8).round().div(8) for t in (x, r))
    ours = lambda x, r, w, b: rows.add_layer_norm(x, r, width, w, b)  # noqa: E731
    both(ours, layer, [x, r, w, b], device, dtype, units=64)
    ours = lambda x, r, w: rows.add_rms_norm(x, r, width, w, 1e-5)  # noqa: E731
    both(ours, rms, [x, r, w], device, dtype, units=64)


@pytest.mark.parametrize("needs", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1)])
def test_gradients_of_some_inputs_alone(needs, device):
    tensors = [torch.randn(6, 65), torch.randn(65), torch.randn(65)]
    ours = [t.clone().to(device) for t in tensors]
    theirs = [t.clone() for t in tensors]
    for o, t, n in zip(ours, theirs, needs, strict=True):
        o.requires_grad_(bool(n))
        t.requires_grad_(bool(n))
    dy = torch.randn(6, 65)
    rows.layer_norm(ours[0], 65, *ours[1:]).backward(dy.to(device))
    F.layer_norm(theirs[0], (65,), *theirs[1:]).backward(dy)
    for o, t, n in zip(ours, theirs, needs, strict=True):
        assert (o.grad is not None) == bool(n)
        if n:
            torch.testing.assert_close(o.grad.cpu(), t.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wide", [torch.float32, None])
def test_weights_of_float32_beside_16_bits(wide, device):
    x = torch.randn(6, 100).bfloat16().to(device).requires_grad_()
    w = torch.randn(100, dtype=wide or torch.bfloat16, device=device, requires_grad=True)
    y = rows.layer_norm(x, 100, w)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert w.grad.dtype == w.dtype and x.grad.dtype == x.dtype
    reference = F.layer_norm(x.detach().double(), (100,), w.detach().double())
    assert_near(y, reference, torch.bfloat16)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("classes", [2, 33, 1000, 1024, 32000])
def test_cross_entropy(classes, in_place, smoothing, reduction, device, dtype):
    x = torch.randn(12, classes, dtype=torch.float64)
    target = torch.randint(0, classes, (12,))
    target[3] = -100

    def ours(x):
        return rows.cross_entropy(
            x * 1,
            target.to(device),
            reduction=reduction,
            label_smoothing=smoothing,
            inplace_backward=in_place,
        )

    def theirs(x):
        return F.cross_entropy(x, target, reduction=reduction, label_smoothing=smoothing)

    both(ours, theirs, [x], device, dtype, units=16)


def test_all_targets_ignored(device):
    x = torch.randn(4, 9, device=device, requires_grad=True)
    target = torch.full((4,), -100, device=device)
    for reduction in ("mean", "sum", "none"):
        ours = rows.cross_entropy(x, target, reduction=reduction)
        torch.testing.assert_close(
            ours, F.cross_entropy(x, target, reduction=reduction), equal_nan=True
        )


def test_a_target_that_is_no_class():
    with pytest.raises(IndexError, match="target 9 is out of range"):
        rows.cross_entropy(torch.randn(2, 9), torch.tensor([1, 9]))
    x, weight = torch.randn(2, 4, requires_grad=True), torch.randn(9, 4)
    with pytest.raises(IndexError, match=r"^linear_cross_entropy\(\): target 9 is out of range"):
        rows.linear_cross_entropy(x, weight, torch.tensor([1, 9]))


def test_in_place_runs_backward_once(device):
    x = torch.randn(4, 9, device=device, requires_grad=True)
    target = torch.tensor([1, 2, 3, 4], device=device)
    loss = rows.cross_entropy(x * 1, target, inplace_backward=True)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="runs once"):
        loss.backward()


def test_in_place_is_seen_by_autograd(device):
    """Who saved the logits learns that they are gone."""
    x = torch.randn(4, 9, device=device, requires_grad=True)
    logits = x.exp()  # keeps its output
    loss = rows.cross_entropy(
        logits, torch.tensor([1, 2, 3, 4], device=device), inplace_backward=True
    )
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_cross_entropy(with_bias, reduction, device):
    x, w, b = torch.randn(40, 16), torch.randn(300, 16), torch.randn(300)
    target = torch.randint(0, 300, (40,))
    target[:3] = -100
    given = [x, w, b] if with_bias else [x, w]

    def ours(x, w, b=None):
        return rows.linear_cross_entropy(x, w, target.to(device), b, reduction=reduction)

    def theirs(x, w, b=None):
        return F.cross_entropy(F.linear(x, w, b), target, reduction=reduction)

    both(ours, theirs, [t.double() for t in given], device, torch.float64, units=1e4)
    both(ours, theirs, [t.double() for t in given], device, torch.float32, units=1e3)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_linear_cross_entropy_under_autocast_and_a_loss_scale(half, device):
    """The loss is float32, and a scale beyond 65504 passes back through it."""
    x = torch.randn(64, 16, device=device, requires_grad=True)
    w = torch.randn(300, 16, device=device, requires_grad=True)
    target = torch.randint(0, 300, (64,), device=device)
    found = []
    for loss_of in (
        lambda: rows.linear_cross_entropy(x, w, target),
        lambda: F.cross_entropy(F.linear(x, w), target),
    ):
        with torch.autocast(device, half):
            loss = loss_of()
        assert loss.dtype == torch.float32
        found.append([loss, *torch.autograd.grad(loss * 65536.0, [x, w])])
    # Far below a rounding of the loss to 16 bits; a GPU's logits are rounded sums in another order.
    rtol = {torch.float16: 1e-4, torch.bfloat16: 1e-3}[half]
    torch.testing.assert_close(found[0][0], found[1][0], rtol=rtol, atol=0)
    for ours, theirs in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.05, atol=0.02 * theirs.abs().max().item())


def test_a_loss_scale_saves_small_gradients_in_place(device):
    x = torch.randn(64, 8192, device=device, dtype=torch.float16, requires_grad=True)
    target = torch.randint(0, 8192, (64,), device=device)
    want, got = (
        torch.autograd.grad(rows.cross_entropy(x * 1, target, inplace_backward=form), x, scale)[0]
        for form in (False, True)
        for scale in [torch.tensor(1024.0, device=device, dtype=torch.float16)]
    )
    assert torch.equal(got, want) and (got != 0).all()


@pytest.mark.parametrize("masked_row", ["nan", "zero"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "bool", "bool_keys", "additive", "wide"])
def test_scale_mask_softmax(kind, causal, masked_row, device, dtype):
    x = torch.randn(2, 3, 5, 9, dtype=torch.float64).to(dtype).to(device).requires_grad_()
    mask = {
        "none": None,
        "bool": torch.rand(2, 1, 5, 9, device=device) > 0.3,
        "bool_keys": torch.rand(9, device=device) > 0.2,
        "additive": torch.randn(3, 5, 9, device=device).to(dtype).requires_grad_(),
        "wide": torch.randn(3, 1, 9, device=device),
    }[kind]
    if kind == "wide" and dtype == torch.float64:
        mask = mask.double()
    wide = x.detach().double().requires_grad_()
    wide_mask = mask
    if mask is not None and mask.dtype != torch.bool:
        wide_mask = mask.detach().double().requires_grad_(mask.requires_grad)
    y = rows.scale_mask_softmax(x, mask, 0.5, causal=causal, masked_row=masked_row)
    from oneflow_lite_torch._softmax import _composed

    e = _composed(wide, wide_mask, 0.5, causal, masked_row)
    assert_near(y, e, dtype)
    dy = torch.randn_like(y)
    ours = [t for t in (x, mask) if t is not None and t.requires_grad]
    theirs = [t for t in (wide, wide_mask) if t is not None and t.requires_grad]
    wanted = torch.autograd.grad(e, theirs, dy.double())
    for f, w in zip(torch.autograd.grad(y, ours, dy), wanted, strict=True):
        if not w.isnan().any():
            assert_near(f, w, dtype, units=32)


def test_strided_rows_are_read_in_place(device):
    wide = torch.randn(6, 200, device=device)
    part = wide[:, 40:140]
    torch.testing.assert_close(rows.softmax(part), torch.softmax(part, -1))
    torch.testing.assert_close(rows.layer_norm(part, 100), F.layer_norm(part, (100,)))
    target = torch.randint(0, 100, (6,), device=device)
    torch.testing.assert_close(rows.cross_entropy(part, target), F.cross_entropy(part, target))
    turned = torch.randn(5, 4, 6, device=device).permute(1, 2, 0)
    torch.testing.assert_close(rows.softmax(turned), torch.softmax(turned, -1))


def test_empty_tensors(device):
    x = torch.empty(0, 7, device=device, requires_grad=True)
    assert rows.softmax(x).shape == (0, 7)
    assert rows.layer_norm(x, 7).shape == (0, 7)
    rows.softmax(x).sum().backward()
    assert x.grad.shape == (0, 7)
    with pytest.raises(RuntimeError):
        rows.layer_norm(torch.ones(2, 7, device=device), 6)


@pytest.mark.parametrize("tiny", [1e-4, 1e-3])
def test_default_eps_of_rms_norm(tiny, device, dtype):
    x = torch.full((3, 8), tiny, dtype=dtype, device=device)
    assert_near(rows.rms_norm(x, 8), F.rms_norm(x, (8,)), dtype, units=2)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_norms_without_gradients_are_those_with_them(norm, device, dtype):
    """A call that is not recorded writes no statistics; its values are the same bits."""
    x = torch.randn(7, 100, device=device).to(dtype).requires_grad_()
    w = torch.randn(100, device=device).to(dtype)
    arguments = (100, w, w, 1e-5) if norm == "layer_norm" else (100, w, 1e-5)
    recorded = getattr(rows, norm)(x, *arguments)
    assert recorded.grad_fn is not None
    for y in (getattr(rows, norm)(x.detach(), *arguments), _no_grad(norm, x, arguments)):
        assert y.grad_fn is None and torch.equal(y, recorded.detach())


def _no_grad(norm, x, arguments):
    with torch.no_grad():
        return getattr(rows, norm)(x, *arguments)


@pytest.mark.parametrize("given", ["a", 3, None, [1.0, 2.0]])
def test_what_is_no_tensor_is_named(given):
    x, target = torch.randn(2, 4), torch.tensor([0, 1])
    wrong = {
        "softmax(): input": lambda: rows.softmax(given, 0),
        "log_softmax(): input": lambda: rows.log_softmax(given, 0),
        "scale_mask_softmax(): input": lambda: rows.scale_mask_softmax(given),
        "add_layer_norm(): input": lambda: rows.add_layer_norm(given, x, (4,)),
        "add_layer_norm(): residual": lambda: rows.add_layer_norm(x, given, (4,)),
        "add_rms_norm(): input": lambda: rows.add_rms_norm(given, x, (4,)),
        "add_rms_norm(): residual": lambda: rows.add_rms_norm(x, given, (4,)),
        "linear_cross_entropy(): input": lambda: rows.linear_cross_entropy(given, x, target),
        "linear_cross_entropy(): weight": lambda: rows.linear_cross_entropy(x, given, target),
        "linear_cross_entropy(): target": lambda: rows.linear_cross_entropy(x, x, given),
    }
    for what, call in wrong.items():
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value) == f"{what} must be a Tensor, not {type(given).__name__}"
    with pytest.raises(TypeError, match=r"softmax\(\): dtype must be a torch.dtype, not str"):
        rows.softmax(x, 0, "float32")
