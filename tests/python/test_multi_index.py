# SPDX-License-Identifier: Apache-2.0
"""``x[i, j]``: indices of several dims, joined to places of these dims flattened by one op.

A launch takes four indices, a thread of the CPU some 32,768 places, 512 at a time.
"""

import numpy as np
import pytest
from numerics import bits, flow, host
from numerics import tensor as of

ext = flow._oneflow_lite
RNG = np.random.default_rng(7)


def indices_of(shape, count, dtype=np.int64):
    """For the first `count` dims of arrays of a shape: either half of each dim is counted from."""
    return lambda *at: [RNG.integers(-n, n, at, dtype) for n in shape[:count]]


def tensors(arrays, device):
    return tuple(flow.tensor(a, device=device) for a in arrays)


def ops_of(call):
    return [name for name, _ in ext.record_ops(call)]


@pytest.mark.parametrize("n", [1, 511, 513, 40_000])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16])
def test_pairs(n, dtype, device):
    x = RNG.standard_normal((7, 11))
    at = indices_of(x.shape, 2, dtype)(n)
    got = flow.tensor(x, device=device)[tensors(at, device)]
    np.testing.assert_array_equal(host(got), x[tuple(at)])


@pytest.mark.parametrize("count", range(1, 10))
def test_any_number_of_dims(count, device):
    shape = (3, 2, 3, 2, 1, 3, 2, 2, 3)
    x = RNG.integers(0, 1000, shape)
    at = indices_of(shape, count)(4, 5)
    t = flow.tensor(x, device=device)
    np.testing.assert_array_equal(host(t[tensors(at, device)]), x[tuple(at)])
    t[tensors(at, device)] = -1
    x[tuple(at)] = -1
    np.testing.assert_array_equal(host(t), x)


@pytest.mark.parametrize("shapes", [((5, 1), (1, 7)), ((4, 1, 3), (6, 1)), ((1,), (600,)),
                                    ((0,), (1,)), ((3, 0), (1, 1))], ids=str)  # fmt: skip
def test_broadcast(shapes, device):
    x = RNG.standard_normal((6, 8, 2))
    at = [RNG.integers(-n, n, s) for n, s in zip(x.shape, shapes, strict=False)]
    got = flow.tensor(x, device=device)[tensors(at, device)]
    np.testing.assert_array_equal(host(got), x[tuple(at)])


def test_indices_of_any_layout(device):
    x = RNG.standard_normal((6, 8))
    i, j = indices_of(x.shape, 2)(40, 30)
    of_i, of_j = flow.tensor(i, device=device).t(), flow.tensor(j, device=device)[::2].t()
    of_i = of_i[:, ::2]
    got = flow.tensor(x, device=device)[of_i, of_j]
    np.testing.assert_array_equal(host(got), x[i.T[:, ::2], j[::2].T])
    row = flow.tensor(i[0], device=device).expand(5, 30)
    got = flow.tensor(x, device=device)[row, flow.tensor(j[:5], device=device)]
    np.testing.assert_array_equal(host(got), x[i[0], j[:5]])


@pytest.mark.parametrize("accumulate", [False, True])
def test_writing(accumulate, device):
    x, source = RNG.integers(0, 99, (9, 10, 3)), RNG.integers(0, 99, (50, 3))
    at = indices_of(x.shape, 2)(50)
    t = flow.tensor(x, device=device)
    t.index_put_(tensors(at, device), flow.tensor(source, device=device), accumulate)
    if accumulate:
        np.add.at(x, tuple(at), source)
    else:
        x[tuple(at)] = source
    np.testing.assert_array_equal(host(t), x)


def test_one_op_joins_them():
    x, i, j = flow.randn(5, 6), flow.tensor([0, 1]), flow.tensor([2, -1])
    computing = {"ravel_multi_index", "index_select", "index_copy_", "index_add_"}
    got = ops_of(lambda: x[i, j])
    assert [name for name in got if name in computing] == ["ravel_multi_index", "index_select"]
    assert len(got) <= 5, got  # the others are views
    got = ops_of(lambda: x.index_put_((i, j), flow.zeros(2), accumulate=True))
    assert got.count("ravel_multi_index") == 1 and "lt" not in got and "mul" not in got


