# SPDX-License-Identifier: Apache-2.0
"""Linear algebra beyond its rows in the op table: layouts, singular input, equal values, drivers,
and what a row cannot say.
"""

import inspect

import numpy as np
import pytest
from numerics import LAYOUTS, flow, host, tensor

L = flow.linalg
RNG = np.random.default_rng(0)


def matrix(*shape, dtype="float64", device="cpu"):
    """No singular value near 0."""
    m, n = shape[-2:]
    values = 0.3 * RNG.standard_normal(shape) + np.diag(np.arange(1.0, max(m, n) + 1))[:m, :n]
    return tensor(values, dtype, device)


def close(a, b, limit=1e-11):
    a, b = (host(t) if isinstance(t, flow.Tensor) else np.asarray(t) for t in (a, b))
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=limit, atol=limit)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded"])
def test_any_layout(layout, device):
    a, b = matrix(2, 4, 4, device=device), matrix(2, 4, 3, device=device)
    of = LAYOUTS[layout]
    for function in (L.inv, L.det, L.svdvals, L.pinv, L.matrix_exp):
        close(function(of(a)), function(a))
    close(L.solve(of(a), of(b)), L.solve(a, b))
    close(L.solve_triangular(of(a), of(b), upper=True), L.solve_triangular(a, b, upper=True))
    q, r = L.qr(of(b))
    close(q @ r, b)


def test_a_batch_that_is_repeated(device):
    a = matrix(3, 3, device=device).expand(4, 3, 3)
    close(L.inv(a) @ a, np.broadcast_to(np.eye(3), (4, 3, 3)))


def test_vectors_on_the_right(device):
    a = matrix(3, 3, device=device)
    b = tensor(RNG.standard_normal(3), "float64", device)
    close(a @ L.solve(a, b), b)
    batch = matrix(2, 3, 3, device=device)
    rows = tensor(RNG.standard_normal((2, 3)), "float64", device)
    close((batch @ L.solve(batch, rows).unsqueeze(-1)).squeeze(-1), rows)
    close(L.lstsq(a, b).solution, L.solve(a, b), 1e-9)


def test_singular_input(device):
    a = flow.stack([flow.eye(3), flow.ones(3, 3), flow.eye(3)]).double().to(device)
    for call in (L.inv, lambda a: L.solve(a, a), flow.inverse, flow.Tensor.inverse):
        with pytest.raises(L.LinAlgError, match=r"\(Batch element 1\).*diagonal element 2"):
            call(a)
    assert issubclass(L.LinAlgError, RuntimeError)
    assert L.inv_ex(a).info.tolist() == [0, 2, 0]
    assert L.solve_ex(a, a).info.tolist() == [0, 2, 0]
    assert L.det(a).tolist() == [1, 0, 1]
    sign, logabsdet = L.slogdet(a)
    assert sign.tolist() == [1, 0, 1] and logabsdet.tolist() == [0, -np.inf, 0]
    assert L.matrix_rank(a).tolist() == [3, 1, 3]
    assert L.cond(a, 1).tolist()[1] == np.inf
    assert flow.logdet(-flow.eye(3, device=device)).isnan().item()
    not_definite = flow.diag(flow.tensor([1.0, 2.0, -1.0], device=device))
    with pytest.raises(L.LinAlgError, match="leading minor of order 3"):
        L.cholesky(not_definite)
    assert L.cholesky_ex(not_definite).info.item() == 3


