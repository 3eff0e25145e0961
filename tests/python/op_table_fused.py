# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: expressions of elements, as text. test_fuse_elements.py has the rest."""

import numpy as np
from numerics import flow
from op_row import Bad, Op, S, T, ones

ShapeError = flow.ShapeError


def fused(text):
    return lambda *tensors: flow.fuse_elements(text, list(tensors))


def _two(x, y, z):
    s = 1 / (1 + np.exp(-y))
    return [x * s + z, x - 2 * y]


FUSED = [
    Op("fuse_elements[one]", [S(T((3, 4)), T((3, 4))), S(T((3, 4)), T((4,))), S(T(()), T((2, 1))),
                              S(T((0, 4)), T((4,))), S(T((2, 1, 3)), T((5, 1)))],
       lambda x, y: x / (1 + np.exp(-y)), bound="pointwise",
       call=fused("x, y: x * sigmoid(y)"), errors=[
        Bad(lambda d: fused("x, y: x * y")(ones(d, 3)), TypeError,
            "fuse_elements(): the expression has 2 parameter(s), 1 operand(s) were given"),
        Bad(lambda d: fused("x, y: x * y")(ones(d, 3), ones(d, 4)), ShapeError,
            "fuse_elements(): y has shape [4], expected one that broadcasts with [3]"),
        Bad(lambda d: fused("x: x * y")(ones(d, 3)), ValueError,
            "fuse_elements(): there is no parameter y at character 8 of the expression, 'y'")]),
    Op("fuse_elements[two]", [S(T((3, 4)), T((4,)), T((3, 1))), S(T((5,)), T((5,)), T(())),
                              S(T((0, 2)), T((2,)), T((1,)))],
       _two, bound="composite", result=[lambda *d: d[0]] * 2,
       call=fused("x, y, z: x * sigmoid(y) + z, x - 2 * y")),
]  # fmt: skip
