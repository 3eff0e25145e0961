# SPDX-License-Identifier: Apache-2.0
"""Collectives in profiles: bytes, times, what runs beside them.

The functions without "test" in their names run on each rank (rank_group.py).
"""

import json
import time

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402


def plain(rank):
    x = flow.ones(1000)
    parts = [flow.empty(1000) for _ in range(4)]
    with flow.profiler.profile() as prof:
        dist.all_reduce(x)
        dist.all_gather(parts, x)
        with dist.batch():
            dist.send(x, (rank + 1) % 4)
            dist.recv(parts[0], (rank - 1) % 4)
        dist.broadcast(x, 1)
        dist.all_to_all_single(flow.empty(8), flow.ones(8))
        dist.barrier()
    dist.all_reduce(x)  # not seen
    found = {s.name: (s.calls, s.bytes) for s in prof.stats("collective")}
    for s in prof.stats("collective"):
        assert 0 < s.seconds < 60 and s.overlapped_seconds == 0
    return found


def test_bytes_are_those_of_the_tables(ranks):
    for rank, found in enumerate(ranks.run(plain)):
        assert found.pop("batch", None) == (1, 4000)
        broadcast = 2 if rank == 1 else 1
        assert found == {"all_reduce": (1, 2 * 4000 * 3 / 4), "all_gather": (1, 16000 * 3 / 4),
                         "broadcast": (1, broadcast * 4000 * 3 / 4), "all_to_all": (1, 6 * 4),
                         "barrier": (1, 0)}  # fmt: skip


def inside(rank):
    """An op of global tensors that waits has that time apart."""
    p = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.ones(8, 8, placement=p, sbp=flow.sbp.partial_sum)
    dist.barrier()
    with flow.profiler.profile() as prof:
        if rank == 0:
            time.sleep(0.2)  # the others wait for it
        y = x.exp()
    assert y.to_local().numpy()[0, 0] == np.exp(np.float32(1))
    events = prof.events()
    (collective,) = [e for e in events if e.kind == "collective"]
    assert events[collective.parent].name == "exp" and collective.name == "reduce_scatter"
    (exp,) = prof.stats()
    if rank != 0:
        assert exp.seconds > 0.1 > exp.self_seconds
    text = prof.table("collective")
    assert text.split()[:2] == ["collective", "calls"] and "0.0%" in text
    return exp.seconds - exp.self_seconds <= exp.seconds


def test_an_op_does_not_count_what_it_waits_for(ranks):
    assert all(ranks.run(inside))


def beside(rank, path):
    """Gradients that are reduced in another thread, beside backward."""
    flow.manual_seed(0)
    layers = [flow.nn.Linear(300, 300) for _ in range(6)]
    model = dist.DataParallel(flow.nn.Sequential(*layers), bucket_mb=0.3)
    x = flow.randn(64, 300)
    model(x).sum().backward()
    with flow.profiler.profile() as prof:
        model(x).sum().backward()
    reduced = {s.name: s for s in prof.stats("collective")}["all_reduce"]
    assert reduced.calls >= 6
    assert reduced.bytes >= 2 * 3 / 4 * 4 * 6 * 300 * 301
    assert 0 <= reduced.overlapped_seconds <= reduced.seconds
    assert any(e.kind == "collective" and e.parent is None for e in prof.events())
    if rank == 0:
        prof.export_chrome_trace(path)
    return reduced.overlapped_seconds


def test_gradients_are_reduced_beside_backward(ranks, tmp_path):
    path = tmp_path / "trace.json"
    overlapped = ranks.run(beside, str(path))
    assert max(overlapped) > 0  # of four ranks on few cores, one at least
    lines = json.loads(path.read_text())["traceEvents"]
    names = [line for line in lines if line["ph"] == "M" and line["name"] == "thread_name"]
    assert [line["args"]["name"] for line in names] == ["collectives"]
    row = [line for line in lines if line["ph"] == "X" and line["tid"] == names[0]["tid"]]
    assert row and all(line["cat"] == "collective" for line in row)
    assert sum(line["args"]["bytes"] for line in row) > 0


def failing(rank):
    with flow.profiler.profile() as prof, pytest.raises(RuntimeError, match="do not agree"):
        dist.all_reduce(flow.ones(2 + rank))
    (s,) = prof.stats("collective")
    return s.failed


def test_a_collective_that_fails_says_so():
    from gloo import LIBRARY, WHY_NOT
    from rank_group import RankGroup

    if not LIBRARY.exists():
        pytest.skip(WHY_NOT)
    group = RankGroup(2)
    try:
        assert group.run(failing) == [1, 1]
    finally:
        group.close()


def test_overlap_counts_each_moment_once():
    from oneflow_lite.profiler._records import _covered

    assert _covered([]) == 0
    assert _covered([(0, 2), (1, 3), (5, 6), (5, 5.5)]) == 4
