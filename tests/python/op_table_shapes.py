# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: functions that give tensors another shape or order, diagonals and
triangles, and products of matrices and vectors by name. op_table.py says what a row is.
"""

import numpy as np
from numerics import ALL, FLOATS, NUMERIC, flow
from op_row import Bad, Op, S, T, ones, same, summed

ShapeError = flow.ShapeError


def listed(function):
    """A function of a list of tensors, as one of the tensors themselves."""
    return lambda *tensors, **kwargs: function(list(tensors), **kwargs)


def into(name):
    """An in-place method on a copy of its first argument, as a function."""
    return lambda self, *args: getattr(self.clone(), name)(*args)


def sized(function):
    """A NumPy function of the sizes' products, for the bound of a product."""
    return lambda *args, **kwargs: function(
        *(np.abs(a) if isinstance(a, np.ndarray) else a for a in args), **kwargs
    )


# ---------------------------------------------------------------------------------------------
# References.


def np_add_product(x, a, b, beta=1, alpha=1):
    return beta * x + alpha * (a @ b)


def np_add_product_size(x, a, b, beta=1, alpha=1):
    return np_add_product(np.abs(x), np.abs(a), np.abs(b), abs(beta), abs(alpha))


def np_block_diag(*arrays):
    arrays = [np.atleast_2d(a) for a in arrays]
    y = np.zeros(np.sum([a.shape for a in arrays], axis=0), arrays[0].dtype)
    row = column = 0
    for a in arrays:
        y[row : row + a.shape[0], column : column + a.shape[1]] = a
        row, column = row + a.shape[0], column + a.shape[1]
    return y


def np_cartesian_prod(*arrays):
    grids = np.meshgrid(*arrays, indexing="ij")
    return np.stack([g.ravel() for g in grids], axis=1) if len(arrays) > 1 else arrays[0]


def np_diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1]
    y = np.zeros((*x.shape[:-1], n + abs(offset), n + abs(offset)), x.dtype)
    at = np.arange(n)
    y[..., at + max(-offset, 0), at + max(offset, 0)] = x
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


def np_fill_diagonal(x, value):
    y = x.copy()
    at = np.arange(min(x.shape))
    y[(at,) * x.ndim] = value
    return y


