# SPDX-License-Identifier: Apache-2.0
"""flow.Size, what Tensor.shape is: a tuple of ints that counts a tensor's elements."""

import copy
import gc
import pickle

import numpy as np
import pytest
from numerics import flow


def test_a_shape_is_a_size():
    x = flow.zeros(2, 3, 4)
    for size in (x.shape, x.size(), flow.Size([2, 3, 4]), flow.Size(iter((2, 3, 4)))):
        assert type(size) is flow.Size and isinstance(size, tuple)
        assert size == (2, 3, 4) == size and hash(size) == hash((2, 3, 4))
        assert repr(size) == str(size) == f"{size}" == "oneflow_lite.Size([2, 3, 4])"
    assert type(x.stride()) is tuple and x.size(-1) == 4
    assert flow.Size() == flow.zeros(()).shape == () and repr(flow.Size()) == (
        "oneflow_lite.Size([])"
    )


@pytest.mark.parametrize("sizes", [(), (3,), (2, 0), (2, 3, 4), (2**40, 2**40), (-1, 2)], ids=str)
def test_numel(sizes):
    n = flow.Size(sizes).numel()
    assert n == int(np.prod([int(s) for s in sizes], dtype=object)) and type(n) is int


def test_slices_sums_and_multiples_are_sizes():
    size = flow.zeros(2, 3, 4).shape
    for got, wanted in (
        (size[1:], (3, 4)), (size[:], (2, 3, 4)), (size[::-1], (4, 3, 2)), (size[3:], ()),
        (size + (5,), (2, 3, 4, 5)), ((5,) + size, (5, 2, 3, 4)), (size + (), (2, 3, 4)),
        (size + size[:1], (2, 3, 4, 2)), (size[3:] + (5,), (5,)), (size[3:] + (), ()),
        (size * 2, (2, 3, 4, 2, 3, 4)), (2 * size[:1], (2, 2)), (size * 0, ()),
    ):  # fmt: skip
        assert type(got) is flow.Size and got == wanted
    assert [type(s) for s in size] == [int] * 3 and size[-1] == 4 and size.index(3) == 1
    assert type(tuple(size)) is tuple
    constant = (7, 8)
    assert type(flow.Size() + constant) is flow.Size and type(constant) is tuple
    assert type(()) is tuple


def test_a_size_is_of_ints():
    assert flow.Size([True, np.int64(3), flow.tensor(4)]) == (1, 3, 4)
    for wrong in ([1.5], ["a"], [None], [flow.tensor(1.5)]):
        with pytest.raises(TypeError):
            flow.Size(wrong)
    for wrong in (lambda s: flow.Size(5), lambda s: s + ("a",), lambda s: ("a",) + s,
                  lambda s: s + [1], lambda s: flow.Size([1], [2]), lambda s: flow.Size(size=[1]),
                  lambda s: s[3], lambda s: s["a"]):  # fmt: skip
        with pytest.raises((TypeError, IndexError)):
            wrong(flow.zeros(2, 3).shape)
    with pytest.raises(TypeError):
        type("Sub", (flow.Size,), {})


class Emptying:
    """Empties the list that it lies in while it is read."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 1


def test_items_that_change_the_list_they_lie_in():
    items = []
    items += [Emptying(items), 2, 3]
    assert flow.Size(items) == (1, 2, 3) and items == []


def test_copies_and_pickles_are_sizes():
    size = flow.zeros(2, 3).shape
    copies = [copy.copy(size), copy.deepcopy(size)]
    copies += [pickle.loads(pickle.dumps(size, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in copies:
        assert type(other) is flow.Size and other == size


def test_sizes_are_freed_as_tuples_are():
    """Their memory goes to Python's free lists: a tuple made of it is a tuple."""
    x = flow.zeros(3, 5)
    for _ in range(3000):
        size = x.shape
        sizes = [size[:1], size + (4,), size * 3, flow.Size(), flow.zeros(()).shape]
        others = [(_, 1), (_,), tuple([1, 2, 3])]
        assert all(type(s) is flow.Size for s in sizes)
        assert all(type(o) is tuple for o in others)
        del size, sizes, others
    before = len(gc.get_objects())
    kept = [x.shape for _ in range(1000)]
    assert all(s == (3, 5) for s in kept)
    del kept
    gc.collect()
    assert len(gc.get_objects()) < before + 500


def test_sizes_are_arguments():
    x = flow.arange(6).reshape(flow.Size([2, 3]))
    assert x.view(x.shape[::-1]).shape == (3, 2) and flow.zeros(x.shape).shape == (2, 3)
    assert flow.tensor(x.shape).tolist() == [2, 3] and np.zeros(x.shape).shape == (2, 3)
    assert flow.zeros(*x.shape, 2).shape == (2, 3, 2) and x.expand((2,) + x.shape).shape[0] == 2
    rows, columns = x.shape
    assert {x.shape: 1}[(rows, columns)] == 1


def test_a_size_saved_is_a_tuple(tmp_path):
    flow.save({"shape": flow.zeros(2, 3).shape}, tmp_path / "sizes")
    assert flow.load(tmp_path / "sizes") == {"shape": (2, 3)}


def test_the_empty_size_has_the_hash_of_the_empty_tuple():
    assert hash(flow.tensor(1).shape) == hash(()) and {(): 1}[flow.tensor(1).shape] == 1
