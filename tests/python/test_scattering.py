# SPDX-License-Identifier: Apache-2.0
"""scatter with a reduction, and scatter_reduce, against loops in NumPy."""

import numpy as np
import pytest
from numerics import INTEGERS, flow, host, tensor

JOINS = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum,
         "amin": np.minimum}  # fmt: skip
RNG = np.random.default_rng(0)
# Shape of the input, dim, shape of the index: one element, many in one place, gaps in other dims.
PLACES = [((5,), 0, (9,)), ((4, 3), 0, (7, 2)), ((4, 3), -1, (3, 33)), ((2, 3, 4), 1, (2, 9, 3)),
          ((1, 2), 0, (64, 2)), ((3,), 0, (1,)), ((2, 3), 1, (2, 0))]  # fmt: skip
by_places = pytest.mark.parametrize("shape, dim, index_shape", PLACES)


def reference(x, dim, index, src, reduce, include_self):
    join = JOINS[reduce]
    y, count = x.copy(), np.full(x.shape, int(include_self))
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        to = tuple(to)
        y[to] = join(y[to], src[at]) if count[to] else src[at]
        count[to] += 1
    if reduce != "mean":
        return y
    count = np.maximum(count, 1)
    return y // count if y.dtype.kind == "i" else y / count


def draw(shape, dim, index_shape, integers=False):
    x, src = (np.round(RNG.uniform(-3, 3, s), 0 if integers else 1) for s in (shape, index_shape))
    index = RNG.integers(0, shape[dim], index_shape)
    return (x.astype(np.int64), src.astype(np.int64), index) if integers else (x, src, index)


@by_places
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", JOINS)
def test_scatter_reduce(shape, dim, index_shape, reduce, include_self, device):
    for dtype in ("float64", "float32", "int64"):
        x, src, index = draw(shape, dim, index_shape, dtype == "int64")
        args = (tensor(x, dtype, device), dim, tensor(index, "int64", device),
                tensor(src, dtype, device), reduce)  # fmt: skip
        got = flow.scatter_reduce(*args, include_self=include_self)
        expected = reference(x, dim, index, src, reduce, include_self)
        assert got.dtype.name == dtype
        bound = 1e-4 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)
        in_place = args[0].scatter_reduce_(*args[1:], include_self=include_self)
        assert in_place is args[0] and in_place.tolist() == got.tolist()


