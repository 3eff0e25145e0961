# SPDX-License-Identifier: Apache-2.0
"""What fused elements cost: kernels of flow.fuse beside the bare op, on a GPU.

python benchmarks/fuse_benchmark.py [--dtypes float16,float32] [--widths 512,4096] [--ops softmax]

Per line the bare op's GB/s and, for each fusion, its GB/s and, in parentheses, its time over the
bare op's beyond the bytes it moves more: 1.00 is a fusion that costs its bytes and nothing else.
``late`` counts repetitions in which the GPU waited for the host.
"""

from __future__ import annotations

import argparse

import oneflow_lite as flow
from oneflow_lite.bench.clock import CudaClock
from oneflow_lite.bench.problem import Candidate

BYTES = 400e6  # of the input
FUSIONS = {
    # name: (load, store, operands, tensors read or written, whole ones)
    "scale": (lambda x, s: x * s, None, ("number",), 2),
    "scale + bias": (lambda x, s, b: x * s + b, None, ("number", "row"), 2),
    "where": (lambda x, k: flow.fuse.where(k, x, -65504.0), None, ("row",), 2),
    "x + full": (lambda x, r: x + r, None, ("full",), 3),
    "store y * g": (None, lambda y, g: y * g, ("column",), 2),
    "store y + full": (None, lambda y, r: y + r, ("full",), 3),
}


def operand(form: str, x: flow.Tensor) -> flow.Tensor | float:
    if form == "number":
        return 0.75
    shape = {"row": (x.shape[1],), "column": (x.shape[0], 1), "full": x.shape}[form]
    return flow.randn(*shape, dtype=x.dtype, device=x.device)


def line(clock: CudaClock, op: str, dtype: str, width: int) -> str:
    x = flow.randn(1, dtype=getattr(flow, dtype), device="cuda")
    rows = min(49152, max(1, int(BYTES / x.nbytes / width)))
    x = flow.randn(rows, width, dtype=x.dtype, device="cuda")
    softmax = op.endswith("softmax")
    own = {"dim": -1} if softmax else {"normalized_shape": [width]}
    bare = getattr(flow, op)
    candidates = {"bare": Candidate((lambda: bare(x, -1)) if softmax else lambda: bare(x, [width]))}
    for name, (load, store, forms, _) in FUSIONS.items():
        fused = getattr(flow.fuse, op)(load, store)
        given = [operand(form, x) for form in forms]
        candidates[name] = Candidate(lambda fused=fused, given=given: fused(x, *given, **own))
    times = clock.measure(candidates)
    base = times["bare"].median
    texts = [f"{op} {dtype} {rows}x{width}: bare {2 * x.nbytes / base / 1e3:.0f} GB/s"]
    for name, (*_, tensors) in FUSIONS.items():
        t = times[name].median
        rate, cost = tensors * x.nbytes / t / 1e3, t / base * 2 / tensors
        late = f" late {times[name].late}" if times[name].late else ""
        texts.append(f"{name} {rate:.0f} ({cost:.3f}{late})")
    return ", ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="softmax,log_softmax,layer_norm,rms_norm")
    parser.add_argument("--dtypes", default="float16,float32")
    parser.add_argument("--widths", default="128,1024,4096,8192,32768,131072")
    args = parser.parse_args()
    clock = CudaClock()
    for op in args.ops.split(","):
        for dtype in args.dtypes.split(","):
            for width in map(int, args.widths.split(",")):
                print(line(clock, op, dtype, width), flush=True)


if __name__ == "__main__":
    main()
