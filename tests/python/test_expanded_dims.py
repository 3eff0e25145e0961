# SPDX-License-Identifier: Apache-2.0
"""Reductions of expanded dims, and of windows that overlap: what the same elements give, copied.

On the CPU each element of an expanded dim is read once: where the dim is reduced it counts so many
times, where it stays the result is repeated.
"""

import itertools
import math

import numpy as np
import pytest
from numerics import ALL, bits, flow, host, tensor

FLOAT = {
    "mean": lambda x, d, k: x.mean(d, k),
    "nansum": lambda x, d, k: x.nansum(d, k),
    "nanmean": lambda x, d, k: x.nanmean(d, k),
    "norm": lambda x, d, k: x.norm(2, d, k),
    "norm 0": lambda x, d, k: x.norm(0, d, k),
    "norm 1": lambda x, d, k: x.norm(1, d, k),
    "norm 3": lambda x, d, k: x.norm(3, d, k),
    "norm inf": lambda x, d, k: x.norm(math.inf, d, k),
    "norm -inf": lambda x, d, k: x.norm(-math.inf, d, k),
    "var": lambda x, d, k: x.var(d, False, k),
    "logsumexp": lambda x, d, k: x.logsumexp(d, k),
}
ANY = {
    "sum": lambda x, d, k: x.sum(d, k),
    "prod": lambda x, d, k: flow.prod(x, d, k),
    "amax": lambda x, d, k: x.amax(d, k),
    "amin": lambda x, d, k: x.amin(d, k),
    "any": lambda x, d, k: x.any(d, k),
    "all": lambda x, d, k: x.all(d, k),
    "count_nonzero": lambda x, d, k: x.count_nonzero(d),
}
RTOL = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-13}


def expanded(dtype, device):
    """Tensors of shape (4, 3, 20, 5) with each choice of its dims expanded."""
    rng = np.random.default_rng(5)
    for some in itertools.product((False, True), repeat=4):
        shape = [1 if one else n for one, n in zip(some, (4, 3, 20, 5), strict=True)]
        values = rng.integers(-2, 3, shape) if "float" in dtype else rng.integers(0, 3, shape)
        yield tensor(values, dtype, device).expand(4, 3, 20, 5)


@pytest.mark.parametrize("dtype", ALL)
def test_every_choice_of_dims(dtype, device):
    functions = ANY | FLOAT if "float" in dtype else ANY
    for x in expanded(dtype, device):
        copy = x.contiguous()
        for dims in ((0,), (2,), (3,), (0, 1), (1, 3), (2, 3), (0, 2, 3), (0, 1, 2, 3)):
            for name, function in functions.items():
                keep = name != "count_nonzero"
                got, want = (host(function(t, dims, keep)) for t in (x, copy))
                np.testing.assert_allclose(
                    got, want, rtol=RTOL.get(dtype, 0), err_msg=f"{name} over {dims}, {x.stride()}"
                )


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64", "uint8"])
def test_extremes_and_their_places(dtype, device):
    for x in expanded(dtype, device):
        copy = x.contiguous()
        for dim in range(4):
            found, expected = ((*t.max(dim), *t.aminmax(dim=dim)) for t in (x, copy))
            for got, want in zip(found, expected, strict=True):
                assert bits(got) == bits(want)
        assert [t.item() for t in x.aminmax()] == [t.item() for t in copy.aminmax()]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 1e35, 1e-40])
@pytest.mark.parametrize("n", [2, 7, 1000])
def test_numbers_at_the_ends(value, n, device):
    x = flow.tensor([[value]], device=device)
    for t in (x.expand(n, 1), x.expand(1, n), x.expand(3, n)):
        copy = t.contiguous()
        for function in (*ANY.values(), *FLOAT.values()):
            for dims in ((0,), (1,), (0, 1)):
                got, want = (host(function(y, dims, False)) for y in (t, copy))
                np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-45)


def test_sums_are_those_of_float64_rounded(device):
    x = flow.rand(1, 300, device=device)
    got = host(x.expand(3_000_000, 300).sum(0))
    want = (host(x)[0] * 3_000_000).astype(np.float32)
    if device == "cpu":
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_integers_wrap_around_and_bytes_are_counted(device):
    x = tensor([[2**62], [3]], "int64", device)
    assert x.expand(2, 6).sum(1).tolist() == [(6 * 2**62 + 2**63) % 2**64 - 2**63, 18]
    truths = tensor([[True], [False]], "bool", device)
    assert truths.expand(2, 1000).sum(1).tolist() == [1000, 0]


def test_of_nothing(device):
    x = flow.ones(1, 3, device=device)
    assert x.expand(0, 3).sum(0).tolist() == [0, 0, 0]
    assert x[:, :0].expand(4, 0).sum(1).tolist() == [0] * 4
    assert x[:, :1].expand(4, 0).sum(1).tolist() == [0] * 4
    assert x[:, :1].expand(5, 0).prod(1).tolist() == [1] * 5


def test_what_is_repeated_is_memory_of_its_own(device):
    y = flow.arange(3.0, device=device)[:, None].expand(3, 4)[:, :, None].expand(3, 4, 2).sum(2)
    assert y.is_contiguous()
    y[0, 0] = 9
    assert y.tolist() == [[9, 0, 0, 0], [2] * 4, [4] * 4]


@pytest.mark.parametrize("size, step", [(2, 1), (3, 1), (3, 2), (16, 1), (80, 7)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int32", "bool"])
def test_windows(size, step, dtype, device):
    for shape in ((5, 130), (3, 80), (2, 3, 95)):
        x = tensor(np.random.default_rng(1).integers(0, 2, shape), dtype, device)
        windows = x.unfold(-1, size, step)
        for dims in ((-1,), (-2,), (-2, -1), (0,)):
            for function in (ANY["sum"], ANY["amax"], ANY["all"]):
                got, want = (function(t, dims, True) for t in (windows, windows.contiguous()))
                assert bits(got) == bits(want)


def test_gradients_go_back_through_what_is_expanded(device):
    x = flow.arange(4.0, device=device).requires_grad_()
    (x[:, None].expand(4, 6).sum(1) * flow.arange(4.0, device=device)).sum().backward()
    assert x.grad.tolist() == [0, 6, 12, 18]
