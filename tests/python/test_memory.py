# SPDX-License-Identifier: Apache-2.0
"""The allocator: what is counted, used again, given back, and survived."""

import gc
import mmap

import pytest
from numerics import flow

ext = flow._oneflow_lite


def test_memory_is_counted_and_given_back(device):
    gc.collect()
    start = ext.memory_stats(device)
    x = flow.empty(1 << 20, device=device)
    held = ext.memory_stats(device)
    assert 1 << 22 <= held["allocated"] - start["allocated"] <= 2 << 22
    assert held["reserved"] >= held["allocated"]
    view = x[10:]
    del x
    assert ext.memory_stats(device)["allocated"] == held["allocated"]  # the view holds it
    del view
    assert ext.memory_stats(device)["allocated"] == start["allocated"]


def test_blocks_of_some_pages_start_at_a_page_and_others_at_a_line():
    page = mmap.PAGESIZE
    sizes = [
        4 * page,
        5 * page + 1,
        64 * page,
        4 << 20,
        6 << 20,
    ]  # from the heap and from the system
    held = [flow.empty(n, dtype=flow.uint8) for n in sizes for _ in range(3)]
    assert [t.data_ptr() % page for t in held] == [0] * len(held)
    held = [flow.empty(n, dtype=flow.uint8) for n in (1, 300, 4 * page - 4096) for _ in range(3)]
    assert [t.data_ptr() % 64 for t in held] == [0] * len(held)


def test_freed_memory_is_used_again_and_the_cache_can_be_emptied(device):
    address = flow.empty(1 << 18, device=device).data_ptr()
    assert flow.empty(1 << 18, device=device).data_ptr() == address
    before = ext.memory_stats(device)["reserved"]
    ext.empty_cache(device)
    stats = ext.memory_stats(device)
    assert stats["allocated"] <= stats["reserved"] <= before
    assert device == "cuda" or stats["reserved"] == stats["allocated"]


def test_memory_in_use_displaces_what_only_waits():
    """On the CPU at most 512 MB wait; they must not be of sizes that no one asks for any more."""
    ext.empty_cache("cpu")
    stale = [flow.empty(48 << 20, dtype=flow.uint8) for _ in range(10)]
    del stale
    size = 64 << 20
    flow.empty(size, dtype=flow.uint8)
    waiting = ext.memory_stats("cpu")["reserved"]
    kept = flow.empty(size, dtype=flow.uint8)
    assert ext.memory_stats("cpu")["reserved"] == waiting, "taken from the system once more"
    del kept
    assert waiting <= 512 << 20
    ext.empty_cache("cpu")


def test_the_peak_is_kept_until_it_is_reset(device):
    ext.reset_peak_memory(device)
    base = ext.memory_stats(device)["peak_allocated"]
    flow.empty(1 << 20, device=device)
    assert ext.memory_stats(device)["peak_allocated"] >= base + (1 << 22)
    ext.reset_peak_memory(device)
    assert ext.memory_stats(device)["peak_allocated"] < base + (1 << 22)


def test_out_of_memory_is_survived(device):
    ext.reset_peak_memory(device)
    before = ext.memory_stats(device)
    x = flow.ones(1000, device=device)
    for size in ((1 << 44,), (1 << 30, 1 << 20)):
        with pytest.raises(flow.OutOfMemoryError):
            flow.empty(size, device=device)
        with pytest.raises(flow.OutOfMemoryError):
            flow.zeros(size, device=device, dtype=flow.float64)
    with pytest.raises(flow.OutOfMemoryError):
        flow.softmax(x.view(1000, 1).expand(1000, 1 << 36), 1)
    stats = ext.memory_stats(device)
    assert stats["peak_allocated"] - before["allocated"] < 1 << 20, "nothing was had"
    assert flow.softmax(x, 0).sum().item() == pytest.approx(1)
