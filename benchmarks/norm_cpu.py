# SPDX-License-Identifier: Apache-2.0
"""layer_norm and rms_norm on the CPU, here and in PyTorch: forward and backward.

    python benchmarks/norm_cpu.py [--torch-python PATH] [--output FILE] [--quick]

cpu_compare.py says how it is measured. layer_norm has weight and bias, rms_norm a weight, in the
dtype of x; backward gives the gradients of all. "host" is one call on a tensor of 4 x 64: what
Python, dispatch and allocation cost.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cpu_compare import Case, main

SHAPES = [(4096, 768), (4096, 4096)]
DTYPES = {"float32": 4, "bfloat16": 2}
THREADS = [1, 2]


def call_of(name: str, shape: tuple[int, int], dtype: str, lib: Any) -> tuple[Any, list[Any]]:
    """The function of its tensors, and the tensors: x, weight and, for layer_norm, bias."""
    function = getattr(lib.nn.functional, name)
    cols = shape[-1]
    weight, bias = lib.randn(cols), lib.randn(cols)
    tensors = [lib.randn(*shape), weight] + ([bias] if name == "layer_norm" else [])
    tensors = [t.to(getattr(lib, dtype)) for t in tensors]
    return lambda x, *columns: function(x, (cols,), *columns), tensors


def forward(name: str, shape: tuple[int, int], dtype: str, lib: Any) -> Callable[[], Any]:
    function, tensors = call_of(name, shape, dtype, lib)
    return lambda: function(*tensors)


def backward(name: str, shape: tuple[int, int], dtype: str, lib: Any) -> Callable[[], Any]:
    function, tensors = call_of(name, shape, dtype, lib)
    dy = lib.randn(*shape).to(getattr(lib, dtype))
    leaves = [t.requires_grad_() for t in tensors]
    y = function(*leaves)
    return lambda: lib.autograd.grad(y, leaves, dy, retain_graph=True)


CASES = [
    Case(f"{name}{suffix} {dtype} {rows}x{cols} {threads}t", threads, tensors * rows * cols * item,
         partial(make, name, (rows, cols), dtype))
    for threads in THREADS
    for dtype, item in DTYPES.items()
    for rows, cols in SHAPES
    for name in ("layer_norm", "rms_norm")
    for suffix, tensors, make in (("", 2, forward), (" backward", 3, backward))
] + [Case(f"{name} host 4x64 1t", 1, None, partial(forward, name, (4, 64), "float32"))
     for name in ("layer_norm", "rms_norm")]  # fmt: skip

if __name__ == "__main__":
    main(__doc__, __file__, CASES)
