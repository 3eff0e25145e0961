# SPDX-License-Identifier: Apache-2.0
"""Two GPUs through NCCL: the bodies of the CPU's tests on two ranks, each with a GPU, and what CUDA
alone has, captured steps. What goes wrong is in test_two_gpus_failures.py.

OFL_TEST_TWO_ON=cpu runs what both have over Gloo, to try these files without GPUs. With the checks
of collectives on, but in training.
"""

import itertools
import os
import subprocess
import sys

import distributed_cases
import numpy as np
import pytest
import test_data_parallel
import test_distributed
import test_global
import test_global_costs
import test_global_head
import test_global_ops
import test_global_programs
import test_global_training
import test_global_views
import test_parallel_gpt
import test_pipeline
import test_zero_optimizer
from rank_group import DEVICE, _free_port, unchecked
from two_gpus import ON, close, group, marks, only_cuda

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import distributed as dist  # noqa: E402
from oneflow_lite.models import gpt  # noqa: E402

LINE, GRIDS = [0, 1], [[[0, 1]], [[0], [1]]]
pytestmark = marks


@pytest.fixture(scope="module", autouse=True)
def closed():
    yield
    close()


# Collectives on local tensors.


def run_case(rank, name):
    getattr(distributed_cases, name)()


@pytest.mark.parametrize("name", test_distributed.NAMES)
def test_collectives(pair, name):
    pair.run(run_case, name, timeout=60)


def where(rank):
    """The rank's own GPU is the current one, and makes what is asked of "cuda"."""
    x = flow.ones(2, device=DEVICE)
    assert x.device == dist.get_device() and x.device.index in (None, 0, rank)
    p = flow.placement(DEVICE, [0, 1])
    assert flow.ones(2, placement=p, sbp=flow.sbp.broadcast).to_local().device == x.device
    dist.barrier(device_type=DEVICE)
    return str(x.device)


def test_each_rank_has_a_device_of_its_own(pair):
    found = pair.run(where, timeout=60)
    assert found == (["cuda:0", "cuda:1"] if ON == "cuda" else ["cpu", "cpu"])


GLOBAL_FIRST = """
import oneflow_lite as flow
p = flow.placement("cuda", [0, 1])
x = flow.ones(3, placement=p, sbp=flow.sbp.partial_sum) + flow.ones(
    3, placement=p, sbp=flow.sbp.partial_sum)
print(x.to_local().device, x.numpy().tolist())
"""


@only_cuda
@pytest.mark.parametrize("hidden", [False, True], ids=["both in sight", "one in sight"])
def test_global_tensors_find_the_ranks_gpu(hidden):
    """Without init(), and where a launcher lets each rank see its own GPU alone."""
    port, processes = str(_free_port()), []
    for rank in range(2):
        env = os.environ | {
            "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "OFL_TIMEOUT": "20",
            "MASTER_ADDR": "127.0.0.1", "OFL_MASTER_PORT": port,
        }  # fmt: skip
        if hidden:
            env["CUDA_VISIBLE_DEVICES"] = str(rank)
        command = [sys.executable, "-c", GLOBAL_FIRST]
        processes.append(subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT))  # fmt: skip
    try:
        for rank, process in enumerate(processes):
            said, _ = process.communicate(timeout=60)
            where = 0 if hidden else rank
            assert f"cuda:{where} [2.0, 2.0, 2.0]" in said, said
    finally:
        for process in processes:
            process.kill()


# Boxing.


def ways(grid):
    one = [(s,) for s in test_global.SBPS]
    if np.ndim(grid) == 1:
        return one
    return [(a, b) for (a,) in one for (b,) in one]


@pytest.mark.parametrize("grid", [LINE, [1, 0], *GRIDS], ids=str)
def test_boxing(pair, grid):
    """All pairs, even and uneven shapes, one with an empty shard."""
    pairs = [(a, b) for a in ways(grid) for b in ways(grid)]
    for shape in test_global.SHAPES if np.ndim(grid) == 1 else [(6, 8), (5, 7), (1, 3)]:
        pair.run(test_global.box_all, grid, pairs, shape, timeout=60)


