# SPDX-License-Identifier: Apache-2.0
"""tril and triu of matrices whose rows are whole packs of 16 bytes, and of others, at any offset.

On CUDA a pack is kept, left out or cut, and one across the end of a row is written element by
element.
"""

import numpy as np
import pytest
from numerics import flow, host, tensor


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("rows, cols", [(1, 40), (17, 16), (16, 17), (33, 64), (70, 31), (5, 1)])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_triangles(dtype, rows, cols, offset, device):
    x = np.arange(3 * rows * cols).reshape(3, rows, cols) % 97 + 1
    memory = np.concatenate([np.zeros(offset), x.ravel()])
    given = tensor(memory, dtype, device)[offset:].view(3, rows, cols)
    for diagonal in (0, 1, -1, 7, -9, cols - 1, 1 - rows, cols + 5, -rows - 5):
        lower, upper = flow.tril(given, diagonal), flow.triu(given, diagonal)
        np.testing.assert_array_equal(host(lower), np.tril(x, diagonal))
        np.testing.assert_array_equal(host(upper), np.triu(x, diagonal))


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("rows, cols", [(1, 1), (1, 40), (5, 1), (4, 4), (17, 33), (70, 31)])
def test_triangles_in_place(dtype, rows, cols, device):
    x = np.arange(3 * rows * cols).reshape(3, rows, cols) % 2 + 1
    for diagonal in (0, 1, -1, 7, -9, cols + 5, -rows - 5):
        for method, reference in (("tril_", np.tril), ("triu_", np.triu)):
            dense = tensor(x, dtype, device)
            turned = tensor(x.swapaxes(1, 2).copy(), dtype, device).transpose(1, 2)
            part = tensor(np.pad(x, ((0, 0), (0, 0), (1, 2))), dtype, device)[:, :, 1:-2]
            for given in (dense, turned, part):
                version = given._version
                assert getattr(given, method)(diagonal) is given
                assert given._version > version
                want = reference(host(tensor(x, dtype)), diagonal)
                np.testing.assert_array_equal(host(given), want)


def test_in_place_gradients_and_refusals(device):
    x = flow.ones(3, 3, device=device, requires_grad=True)
    y = x * 2
    (y.tril_() * 3).sum().backward()
    np.testing.assert_array_equal(host(x.grad), 6 * np.tril(np.ones((3, 3))))
    with pytest.raises(RuntimeError, match=r"^tril_\(\)"):
        x.tril_()
    with pytest.raises(flow.ShapeError, match=r"^triu_\(\).*at least 2 dims"):
        flow.ones(3, device=device).triu_()
    with pytest.raises(RuntimeError, match=r"^triu_\(\).*clone"):
        flow.ones(1, 3, device=device).expand(3, 3).triu_()
    assert flow.ones(0, 3, device=device).tril_().shape == (0, 3)
    assert flow.ones(2, 3, device="meta").tril_().shape == (2, 3)


@pytest.mark.parametrize("offset", [0, 2, -1])
def test_matrices_of_diagonals_lie_in_any_dims(offset, device):
    x = tensor(np.arange(1, 25).reshape(2, 3, 4), "float32", device)
    size = 4 + abs(offset)
    for dim1, dim2 in [(-2, -1), (0, 1), (1, 0), (0, -1), (-1, 1), (2, -4)]:
        y = flow.diag_embed(x, offset, dim1, dim2)
        rest = [d for d in range(4) if d not in (dim1 % 4, dim2 % 4)]
        want = np.zeros((2, 3, size, size))
        for i in range(4):
            want[:, :, i - min(offset, 0), i + max(offset, 0)] = host(x)[:, :, i]
        np.testing.assert_array_equal(host(y.permute(*rest, dim1, dim2)), want)
        assert y.is_contiguous() and y.view(-1).shape == (want.size,)
