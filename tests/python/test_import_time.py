# SPDX-License-Identifier: Apache-2.0
"""Importing is quick and brings in nothing heavy."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("oneflow_lite")

# The best of several, in the process's own time: other work must not fail the test.
SCRIPT = """
import sys, time
import numpy
start = time.process_time()
import oneflow_lite
print(time.process_time() - start)
print(*sorted(name for name in ("scipy", "torch", "matplotlib", "sklearn", "multiprocessing",
                                "unittest", "asyncio") if name in sys.modules))
"""


@pytest.mark.timed
def test_import_costs_under_200_ms_beyond_numpy(tmp_path):
    # With bytecode that is kept, as an installed package has it.
    kept = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    best, heavy = 1e9, ""
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                             check=True, env=kept)  # fmt: skip
        seconds, heavy = run.stdout.split("\n")[:2]
        best = min(best, float(seconds))
    assert best < 0.2
    assert heavy == ""


def test_version_is_that_of_the_package():
    import oneflow_lite as flow

    assert flow.__version__ == flow.__config__["version"]
    assert flow.__version__ in repr(flow.__config__)
    assert len(flow.__version__.split(".")) == 3
