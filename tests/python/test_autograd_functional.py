# SPDX-License-Identifier: Apache-2.0
"""Jacobians, Hessians and their products with vectors, against closed forms."""

import numpy as np
import pytest
from numerics import flow, host

A = flow.autograd.functional
X = flow.tensor([0.3, -1.2, 0.7], dtype=flow.float64)
Y = flow.tensor([1.5, 2.5], dtype=flow.float64)
V = flow.tensor([1.0, -2.0, 0.5], dtype=flow.float64)
P = host(X.softmax(0))
SLOPES = np.diag(P) - np.outer(P, P)


def softmax(x):
    return x.softmax(0)


def cubes(x):
    return (x**3).sum()


def close(got, want):
    np.testing.assert_allclose(host(got), want, rtol=1e-12, atol=1e-14)


def test_jacobian():
    close(A.jacobian(softmax, X), SLOPES)
    both = A.jacobian(lambda x, y: (x[:2] * y, y.sum()), (X, Y))
    close(both[0][0], np.diag(host(Y)) @ np.eye(2, 3))
    close(both[0][1], np.diag(host(X)[:2]))
    close(both[1][0], np.zeros(3))
    close(both[1][1], np.ones(2))
    assert A.jacobian(lambda x: x[:0], X).shape == (0, 3)
    assert not A.jacobian(softmax, X).requires_grad and X.grad is None


def test_jacobian_can_be_differentiated():
    x = X.clone().requires_grad_()
    jacobian = A.jacobian(lambda x: x**3, x, create_graph=True)
    (grad,) = flow.autograd.grad(jacobian.sum(), x)
    close(grad, 6 * host(X))


def test_hessian():
    close(A.hessian(cubes, X), np.diag(6 * host(X)))
    both = A.hessian(lambda x, y: (x[:2] * y * y).sum(), (X, Y))
    close(both[0][1], np.eye(3, 2) @ np.diag(2 * host(Y)))
    close(both[1][1], np.diag(2 * host(X)[:2]))
    with pytest.raises(ValueError, match="one element"):
        A.hessian(softmax, X)
    with pytest.raises(ValueError, match=r"vhp\(\): func gave shape \[3\], expected one element"):
        A.hvp(softmax, X, V)


@pytest.mark.parametrize("function", [A.vjp, A.jvp])
def test_products_with_the_jacobian(function):
    value, product = function(softmax, X, V)
    close(value, P)
    close(product, SLOPES @ host(V))  # which is symmetric
    assert not value.requires_grad and not product.requires_grad


def test_products_of_several():
    _, (dx, dy) = A.vjp(lambda x, y: (x * 2, y * x[0]), (X, Y), (V, Y))
    close(dx, 2 * host(V) + np.array([(host(Y) ** 2).sum(), 0, 0]))
    close(dy, host(Y) * host(X)[0])
    values, products = A.jvp(lambda x, y: (x * 2, y * x[0]), (X, Y), (V, Y))
    assert len(values) == len(products) == 2
    close(products[0], 2 * host(V))
    close(products[1], host(Y) * host(V)[0] + host(X)[0] * host(Y))


@pytest.mark.parametrize("function", [A.vhp, A.hvp])
def test_products_with_the_hessian(function):
    value, product = function(cubes, X, V)
    close(value, (host(X) ** 3).sum())
    close(product, 6 * host(X) * host(V))


def test_errors():
    with pytest.raises(ValueError, match="one element"):
        A.vjp(softmax, X)
    with pytest.raises(ValueError, match="v has shape"):
        A.vjp(softmax, X, Y)


def test_vectors_may_be_left_out_for_one_element():
    one = flow.tensor([2.0], dtype=flow.float64)
    close(A.jvp(lambda x: flow.cat([x, x * x]), one)[1], [1, 4])
    close(A.vhp(cubes, one)[1], [12])
    for product in (A.jvp, A.vhp, A.hvp):
        with pytest.raises(ValueError, match="v may be left out"):
            product(cubes, X)
        with pytest.raises(ValueError, match=r"v has shapes \[\[2\]\], expected \[\[3\]\]"):
            product(cubes, X, Y)


def test_products_with_a_graph_where_recording_is_off():
    with flow.no_grad():
        value, product = A.hvp(cubes, X, V, create_graph=True)
    assert value.grad_fn is not None and product.grad_fn is not None
    close(product, 6 * host(X) * host(V))
    close(A.jacobian(softmax, X, vectorize=True), SLOPES)
    close(A.hessian(cubes, X, vectorize=True), np.diag(6 * host(X)))


def test_strict_allows_no_constant():
    both, unused = (X, Y), lambda x, y: (x**3).sum()
    constant = flow.ones(1, dtype=flow.float64).sum
    needs = lambda what: pytest.raises(RuntimeError, match=what)  # noqa: E731
    for f in (A.jacobian, A.vjp, A.hessian):
        close(f(unused, both)[1][1], np.zeros((2, 2)) if f is A.hessian else np.zeros(2))
        with needs(rf"^{f.__name__}\(\): the result does not depend on input 1, which strict=True"):
            f(unused, both, strict=True)
        with needs("output 0 does not depend on the inputs"):
            f(lambda x: constant(), X, strict=True)
    with needs("vhp.*the result does not depend on input 1"):
        A.vhp(unused, both, (V, Y), strict=True)
    with needs("jvp.*output 1 does not depend on the inputs"):
        A.jvp(lambda x: (x, constant()), X, V, strict=True)
    for f in (A.hessian, A.vhp, A.hvp):
        with needs("the derivative by input 0 does not depend on the inputs"):
            f(lambda x: x.sum(), X, *([] if f is A.hessian else [V]), strict=True)
    with needs("the derivative by input 0 does not depend on the inputs"):
        A.jacobian(lambda x: 2 * x, X, True, True)
    close(A.jacobian(lambda x: 2 * x, X, False, True), 2 * np.eye(3))
    close(A.jvp(lambda x: 2 * x, X, V, strict=True)[1], 2 * host(V))
    close(A.hessian(cubes, X, strict=True), np.diag(6 * host(X)))
    close(A.hvp(cubes, X, V, strict=True)[1], 6 * host(X) * host(V))
    close(A.vjp(softmax, X, V, strict=True)[1], SLOPES @ host(V))


def test_what_is_no_tensor_is_named():
    for function in (A.jacobian, A.vjp, A.jvp, A.hessian, A.vhp, A.hvp):
        with pytest.raises(TypeError, match="inputs must be a Tensor or a tuple of .*, not int"):
            function(softmax, 3)
        with pytest.raises(TypeError, match="what func gives must be a Tensor or .*, not float"):
            function(lambda x: 1.0, X, *([] if function in (A.jacobian, A.hessian) else [X]))
    for product in (A.vjp, A.jvp, A.vhp, A.hvp):
        with pytest.raises(TypeError, match="v must be a Tensor or a tuple of Tensors, not float"):
            product(cubes, X, 1.0)
