# SPDX-License-Identifier: Apache-2.0
"""Two processes for the tests of two GPUs (test_two_gpus*.py): which device they have, when a test
is skipped, and the group that stays.
"""

import os

import pytest
from gloo import LIBRARY
from rank_group import RankGroup

flow = pytest.importorskip("oneflow_lite")

ON = os.environ.get("OFL_TEST_TWO_ON", "cuda")
GPUS = flow.cuda.device_count() if flow.cuda.is_available() else 0
TIMEOUT = 20  # seconds of a collective
marks = [
    pytest.mark.skipif(ON == "cuda" and GPUS < 2, reason=f"two GPUs are needed, here are {GPUS}"),
    pytest.mark.skipif(ON == "cpu" and not LIBRARY.exists(), reason="this build has no Gloo"),
    pytest.mark.skipif("RANK" in os.environ, reason="a rank reads its bodies here"),
]
only_cuda = pytest.mark.skipif(ON != "cuda", reason="of GPUs alone")

_groups: list[RankGroup] = []  # the one that stays


def group():
    """Two processes, each with a GPU, that compute together."""
    if not _groups or not _groups[0].alive:
        _groups[:] = [RankGroup(2, OFL_TEST_DEVICE=ON, OFL_TIMEOUT=str(TIMEOUT))]
    return _groups[0]


def close():
    """Ends them; the next test gets new ones."""
    for g in _groups:
        g.close()
