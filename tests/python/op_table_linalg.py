# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: linear algebra. op_table.py says what a row is.

Factors that are unique up to signs are compared without them. Sizes: no matrix, one element, more
rows than columns and fewer, a batch of two dims, a batch that is broadcast.
"""

import numpy as np
from numerics import flow
from op_row import Bad, Op, S, T, always, ones, same

DTypeError, ShapeError, LinAlgError = flow.DTypeError, flow.ShapeError, flow.linalg.LinAlgError
WIDE = ("float32", "float64")
MANY = np.linalg


def mt(x):
    return x.mT if isinstance(x, flow.Tensor) else np.swapaxes(x, -1, -2)


def regular(*shapes, **kwargs):
    return [S(T(s, "regular"), **kwargs) for s in shapes]


def definite(*shapes, **kwargs):
    return [S(T(s, "definite"), **kwargs) for s in shapes]


SQUARE = ((3, 3), (1, 1), (0, 0), (2, 3, 3), (2, 1, 2, 2), (0, 2, 2), (2, 0, 0), (17, 17))
ANY = ((3, 3), (4, 2), (2, 4), (1, 1), (0, 3), (3, 0), (2, 3, 2), (2, 1, 2, 3), (0, 2, 3), (19, 8))


def systems(domain="regular", **kwargs):
    """A and B of many ranks: one batch, another, none."""
    pairs = [((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((3, 3), (2, 3, 1)),
             ((2, 1, 2, 2), (3, 2, 2)), ((0, 0), (0, 2)), ((2, 2), (2, 0)),
             ((0, 2, 2), (0, 2, 3)), ((17, 17), (17, 5))]  # fmt: skip
    return [S(T(a, domain), T(b), **kwargs) for a, b in pairs]


def row(name, samples, reference, dtypes=WIDE, magnitude=None, **kwargs):
    """Errors are a share of the largest element of the result, or 1."""

    def size(*args, **given):
        found = reference(*args, **given)
        found = found if isinstance(found, list) else [found]
        return max([1.0, *(np.abs(y).max(initial=0) for y in found)])

    return Op(name, samples, reference, dtypes, "composite", magnitude=magnitude or size,
              layouts=False, **kwargs)  # fmt: skip


def failing(name, argument="A"):
    """What most of them refuse."""
    call = getattr(flow.linalg, name)
    return [
        Bad(lambda d: call(ones(d, 2, 2).half()), DTypeError,
            f"linalg.{name}(): {argument} has dtype float16, but it must be float32 or float64"),
        Bad(lambda d: call(ones(d, 2, 2).long()), DTypeError,
            f"linalg.{name}(): {argument} has dtype int64, but it must be float32 or float64"),
        Bad(lambda d: call(ones(d, 2)), ShapeError,
            f"linalg.{name}(): {argument} has shape [2], expected at least 2 dims"),
    ]  # fmt: skip


def not_square(name):
    call = getattr(flow.linalg, name)
    return [*failing(name), Bad(lambda d: call(ones(d, 2, 3)), ShapeError,
            f"linalg.{name}(): A has shape [2, 3], expected square matrices")]  # fmt: skip


def singular(d):
    """The second of two is."""
    return flow.stack([flow.eye(2, device=d), ones(d, 2, 2)])


def symmetric(function):
    """Of a matrix and its transpose, so that differences see what the gradient means."""
    return lambda a, *args, **kwargs: function((a + a.mT) / 2, *args, **kwargs)


# Without signs --------------------------------------------------------------------------------


def np_qr(a, mode="reduced"):
    if a.ndim == 2:
        q, r = MANY.qr(a, mode)
    else:
        parts = [MANY.qr(x, mode) for x in a.reshape(-1, *a.shape[-2:])]
        m, n = a.shape[-2:]
        k = min(m, n) if mode == "reduced" else m
        q = np.array([p[0] for p in parts]).reshape(*a.shape[:-2], m, k)
        r = np.array([p[1] for p in parts]).reshape(*a.shape[:-2], k, n)
    return [q * q, r * r]


def squares(function, *kept):
    """The factors' squares; those that are kept, as they are."""

    def call(*args, **kwargs):
        found = function(*args, **kwargs)
        return [y if i in kept else y * y for i, y in enumerate(found)]

    return call


