# SPDX-License-Identifier: Apache-2.0
"""Places of any integer dtype in gather, scatter and their like; scatter and its like of bool."""

import numpy as np
import pytest
from numerics import INTEGERS, flow, host

X = np.random.default_rng(1).standard_normal((3, 4))
P = np.array([[0, 2, 1], [1, 0, 2]])
CALLS = {
    "gather": lambda x, p, s: x.gather(1, p),
    "take_along_dim": lambda x, p, s: flow.take_along_dim(x, p[:, :1], 1),
    "take_along_dim of the flat": lambda x, p, s: flow.take_along_dim(x, p),
    "take": lambda x, p, s: x.take(p),
    "index_select": lambda x, p, s: x.index_select(0, p[0]),
    "embedding": lambda x, p, s: flow.embedding(p, x),
    "scatter": lambda x, p, s: x.scatter(0, p, s),
    "scatter_": lambda x, p, s: x.clone().scatter_(1, p, 5.0),
    "scatter_add": lambda x, p, s: x.scatter_add(1, p, s),
    "scatter_reduce": lambda x, p, s: x.scatter_reduce(0, p, s, "amax"),
    "scatter of a product": lambda x, p, s: x.scatter(0, p, s, reduce="multiply"),
    "index_add": lambda x, p, s: x.index_add(0, p[0], s.new_ones(3, 4)),
    "index_copy": lambda x, p, s: x.index_copy(0, p[0], s.new_ones(3, 4)),
    "index_fill": lambda x, p, s: x.index_fill(0, p[0], 2.0),
    "index_put": lambda x, p, s: x.index_put((p[0].int(),), s.new_ones(3, 4)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_places_of_any_integer_dtype(name, dtype, device):
    x = flow.tensor(X, device=device)
    source = flow.tensor(X[:2, :3], device=device)
    if name.startswith("take_along_dim") and "flat" not in name:
        x = flow.tensor(X[:2], device=device)
    narrow = flow.tensor(P, dtype=getattr(flow, dtype), device=device)
    expected = CALLS[name](x, flow.tensor(P, device=device), source)
    got = CALLS[name](x, narrow, source)
    np.testing.assert_array_equal(host(got), host(expected))
    assert narrow.dtype is getattr(flow, dtype)  # as it was


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_gradients_by_narrow_places(dtype):
    x = flow.tensor(X, requires_grad=True)
    places = flow.tensor(P, dtype=getattr(flow, dtype))
    x.gather(1, places).sum().backward()
    expected = np.zeros_like(X)
    np.add.at(expected, (np.arange(2)[:, None], P), 1)
    np.testing.assert_array_equal(host(x.grad), expected)


@pytest.mark.parametrize("dtype", ["bool", "float32", "float16"])
def test_other_places_are_refused(dtype):
    x, places = flow.tensor(X), flow.zeros(2, 3, dtype=getattr(flow, dtype))
    for name, call in CALLS.items():
        if name == "index_put":
            continue
        word = {"embedding": "input", "take_along_dim": "indices",
                "take_along_dim of the flat": "indices"}.get(name, "index")  # fmt: skip
        with pytest.raises(
            flow.DTypeError, match=rf"{word} has dtype {dtype}, expected an integer"
        ):
            call(flow.tensor(X[:2]) if name == "take_along_dim" else x, places, x[:2, :3])


def test_out_of_range_places_of_narrow_dtypes():
    x = flow.tensor(X)
    for call in (lambda p: x.index_select(0, p), lambda p: x.take(p), lambda p: x[p]):
        with pytest.raises(IndexError):
            call(flow.tensor([100], dtype=flow.int8))


# bool. Sums of truths are whether one holds; products, whether all do.

B = np.array([True, False, False, True])
PLACES, S = np.array([0, 1, 1, 3]), np.array([False, True, False, False])
SUM, PRODUCT = B.copy(), B.copy()
np.logical_or.at(SUM, PLACES, S)
np.logical_and.at(PRODUCT, PLACES, S)
BOOL_CALLS = {
    "scatter": (lambda b, p, s: b.scatter(0, p[[0, 1, 3]], s[[0, 1, 3]]), [0, 1, 0, 0]),
    "scatter of a number": (lambda b, p, s: b.scatter(0, p, True), [1, 1, 0, 1]),
    "scatter_": (lambda b, p, s: b.clone().scatter_(0, p, False), [0, 0, 0, 0]),
    "scatter_add": (lambda b, p, s: b.scatter_add(0, p, s), SUM),
    "scatter_add_": (lambda b, p, s: b.clone().scatter_add_(0, p, s), SUM),
    "scatter with reduce": (lambda b, p, s: b.scatter(0, p, s, reduce="add"), SUM),
    "sum": (lambda b, p, s: b.scatter_reduce(0, p, s, "sum"), SUM),
    "amax": (lambda b, p, s: b.scatter_reduce(0, p, s, "amax"), SUM),
    "prod": (lambda b, p, s: b.scatter_reduce(0, p, s, "prod"), PRODUCT),
    "amin": (lambda b, p, s: b.scatter_reduce(0, p, s, "amin"), PRODUCT),
    "index_add": (lambda b, p, s: b.index_add(0, p, s), SUM),
    "index_add twice": (lambda b, p, s: b.index_add(0, p, s, alpha=2), SUM),
    "index_add of nothing": (lambda b, p, s: b.index_add(0, p, s, alpha=0), B),
    "index_copy": (lambda b, p, s: b.index_copy(0, p[:2], s[:2]), [0, 1, 0, 1]),
    "index_fill": (lambda b, p, s: b.index_fill(0, p, True), [1, 1, 0, 1]),
    "index_put": (lambda b, p, s: b.index_put((p[:2],), s[:2]), [0, 1, 0, 1]),
    "index_put and accumulate": (lambda b, p, s: b.index_put((p,), s, accumulate=True), SUM),
    "a mask and accumulate": (lambda b, p, s: b.index_put((~b,), flow.tensor(True).to(b.device),
                                                          accumulate=True), [1, 1, 1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOL_CALLS)
def test_bool(name, device):
    call, expected = BOOL_CALLS[name]
    b, places, s = (flow.tensor(t, device=device) for t in (B, PLACES, S))
    y = call(b, places, s)
    assert y.dtype is flow.bool
    np.testing.assert_array_equal(host(y), np.asarray(expected, bool))
    assert b.tolist() == B.tolist()


def test_many_truths_meet_in_one_place(device):
    for count in (255, 256, 1 << 16):  # a sum in few bits would come to 0
        b = flow.zeros(2, dtype=flow.bool, device=device)
        y = b.scatter_add(0, flow.zeros(count, dtype=flow.int64, device=device),
                          flow.ones(count, dtype=flow.bool, device=device))  # fmt: skip
        assert y.tolist() == [True, False]
    dense = flow.zeros(3, 2, dtype=flow.bool, device=device)
    column = dense[:, 1]
    column.scatter_add_(0, flow.tensor([2, 2], device=device),
                        flow.tensor([True, False], device=device))  # fmt: skip
    assert dense.tolist() == [[False, False], [False, False], [False, True]]


def test_bool_with_another_dtype_is_refused():
    b = flow.zeros(2, dtype=flow.bool)
    for source in (flow.ones(2), flow.ones(2, dtype=flow.int64)):
        with pytest.raises(flow.DTypeError):
            b.scatter_add(0, flow.tensor([0, 1]), source)
        with pytest.raises(flow.DTypeError):
            flow.zeros(2).scatter_add(0, flow.tensor([0, 1]), b)
