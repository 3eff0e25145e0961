# SPDX-License-Identifier: Apache-2.0
"""python -m oneflow_lite.bench: it runs, keeps, resumes, merges and draws; its rules and checks.

The figures themselves are no test.
"""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.bench import (  # noqa: E402
    against,
    canary,
    cases,
    measure,
    plot,
    record,
    reference,
    streams,
    table,
)
from oneflow_lite.bench.__main__ import DEFAULT_OPS, main  # noqa: E402
from oneflow_lite.bench.clock import CpuClock, CudaClock  # noqa: E402
from oneflow_lite.bench.problem import Candidate, find  # noqa: E402
from oneflow_lite.bench.targets import Target, judge, judge_host, target  # noqa: E402
from oneflow_lite.bench.workloads import WORKLOADS, Unsupported  # noqa: E402

QUICK = ["--quick", "--device", "cpu", "--threads", "1", "--peers", "none", "--budget", "0.001"]


def bench(*arguments):
    return main([*map(str, arguments), *QUICK])


def test_the_command_measures_and_keeps(tmp_path):
    output = tmp_path / "figures.json"
    command = [sys.executable, "-m", "oneflow_lite.bench", "softmax", "softmax_backward"]
    command += ["--dtype", "float32,float16", "--output", output, *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("cpu/softmax_backward/float16:") == 1
    slices = record.read(output)["slices"]
    assert len(slices) == 4
    part = slices["cpu/softmax/float32"]
    assert {"date", "name", "versions"} <= set(part["machine"])
    assert set(part["cells"]) == {c.label + " 1t" for c in cases.QUICK["softmax"]}
    for cell in part["cells"].values():
        assert cell["ours"]["median"] > 0 and not cell["notes"]
        assert min(cell["ours"]["rounds"]) <= cell["ours"]["median"] <= max(cell["ours"]["rounds"])
    wide = part["cells"]["256x128 1t"]
    assert wide["bytes"] == 2 * 256 * 128 * 4 and wide["streams"]["copy"]["median"] > 0


@pytest.mark.parametrize("op", WORKLOADS)
def test_every_op_is_right_or_said_to_be_missing(op, tmp_path, capsys):
    output = tmp_path / "figures.json"
    status = bench(op, "--dtype", "float32,bfloat16,float64", "--output", output)
    said = capsys.readouterr().out
    slices = record.read(output)["slices"]
    if status == 1:
        assert "this build" in said and not slices
        return
    assert len(slices) == 3
    assert all("wrong" not in cell["notes"] for part in slices.values()
               for cell in part["cells"].values()), said  # fmt: skip


def test_a_second_run_measures_what_is_missing(tmp_path, capsys):
    output = tmp_path / "figures.json"
    bench("softmax", "--dtype", "float32", "--output", output)
    first = record.read(output)
    label = "256x128 1t"
    del first["slices"]["cpu/softmax/float32"]["cells"][label]
    record.write(output, first)
    bench("softmax", "log_softmax", "--dtype", "float32", "--output", output)
    second = record.read(output)["slices"]
    cells = second["cpu/softmax/float32"]["cells"]
    assert label in cells and "cpu/log_softmax/float32" in second
    kept = first["slices"]["cpu/softmax/float32"]["cells"]
    assert {k: cells[k] for k in kept} == kept
    bench("softmax", "--dtype", "float32", "--output", output, "--again")
    assert record.read(output)["slices"]["cpu/softmax/float32"]["cells"] != cells


def test_records_merge_and_the_later_counts(tmp_path, capsys):
    for name, ops in (("a", ["softmax", "log_softmax"]), ("b", ["softmax"])):
        bench(*ops, "--dtype", "float32", "--output", tmp_path / f"{name}.json")
    both = tmp_path / "both.json"
    merged = main(["--merge", str(tmp_path / "a.json"), str(tmp_path / "b.json"),
                   "--output", str(both)])  # fmt: skip
    assert merged == 0
    a, b, c = (record.read(tmp_path / f"{n}.json")["slices"] for n in ("a", "b", "both"))
    assert c["cpu/softmax/float32"] == b["cpu/softmax/float32"]
    assert c["cpu/log_softmax/float32"] == a["cpu/log_softmax/float32"]
    assert "cpu/log_softmax/float32" in capsys.readouterr().out


def test_a_record_of_another_machine_or_format_is_refused(tmp_path, capsys):
    output = tmp_path / "figures.json"
    bench("softmax", "--dtype", "float32", "--output", output)
    data = record.read(output)
    data["slices"]["cpu/softmax/float32"]["machine"]["name"] = "Another"
    record.write(output, data)
    with pytest.raises(SystemExit, match="another machine"):
        bench("softmax", "--dtype", "float32", "--output", output)
    output.write_text(json.dumps({"results": []}))
    with pytest.raises(SystemExit, match="no record"):
        bench("softmax", "--dtype", "float32", "--output", output)
    output.write_text("{")
    with pytest.raises(SystemExit, match="figures.json"):
        bench("softmax", "--dtype", "float32", "--output", output)


def test_the_chart(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    chart = tmp_path / "chart.png"
    bench("softmax", "softmax_backward", "--dtype", "float32", "--plot", chart)
    assert chart.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_chart_has_one_point_per_width():
    def cell(us, rows):
        timing = {"median": us}
        return {"kind": "width", "cols": 128, "bytes": rows * 256, "streams": {"copy": timing},
                "ours": timing, "peers": {}}  # fmt: skip

    cells = {"64x128 1t": cell(1.0, 64), "64x128 2t": cell(2.0, 64), "8x128 2t": cell(4.0, 8)}
    assert plot._lines({"cells": cells})["ours"] == [(128, 64 * 256 / 2.0 / 1e3)]


def test_the_chart_without_matplotlib_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit, match="needs matplotlib"):
        bench("softmax", "--dtype", "float32", "--plot", tmp_path / "chart.png")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["sofmax"], "no such op: sofmax"),
        (["softmax", "--dtype", "int8"], "no such dtype: int8"),
        (["softmax", "--peers", "jax"], "no such peer: jax"),
        (["softmax", "--kinds", "wide"], "no such kind: wide"),
        (["--device", "cuda"], "--device cuda: there is no GPU here"),
        (["--merge", "there-is-no-such.json"], "there-is-no-such.json"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    if "cuda" in arguments and flow.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SystemExit, match=message):
        main(["--device", "cpu", *arguments])


