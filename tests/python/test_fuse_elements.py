# SPDX-License-Identifier: Apache-2.0
"""flow.fuse.elements and the op behind it: values, dtypes and gradients are those of the functions
one after the other; one launch. What is compiled, and kept: test_fuse_elements_compiled.py."""

import itertools
import math
import pickle

import numpy as np
import pytest
from fused_operands import RNG, made, same
from numerics import ALL, FLOATS, INTEGERS, host, tensor

flow = pytest.importorskip("oneflow_lite")

F = flow.nn.functional
elements = flow.fuse.elements
CORNERS = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 3.0, -2.5, 1e-30, 7.0]


ONE = [
    "neg", "abs", "relu", "sign", "square", "floor", "ceil", "trunc", "round", "exp", "exp2",
    "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "sigmoid", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
    "erfc", "erfinv", "isnan", "isinf", "isfinite", "signbit", "logical_not", "deg2rad", "rad2deg",
]  # fmt: skip
ACTIVATIONS = ["gelu", "silu", "softplus", "mish", "hardswish", "hardsigmoid", "leaky_relu", "elu",
               "logsigmoid", "softsign", "relu6"]  # fmt: skip
TWO = ["add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "floor_divide", "pow",
       "atan2", "hypot", "copysign", "xlogy", "logaddexp", "fmax", "fmin", "eq", "ne", "lt", "le",
       "gt", "ge", "logical_and", "logical_or", "logical_xor"]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one(device, name):
    f = getattr(flow, name)
    for dtype in FLOATS:
        x = tensor(CORNERS + [*RNG.normal(size=40)], dtype, device)
        same(elements(lambda x: f(x))(x), f(x))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(device, name):
    f = getattr(F, name)
    finite = [c for c in CORNERS if math.isfinite(c) or math.isnan(c)]
    near = 1.0 if name == "hardswish" else 0.0  # a product that vanishes at -3
    for dtype in "float32", "float64", "float16":
        x = tensor(finite + [*RNG.normal(size=40)], dtype, device)
        same(elements(lambda x: f(x))(x), f(x), steps=8, near=near)


@pytest.mark.parametrize("name", ["hardswish", "logsigmoid", "mish", "softplus", "softsign"])
def test_activations_of_integers_do_not_wrap_around(device, name):
    f = getattr(F, name)
    for dtype in "uint8", "int8":
        x = flow.arange(-128, 128, device=device).to(getattr(flow, dtype))
        # On CUDA logsigmoid of what is large is -0.
        same(elements(lambda x: f(x))(x) + 0.0, f(x.float()) + 0.0, steps=8, near=1.0)


def test_a_condition_is_of_bool(device):
    x = flow.tensor([0.0, 2.0], device=device)
    for condition in (lambda x: flow.where(x, x, 1.0)), (lambda x: flow.where(x.int(), x, 1.0)):
        with pytest.raises(flow.DTypeError, match="the condition of where.*bool"):
            elements(condition)(x)


def test_integers_have_no_negative_powers(device):
    x = flow.tensor([1, 2, 3], device=device)
    for op, args in ((elements(lambda x: x**-1), (x,)), (elements(lambda x, n: x**n), (x, -1))):
        with pytest.raises(ValueError, match="integers have no negative powers"):
            op(*args)
    same(elements(lambda x, n: x**n)(x, 2), x * x)
    with pytest.raises(OverflowError):
        elements(lambda x: flow.fmax(x, 300))(x.to(flow.uint8))
    large = flow.tensor([2**53 + 1, -(2**63)], device=device)
    same(elements(lambda x: flow.fmin(x, 2**60))(large), large)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two(device, name):
    f = getattr(flow, name)
    a, b = (tensor(v.ravel(), "float32", device) for v in np.meshgrid(CORNERS, CORNERS))
    same(elements(lambda a, b: f(a, b))(a, b), f(a, b))
    if name not in ("atan2", "hypot", "copysign", "xlogy", "logaddexp", "div"):
        for dtype in INTEGERS:
            a, b = made((50,), dtype, device), made((50,), dtype, device)
            b = b.abs() if name == "pow" else b
            same(elements(lambda a, b: f(a, b))(a, b), f(a, b))