# From 2^15 elements on a line is sorted by its places on CUDA, where 8 to 128 neighbours are one
# thread's: one place of all, few places, and runs that end within a thread's.
@pytest.mark.parametrize("size", [1, 7, 1000, 50_000])
@pytest.mark.parametrize("n", [(1 << 15) - 1, 1 << 15, 300_007])
def test_a_long_line(n, size, device):
    index = RNG.integers(0, size, n)
    index[: n // 3] = size // 2
    for dtype in ("float64", "float32", "int64", "int8"):
        powers = RNG.choice([-1, 1, 3] if dtype.startswith("int") else [-1.0, 0.5, 1.0, 2.0], n)
        values = RNG.integers(-100, 100, n) if dtype.startswith("int") else RNG.normal(size=n)
        if dtype == "float32":
            powers = np.sign(powers)
            values[n // 2], values[n // 4] = np.nan, -np.inf
        values = values.astype(dtype)
        for reduce, src in (("prod", powers.astype(dtype)), ("amax", values), ("amin", values)):
            expected = np.ones(size, dtype)
            with np.errstate(invalid="ignore"):
                JOINS[reduce].at(expected, index, src)
            x, places = (
                flow.ones(size, device=device).to(getattr(flow, dtype)),
                tensor(index, "int64", device),
            )
            got = x.scatter_reduce(0, places, tensor(src, dtype, device), reduce)
            np.testing.assert_array_equal(host(got), expected)


@by_places
@pytest.mark.parametrize("reduce, same", [("add", "sum"), ("multiply", "prod")])
def test_scatter_with_a_reduction(shape, dim, index_shape, reduce, same, device):
    x, src, index = draw(shape, dim, index_shape)
    args = (dim, tensor(index, "int64", device))
    source = tensor(src, "float64", device)
    start = tensor(x, "float64", device)
    for made in (lambda s: flow.scatter(start, *args, s, reduce=reduce),
                 lambda s: start.clone().scatter_(*args, s, reduce=reduce)):  # fmt: skip
        expected = reference(x, dim, index, src, same, True)
        np.testing.assert_allclose(host(made(source)), expected, rtol=1e-12)
        expected = reference(x, dim, index, np.full(index_shape, 1.5), same, True)
        np.testing.assert_allclose(host(made(1.5)), expected, rtol=1e-12)
    assert start.tolist() == x.tolist()
    assert start.scatter(*args, value=2.0).tolist() == start.scatter(*args, 2.0).tolist()


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", JOINS)
def test_gradients(reduce, include_self):
    x, src, index = (
        RNG.standard_normal((4, 3)),
        RNG.standard_normal((9, 2)),
        RNG.integers(0, 4, (9, 2)),
    )
    at = flow.tensor(index)

    def function(x, src):
        return flow.scatter_reduce(x, 0, at, src, reduce, include_self=include_self)

    inputs = [flow.tensor(t, requires_grad=True) for t in (x, src)]
    assert flow.autograd.gradcheck(function, inputs)


def test_a_product_with_zeros_has_a_gradient():
    x, src = flow.ones(2, requires_grad=True), flow.tensor([0.0, 3.0, 0.0], requires_grad=True)
    flow.scatter_reduce(x, 0, flow.tensor([0, 0, 1]), src, "prod").sum().backward()
    assert src.grad.tolist() == [3, 0, 1] and x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("include_self", [True, False])
def test_a_product_beside_an_infinite_one_has_its_own_gradient(include_self):
    """Places are neighbours while they are multiplied; none has a part in another's gradient."""
    x = flow.tensor([2.0, 3.0, np.inf], requires_grad=True)
    src = flow.tensor([5.0, -np.inf, 2.0, 7.0, np.nan], requires_grad=True)
    at = flow.tensor([0, 0, 1, 1, 2])
    flow.scatter_reduce(x, 0, at, src, "prod", include_self=include_self).sum().backward()
    assert src.grad[1:4].tolist() == ([10, 21, 6] if include_self else [5, 7, 2])
    assert x.grad[1].item() == (14 if include_self else 0)


def test_equal_extremes_share_the_gradient():
    x, src = flow.ones(2, requires_grad=True), flow.ones(3, requires_grad=True)
    y = flow.scatter_reduce(x, 0, flow.tensor([0, 0, 0]), src, "amax")
    y.backward(flow.tensor([8.0, 1.0]))
    assert src.grad.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 1]


def test_infinite_and_missing_numbers(device):
    x = flow.zeros(3, device=device)
    at = flow.tensor([0, 0, 1, 1], device=device)
    src = flow.tensor([np.inf, 1.0, np.nan, 1.0], device=device)
    y = flow.scatter_reduce(x, 0, at, src, "amax")
    assert y[0].item() == np.inf and y[1].isnan() and y[2].item() == 0


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_extremes_are_the_same_with_gradients(reduce, device):
    most = float(np.finfo(np.float32).max)
    x = flow.tensor([1.0, np.nan, 3.0, np.inf, most, np.nan], device=device)
    at = flow.tensor([0, 0, 2, 2, 4, 4, 3], device=device)
    src = flow.tensor([2.0, np.nan, np.inf, 5.0, most, most, -np.inf], device=device)
    for include_self in (True, False):
        want = flow.scatter_reduce(x, 0, at, src, reduce, include_self=include_self)
        a, b = x.clone().requires_grad_(), src.clone().requires_grad_()
        y = flow.scatter_reduce(a, 0, at, b, reduce, include_self=include_self)
        np.testing.assert_array_equal(host(y), host(want))  # a NaN's bits are a device's own
        dx, dsrc = flow.autograd.grad(y, [a, b], flow.ones_like(y))
        assert dx[1].item() == dx[5].item() == 1  # nothing meets them
        ties = 3 if include_self else 2
        assert dsrc[4].item() == dsrc[5].item() == pytest.approx(1 / ties)


@pytest.mark.parametrize("dtype", INTEGERS + ("bool",))
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_integers_and_truths(reduce, include_self, dtype, device):
    """Also at the ends of the dtype, which are what nothing else is joined to; products wrap."""
    info = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.array([info[0], info[1], 1, info[0]], dtype)
    src = np.array([info[1], info[0], 1, 0, info[1], info[1]], dtype)
    index = np.array([0, 1, 2, 2, 1, 3])
    args = flow.tensor(index, device=device), flow.tensor(src, device=device), reduce
    got = flow.tensor(x, device=device).scatter_reduce(0, *args, include_self=include_self)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            got.cpu().numpy(), reference(x, 0, index, src, reduce, include_self)
        )


@pytest.mark.parametrize("layout", ["rows", "columns", "expanded"])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_many_columns_of_any_layout(reduce, layout, device):
    """Threads share the columns, and take them one by one or side by side."""
    x, src = RNG.uniform(0.9, 1.1, (40, 700)), RNG.uniform(0.9, 1.1, (90, 700))
    index = RNG.integers(0, 40, (90, 1 if layout == "expanded" else 700))
    at = flow.tensor(index, device=device).expand(90, 700)
    of_x, of_src = flow.tensor(x, device=device), flow.tensor(src, device=device)
    if layout == "columns":
        at, of_src = at.t().contiguous().t(), of_src.t().contiguous().t()
    got = of_x.scatter_reduce(0, at, of_src, reduce)
    index = np.broadcast_to(index, src.shape)
    np.testing.assert_allclose(host(got), reference(x, 0, index, src, reduce, True), rtol=1e-12)


