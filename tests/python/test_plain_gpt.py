# SPDX-License-Identifier: Apache-2.0
"""A program for PyTorch, the sort that people share, with only its imports changed."""

import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from numerics import flow, host

PROGRAM = Path(__file__).with_name("data") / "plain_gpt.py"
TEXT = "It is a truth universally acknowledged, that a man in want of words must count them. " * 40


def with_imports_changed():
    text = PROGRAM.read_text()
    text = re.sub(r"^import torch$", "import oneflow_lite as torch", text, flags=re.M)
    return re.sub(r"^(import|from) torch\.", r"\1 oneflow_lite.", text, flags=re.M)


def module(name, text):
    made = types.ModuleType(name)
    sys.modules[name] = made  # dataclasses look there
    exec(compile(text, name, "exec"), made.__dict__)
    return made


OURS = module("plain_gpt_of_oneflow_lite", with_imports_changed())


def test_only_the_imports_differ():
    pairs = zip(PROGRAM.read_text().splitlines(), with_imports_changed().splitlines(), strict=True)
    changed = [(a, b) for a, b in pairs if a != b]
    assert changed == [
        ("import torch", "import oneflow_lite as torch"),
        ("import torch.nn as nn", "import oneflow_lite.nn as nn"),
        ("from torch.nn import functional as F", "from oneflow_lite.nn import functional as F"),
    ]


def test_it_runs_as_a_program(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(with_imports_changed())
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    losses = [float(x) for x in re.findall(r"loss (\d\.\d+)", run.stdout)]
    assert len(losses) == 6 and losses[-1] < 0.6 < 1 < losses[0], run.stdout
    assert run.stdout.splitlines()[-1].startswith("the ")


@pytest.mark.parametrize("flash", [True, False])
def test_it_learns_and_goes_on_from_its_checkpoint(device, flash, tmp_path):
    def fresh():
        config = OURS.GPTConfig(flash=flash, dropout=0.1)
        return OURS.Trainer(TEXT, config, device=device, max_iters=30)

    trainer = fresh()
    before = trainer.estimate_loss()
    trainer.run(20)
    trainer.save(tmp_path / "ckpt.pt")
    whole = trainer.run(10)
    after = trainer.estimate_loss()
    assert after["val"] < before["val"] - 0.5
    again = fresh()
    again.load(tmp_path / "ckpt.pt")
    assert again.iter_num == 20
    assert len(again.run(10)) == len(whole)
    assert again.sample("It is", 30).startswith("It is")


def test_it_computes_what_pytorch_computes():
    """The same weights, batches and steps, without dropout: losses, gradients, weights."""
    pytest.importorskip("torch", reason="it compares with PyTorch, which is not installed here")
    theirs = module("plain_gpt_of_torch", PROGRAM.read_text())
    trainers = [m.Trainer(TEXT, m.GPTConfig(flash=flash), max_iters=40)
                for m, flash in ((OURS, True), (theirs, False))]  # fmt: skip
    ours, pytorch = (dict(t.model.named_parameters()) for t in trainers)
    assert list(ours) == list(pytorch)
    with flow.no_grad():
        for name, p in ours.items():
            p.copy_(flow.tensor(pytorch[name].detach().numpy()))
    for t in trainers:
        t.rng = np.random.default_rng(3)
        t.model(*t.get_batch("train"))[1].backward()
    for name, p in ours.items():
        g = pytorch[name].grad.numpy()
        np.testing.assert_allclose(host(p.grad), g, rtol=0, atol=1e-4 * np.abs(g).max())
    for t in trainers:
        t.optimizer.zero_grad(set_to_none=True)
    losses = [t.run(40) for t in trainers]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0, atol=1e-3)
    states = [t.optimizer.state_dict() for t in trainers]
    assert set(states[0]["state"][0]) == set(states[1]["state"][0])
