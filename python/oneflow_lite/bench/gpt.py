# SPDX-License-Identifier: Apache-2.0
"""Training throughput of a GPT beside PyTorch: ``python -m oneflow_lite.bench gpt``.

One model source (models/gpt.py) and one set of weights for both libraries. "narrow" is a model of
bfloat16 parameters without masters; "autocast" one of float32 parameters. The stream of residuals
has the dtype of ``--residual`` under autocast, in both libraries. Peers: torch eager, torch.compile
in its default and in its max-autotune-no-cudagraphs mode, torch's step in a CUDA graph; AdamW
fused, TF32 on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite.models import gpt

WORKER = Path(__file__).with_name("gpt_worker.py")
# Library and mode; those of a GPU alone are left out on the CPU.
CANDIDATES = {
    "ours": ("oneflow_lite", "eager"),
    "ours-graph": ("oneflow_lite", "graph"),
    "torch": ("torch", "eager"),
    "torch-graph": ("torch", "graph"),
    "compile": ("torch", "compile"),
    "compile-max": ("torch", "compile-max"),
}
PRECISIONS = {"narrow": "bfloat16 parameters", "autocast": "autocast over float32",
              "float32": "float32"}  # fmt: skip


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m oneflow_lite.bench gpt",
                                  description="Times the training step of a GPT.")  # fmt: skip
    add = out.add_argument
    add("--preset", default="gpt2", choices=gpt.PRESETS)
    add("--vocab", type=int, help="another number of ids than the preset's")
    add("--length", type=int, help="another length than the preset's")
    add("--batch", type=int, default=32)
    add("--device", choices=["cuda", "cpu"], help="by default cuda where there is a GPU")
    add(
        "--precision",
        type=_words,
        default=["narrow", "autocast"],
        help=f"some of {','.join(PRECISIONS)}",
    )
    add("--narrow", default="bfloat16", choices=["bfloat16", "float16"])
    add("--residual", default="bfloat16", choices=["bfloat16", "float32"])
    add(
        "--candidates",
        type=_words,
        default=list(CANDIDATES),
        help=f"some of {','.join(CANDIDATES)}",
    )
    add("--steps", type=int, default=10, help="of a round")
    add("--rounds", type=int, default=3)
    add(
        "--warmup", type=int, default=5, help="steps before the first round, 4 or more with a graph"
    )
    add("--threads", type=int, default=1, help="on the CPU")
    add(
        "--torch-python", metavar="PYTHON", default=sys.executable, help="an interpreter with torch"
    )
    add("--timeout", type=float, default=600, help="seconds for a candidate")
    add("--output", type=Path, metavar="FILE.json")
    return out


def run_candidate(options: argparse.Namespace, name: str, precision: str) -> dict[str, Any]:
    """What the worker measured, or {"failed": why}."""
    library, mode = CANDIDATES[name]
    request = {
        "library": library, "mode": mode, "precision": precision, "device": options.device,
        "config": dataclasses.asdict(options.config), "narrow": options.narrow,
        "residual": options.residual, "batch": options.batch, "steps": options.steps,
        "rounds": options.rounds, "warmup": options.warmup, "threads": options.threads,
    }  # fmt: skip
    python, environment = sys.executable, dict(os.environ)
    if library == "torch":  # its interpreter has its own packages
        python = options.torch_python
        environment.pop("PYTHONPATH", None)
    elif (here := str(Path(flow.__file__).parents[1])) not in environment.get("PYTHONPATH", ""):
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [here, environment.get("PYTHONPATH")]))  # fmt: skip
    try:
        ran = subprocess.run([python, str(WORKER), json.dumps(request)], capture_output=True,
                             text=True, timeout=options.timeout, env=environment)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"failed": str(error)}
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(ran.stdout.strip().splitlines()[-1])


def complete(options: argparse.Namespace, cell: dict[str, Any]) -> None:
    """Adds tokens/s and TFLOP/s to what was measured."""
    tokens = options.batch * options.config.length
    cell["median_ms"] = statistics.median(cell["ms"])
    cell["tokens_per_s"] = tokens / cell["median_ms"] * 1e3
    cell["tflops"] = cell["tokens_per_s"] * gpt.flops_per_token(options.config) / 1e12


def lines(part: dict[str, Any]) -> list[str]:
    """The cells of one precision as a table, beside the best of torch's."""
    head = (
        f"{'':12} {'ms':>10} {'tokens/s':>12} {'TFLOP/s':>9} {'GiB':>7} {'loss':>8} {'of best':>8}"
    )
    peers = [c["tokens_per_s"] for n, c in part.items()
             if CANDIDATES[n][0] == "torch" and "ms" in c]  # fmt: skip
    out = [head]
    for name, c in part.items():
        if "failed" in c:
            out.append(f"{name:12} {c['failed']}")
            continue
        share = f"{c['tokens_per_s'] / max(peers):8.3f}" if peers else ""
        gib = c["peak_bytes"] / 2**30
        out.append(f"{name:12} {c['median_ms']:10.2f} {c['tokens_per_s']:12,.0f} "
                   f"{c['tflops']:9.2f} {gib:7.2f} {c['last_loss']:8.4f} {share}")  # fmt: skip
    return out


def _options(arguments: list[str] | None) -> argparse.Namespace:
    p = parser()
    options = p.parse_args(arguments)
    options.device = options.device or ("cuda" if flow.cuda.is_available() else "cpu")
    if options.device == "cuda" and not flow.cuda.is_available():
        p.error("--device cuda: there is no GPU here that can be used")
    for given, known in ((options.precision, PRECISIONS), (options.candidates, CANDIDATES)):
        if unknown := [x for x in given if x not in known]:
            p.error(f"no such thing: {', '.join(unknown)}; there are {', '.join(known)}")
    changes = {k: getattr(options, k) for k in ("vocab", "length") if getattr(options, k)}
    options.config = gpt.PRESETS[options.preset].replaced(**changes)
    if options.device == "cpu":
        options.candidates = [n for n in options.candidates if not n.endswith("-graph")]
    return options


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; the exit status is 1 where one of ours failed."""
    options = _options(arguments)
    name = flow.cuda.get_device_name() if options.device == "cuda" else "cpu"
    record = {
        "format": 1, "what": "gpt", "date": date.today().isoformat(), "machine": name,
        "preset": options.preset, "config": dataclasses.asdict(options.config),
        "batch": options.batch, "residual": options.residual, "narrow": options.narrow,
        "flops_per_token": gpt.flops_per_token(options.config), "precisions": {},
    }  # fmt: skip
    failed = False
    for precision in options.precision:
        part = record["precisions"].setdefault(precision, {})
        for candidate in options.candidates:
            cell = run_candidate(options, candidate, precision)
            if "failed" in cell:
                failed = failed or candidate.startswith("ours")
            else:
                complete(options, cell)
            part[candidate] = cell
            if options.output:
                options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"{options.preset}, {options.batch} x {options.config.length}, "
              f"{PRECISIONS[precision]}, {name}", *lines(part), sep="\n", flush=True)  # fmt: skip
    return 1 if failed else 0