def test_gradients_of_both_orders(device):
    values = RNG.standard_normal((4, 5))
    at = [np.array([0, 3, -1, 3]), np.array([1, -2, 4, 3])]  # a place twice
    x = flow.tensor(values, device=device, requires_grad=True)
    y = x[tensors(at, device)]
    weight = flow.tensor([1.0, 2.0, 3.0, 4.0], dtype=flow.float64, device=device)
    (dx,) = flow.autograd.grad((y**3 * weight).sum(), [x], create_graph=True)
    wanted = np.zeros_like(values)
    np.add.at(wanted, tuple(at), 3 * values[tuple(at)] ** 2 * host(weight))
    np.testing.assert_allclose(host(dx), wanted, rtol=1e-12)
    (second,) = flow.autograd.grad(dx.sum(), [x])
    wanted = np.zeros_like(values)
    np.add.at(wanted, tuple(at), 6 * values[tuple(at)] * host(weight))
    np.testing.assert_allclose(host(second), wanted, rtol=1e-12)


def test_meta_tensors():
    x = flow.empty(4, 5, 6, device="meta")
    i = flow.empty(7, 1, dtype=flow.int64, device="meta")
    assert x[i, i.to("meta")].shape == (7, 1, 6)
    assert x[i, [0, 1]].shape == (7, 2, 6)
    with pytest.raises(IndexError, match=r"index 5 is out of range \[-5, 4\] for dim 1 of size 5"):
        x[i, [0, 5]]


def both(*lists):
    return tuple(flow.tensor(v) for v in lists)


def test_a_place_outside_names_its_dim():
    x = flow.zeros(3, 4, 5)
    many = np.zeros(40_000, np.int64)
    many[[33_000, 39_000]] = 4, 9
    for index, text in (
        (both([0, 3], [0, 0]), r"index 3 is out of range \[-3, 2\] for dim 0 of size 3"),
        (both([0, 0], [-5, 9]), r"index -5 is out of range \[-4, 3\] for dim 1 of size 4"),
        ((slice(None), *both([0], [5])), r"index 5 is out of range \[-5, 4\] for dim 2 of size 5"),
        (([0], slice(None), [-6]), r"index -6 is out of range \[-5, 4\] for dim 2 of size 5"),
        (both([0], [0], [2**62]), r"index 4611686018427387904 is out of range .* for dim 2"),
        (both(many, many), r"index 4 is out of range \[-3, 2\] for dim 0 of size 3"),
    ):
        with pytest.raises(IndexError, match=r"^index\(\): " + text):
            x[index]
        with pytest.raises(IndexError, match=r"^setitem\(\): " + text):
            x[index] = 1
    assert host(x).sum() == 0


def test_indices_that_do_not_go_together():
    x = flow.zeros(3, 4)
    with pytest.raises(IndexError, match=r"indices of shapes .* do not go together"):
        x[flow.tensor([0, 1]), flow.tensor([0, 1, 2])]
    with pytest.raises(IndexError, match="too many indices: 3"):
        x[both([0], [0], [0])]


def test_a_dim_without_elements_has_no_places():
    x = flow.zeros(3, 0, 2)
    none = flow.tensor([], dtype=flow.int64)
    assert x[none, none].shape == (0, 2)
    with pytest.raises(IndexError, match=r"index 0 is out of range \[0, -1\] for dim 1 of size 0"):
        x[both([0], [0])]


