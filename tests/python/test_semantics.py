# SPDX-License-Identifier: Apache-2.0
"""The corner cases of the softmax family, and promotion: what is promised, one test each.

The errors are in test_errors.py.
"""

import itertools
import math

import numpy as np
import pytest
from numerics import ALL, FLOATS, HALVES, INTEGERS, LAYOUTS, assert_close, bits, flow, host, tensor
from op_reference import np_softmax

INF, NAN = math.inf, math.nan

each_dtype = pytest.mark.parametrize("dtype", FLOATS)
# Rows held in registers, in a cache, cut into parts; on CUDA each tier of the dispatch.
each_width = pytest.mark.parametrize("width", [2, 33, 256, 1025, 5000, 70_001, 200_003])


def both(x, dim=-1):
    """softmax and log_softmax as NumPy sees them."""
    return host(flow.softmax(x, dim)), host(flow.log_softmax(x, dim))


def rows(dtype, device, width, place, value):
    """Three rows of noise, of which the one in the middle has ``value`` at ``place``."""
    x = np.random.default_rng(0).standard_normal((3, width))
    x[1, place] = value
    return tensor(x, dtype, device)


def check_row(x, dtype):
    """All three rows against float64."""
    for y, log in zip((flow.softmax(x, 1), flow.log_softmax(x, 1)), (False, True), strict=True):
        family = "log_softmax" if log else "softmax"
        assert_close(y, np_softmax(host(x), 1, log), family, where=family)


# Infinities and NaN ---------------------------------------------------------------------------


@each_dtype
@each_width
def test_a_row_of_minus_infinity_is_nan_and_the_others_untouched(dtype, width, device):
    x = rows(dtype, device, width, slice(None), -INF)
    for y in both(x):
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()
    check_row(x, dtype)


