# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: functions that join, cut, pick and put elements, or run along a dim."""

import numpy as np
from numerics import ALL, INTEGERS, NUMERIC, flow
from op_row import Bad, Op, S, T, always, ones, same, summed

DTypeError, ShapeError = flow.DTypeError, flow.ShapeError


def places(*values):
    return np.array(values, dtype=np.int64)


def listed(function):
    """A function of a list of tensors, as one of the tensors themselves and keywords."""
    return lambda *tensors, **kwargs: function(list(tensors), **kwargs)


# ---------------------------------------------------------------------------------------------
# References.


def np_cat(*arrays, dim=0):
    return np.concatenate(arrays, axis=dim)


def np_stack(*arrays, dim=0):
    return np.stack(arrays, axis=dim)


def np_split(x, sizes, dim=0):
    size = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, size - start) for start in range(0, max(size, 1), max(sizes, 1))]
    return np.split(x, np.cumsum(sizes)[:-1], axis=dim)


def np_chunk(x, chunks, dim=0):
    size = x.shape[dim]
    return np_split(x, -(-size // chunks) if size else [0] * chunks, dim)


def np_unbind(x, dim=0):
    return [np.take(x, i, axis=dim) for i in range(x.shape[dim])]


def np_gather(x, dim, index):
    if x.ndim == 0:
        return x[None][np.atleast_1d(index)].reshape(index.shape)
    cut = tuple(slice(None) if d == dim % x.ndim else slice(n) for d, n in enumerate(index.shape))
    return np.take_along_axis(x[cut], index, axis=dim)


def np_index_select(x, dim, index):
    return x.copy() if x.ndim == 0 else np.take(x, np.atleast_1d(index), axis=dim)


def np_embedding(index, weight):
    return weight[index]


def _put(x, dim, index, src, add):
    y = np.array(x)
    flat, places = (y[None], np.atleast_1d(index)) if y.ndim == 0 else (y, index)
    for at in np.ndindex(places.shape):
        to = list(at)
        to[dim] = places[at]
        value = src if np.ndim(src) == 0 and y.ndim > 0 else np.atleast_1d(src)[at]
        flat[tuple(to)] = flat[tuple(to)] + value if add else value
    return flat.reshape(y.shape)


def np_scatter(x, dim, index, src):
    return _put(x, dim, index, src, add=False)


def np_scatter_add(x, dim, index, src):
    return _put(x, dim, index, src, add=True)


def np_cumsum(x, dim):
    if x.ndim == 0:
        return x.copy()
    return np.cumsum(x, axis=dim, dtype=np.int64 if x.dtype == bool else None)


def np_argsort(x, dim=-1, descending=False):
    if x.ndim == 0:
        return np.int64(0)
    # Of equal ones the first comes first either way.
    order = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - order if descending else np.argsort(x, axis=dim, kind="stable")


def np_sort(x, dim=-1, descending=False):
    order = np_argsort(x, dim, descending)
    return [np.take_along_axis(x, order, axis=dim) if x.ndim else x.copy(), order]


def np_topk(x, k, dim=-1, largest=True):
    pair = np_sort(x, dim, largest)
    return [np.take(a, range(k), axis=dim) if x.ndim else a for a in pair]


# ---------------------------------------------------------------------------------------------
# Samples.

JOINED = [
    S(T((2, 3)), T((2, 3))), S(T((2, 3)), T((2, 4)), T((2, 1)), dim=1), S(T((7,))),
    S(T((3, 0, 2)), T((3, 5, 2)), dim=-2), S(T((0,)), T((130,)), T((3,))), S(T((2, 1, 3)), dim=2),
]  # fmt: skip
CUT = [
    S(T((6, 3)), 2), S(T((7, 3)), 3), S(T((2, 5)), 4, -1), S(T((0, 3)), 2), S(T((3,)), 8),
    S(T((0, 3)), 0),
]  # fmt: skip
CHUNKED = [S(T((6, 3)), 2), S(T((7, 3)), 3, -2), S(T((3, 2)), 5), S(T((2, 0)), 2, 1)]
WIDE = np.random.default_rng(0).integers(0, 131, (5, 70))
GATHERED = [
    S(T((3, 4)), 1, places([0, 3], [1, 1], [2, 0])), S(T((3, 4)), -2, places([2, 0, 1, 2])[:1]),
    S(T((2, 3, 4)), 0, places([[1, 0], [1, 1]])), S(T((5, 131)), 1, WIDE), S(T(()), 0, places(0)),
    S(T((5,)), 0, places(4, 4, 0, 4, 1, 2, 3)), S(T((3, 0)), 0, np.zeros((2, 0), np.int64)),
    S(T((), "normal"), -1, places(0, 0)),
]  # fmt: skip
SELECTED = [
    S(T((6, 3)), 0, places(5, 0, 5)), S(T((2, 3, 4)), -1, places(1)), S(T((4,)), 0, places()),
    S(T((4, 130)), 0, places(3, 1, 0, 2, 2)), S(T((2, 3)), 1, np.array(2)), S(T(()), 0, places(0)),
    S(T((0, 3)), 1, places(2, 2)),
]  # fmt: skip
LOOKED_UP = [
    S(places([1, 0, 5], [1, 1, 2]), T((6, 3))), S(np.array(2), T((6, 3))),
    S(places(), T((6, 3))), S(places(3, 1, 3), T((4, 130))),
]  # fmt: skip
# No place twice: which of two elements stays has no gradient to compare with.
PUT = [
    S(T((3, 4)), 1, places([0, 3], [1, 2], [2, 0]), T((3, 2))),
    S(T((3, 4)), 0, places([2, 0, 1, 1]), T((1, 4))), S(T((3, 4)), -1, places([1, 0]), T((2, 3))),
    S(T((2, 3, 4)), 0, places([[1, 0], [0, 1]]), T((2, 2, 2))), S(T(()), 0, places(0), T(())),
    S(T((3, 4)), 1, np.zeros((3, 0), np.int64), T((3, 4))), S(T((3, 0)), 1, places()[None],
                                                                 T((1, 1))),
]  # fmt: skip
PUT_NUMBERS = [S(T((3, 4)), 1, places([0, 3], [1, 2], [2, 0]), 3), S(T((5,)), 0, places(4, 1), 1)]
ADDED = PUT + [
    S(T((5,)), 0, places(4, 4, 0, 4, 1), T((7,))), S(T((3, 40)), 0, WIDE[:, :40] % 3, T((5, 40))),
]  # fmt: skip

RUNNING = [
    S(T((7,)), 0), S(T((3, 4)), 1), S(T((3, 4)), -2), S(T((2, 3, 4)), 1), S(T(()), 0),
    S(T((0, 3)), 1), S(T((3, 0)), 1), S(T((2, 1300)), 1), S(T((130, 3)), 0),
]  # fmt: skip
SORTED = [
    S(T((9,), "distinct")), S(T((3, 4), "distinct"), 0), S(T((3, 4), "distinct"), -1, True),
    S(T((2, 3, 4), "distinct"), 1, descending=True), S(T((), "distinct")),
    S(T((0, 3), "distinct")), S(T((2, 120), "distinct")), S(T((3, 0), "distinct"), 0),
]  # fmt: skip


def index_errors(name, *more):
    """Of a call with an index of the wrong shape or dtype."""

    def call(x, dim, index):
        return getattr(x, name)(dim, index, *(1 for _ in more))

    return [
        Bad(lambda d: call(ones(d, 2, 3), 2, ones(d, 2, 3, dtype="int64")), IndexError,
            f"{name}(): dim 2 is out of range [-2, 1] for a tensor of shape [2, 3] "
            "(float32, {device})"),
        Bad(lambda d: call(ones(d, 2, 3), 1, ones(d, 2, 3)), DTypeError,
            f"{name}(): index has dtype float32, expected an integer dtype"),
        Bad(lambda d: call(ones(d, 2, 3), 1, ones(d, 3, 3, dtype="int64")), ShapeError,
            f"{name}(): index has shape [3, 3], expected as many dims as [2, 3], and none larger "
            "but for dim 1"),
    ]  # fmt: skip


def into(name):
    """An in-place method on a copy of its first argument, as a function."""
    return lambda self, *args: getattr(self.clone(), name)(*args)


MOVES = [
    Op("cat", JOINED, np_cat, ALL, call=listed(flow.cat), errors=[
        Bad(lambda d: flow.cat([]), ValueError,
            "cat(): tensors is empty, but it must be one tensor or more"),
        Bad(lambda d: flow.cat([ones(d, 2, 3), ones(d, 2, 4)]), ShapeError,
            "cat(): tensor 1 has shape [2, 4], expected [2, 3] but for dim 0"),
        Bad(lambda d: flow.cat([ones(d)]), ShapeError,
            "cat(): a tensor has shape [], expected at least 1 dim"),
        Bad(lambda d: flow.cat([ones(d, 2)], 1), IndexError,
            "cat(): dim 1 is out of range [-1, 0] for a tensor of shape [2] "
            "(float32, {device})")]),
    Op("stack", [S(T((2, 3)), T((2, 3))), S(T((2, 3)), T((2, 3)), dim=-1), S(T(()), T(()), T(())),
                 S(T((0,)), T((0,)), dim=1)],
       np_stack, ALL, call=listed(flow.stack), errors=[
        Bad(lambda d: flow.stack([ones(d, 2), ones(d, 3)]), ShapeError,
            "stack(): a tensor has shape [3], expected [2]")]),
    Op("split", CUT, np_split, ALL, errors=[
        Bad(lambda d: flow.split(ones(d, 5), 0), ValueError,
            "split(): split_size_or_sections is 0, but it must be positive"),
        Bad(lambda d: flow.split(ones(d), 1), ShapeError,
            "split(): input has shape [], expected at least 1 dim")]),
    Op("split_with_sizes", [S(T((6, 3)), (1, 0, 5)), S(T((2, 5)), (2, 3), -1), S(T((3,)), [3])],
       np_split, ALL, errors=[
        Bad(lambda d: flow.split(ones(d, 5), (2, 2)), ValueError,
            "split(): split_size_or_sections is [2, 2], but it must be sizes that add up to 5"),
        Bad(lambda d: flow.split(ones(d, 5), [4]), ValueError,
            "split(): split_size_or_sections is [4], but it must be sizes that add up to 5")]),
    Op("chunk", CHUNKED, np_chunk, ALL, errors=[
        Bad(lambda d: flow.chunk(ones(d, 5), 0), ValueError,
            "chunk(): chunks is 0, but it must be positive")]),
    Op("unbind", [S(T((3, 2))), S(T((2, 3)), -1), S(T((3,))), S(T((3, 0)))], np_unbind, ALL),

    Op("gather", GATHERED, np_gather, ALL, errors=index_errors("gather")),
    Op("index_select", SELECTED,
       np_index_select, ALL, errors=[
        Bad(lambda d: flow.index_select(ones(d, 3), 0, ones(d, 1, 1, dtype="int64")), ShapeError,
            "index_select(): index has shape [1, 1], expected at most 1 dim")]),
    Op("embedding", LOOKED_UP, np_embedding, errors=[
        Bad(lambda d: flow.embedding(ones(d, 2, dtype="int64"), ones(d, 3)), ShapeError,
            "embedding(): weight has shape [3], expected 2 dims"),
        Bad(lambda d: flow.embedding(ones(d, 2, dtype="int64"), ones(d, 3, 2), 3), IndexError,
            "embedding(): padding_idx 3 is out of range [-3, 2] for 3 rows")]),
    Op("scatter", PUT + PUT_NUMBERS, np_scatter, ALL, errors=index_errors("scatter_", 1)[1:] + [
        Bad(lambda d: ones(d, 2).scatter(0, ones(d, 2, dtype="int64"), ones(d, 1)), ShapeError,
            "scatter(): src has shape [1], expected at least [2], the index's"),
        Bad(lambda d: ones(d, 2).scatter(0, ones(d, 2, dtype="int64"), ones(d, 2, dtype="int32")),
            DTypeError, "scatter(): src has dtype int32, expected float32")]),
    Op("scatter_", PUT + PUT_NUMBERS, np_scatter, ALL, call=into("scatter_")),
    Op("scatter_add", ADDED, np_scatter_add, NUMERIC, bound="sum",
       magnitude=lambda x, d, i, s: np_scatter_add(np.abs(x), d, i, np.abs(s)), errors=[
        Bad(lambda d: ones(d, 2).scatter_add(0, ones(d, 2, dtype="int64"), ones(d, 2).int()),
            DTypeError, "scatter_add(): src has dtype int32, expected float32")]),
    Op("scatter_add_", ADDED, np_scatter_add, NUMERIC, call=into("scatter_add_"),
       bound="composite", magnitude=lambda x, d, i, s: np_scatter_add(np.abs(x), d, i, np.abs(s))),

    Op("cumsum", RUNNING, np_cumsum, ALL, bound="sum", result=summed,
       magnitude=lambda x, d: np_cumsum(np.abs(x), d), errors=[
        Bad(lambda d: flow.cumsum(ones(d, 2), 1), IndexError,
            "cumsum(): dim 1 is out of range [-1, 0] for a tensor of shape [2] "
            "(float32, {device})")]),
    Op("sort", SORTED, np_sort, NUMERIC, result=[same, always("int64")], twice=False, errors=[
        Bad(lambda d: flow.sort(ones(d, 2), 1), IndexError,
            "sort(): dim 1 is out of range [-1, 0] for a tensor of shape [2] "
            "(float32, {device})")]),
    Op("sort[equal]", [S(T((5, 70), "few"), -1, True), S(T((300,), "few")), S(T((0,)))],
       np_sort, (*INTEGERS, "bool"), result=[same, always("int64")], differentiable=False),
    Op("argsort", SORTED, np_argsort, NUMERIC, result=always("int64"), differentiable=False),
    Op("topk", [S(T((7,), "distinct"), 3), S(T((3, 37), "distinct"), 2, 1, False),
                S(T((3, 4), "distinct"), 4, -2 + 1), S(T((3, 4), "distinct"), 3, 0),
                S(T((3, 4), "distinct"), 0), S(T((), "distinct"), 1), S(T((0, 3), "distinct"), 2)],
       np_topk, NUMERIC, result=[same, always("int64")], twice=False, errors=[
        Bad(lambda d: flow.topk(ones(d, 2), 3), IndexError,
            "topk(): k is 3, but dim -1 has size 2")]),
]  # fmt: skip
