# SPDX-License-Identifier: Apache-2.0
"""examples/gpt/train.py on several ranks: the losses of one process, ended and resumed as well."""

import contextlib
import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rank_group import unchecked

flow = pytest.importorskip("oneflow_lite")

ROOT = Path(__file__).resolve().parents[2]
COMMON = ["--preset", "tiny", "--steps", "12", "--batch", "5", "--log-every", "1",
          "--validate-every", "6", "--length", "5", "--device", "cpu"]  # fmt: skip


def example():
    spec = importlib.util.spec_from_file_location("gpt_example", ROOT / "examples/gpt/train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@unchecked()
def run(rank, arguments, out):
    """What it prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        example().main([*COMMON, *arguments, "--out", out])
    return text.getvalue()


def losses(out):
    state = flow.load(Path(out) / "checkpoint.npz")
    return [loss for _, loss in json.loads(state["losses"]) + json.loads(state["held_losses"])]


@pytest.fixture(scope="module")
def want(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("alone"))
    assert "validation loss" in run(0, [], out)
    found = losses(out)
    assert len(found) == 12 + 2 and found[11] < found[0] - 0.3
    return found


def check(group, arguments, out, want):
    printed = group.run(run, arguments, out)
    assert "validation loss" in printed[0] and not any(printed[1:])
    np.testing.assert_allclose(losses(out), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize("arguments", [["--data-parallel", "2"],
                                       ["--data-parallel", "2", "--zero", "1"],
                                       ["--data-parallel", "2", "--zero", "2"],
                                       ["--tensor-parallel", "2"]], ids=" ".join)  # fmt: skip
def test_two_ranks_have_the_losses_of_one_process(two_ranks, tmp_path, want, arguments):
    out = str(tmp_path)
    two_ranks.run(run, [*arguments, "--stop-at", "6"], out)
    check(two_ranks, [*arguments, "--resume"], out, want)


def test_a_grid_of_four_ranks(ranks, tmp_path, want):
    check(ranks, ["--data-parallel", "2", "--tensor-parallel", "2"], str(tmp_path), want)


def test_it_goes_on_with_another_number_of_ranks(two_ranks, tmp_path, want):
    out = str(tmp_path)
    two_ranks.run(run, ["--data-parallel", "2", "--zero", "2", "--stop-at", "6"], out)
    run(0, ["--resume"], out)
    np.testing.assert_allclose(losses(out), want, rtol=0, atol=1e-4)


@pytest.mark.parametrize("arguments, message", [
    (["--data-parallel", "2"], "needs 2 processes, but there are 1"),
    (["--tensor-parallel", "3"], "--nproc 3"),
])  # fmt: skip
def test_too_few_processes(capsys, arguments, message):
    with pytest.raises(SystemExit):
        example().parse(arguments)
    assert message in capsys.readouterr().err
