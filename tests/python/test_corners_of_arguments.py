# SPDX-License-Identifier: Apache-2.0
"""Arguments that are no probability, no deviation, no place, no int64; and a wrapped diagonal."""

import inspect
import math

import numpy as np
import pytest

import oneflow_lite as flow

NAN = math.nan


def tensor(values, device, dtype=flow.float32):
    return flow.tensor(values, dtype=dtype).to(device)


@pytest.mark.parametrize("dtype", [flow.float16, flow.float32, flow.float64])
@pytest.mark.parametrize("bad", [-0.25, 1.5, NAN, math.inf])
def test_no_probability(bad, dtype):
    p = tensor([0.5, bad], "cpu", dtype)
    with pytest.raises(ValueError, match=r"bernoulli\(\): input has elements from .* in \[0, 1\]"):
        flow.bernoulli(p)
    x = flow.full((2,), 7.0)
    with pytest.raises(ValueError, match=r"bernoulli_\(\): p has elements from .* in \[0, 1\]"):
        x.bernoulli_(p)
    assert x.tolist() == [7, 7]
    for call in (lambda: x.bernoulli_(bad), lambda: flow.bernoulli(x, bad)):
        with pytest.raises(ValueError, match=r"p is .*, but it must be in \[0, 1\]"):
            call()


def test_probabilities_at_the_ends(device):
    p = tensor([0.0, 1.0], device, flow.float16)
    assert flow.bernoulli(p).tolist() == [0, 1]
    assert tensor([5, 5], device).bernoulli_(p).tolist() == [0, 1]
    assert flow.bernoulli(tensor([], device)).shape == (0,)
    with pytest.raises(ValueError):
        flow.bernoulli(tensor([0, 2], "cpu", flow.int64))
    for p in (tensor([2.0], device), tensor(1.0, device)):  # a tensor, and no number
        assert flow.zeros(0, device=device).bernoulli_(p).shape == (0,)
    with pytest.raises(ValueError, match="p has elements from 2 to 2"):
        flow.zeros(3).bernoulli_(flow.tensor([2.0]))
    assert flow.zeros(3, device=device).bernoulli_(tensor([1.0], device)).tolist() == [1] * 3
    assert inspect.signature(flow.Tensor.bernoulli_).parameters["p"].default == 0.5


@pytest.mark.cuda
def test_no_probability_where_nothing_waits():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    assert flow.bernoulli(tensor([-1.0, 2.0, NAN], "cuda")).tolist() == [0, 1, 0]


@pytest.mark.parametrize("std", [-1.0, NAN])
def test_no_deviation(std):
    x = flow.full((2,), 7.0)
    for call in (lambda: flow.nn.init.normal_(x, std=std), lambda: x.normal_(0, std),
                 lambda: flow.normal(0.0, std, (2,)), lambda: flow.normal(x, std),
                 lambda: flow.normal(x, flow.tensor([1.0, std])),
                 lambda: flow.normal(0.0, flow.tensor([std, 1.0]))):  # fmt: skip
        with pytest.raises(ValueError, match="normal_?.*std"):
            call()
    assert x.tolist() == [7, 7]
    with pytest.raises(ValueError, match="std"):
        flow.nn.init.kaiming_normal_(flow.ones(2, 2), a=-NAN)
    assert flow.normal(x, flow.zeros(2)).tolist() == [7, 7]
    assert flow.nn.init.normal_(x, 3.0, 0.0).tolist() == [3, 3]


EMPTY = [(0, 5), (5, 0), (0,), (0, 2, 3), (7, 0), (0, 3)]


@pytest.mark.parametrize("shape", EMPTY)
@pytest.mark.parametrize("dim", [0, 1])
def test_nothing_goes_anywhere(shape, dim, device):
    """An index without elements fits beside every tensor, as in PyTorch."""
    index = tensor(np.zeros(shape), device, flow.int64)
    check_nothing_goes_anywhere(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], device), index, dim)


@pytest.mark.parametrize("dtype", [flow.int64, flow.float32, flow.bool])
@pytest.mark.parametrize("shape", EMPTY)
def test_nothing_goes_to_one_element(shape, dtype, device):
    """Beside a tensor without dims, and where no places are of no integer dtype."""
    index = tensor(np.zeros(shape), device, dtype)
    check_nothing_goes_anywhere(tensor(3.0, device), index, 0)
    check_nothing_goes_anywhere(tensor([3.0, 4.0], device), index, -1)


