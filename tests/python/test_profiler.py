# SPDX-License-Identifier: Apache-2.0
"""The profiler sees every op, and the ops can be listed and described."""

import json
import threading
import time

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.models import gpt  # noqa: E402
from oneflow_lite.profiler._roofline import _roof_text  # noqa: E402

record = flow.profiler.record_function
LIMIT = flow.profiler.MachineLimit(bytes_per_second=1e10, flops_per_second=1e11)


def calls(p):
    return {s.name: s.calls for s in p.stats()}


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
    assert lines[0].split() == ["op", "calls", "total", "ms", "us/call", "share", "GB/s",
                                "TFLOP/s", "of", "limit"]  # fmt: skip
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


def test_events_name_what_they_ran_in():
    x = flow.randn(4, 5, requires_grad=True)
    with flow.profiler.profile(record_shapes=True) as p:
        with record("forward"):
            y = flow.softmax(x, 1).sum()
        with record("step"), record("backward"):
            y.backward()
    events = p.events()
    parent = lambda e: events[e.parent].name if e.parent is not None else None  # noqa: E731
    found = {(e.kind, e.name, parent(e)) for e in events}
    assert {("range", "forward", None), ("op", "softmax", "forward"), ("op", "sum", "forward"),
            ("range", "backward", "step"), ("backward", "softmax_backward", "backward"),
            ("op", "softmax_backward", "softmax_backward"),
            ("backward", "accumulate_grad", "backward")} <= found  # fmt: skip
    for e in events:
        assert 0 <= e.begin <= e.end and e.device == "cpu" and not e.failed
        if e.parent is not None:
            assert events[e.parent].begin <= e.begin and e.end <= events[e.parent].end
    softmax = next(e for e in events if e.name == "softmax")
    assert softmax.shapes == "[4, 5]" and softmax.dtype == "float32"
    assert softmax.bytes == 2 * x.nbytes and softmax.flops > 0
    for kind, names in (("range", {"forward", "step", "backward"}), ("kernel", set())):
        assert {s.name for s in p.stats(kind)} == names
    step = next(s for s in p.stats("range") if s.name == "step")
    began = next(e.begin for e in events if e.name == "step")
    inside = [e for e in events if e.kind == "op" and e.begin >= began]
    assert step.bytes == sum(e.bytes for e in inside)
    with pytest.raises(ValueError, match="kind must be one of op, backward, range, kernel"):
        p.stats("layer")


def test_a_range_is_a_decorator_and_ends_with_an_exception():
    @record("inner")
    def f(x):
        """Its words."""
        return flow.linear(x.exp(), flow.ones(2, 7))

    with flow.profiler.profile() as p:
        with pytest.raises(flow.ShapeError):
            f(flow.ones(3))
        flow.ones(3).exp()
    assert f.__name__ == "f" and f.__doc__ == "Its words."
    events = p.events()
    parents = [e.parent for e in events if e.name == "exp"]
    assert events[parents[0]].name == "inner" and parents[1] is None
    assert [e.failed for e in events if e.name == "linear"] == [True]
    f(flow.ones(7))  # nobody records
    assert len(p.events()) == len(events)
    with pytest.raises(TypeError, match="name must be a str, not int"):
        record(3)


def test_an_op_made_of_ops_is_not_counted_twice():
    @flow.register_op("test_profiler::slow")
    class Slow:
        """x + 1, and a wait."""

        def forward(x):
            time.sleep(0.02)
            with record("within"):
                return (x.exp() + 1).log()

    x = flow.ones(1 << 20)
    with flow.profiler.profile(limit=LIMIT) as p:
        flow.ops.test_profiler.slow(x)
    by_name = {s.name: s for s in p.stats()}
    outer = by_name["test_profiler::slow"]
    inner = sum(s.seconds for s in p.stats() if s.name != outer.name)
    assert outer.seconds >= 0.02 and outer.self_seconds <= outer.seconds - 0.9 * inner
    total = sum(s.time for s in p.stats())
    events = p.events()
    assert total <= events[-1].end - events[0].begin + 1e-3
    assert {"exp", "log", "add"} <= set(by_name)


