# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole suite: the devices and threads that tests run on, and how hypothesis
searches; and a part of the suite for each of several processes (--shard)."""

import shutil
import subprocess

import pytest

try:
    import hypothesis
except ImportError:  # drawing.py says what stands in for it
    pass
else:
    # The same examples every time: a failure must not depend on the day.
    hypothesis.settings.register_profile(
        "suite",
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("suite")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """Each device in turn; "cuda" is skipped, visibly, where there is no GPU."""
    flow = pytest.importorskip("oneflow_lite")
    if request.param == "cuda" and not flow.cuda.is_available():
        pytest.skip("no GPU here")
    return request.param


@pytest.fixture(params=[1, 2, 3, 5])
def threads(request):
    """So many threads in turn; also more than there are cores."""
    flow = pytest.importorskip("oneflow_lite")
    before = flow.get_num_threads()
    flow.set_num_threads(request.param)
    yield request.param
    flow.set_num_threads(before)


@pytest.fixture(scope="session")
def abseil_flags():
    """The compiler's flags for Abseil's headers, which those of the C++ API include."""
    compiler = shutil.which("g++") or pytest.skip("no g++ here")
    command = [shutil.which("pkg-config") or "true", "--cflags", "absl_status", "libhwy"]
    flags = subprocess.run(command, text=True, capture_output=True).stdout.split()
    probe = [compiler, "-E", *flags, "-include", "absl/status/status.h", "-x", "c++", "/dev/null"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("no Abseil headers here")
    return flags


def pytest_addoption(parser):
    parser.addoption(
        "--shard", metavar="K/N", help="only the K-th of N parts of the tests, K from 0 on"
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--shard"):
        part, parts = map(int, config.getoption("--shard").split("/"))
        # By tens, which often share what they compile.
        items[:] = [item for i, item in enumerate(items) if i // 10 % parts == part]


_groups = {}  # by size, started when first asked for


def _group_of(size):
    from gloo import LIBRARY, WHY_NOT
    from rank_group import RankGroup

    if not LIBRARY.exists():
        pytest.skip(WHY_NOT)
    if size not in _groups or not _groups[size].alive:
        _groups[size] = RankGroup(size)
    return _groups[size]


@pytest.fixture
def ranks():
    """Four processes that compute together."""
    return _group_of(4)


@pytest.fixture
def two_ranks():
    """Two processes that compute together."""
    return _group_of(2)


@pytest.fixture
def pair():
    """Two processes, each with a GPU, that compute together."""
    from two_gpus import group

    return group()


def pytest_unconfigure(config):
    for group in _groups.values():
        group.close()
