# SPDX-License-Identifier: Apache-2.0
"""Matrix products on several threads of the CPU, which each have a part of the result."""

import numpy as np
import pytest
from numerics import flow, host

# Around what is cut for 2, 3 and 5 threads: one row or column, less than a unit of 16, uneven rest.
SHAPES = [(1, 4096, 300), (4096, 1, 300), (33, 17, 4000), (96, 82, 1024), (1024, 82, 96),
          (100, 1000, 64), (130, 130, 130)]  # fmt: skip
BOUND = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 1.6e-2}


def drawn(shape, dtype, transposed, seed):
    """A matrix of small numbers, stored by rows or by columns, and the same in float64."""
    values = np.random.default_rng(seed).standard_normal(shape[::-1] if transposed else shape)
    t = flow.tensor(values).to(getattr(flow, dtype))
    wide = t.to(flow.float64).numpy()
    return (t.T, wide.T) if transposed else (t, wide)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("ways", ["nn", "nt", "tn", "tt"])
def test_values_are_right_on_any_number_of_threads(threads, ways, dtype):
    for m, n, k in SHAPES:
        a, wide_a = drawn((m, k), dtype, ways[0] == "t", 0)
        b, wide_b = drawn((k, n), dtype, ways[1] == "t", 1)
        want = wide_a @ wide_b
        bound = BOUND[dtype] * np.maximum(np.abs(want), np.sqrt(k))
        for found in (a @ b, a @ b):
            assert (np.abs(host(found.to(flow.float64)) - want) <= bound).all(), (m, n, k)


def test_a_bias_and_what_was_there_are_added_once(threads):
    rng = np.random.default_rng(2)
    x, w, b = (flow.tensor(rng.standard_normal(s)) for s in ((200, 96), (130, 96), (130,)))
    want = x.numpy() @ w.numpy().T + b.numpy()
    np.testing.assert_allclose(host(flow.nn.functional.linear(x, w, b)), want, rtol=0, atol=1e-12)


def test_the_same_call_gives_the_same_bits(threads):
    a, b = (drawn(s, "float32", False, i)[0] for i, s in enumerate(((300, 700), (700, 110))))
    first = (a @ b).numpy()
    assert all(np.array_equal(first, (a @ b).numpy()) for _ in range(5))