@pytest.mark.parametrize("option", ["--widths", "--threads"])
@pytest.mark.parametrize("number", ["0", "-3", "16,0"])
def test_numbers_are_above_0(option, number, capsys):
    with pytest.raises(SystemExit):
        main(["--device", "cpu", "softmax", f"{option}={number}"])
    assert "is not above 0" in capsys.readouterr().err


def test_without_an_op_it_measures_those_of_the_chart(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    chart = tmp_path / "chart.png"
    assert bench("--kinds", "width", "--plot", chart) == 0
    said = capsys.readouterr().out
    assert all(f"cpu/{op}/float16:" in said for op in DEFAULT_OPS)
    assert said.count("no peer was asked for: held against the stream alone,") == len(DEFAULT_OPS)
    assert chart.exists()


def test_the_cpu_has_no_launch_to_be_held_against(capsys):
    assert bench("softmax", "--kinds", "host") == 0
    said = capsys.readouterr().out
    assert "launch" not in said and " us" in said and "of 0 shapes" not in said


def test_an_interpreter_without_torch_is_a_line(tmp_path, capsys):
    arguments = ["softmax", "--quick", "--device", "cpu", "--threads", "1", "--budget", "0.001"]
    assert main([*arguments, "--peers", "torch", "--torch-python", "/bin/false"]) == 0
    assert "torch: not here" in capsys.readouterr().out


def test_list_names_everything(capsys):
    assert main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*WORKLOADS, "float64", "liger", "quack"))


