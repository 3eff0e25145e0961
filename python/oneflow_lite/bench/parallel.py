# SPDX-License-Identifier: Apache-2.0
"""Several GPUs of one machine: ``python -m oneflow_lite.bench parallel``.

Four parts, each in ranks of its own: ``training`` (a data-parallel GPT beside GPUs that train each
for itself, eager and in a CUDA graph), ``all_reduce`` (beside torch's, in the same processes),
``head`` (the head and its loss split by vocabulary beside one GPU), ``overhead`` (of the host, for
an op on global tensors).
Each compares its results in the same run. The record is written as each part ends.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import record
from oneflow_lite.models import gpt

WORKER = "oneflow_lite.bench.parallel_worker"
# What issue and documentation ask for.
WANTED = {"training": "efficiency of at least 0.97", "all_reduce": "at most 1.05 of torch's",
          "head": "a gain above 1", "overhead": "at most 3 us"}  # fmt: skip
PARTS = tuple(WANTED)
GRADIENTS = 124_439_808  # of GPT-2 124M: 249 MB of bfloat16


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m oneflow_lite.bench parallel",
                                  description="Times what several GPUs do together.")  # fmt: skip
    add = out.add_argument
    add("--parts", type=_words, default=list(PARTS), help=f"some of {','.join(PARTS)}")
    add("--ranks", type=int, default=2)
    add("--device", choices=["cuda", "cpu"], help="by default cuda where there is a GPU")
    add("--preset", default="gpt2", choices=gpt.PRESETS)
    add("--batch", type=int, default=32, help="rows of a rank")
    add("--precision", type=_words, default=["narrow", "autocast"], help="narrow,autocast,float32")
    add("--modes", type=_words, default=["eager", "graph"], help="eager,graph")
    add("--bucket-mb", type=float, default=25.0)
    add("--steps", type=int, default=20, help="of a round")
    add("--rounds", type=int, default=5)
    add("--heating", type=int, default=80, help="steps of training before the first round")
    add("--quick", action="store_true", help="few and small")
    add("--timeout", type=float, default=90, help="seconds for a part")
    add("--output", type=Path, metavar="FILE.json")
    return out


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def run_part(options: argparse.Namespace, part: str, request: dict[str, Any]) -> dict[str, Any]:
    """What rank 0 found, or {"failed": why}."""
    environment = dict(os.environ)
    here = str(Path(flow.__file__).parents[1])
    if here not in environment.get("PYTHONPATH", "").split(os.pathsep):
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [here, environment.get("PYTHONPATH")]))  # fmt: skip
    request = {"device": options.device, "port": _free_port(), **request}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "found.json"
        command = [sys.executable, "-m", "oneflow_lite.launch", "--nproc", str(options.ranks),
                   "--device", options.device, "--timeout", "30", "-m", WORKER, part,
                   json.dumps(request), str(output)]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=environment) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=options.timeout)
            except subprocess.TimeoutExpired:
                process.terminate()  # the launcher ends its ranks
                said, _ = process.communicate()
                return {"failed": f"no end within {options.timeout} s: {said[-1500:]}"}
        if not output.exists():
            return {"failed": said[-1500:] or f"exit code {process.returncode}"}
        found = json.loads(output.read_text(encoding="utf-8"))
        if process.returncode:  # after all was measured
            found["ended_with"] = {"exit_code": process.returncode, "said": said[-1500:]}
        return found


def requests(options: argparse.Namespace, part: str) -> dict[str, dict[str, Any]]:
    """What a part measures, by name."""
    rounds, quick = {"rounds": options.rounds}, options.quick
    if part == "training":
        config = gpt.PRESETS[options.preset]
        shared = {
            "config": dataclasses.asdict(config), "batch": options.batch, "steps": options.steps,
            "warmup": 6, "heating": 1 if quick else options.heating,
            "narrow": "bfloat16", "residual": "bfloat16",
            "bucket_mb": options.bucket_mb, "preset": options.preset, **rounds,
        }  # fmt: skip
        return {f"{precision}/{mode}": {**shared, "precision": precision, "mode": mode}
                for precision in options.precision for mode in options.modes}  # fmt: skip
    if part == "all_reduce":
        counts = [4096, 500_000, 12_500_000, GRADIENTS]
        return {"": {"counts": counts[:2] if quick else counts, "times": 20, **rounds}}
    if part == "head":
        size = {"rows": 256, "width": 64, "vocab": 1001, "dtype": "float32"} if quick else {
            "rows": 32 * 1024, "width": 768, "vocab": 50257, "dtype": "bfloat16"}  # fmt: skip
        return {"": {**size, "times": 10, **rounds}}
    return {"": {"times": 400 if quick else 4000, **rounds}}


def lines(part: str, name: str, found: dict[str, Any]) -> list[str]:
    """What a person reads of it."""
    title = f"{part} {name}".strip()
    if "failed" in found:
        return [f"{title}: FAILED: {found['failed']}"]
    out = [f"{title} ({WANTED[part]}){'' if found['right'] else ': WRONG RESULTS'}"]
    if part == "training":
        one, all_of_them = found["tokens_per_s_alone"], found["tokens_per_s"]
        out.append(f"  {one:,.0f} tokens/s on one, {all_of_them:,.0f} on {found['ranks']}: "
                   f"efficiency {found['efficiency']:.4f}")  # fmt: skip
    elif part == "all_reduce":
        for cell in found["cells"].values():
            text = f"  {cell['bytes']:12,} bytes: ours {cell['ours_us']:9.1f} us"
            if "torch_us" in cell:
                text += f", torch {cell['torch_us']:9.1f} us, over torch {cell['over_torch']:.3f}"
            out.append(text)
    elif part == "head":
        for of, what in (("", "logits, then their loss"), ("_fused", "linear_cross_entropy")):
            one, all_of_them = found[f"one_rank{of}_ms"], found[f"split{of}_ms"]
            out.append(f"  {what:23} one rank {one:7.3f} ms, split over {found['ranks']} "
                       f"{all_of_them:7.3f} ms: {one / all_of_them:.3f} times as fast")  # fmt: skip
        out.append(f"  gain, the best of each: {found['gain']:.3f}")
    else:
        for op, c in found["cells"].items():
            out.append(f"  {op:10} local {c['local_us']:6.2f} us, global {c['global_us']:6.2f} us, "
                       f"over it {c['overhead_us']:5.2f} us")  # fmt: skip
    return out


def _versions() -> dict[str, str]:
    versions = {"oneflow_lite": flow.__version__, "python": sys.version.split()[0]}
    for name in ("NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_PROTO", "OFL_NCCL_LIBRARY"):
        if name in os.environ:
            versions[name] = os.environ[name]
    return versions


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; the exit status is 1 where a part failed or gave wrong results."""
    p = parser()
    options = p.parse_args(arguments)
    options.device = options.device or ("cuda" if flow.cuda.is_available() else "cpu")
    if unknown := [x for x in options.parts if x not in PARTS]:
        p.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.device == "cuda" and flow.cuda.device_count() < options.ranks:
        p.error(f"--ranks {options.ranks}: there are {flow.cuda.device_count()} GPUs here")
    if options.device == "cpu":
        options.modes = [m for m in options.modes if m != "graph"]
    kept: dict[str, Any] = {"format": 1, "what": "parallel", "ranks": options.ranks,
                            "machine": record.machine(options.device), "settings": _versions(),
                            "parts": {}}  # fmt: skip
    failed = False
    for part in options.parts:
        for name, request in requests(options, part).items():
            found = run_part(options, part, request)
            failed = failed or "failed" in found or not found["right"]
            kept["parts"].setdefault(part, {})[name or part] = {"request": request, **found}
            print(*lines(part, name, found), sep="\n", flush=True)
            if options.output:
                options.output.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0
