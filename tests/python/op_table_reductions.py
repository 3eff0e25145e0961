# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: reductions and scans. op_table.py says what a row is.

Sizes go around chunks of 512, parts of 65536, warps of a row (1024) and tiles of columns.
"""

import numpy as np
from numerics import ALL, NUMERIC, flow
from op_reference import np_var
from op_row import Bad, Op, S, T, always, ones, same, summed

DTypeError = flow.DTypeError


def axes(dim):
    return dim if dim is None or isinstance(dim, int) else tuple(dim) or None


def np_prod(x, dim=None, keepdim=False):
    kind = np.int64 if x.dtype == bool else None
    return np.prod(x, axis=axes(dim), keepdims=keepdim, dtype=kind)


def np_norm(x, p=2, dim=None, keepdim=False):
    x, over = np.abs(x), {"axis": axes(dim), "keepdims": keepdim}
    if np.isinf(p):
        return x.max(**over) if p > 0 else x.min(**over)
    if p == 0:
        return (x != 0).sum(**over).astype(x.dtype)
    return (x**p).sum(**over) ** (1 / p)


def np_var_mean(x, *args, **kwargs):
    dim = args[0] if args else kwargs.get("dim")
    keepdim = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
    return [np_var(x, *args, **kwargs), np.mean(x, axis=axes(dim), keepdims=keepdim)]


def np_std_mean(x, *args, **kwargs):
    variance, mean = np_var_mean(x, *args, **kwargs)
    return [np.sqrt(variance), mean]


def np_aminmax(x, dim=None, keepdim=False):
    over = {"axis": dim if x.ndim else None, "keepdims": keepdim}
    return [x.min(**over), x.max(**over)]


def np_running(join):
    def running(x, dim):
        if x.ndim == 0:
            return x.astype(np.int64) if x.dtype == bool else x.copy()
        return join.accumulate(x.astype(np.int64) if x.dtype == bool else x, axis=dim)

    return running


def np_extremes(beats):
    def running(x, dim):
        if x.ndim == 0:
            return [x.copy(), np.int64(0)]
        x = np.moveaxis(x, dim, 0)
        places = np.zeros(x.shape, np.int64)
        best = x.copy()
        for i in range(1, x.shape[0]):
            wins = beats(x[i], best[i - 1])
            best[i] = np.where(wins, x[i], best[i - 1])
            places[i] = np.where(wins, i, places[i - 1])
        return [np.moveaxis(best, 0, dim), np.moveaxis(places, 0, dim)]

    return running


OVER = [
    S(T(())), S(T((7,))), S(T((3, 4)), 1), S(T((3, 4)), (0,)), S(T((2, 3, 4)), (0, 2)),
    S(T((2, 3, 4)), (-1, 1), True), S(T((2, 3, 4)), 1, keepdim=True), S(T((5, 130)), 0),
    S(T((3, 1025)), 1), S(T((2, 513, 3)), 1), S(T((0, 3)), 1), S(T((2, 3)), ()),
]  # fmt: skip
SOME = [s for s in OVER if s.args[0].shape not in ((3, 1025), (2, 513, 3), (5, 130))]
PRODUCTS = [
    *(S(T(s.args[0].shape, "positive"), *s.args[1:], **s.kwargs) for s in SOME),
    S(T((2, 0, 4)), 1), S(T((5, 9), "few"), 0),
]  # fmt: skip
NORMS = [
    S(T((7,))), S(T((3, 4)), 2, 1), S(T((2, 3, 4)), 1, (0, 2)), S(T((2, 3, 4)), 3.0, (-1, 1), True),
    S(T((5, 33)), 0.5, 0), S(T((3, 4), "distinct"), float("inf"), 1), S(T((0, 3)), 2, 1),
    S(T((3, 4), "positive"), -float("inf")), S(T((3, 4)), 0.0, 1), S(T((3, 1025)), 2.0, 1),
    S(T((4, 5), "positive"), -1.5, 1), S(T((2, 600, 3)), 2.0, 1), S(T(())),
]  # fmt: skip
VARIED = [
    S(T((7,))), S(T((3, 4)), 1), S(T((3, 4)), (0,), False), S(T((2, 3, 4)), (0, 2), True, True),
    S(T((2, 3, 4)), 1, keepdim=True, correction=0), S(T((33, 130)), 0, unbiased=False),
    S(T((0, 3)), 1), S(T((2, 1025)), 1),
]  # fmt: skip
DISTINCT = [
    S(T((9,), "distinct")), S(T((3, 4), "distinct")), S(T((3, 4), "distinct"), dim=1),
    S(T((2, 3, 4), "distinct"), dim=-2, keepdim=True), S(T((0, 3), "distinct"), dim=1),
    S(T((5, 37), "distinct"), dim=0), S(T((), "distinct")),
]  # fmt: skip
RUNNING = [
    S(T(()), 0), S(T((7,)), 0), S(T((3, 4)), 1), S(T((3, 4)), 0), S(T((2, 3, 4)), -2),
    S(T((0, 3)), 1), S(T((3, 0)), 1), S(T((2, 300, 3)), 1), S(T((1,)), -1),
]  # fmt: skip


def of_domain(domain, samples):
    return [S(T(s.args[0].shape, domain), *s.args[1:], **s.kwargs) for s in samples]


def out_of_range(name):
    return Bad(lambda d: getattr(flow, name)(ones(d, 2), 1), IndexError,
               f"{name}(): dim 1 is out of range [-1, 0] for a tensor of shape [2] "
               "(float32, {device})")  # fmt: skip


REDUCTIONS = [
    Op("prod", PRODUCTS, np_prod, bound="composite", magnitude=lambda x, *a, **k: np.abs(
        np_prod(x, *a, **k)), result=summed, errors=[
        Bad(lambda d: flow.prod(ones(d, 2, 3), 2), IndexError,
            "prod(): dim 2 is out of range [-2, 1] for a tensor of shape [2, 3] "
            "(float32, {device})")]),
    Op("prod[integers]", [S(T((7,), "few")), S(T((3, 4), "few"), 1), S(T((5, 70), "few"), 0),
                           S(T((2, 0)), 1)],
       np_prod, ("uint8", "int8", "int16", "int32", "int64", "bool"), result=always("int64"),
       differentiable=False),
    Op("nansum", OVER, lambda x, dim=None, keepdim=False: np.nansum(
        x, axis=axes(dim), keepdims=keepdim), ALL, bound="sum", result=summed,
       magnitude=lambda x, dim=None, keepdim=False: np.abs(x).sum(
           axis=axes(dim), keepdims=keepdim)),
    Op("nanmean", [s for s in OVER if 0 not in s.args[0].shape],
       lambda x, dim=None, keepdim=False: np.nanmean(x, axis=axes(dim), keepdims=keepdim),
       bound="sum", magnitude=lambda x, dim=None, keepdim=False: np.abs(x).mean(
           axis=axes(dim), keepdims=keepdim), errors=[
        Bad(lambda d: flow.nanmean(ones(d, 2, dtype="int64")), DTypeError,
            "nanmean(): the dtype must be a float, not int64")]),
    Op("count_nonzero", [S(*s.args[:2]) for s in of_domain("few", OVER)],
       lambda x, dim=None: np.asarray(np.count_nonzero(x, axis=axes(dim))), ALL,
       result=always("int64"), differentiable=False),
    Op("aminmax", DISTINCT, np_aminmax, NUMERIC, result=[same, same], twice=False, errors=[
        Bad(lambda d: flow.aminmax(ones(d, 0)), IndexError,
            "aminmax(): there is no minimum of no elements: shape [0]")]),
    Op("amin[of nothing]", [S(T((3, 4), "distinct"), 1), S(T((0, 4), "distinct"), 1)],
       lambda x, dim: x.min(axis=dim), twice=False, errors=[
        Bad(lambda d: flow.amin(ones(d, 2, 0), 1), IndexError,
            "amin(): there is no minimum of no elements: shape [2, 0]")]),
    Op("vector_norm", NORMS, np_norm, bound="composite", magnitude=lambda *a, **k: 32.0,
       twice=False),
    Op("vector_norm[twice]", [S(T((7,))), S(T((3, 4)), 3.0, 1), S(T((2, 3), "positive"), 1.5),
                              S(T((0, 3)), 3.0, 1)],
       np_norm, bound="composite", magnitude=lambda *a, **k: 32.0),
    Op("var_mean", VARIED, np_var_mean, bound="composite", magnitude=lambda *a, **k: 64.0,
       result=[same, same]),
    Op("std_mean", VARIED, np_std_mean, bound="composite", magnitude=lambda *a, **k: 64.0,
       result=[same, same]),

    Op("cumprod", of_domain("positive", RUNNING[:7]), np_running(np.multiply), bound="composite",
       magnitude=lambda x, d: np.abs(np_running(np.multiply)(x, d)), result=summed,
       errors=[out_of_range("cumprod")]),
    Op("cumprod[integers]", of_domain("few", RUNNING), np_running(np.multiply),
       ("uint8", "int8", "int16", "int32", "int64", "bool"), result=always("int64"),
       differentiable=False),
    Op("cummax", of_domain("distinct", RUNNING), np_extremes(np.greater_equal), NUMERIC,
       result=[same, always("int64")], twice=False, errors=[out_of_range("cummax")]),
    Op("cummin", of_domain("distinct", RUNNING), np_extremes(np.less_equal), NUMERIC,
       result=[same, always("int64")], twice=False, errors=[out_of_range("cummin")]),
    # Among equals the gradient jumps, so that it is not looked at here.
    Op("cummax[equal]", [S(T(s.args[0].shape, "few", grad=False), *s.args[1:]) for s in RUNNING],
       np_extremes(np.greater_equal), ALL, result=[same, always("int64")], differentiable=False),
    Op("logcumsumexp", RUNNING, np_running(np.logaddexp), bound="composite",
       magnitude=lambda *a: 16.0, errors=[out_of_range("logcumsumexp"), Bad(
           lambda d: flow.logcumsumexp(ones(d, 2, dtype="int64"), 0), DTypeError,
           "logcumsumexp(): the input has dtype int64, but it must be float16, bfloat16, float32 "
           "or float64")]),
]  # fmt: skip