def check_nothing_goes_anywhere(x, index, dim):
    shape, device = index.shape, x.device
    x.requires_grad_()
    src = flow.ones(4, 1, device=device).requires_grad_()
    got = flow.gather(x, dim, index)
    assert got.shape == shape and got.dtype is x.dtype
    results = [flow.scatter(x, dim, index, src), flow.scatter(x, dim, index, 9.0),
               flow.scatter_add(x, dim, index, src)]  # fmt: skip
    for reduce in ("sum", "prod", "mean", "amax"):
        results.append(flow.scatter_reduce(x, dim, index, src, reduce, include_self=False))
    for y in results:
        assert y.tolist() == x.tolist()
    (got.sum() + results[0].sum()).backward()
    assert x.grad.tolist() == flow.ones_like(x).tolist() and src.grad.tolist() == [[0]] * 4
    y = x.detach().clone()
    assert y.scatter_(dim, index, src.detach()) is y and y.tolist() == x.tolist()
    with pytest.raises(IndexError):
        flow.scatter(x, 2, index, src)


@pytest.mark.parametrize("index", [(0,), (0, 1 << 20), (1 << 20, 0)])
@pytest.mark.parametrize("function", [flow.scatter, flow.scatter_add])
def test_of_a_source_that_goes_nowhere_nothing_is_copied(function, index, device):
    """A copy of this one, which a stride of 0 lets stand in one row, would take 4 TiB."""
    src = flow.ones(1, 1 << 20, device=device).expand(1 << 20, 1 << 20)
    x = flow.ones(2, 1 << 20, device=device)
    y = function(x, 0, tensor(np.zeros(index), device, flow.int64), src)
    assert y.shape == x.shape and bool((y == 1).all())
    assert flow.gather(src, 1, tensor(np.zeros((0, 3, 3)), device, flow.int64)).shape == (0, 3, 3)


@pytest.mark.parametrize(
    "shape",
    [(7, 3), (3, 7), (4, 3), (5, 3), (6, 3), (8, 3), (9, 1), (0, 2), (3, 3, 3), (403, 6), (999, 1)],
)
@pytest.mark.parametrize("wrap", [False, True])
def test_a_wrapped_diagonal(shape, wrap, device):
    want = np.zeros(shape)
    if min(shape) > 0:
        np.fill_diagonal(want, 5, wrap=wrap)
    assert flow.zeros(shape, device=device).fill_diagonal_(5, wrap=wrap).tolist() == want.tolist()
    turned = flow.zeros(shape[::-1], device=device).permute(*range(len(shape))[::-1])
    assert turned.fill_diagonal_(5, wrap).tolist() == want.tolist()
    steps = flow.zeros([2 * n for n in shape], device=device)[(slice(1, None, 2),) * len(shape)]
    assert steps.fill_diagonal_(5, wrap).tolist() == want.tolist()


@pytest.mark.parametrize("shape", [(7, 3), (8, 3), (9, 1), (11, 2)])
@pytest.mark.parametrize("turn", [False, True])
def test_the_gradient_around_a_wrapped_diagonal(shape, turn, device):
    want = np.ones(shape)
    np.fill_diagonal(want, 0, wrap=True)
    x = flow.ones(shape[::-1] if turn else shape, device=device).requires_grad_()
    y = (x.t() if turn else x) * 2
    y.fill_diagonal_(5, wrap=True)
    y.sum().backward()
    assert x.grad.tolist() == (2 * (want.T if turn else want)).tolist()


@pytest.mark.parametrize("cols", [1, 3])
def test_a_wrapped_diagonal_is_filled_at_once(cols):
    """Not square by square, of which a tall matrix has very many."""
    for x, most in ((flow.zeros(4000, cols), 1), (flow.zeros(cols, 4000).t(), 2)):
        with flow.profiler.profile() as seen:
            x.fill_diagonal_(1, wrap=True)
        assert sum(s.calls for s in seen.stats() if s.name == "fill_") in range(1, most + 1)


