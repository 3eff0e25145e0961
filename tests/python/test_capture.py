# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs and streams: a step is captured and replayed, and ordered."""

import numpy as np
import pytest
from numerics import assert_close, flow, host, tensor
from op_reference import np_softmax

ext = flow._oneflow_lite


def needs_gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")


def reductions_in_chunks(x):
    """Whose blocks count in the stream's memory which of them is the last."""
    return [x.sum(), x.sum(0), x[:, :40].sum(0), x.var(0), x.amax(), x.reshape(-1, 8).logsumexp(0)]


@pytest.mark.cuda
def test_reductions_in_chunks_on_two_streams_and_in_a_graph():
    needs_gpu()
    x = flow.randn(40000, 48, device="cuda")
    want = [y.cpu().numpy() for y in reductions_in_chunks(x)]
    sides = [flow.cuda.Stream(), flow.cuda.Stream()]
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        captured = reductions_in_chunks(x)
    flow.cuda.synchronize()
    found = []
    for _ in range(20):
        for side in sides:
            with flow.cuda.stream(side):
                found.append(reductions_in_chunks(x))
        graph.replay()
        found.append(reductions_in_chunks(x))
    flow.cuda.synchronize()
    for ys in [*found, captured]:
        for y, expected in zip(ys, want, strict=True):
            np.testing.assert_array_equal(y.cpu().numpy(), expected)


@pytest.mark.cuda
def test_a_softmax_is_captured_and_replayed():
    needs_gpu()
    x = flow.randn(64, 1000, device="cuda")
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        for _ in range(2):
            flow.softmax(x, 1)
    flow.cuda.current_stream().wait_stream(side)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y = flow.softmax(x, 1)
        z = flow.log_softmax(x, 0)
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal((64, 1000))
        x.copy_(tensor(values, "float32", "cuda"))
        graph.replay()
        flow.cuda.synchronize()
        assert_close(y, np_softmax(host(x), 1), "softmax")
        assert_close(z, np_softmax(host(x), 0, True), "log_softmax")


@pytest.mark.cuda
def test_a_training_step_is_captured_and_replayed():
    needs_gpu()
    w = flow.zeros(64, 10, device="cuda", requires_grad=True)
    x = flow.randn(128, 64, device="cuda")
    labels = flow.tensor(np.random.default_rng(0).integers(0, 10, 128), device="cuda")

    def step():
        loss = flow.cross_entropy(x @ w, labels)
        (grad,) = flow.autograd.grad(loss, w)
        with flow.no_grad():
            w.sub_(grad * 0.1)
        return loss

    losses = [step().item() for _ in range(3)]
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        loss = step()
    for _ in range(20):
        graph.replay()
        losses.append(loss.item())
    assert all(later < earlier for earlier, later in zip(losses, losses[1:], strict=False))


@pytest.mark.cuda
def test_replays_take_new_random_numbers_as_eager_calls_do():
    needs_gpu()
    x = flow.ones(1000, device="cuda")

    def draw():
        return flow.nn.functional.dropout(x, 0.5), flow.randn(33, device="cuda"), flow.rand_like(x)

    def eager(times):
        return [[host(t) for t in draw()] for _ in range(times)]

    draw()
    flow.manual_seed(3)
    expected = eager(4)
    flow.manual_seed(3)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        drawn = draw()
    replayed = []
    for k in range(4):
        if k == 2:  # eager calls in between take the next numbers
            replayed += eager(1)
            continue
        graph.replay()
        replayed.append([host(t) for t in drawn])
    for got, want in zip(replayed, expected, strict=True):
        for g, w in zip(got, want, strict=True):
            assert np.array_equal(g, w)
    assert not np.array_equal(expected[0][0], expected[1][0])

    flow.manual_seed(4)  # another seed than that of the capture
    expected = eager(1)
    flow.manual_seed(4)
    graph.replay()
    for got, want in zip(drawn, expected[0], strict=True):
        assert np.array_equal(host(got), want)


@pytest.mark.cuda
def test_a_generator_of_ones_own_is_not_captured():
    needs_gpu()
    generator = flow.Generator("cuda").manual_seed(1)
    before = flow.randn(8, device="cuda", generator=generator)
    generator.manual_seed(1)
    graph = flow.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="leave `generator` out"):
        with flow.cuda.graph(graph):
            y = flow.ones(8, device="cuda")
            flow.randn(8, device="cuda", generator=generator)
    assert np.array_equal(host(flow.randn(8, device="cuda", generator=generator)), host(before))
    assert y.shape == (8,)


@pytest.mark.cuda
def test_streams_and_events_order_work():
    needs_gpu()
    x = flow.ones(1 << 22, device="cuda")
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        for _ in range(50):
            x.mul_(1.0)
        x.add_(1.0)
        done = flow.cuda.Event()
        done.record()
    done.wait()
    assert (x + 1).sum().item() == 3 * (1 << 22)
    assert done.query()


@pytest.mark.cuda
def test_backward_runs_on_the_stream_of_forward():
    needs_gpu()
    x = flow.randn(256, 1000, device="cuda", requires_grad=True)
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        y = flow.softmax(x, 1)
        loss = (y * y).sum()
        busy = flow.randn(4096, 4096, device="cuda")
        for _ in range(8):
            busy = flow.softmax(busy, 1)
    # Nothing waits but what backward makes wait: it begins and ends on the stream of the caller.
    loss.backward()
    found = x.grad + 0
    with flow.cuda.stream(side):
        (captured,) = flow.autograd.grad((flow.softmax(x, 1) ** 2).sum(), x)
    flow.cuda.synchronize()
    (expected,) = flow.autograd.grad(flow.softmax(x, 1), x, 2 * y.detach())
    assert np.allclose(host(found), host(expected), rtol=1e-4, atol=1e-12)
    assert np.allclose(host(captured), host(expected), rtol=1e-4, atol=1e-12)