def np_eigh(a, UPLO="L"):
    values, vectors = MANY.eigh(a, UPLO)
    return [values, vectors**2]


def np_svd(a, full_matrices=True):
    u, s, vt = MANY.svd(a, full_matrices=full_matrices)
    return [u**2, s, vt**2]


def np_solve(a, b, left=True):
    if not left:
        return mt(MANY.solve(mt(a), mt(b)))
    return MANY.solve(a, b)


def np_triangular(a, b, upper, left=True, unitriangular=False):
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return np_solve(a, b, left)


def np_cholesky(a, upper=False):
    lower = MANY.cholesky(a)
    return mt(lower) if upper else lower


def np_slogdet(a):
    return list(MANY.slogdet(a))


def product_of_lu(a):
    """P L U, and what LU is as one: unique with these pivots."""
    p, lower, upper = flow.linalg.lu(a)
    return [p @ lower @ upper]


def through_factors(function):
    """Solves by factors that it makes first."""

    def call(a, b, **kwargs):
        lu, pivots = flow.linalg.lu_factor(a)
        return function(lu, pivots, b, **kwargs)

    return call


def np_pinv(a, **kwargs):
    return MANY.pinv(a, rcond=max(a.shape[-2:]) * 2.3e-16)


def np_norms(a, ord="fro", dim=(-2, -1), keepdim=False):
    return MANY.norm(a, ord, axis=dim, keepdims=keepdim)


def np_matrix_exp(a):
    """Taylor's series."""
    y = term = np.zeros_like(a) + np.eye(a.shape[-1])
    for k in range(1, 90):
        term = term @ a / k
        y = y + term
    return y


def np_cross(a, b, dim=-1):
    return np.cross(a, b, axis=dim)


def first_only(function):
    return lambda *args, **kwargs: [function(*args, **kwargs)[0]]


def full_rank(a, b):
    return MANY.pinv(a) @ b


NORMS = [
    S(T((3, 4), "regular"), ord)
    for ord in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf"))
] + [
    S(T((2, 3, 4), "regular"), "nuc", (0, 2)), S(T((2, 3, 4), "regular"), 1, (2, 0), True),
    S(T((2, 3, 4), "regular"), -float("inf"), (1, -1), True), S(T((0, 3, 4), "regular"), 2),
    S(T((2, 3, 4), "regular"), 2, keepdim=True),
]  # fmt: skip
POWERS = [S(T(s, "regular"), n) for s in ((3, 3), (2, 2, 2), (0, 0), (0, 2, 2))
          for n in (0, 1, 2, 5, -1, -3)]  # fmt: skip
CROSSES = [S(T((3,)), T((3,))), S(T((2, 3)), T((2, 3))), S(T((4, 3)), T((1, 3))),
           S(T((0, 3)), T((0, 3)))]  # fmt: skip
LEAST = [((4, 2), (4, 3)), ((2, 4), (2, 3)), ((3, 3), (3, 2)), ((2, 4, 2), (2, 4, 1)),
         ((0, 4, 2), (0, 4, 1)), ((19, 8), (19, 2))]  # fmt: skip
LEAST = [S(T(a, "regular"), T(b)) for a, b in LEAST]
VECTORS = [S(T((7,))), S(T((3, 4)), 1), S(T((3, 4)), 3, 1), S(T((0, 3)), 2, 1),
           S(T((3, 4), "distinct"), float("inf"), (0, 1), True)]  # fmt: skip


def np_vector_norm(x, ord=2, dim=None, keepdim=False):
    size, over = np.abs(x), {"axis": dim, "keepdims": keepdim}
    if np.isinf(ord):
        return size.max(**over)
    return (size**ord).sum(**over) ** (1 / ord)


