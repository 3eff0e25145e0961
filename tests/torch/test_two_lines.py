# SPDX-License-Identifier: Apache-2.0
"""The example of docs/pytorch.md, and oneflow_lite.torch beside it."""

import importlib.util
import runpy
import sys
from pathlib import Path

import oneflow_lite_torch as rows
import pytest

HERE = Path(__file__).resolve().parent


def test_the_example_runs():
    runpy.run_path(str(HERE / "two_lines.py"))


def _front():
    """oneflow_lite/torch.py by itself: oneflow_lite need not be there."""
    path = HERE.parents[1] / "python" / "oneflow_lite" / "torch.py"
    spec = importlib.util.spec_from_file_location("front", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_oneflow_lite_torch_under_its_other_name():
    front = _front()
    assert all(getattr(front, name) is getattr(rows, name) for name in rows.__all__)


def test_the_other_name_says_what_is_missing(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "oneflow_lite_torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "oneflow_lite_torch", None)
    with pytest.raises(ModuleNotFoundError):
        _front()


def test_the_bench_runs_a_model(capsys):
    pytest.importorskip("transformers", reason="transformers is not installed")
    from oneflow_lite_torch import _bench_model

    _bench_model.run("tiny", "cpu")
    lines = [line for line in capsys.readouterr().out.splitlines() if "loss" in line]
    assert len(lines) == 3
    losses = [line.split("loss ")[1] for line in lines]
    assert len({text.split(" -> ")[0][:5] for text in losses}) == 1