@pytest.mark.parametrize("text", ["x + y", "x * y", "x / y", "x > y", "x - 2", "2.5 * x", "x / 2",
                                  "x == 2.5", "where(x > 0, x, y)"])  # fmt: skip
def test_dtypes_are_promoted_as_by_the_functions(device, text):
    function = eval(f"lambda x, y: {text.replace('where', 'flow.where')}", {"flow": flow})
    op = elements(function)
    for a, b in itertools.product(ALL, ALL):
        for shape in (4,), ():
            x, y = made((4,), a, device), made(shape, b, device)
            try:
                want = function(x, y)
            except (TypeError, RuntimeError):
                with pytest.raises(TypeError):
                    op(x, y)
                continue
            if shape:
                same(op(x, y), want, steps=1)
                continue
            # On CUDA the function rounds a 0-dim tensor to the dtype of the result, which the
            # fused one does not: where they nearly cancel, that is more than a step of the result.
            near = np.abs(host(y)) if text == "x + y" else 0.0
            same(op(x, y), want, steps=2, near=near)
        for number in 3, 2.5, True, -1:
            if a == "uint8" and number == -1 and text != "x > y":
                continue  # an error of both, below
            try:
                want = function(x, number)
            except (TypeError, RuntimeError):
                continue
            same(op(x, number), want, steps=2)


def test_a_number_that_does_not_fit_is_an_error(device):
    x = made((4,), "int8", device)
    for op in elements(lambda x, s=300: x + s), elements(lambda x: x * 300):
        with pytest.raises(
            OverflowError, match=r"fuse_elements\(\): the number 300 is out of rang"
        ):
            op(x)
    same(elements(lambda x, s: x < s)(x, 300), x < 300)
    same(elements(lambda x: x < 300)(x), x < 300)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_beyond_64_bits_is_for_floats_alone(device, number):
    op = elements(lambda x, s: flow.maximum(x, s) + 1)
    whole = flow.tensor([1, -2], device=device)
    with pytest.raises(
        OverflowError, match=r"elements\(\): the number .* is out of range .*of int64"
    ):
        op(whole, number)
    same(op(whole.double(), number), flow.maximum(whole.double(), number) + 1)


LAYOUTS = {
    "dense": lambda t: t,
    "odd offset": lambda t: flow.cat([t.flatten()[:1], t.flatten()])[1:].view(t.shape),
    "transposed": lambda t: t.transpose(0, 1).contiguous().transpose(0, 1),
    "every other": lambda t: flow.stack([t, t], -1).flatten(1)[:, ::2],
    "padded": lambda t: flow.cat([t, t], 1)[:, : t.shape[1]],
    "row": lambda t: t[:1],
    "column": lambda t: t[:, :1],
    "vector": lambda t: t[0],
    "scalar": lambda t: t[0, 0],
    "expanded": lambda t: t[:1].expand(t.shape),
}


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 64), (33, 130), (3, 5000), (2100, 3)])
def test_layouts(device, shape):
    f = lambda x, y, z: (x * y + z, x - y)  # noqa: E731
    op = elements(f)
    for a, b in itertools.product(LAYOUTS, ["dense", "transposed", "row", "column", "every other"]):
        x, y = LAYOUTS[a](made(shape, device=device)), LAYOUTS[b](made(shape, "float16", device))
        z = made(shape, "int32", device)
        exact = f(x.double(), y.double(), z.double())
        for got, like, want in zip(op(x, y, z), f(x, y, z), exact, strict=True):
            assert got.dtype is like.dtype and got.shape == shape
            rough = 1e-3 if got.dtype is flow.float16 else 1e-6
            np.testing.assert_allclose(host(got), host(want.expand(shape)), rough, 2e-5)


