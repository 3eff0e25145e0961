# SPDX-License-Identifier: Apache-2.0
"""The raw operators refuse what their kernels would read wrongly; what fails is told once."""

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from oneflow_lite_torch import _losses, _norms, _softmax

ops = torch.ops.oneflow_lite_torch
F32, F64 = torch.float32, torch.float64


def _calls(device):
    """By a part of the error: calls with one argument that does not go with the others."""
    made = lambda *shape, dtype=F32: torch.ones(*shape, dtype=dtype, device=device)  # noqa: E731
    x, column, target = made(4, 5), made(5), made(4, dtype=torch.int64)
    number, rows, stats = made(()), made(4, 1), made(4, 2)
    norm = lambda dy=x, dsum=None, mean=rows, rstd=rows: ops.layer_norm_backward(  # noqa: E731
        dy, dsum, x, mean, rstd, column, column, 1, True, True, True
    )
    rms = lambda rstd: ops.rms_norm_backward(  # noqa: E731
        x, None, x, rstd, column, 1, True, True
    )
    loss = lambda stats=stats, dloss=number, t=target: ops.cross_entropy_backward(  # noqa: E731
        x, t, stats, dloss, -100, 0.0
    )
    reduced = lambda loss, t=None, dtype=F32: ops.reduce_loss(loss, t, -100, dtype)  # noqa: E731
    return [
        ("rstd must be 4 numbers of float32", lambda: norm(rstd=made(1))),
        ("rstd must be 4 numbers of float32", lambda: norm(rstd=made(4, 1, dtype=F64))),
        ("rstd must be 4 numbers of float32", lambda: norm(rstd=made(4, 2)[:, :1])),
        ("mean must be 4 numbers of float32", lambda: norm(mean=made(1))),
        ("mean must be 4 numbers of float32", lambda: norm(mean=made(4, dtype=torch.float16))),
        ("rstd must be 4 numbers of float32", lambda: rms(made(1))),
        ("the gradient must have input's shape", lambda: norm(dy=made(5, 4))),
        ("the sum's gradient must have input's shape", lambda: norm(dsum=made(2, 5))),
        ("the sum's gradient must have input's shape", lambda: norm(dsum=made(4, 5, dtype=F64))),
        (
            "residual must have input's shape",
            lambda: ops.add_rms_norm(x, made(2, 5), column, 1, 1e-5),
        ),
        (
            "the gradient must have input's shape",  # whose rows lie apart
            lambda: ops.softmax_backward(made(2, 20)[:, :10], made(4, 5), -1, False),
        ),
        (
            "the gradient must have input's shape",
            lambda: ops.scale_mask_softmax_backward(x, made(2, 5), 1.0, False),
        ),
        ("stats must be 8 numbers of float32", lambda: loss(stats=made(1))),
        ("stats must be 8 numbers of float32", lambda: loss(stats=made(4, 2, dtype=F64))),
        ("the losses' gradient must be one number", lambda: loss(dloss=made(3))),
        ("targets must be int64", lambda: loss(t=target.int())),
        ("target must be int64", lambda: ops.mean_weight(target.int(), -100, F32)),
        ("a loss must have a floating dtype", lambda: ops.mean_weight(target, -100, torch.int32)),
        ("loss must be 4 numbers of float32", lambda: reduced(made(4, dtype=F64))),
        ("loss must be 4 numbers of float64", lambda: reduced(made(4), dtype=F64)),
        ("loss must be 4 numbers of float32", lambda: reduced(made(8)[::2])),
        ("target must be int64", lambda: reduced(made(4), target[:1])),
        ("target must be int64", lambda: reduced(made(4), target.int())),
        ("factor must be one number", lambda: ops.scale_rows_(x, made(3))),
        ("factor must be one number", lambda: ops.scale_rows_(x, made(1, 4))),
        ("factor must be one number", lambda: ops.scale_rows_(x, made(4, dtype=F64))),
        (
            "scale must be 1 numbers",
            lambda: ops.cross_entropy_(x, target, made(2), -100, 0.0),
        ),
    ]


@pytest.mark.parametrize("case", range(len(_calls("cpu"))))
def test_what_does_not_go_together_is_refused(case, device):
    told, call = _calls(device)[case]
    with pytest.raises(RuntimeError, match=told):
        call()


def test_another_device_is_refused():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    x, there = torch.ones(4, 5, device="cuda:0"), torch.ones(4, 5, device="cuda:1")
    target, numbers = torch.ones(4, dtype=torch.int64, device="cuda:1"), there[:, :1].contiguous()
    for call in (
        lambda: ops.cross_entropy(x, target, -100, 0.0),
        lambda: ops.softmax_backward(there, x, -1, False),
        lambda: ops.scale_mask_softmax(x, there, 1.0, False, False),
        lambda: ops.add_rms_norm(x, there, None, 1, 1e-5),
        lambda: ops.rms_norm_backward(x, None, x, numbers, None, 1, True, False),
        lambda: ops.reduce_loss(x[:, 0].contiguous(), target, -100, F32),
        lambda: ops.scale_rows_(x, numbers[0]),
    ):
        with pytest.raises(RuntimeError, match="is on another device than input"):
            call()


FUNCTIONS = {
    "softmax": (_softmax, "_forward", lambda x: rows.softmax(x)),
    "log_softmax": (_softmax, "_forward", lambda x: rows.log_softmax(x)),
    "layer_norm": (_norms, "_layer_y", lambda x: rows.layer_norm(x, 4)),
    "rms_norm": (_norms, "_rms_y", lambda x: rows.rms_norm(x, 4, eps=1e-5)),
    "cross_entropy": (_losses, "_apply_quickly", lambda x: rows.cross_entropy(x, _target(x))),
}


def _target(x):
    return torch.zeros(x.shape[0], dtype=torch.int64)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        torch.AcceleratorError("an illegal memory access was encountered"),
        RuntimeError("oneflow_lite_torch failed: an illegal memory access was encountered"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failure_is_not_followed_by_pytorchs_function(name, error, monkeypatch):
    module, operator, call = FUNCTIONS[name]
    called = []

    def fails(*_):
        called.append(operator)
        raise error

    monkeypatch.setattr(module, operator, fails)
    monkeypatch.setattr(F, name, lambda *_, **__: called.append(name))
    x = torch.randn(8, 3).t()[:, ::2]  # for the dispatcher: rows that lie apart
    with pytest.raises(type(error)) as caught:
        call(x.requires_grad_(name == "cross_entropy"))
    assert caught.value is error and called == [operator]


def test_memory_that_is_not_there_is_not_asked_for_again(monkeypatch):
    asked = []
    monkeypatch.setattr(F, "softmax", lambda *_, **__: asked.append("softmax"))
    with pytest.raises(RuntimeError, match="failed: .*(memory|aten::contiguous)"):
        rows.softmax(torch.zeros(1, 1).expand(1 << 20, 1 << 28), 1)
    assert asked == []