def np_norm(a, ord=None, dim=None, keepdim=False):
    return MANY.norm(a.ravel() if ord is None and dim is None else a, ord, dim, keepdim)


def np_vander(x, N=None):
    return x[..., None] ** np.arange(x.shape[-1] if N is None else N)


def np_tensorsolve(a, b, dims=None):
    return MANY.tensorsolve(a, b, dims)


ON_THE_RIGHT = [S(T((3, 3), "regular"), T((2, 3)), left=False),
                S(T((2, 2, 2), "regular"), T((3, 2)), left=False)]  # fmt: skip


_LINALG = flow.linalg
SINGULAR = ("(): (Batch element 1): the matrix is singular: the diagonal element 2 of its factor U "
            "is zero")  # fmt: skip

LINALG = [
    row("linalg_solve", [*systems(), *ON_THE_RIGHT],
        np_solve, errors=[
        Bad(lambda d: _LINALG.solve(singular(d), ones(d, 2, 2, 1)), LinAlgError,
            "linalg.solve" + SINGULAR),
        Bad(lambda d: _LINALG.solve(ones(d, 2, 2), ones(d, 3, 1)), ShapeError,
            "linalg.solve(): B has shape [3, 1], expected 2 rows to go with A of shape [2, 2]"),
        Bad(lambda d: _LINALG.solve(ones(d, 2, 2), ones(d, 2, 1).double()), DTypeError,
            "linalg.solve(): B has dtype float64, expected float32"),
        Bad(lambda d: _LINALG.solve(ones(d, 2, 2, 2), ones(d, 3, 2, 1)), ShapeError,
            "linalg.solve(): the batches of shapes [2, 2, 2] and [3, 2, 1] do not broadcast")]),
    row("linalg_solve_ex", systems(), lambda a, b: [np_solve(a, b), np.zeros(
            np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), int)],
        result=[same, always("int32")]),
    *(row(f"linalg_solve_triangular[{upper},{left}]", [
          S(*s.args, upper=upper, unitriangular=unit) for s in systems() for unit in (False, True)]
          if left else [S(T((3, 3), "regular"), T((2, 3)), upper=upper, left=False)]
          + [S(T((0, 0)), T((2, 0)), upper=upper, left=False)],
          np_triangular) for upper in (False, True) for left in (True, False)),
    row("linalg_inv", regular(*SQUARE), MANY.inv, errors=[
        *not_square("inv"),
        Bad(lambda d: _LINALG.inv(singular(d)), LinAlgError, "linalg.inv" + SINGULAR)]),
    row("linalg_inv_ex", regular(*SQUARE),
        lambda a: [MANY.inv(a), np.zeros(a.shape[:-2], int)], result=[same, always("int32")]),
    row("linalg_det", regular(*SQUARE[:-1], (6, 6)), MANY.det, errors=not_square("det")),
    row("linalg_slogdet", regular(*SQUARE), np_slogdet, errors=not_square("slogdet")),
    row("linalg_cholesky", definite(*SQUARE) + definite((3, 3), (2, 2, 2), upper=True),
        np_cholesky, call=symmetric(_LINALG.cholesky), errors=[
        *not_square("cholesky"),
        Bad(lambda d: _LINALG.cholesky(-flow.eye(2, device=d)), LinAlgError,
            "linalg.cholesky(): the matrix is not positive-definite: its leading minor of order 1 "
            "is not")]),
    row("linalg_cholesky_ex", definite(*SQUARE),
        lambda a: [np_cholesky(a), np.zeros(a.shape[:-2], int)], result=[same, always("int32")],
        call=symmetric(_LINALG.cholesky_ex)),
    row("linalg_lu", regular(*ANY), lambda a: [a], call=product_of_lu, errors=[
        Bad(lambda d: _LINALG.lu(ones(d, 2, 2), pivot=False), ValueError,
            "linalg.lu(): pivot is False, but it must be True")]),
    row("linalg_lu_factor", regular(*ANY), lambda a: [a],
        call=lambda a: [_unpacked(*_LINALG.lu_factor(a))]),
    row("linalg_lu_factor_ex", regular(*ANY), lambda a: [a, np.zeros(a.shape[:-2], int)],
        result=[same, always("int32")],
        call=lambda a: [_unpacked(*_LINALG.lu_factor_ex(a)[:2]), _LINALG.lu_factor_ex(a)[2]]),
    row("lu_unpack", regular(*ANY), lambda a: [a],
        call=lambda a: [_unpacked(*_LINALG.lu_factor(a))]),
    row("linalg_lu_solve", [*systems(), *ON_THE_RIGHT],
        np_solve, call=through_factors(_LINALG.lu_solve)),
    row("linalg_lu_solve[adjoint]", systems(), lambda a, b: np_solve(mt(a), b),
        call=lambda a, b: through_factors(_LINALG.lu_solve)(a, b, adjoint=True)),
    row("lu_solve", systems(), np_solve,
        call=through_factors(lambda lu, pivots, b: flow.lu_solve(b, lu, pivots))),
    row("linalg_qr", regular(*ANY, mode="reduced"), np_qr, call=squares(_LINALG.qr), errors=[
        *failing("qr"),
        Bad(lambda d: _LINALG.qr(ones(d, 2, 2), "full"), ValueError,
            'linalg.qr(): mode is "full", but it must be "reduced", "complete" or "r"')]),
    row("linalg_qr[complete]", regular((3, 3), (2, 4), (2, 2, 3), (0, 3), mode="complete"), np_qr,
        call=squares(_LINALG.qr)),
    row("linalg_eigh", definite(*SQUARE), np_eigh, call=symmetric(squares(_LINALG.eigh, 0)),
        errors=not_square("eigh")),
    row("linalg_eigvalsh", definite(*SQUARE), MANY.eigvalsh, call=symmetric(_LINALG.eigvalsh),
        errors=[Bad(lambda d: _LINALG.eigvalsh(ones(d, 2, 2), "X"), ValueError,
                    'linalg.eigvalsh(): UPLO is "X", but it must be "L" or "U"')]),
    row("linalg_svd", regular(*ANY, full_matrices=False), np_svd,
        call=squares(_LINALG.svd, 1), errors=failing("svd")),
    row("linalg_svdvals", regular(*ANY), lambda a: MANY.svd(a, compute_uv=False)),
    row("linalg_lstsq", LEAST, lambda a, b: [full_rank(a, b)], call=first_only(_LINALG.lstsq)),
    row("linalg_pinv", regular(*ANY), np_pinv, errors=failing("pinv")),
    row("linalg_matrix_rank", regular(*ANY), lambda a: np.full(a.shape[:-2], min(a.shape[-2:])),
        result=always("int64"), differentiable=False),
    *(row(f"linalg_cond[{p}]", [S(T(s, "regular"), p) for s in ((3, 3), (2, 2, 2), (0, 2, 2))],
          lambda a, p: np.array([MANY.cond(x, p) for x in a.reshape(-1, *a.shape[-2:])]).reshape(
              a.shape[:-2]), twice=p not in (1, float("inf")))
      for p in (None, 2, -2, 1, float("inf"), "fro", "nuc")),
    row("linalg_matrix_power", POWERS, MANY.matrix_power),
    row("linalg_matrix_exp", [S(T(s)) for s in SQUARE[:-1]], np_matrix_exp),
    row("linalg_matrix_norm", NORMS, np_norms),
    row("linalg_norm", [S(T((3, 4))), S(T((2, 3, 4))), S(T((0, 3))), S(T((5,)), 3),
                        S(T((3, 4), "regular"), 2), S(T((3, 4), "regular"), "nuc"),
                        S(T((2, 3, 4)), 2, -1, True), S(T((2, 3, 4), "regular"), 1, (0, 1))],
        np_norm),
    row("linalg_vector_norm", VECTORS, np_vector_norm, twice=False),
    row("linalg_multi_dot", [S(T((3, 4)), T((4, 2)), T((2, 5))), S(T((4,)), T((4, 2)), T((2,))),
                             S(T((2, 3)), T((3,))), S(T((0, 4)), T((4, 2)), T((2, 5)))],
        lambda *xs: MANY.multi_dot(xs), call=lambda *xs: _LINALG.multi_dot(xs)),
    row("linalg_diagonal", [S(T((3, 4))), S(T((2, 3, 3)), offset=1), S(T((0, 3)))],
        lambda a, offset=0: np.diagonal(a, offset, -2, -1)),
    row("linalg_cross", CROSSES, np_cross, errors=[
        Bad(lambda d: _LINALG.cross(ones(d, 2), ones(d, 2)), ShapeError,
            "linalg.cross(): input has shape [2], expected 3 elements in dim 0"),
        Bad(lambda d: _LINALG.cross(ones(d, 5, 3), ones(d, 5, 1)), ShapeError,
            "linalg.cross(): other has shape [5, 1], expected 3 elements in dim 1")]),
    row("linalg_vecdot", [S(T((3, 4)), T((3, 4))), S(T((3, 4)), T((4,))),
                          S(T((3, 4)), T((3, 4)), dim=0), S(T((0, 4)), T((0, 4)))],
        lambda x, y, dim=-1: (x * y).sum(dim)),
    row("linalg_vander", [S(T((3,), "positive")), S(T((2, 3), "positive"), N=4),
                          S(T((0, 3), "positive"))], np_vander),
    row("linalg_tensorinv", [S(T((4, 4), "regular"), 1), S(T((0, 0)), 1)],
        lambda a, ind: MANY.inv(a)),
    row("linalg_tensorsolve", [S(T((4, 4), "regular"), T((4,))), S(T((0, 0)), T((0,)))],
        lambda a, b: MANY.solve(a, b) if a.size else np.zeros(0)),
    # Of flow itself.
    row("inverse", regular(*SQUARE), MANY.inv),
    row("det", regular(*SQUARE[:-1]), MANY.det),
    row("slogdet", regular(*SQUARE), np_slogdet),
    row("logdet", definite(*SQUARE), lambda a: np_slogdet(a)[1]),
    row("cholesky", definite(*SQUARE), np_cholesky, call=symmetric(flow.cholesky)),
    row("cholesky_solve", [S(s.args[1], s.args[0]) for s in systems()],
        lambda b, x: MANY.solve(np.tril(x) @ mt(np.tril(x)), b)),
    row("cholesky_inverse", regular(*SQUARE), lambda x: MANY.inv(np.tril(x) @ mt(np.tril(x)))),
    row("matrix_power", POWERS[:6] + POWERS[-3:], MANY.matrix_power),
    row("matrix_exp", [S(T(s)) for s in SQUARE[:-1]], np_matrix_exp),
    row("pinverse", regular(*ANY), np_pinv),
    row("qr", regular(*ANY), np_qr, call=squares(flow.qr)),
    row("svd", regular(*ANY), lambda a: [np_svd(a, False)[0], np_svd(a, False)[1],
                                         mt(np_svd(a, False)[2])], call=squares(flow.svd, 1)),
    row("triangular_solve", [S(s.args[1], s.args[0]) for s in systems()],
        lambda b, a: [np_triangular(a, b, True)], call=first_only(flow.triangular_solve)),
    row("cross", CROSSES, np_cross),
    row("chain_matmul", [S(T((3, 4)), T((4, 2)), T((2, 5))), S(T((0, 4)), T((4, 2)))],
        lambda *xs: MANY.multi_dot(xs)),
    row("nuclear_norm", [S(T((3, 4), "regular")), S(T((2, 3, 4), "regular"), (0, 2)),
                         S(T((0, 3, 4), "regular"), (1, 2))],
        lambda a, dim=(-2, -1): MANY.norm(a, "nuc", dim)),
]  # fmt: skip


def _unpacked(lu, pivots):
    p, lower, upper = flow.lu_unpack(lu, pivots)
    return p @ lower @ upper
