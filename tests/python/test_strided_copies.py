# SPDX-License-Identifier: Apache-2.0
"""contiguous(), copy_() and casts between strided tensors, bit by bit against NumPy.

On CUDA rows that are dense in both tensors are copied in units of up to 16 bytes, those of 64 bytes
and more that begin or end between such units in shifted ones, transposes of 32 x 32 elements and
more in tiles of 128 bytes and more a side, repeated elements in packs
(primitive/cuda/moves/copy_plan.h): sizes, offsets and strides here are chosen around those.
"""

import functools
import itertools

import numpy as np
import pytest
from numerics import flow

RNG = np.random.default_rng(17)
BITS = [np.uint8, np.int16, np.int32, np.int64]


def noise(shape, dtype):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(RNG.bytes(count), dtype).reshape(shape)


def on(device, values):
    return flow.tensor(values).to(device)


def check_contiguous(device, values, view):
    """view() gives the same view of an array and of a tensor."""
    got = view(on(device, values)).contiguous()
    assert got.is_contiguous()
    np.testing.assert_array_equal(got.cpu().numpy(), view(values))


def check_copy(device, shape, dtype, view):
    """A view of a tensor is written, and nothing beside it."""
    before = noise(shape, dtype)
    y, want = on(device, before), before.copy()
    values = noise(view(want).shape, dtype)
    view(want)[...] = values
    view(y).copy_(on(device, values))
    np.testing.assert_array_equal(y.cpu().numpy(), want)


def permuted(order):
    return lambda x: x.permute(order) if isinstance(x, flow.Tensor) else x.transpose(order)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("rows", [31, 32, 64, 65, 128, 130])
@pytest.mark.parametrize("cols", [31, 33, 64, 96, 127, 132, 256])
def test_transposes(dtype, rows, cols, device):
    check_contiguous(device, noise((rows, cols), dtype), permuted((1, 0)))
    check_copy(device, (rows, cols), dtype, permuted((1, 0)))


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize(
    "shape", [(3, 64, 96), (33, 2, 40), (40, 33, 1), (2, 3, 64, 48), (32, 5, 2, 64), (65, 2, 3, 33)]
)
def test_dims_in_every_order(dtype, shape, device):
    values = noise(shape, dtype)
    for order in itertools.permutations(range(len(shape))):
        check_contiguous(device, values, permuted(order))
        check_copy(device, shape, dtype, permuted(order))


