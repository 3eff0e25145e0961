# SPDX-License-Identifier: Apache-2.0
"""DistributedSampler: every element once over all ranks, and what is over as PyTorch has it."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
data = flow.utils.data


def places(count, ranks, **options):
    samplers = [data.DistributedSampler(range(count), ranks, r, **options) for r in range(ranks)]
    found = [list(s) for s in samplers]
    assert (
        [len(f) for f in found] == [len(s) for s in samplers] == [samplers[0].num_samples] * ranks
    )
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [1, 2, 7, 12])
@pytest.mark.parametrize("shuffle", [False, True])
def test_each_element_goes_to_one_rank(count, ranks, shuffle):
    found = places(count, ranks, shuffle=shuffle)
    # Dealt out like cards; the first ones again where they do not divide.
    order = [found[i % ranks][i // ranks] for i in range(len(found[0]) * ranks)]
    assert len(order) == -(-count // ranks) * ranks
    assert sorted(order[:count]) == list(range(count))
    assert order == [order[i % count] for i in range(len(order))]
    dropped = places(count, ranks, shuffle=shuffle, drop_last=True)
    kept = [e for f in dropped for e in f]
    assert len(kept) == count // ranks * ranks == len(set(kept))
    if not shuffle:
        assert order[:count] == list(range(count))


def test_epochs_and_seeds_give_other_orders():
    sampler = data.DistributedSampler(range(100), 2, 0, seed=3)
    first = list(sampler)
    assert list(sampler) == first != sorted(first)
    sampler.set_epoch(1)
    assert list(sampler) != first
    assert list(data.DistributedSampler(range(100), 2, 0, seed=4)) == list(sampler)
    flow.manual_seed(1)
    before = flow.rand(1).item()
    flow.manual_seed(1)
    list(sampler)
    assert flow.rand(1).item() == before  # it draws from a generator of its own


def test_alone_it_takes_all():
    sampler = data.DistributedSampler(range(5), shuffle=False)
    assert list(sampler) == [0, 1, 2, 3, 4] and len(sampler) == 5


def test_batches_of_a_sampler():
    x = np.arange(7) * 10
    sampler = data.DistributedSampler(x, 2, 1, shuffle=False)
    got = [b.tolist() for (b,) in data.batches(x, size=3, sampler=sampler)]
    assert got == [[10, 30, 50], [0]]
    with pytest.raises(ValueError, match="rng and sampler are both given"):
        next(data.batches(x, size=3, sampler=sampler, rng=np.random.default_rng(0)))


@pytest.mark.parametrize("ranks, rank", [(2, 2), (2, -1), (0, 0)])
def test_a_rank_that_cannot_be(ranks, rank):
    with pytest.raises(ValueError, match="DistributedSampler\\(\\): rank is"):
        data.DistributedSampler(range(3), ranks, rank)
    with pytest.raises(TypeError, match="must be an int"):
        data.DistributedSampler(range(3), 2.5, 0)