@each_dtype
@each_width
def test_some_minus_infinity_is_exactly_zero(dtype, width, device):
    x = rows(dtype, device, width, slice(0, width // 2), -INF)
    p, logp = both(x)
    assert (p[1, : width // 2] == 0).all() and (logp[1, : width // 2] == -INF).all()
    check_row(x, dtype)


@pytest.mark.parametrize("left", ["first", "middle", "last"])
@each_width
def test_a_masked_slice_does_not_poison_the_rest(left, width, device):
    """All but a few entries are masked, so that whole parts of the row are -inf."""
    x = np.full((3, width), -INF)
    keep = {"first": 0, "middle": width // 2, "last": width - 1}[left]
    x[:, keep] = [1.0, -1e4, 3.0]
    x = tensor(x, "float32", device)
    p, logp = both(x)
    assert (p[:, keep] == 1).all() and (logp[:, keep] == 0).all()
    assert p.sum() == 3 and np.isneginf(np.delete(logp, keep, 1)).all()


@each_dtype
@each_width
@pytest.mark.parametrize("value", [INF, NAN])
@pytest.mark.parametrize("place", [0, -1])
def test_inf_or_nan_spoils_its_row_only(dtype, width, value, place, device):
    x = rows(dtype, device, width, place, value)
    for y in both(x):
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("nan", [0x7FFFFFFF, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0xFFC001FF])
@pytest.mark.parametrize("width", [1, 33, 5000, 70_001])
def test_a_nan_of_any_bits_spoils_its_row(dtype, nan, width, device):
    """What a GPU computes has all bits set, what NumPy calls nan one."""
    bits_of = {"float32": np.uint32, "float64": np.uint64}[dtype]
    x = np.random.default_rng(0).standard_normal((3, width)).astype(dtype)
    x.view(bits_of)[1, width // 2] = nan if dtype == "float32" else (nan | 0x7FF << 20) << 32 | nan
    t = tensor(x, dtype, device).requires_grad_()
    losses = flow.cross_entropy(t, flow.zeros(3, dtype=flow.int64, device=device), reduction="none")
    (losses * flow.tensor([1.0, 0.5, 2.0], device=device)).sum().backward()
    for y in (*both(t.detach()), host(flow.logsumexp(t.detach(), 1)), host(losses), host(t.grad)):
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize("value", [INF, NAN, -INF])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_same_over_any_dim(value, dim, device):
    values = np.random.default_rng(0).standard_normal((5, 40, 33))
    values.swapaxes(dim, 2)[2, 1, :] = value
    for layout in ("contiguous", *LAYOUTS):
        if layout == "expanded":
            continue
        x = LAYOUTS.get(layout, lambda t: t)(tensor(values, "float32", device))
        for log, y in enumerate((flow.softmax(x, dim), flow.log_softmax(x, dim))):
            reference = np_softmax(host(x), dim, bool(log))
            assert np.isnan(reference).sum() == values.shape[dim]
            assert_close(y, reference, "log_softmax" if log else "softmax", where=layout)


@each_dtype
def test_gradients_of_masked_entries_are_zero(dtype, device):
    x = tensor([[0.5, -INF, 1.5], [1.0, 2.0, -INF]], dtype, device).requires_grad_()
    (flow.softmax(x, 1) * tensor([[1.0, 2.0, 3.0]], dtype, device)).sum().backward()
    g = host(x.grad)
    assert np.isfinite(g).all() and g[0, 1] == 0 and g[1, 2] == 0


# Large, small, wide ---------------------------------------------------------------------------


@each_dtype
def test_logits_of_ten_thousand(dtype, device):
    x = tensor([[1e4, -1e4, 9999.0, 0.0], [-1e4, -1e4, -1e4, -9984.0]], dtype, device)
    p, logp = both(x)
    assert np.isfinite(p).all() and np.isfinite(logp).all()
    assert logp[0, 1] < -1.9e4
    check_row(x, dtype)


def test_log_softmax_subtracts_the_maximum_first(device):
    """(x - max) - log(sum), and not x - (max + log(sum)), which rounds away what tells apart."""
    x = tensor([[1e4, 1e4 - 0.5, 1e4 - 7]], "float32", device)
    exact = np_softmax(np.array([[0.0, -0.5, -7.0]]), 1, log=True)
    assert np.abs(host(flow.log_softmax(x, 1)) - exact).max() < 1e-6


@each_dtype
def test_zero_dim(dtype, device):
    for dim in (0, -1, None):
        x = tensor(-3.5, dtype, device).requires_grad_()
        for function, value in ((flow.softmax, 1), (flow.log_softmax, 0)):
            y = function(x, dim)
            assert y.shape == () and y.item() == value
            (grad,) = flow.autograd.grad(y, x)
            assert grad.shape == () and grad.item() == 0
    assert math.isnan(flow.softmax(tensor(INF, dtype, device)).item())


@each_dtype
@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (3, 1, 5), (1,)])
def test_width_one_is_exactly_one(dtype, shape, device):
    dim = shape.index(1)
    x = 100 * np.random.default_rng(0).standard_normal(shape)
    p, logp = both(tensor(x, dtype, device), dim)
    assert (p == 1).all() and (logp == 0).all()
    x.flat[0] = NAN
    assert np.isnan(both(tensor(x, dtype, device), dim)[0].flat[0])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0), (5, 4, 3, 2, 0)])
def test_empty_tensors(shape, device):
    for dim, function in itertools.product(range(len(shape)), (flow.softmax, flow.log_softmax)):
        x = flow.zeros(shape, device=device, requires_grad=True)
        y = function(x, dim)
        assert y.shape == shape and y.requires_grad
        y.sum().backward()
        assert x.grad.shape == shape


def test_no_kernel_runs_on_nothing():
    """An empty tensor has no memory, so there is nothing that a launch could be given."""
    assert flow.softmax(flow.zeros(3, 0), 0).data_ptr() == 0


@each_dtype
@pytest.mark.parametrize("width", [4096, 65_536])
def test_rows_sum_to_one(dtype, width, device):
    x = tensor(np.random.default_rng(0).standard_normal((4, width)), dtype, device)
    bound = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "float64": 1e-12}[dtype]
    assert np.abs(host(flow.softmax(x, 1)).sum(1) - 1).max() <= bound


def test_offsets_of_views_have_64_bits():
    """Elements beyond 2^31 of memory that the system never has to provide."""
    far = (1 << 31) + 12_345
    try:
        x = flow.empty(far + 10, dtype=flow.int8)
    except flow.OutOfMemoryError:
        pytest.skip("no 2 GiB of address space")
    x[far:] = 7
    assert x[far].item() == 7 and x.narrow(0, far + 1, 3).sum().item() == 21
    assert x.data_ptr() + far == x[far].data_ptr()
    assert flow.empty(3_000_000_000, device="meta").view(-1, 1000)[2_999_999].shape == (1000,)


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.parametrize("shape", [(70_000, 32_768), (3, 1 << 30), ((1 << 31) + 8, 1)])
def test_more_than_two_to_the_31_elements(shape):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x = flow.zeros(shape, dtype=flow.float16, device="cuda")
    y = flow.softmax(x, 1)
    tail = host(y[-1, -5:])
    assert np.abs(tail * shape[1] - 1).max() < 1e-2 if shape[1] < 60_000 else (tail == 0).all()
    x[-1, -1] = 60_000.0
    assert host(flow.softmax(x, 1)[-1, -1]) == 1


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.parametrize("name, dtype, want", [
    ("amax", "int8", [5, 4]), ("argmax", "int8", [1, 0]), ("sum", "float16", [8, 6]),
])  # fmt: skip
def test_more_than_two_to_the_31_columns(name, dtype, want):
    """A block has the two results of a row, and a grid has fewer than 2^31 blocks."""
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x = flow.zeros((1 << 31) + 3, 2, 2, dtype=getattr(flow, dtype), device="cuda")
    last = flow.tensor([[3, 4], [5, 2]], dtype=x.dtype, device="cuda")
    for row in (-1, (1 << 30) + 1, (1 << 31) - 1, 0):
        x[row].copy_(last)
    y = getattr(flow, name)(x, 1)
    assert y.shape == ((1 << 31) + 3, 2)
    for row in (-1, (1 << 30) + 1, (1 << 31) - 1, 0):
        assert host(y[row]).tolist() == want
    assert (host(y[-3:-1]) == 0).all() and (host(y[1 << 30]) == 0).all()