def test_many_dims_and_sizes(device):
    op = elements(lambda x, y: x + 2 * y)
    for shape, other in [((2, 3, 1, 4, 5), (3, 7, 1, 5)), ((), ()), ((1,), (4, 1)), ((0, 3), (3,)),
                         ((5, 1, 2049), (6, 1)), ((4097,), (1,)), ((70000,), ())]:  # fmt: skip
        x, y = made(shape, device=device), made(other, device=device)
        same(op(x, y), x + 2 * y)
    x = made((6, 5, 4, 3), device=device)
    for order in itertools.permutations(range(4)):
        same(op(x.permute(order), x.permute(order)), 3 * x.permute(order))
        same(op(x.permute(order), flow.ones(1, device=device)), x.permute(order) + 2)


def test_many_operands_and_results(device):
    names = [f"x{i}" for i in range(20)]
    function = eval(
        f"lambda {', '.join(names)}: {' + '.join(f'{n} * {i}' for i, n in enumerate(names))}"
    )
    xs = [made((3, 50), device=device, grad=True) for _ in names]
    y = elements(function)(*xs)
    same(y, sum(i * x for i, x in enumerate(xs)), steps=64, near=190)
    y.sum().backward()
    for i, x in enumerate(xs):
        np.testing.assert_array_equal(host(x.grad), np.full((3, 50), i))
    results = elements(lambda x: tuple(x * i for i in range(1, 9)))(xs[0])
    assert len(results) == 8 and host(results[7]).tolist() == host(8 * xs[0]).tolist()


def gradients(function, tensors, weights):
    given = [t.detach().requires_grad_(t.dtype.is_floating_point) for t in tensors]
    results = function(*given)
    results = results if isinstance(results, tuple) else (results,)
    wanted = [t for t in given if t.requires_grad]
    flows = [(r, w) for r, w in zip(results, weights, strict=False) if r.requires_grad]
    flow.autograd.backward([r for r, _ in flows], [w for _, w in flows])
    return [t.grad for t in wanted]


SMOOTH = {
    "neg": 1, "exp": 1, "exp2": 1, "expm1": 1, "sigmoid": 1, "sin": 1, "cos": 1, "atan": 1,
    "sinh": 1, "cosh": 1, "tanh": 1, "asinh": 1, "erf": 1, "erfc": 1, "square": 1, "abs": 1,
    "relu": 1, "log": 2, "log1p": 2, "log2": 2, "log10": 2, "sqrt": 2, "rsqrt": 2, "reciprocal": 2,
    "acosh": 3, "tan": 4, "asin": 4, "acos": 4, "atanh": 4, "erfinv": 4,
}  # fmt: skip


@pytest.mark.parametrize("name", [*SMOOTH, *ACTIVATIONS])
def test_gradients_of_one(device, name):
    f = getattr(flow, name) if name in SMOOTH else getattr(F, name)
    values = np.array([-3.3, -1.7, -0.6, -0.2, 0.1, 0.7, 1.9, 2.9])
    kind = SMOOTH.get(name, 1)
    values = {1: values, 2: np.exp(values), 3: 1 + np.exp(values), 4: values / 4}[kind]
    x = flow.tensor(values, device=device, requires_grad=True)
    op = elements(lambda x: f(x))
    assert flow.autograd.gradcheck(op, (x,))
    if name not in ("relu", "relu6", "hardsigmoid", "leaky_relu"):
        assert flow.autograd.gradgradcheck(op, (x,))
    for dtype in "float32", "float16":
        t, w = tensor(values, dtype, device), tensor(np.ones(8), dtype, device)
        want = gradients(f, [t.double()], [w.double()])[0]
        same(gradients(op, [t], [w])[0], want.to(t.dtype), steps=8)