def test_what_is_not_recorded_is_the_same(device):
    x, src, index = (tensor(t, k, device) for t, k in zip(
        draw((5, 4), 0, (30, 4)), ("float64", "float64", "int64"), strict=True))  # fmt: skip
    for reduce in ("prod", "amax", "amin"):
        want = flow.scatter_reduce(x, 0, index, src, reduce)
        recorded = flow.scatter_reduce(x.clone().requires_grad_(), 0, index, src, reduce)
        np.testing.assert_allclose(host(recorded), host(want), rtol=1e-14)
        with flow.no_grad():
            got = flow.scatter_reduce(x.clone().requires_grad_(), 0, index, src, reduce)
        assert not got.requires_grad and got.tolist() == want.tolist()


def test_16_bits_are_rounded_once(device):
    for dtype in ("float16", "bfloat16"):
        src = tensor(RNG.uniform(0.9, 1.1, 300), dtype, device)
        start, at = tensor([1.0], dtype, device), flow.zeros(300, dtype=flow.int64, device=device)
        for reduce in ("sum", "prod", "mean"):
            got = flow.scatter_reduce(start, 0, at, src, reduce)
            exact = flow.scatter_reduce(start.double(), 0, at, src.double(), reduce)
            eps = {"float16": 1e-3, "bfloat16": 8e-3}[dtype]
            np.testing.assert_allclose(host(got), host(exact), rtol=0.51 * eps)


def test_errors():
    x, at = flow.zeros(3), flow.tensor([0, 1])
    for call, kind, text in (
        (lambda: x.scatter(0, at, 1.0, reduce="max"), ValueError, '"add" or "multiply"'),
        (lambda: x.scatter_reduce(0, at, flow.ones(2), "max"), ValueError, '"amax" or "amin"'),
        (lambda: x.scatter(0, at), TypeError, "takes src or value"),
        (lambda: x.scatter(0, at, 1.0, value=2.0), TypeError, "takes src or value"),
        (lambda: flow.scatter_reduce(x, 0, at, at, "sum"), flow.DTypeError, "src has dtype int64"),
        (lambda: flow.scatter_reduce(x, 2, at, flow.ones(2), "sum"), IndexError, "dim 2"),
        (lambda: flow.scatter_reduce(x, 0, at + 2, flow.ones(2), "prod"), IndexError, "index 3"),
        (lambda: x.scatter_reduce(0, at, flow.ones(1), "prod"), ValueError, "src has shape [1]"),
        (lambda: flow.scatter([0.0], 0, at, 1.0), TypeError, "'input' must be Tensor, not list"),
    ):  # fmt: skip
        with pytest.raises(kind) as raised:
            call()
        assert text in str(raised.value)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x.scatter_(0, at, 1.0, reduce="add")


