# SPDX-License-Identifier: Apache-2.0
"""out=: every registered function writes its result where it is told to."""

import numpy as np
import pytest
from numerics import flow, host

X = np.random.default_rng(6).standard_normal((3, 4))


@pytest.mark.parametrize("name, arguments", [
    ("softmax", (1,)), ("log_softmax", (0,)), ("exp", ()), ("add", (2.5,)), ("sum", (0,)),
    ("cumsum", (1,)), ("matmul", (flow.ones(4, 2, dtype=flow.float64),)),
])  # fmt: skip
def test_results_are_written(name, arguments, device):
    x = flow.tensor(X, device=device)
    arguments = [a.to(device) if isinstance(a, flow.Tensor) else a for a in arguments]
    function = getattr(flow, name)
    expected = host(function(x, *arguments))
    out = flow.full(expected.shape, float("nan"), dtype=flow.float64, device=device)
    memory = out.data_ptr()
    assert function(x, *arguments, out=out) is out and out.data_ptr() == memory
    np.testing.assert_array_equal(host(out), expected)
    empty = flow.empty(0, dtype=flow.float64, device=device)  # which takes any shape
    assert function(x, *arguments, out=empty) is empty
    np.testing.assert_array_equal(host(empty), expected)
    spread = flow.empty(*expected.shape, 2, dtype=flow.float64, device=device)[..., 0]
    np.testing.assert_array_equal(host(function(x, *arguments, out=spread)), expected)
    narrow = flow.empty(*expected.shape, device=device)
    np.testing.assert_allclose(host(function(x, *arguments, out=narrow)), expected, rtol=1e-6)
    assert function(x, *arguments, out=None).shape == expected.shape


def test_an_argument_may_be_the_target():
    x = flow.tensor(X)
    flow.softmax(x, 1, out=x)
    np.testing.assert_allclose(host(x).sum(1), 1)


def test_several_results():
    x, out = flow.tensor(X), (flow.empty(3, dtype=flow.float64), flow.empty(3, dtype=flow.int64))
    y = flow._C.max(x, 1, out=out)
    assert y.values is out[0] and y.indices is out[1]
    assert out[0].tolist() == X.max(1).tolist() and out[1].tolist() == X.argmax(1).tolist()
    with pytest.raises(TypeError, match="a tuple of as many Tensors as results"):
        flow._C.max(x, 1, out=out[:1])
    with pytest.raises(TypeError, match="a tuple of as many Tensors as results"):
        flow.unbind(x[:1], out=x[:1])  # whose rows would be tensors, too
    target = [flow.empty(4, dtype=flow.float64) for _ in range(3)]
    assert flow.unbind(x, out=target) is target and flow.equal(flow.stack(target), x)


def test_an_empty_target_gets_memory_of_its_own():
    x, out = flow.tensor(X), flow.empty(0, dtype=flow.float64)
    flow.transpose(x, 0, 1, out=out)
    out.zero_()
    np.testing.assert_array_equal(host(x), X)


def test_what_does_not_fit():
    x = flow.tensor(X)
    for out, error, text in (
        (flow.empty(4, 3, dtype=flow.float64), flow.ShapeError, r"expected \[3, 4\]"),
        (flow.empty(3, 4, dtype=flow.int64), flow.DTypeError, "out has dtype int64"),
        (flow.empty(3, 4, dtype=flow.float64, device="meta"), RuntimeError, "softmax"),
        ("here", TypeError, "argument 'out' must be Tensor"),
        ((flow.empty(3, 4, dtype=flow.float64),), TypeError, "argument 'out' must be Tensor"),
    ):
        with pytest.raises(error, match=text):
            flow.softmax(x, 1, out=out)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        x.softmax(1, out=x)  # as in PyTorch, a method has no out


def test_no_history_is_lost():
    x, out = flow.tensor(X, requires_grad=True), flow.empty(3, 4, dtype=flow.float64)
    with pytest.raises(RuntimeError, match="out= keeps no history"):
        flow.exp(x, out=out)
    with flow.no_grad():
        assert flow.exp(x, out=out) is out
    y = flow.tensor(X, requires_grad=True)
    z = (y * out).sum()
    flow.exp(x.detach(), out=out)  # what backward needs is overwritten
    with pytest.raises(RuntimeError, match="changed|version|in place"):
        z.backward()


