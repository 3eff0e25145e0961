# SPDX-License-Identifier: Apache-2.0
"""python -m oneflow_lite.bench functions: cells, records, resuming, and what is said of errors.

In the place of PyTorch stands this library under its name, in an interpreter of its own.
"""

import json
import stat
import sys
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.bench import functions, functions_worker  # noqa: E402
from oneflow_lite.bench.__main__ import main  # noqa: E402

QUICK = ["functions", "--sizes", "64", "--threads", "1", "--budget", "0.0001"]
STAND_IN = """
import sys, oneflow_lite, oneflow_lite.nn.functional
sys.modules["torch"] = oneflow_lite
sys.modules["torch.nn"] = oneflow_lite.nn
sys.modules["torch.nn.functional"] = oneflow_lite.nn.functional
"""


@pytest.fixture
def interpreter(tmp_path):
    """Makes an interpreter that has a module torch, with these lines at its end."""

    def make(lines=""):
        (tmp_path / "torch.py").write_text(STAND_IN + lines)
        script = tmp_path / "python"
        package = Path(flow.__file__).parents[1]
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH={tmp_path}:{package} exec {sys.executable} "$@"\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return ["--torch-python", str(script)]

    return make


def test_every_function_has_a_cell_and_none_fails(interpreter, tmp_path, capsys):
    output = tmp_path / "functions.json"
    command = [*QUICK, *interpreter(), "--output", str(output)]
    assert main(command) == 0
    cells = functions.read(output)
    labels = functions_worker.labels()
    assert len(labels) == len(set(labels)) >= 150
    assert set(cells) == {f"{n} | {d} 64 x1" for n in labels for d in functions.DTYPES}
    assert all(c["ours"] > 0 and c["torch"] > 0 and "wrong" not in c for c in cells.values())
    said = capsys.readouterr().out
    assert f"over {2 * len(labels)} cells" in said and "bfloat16 64 x1" in said
    before = output.read_text()
    assert main(command) == 0
    assert functions.read(output) == cells and output.read_text() == before  # nothing again


def test_results_that_differ_and_calls_that_fail_are_named(interpreter, capsys):
    wrong = "oneflow_lite.exp = lambda x: x\ndel oneflow_lite.log\n"
    some = [*QUICK, *interpreter(wrong), "--match", "^(exp|log|sin)$", "--dtype", "float32"]
    assert main(some) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any("exp | " in line and "64 of 64 samples differ" in line for line in lines)
    assert any("log | " in line and "torch: AttributeError" in line for line in lines)
    assert not any("sin | " in line and "differ" in line for line in lines)


def test_the_report_counts_what_is_slow():
    cells = {"a | float32 8 x1": {"ours": 2.0, "torch": 1.0}}
    cells["b | float32 8 x1"] = {"ours": 1.0, "torch": 8.0}
    lines = functions.report(cells)
    assert "0.50" in lines[0] and "a | " in lines[0]  # the slowest first
    assert lines[-1] == "all: geometric mean 2.000 over 2 cells, 1 below 0.8"


def test_what_cannot_be_measured_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no such dtype: int8"):
        main([*QUICK, "--dtype", "int8"])
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(SystemExit, match="cannot import torch: the process ended"):
        main([*QUICK, "--torch-python", str(broken)])
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"format": 1}))
    with pytest.raises(SystemExit, match="no record of `bench functions`"):
        main([*QUICK, "--output", str(record)])