@pytest.mark.parametrize("name", ["hardswish", "logsigmoid", "mish", "silu", "softplus", "elu"])
def test_second_derivatives_where_branches_meet(device, name):
    f = getattr(F, name)
    values = [0.0, -0.0, 0.5, -2.0, 30.0, -30.0, 800.0, -800.0, 1e30, -1e30, math.inf, -math.inf]
    slopes = []
    for function in f, elements(lambda x: f(x)):
        x = tensor(values, "float64", device).requires_grad_()
        (first,) = flow.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = flow.autograd.grad(first.sum(), x)
        slopes.append((host(first.detach()), host(second)))
    for plain, fused in zip(*slopes, strict=True):
        np.testing.assert_allclose(fused, plain, rtol=1e-12, atol=1e-12)


# At the ends of a domain, beyond it, and where factors are infinite.
ENDS = {
    "asin": (1, 2), "acos": (1, 2), "atanh": (1, 2), "acosh": (1, 2), "softsign": (1, 2),
    "silu": (1, 2), "mish": (1, 2), "elu": (1, 1), "gelu": (1, 2), "atan2": (2, 1), "lerp": (3, 1),
    "logaddexp": (2, 2), "xlogy": (2, 1),
}  # fmt: skip


def derivatives(f, tensors, order):
    """Value and derivatives of a function, by the operands."""
    y = f(*tensors)
    slopes = flow.autograd.grad(y.sum(), tensors, create_graph=True)
    found = [y, *slopes]
    for g in slopes if order > 1 else ():
        if g.requires_grad:
            found += flow.autograd.grad(g.sum(), tensors, retain_graph=True, allow_unused=True)
    return [host(t.detach()) for t in found if t is not None]


@pytest.mark.parametrize("name", ENDS)
def test_ends_are_those_of_the_function(device, name):
    places, order = ENDS[name]
    f = getattr(flow, name, None) or getattr(F, name)
    points = [-math.inf, -2.0, -1.0, -0.0, 0.0, 0.25, 1.0, 2.0, math.inf]
    if places == 1:
        points += [1e30, -1e30, math.nan]
    grid = [*itertools.product(points, repeat=places)]
    if name == "acosh":  # of two signs, and of infinity times 0
        grid = [p for p in grid if p[0] != -1 and not math.isinf(p[0])]
    if name == "softsign":  # with a jump in its slope
        grid = [p for p in grid if p[0] != 0]
    if name == "logaddexp":  # whose second derivative at a tie of infinities is said to be 0
        grid = [p for p in grid if p[0] != p[1] or math.isfinite(p[0])]
    columns = [*zip(*grid, strict=True)]
    results = []
    of_elements = [lambda a: f(a), lambda a, b: f(a, b), lambda a, b, c: f(a, b, c)][places - 1]
    for function in f, elements(of_elements):
        tensors = [tensor(c, "float64", device).requires_grad_() for c in columns]
        results.append(derivatives(function, tensors, order))
    for plain, fused in zip(*results, strict=True):
        np.testing.assert_allclose(fused, plain, rtol=1e-9, atol=1e-12)


def test_the_second_derivative_of_logaddexp_at_a_tie(device):
    for function in flow.logaddexp, elements(lambda a, b: flow.logaddexp(a, b)):
        a = tensor([0.0, 2.0, math.inf], "float64", device).requires_grad_()
        b = tensor([0.0, 2.0, math.inf], "float64", device)
        (first,) = flow.autograd.grad(function(a, b).sum(), a, create_graph=True)
        (second,) = flow.autograd.grad(first.sum(), a)
        np.testing.assert_allclose(host(first.detach()), 0.5)
        np.testing.assert_allclose(host(second)[:2], 0.25)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2",
                                  "hypot", "copysign", "xlogy", "logaddexp", "fmax", "fmin", "fmod",
                                  "remainder"])  # fmt: skip