@pytest.mark.parametrize("name", ["sum", "exp", "round", "median"])
def test_a_target_that_requires_grad_is_refused_by_name(name):
    x = flow.tensor(X)
    function = getattr(flow, name)
    out = flow.empty(function(x).shape, dtype=flow.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=rf"^{name}\(\): a leaf that requires grad"):
        function(x, out=out)


@pytest.mark.parametrize("name, arguments", [
    ("round", ()), ("cumprod", (1,)), ("clamp", (-0.5, 0.5)), ("tril", ()), ("median", ()),
    ("logcumsumexp", (0,)), ("lerp", (flow.tensor(2.0, dtype=flow.float64), 0.5)),
])  # fmt: skip
def test_functions_composed_in_python_write_too(name, arguments):
    x, function = flow.tensor(X), getattr(flow, name)
    expected = host(function(x, *arguments))
    out = flow.full(expected.shape, float("nan"), dtype=flow.float64)
    assert function(x, *arguments, out=out) is out
    np.testing.assert_array_equal(host(out), expected)
    assert function(x, *arguments, out=None).shape == expected.shape
    with pytest.raises(flow.DTypeError, match="out has dtype int64"):
        function(x, *arguments, out=flow.zeros(expected.shape, dtype=flow.int64))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_normalize_writes_too(dtype):
    x = flow.tensor(X).to(getattr(flow, dtype))
    expected, out = flow.nn.functional.normalize(x, dim=0), flow.empty_like(x)
    assert flow.nn.functional.normalize(x, dim=0, out=out) is out
    assert flow.equal(out, expected)


def test_several_results_of_functions_composed_in_python():
    x = flow.tensor(X)
    out = flow.empty(3, dtype=flow.float64), flow.empty(3, dtype=flow.int64)
    y = flow.median(x, 1, out=out)
    assert y.values is out[0] and y.indices is out[1]
    assert flow.equal(out[0], x.median(1)[0]) and flow.equal(out[1], x.median(1)[1])
    with pytest.raises(TypeError, match=r"median\(\): argument 'out' must be a tuple of as many"):
        flow.median(x, 1, out=out[0])
    identity = flow.empty(0)
    assert flow.eye(2, out=identity) is identity and identity.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(TypeError, match="argument 'input' must be Tensor"):
        flow.trunc("a", out=identity)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        flow.trunc(x, other=1, out=identity)


def test_a_histogram_is_written_with_its_names():
    x = flow.tensor([0.0, 1.0, 1.5, 4.0])
    hist, edges = flow.empty(4), flow.empty(0)
    found = flow.histogram(x, 4, out=(hist, edges))
    assert found.hist is hist and found.bin_edges is edges
    assert hist.tolist() == [1, 2, 0, 1] and edges.tolist() == [0, 1, 2, 3, 4]


def _same(got, expected):
    return got.shape == expected.shape and np.array_equal(
        host(got), host(expected), equal_nan=host(got).dtype.kind == "f"
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_function_gives_the_same_with_a_target(count, device):
    """Which it may write before it is done, unless an argument shares its memory."""
    given = np.random.default_rng(9).uniform(0.1, 0.9, (count, 4, 4))
    tried = 0
    for name in dir(flow._C):
        function = getattr(flow._C, name)
        if name.startswith("_") or name.endswith("_") or not callable(function):
            continue
        xs = [flow.tensor(x, device=device) for x in given]
        try:
            expected, again = function(*xs), function(*xs)
        except Exception:  # arguments of another kind
            continue
        if name.startswith("atleast_") or not isinstance(expected, flow.Tensor):
            continue  # several results
        if not _same(again, expected):
            continue  # random ones
        tried += 1
        out = flow.zeros(expected.shape, dtype=expected.dtype, device=device)
        assert function(*xs, out=out) is out and _same(out, expected), name
        assert all(_same(x, flow.tensor(a)) for x, a in zip(xs, given, strict=True)), name
        if expected.shape != (4, 4) or expected.dtype is not flow.float64:
            continue
        for i in range(count):
            xs = [flow.tensor(x, device=device) for x in given]
            assert _same(function(*xs, out=xs[i]), expected), name
            memory = flow.zeros(20, dtype=flow.float64, device=device)
            xs = [flow.tensor(x, device=device) for x in given]
            xs[i] = memory[:16].view(4, 4).copy_(xs[i])
            assert _same(function(*xs, out=memory[4:].view(4, 4)), expected), name
    assert tried > {1: 80, 2: 40, 3: 5}[count]
