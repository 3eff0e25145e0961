# SPDX-License-Identifier: Apache-2.0
"""Arrays beside tensors: operators in both orders, functions of NumPy's over tensors."""

import operator as op
import warnings

import numpy as np
import pytest
from numerics import ALL, flow, host

KINDS = [d for d in ALL if d != "bfloat16"]  # NumPy's, of which there are arrays
ARITHMETIC = [op.add, op.sub, op.mul, op.truediv, op.floordiv, op.mod, op.pow]
COMPARISONS = [op.eq, op.ne, op.lt, op.le, op.gt, op.ge]
BITS = [op.and_, op.or_, op.xor, op.lshift, op.rshift]
IN_PLACE = [op.iadd, op.isub, op.imul, op.ifloordiv, op.imod, op.ipow]


def outcome(call):
    """The dtype and the values, or the kind of the error."""
    try:
        y = call()
    except (TypeError, RuntimeError, ValueError) as error:
        return type(error).__name__, None
    assert isinstance(y, flow.Tensor) and y.is_cpu
    return y.dtype.name, host(y)


def check_alike(call, expected):
    kind, values = outcome(call)
    assert kind == outcome(expected)[0]
    if values is not None:
        np.testing.assert_array_equal(values, outcome(expected)[1])


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS + BITS, ids=lambda f: f.__name__)
def test_an_array_counts_as_a_tensor_of_its_dtype(f):
    for of_array in KINDS:
        a = np.array([[1, 3], [2, 1]]).astype(of_array)
        b = flow.from_numpy(a.copy())
        for of_tensor in ALL:
            x = flow.tensor([2, 1]).to(getattr(flow, of_tensor))
            check_alike(lambda: f(x, a), lambda: f(x, b))  # noqa: B023
            check_alike(lambda: f(a, x), lambda: f(b, x))  # noqa: B023


@pytest.mark.parametrize("f", ARITHMETIC + COMPARISONS, ids=lambda f: f.__name__)
def test_arrays_without_dims_and_numbers(f):
    for of_array in ("float64", "float32", "int64", "int8"):
        for x in (flow.tensor([2.0, 3.0]), flow.tensor([2, 3], dtype=flow.int32)):
            zero_dim, number = np.array(2, dtype=of_array), np.dtype(of_array).type(2)
            check_alike(lambda: f(x, zero_dim), lambda: f(x, flow.tensor(zero_dim)))  # noqa: B023
            check_alike(lambda: f(zero_dim, x), lambda: f(flow.tensor(zero_dim), x))  # noqa: B023
            check_alike(lambda: f(x, number), lambda: f(x, number.item()))  # noqa: B023
            check_alike(lambda: f(number, x), lambda: f(number.item(), x))  # noqa: B023


def test_products_of_matrices():
    a = np.random.default_rng(0).standard_normal((3, 4))
    for dtype in (flow.float64, flow.float32):
        x = flow.tensor(a.T, dtype=dtype)
        for y, expected in ((x @ a, a.T @ a), (a @ x, a @ a.T), (np.matmul(a, x), a @ a.T),
                            (np.matmul(x, a), a.T @ a),
                            (x.T @ a.T[:, 0], a @ a.T[:, 0])):  # fmt: skip
            assert isinstance(y, flow.Tensor) and y.dtype is flow.float64
            np.testing.assert_allclose(host(y), expected, rtol=1e-6)
    with pytest.raises(TypeError):
        2 @ flow.ones(2)
    with pytest.raises(TypeError):
        np.float64(2) @ flow.ones(2)


@pytest.mark.parametrize("f", IN_PLACE + [op.itruediv], ids=lambda f: f.__name__)
def test_in_place_the_left_side_stays_what_it_is(f):
    array, x = np.array([5.0, 6.0]), flow.tensor([2.0, 4.0])
    expected = f(array.copy(), np.array([2.0, 4.0]))
    target = array
    target = f(target, x)
    assert target is array and isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, expected)
    y = flow.tensor([5.0, 6.0])
    memory, target = y.data_ptr(), y
    target = f(target, np.array([2.0, 4.0]))
    assert target is y and y.dtype is flow.float32 and y.data_ptr() == memory
    np.testing.assert_allclose(host(y), expected)


def test_in_place_nothing_else_is_stored():
    x, whole = flow.tensor([1, 2]), np.array([1, 2])
    with pytest.raises(flow.DTypeError):
        x += np.array([0.5, 1.0])
    assert x.tolist() == [1, 2]
    with pytest.raises(TypeError):  # NumPy's rule
        whole += flow.tensor([0.5, 1.0])
    assert whole.tolist() == [1, 2]
    version = x._version
    x += np.array([1, 1])
    assert x.tolist() == [2, 3] and x._version > version


