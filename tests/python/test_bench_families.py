# SPDX-License-Identifier: Apache-2.0
"""python -m oneflow_lite.bench elementwise reductions moves: all cases run and are right, records
go on, and what is slow, wrong or fails is named.

In the place of PyTorch stands this library under its name.
"""

import inspect
import re
import sys
from types import SimpleNamespace

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.bench import calls, families, families_table, record, streams  # noqa: E402
from oneflow_lite.bench.__main__ import main  # noqa: E402

FEW = ["--device", "cpu", "--elements", "4096", "--budget", "0.0001"]
CASES = {name: list(cases()) for name, cases in families.FAMILIES.items()}
# Registered ops of one or two tensors whose function has another name.
OTHER_NAMES = {"trunc_divide": "div trunc", "gelu_tanh": "gelu tanh",
               "frexp_mantissa": "frexp", "frexp_exponent": "frexp",
               "pow_half": "sqrt", "pow_minus_half": "rsqrt"}  # fmt: skip


@pytest.fixture
def peer(monkeypatch):
    """Puts a library in the place of PyTorch: this one, with other functions if so."""

    def put(**functions):
        names = {name: getattr(flow, name) for name in dir(flow) if not name.startswith("__")}
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**{**names, **functions}))

    put()
    return put


def cells(path, key):
    return record.read(path)["slices"][key]["cells"]


@pytest.mark.parametrize("dtype", families.DTYPES)
def test_every_case_runs_and_is_right(dtype, tmp_path, capsys, peer):
    output = tmp_path / "figures.json"
    command = ["elementwise", "reductions", "moves", *FEW, "--dtype", dtype]
    assert main([*command, "--output", str(output)]) == 0, capsys.readouterr().out
    for family, of_family in CASES.items():
        found = cells(output, f"cpu/{family}/{dtype}")
        assert list(found) == [case.label for case in of_family]
        for label, cell in found.items():
            assert cell["ours"]["median"] > 0 and cell["peers"]["torch"]["median"] > 0, label
            assert cell["bytes"] > 0 and not {"wrong", "unchecked"} & set(cell["notes"]), label
    said = capsys.readouterr().out
    assert all(f"| {kind} | torch " in said for kind in families_table.KINDS)


def test_every_elementwise_op_has_a_case():
    labels = {case.label for case in CASES["elementwise"]}
    missing = []
    for name in flow.ops.list():
        text = flow.ops.describe(name)
        schema = re.match(r"\w+\(Tensor \w+(, Tensor \w+)?\) -> \(Tensor \w+\)", text)
        if schema is None or "any dim" not in text or name in ("cast", "to_device", "longest_run"):
            continue
        stem, slope, _ = name.partition("_backward")
        label = OTHER_NAMES.get(stem, stem) + (" backward" if slope else "")
        if label not in labels:
            missing.append(label)
    assert missing == []


def test_cases_are_whole():
    for of_family in CASES.values():
        labels = [case.label for case in of_family]
        assert len(labels) == len(set(labels)) >= 100
        for case in of_family:
            assert list(inspect.signature(case.f).parameters)[:2] == ["m", "f"]
            assert set(case.operands) <= set(calls.OPERANDS), case.label
            assert case.kind in families_table.KINDS and len(case.part) in (0, len(case.operands))


@pytest.mark.parametrize("label, nbytes, pattern", [
    ("exp", 2 * 8192, "1R1W"), ("add", 3 * 8192, "2R1W"), ("exp backward", 3 * 8192, "2R1W"),
    ("bitwise_or", 3 * 16384, "2R1W"), ("lt", 2 * 8192 + 4096, "2R1W"),
    ("x + row", 2 * 8192 + 128, "1R1W"), ("x[:, ::2] + y", 4 * 8192, "2R1W"),
    ("where", 3 * 8192 + 4096, "2R1W"), ("mul backward", 5 * 8192, "2R1W"),
    ("sum(1)", 8192 + 128, "1R"), ("cummax(1)", 2 * 8192 + 32768, "1R1W"),
    ("rand", 8192, "1W"), ("gather(1)", 2 * 8192 + 32768, "2R1W"), ("tril", 3 * 4096, "1R1W"),
    ("expand a row to rows", 8192 + 128, "1W"), ("mse_loss", 2 * 8192 + 2, "1R"),
    ("mse_loss with backward", 5 * 8192, "2R1W"), ("embedding backward", 2 * 8192 + 512, "1R1W"),
])  # fmt: skip
def test_bytes_and_streams_of_a_case(label, nbytes, pattern):
    case = next(c for of_family in CASES.values() for c in of_family if c.label == label)
    tensors = families.Bench("float16", 4096, "cpu", None).operands(case)
    result = calls.prepared(case, flow, tensors)()
    assert calls.traffic(case, tensors, result) == (nbytes, pattern)
    assert pattern in streams.PATTERNS


