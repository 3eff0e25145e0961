# SPDX-License-Identifier: Apache-2.0
"""cuda.graphed_step: as many steps as calls, the lr of now, clear errors."""

import numpy as np
import pytest
from numerics import flow, host

from oneflow_lite.cuda.graphed import _describe, _is_same, _words
from oneflow_lite.optim.optimizer import in_graphed_step

nn, F = flow.nn, flow.nn.functional


def test_what_is_of_no_use_is_refused():
    with pytest.raises(TypeError, match="fn must be callable"):
        flow.cuda.graphed_step(3)
    with pytest.raises(ValueError, match="warmup is 0"):
        flow.cuda.graphed_step(lambda: None, warmup=0)


@pytest.mark.skipif(flow.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so():
    step = flow.cuda.graphed_step(lambda x: x)
    with pytest.raises(RuntimeError, match="(?i)cuda"):
        step(flow.ones(2))


def test_arguments_that_are_no_tensors_are_the_same_or_not():
    array, nan = np.arange(3), float("nan")

    def is_same(one, other):
        return _is_same(_describe(one, []), _describe(other, []))

    for same in (1, True, None, "a", nan, (1, [2.5, {"k": array}])):
        assert is_same(same, same)
    assert is_same(nan, float("nan")) and is_same((0.5, "b"), (0.5, "b"))
    for one, other in [(1, True), (1, 1.0), (0.0, -0.0), (array, array.copy()), ([1], (1,)),
                       ({"k": 1}, {"k": 2}), (None, False)]:  # fmt: skip
        assert not is_same(one, other) and not is_same((3, one), (3, other))
    assert _words(_describe((nan, 1, "a"), [])) == "(nan, 1, 'a')"


@pytest.fixture
def gpu():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")


class Training:
    """A model, its optimizer and a step; every one made the same way is the same."""

    def __init__(self, kind="AdamW", amp=False, parts=1, drop_first=True):
        flow.manual_seed(0)
        layers = nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)
        self.model = nn.Sequential(*layers).cuda()
        self.optimizer = getattr(flow.optim, kind)(self.model.parameters(), lr=1e-2)
        self.amp, self.parts, self.drop_first = amp, parts, drop_first
        self.scaler = flow.amp.GradScaler("cuda", 1024.0) if amp == "float16" else None

    def step(self, x, y):
        if self.drop_first:
            self.optimizer.zero_grad()
        total = 0
        for part, target in zip(x.chunk(self.parts), y.chunk(self.parts), strict=True):
            enabled = bool(self.amp)
            with flow.autocast("cuda", getattr(flow, self.amp or "bfloat16"), enabled=enabled):
                loss = F.cross_entropy(self.model(part), target) / self.parts
            (self.scaler.scale(loss) if self.scaler else loss).backward()
            total = total + loss.detach()
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if not self.drop_first:
            self.optimizer.zero_grad()
        return total


def batches(count, device="cuda"):
    rng = np.random.default_rng(0)
    for _ in range(count):
        x = rng.standard_normal((8, 16)).astype(np.float32)
        yield flow.tensor(x, device=device), flow.tensor(x[:, :4].argmax(1), device=device)


def lr_at(k):
    return 1e-2 * (1 + k % 3)


@pytest.mark.cuda
@pytest.mark.parametrize("kind", ["AdamW", "SGD", "RMSprop", "Adadelta", "Adagrad", "Lion"])
@pytest.mark.parametrize("amp, parts, drop_first", [
    (False, 1, True), ("bfloat16", 1, True), ("float16", 1, True), (False, 2, True),
    ("bfloat16", 4, False),
])  # fmt: skip
def test_graphed_steps_are_eager_ones_bit_for_bit(gpu, kind, amp, parts, drop_first):
    eager, graphed = (Training(kind, amp, parts, drop_first) for _ in range(2))
    step = flow.cuda.graphed_step(graphed.step)
    for k, (x, y) in enumerate(batches(40)):
        for training in (eager, graphed):
            training.optimizer.param_groups[0]["lr"] = lr_at(k)
        a, b = eager.step(x, y), step(x, y)
        assert a.item() == b.item(), k
    assert step.captured
    for p, q in zip(eager.model.parameters(), graphed.model.parameters(), strict=True):
        np.testing.assert_array_equal(host(p), host(q))


@pytest.mark.cuda
def test_inputs_may_be_on_the_cpu(gpu):
    one, other = Training(), Training()
    steps = [flow.cuda.graphed_step(t.step) for t in (one, other)]
    for (x, y), (u, v) in zip(batches(8), batches(8, "cpu"), strict=True):
        assert steps[0](x, y).item() == steps[1](u, v).item()


@pytest.mark.cuda
def test_gradients_may_be_kept_over_calls(gpu):
    eager, graphed = Training(), Training()
    grads = []
    for training in (eager, graphed):

        def add(x, y, t=training):
            loss = F.cross_entropy(t.model(x), y)
            loss.backward()
            return loss.detach()

        call = add if training is eager else flow.cuda.graphed_step(add, warmup=2)
        for x, y in batches(6):
            call(x, y)
        grads.append([host(p.grad) for p in training.model.parameters()])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.cuda