@pytest.mark.parametrize("function", [flow.trace, lambda x: x.diagonal().sum()])
def test_the_diagonal_of_one_element_repeated(function, device):
    """A leaf whose elements are one place in memory has a gradient for each of them."""
    leaf = flow.ones(1, 1, device=device).expand(3, 3).detach().requires_grad_()
    function(leaf).backward()
    np.testing.assert_array_equal(leaf.grad.tolist(), np.eye(3))
    one = flow.ones(1, 1, device=device).requires_grad_()
    function(one.expand(3, 3)).backward()
    assert one.grad.tolist() == [[3]]


@pytest.mark.parametrize("offset", [-5, -2, 0, 1, 4])
@pytest.mark.parametrize("dims", [(0, 1), (2, 0), (-1, 1)])
def test_diagonals_in_second_order(offset, dims, device):
    x = flow.rand(3, 4, 2, dtype=flow.float64, device=device).requires_grad_()
    want = np.diagonal(x.detach().cpu().numpy(), offset, *dims)
    np.testing.assert_array_equal(x.diagonal(offset, *dims).tolist(), want.tolist())
    f = lambda x: x.diagonal(offset, *dims) ** 3  # noqa: E731
    assert flow.autograd.gradcheck(f, (x,)) and flow.autograd.gradgradcheck(f, (x,))
    y = x.detach().clone()
    y.diagonal(offset, *dims).zero_()
    assert y.sum().item() == pytest.approx(x.sum().item() - want.sum())


@pytest.mark.parametrize("invert", [False, True])
def test_a_number_among_integers_is_not_rounded(invert, device):
    x = tensor([2**63 - 1, 2**53 + 1, -(2**63), 3], device, flow.int64)
    for number, found in [(2.0**63, None), (2.0**53, None), (-(2.0**63), 2), (3.0, 3), (3.5, None),
                          (2**63 - 1, 0), (NAN, None), (math.inf, None)]:  # fmt: skip
        want = [(i == found) != invert for i in range(4)]
        assert flow.isin(x, number, invert=invert).tolist() == want
        assert flow.isin(number, x, invert=invert).item() is ((found is not None) != invert)


@pytest.mark.parametrize("right", [False, True])
def test_a_number_is_put_between_integers(right, device):
    values = [-(2**63), -3, 2**53 + 1, 2**63 - 1]
    line = tensor(values, device, flow.int64)
    for number in [2.0**63, -(2.0**63), -(2.0**64), 2.0**53, 2.0**54, -3.0, -3.5, -2.5, math.inf,
                   2**63, -(2**63) - 1]:  # fmt: skip
        want = sum(v <= number if right else v < number for v in values)
        assert flow.searchsorted(line, number, right=right).item() == want
    assert flow.searchsorted(line, NAN, right=right).item() == 4


def test_an_integer_of_the_text_beyond_64_bits_is_for_floats_alone(device):
    whole = tensor([1, -2], device, flow.int64)
    for number in (2**63, -(2**63) - 1, 10**30):
        op = flow.fuse.elements(lambda x, n=number: x * 2 + n)
        constant = flow.fuse.elements(eval(f"lambda x: x * 2 + {number}"))
        for call in (op, constant):
            with pytest.raises(OverflowError, match="out of range.* of int64"):
                call(whole)
            assert call(whole.double()).tolist() == (whole.double() * 2 + number).tolist()
    text = f"x: float64(x) * {2**63}, x < 3"
    assert flow.fuse_elements(text, [whole])[0].tolist() == [2.0**63, -(2.0**64)]
    for text in (f"x: {2**63}", f"x: float64({2**63}) + x", f"x: maximum(x, -{2**64})"):
        with pytest.raises(OverflowError, match="out of range.* of int64"):
            flow.fuse_elements(text, [whole])


LEAST = -(2**63)


@pytest.mark.parametrize(
    "function",
    [lambda x: x + LEAST, lambda x: flow.maximum(x, LEAST), lambda x: flow.where(x > 0, x, LEAST)],
)
def test_the_least_integer_in_an_expression(function, device):
    """-2^63 is in int64, and in no narrower dtype, where it does not wrap around."""
    whole = tensor([1, 0], device, flow.int64)
    fused = flow.fuse.elements(function)
    assert fused(whole).dtype is flow.int64 and fused(whole).tolist() == function(whole).tolist()
    for dtype in (flow.int8, flow.uint8, flow.int32):
        with pytest.raises(OverflowError, match="out of range"):
            fused(whole.to(dtype))
    assert fused(whole.double()).tolist() == function(whole.double()).tolist()