@pytest.mark.cuda
@pytest.mark.slow
@pytest.mark.parametrize("name", ["glu", "swiglu"])
def test_halves_of_more_than_two_to_the_30(name):
    """Of an odd size, so that an element is what a thread has."""
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    half = (1 << 30) + 5
    function = getattr(flow.nn.functional, name)
    x = flow.zeros(2 * half, dtype=flow.float16, device="cuda", requires_grad=True)
    places = [0, (1 << 30) - 1, 1 << 30, half - 1]
    with flow.no_grad():
        for k, at in enumerate(places):
            x[at] = k + 1.0
            x[half + at] = 2.0 - k
    y = function(x)
    (dx,) = flow.autograd.grad(y, x, flow.ones_like(y))
    few = flow.stack([x.detach()[i] for i in places + [half + i for i in places]])
    few.requires_grad_()
    few_y = function(few)
    (few_dx,) = flow.autograd.grad(few_y, few, flow.ones_like(few_y))
    assert [y[i].item() for i in places] == few_y.tolist()
    assert [dx[i].item() for i in places + [half + i for i in places]] == few_dx.tolist()


# Views ----------------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("offset", range(1, 9))
def test_any_odd_offset(dtype, offset, device):
    base = tensor(np.random.default_rng(0).standard_normal(9 + 3 * 131), dtype, device)
    x = base[offset : offset + 3 * 131].view(3, 131)
    assert x.data_ptr() == base.data_ptr() + offset * x.itemsize
    check_row(x, dtype)
    # Where a row starts within 16 bytes may decide its last bit on a GPU, and nothing else may.
    alike = x.clone() if device == "cpu" else base.clone()[offset : offset + 3 * 131].view(3, 131)
    assert bits(flow.softmax(x, 1)) == bits(flow.softmax(alike, 1))


@each_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout(dtype, layout, device):
    values = np.random.default_rng(0).standard_normal((6, 35, 10))
    x = LAYOUTS[layout](tensor(values, dtype, device))
    for dim in range(3):
        y = flow.softmax(x, dim)
        assert_close(y, np_softmax(host(x), dim), "softmax", where=layout)
        y = flow.log_softmax(x, dim)
        assert_close(y, np_softmax(host(x), dim, True), "log_softmax", where=layout)


# The same bits --------------------------------------------------------------------------------


@each_dtype
@each_width
def test_the_same_call_gives_the_same_bits(dtype, width, device):
    x = tensor(np.random.default_rng(0).standard_normal((3, width)), dtype, device)
    dy = tensor(np.random.default_rng(1).standard_normal((3, width)), dtype, device)
    x.requires_grad_()

    def run():
        y = flow.softmax(x, 1)
        return bits(y), bits(flow.autograd.grad(y, x, dy)[0])

    assert run() == run()


@each_dtype
@pytest.mark.parametrize("width", [33, 1025, 5000])
def test_a_row_does_not_depend_on_the_others(dtype, width, device):
    values = np.random.default_rng(0).standard_normal((64, width))
    others = np.random.default_rng(1).standard_normal((64, width))
    others[20] = values[20]
    a, b = (flow.softmax(tensor(v, dtype, device), 1) for v in (values, others))
    assert bits(a[20]) == bits(b[20]) and bits(a) != bits(b)


@pytest.mark.parametrize("width", [200, 5000])
def test_the_number_of_threads_does_not_show(width):
    x = tensor(np.random.default_rng(0).standard_normal((64, width)), "float32")
    threads = flow.get_num_threads()
    try:
        seen = set()
        for n in (1, 2, 3):
            flow.set_num_threads(n)
            seen.add((bits(flow.softmax(x, 1)), bits(flow.softmax(x, 0))))
    finally:
        flow.set_num_threads(threads)
    assert len(seen) == 1


# Which dim, which dtype -----------------------------------------------------------------------


