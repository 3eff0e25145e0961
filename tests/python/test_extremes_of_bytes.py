# SPDX-License-Identifier: Apache-2.0
"""The largest and the smallest of 8-bit numbers and of truths, at every length of a vector."""

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(41)
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "bool": (0, 1)}


def drawn(shape, dtype):
    low, high = RANGES[dtype]
    return tensor(RNG.integers(low, high, shape, endpoint=True), dtype)


def check(x, dim):
    a = host(x)
    least, most = flow.aminmax(x, dim=dim)
    for found, want in ((x.amax(dim), a.max(dim)), (x.amin(dim), a.min(dim)), (least, a.min(dim)),
                        (most, a.max(dim))):  # fmt: skip
        assert found.dtype is x.dtype
        np.testing.assert_array_equal(host(found), want)
    assert (x.max().item(), x.min().item()) == (a.max(), a.min())


@pytest.mark.parametrize("dtype", RANGES)
def test_every_length(dtype):
    for n in [*range(1, 140), 255, 256, 257, 511, 70_001]:
        x = drawn((3, n), dtype)
        check(x, 1)
        check(x.T.contiguous(), 0)
        check(drawn((n, 2, 3), dtype)[:, 1], 1)  # strided
        for fill in RANGES[dtype]:  # no lane may hold more, or less
            check(tensor(np.full((2, n), fill), dtype), 1)


@pytest.mark.parametrize("dtype", RANGES)
def test_every_place(dtype):
    low, high = RANGES[dtype]
    for place in range(150):
        for rest, one in ((low, high), (high, low)):
            values = np.full((1, 150), rest)
            values[0, place] = one
            check(tensor(values, dtype), 1)


@pytest.mark.parametrize("dtype", RANGES)
def test_no_elements(dtype):
    x = flow.zeros(0, 3, dtype=getattr(flow, dtype))
    for function in (flow.amax, flow.amin):
        assert function(x, 1).shape == (0,)
        with pytest.raises(IndexError, match="of no elements"):
            function(x)