def test_the_least_integer_in_a_text(device):
    whole = tensor([1, LEAST], device, flow.int64)
    for text in (f"x: maximum(x, {LEAST})", f"x: minimum(x, - ( {2**63} )) - {LEAST} + x",
                 f"x: x - 0 * {LEAST}"):  # fmt: skip
        assert flow.fuse_elements(text, [whole])[0].tolist() == [1, LEAST]
    for beyond in (f"-{2**63 + 1}", f"-(-{2**63})", f"-{2**63}**2", f"--{2**63}"):
        with pytest.raises(OverflowError, match="out of range.* of int64"):
            flow.fuse_elements(f"x: x + {beyond}", [whole])
    x = tensor([1.0, 2.0], device).requires_grad_()  # whose gradient's text has the number again
    flow.fuse_elements(f"x: where({LEAST} > int64(x), 0, x * x)", [x])[0].sum().backward()
    assert x.grad.tolist() == [2, 4]


COMPARISONS = {
    "eq": lambda x, n: x == n, "ne": lambda x, n: x != n, "lt": lambda x, n: x < n,
    "le": lambda x, n: x <= n, "gt": lambda x, n: x > n, "ge": lambda x, n: x >= n,
}  # fmt: skip


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, LEAST, LEAST - 1, -(2**64), 2**63 - 1])
@pytest.mark.parametrize("dtype", [flow.int8, flow.uint8, flow.int64, flow.bool, flow.float32])
def test_an_expression_compares_integers_as_they_are(number, dtype, device):
    x = tensor([1, 0], device, dtype)
    for name, compare in COMPARISONS.items():
        want = compare(x, number)
        got = flow.fuse_elements(f"x: {name}(x, {number}), {name}({number}, x)", [x])
        assert got[0].dtype is flow.bool and got[0].tolist() == want.tolist()
        assert got[1].tolist() == compare(number, x).tolist()
        assert flow.fuse.elements(compare)(x, number).tolist() == want.tolist()
    both = flow.fuse.elements(lambda x: (x * 1.5, x < number, flow.where(x > number, 3, x + x)))(x)
    assert both[1].tolist() == (x < number).tolist()
    assert both[2].tolist() == flow.where(x > number, 3, x + x).tolist()


BOUNDS = [(0, 300), (-300, 0), (300, None), (None, -300), (0, 2**64), (LEAST - 1, 2**63),
          (2**63, None), (-5, 5), (0.5, 300)]  # fmt: skip


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("dtype", [flow.int8, flow.uint8, flow.int64, flow.float32])
def test_bounds_of_clamp_in_an_expression_saturate(bounds, dtype, device):
    x = tensor([100, 0, 3], device, dtype)
    want = flow.clamp(x, *bounds)
    got = flow.fuse.elements(lambda x: flow.clamp(x, *bounds))(x)
    assert got.dtype is want.dtype and got.tolist() == want.tolist()
    if None not in bounds:
        got = flow.fuse_elements(f"x: clamp(x, {bounds[0]}, {bounds[1]})", [x])[0]
        assert got.dtype is want.dtype and got.tolist() == want.tolist()


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("dtype", [flow.int8, flow.uint8, flow.int64, flow.float32])
def test_bounds_of_clamp_that_are_given_to_an_expression_saturate(bounds, dtype, device):
    x = tensor([100, 0, 3], device, dtype)
    given = [n for n in bounds if n is not None]
    fused = {
        (True, True): flow.fuse.elements(lambda x, n, m: flow.clamp(x, n, m)),
        (True, False): flow.fuse.elements(lambda x, n: flow.clamp(x, min=n)),
        (False, True): flow.fuse.elements(lambda x, n: flow.clamp(x, max=n)),
    }[bounds[0] is not None, bounds[1] is not None]
    want = flow.clamp(x, *bounds)
    got = fused(x, *given)
    assert got.dtype is want.dtype and got.tolist() == want.tolist()


def test_a_bound_of_clamp_is_no_other_operand(device):
    x = tensor([100, 0, 3], device, flow.int8)
    both = flow.fuse.elements(lambda x, n: (flow.clamp(x, 0, n), x + n))
    assert [y.tolist() for y in both(x, 20)] == [[20, 0, 3], [120, 20, 23]]
    with pytest.raises(OverflowError, match="300 is out of range .* of int8"):
        both(x, 300)
