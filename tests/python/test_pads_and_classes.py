# SPDX-License-Identifier: Apache-2.0
"""pad of rows that are no whole packs of 16 bytes, and one_hot.

On CUDA a block puts 4096 bytes of the result together, columns that are neighbours in the input in
packs and the others one by one; rows shorter than two packs, and those of an input that is not
dense along them, are gathered by spans of 4096 elements.
"""

import numpy as np
import pytest
from numerics import flow, host, tensor

F = flow.nn.functional
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("cols", [4, 6, 14, 15, 16, 17, 30, 64, 300])
@pytest.mark.parametrize("offset", [0, 1])
def test_pads(mode, dtype, cols, offset, device):
    """Rows shorter and longer than a pack, at any offset, whose ends lie within packs."""
    x = np.arange(2 * 3 * 5 * cols).reshape(2, 3, 5, cols) % 97
    memory = np.concatenate([np.zeros(offset), x.ravel()])
    given = tensor(memory, dtype, device)[offset:].view(2, 3, 5, cols)
    for pads in ((1, 2, 3, 4), (3, 0, 0, 1), (0, 1)):
        width = [(0, 0)] * (4 - len(pads) // 2)
        width += [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
        if mode != "constant" and len(pads) == 2:
            continue
        got = F.pad(given, pads, mode=mode)
        np.testing.assert_array_equal(host(got), np.pad(x, width, MODES[mode]))
    cut = F.pad(given, (-1, 2, 1, -2))
    np.testing.assert_array_equal(
        host(cut), np.pad(x[..., :3, 1:], [(0, 0), (0, 0), (1, 0), (0, 2)]))  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_pads_by_spans(mode, dtype, transposed, device):
    """Rows of the result as long as those that are gathered by spans and one element shorter or
    longer, in one span and in several; rows of the input that lie across.
    """
    longest = 128 * 16 // np.dtype(dtype).itemsize
    for rows, out in ((3, 7), (511, 8), (600, 9), (4, longest - 1), (9, longest), (3, longest + 1)):
        x = np.arange(rows * (out - 3)).reshape(1, 1, rows, out - 3) % 97
        given = tensor(x, dtype, device)
        if transposed:
            given = given.transpose(2, 3).contiguous().transpose(2, 3)
        got = F.pad(given, (1, 2, 0, 1), mode=mode)
        np.testing.assert_array_equal(
            host(got), np.pad(x, [(0, 0), (0, 0), (0, 1), (1, 2)], MODES[mode]))  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("pads", [(0, 1), (700, 0), (3, 4000), (2500, 2499)], ids=str)
def test_pads_of_long_rows(mode, dtype, pads, device):
    """Rows of several blocks, some of which have nothing of the input itself."""
    for offset, cols in ((0, 5120), (1, 5001)):
        x = np.arange(3 * cols).reshape(1, 3, cols) % 97
        memory = np.concatenate([np.zeros(offset), x.ravel()])
        given = tensor(memory, dtype, device)[offset:].view(1, 3, cols)
        got = F.pad(given, pads, mode=mode)
        want = np.pad(x, [(0, 0), (0, 0), pads], MODES[mode])
        np.testing.assert_array_equal(host(got), want)
        rolled = given.roll(pads[0] + 1, 2)
        np.testing.assert_array_equal(host(rolled), np.roll(x, pads[0] + 1, 2))
        np.testing.assert_array_equal(host(given.flip((1, 2))), x[:, ::-1, ::-1])


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_flips_and_rolls_by_spans(dtype, device):
    # 64 rows of 64 are one span, 64 of 65 one and a part, 1000 of 67 many.
    for rows, cols in ((64, 64), (64, 65), (1000, 67), (5, 2049)):
        x = np.arange(rows * cols).reshape(rows, cols) % 89
        given = tensor(x, dtype, device)
        np.testing.assert_array_equal(host(given.flip((0, 1))), x[::-1, ::-1])
        np.testing.assert_array_equal(host(given.T.flip(0)), x.T[::-1])
        np.testing.assert_array_equal(
            host(given.roll((1, -2), (0, 1))), np.roll(x, (1, -2), (0, 1))
        )
        np.testing.assert_array_equal(host(given.T.roll(3, 1)), np.roll(x.T, 3, 1))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_flips_and_rolls_of_short_rows(dtype, device):
    # Rounds of 2, 6, 14 and 30 are those whose ends are as far apart as a pack read backwards.
    for cols in (2, 3, 5, 6, 9, 14, 17, 30, 67):
        x = np.arange(4 * 7 * cols).reshape(4, 7, cols) % 89
        given = tensor(x, dtype, device)
        np.testing.assert_array_equal(host(given.flip(2)), x[:, :, ::-1])
        np.testing.assert_array_equal(host(given.flip((0, 2))), x[::-1, :, ::-1])
        np.testing.assert_array_equal(host(given.roll((1, 2), (1, 2))), np.roll(x, (1, 2), (1, 2)))


def test_far_rolls_of_long_rows(device):
    """Ends of rows that are longer than what a block of a GPU writes."""
    for dtype, n in (("uint8", 70001), ("float16", 300000), ("float32", 1 << 18)):
        x = np.arange(2 * n).reshape(2, n) % 97
        given = tensor(x, dtype, device)
        for shift in (1, 5000, n // 4, -n // 3):
            np.testing.assert_array_equal(host(given.roll(shift, 1)), np.roll(x, shift, 1))
        padded = F.pad(given, (3001, 20000))
        np.testing.assert_array_equal(host(padded), np.pad(x, ((0, 0), (3001, 20000))))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_rolls_of_long_rows_of_packs(dtype, device):
    """Rows of 512 packs of 16 bytes and one pack less, of whole packs and others, at boundaries and
    between; a row begins anew within a pack, at a pack's start, in the first and the last one.
    """
    pack = 16 // np.dtype(dtype).itemsize
    for cols in (512 * pack, 511 * pack, 512 * pack + 1, 1000 * pack):
        for offset in (0, 1):
            x = np.arange(offset + 3 * cols) % 97
            given = tensor(x, dtype, device)[offset:].view(3, cols)
            x = x[offset:].reshape(3, cols)
            for shift in (1, -1, 3, pack, pack + 1, cols // 2 + 1, cols - 1):
                np.testing.assert_array_equal(host(given.roll(shift, 1)), np.roll(x, shift, 1))
            np.testing.assert_array_equal(
                host(given.roll((1, 5), (0, 1))), np.roll(x, (1, 5), (0, 1))
            )
            for pads in ((1, pack - 1), (3, 0), (-3, 3), (-1, 1 - pack)):
                padded = np.pad(x, ((0, 0), (max(pads[0], 0), max(pads[1], 0))))
                if pads[0] < 0:
                    padded = padded[:, -pads[0] :]
                if pads[1] < 0:
                    padded = padded[:, : pads[1]]
                np.testing.assert_array_equal(host(F.pad(given, pads)), padded)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_pads_of_long_rows_of_packs(mode, dtype, device):
    """Rows that show nothing, or others, along dims before the last one."""
    pack = 16 // np.dtype(dtype).itemsize
    cols = 600 * pack
    x = np.arange(2 * 3 * 4 * (cols - 8)).reshape(2, 3, 4, cols - 8) % 97
    given = tensor(x, dtype, device)
    want = np.pad(x, [(0, 0), (0, 0), (2, 1), (1, 7)], MODES[mode])
    np.testing.assert_array_equal(host(F.pad(given, (1, 7, 2, 1), mode=mode)), want)
    wide = tensor(want, dtype, device)
    np.testing.assert_array_equal(
        host(wide.roll((1, 2, -3), (0, 2, 3))), np.roll(want, (1, 2, -3), (0, 2, 3))
    )


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3)], ids=str)
def test_one_hot(shape, device):
    classes = np.random.default_rng(1).integers(0, 6, shape)
    given = flow.tensor(classes).to(device)
    got = F.one_hot(given, 6)
    assert got.dtype is flow.int64 and got.device == given.device
    np.testing.assert_array_equal(host(got), np.eye(6, dtype=int)[classes])
    if classes.size > 0:
        np.testing.assert_array_equal(host(F.one_hot(given)), host(got)[..., : classes.max() + 1])


@pytest.mark.parametrize("count", [1, 2, 3, 128, 1001])
def test_one_hot_of_many(count, device):
    """Rows that begin at multiples of 16 bytes, and others."""
    classes = np.random.default_rng(2).integers(0, count, 997)
    got = F.one_hot(flow.tensor(classes).to(device), count)
    np.testing.assert_array_equal(host(got), np.eye(count, dtype=int)[classes])
    rows = flow.tensor(classes[:996].reshape(4, 249).T.copy()).to(device).T  # no dense memory
    np.testing.assert_array_equal(host(F.one_hot(rows, count)).reshape(996, count), host(got)[:996])


@pytest.mark.parametrize(
    "classes, count",
    [
        ([0, 3], 3),
        ([0, 1, 2, 3], 3),
        ([-1, 0], 3),
        ([1, -1, 0], 2),
        ([-1], -1),
        ([-7, 2], -1),
        ([0], 0),
        ([0], -3),
    ],
)
def test_one_hot_refuses(classes, count, device):
    given = flow.tensor(classes).to(device)
    if device == "cuda" and count > 0:  # which cannot stop
        rows = [[int(c == k) for k in range(count)] for c in classes]
        assert host(F.one_hot(given, count)).tolist() == rows
        wide = host(F.one_hot(flow.tensor([*classes] * 999).to(device), 2000))
        assert wide.sum() == 999 * sum(0 <= c for c in classes)
        return
    with pytest.raises(ValueError, match="class .* is out of range|num_classes is (0|-3), but"):
        F.one_hot(given, count)
