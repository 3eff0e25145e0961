# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: integrals, covariances, losses with a margin, parts written into copies,
elements rearranged, and what meets in one place, reduced.
"""

import itertools

import numpy as np
from numerics import ALL, FLOATS, NUMERIC, flow, tensor
from op_row import Bad, Op, S, T, always, floating, ones
from op_table_places import into, places

ShapeError, DTypeError = flow.ShapeError, flow.DTypeError
F = flow.nn.functional


def np_trapezoid(y, x=None, dx=1.0, dim=-1):
    return np.trapezoid(y, x, dx if dx is not None else 1.0, axis=dim)


def np_cumulative(y, x=None, dx=1.0, dim=-1):
    y = np.moveaxis(np.asarray(y, float), dim, -1)
    widths = np.diff(x) if x is not None else dx
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) * widths / 2, -1), -1, dim)


def np_cov(x, correction=1, fweights=None, aweights=None):
    return np.asarray(np.cov(x, ddof=correction, fweights=fweights, aweights=aweights))


def np_renorm(x, p, dim, maxnorm):
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norm = (np.abs(x) ** p).sum(others, keepdims=True) ** (1 / p)
    return np.where(norm > maxnorm, x * (maxnorm / (norm + 1e-7)), x)


def np_pdist(x, p=2.0):
    i, j = np.triu_indices(len(x), 1)
    return (np.abs(x[i] - x[j]) ** p).sum(-1) ** (1 / p)


def np_cdist(a, b, p=2.0):
    return norm(a[..., :, None, :] - b[..., None, :, :], p)


def norm(x, p=2.0):
    return (np.abs(x) ** p).sum(-1) ** (1 / p)


def reduced(y, reduction="mean"):
    return {"none": y, "sum": np.sum(y), "mean": np.mean(y)}[reduction]


def np_triplet(a, b, c, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"):
    far = norm(a - c + eps, p)
    far = np.minimum(far, norm(b - c + eps, p)) if swap else far
    return reduced(np.maximum(0, norm(a - b + eps, p) - far + margin), reduction)


def np_cosine_embedding(a, b, t, margin=0.0, reduction="mean"):
    cosine = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    return reduced(np.where(t == 1, 1 - cosine, np.maximum(0, cosine - margin)), reduction)


def np_multi_margin(x, t, p=1, margin=1.0, reduction="mean"):
    rows = np.arange(len(x))
    terms = np.maximum(0, margin - x[rows, t][:, None] + x) ** p
    terms[rows, t] = 0
    return reduced(terms.sum(1) / x.shape[1], reduction)


def np_multilabel_margin(x, t, reduction="mean"):
    sums = []
    for row, targets in zip(x, t, strict=True):
        own = list(itertools.takewhile(lambda v: v >= 0, targets))
        other = [j for j in range(len(row)) if j not in own]
        sums.append(sum(max(0, 1 - row[k] + row[j]) for k in own for j in other) / len(row))
    return reduced(np.array(sums), reduction)


def np_multilabel_soft_margin(x, t, reduction="mean"):
    each = t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)
    return reduced(each.mean(-1), reduction)


def np_written(place):
    def reference(x, src, *args, **kwargs):
        y = np.array(x)
        y[place] = src
        return y

    return reference


def np_diagonal_scatter(x, src, offset=0):
    y = np.array(x)
    np.fill_diagonal(y[:, offset:], src)
    return y


def np_put(x, index, source, accumulate=False):
    y = np.array(x).reshape(-1)
    if accumulate:
        np.add.at(y, index.reshape(-1), source.reshape(-1))
    else:
        y[index.reshape(-1)] = source.reshape(-1)
    return y.reshape(x.shape)


def np_pixel_shuffle(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c // r**2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(
        n, c // r**2, h * r, w * r)  # fmt: skip


def np_pixel_unshuffle(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4).reshape(
        n, c * r**2, h // r, w // r)  # fmt: skip


def np_channel_shuffle(x, groups):
    n, c = x.shape[:2]
    return x.reshape(n, groups, c // groups, x.shape[2]).swapaxes(1, 2).reshape(x.shape)


def np_combinations(x, r=2, with_replacement=False):
    ways = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(ways(x, r)), dtype=x.dtype).reshape(-1, r)


def np_nonzero_static(x, *, size, fill_value=-1):
    found = np.argwhere(x)[:size]
    rest = np.full((size - len(found), x.ndim), fill_value)
    return np.concatenate([found, rest]).astype(np.int64)


JOINS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def np_scatter_reduce(x, dim, index, src, reduce, include_self=True):
    y, met = np.array(x), {}
    for at in np.ndindex(index.shape):
        place = (*at[:dim], int(index[at]), *at[dim + 1 :])
        met.setdefault(place, [x[place]] if include_self else []).append(src[at])
    for place, values in met.items():
        if reduce == "mean":
            total = sum(values)
            y[place] = total / len(values) if y.dtype.kind == "f" else total // len(values)
        else:
            y[place] = JOINS[reduce].reduce(values)
    return y


def np_index_reduce(x, dim, index, source, reduce, include_self=True):
    shape = [1] * x.ndim
    shape[dim] = -1
    return np_scatter_reduce(x, dim, np.broadcast_to(index.reshape(shape), source.shape), source,
                             reduce, include_self)  # fmt: skip


def np_glu(x, dim=-1):
    value, gate = np.split(x, 2, dim)
    return value / (1 + np.exp(-gate))


def np_swiglu(x, dim=-1):
    gate, value = np.split(x, 2, dim)
    return gate / (1 + np.exp(-gate)) * value


def np_rotary(x, cos, sin, rotated=None):
    half = cos.shape[1]
    heads = x.reshape(*x.shape[:-1], x.shape[-1] // (2 * half), 2, half)
    a, b = heads[..., 0, :], heads[..., 1, :]
    c, s = cos[:, None].astype(float), sin[:, None].astype(float)
    turned = np.stack([a * c - b * s, b * c + a * s], -2)
    count = heads.shape[-3] if rotated is None else rotated // (2 * half)
    turned[..., count:, :, :] = heads[..., count:, :, :]
    return turned.reshape(x.shape)


def tables(length, half):
    """Cosines and sines of angles in float64, as arrays."""
    angles = np.arange(length)[:, None] * 0.7 ** np.arange(half)
    return np.cos(angles), np.sin(angles)


# Halves of less than a pack of 16 bytes, of whole packs, and beside them; along any dim.
GATED = [S(T((3, 4))), S(T((6, 2)), 0), S(T((0, 4))), S(T((2, 3, 10))), S(T((2, 16))),
         S(T((3, 18))), S(T((2, 4, 3)), 1), S(T((3, 0)))]  # fmt: skip
# Half heads of the same kinds, and no places or features.
ROTARY = [
    S(T((2, 3, 6)), *tables(3, 3)), S(T((2, 40)), *tables(2, 4), 24),
    S(T((2, 36)), *tables(2, 9)), S(T((2, 0, 4)), *tables(0, 2)), S(T((3, 0)), *tables(3, 2)),
    S(T((2, 3, 8)), *tables(3, 2)), S(T((3, 16)), *tables(3, 8)), S(T((0, 8)), *tables(0, 4)),
    S(T((2, 2, 3, 12)), *tables(3, 2), 8), S(T((5, 6)), *tables(5, 1), 0),
]  # fmt: skip


def np_prelu(x, w):
    w = w if w.size == 1 else w.reshape(-1, *[1] * max(x.ndim - 2, 0))
    return np.where(x > 0, x, x * w.reshape(()) if w.size == 1 else x * w)


GROUPS = places([0, 2, 0, 1], [1, 1, 1, 1], [2, 0, 2, 2])
MEETINGS = [
    S(T((3, 4)), 0, GROUPS, T((3, 4)), reduce, include_self=own)
    for reduce in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)
]  # fmt: skip
SLICES = [
    S(T((5, 3)), 0, places(4, 0, 4, 1), T((4, 3)), reduce, include_self=own)
    for reduce in ("prod", "mean", "amax", "amin") for own in (True, False)
]  # fmt: skip
TARGETS = np.array([1, -1, 1], np.int64)
CLASSES = np.array([2, 0, 3], np.int64)
LABELS = np.array([[1, 2, -1, 0], [3, -1, 0, 0], [0, 1, 2, -1]], np.int64)
ROWS3 = T((3, 4))
SIZES = dict(magnitude=lambda x, *a, **k: np.ones(()) * (1 + np.abs(x).sum()))


def composite(name, samples, reference, *, dtypes=FLOATS, **more):
    return Op(name, samples, reference, dtypes, bound="composite", **{**SIZES, **more})


def reductions(*args, **kwargs):
    """With each reduction, and of no rows without one."""
    none = [
        T((0, *a.shape[1:]), a.domain, grad=a.grad) if isinstance(a, T) else a[:0] for a in args
    ]
    return [S(*none, **kwargs, reduction="none"),
            *(S(*args, **kwargs, reduction=r) for r in ("none", "sum", "mean"))]  # fmt: skip


def drawn(name, *args):
    def call(self, *args):
        return into(name)(self.detach(), *args)

    samples = [S(T(s), *args) for s in ((), (7,), (3, 4), (0,))]
    return Op(name, samples, None, FLOATS, differentiable=False, call=call)


NUMERICAL_ROWS = [
    composite("trapezoid", [S(T((4,))), S(T((0,))), S(T((3, 4)), dim=0), S(T((3, 4)), dx=0.5),
                            S(T((3, 4)), T((4,)))], np_trapezoid, errors=[
        Bad(lambda d: flow.trapezoid(ones(d, 2, 3), ones(d, 2)), ShapeError,
            "trapezoid(): x has shape [2], expected [3] or the shape of y")]),
    composite("cumulative_trapezoid", [
        S(T((4,))), S(T((0,))), S(T((3, 4)), dim=0), S(T((3, 4)), dx=0.5), S(T((3, 4)), T((4,)))],
        np_cumulative),
    composite("diff", [S(T((4,))), S(T((0,))), S(T((3, 4)), dim=0), S(T((3, 4)), 2),
                       S(T((3, 4)), 0)],
              lambda x, n=1, dim=-1: np.diff(x, n, dim), errors=[
        Bad(lambda d: flow.diff(ones(d, 3), -1), ValueError,
            "diff(): n is -1, but it must not be negative")]),
    composite("cov", [S(T((3, 5))), S(T((6,))), S(T((2, 5)), correction=0), S(T((0, 5))),
                      S(T((2, 4)), fweights=np.array([1, 2, 1, 3]))], np_cov, twice=False,
              call=lambda x, fweights=None, **k: flow.cov(
                  x, fweights=None if fweights is None else tensor(fweights, "int64", x.device),
                  **k)),
    composite("corrcoef", [S(T((3, 5))), S(T((0, 5)))],
              lambda x: np.asarray(np.corrcoef(x)), twice=False),
    composite("renorm", [S(T((3, 4)), 2, 0, 1.5), S(T((2, 3, 2)), 1, 1, 2.0),
                         S(T((0, 3)), 2, 0, 1.0)], np_renorm,
              twice=False),
    composite("addmv", [S(T((n,)), T((n, 4)), T((4,)), beta=2.0, alpha=-1.0)
                        for n in (3, 0)],
              lambda x, a, v, beta, alpha: beta * x + alpha * (a @ v)),
    composite("addbmm", [S(T((3, 2)), T((n, 3, 4)), T((n, 4, 2)), beta=0.5, alpha=2.0)
                         for n in (2, 0)],
              lambda x, a, b, beta, alpha: beta * x + alpha * (a @ b).sum(0)),
    composite("addr", [S(T((n, 4)), T((n,)), T((4,)), beta=2.0, alpha=3.0) for n in (3, 0)],
              lambda x, u, v, beta, alpha: beta * x + alpha * np.outer(u, v)),
    Op("real", [S(T((3, 4))), S(T((0,)))], lambda x: x, ALL),
    Op("isreal", [S(T((3, 4))), S(T((0,)))], lambda x: np.ones(np.shape(x), bool), ALL,
       result=always("bool"), differentiable=False),
    Op("angle", [S(T((3, 4))), S(T((0,)))],
       lambda x: np.where(np.asarray(x, float) < 0, np.pi, 0.0), ALL, bound="pointwise",
       result=floating),
    Op("fill", [S(T((3, 4)), 2), S(T((0,)), 1)], lambda x, v: np.full(np.shape(x), v), NUMERIC,
       differentiable=False, call=lambda x, v: flow.fill(x.detach(), v)),
    composite("pdist", [S(T((4, 3))), S(T((0, 3))), S(T((4, 3)), 1.0)], np_pdist, twice=False),
    composite("cdist", [S(T((4, 3)), T((5, 3))), S(T((0, 3)), T((2, 3))),
                        S(T((2, 4, 3)), T((5, 3)), 1.0)], np_cdist, twice=False, errors=[
        Bad(lambda d: flow.cdist(ones(d, 2, 3), ones(d, 2, 4)), flow.ShapeError,
            "cdist(): rows of shapes [2, 3] and [2, 4] do not go together")]),
    composite("cosine_embedding_loss", reductions(ROWS3, ROWS3, TARGETS, margin=0.1),
              np_cosine_embedding, twice=False),
    composite("triplet_margin_loss", [*reductions(ROWS3, T((3, 4)), T((3, 4))),
                                      S(ROWS3, T((3, 4)), T((3, 4)), swap=True)], np_triplet,
              twice=False, errors=[
        Bad(lambda d: F.triplet_margin_loss(*[ones(d, 2, 2)] * 3, margin=0), ValueError,
            "triplet_margin_loss(): margin is 0, but it must be positive")]),
    composite("multi_margin_loss", [*reductions(ROWS3, CLASSES), S(ROWS3, CLASSES, p=2)],
              np_multi_margin, twice=False),
    composite("multilabel_margin_loss", reductions(ROWS3, LABELS), np_multilabel_margin,
              twice=False),
    composite("multilabel_soft_margin_loss", reductions(ROWS3, T((3, 4), "share", grad=False)),
              np_multilabel_soft_margin, twice=False,
              call=lambda x, t, **k: F.multilabel_soft_margin_loss(x, t.detach(), **k)),
    Op("select_scatter", [S(T((n, 4)), T((n,)), 1, 2) for n in (3, 0)],
       np_written((slice(None), 2)), ALL),
    Op("slice_scatter", [S(T((n, 4)), T((n, 2)), 1, 1, 4, 2) for n in (3, 0)],
       np_written((slice(None), slice(1, 4, 2))), ALL, errors=[
        Bad(lambda d: flow.slice_scatter(ones(d, 3), ones(d, 1), 0, 0, 2), ShapeError,
            "slice_scatter(): src has shape [1], expected [2]")]),
    Op("diagonal_scatter", [S(T((3, 3)), T((3,))), S(T((3, 4)), T((3,)), 1),
                            S(T((0, 3)), T((0,)))], np_diagonal_scatter, ALL),
    Op("put", [S(T((3, 4)), places(5, 0, 11), T((3,))), S(T((3,)), places(), T((0,))),
               S(T((3, 4)), places([1, 1], [2, 0]), T((2, 2)), accumulate=True)], np_put, NUMERIC,
       bound="sum", magnitude=lambda x, *a, **k: 4 * np.ones(np.shape(x)) + 4 * np.abs(x)),
    Op("sum_to_size", [S(T((3, 4)), [1, 4]), S(T((2, 3)), [3]), S(T((0, 4)), [1, 4])],
       lambda x, size: x.sum(0, keepdims=len(size) == 2), FLOATS, bound="sum",
       magnitude=lambda x, size: np.abs(x).sum(0)),
    Op("pixel_shuffle", [S(T((n, 8, 3, 2)), 2) for n in (2, 0)], np_pixel_shuffle, ALL, errors=[
        Bad(lambda d: flow.pixel_shuffle(flow.ones(0, 1, 1, device=d), 1 << 40), ValueError,
            "pixel_shuffle(): the factor is 1099511627776, but it must be from 1 to 32768")]),
    Op("pixel_unshuffle", [S(T((n, 3, 4, 6)), 2) for n in (2, 0)], np_pixel_unshuffle, ALL),
    Op("channel_shuffle", [S(T((n, 6, 3)), 3) for n in (2, 0)], np_channel_shuffle, ALL),
    Op("combinations", [S(T((5,)), 3), S(T((3,)), 2, True), S(T((4,)), 1),
                        S(T((0,)), 2)], np_combinations, ALL, errors=[
        Bad(lambda d: flow.combinations(flow.ones(3, device=d), 1 << 40), ValueError,
            "combinations(): r is 1099511627776, but it must be from 0 to 16")]),
    Op("unravel_index", [S(np.array([0, 7, 23]), [2, 3, 4]), S(places(), [2, 3, 4])],
       lambda i, shape: list(np.unravel_index(i, shape)), ("int64",), differentiable=False,
       result=[always("int64")] * 3),
    Op("constant_pad_nd", [S(T((3, 4)), [1, 2]), S(T((3, 4)), [0, 1, 2, 0], 3),
                           S(T((0, 4)), [1, 2])],
       lambda x, pad, value=0: np.pad(x, [tuple(pad[2:]) or (0, 0), tuple(pad[:2])],
                                      constant_values=value), NUMERIC),
    composite("glu", GATED, np_glu, errors=[
        Bad(lambda d: F.glu(ones(d, 3)), ShapeError,
            "glu(): input has shape [3], expected an even size of dim -1")]),
    composite("swiglu", GATED, np_swiglu,
              errors=[Bad(lambda d: F.swiglu(ones(d, 3)), ShapeError,
                          "swiglu(): input has shape [3], expected an even size of dim -1")]),
    composite("rotary_embedding", ROTARY, np_rotary, errors=[
        Bad(lambda d: F.rotary_embedding(ones(d, 3, 4), ones(d, 2, 2), ones(d, 2, 2)), ShapeError,
            "rotary_embedding(): cos has shape [2, 2], expected [3, half a head], a row for each "
            "place"),
        Bad(lambda d: F.rotary_embedding(ones(d, 3, 4), ones(d, 3, 2), ones(d, 3, 1)), ShapeError,
            "rotary_embedding(): sin has shape [3, 1], expected [3, 2]"),
        Bad(lambda d: F.rotary_embedding(ones(d, 3, 6), ones(d, 3, 2), ones(d, 3, 2)), ShapeError,
            "rotary_embedding(): input has shape [3, 6], expected a last dim of whole heads of 4 "
            "features"),
        Bad(lambda d: F.rotary_embedding(ones(d, 3, 8), ones(d, 3, 2), ones(d, 3, 2), 6),
            ValueError,
            "rotary_embedding(): rotated is 6, but it must be a multiple of 4 in [0, 8]")]),
    Op("prelu", [S(T((3, 4), "distinct"), T((1,))), S(T((0, 4)), T((1,))),
                 S(T((2, 3, 2), "distinct"), T((3,)))], np_prelu,
       bound="pointwise", errors=[
        Bad(lambda d: F.prelu(ones(d, 3, 4), ones(d, 3)), ShapeError,
            "prelu(): weight has shape [3], expected [1] or [4]")]),
    composite("scatter_reduce", [*MEETINGS, S(T((3,)), 0, places(), T((0,)), "sum")],
              np_scatter_reduce, twice=False),
    composite("index_reduce", [*SLICES, S(T((3, 2)), 0, places(), T((0, 2)), "prod")],
              np_index_reduce, twice=False),
    Op("scatter_reduce[exact]", [S(T((3,)), 0, places(0, 0, 2)[:n], T((n,)), "amax")
                                 for n in (3, 0)], np_scatter_reduce, NUMERIC, twice=False, errors=[
        Bad(lambda d: flow.scatter_reduce(ones(d, 2), 0, tensor([0], "int64", d), ones(d, 1), "or"),
            ValueError, 'scatter_reduce(): reduce is "or", but it must be "sum", "prod", "mean", '
            '"amax" or "amin"')]),
    drawn("cauchy_", 1.0, 2.0), drawn("geometric_", 0.25), drawn("log_normal_", 0.5, 0.25),
    Op("lu", [S(T((3, 3))), S(T((0, 3, 3)))], lambda a: [a], ("float32", "float64"),
       bound="composite", magnitude=lambda a: np.ones(()) * 9,
       call=lambda a: [flow.linalg.lu_factor_ex(a)[0] * 0 + a + (flow.lu(a)[0] -
                       flow.linalg.lu_factor_ex(a)[0])]),
]  # fmt: skip
