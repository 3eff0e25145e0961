# SPDX-License-Identifier: Apache-2.0
"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite.bench import against, cases, clock, families, measure, record, table
from oneflow_lite.bench.peers import MODULES
from oneflow_lite.bench.peers.torch_process import TorchProcess
from oneflow_lite.bench.problem import Unsupported
from oneflow_lite.bench.workloads import WORKLOADS, Workload

DTYPES = ["float16", "bfloat16", "float32", "float64"]
DEFAULT_PEERS = "torch,liger,quack,apex,cudnn,compile"
COMPILE_WIDTHS = "256,1024,4096,32768"
# Where no op is named: those of the chart in the README, in its order.
DEFAULT_OPS = ["softmax", "layer_norm", "rms_norm", "softmax_backward", "layer_norm_backward",
               "rms_norm_backward"]  # fmt: skip


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in _words(text)]
    except ValueError:
        message = f"numbers with commas between them are needed, not {text!r}"
        raise argparse.ArgumentTypeError(message) from None
    if wrong := [n for n in numbers if n < 1]:
        raise argparse.ArgumentTypeError(f"{wrong[0]} is not above 0")
    return numbers


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(
        prog="python -m oneflow_lite.bench",
        description="Times row ops beside streams that move the same bytes and beside other "
        "libraries. A slice is an op in a dtype; --output keeps each as it is done, and what is "
        "there is not measured again. `gpt --help` says how a GPT's training is timed, "
        "`parallel --help` what several GPUs do together.",
    )
    add = out.add_argument
    add("ops", nargs="*", metavar="OP",
        help="what to measure, by default what the README's chart shows; see --list; functions "
        "beside PyTorch have options of their own, see elementwise --help (with reductions and "
        "moves) and, for the CPU in two processes, functions --help")  # fmt: skip
    add("--dtype", type=_words, default=["float16"], help=f"some of {','.join(DTYPES)}, or all")
    add("--widths", type=_numbers, help="these widths alone, such as 128,4096")
    add("--kinds", type=_words, help=f"some of {','.join(cases.KINDS)}; by default all")
    add("--quick", action="store_true", help="few and small shapes, for a moment each")
    add("--device", choices=["cuda", "cpu"], help="by default cuda where there is a GPU")
    add("--threads", type=_numbers, default=[1, 2], help="on the CPU; by default 1,2")
    add("--output", type=Path, metavar="FILE.json", help="the record, read first if it is there")
    add("--again", action="store_true", help="measure also what the record has")
    add("--peers", type=_words, default=_words(DEFAULT_PEERS),
        help=f"beside whom, by default {DEFAULT_PEERS}; none for nobody")  # fmt: skip
    add("--torch-python", metavar="PYTHON",
        help="on the CPU: an interpreter that has PyTorch, by default this one")  # fmt: skip
    add("--compile-widths", type=_numbers, default=_numbers(COMPILE_WIDTHS),
        help=f"where torch.compile takes part, by default {COMPILE_WIDTHS}")  # fmt: skip
    add("--budget", type=float, default=0.2, help="seconds per candidate and shape, about")
    add("--merge", nargs="+", type=Path, metavar="FILE.json", help="records to put together first")
    add("--plot", type=Path, metavar="FILE.png", help="a chart of the record's GB/s over width")
    add("--against", type=Path, metavar="PACKAGE",
        help="time this build against another one, in the folder PACKAGE, over the canary set, "
        "and compare results bit for bit; --output keeps the figures")  # fmt: skip
    add("--list", action="store_true", help="name the ops, dtypes and peers, and end")
    return out


def list_all() -> None:
    """What can be asked for, and what of it is here."""
    print("ops:")
    for w in WORKLOADS.values():
        print(f"  {w.name:<32} {w.pattern}, {len(cases.cases(w.family, 'float16'))} shapes")
    print(f"dtypes: {', '.join(DTYPES)}")
    print("peers:")
    for name, found in measure.find_peers(list(MODULES)).items():
        print(f"  {name:<10} {found if isinstance(found, str) else found.available()}")


def wanted_cases(options: argparse.Namespace, w: Workload, dtype: str) -> list[cases.Case]:
    chosen = cases.cases(w.family, dtype, device=options.device, quick=options.quick,
                         widths=options.widths)  # fmt: skip
    chosen = [c for c in chosen if not options.kinds or c.kind in options.kinds]
    if options.device == "cuda":
        return chosen
    threads = [n for n in options.threads if n <= (os.cpu_count() or 1)] or [1]
    # The host's part of a call has no threads.
    return [replace(c, threads=n) for n in threads for c in chosen
            if c.kind not in measure.HOST_KINDS or n == threads[0]]  # fmt: skip


