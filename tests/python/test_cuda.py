# SPDX-License-Identifier: Apache-2.0
"""flow.cuda: streams, events, graphs, memory; and what it says where there is no GPU."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
cuda = flow.cuda

needs_gpu = pytest.mark.skipif(not cuda.is_available(), reason="no GPU here")


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "call",
    [
        cuda.synchronize,
        cuda.get_device_name,
        cuda.current_stream,
        cuda.memory_stats,
        cuda.reset_peak_memory_stats,
        cuda.Stream,
        lambda: flow.ones(2).cuda(),
        lambda: flow.ones(2, device="cuda"),
        lambda: cuda.Event().record(),
        lambda: cuda.CUDAGraph().capture_begin(),
    ],
)
def test_without_a_gpu_the_reason_is_told(call):
    assert cuda.device_count() == 0
    with pytest.raises(RuntimeError, match="CUDA"):
        call()


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU")
def test_a_report_of_memory_runs_without_a_gpu():
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    assert cuda.empty_cache() is None


def test_other_devices_are_refused():
    with pytest.raises(ValueError, match="a CUDA device is needed, not cpu"):
        cuda.synchronize("cpu")


def test_no_stream_changes_nothing():
    with cuda.stream(None):
        assert flow.ones(1).item() == 1


@pytest.mark.cuda
@needs_gpu
def test_properties():
    assert cuda.device_count() >= 1 and cuda.current_device() == 0
    properties = cuda.get_device_properties("cuda:0")
    assert properties.name == cuda.get_device_name(0)
    assert properties.multi_processor_count > 0 and properties.total_memory > 2**30
    assert properties.name in repr(flow.__config__)
    with pytest.raises(RuntimeError):
        cuda.set_device(cuda.device_count())


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("kept", ["a hook's result", "a retained gradient"])
def test_hooks_run_on_the_stream_of_their_node(kept):
    big, side = flow.randn(8192, 8192, device="cuda"), cuda.Stream()
    x = flow.ones(1 << 20, device="cuda", requires_grad=True)
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 3
        z = y * 5
    if kept == "a retained gradient":
        y.retain_grad()
    y.register_hook(lambda g: g * 2)
    cuda.current_stream().wait_stream(side)
    loss = z.sum()
    with cuda.stream(side):
        for _ in range(4):
            flow.mm(big, big)  # 20 ms each: what is made behind it is late
    loss.backward()
    seen = y.grad.clone() if kept == "a retained gradient" else x.grad.clone()
    np.testing.assert_array_equal(seen.cpu().numpy(), 10 if kept == "a retained gradient" else 30)


@pytest.mark.cuda
@needs_gpu
def test_streams_and_events_order_work():
    x = flow.randn(1000, 1000, device="cuda")
    before, side = cuda.current_stream(), cuda.Stream()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    side.wait_stream(before)
    with cuda.stream(side):
        assert cuda.current_stream() == side
        start.record()
        y = flow.softmax(x, 1)
        end.record()
    assert cuda.current_stream() == before
    before.wait_stream(side)
    np.testing.assert_allclose(y.sum(1).cpu().numpy(), 1, atol=1e-5)
    end.synchronize()
    assert end.query() and start.elapsed_time(end) > 0


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("count", [1000, 3_000_000])
def test_memory_that_another_stream_reads_is_kept(count):
    s1, s2 = cuda.Stream(), cuda.Stream()
    with cuda.stream(s1):
        x = flow.full((count,), 3.0, device="cuda")
    s2.wait_stream(s1)
    with cuda.stream(s2):
        a = flow.ones(2048, 2048, device="cuda")
        for _ in range(6):
            a = (a @ a).clamp(0, 1)
        y = x * 2 + a[0, 0] * 0
    x.record_stream(s2)
    del x
    with cuda.stream(s1):
        over = [flow.full((count,), 7.0, device="cuda") for _ in range(3)]
    cuda.synchronize()
    assert (y == 6).all() and (over[0] == 7).all()
    with pytest.raises(RuntimeError, match="self is on cpu"):
        flow.ones(1).record_stream(s1)


@needs_gpu
def test_a_graph_replays_on_new_values():
    x = flow.randn(64, 1000, device="cuda")
    flow.softmax(x, 1)  # warm: kernels are loaded
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = flow.softmax(x, 1)
    for seed in range(2):
        values = np.random.default_rng(seed).standard_normal((64, 1000)).astype(np.float32)
        x.copy_(flow.from_numpy(values).cuda())
        graph.replay()
        exact = np.exp(values.astype(np.float64))
        np.testing.assert_allclose(y.cpu().numpy(), exact / exact.sum(1, keepdims=True), rtol=4e-6,
                                   atol=1e-7)  # fmt: skip


@pytest.mark.cuda
@needs_gpu
def test_a_graph_keeps_what_was_copied_from_the_host():
    """Its replays do not read the host's memory, which is another's by then."""
    x = flow.randn(4, 4, device="cuda")
    few, many = flow.tensor([2.0, 3.0]), flow.arange(300_000)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        columns = x[:, [0, 2]]
        moved, long = few.cuda() * 2, many.cuda() + 1
        pieces = [flow.tensor([k, k + 1], device="cuda") for k in range(300)]
        total = flow.stack(pieces).sum(0) + flow.tensor(0.5, device="cuda")
    few.fill_(7)
    many.fill_(7)
    junk = [flow.tensor([3, 3]) for _ in range(1000)]
    for _ in range(2):
        x.copy_(flow.randn(4, 4))
        graph.replay()
        assert flow.equal(columns, x[:, [0, 2]])
        assert moved.tolist() == [4, 6] and flow.equal(long.cpu(), flow.arange(1, 300_001))
        assert total.tolist() == [44850.5, 45150.5]
    assert len(junk) == 1000


@pytest.mark.cuda
@needs_gpu
def test_what_needs_values_is_refused_and_the_capture_goes_on():
    x = flow.randn(4, 4, device="cuda")
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        y = x * 2
        for read in (y.cpu, y.tolist, y.sum().item, lambda: float(y[0, 0])):
            with pytest.raises(RuntimeError, match="a copy to the host cannot be captured"):
                read()
        z = y + 1
    graph.replay()
    assert flow.equal(z, x * 2 + 1)


@pytest.mark.cuda
@needs_gpu
def test_memory_is_counted_and_given_back():
    cuda.empty_cache()
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    x = flow.empty(2**22, device="cuda")
    assert cuda.memory_allocated() - before >= 2**24 <= cuda.memory_reserved()
    del x
    assert cuda.memory_allocated() == before
    assert cuda.max_memory_allocated() - before >= 2**24
    reserved = cuda.memory_reserved()
    cuda.empty_cache()
    assert cuda.memory_reserved() <= reserved - 2**24


@pytest.mark.cuda
@needs_gpu
def test_without_caching_memory_is_what_was_asked_for():
    code = """if True:
        import oneflow_lite as flow
        x = flow.ones(1001, device="cuda", dtype=flow.uint8)
        y = (x + x).sum().item()
        print(y, flow.cuda.memory_allocated(), flow.cuda.memory_reserved())
        del x
        print(flow.cuda.memory_allocated(), flow.cuda.memory_reserved())
    """
    env = {**os.environ, "OFL_NO_CUDA_MEMORY_CACHING": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=env, text=True, capture_output=True)
    assert run.stdout == "2002 1001 1001\n0 0\n", run.stderr


@pytest.mark.cuda
@needs_gpu
def test_out_of_memory_is_survived():
    with pytest.raises(flow.OutOfMemoryError):
        flow.empty(2**46, device="cuda", dtype=flow.uint8)
    assert flow.ones(2, device="cuda").sum().item() == 2


@pytest.mark.cuda
@needs_gpu
def test_modules_move_and_train():
    model = flow.nn.Linear(8, 3).cuda()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = flow.randn(16, 8, device="cuda"), flow.from_numpy(np.arange(16) % 3).cuda()
    losses = []
    for _ in range(20):
        loss = flow.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert model.cpu().weight.device == flow.device("cpu")


READS = {
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "copy_": lambda x: flow.zeros(4).copy_(x),
    "item": lambda x: x[0].item(),
    "tolist": lambda x: x.tolist(),
    "equal": lambda x: flow.equal(x, x),
    "nonzero": lambda x: flow.nonzero(x),
    "masked_select": lambda x: flow.masked_select(x, x > 0),
    "unique": lambda x: flow.unique(x),
}


@needs_gpu
@pytest.mark.parametrize("name", READS)
def test_who_waits_for_a_small_tensor_lets_other_threads_run(name):
    count, stop = [0], threading.Event()

    def work():
        while not stop.is_set():
            count[0] += 1

    x, big = flow.ones(4, device="cuda"), flow.randn(8192, 8192, device="cuda")
    READS[name](x)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):  # some hundred milliseconds of work before what is read
            big @ big
        before, start = count[0], time.perf_counter()
        READS[name](x)
        waited, after = time.perf_counter() - start, count[0]
    finally:
        stop.set()
        thread.join()
    assert waited > 0.05 and after - before > 1000, (waited, after - before)
