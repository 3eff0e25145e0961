# SPDX-License-Identifier: Apache-2.0
"""Indexing with tensors, masks, lists and arrays: what NumPy does."""

import array

import numpy as np
import pytest
from drawing import properties
from numerics import flow, host

RNG = np.random.default_rng(2)
X = RNG.standard_normal((3, 4, 5))
MASK = RNG.random((3, 4)) < 0.5
FULL = RNG.random((3, 4, 5)) < 0.3
INDICES = {
    "list": [2, 0, 2],
    "negative": np.array([-1, -3]),
    "matrix": np.array([[0, 1], [2, 2]]),
    "empty": np.array([], np.int64),
    "second": (slice(None), [0, 3, 1]),
    "last": (..., np.array([4, 0])),
    "second, of two dims": (slice(None), np.array([[0, 3, 1], [-1, 0, 0]])),
    "last behind whole dims": (slice(None), slice(None), np.array([4, -5, 4])),
    "first before whole dims": (np.array([2, 0]), slice(None)),
    "pairs": ([0, 1], [3, 2]),
    "broadcast": (np.array([[0], [2]]), np.array([1, 3, 0])),
    "apart": ([0, 2], slice(None), [1, 4]),
    "behind a slice": (slice(1, None), [0, 1], [2, 2]),
    "with an int": (1, [0, 2]),
    "int apart": (slice(None), [0, 2, 1], 3),
    "int far": ([0, 1], slice(None), 2),
    "with None": (None, [0, 2], None),
    "steps": (slice(None, None, 2), slice(1, 4, 2), [0, 0, 4]),
    "mask": MASK,
    "full mask": FULL,
    "mask and slice": (MASK, slice(1, 3)),
    "mask behind": (slice(None), RNG.random(4) < 0.5),
    "no hit": np.zeros(3, bool),
    "True": True,
    "False": False,
    "list of bools": [True, False, True],
    "NumPy's True": np.True_,
    "a truth and a list": (True, [0, 2]),
    "tuple in a tuple": ((0, 2), (3, 1)),
    "tuple alone": ((0, 2),),
    "nested lists": ([[0], [2]], [[1, 3, 0]]),
    "range": range(2),
    "range behind": (slice(None), range(3)),
}  # fmt: skip
with_index = pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)


def as_tensors(index, device):
    """The same index with tensors for arrays."""
    items = index if isinstance(index, tuple) else (index,)
    items = tuple(
        flow.tensor(i, device=device) if isinstance(i, np.ndarray) and i.size else i for i in items
    )
    return items if isinstance(index, tuple) else items[0]


def is_integer(item):
    return isinstance(item, int) and not isinstance(item, bool)


def integers_first(index):
    """The index as two: what its integers take, a view, and the rest of the items."""
    takes = [i for i in index if i is not None and not isinstance(i, bool)]
    taken = tuple(i if is_integer(i) else slice(None) for i in takes)
    return (*taken, ...), tuple(i for i in index if not is_integer(i))


@with_index
def test_getitem(index, device):
    x = flow.tensor(X, device=device)
    for layout, values in ((x, X), (x.transpose(0, 1).contiguous().transpose(0, 1), X)):
        got = layout[as_tensors(index, device)]
        assert got.shape == values[index].shape and got.device.type == device
        np.testing.assert_array_equal(host(got), values[index])


@pytest.mark.parametrize(
    "index",
    [(0, slice(None), [1, 4, 1]), (-1, slice(1, 3), np.array([[0], [2]])),
     (2, None, [0, 3]), ([0, 2], None, 1)],
)  # fmt: skip
def test_an_integer_takes_its_dim_before_the_places_are_looked_up(index, device):
    # As in PyTorch: x[0, :, places] is x[0][:, places]; NumPy has the dims of places in front.
    taken, rest = integers_first(index)
    expected = X[taken][rest]
    x = flow.tensor(X, device=device)
    got = x[as_tensors(index, device)]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(host(got), expected)
    value, changed = RNG.standard_normal(expected.shape), X.copy()
    x[as_tensors(index, device)] = flow.tensor(value)
    changed[taken][rest] = value
    np.testing.assert_array_equal(host(x), changed)


@with_index
def test_setitem(index, device):
    for value in (7.0, "random"):
        expected, x = X.copy(), flow.tensor(X, device=device)
        given = RNG.standard_normal(X[index].shape) if value == "random" else value
        # Of places named twice NumPy keeps the last, and so do we.
        expected[index] = given
        before = x.data_ptr()
        x[as_tensors(index, device)] = flow.tensor(given) if value == "random" else given
        np.testing.assert_array_equal(host(x), expected)
        assert x.data_ptr() == before


