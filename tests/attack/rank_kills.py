# SPDX-License-Identifier: Apache-2.0
"""kill -9 of one rank of four, or of all, while they save a checkpoint together.

The folder always loads, as the checkpoint that was saved last or the next one; ranks that were not
killed end by themselves; the next save leaves nothing of what the dead left.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _frame import run

from oneflow_lite.distributed import checkpoint

RANKS = 4
PATIENCE = 60  # seconds in which the others must have ended
SAVER = """
import itertools, sys
import oneflow_lite as flow
from oneflow_lite.distributed import checkpoint
line = flow.placement("cpu", [0, 1, 2, 3])
grid = flow.placement("cpu", [[0, 1], [2, 3]])
split, whole = flow.sbp.split, flow.sbp.broadcast
for n in itertools.count(int(sys.argv[2])):
    state = {
        "rows": flow.full([1001, 50], n, placement=line, sbp=split(0)),
        "grid": flow.full([30, 7], n, placement=grid, sbp=[split(1), whole]),
        "own": flow.full([5], n), "n": n,
    }
    checkpoint.save(state, sys.argv[1])
    print(n, flush=True)
"""


def start(folder, first):
    """The ranks, which save number after number."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    common = os.environ | {
        "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
        "OFL_MASTER_PORT": port, "OMP_NUM_THREADS": "1", "OFL_TIMEOUT": "30",
    }  # fmt: skip
    return [
        subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder), str(first)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=common | {"RANK": str(r), "LOCAL_RANK": str(r)},
        )
        for r in range(RANKS)
    ]  # fmt: skip


def check(folder):
    """The number of the checkpoint that is there."""
    got = checkpoint.load(folder)
    for name, shape in {"rows": (1001, 50), "grid": (30, 7), "own": (5,)}.items():
        assert got[name].shape == shape and (got[name] == got["n"]).all(), f"{name}: a mixture"
    return got


def visible(folder):
    """The files that do not begin with a dot."""
    return [f.name for f in Path(folder).iterdir() if not f.name.startswith(".")]


def kill(processes, victims, seconds):
    """Kills some after their first save and so long; the highest number that any called saved."""
    told = [int(p.stdout.readline() or -1) for p in processes]
    if -1 in told:
        errors = processes[told.index(-1)].communicate()[1].decode()
        raise AssertionError(f"a rank ended before its first save: {errors}")
    time.sleep(seconds)
    for v in victims:
        processes[v].kill()
    end = time.monotonic() + PATIENCE
    for p in processes:
        told += map(int, p.communicate(timeout=max(1, end - time.monotonic()))[0].split())
    return max(told)


def rounds(rng, say):
    with tempfile.TemporaryDirectory() as folder:
        last = 0
        while True:
            victims = range(RANKS) if rng.random() < 0.3 else [rng.randrange(RANKS)]
            say(f"after number {last}, ranks {list(victims)}")
            processes = start(folder, last + 1)
            try:
                told = kill(processes, victims, rng.random() * 0.1)
            finally:
                for p in processes:
                    p.kill()
                    p.wait()
            state = check(folder)
            assert state["n"] in (told, told + 1), f"{state['n']}, but {told} was saved"
            last = state["n"]
            amid = len(visible(folder)) != RANKS + 1  # parts, and the manifest
            checkpoint.save(state, folder)
            assert len(visible(folder)) == 2, visible(folder)
            whom = "one" if len(victims) == 1 else "all"
            yield f"{whom} amid a save" if amid else f"{whom} between two"


if __name__ == "__main__":
    run(rounds, full={"count": 60})
