# SPDX-License-Identifier: Apache-2.0
"""Training a GPT: what a step keeps and moves, its numbers beside PyTorch, what it survives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numerics import flow, host

from oneflow_lite.models import gpt

TOKENS = (4, 64)
GPT2_LAYER = gpt.PRESETS["gpt2"].replaced(layers=1, length=TOKENS[1], vocab=64)
KINDS = ["tiny", "tiny-llama"]


# What a step keeps and moves ----------------------------------------------------------------------


def kept_by(run, parameters):
    """The memory that is kept for backward, each byte once; that of parameters aside."""
    own = {p.data_ptr() for p in parameters}
    spans = []

    def pack(t):
        if t.data_ptr() not in own:
            last = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
            spans.append((t.data_ptr(), t.data_ptr() + (last + 1) * t.itemsize, t))
        return t

    with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = run()
    total = end = 0
    for begin, stop, _ in sorted(spans, key=lambda s: s[:2]):
        total += max(0, stop - max(begin, end))
        end = max(end, stop)
    return total, result


def test_a_gpt2_layer_keeps_at_most_17_tensors():
    """Of [tokens, 768] in bfloat16: the norms' inputs and results, packed q, k and v, the result of
    attention, and four each before and behind gelu.
    """
    model = gpt.build(flow, GPT2_LAYER).to(flow.bfloat16)
    block = model.blocks[0]
    x = flow.randn(*TOKENS, 768).bfloat16().requires_grad_()
    y = flow.randn(*TOKENS, 768).bfloat16().requires_grad_()
    total, _ = kept_by(lambda: block(y, x, None, None), block.parameters())
    assert total <= 17 * x.nbytes


def test_a_layer_of_the_library_keeps_no_more():
    layer = flow.nn.TransformerEncoderLayer(
        768, 12, 3072, 0.0, flow.nn.functional.gelu, batch_first=True, norm_first=True,
        dtype=flow.bfloat16,
    )  # fmt: skip
    x = flow.randn(*TOKENS, 768).bfloat16().requires_grad_()
    total, _ = kept_by(lambda: layer(x, is_causal=True), layer.parameters())
    assert total <= 17 * x.nbytes


def step_on_meta(config, batch, dtype):
    """What ops a step consists of, and the bytes and operations that they declare."""
    model = gpt.build(flow, config.replaced()).to("meta").to(dtype)
    optimizer = flow.optim.AdamW(gpt.parameter_groups(model, 0.1), lr=1e-3, fused=True)
    ids = flow.zeros(batch, config.length, dtype=flow.int64, device="meta")

    def step():
        loss = model.loss(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()  # the optimizer makes its state
    with flow.profiler.profile() as prof:
        step()
    events = [e for e in prof.events() if e.kind == "op" and e.bytes > 0]  # the rest are views
    return len(events), sum(e.bytes for e in events), sum(e.flops for e in events)


# Of 12 layers, 4 x 1024 tokens, bfloat16: ops that launch, bytes as declared.
CEILINGS = {"ops": 311, "bytes": 14.72e9}


def test_the_step_of_gpt2_stays_below_its_ceilings():
    config = gpt.PRESETS["gpt2"]
    ops, moved, flops = step_on_meta(config, 4, flow.bfloat16)
    tokens = 4 * config.length
    assert ops <= CEILINGS["ops"], ops
    assert moved <= CEILINGS["bytes"], moved
    assert flops == pytest.approx(gpt.flops_per_token(config) * tokens, rel=0.15)


# Beside PyTorch -----------------------------------------------------------------------------------


def trained(lib, kind, dtype, steps, every=None):
    """Losses of steps from the same weights on the same batches, and the first step's gradients."""
    config = gpt.PRESETS[kind].replaced(vocab=50)
    model = gpt.build(lib, config)
    rng = np.random.default_rng(0)
    with lib.no_grad():
        for name, p in sorted(model.named_parameters()):
            scale = p.ndim == 1 and name.endswith("weight")  # of a norm
            p.copy_(lib.tensor(rng.standard_normal(tuple(p.shape)) * 0.05 + scale))
    model = model.to(getattr(lib, dtype))
    optimizer = lib.optim.AdamW(gpt.parameter_groups(model, 0.1), lr=3e-3)
    text = rng.integers(0, 50, 400)  # to be learned by heart
    losses, first = [], {}
    for _ in range(steps):
        starts = rng.integers(0, len(text) - config.length, 4)
        ids = lib.tensor(np.stack([text[s : s + config.length + 1] for s in starts]))
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        if not first:
            first = {n: p.grad.detach().clone() for n, p in model.named_parameters()}
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), first


