# SPDX-License-Identifier: Apache-2.0
"""Softmax on a GPU beside PyTorch and beside streams that move the same bytes.

    python benchmarks/softmax_cuda.py --output results.json [--dtypes float16,float32] [--quick]

PyTorch gives the events, the random data and the yardsticks: a device-to-device copy (one read, one
write) for forward, an addition (two reads, one write) for backward. Every repetition follows a read
of 256 MB, which empties the L2, and waits behind a short spin kernel, so that the GPU never waits
for the host. Medians of 21, the candidates in turn; the results are compared with float32 PyTorch
before they are timed. GB/s counts the bytes of the limit: 2 (forward) or 3 (backward) tensors.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from datetime import date

import torch

import oneflow_lite as flow

WIDTHS = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144]
AWKWARD = [33, 1000, 4097, 50257, 128256]
FEW = [(1, 16777216), (16, 262144), (128, 128256)]
REPEATS = 21


def shapes(quick: bool) -> list[tuple[int, int]]:
    if quick:
        return [(49152, 128), (49152, 4096)]
    elements = 49152 * 16384
    return [(min(49152, elements // w), w) for w in WIDTHS + AWKWARD] + FEW


def candidates(x: torch.Tensor) -> dict[str, tuple[int, object]]:
    """What is timed, by name: how many tensors it moves, and the call."""
    fx = flow.from_dlpack(x)
    y = torch.softmax(x.float(), 1).to(x.dtype)
    dy, out = torch.randn_like(x), torch.empty_like(x)
    fy, fdy = flow.from_dlpack(y), flow.from_dlpack(dy)
    backward = torch.ops.aten._softmax_backward_data
    return {
        "copy": (2, lambda: out.copy_(x)),
        "softmax": (2, lambda: flow.softmax(fx, 1)),
        "torch softmax": (2, lambda: torch.softmax(x, 1)),
        "log_softmax": (2, lambda: flow.log_softmax(fx, 1)),
        "torch log_softmax": (2, lambda: torch.log_softmax(x, 1)),
        "add": (3, lambda: torch.add(x, dy, out=out)),
        "softmax_backward": (3, lambda: flow.ops.softmax_backward(fy, fdy, 1)),
        "torch softmax_backward": (3, lambda: backward(dy, y, 1, x.dtype)),
    }


def check(name: str, x: torch.Tensor, result: object) -> None:
    ours = torch.from_dlpack(result).float()
    if name == "softmax_backward":
        return  # its values have tests of their own
    function = torch.softmax if name == "softmax" else torch.log_softmax
    tolerance = {torch.float16: 1e-3, torch.bfloat16: 8e-3}.get(x.dtype, 1e-5)
    torch.testing.assert_close(ours, function(x.float(), 1), rtol=tolerance, atol=tolerance)


def measure(rows: int, cols: int, dtype: str, flush: torch.Tensor) -> dict[str, float]:
    x = torch.randn(rows, cols, device="cuda", dtype=getattr(torch, dtype))
    calls = candidates(x)
    for name in ("softmax", "log_softmax"):
        check(name, x, calls[name][1]())
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, (_, call) in calls.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.sum()
            torch.cuda._sleep(100_000)
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    size = x.numel() * x.element_size()
    return {n: calls[n][0] * size / statistics.median(t) / 1e6 for n, t in times.items()}


def host_times() -> dict[str, float]:
    """Microseconds of the host per call on a 4 x 64 tensor, the GPU being kept behind."""
    x = torch.randn(4, 64, device="cuda")
    fx, gx = flow.from_dlpack(x), flow.from_dlpack(x.clone()).requires_grad_()
    tx = x.clone().requires_grad_()
    calls = {
        "softmax": lambda: flow.softmax(fx, 1), "torch softmax": lambda: torch.softmax(x, 1),
        "softmax recorded": lambda: flow.softmax(gx, 1),
        "torch softmax recorded": lambda: torch.softmax(tx, 1),
    }  # fmt: skip
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(20):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(500):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / 500 * 1e6)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("--dtypes", default="float16,bfloat16,float32,float64")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    flush = torch.ones(64 << 20, device="cuda")
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True).stdout.strip()  # fmt: skip
    report = {
        "date": str(date.today()), "device": torch.cuda.get_device_name(), "driver": driver,
        "torch": torch.__version__, "oneflow_lite": flow.__version__, "unit": "GB/s",
        "host_us": host_times(), "results": [],
    }  # fmt: skip
    print({k: round(v, 2) for k, v in report["host_us"].items()})
    for dtype in options.dtypes.split(","):
        print(f"\n{dtype}\n{'shape':>18}", *(f"{n:>22}" for n in (
            "copy", "softmax", "torch softmax", "log_softmax", "torch log_softmax", "add",
            "softmax_backward", "torch softmax_backward")))  # fmt: skip
        for rows, cols in shapes(options.quick):
            if dtype == "float64" and rows > 128:
                rows //= 4
            figures = measure(rows, cols, dtype, flush)
            report["results"].append({"dtype": dtype, "rows": rows, "cols": cols, **figures})
            print(f"{f'{rows} x {cols}':>18}", *(f"{v:22.0f}" for v in figures.values()))
    with open(options.output, "w") as f:
        json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
