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