@pytest.mark.parametrize("source, target", [
    (LINE, [1, 0]), ([0], LINE), (LINE, [1]), ([0], [1]), (LINE, [[0], [1]]), ([[0, 1]], [1]),
], ids=str)  # fmt: skip
def test_boxing_to_another_placement(pair, source, target):
    for shape in [(6, 8), (5, 7), (1, 3)]:
        pair.run(test_global.box_across, source, target, shape, ways(source), ways(target),
                 timeout=60)  # fmt: skip


@pytest.mark.parametrize("body", [
    test_global.box_dtypes, test_global.gradients, test_global.factories, test_global.in_place,
    test_global_programs.copies, test_global_training.accumulated,
    test_global_training.split_state, test_global_training.found_inf,
    test_data_parallel.beside_others, test_data_parallel.random_numbers,
    test_data_parallel.overlapping,
], ids=lambda f: f"{f.__module__}.{f.__name__}")  # fmt: skip
def test_bodies(pair, body):
    pair.run(body, timeout=60)


@pytest.mark.parametrize("number", range(len(test_global_programs.PROGRAMS)),
                         ids=[p.__name__ for p in test_global_programs.PROGRAMS])  # fmt: skip
def test_programs(pair, number):
    pair.run(test_global_programs.run_program, number, timeout=60)


@pytest.mark.parametrize("grid", [LINE, GRIDS[0]], ids=["line", "grid"])
def test_writes_into_views(pair, grid):
    v = test_global_views
    pair.run(v.write, grid, v.STATEMENTS + v.METHODS, v.INDICES[:-2:2], np.float64, timeout=90)
    pair.run(v.write, grid, v.INTEGERS, v.INDICES[::3], np.int64, timeout=60)


def test_gradients_through_views(pair):
    v = test_global_views
    pair.run(v.gradients, LINE, v.FOLLOWED, ["1:3", "..., 1:5:2", "4:4"], timeout=60)


# Random numbers by the place in the whole: those of one process on the same device.


