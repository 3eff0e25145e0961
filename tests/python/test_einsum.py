# SPDX-License-Identifier: Apache-2.0
"""einsum is NumPy's, and has its gradients."""

import numpy as np
import pytest
from numerics import flow, host

RNG = np.random.default_rng(0)
CASES = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("i,i->", (3,), (3,)),
    ("i,j->ij", (2,), (3,)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)),
    ("ba", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (2, 2, 3)),
    ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)), ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("...ij,...jk->...ik", (2, 5, 2, 3), (5, 3, 4)), ("b...d,b...d->b...", (2, 3, 4), (2, 3, 4)),
    ("...,...->...", (2, 3), (3,)), ("i...->...", (2, 3, 4)), ("bnd,bmd", (1, 3, 4), (2, 5, 4)),
    ("ij, jk, kl -> il", (2, 3), (3, 4), (4, 5)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("ij,kl->ijkl", (2, 0), (3, 2)), ("ij,jk->ik", (2, 0), (0, 3)), ("ij,jk->ik", (2, 1), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("equation, shapes", [(c[0], c[1:]) for c in CASES])
def test_values_and_gradients(equation, shapes):
    arrays = [RNG.standard_normal(shape) for shape in shapes]
    tensors = [flow.tensor(a, requires_grad=True) for a in arrays]
    got, expected = flow.einsum(equation, *tensors), np.einsum(equation, *arrays)
    assert got.shape == expected.shape
    np.testing.assert_allclose(host(got), expected, atol=1e-13)
    np.testing.assert_array_equal(host(flow.einsum(equation, tensors)), host(got))
    if all(a.size for a in arrays):
        flow.autograd.gradcheck(lambda *t: flow.einsum(equation, *t), tensors)


@pytest.mark.parametrize("equation, shapes, text", [
    ("ij,jk->ik", [(2, 3)], "for 2 operands, not 1"),
    ("ij->i", [(2, 3, 4)], "does not go with shape [2, 3, 4]"),
    ("ij,jk->ik", [(2, 3), (4, 5)], '"j" stands for dims of 3 and 4'),
    ("ii->i", [(2, 3)], '"i" stands for dims of 2 and 3'),
    ("ij->ik", [(2, 3)], '"k" in the result'),
    ("ij->ii", [(2, 3)], '"i" in the result'),
])  # fmt: skip
def test_errors(equation, shapes, text):
    with pytest.raises(ValueError) as raised:
        flow.einsum(equation, *(flow.zeros(shape) for shape in shapes))
    assert text in str(raised.value)


def test_the_result_is_no_operand():
    w = flow.nn.Parameter(flow.ones(2, 3))
    for equation in ("ij->ij", "ij", "ji->ji"):
        y = flow.einsum(equation, w)
        assert y is not w and not y.is_leaf and not isinstance(y, flow.nn.Parameter)
