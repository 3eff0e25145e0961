# SPDX-License-Identifier: Apache-2.0
"""Functions of the CPU around the sizes at which another loop, or another split, takes over.

memcpy is left from 2048 bytes on where the result lies 1 to 31 bytes behind its source on a page;
rows are searched by counting up to 32 elements, by vectors where 16 are sought, of which those of
several rows share one below 32 of a row; a dot is summed in parts of 65,536; a product has eight
vectors of two or four doubles; threads share a row of at least 2 x 16,384 elements that is moved;
the 16 smallest of a row are kept in order, unless 4 k + cols / 8 come in; indices of what holds are
stepped across less than four rows.
"""

import numpy as np
import pytest
from numerics import flow, host, rounded, tensor, ulp

RNG = np.random.default_rng(60)


@pytest.mark.parametrize("cols", [2047, 2048, 2049, 4096, 8192 + 5])
def test_rows_that_lie_a_few_bytes_behind(cols):
    x = RNG.integers(0, 255, (3, cols)).astype(np.uint8)
    t = flow.tensor(x)
    for shift in [*range(-3, 36), 63, 64, 65]:
        np.testing.assert_array_equal(flow.roll(t, shift, 1).numpy(), np.roll(x, shift, 1))
        place = flow.zeros((3, cols + 70), dtype=flow.uint8)
        begin = abs(shift)
        place[:, begin : begin + cols] = t
        np.testing.assert_array_equal(place.numpy()[:, begin : begin + cols], x)
        assert place.numpy().sum() == x.sum(dtype=np.int64)