@with_index
def test_gradients(index):
    x = flow.tensor(X, requires_grad=True)
    weight = RNG.standard_normal(X[index].shape)
    (x[as_tensors(index, "cpu")] * flow.tensor(weight)).sum().backward()
    expected = np.zeros_like(X)
    np.add.at(expected, index, weight)
    np.testing.assert_allclose(host(x.grad), expected, atol=1e-12)

    base, value = (flow.tensor(a, requires_grad=True) for a in (X, np.array(2.0)))
    y = base * 2
    y[as_tensors(index, "cpu")] = value * 3
    y.sum().backward()
    kept = np.full_like(X, 2.0)
    kept[index] = 0
    np.testing.assert_array_equal(host(base.grad), kept)


def draw_item(draw, n):
    """An item for a dim of size n, and how many dims it takes."""
    kind = draw.choice(["list", "list", "matrix", "mask", "int", "slice", "None", "truth"])
    if kind == "None":
        return None, 0
    if kind == "truth":
        return draw.choice([True, False]), 0
    if kind == "mask":
        return np.array([draw.integer(0, 1) == 1 for _ in range(n)], bool), 1
    if kind == "slice" or n == 0:
        return slice(draw.choice([None, 1]), None, draw.choice([None, 2])), 1
    if kind == "int":
        return draw.integer(-n, n - 1), 1
    values = [draw.integer(-n, n - 1) for _ in range(2)]
    return (np.array(values).reshape(2, 1) if kind == "matrix" else values), 1


@properties(300)
def test_any_index_is_numpys_after_its_integers(draw):
    shape = [draw.integer(0, 4) for _ in range(draw.integer(1, 4))]
    a = np.arange(float(np.prod(shape))).reshape(shape)
    x = flow.tensor(np.ascontiguousarray(a.T)).permute(list(range(a.ndim))[::-1])
    items, dim = [], 0
    while dim < len(shape) and len(items) < 6:
        item, taken = draw_item(draw, shape[dim])
        items, dim = [*items, item], dim + taken
    index = tuple(items)
    taken, rest = integers_first(index)
    try:
        expected = a[taken][rest]
    except IndexError:
        with pytest.raises(IndexError):
            x[index]
        return
    np.testing.assert_array_equal(host(x[index]), expected)
    value = -1 - np.arange(float(expected.size)).reshape(expected.shape)
    a[taken][rest] = value
    x[index] = flow.tensor(value)
    np.testing.assert_array_equal(host(x), a)


def test_empty_masks_are_masks():
    for shape, index in (
        ((2, 0), np.zeros((2, 0), bool)),
        ((2, 0, 3), (slice(None), np.zeros(0, bool))),
        ((0, 3), np.zeros(0, bool)),
    ):
        x = flow.zeros(shape)
        assert x[index].shape == np.zeros(shape)[index].shape
        x[index] = 1


def test_setitem_of_a_view_and_of_rows():
    x, expected = flow.tensor(X), X.copy()
    x[1][flow.tensor([0, 2])] = 0
    expected[1][[0, 2]] = 0
    x[:, ::2][flow.tensor(MASK[:, ::2])] = -1
    expected[:, ::2][MASK[:, ::2]] = -1
    x[[0, 2]] = flow.arange(5.0)
    expected[[0, 2]] = np.arange(5.0)
    np.testing.assert_array_equal(host(x), expected)


def test_setitem_changes_the_memory_of_any_layout(device):
    """Places of one dim, or of dims that lie behind each other, are written where they lie."""
    for order in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        x, expected = flow.tensor(X, device=device), X.copy()
        for index in ([2, 0], (slice(None), [1, 2]), ([2, 0], [1, 2]), ([0, 1], slice(1), [1, 0])):
            x.permute(order)[index] = 7
            expected.transpose(order)[index] = 7
            np.testing.assert_array_equal(host(x), expected, err_msg=f"{order}, {index}")


