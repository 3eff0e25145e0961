# SPDX-License-Identifier: Apache-2.0
"""Functions of elements, reductions, scans and losses on a GPU, beside PyTorch eager.

python benchmarks/elements_benchmark.py RECORD.json     # 15 s on an H200; prints what is slowest

64 M elements in float16 and float32. A cell is the wall time of a call in ms, the least of 4 means
of 12 calls, with the allocator warm; results are compared in the same run.
"""

import json
import math
import sys
import time

import torch

import oneflow_lite as flow

SIDE = 8192
ONE = """abs neg exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh
acosh atanh erf erfc erfinv lgamma digamma i0 sqrt rsqrt reciprocal square sigmoid floor ceil trunc
round frac sign isnan isinf nan_to_num logit""".split()
ACTIVATIONS = """relu gelu silu mish softplus elu selu celu hardswish hardsigmoid hardtanh
leaky_relu logsigmoid softsign tanhshrink softshrink hardshrink relu6""".split()
TWO = """add mul div fmod remainder floor_divide atan2 hypot logaddexp maximum minimum fmax pow
copysign lt""".split()
DIMS = "sum prod amax amin argmax var std any cumsum cumprod cummax logsumexp".split()
LOSSES = "mse_loss l1_loss smooth_l1_loss binary_cross_entropy kl_div".split()


def milliseconds(call, repeat=12):
    def wait():
        torch.cuda.synchronize()
        flow.cuda.synchronize()

    for _ in range(3):
        call()
    means = []
    for _ in range(4):
        wait()
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        wait()
        means.append((time.perf_counter() - start) / repeat)
    return min(means) * 1e3


def cases(x, y):
    """Name, function of the module, and its arguments: tensors of one library."""
    for name in ONE:
        yield name, name, False, (x,)
    for name in ACTIVATIONS:
        yield name, name, True, (x,)
    for name in TWO:
        yield name, name, False, (x, y)
    yield "clamp", "clamp", False, (x, 0.2, 0.6)
    yield "lerp", "lerp", False, (x, y, 0.3)
    for name in DIMS:
        for dim in (0, 1):
            yield f"{name}({dim})", name, False, (x, dim)
    for name in LOSSES:
        yield name, name, True, (x, y)


def first(result):
    """The first 100,000 elements of a result, or of the first of several, as float64 of PyTorch."""
    t = result[0] if isinstance(result, tuple) else result
    if isinstance(t, flow.Tensor):
        t = torch.from_dlpack(t.detach().to(None, flow.uint8 if t.dtype is flow.bool else t.dtype))
    return t.reshape(-1)[:100_000].double()


def run(dtype):
    torch.manual_seed(0)
    values = [torch.rand(SIDE, SIDE, device="cuda") * 0.9 + 0.05 for _ in range(2)]
    theirs = [t.to(getattr(torch, dtype)) for t in values]
    ours = [flow.from_dlpack(t) for t in theirs]
    for mine, other in zip(cases(*ours), cases(*theirs), strict=True):
        label, name, layer, args = mine
        a = getattr(flow.nn.functional if layer else flow, name)
        b = getattr(torch.nn.functional if layer else torch, name)
        off = (first(a(*args)) - first(b(*other[3]))).abs().max().item()
        times = (
            milliseconds(lambda a=a, args=args: a(*args)),
            milliseconds(lambda b=b, args=other[3]: b(*args)),
        )
        yield f"{dtype} {label}", [*times, times[1] / times[0], off]


def main():
    cells = {name: cell for dtype in ("float16", "float32") for name, cell in run(dtype)}
    with open(sys.argv[1], "w", encoding="utf-8") as record:
        json.dump({"torch": torch.__version__, "cells": cells}, record, indent=1)
    for name, (ours, theirs, ratio, off) in sorted(cells.items(), key=lambda c: c[1][2])[:30]:
        print(f"{ratio:.2f}  {name:28} {ours:.3f} ms, PyTorch {theirs:.3f}; differ by {off:.3g}")
    ratios = [cell[2] for cell in cells.values()]
    print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")


if __name__ == "__main__":
    main()
