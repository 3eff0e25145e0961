# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the whole suite: the devices that tests run on, and how hypothesis searches."""

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
