# SPDX-License-Identifier: Apache-2.0
"""One op over many tensors (ops/multi_tensor.cpp), against its formula in NumPy float64."""

import math

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(0)
# Around a pack (4 elements), a block's turn (1024), a piece of a norm on the CPU (4096) and a chunk
# (16384 elements) of the CUDA kernel; beyond the 448 tensors of one launch.
SIZES = [0, 1, 3, 4, 5, 1023, 1025, 4097, 16383, 16384, 16385, 40001] + [2] * 450
WIDE = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-13}
LR, DECAY, SCALE = 0.05, 0.1, 4.0


def drawn(dtype, device, sizes=SIZES, positive=False):
    """Tensors at odd offsets of their storage."""
    xs = [tensor(RNG.standard_normal(n + 1), dtype, device)[1:] for n in sizes]
    return [x.abs() for x in xs] if positive else xs


def sgd(p, g, a, momentum=0.0, dampening=0.0, nesterov=False, maximize=False, first=False):
    g = (-g if maximize else g) / SCALE + DECAY * p
    if a is not None:
        a = g if first else momentum * a + (1 - dampening) * g
        g = g + momentum * a if nesterov else a
    return p - LR * g, [a]


def rmsprop(p, g, a, b=None, c=None, momentum=0.0, maximize=False):
    g = (-g if maximize else g) / SCALE + DECAY * p
    a = 0.9 * a + 0.1 * g * g
    spread = a
    if b is not None:
        b = b + 0.1 * (g - b)
        spread = a - b * b
    step = g / (np.sqrt(spread) + 1e-2)
    if c is not None:
        step = c = momentum * c + step
    return p - LR * step, [a, b, c]


def adadelta(p, g, a, b, maximize=False):
    g = (-g if maximize else g) / SCALE + DECAY * p
    a = 0.8 * a + 0.2 * g * g
    step = np.sqrt(b + 1e-2) / np.sqrt(a + 1e-2) * g
    return p - LR * step, [a, 0.8 * b + 0.2 * step * step]


def adagrad(p, g, a, maximize=False):
    g = (-g if maximize else g) / SCALE + DECAY * p
    a = a + g * g
    return p - LR / (1 + 2 * 0.3) * g / (np.sqrt(a) + 1e-2), [a]


def lion(p, g, a, maximize=False):
    g = (-g if maximize else g) / SCALE
    moved = p * (1 - LR * DECAY) - LR * np.sign(0.8 * a + 0.2 * g)
    return moved, [0.95 * a + 0.05 * g]


CASES = {
    "sgd": (sgd, [None], {}),
    "sgd momentum": (sgd, [False], {"momentum": 0.9, "dampening": 0.2}),
    "sgd nesterov": (sgd, [False], {"momentum": 0.9, "nesterov": True, "maximize": True}),
    "sgd first": (sgd, [False], {"momentum": 0.9, "dampening": 0.5, "first": True}),
    "rmsprop": (rmsprop, [True, None, None], {}),
    "rmsprop centered": (rmsprop, [True, "mean", False], {"momentum": 0.7, "maximize": True}),
    "adadelta": (adadelta, [True, True], {"maximize": True}),
    "adagrad": (adagrad, [True], {"maximize": True}),
    "lion": (lion, [False], {}),
}
NUMBERS = {"sgd": {}, "rmsprop": {"alpha": 0.9, "eps": 1e-2},
           "adadelta": {"rho": 0.8, "eps": 1e-2},
           "adagrad": {"lr_decay": 0.3, "eps": 1e-2, "step": 3},
           "lion": {"beta1": 0.8, "beta2": 0.95}}  # fmt: skip

COUNTED = ("rmsprop", "adadelta", "adagrad")  # they have a list of steps


def call(name, lists, **options):
    """The op of a case: its lists, absent ones empty, the steps where it has them."""
    more = [[]] if name in COUNTED else []
    given = {"lr": LR, "weight_decay": DECAY, **NUMBERS[name], **options}
    getattr(flow._C, name + "_")(*lists, *more, **given)