WRITES = {
    "scatter_": lambda x, i, v: x.scatter_(1, i, v),
    "scatter_ number": lambda x, i, v: x.scatter_(1, i, 2.0),
    "scatter_add_": lambda x, i, v: x.scatter_add_(1, i, v),
    "scatter_reduce_": lambda x, i, v: x.scatter_reduce_(1, i, v, "amax"),
    "index_add_": lambda x, i, v: x.index_add_(1, i[0], v),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_dim_of_size_0_has_no_place(name, device):
    x, at, v = (t.to(device) for t in (flow.zeros(3, 0), flow.tensor([[5], [1], [0]]),
                                       flow.ones(3, 1)))  # fmt: skip
    if device == "cpu" or name != "index_add_":  # whose places a GPU does not look at
        with pytest.raises(IndexError):
            WRITES[name](x, at, v)
    WRITES[name](x, at[:, :0], v[:, :0])


# On the CPU places are looked at first; a GPU leaves out those that are outside.
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("across", [False, True])
def test_nothing_is_written_where_one_place_is_outside(name, across):
    for rows, columns, n in ((2, 5, 2), (3, 5000, 4000), (300, 9, 9)):
        index = np.arange(rows * n).reshape(rows, n) % columns
        index[-1, -1] = index[0, -1] = columns
        x, at, v = flow.zeros(rows, columns), flow.tensor(index), flow.ones(rows, n)
        if across:
            at = at.transpose(0, 1).contiguous().transpose(0, 1)
        with pytest.raises(IndexError, match=f"{columns} is out of range"):
            WRITES[name](x, at, v)
        assert not x.any()


# Columns on both sides of what one thread reads on CUDA, an index that is repeated, and columns
# that lie across.
LONG = [((700,), 0, (511,)), ((700,), 0, (5000,)), ((40, 3), 0, (600, 3)),
        ((3, 40), 1, (3, 1200)), ((2, 30, 4), 1, (2, 700, 3)), ((40000,), 0, (520,))]  # fmt: skip


@pytest.mark.parametrize("shape, dim, index_shape", LONG)
@pytest.mark.parametrize("layout", ["dense", "expanded", "transposed"])
def test_the_last_of_those_that_go_to_one_place_stays(shape, dim, index_shape, layout, device):
    x, src, index = draw(shape, dim, index_shape)
    if layout == "expanded" and index.ndim > 1:
        index[...] = index.take([0], axis=1 if dim == 0 else 0)
    places = tensor(index, "int64", device)
    if layout == "expanded" and index.ndim > 1:
        first = places.narrow(1 if dim == 0 else 0, 0, 1)
        places = first.expand(index.shape)
    if layout == "transposed":
        places = places.transpose(0, -1).contiguous().transpose(0, -1)
    expected = x.copy()
    for at in np.ndindex(index.shape):
        to = list(at)
        to[dim] = index[at]
        expected[tuple(to)] = src[at]
    for dtype in ("float64", "float16", "int8", "int64"):
        whole = "int" in dtype
        want, given, from_ = (np.rint(v) if whole else v for v in (expected, x, src))
        got = flow.scatter(tensor(given, dtype, device), dim, places, tensor(from_, dtype, device))
        np.testing.assert_array_equal(host(got), host(tensor(want, dtype)))


IN_PLACE = {"scatter_mul_": np.multiply, "scatter_max_": np.maximum, "scatter_min_": np.minimum}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int8", "bool"])
@pytest.mark.parametrize("shape", [(3, 5), (300, 7), (7, 300), (5000,), (3, 4, 90)], ids=str)
@pytest.mark.parametrize("name", IN_PLACE)
def test_joins_with_what_is_there(name, shape, dtype, device):
    """One after the other along every dim, the later ones last; NaN stays."""
    rng = np.random.default_rng(5)
    for dim in range(len(shape)):
        x, s = (rng.integers(-2, 3, shape).astype(dtype) for _ in range(2))
        if dtype.startswith("float"):
            x.flat[1] = s.flat[-1] = np.nan
        index = rng.integers(0, shape[dim], shape)
        expected = np.moveaxis(x.copy(), dim, 0)
        rest = tuple(np.indices(expected.shape[1:]))
        with np.errstate(all="ignore"):
            for places, row in zip(np.moveaxis(index, dim, 0), np.moveaxis(s, dim, 0), strict=True):
                at = (places, *rest)
                expected[at] = IN_PLACE[name](expected[at], row)
        y, i, t = (flow.tensor(a, device=device) for a in (x, index, s))
        getattr(flow.ops, name)(y, i, t, dim=dim)
        np.testing.assert_array_equal(y.cpu().numpy(), np.moveaxis(expected, 0, dim))


# On CUDA at most 32 rows of at most 2^16 elements together are one launch.
@pytest.mark.parametrize("count, cols", [(1, 5), (32, 3), (33, 3), (32, 2048), (32, 2049)])
def test_few_rows_and_more(count, cols, device):
    for dim in (0, 1):
        index = RNG.integers(-7, 7, count)
        shape, rows = ((7, cols), (count, cols)) if dim == 0 else ((cols, 7), (cols, count))
        x, src = RNG.integers(-9, 9, shape), RNG.integers(-9, 9, rows)
        added, copied = x.copy(), x.copy()
        for k, place in enumerate(index):
            at = (slice(None),) * dim
            added[(*at, place)] += 3 * src[(*at, k)]
            copied[(*at, place)] = src[(*at, k)]
        for dtype in ("float32", "float16", "int64"):
            args = (dim, tensor(index, "int64", device), tensor(src, dtype, device))
            start = tensor(x, dtype, device)
            np.testing.assert_array_equal(host(start.index_add(*args, alpha=3)), added)
            np.testing.assert_array_equal(host(start.index_copy(*args)), copied)


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_nan_that_wins_has_the_gradient(reduce, device):
    x = flow.tensor([1.0, 2.0], device=device, requires_grad=True)
    src = flow.tensor([float("nan"), 3.0, float("nan")], device=device, requires_grad=True)
    y = x.scatter_reduce(0, flow.tensor([0, 1, 0], device=device), src, reduce)
    y.backward(flow.tensor([8.0, 1.0], device=device))
    up = reduce == "amax"
    assert src.grad.tolist() == [4.0, 1.0 if up else 0.0, 4.0]
    assert x.grad.tolist() == [0.0, 0.0 if up else 1.0]