def test_what_this_build_lacks_is_named():
    with pytest.raises(Unsupported, match="this build has no flow.ops.no_such_op"):
        find("ops.no_such_op")


# The check of the results ---------------------------------------------------------------------


def softmax_errors(dtype, call):
    w = WORKLOADS["softmax"]
    p = w.problem(dtype, "cpu", cases.Case("width", (64, 100)))
    results = {"it": reference.poisoned(Candidate(lambda: call(p.t["x"])))}
    return reference.errors(p, w.reference, ["x"], results)["it"]


def test_the_check_accepts_what_is_right():
    assert softmax_errors("float16", lambda x: [flow.softmax(x, 1)]) < 1
    assert softmax_errors("float64", lambda x: [flow.softmax(x, 1)]) < 1


def test_the_check_finds_one_wrong_element():
    def wrong(x):
        y = flow.softmax(x, 1)
        y[63, 99].fill_(0.5)
        return [y]

    assert softmax_errors("float32", wrong) > 1


def test_the_check_finds_an_element_that_was_not_written():
    memory = flow.zeros(64, 100)

    def forgetful(x):
        y = flow.softmax(x, 1)
        memory[:63].copy_(y[:63])
        return [memory]

    error = softmax_errors("float32", forgetful)
    assert math.isnan(error) and not error <= 1


def test_a_wrong_peer_is_dropped_and_a_failing_one_is_a_line():
    class Peer:
        def __init__(self, make):
            self.make = make

        def available(self):
            return "1"

    def broken(p):
        raise RuntimeError("no such kernel\nand more")

    wrong = Peer(lambda p: Candidate(lambda: [flow.log_softmax(p.t["x"], 1)]))
    right = Peer(lambda p: Candidate(lambda: [flow.softmax(p.t["x"], 1)]))
    peers = {"torch": right, "liger": wrong, "quack": Peer(broken), "apex": "not here"}
    b = measure.Bench("cpu", CpuClock(rounds=1, repeats=1, budget=1e-3), peers)
    cell = measure.measure(b, WORKLOADS["softmax"], "float32", cases.Case("width", (64, 100)))
    assert set(cell["peers"]) == {"torch"}
    assert cell["notes"]["liger"].startswith("wrong: ")
    assert cell["notes"]["quack"] == "RuntimeError: no such kernel"
    part = measure.new_slice(b, WORKLOADS["softmax"], "float32")
    part["cells"]["64x100"] = cell
    text = "\n".join(table.text("cpu/softmax/float32", part))
    assert "quack: RuntimeError: no such kernel (64x100)" in text and "apex: not here" in text


def test_a_wrong_result_of_ours_never_passes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(flow, "softmax", flow.log_softmax)
    output = tmp_path / "figures.json"
    assert bench("softmax", "--dtype", "float32", "--kinds", "width", "--output", output) == 1
    part = record.read(output)["slices"]["cpu/softmax/float32"]
    (cell,) = part["cells"].values()
    assert "wrong" in cell["notes"] and not record.verdict(part, cell).passed
    assert "WRONG" in capsys.readouterr().out


def test_a_case_that_fails_is_a_line(tmp_path, monkeypatch, capsys):
    def full(x, dim):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(flow, "softmax", full)
    assert bench("softmax", "--dtype", "float32", "--kinds", "width") == 1
    assert "FAILED 256x128 1t: RuntimeError: out of memory" in capsys.readouterr().out


# The targets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ours, stream, best, passed",
    [
        (100, 97, None, True),  # at the stream
        (100, 96, None, False),
        (100, 50, 105, True),  # far from it, but ahead of the peers
        (100, 50, 104, False),
        (100, 99, 98, False),  # at the stream, but slower than a peer
        (100, 99, 98.6, True),
        (10, 9.1, 50, True),  # short: the stream and a microsecond
        (10.2, 9.1, 10.3, False),
    ],
)
def test_a_cell_passes_by_the_rule(ours, stream, best, passed):
    assert judge(Target(0.97, 1.05), ours, stream, best).passed == passed


