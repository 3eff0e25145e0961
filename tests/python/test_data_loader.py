# SPDX-License-Identifier: Apache-2.0
"""Data sets and loaders: which items come in which batch, as what; PyTorch's where it is there."""

import collections

import numpy as np
import pytest
from numerics import flow, host

data = flow.utils.data
Pair = collections.namedtuple("Pair", "a b")
COUNT = 5


def items(library):
    """Five items of each kind."""
    return {
        "tensors": [(library.arange(3) + i, i) for i in range(COUNT)],
        "arrays": [np.arange(3.0) + i for i in range(COUNT)],
        "numbers of NumPy": [np.float32(i) for i in range(COUNT)],
        "floats": [float(i) for i in range(COUNT)], "ints": list(range(COUNT)),
        "bools": [True, False, True, True, False], "texts": list("abcde"),
        "dicts": [{"x": library.ones(2) * i, "y": i, "z": str(i)} for i in range(COUNT)],
        "named tuples": [Pair(i, [1.0, 2]) for i in range(COUNT)],
        "nested": [[(i, float(i)), [library.ones(1)]] for i in range(COUNT)],
    }  # fmt: skip


def shown(x):
    """Dtypes and values, with the kinds of the lists."""
    if hasattr(x, "dtype"):
        return str(x.dtype).rpartition(".")[2], x.tolist()
    if isinstance(x, dict):
        return {key: shown(value) for key, value in x.items()}
    if isinstance(x, tuple | list):
        return type(x).__name__, [shown(value) for value in x]
    return x