def test_gradients_of_two(device, name):
    f = getattr(flow, name)
    a, b = np.array([0.3, 1.7, 2.2, 0.9, 4.1, 1.2]), np.array([1.1, 0.6, 2.9, 0.4, 1.3, 3.3])
    x, y = (flow.tensor(v, device=device, requires_grad=True) for v in (a, b))
    op = elements(lambda a, b: f(a, b))
    assert flow.autograd.gradcheck(op, (x, y))
    assert flow.autograd.gradgradcheck(op, (x, y))
    # Ties, zeros, infinities and NaN as the function has them.
    skip = ("fmod", "remainder", "pow", "atan2", "hypot", "div")
    values = CORNERS if name not in skip else [1.0, -1.0, 0.5, 3.0, -2.5]
    a, b = (tensor(v.ravel(), "float32", device) for v in np.meshgrid(values, values))
    w = flow.ones_like(a)
    for got, want in zip(gradients(op, [a, b], [w]), gradients(f, [a, b], [w]), strict=True):
        got, want = host(got), host(want)
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def test_gradients_of_broadcast_operands_of_several_dtypes(device):
    f = lambda x, row, column, n, s: (flow.sigmoid(x) * row + column * n, flow.exp(-x * x) * s)  # noqa: E731
    given = [made((5, 7), "float64", device), made((7,), "float32", device),
             made((5, 1), "float64", device), made((7,), "int32", device),
             made((), "float64", device)]  # fmt: skip
    weights = [made((5, 7), "float64", device) for _ in range(2)]
    for got, want in zip(gradients(elements(f), given, weights), gradients(f, given, weights),
                         strict=True):  # fmt: skip
        same(got, want, dtype="float32", steps=8)


def test_only_what_is_asked_for_and_flows_back(device):
    op = elements(lambda x, y: (x * y, flow.exp(y), x > y))
    x, y = made((4,), device=device), made((4,), device=device, grad=True)
    product, exp, mask = op(x, y)
    assert product.requires_grad and exp.requires_grad and not mask.requires_grad
    exp.sum().backward()
    same(y.grad, flow.exp(y.detach()))
    assert x.grad is None
    z = elements(lambda x: flow.floor(x))(y)
    z.sum().backward()
    same(y.grad, flow.exp(y.detach()))


def test_what_is_saved(device):
    """The operands that the gradient computes with, and no results."""
    x, y = made((1000,), device=device, grad=True), made((1000,), device=device, grad=True)
    kept = []
    with flow.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        elements(lambda x, y: flow.exp(x) + y)(x, y)
    assert len(kept) == 1 and kept[0].shape == x.shape
    with pytest.raises(RuntimeError, match="changed|modified"):
        z = elements(lambda x: x * x)(x)
        with flow.no_grad():
            x.add_(1)
        z.sum().backward()


def launches(run):
    run()
    with flow.profiler.profile() as profile:
        run()
    return {s.name: s.calls for s in profile.stats()}


def test_one_op_forward_and_one_backward(device):
    op = elements(lambda x, g, b: flow.sigmoid(x + b) * g)
    x, g = made((64, 32), device=device, grad=True), made((64, 32), device=device, grad=True)
    b = made((32,), device=device, grad=True)
    assert launches(lambda: op(x, g, b)) == {"fuse_elements": 1}
    w = made((64, 32), device=device)
    y = op(x, g, b)
    calls = launches(lambda: flow.autograd.grad(y, [x, g, b], w, retain_graph=True))
    assert calls.pop("fuse_elements_3") == 1
    calls.pop("view", None)
    assert calls == {"sum": 1}


def test_numbers_by_place_by_name_and_by_default():
    op = elements(lambda x, s, t=2: x * s + t)
    x = flow.tensor([1, 2])
    assert op(x, 3).tolist() == [5, 8] and op(x, s=3, t=0.5).tolist() == [3.5, 6.5]
    assert op(x, np.int64(3)).dtype is flow.int64 and op(x, np.float32(3)).dtype is flow.float32
    assert op(x, True, t=False).tolist() == [1, 2]
    with pytest.raises(TypeError, match=r"fuse.elements\(\): missing a required argument: 's'"):
        op(x)
    with pytest.raises(TypeError, match="s must be a tensor or a number, not str"):
        op(x, "3")
    assert elements(lambda s: s * 2)(1.5).item() == 3.0