@pytest.mark.parametrize("ndim", range(6))
def test_the_dim_that_none_stands_for(ndim, device):
    x = tensor(np.random.default_rng(0).standard_normal([2, 3, 4, 2, 3][:ndim]), "float32", device)
    implied = 0 if ndim in (0, 1, 3) else 1
    for function in (flow.softmax, flow.log_softmax, flow.nn.functional.softmax):
        assert bits(function(x)) == bits(function(x, dim=None)) == bits(function(x, implied))
        for dim in range(-ndim, ndim):
            assert bits(function(x, dim)) == bits(function(x, dim % ndim))


@pytest.mark.parametrize("given", ALL)
@pytest.mark.parametrize("wanted", FLOATS)
def test_dtype_casts_first(given, wanted, device):
    x = tensor([[1, 0, 1], [0, 1, 1]], given, device)
    for name in ("softmax", "log_softmax"):
        function = getattr(flow, name)
        y = function(x, 1, getattr(flow, wanted))
        assert y.dtype.name == wanted
        cast = function(x.to(getattr(flow, wanted)), 1)
        if device == "cuda" and given in HALVES and wanted == "float32":  # another kernel, too
            np.testing.assert_allclose(host(y), host(cast), rtol=1e-6)
        else:
            assert bits(y) == bits(cast)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_integers_are_refused_with_the_dtypes_there_are(dtype, device):
    for name in ("softmax", "log_softmax"):
        with pytest.raises(TypeError) as error:
            getattr(flow, name)(tensor([1, 0], dtype, device), 0)
        assert isinstance(error.value, flow.DTypeError)
        assert str(error.value) == (
            f"{name}(): input has dtype {dtype}, but it must be float16, bfloat16, float32 or "
            "float64"
        )


@each_dtype
def test_every_spelling_is_the_same_function(dtype, device):
    x = tensor(np.random.default_rng(0).standard_normal((4, 7)), dtype, device)
    for name, module in (("softmax", flow.nn.Softmax), ("log_softmax", flow.nn.LogSoftmax)):
        expected = bits(getattr(flow, name)(x, 1))
        assert expected == bits(getattr(x, name)(1)) == bits(getattr(x, name)(dim=-1))
        assert expected == bits(getattr(flow._C, name)(x, 1)) == bits(module(1)(x))
        assert expected == bits(getattr(flow.nn.functional, name)(x, dim=1))


# Promotion ------------------------------------------------------------------------------------


def promoted(a, b):
    """PyTorch's rule for two tensors with dims."""
    if a == b:
        return a
    if {a, b} == set(HALVES):
        return "float32"
    if a in FLOATS and b in FLOATS:
        return max(a, b, key=FLOATS.index)
    for x, y in ((a, b), (b, a)):
        if x in FLOATS or y == "bool":
            return x
    if "uint8" in (a, b):
        other = b if a == "uint8" else a
        return "int16" if other == "int8" else other
    return max(a, b, key=INTEGERS.index)


@pytest.mark.parametrize(("a", "b"), [*itertools.product(ALL, ALL)])
def test_dtypes_promote_as_in_pytorch(a, b, device):
    x, y = tensor([1, 0, 1], a, device), tensor([1, 1, 1], b, device)
    z = x + y
    assert z.dtype.name == promoted(a, b)
    total = host(x).astype(float) + host(y).astype(float)
    assert (host(z) == (total != 0 if z.dtype is flow.bool else total)).all()
    # A 0-dim tensor changes the dtype only where its kind is higher, whatever its size.
    kinds = {"bool": 0} | dict.fromkeys(INTEGERS, 1) | dict.fromkeys(FLOATS, 2)
    assert (x + y[0]).dtype.name == (b if kinds[b] > kinds[a] else a)
    assert (y[0] + x).dtype.name == (b if kinds[b] > kinds[a] else a)


@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_are_weak(dtype, device):
    x = tensor([1, 0], dtype, device)
    assert (x * True).dtype.name == dtype
    assert (x + 1).dtype.name == ("int64" if dtype == "bool" else dtype)
    assert (1.5 * x).dtype.name == (dtype if dtype in FLOATS else "float32")
    assert (x / 2).dtype.name == (dtype if dtype in FLOATS else "float32")


def test_uninitialised_bools_are_bools(device):
    """Any other byte would be neither true nor false to a kernel."""
    junk = flow.full((4096,), 77, dtype=flow.uint8, device=device)
    del junk  # its memory is what comes next
    for x in (flow.empty(4096, dtype=flow.bool, device=device),
              flow.empty_like(flow.ones(4096, device=device), dtype=flow.bool)):  # fmt: skip
        assert x.sum().item() == (x == True).sum().item() == 4096 - (x == False).sum().item()  # noqa: E712
