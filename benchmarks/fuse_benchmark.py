# SPDX-License-Identifier: Apache-2.0
"""What fused elements cost: kernels of flow.fuse beside the bare op, on a GPU.

python benchmarks/fuse_benchmark.py [--dtypes float16,float32] [--widths 512,4096] [--ops softmax]
    [--fusions "x s + row,x + full"]

Each kernel is compiled when it is first called, which takes a second or two: one op, one dtype and
two or three fusions are done in a minute. Results are compared with those of the ops one by one in
float32 before they are timed. A table in Markdown. A cell is a fusion's time over the
bare op's, both per byte that must move: 1.00 is a fusion that costs its bytes and nothing else.
Behind it, what it costs beyond them in microseconds. ``late`` counts repetitions in which the GPU
waited for the host.
"""

from __future__ import annotations

import argparse

import oneflow_lite as flow
from oneflow_lite.bench.clock import CudaClock
from oneflow_lite.bench.problem import Candidate

BYTES = 400e6  # of the input


def gelu(y: object) -> object:
    return y * flow.fuse.sigmoid(y * 1.702)  # type: ignore[operator]


FUSIONS = {
    # name: (load, store, operands, tensors read or written, whole ones)
    "x s": (lambda x, s: x * s, None, ("number",), 2),
    "x / s": (lambda x, s: x / s, None, ("number",), 2),
    "x s + row": (lambda x, s, b: x * s + b, None, ("number", "row"), 2),
    "x r + row": (lambda x, r, b: x * r + b, None, ("row", "row"), 2),
    "where row": (lambda x, k: flow.fuse.where(k, x, -65504.0), None, ("row",), 2),
    "x + full": (lambda x, r: x + r, None, ("full",), 3),
    "store y s + row": (None, lambda y, s, b: y * s + b, ("number", "row"), 2),
    "store gelu(y)": (None, gelu, (), 2),
    "store y column": (None, lambda y, g: y * g, ("column",), 2),
    "store y + full": (None, lambda y, r: y + r, ("full",), 3),
}


def operand(form: str, x: flow.Tensor) -> flow.Tensor | float:
    if form == "number":
        return 0.75
    shape = {"row": (x.shape[1],), "column": (x.shape[0], 1), "full": x.shape}[form]
    return flow.randn(*shape, dtype=x.dtype, device=x.device)


def check(name: str, y: flow.Tensor, want: flow.Tensor) -> None:
    """A rounding or two of y's dtype, of the largest element."""
    bound = {flow.float16: 1e-3, flow.bfloat16: 8e-3, flow.float32: 1e-5}[y.dtype]
    error = float((y.to(dtype=flow.float32) - want).abs().max() / want.abs().max())
    if not error <= bound:  # NaN is not
        raise AssertionError(f"{name}: off by {error:.1e} of the largest element of {y.shape}")


def in_float32(value: flow.Tensor | float) -> flow.Tensor | float:
    return value.to(dtype=flow.float32) if isinstance(value, flow.Tensor) else value


def line(clock: CudaClock, op: str, dtype: str, width: int, fusions: list[str]) -> str:
    x = flow.randn(1, dtype=getattr(flow, dtype), device="cuda")
    rows = min(49152, max(1, int(BYTES / x.nbytes / width)))
    x = flow.randn(rows, width, dtype=x.dtype, device="cuda")
    softmax = op.endswith("softmax")
    own = {"dim": -1} if softmax else {"normalized_shape": [width]}
    bare = getattr(flow, op)
    candidates = {"bare": Candidate(lambda: bare(x, *own.values()))}
    for name in fusions:
        load, store, forms, _ = FUSIONS[name]
        fused = getattr(flow.fuse, op)(load, store)
        given = [operand(form, x) for form in forms]
        wide, *others = map(in_float32, (x, *given))
        want = bare(load(wide, *others) if load else wide, *own.values())
        check(f"{op}, {name}", fused(x, *given, **own), store(want, *others) if store else want)
        del wide, others, want
        candidates[name] = Candidate(lambda fused=fused, given=given: fused(x, *given, **own))
    times = clock.measure(candidates)
    base = times["bare"].median
    cells = [op, dtype, f"{rows} × {width}", f"{base:.1f}", f"{2 * x.nbytes / base / 1e3:.0f}"]
    for name in fusions:
        t, must = times[name].median, base * FUSIONS[name][-1] / 2
        late = f" late {times[name].late}" if times[name].late else ""
        cells.append(f"{t / must:.2f} ({t - must:+.1f}{late})")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="softmax,log_softmax,layer_norm,rms_norm")
    parser.add_argument("--dtypes", default="float16,bfloat16,float32")
    parser.add_argument("--widths", default="64,128,512,1024,4096,8192,16384,32768,65536,131072")
    parser.add_argument("--fusions", default=",".join(FUSIONS), help="of: %(default)s")
    args = parser.parse_args()
    fusions = args.fusions.split(",")
    clock = CudaClock()
    titles = ["op", "dtype", "shape", "bare, µs", "GB/s", *fusions]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for op in args.ops.split(","):
        for dtype in args.dtypes.split(","):
            for width in map(int, args.widths.split(",")):
                print(line(clock, op, dtype, width, fusions), flush=True)


if __name__ == "__main__":
    main()