def test_a_second_run_measures_what_is_missing(tmp_path, capsys, peer):
    output = tmp_path / "figures.json"
    command = [*FEW, "--dtype", "float32", "--output", str(output)]
    assert main(["elementwise", *command, "--match", "^(exp|add)$", "--kinds", "function"]) == 0
    first = cells(output, "cpu/elementwise/float32")
    assert set(first) == {"exp", "add"}
    both = ["elementwise", "moves", *command, "--match", "^(exp|flip.*)$"]
    assert main([*both, "--minutes", "0"]) == 1
    assert "4 cells are left; the same command" in capsys.readouterr().out
    assert main(both) == 0
    assert cells(output, "cpu/elementwise/float32") == first
    flips = {"flip(0)", "flip(1)", "flip(0, 1)"}
    assert flips <= set(cells(output, "cpu/moves/float32"))
    before = output.read_text()
    assert main(both) == 0 and output.read_text() == before
    with pytest.raises(SystemExit, match="is of 4096, not of 8192; choose another --output"):
        main(["elementwise", *command, "--elements", "8192"])


def test_what_is_wrong_is_named(capsys, peer):
    command = ["elementwise", *FEW, "--dtype", "float32", "--match", "^(exp|sin|cos)$"]
    peer(exp=lambda x: flow.exp(x) + 1, cos=lambda x: flow.cos(x[1:]))
    assert main(command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(" exp " in line and "wrong: 4160 of 4160 samples" in line for line in lines)
    assert any(" cos " in line and "wrong: shape (64, 64)" in line for line in lines)
    assert not any(" sin " in line and "wrong" in line for line in lines)


def test_random_numbers_of_another_law_are_wrong(capsys, peer):
    command = ["moves", *FEW, "--dtype", "float32", "--match", "^(randn|rand)$"]
    peer(randn=lambda *size, **more: flow.rand(*size, **more))
    assert main(command) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(" randn " in line and "wrong: mean and deviation" in line for line in lines)
    assert not any(" rand " in line and "wrong" in line for line in lines)


def test_a_call_that_fails_does_not_end_the_others(tmp_path, capsys, monkeypatch, peer):
    def fail(x):
        raise MemoryError("no more")

    output = tmp_path / "figures.json"
    command = ["elementwise", *FEW, "--dtype", "float32", "--match", "^(exp|sin|cos)$"]
    peer(exp=fail)
    monkeypatch.setattr(flow, "sin", fail)
    assert main([*command, "--output", str(output)]) == 1
    assert "failed: sin: MemoryError: no more" in capsys.readouterr().out
    found = cells(output, "cpu/elementwise/float32")
    assert found["exp"]["notes"]["torch"] == "MemoryError: no more" and not found["exp"]["peers"]
    assert found["cos"]["peers"] and "sin" not in found
    monkeypatch.undo()
    assert main([*command, "--output", str(output)]) == 0  # what failed is measured again
    assert "sin" in cells(output, "cpu/elementwise/float32")


def test_without_pytorch_results_are_compared_with_ours_in_float64(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)  # its import fails
    output = tmp_path / "figures.json"
    command = ["reductions", *FEW, "--dtype", "float16", "--match", r"^sum\(1\)$"]
    assert main([*command, "--output", str(output)]) == 0
    assert cells(output, "cpu/reductions/float16")["sum(1)"]["notes"] == {}
    monkeypatch.setitem(families.TOLERANCE, "float16", 0.0)
    monkeypatch.setattr(flow.Tensor, "double", lambda x: x.float() + 1)
    assert main(command) == 1


def test_the_table_names_what_is_slow():
    def cell(kind, ours, torch, stream):
        return {"kind": kind, "notes": {}, "ours": {"median": ours, "repeats": 7},
                "peers": {"torch": {"median": torch}} if torch else {},
                "streams": {"copy": {"median": stream}}}  # fmt: skip

    part = {"dtype": "float16", "failed": {}}
    part["cells"] = {
        "a": cell("function", 10.0, 9.0, 9.5), "b": cell("function", 10.0, 40.0, 8.0),
        "c": cell("function", 10.0, None, 9.5), "d": cell("scan", 10.0, 20.0, 6.5),
        "e": cell("small", 3.0, 3.6, 1.0), "f": cell("small", 3.0, 4.0, 1.0),
    }  # fmt: skip
    text = "\n".join(families_table.table("key", part))
    assert "function: torch 1.90, least 0.90, 1 of 2 behind; share 0.90, least 0.80, 1 of 3" in text
    assert "under 0.95 of PyTorch:\n    a 0.90\n" in text
    assert "under 0.90 of the stream (share / torch):\n    b 0.80 / 4.00\n" in text
    assert "under 0.60" not in text
    assert "under 1.25 of PyTorch:\n    e 1.20" in text
    lines = list(families_table.by_kind({"key": part}))
    assert lines[0] == "| kind | float16 |" and len(lines) == 5
    assert lines[3] == "| scan | torch 2.00, least 2.00, 0 of 1 behind; share 0.65, least 0.65, 0 of 1 below |"  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("more, said", [
    (["--elements", "5000"], "a power of 2 from 4096"),
    (["--dtype", "int8"], "no such dtype: int8"), (["--kinds", "move,none"], "no such kinds: none"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(more, said):
    with pytest.raises(SystemExit, match=said):
        main(["elementwise", *FEW, *more])


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(SystemExit, match="is no record"):
        main(["elementwise", *FEW, "--output", str(tmp_path / "other.json")])