def test_places_outside_on_a_gpu_meet_nothing(device):
    if device == "cpu":
        pytest.skip("the CPU raises")
    x = of(RNG.standard_normal((3, 4)), "float32", device)
    # Flattened, (0, 7) would be (1, 3), and (-4, 1) counted from the end.
    i, j = tensors([[0, -4, 1, 3], [7, 1, 2, 0]], device)
    got = host(x[i, j])
    assert np.isnan(got[[0, 1, 3]]).all() and got[2] == host(x)[1, 2]
    before = bits(x)
    y = x.clone()
    y[i, j] = flow.tensor([9.0, 9.0, float(host(x)[1, 2]), 9.0], device=device)
    assert bits(y) == before
    y.index_put_((i, j), flow.tensor([9.0, 9.0, 0.0, 9.0], device=device), accumulate=True)
    assert bits(y) == before


@pytest.mark.parametrize("arguments", [((3,), (0,)), ((3, 4), (0,)), ((3, 4, 5), (0, 1, 2))])
def test_the_op_wants_a_size_for_each_index(arguments):
    with pytest.raises(ValueError, match=r"ravel_multi_index\(\): sizes"):
        flow.ops.ravel_multi_index(list(both([0], [0])), *map(list, arguments))
    with pytest.raises(flow.DTypeError, match="index 1 has dtype int32, expected int64"):
        places = [flow.tensor([0]), flow.tensor([0], dtype=flow.int32)]
        flow.ops.ravel_multi_index(places, [3, 4], [0, 1])


@pytest.mark.parametrize(
    "value", [5, 2.5, [[1], [2]], np.arange(6.0).reshape(1, 1, 2, 3)], ids=repr
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "float64"])
def test_values_are_broadcast_and_cast(value, dtype, device):
    x = np.zeros((4, 5, 3), dtype)
    at = indices_of(x.shape, 2)(2)
    t = flow.tensor(x, device=device)
    value = flow.tensor(value) if isinstance(value, np.ndarray) else value
    t[tensors(at, device)] = value
    x[tuple(at)] = np.reshape(host(value), (2, 3)) if isinstance(value, flow.Tensor) else value
    np.testing.assert_array_equal(host(t), x)


def test_assignment_is_recorded(device):
    leaf = flow.zeros(3, 4, 2, device=device, requires_grad=True)
    value = flow.ones(3, 2, device=device, requires_grad=True)
    x = leaf * 1
    at = tensors(([0, -1, 1], [3, 0, 0]), device)
    x[at] = value * 2
    (x * x).sum().backward()
    assert host(value.grad).tolist() == [[8, 8]] * 3 and host(leaf.grad).sum() == 0
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[at] = value
    with pytest.raises(flow.ShapeError, match=r"^setitem\(\)"):
        x[at] = flow.zeros(4, 2, device=device)
    view = flow.zeros(5, 4, device=device)
    view.t()[at] = 1.0  # strided
    assert host(view).sum() == 3 and host(view)[3, 0] == 1


WRITES = {
    "x[i, j] = v": lambda x, i, j, v: x.__setitem__((i, j), v),
    "index_put_": lambda x, i, j, v: x.index_put_((i, j), v),
    "scatter_": lambda x, i, j, v: x.view(-1).scatter_(0, i * 3 + j, v),
    "index_copy_": lambda x, i, j, v: x.view(-1).index_copy_(0, i * 3 + j, v),
    "x[i] = v": lambda x, i, j, v: x.view(-1).__setitem__(i * 3 + j, v),
}
SUMS = {
    "index_add_": lambda x, i, j, v: x.view(-1).index_add_(0, i * 3 + j, v),
    "scatter_add_": lambda x, i, j, v: x.view(-1).scatter_add_(0, i * 3 + j, v),
    "accumulate": lambda x, i, j, v: x.index_put_((i, j), v, accumulate=True),
}