def make_bench(options: argparse.Namespace) -> measure.Bench:
    names = [] if options.peers == ["none"] else options.peers
    if unknown := set(names) - set(MODULES):
        raise SystemExit(f"bench: no such peer: {', '.join(sorted(unknown))}; see --list")
    short: dict[str, Any] = {"budget": options.budget}
    if options.quick:
        short |= {"budget": min(options.budget, 0.01)}
    if options.device == "cuda":
        if options.quick:
            short |= {"rounds": 1}
        return measure.Bench("cuda", clock.CudaClock(**short), measure.find_peers(names),
                             tuple(options.compile_widths))  # fmt: skip
    found: dict[str, Any] = {}
    if "torch" in names:
        try:
            found["torch"] = TorchProcess(options.torch_python or sys.executable)
        except (ImportError, OSError) as error:
            found["torch"] = f"not here ({error}); --torch-python names its interpreter"
    if options.quick:
        short |= {"rounds": 1, "repeats": 3}
    return measure.Bench("cpu", clock.CpuClock(**short), found)


def _part(data: record.Record, key: str, fresh: dict[str, Any]) -> dict[str, Any]:
    """The slice of a record, or a new one in it; its machine and peers are those of now."""
    known = data["slices"].get(key)
    if known and known["cells"] and known["machine"]["name"] != fresh["machine"]["name"]:
        raise SystemExit(f"bench: the record's {key} is from another machine "
                         f"({known['machine']['name']}); choose another --output")  # fmt: skip
    cells, failed = (known["cells"], known["failed"]) if known else ({}, {})
    data["slices"][key] = {**fresh, "cells": cells, "failed": failed}
    return data["slices"][key]


def run(options: argparse.Namespace, data: record.Record) -> bool:
    """Measures all slices into the record; whether all were there, and right."""
    bench, complete = make_bench(options), True
    for w in (WORKLOADS[name] for name in options.ops):
        for dtype in options.dtype:
            key, begin = f"{options.device}/{w.name}/{dtype}", time.perf_counter()
            part = _part(data, key, measure.new_slice(bench, w, dtype))
            wanted = wanted_cases(options, w, dtype)
            try:
                for label in measure.run_slice(bench, w, dtype, wanted, part, options.again):
                    if options.output:
                        record.write(options.output, data)
                    if sys.stderr.isatty():
                        print(f"\r{key} {label:<40}", end="\r", file=sys.stderr)
            except Unsupported as error:
                print(f"{key}: {error}\n")
                complete = False
            wrong = any("wrong" in cell["notes"] for cell in part["cells"].values())
            complete = complete and not part["failed"] and not wrong
            if not part["cells"] and not part["failed"]:
                del data["slices"][key]
                continue
            if options.output:
                record.write(options.output, data)
            print(*table.text(key, part), sep="\n")
            print(f"  {time.perf_counter() - begin:.0f} s\n", flush=True)
    return complete


def compare(options: argparse.Namespace) -> int:
    """--against: this build and another one; 1 where a cell failed or bits differ."""
    if not (options.against / "oneflow_lite").is_dir():
        raise SystemExit(f"bench: {options.against} has no folder oneflow_lite")
    short: dict[str, Any] = {"budget": 0.002, "rounds": 1, "planted": 60} if options.quick else {}
    found = against.run(options.against, options.device, **short)
    print(*found.pop("lines"), sep="\n")
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if found["failed"] or found["different"] else 0


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; the exit status is 1 where an op was missing, failed or was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] and arguments[0] in families.FAMILIES:  # cases and a table of their own
        return families.main(arguments)
    if arguments[:1] == ["functions"]:
        from oneflow_lite.bench import functions

        return functions.main(arguments[1:])
    if arguments[:1] == ["gpt"]:
        from oneflow_lite.bench import gpt

        return gpt.main(arguments[1:])
    if arguments[:1] == ["parallel"]:
        from oneflow_lite.bench import parallel

        return parallel.main(arguments[1:])
    options = parser().parse_args(arguments)
    if options.device == "cuda" and not flow.cuda.is_available():
        raise SystemExit("bench: --device cuda: there is no GPU here that can be used")
    options.device = options.device or ("cuda" if flow.cuda.is_available() else "cpu")
    options.dtype = DTYPES if options.dtype == ["all"] else options.dtype
    if options.list:
        list_all()
        return 0
    if options.against:
        return compare(options)
    if unknown := [op for op in options.ops if op not in WORKLOADS]:
        raise SystemExit(f"bench: no such op: {', '.join(unknown)}; see --list")
    if unknown := [t for t in options.dtype if t not in DTYPES]:
        raise SystemExit(f"bench: no such dtype: {', '.join(unknown)}; see --list")
    if unknown := [k for k in options.kinds or [] if k not in cases.KINDS]:
        raise SystemExit(f"bench: no such kind: {', '.join(unknown)}; see --help")
    for path in filter(None, (options.output, options.plot)):  # before anything is measured
        if not path.parent.is_dir():
            raise SystemExit(f"bench: {path}: there is no folder {path.parent}")
    there = [options.output] if options.output and options.output.exists() else []
    if not (options.ops or options.merge or (options.plot and there)):
        options.ops = DEFAULT_OPS
    try:
        data = record.merge([record.read(path) for path in [*there, *(options.merge or [])]])
    except (OSError, ValueError) as error:
        raise SystemExit(f"bench: {error}") from None
    complete = run(options, data) if options.ops else True
    if options.output:
        record.write(options.output, data)
    if options.merge and not options.ops:
        for key, part in data["slices"].items():
            print(*table.text(key, part), "", sep="\n")
    if options.plot:
        from oneflow_lite.bench import plot

        plot.draw(data, options.plot)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