@pytest.mark.parametrize("grid", [LINE, GRIDS[0]], ids=["line", "grid"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", ["dropout", "dropout2d", "alpha_dropout"])
def test_dropout_draws_as_one_process(pair, function, dtype, grid):
    pair.run(test_global_costs.dropped, grid, function, dtype, timeout=60)


DRAWS = {
    "rand": lambda **at: flow.rand(5, 6, **at), "randn": lambda **at: flow.randn(5, 6, **at),
    "randint": lambda **at: flow.randint(0, 100, (5, 6), **at),
    "normal_": lambda **at: flow.empty(5, 6, **at).normal_(),
    "uniform_": lambda **at: flow.empty(5, 6, **at).uniform_(),
    "bernoulli": lambda **at: flow.bernoulli(flow.full((5, 6), 0.5, **at)),
}  # fmt: skip


def drawn(rank, name):
    draw = DRAWS[name]
    flow.manual_seed(9)
    want = [draw(device=DEVICE).cpu().numpy() for _ in range(2)]
    p = flow.placement(DEVICE, LINE)
    for sbp in (flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast):
        flow.manual_seed(9)
        for values in want:
            np.testing.assert_array_equal(draw(placement=p, sbp=sbp).numpy(), values)


@pytest.mark.parametrize("name", list(DRAWS))
def test_numbers_are_those_of_one_process(pair, name):
    pair.run(drawn, name, timeout=60)


# Training.


@pytest.mark.parametrize("loss", list(test_global_training.LOSSES))
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("recipe", ["data", "tensor", "both"])
def test_an_mlp_on_global_tensors(pair, recipe, optimizer, loss):
    pair.run(test_global_training.trained, recipe, optimizer, loss, timeout=60)


@pytest.mark.parametrize("recipe", ["data", "tensor"])
def test_clipped_gradients(pair, recipe):
    pair.run(test_global_training.clipped, recipe, timeout=60)


@pytest.mark.parametrize("classes", [9, 8, 3], ids=str)
def test_cross_entropy_of_split_classes(pair, classes):
    pair.run(test_global_training.split_classes, LINE, "1", classes, timeout=60)
    for sbps in ("01", "10", "B1"):
        pair.run(test_global_training.split_classes, GRIDS[0], sbps, classes, timeout=60)


@pytest.mark.parametrize("dtype", list(test_global_head.CLOSE))
@pytest.mark.parametrize("classes", [12, 13, 1, 4099])
def test_a_head_that_is_split_by_class(pair, classes, dtype):
    for bias, options in itertools.product((False, True), test_global_head.OPTIONS):
        pair.run(test_global_head.head, LINE, "B", "0", classes, dtype, bias, "fused", options,
                 timeout=60)  # fmt: skip
    pair.run(test_global_head.head, LINE, "B", "0", classes, dtype, True, "plain", {}, timeout=60)


@pytest.mark.parametrize("x_sbp, w_sbp", [("0B", "B0"), ("B0", "0B"), ("00", "B0"), ("0B", "BB")])
def test_a_head_on_a_grid(pair, x_sbp, w_sbp):
    for grid, options in itertools.product(GRIDS, test_global_head.OPTIONS):
        pair.run(test_global_head.head, grid, x_sbp, w_sbp, 13, "float64", True, "fused", options,
                 timeout=60)  # fmt: skip


def test_what_a_split_head_runs_and_sends(pair):
    pair.run(test_global_head.passes, LINE, 13, timeout=60)
    pair.run(test_global_head.second_order, LINE, timeout=60)
    pair.run(test_global_head.a_bad_target, LINE, timeout=60)
    for w_sbp in "B0":
        pair.run(test_global_head.weights, LINE, w_sbp, timeout=60)


@pytest.mark.parametrize("dtype", list(test_parallel_gpt.CLOSE))
@pytest.mark.parametrize("zero", [0, 1, 2])
def test_a_gpt_data_parallel(pair, zero, dtype):
    pair.run(test_parallel_gpt.data_parallel, 2, "gpt2", dtype, zero, timeout=90)


@pytest.mark.parametrize("kind, dtype", [("gpt2", "float64"), ("gpt2", "float32"),
                                         ("llama", "float64")])  # fmt: skip
def test_a_gpt_tensor_parallel(pair, kind, dtype):
    pair.run(test_parallel_gpt.tensor_parallel, LINE, kind, dtype, timeout=90)


def test_a_gpt_tensor_parallel_on_a_grid(pair):
    pair.run(test_parallel_gpt.tensor_parallel, GRIDS[0], "gpt2", "float64", 15, timeout=90)
    pair.run(test_parallel_gpt.tensor_parallel, GRIDS[1], "gpt2", "float64", 15, timeout=90)


@pytest.mark.parametrize("dtype", list(test_parallel_gpt.CLOSE))
def test_a_gpt_in_a_pipeline(pair, dtype):
    pair.run(test_parallel_gpt.pipeline, dtype, timeout=90)


@pytest.mark.parametrize("branches", list(test_data_parallel.BRANCHES))
@pytest.mark.parametrize("bucket_mb", [25, 200 / 2**20, 0], ids=["one", "some", "each"])
def test_gradients_are_the_mean(pair, branches, bucket_mb):
    pair.run(test_data_parallel.reduced, 2, branches, bucket_mb, timeout=60)


def test_a_gradient_by_itself(pair):
    pair.run(test_data_parallel.by_themselves, 2, timeout=60)


@pytest.mark.parametrize("ignore", [False, True], ids=["all", "some ignored"])
@pytest.mark.parametrize("rows", [(5, 2), (4, 0)], ids=str)
def test_uneven_batches(pair, rows, ignore):
    pair.run(test_data_parallel.uneven, rows, ignore, timeout=60)


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_a_split_optimizer(pair, name, stage):
    pair.run(test_zero_optimizer.trained, 2, name, stage, "both", None, timeout=60)


@pytest.mark.parametrize("kind", ["plain", "tuple", "frozen", "tied"])
def test_pipelines(pair, kind):
    pair.run(test_pipeline.trained, LINE, kind, 11, 4, timeout=60)


@pytest.mark.parametrize("kind", ["plain", "tied"])
def test_a_scaler_in_a_pipeline(pair, kind):
    pair.run(test_pipeline.scaled, LINE, kind, 1, timeout=60)


# Captured steps.


def make_step(recipe, captured):
    """A step of two blocks in deterministic mode, and the model."""
    flow.manual_seed(6)
    config = gpt.PRESETS["tiny"].replaced(length=16, vocab=64, layers=2, width=32, dropout=0.1)
    model = dist.DataParallel(gpt.build(flow, config).to(DEVICE), 20_000 / 2**20)
    if recipe == "ddp":
        optimizer = flow.optim.AdamW(model.parameters(), lr=1e-2)
    else:
        groups = list(model.module.parameters())
        optimizer = dist.ZeroOptimizer(flow.optim.AdamW, groups, stage=int(recipe[-1]), lr=1e-2)

    def step(ids, targets):
        loss = model.module.loss(ids, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return flow.cuda.graphed_step(step) if captured else step, model.module


@unchecked()
def replayed(rank, recipe):
    flow.use_deterministic_algorithms(True)
    try:
        results = []
        for captured in (False, True):
            step, model = make_step(recipe, captured)
            rng, losses = np.random.default_rng(rank), []
            for _ in range(12):
                ids = flow.tensor(rng.integers(0, 64, (4, 17)), device=DEVICE)
                losses.append(step(ids[:, :-1].contiguous(), ids[:, 1:].contiguous()).item())
            results.append((losses, [p.detach().cpu().numpy().tobytes()
                                     for p in model.parameters()]))  # fmt: skip
            assert not captured or step.captured
        np.testing.assert_array_equal(results[1][0], results[0][0])
        assert results[0][1] == results[1][1]
        everyone = [None, None]
        dist.all_gather_object(everyone, results[1][1])
        assert everyone[0] == everyone[1]
    finally:
        flow.use_deterministic_algorithms(False)


@only_cuda
@pytest.mark.parametrize("recipe", ["ddp", "zero1"])
def test_replays_are_eager_steps_to_the_bit(pair, recipe):
    pair.run(replayed, recipe, timeout=90)


@unchecked()
def captured_collectives(rank):
    """Each kind in a graph, replayed with other values; beside it the watch looks at events."""
    x = flow.full([1000], 1.0 + rank, device=DEVICE)
    total, parts = flow.empty(1000, device=DEVICE), flow.empty(2000, device=DEVICE)
    half, swapped = flow.empty(500, device=DEVICE), flow.empty(1000, device=DEVICE)

    def run():
        total.copy_(x)
        dist.all_reduce(total)
        dist.all_gather_into_tensor(parts, x)
        dist.reduce_scatter_tensor(half, x)
        dist.all_to_all_single(swapped, x)
        dist.broadcast(parts, 1)

    run()  # connects
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        run()
    for k in range(20):
        x.fill_(k + 1.0 + rank)
        graph.replay()
        assert total[3].item() == half[7].item() == 2 * k + 3
        assert parts[[0, 1000]].tolist() == [k + 1, k + 2]
        assert swapped[[0, 500]].tolist() == [k + 1, k + 2]


@only_cuda
def test_a_graph_of_collectives(pair):
    pair.run(captured_collectives, timeout=60)


def captured_first(rank):
    """Ranks that have not met: an error, and no hang."""
    group = dist.new_group([1, 0])
    x = flow.ones(4, device=DEVICE)
    graph = flow.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="call a collective of these ranks before the capture"):
        with flow.cuda.graph(graph):
            dist.all_reduce(x, group=group)


@only_cuda
def test_ranks_are_connected_before_a_capture(pair):
    pair.close()  # whose ranks may have met in other tests
    fresh = group()
    fresh.run(captured_first, timeout=60)
    fresh.close()  # the ranks were told that one failed


# The op table, last: it is long.
CALLS = 2


@pytest.mark.parametrize("name", [n for n in test_global_ops.OWN
                                  if n not in test_global_ops.LOCAL_ONLY])  # fmt: skip
def test_each_signature_gives_what_one_device_gives(pair, name):
    if name == "lstsq" and ON == "cuda":
        pytest.skip("the op is LAPACK's; linalg.lstsq() goes by QR on CUDA")
    samples = test_global_ops.samples_of(name)[:CALLS]
    counts = pair.run(test_global_ops.check_op_on, name, LINE, samples, timeout=60)
    assert counts[0] == counts[1] and (counts[0] > 0 or not samples)


@pytest.mark.parametrize("name", ["add", "mul", "matmul", "linear", "sum", "cat", "softmax",
                                  "permute", "view", "where", "add_", "loss", "cross_entropy",
                                  "layer_norm"])  # fmt: skip
def test_signatures_on_a_grid(pair, name):
    samples = test_global_ops.samples_of(name)[:CALLS]
    assert pair.run(test_global_ops.check_op_on, name, GRIDS[0], samples, timeout=60)[0] > 0
