# SPDX-License-Identifier: Apache-2.0
"""`python -m oneflow_lite.distributed.plan`: bytes that can be counted by hand, and the page."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.distributed.plan import MODELS, RECIPES, Job, cost, main, table  # noqa: E402
from oneflow_lite.models.gpt import Config  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs/distributed_costs.md"
GPT2, LLAMA = MODELS["gpt2"], MODELS["7b"]
LOSS = 64  # a few numbers: sums of losses and of counts


def parameters(c):
    """Of a GPT-2 with one weight at both ends, or of a Llama with two."""
    kv = c.width * (c.kv_heads or c.heads) // c.heads
    if c.llama:
        block = 2 * c.width * (c.width + kv) + 3 * c.width * c.mlp_width + 2 * c.width
        return c.layers * block + c.width + 2 * c.vocab * c.width
    block = 4 * c.width * c.width + 4 * c.width + 4 * c.width
    block += 2 * c.width * c.mlp_width + c.mlp_width + c.width
    return c.layers * block + 2 * c.width + (c.vocab + c.length) * c.width


@pytest.mark.parametrize("gpus", [8, 512])
@pytest.mark.parametrize("job", [GPT2, LLAMA], ids=["gpt2", "7b"])
def test_data_parallel_sends_each_gradient_once(job, gpus):
    p = cost(job, "data", gpus)
    n = parameters(job.config)
    assert p.parameters == 2 * n == p.gradients and p.optimizer == 12 * n
    assert set(p.sent) == {"all_reduce"}
    assert 0 <= p.total - 2 * 2 * n * (gpus - 1) / gpus <= LOSS
    assert p.peak > p.parameters + p.gradients + p.optimizer


@pytest.mark.parametrize("gpus", [8, 512])
@pytest.mark.parametrize("recipe", ["zero1", "zero2"])
def test_zero_scatters_and_gathers(recipe, gpus):
    p, n = cost(GPT2, recipe, gpus), parameters(GPT2.config)
    assert p.sent["reduce_scatter"] == pytest.approx(2 * n * (gpus - 1) / gpus)
    assert p.sent["all_gather"] == p.sent["reduce_scatter"]
    assert p.sent["all_reduce"] <= LOSS
    assert p.parameters == 2 * n
    # Of 768 numbers, 256 ranks have 2, the others 1: a rank's part may be larger than its share.
    assert 1 <= p.optimizer / (12 * n / gpus) < 1.2
    assert 1 <= p.gradients / (2 * n / (gpus if recipe == "zero2" else 1)) < 1.2


def test_tensor_parallel_sums_four_times_a_layer():
    c, p = LLAMA.config, cost(LLAMA, "tensor", 8)
    activations = 8 * LLAMA.batch * c.length * c.width * 2
    assert p.sent["all_reduce"] == pytest.approx(c.layers * 4 * 2 * activations * 7 / 8, rel=1e-5)
    assert p.total == pytest.approx(p.sent["all_reduce"], rel=1e-5)
    ends = 2 * c.vocab * c.width  # whole on each
    assert p.parameters == pytest.approx(2 * (ends + (parameters(c) - ends) / 8), rel=1e-3)


def test_sequence_parallel_norms_send_as_much_in_halves():
    whole, parts = cost(LLAMA, "tensor", 8), cost(LLAMA, "sequence", 8)
    for half in ("reduce_scatter", "all_gather"):
        assert parts.sent[half] == pytest.approx(whole.sent["all_reduce"] / 2, rel=0.02)
    assert parts.peak < whole.peak


def test_a_vocabulary_parallel_head_gathers_no_logits():
    c = LLAMA.config
    whole, parts = cost(LLAMA, "tensor", 8), cost(LLAMA, "vocabulary", 8)
    rows = 8 * LLAMA.batch * c.length
    # The hidden states' gradient is summed; of a row four float32 numbers of each rank go around.
    extra = 2 * 2 * rows * c.width * 7 / 8
    assert 0 <= parts.total - whole.total - extra <= 16 * 7 * rows
    assert parts.peak < whole.peak


def test_a_pipeline_sends_activations_there_and_gradients_back():
    c, p = LLAMA.config, cost(LLAMA, "pipeline", 8)
    edge = 8 * LLAMA.batch * c.length * c.width * 2
    assert p.sent["send"] == 2 * edge and p.total == 2 * edge  # of a stage between two others
    grid = cost(LLAMA, "pipeline", 512)
    assert grid.grid == (64, 8) and grid.sent["send"] == edge  # of the first stage
    stage = grid.parameters  # bfloat16; each sums its gradients over the machines
    assert grid.sent["all_reduce"] == pytest.approx(2 * stage * 63 / 64, rel=1e-3)


def test_one_gpu_sends_nothing():
    small = Job("small", Config(64, 16, 4, 4, 32), 2)
    for recipe in RECIPES:
        p = cost(small, recipe, 1)
        assert p.total == 0 and p.parameters == 2 * parameters(small.config), recipe


@pytest.mark.parametrize("gpus", range(2, 9))
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_pipeline_of_few_gpus_sends_all_its_sequences(gpus, batch):
    """8 micro-batches of fewer sequences were micro-batches of none."""
    c = Config(64, 16, 8, 4, 32, llama=True)
    p = cost(Job("small", c, batch), "pipeline", gpus)
    edge = gpus * batch * c.length * c.width * 2
    assert p.sent["send"] == (1 if gpus == 2 else 2) * edge and p.total == p.sent["send"]


def test_every_recipe_on_few_gpus_sends_something():
    for gpus in (2, 3, 4, 7):
        for recipe in RECIPES:
            assert cost(LLAMA, recipe, gpus).total > 0, (recipe, gpus)


def test_nothing_is_left_behind():
    gc.collect()
    before = flow._oneflow_lite.meta_memory()[0]
    cost(GPT2, "zero2", 8)
    gc.collect()
    assert flow._oneflow_lite.meta_memory()[0] == before


@pytest.mark.parametrize(("recipe", "gpus", "part"), [("all", 8, "recipe is 'all'"),
                                                      ("data", 0, "gpus is 0"),
                                                      ("data", 12, "multiple of 8")])  # fmt: skip
def test_what_cannot_be_is_refused(recipe, gpus, part):
    for job, text in ((GPT2._replace(batch=0), "batch is 0"),
                      (GPT2._replace(micro_batches=0), "micro_batches is 0")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            cost(job, "pipeline", 8)
    with pytest.raises(ValueError, match=part):
        cost(GPT2, recipe, gpus)


def test_the_command_prints_the_page(tmp_path):
    run = subprocess.run([sys.executable, "-m", "oneflow_lite.distributed.plan"], cwd=tmp_path,
                         capture_output=True, text=True, timeout=120)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == table(list(MODELS.values()), [8, 512])
    if PAGE.exists():
        refresh = "python -m oneflow_lite.distributed.plan --page docs/distributed_costs.md"
        page = PAGE.read_text(encoding="utf-8")
        assert run.stdout in page, f"another op may hold other memory; {refresh}"
        copy = tmp_path / "page.md"
        copy.write_text(page[: page.index("GPT-2 124M, 8")] + "GPT-2 124M, old", encoding="utf-8")
        main(["--page", str(copy)])
        assert copy.read_text(encoding="utf-8") == page