def test_index_functions():
    x, places = flow.tensor(X), flow.tensor([2, 0])
    added, source = X.copy(), RNG.standard_normal((3, 2, 5))
    np.add.at(added, (slice(None), [1, 1]), 2 * source)
    got = x.index_add(1, flow.tensor([1, 1]), flow.tensor(source), alpha=2)
    np.testing.assert_allclose(host(got), added, rtol=1e-14)
    copied, filled = X.copy(), X.copy()
    copied[[2, 0]] = X[:2]
    filled[..., [2, 0]] = 5
    np.testing.assert_array_equal(host(x.index_copy(0, places, x[:2])), copied)
    np.testing.assert_array_equal(host(x.index_fill(-1, places, 5)), filled)
    put = X.copy()
    np.add.at(put, ([2, 2], [1, 1]), 3.0)
    pairs = (flow.tensor([2, 2]), flow.tensor([1, 1]))
    got = x.index_put(pairs, flow.tensor(3.0), accumulate=True)
    np.testing.assert_allclose(host(got), put, rtol=1e-14)
    np.testing.assert_array_equal(host(x), X)
    assert x.index_put_(pairs, flow.tensor(1.0)) is x and x[2, 1].tolist() == [1.0] * 5

    order = np.argsort(X, axis=1)
    got = flow.take_along_dim(flow.tensor(X), flow.tensor(order), 1)
    np.testing.assert_array_equal(host(got), np.take_along_axis(X, order, 1))
    first = flow.take_along_dim(flow.tensor(X), flow.tensor(order[:1, :2]), 1)
    np.testing.assert_array_equal(host(first), np.take_along_axis(X, order[:1, :2], 1))
    with pytest.raises(IndexError, match=r"index_add\(\): dim 3 is out of range \[-3, 2\]"):
        x.index_add(3, places, x)


@with_index
def test_index_put_of_any_index(index):
    items = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(i, np.ndarray) or i == slice(None) for i in items):
        return  # it takes tensors, and None for a whole dim
    places = tuple(None if isinstance(i, slice) else flow.tensor(i) for i in items)
    value = RNG.standard_normal(X[index].shape)
    written, added = X.copy(), X.copy()
    written[index] = value
    np.add.at(added, index, value)
    x, given = flow.tensor(X), flow.tensor(value)
    np.testing.assert_array_equal(host(x.index_put(places, given)), written)
    np.testing.assert_allclose(host(x.index_put(places, given, accumulate=True)), added, rtol=1e-14)
    strided = x.transpose(0, 2).contiguous().transpose(0, 2)
    assert strided.index_put_(places, given, True) is strided
    np.testing.assert_allclose(host(strided), added, rtol=1e-14)


def test_places_outside_a_dim_that_is_written_to():
    x = flow.tensor(X)
    for index, value in ((flow.tensor([0, 3]), 1.0), ((slice(None), flow.tensor([-5])), 1.0)):
        with pytest.raises(IndexError, match=r"setitem\(\): index (3|-5) is out of range"):
            x[index] = value
    with pytest.raises(IndexError, match=r"index\(\): index 4 .* for dim 1 of size 4"):
        x[:, flow.tensor([4])]
    with pytest.raises(IndexError, match=r"index_put_\(\): index 5 is out of range"):
        x.index_put_((flow.tensor([0]), flow.tensor([5])), flow.tensor(1.0), accumulate=True)
    np.testing.assert_array_equal(host(x), X)


# Rows of up to 16 elements are summed in a copy of float32 where there are at most 4 places for
# each; others by their places, 512 columns at a time.
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("inner", [1, 2, 16, 17, 512, 513])
@pytest.mark.parametrize(("size", "count"), [(5, 3), (12, 3), (13, 3), (3, 700)])
def test_sums_of_16_bits_are_those_of_float32_rounded_once(size, count, inner, dtype):
    kind = getattr(flow, dtype)
    x = flow.tensor(RNG.standard_normal((2, size, inner))).to(kind)
    rows = flow.tensor(RNG.standard_normal((2, count, inner))).to(kind)
    index = flow.tensor(RNG.integers(-size, size, count))
    for given in (rows, rows.transpose(1, 2).contiguous().transpose(1, 2)):
        got = x.index_add(1, index, given, alpha=0.5)
        wide = x.float().index_add(1, index, given.float(), alpha=0.5)
        np.testing.assert_array_equal(host(got), host(wide.to(kind)))
    line = flow.tensor(RNG.integers(0, size, count))
    got = x[0, :, 0].scatter_add(0, line, rows[0, :, 0])
    wide = x[0, :, 0].float().scatter_add(0, line, rows[0, :, 0].float())
    np.testing.assert_array_equal(host(got), host(wide.to(kind)))


