# SPDX-License-Identifier: Apache-2.0
"""softmax on the CPU, here and in PyTorch: forward and backward, one and two threads.

    python benchmarks/softmax_cpu.py [--torch-python PATH] [--output FILE] [--quick]

cpu_compare.py says how it is measured. "host" is one call on a tensor of 4 x 64: what Python,
dispatch and allocation cost. Everything is float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cpu_compare import Case, main

SHAPES = [(4096, 1024), (64, 50257)]
FUNCTIONS = ["softmax", "log_softmax"]
THREADS = [1, 2]


def forward(name: str, shape: tuple[int, int], lib: Any) -> Callable[[], Any]:
    function, x = getattr(lib, name), lib.randn(*shape)
    return lambda: function(x, 1)


def backward(name: str, shape: tuple[int, int], lib: Any) -> Callable[[], Any]:
    x, dy = lib.randn(*shape).requires_grad_(), lib.randn(*shape)
    y = getattr(lib, name)(x, 1)
    return lambda: lib.autograd.grad(y, x, dy, retain_graph=True)


CASES = [
    Case(f"{name}{suffix} {rows}x{cols} {threads}t", threads, tensors * rows * cols * 4,
         partial(make, name, (rows, cols)))
    for threads in THREADS
    for rows, cols in SHAPES
    for name in FUNCTIONS
    for suffix, tensors, make in (("", 2, forward), (" backward", 3, backward))
] + [Case("softmax host 4x64 1t", 1, None, partial(forward, "softmax", (4, 64)))]  # fmt: skip

if __name__ == "__main__":
    main(__doc__, __file__, CASES)
