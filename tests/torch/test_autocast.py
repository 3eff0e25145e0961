# SPDX-License-Identifier: Apache-2.0
"""Inside torch.autocast: PyTorch's output dtypes, or input's own."""

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F

TARGET = torch.tensor([1, 2, 3])
PAIRS = {
    "softmax": (lambda x, w, t, **k: rows.softmax(x, **k), lambda x, w, t: F.softmax(x, -1)),
    "log_softmax": (
        lambda x, w, t, **k: rows.log_softmax(x, **k),
        lambda x, w, t: F.log_softmax(x, -1),
    ),
    "layer_norm": (
        lambda x, w, t, **k: rows.layer_norm(x, 8, w, w, **k),
        lambda x, w, t: F.layer_norm(x, (8,), w, w),
    ),
    "rms_norm": (
        lambda x, w, t, **k: rows.rms_norm(x, 8, w, **k),
        lambda x, w, t: F.rms_norm(x, (8,), w),
    ),
    "cross_entropy": (
        lambda x, w, t, **k: rows.cross_entropy(x, t, **k),
        lambda x, w, t: F.cross_entropy(x, t),
    ),
    "linear_cross_entropy": (
        lambda x, w, t, **k: rows.linear_cross_entropy(x, torch.diag(w), t, **k),
        lambda x, w, t: F.cross_entropy(F.linear(x, torch.diag(w)), t),
    ),
}


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize("inner", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PAIRS)
def test_dtypes_are_those_of_pytorch(name, inner, needs_grad, device, dtype):
    ours, theirs = PAIRS[name]
    x = torch.randn(3, 8, device=device, dtype=dtype, requires_grad=needs_grad)
    w = torch.randn(8, device=device, dtype=dtype, requires_grad=needs_grad)
    target = TARGET.to(device)
    with torch.autocast(device, dtype=inner):
        expected, actual = theirs(x, w, target), ours(x, w, target)
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)
    if needs_grad:
        actual.sum().backward()
        assert x.grad.dtype == x.dtype


@pytest.mark.parametrize("name", PAIRS)
def test_keep(name, device):
    x = torch.randn(3, 8, device=device).bfloat16()
    w = torch.randn(8, device=device).bfloat16()
    with torch.autocast(device, dtype=torch.bfloat16):
        assert PAIRS[name][0](x, w, TARGET.to(device), autocast="keep").dtype == torch.bfloat16
    with pytest.raises(ValueError, match='autocast is "no"'):
        PAIRS[name][0](x, w, TARGET.to(device), autocast="no")
