# SPDX-License-Identifier: Apache-2.0
"""What takes another way by its sizes, or was composed and is an op: NumPy's values."""

import numpy as np
import pytest
from numerics import HALVES, NUMERIC, flow, host, near, rounded


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 33, 40_001])
def test_numbers_between_two_ends(dtype, n, device):
    """One op; from the nearer end, in float64, for integers too."""
    ends = (3.0, 120.0) if dtype == "uint8" else (-100.0, 27.0)
    names = []
    run = flow._oneflow_lite.record_ops(
        lambda: names.append(flow.linspace(*ends, n, dtype=getattr(flow, dtype), device=device))
    )
    assert [name for name, _ in run if name != "full"] == ["linspace"]  # that looks at integers
    at, step = np.arange(n), (ends[1] - ends[0]) / max(1, n - 1)
    want = np.where(at < max(1, n // 2), ends[0] + at * step, ends[1] - (n - 1 - at) * step)
    got = host(names[0])
    if dtype in HALVES:
        assert near(got, want, dtype, device).all()
    else:
        np.testing.assert_array_equal(got, rounded(want, dtype))