def test_it_is_pickled_named_and_told():
    op = elements(lambda x, y: x * flow.sigmoid(y) + 1e-3)
    again = pickle.loads(pickle.dumps(op))
    x = flow.randn(5)
    assert again(x, x).tolist() == op(x, x).tolist() and again.expression == op.expression
    assert op.expression == "x, y: (x * sigmoid(y)) + 0.001"
    assert repr(op) == f"<fuse.elements({op.expression})>"
    assert flow.fuse_elements(op.expression, [x, x])[0].tolist() == op(x, x).tolist()
    t0, inf = flow.tensor([3.0]), 2.0
    odd = elements(lambda t0, inf, λ: flow.exp(t0) * flow.exp(t0) + inf * λ)
    same(odd(t0, inf, 0.5), flow.exp(t0) ** 2 + 1.0, steps=2)


def deep(x):
    for _ in range(3000):
        x = x * 1.0 + 1
    return x


def test_long_functions():
    assert elements(deep)(flow.zeros(3)).tolist() == [3000.0] * 3


def helper(x):
    return flow.tanh(x) if x is not None else 0


REFUSED = {
    "a value decides": (lambda x: x if x > 0 else -x, r"use where\(condition, a, b\)"),
    "another element": (lambda x: x[0], "needs? other elements|need other elements"),
    "a function of tensors": (lambda x: x.sum(), "sum is of a whole tensor"),
    "a function that has no place": (lambda x: flow.cumsum(x, 0), r"cumsum\(\)"),
    "math": (lambda x: math.exp(x), "a Python number is wanted"),
    "NumPy": (lambda x: np.where(x > 0, x, 0), "NumPy's functions are of whole arrays"),
    "nothing": (lambda x: None, "must give one number per element, not NoneType"),
    "a tensor": (lambda x: x + flow.ones(3), "make it a parameter"),
    "in place": (lambda x: x.exp_(), "exp_ changes a tensor in place"),
    "too many results": (lambda x: [x] * 9, "1 to 8 results, not 9"),
    "no results": (lambda x: (), "1 to 8 results, not 0"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_traced_is_an_error_that_shows_the_line(what):
    function, message = REFUSED[what]
    with pytest.raises(flow.fuse.TraceError, match=message) as caught:
        elements(function)
    assert "test_fuse_elements.py:" in str(caught.value)
    assert str(caught.value).startswith("fuse.elements")


@pytest.mark.parametrize("text, message", {
    "x": "a colon is expected", "": "parameters, as in", "x:": "a number, a name or ( is expected",
    "x: y": "there is no parameter y at character 4", "x: x +": "its end",
    "x: cumsum(x)": "cumsum() cannot be fused; allowed are abs, ", "x: exp(x, x)": "takes 1 arg",
    "x: 1 < x < 2": "comparisons do not chain", "x, x: x": "x is a parameter already",
    "x: (x": ") is expected", "x: x x": "an operator is expected", "x: 1e999": "beyond a double",
    "x: t = x t": "; is expected", "inf: inf": "inf is a number and cannot be a name",
    "x: " + "(" * 5000: "nested too deep", "x: " + "-" * 5000 + "x": "nested too deep",
    "x: x; x": "an operator is expected", "x: 3abc": "an operator is expected",
    "x: " + "x, " * 8 + "x": "at most 8 are allowed",
}.items())  # fmt: skip
def test_texts_that_are_none(text, message):
    with pytest.raises(ValueError, match=r"fuse_elements\(\): ") as caught:
        flow.fuse_elements(text, [flow.ones(2)])
    assert message in str(caught.value)


def test_texts():
    x, y = flow.tensor([2.0, -3.0]), flow.tensor([3, 4])
    for text, want in {
        "x, y: x * -y ** 2": x * -(y**2), "x, y: x // 2 % 2 - y": x // 2 % 2 - y,
        "x, y: a = x + y; b = a * a; b / 2": (x + y) ** 2 / 2,
        "x, y: (x > 0) & ~(y == 4)": (x > 0) & ~(y == 4), "x, y: +x - 1.5e0 ** -x": x - 1.5**-x,
        "x, y: where(isnan(x / 0 * 0), inf, x) + y": flow.full((2,), math.inf),
        "x, y: y & 3 | 8 ^ 2": y & 3 | 8 ^ 2, "x, y: float16(x) * y": x.half() * y,
        "x, y: int8(x * 100) + 0 * y": (x * 100).char() + 0 * y, "x,y:y**9": y**9,
        "x, y: clamp(x, -1, 1) + lerp(x, x, 0.5)": x.clamp(-1, 1) + x, "x, y: x ** 7": x**7,
    }.items():  # fmt: skip
        same(flow.fuse_elements(text, [x, y])[0], want, steps=2)


def test_bad_operands():
    for tensors in [], [flow.ones(1)], [flow.ones(1)] * 3:
        with pytest.raises(TypeError, match=r"fuse_elements\(\): the expression has 2 parameter"):
            flow.fuse_elements("x, y: x * y", tensors)
    with pytest.raises(flow.ShapeError, match=r"y of shape \[4\]|\(\): y"):
        flow.fuse_elements("x, y: x * y", [flow.ones(3), flow.ones(4)])
    with pytest.raises(flow.DTypeError, match="an operand of sub"):
        elements(lambda x: x - x)(flow.ones(2, dtype=flow.bool))
    with pytest.raises(flow.DTypeError, match="an operand of bitwise_and"):
        elements(lambda x: x & 3)(flow.ones(2))
    with pytest.raises(flow.ShapeError, match="number 0"):
        flow.fuse_elements("x: x", [flow.ones(3)], 1)
    with pytest.raises(flow.fuse.TraceError, match="at most 64"):
        elements(eval(f"lambda {', '.join(f'x{i}' for i in range(65))}: x0"))


def test_bool_has_no_negative_though_it_is_taken_twice(device):
    x = flow.tensor([True, False], device=device)
    for text in "x: -(-x)", "x: x | -(-x)":
        with pytest.raises(flow.DTypeError, match="neg"):
            flow.fuse_elements(text, [x])
    assert flow.fuse_elements("x: -(-x)", [x.float()])[0].tolist() == [1, 0]


def test_the_op_holds_what_it_declares(capsys):
    x, y, n = flow.randn(3, 4), flow.randn(4), flow.arange(12).view(3, 4)
    flow.check_op("fuse_elements", [
        ([x, y], {"expression": "x, y: x * sigmoid(y)"}),
        ([x, flow.randn(3, 1), n], {"expression": "x, y, n: where(n > 3, x * y, exp(x * -1.0))"}),
    ])  # fmt: skip
    flow.check_op("fuse_elements_2", [([x, y], {"expression": "x, y: x * y, x - y"})])


def test_the_meta_device():
    x = flow.empty(3, 1, device="meta", dtype=flow.float16)
    y, mask = elements(lambda x, y: (x * y, x > y))(x, flow.empty(5, device="meta"))
    assert (y.shape, y.dtype, mask.dtype, y.device.type) == (
        (3, 5),
        flow.float32,
        flow.bool,
        "meta",
    )


@pytest.mark.cuda
@pytest.mark.slow
def test_more_than_2_to_31_elements():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x = flow.ones(1, device="cuda", dtype=flow.uint8).expand(2**31 + 5)
    y = elements(lambda x: x + 1)(x)
    assert y[-1].item() == 2 and y[2**31].item() == 2 and y[0].item() == 2
    # arange() refuses an end that int16 cannot hold; the conversion wraps.
    column = flow.arange(2**16 + 1, device="cuda").to(flow.int16).view(-1, 1)
    row = flow.ones(2**15 + 2, device="cuda", dtype=flow.int8)
    z = elements(lambda a, b: a + b)(column, row)
    assert z[-1, -1].item() == 1 and z[2**15, 0].item() == 1 - 2**15 and z[1000, 5].item() == 1001