def test_host_time_counts_above_a_bare_launch():
    assert judge_host(4.3, 2.3, 5.7).passed  # 2.0 beside 3.4
    assert not judge_host(4.5, 2.3, 5.7).passed


def test_targets_by_family():
    def share(op, dtype="float16", kind="width", cols=4096, mib=400):
        return target(op, dtype, kind, cols, mib << 20).share

    assert share("softmax") == 0.97 and share("softmax", cols=512) == 0.92
    assert share("softmax", kind="awkward", cols=4097) == 0.93
    assert share("log_softmax_backward") == 0.95
    assert [share("layer_norm_backward", cols=c) for c in (16384, 65536, 131072)] == [
        0.90, 0.75, 0.55]  # fmt: skip
    assert share("rms_norm_backward", kind="tall", cols=128) == 0.85
    assert [share("rms_norm", kind="few", mib=m) for m in (8, 32, 64)] == [0.85, 0.70, 0.93]
    assert share("rms_norm", dtype="float64") == 0.90
    assert target("softmax", "float16", "dim", 1000, 1, slab_bytes=32000).share == 0.90
    assert target("softmax", "float16", "dim", 16384, 1, slab_bytes=16384 * 32).share == 0.60


def test_shapes():
    full = cases.cases("softmax", "float16")
    assert len({c.label for c in full}) == len(full)
    assert {c.cols for c in full} >= {*cases.WIDTHS, *cases.AWKWARD}
    assert max(c.numel for c in full) == 49152 * 16384
    families = [c for family in cases.FAMILIES for c in cases.cases(family, "float32")]
    assert {c.kind for c in families} == set(cases.KINDS)
    chosen = cases.cases("norm", "float64", widths=[4096, 33])
    assert [(c.kind, c.shape) for c in chosen] == [
        ("width", (12288, 4096)), ("awkward", (12288, 33))]  # fmt: skip


# The clock of a GPU, with a device that only counts ----------------------------------------------


class CountedGpu:
    """Stands in for streams and events: each piece of work takes its time on one queue."""

    def __init__(self):
        self.now = 0.0  # us
        self.log = []

    def work(self, name, us):
        self.log.append(name)
        self.now += us

    def event(gpu):  # noqa: N805
        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = gpu.now

            def query(self):
                return False

            def elapsed_time(self, end):
                return (end.at - self.at) / 1e3

        return Event


def test_the_clock_of_a_gpu_takes_turns(monkeypatch):
    gpu = CountedGpu()
    clock = object.__new__(CudaClock)
    clock.rounds, clock.repeats, clock.budget, clock.least = 3, 21, 0.2, 21
    clock.flushed = clock.one = None
    clock.read = lambda x: gpu.work("flush", 60)
    clock.spin = lambda x, nanoseconds: gpu.work("spin", nanoseconds / 1e3)
    monkeypatch.setattr(flow.cuda, "Event", gpu.event())
    monkeypatch.setattr(flow.cuda, "synchronize", lambda: None)
    clock.events = [(clock._event(), clock._event())]
    times = clock.measure({
        "a": Candidate(lambda: gpu.work("a", 10), prepare=lambda: gpu.work("restore", 5)),
        "b": Candidate(lambda: gpu.work("b", 400)),
        "far behind": Candidate(lambda: gpu.work("far behind", 1e6)),
    })  # fmt: skip
    assert times["a"].median == pytest.approx(10) and times["b"].median == pytest.approx(400)
    assert times["a"].repeats == times["b"].repeats >= 21 and len(times["a"].rounds) == 3
    assert times["far behind"].repeats == 3  # a second each time: once a round
    a, b = ["restore", "flush", "spin", "a"], ["flush", "spin", "b"]
    log, length = gpu.log[-len(a + b) * 21 :], len(a + b)
    turns = [log[i : i + length] for i in range(0, len(log), length)]
    assert all(turn in (a + b, b + a) for turn in turns)
    assert a + b in turns and b + a in turns  # each repetition draws its order


# On a GPU ---------------------------------------------------------------------------------------