def test_profiles_end_in_any_order():
    outer, inner = flow.profiler.profile(), flow.profiler.profile()
    outer.__enter__()
    inner.__enter__()
    flow.exp(flow.ones(2))
    outer.__exit__()
    flow.exp(flow.ones(2))
    inner.__exit__()
    flow.exp(flow.ones(2))
    assert (calls(outer)["exp"], calls(inner)["exp"]) == (1, 2)
    with pytest.raises(RuntimeError, match="it is not recording"):
        inner.__exit__()
    with outer, pytest.raises(RuntimeError, match="it is recording already"), outer:
        pass
    with outer:  # goes on
        flow.exp(flow.ones(2))
    assert calls(outer)["exp"] == 2


def test_a_profile_is_of_the_thread_that_entered_it():
    p, said = flow.profiler.profile(), []

    def elsewhere():
        for f in (p.stats, p.__exit__):
            try:
                f()
            except RuntimeError as e:
                said.append(str(e))
        with flow.profiler.profile() as own:
            for _ in range(100):
                flow.exp(flow.ones(2))
        said.append(calls(own)["exp"])

    with p:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        for _ in range(50):
            flow.log(flow.ones(2))
        thread.join()
        assert calls(p)["log"] == 50  # may be read while it records
    assert said == ["profile: it is recording in another thread",
                    "profile: it ends in the thread in which it began", 100]  # fmt: skip
    assert "exp" not in calls(p)


def test_a_thread_may_end_inside_a_profile():
    kept = []

    def run():
        kept.append(flow.profiler.profile().__enter__())
        flow.exp(flow.ones(2))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    # The thread is still leaving when join() returns: the profile is free a moment later.
    end = time.monotonic() + 60
    while kept[0]._profiler.running and time.monotonic() < end:
        time.sleep(0.01)
    assert calls(kept[0])["exp"] == 1
    with kept[0]:
        flow.exp(flow.ones(2))
    assert calls(kept[0])["exp"] == 2


def test_an_op_may_end_the_profile_it_is_in():
    p = flow.profiler.profile()

    @flow.register_op("test_profiler::ends")
    class Ends:
        """x, and the end."""

        def forward(x):
            p.__exit__()
            return x + 1

        def infer(x):
            return x.shape, x.dtype

    p.__enter__()
    x = flow.ones(2)
    flow.ops.test_profiler.ends(x)
    flow.exp(x)
    assert "test_profiler::ends" in calls(p) and "exp" not in calls(p)


def test_memory_over_time():
    with flow.profiler.profile() as p:
        x = flow.zeros(1 << 20)
        y = x + 1
        del x
        flow.ones(3)
    seconds, held = zip(*p.memory(), strict=True)
    assert list(seconds) == sorted(seconds) and seconds[0] >= 0
    assert max(held) - held[0] >= 8 << 20 and held[-1] <= max(held) - (4 << 20)
    assert y.shape == (1 << 20,) and p.memory("cuda") == []


def test_the_trace_is_what_chrome_reads(tmp_path):
    x = flow.randn(64, 64, requires_grad=True)
    with flow.profiler.profile(record_shapes=True) as p, record('a "name"'):
        flow.softmax(x, 1).sum().backward()
    p.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert {e["cat"] for e in spans} == {"op", "backward", "range"}
    assert all(e["dur"] >= 0 and e["ts"] >= 0 and {"pid", "tid", "name"} <= set(e) for e in spans)
    (softmax,) = [e for e in spans if e["name"] == "softmax"]
    assert softmax["args"]["bytes"] == 2 * x.nbytes and softmax["args"]["shapes"] == "[64, 64]"
    (whole,) = [e for e in spans if e["name"] == 'a "name"']
    assert all(whole["ts"] <= e["ts"] + 1e-3 for e in spans)
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    assert len(counters) == 2 * sum(e["cat"] == "op" for e in spans)
    assert all(e["args"]["bytes"] >= 0 for e in counters)