@pytest.mark.parametrize("n", [1, 32767, 32768, 32769, 98304, 100_001])
def test_threads_share_a_row_that_is_moved(threads, n):
    x = RNG.integers(0, 1000, n).astype(np.int32)
    t = flow.tensor(x)
    for shift in (0, 1, 3, n // 2, n - 1):
        np.testing.assert_array_equal(flow.roll(t, shift, 0).numpy(), np.roll(x, shift))
    np.testing.assert_array_equal(flow.flip(t, (0,)).numpy(), x[::-1])
    pad = flow.nn.functional.pad
    np.testing.assert_array_equal(pad(t, (5, 40_000)).numpy(), np.pad(x, (5, 40_000)))
    if n > 10:
        np.testing.assert_array_equal(pad(t, (-3, -7)).numpy(), x[3:-7])
        floats = flow.tensor(x.astype(np.float32)).reshape(1, 1, n)
        for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
            found = pad(floats, (4, 9), mode=mode).numpy()[0, 0]
            np.testing.assert_array_equal(found, np.pad(x, (4, 9), name).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int16", "uint8"])
def test_an_element_for_each_row(threads, dtype):
    for rows, cols in ((1, 7), (700, 1), (600, 2), (300, 15), (300, 16), (300, 17), (90, 63),
                       (90, 64), (90, 65), (5, 511), (5, 512), (5, 513), (3000, 33)):  # fmt: skip
        x = flow.tensor(RNG.integers(0, 50, (rows, cols))).to(getattr(flow, dtype))
        y = flow.tensor(RNG.integers(0, 50, (rows, 3))).to(getattr(flow, dtype))
        a, b = x.to(flow.int64).numpy(), y.to(flow.int64).numpy()[:, 1:2]
        np.testing.assert_array_equal((x + y[:, 1:2]).to(flow.int64).numpy(), a + b)
        np.testing.assert_array_equal((x < y[:, 1:2]).numpy(), a < b)
        found = flow.where(x < y[:, 1:2], y[:, 1:2], x).to(flow.int64).numpy()
        np.testing.assert_array_equal(found, np.maximum(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.int16])
@pytest.mark.parametrize("cols", [1, 2, 31, 32, 33, 64, 1000])
def test_searches(cols, dtype):
    row = np.sort(RNG.integers(-40, 40, cols)).astype(dtype)
    for n in (1, 7, 8, 9, 15, 16, 17, 70):
        x = RNG.integers(-45, 45, n).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            x[: n // 3] = [np.inf, -np.inf, np.nan, -0.0, 0.0, *x[5:]][: n // 3]
            row[-1] = np.nan if n % 2 else row[-1]
        for side in ("left", "right"):
            want = np.searchsorted(row, x, side)
            sought = flow.tensor(x)
            found = flow.searchsorted(flow.tensor(row), sought, right=side == "right")
            np.testing.assert_array_equal(found.numpy(), want)
            found = flow.bucketize(sought, flow.tensor(row), out_int32=True, right=side == "right")
            assert found.dtype == flow.int32
            np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "int64", "int16"])
@pytest.mark.parametrize("cols", [0, 1, 2, 31, 32, 33, 50, 1000])
def test_searches_in_rows_of_their_own(threads, cols, dtype):
    for per_row in (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 40):
        rows = np.sort(RNG.integers(-100, 100, (90, cols)).astype(np.float64), 1)
        x = RNG.integers(-110, 110, (90, per_row)).astype(np.float64)
        if dtype[0] in "fb" and cols > 1:
            rows[3:7, -1], x[3, 0], x[8, 0] = np.nan, np.nan, np.inf
        for side in ("left", "right"):
            want = np.stack([np.searchsorted(r, v, side) for r, v in zip(rows, x, strict=True)])
            to = getattr(flow, dtype)
            places = flow.searchsorted(
                flow.tensor(rows).to(to), flow.tensor(x).to(to), right=side == "right"
            )
            np.testing.assert_array_equal(places.numpy(), want)


@pytest.mark.parametrize("n", [0, 1, 65_536, 65_537, 200_000])
def test_bins_are_counted(threads, n):
    for most in (1, 9, 300_000):
        for dtype in (np.int64, np.int32, np.uint8):
            x = RNG.integers(0, min(most, 200 if dtype == np.uint8 else most), n).astype(dtype)
            for least in (0, 4, 1000):
                found = flow.bincount(flow.tensor(x), minlength=least)
                assert found.dtype == flow.int64
                np.testing.assert_array_equal(found.numpy(), np.bincount(x, minlength=least))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_dots_have_the_same_bits_on_any_number_of_threads(dtype):
    before = flow.get_num_threads()
    for n in (511, 512, 513, 65_535, 65_536, 65_537, 200_001):
        wide = [flow.tensor(RNG.standard_normal(2 * n)).to(getattr(flow, dtype)) for _ in range(2)]
        for x, y in ((wide[0][:n], wide[1][:n]), (wide[0][::2], wide[1][1::2])):
            a, b = x.to(flow.float64).numpy(), y.to(flow.float64).numpy()
            found = []
            for threads in (1, 2, 3):
                flow.set_num_threads(threads)
                found.append(flow.dot(x, y).to(flow.float64).item())
            flow.set_num_threads(before)
            eps = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-8}[dtype]
            fine = 2.0**-20 if dtype != "float64" else 2.0**-49
            assert abs(found[0] - a @ b) <= eps * abs(a @ b) + fine * (abs(a) @ abs(b))
            assert found[0] == found[1] == found[2], n


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cols", [31, 32, 33, 35, 63, 65, 128, 511, 513, 4097, 32_769, 70_000])
def test_products_of_rows(threads, cols, dtype):
    x = flow.tensor(RNG.uniform(0.97, 1.03, (9, cols)) ** (32 / cols) ** 0.5)
    x = host(x.to(getattr(flow, dtype)))
    x[1, cols // 2], x[2, -1], x[3, 0] = 0, np.inf, np.nan
    x[4, :8] = 2.0**-12  # leaves float32's range on the way, and comes back
    x[4, -8:] = 2.0**12
    x[5] = -x[5]
    x[6, 3:31:5] = 2.0**-12
    x[7, -2:] = 2.0**15
    with np.errstate(over="ignore"):
        want = x.prod(1)
    for found, step in (
        (flow.prod(tensor(x, dtype), 1), 1),
        (flow.prod(tensor(x.T, dtype), 0), 1),
        (flow.stack([flow.prod(tensor(row, dtype)) for row in x]), 1),
    ):
        found = host(found)
        near = np.isclose(found, rounded(want, dtype), rtol=0, atol=step * ulp(want, dtype))
        assert np.all(near | (np.isnan(found) & np.isnan(want)) | (found == want))


@pytest.mark.parametrize("tiny", [1e-9, 1e-30])
def test_products_below_the_least_double(tiny):
    for n in (20, 33, 40, 64, 1000):
        x = np.full((3, n), tiny, np.float32)
        x[1, 0], x[2, 0] = -tiny, 0
        found = flow.prod(flow.tensor(x), 1).numpy()
        np.testing.assert_array_equal(found, [0.0, 0.0, 0.0])
        np.testing.assert_array_equal(np.signbit(found), [False, True, False])


@pytest.mark.parametrize("cols", [5, 127, 129, 511, 512, 513, 1030])
def test_gradients_of_products(threads, cols):
    x = RNG.uniform(0.9, 1.1, (6, cols))
    x[1, 3] = 0
    x[2, [2, 4]] = 0
    x[3] = -x[3]
    want = np.stack([[np.delete(r, i).prod() for i in range(cols)] for r in x])
    t = flow.tensor(x, requires_grad=True)
    flow.prod(t, 1).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-12)
    t = flow.tensor(x.T, requires_grad=True)
    flow.prod(t, 0).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), want.T, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 511, 512, 513, 32_768, 70_001])
