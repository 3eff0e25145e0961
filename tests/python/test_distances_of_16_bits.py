# SPDX-License-Identifier: Apache-2.0
"""normalize, cosine_similarity, pairwise_distance, cdist and pdist of 16-bit floats are rounded
once."""

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor
from numpy.testing import assert_array_equal

F = flow.nn.functional
RNG = np.random.default_rng(43)
CALLS = {
    "normalize": lambda a, b: F.normalize(a, dim=-1),
    "normalize_columns": lambda a, b: F.normalize(a, 1.0, 0),
    "cosine": lambda a, b: F.cosine_similarity(a, b, -1),
    "cosine_of_rows": lambda a, b: F.cosine_similarity(a, b[:1], 0),
    "distance": lambda a, b: F.pairwise_distance(a, b),
    "longest": lambda a, b: F.pairwise_distance(a, b, float("inf"), keepdim=True),
}


def check(name, a, b, dtype):
    """The result is that of float32, rounded, whether gradients are recorded or not."""
    call, kind = CALLS[name], getattr(flow, dtype)
    got, want = call(a, b), call(a.float(), b.float()).to(kind)
    assert got.dtype is kind
    assert_array_equal(host(got), host(want))
    recorded = call(a.detach().requires_grad_(), b)
    assert recorded.requires_grad
    assert_array_equal(host(recorded.detach()), host(want))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CALLS)
def test_lengths_and_layouts(name, dtype):
    for n in (1, 3, 31, 33, 65, 257):
        a, b = (tensor(RNG.standard_normal((5, n)), dtype) for _ in range(2))
        check(name, a, b, dtype)
        check(name, a.T.contiguous().T, b[:, :1].expand(5, n), dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_at_the_ends(name, dtype):
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 6e4, 6e-8]
    a = tensor([[x, y, 0.0] for x in ends for y in ends], dtype)
    check(name, a, a.flip(0), dtype)
    check(name, a * 0, a, dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_no_elements_and_one_line(dtype):
    kind = getattr(flow, dtype)
    assert F.normalize(flow.zeros(0, 3, dtype=kind), dim=0).shape == (0, 3)
    assert F.cosine_similarity(*[flow.zeros(2, 0, dtype=kind)] * 2).tolist() == [0.0, 0.0]
    assert F.pairwise_distance(*[flow.zeros(0, 3, dtype=kind)] * 2).dtype is kind
    line = flow.tensor([3.0, 4.0], dtype=kind)
    assert F.pairwise_distance(line, line * 0, eps=0.0).item() == 5
    assert F.cosine_similarity(line, line, 0).item() == 1


@pytest.mark.parametrize("dtype", HALVES)
def test_a_dtype_beside_another(dtype):
    a = tensor(RNG.standard_normal((4, 5)), dtype)
    y = F.cosine_similarity(a, a.float())
    assert y.dtype is flow.float32
    assert_array_equal(host(y), host(F.cosine_similarity(a.float(), a.float())))


# By differences in float32, also where float32 itself takes a product of matrices.
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, float("inf")])
@pytest.mark.parametrize(
    "shape", [(3, 5), (30, 5), (26, 70), (2, 4, 3), (2, 30, 65), (2, 0, 3)], ids=str
)
def test_distances_of_all_pairs(shape, p, dtype):
    a, b = (tensor(RNG.standard_normal(shape), dtype) for _ in range(2))
    way = "donot_use_mm_for_euclid_dist"
    got, want = flow.cdist(a, b, p), flow.cdist(a.float(), b.float(), p, way).to(a.dtype)
    assert got.dtype is a.dtype
    assert_array_equal(host(got), host(want))
    assert_array_equal(host(flow.cdist(a, a, p).diagonal(0, -2, -1)), 0)
    if len(shape) == 2:
        assert_array_equal(host(flow.pdist(a, p)), host(flow.pdist(a.float(), p).to(a.dtype)))
