# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: slices added, copied and filled by places, elements taken, and padding."""

import numpy as np
from numerics import ALL, INTEGERS, NUMERIC, flow
from op_row import Bad, Op, S, T, ones

DTypeError, ShapeError = flow.DTypeError, flow.ShapeError


def places(*values):
    return np.array(values, dtype=np.int64)


def into(name):
    """An in-place method on a copy of its first argument, as a function."""
    return lambda self, *args, **kwargs: getattr(self.clone(), name)(*args, **kwargs)


def _slices(x, dim, index, source):
    """The result, and pairs of a place of it and the slice that goes there."""
    y = np.array(x)
    flat = y.reshape(1) if y.ndim == 0 else y
    lines = np.moveaxis(flat, dim, 0)
    source = np.asarray(source).reshape(1) if np.ndim(source) == 0 else source
    return y, lines, zip(np.atleast_1d(index), np.moveaxis(source, dim, 0), strict=True)


def np_index_add(x, dim, index, source, alpha=1):
    y, lines, pairs = _slices(x, dim, index, source)
    for place, part in pairs:
        lines[place] += alpha * part
    return y


def np_index_copy(x, dim, index, source):
    y, lines, pairs = _slices(x, dim, index, source)
    for place, part in pairs:
        lines[place] = part
    return y


def np_index_fill(x, dim, index, value):
    y = np.array(x)
    np.moveaxis(y.reshape(1) if y.ndim == 0 else y, dim, 0)[np.atleast_1d(index)] = value
    return y


def np_take_along_dim(x, indices, dim=None):
    if dim is None:
        return x.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(x, indices, dim)


def np_pad(x, pad, mode="constant", value=0):
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    widths = [(0, 0)] * x.ndim
    for k in range(0, len(pad), 2):
        widths[x.ndim - 1 - k // 2] = (pad[k], pad[k + 1])
    cut = tuple(
        slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(widths, x.shape, strict=True)
    )
    if mode in ("constant", "circular"):  # the others mirror what is cut too
        x, widths = x[cut], [(max(0, a), max(0, b)) for a, b in widths]
    more = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x, widths, names[mode], **more)


# No place twice: which of two slices stays has no gradient to compare with.
ONCE = [
    S(T((3, 4)), 1, places(3, 0), T((3, 2))), S(T((3, 4)), -2, places(2, 0, 1), T((3, 4))),
    S(T((2, 3, 4)), 1, places(2, -3), T((2, 2, 4))), S(T(()), 0, places(0), T(())),
    S(T((5,)), 0, places(), T((0,))), S(T((3, 0)), 0, places(1), T((1, 0))),
    S(T((4, 70)), 0, places(3, 1, 0), T((3, 70))), S(T((3,)), 0, np.array(1), T(())),
]  # fmt: skip
MANY = ONCE + [
    S(T((5,)), 0, places(4, 4, 0, 4, 1), T((5,))),
    S(T((3, 40)), 0, np.random.default_rng(2).integers(0, 3, 50), T((50, 40))),
    S(T((2, 3, 2)), 1, places(1, 1, 1, 1), T((2, 4, 2))),
]  # fmt: skip
SCALED = MANY + [S(T((5,)), 0, places(1, 1), T((2,)), alpha=3)]
FILLED = [
    S(T((3, 4)), 1, places(3, 0), 2), S(T((2, 3, 4)), -2, places(1, -1, 1), 3),
    S(T(()), 0, places(0), 1), S(T((3, 0)), 0, places(1), 1), S(T((5,)), 0, places(), 1),
]  # fmt: skip
ALONG = [
    S(T((3, 4)), places([0, -1], [1, 1], [2, 0]), 1), S(T((3, 4)), places([2, 0, -3, 2])[:1], 0),
    S(T((1, 4)), places([0, 3], [1, 1]), 1), S(T((5,)), places([4, 0], [-5, 1])),
    S(T((3, 0)), np.zeros((2, 0), np.int64), 0),
]  # fmt: skip
TAKEN = [
    S(T((3, 4)), places([0, 11], [-1, 5])), S(T((7,)), places(3, 3)), S(T((2, 3)), places()),
    S(T(()), np.array(0)),
]  # fmt: skip
# Around packs of 16 bytes, rows that are whole packs and rows that are not.
PADDED = [
    S(T((3, 4)), (1, 2)), S(T((2, 3, 4)), (0, 1, 2, 0), "constant", 3), S(T((5,)), (-2, 1)),
    S(T((3, 4)), (-1, -2, 1, 0)), S(T((0, 3)), (1, 1, 2, 0)), S(T((2, 130)), (1, 5)),
    S(T((40, 16)), (0, 0, 3, 1)), S(T((2, 64)), (16, 32)), S(T((2, 3)), ()),
    S(T((3, 4)), (2, 3), "reflect"), S(T((2, 3, 4)), (1, 1, 2, 0), "reflect"),
    S(T((3, 4)), (4, 5), "replicate"), S(T((2, 3)), (0, 2, 1, 0), "replicate"),
    S(T((3, 4)), (4, 3), "circular"), S(T((2, 3, 4)), (1, -1, 2, 1), "circular"),
    S(T((2, 70)), (40, 30), "reflect"), S(T((1, 1)), (2, 3, 1, 1), "replicate"),
]  # fmt: skip