def test_streams_compile(monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)  # nvcc does not bear a sanitizer's runtime
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not (nvcc and shutil.which("g++")):
        pytest.skip("no nvcc or no g++ here")
    streams.load()
    assert "bench::copy" in flow.ops.list()


@pytest.mark.cuda
def test_streams_move_what_they_say():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    streams.load()
    for nbytes in (16, 4096 + 16, (1 << 20) + 16 * 7):
        x, y = (flow.random_bits(nbytes // 8, device="cuda") for _ in range(2))
        assert flow.ops.bench.copy(x).tolist() == x.tolist()
        assert flow.ops.bench.memcpy(x).tolist() == x.tolist()
        want = [a ^ b for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert flow.ops.bench.add(x, y).tolist() == want
        words = 0
        for value in x.tolist():
            words ^= (value ^ (value >> 32)) & 0xFFFFFFFF
        got = 0
        for value in flow.ops.bench.read(x).tolist():
            got ^= value & 0xFFFFFFFF
        assert got == words


@pytest.mark.cuda
def test_the_command_measures_on_a_gpu(tmp_path, capsys):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    output = tmp_path / "figures.json"
    assert main(["softmax", "softmax_backward", "--quick", "--device", "cuda", "--dtype",
                 "float32", "--peers", "torch", "--output", str(output)]) == 0  # fmt: skip
    for part in record.read(output)["slices"].values():
        for cell in part["cells"].values():
            assert "wrong" not in cell["notes"] and cell["ours"]["median"] > 0


def test_the_canary_set_covers_all_pairs():
    cells = canary.cells("cuda")
    assert len(cells) <= 120
    assert len({(op, dtype) for op, dtype, _ in cells}) == len(WORKLOADS) * len(canary.DTYPES)
    for op, w in WORKLOADS.items():
        assert {case for name, _, case in cells if name == op} == set(canary._SHAPES[w.family])
    assert {(op, dtype) for op, dtype, _ in canary.planted(1000)} == {
        (op, dtype) for op in WORKLOADS for dtype in canary.DTYPES
    }


def test_a_build_against_itself():
    package = Path(flow.__file__).parents[1]
    cells = [("softmax", "float32", cases.Case("width", (8, 64)))]
    cells.append(("softmax", "float32", cases.Case("width", (8, 64), dim=5)))
    found = against.run(package, "cpu", budget=0.001, rounds=1, planted=30, cells=cells)
    assert len({build["libraries"] for build in found["builds"].values()}) == 1
    assert list(found["figures"]) == ["softmax float32 8x64"]
    assert set(found["figures"]["softmax float32 8x64"]) == {"this", "again", "other"}
    assert "dim 5" in next(iter(found["failed"]))  # a cell that fails does not end the others
    assert found["different"] == []
    assert "bits: 0 of 30 cases differ" in found["lines"]


def test_planted_cases_have_special_values():
    p = canary.Planted("softmax", "float32", "cpu", cases.Case("awkward", (64, 1000)))
    values = p.randn(64, 1000)
    assert bool(flow.isnan(values).any()) and bool(flow.isinf(values).any())
    again = canary.Planted("softmax", "float32", "cpu", cases.Case("awkward", (64, 1000)))
    assert again.randn(64, 1000).numpy().tobytes() == values.numpy().tobytes()


def test_a_ratio_below_the_bound_is_named():
    cell = {"this": 10.0, "again": 10.1, "other": 9.0}
    lines = against.report({"softmax float32 8x64": cell})
    assert any("below 0.985: softmax float32 8x64 0.900" in line for line in lines)
    assert "median 1.00%" in lines[0]


def test_a_package_that_is_none_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no folder oneflow_lite"):
        main(["--against", str(tmp_path), "--device", "cpu"])
    (tmp_path / "oneflow_lite").mkdir()
    (tmp_path / "oneflow_lite" / "__init__.py").write_text("raise RuntimeError('broken build')")
    with pytest.raises(SystemExit, match="broken build"):
        against.run(tmp_path, "cpu", cells=[], planted=0)