@pytest.mark.parametrize(
    ("dtype", "steps", "bound"), [("float64", 20, 1e-10), ("float32", 200, 1e-3)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_those_of_pytorch(kind, dtype, steps, bound):
    torch = pytest.importorskip("torch", reason="PyTorch, to compare with, is not installed here")
    ours, theirs = (trained(lib, kind, dtype, steps)[0] for lib in (flow, torch))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound)
    assert steps < 100 or ours[-1] < ours[0] - 1  # it learned something


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_pytorch(kind):
    torch = pytest.importorskip("torch", reason="PyTorch, to compare with, is not installed here")
    ours, theirs = (trained(lib, kind, "float32", 1)[1] for lib in (flow, torch))
    for name, g in ours.items():
        want = theirs[name].numpy()
        np.testing.assert_allclose(
            host(g), want, rtol=0, atol=1e-4 * np.abs(want).max(), err_msg=name
        )


# What it survives ---------------------------------------------------------------------------------

OUT_OF_MEMORY = """
import json, resource, sys
import oneflow_lite as flow
from oneflow_lite.models import gpt

device = sys.argv[1]
flow.set_num_threads(1)
model = gpt.build(flow, gpt.PRESETS["small"].replaced(vocab=64)).to(device)
optimizer = flow.optim.AdamW(model.parameters(), lr=1e-3)

def step(batch):
    ids = flow.zeros(batch, 64, dtype=flow.int64, device=device)
    loss = model.loss(ids, ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

def held():
    return flow._oneflow_lite.memory_stats(device)["allocated"]

def free_of_graph():
    optimizer.zero_grad()
    flow._oneflow_lite.empty_cache(device)
    return held()

before = [step(4) for _ in range(3)]
resting = free_of_graph()
if device == "cpu":
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), resource.RLIM_INFINITY))
failed, batch = [], 1 << 8
while len(failed) < 6 and batch <= 1 << 22:
    try:
        step(batch)
        batch *= 2
        continue
    except flow.OutOfMemoryError as e:
        failed.append(str(e))
    left = free_of_graph()  # the exception has gone, and with it the frames that held tensors
    assert left <= resting + (1 << 20), (left, resting)
    after = step(4)
    batch *= 2
print(json.dumps({"before": before, "after": after, "failed": failed}))
"""


def test_a_step_that_runs_out_of_memory_leaves_the_next_ones_alone(device, tmp_path):
    if "libasan" in Path("/proc/self/maps").read_text():
        pytest.skip("AddressSanitizer keeps freed memory, which the limit of this test counts")
    path = tmp_path / "program.py"
    path.write_text(OUT_OF_MEMORY)
    run = subprocess.run([sys.executable, path, device], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    assert len(found["failed"]) == 6
    assert all("out of memory on " + device in text for text in found["failed"])
    assert 0 < found["after"] < found["before"][-1]


def test_a_run_that_is_killed_goes_on_where_it_was():
    """Thrice here; 50 times by `make test-attack`."""
    attack = Path(__file__).resolve().parents[1] / "attack" / "trainings.py"
    if not attack.exists():
        pytest.skip("the attacks are not here")
    run = subprocess.run(
        [sys.executable, attack, "--seed", "1", "--count", "3"], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "killed" in run.stdout.splitlines()[-1]