WAYS = [{"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None},
        {"batch_sampler": [[0, 1], [4]]}, {"batch_size": 3, "sampler": [4, 2, 0, 1]}]  # fmt: skip
COLLATED = {
    "tensors": ("list", [("int64", [[0, 1, 2], [1, 2, 3]]), ("int64", [0, 1])]),
    "arrays": ("float64", [[0, 1, 2], [1, 2, 3]]), "numbers of NumPy": ("float32", [0, 1]),
    "floats": ("float64", [0, 1]), "ints": ("int64", [0, 1]), "bools": ("bool", [True, False]),
    "texts": ("list", ["a", "b"]),
    "dicts": {"x": ("float32", [[0, 0], [1, 1]]), "y": ("int64", [0, 1]),
              "z": ("list", ["0", "1"])},
    "named tuples": ("Pair", [("int64", [0, 1]),
                              ("list", [("float64", [1, 1]), ("int64", [2, 2])])]),
    "nested": ("list", [("list", [("int64", [0, 1]), ("float64", [0, 1])]),
                        ("list", [("float32", [[1], [1]])])]),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLLATED)
def test_items_as_one_batch(kind):
    first = next(iter(data.DataLoader(items(flow)[kind], 2)))
    assert shown(first) == COLLATED[kind]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("kind", COLLATED)
def test_batches_are_pytorchs(kind, way):
    torch = pytest.importorskip("torch")
    ours = data.DataLoader(items(flow)[kind], **way)
    theirs = torch.utils.data.DataLoader(items(torch)[kind], **way)
    assert [shown(b) for b in ours] == [shown(b) for b in theirs] and len(ours) == len(theirs)


@pytest.mark.parametrize("way, places", list(zip(WAYS, [
    [[0, 1], [2, 3], [4]], [[0, 1], [2, 3]], [0, 1, 2, 3, 4], [[0, 1], [4]], [[4, 2, 0], [1]],
], strict=True)), ids=str)  # fmt: skip
def test_rows_of_tensors(way, places, device):
    x = flow.arange(10.0, device=device).view(COUNT, 2).requires_grad_()
    y = flow.arange(COUNT)
    whole = data.TensorDataset(x, y)
    loader = data.DataLoader(whole, **way)
    for _ in range(2):  # it can be gone over again
        got = list(loader)
        assert len(got) == len(places) == len(loader)
        for batch, at in zip(got, places, strict=True):
            assert batch[0].tolist() == x[at].tolist() and batch[1].tolist() == y[at].tolist()
            assert batch[0].device == x.device and batch[0].requires_grad
    plain = data.DataLoader([whole[i] for i in range(COUNT)], **way)
    assert [shown(b) for b in loader] == [shown(b) for b in plain]


def test_parts_of_data_sets(device):
    x = flow.arange(12.0, device=device)
    part = data.Subset(data.Subset(data.TensorDataset(x), [1, 3, 5, 7, 9]), [4, 0, 2])
    assert [v.item() for (v,) in part] == [9, 1, 5] and len(part) == 3
    assert part[[0, 2]][0].tolist() == [9, 5]
    assert [batch[0].tolist() for batch in data.DataLoader(part, 2)] == [[9, 1], [5]]


@pytest.mark.parametrize("count, lengths, sizes", [
    (10, [3, 7], [3, 7]), (11, [0.5, 0.25, 0.25], [6, 3, 2]), (10, [0.3, 0.7], [3, 7]),
    (3, [0.5, 0.3, 0.2], [2, 1, 0]), (0, [0, 0], [0, 0]), (1, [1], [1]),
])  # fmt: skip
def test_random_parts(count, lengths, sizes):
    def split():
        return data.random_split(range(count), lengths, flow.Generator().manual_seed(3))

    parts = split()
    assert [len(p) for p in parts] == sizes
    assert sorted(x for p in parts for x in p) == list(range(count))
    assert [list(p) for p in parts] == [list(p) for p in split()]


def test_each_pass_is_shuffled_anew():
    def passes(seed):
        loader = data.DataLoader(range(50), 50, shuffle=True,
                                 generator=flow.Generator().manual_seed(seed))  # fmt: skip
        return [host(batch).tolist() for _ in range(2) for batch in loader]

    first, second = passes(1)
    assert first != second and sorted(first) == sorted(second) == list(range(50))
    assert passes(1) == [first, second] and passes(2) != [first, second]


def test_a_function_makes_the_batches():
    loader = data.DataLoader(range(5), 2, collate_fn=sum)
    assert list(loader) == [1, 5, 4]
    assert list(data.DataLoader(range(3), None, collate_fn=lambda x: -x)) == [0, -1, -2]


class Squares(data.Dataset):
    def __getitem__(self, index):
        return flow.tensor(index**2)

    def __len__(self):
        return 6


def test_a_data_set_of_ones_own_with_a_sampler():
    sampler = data.DistributedSampler(Squares(), num_replicas=2, rank=1, shuffle=False)
    assert [b.tolist() for b in data.DataLoader(Squares(), 2, sampler=sampler)] == [[1, 9], [25]]
    with pytest.raises(NotImplementedError, match=r"Dataset does not define __getitem__\(\)"):
        data.Dataset()[0]


ERRORS = {
    "workers": (lambda: data.DataLoader([1], num_workers=4), NotImplementedError,
                "DataLoader(): num_workers is 4, but batches are made in this process alone"),
    "two orders": (lambda: data.DataLoader([1], shuffle=True, sampler=[0]), ValueError,
                   "DataLoader(): sampler and shuffle are both given"),
    "two sizes": (lambda: data.DataLoader([1], 2, batch_sampler=[[0]]), ValueError,
                  "DataLoader(): beside batch_sampler there can be no batch_size"),
    "no size": (lambda: data.DataLoader([1], 0), ValueError, "DataLoader(): batch_size is 0"),
    "no batch to drop": (lambda: data.DataLoader([1], None, drop_last=True), ValueError,
                         "DataLoader(): without a batch_size"),
    "lengths": (lambda: data.TensorDataset(flow.ones(2), flow.ones(3)), ValueError,
                "TensorDataset(): the tensors have the lengths [2, 3]"),
    "parts": (lambda: data.random_split(range(10), [3, 8]), ValueError,
              "random_split(): lengths are [3, 8], but must add up to 10 items"),
    "shares": (lambda: data.random_split(range(10), [0.5, 0.6]), ValueError,
               "random_split(): lengths are [0.5, 0.6]"),
    "uneven lists": (lambda: data.default_collate([[1], [1, 2]]), RuntimeError,
                     "default_collate(): items of a batch are lists of different lengths"),
    "objects": (lambda: data.default_collate([object()]), TypeError,
                "default_collate(): items must be tensors, arrays, numbers"),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS)
def test_errors(what):
    call, error, text = ERRORS[what]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
