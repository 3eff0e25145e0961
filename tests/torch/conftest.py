# SPDX-License-Identifier: Apache-2.0
"""Devices, references in float64 and tolerances for the tests of oneflow_lite_torch."""

import pytest
import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
HAS_CUDA = torch.cuda.is_available()
DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.cuda,
            pytest.mark.skipif(not HAS_CUDA, reason="PyTorch sees no CUDA device here"),
        ],
    ),
]

# In units of the dtype's eps: what one rounding at the end and float32 in between leave.
EPS = {dtype: torch.finfo(dtype).eps for dtype in FLOATS}


def assert_near(actual, reference, dtype, scale=1.0, units=8.0):
    """|actual - reference| <= units * eps * (scale + |reference|), NaN where NaN is."""
    actual, reference = actual.detach().double().cpu(), reference.detach().double().cpu()
    assert actual.shape == reference.shape
    assert torch.equal(actual.isnan(), reference.isnan())
    error = (actual - reference).abs() / (scale + reference.abs())
    worst = error.nan_to_num(0).max().item() if error.numel() else 0.0
    assert worst <= units * EPS[dtype], f"{worst / EPS[dtype]:.1f} eps of {dtype}"


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=FLOATS, ids=lambda d: str(d).removeprefix("torch."))
def dtype(request):
    return request.param


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(20240)