def test_rates_and_limits_follow_from_the_declared_cost():
    a, b = flow.randn(256, 512), flow.randn(512, 128)
    with flow.profiler.profile(limit=LIMIT) as p:
        for _ in range(3):
            a @ b
    (s,) = [s for s in p._records().stats("op", p._limit_of) if s.name == "matmul"]
    assert s.flops == 3 * 2 * 256 * 512 * 128
    assert s.bytes == 3 * 4 * (256 * 512 + 512 * 128 + 256 * 128)
    assert s.limit_seconds == pytest.approx(max(s.flops / 1e11, s.bytes / 1e10))
    row = next(line for line in p.table().splitlines() if line.startswith("matmul")).split()
    assert float(row[5]) == pytest.approx(s.bytes / s.seconds / 1e9, rel=6e-3)
    assert float(row[6]) == pytest.approx(s.flops / s.seconds / 1e12, rel=6e-3)
    assert row[7] == f"{s.limit_seconds / s.seconds:.1%}"
    with pytest.raises(TypeError, match="limit must be a MachineLimit"):
        flow.profiler.profile(limit=3)


def test_the_cost_of_an_op_may_run_ops():
    @flow.register_op("profiled::cube")
    class Cube:
        def forward(x):
            return x * x * x

        def cost(x):
            for _ in range(5000):  # so many records that those before move
                flow.ones(1)
            return 1e9, 2e9

    with flow.profiler.profile() as p:
        flow.ops.profiled.cube(flow.ones(4))
    (event,) = [e for e in p.events() if e.name == "profiled::cube"]
    assert (event.bytes, event.flops, event.dtype) == (1e9, 2e9, "float32")


def test_the_table_may_be_cut():
    with flow.profiler.profile(limit=LIMIT) as p:
        for f in (flow.exp, flow.log, flow.sin, flow.cos):
            f(flow.ones(10))
    lines = p.table(rows=2).splitlines()
    assert len(lines) == 4 and lines[-1].startswith("and 3 more")
    with pytest.raises(ValueError, match="rows must be at least 0"):
        p.table(rows=-1)
    for kind in ("backward", "range", "kernel"):
        assert p.table(kind).split()[0] == kind


def test_the_limit_is_measured_once_and_seen_by_no_profile():
    with flow.profiler.profile() as p:
        limit = flow.profiler.machine_limit("cpu")
        assert flow.profiler.machine_limit(flow.device("cpu"), flow.float32) == limit
    assert p.events() == []
    assert 1e8 < limit.bytes_per_second < 1e13 and 1e8 < limit.flops_per_second < 1e15
    with pytest.raises(ValueError, match="dtype must be a floating dtype"):
        flow.profiler.machine_limit("cpu", "int8")
    with pytest.raises(ValueError, match="must be a CPU or a GPU"):
        flow.profiler.machine_limit("meta")