def test_where_of_a_condition_alone():
    for values in (X > 0, MASK, np.array(True)):
        got = flow.where(flow.tensor(values))
        for mine, numpys in zip(got, np.nonzero(np.atleast_1d(values)), strict=True):
            assert mine.tolist() == numpys.tolist()
    assert flow.where(flow.tensor(MASK), 1.0, other=0.0).sum().item() == MASK.sum()
    x = flow.tensor(X)
    np.testing.assert_array_equal(host(x.where(x > 0, 0)), np.where(X > 0, X, 0))


def test_places_of_32_bits(device):
    x, wide = flow.tensor(X, device=device), flow.tensor(X.argmax(1, keepdims=True), device=device)
    narrow = wide.int()
    assert flow.equal(x.gather(1, narrow), x.gather(1, wide))
    assert flow.equal(x.scatter(1, narrow, 0), x.scatter(1, wide, 0))
    ones = flow.ones(wide.shape, dtype=flow.float64, device=device)
    assert flow.equal(x.scatter_add(1, narrow, ones), x.scatter_add(1, wide, ones))


def test_places_as_a_tuple():
    for got, expected in zip(flow.tensor(MASK).nonzero(as_tuple=True), MASK.nonzero(), strict=True):
        np.testing.assert_array_equal(host(got), expected)
    assert [t.tolist() for t in flow.nonzero(flow.tensor(3), as_tuple=True)] == [[0]]
    assert flow.argwhere(flow.tensor([0, 4])).tolist() == [[1]]


def test_a_number_leaves_the_other_elements_as_they_are():
    x = flow.tensor([2**53 + 1, 5])
    x[flow.tensor([False, True])] = 1.5
    assert x.tolist() == [2**53 + 1, 1]
    x[flow.tensor([False, True])] = flow.tensor([2.5])
    assert x.tolist() == [2**53 + 1, 2]


@pytest.mark.parametrize("x", [0.0, 3.0])
def test_nonzero_without_dims(x):
    assert flow.nonzero(flow.tensor(x)).shape == (int(x != 0), 0)


def test_errors():
    x = flow.tensor(X)
    for index, text in (
        (flow.tensor([3]), "index 3 is out of range [-3, 2] for dim 0 of size 3"),
        ((slice(None), [0, -5]), "index -5 is out of range [-4, 3] for dim 1 of size 4"),
        (flow.tensor([0.5]), "an index must be of integers or bool, not of float32"),
        (flow.ones(3, 3).bool(), "a mask of shape [3, 3] does not go with dims [3, 4]"),
        (([0], [0], [0], [0]), "too many indices: 4 for a tensor of shape [3, 4, 5]"),
    ):
        with pytest.raises(IndexError) as raised:
            x[index]
        assert text in str(raised.value)
    with pytest.raises(TypeError, match="not with str"):
        x["a"]
    with pytest.raises(IndexError, match="do not go together"):
        x[[0, 1], [0, 1, 2]]
    for index, text in (
        ({}, "not with dict"),
        ([slice(0, 2), 1], "of integers or bool"),
        ([[0, 1], [2]], "of integers or bool"),
    ):
        with pytest.raises(IndexError, match=text):
            x[index]
    with pytest.raises(flow.ShapeError):
        x[[0, 1]] = flow.zeros(3)
    np.testing.assert_array_equal(host(x), X)


def test_places_that_are_numbers():
    x = flow.zeros(4, 3)
    x.index_put_((flow.tensor(1),), flow.tensor(5.0))
    assert host(x).sum(1).tolist() == [0, 15, 0, 0]
    assert host(x.index_add(0, flow.tensor(2), flow.ones(1, 3))).sum(1).tolist() == [0, 15, 3, 0]
    assert host(x.index_fill(0, flow.tensor(1), 2.0)).sum(1).tolist() == [0, 6, 0, 0]
    assert flow.tensor(3.0).index_fill(0, flow.tensor([0]), 5.0).item() == 5


def test_an_index_lies_on_the_cpu_or_beside_the_tensor():
    """The meta device stands for a GPU."""
    x, at = flow.tensor(X), flow.tensor([0, 2])
    text = r"either on cpu or on the same device as the indexed tensor \(cpu\), not on meta"
    for far in (at.to("meta"), flow.tensor(MASK).to("meta"), flow.tensor(FULL).to("meta")):
        for index in (far, (far, None), (..., far)):
            with pytest.raises(RuntimeError, match=text):
                x[index]
            with pytest.raises(RuntimeError, match=text):
                x[index] = 1.0
        with pytest.raises(RuntimeError, match=text):
            x.index_put_((far,), flow.tensor(0.0))
    assert x.to("meta")[at].shape == (2, 4, 5)
    np.testing.assert_array_equal(host(x), X)