def test_elements_that_are_not_finite():
    a = flow.full((2, 2), float("nan"))
    for call in (L.svd, L.svdvals, L.eigh, L.eigvalsh, L.pinv):
        with pytest.raises(L.LinAlgError, match="not finite"):
            call(a)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_nan_is_in_no_positive_definite_matrix(dtype, upper):
    for n in (1, 3, 70, 300):  # one column, and several blocks of LAPACK's
        for at in {0, n // 2, n - 1}:
            a = flow.eye(n, dtype=getattr(flow, dtype)) * 4
            a[at, at] = float("nan")
            batch = flow.stack([flow.eye(n, dtype=a.dtype), a])
            with pytest.raises(L.LinAlgError, match=f"element 1.*minor of order {at + 1} is not"):
                L.cholesky(batch, upper=upper)
            assert L.cholesky_ex(batch, upper=upper).info.tolist() == [0, at + 1]


def test_a_factor_that_solves_nothing_is_an_error():
    for a in (flow.ones(2, 2), flow.zeros(3, 2), flow.stack([flow.eye(2), flow.zeros(2, 2)])):
        with pytest.raises(L.LinAlgError, match=r"^linalg.lu_factor\(\): .*singular"):
            L.lu_factor(a)
        assert L.lu_factor_ex(a).info.max().item() > 0
        assert flow.allclose(flow.matmul(*L.lu(a)[:2]) @ L.lu(a).U, a)


@pytest.mark.parametrize("rank", [1, 2])
def test_the_gradient_of_a_determinant_that_is_zero(rank, device):
    """The cofactors are there, at the first order and at the second."""
    u = RNG.standard_normal((3, rank))
    a = tensor(u @ u.T, "float64", device).requires_grad_()
    step = 1e-5
    cofactors = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            moved = np.array([host(a), host(a)])
            moved[0, i, j] += step
            moved[1, i, j] -= step
            cofactors[i, j] = np.subtract(*np.linalg.det(moved)) / (2 * step)
    (grad,) = flow.autograd.grad(L.det(a), a)
    close(grad, cofactors, 1e-8)
    (grad,) = flow.autograd.grad(L.det(a), a, create_graph=True)
    close(grad, cofactors, 1e-8)


def test_gradients_at_equal_values(device):
    a = flow.eye(3, dtype=flow.float64, device=device).requires_grad_()
    (grad,) = flow.autograd.grad(L.svdvals(a).sum(), a)
    close(grad, np.eye(3))
    (grad,) = flow.autograd.grad(L.eigvalsh(a).sum(), a)
    close(grad, np.eye(3))
    (grad,) = flow.autograd.grad(L.pinv(a).sum(), a)
    close(grad, -np.ones((3, 3)))
    seed = tensor(RNG.standard_normal((3, 3)), "float64", device)
    for vectors in (L.svd(a).U, L.eigh(a).eigenvectors):
        (grad,) = flow.autograd.grad((vectors * seed).sum(), a)
        assert not grad.isfinite().all()


def test_one_triangle_is_read(device):
    a = matrix(3, 3, device=device)
    definite = a @ a.mT
    noise = tensor(RNG.standard_normal((3, 3)), "float64", device)
    lower, upper = definite + noise.triu(1), definite + noise.tril(-1)
    close(L.cholesky(lower), L.cholesky(definite))
    close(L.cholesky(upper, upper=True), L.cholesky(definite).mT)
    close(L.eigvalsh(lower), L.eigvalsh(definite))
    close(L.eigvalsh(upper, "U"), L.eigvalsh(definite))
    close(L.pinv(lower, hermitian=True), L.inv(definite), 1e-9)
    assert L.matrix_rank(lower, hermitian=True).item() == 3
    close(flow.cholesky_inverse(L.cholesky(definite)), L.inv(definite), 1e-9)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3)])
def test_whole_factors(shape, device):
    a = matrix(*shape, device=device)
    m, n = shape[-2:]
    u, s, vh = L.svd(a)
    assert u.shape[-2:] == (m, m) and vh.shape[-2:] == (n, n)
    r = min(m, n)
    close(u[..., :r] * s.unsqueeze(-2) @ vh[..., :r, :], a)
    eye = np.broadcast_to(np.eye(m), u.shape)
    close(u.mT @ u, eye)
    q, upper = L.qr(a, "complete")
    close(q @ upper, a)
    close(q.mT @ q, eye)
    none, r_alone = L.qr(a, "r")
    assert none.shape == (0,)
    close(r_alone, L.qr(a).R)