def test_threads_share_the_gradient_of_one_slice(threads, n):
    x = RNG.uniform(0.5, 1.5, n)
    x[0] = -0.5
    for function, slope in (
        (lambda t: flow.prod(t ** (1 / n)), None),
        (lambda t: flow.linalg.vector_norm(t), lambda x: x / np.sqrt((x * x).sum())),
        (lambda t: flow.linalg.vector_norm(t, 1), np.sign),
        (lambda t: flow.logsumexp(t, 0), lambda x: np.exp(x) / np.exp(x).sum()),
        (lambda t: flow.var(t, correction=0), lambda x: 2 * (x - x.mean()) / n),
    ):
        t = flow.tensor(np.abs(x) if slope is None else x, requires_grad=True)
        function(t).backward()
        if slope is None:
            of = np.abs(x)
            want = np.exp(np.log(of).mean()) / n / of
        else:
            want = slope(x)
        np.testing.assert_allclose(t.grad.numpy(), want, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "uint8", "bool"])
def test_lines_of_elements_that_lie_apart(threads, dtype):
    for n in (1, 2, 31, 32, 33, 511, 512, 513, 1000):
        values = RNG.integers(0, 2 if dtype == "bool" else 9, (n, n + 3))
        t = flow.tensor(values).to(getattr(flow, dtype))
        for line, a in ((t[:, 1], values[:, 1]), (t.diagonal(), values.diagonal()),
                        (t.reshape(-1)[::3], values.reshape(-1)[::3]),
                        (t[:, :1], values[:, :1]), (t[0, :2].expand(3, 2), values[[0] * 3, :2]),
                        (t[:, :1].expand(n, 2), values[:, [0, 0]])):  # fmt: skip
            want = a.astype(np.float64)
            floats = dtype in ("float32", "bfloat16", "float64")
            total = rounded(want.sum(), dtype) if floats else want.sum()
            assert line.sum().item() == total
            assert line.any().item() == want.any() and line.all().item() == want.all()
            assert flow.count_nonzero(line).item() == np.count_nonzero(want)
            if dtype != "bool":
                assert line.amax().item() == want.max() and line.amin().item() == want.min()
                least, most = flow.aminmax(line)
                assert (least.item(), most.item()) == (want.min(), want.max())
                if line.numel() < 4:
                    assert line.prod().item() == want.prod()
            if floats:
                for found, exact in (
                    (line.mean(), want.mean()),
                    (flow.linalg.vector_norm(line), np.sqrt((want * want).sum())),
                    (flow.logsumexp(line, tuple(range(line.ndim))), np.log(np.exp(want).sum())),
                    (flow.var(line, correction=0), want.var()),
                ):
                    assert abs(found.double().item() - exact) <= 2.0**-8 * abs(exact) + 1e-12
        if dtype != "bool":
            total = np.float64(np.trace(values))
            assert flow.trace(t).item() == (rounded(total, dtype) if floats else total)


