# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of such operators: op_db's samples, gradcheck, opcheck, compile, export."""

import oneflow_lite_torch as rows
import pytest
import torch
from conftest import FLOATS
from torch.autograd import gradcheck, gradgradcheck

try:
    from torch.testing._internal.common_methods_invocations import op_db

    MISSING = None
except ModuleNotFoundError as error:  # PyTorch's tests need packages that PyTorch does not
    op_db, MISSING = [], error.name
needs_op_db = pytest.mark.skipif(
    MISSING is not None, reason=f"op_db needs the package {MISSING}, which is not installed"
)

ops = torch.ops.oneflow_lite_torch


def _softmax(x, dim, dtype=None, **_):
    return rows.softmax(x, dim, dtype=dtype)


def _log_softmax(x, dim, dtype=None, **_):
    return rows.log_softmax(x, dim, dtype=dtype)


OURS = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "nn.functional.layer_norm": rows.layer_norm,
    "nn.functional.rms_norm": rows.rms_norm,
    "nn.functional.cross_entropy": rows.cross_entropy,
}
INFOS = [info for info in op_db if info.name in OURS]
TOLERANCE = {
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
    torch.float32: (1e-5, 1e-5),
    torch.float64: (1e-9, 1e-9),
}


@needs_op_db
def test_all_functions_have_samples():
    assert {info.name for info in INFOS} == set(OURS)


@needs_op_db
@pytest.mark.parametrize("info", INFOS, ids=lambda i: f"{i.name}-{i.variant_test_name}")
def test_samples_of_op_db(info, device, dtype):
    if dtype not in info.supported_dtypes(device):
        pytest.skip(f"op_db has no samples of {info.name} in {dtype} on {device}")
    rtol, atol = TOLERANCE[dtype]
    seen = 0
    for sample in info.sample_inputs(device, dtype, requires_grad=True):
        x = sample.input
        expected = info.op(x, *sample.args, **sample.kwargs)
        actual = OURS[info.name](x, *sample.args, **sample.kwargs)
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
        tensors = [x, *(a for a in sample.args if isinstance(a, torch.Tensor))]
        tensors += [a for a in sample.kwargs.values() if isinstance(a, torch.Tensor)]
        tensors = [t for t in tensors if t.requires_grad]
        if not expected.is_floating_point() or expected.numel() == 0:
            continue
        dy = torch.randn_like(expected)
        wanted = torch.autograd.grad(expected, tensors, dy, allow_unused=True)
        found = torch.autograd.grad(actual, tensors, dy, allow_unused=True)
        for f, w in zip(found, wanted, strict=True):
            assert (f is None) == (w is None)
            if w is not None:
                torch.testing.assert_close(f, w, rtol=8 * rtol, atol=8 * atol, equal_nan=True)
        seen += 1
    assert seen > 0


def _numbers(*shape, device="cpu", dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, device=device, requires_grad=True)


def test_gradcheck(device):
    x, r, w, b = (_numbers(*s, device=device) for s in ((3, 6), (3, 6), (6,), (6,)))
    target = torch.tensor([1, -100, 5], device=device)
    keys = torch.rand(3, 6, device=device) > 0.2
    keys[:, 0] = True
    for function, inputs in (
        (lambda x: rows.softmax(x, 0), (x,)),
        (lambda x: rows.log_softmax(x), (x,)),
        (lambda x, w, b: rows.layer_norm(x, 6, w, b), (x, w, b)),
        (lambda x, w: rows.rms_norm(x, 6, w, 1e-5), (x, w)),
        (lambda x, r, w, b: rows.add_layer_norm(x, r, 6, w, b), (x, r, w, b)),
        (lambda x, r, w: rows.add_rms_norm(x, r, 6, w), (x, r, w)),
        (lambda x: rows.cross_entropy(x, target, label_smoothing=0.1), (x,)),
        (lambda x: rows.scale_mask_softmax(x, keys, 0.7), (x,)),
        (lambda x, m: rows.scale_mask_softmax(x, m, 0.7), (x, r)),
    ):
        assert gradcheck(function, inputs)


def test_second_derivatives(device):
    x, w, b = (_numbers(*s, device=device) for s in ((3, 6), (6,), (6,)))
    target = torch.tensor([1, -100, 5], device=device)
    assert gradgradcheck(lambda x: rows.softmax(x), (x,))
    assert gradgradcheck(lambda x: rows.log_softmax(x), (x,))
    assert gradgradcheck(lambda x, w, b: rows.layer_norm(x, 6, w, b), (x, w, b))
    assert gradgradcheck(lambda x, w: rows.rms_norm(x, 6, w), (x, w))
    assert gradgradcheck(lambda x: rows.cross_entropy(x, target), (x,))