def test_tensors_of_several_devices():
    x, at = flow.zeros(3), flow.tensor([0])
    for name, call in (
        ("index_add", lambda: x.index_add(0, at.to("meta"), flow.ones(1))),
        ("index_add", lambda: x.index_add(0, at, flow.ones(1).to("meta"))),
        ("index_copy_", lambda: x.index_copy_(0, at, flow.ones(1).to("meta"))),
        ("masked_select", lambda: x.masked_select((x == 0).to("meta"))),
        ("masked_select", lambda: x.to("meta").masked_select(x == 0)),
    ):
        with pytest.raises(RuntimeError, match=rf"^{name}\(\): all tensors must be on one device"):
            call()


@pytest.mark.cuda
def test_an_index_on_a_gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    x, at = flow.arange(3.0), flow.tensor([2, 0])
    assert x.cuda()[at].tolist() == x.cuda()[at.cuda()].tolist() == [2, 0]
    assert x.cuda()[x > 0].tolist() == [1, 2]
    for index in (at.cuda(), (x > 0).cuda()):
        with pytest.raises(RuntimeError, match=r"indexed tensor \(cpu\), not on cuda:0"):
            x[index]


class ByDLPack:
    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **how):
        return self.data.__dlpack__()

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class ByInterface:
    def __init__(self, data):
        self.data, self.__array_interface__ = data, data.__array_interface__


class ByArray:
    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return self.data


ANYONES = {"dlpack": ByDLPack, "interface": ByInterface, "array": ByArray, "buffer": memoryview,
           "array.array": lambda data: array.array(data.dtype.char, data.tolist())}  # fmt: skip


@pytest.mark.parametrize("protocol", ANYONES)
@pytest.mark.parametrize("places", [[0, 2], [-1], [[0], [1]], [], [True, False, True]], ids=str)
def test_arrays_of_other_libraries(places, protocol, device):
    data = np.array(places, None if places else np.int64)
    if protocol == "array.array" and (data.ndim > 1 or data.dtype == bool):
        return  # there are none
    given, x = ANYONES[protocol](data), flow.tensor(X, device=device)
    assert np.array_equal(host(x[given]), X[data])
    assert np.array_equal(host(x[given, 1:]), X[data, 1:])
    expected = X.copy()
    x[given], expected[data] = -1, -1
    assert np.array_equal(host(x), expected)


def test_text_and_fractions_are_no_places():
    x = flow.tensor(X)
    for index in ("01", b"01", bytearray(b"01"), object()):
        with pytest.raises((IndexError, TypeError), match="can be indexed with"):
            x[index]
    for protocol in ANYONES.values():
        with pytest.raises(IndexError, match="integers or bool"):
            x[protocol(np.array([0.0, 1.0]))]


# On CUDA rows of one index are summed by their sorted places from 4096 on, lines from 32768 on;
# extremes of elements of 4 bytes and more are exchanged in memory from there on.
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("count", "inner"),
    [(4095, 3), (4096, 2), (4096, 3), (4097, 64), (32767, 1), (32768, 1), (32769, 1)],
)
def test_rows_that_share_an_index(count, inner, dtype, device):
    size = 40
    index = RNG.integers(0, size, count)
    x = RNG.integers(-9, 9, (size, inner)).astype(dtype)
    rows = RNG.integers(-9, 9, (count, inner)).astype(dtype)
    shared = flow.tensor(index, device=device)[:, None].expand(count, inner)
    of_rows = flow.tensor(rows, device=device)
    for name, ufunc in (("sum", np.add), ("amax", np.maximum), ("amin", np.minimum)):
        want, values = x.copy(), rows
        if dtype.startswith("float") and name != "sum":
            want[[1, 3]], values = np.nan, rows.copy()
            values[[5, count - 1], 0] = np.nan
        given = of_rows if values is rows else flow.tensor(values, device=device)
        start = flow.tensor(want, device=device)
        ufunc.at(want, index, values)
        got = [start.scatter_reduce(0, shared, given, name) for _ in range(2)]
        np.testing.assert_array_equal(host(got[0]), want)
        np.testing.assert_array_equal(host(got[1]), want)
        behind = flow.zeros(size, inner + 1, dtype=start.dtype, device=device)[:, 1:].copy_(start)
        behind.scatter_reduce_(0, shared, given, name)
        np.testing.assert_array_equal(host(behind), want)