def np_unfold(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return np.take(windows, range(0, windows.shape[dim], step), axis=dim)


def np_unflatten(x, dim, sizes):
    dim %= x.ndim
    known = int(np.prod([n for n in sizes if n != -1]))
    sizes = [x.shape[dim] // known if n == -1 else n for n in sizes]
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def np_atleast(function):
    return lambda *arrays: [function(a) for a in arrays] if len(arrays) > 1 else function(*arrays)


def np_indices(function):
    return lambda row, col, offset=0: np.stack(function(row, offset, col))


# ---------------------------------------------------------------------------------------------
# Samples.

PAIRS = [S(T((4,)), T((4,))), S(T((0,)), T((0,))), S(T((1,)), T((1,))), S(T((131,)), T((131,)))]
TRIANGLES = [
    S(T((3, 4))), S(T((4, 3)), 1), S(T((2, 3, 3)), -1), S(T((0, 3))), S(T((3, 4)), 9),
    S(T((3, 4)), -9), S(T((33, 17)), 2),
]  # fmt: skip
JOINED = [S(T((2, 3)), T((2, 3))), S(T((2, 3, 4)), T((2, 3, 4))), S(T((3,)), T((3,))), S(T((3,))),
          S(T((0,))), S(T((0, 3)), T((0, 3))), S(T(()), T(()))]  # fmt: skip
RAISED = [S(T(())), S(T((3,))), S(T((2, 3))), S(T((2, 3, 4))), S(T((0,))), S(T((0,)), T(()))]
# What has no gradient where an element is 0; without zeros it has one.
TRUTHS = [
    S(T(a, "few", grad=False), T(b, "few", grad=False))
    for a, b in (((3, 4), (3, 4)), ((3, 4), (4,)), ((0, 3), (3,)), ((130,), (130,)))
]
TRUE = [S(T((3, 4), "positive"), T((4,), "positive")), S(T((3,), "positive"), 0),
        S(T((0, 3)), 1)]  # fmt: skip


def too_flat(name, dims, what=None):
    return Bad(lambda d: getattr(flow, name)(ones(d, 2), *(what or ())), ShapeError,
               f"{name}(): input has shape [2], expected {dims}")  # fmt: skip


def no_tensors(name):
    return Bad(lambda d: getattr(flow, name)([]), ValueError,
               f"{name}(): tensors is empty, but it must be one tensor or more")  # fmt: skip


def of_vectors(name):
    return Bad(lambda d: getattr(flow, name)(ones(d, 2, 2), ones(d, 2)), ShapeError,
               f"{name}(): takes tensors of 1 dim, not shapes [2, 2] and [2]")  # fmt: skip


def product(name, samples, reference, **kwargs):
    return Op(name, samples, reference, FLOATS, bound="sum", magnitude=sized(reference), **kwargs)


PRODUCTS = [
    product("mm", [S(T((3, 4)), T((4, 2))), S(T((0, 4)), T((4, 2))), S(T((3, 0)), T((0, 2))),
                   S(T((33, 17)), T((17, 5)))], np.matmul, errors=[
        Bad(lambda d: flow.mm(ones(d, 2), ones(d, 2)), ShapeError,
            "mm(): takes matrices, not shapes [2] and [2]"),
        Bad(lambda d: flow.mm(ones(d, 2, 3), ones(d, 2, 3)), ShapeError,
            "mm(): other has shape [2, 3], expected [3, 3] to go with [2, 3]")]),
    product("bmm", [S(T((2, 3, 4)), T((2, 4, 2))), S(T((0, 3, 4)), T((0, 4, 2))),
                    S(T((1, 3, 1)), T((1, 1, 5)))], np.matmul, errors=[
        Bad(lambda d: flow.bmm(ones(d, 2, 3), ones(d, 3, 2)), ShapeError,
            "bmm(): takes batches of matrices, not shapes [2, 3] and [3, 2]")]),
    product("mv", [S(T((3, 4)), T((4,))), S(T((0, 4)), T((4,))), S(T((2, 0)), T((0,))),
                   S(T((5, 130)), T((130,)))], np.matmul),
    product("dot", PAIRS, np.dot, errors=[of_vectors("dot")]),
    product("vdot", PAIRS, np.vdot, errors=[of_vectors("vdot")]),
    product("inner", [*PAIRS, S(T((2, 3)), T((4, 3))), S(T((3,)), T((2, 2, 3))), S(T(()), T((3,)))],
            np.inner, errors=[
        Bad(lambda d: flow.inner(ones(d, 2), ones(d, 3)), ShapeError,
            "inner(): the last dims of shapes [2] and [3] do not go together")]),
    product("tensordot", [
        S(T((2, 3, 4)), T((4, 3)), [2, 1], [0, 1]), S(T((2, 3)), T((3, 2)), [1], [0]),
        S(T((2,)), T((3,)), [], []), S(T((0, 3)), T((3, 2)), [1], [0])],
        lambda a, b, m, n: np.tensordot(a, b, (m, n)), errors=[
        Bad(lambda d: flow._C.tensordot(ones(d, 2, 3), ones(d, 2, 3), [0], [1]), ShapeError,
            "tensordot(): dims [0] of shape [2, 3] do not go with dims [1] of shape [2, 3]")]),
    Op("outer", [S(T((3,)), T((4,))), S(T((0,)), T((3,))), S(T((33,)), T((17,)))], np.outer,
       NUMERIC, errors=[of_vectors("outer")]),
    Op("kron", [S(T((2, 3)), T((3, 2))), S(T((3,)), T((2, 2))), S(T(()), T((3,))),
                S(T((0, 2)), T((2, 2))), S(T((2, 1, 2)), T((3, 2)))], np.kron, NUMERIC, errors=[
        Bad(lambda d: flow.kron(ones(d, 2), 1), TypeError,
            "kron(): argument 'other' must be Tensor, not int")]),
    Op("addmm", [S(T((3, 2)), T((3, 4)), T((4, 2))), S(T((2,)), T((3, 4)), T((4, 2)), beta=0.5),
                 S(T(()), T((3, 4)), T((4, 2)), alpha=-2), S(T((0, 2)), T((0, 4)), T((4, 2))),
                 S(T((3, 2)), T((3, 4)), T((4, 2)), beta=2, alpha=0.25)],
       np_add_product, bound="composite", magnitude=np_add_product_size, errors=[
        Bad(lambda d: flow.addmm(ones(d, 5, 5), ones(d, 2, 3), ones(d, 3, 2)), ShapeError,
            "addmm(): the second operand has shape [2, 2], expected one that broadcasts with "
            "[5, 5]")]),
    Op("baddbmm", [S(T((2, 3, 2)), T((2, 3, 4)), T((2, 4, 2))),
                   S(T((3, 2)), T((2, 3, 4)), T((2, 4, 2)), beta=0.5, alpha=-2),
                   S(T((0, 3, 2)), T((0, 3, 4)), T((0, 4, 2)))],
       np_add_product, bound="composite", magnitude=np_add_product_size, errors=[
        Bad(lambda d: flow.baddbmm(ones(d, 2, 2), ones(d, 2, 3), ones(d, 3, 2)), ShapeError,
            "baddbmm(): takes batches of matrices, not shapes [2, 3] and [3, 2]")]),
]  # fmt: skip

DIAGONALS = [
    Op("diag", [S(T((3,))), S(T((3,)), -1), S(T((3, 4))), S(T((3, 4)), 1), S(T((0,)), 2),
                S(T((0, 3)))], np.diag, ALL, errors=[
        Bad(lambda d: flow.diag(ones(d, 2, 2, 2)), ShapeError,
            "diag(): input has shape [2, 2, 2], expected 1 or 2 dims")]),
    Op("diagflat", [S(T((3,))), S(T((2, 2)), 1), S(T(())), S(T((0,)), -1)], np.diagflat, ALL),
    Op("diagonal", [S(T((3, 4))), S(T((4, 3)), 1), S(T((2, 3, 4)), -1, 0, 2),
                    S(T((2, 3, 4)), 0, -1, -2), S(T((0, 3)))], np.diagonal, ALL, errors=[
        too_flat("diagonal", "at least 2 dims"),
        Bad(lambda d: flow.diagonal(ones(d, 2, 2), 0, 1, 1), ValueError,
            "diagonal(): a dim occurs twice in [1, 1]")]),
    Op("diag_embed", [S(T((3,))), S(T((2, 3)), 1), S(T((2, 3)), -1), S(T((2, 3)), 0, 0, 2),
                      S(T((0,)))], np_diag_embed, ALL, errors=[
        Bad(lambda d: flow.diag_embed(ones(d, 2), 0, 1, 1), ValueError,
            "diag_embed(): dim1 and dim2 are 1 and 1, the same dim")]),
    Op("fill_diagonal_", [S(T((3, 4)), 2), S(T((4, 2)), 1), S(T((3, 3, 3)), 3), S(T((0, 2)), 1)],
       np_fill_diagonal, ALL[:-1], call=into("fill_diagonal_"), errors=[
        Bad(lambda d: ones(d, 2).fill_diagonal_(1), ShapeError,
            "fill_diagonal_(): self has shape [2], expected 2 dims, or more of one size")]),
    Op("trace", [S(T((3, 4))), S(T((1, 1))), S(T((0, 3))), S(T((40, 33)))], np.trace, NUMERIC,
       bound="sum", magnitude=lambda x: np.trace(np.abs(x)), result=summed,
       errors=[too_flat("trace", "2 dims")]),
    Op("tril", TRIANGLES, np.tril, ALL, errors=[too_flat("tril", "at least 2 dims")]),
    Op("triu", TRIANGLES, np.triu, ALL, errors=[too_flat("triu", "at least 2 dims")]),
    Op("block_diag", [S(T((2, 3)), T((1, 2))), S(T(()), T((3,))), S(T((2, 2))),
                      S(T((0,)), T((2, 1)))], np_block_diag, ALL, errors=[
        Bad(lambda d: flow.block_diag(ones(d, 2, 2, 2)), ShapeError,
            "block_diag(): tensor 0 has shape [2, 2, 2], expected at most 2 dims")]),
    Op("eye", [S(3), S(0), S(2, 4), S(4, 2), S(3, 0)], np.eye, ALL, factory=True, errors=[
        Bad(lambda d: flow.eye(-1, device=d), ValueError,
            "eye(): n is -1, but it must not be negative")]),
    Op("tril_indices", [S(3, 3), S(3, 4, 1), S(4, 2, -1), S(0, 3), S(3, 3, -5)],
       np_indices(np.tril_indices), ("int32", "int64"), factory=True, errors=[
        Bad(lambda d: flow.tril_indices(-1, 2, device=d), ValueError,
            "tril_indices(): row is -1, but it must not be negative")]),
    Op("triu_indices", [S(3, 3), S(3, 4, 1), S(4, 2, -1), S(0, 3), S(3, 3, 5)],
       np_indices(np.triu_indices), ("int32", "int64"), factory=True, errors=[
        Bad(lambda d: flow.triu_indices(2, -1, device=d), ValueError,
            "triu_indices(): col is -1, but it must not be negative")]),
]  # fmt: skip


def cut(name, samples, reference, errors):
    def parts(x, sections, *dim):
        return [np.array(a) for a in reference(x, sections, *dim)]

    return Op(name, samples, parts, ALL, errors=errors)


CUT = [
    cut("tensor_split", [S(T((7, 2)), 3), S(T((2, 5)), [1, 3], 1), S(T((3,)), [2, 1, 9]),
                         S(T((0, 2)), 2), S(T((2, 3)), 4, -1)],
        lambda x, s, dim=0: np.array_split(x, s, axis=dim), [
        Bad(lambda d: flow.tensor_split(ones(d, 2), 0), ValueError,
            "tensor_split(): 0 sections, but there must be 1 to 1048576")]),
    cut("hsplit", [S(T((2, 4)), 2), S(T((5,)), [1, 2]), S(T((2, 0)), 2), S(T((2, 3, 2)), [1])],
        np.hsplit, [
        Bad(lambda d: flow.hsplit(ones(d, 2, 3), 2), ValueError,
            "hsplit(): dim 1 of size 3 does not make 2 parts of one size; tensor_split makes "
            "unequal ones")]),
    cut("vsplit", [S(T((4, 2)), 2), S(T((5, 2)), [1, 2]), S(T((0, 2)), 2)], np.vsplit,
        [too_flat("vsplit", "at least 2 dims", (2,))]),
    cut("dsplit", [S(T((2, 1, 4)), 2), S(T((1, 2, 5)), [1, 2]), S(T((0, 2, 2)), 2)], np.dsplit,
        [too_flat("dsplit", "at least 3 dims", (2,))]),
]  # fmt: skip

JOINS = [
    *(Op(name, JOINED, listed(getattr(np, name)), ALL, call=listed(getattr(flow, name)),
         errors=[no_tensors(name)])
      for name in ("hstack", "vstack", "dstack", "column_stack")),
    *(Op(name, RAISED, np_atleast(getattr(np, name)), ALL)
      for name in ("atleast_1d", "atleast_2d", "atleast_3d")),
    Op("cartesian_prod", [S(T((2,)), T((3,))), S(T((2,)), T((1,)), T((3,))), S(T((4,))),
                          S(T((0,)), T((3,)))], np_cartesian_prod, ALL),
    Op("meshgrid", [S(T((2,)), T((3,))), S(T((2,)), T((3,)), indexing="xy"),
                    S(T((2,)), T(()), T((3,))), S(T((0,)), T((3,)))],
       lambda *a, indexing="ij": list(map(np.array, np.meshgrid(*a, indexing=indexing))), ALL,
       errors=[
        Bad(lambda d: flow.meshgrid(ones(d, 2), indexing="ab"), ValueError,
            'meshgrid(): indexing is "ab", but it must be "ij" or "xy"'),
        Bad(lambda d: flow.meshgrid(ones(d, 2, 2), indexing="ij"), ShapeError,
            "meshgrid(): a tensor has shape [2, 2], expected at most 1 dim")]),
    Op("broadcast_tensors", [S(T((2, 1)), T((3,))), S(T(()), T((2,))), S(T((0, 3)), T((1,)))],
       lambda *a: list(map(np.array, np.broadcast_arrays(*a))), ALL, errors=[
        Bad(lambda d: flow.broadcast_tensors(ones(d, 2), ones(d, 3)), ShapeError,
            "broadcast_tensors(): the shapes [2] and [3] do not broadcast")]),
]  # fmt: skip

AS_OTHER = [S(T((2, 3)), T((3, 2), grad=False)), S(T((0, 3)), T((0,), grad=False)),
            S(T(()), T((1, 1), grad=False))]  # fmt: skip
SHAPES = [
    Op("broadcast_to", [S(T((3, 1)), (3, 4)), S(T((3,)), (2, 3)), S(T(()), (2,)),
                        S(T((1, 3)), (0, 3))],
       lambda x, size: np.array(np.broadcast_to(x, size)), ALL, errors=[
        Bad(lambda d: flow.broadcast_to(ones(d, 2, 3), (2, 4)), ShapeError,
            "broadcast_to(): a tensor of shape [2, 3] (float32, {device}) does not expand to "
            "[2, 4]")]),
    Op("expand_as", [S(T((3, 1)), T((3, 4), grad=False)), S(T(()), T((2,), grad=False)),
                     S(T((1, 3)), T((0, 3), grad=False))],
       lambda x, y: np.array(np.broadcast_to(x, y.shape)), ALL, errors=[
        Bad(lambda d: ones(d, 2).expand_as(ones(d, 3)), ShapeError,
            "expand_as(): a tensor of shape [2] (float32, {device}) does not expand to [3]")]),
    Op("view_as", AS_OTHER, lambda x, y: x.reshape(y.shape), ALL, layouts=False, errors=[
        Bad(lambda d: ones(d, 2).view_as(ones(d, 3)), ShapeError,
            "view_as(): shape [3] does not go with a tensor of shape [2] (float32, {device})")]),
    Op("reshape_as", AS_OTHER, lambda x, y: x.reshape(y.shape), ALL, errors=[
        Bad(lambda d: ones(d, 2).reshape_as(ones(d, 3)), ShapeError,
            "reshape_as(): shape [3] does not go with a tensor of shape [2] (float32, {device})")]),
    Op("ravel", [S(T((2, 3))), S(T(())), S(T((0, 3))), S(T((4,)))], np.ravel, ALL),
    Op("unflatten", [S(T((6,)), 0, (2, 3)), S(T((2, 6)), -1, (-1, 2)), S(T((0, 4)), 1, (2, 2))],
       np_unflatten, ALL, errors=[
        Bad(lambda d: flow.unflatten(ones(d, 6), 0, (4, 2)), ShapeError,
            "unflatten(): sizes [4, 2] does not go with a tensor of shape [6] "
            "(float32, {device})")]),
    Op("unfold", [S(T((7,)), 0, 3, 2), S(T((2, 5)), -1, 2, 1), S(T((4, 3)), 0, 4, 1),
                  S(T((0, 4)), 1, 2, 2)], np_unfold, ALL, errors=[
        Bad(lambda d: ones(d, 3).unfold(0, 4, 1), ValueError,
            "unfold(): size is 4, but it must be in [0, 3]"),
        Bad(lambda d: ones(d, 3).unfold(0, 2, 0), ValueError,
            "unfold(): step is 0, but it must be positive")]),
    Op("movedim", [S(T((2, 3, 4)), 0, -1), S(T((2, 3, 4)), (0, 1), (2, 0)), S(T((0, 3)), 1, 0)],
       np.moveaxis, ALL, errors=[
        Bad(lambda d: flow.movedim(ones(d, 2, 3), (0, 1), (0,)), ValueError,
            "movedim(): 2 dims to 1 places")]),
    Op("flip", [S(T((2, 3, 4)), (0, -1)), S(T((5,)), (0,)), S(T((2, 3)), ()), S(T((0, 3)), (1,)),
                S(T((3, 130)), (1,))], np.flip, ALL, errors=[
        Bad(lambda d: flow.flip(ones(d, 2, 3), (2,)), IndexError,
            "flip(): dim 2 is out of range [-2, 1] for a tensor of shape [2, 3] "
            "(float32, {device})"),
        Bad(lambda d: flow.flip(ones(d, 2, 3), (0, 0)), ValueError,
            "flip(): a dim occurs twice in [0, 0]")]),
    Op("fliplr", [S(T((2, 3))), S(T((2, 3, 2))), S(T((0, 3)))], np.fliplr, ALL,
       errors=[too_flat("fliplr", "at least 2 dims")]),
    Op("flipud", [S(T((3,))), S(T((2, 3))), S(T((0, 3)))], np.flipud, ALL),
    Op("rot90", [S(T((2, 3))), S(T((2, 3)), 2), S(T((2, 3, 4)), -1, (1, 2)), S(T((2, 3)), 4),
                 S(T((0, 3)), 3)], np.rot90, ALL, errors=[
        Bad(lambda d: flow.rot90(ones(d, 2, 2), 1, (0, 0)), ValueError,
            "rot90(): a dim occurs twice in [0, 0]")]),
    Op("roll", [S(T((7,)), 2), S(T((2, 3)), 4), S(T((2, 3)), (1, -1), (0, 1)), S(T((3, 4)), 9, -1),
                S(T((0, 3)), 1, 0)], np.roll, ALL, errors=[
        Bad(lambda d: flow.roll(ones(d, 2), (1, 2), (0,)), ValueError,
            "roll(): 2 shifts for 1 dims")]),
    Op("repeat", [S(T((2, 3)), (2, 1)), S(T((3,)), (2, 1, 2)), S(T(()), (3,)), S(T((2,)), (0,)),
                  S(T((0, 2)), (2, 2))], lambda x, sizes: np.tile(x, sizes), ALL, errors=[
        Bad(lambda d: ones(d, 2, 3).repeat(2), ValueError,
            "repeat(): 1 sizes for a tensor of 2 dims")]),
    Op("tile", [S(T((2, 3)), (2,)), S(T((3,)), (2, 1, 2)), S(T(()), (3,)), S(T((0, 2)), (2, 2))],
       np.tile, ALL, errors=[
        Bad(lambda d: flow.tile(ones(d, 2, 3), (-1,)), ValueError,
            "tile(): dims are [1, -1], but they must not be negative")]),
    Op("repeat_interleave", [S(T((3,)), 2), S(T((2, 3)), 2, 1), S(T((2, 2)), 3), S(T((2,)), 0),
                             S(T((0, 2)), 2, 0)],
       lambda x, repeats, dim=None: np.repeat(x, repeats, axis=dim), ALL, errors=[
        Bad(lambda d: flow.repeat_interleave(ones(d, 2), -1), ValueError,
            "repeat_interleave(): repeats is -1, but it must not be negative"),
        Bad(lambda d: flow.repeat_interleave(ones(d, 2), ones(d, 3, dtype="int64"), 0), ShapeError,
            "repeat_interleave(): repeats has shape [3], expected [2]")]),
]  # fmt: skip


def limit(name, reference):
    return Op(name, [S(T((3, 4), "distinct"), 2), S(T((0, 3)), 1), S(T((130,), "distinct"), 3),
                     S(T((3, 4), "distinct"), T((4,), "positive"))],
              reference, NUMERIC, call=into(name), twice=False, errors=[
        Bad(lambda d: getattr(ones(d, 2), name)("x"), TypeError,
            f"{name}(): argument '{name[6:9]}' must be Tensor or a number, not str")])  # fmt: skip


WRITTEN = [
    limit("clamp_max_", np.minimum),
    limit("clamp_min_", np.maximum),
    *(Op(f"{name}_[true]", TRUE, getattr(np, name), call=into(f"{name}_"), twice=False)
      for name in ("logical_and", "logical_or", "logical_xor")),
    *(Op(f"{name}_", TRUTHS, getattr(np, name), ALL, call=into(f"{name}_"), result=same,
         differentiable=False, errors=[
        Bad(lambda d, name=name: getattr(ones(d, 2), f"{name}_")(ones(d, 3)), ShapeError,
            f"{name}_(): the second operand has shape [3], expected one that broadcasts with "
            "[2]")])
      for name in ("logical_and", "logical_or", "logical_xor")),
]  # fmt: skip

SHAPED = [*PRODUCTS, *DIAGONALS, *CUT, *JOINS, *SHAPES, *WRITTEN]
