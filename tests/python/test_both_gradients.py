# SPDX-License-Identifier: Apache-2.0
"""mul_backward and prelu_backward: both gradients in one pass, one of them summed as it passes."""

import numpy as np
import pytest
from numerics import FLOATS, HALVES, flow, host, rounded, tensor

RNG = np.random.default_rng(5)
SUMS = {"float16": 1e-6, "bfloat16": 1e-6, "float32": 1e-6, "float64": 1e-14}  # of the terms' sizes

# a, and b, which is repeated: a number; columns of fewer and more elements than a thread, a warp's
# packs and a block take, that are whole packs or not; runs of one b around 32, from which on they
# are rows, and around what lanes of a warp take; a few long rows, and very many short ones; as many
# rows of columns as leave a part of a batch; an operand as large as the other.
SHAPES = [
    ((5,), (1,)), ((3, 5), ()), ((100003,), ()), ((7, 64), (64,)), ((130, 129), (129,)),
    ((1000, 4), (4,)), ((4097, 128), (128,)), ((40, 9001), (9001,)), ((64, 8, 31), (8, 1)),
    ((64, 8, 32), (8, 1)), ((9, 33, 33), (33, 1)), ((3, 2, 40000), (2, 1)),
    ((4, 6000, 33), (6000, 1)), ((9000, 72), (9000, 1)), ((3, 4, 5, 6), (4, 5, 1)),
    ((6, 1, 70), (1, 1, 70)), ((70, 3), (70, 3)), ((4099,), (4099,)),
]  # fmt: skip


def call(name, dy, a, b):
    return getattr(flow.ops, f"{name}_backward")(dy, a, b)


def expected(name, dy, a, b, dtype):
    """da as it is rounded; db, and the sum of its terms' sizes."""
    with np.errstate(all="ignore"):
        wide = np.float64 if dtype == "float64" else np.float32
        product = (dy.astype(wide) * b.astype(wide)).astype(np.float64)
        terms = dy * a
        if name == "prelu":
            product, terms = np.where(a > 0, dy, product), np.where(a > 0, 0, terms)
        extra = a.ndim - b.ndim
        repeated = tuple(d for d in range(a.ndim) if d < extra or b.shape[d - extra] == 1)
        sums = [t.sum(repeated, keepdims=True).reshape(b.shape) for t in (terms, np.abs(terms))]
        return rounded(product, dtype), *sums


def check(name, dtype, arrays, device, offset=0):
    made = []
    for values in arrays:
        flat = tensor(np.concatenate([np.zeros(offset), values.reshape(-1)]), dtype, device)
        made.append(flat[offset:].reshape(values.shape))
    da, db = call(name, *made)
    product, sums, sizes = expected(name, *[host(t) for t in made], dtype)
    np.testing.assert_array_equal(host(da), product)
    number = ~np.isnan(product)
    np.testing.assert_array_equal(np.signbit(host(da))[number], np.signbit(product)[number])
    got, finite = host(db), np.isfinite(sums)
    np.testing.assert_array_equal(got[~finite], sums[~finite])
    step = {"float16": 2**-11, "bfloat16": 2**-8}.get(dtype, 0)
    most = SUMS[dtype] * sizes[finite] + step * np.abs(sums[finite]) + (6e-8 if step else 0)
    assert (np.abs(got[finite] - sums[finite]) <= most).all()
    assert not np.isnan(got[finite]).any()


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["mul", "prelu"])
def test_values(name, dtype, shapes, device):
    whole, part = shapes
    arrays = [RNG.standard_normal(s) for s in (whole, whole, part)]
    for offset in (0, 1):
        check(name, dtype, arrays, device, offset)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["mul", "prelu"])
@pytest.mark.parametrize("part", [(40,), (64, 1), ()], ids=str)
def test_zeros_infinities_and_nan(name, dtype, part, device):
    """Signs of zero stay; what is not finite stays in its column, row or sum."""
    dy, a = RNG.standard_normal((2, 64, 40))
    b = RNG.standard_normal(part)
    dy[::3, ::2], a[::2, 1::2], a[1::4, 0::3] = -0.0, -0.0, 0.0
    a[5, 7], dy[6, 8], a[7, 9], dy[8, 10] = np.nan, np.inf, -np.inf, np.nan
    check(name, dtype, [dy, a, b], device)
    b = np.full(part, -0.0)
    check(name, dtype, [np.abs(RNG.standard_normal((64, 40))), a, b], device)


@pytest.mark.parametrize("name", ["mul", "prelu"])
def test_of_nothing_sums_are_zero(name, device):
    for whole, part in [((0, 4), (4,)), ((3, 0), (3, 1)), ((0,), ()), ((3, 0), (0,))]:
        dy, a, b = [flow.ones(s, device=device) for s in (whole, whole, part)]
        da, db = call(name, dy, a, b)
        assert da.shape == whole and host(db).tolist() == np.zeros(part).tolist()