def test_the_roofline_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    x = flow.randn(256, 256, requires_grad=True)
    with flow.profiler.profile(limit=LIMIT) as p:
        (flow.softmax(x @ x, 1) * x).sum().backward()
    p.plot_roofline(tmp_path / "roofline.png")
    assert (tmp_path / "roofline.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="no op that computes with floats ran on cuda:0"):
        p.plot_roofline(tmp_path / "none.png", "cuda")


def test_the_roofline_writes_rates_in_full():
    limit = flow.profiler.MachineLimit(bytes_per_second=4.25e12, flops_per_second=6e13)
    assert _roof_text("float32", limit) == "float32: 4250 GB/s, 60 TFLOP/s"


def test_meta_has_costs_and_no_limit():
    x = flow.ones(64, 64, device="meta")
    with flow.profiler.profile() as p:
        x @ x
    assert p.events()[0].device == "meta" and p.events()[0].flops == 2 * 64**3
    assert p.table().splitlines()[1].split()[-1] == "-"


# On a GPU -----------------------------------------------------------------------------------------

on_gpu = [pytest.mark.cuda, pytest.mark.skipif(not flow.cuda.is_available(), reason="no GPU here")]


def marked(test):
    for mark in on_gpu:
        test = mark(test)
    return test


@marked
def test_times_are_those_of_the_gpu(tmp_path):
    x = flow.randn(4096, 4096, device="cuda")
    y = x @ x
    flow.cuda.synchronize()
    begin, end = flow.cuda.Event(enable_timing=True), flow.cuda.Event(enable_timing=True)
    begin.record()
    with flow.profiler.profile(kernels=True) as p:
        for _ in range(20):
            y = x @ x
        y.exp()
    end.record()
    end.synchronize()
    by_name = {s.name: s for s in p.stats()}
    assert by_name["exp"].launches == 1 and by_name["matmul"].launches == 20 == p.launches["matmul"]
    total = sum(s.device_seconds for s in p.stats())
    assert 0.5 < total / (begin.elapsed_time(end) / 1e3) <= 1.01
    assert by_name["exp"].device_seconds < by_name["matmul"].device_seconds
    events = p.events()
    kernels = [e for e in events if e.kind == "kernel"]
    assert len(kernels) == 21 and all(e.device == "cuda:0" for e in kernels)
    assert {events[e.parent].name for e in kernels} == {"matmul", "exp"}
    spans = [e for e in events if e.kind == "op"]
    assert all(e.device_begin <= e.device_end for e in spans)
    assert [e.device_begin for e in spans] == sorted(e.device_begin for e in spans)
    assert spans[0].device_begin >= spans[0].begin - 1e-3
    assert p.table().splitlines()[0].split()[-1] == "launches"
    assert p.memory("cuda")[-1][1] >= 2 * x.nbytes
    p.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(e["ph"] == "X" and e["pid"] == 1 for e in trace) == 42


@marked
def test_a_profile_around_a_capture_times_nothing_in_it():
    x = flow.ones(1000, device="cuda")
    graph = flow.cuda.CUDAGraph()
    with flow.profiler.profile(kernels=True) as p:
        with flow.cuda.graph(graph):
            y = x.exp() + 1
        graph.replay()
    flow.cuda.synchronize()
    assert y[0].item() == pytest.approx(np.e + 1)
    assert p.launches["exp"] == 1 and all(s.device_seconds == 0 for s in p.stats())


@marked
def test_thousands_of_spans_on_a_gpu():
    x = flow.ones(10, device="cuda")
    with flow.profiler.profile() as p:
        for _ in range(5000):
            x.exp()
    assert all(e.device_end is not None for e in p.events())
    assert p.launches == {"exp": 5000}


@marked
def test_two_streams_and_a_limit():
    x = flow.randn(1 << 24, device="cuda")
    side = flow.cuda.Stream()
    with flow.profiler.profile() as p:
        x.exp()
        with flow.cuda.stream(side):
            x.exp()
    (s,) = p._records().stats("op", p._limit_of)
    assert 0 < s.limit_seconds < 2 * s.device_seconds
    assert flow.profiler.machine_limit("cuda").bytes_per_second > 1e11


# What it costs ------------------------------------------------------------------------------------


def step_of_a_model(device):
    flow.manual_seed(0)
    model = gpt.build(flow, gpt.PRESETS["small"].replaced(vocab=64)).to(device)
    ids = flow.tensor(np.random.default_rng(0).integers(0, 64, (8, 64)), device=device)

    def step():
        model.loss(ids, ids).backward()
        model.zero_grad()
        if device == "cuda":
            flow.cuda.synchronize()

    return step


def fastest(run, count):
    best = float("inf")
    for _ in range(count):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.timed
def test_a_step_is_hardly_slower_under_a_profile(device):
    """5 % are promised; a busy machine gets 15."""
    step = step_of_a_model(device)

    def profiled():
        with flow.profiler.profile():
            step()

    step(), profiled()
    for _ in range(3):
        off = on = float("inf")
        for _ in range(10):  # by turns, so that both see the same machine
            off, on = min(off, fastest(step, 1)), min(on, fastest(profiled, 1))
        if on <= 1.15 * off:
            return
    assert on <= 1.15 * off


@pytest.mark.timed
def test_nothing_is_left_when_it_is_off():
    """A call pays one test of a flag of its thread, after profiles as before."""
    x = flow.ones(2)

    def run():
        for _ in range(2000):
            x.exp()

    before = fastest(run, 15)
    for _ in range(50):
        with flow.profiler.profile(), flow.profiler.profile():
            x.exp()
    after = min(fastest(run, 15) for _ in range(2))
    assert after < 1.25 * before


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
