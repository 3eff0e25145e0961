# SPDX-License-Identifier: Apache-2.0
"""linear as one op: layouts, dims, biases, gradients, and what the product is rounded to."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.nn import functional as F  # noqa: E402

DTYPES = ["float16", "bfloat16", "float32", "float64"]
STEP = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-20, "float64": 2**-49}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=DEVICES)
def device(request):
    if request.param == "cuda" and not flow.cuda.is_available():
        pytest.skip("no GPU")
    return request.param


def drawn(*shape, dtype="float32", device="cpu", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return flow.tensor(values).to(dtype=getattr(flow, dtype), device=device)


def numbers(t):
    return t.detach().cpu().double().numpy()


def layouts(x):
    """x as it is, transposed in memory, with rows apart, and at an odd offset."""
    yield x
    yield x.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = flow.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype, device=x.device)
    wide[..., 1:-2] = x
    yield wide[..., 1:-2]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_values_in_every_layout(dtype, bias, device):
    x, w = drawn(6, 5, dtype=dtype, device=device), drawn(7, 5, dtype=dtype, device=device, seed=1)
    b = drawn(7, dtype=dtype, device=device, seed=2) if bias else None
    size = np.abs(numbers(x)) @ np.abs(numbers(w)).T + 4
    want = numbers(x) @ numbers(w).T + (numbers(b) if bias else 0)
    for given in layouts(x):
        for weight in layouts(w):
            y = F.linear(given, weight, b)
            assert np.all(np.abs(numbers(y) - want) <= STEP[dtype] * size)


@pytest.mark.parametrize("shape", [(5,), (1, 5), (2, 3, 5), (2, 0, 5), (0, 5), (2, 1, 2, 2, 5)])
def test_leading_dims(shape, device):
    x, w, b = drawn(*shape, device=device), drawn(3, 5, device=device), drawn(3, device=device)
    y = F.linear(x, w, b)
    assert y.shape == (*shape[:-1], 3)
    assert np.allclose(numbers(y), numbers(x) @ numbers(w).T + numbers(b), atol=1e-5)
    if len(shape) > 2:
        turned = x.transpose(0, 1)
        assert np.allclose(numbers(F.linear(turned, w)), numbers(turned) @ numbers(w).T, atol=1e-5)


def test_no_input_features_give_the_bias(device):
    b = drawn(3, device=device)
    for dtype in DTYPES:
        x, w = flow.ones(4, 0, device=device), flow.ones(3, 0, device=device)
        y = F.linear(
            x.to(getattr(flow, dtype)), w.to(getattr(flow, dtype)), b.to(getattr(flow, dtype))
        )
        assert np.array_equal(
            numbers(y), np.broadcast_to(numbers(b.to(getattr(flow, dtype))), (4, 3))
        )
        assert F.linear(flow.ones(4, 0), flow.ones(3, 0)).tolist() == [[0.0] * 3] * 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_sum_with_the_bias_is_rounded_once(dtype, device):
    # 256 + 1 + 1 in bfloat16: rounded after the product, 257 is 256, and 256 + 1 is 256 again.
    big = 256.0 if dtype == "bfloat16" else 2048.0
    x = flow.tensor([[1.0, 1.0]], dtype=getattr(flow, dtype), device=device)
    w = flow.tensor([[big, 1.0]], dtype=getattr(flow, dtype), device=device)
    b = flow.tensor([1.0], dtype=getattr(flow, dtype), device=device)
    assert F.linear(x, w, b).item() == big + 2


@pytest.mark.parametrize("wanted", range(1, 8))
def test_gradients_of_every_subset(wanted, device):
    given = [drawn(2, 3, 5, dtype="float64", device=device),
             drawn(4, 5, dtype="float64", device=device, seed=1),
             drawn(4, dtype="float64", device=device, seed=2)]  # fmt: skip
    for k, t in enumerate(given):
        t.requires_grad_(bool(wanted >> k & 1))
    g = drawn(2, 3, 4, dtype="float64", device=device, seed=3)
    F.linear(*given).backward(g)
    x, w, n = numbers(given[0]), numbers(given[1]), numbers(g)
    rows = n.reshape(-1, 4)
    want = [n @ w, rows.T @ x.reshape(-1, 5), rows.sum(0)]
    for k, t in enumerate(given):
        assert (t.grad is not None) == bool(wanted >> k & 1)
        if t.grad is not None:
            assert np.allclose(numbers(t.grad), want[k], rtol=1e-12, atol=1e-12)
            assert t.grad.is_contiguous()


def test_gradients_of_gradients():
    given = [drawn(2, 3, dtype="float64").requires_grad_(),
             drawn(4, 3, dtype="float64", seed=1).requires_grad_(),
             drawn(4, dtype="float64", seed=2).requires_grad_()]  # fmt: skip
    assert flow.autograd.gradcheck(F.linear, given)
    assert flow.autograd.gradgradcheck(F.linear, given)


def test_one_launch_forward(device):
    x, w, b = drawn(4, 5, device=device), drawn(3, 5, device=device), drawn(3, device=device)
    with flow.profiler.profile() as prof:
        F.linear(x, w, b)
    assert [(s.name, s.calls) for s in prof.stats()] == [("linear", 1)]


def test_odd_biases_and_dtypes_still_work():
    x, w = drawn(4, 5), drawn(3, 5, seed=1)
    want = numbers(x) @ numbers(w).T
    assert np.allclose(numbers(F.linear(x, w, flow.tensor(2.0))), want + 2, atol=1e-5)
    assert np.allclose(numbers(F.linear(x, w, flow.ones(4, 1))), want + 1, atol=1e-5)
    ints = flow.arange(6).reshape(2, 3)
    assert F.linear(ints, ints).tolist() == [[5, 14], [14, 50]]
    assert np.allclose(numbers(F.linear(x, w[0])), want[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("x", "w", "b", "error", "says"),
    [
        ((2, 4), (3, 5), None, "ShapeError", r"input has shape \[2, 4\], expected a last dim of 5"),
        ((2, 5), (3, 5), (4,), "ShapeError", "linear"),
        ((), (3, 5), None, "ShapeError", "input has shape"),
    ],
)
def test_what_does_not_fit(x, w, b, error, says):
    with pytest.raises(getattr(flow, error), match=says):
        F.linear(flow.ones(x), flow.ones(w), None if b is None else flow.ones(b))


def test_dtypes_that_do_not_fit():
    with pytest.raises(
        flow.DTypeError, match=r"linear\(\): input has dtype float32, expected float64"
    ):
        F.linear(flow.ones(2, 5), flow.ones(3, 5, dtype=flow.float64))


@pytest.mark.cuda
def test_timed_products_are_right_and_stay(device):
    """Products large enough for their algorithms to be timed, at the first call and later."""
    if device != "cuda":
        pytest.skip("times nothing on the CPU")
    x, w = drawn(2048, 768, device=device), drawn(1000, 768, device=device, seed=1)
    b = drawn(1000, device=device, seed=2)
    first = numbers(F.linear(x, w, b))
    want = numbers(x) @ numbers(w).T + numbers(b)
    assert np.allclose(first, want, atol=1e-3)
    assert np.array_equal(first, numbers(F.linear(x, w, b)))


def launches(run):
    with flow.profiler.profile() as prof:
        y = run()
    return sum(prof.launches.values()), y.detach().cpu().numpy().tobytes()


@pytest.mark.cuda
def test_a_product_is_timed_once_for_all_functions():
    """So that it is the same product, bit by bit."""
    if not flow.cuda.is_available():
        pytest.skip("no GPU")
    x, w = (drawn(n, 1048, device="cuda", seed=n) for n in (1064, 1016))
    timed, y = launches(lambda: x @ w.t())
    assert timed > 2  # algorithms are tried
    assert launches(lambda: F.linear(x, w)) == (1, y)


@pytest.mark.cuda
def test_the_product_that_a_graph_captured_is_the_one_of_later_calls():
    if not flow.cuda.is_available():
        pytest.skip("no GPU")
    flow.ones(8, 8, device="cuda") @ flow.ones(8, 8, device="cuda")  # cuBLASLt is opened
    a, b = (drawn(*s, device="cuda", seed=7) for s in ((1072, 1080), (1080, 1096)))
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y = a @ b
    graph.replay()
    count, z = launches(lambda: a @ b)
    assert count == 1 and numbers(y).astype(np.float32).tobytes() == z