# Of zeros of both signs the extreme one stays on CUDA, whichever comes first.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_zeros_in_many_rows(dtype, device):
    zeros = np.where(RNG.random(2**16) < 0.5, 0.0, -0.0).astype(dtype)
    index = flow.zeros(2**16, dtype=flow.int64, device=device)
    for name in ("amax", "amin"):
        start = flow.zeros(1, dtype=getattr(flow, dtype), device=device)
        got = host(start.scatter_reduce(0, index, flow.tensor(zeros, device=device), name))
        assert got[0] == 0
        if device == "cuda":
            assert np.signbit(got[0]) == (name == "amin")


# On CUDA neighbours that share a place are read in words of 16 bytes, where they are whole ones.
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("inner", [1, 2, 4, 8, 16, 24, 100])
@pytest.mark.parametrize("offset", [0, 1, 16])
def test_gather_of_rows(offset, inner, dtype, device):
    x = RNG.integers(-99, 99, (3, 7, inner + offset)).astype(dtype)
    index = RNG.integers(0, 7, (3, 5))
    given = flow.tensor(x, device=device)[..., offset:]
    places = flow.tensor(index, device=device)[:, :, None].expand(3, 5, inner)
    want = np.take_along_axis(x[..., offset:], index[:, :, None], 1)
    np.testing.assert_array_equal(host(given.gather(1, places)), want)
    if device == "cuda":
        got = host(given.gather(1, places + 3))
        beyond = (index >= 4)[:, :, None] & np.ones(inner, bool)
        nothing = got != got if dtype.startswith("float") else got == 0
        assert nothing[beyond].all()


FILLS = {
    "number": lambda x: 7,
    "tensor": lambda x: flow.tensor(7.0, device=x.device),
    "element": lambda x: x.reshape(-1)[-1],
}
LAYOUTS = {
    "dense": lambda x: x,
    "behind": lambda x: x.reshape(-1)[3:].view(-1, 3),
    "transposed": lambda x: x.transpose(0, 1),
    "one": lambda x: x[1, 1],
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_fills_where_a_mask_holds(dtype, layout, fill, device):
    """In place, in the tensor's own memory; the mask or the number may lie in that, too."""
    values = RNG.integers(0, 2 if dtype == "bool" else 9, (6, 6)).astype(dtype)

    def made():
        x = LAYOUTS[layout](flow.tensor(values, device=device))
        return x, host(x).copy(), FILLS[fill](x)

    x, before, number = made()
    masks = {"other": flow.tensor(RNG.random(before.shape) < 0.5, device=device)}
    if before.ndim == 2:
        masks["row"] = masks["other"][:1]
    for mask in masks.values():
        x, before, number = made()
        held = host(number) if isinstance(number, flow.Tensor) else number
        want = np.where(host(mask), np.asarray(held).astype(dtype), before)
        assert x.masked_fill_(mask, number) is x
        np.testing.assert_array_equal(host(x), want)
        if mask.shape == x.shape and x.ndim:
            x, before, number = made()
            version = x._version
            x[mask] = number
            np.testing.assert_array_equal(host(x), want)
            assert x._version > version
    if dtype == "bool" and before.ndim == 2 and before.shape[0] == before.shape[1]:
        x, before, number = made()
        x.masked_fill_(x.transpose(0, 1), False)
        np.testing.assert_array_equal(host(x), before & ~before.T)


def test_fills_with_a_gradient(device):
    x = flow.tensor(X, device=device, requires_grad=True)
    number = flow.tensor(2.0, dtype=flow.float64, device=device, requires_grad=True)
    mask = flow.tensor(FULL, device=device)
    for write in (lambda y: y.masked_fill_(mask, number), lambda y: y.__setitem__(mask, number)):
        x.grad = number.grad = None
        y = x * 2
        write(y)
        (y * y).sum().backward()
        np.testing.assert_allclose(host(x.grad), np.where(FULL, 0, 8 * X))
        assert host(number.grad) == pytest.approx(4 * FULL.sum())
    plain = flow.zeros(3, 4, 5, dtype=flow.float64, device=device)
    plain.masked_fill_(mask, number)
    assert plain.requires_grad
    with pytest.raises(RuntimeError):
        flow.zeros(1, device=device).expand(3).masked_fill_(flow.ones(3, device=device) > 0, 1)