def place_errors(name, into=False):
    """Of a call with an index or slices that do not fit."""

    def call(x, dim, index, *more):
        return getattr(x, name)(dim, index, *more)

    index, one = lambda d: ones(d, 2, dtype="int64"), lambda d: ones(d, 2)
    more = (1,) if "fill" in name else (None,)

    def args(d):
        return (1,) if more == (1,) else (one(d),)

    found = [
        Bad(lambda d: call(ones(d, 3), 1, index(d), *args(d)), IndexError,
            f"{name}(): dim 1 is out of range [-1, 0] for a tensor of shape [3] "
            "(float32, {device})"),
        Bad(lambda d: call(ones(d, 3), 0, ones(d, 2), *args(d)), DTypeError,
            f"{name}(): index has dtype float32, expected an integer dtype"),
        Bad(lambda d: call(ones(d, 3), 0, ones(d, 1, 2, dtype="int64"), *args(d)), IndexError,
            f"{name}(): index has shape [1, 2], expected 1 dim"),
    ]  # fmt: skip
    if more == (1,):
        return found
    return found + [
        Bad(lambda d: call(ones(d, 3), 0, index(d), ones(d, 3)), ShapeError,
            f"{name}(): source has shape [3], expected [2]"),
        Bad(lambda d: call(ones(d, 3), 0, index(d), ones(d, 2, dtype="int64")), DTypeError,
            f"{name}(): source has dtype int64, expected float32"),
    ]  # fmt: skip


def size_of_terms(x, dim, index, source, alpha=1):
    return np_index_add(np.abs(x), dim, index, np.abs(source), abs(alpha))


PUT_BY_PLACES = [
    Op("index_add", SCALED, np_index_add, NUMERIC, bound="sum", magnitude=size_of_terms,
       errors=place_errors("index_add")),
    Op("index_add_", SCALED, np_index_add, NUMERIC, bound="sum", magnitude=size_of_terms,
       call=into("index_add_"), errors=place_errors("index_add_")),
    Op("index_copy", ONCE, np_index_copy, ALL, errors=place_errors("index_copy")),
    Op("index_copy[twice]", MANY, np_index_copy, INTEGERS, differentiable=False),
    Op("index_copy_", ONCE, np_index_copy, ALL, call=into("index_copy_"),
       errors=place_errors("index_copy_")),
    Op("index_fill", FILLED, np_index_fill, NUMERIC, errors=place_errors("index_fill")),
    Op("index_fill_", FILLED, np_index_fill, NUMERIC, call=into("index_fill_"),
       errors=place_errors("index_fill_")),
    Op("take_along_dim", ALONG, np_take_along_dim, ALL, errors=[
        Bad(lambda d: flow.take_along_dim(ones(d, 3), ones(d, 1), 0), DTypeError,
            "take_along_dim(): indices has dtype float32, expected an integer dtype"),
        Bad(lambda d: flow.take_along_dim(ones(d, 3, 2), ones(d, 2, 3, dtype="int64"), 1),
            ShapeError, "take_along_dim(): the shapes [3, 2] and [2, 3] do not broadcast but for "
            "dim 1")]),
    Op("take", TAKEN, lambda x, index: x.reshape(-1)[index], ALL, errors=[
        Bad(lambda d: flow.take(ones(d, 3), ones(d, 1)), DTypeError,
            "take(): index has dtype float32, expected an integer dtype")]),
    Op("pad", PADDED, np_pad, NUMERIC, errors=[
        Bad(lambda d: flow.pad(ones(d, 2), (1,)), ValueError,
            "pad(): [1] are not at most 1 pairs"),
        Bad(lambda d: flow.pad(ones(d, 3), (1, 1), "odd"), ValueError,
            'pad(): mode is "odd", but it must be "constant", "reflect", "replicate" or '
            '"circular"'),
        Bad(lambda d: flow.pad(ones(d, 3), (3, 0), "reflect"), ValueError,
            'pad(): mode "reflect" adds at most 2 to a dim of size 3, not 3 and 0'),
        Bad(lambda d: flow.pad(ones(d, 3), (-2, -2)), ValueError,
            "pad(): -2 and -2 cut more than dim 0 of size 3 has")]),
]  # fmt: skip