def test_any_number_of_threads_gives_the_same_bits(threads):
    rng = np.random.default_rng(1)
    for whole, part in [((300, 5000), (5000,)), ((40, 3, 9000), (3, 1)), ((200000,), ())]:
        given = [tensor(rng.standard_normal(s), "float32") for s in (whole, whole, part)]
        found = [host(t) for t in call("prelu", *given)]
        flow.set_num_threads(1)
        for t, one in zip(found, call("prelu", *given), strict=True):
            np.testing.assert_array_equal(t, host(one))
        flow.set_num_threads(threads)


# As a, b, and whether each may be the larger one.
USES = {
    "mul": (lambda a, b: a * b, True),
    "prelu": (lambda a, b: flow.nn.functional.prelu(a, b.reshape(-1)), False),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("part", [(1,), (70,)], ids=str)
@pytest.mark.parametrize("name", USES)
def test_backward_is_one_op(name, part, dtype, device):
    """Where dy is no view; the same gradients as of one operand at a time."""
    use, exchanges = USES[name]
    values = [RNG.standard_normal(s) for s in ((9, 70), (9, 70), part)]
    dy, a, b = [tensor(v, dtype, device) for v in values]
    pairs = [(a, b), (b, a)] if exchanges else [(a, b)]
    for first, second in pairs:
        inputs = [first.clone().requires_grad_(), second.clone().requires_grad_()]
        out = use(*inputs)
        record = flow._oneflow_lite.record_ops
        names = [n for n, _ in record(lambda: out.backward(dy))]  # noqa: B023
        # A gradient that is a view is copied, be it as small as b. On the CPU 16 bits take two ops.
        two = device == "cpu" and dtype in HALVES
        assert ([n for n in names if n not in ("view", "cast")] == [f"{name}_backward"]) != two
        for i in range(2):
            alone = [first.clone(), second.clone()]
            alone[i].requires_grad_()
            use(*alone).backward(dy)
            wide, one = host(inputs[i].grad), host(alone[i].grad)
            bound = {"float16": 4e-3, "bfloat16": 4e-2}.get(dtype, 1e-5)  # terms are rounded there
            np.testing.assert_allclose(wide, one, rtol=bound, atol=bound * 8)


def test_gradients_that_are_differentiated_are_composed(device):
    for name, (use, _) in USES.items():
        a, b = [tensor(RNG.standard_normal(s), "float64", device) for s in ((3, 70), (70,))]
        inputs = [a.requires_grad_(), b.requires_grad_()]
        grads = flow.autograd.grad(use(*inputs).sum(), inputs, create_graph=True)
        assert all(g.requires_grad for g in grads), name
        small = [a.detach()[:, :3].clone(), b.detach()[:3].clone()]
        assert flow.autograd.gradgradcheck(use, [t.requires_grad_() for t in small])


# The larger operand of x * y is a view, both are repeated, y has dims apart or another dtype.
OTHERS = {
    "view": ((70, 70), (70,), True, "float32"),
    "outer product": ((70, 1), (1, 70), False, "float32"),
    "dims apart": ((3, 70, 4), (3, 1, 4), False, "float32"),
    "dtype": ((70, 70), (70,), False, "float64"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_operands_that_one_pass_does_not_take(case, device):
    left, right, view, dtype = OTHERS[case]
    x = tensor(RNG.standard_normal(left), "float32", device)
    x = (x.T if view else x).requires_grad_()
    y = tensor(RNG.standard_normal(right), dtype, device).requires_grad_()
    out = x * y
    dy = tensor(RNG.standard_normal(out.shape), dtype, device)
    names = [n for n, _ in flow._oneflow_lite.record_ops(lambda: out.backward(dy))]
    assert "mul_backward" not in names
    for t, other in ((x, y), (y, x)):
        terms = host(dy) * host(other)
        lead = terms.ndim - t.ndim
        axes = tuple(d for d in range(terms.ndim) if d < lead or t.shape[d - lead] == 1)
        wanted = terms.sum(axes).reshape(tuple(t.shape))
        np.testing.assert_allclose(host(t.grad), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", HALVES)
def test_a_sum_of_16_bits_is_rounded_once(dtype, device):
    """2048 and more ones: of terms that are added in 16 bits, the sum would stay at 256 or 2048."""
    dy, a = [flow.ones(5000, 64, dtype=getattr(flow, dtype), device=device) for _ in range(2)]
    _, db = call("mul", dy, a, flow.ones(64, dtype=getattr(flow, dtype), device=device))
    assert (host(db) == rounded(np.array(5000.0), dtype)).all()


def test_errors(device):
    x, row = flow.ones(3, 4, device=device), flow.ones(4, device=device)
    with pytest.raises(flow.ShapeError, match=r"mul_backward\(\): a has shape \[4\]"):
        call("mul", x, row, row)
    with pytest.raises(flow.ShapeError, match=r"b has shape \[3\].*neighbouring dims of \[3, 4\]"):
        call("mul", x, x, flow.ones(3, device=device))
    with pytest.raises(flow.DTypeError, match="b"):
        call("mul", x, x, row.double())
