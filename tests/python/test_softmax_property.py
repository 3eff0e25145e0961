# SPDX-License-Identifier: Apache-2.0
"""softmax and log_softmax, forward and backward, against float64 NumPy: any shape, dim, dtype and
view, and widths around every boundary at which another kernel or another tier takes over.
"""

import numpy as np
import pytest
from drawing import properties
from numerics import FLOATS, HALVES, assert_close, bits, flow, host, tensor, ulp
from op_reference import np_softmax

ext = flow._oneflow_lite
FUNCTIONS = {"softmax": flow.softmax, "log_softmax": flow.log_softmax}


def assert_gradient(dx, y, dy, axis, log, where):
    """dx from the very y that was saved, each element within its share of the terms' sizes."""
    dtype = dx.dtype.name
    y, dy, dx = host(y), host(dy), host(dx)
    if y.ndim == 0:
        y, dy, dx = (a.reshape(1) for a in (y, dy, dx))
    if log:
        p = np.exp(y)
        exact = dy - p * dy.sum(axis, keepdims=True)
        size = np.maximum(1, np.abs(dy) + p * np.abs(dy).sum(axis, keepdims=True))
    else:
        exact = y * (dy - (y * dy).sum(axis, keepdims=True))
        size = y * (np.abs(dy) + (y * np.abs(dy)).sum(axis, keepdims=True)) + 2.5e-2
    allowed = (1e-14 if dtype == "float64" else 4e-6) * size
    if dtype in HALVES:
        allowed = allowed + ulp(exact, dtype)
    error = np.abs(dx - exact)
    assert (error <= allowed).all(), f"{where}: off by {error.max():.3g} ({dtype})"


def check(x, dim, name, where="", dy=None):
    """Forward and backward; the same bits twice. Gives the result."""
    log = name == "log_softmax"
    axis = (dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1) % max(1, x.ndim)
    x = x.detach().requires_grad_()
    y = FUNCTIONS[name](x, dim)
    assert y.dtype is x.dtype and y.device == x.device
    assert_close(y, np_softmax(host(x), dim, log), name, where=where)
    if dy is None:
        values = np.random.default_rng(7).standard_normal(tuple(x.shape))
        dy = tensor(values, x.dtype.name, x.device)
    (dx,) = flow.autograd.grad(y, x, dy, retain_graph=True)
    assert dx.shape == x.shape and dx.dtype is x.dtype
    assert_gradient(dx, y, dy, axis, log, f"{where}, backward")
    assert bits(FUNCTIONS[name](x, dim)) == bits(y), where
    assert bits(flow.autograd.grad(y, x, dy)[0]) == bits(dx), where
    return y.detach()


def view(draw, shape, dtype, device):
    """A tensor of ``shape`` cut out of another: permuted, stepped, padded, at any offset."""
    n = len(shape)
    order = list(range(n))
    for i in range(n - 1):  # any permutation, one exchange at a time
        j = draw.integer(i, n - 1)
        order[i], order[j] = order[j], order[i]
    steps = [draw.choice([1, 1, 1, 2, 3]) for _ in shape]
    starts = [draw.choice([0, 0, 1, 3]) for _ in shape]
    ends = [draw.choice([0, 0, 1]) for _ in shape]
    stored = [starts[d] + shape[d] * steps[d] + ends[d] for d in order]
    offset = draw.integer(0, 9)
    rng = np.random.default_rng(draw.integer(0, 1000))
    scale = draw.choice([0.1, 1, 10, 100])
    flat = scale * rng.standard_normal(offset + int(np.prod(stored, dtype=np.int64)))
    base = tensor(flat, dtype, device)[offset:].view(stored)
    x = base.permute([order.index(d) for d in range(n)])
    for d in range(n):
        x = flow.slice(x, d, starts[d], starts[d] + shape[d] * steps[d], steps[d])
    assert tuple(x.shape) == tuple(shape)
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
@properties(250)
def test_any_shape_dim_dtype_and_view(draw, name, device):
    ndim = draw.integer(0, 5)
    limit = {5: 4, 4: 6, 3: 19}.get(ndim, 70)
    shape = [draw.choice([0, 1, draw.integer(1, limit), limit]) for _ in range(ndim)]
    dtype = draw.choice(FLOATS)
    dim = draw.choice([None, *range(-max(1, ndim), max(1, ndim))])
    x = view(draw, shape, dtype, device)
    kind = draw.choice(["own", "view", "expanded"])
    dy = {"own": lambda: None, "view": lambda: view(draw, shape, dtype, device),
          "expanded": lambda: tensor(0.75, dtype, device).expand(shape)}[kind]()  # fmt: skip
    y = check(x, dim, name, f"{name} of {shape} by {x.stride()} over {dim}, dy {kind}", dy)
    if name == "softmax" and y.numel() > 0:
        axis = dim if dim is not None else 0 if ndim in (0, 1, 3) else 1
        total = host(y).sum(axis if ndim else None)
        bound = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
        # Each of few elements is rounded by up to half a step.
        assert np.abs(total - 1).max() <= bound


