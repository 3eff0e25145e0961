# SPDX-License-Identifier: Apache-2.0
"""What the kernels of row ops spend their time on, by NVIDIA's profiler, as a Markdown table.

    python benchmarks/profile_rows.py softmax/float16/3072x262144 layer_norm/float16/1024x768 ...

Each argument is op/dtype/shape, the shape as the benchmark's record labels it ("49152x4096 offset
1"). Needs a GPU, ncu and an installed oneflow_lite. The profiler empties the caches before each
kernel and keeps the clocks as they are. Per kernel: its time, the bytes that device memory read and
wrote, their rate, warps resident (of what the multiprocessors hold), issue slots used, registers
per thread, and why a warp that waits does so, the most frequent reasons first, in warps waiting per
instruction issued.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

TIME, READ, WRITTEN = "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
REGISTERS = "launch__registers_per_thread"
REASONS = ["barrier", "dispatch_stall", "lg_throttle", "long_scoreboard", "math_pipe_throttle",
           "membar", "mio_throttle", "no_instruction", "not_selected", "short_scoreboard",
           "sleeping", "wait"]  # fmt: skip
STALLS = {f"smsp__average_warps_issue_stalled_{r}_per_issue_active.ratio": r for r in REASONS}
METRICS = [TIME, READ, WRITTEN, WARPS, ISSUE, REGISTERS, *STALLS]
CALLS = 2
Kernel = dict[str, str]


def call(spec: str) -> None:
    """Computes a case CALLS times; what the profiler sees."""
    import oneflow_lite as flow
    from oneflow_lite.bench import cases
    from oneflow_lite.bench.workloads import WORKLOADS

    op, dtype, label = spec.split("/")
    workload = WORKLOADS[op]
    found = [c for c in cases.cases(workload.family, dtype) if c.label == label]
    if not found:
        raise SystemExit(f"{op} has no case {label!r}")
    ours = workload.ours(workload.problem(dtype, "cuda", found[0]))
    for _ in range(CALLS):
        if ours.prepare:
            ours.prepare()
        flow.cuda.synchronize()
        ours.call()
    flow.cuda.synchronize()


def profiled(spec: str) -> list[Kernel]:
    """The values of each kernel, in the order of the launches."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--metrics", ",".join(METRICS), sys.executable, __file__, spec]  # fmt: skip
    done = subprocess.run(command, env={**os.environ, "PROFILE_ROWS_CALL": "1"}, text=True,
                          stdout=subprocess.PIPE, check=False)  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"ncu failed for {spec}:\n{done.stdout}")
    return [row for row in csv.DictReader(lines) if row["ID"]]


def last_call(kernels: Sequence[Kernel]) -> Sequence[Kernel]:
    """The kernels of the last call: the shortest end of the list that comes twice in a row."""
    names = [k["Kernel Name"] for k in kernels]
    for length in range(1, len(names) // CALLS + 1):
        if names[-length:] == names[-CALLS * length : -length]:
            return kernels[-length:]
    raise SystemExit("no kernels of a call found")


def number(kernel: Kernel, metric: str) -> float:
    return float(kernel[metric].replace(",", "") or "nan")


def rows(specs: Sequence[str]) -> Iterator[str]:
    titles = ["case", "kernel", "µs", "read, MB", "written, MB", "TB/s", "warps", "issue",
              "registers", "waits"]  # fmt: skip
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for spec in specs:
        for kernel in last_call(profiled(spec)):
            seconds = number(kernel, TIME) / 1e9
            read, written = number(kernel, READ), number(kernel, WRITTEN)
            waits = sorted(((number(kernel, m), r) for m, r in STALLS.items()), reverse=True)
            name = kernel["Kernel Name"].split("<")[0].split("(")[0].split("::")[-1].split()[-1]
            yield (
                f"| {spec} | {name} | {seconds * 1e6:.1f} | {read / 1e6:.1f} | {written / 1e6:.1f} "
                f"| {(read + written) / seconds / 1e12:.2f} | {number(kernel, WARPS):.0f} % "
                f"| {number(kernel, ISSUE):.0f} % | {number(kernel, REGISTERS):.0f} "
                f"| {', '.join(f'{r} {v:.1f}' for v, r in waits[:3])} |"
            )


if __name__ == "__main__":
    if os.environ.get("PROFILE_ROWS_CALL"):
        call(sys.argv[1])
    else:
        for line in rows(sys.argv[1:]):
            print(line, flush=True)
