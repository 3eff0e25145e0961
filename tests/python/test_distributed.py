# SPDX-License-Identifier: Apache-2.0
"""Collectives on 2 and on 4 ranks, one thread each: a group runs all cases, with checks on."""

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from gloo import needs_gloo

HERE = Path(__file__).parent
SCRIPT = HERE / "distributed_cases.py"
NAMES = [
    node.name
    for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.decorator_list
]
TIMEOUT = 30  # seconds of a collective: the case that began last is named
LIMIT = 300

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.launch import _Overseer  # noqa: E402

pytestmark = needs_gloo


def read(file):
    """How each case went: None for well, a text for an error, of the last one its beginning."""
    results = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        entry = json.loads(line)
        if "begun" in entry:
            results[entry["begun"]] = "it began, but did not end"
        else:
            results[entry["case"]] = entry["error"]
    return results


@pytest.fixture(scope="module", params=[2, 4])
def results(request, tmp_path_factory):
    """What each rank says of each case, and the output of all."""
    folder = tmp_path_factory.mktemp("ranks")
    environment = os.environ | {
        "OFL_TIMEOUT": str(TIMEOUT), "OFL_CHECK_COLLECTIVES": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    launch = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", str(request.param)]
    command = [*launch, "--device", "cpu", str(SCRIPT), str(folder)]
    run = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=LIMIT)
    return [read(folder / f"rank{r}") for r in range(request.param)], run


@pytest.mark.parametrize("name", NAMES)
def test_case(results, name):
    reports, run = results
    for rank, report in enumerate(reports):
        error = report.get(name, "it was not reached")
        assert error is None, f"rank {rank}: {error}\n{run.stderr[-2000:]}"


def test_all_ranks_end_well(results):
    assert results[1].returncode == 0, results[1].stderr


# A process that nobody launched.


def test_one_process_is_a_world_of_its_own():
    from oneflow_lite import distributed as dist

    assert (dist.get_rank(), dist.get_world_size(), dist.get_local_rank()) == (0, 1, 0)
    x = flow.arange(3.0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    out = [flow.empty(3)]
    dist.all_gather(out, x)
    assert out[0].tolist() == [0.0, 1.0, 2.0]
    with dist.batch():
        dist.send(x, 0)
        dist.recv(out[0], 0)
    dist.barrier()


def run_python(code, **environment):
    e = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | environment
    return subprocess.run(
        [sys.executable, "-c", code], env=e, text=True, capture_output=True, timeout=180
    )


def test_ranks_that_do_not_come_are_named():
    code = "from oneflow_lite import distributed as d; d.init(timeout=1, master_port={})"
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    run = run_python(code.format(port), RANK="0", WORLD_SIZE="3")
    assert "ranks 1, 2 of 3 did not come" in run.stderr and "within 1 s" in run.stderr
    run = run_python(code.format(port), RANK="1", WORLD_SIZE="3")
    assert f"nobody answered at port {port} of 127.0.0.1" in run.stderr


@pytest.mark.parametrize(
    ("environment", "part"),
    [
        ({"RANK": "1"}, "WORLD_SIZE"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK is \"x\""),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of a world of 2"),
        ({"RANK": "0", "WORLD_SIZE": "2", "OFL_TIMEOUT": "soon"}, "OFL_TIMEOUT"),
    ],
)  # fmt: skip
def test_an_environment_without_sense_is_an_error(environment, part):
    run = run_python("from oneflow_lite import distributed as d; d.init()", **environment)
    assert "ValueError" in run.stderr and part in run.stderr


EARLY = """
import sys
import oneflow_lite as flow
places = [flow.placement("cpu", [0]), flow.placement("cpu", [0])]
assert places[0] == places[1]
flow.distributed.init(rank=int(sys.argv[1]), world_size=2, master_port=int(sys.argv[2]), timeout=60)
x = flow.arange(4, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
print(x.to_local().tolist())
"""


def test_a_placement_made_before_the_ranks_meet_is_none_of_another_rank():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    e = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    runs = [subprocess.Popen([sys.executable, "-c", EARLY, str(rank), str(port)], env=e, text=True,
                             stdout=subprocess.PIPE) for rank in range(2)]  # fmt: skip
    try:
        assert [run.communicate(timeout=180)[0] for run in runs] == ["[0, 1, 2, 3]\n", "[]\n"]
    finally:
        for run in runs:
            run.kill()


MEETS = """
import oneflow_lite as flow
x = flow.ones(2)
flow.distributed.all_reduce(x)
print(x.tolist())
"""


@pytest.mark.parametrize("address", ["127.0.0.2", "localhost", "::1"])
def test_the_launcher_listens_at_the_address_it_is_told(tmp_path, address):
    if ":" in address:
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind((address, 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
    script = tmp_path / "meets.py"
    script.write_text(MEETS)
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "2", "--device", "cpu",
               "--timeout", "30", "--master-addr", address, str(script)]  # fmt: skip
    run = subprocess.run(command, text=True, capture_output=True, timeout=180)
    assert sorted(run.stdout.splitlines()) == ["[0] [2.0, 2.0]", "[1] [2.0, 2.0]"], run.stderr


def test_an_address_of_another_machine_is_an_error_at_once(tmp_path):
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "2", "--device", "cpu",
               "--master-addr", "203.0.113.9", str(tmp_path / "none.py")]  # fmt: skip
    run = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert run.returncode == 1 and "launch: cannot listen at port" in run.stderr


@pytest.mark.parametrize("port", ["65535", "70000", "-1"])
def test_what_is_no_port_is_refused(port):
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "1", "--device", "cpu",
               f"--master-port={port}", "none.py"]  # fmt: skip
    run = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert run.returncode == 2 and f"--master-port is {port}" in run.stderr


def test_the_import_does_not_bring_it():
    code = "import sys, oneflow_lite; print('oneflow_lite.distributed' in sys.modules)"
    assert run_python(code).stdout == "False\n"


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, ""), (1, "; 1 other is still to end"), (2, "; 2 others are still to end")],
)
def test_the_launcher_says_how_many_are_still_to_end(count, said, capsys):
    overseer = SimpleNamespace(exit_code=0, _pass_on=lambda seconds: None)
    rank = SimpleNamespace(rank=1, process=SimpleNamespace(returncode=3))
    _Overseer._ended(overseer, rank, [None] * count)
    assert capsys.readouterr().err == f"launch: rank 1 ended with exit code 3{said}\n"
    assert overseer.exit_code == 3


def test_the_launcher_passes_arguments_output_and_exit_codes_on(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "print(sys.argv[1:], os.environ['RANK'], os.environ['OMP_NUM_THREADS'] != '')\n"
        "sys.exit(3 if os.environ['RANK'] == '1' else 0)\n"
    )
    command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "2", str(script), "--a", "b"]
    run = subprocess.run(command, text=True, capture_output=True, timeout=180)
    assert run.returncode == 3
    assert sorted(run.stdout.splitlines()) == [
        "[0] ['--a', 'b'] 0 True",
        "[1] ['--a', 'b'] 1 True",
    ]
    assert "launch: rank 1 ended with exit code 3" in run.stderr
    wrong = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", "0", str(script)]
    run = subprocess.run(wrong, text=True, capture_output=True, timeout=180)
    assert run.returncode == 2 and "--nproc is 0" in run.stderr
