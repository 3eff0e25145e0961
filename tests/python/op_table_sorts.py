# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: ranks, quantiles, searches. sort and topk are with those that move."""

import numpy as np
from numerics import ALL, FLOATS, INTEGERS, NUMERIC, flow
from op_row import Bad, Op, S, T, always, ones, same
from op_table_moves import np_argsort, np_sort


def np_take(x, at, dim, keepdim):
    """The element at a place in the order along a dim, and its place."""
    if x.ndim == 0:
        return [x.copy(), np.int64(0)]
    order = np.expand_dims(np.take(np_argsort(x, dim), at, axis=dim), dim)
    found = [np.take_along_axis(x, order, axis=dim), order]
    return found if keepdim else [np.squeeze(a, dim) for a in found]


def np_kthvalue(x, k, dim=-1, keepdim=False):
    return np_take(x, k - 1, dim, keepdim)


def np_median(x, dim=None, keepdim=False):
    if dim is None:
        return np.sort(x.ravel())[(x.size - 1) // 2]
    return np_take(x, (x.shape[dim] - 1) // 2 if x.ndim else 0, dim, keepdim)


def np_mode(x, dim=-1, keepdim=False):
    if x.ndim == 0:
        return [x.copy(), np.int64(0)]

    def place(row):
        values, counts = np.unique(row, return_counts=True)
        return np.flatnonzero(row == values[counts.argmax()])[-1]

    shape = [1 if d == dim % x.ndim else n for d, n in enumerate(x.shape)]
    if x.size == 0:
        places = np.zeros(shape, np.int64)
    else:
        places = np.expand_dims(np.apply_along_axis(place, dim, x), dim)
    found = [np.take_along_axis(x, places, axis=dim), places]
    return found if keepdim else [np.squeeze(a, dim) for a in found]


def np_quantile(x, q, dim=None, keepdim=False, interpolation="linear"):
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def np_searchsorted(line, x, right=False, out_int32=False):
    side = "right" if right else "left"
    if line.ndim == 1:
        return np.searchsorted(line, x, side)
    rows, sought = line.reshape(-1, line.shape[-1]), x.reshape(-1, x.shape[-1])
    found = [np.searchsorted(a, b, side) for a, b in zip(rows, sought, strict=True)]
    return np.array(found, np.int64).reshape(x.shape)


def np_histc(x, bins, min, max):
    return np.histogram(x, bins, (min, max))[0].astype(x.dtype)


# Widths around those at which another way is taken: test_sorts.py.
MIDDLES = [
    S(T((9,), "distinct")), S(T((3, 4), "distinct")), S(T((2, 3, 4), "distinct")),
    S(T((), "distinct")), S(T((3, 37), "distinct")),
]  # fmt: skip
ALONG = [
    S(T((9,), "distinct"), 0), S(T((3, 4), "distinct"), 1), S(T((3, 4), "distinct"), -2),
    S(T((2, 3, 4), "distinct"), 1, True), S(T((0, 3), "distinct"), 1), S(T((), "distinct"), -1),
    S(T((2, 130), "distinct", grad=False), 1),
]  # fmt: skip
SHARES = np.array([0.1, 0.45, 0.93])
QUANTILES = [
    S(T((9,), "distinct"), 0.3), S(T((3, 4), "distinct"), 0.45), S(T((3, 4), "distinct"), 0.7, 1),
    S(T((2, 3, 4), "distinct"), SHARES, -2), S(T((2, 3, 4), "distinct"), SHARES, 0, True),
    S(T((3, 4), "distinct"), 0.2, keepdim=True), S(T((7,), "distinct"), SHARES),
    S(T((0, 3), "distinct"), 0.5, 1), S(T((), "distinct"), 0.5),
    S(T((3, 4), "distinct"), 0.7, 1, interpolation="midpoint"),
    S(T((3, 5), "distinct"), SHARES, 0, interpolation="lower"),
    S(T((3, 5), "distinct"), SHARES, 1, interpolation="higher"),
    S(T((3, 5), "distinct"), 0.3, interpolation="nearest"),
]  # fmt: skip
SOUGHT = [
    S(T((9,), "ordered"), T((3, 4))), S(T((9,), "ordered"), T((70,)), right=True),
    S(T((2, 5), "ordered"), T((2, 3))), S(T((2, 3, 8), "ordered"), T((2, 3, 1)), right=True),
   S(T((9,), "ordered"), T(())), S(T((0,), "ordered"), T((3,))),
    S(T((4,), "ordered"), T((0, 2))), S(T((130,), "ordered"), T((1025,))),
    # 512 keys of a block of a GPU, from one row and from several.
    S(T((1,), "ordered"), T((512,)), right=True), S(T((3, 16), "ordered"), T((3, 171))),
]  # fmt: skip
NO_MEDIAN = "(): there is no median of no elements: shape [2, 0]"
PAIR = [same, always("int64")]

SORTS = [
    Op("msort", [S(T((7,), "distinct")), S(T((5, 3), "distinct")), S(T((0, 3), "distinct")),
                 S(T((), "distinct"))],
       lambda x: np_sort(x, 0)[0], NUMERIC, twice=False),
    Op("kthvalue", [S(T((9,), "distinct"), 3), S(T((3, 4), "distinct"), 1, 0),
                    S(T((3, 37), "distinct"), 37, 1, True), S(T((0, 3), "distinct"), 2),
                    S(T((), "distinct"), 1)],
       np_kthvalue, NUMERIC, result=PAIR, twice=False, errors=[
        Bad(lambda d: flow.kthvalue(ones(d, 4), 5), ValueError,
            "kthvalue(): k is 5, but it must be in [1, 4]")]),
    Op("kthvalue[equal]", [S(T((5, 70), "few"), 20, -1), S(T((300,), "few"), 150),
                           S(T((0, 3), "few"), 1)],
       np_kthvalue, (*INTEGERS, "bool"), result=PAIR, differentiable=False),
    Op("median", MIDDLES, np_median, NUMERIC, twice=False),
    Op("median[dim]", ALONG, np_median, NUMERIC, result=PAIR, twice=False, errors=[
        Bad(lambda d: flow.median(ones(d, 2, 0), 1), IndexError, f"median{NO_MEDIAN}")]),
    Op("nanmedian", MIDDLES, np_median, NUMERIC, twice=False),
    Op("nanmedian[dim]", ALONG, np_median, NUMERIC, result=PAIR, twice=False, errors=[
        Bad(lambda d: flow.nanmedian(ones(d, 2, 0), 1), IndexError,
            f"nanmedian{NO_MEDIAN}")]),
    Op("mode", ALONG, np_mode, NUMERIC, result=PAIR, twice=False, errors=[
        Bad(lambda d: flow.mode(ones(d, 2, 0), 1), IndexError,
            "mode(): there is no mode of no elements: shape [2, 0]")]),
    Op("mode[equal]", [S(T((5, 70), "few"), 0), S(T((2, 300), "few"), 1, True),
                       S(T((0, 3), "few"), 1)], np_mode,
       (*INTEGERS, "bool"), result=PAIR, differentiable=False),
    Op("quantile", QUANTILES, np_quantile, FLOATS, bound="pointwise", twice=False, errors=[
        Bad(lambda d: flow.quantile(ones(d, 2), 1.5), ValueError,
            "quantile(): q must be in [0, 1]"),
        Bad(lambda d: flow.quantile(ones(d, 2), 0.5, interpolation="odd"), ValueError,
            'quantile(): interpolation is "odd", but it must be "linear", "lower", "higher", '
            '"midpoint" or "nearest"'),
        Bad(lambda d: flow.quantile(ones(d, 2, dtype="int32"), 0.5), flow.DTypeError,
            "quantile(): input has dtype int32, but it must be float16, bfloat16, float32 or "
            "float64"),
        Bad(lambda d: flow.quantile(ones(d, 2, 0), 0.5, 1), flow.ShapeError,
            "quantile(): there are no elements: shape [2, 0]")]),
    Op("nanquantile", QUANTILES, np_quantile, FLOATS, bound="pointwise", twice=False),
    Op("searchsorted", SOUGHT, np_searchsorted, NUMERIC, differentiable=False,
       result=always("int64")),
    Op("searchsorted[int32]", [S(T((9,), "ordered"), T((3, 4)), out_int32=True),
                               S(T((4,), "ordered"), T((0,)), out_int32=True)], np_searchsorted,
       NUMERIC, differentiable=False, result=always("int32")),
    Op("bucketize", [S(T((3, 4)), T((9,), "ordered")), S(T((0,)), T((3,), "ordered"), right=True)],
       lambda x, line, right=False: np_searchsorted(line, x, right), NUMERIC,
       differentiable=False, result=always("int64"), errors=[
        Bad(lambda d: flow.bucketize(1.0, ones(d, 2, 2)), flow.ShapeError,
            "bucketize(): boundaries has shape [2, 2], expected 1 dim")]),
    Op("isin", [S(T((3, 4), "few"), T((2,), "few")), S(T((70,)), T((2, 9))), S(T((0, 2)), T((3,))),
                S(T((3,)), T((0,))), S(T((5,), "few"), 2), S(2, T((3, 1), "few"), invert=True)],
       lambda x, y, invert=False: np.isin(x, y, invert=invert), ALL, differentiable=False,
       result=always("bool")),
    Op("histc", [S(T((40,), "distinct"), 9, -4.5, 4.5), S(T((3, 70), "distinct"), 4, -2.5, 1.5),
                 S(T((0,), "distinct"), 3, 0.0, 1.0)],
       np_histc, NUMERIC, differentiable=False, errors=[
        Bad(lambda d: flow.histc(ones(d, 2), 0), ValueError,
            "histc(): bins is 0, but it must be positive")]),
]  # fmt: skip
