# SPDX-License-Identifier: Apache-2.0
"""The profiler sees every op, and the ops can be listed and described."""

import threading

import pytest

flow = pytest.importorskip("oneflow_lite")


def test_profiler_counts_forward_and_backward():
    x = flow.randn(4, 5, requires_grad=True)
    with flow.profiler.profile() as p:
        for _ in range(3):
            flow.softmax(x, 1).sum().backward()
    assert "table() shows them" in repr(p) and "no op" in repr(flow.profiler.profile())
    calls = {s.name: s.calls for s in p.stats()}
    assert calls["softmax"] == 3 and calls["softmax_backward"] == 3
    assert all(s.seconds >= 0 for s in p.stats())
    lines = p.table().splitlines()
    assert len(lines) == 1 + len(p.stats())
    assert lines[0].split() == ["op", "calls", "total", "ms", "us/call", "share", "GB/s", "GFLOP/s"]
    before = p.table()
    flow.softmax(x, 1)  # no longer seen
    assert p.table() == before


def test_profilers_nest_and_survive_errors():
    with flow.profiler.profile() as outer:
        with pytest.raises(IndexError), flow.profiler.profile() as inner:
            flow.exp(flow.ones(2))
            flow.softmax(flow.ones(2), 7)
        flow.exp(flow.ones(2))
    count = lambda p: {s.name: s.calls for s in p.stats()}["exp"]  # noqa: E731
    assert (count(inner), count(outer)) == (1, 2)


def test_profiler_belongs_to_its_thread():
    with flow.profiler.profile() as p:
        thread = threading.Thread(target=lambda: flow.exp(flow.ones(2)))
        thread.start()
        thread.join()
    assert p.stats() == []
    assert p.table().startswith("op")


def test_ops_are_listed_and_described():
    names = flow.ops.list()
    assert names == sorted(names)
    assert {"softmax", "softmax_backward", "log_softmax", "matmul"} <= set(names)
    for name in names:
        assert name in flow.ops.describe(name)
    text = flow.ops.describe("softmax")
    for part in ("kernel for", "float32", "ops/softmax.cpp", "has a gradient"):
        assert part in text
    with pytest.raises(NotImplementedError, match="no_such_op"):
        flow.ops.describe("no_such_op")