@pytest.mark.parametrize("dtype", BITS)
def test_transposes_of_slices(dtype, device):
    """Offsets and strides that leave packs of 16, of 4 and of fewer bytes."""
    values = noise((3, 81, 180), dtype)
    slices = itertools.product((0, 1), (64, 66, 65), (0, 1, 2, 3, 4, 8, 16), (160, 96, 34))
    for row, rows, col, cols in slices:

        def view(x, row=row, rows=rows, col=col, cols=cols):
            return permuted((0, 2, 1))(x[:, row : row + rows, col : col + cols])

        check_contiguous(device, values, view)
    check_copy(device, (3, 81, 180), dtype, lambda x: permuted((0, 2, 1))(x[1:, 3:, 4:]))
    check_copy(device, (3, 81, 180), dtype, lambda x: permuted((2, 0, 1))(x[:, 1:, 1:]))


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("unit", [1, 2, 4, 8, 16])
def test_rows_in_units(dtype, unit, device):
    """Length, stride and offset of rows are multiples of the unit's bytes, each in turn of no
    larger one."""
    size = np.dtype(dtype).itemsize
    unit = max(1, unit // size)
    wide = 16
    for length, pitch, offset in ((unit, wide, wide), (wide, unit, wide), (wide, wide, unit)):
        cols = 3 * wide + length

        def view(x, order=(0, 1, 2), cols=cols, offset=offset):
            return permuted(order)(x[:, :, offset : offset + cols])

        shape = (5, 7, 6 * wide + pitch)
        check_contiguous(device, noise(shape, dtype), view)
        check_contiguous(device, noise(shape, dtype), functools.partial(view, order=(1, 0, 2)))
        check_copy(device, shape, dtype, view)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("size", [32, 63, 64, 65, 80, 1027])
def test_rows_at_any_place(dtype, size, device):
    """Rows of so many bytes, or an element more, from every place within 16 bytes to every one."""
    step = np.dtype(dtype).itemsize
    cols = -(-size // step)
    values = noise((3, 5, cols + 16), dtype)
    x = on(device, values)
    for first in range(16 // step):
        part, want = x[:, :, first : first + cols], values[:, :, first : first + cols]
        np.testing.assert_array_equal(part.contiguous().cpu().numpy(), want)
        for to in range(0, 16 // step, 3):
            before = noise((5, 3, cols + 17), dtype).copy()
            y = on(device, before)
            y[:, :, to : to + cols].copy_(part.transpose(0, 1))
            before[:, :, to : to + cols] = want.transpose(1, 0, 2)
            np.testing.assert_array_equal(y.cpu().numpy(), before)
    line, to = values.ravel(), np.zeros(values.size + 3, dtype)
    y = on(device, to)
    y[2 : 2 + line.size - 1].copy_(x.view(-1)[1:])
    to[2 : 2 + line.size - 1] = line[1:]
    np.testing.assert_array_equal(y.cpu().numpy(), to)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("rows", [3, 1200])
def test_joined_rows(dtype, rows, device):
    """Two to seven parts of odd rows, of one size and of others; on CUDA a launch has up to four
    large ones."""
    whole = noise((rows, 700), dtype)
    x = on(device, whole)
    for widths in ((699, 700), (697, 700, 699), (699, 3, 698), (651, 653, 655, 657, 659),
                   (400, 699), (200, 699, 601), (640, 641, 642, 643, 644, 645, 646)):  # fmt: skip
        firsts = [k % 5 for k in range(len(widths))]
        slices = [slice(f, f + w) for f, w in zip(firsts, widths, strict=True)]
        got = flow.cat([x[:, s] for s in slices], 1)
        want = np.concatenate([whole[:, s] for s in slices], 1)
        np.testing.assert_array_equal(got.cpu().numpy(), want)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("cols", [1, 3, 8, 64, 4096 + 16])
def test_expanded(dtype, cols, device):
    values = noise((40, cols), dtype)
    x = on(device, values)
    for got, want in (
        (x[1:2].expand(37, cols), np.broadcast_to(values[1:2], (37, cols))),
        (x[:, :1].expand(40, 70), np.broadcast_to(values[:, :1], (40, 70))),
        (x.unsqueeze(1).expand(40, 3, cols), np.broadcast_to(values[:, None], (40, 3, cols))),
        (x.t().expand(2, cols, 40), np.broadcast_to(values.T, (2, cols, 40))),
    ):
        np.testing.assert_array_equal(got.contiguous().cpu().numpy(), want)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("count", [1, 2, 63, 1025])
@pytest.mark.parametrize("times", [2, 3, 4, 7, 8, 15, 16, 17, 300])
def test_repeated_elements(dtype, count, times, device):
    """Twice, less often than a pack of 16 bytes has elements, and as often and more; operands at
    any offset, results whose last pack is not whole.
    """
    values = noise((count + 1,), dtype)
    x = on(device, values)
    for first in (0, 1):
        part, want = x[first : first + count], np.repeat(values[first : first + count], times)
        np.testing.assert_array_equal(part.repeat_interleave(times).cpu().numpy(), want)
        rows = part.unsqueeze(1).expand(count, times)
        np.testing.assert_array_equal(rows.contiguous().cpu().numpy().ravel(), want)
        before = noise((first + count * times + 3,), dtype).copy()
        y = on(device, before)
        y[first : first + count * times].view(count, times).copy_(rows)
        before[first : first + count * times] = want
        np.testing.assert_array_equal(y.cpu().numpy(), before)


@pytest.mark.parametrize("extra", [-4, 0, 1, 4])
def test_long_lines_several_times(extra, device):
    """Of 16 MB, where on CUDA they are read once, and of about as much."""
    values = noise((2**22 + extra,), np.int32)
    got = on(device, values).tile(3, 1).cpu().numpy()
    np.testing.assert_array_equal(got, np.tile(values, (3, 1)))


@pytest.mark.parametrize("dtype", BITS)
def test_steps_and_nothing(dtype, device):
    check_contiguous(device, noise((70, 90), dtype), lambda x: x[:, ::2])
    check_contiguous(device, noise((70, 90), dtype), lambda x: permuted((1, 0))(x[::2]))
    check_contiguous(device, noise((70, 90), dtype), lambda x: permuted((1, 0))(x[:, 90:]))
    check_contiguous(device, noise((2, 70, 64, 4), dtype), lambda x: permuted((0, 2, 1, 3))(x))
    check_copy(device, (70, 90), dtype, lambda x: x[1:, ::3])
    check_copy(device, (70, 90), dtype, lambda x: permuted((1, 0))(x[::2, 1:]))
    y = flow.zeros(2, dtype=on(device, noise((1,), dtype)).dtype, device=device)
    y[1].copy_(on(device, np.asarray(7, dtype)))
    assert y.tolist() == [0, 7]


def test_both_transposed(device):
    """dst is written in the order in which it lies."""
    values = noise((64, 96), np.int32)
    y = flow.zeros(64, 96, dtype=flow.int32, device=device)
    y.t().copy_(on(device, values).t())
    np.testing.assert_array_equal(y.cpu().numpy(), values)


def test_nan_keeps_its_bits(device):
    values = noise((64, 160), np.int16).copy()
    values |= np.int16(0x7C01)
    x = flow.from_numpy(values.view(np.float16)).to(device)
    for got, want in ((x.t(), values.T), (x[:, 2:130], values[:, 2:130])):
        np.testing.assert_array_equal(got.contiguous().cpu().numpy().view(np.int16), want)


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "uint8"])
def test_casts(dtype, to, device):
    """Of rows in whole packs, of others, transposed, to a tensor that is strided itself."""
    numbers = RNG.integers(0, 120, (4, 6, 96)).astype(np.float32)  # exact in every dtype
    want = numbers != 0 if to == "bool" else numbers
    x = on(device, numbers).to(getattr(flow, dtype))

    def exact(t):
        return t.cpu().numpy() if to == "bool" else t.float().cpu().numpy()

    def views(a):
        yield a[:, :, :64]
        yield a[:, :, 8:88]
        yield a[:, :, 4:92]
        yield a[:, :, 1:65]
        yield a[:, 1:, :63]
        yield permuted((1, 0, 2))(a)
        yield permuted((2, 1, 0))(a)

    for view, expected in zip(views(x), views(want), strict=True):
        np.testing.assert_array_equal(exact(view.to(getattr(flow, to))), expected)
        for pad in (0, 1, 8):
            y = flow.zeros(*view.shape[:2], view.shape[2] + pad, dtype=getattr(flow, to)).to(device)
            y[:, :, : view.shape[2]].copy_(view)
            np.testing.assert_array_equal(exact(y[:, :, : view.shape[2]].contiguous()), expected)


def test_a_clone_lies_as_a_dense_tensor_does():
    for view in (lambda x: x.transpose(0, 2), lambda x: x.permute(2, 0, 1), lambda x: x):
        x = view(flow.tensor(noise((5, 6, 7), np.int32)))
        y = x.clone()
        assert y.stride() == x.stride() and y.data_ptr() != x.data_ptr() and y.equal(x)
    rows = flow.tensor(noise((5, 8), np.int32))[:, 1:]
    assert rows.clone().is_contiguous() and rows.clone().equal(rows)
