# SPDX-License-Identifier: Apache-2.0
"""cuDNN's softmax, through the library that PyTorch brings."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any

from oneflow_lite.bench import peers
from oneflow_lite.bench.problem import Candidate, Problem, Unsupported

# cudnnDataType_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t, cudnnTensorFormat_t
DTYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
ACCURATE, LOG = 1, 2
CHANNEL = 1
NCHW = 0


@cache
def _library() -> Any:
    import torch  # noqa: F401  (loads it)

    try:
        return ctypes.CDLL("libcudnn.so.9")
    except OSError as error:
        raise ImportError(f"libcudnn.so.9: {error}") from None


@cache
def _handle() -> ctypes.c_void_p:
    handle = ctypes.c_void_p()
    _check(_library().cudnnCreate(ctypes.byref(handle)), "cudnnCreate")
    return handle


def _check(status: int, what: str) -> None:
    if status:
        raise RuntimeError(f"{what} failed: status {status}")


def available() -> str:
    version = _library().cudnnGetVersion
    version.restype = ctypes.c_size_t
    return str(version())


def _descriptor(dtype: str, shape: tuple[int, int, int]) -> ctypes.c_void_p:
    """Of outer x axis x inner, softmax going along the channels."""
    descriptor = ctypes.c_void_p()
    lib = _library()
    _check(lib.cudnnCreateTensorDescriptor(ctypes.byref(descriptor)), "descriptor")
    outer, axis, inner = shape
    status = lib.cudnnSetTensor4dDescriptor(descriptor, NCHW, DTYPES[dtype], outer, axis, inner, 1)
    _check(status, "cudnnSetTensor4dDescriptor")
    return descriptor


def make(p: Problem) -> Candidate:
    import torch

    if p.op not in ("softmax", "log_softmax", "softmax_backward", "log_softmax_backward"):
        raise Unsupported(f"has no {p.op}")
    if p.case.pad:
        raise Unsupported("not measured on padded rows")
    t = peers.torch_tensors(p)
    peers.share_stream(p)
    dim = p.case.dim % len(p.case.shape)
    outer, inner = math.prod(p.case.shape[:dim]), math.prod(p.case.shape[dim + 1 :])
    descriptor = _descriptor(p.dtype, (outer, p.case.cols, inner))
    lib, handle = _library(), _handle()
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _check(lib.cudnnSetStream(handle, stream), "cudnnSetStream")
    scalar = ctypes.c_double if p.dtype == "float64" else ctypes.c_float
    one, zero = ctypes.byref(scalar(1)), ctypes.byref(scalar(0))
    algorithm = LOG if p.op.startswith("log") else ACCURATE

    def pointer(x: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(x.data_ptr())

    def forward() -> list[Any]:
        y = torch.empty(p.case.shape, dtype=t["x"].dtype, device="cuda")
        status = lib.cudnnSoftmaxForward(handle, algorithm, CHANNEL, one, descriptor,
                                         pointer(t["x"]), zero, descriptor, pointer(y))  # fmt: skip
        _check(status, "cudnnSoftmaxForward")
        return [y]

    def backward() -> list[Any]:
        dx = torch.empty(p.case.shape, dtype=t["y"].dtype, device="cuda")
        status = lib.cudnnSoftmaxBackward(
            handle, algorithm, CHANNEL, one, descriptor, pointer(t["y"]), descriptor,
            pointer(t["dy"]), zero, descriptor, pointer(dx))  # fmt: skip
        _check(status, "cudnnSoftmaxBackward")
        return [dx]

    return Candidate(backward if p.op.endswith("backward") else forward)
