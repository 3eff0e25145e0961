# SPDX-License-Identifier: Apache-2.0
"""The price of invariant=True: each function beside itself without it."""

import itertools
from collections.abc import Callable

import torch

import oneflow_lite_torch as rows

# Widths of whole packs of 16 bytes, and others; a vocabulary.
WIDTHS = (768, 769, 1001, 1024, 2047, 4096, 4097, 6001, 8191, 8192, 16384, 50257)
ROWS = 16384
LEAST_ELEMENTS = 1 << 27  # of the widest rows there are fewer

FUNCTIONS = {
    "softmax": lambda x, w, b, t, **how: rows.softmax(x, **how),
    "log_softmax": lambda x, w, b, t, **how: rows.log_softmax(x, **how),
    "scale_mask_softmax": lambda x, w, b, t, **how: rows.scale_mask_softmax(x, None, 0.5, **how),
    "layer_norm": lambda x, w, b, t, **how: rows.layer_norm(x, x.shape[-1], w, b, **how),
    "rms_norm": lambda x, w, b, t, **how: rows.rms_norm(x, x.shape[-1], w, 1e-5, **how),
    "add_rms_norm": lambda x, w, b, t, **how: rows.add_rms_norm(
        x, x.detach(), x.shape[-1], w, 1e-5, **how
    )[0],
    "cross_entropy": lambda x, w, b, t, **how: rows.cross_entropy(x, t, **how),
}


def shapes(device: str) -> list[tuple[int, int]]:
    if device == "cpu":
        return [(256, 1024), (256, 1025)]
    return [(min(ROWS, LEAST_ELEMENTS // cols), cols) for cols in WIDTHS]


def run(device: str, tensors: Callable, device_us: Callable) -> None:
    """Print a line per function, way, shape and dtype, and the worst of each function and way.

    tensors(shape, dtype, device, needs_grad) makes x, weight, bias and target; device_us(call,
    device) gives microseconds.
    """
    dtypes = (torch.bfloat16, torch.float32) if device == "cuda" else (torch.float32,)
    worst: dict[tuple[str, str, bool], float] = {}
    for name, backward, shape, dtype in itertools.product(
        FUNCTIONS, (False, True), shapes(device), dtypes
    ):
        function, given = FUNCTIONS[name], tensors(shape, dtype, device, backward)
        leaves = [t for t in given if t.requires_grad]
        dy = torch.ones_like(function(*given)) if backward else None
        times = []
        for invariant in (False, True):

            def call(invariant=invariant, function=function, given=given, leaves=leaves, dy=dy):
                y = function(*given, invariant=invariant)
                if dy is not None:
                    torch.autograd.grad(y, leaves, dy, allow_unused=True)

            times.append(device_us(call, device))
        price = (times[1] / times[0] - 1) * 100
        way = "forward+backward" if backward else "forward"
        whole = shape[1] * dtype.itemsize % 16 == 0
        key = name, way, whole
        worst[key] = max(price, worst.get(key, price))
        print(
            f"{name:18} {way:16} {shape[0]:6}x{shape[1]:<6} {str(dtype)[6:]:9} "
            f"{times[0]:9.1f} us, invariant {times[1]:9.1f} us, price {price:+6.1f} %",
            flush=True,
        )
    for (name, way, whole), price in worst.items():
        kind = "whole packs of 16 bytes" if whole else "other widths"
        print(f"at most {price:+6.1f} %  {name} {way}, {kind}")
