# SPDX-License-Identifier: Apache-2.0
"""The variables of other launchers start a world end to end: four ranks, on one machine or on two.

The launchers themselves are not here: their variables are set as their manuals say, the processes
are started one by one, in another order than that of their ranks.
"""

import json
import os
import socket
import subprocess
import sys

import pytest
from gloo import needs_gloo

flow = pytest.importorskip("oneflow_lite")
pytestmark = needs_gloo

SIZE = 4
TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
OPEN_MPI = tuple(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))
PMI = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")
OURS = {*TORCHRUN, *OPEN_MPI, *PMI, *SLURM, "MASTER_ADDR", "MASTER_PORT", "OFL_MASTER_PORT"}

PROGRAM = """
import json
import oneflow_lite as flow
from oneflow_lite import distributed as dist

x = flow.full([3], dist.get_rank() + 1.0)
dist.all_reduce(x)
place = flow.placement("cpu", list(range(dist.get_world_size())))
rows = flow.arange(12.0, placement=place, sbp=flow.sbp.split(0)).view(6, 2)
model = dist.DataParallel(flow.nn.Linear(2, 1))
model(flow.full([1, 2], float(dist.get_rank()))).sum().backward()
print(json.dumps([
    dist.get_rank(), dist.get_world_size(), dist.get_local_rank(), x.tolist(), rows.sum().item(),
    model.module.weight.grad.tolist(),
]))
"""


def held_and_free():
    """A port that somebody listens at, as torchrun's agent does, of which the next one is free."""
    while True:
        held = socket.create_server(("127.0.0.1", 0))
        try:
            with socket.create_server(("127.0.0.1", held.getsockname()[1] + 1)):
                return held
        except OSError:
            held.close()


def variables(names, rank, machines, of_slurm):
    """What a launcher sets for a rank."""
    local = SIZE // machines
    per_machine = f"{local}(x{machines})" if of_slurm and machines > 1 else str(local)
    values = (str(rank), str(SIZE), str(rank % local), per_machine)
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize("machines", [1, 2])
@pytest.mark.parametrize("names", [TORCHRUN, OPEN_MPI, PMI, SLURM],
                         ids=["torchrun", "Open MPI", "PMI", "SLURM"])  # fmt: skip
def test_four_ranks_meet_and_compute(names, machines):
    clean = {k: v for k, v in os.environ.items() if k not in OURS}
    common = clean | {"OMP_NUM_THREADS": "1", "OFL_TIMEOUT": "60"}
    if machines > 1 or names is TORCHRUN:
        common["MASTER_ADDR"] = "127.0.0.1"
    with held_and_free() as held:
        common["MASTER_PORT"] = str(held.getsockname()[1])
        runs = {
            rank: subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=common | variables(names, rank, machines, names is SLURM),
            )
            for rank in (2, 0, 3, 1)
        }  # fmt: skip
        try:
            said = {rank: p.communicate(timeout=120) for rank, p in runs.items()}
        finally:
            for p in runs.values():
                p.kill()
                p.wait()
    for rank, (out, errors) in said.items():
        assert runs[rank].returncode == 0, errors
        local = rank % (SIZE // machines)
        assert json.loads(out) == [rank, SIZE, local, [10.0] * 3, 66.0, [[1.5, 1.5]]], out


def test_several_machines_without_an_address_are_an_error():
    clean = {k: v for k, v in os.environ.items() if k not in OURS}
    run = subprocess.run([sys.executable, "-c", PROGRAM], text=True, capture_output=True,
                         env=clean | variables(SLURM, 1, 2, True), timeout=60)  # fmt: skip
    assert run.returncode != 0 and "MASTER_ADDR is not set" in run.stderr, run.stderr
