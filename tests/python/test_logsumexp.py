# SPDX-License-Identifier: Apache-2.0
"""logsumexp of infinities, and of no elements."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")


def test_logsumexp_of_infinities():
    inf = float("inf")
    x = flow.tensor([[1e4, 1e4], [-inf, -inf], [inf, 0.0], [-inf, 2.0]])
    np.testing.assert_allclose(x.logsumexp(1).numpy(), [1e4 + np.log(2), -inf, inf, 2], rtol=1e-6)


@pytest.mark.parametrize("shape, dim", [((2, 0, 4), 1), ((2, 0, 4), (0, 1)), ((0,), None),
                                        ((2, 0, 4), 2), ((0, 3), 1)])  # fmt: skip
def test_logsumexp_of_no_elements_is_minus_infinity(shape, dim):
    x = flow.zeros(shape, requires_grad=True)
    y = x.logsumexp(dim, keepdim=True)
    with np.errstate(divide="ignore"):
        axes = tuple(dim) if isinstance(dim, tuple) else dim
        expected = np.log(np.zeros(shape).sum(axes, keepdims=True))
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    y.sum().backward()
    assert x.grad.shape == shape
