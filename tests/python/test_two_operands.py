# SPDX-License-Identifier: Apache-2.0
"""Functions of two and three operands where formulas go wrong: at zeros, ends, infinities, NaN."""

import math

import numpy as np
import pytest
from numerics import FLOATS, INTEGERS, flow, host, near, tensor

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, -7.0, 0.1, 1e-3, 1e-40, -1e-40, 5e-324, 1e30,
         -1e30, 1.7e308, 16777217.0, -4503599627370497.0,
         math.inf, -math.inf, math.nan]  # fmt: skip
# name: NumPy's, and how many ulp.
OF_TWO = {
    "fmod": (np.fmod, 0), "remainder": (np.remainder, 0), "floor_divide": (np.floor_divide, 0),
    "copysign": (np.copysign, 0), "hypot": (np.hypot, 4), "atan2": (np.arctan2, 4),
    "logaddexp": (np.logaddexp, 4), "logaddexp2": (np.logaddexp2, 4),
}  # fmt: skip


def pairs(dtype, device):
    """All pairs of the edges that the dtype holds: tensors and arrays."""
    with np.errstate(over="ignore"):
        x = np.array(EDGES).astype(dtype)
    a, b = (np.ascontiguousarray(t) for t in np.meshgrid(x, x, indexing="ij"))
    return flow.tensor(a, device=device), flow.tensor(b, device=device), a, b


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OF_TWO)
def test_all_pairs_of_edges(name, dtype, device):
    reference, ulps = OF_TWO[name]
    x, y, a, b = pairs(dtype, device)
    got = getattr(flow, name)(x, y).cpu().numpy()
    with np.errstate(all="ignore"):
        want = reference(a, b)
        if ulps:  # computed wider, and rounded once
            exact = reference(a.astype(np.longdouble), b.astype(np.longdouble))
            want = exact.astype(dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    real = ~np.isnan(want)
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want)
    with np.errstate(over="ignore"):
        step = np.spacing(np.abs(want[finite]))
    assert (np.abs(got[finite] - want[finite]) <= ulps * step).all()
    signed = real & (want == 0) if ulps == 0 else real & False
    np.testing.assert_array_equal(np.signbit(got[signed]), np.signbit(want[signed]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide", "hypot", "atan2"])
def test_16_bits_are_rounded_once(name, dtype, device):
    rng = np.random.default_rng(3)
    x, y = (tensor(rng.standard_normal(4001) * 10, dtype, device) for _ in range(2))
    wide = getattr(flow, name)(x.float(), y.float())
    assert near(host(getattr(flow, name)(x, y)), host(wide), dtype, device).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_next_number(dtype, device):
    edges = {"float16": [65504, 2.0**-14, 2.0**-24], "bfloat16": [2.0**-126, 2.0**-133],
             "float32": [2.0**-126, 2.0**-149], "float64": [5e-324, 2.0**-1022]}[dtype]  # fmt: skip
    values = [0.0, -0.0, 1.0, -1.0, 1.5, -3.0, math.inf, -math.inf, *edges, *(-e for e in edges)]
    x = tensor(values, dtype, device)
    up, down = (flow.nextafter(x, tensor(e, dtype, device)) for e in (math.inf, -math.inf))
    for moved, end in ((up, math.inf), (down, -math.inf)):
        for before, after in zip(x.tolist(), moved.tolist(), strict=True):
            if before == end:
                assert after == before
                continue
            assert after > before if end > 0 else after < before
            middle = tensor((before + after) / 2 if math.isfinite(before + after) else after,
                            dtype).item()  # fmt: skip
            assert middle in (before, after)  # nothing lies between
    nan = flow.nextafter(x, math.nan)
    assert nan.isnan().all() and flow.nextafter(x, x).tolist() == x.tolist()


def wrapped(number, dtype):
    """The number without the bits that the dtype has not."""
    low = number % 2 ** np.iinfo(dtype).bits
    return int(np.array([low], np.uint64).astype(dtype)[0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_their_ends(dtype, device):
    ends = np.iinfo(dtype)
    values = [0, 1, 2, 7, ends.max, ends.max - 1, ends.min, ends.min + 1]
    values += [-1, -7] if ends.min else []
    for a in values:
        for b in values:
            x, y = (tensor([v], dtype, device) for v in (a, b))
            q, r = (a // b, a % b) if b else (0, a)
            cut = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
            assert (x // y).item() == wrapped(q, dtype) and (x % y).item() == r
            assert flow.div(x, y, rounding_mode="trunc").item() == wrapped(cut, dtype)
            assert flow.fmod(x, y).item() == (a - cut * b if b else a)
            assert flow.gcd(x, y).item() == wrapped(math.gcd(a, b), dtype)


def test_truth_of_any_two_dtypes(device):
    nan = flow.tensor([math.nan, 0.0, -0.0, 0.25], device=device)
    for dtype in ("float16", "int8", "bool", "float64"):
        other = tensor([1, 1, 1, 0], dtype, device)
        assert flow.logical_and(nan, other).tolist() == [True, False, False, False]
        assert other.logical_xor(nan).tolist() == [False, True, True, True]
        assert flow.logical_or(nan, False).tolist() == [True, False, False, True]
    x = flow.tensor([2, 0])
    assert x.logical_and_(flow.tensor([True, True])).tolist() == [1, 0]


def test_ties_and_bounds_share_gradients(device):
    a, b = (flow.tensor([1.0, 2.0, math.nan, 3.0], device=device) for _ in range(2))
    a[2], b[3] = 5.0, math.nan
    a.requires_grad_(), b.requires_grad_()
    for function, want in ((flow.maximum, [0.5, 0.5, 1, 1]), (flow.fmax, [0.5, 0.5, 1, 1]),
                           (flow.fmin, [0.5, 0.5, 1, 1])):  # fmt: skip
        g = flow.autograd.grad(function(a, b).sum(), [a, b])
        assert g[0].tolist() == want
    assert flow.autograd.grad(flow.fmax(a, b).sum(), [b])[0].tolist() == [0.5, 0.5, 0, 0]
    x = flow.tensor([0.0, 1.0, 2.0, 3.0, 4.0], device=device, requires_grad=True)
    low, high = (flow.tensor(v, device=device, requires_grad=True) for v in (1.0, 3.0))
    g = flow.autograd.grad(flow.clamp(x, low, high).sum(), [x, low, high])
    assert [t.tolist() for t in g] == [[0, 0.5, 1, 0.5, 0], 1.5, 1.5]
    ends = flow.tensor([math.inf, -math.inf, math.nan], device=device, requires_grad=True)
    assert flow.autograd.grad(ends.clamp(min=0).sum(), [ends])[0].tolist() == [1, 0, 0]
    # What was not chosen gets none of an infinite gradient.
    y = flow.clamp(x, 1.0, 3.0)
    g = flow.autograd.grad(y, [x], [flow.full([5], math.inf, device=device)])[0]
    assert g.tolist() == [0, 0, math.inf, 0, 0]


def test_quotients_have_no_slope_and_rests_the_exact_one(device):
    a = tensor([1.0, -7.0, 5.0], "float64", device).requires_grad_()
    b = tensor([0.1, 2.0, math.inf], "float64", device).requires_grad_()
    for function, slopes in ((flow.remainder, [-9, 4, 0]), (flow.fmod, [-9, 3, 0])):
        g = flow.autograd.grad(function(a, b).sum(), [a, b])
        assert g[0].tolist() == [1, 1, 1] and g[1].tolist() == slopes
    for mode in ("floor", "trunc"):
        g = flow.autograd.grad(flow.div(a, b, rounding_mode=mode).sum(), [a, b])
        assert g[0].tolist() == g[1].tolist() == [0, 0, 0]


def test_slopes_at_0(device):
    a, b = (
        flow.tensor(v, device=device, requires_grad=True)
        for v in ([0.0, 0.0, 2.0], [0.0, -1.0, 3.0])
    )
    g = flow.autograd.grad(flow.xlogy(a, b).sum(), [a, b])
    np.testing.assert_allclose(host(g[0]), [0, 0, math.log(3)], rtol=1e-6)
    np.testing.assert_allclose(host(g[1]), [0, 0, 2 / 3], rtol=1e-6)
    g = flow.autograd.grad(flow.pow(a, b.detach().abs()).sum(), [a])[0]
    np.testing.assert_allclose(host(g), [0, 1, 12], rtol=1e-6)
    exponent = flow.tensor([0.0, 1.0, 2.0], device=device, requires_grad=True)
    g = flow.autograd.grad(flow.pow(a, exponent).sum(), [exponent])[0]
    np.testing.assert_allclose(host(g), [0, 0, 4 * math.log(2)], rtol=1e-6)
    g = flow.autograd.grad(flow.copysign(a, -1.0).sum(), [a])[0]
    assert g.tolist() == [0, 0, -1]


def test_alpha_is_rounded_once(device):
    x, y = (tensor([1.0, 3.0], "float16", device) for _ in range(2))
    want = tensor(host(x) + 1.0009765625e-3 * host(y), "float16").tolist()
    assert flow.add(x, y, alpha=1.0009765625e-3).tolist() == want
    assert flow.rsub(x, y, alpha=2).tolist() == [-1, -3]
    small = flow.tensor([250], dtype=flow.uint8, device=device)
    assert flow.sub(small, small, alpha=2).tolist() == [6]  # wraps around
    with pytest.raises(OverflowError, match=r"^add\(\): the number 300 is out of range"):
        flow.add(small, small, alpha=300)
    with pytest.raises(OverflowError, match=r"^sub_\(\): the number -1 is out of range"):
        small.sub_(small, alpha=-1)
    assert flow.add(flow.tensor([1.0]), flow.tensor([2]), alpha=0.5).tolist() == [2.0]


def test_weights_of_lerp(device):
    a, b = flow.tensor([1e8, -3.0], device=device), flow.tensor([1.0, 5.0], device=device)
    assert flow.lerp(a, b, 1.0).tolist() == b.tolist() and a.lerp(b, 0).tolist() == a.tolist()
    assert flow.lerp(flow.tensor([0]), flow.tensor([4]), 0.5).tolist() == [2.0]


def test_values_that_masks_bring(device):
    x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
    value = flow.tensor(3.0, requires_grad=True)  # of the host, wherever x is
    mask = flow.tensor([True, False], device=device)
    x.masked_fill(mask, value).sum().backward()
    assert value.grad.item() == 1 and x.grad.tolist() == [0, 1]
    with pytest.raises(flow.ShapeError, match=r"masked_fill\(\): value has shape \[2\]"):
        x.masked_fill(mask, x)


def test_powers_of_2(device):
    x = flow.tensor([1e-40, 1.0, 0.0], device=device)
    assert x.ldexp(flow.tensor([200], device=device)).isfinite().tolist() == [True, False, True]
    assert flow.ldexp(flow.tensor([3, 5]), flow.tensor([2, -1])).tolist() == [12, 2.5]
    assert flow.ldexp(flow.tensor([1.0]), 0.5).item() == pytest.approx(math.sqrt(2))
    power = flow.float_power(flow.tensor([2, 3]), flow.tensor([-1, 2]))
    assert power.dtype is flow.float64 and power.tolist() == [0.5, 9]


# Of operands of two dtypes: those of a form in place, and the values of self and the others.
MIXED = {
    "floats": ("add sub mul div fmod remainder floor_divide pow hypot atan2 copysign xlogy lerp "
               "addcmul addcdiv clamp", [1e4, 59904.0, 0.3, -7.0], [6e4, 1e5, 1e-9, 0.7]),
    "integers": ("add sub mul fmod remainder floor_divide gcd lcm bitwise_and bitwise_or "
                 "bitwise_xor bitwise_left_shift bitwise_right_shift addcmul clamp",
                 [100, -7, 5, 90], [300, 1000, 4, 129]),
}  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("kind", "own", "other"), [
    ("floats", "float16", "float32"), ("floats", "bfloat16", "float64"),
    ("floats", "float32", "float64"), ("floats", "float16", "bfloat16"),
    ("integers", "int8", "int64"), ("integers", "uint8", "int16"),
])  # fmt: skip
def test_in_place_computes_in_the_dtype_of_both(kind, own, other, grad, device):
    names, a, b = MIXED[kind]
    if grad and kind == "integers":
        pytest.skip("integers have no gradients")
    x = flow.tensor(np.abs(a) if own == "uint8" else a, dtype=getattr(flow, own), device=device)
    y = flow.tensor(b, dtype=getattr(flow, other), device=device)
    z = y.flip(0) % 50
    for name in names.split():
        operands = {"clamp": (z, y), "lerp": (y, z), "addcmul": (y, z), "addcdiv": (y, z)}
        leaf = x.detach().requires_grad_(grad)
        got = leaf.clone()
        kept = getattr(got, name + "_")(*operands.get(name, (y,)))
        want = getattr(flow, name)(leaf, *operands.get(name, (y,))).to(x.dtype)
        assert kept is got and got.dtype is x.dtype
        np.testing.assert_array_equal(host(got), host(want), err_msg=name)
        if grad and want.requires_grad:
            slopes = [flow.autograd.grad(t.sum(), leaf)[0] for t in (got, want)]
            np.testing.assert_array_equal(*map(host, slopes), err_msg=f"gradient of {name}")


def test_in_place_with_alpha_computes_in_the_dtype_of_both(device):
    x = flow.tensor([1.0, 2.0], dtype=flow.float16, device=device)
    y = flow.tensor([98304.0, -196608.0], device=device)
    assert x.add_(y, alpha=0.5).sub_(y, alpha=0.25).tolist() == [24576.0, -math.inf]


def test_in_place_keeps_the_dtype():
    x = flow.tensor([7, -7])
    x %= 4
    x <<= 2
    assert x.tolist() == [12, 4]
    for name in ("hypot_", "atan2_", "ldexp_", "div_"):
        with pytest.raises(flow.DTypeError, match=rf"^{name}\(\): the result has dtype float32"):
            getattr(x, name)(2)
    y = flow.tensor([2.0, 3.0], requires_grad=True) * 1
    y.clone().pow_(2).sum().backward()
    y = flow.tensor([2.0, 3.0])
    assert y.pow_(2).tolist() == [4, 9] and y.fmod_(5).tolist() == [4, 4]
    assert y.clip_(max=3).tolist() == [3, 3]
    assert y.arctan2_(3.0).tolist() == pytest.approx([math.pi / 4] * 2)


def ops_of(function, *args, **kwargs):
    """How many ops a call comes to."""
    with flow.profiler.profile() as p:
        function(*args, **kwargs)
    return sum(s.calls for s in p.stats())


OF_TWO_OPERANDS = ["add", "sub", "mul", "div", "pow", "fmod", "remainder", "floor_divide", "fmax",
                   "fmin", "maximum", "minimum", "hypot", "atan2", "logaddexp", "logaddexp2",
                   "xlogy", "xlog1py", "copysign", "ldexp", "heaviside"]  # fmt: skip
OF_THREE_OPERANDS = ["lerp", "addcmul", "addcdiv", "clamp"]


@pytest.mark.parametrize("name", [*OF_TWO_OPERANDS, *OF_THREE_OPERANDS])
def test_one_launch_forward_and_two_backward(name, device):
    function = getattr(flow, name)
    count = 3 if name in OF_THREE_OPERANDS else 2
    args = [flow.tensor([0.5, 1.5, 2.5], device=device) for _ in range(count)]
    assert ops_of(function, *args) == 1
    assert ops_of(function, args[0], *[0.75] * (count - 1)) == 1
    assert ops_of(function, *args, out=flow.empty(3, device=device)) <= 2  # and the copy
    if hasattr(flow.Tensor, f"{name}_"):
        assert ops_of(getattr(args[0].clone(), f"{name}_"), *args[1:]) == 1
    for i in range(count):
        given = [a.detach().requires_grad_(i == k) for k, a in enumerate(args)]
        y = function(*given)
        assert ops_of(flow.autograd.grad, [y], [given[i]], [flow.ones(3, device=device)]) <= 2
    x = args[0].detach().requires_grad_()
    y = function(x, *[0.75] * (count - 1))
    assert ops_of(flow.autograd.grad, [y], [x], [flow.ones(3, device=device)]) <= 2


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift",
                                  "logical_and", "logical_or", "logical_xor"])  # fmt: skip
def test_one_launch_of_integers(name, device):
    x, y = flow.tensor([4, 6], device=device), flow.tensor([6, 1], device=device)
    assert ops_of(getattr(flow, name), x, y) == 1
    assert ops_of(flow.add, x, y, alpha=3) == ops_of(flow.isclose, x, y) == 1


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", [flow.uint8, flow.int64])
def test_bool_beside_integers(name, dtype, device):
    function = getattr(flow, name)
    truths = flow.tensor([True, False, True], device=device)
    x = flow.tensor([3, 4, 2], dtype=dtype, device=device)
    for a, b in ((truths, x), (x, truths)):
        got = function(a, b)
        assert got.dtype == dtype
        assert got.tolist() == function(a.to(dtype), b.to(dtype)).tolist()
    with pytest.raises(flow.DTypeError, match="bool"):
        function(truths, truths)


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_", "rsub"])
def test_alpha_keeps_the_dtype(name, device):
    """As in PyTorch: of integers a fraction is refused, a whole one too; of bool it is a truth."""
    whole, parts = flow.tensor([1, 2], device=device), flow.tensor([1.0, 2.0], device=device)
    call = getattr(whole, name) if name.endswith("_") else lambda *a, **k: getattr(flow, name)(
        whole, *a, **k)  # fmt: skip
    for other in (whole, 3):
        for alpha in (1.5, 1.0):
            with pytest.raises(RuntimeError, match="alpha is .* takes no fraction"):
                call(other, alpha=alpha)
    assert whole.tolist() == [1, 2] and call(whole, alpha=2).dtype == flow.int64
    function = getattr(flow, name.removesuffix("_"))
    assert function(parts, parts, alpha=0.5).dtype == flow.float32
    assert function(whole, parts, alpha=0.5).dtype == flow.float32
    truths = flow.tensor([True, False], device=device)
    if "add" in name:
        for alpha, expected in ((2, [True, True]), (0, [False, True]), (True, [True, True])):
            y = flow.add(truths.logical_not(), truths, alpha=alpha)
            assert y.dtype == flow.bool and y.tolist() == expected
        y = flow.add(truths, True, alpha=False)
        assert y.dtype == flow.bool and y.tolist() == [True, False]