@pytest.mark.parametrize("layout", ["read-only", "turned", "strided", "big-endian", "transposed"])
def test_arrays_of_every_layout(layout):
    a = np.arange(6.0).reshape(2, 3)
    if layout == "read-only":
        a.flags.writeable = False
    a = {"turned": a[::-1], "strided": np.repeat(a, 2, 1)[:, ::2], "transposed": a.T.copy().T,
         "big-endian": a.astype(">f8")}.get(layout, a)  # fmt: skip
    x = flow.ones(2, 3)
    if layout == "big-endian":
        with pytest.raises(flow.DTypeError, match="native byte order"):
            x + a
        return
    assert (x + a).tolist() == (a + x).tolist() == (1 + a).tolist()
    assert (a // (x + 1)).tolist() == (a // 2).tolist()
    assert (x // (a + 1)).tolist() == (1 // (a + 1)).tolist()


UNARY = [np.sqrt, np.exp, np.log1p, np.sin, np.arctan, np.sign, np.floor, np.square, np.negative,
         np.isnan, np.isfinite, np.cbrt, np.rint]  # fmt: skip


@pytest.mark.parametrize("f", UNARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", KINDS)
def test_functions_of_elements_are_numpys(f, dtype):
    a = np.array([[0, 1], [4, 9]]).astype(dtype)
    try:
        expected = f(a)
    except TypeError:  # np.negative of bool
        with pytest.raises(TypeError):
            f(flow.tensor(a))
        return
    y = f(flow.tensor(a))
    assert isinstance(y, flow.Tensor)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert y.numpy().dtype == expected.dtype


def test_functions_of_two_and_their_methods():
    a, b = np.array([1.0, 5.0, 2.0]), np.array([4.0, 2.0, 2.0])
    x, y = flow.tensor(a), flow.tensor(b)
    for f in (np.maximum, np.hypot, np.fmod, np.arctan2, np.logaddexp, np.copysign):
        for args in ((x, y), (x, b), (a, y), (x, 2.0)):
            arrays = [t.numpy() if isinstance(t, flow.Tensor) else t for t in args]
            np.testing.assert_array_equal(f(*args).numpy(), f(*arrays))
    for got, expected in ((np.add.reduce(x), 8.0), (np.maximum.reduce(x), 5.0)):
        assert isinstance(got, flow.Tensor) and got.shape == () and got.item() == expected
    assert np.add.accumulate(x).tolist() == [1, 6, 8]
    assert np.multiply.outer(x, b).tolist() == np.multiply.outer(a, b).tolist()
    assert np.add.reduceat(x, [0, 1]).tolist() == [1, 7]
    assert np.add.reduce(flow.ones(2, 3), axis=1, keepdims=True).tolist() == [[3], [3]]
    assert np.add.reduce(flow.tensor([200, 100], dtype=flow.uint8)).item() == 300
    with pytest.raises(OverflowError, match="too large for int64"):
        np.subtract(flow.tensor([0], dtype=flow.uint8), np.uint8(1), dtype=np.uint64)
    fraction, whole = np.modf(flow.tensor([1.5, -2.25]))
    assert fraction.tolist() == [0.5, -0.25] and whole.tolist() == [1, -2]
    assert [t.tolist() for t in np.divmod(x, b)] == [[0, 2, 1], [1, 1, 0]]
    assert np.add([1, 2, 3], x).tolist() == [2, 7, 5] and np.add(x, (1, 2, 3)).tolist() == [2, 7, 5]


def test_what_functions_write():
    x, array, target = flow.tensor([1.0, 4.0, 9.0]), np.zeros(3), flow.zeros(3)
    assert np.sqrt(x, out=array) is array and array.tolist() == [1, 2, 3]
    version = target._version
    assert np.sqrt(x, out=target) is target and target.tolist() == [1, 2, 3]
    assert target._version > version
    mask = flow.tensor([True, False, True])
    assert np.add(x, 1, out=target, where=mask) is target and target.tolist() == [2, 2, 10]
    assert np.add(array, array, out=target) is target and target.tolist() == [2, 4, 6]
    whole = flow.zeros(3, dtype=flow.int64)
    got = np.divmod(x, 2, out=(None, target))
    assert got[0].tolist() == [0, 2, 4] and got[1] is target and target.tolist() == [1, 0, 1]
    with pytest.raises(TypeError):
        np.sqrt(x, out=whole)
    assert whole.tolist() == [0, 0, 0]
    np.add.at(target, [0, 0], 5)
    assert target.tolist() == [11, 0, 1]
    np.add.at(array, flow.tensor([1, 1]), flow.tensor([1.0, 2.0]))
    assert array.tolist() == [1, 5, 3]


def test_a_tensor_that_requires_grad_is_refused():
    x, a = flow.ones(2, requires_grad=True), np.ones(2)
    in_place = lambda: op.iadd(a, x)  # noqa: E731
    for call in (lambda: x + a, lambda: a + x, lambda: x // a, lambda: a // x, lambda: x @ a,
                 lambda: a @ x, lambda: x < a, lambda: a == x, lambda: np.sqrt(x), in_place,
                 lambda: op.iadd(x, a), lambda: np.add.reduce(x), lambda: np.add(a, a, out=x),
                 lambda: np.sqrt(nn_parameter())):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"requires grad.*\.detach\(\).*from_numpy\(\)"):
            call()
    assert a.tolist() == [1, 1] and x.tolist() == [1, 1]
    assert (x * np.float64(2)).requires_grad and (np.float64(2) * x).requires_grad  # numbers
    assert (x.detach() + a).tolist() == [2, 2]


def nn_parameter():
    return flow.nn.Parameter(flow.ones(2))


@pytest.mark.cuda
def test_a_tensor_on_a_gpu_is_refused():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x, a = flow.ones(2, device="cuda"), np.ones(2)
    for call in (lambda: x + a, lambda: a + x, lambda: np.sqrt(x), lambda: op.iadd(a, x)):
        with pytest.raises(RuntimeError, match=r"not in host memory.*\.cpu\(\)"):
            call()
    assert (np.float64(2) * x).is_cuda and a.tolist() == [1, 1]


def test_a_tensor_without_data_is_refused():
    x, a = flow.ones(2, device="meta"), np.ones(2)
    for call in (lambda: x + a, lambda: a + x, lambda: x % a, lambda: np.sqrt(x)):
        with pytest.raises(RuntimeError, match="not in host memory"):
            call()


def test_what_is_no_tensor():
    x = flow.ones(2)
    for bad in (np.array(["a", "b"]), np.array([1j, 2]), np.array([None, 1])):
        for call in (lambda: x + bad, lambda: bad + x, lambda: x // bad):  # noqa: B023
            with pytest.raises(TypeError):
                call()
    for number in (np.complex64(1), 1j, "a", None, [1, 2]):
        with pytest.raises(TypeError):
            x + number
    with pytest.raises(flow.DTypeError, match="complex128, which no tensor has"):
        np.sqrt(x, dtype=np.complex128)
    with pytest.raises(flow.DTypeError, match="bfloat16"):
        np.sqrt(x.bfloat16())
    assert (x.bfloat16() + np.ones(2, np.float16)).dtype is flow.float32

    class Other:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "theirs"

        def __array__(self):
            raise AssertionError

    assert x + Other() == "theirs"


def test_numpys_other_functions_give_tensors():
    x = flow.tensor([[2.0, 0.0], [1.0, 3.0]])
    y = np.linalg.inv(x)
    assert isinstance(y, flow.Tensor)
    np.testing.assert_allclose((y @ x).tolist(), np.eye(2), atol=1e-6)
    assert isinstance(np.cumsum(x), flow.Tensor) and np.cumsum(x).tolist() == [2, 2, 3, 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # __array_wrap__ has the arguments of NumPy 2
        np.linalg.inv(x), np.cumsum(x)


def test_old_programs_of_arrays():
    """A running mean that starts as a number and meets arrays and tensors."""
    total = 0
    for k in range(3):
        total = total + (np.full(2, k) if k % 2 else flow.full([2], k))
    assert isinstance(total, flow.Tensor) and total.tolist() == [3, 3]
    loss = np.mean([flow.tensor(1.0), flow.tensor(2.0)])
    assert float(loss) == 1.5
    history = np.zeros(3)
    history[1] += flow.tensor(2.0)
    assert history.tolist() == [0, 2, 0]


# The function that an error speaks of: an operator's own, or NumPy's.
IN_WORDS = {op.add: "add", op.sub: "sub", op.mul: "mul", op.truediv: "div", op.pow: "pow",
            op.floordiv: "floor_divide", op.mod: "remainder", op.eq: "eq", op.ne: "ne", op.lt: "lt",
            op.le: "le", op.gt: "gt", op.ge: "ge", op.matmul: "matmul", op.and_: "bitwise_and",
            op.or_: "bitwise_or", op.xor: "bitwise_xor", op.lshift: "bitwise_left_shift",
            op.rshift: "bitwise_right_shift"}  # fmt: skip


@pytest.mark.parametrize("f", IN_WORDS, ids=lambda f: f.__name__)
def test_errors_beside_arrays_name_the_operator(f):
    x, bad = flow.ones(2, 3, dtype=flow.int64), np.ones((4, 5), np.int64)
    turned = {op.lt: op.gt, op.gt: op.lt, op.le: op.ge, op.ge: op.le}.get(f, f)
    for left, right, said in ((x, bad, f), (bad, x, turned)):
        with pytest.raises(flow.ShapeError, match=rf"^{IN_WORDS[said]}\(\): "):
            f(left, right)
    with pytest.raises(flow.DTypeError, match=rf"^{IN_WORDS[f]}\(\): arrays of dtype <U1"):
        f(x, np.array(["a", "b", "c"]))


def test_errors_of_numpys_functions_name_them():
    x, bad = flow.ones(2, 3), np.ones((4, 5), np.float32)
    for call, name in (
        (lambda: np.maximum(x, bad), "numpy.maximum"),
        (lambda: np.hypot(bad, x), "numpy.hypot"),
        (lambda: np.add(x, bad, out=bad), "numpy.add"),
        (lambda: op.iadd(bad, x), "numpy.add"),
        (lambda: op.iadd(np.array(1.0), x), "numpy.add"),
    ):
        with pytest.raises(ValueError, match=rf"^{name}\(\): "):
            call()