VIEWS = {
    "rows of a wider matrix": lambda x: x[:, 2:-1],
    "every second row": lambda x: x[::2],
    "both": lambda x: x[1::3, : x.shape[1] // 2 + 1],
    "turned round": lambda x: x[:, 1:].T if x.ndim == 2 else x[:, 1:],
    "dims in another order": lambda x: x.reshape(2, x.shape[0] // 2, x.shape[1]).swapaxes(0, 1)[1:],
    "an outer dim left out": lambda x: x.reshape(2, x.shape[0] // 2, x.shape[1])[:, 1:],
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("view", VIEWS)
def test_reductions_of_views(threads, dtype, view):
    for rows, cols in ((6, 5), (40, 36), (12, 130), (70, 67), (200, 300), (4, 70_000)):
        values = host(tensor(RNG.integers(1, 9, (rows, cols)) / 4, dtype))
        x, a = VIEWS[view](tensor(values, dtype)), VIEWS[view](values)
        for dim in range(-1, x.ndim):
            dims = tuple(range(x.ndim)) if dim < 0 else (dim,)
            n = a.size // max(1, a.sum(dims).size)
            for found, want in (
                (x.sum(dims), a.sum(dims)),
                (x.amax(dims), a.max(dims)),
                (x.var(dims, correction=0), a.var(dims)),
                (flow.linalg.vector_norm(x, 2, dims), np.sqrt((a * a).sum(dims))),
                (flow.logsumexp(x, dims), np.log(np.exp(a).sum(dims))),
                (flow.count_nonzero(x, dims), np.full(np.shape(a.sum(dims)), n)),
                ((x > 1).any(dims), (a > 1).any(dims)),
            ):
                bound = 2.0**-8 if dtype == "bfloat16" else 2.0**-19
                np.testing.assert_allclose(host(found), want, rtol=bound, atol=1e-6)


def test_variances_of_views_that_overflow(threads):
    x = np.full((40, 90), 1e25, np.float32)
    x[:, ::2] = -1e25
    for view in (np.s_[:, :20], np.s_[::2], np.s_[:20, 3], np.s_[::3, :70]):
        t, a = flow.tensor(x)[view], x[view].astype(np.float64)
        for dim in range(a.ndim):
            np.testing.assert_array_equal(np.isinf(flow.var(t, dim).numpy()), a.var(dim) > 3e38)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
@pytest.mark.parametrize("shape", [(5, 3), (40, 17), (3, 9, 16), (2, 3, 5, 31), (4, 300), (3, 600)])
def test_moves_of_short_rows(threads, dtype, shape):
    x = RNG.integers(0, 200, shape).astype(dtype)
    t, last = flow.tensor(x), len(shape) - 1
    for dims in ((last,), (last - 1,), (last - 1, last), (0, last), tuple(range(last + 1))):
        np.testing.assert_array_equal(flow.flip(t, dims).numpy(), np.flip(x, dims))
        shifts = tuple(range(1, 1 + len(dims)))
        np.testing.assert_array_equal(flow.roll(t, shifts, dims).numpy(), np.roll(x, shifts, dims))
    pad = flow.nn.functional.pad
    for widths in ((1, 2), (1, 1, 2, 1), (0, 3, 1, 0), (-1, 2, 1, -1), (2, -1, -1, 2)):
        pairs = [(0, 0)] * len(shape)
        for i in range(len(widths) // 2):
            pairs[last - i] = (widths[2 * i], widths[2 * i + 1])
        cut = tuple(
            slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(pairs, shape, strict=True)
        )
        grown = [(max(0, a), max(0, b)) for a, b in pairs]
        want = np.pad(x[cut], grown, constant_values=7)
        np.testing.assert_array_equal(pad(t, widths, value=7).numpy(), want)
    if len(shape) == 4 and dtype == np.float32:
        for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
            found = pad(t, (2, 1, 1, 2), mode=mode).numpy()
            np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint8])
def test_colours_of_images(threads, dtype):
    for height, width in ((1, 4), (3, 5), (7, 16), (9, 33), (64, 65)):
        x = RNG.integers(0, 200, (2, height, width, 3)).astype(dtype)
        t = flow.tensor(x).permute(0, 3, 1, 2)
        np.testing.assert_array_equal(t.contiguous().numpy(), x.transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(t.to(flow.float64).numpy(), x.transpose(0, 3, 1, 2))
        other = flow.zeros((2, 3, height, width), dtype=t.dtype)
        np.testing.assert_array_equal((other + t).numpy(), x.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "int16", "uint8"])
@pytest.mark.parametrize("cols", [1, 15, 16, 17, 64, 300])
def test_ranks_of_which_few_come_before(threads, cols, dtype):
    rows = RNG.integers(0, 30, (40, cols)).astype(np.float64)
    rows[1] = np.sort(rows[1])
    rows[2] = np.sort(rows[2])[::-1]
    rows[3] = 7
    if dtype[0] in "fb":
        rows[4:8, cols // 2] = [np.nan, np.inf, -np.inf, -0.0]
    order = np.argsort(rows, 1, kind="stable")
    for k in (1, 2, 3, 15, 16, 17, cols):
        if k > cols:
            continue
        values, places = flow.kthvalue(tensor(rows, dtype), k)
        at = order[:, k - 1]
        np.testing.assert_array_equal(host(places), at)
        np.testing.assert_array_equal(host(values), rows[np.arange(40), at])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int64", "bool"])
@pytest.mark.parametrize(
    "shape", [(1100,), (40, 1), (1, 40), (33, 32), (5, 7, 3), (2, 1, 4, 300), (70, 3, 2, 90)]
)
def test_indices_of_what_holds(threads, shape, dtype):
    for share in (0.0, 0.003, 0.05, 0.5, 1.0):
        mask = RNG.random(shape) < share
        values = np.where(mask, RNG.choice([1.0, -2.0, 1.0], shape), RNG.choice([0.0, -0.0], shape))
        found = flow.nonzero(tensor(values, dtype))
        np.testing.assert_array_equal(found.numpy(), np.argwhere(mask))
    if dtype[0] in "fb" and dtype != "bool":
        nan = tensor(np.full(shape, np.nan), dtype)
        assert flow.nonzero(nan).shape[0] == nan.numel()


@pytest.mark.parametrize("shape", [(511,), (512,), (513,), (1025,), (3, 5), (300, 33), (2, 9000)])
def test_negative_log_likelihoods(threads, shape):
    classes = 7
    x = RNG.standard_normal((shape[0], classes, *shape[1:]))
    target = RNG.integers(0, classes, shape)
    target.flat[1] = -100
    picked = -np.take_along_axis(x, np.where(target < 0, 0, target)[:, None], 1)[:, 0]
    picked[target < 0] = 0
    for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
        t, at = flow.tensor(x).to(getattr(flow, dtype)), flow.tensor(target)
        each = flow.nn.functional.nll_loss(t, at, reduction="none")
        np.testing.assert_allclose(host(each), picked, atol=1e-6 if dtype == "float32" else 0)
        mean = flow.nn.functional.nll_loss(t, at).item()
        want = picked.sum() / (target >= 0).sum()
        assert abs(mean - want) <= bound * np.abs(picked).mean()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_clamp_keeps_nan_and_what_equals_a_bound(dtype):
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0]
    x = np.resize(special, 75).astype(np.float64)
    for low, high in ((0.0, 1.0), (-0.0, 1.0), (-1.0, 0.0), (-1.0, -0.0), (2.0, -1.0),
                      (-np.inf, np.inf), (1.0, np.inf)):  # fmt: skip
        below = np.where(x < low, low, x)
        want = np.where(below > high, high, below)
        t = flow.tensor(x).to(getattr(flow, dtype))
        for found in (t.clamp(low, high), t.clone().clamp_(low, high)):
            found = found.to(flow.float64).numpy()
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(np.signbit(found[x == x]), np.signbit(want[x == x]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [5, 511, 512, 513, 1100])
def test_gradients_of_powers(n, dtype):
    a = RNG.uniform(0.1, 3, n)
    a[:5] = [0, -2, np.inf, 1, 0.25]
    rtol = 3e-6 if dtype == "float32" else 1e-13
    for power in (1.7, -1.5, 0.5, 1.0, 0.0, 5.0):
        t = flow.tensor(a).to(getattr(flow, dtype)).requires_grad_(True)
        (t**power).sum().backward()
        with np.errstate(all="ignore"):
            want = power * np.power(a, power - 1) if power else np.zeros(n)
        np.testing.assert_allclose(t.grad.to(flow.float64).numpy(), want, rtol=rtol)
    b = RNG.uniform(-2, 2, n)
    b[:6] = [0, 3, 2, 1.5, -1, 0][: min(n, 6)]
    t = flow.tensor(a).to(getattr(flow, dtype)).requires_grad_(True)
    (t ** flow.tensor(b).to(getattr(flow, dtype))).sum().backward()
    with np.errstate(all="ignore"):
        b = b.astype(dtype).astype(np.float64)
        want = np.where(b == 0, 0, b * np.power(a.astype(dtype).astype(np.float64), b - 1))
    np.testing.assert_allclose(t.grad.to(flow.float64).numpy(), want, rtol=rtol)