@pytest.mark.parametrize("master", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("case", CASES)
def test_all_tensors_of_a_call_are_stepped(device, case, dtype, master):
    formula, kinds, options = CASES[case]
    kind, name = WIDE[dtype], case.split()[0]
    params, grads = drawn(dtype, device), drawn(dtype, device)
    states = [[] if k is None else drawn(kind, device, positive=k is True) for k in kinds]
    if "mean" in kinds:  # a mean of the gradients is not above the root of their squares' mean
        states[1] = [x.sqrt() * 0.5 for x in states[0]]
    masters = [p.to(None, getattr(flow, kind)) * 1.001 for p in params] if master else []
    before = [[host(x).copy() for x in xs] for xs in (params, grads, masters, *states)]
    scale = flow.tensor(SCALE, device=device)
    call(name, (params, grads, *states, masters), grad_scale=scale, **options)
    close = {"rtol": 2 * TOLERANCE[dtype], "atol": 2 * TOLERANCE[dtype]}
    exact = {"rtol": 5 * TOLERANCE[kind], "atol": 5 * TOLERANCE[kind]}
    for i in range(len(SIZES)):
        start = before[2 if master else 0][i]
        held = [xs[i] if xs else None for xs in before[3:]]
        if case == "lion":  # where rounding decides the sign, nothing is asked
            way = np.abs(0.8 * held[0] + 0.2 * before[1][i] / SCALE)
            params[i], start = params[i][way > 1e-6], start[way > 1e-6]
            if master:
                masters[i] = masters[i][way > 1e-6]
            p, after = lion(start, before[1][i][way > 1e-6], held[0][way > 1e-6], **options)
            after = [lion(0 * held[0], before[1][i], held[0])[1][0]]
        else:
            p, after = formula(start, before[1][i], *held, **options)
        np.testing.assert_allclose(host(params[i]), p, **close)
        if master:
            np.testing.assert_allclose(host(masters[i]), p, **exact)
        for xs, expected in zip(states, after, strict=False):
            if xs:
                np.testing.assert_allclose(host(xs[i]), expected, **exact)


@pytest.mark.parametrize("name", NUMBERS)
def test_the_device_knows_lr_and_whether_to_step(device, name):
    kinds = CASES[name][1]
    params, grads = drawn("float32", device), drawn("float32", device)
    states = [[] if k is None else drawn("float32", device, positive=True) for k in kinds]
    same = [[x.clone() for x in xs] for xs in (params, *states)]
    found = flow.tensor(1.0, device=device)
    counts = [flow.tensor(2.0, dtype=flow.float64, device=device) for _ in params]
    more = [counts] if name in COUNTED else []
    known = {"lr_tensor": flow.tensor(LR, dtype=flow.float64, device=device), "lr": 123.0,
             "weight_decay": DECAY, "found_inf": found, **NUMBERS[name]}  # fmt: skip
    step = getattr(flow._C, name + "_")
    step(params, grads, *states, [], *more, **known)
    for xs, was in zip((params, *states), same, strict=True):
        for x, y in zip(xs, was, strict=True):
            np.testing.assert_array_equal(host(x), host(y))
    assert [c.item() for c in counts] == [2.0] * len(SIZES)
    found.zero_()
    step(params, grads, *states, [], *more, **known)
    call(name, (same[0], grads, *same[1:], []))  # by the numbers of the call
    if more:
        assert [c.item() for c in counts] == [3.0] * len(SIZES)
    for x, y in zip(params, same[0], strict=True):
        np.testing.assert_array_equal(host(x), host(y))


@pytest.mark.parametrize("dtype", WIDE)
def test_what_is_done_to_all_gradients(device, dtype):
    close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    xs, ends = drawn(dtype, device), drawn(dtype, device)
    before, other = [host(x).copy() for x in xs], [host(x).copy() for x in ends]
    flow._C.multi_scale_(xs, 0.5, flow.tensor(3.0, device=device))
    for x, was in zip(xs, before, strict=True):
        np.testing.assert_allclose(host(x), 1.5 * was, **close)
    for weight in (0.25, 0.875):
        before = [host(x).copy() for x in xs]
        flow._C.multi_lerp_(xs, ends, weight)
        for x, was, end in zip(xs, before, other, strict=True):
            np.testing.assert_allclose(host(x), was + weight * (end - was), **close)
    before = [host(x).copy() for x in xs]
    flow._C.multi_clamp_(xs, -0.5, 0.25)
    for x, was in zip(xs, before, strict=True):
        np.testing.assert_array_equal(host(x), np.clip(was, -0.5, 0.25))
    flow._C.multi_fill_(xs, 0.75)
    assert all((host(x) == 0.75).all() for x in xs)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_unscale_divides_and_raises_flags(device, dtype, bad):
    xs, scale = drawn(dtype, device), flow.tensor(8.0, device=device)
    before = [host(x).copy() for x in xs]
    flag = flow.zeros([], device=device)
    flow._C.multi_unscale_(xs, [flag] * len(xs), scale)
    for x, was in zip(xs, before, strict=True):
        least = 6e-8 if dtype == "float16" else 0  # the distance of the smallest numbers
        np.testing.assert_allclose(host(x), was / 8, rtol=TOLERANCE[dtype], atol=least)
    assert flag.item() == 0
    for place in (5, 10, len(xs) - 1):  # one element of a small, of a large, of the last tensor
        flags = [flow.zeros([], device=device) for _ in xs]
        saved = xs[place][-1].clone()
        xs[place][-1] = bad
        flow._C.multi_unscale_(xs, flags)
        assert [f.item() for f in flags] == [float(i == place) for i in range(len(xs))]
        xs[place][-1] = saved


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", WIDE)
def test_norms_of_all_tensors(device, dtype, p):
    xs = drawn(dtype, device)
    found = flow._C.multi_norm(xs, p)
    assert found.dtype is getattr(flow, WIDE[dtype]) and found.shape == (len(xs),)
    expected = [0.0 if x.numel() == 0 else np.linalg.norm(host(x), p) for x in xs]
    rtol = 1e-13 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(host(found), expected, rtol=rtol)
    np.testing.assert_array_equal(host(found), host(flow._C.multi_norm(xs, p)))  # the same bits
    xs[11][40000] = float("nan")
    found = host(flow._C.multi_norm(xs, p))
    assert np.isnan(found[11]) and np.isfinite(np.delete(found, 11)).all()


def test_the_scale_of_a_loss(device):
    def number(x):
        return flow.tensor(x, device=device)

    scale, bad, count = number(8.0), number(0.0), number(0.0)
    seen = []
    for flag in (0, 0, 0, 1, 0, 0, 0, 0):
        bad.fill_(flag)
        flow._C.update_scale_(scale, bad, count, growth=2.0, backoff=0.25, interval=3)
        seen.append((scale.item(), count.item()))
    assert seen == [(8, 1), (8, 2), (16, 0), (4, 0), (4, 1), (4, 2), (8, 0), (8, 1)]
    scale.fill_(3e38)  # what would overflow does not grow
    flow._C.update_scale_(scale, number(0.0), number(2.0), interval=3)
    assert scale.item() == np.float32(3e38)


def bad_calls():
    x, y, flag = flow.ones(3), flow.ones(4), flow.tensor(0.0)
    f = flow._C
    yield ValueError, "params.*empty", f.sgd_, ([], [], [], []), {}
    yield ValueError, "grads.*list of 1.*2", f.lion_, ([x, x], [x], [x, x], []), {}
    yield flow.ShapeError, r"grads\[0\]", f.sgd_, ([x], [y], [], []), {}
    yield flow.DTypeError, r"momentum_buffers\[0\]", f.sgd_, ([x], [x], [x.double()], []), {}
    yield flow.DTypeError, "int64", f.multi_fill_, ([x.long()], 0.0), {}
    yield flow.DTypeError, r"steps\[0\]", f.adagrad_, ([x], [x], [x], [], [flag]), {}
    yield flow.ShapeError, r"flags\[0\]", f.multi_unscale_, ([x], [x]), {}
    yield flow.DTypeError, r"tensors\[1\]", f.multi_norm, ([x, x.double()],), {}
    yield ValueError, "p is 0", f.multi_norm, ([x], 0.0), {}
    yield ValueError, "p is nan", f.multi_norm, ([x], float("nan")), {}
    yield flow.ShapeError, "found_inf", f.sgd_, ([x], [x], [], []), {"found_inf": x}
    yield RuntimeError, "device", f.multi_scale_, ([x, x.to("meta")], 2.0), {}


@pytest.mark.parametrize("case", range(12))
def test_what_does_not_go_together_is_refused(case):
    error, text, function, given, options = list(bad_calls())[case]
    with pytest.raises(error, match=text):
        function(*given, **options)


def test_a_leaf_that_records_is_not_changed():
    x = flow.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="tensors requires grad"):
        flow._C.multi_scale_([x], 2.0)
    assert x.tolist() == [1, 1, 1]


BAD_BOUNDS = [(math.nan, ValueError), (-1.0, ValueError), ("a", TypeError), (None, TypeError)]


@pytest.mark.parametrize(("bound", "kind"), BAD_BOUNDS)
def test_what_no_gradient_can_be_clipped_to_changes_nothing(bound, kind):
    p = flow.ones(3, requires_grad=True)
    (2 * p).sum().backward()
    with pytest.raises(kind, match=r"clip_grad_norm_\(\): max_norm "):
        flow.nn.utils.clip_grad_norm_([p], bound)
    with pytest.raises(kind, match=r"clip_grad_value_\(\): clip_value "):
        flow.nn.utils.clip_grad_value_([p], bound)
    if bound != -1.0:
        with pytest.raises(kind, match=r"clip_grad_norm_\(\): norm_type "):
            flow.nn.utils.clip_grad_norm_([p], 1.0, bound)
    assert p.grad.tolist() == [2, 2, 2]