OPCHECKED = {
    "softmax": lambda x, w, t: (ops.softmax.default, (x, -1, False, False)),
    "log_softmax": lambda x, w, t: (ops.softmax.default, (x, 1, True, False)),
    "layer_norm": lambda x, w, t: (ops.layer_norm.default, (x, w, w, 1, 1e-5)),
    "layer_norm_bare": lambda x, w, t: (ops.layer_norm.default, (x, None, None, 1, 1e-5)),
    "rms_norm": lambda x, w, t: (ops.rms_norm.default, (x, w, 1, 1e-5)),
    "add_layer_norm": lambda x, w, t: (ops.add_layer_norm.default, (x, x, w, w, 1, 1e-5)),
    "add_rms_norm": lambda x, w, t: (ops.add_rms_norm.default, (x, x, w, 1, 1e-5)),
    "cross_entropy": lambda x, w, t: (ops.cross_entropy.default, (x, t, -100, 0.1)),
    "scale_mask_softmax": lambda x, w, t: (
        ops.scale_mask_softmax.default,
        (x, w, 0.5, False, False),
    ),
    "softmax_backward": lambda x, w, t: (
        ops.softmax_backward.default,
        (x.detach(), x.detach(), -1, False),
    ),
    "_softmax": lambda x, w, t: (ops._softmax.default, (x.detach(), -1, False, False)),
    "mean_weight": lambda x, w, t: (ops.mean_weight.default, (t, -100, torch.float32)),
    "reduce_loss": lambda x, w, t: (
        ops.reduce_loss.default,
        (x.detach()[:, 0].contiguous(), t, -100, torch.float32),
    ),
    "cross_entropy_": lambda x, w, t: (
        ops.cross_entropy_.default,
        (x.detach().clone(), t, None, -100, 0.0),
    ),
}


@pytest.mark.parametrize("name", OPCHECKED)
def test_opcheck(name, device):
    x, w = _numbers(4, 9, device=device, dtype=torch.float32), _numbers(9, device=device)
    w = w.detach().float().requires_grad_()
    target = torch.tensor([1, 2, -100, 8], device=device)
    op, args = OPCHECKED[name](x, w, target)
    torch.library.opcheck(op, args)


def _model(x, w, b, target):
    y = rows.layer_norm(x, 16, w, b)
    z, s = rows.add_rms_norm(y, x, 16, w)
    p = rows.softmax(z * 2) + rows.log_softmax(s)
    q = rows.scale_mask_softmax(p, causal=True)
    loss = rows.cross_entropy(q * 3, target) + rows.linear_cross_entropy(p, torch.diag(w), target)
    return loss + rows.rms_norm(p, 16).sum()


def _losses(function, device, dtype=torch.float32):
    torch.manual_seed(3)
    x = _numbers(8, 16, device=device, dtype=dtype)
    w, b = _numbers(16, device=device, dtype=dtype), _numbers(16, device=device, dtype=dtype)
    target = torch.randint(0, 16, (8,), device=device)
    loss = function(x, w, b, target)
    loss.backward()
    return loss.detach(), x.grad, w.grad, b.grad


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile_without_graph_breaks(backend, device):
    torch._dynamo.reset()
    compiled = torch.compile(_model, fullgraph=True, backend=backend)
    for f, w in zip(_losses(compiled, device), _losses(_model, device), strict=True):
        torch.testing.assert_close(f, w, rtol=1e-4, atol=1e-4)


def test_export(device):
    class Net(torch.nn.Module):
        def forward(self, x):
            return rows.softmax(rows.layer_norm(x, 16))

    x = torch.randn(4, 16, device=device)
    program = torch.export.export(Net(), (x,))
    targets = [str(node.target) for node in program.graph.nodes]
    assert any("oneflow_lite_torch.layer_norm" in t for t in targets)
    torch.testing.assert_close(program.module()(x), Net()(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_meta_tensors_have_the_shapes_of_real_ones(dtype):
    x, w = torch.randn(3, 8, dtype=dtype), torch.randn(8, dtype=dtype)
    for op, args in (
        (ops._softmax, (x, -1, False, False)),
        (ops._layer_norm, (x, w, w, 1, 1e-5)),
        (ops._rms_norm, (x, w, 1, 1e-5)),
        (ops._cross_entropy, (x, torch.tensor([0, 1, 2]), -100, 0.0)),
    ):
        real = op(*args)
        meta = op(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in args))
        for r, m in zip(_list(real), _list(meta), strict=True):
            assert (r.shape, r.dtype, r.stride()) == (m.shape, m.dtype, m.stride())


def _list(x):
    return list(x) if isinstance(x, tuple) else [x]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")
def test_cuda_graphs_and_streams():
    x = torch.randn(64, 1000, device="cuda")
    w = torch.randn(1000, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            rows.softmax(rows.layer_norm(x, 1000, w))
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = rows.softmax(rows.layer_norm(x, 1000, w))
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(y, rows.softmax(rows.layer_norm(x, 1000, w)))
