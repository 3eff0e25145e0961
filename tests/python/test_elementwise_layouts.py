# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions over operands of any layout, offset and dtype, against NumPy: values, dtype
and, as in PyTorch, the strides of the result.
"""

import itertools

import numpy as np
import pytest
from numerics import ALL, FLOATS, flow, host, tensor

RNG = np.random.default_rng(24)


def parent(*shape):
    """Small whole numbers, which every dtype but bool holds and adds exactly."""
    return RNG.integers(0, 9, shape).astype(np.float64)


# name: the shape of the memory, and the view that is taken of it.
LAYOUTS = {
    "contiguous": ((40, 72), lambda x: x),
    "odd offset": ((2900,), lambda x: x[3:2883].reshape(40, 72)),
    "padded rows": ((40, 80), lambda x: x[:, 1:73]),
    "odd rows": ((40, 75), lambda x: x[:, 2:74]),
    "every other column": ((40, 144), lambda x: x[:, ::2]),
    "every other row": ((80, 72), lambda x: x[::2]),
    "transposed": ((72, 40), lambda x: x.T),
    "transposed, padded": ((74, 41), lambda x: x.T[:40, 1:73]),
    "a row": ((72,), lambda x: x),
    "a column": ((40, 1), lambda x: x),
    "a number": ((1, 1), lambda x: x),
    "5-D": ((5, 2, 4, 9, 8), lambda x: x.reshape(5, 2, 4, 72)[:, 1]),
}


def operands(name, dtype, device, tail=(40, 72)):
    shape, view = LAYOUTS[name]
    values = parent(*shape)
    return view(tensor(values, dtype, device)), view(values)


def broadcasts(a, b):
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", LAYOUTS)
def test_one_operand(name, device):
    for dtype in ("float16", "float32", "float64", "int8", "int64"):
        x, values = operands(name, dtype, device)
        np.testing.assert_array_equal(host(-x), -values)
        assert (-x).dtype is x.dtype and (-x).shape == x.shape
    x, values = operands(name, "int16", device)
    y = x.sqrt()
    assert y.dtype is flow.float32
    np.testing.assert_array_equal(host(y), np.sqrt(values.astype(np.float32)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_casts(name, device):
    """One launch, whose result lies as that of another function of one operand."""
    for dtype, to in itertools.permutations(("float16", "float32", "int32"), 2):
        x, values = operands(name, dtype, device)
        with flow.profiler.profile() as seen:
            y = x.to(getattr(flow, to))
        assert [s.calls for s in seen.stats() if s.name == "cast"] == [1]
        np.testing.assert_array_equal(host(y), values)
        assert y.stride() == (-x).stride() and y.shape == x.shape
        dense = x.to(getattr(flow, to), memory_format=flow.contiguous_format)
        assert dense.is_contiguous() and dense.tolist() == y.tolist()
    x, _ = operands(name, "float32", device)
    x.requires_grad_()
    y = x.to(flow.float64)
    (y * y).sum().backward()
    np.testing.assert_array_equal(host(x.grad), 2 * host(x))


@pytest.mark.parametrize("first", LAYOUTS)
def test_two_operands(first, device):
    for second, dtypes in itertools.product(LAYOUTS, [("float16",) * 2, ("float32", "float16")]):
        a, x = operands(first, dtypes[0], device)
        b, y = operands(second, dtypes[1], device)
        if not broadcasts(x, y):
            continue
        np.testing.assert_array_equal(host(a + b), x + y, err_msg=f"{first} + {second}")
        np.testing.assert_array_equal(host(a < b), x < y, err_msg=f"{first} < {second}")
        assert (a + b).dtype is getattr(flow, dtypes[0]) and (a < b).dtype is flow.bool


# On CUDA: rows of 16-bit floats in packs, whole and not, at every offset; the sizes around the
# shortest rows that have packs, of 32 columns, and around whole packs.
@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_rows_of_every_length_at_every_offset(dtype, device):
    memory = parent(6 * 96)
    x = tensor(memory, dtype, device)
    for cols, past in itertools.product((1, 2, 7, 8, 9, *range(30, 71)), (0, 1, 3, 8)):
        a, va = x[past : past + 5 * 88].reshape(5, 88)[:, :cols], memory[past : past + 5 * 88]
        va = va.reshape(5, 88)[:, :cols]
        b, vb = x[past + 1 : past + 1 + 5 * cols], memory[past + 1 : past + 1 + 5 * cols]
        b, vb = b.reshape(5, cols), vb.reshape(5, cols)
        row, column = x[past : past + cols], x[past : past + 10 : 2].reshape(5, 1)
        vrow, vcolumn = memory[past : past + cols], memory[past : past + 10 : 2].reshape(5, 1)
        for got, want in (
            (a + 1, va + 1),
            (2 - b, 2 - vb),
            (a + b, va + vb),
            (a + row, va + vrow),
            (row - b, vrow - vb),
            (b * column, vb * vcolumn),
            (row + column, vrow + vcolumn),
            (column < a, vcolumn < va),
            (-b[:, 1:], -vb[:, 1:]),
            (flow.addcmul(b, row, column), vb + vrow * vcolumn),
            (flow.clamp(a, row, row + column), np.clip(va, vrow, vrow + vcolumn)),
        ):
            np.testing.assert_array_equal(host(got), want, err_msg=f"{cols} columns at {past}")
        # In place, and into rows that lie apart: what is between them stays.
        for put, want in (
            (lambda y, b=b: y.add_(b), va + vb),
            (lambda y, row=row: y.mul_(row), va * vrow),
            (lambda y, b=b, column=column: flow.sub(b, column, out=y), vb - vcolumn),
        ):
            z, whole = tensor(memory, dtype, device), memory.copy()
            put(z[past : past + 5 * 88].reshape(5, 88)[:, :cols])
            whole[past : past + 5 * 88].reshape(5, 88)[:, :cols] = want
            np.testing.assert_array_equal(host(z), whole, err_msg=f"{cols} columns at {past}")


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
def test_operands_across_rows_of_16_bits(dtype, device):
    """Around tiles of 64 x 64, whole packs and not."""
    for rows, cols in itertools.product((8, 32, 40, 64, 72, 136), (31, 32, 64, 72, 130, 136)):
        x, y, z = parent(rows, cols), parent(cols, rows), parent(2, cols, rows)
        a, b, c = (tensor(v, dtype, device) for v in (x, y, z))
        np.testing.assert_array_equal(host(a + b.T), x + y.T)
        np.testing.assert_array_equal(host(b.T - a), y.T - x)
        np.testing.assert_array_equal(host(a < b.T), x < y.T)
        np.testing.assert_array_equal(host(c.mT + a), z.swapaxes(1, 2) + x)
        np.testing.assert_array_equal(host(flow.addcmul(a, b.T, c[1].T)), x + y.T * z[1].T)
        np.testing.assert_array_equal(host(a.clone().add_(b.T)), x + y.T)
        out = flow.zeros(rows, cols + 8, dtype=a.dtype, device=device)
        flow.mul(b.T, 2, out=out[:, :cols])
        np.testing.assert_array_equal(host(out), np.pad(2 * y.T, ((0, 0), (0, 8))))


def test_what_is_no_number_stays_so_in_rows(device):
    x = tensor(parent(5, 71), "float16", device)
    x[:, ::7] = float("nan")
    x[:, 1::9] = float("-inf")
    row, column = x[1, 1:], x[:, 2:3]
    values, vrow, vcolumn = (host(v).astype(float) for v in (x, row, column))
    np.testing.assert_array_equal(host(x[:, 1:] + row), values[:, 1:] + vrow)
    np.testing.assert_array_equal(host(row + column), vrow + vcolumn)
    np.testing.assert_array_equal(host(flow.maximum(x[:, 1:], column)),
                                  np.maximum(values[:, 1:], vcolumn))  # fmt: skip
    np.testing.assert_array_equal(host(x[:, 1:].isnan()), np.isnan(values[:, 1:]))


def test_rows_of_many_packs(device):
    """In passes as large as these a thread has several rows of what is broadcast."""
    row, column = parent(1032), parent(8203, 1)
    y = tensor(row, "float16", device) + tensor(column, "float16", device)
    np.testing.assert_array_equal(host(y), row + column)


def test_every_pair_of_dtypes(device):
    for a_type, b_type in itertools.product(ALL, ALL):
        for past in (0, 1, 3):
            x, y = parent(300)[past:], parent(300)[past:]
            a, b = tensor(x, a_type, device), tensor(y, b_type, device)
            x, y = (v != 0 if t == "bool" else v for v, t in ((x, a_type), (y, b_type)))
            common = flow.promote_types(a.dtype, b.dtype)
            want = np.logical_or(x, y) if common is flow.bool else x * 1.0 + y
            assert (a + b).dtype is common
            np.testing.assert_array_equal(host(a + b).astype(float), want)
            np.testing.assert_array_equal(host(a <= b), x * 1.0 <= y)
            np.testing.assert_array_equal(host(flow.maximum(a, b)), np.maximum(x * 1.0, y))


def test_a_wide_operand_is_rounded_as_a_cast_would(device):
    whole = flow.tensor([2049, 4099, -2051], device=device)
    half = flow.zeros(3, dtype=flow.float16, device=device)
    assert (whole + half).tolist() == whole.to(flow.float16).tolist() == [2048, 4100, -2052]
    assert (whole == whole.to(flow.float16)).all()
    half += flow.tensor([1.0, 2.0, 3.0], device=device)
    assert half.tolist() == [1, 2, 3] and half.dtype is flow.float16


def test_heads_and_tails_of_every_length(device):
    memory = parent(64)
    for dtype, past, n in itertools.product(("float16", "float32", "uint8"), range(17), range(18)):
        x = tensor(memory, dtype, device)
        y = x[past : past + n]
        y += 1
        want = memory.copy()
        want[past : past + n] += 1
        np.testing.assert_array_equal(host(x), want)
        np.testing.assert_array_equal(host(y + x[: len(y)]), want[past : past + n] + want[:n])


def test_results_lie_as_their_operands(device):
    def strides(x):
        return tuple(x.stride())

    x = flow.zeros(3, 4, 5, device=device)
    for order in itertools.permutations(range(3)):
        view = x.permute(*order)
        assert strides(view.exp()) == strides(view + 1) == strides(view < view) == strides(view)
        assert strides(view + view.half()) == strides(view)
        assert strides(flow.where(view < 1, view, view + 1)) == strides(view)
    t = flow.zeros(6, 4, device=device).T
    row_major = flow.zeros(4, 6, device=device)
    assert strides(t + row_major) == (1, 4) and strides(row_major + t) == (6, 1)
    assert strides(t + flow.zeros(6, device=device)) == (1, 4)
    assert strides(flow.zeros(8, 8, device=device)[:, 1:7].T.exp()) == (1, 6)
    assert strides(flow.zeros(4, 1, device=device).expand(4, 6).exp()) == (6, 1)
    assert strides(flow.zeros(5, 0, 3, device=device).permute(2, 1, 0) + 1) is not None


def test_overlapping_operands_in_place(device):
    values = parent(200)
    for first, second in (
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:100], np.s_[::2]),
        (np.s_[::2], np.s_[1::2]),
        (np.s_[:], np.s_[:]),
    ):
        x, want = tensor(values, "float32", device), values.copy()
        x[first].add_(x[second])
        want[first] += values[second]
        np.testing.assert_array_equal(host(x), want)
    square, want = tensor(values[:196].reshape(14, 14), "float32", device), values[:196]
    square += square.T
    np.testing.assert_array_equal(host(square), want.reshape(14, 14) + want.reshape(14, 14).T)
    with pytest.raises(RuntimeError, match="several elements"):
        tensor(values[:1], "float32", device).expand(4).add_(1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_mixed_dtypes(dtype, device):
    a = tensor(parent(6, 5) + 1, dtype, device).requires_grad_()
    b = tensor(parent(5) + 1, "float64", device).requires_grad_()
    (a * b + a / b).sum().backward()
    assert a.grad.dtype is a.dtype and b.grad.dtype is flow.float64
    x, y = host(a).astype(float), host(b)
    np.testing.assert_allclose(host(a.grad), np.broadcast_to(y + 1 / y, (6, 5)), rtol=8e-3)
    np.testing.assert_allclose(host(b.grad), (x - x / y**2).sum(0), rtol=1e-12)


def test_empty_operands(device):
    for shape in ((0,), (3, 0), (0, 3), (2, 0, 4)):
        x = flow.zeros(*shape, device=device)
        assert (x + x.half()).shape == x.exp().shape == shape and (x.T < x.T).numel() == 0