@pytest.mark.parametrize("name", [*WRITES, *SUMS])
def test_what_is_written_may_share_memory(name, device):
    """As if it had been copied before."""
    i, j = (flow.tensor(t, device=device) for t in ([0, 0, 0, 1, 1, 1], [1, 2, 0, 1, 2, 0]))
    x = flow.arange(6.0, device=device).view(2, 3)
    ({**WRITES, **SUMS})[name](x, i, j, x.view(6))
    expected = [2, 0, 1, 5, 3, 4] if name in WRITES else [2, 1, 3, 8, 7, 9]
    assert host(x).ravel().tolist() == expected
    places = flow.tensor([2, 0, 1], device=device)  # of integers: the places themselves
    flat = places.view(-1)
    flat.index_copy_(0, places, flow.tensor([7, 8, 9], device=device))
    assert host(places).tolist() == [8, 9, 7]


# Places among slices, ints, None and ...: neighbours stay where they are, others come first.
@pytest.mark.parametrize("among", [
    lambda i, j: (slice(None), i, j), lambda i, j: (i, slice(None), j),
    lambda i, j: (..., i, j), lambda i, j: (None, i, slice(1, 3), j),
    lambda i, j: (0, i, j), lambda i, j: (i, j, ..., None), lambda i, j: (i, slice(0, 5, 2), j, -1),
    lambda i, j: (slice(None), slice(1, 4), i, j), lambda i, j: (j, slice(None), slice(None), i),
])  # fmt: skip
@pytest.mark.parametrize("shapes", [((4,), (4,)), ((3, 1), (2,)), ((1,), (2, 3)), ((0,), (1,))],
                         ids=str)  # fmt: skip
def test_places_among_slices(among, shapes, device):
    x = RNG.standard_normal((5, 6, 5, 6))
    for layout in (x, x.transpose(2, 1, 0, 3)):
        index = among(*(RNG.integers(-4, 4, s) for s in shapes))
        at = tuple(flow.tensor(i, device=device) if isinstance(i, np.ndarray) else i for i in index)
        t = flow.tensor(layout.copy(), device=device)
        if layout is not x:
            t = flow.tensor(x, device=device).permute(2, 1, 0, 3)
        # An int takes its dim away before, as in PyTorch.
        base, rest = layout, list(index)
        if 0 in [i for i in index if isinstance(i, int)] and index[0] == 0:
            base, rest = layout[0], rest[1:]
        if isinstance(index[-1], int):
            base, rest = layout[..., index[-1]], rest[:-1]
        got = t[at]
        np.testing.assert_array_equal(host(got), base[tuple(rest)])


def test_gradients_of_places_among_slices(device):
    x = flow.arange(60.0, device=device).reshape(3, 4, 5).requires_grad_()
    i, j = flow.tensor([0, 0, 2], device=device), flow.tensor([1, 1, -1], device=device)
    for index in ((slice(None), i, j), (i, slice(None), j), (i[:, None], j)):
        x.grad = None
        x[index].sum().backward()
        want = np.zeros((3, 4, 5))
        at = tuple(k.cpu().numpy() if isinstance(k, flow.Tensor) else k for k in index)
        np.add.at(want, at, 1)
        np.testing.assert_array_equal(host(x.grad), want)


def test_writing_at_places_that_broadcast(device):
    x = RNG.standard_normal((5, 6, 2))
    i, j = RNG.integers(-5, 5, (3, 1)), RNG.integers(-6, 6, 4)
    for value in (1.5, RNG.standard_normal((3, 4, 2)), RNG.standard_normal((4, 1))):
        t, want = flow.tensor(x, device=device), x.copy()
        t[tensors((i, j), device)] = flow.tensor(value, device=device)
        want[i, j] = value
        np.testing.assert_array_equal(host(t), want)


def test_places_among_slices_are_looked_at():
    x = flow.zeros(3, 4, 5)
    i, far = flow.tensor([0, 1]), flow.tensor([0, 7])
    for index, dim in (((slice(None), i, far), 2), ((far, slice(None), i), 0), ((i, far), 1)):
        with pytest.raises(IndexError, match=f"index 7 is out of range.*dim {dim}"):
            x[index]
    with pytest.raises(IndexError, match="do not go together"):
        x[:, i, flow.tensor([0, 1, 2])]