def test_gradients_that_are_not_there():
    a = matrix(3, 2).requires_grad_()
    with pytest.raises(NotImplementedError, match='mode "complete"'):
        L.qr(a, "complete").R.sum().backward()
    with pytest.raises(NotImplementedError, match='mode "r"'):
        L.qr(a, "r").R.sum().backward()


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_drivers_of_least_squares(driver):
    a, b = matrix(2, 6, 3), matrix(2, 6, 2)
    x, residuals, rank, s = L.lstsq(a, b, driver=driver)
    close(x, L.pinv(a) @ b, 1e-9)
    close(residuals, ((a @ x - b) ** 2).sum(-2), 1e-9)
    assert rank.tolist() == ([] if driver == "gels" else [3, 3])
    if driver in ("gelsd", "gelss"):
        close(s, L.svdvals(a))
    low = flow.ones(4, 2).double()
    if driver != "gels":
        found = L.lstsq(low, flow.ones(4, 1).double(), driver=driver)
        close(found.solution, np.full((2, 1), 0.5))
        assert found.rank.item() == 1 and found.residuals.shape == (0,)
    with pytest.raises(ValueError, match="driver"):
        L.lstsq(a, b, driver="qr")
    assert flow.equal(L.lstsq(a, b, driver=None).solution, L.lstsq(a, b).solution)


def test_tolerances():
    a = flow.diag(flow.tensor([1.0, 1e-3, 1e-6]))
    assert [L.matrix_rank(a, rtol=t).item() for t in (1e-7, 1e-5, 1e-2)] == [3, 2, 1]
    assert L.matrix_rank(a, atol=1e-4).item() == 2 and L.matrix_rank(a, 1e-4).item() == 2
    assert L.matrix_rank(a, atol=flow.tensor([1e-7, 1e-2]).unsqueeze(1)[0, 0]).item() == 3
    close(L.pinv(a, 1e-2), np.diag([1.0, 0, 0]))
    close(L.pinv(a, rtol=flow.tensor(1e-4)), np.diag([1.0, 1e3, 0]), 1e-5)


def test_many_small_matrices_are_those_one_by_one():
    a = matrix(300, 5, 5, dtype="float32")
    close(L.inv(a), np.stack([host(L.inv(x)) for x in a]), 0)
    close(L.svdvals(a), np.stack([host(L.svdvals(x)) for x in a]), 0)


def test_large_matrices(device):
    a = matrix(300, 300, device=device)
    close(L.inv(a) @ a, np.eye(300), 1e-9)
    b = matrix(300, 40, device=device)
    close(a @ L.solve(a, b), b, 1e-9)
    definite = a @ a.mT
    factor = L.cholesky(definite)
    close(factor @ factor.mT, definite, 1e-7)


def test_results_have_names():
    a = matrix(3, 3)
    assert L.svd(a).Vh.shape == (3, 3)
    assert L.slogdet(a).sign.shape == () and L.eigh(a).eigenvalues.shape == (3,)
    assert L.lu(a).P.shape == (3, 3) and L.lu_factor(a).pivots.dtype is flow.int32


def test_meta():
    a = flow.empty(2, 3, 3, device="meta")
    assert L.inv(a).shape == (2, 3, 3) and L.svd(a).S.shape == (2, 3)
    assert L.lstsq(a, a).solution.is_meta and L.cond(a).shape == (2,)


def test_special_names():
    x = flow.tensor([0.25, 0.5])
    for name, same in (("expit", "sigmoid"), ("gammaln", "lgamma"), ("psi", "digamma")):
        assert getattr(flow.special, name)(x).tolist() == getattr(flow, same)(x).tolist()