# Rows -----------------------------------------------------------------------------------------
# CPU: vectors (2 to 32 elements) and their unrolled blocks, sums of 128 vectors, parts of 65536 of
# a single row. CUDA: 16-byte packs, 4 to 32 lanes a row (to 1024 float32, 2048 half), registers of
# a block (16384), shared memory (some 58000, 116000), rows split among blocks, rows read twice.
POWERS = sorted({max(1, (1 << k) + d) for k in range(18) for d in (-1, 0, 1)})
WIDTHS = [*POWERS, 1000, 3000, 12_289, 24_577, 50_257, 58_000, 58_113, 116_225, 128_256]
WIDEST = [200_003, 262_144, 524_289, 1_000_003]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_widths_around_every_boundary(name, dtype, device):
    rng = np.random.default_rng(0)
    noise = 3 * rng.standard_normal(5 * 600 + 2 * max(WIDTHS))
    for width in WIDTHS:
        count = 5 if width <= 600 else 2
        x = tensor(noise[: count * width].reshape(count, width), dtype, device)
        check(x, 1, name, f"{count} x {width}")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_many_wide_rows(name, dtype, device):
    """Enough rows that no GPU splits them; copies of two, which are compared with NumPy."""
    noise = 3 * np.random.default_rng(0).standard_normal(2 * max(WIDTHS))
    repeats = 150 if device == "cuda" else 5
    for width in [w for w in WIDTHS if w > (2000 if device == "cuda" else 60_000)]:
        two = tensor(noise[: 2 * width].reshape(2, width), dtype, device)
        expected = check(two, 1, name, f"2 x {width}")
        x = two.expand(repeats, 2, width).reshape(-1, width).requires_grad_()
        y = FUNCTIONS[name](x, 1)
        (dx,) = flow.autograd.grad(y, x, x.detach())
        two.requires_grad_()
        (two_dx,) = flow.autograd.grad(FUNCTIONS[name](two, 1), two, two.detach())
        for many, one in ((y.detach(), expected), (dx, two_dx)):
            first = many[:2]
            limit = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
            different = flow.ne(many.view(repeats, 2, width), first).sum().item()
            if device == "cpu" or width * x.itemsize % 16 == 0:
                assert different == 0
            else:  # where a row starts within 16 bytes decides the order of its sum
                other = many.view(repeats, 2, width)[repeats // 2]
                assert np.allclose(host(other), host(first), rtol=limit, atol=limit)
            assert np.allclose(host(first), host(one), rtol=limit, atol=limit)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("width", WIDEST)
@pytest.mark.parametrize("dtype", FLOATS)
def test_few_very_wide_rows(name, width, dtype, device):
    """One row is shared out; two are not, on two threads. The first is at an odd offset."""
    values = 3 * np.random.default_rng(0).standard_normal(2 * width + 1)
    values[width // 3] = 9.0
    flat = tensor(values, dtype, device)
    check(flat[1 : 1 + width], 0, name, f"1 x {width}")
    check(flat[: 2 * width].view(2, width), 1, name, f"2 x {width}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_of_two_to_the_28(name, device):
    """More than 2^31 elements in rows of 2^28; the last row against its chunks, on the device."""
    rows, width, chunk = (9, 1 << 28, 1 << 24) if device == "cuda" else (3, 1 << 17, 1 << 13)
    try:
        x = flow.randn(rows, width, dtype=flow.float16, device=device)
        x = x.mul_(4).requires_grad_()  # half could not hold probabilities of 2^-28 alone
        y = FUNCTIONS[name](x, 1)
        dy = x.detach()
        (dx,) = flow.autograd.grad(y, x, dy)
        x, y = x.detach(), y.detach()
    except flow.OutOfMemoryError:
        pytest.skip("needs a GPU with 30 GB of free memory")

    def chunks(*tensors):
        for begin in range(0, width, chunk):
            yield [t[-1, begin : begin + chunk].double() for t in tensors]

    def size(t):
        return t.relu() + (-t).relu()

    def off(got, expected, scale):
        """Beyond one rounding to float16, whose smallest step is 2^-24."""
        allowed = size(expected) * 2**-10 + 2**-24 + 4e-6 * scale
        return (size(got - expected) - allowed).max().item()

    log = name == "log_softmax"
    largest = max(part.max().item() for (part,) in chunks(x))
    total = sum((part - largest).exp().sum().item() for (part,) in chunks(x))
    dot = sum((g if log else p * g).sum().item() for p, g in chunks(y, dy))
    terms = sum(size(g if log else p * g).sum().item() for p, g in chunks(y, dy))
    for part, got, g, got_dx in chunks(x, y, dy, dx):
        shifted = part - largest
        expected = shifted - float(np.log(total)) if log else shifted.exp() / total
        assert off(got, expected, size(expected) if log else 0) <= 0
        p = got.exp() if log else got
        exact = g - p * dot if log else p * (g - dot)
        assert off(got_dx, exact, size(exact) + p * terms) <= 0


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_that_lie_apart(name, dtype, device):
    """Columns of a wider tensor and one of several heads, whose gradient is such a view as well;
    what lies between the rows is neither read nor written."""
    rng = np.random.default_rng(0)
    shapes = [(5, 33, 31), (7, 64, 128), (5, 1000, 1), (5, 1024, 8), (3, 4097, 3), (2, 9000, 5)]
    shapes += [(37, 49, 3), (37, 136, 1), (9, 201, 6), (9, 301, 5), (9, 384, 7)]
    for count, width, pad in [*shapes, (2, 70_000, 8), (2, 200_003, 5), (1, 300, 20), (600, 1, 2)]:
        first = pad // 2
        wide = [rng.standard_normal((count, width + pad)) for _ in range(2)]
        for values in wide:
            values[:, :first] = values[:, first + width :] = np.nan
        wide = [tensor(values, dtype, device) for values in wide]
        before = [bits(t) for t in wide]
        x, dy = (t[:, first : first + width] for t in wide)
        check(x, 1, name, f"{count} x {width}, {pad} apart", dy)
        assert [bits(t) for t in wide] == before
    packed = tensor(rng.standard_normal((3, 4, 6, 40)), dtype, device)
    check(packed[:, :, 2], 2, name, "heads")
    check(packed[1:, 1:3, 2:4], 3, name, "not one stride")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_lie_apart_are_not_copied(name, device):
    wide, dy = flow.ones(1000, 3 * 1024, device=device), flow.ones(1000, 1032, device=device)
    x = wide[:, 1024:2048].detach().requires_grad_()

    def taken(call):
        ext.reset_peak_memory(device)
        before = ext.memory_stats(device)["allocated"]
        out = call()
        assert out.shape == x.shape
        return ext.memory_stats(device)["peak_allocated"] - before, out

    forward, y = taken(lambda: FUNCTIONS[name](x, 1))
    backward, _ = taken(lambda: flow.autograd.grad(y, x, dy[:, 4:1028])[0])
    # A block of the CUDA allocator may be larger than what was asked for, by less than 1 MB.
    assert forward < 1.5 * x.numel() * 4 and backward < 1.5 * x.numel() * 4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_long_row_with_masked_parts(name, device):
    """Whole parts of -inf, merged with parts that are not, and NaN in a part of -inf."""
    width = 5 * 65_536 + 77
    values = np.random.default_rng(0).standard_normal(width)
    log = name == "log_softmax"
    threads = flow.get_num_threads()
    flow.set_num_threads(4)  # more than there are rows
    try:
        for first, last in ((0, 65_536), (65_536, 4 * 65_536), (70_000, width), (1, width)):
            masked = values.copy()
            masked[first:last] = -np.inf
            y = FUNCTIONS[name](tensor(masked, "float32", device), 0)
            assert_close(y, np_softmax(host(tensor(masked, "float32")), 0, log), name)
            for spoiler in (np.nan, np.inf):
                masked[first + 100] = spoiler
                y = FUNCTIONS[name](tensor(masked, "float32", device), 0)
                assert np.isnan(host(y)).all()
        y = FUNCTIONS[name](tensor(np.full(width, -np.inf), "float32", device), 0)
        assert np.isnan(host(y)).all()
    finally:
        flow.set_num_threads(threads)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_sum_to_one(dtype, device):
    rng = np.random.default_rng(0)
    bound = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    for width in (3, 100, 1024, 4097, 16_384, 40_000, 65_536):
        for scale in (0.01, 1, 8):
            x = tensor(scale * rng.standard_normal((4, width)), dtype, device)
            assert np.abs(host(flow.softmax(x, 1)).sum(1) - 1).max() <= bound, (width, scale)


# A dim that is not the last -------------------------------------------------------------------
# CPU: blocks of at most 512 columns in pieces of 64, 16 rows at a time, blocks cut to fit the
# cache. The same values contiguous (the axis kernel) and with the axis last in memory (the op of
# rows between two transposes).


def both_paths(shape, axis, dtype, device, name):
    values = 3 * np.random.default_rng(0).standard_normal(shape)
    x = tensor(values, dtype, device)
    there = tensor(np.swapaxes(values, axis, -1).copy(), dtype, device).transpose(axis, -1)
    assert there.shape == x.shape
    direct = check(x, axis, name, f"{shape} over {axis}")
    around = check(there, axis, name, f"{shape} over {axis}, by rows")
    limit = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
    assert np.allclose(host(direct), host(around), rtol=limit, atol=limit)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("inner", [1, 2, 7, 63, 64, 65, 511, 512, 513, 1025])
def test_inner_sizes_around_every_boundary(name, dtype, inner, device):
    for axis_size in (1, 2, 15, 16, 17, 33):
        both_paths((2, axis_size, inner), 1, dtype, device, name)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1000, 3), (2049, 64), (4096, 5), (20_000, 17), (3, 5000, 9)])
def test_long_axes(name, dtype, shape, device):
    both_paths(shape, len(shape) - 2, dtype, device, name)


@pytest.mark.parametrize("name", FUNCTIONS)
@properties(60)
def test_any_outer_axis_and_inner(draw, name, device):
    shape = (draw.integer(1, 6), draw.integer(1, 150), draw.integer(1, 150))
    both_paths(shape, draw.integer(0, 1), draw.choice(FLOATS), device, name)