def test_what_cannot_be_captured_is_named(gpu):
    training = Training()

    def step(x, y):
        loss = training.step(x, y)
        return float(loss.item())

    graphed = flow.cuda.graphed_step(step, warmup=1)
    x, y = next(batches(1))
    graphed(x, y)
    before = [host(p) for p in training.model.parameters()]
    with pytest.raises(
        RuntimeError, match=r"graphed_step\(\): step cannot be captured.*\.item\(\)"
    ):
        graphed(x, y)
    for p, was in zip(training.model.parameters(), before, strict=True):
        np.testing.assert_array_equal(host(p), was)
    training.step(x, y)  # and it goes on as before


@pytest.mark.cuda
def test_what_changed_since_the_capture_is_named(gpu):
    training = Training()
    step = flow.cuda.graphed_step(training.step, warmup=1)
    for x, y in batches(3):
        step(x, y)
    with pytest.raises(ValueError, match="float32\\[4, 16\\].*float32\\[8, 16\\]"):
        step(x[:4], y[:4])
    training.optimizer.param_groups[0]["weight_decay"] = 0.5
    with pytest.raises(RuntimeError, match="weight_decay.*0.5.*0.01"):
        step(x, y)


@pytest.mark.cuda
def test_a_schedule_inside_is_refused(gpu):
    training = Training()
    schedule = flow.optim.lr_scheduler.StepLR(training.optimizer, 1)

    @flow.cuda.graphed_step(warmup=1)
    def step(x, y):
        loss = training.step(x, y)
        schedule.step()
        return loss

    x, y = next(batches(1))
    with pytest.raises(RuntimeError, match="within a step of graphed_step no schedule can go on"):
        step(x, y)


def test_a_schedule_inside_is_refused_before_it_changes_anything():
    optimizer = flow.optim.SGD([flow.zeros(2, requires_grad=True)], lr=1.0)
    schedules = [flow.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5),
                 flow.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)]  # fmt: skip
    for schedule in schedules:
        with in_graphed_step([]), pytest.raises(RuntimeError, match="call it beside the step"):
            schedule.step(*[1.0] * (schedule is schedules[1]))
        assert optimizer.param_groups[0]["lr"] == 1.0
    schedules[0].step()
    assert optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.cuda
def test_what_the_body_says_is_heard_and_an_empty_graph_is_refused(gpu):
    x = flow.ones(4, device="cuda")
    with pytest.raises(KeyError, match="mine"), flow.cuda.graph(flow.cuda.CUDAGraph()):
        raise KeyError("mine")
    with pytest.raises(ZeroDivisionError), flow.cuda.graph(flow.cuda.CUDAGraph()):
        with pytest.raises(RuntimeError):
            flow.cuda.current_stream().synchronize()  # which ends the capture
        raise ZeroDivisionError
    graph = flow.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="nothing was captured on cuda:0"):
        with flow.cuda.graph(graph):
            pass
    with pytest.raises(RuntimeError, match="has not captured anything"):
        graph.replay()
    assert (x + 1).tolist() == [2] * 4


@pytest.mark.cuda
@pytest.mark.parametrize("current", [0, 1])
def test_a_step_of_another_gpu_than_the_current_one(gpu, current):
    if flow.cuda.device_count() < 2:
        pytest.skip("one GPU here")
    where = f"cuda:{1 - current}"
    before = flow.cuda.current_device()
    flow.cuda.set_device(current)
    try:
        x = flow.zeros(3, device=where)

        def step(y):
            x.add_(y)
            return x * 2

        graphed = flow.cuda.graphed_step(step, warmup=1, device=where)
        for k in range(5):
            assert graphed(flow.ones(3)).tolist() == [2 * k + 2] * 3
        graph, side = flow.cuda.CUDAGraph(), flow.cuda.Stream(where)
        with flow.cuda.graph(graph, side):
            x.add_(1)
        flow.cuda.set_device(1 - current)
        graph.replay()
        flow.cuda.set_device(current)
        graph.replay()
        assert x.tolist() == [7] * 3
    finally:
        flow.cuda.set_device(before)


@pytest.mark.cuda
def test_dropout_differs_between_replays(gpu):
    drop = nn.Dropout(0.5)
    step = flow.cuda.graphed_step(lambda x: drop(x), warmup=1)
    x = flow.ones(1000, device="cuda")
    seen = [host(step(x)).tobytes() for _ in range(5)]
    assert len(set(seen)) == 5


@pytest.mark.cuda
def test_replays_draw_what_eager_calls_draw(gpu):
    """Whatever the memory of the graph was used for before the first random number."""
    drop = nn.Dropout(0.5)

    def step(x):
        for size in (1, 64, 128, 1000, 4096):  # blocks of many sizes, free again
            x = x + flow.full((size,), 7.0, device="cuda").sum() * 0
        return drop(x), flow.rand(5, device="cuda")

    x, seen = flow.ones(1000, device="cuda"), []
    for call in (step, flow.cuda.graphed_step(step, warmup=1)):
        flow.manual_seed(3)
        seen.append([[host(t).tobytes() for t in call(x)] for _ in range(6)])
    assert seen[0] == seen[1]


@pytest.mark.cuda
def test_memory_of_the_first_calls_is_given_back(gpu):
    def peak(graphed):
        flow.cuda.synchronize()
        flow.cuda.empty_cache()
        before = flow.cuda.memory_reserved()
        model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
        optimizer = flow.optim.SGD(model.parameters(), 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        call = flow.cuda.graphed_step(step) if graphed else step
        for _ in range(6):
            call(flow.ones(4096, 1024, device="cuda"))
        return flow.cuda.memory_reserved() - before

    eager = peak(False)
    assert peak(True) <= 1.25 * eager + (8 << 20)