@pytest.mark.parametrize("n", [-(2**63), 1 - 2**63, 2**63 - 1])
def test_the_largest_powers_of_a_matrix(n):
    flip = flow.tensor([[0.0, 1.0], [1.0, 0.0]])
    want = flip if n % 2 else flow.eye(2)
    assert flow.equal(flow.linalg.matrix_power(flip, n), want)


MODULES = [(module, name) for module in ("linalg", "special")
           for name in getattr(flow, module).__all__
           if inspect.isbuiltin(getattr(getattr(flow, module), name))]  # fmt: skip


@pytest.mark.parametrize("module, name", MODULES, ids=".".join)
def test_errors_name_the_function_of_the_module(module, name):
    """linalg.inv() and not linalg_inv(), special.expit() and not sigmoid()."""
    function = getattr(getattr(flow, module), name)
    x = flow.ones(2, 3)
    wrong = [((), {}), (("a",), {}), ((x,), {"no_such": 1}), ((x,) * 9, {}),
             ((x[0], x, x), {}), ((x.char(), x.char()), {}), ((object(), 1), {})]  # fmt: skip
    names = (f"{module}.{name}()", f"{name}()")[: 1 + (not hasattr(flow._C, f"{module}_{name}"))]
    refused = 0
    for args, kwargs in wrong:
        try:
            function(*args, **kwargs)
        except Exception as error:
            assert str(error).startswith(names), error
            refused += 1
    assert refused > 3


def test_errors_of_elements_and_of_the_algorithm_name_it_too():
    with pytest.raises(flow.linalg.LinAlgError, match=r"^linalg\.inv\(\): the matrix is singular"):
        flow.linalg.inv(flow.ones(2, 2))
    with pytest.raises(flow.ShapeError, match=r"^inverse\(\): "):
        flow.inverse(flow.ones(2, 3))
    with pytest.raises(flow.ShapeError, match=r"^linalg\.inv\(\): "):
        flow.linalg.inv(A=flow.ones(2, 3))

    class Odd:
        def __index__(self):
            raise ValueError("linalg_matrix_power is not to blame")

    with pytest.raises(ValueError, match="^linalg_matrix_power is not to blame$"):
        flow.linalg.matrix_power(flow.ones(2, 2), Odd())


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 0, 3)])
def test_norms_of_matrices_without_elements(shape):
    x = flow.zeros(shape, requires_grad=True)
    for ord in (1, 2, float("inf"), "fro", "nuc"):
        y = flow.linalg.matrix_norm(x, ord)
        assert y.shape == shape[:-2] and not y.any()
        y.sum().backward()
        assert flow.linalg.matrix_norm(x, ord, keepdim=True).shape == (*shape[:-2], 1, 1)
    with pytest.raises(IndexError, match="no minimum of no elements"):
        flow.linalg.matrix_norm(flow.zeros(0, 0), -1)


def test_triangular_solve_gives_a_copy_of_its_matrix():
    a = flow.eye(2)
    flow.triangular_solve(flow.ones(2, 1), a).cloned_coefficient.fill_(3.0)
    assert a.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_the_condition_of_matrices_without_elements(p, device):
    """0, as in PyTorch, which asks for square ones where p is a name."""
    for shape, square in (((0, 0), True), ((2, 0, 0), True), ((0, 3, 3), True), ((0, 3), False),
                          ((2, 3, 0), False)):  # fmt: skip
        a = flow.zeros(shape, device=device)
        if square or not isinstance(p, str):
            y = L.cond(a, p)
            assert y.shape == shape[:-2] and y.dtype is a.dtype and (y == 0).all()
        else:
            with pytest.raises(flow.ShapeError, match="expected square matrices"):
                L.cond(a, p)
    for wrong in (7, "x"):
        with pytest.raises(ValueError, match=r"linalg.cond\(\): p is "):
            L.cond(flow.zeros(0, 0), wrong)
