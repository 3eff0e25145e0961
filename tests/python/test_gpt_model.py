# SPDX-License-Identifier: Apache-2.0
"""The GPT of examples/gpt and of the benchmark: the model, the program, the timing."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numerics import flow, host

from oneflow_lite.models import gpt

TRAIN = Path(__file__).resolve().parents[2] / "examples" / "gpt" / "train.py"
KINDS = ["tiny", "tiny-llama"]


def model_and_ids(kind, batch=2, length=12, device="cpu"):
    flow.manual_seed(0)
    config = gpt.PRESETS[kind].replaced(vocab=50)
    ids = np.random.default_rng(0).integers(0, 50, (batch, length))
    return gpt.build(flow, config).to(device), flow.tensor(ids, device=device)


@pytest.mark.parametrize("kind", KINDS)
def test_no_logit_looks_ahead(device, kind):
    model, ids = model_and_ids(kind, device=device)
    before = host(model(ids))
    ids[:, 7] = (ids[:, 7] + 1) % 50
    after = host(model(ids))
    np.testing.assert_allclose(after[:, :7], before[:, :7], atol=1e-5)
    assert np.abs(after[:, 7:] - before[:, 7:]).max(axis=(0, 2)).min() > 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_gives_what_is_computed_anew(device, kind):
    """Generation with keys and values kept, beyond the context, is that of whole forwards."""
    model, ids = model_and_ids(kind, length=5, device=device)
    length = model.config.length
    made = host(model.generate(ids, 40, temperature=0))
    seen, start = host(ids), 0
    for _ in range(40):
        if seen.shape[1] - start > length:
            start = seen.shape[1] - length // 2
        with flow.no_grad():
            logits = model(flow.tensor(seen[:, start:], device=device))
        seen = np.concatenate([seen, host(logits)[:, -1:].argmax(-1)], 1)
    np.testing.assert_array_equal(made, seen)


def test_sampling_keeps_to_the_best():
    model, ids = model_and_ids("tiny", 64, 3)
    flow.manual_seed(1)
    with flow.no_grad():
        best = np.argsort(host(model(ids))[:, -1], -1)[:, -3:]
    drawn = host(model.generate(ids, 1, 5.0, top_k=3))[:, -1]
    assert all(d in b for d, b in zip(drawn, best, strict=True)) and len(set(drawn)) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_parameter(kind):
    model, ids = model_and_ids(kind)
    model.loss(ids, ids).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and host(p.grad).any(), name


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_in_parts_is_the_loss(device, kind):
    found = []
    for chunks in (1, 3):
        model, ids = model_and_ids(kind, device=device)
        model.loss_chunks = chunks
        loss = model.loss(ids, ids)
        loss.backward()
        found.append((host(loss), {n: host(p.grad) for n, p in model.named_parameters()}))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    for name, g in found[0][1].items():
        atol = 1e-5 * np.abs(g).max()
        np.testing.assert_allclose(found[1][1][name], g, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_flops_are_those_of_the_products(kind):
    """6 for each weight of a product, and those of attention."""
    model, _ = model_and_ids(kind)
    c = model.config
    weights = sum(p.numel() for n, p in model.named_parameters()
                  if p.ndim == 2 and not n.startswith(("token", "place", "head")))  # fmt: skip
    expected = 6 * (weights + c.vocab * c.width) + 6 * c.layers * c.width * c.length
    assert gpt.flops_per_token(c) == expected


def test_a_config_that_does_not_go_together():
    with pytest.raises(ValueError, match="3 heads do not divide"):
        gpt.PRESETS["tiny"].replaced(heads=3)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_those_of_pytorch(kind):
    torch = pytest.importorskip("torch")
    losses = []
    for lib in (flow, torch):
        config = gpt.PRESETS[kind].replaced(vocab=50)
        model = gpt.build(lib, config)
        rng = np.random.default_rng(0)
        with lib.no_grad():
            for _, p in sorted(model.named_parameters()):
                drawn = rng.standard_normal(tuple(p.shape)) * 0.05
                p.copy_(lib.tensor(drawn + (1.0 if p.ndim == 1 else 0.0)))
        model = model.double()
        optimizer = lib.optim.AdamW(gpt.parameter_groups(model, 0.1), lr=1e-2)
        ids = lib.tensor(rng.integers(0, 50, (4, 17)))
        found = []
        for _ in range(20):
            loss = model.loss(ids[:, :-1], ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("dtype, bound", [("float32", 1e-3), ("bfloat16", 0.02)])
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_steps_are_those_of_pytorch(device, kind, dtype, bound):
    """Within `bound` of the loss at each step, of sequences that are not seen again."""
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    config = gpt.PRESETS[kind].replaced(vocab=50)
    rng = np.random.default_rng(0)
    rows = 64 if device == "cuda" else 4
    sequences = np.cumsum(rng.choice([3, 7], (200, rows, 17), p=[0.9, 0.1]), axis=-1) % 50
    losses = []
    for lib in (flow, torch):
        rng = np.random.default_rng(1)
        model = gpt.build(lib, config)
        with lib.no_grad():
            for _, p in sorted(model.named_parameters()):
                drawn = rng.standard_normal(tuple(p.shape)) * 0.05
                p.copy_(lib.tensor(drawn + (1.0 if p.ndim == 1 else 0.0)))
        model = model.to(device).to(getattr(lib, dtype))
        optimizer = lib.optim.AdamW(gpt.parameter_groups(model, 0.1), lr=1e-3)
        found = []
        for ids in sequences:
            ids = lib.tensor(ids).to(device)
            loss = model.loss(ids[:, :-1], ids[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss)
        losses.append([loss.item() for loss in found])
    assert losses[0][-1] < 0.8 * losses[0][0]
    np.testing.assert_allclose(losses[0], losses[1], rtol=bound)


# The program ------------------------------------------------------------------------------------


def train(out, *options):
    if not TRAIN.exists():
        pytest.skip("the examples are not here")
    command = [sys.executable, TRAIN, "--preset", "tiny", "--batch", "4", "--device", "cpu",
               "--log-every", "1", "--validate-every", "4", "--out", out, "--length", "40",
               *map(str, options)]  # fmt: skip
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return run


@pytest.mark.parametrize("options", [(), ("--dtype", "bfloat16", "--autocast", "--dropout", "0.2")])
def test_a_resumed_run_is_the_run(tmp_path, options):
    """To the bit: the weights, the losses, what it writes."""
    whole = train(tmp_path / "whole", "--steps", 8, *options)
    train(tmp_path / "parts", "--steps", 8, "--stop-at", 6, *options)  # written at 4
    parts = train(tmp_path / "parts", "--steps", 8, "--resume", *options)
    states = [flow.load(tmp_path / name / "checkpoint.npz") for name in ("whole", "parts")]
    assert states[0]["losses"] == states[1]["losses"]
    assert states[0]["held_losses"] == states[1]["held_losses"]
    for name, value in states[0]["model"].items():
        np.testing.assert_array_equal(host(value), host(states[1]["model"][name]))
    assert whole.stdout == parts.stdout


def test_the_program_writes_and_draws(tmp_path):
    run = train(tmp_path, "--steps", 4, "--prompt", "It is")
    assert "It is" in run.stdout and re.search(
        r"validation loss \d\.\d{4} after 4 steps", run.stdout
    )
    assert re.search(r"4/4  loss \d\.\d{4}  [\d,]+ tokens/s  0:00 left", run.stderr)
    again = train(tmp_path, "--steps", 0, "--resume", "--prompt", "It was")
    assert "It was" in again.stdout
    if pytest.importorskip("matplotlib"):
        assert (tmp_path / "loss.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("options, says", [
    (("--batch", "0"), "--batch: it must be at least 1, not 0"),
    (("--steps", "-1"), "--steps: it must be at least 0, not -1"),
    (("--lr", "nan"), "--lr: it must be at least 0 and at most 1000, not nan"),
    (("--dropout", "2"), "--dropout: it must be at least 0 and at most 1, not 2"),
    (("--log-every", "x"), "--log-every: invalid int value: 'x'"),
    (("--prompt", ""), "--prompt is empty"),
    (("--prompt", "\N{SNOWMAN}"), "the text has no '\N{SNOWMAN}'"),
    (("--text", "/there/is/none"), "--text: /there/is/none cannot be read"),
    (("--text", "SHORT", "--preset", "gpt2"), "characters; --preset gpt2 needs 10250"),
    (("--resume",), "--resume: there is no"),
])  # fmt: skip
def test_bad_options_are_one_line(tmp_path, options, says):
    if not TRAIN.exists():
        pytest.skip("the examples are not here")
    short = tmp_path / "short.txt"
    short.write_text("It is a truth. " * 20)
    options = [str(short) if o == "SHORT" else o for o in options]
    command = [sys.executable, TRAIN, "--device", "cpu", "--out", tmp_path / "out", *options]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and says in run.stderr.splitlines()[-1], run.stderr
    assert "Traceback" not in run.stderr and run.stdout == ""


@pytest.mark.slow
def test_it_learns_the_novel(tmp_path):
    run = train(tmp_path, "--steps", 300, "--batch", 16, "--preset", "small", "--lr", "2e-3")
    held = float(re.search(r"validation loss (\d\.\d+)", run.stdout)[1])
    assert held < 2.4  # 4.3 by guessing, 3.0 by the frequencies of characters


# The benchmark ----------------------------------------------------------------------------------


def test_the_benchmark_times_a_step(tmp_path):
    out = tmp_path / "gpt.json"
    command = [sys.executable, "-m", "oneflow_lite.bench", "gpt", "--preset", "tiny",
               "--batch", "2", "--steps", "2", "--rounds", "2", "--warmup", "1", "--device", "cpu",
               "--candidates", "ours,ours-graph,torch", "--precision", "narrow,autocast,float32",
               "--torch-python", str(tmp_path / "none"), "--output", str(out)]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    record = json.loads(out.read_text())
    assert set(record["precisions"]) == {"narrow", "autocast", "float32"}
    for part in record["precisions"].values():
        assert set(part) == {"ours", "torch"} and "failed" in part["torch"]  # no graph on the CPU
        cell = part["ours"]
        assert len(cell["ms"]) == 2 and cell["tokens_per_s"] > 0 and cell["peak_bytes"] > 1 << 20
        assert 4 < cell["first_loss"] < 6 and cell["last_loss"] < cell["first_loss"] + 0.5
    assert "tokens/s" in run.stdout and "autocast over float32" in run.stdout


def test_the_benchmark_refuses_what_it_does_not_know():
    from oneflow_lite.bench import gpt as bench

    for bad in (["--precision", "int4"], ["--candidates", "jax"], ["--preset", "huge"]):
        with pytest.raises(SystemExit):
            bench.main([*bad, "--device", "cpu"])
