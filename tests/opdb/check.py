# SPDX-License-Identifier: Apache-2.0
"""Holds oneflow_lite against PyTorch's operator samples (torch.testing's op_db).

    python tests/opdb/check.py [--only PATTERN...] [--dtypes float32,int64] [--samples N] [--all]

Each sample that torch accepts, of each name in names.txt, runs through oneflow_lite with inputs
from NumPy. Values, dtypes, shapes and gradients must be torch's, or the difference stands in
differences.txt with its reason. An entry there that no longer differs is a failure too, and so is
one name more that is missing than the issue allows. `--all` prints every difference.

It runs where PyTorch is (`make test-opdb`); oneflow_lite must be importable beside it.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

import differences
import samples
import torch
from torch.testing._internal.common_methods_invocations import op_db

HERE = Path(__file__).parent
LEAST_SHARE = 0.95  # of the names, that exist
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "bool")


def words(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [w for line in lines if line and line[0] not in "#[" for w in line.split()]


def excluded_patterns() -> list[str]:
    lines = (HERE / "excluded.txt").read_text().splitlines()
    return [p for line in lines if "|" in line for p in line.split("|")[1].split()]


def in_family(name: str, family: str) -> bool:
    section = (HERE / "names.txt").read_text().split(f"[{family}]")[1].split("[")[0]
    return name in section.split()


def full_name(info: object) -> str:
    variant = info.variant_test_name
    return f"{info.name}.{variant}" if variant else info.name


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--samples", type=int, default=None, help="at most so many of each")
    parser.add_argument("--all", action="store_true", help="print known differences too")
    return parser.parse_args()


def report_names(names: list[str], infos: list) -> tuple[bool, set[str]]:
    """Whether enough of the names exist, and those that do not."""
    missing = {i.name for i in infos if samples.find(i) is None}
    share = 1 - len(missing) / len(names)
    print(f"{len(names) - len(missing)} of {len(names)} names exist ({share:.1%}).")
    if missing:
        print("missing:", *sorted(missing))
    neither = {i.name for i in op_db if i.name not in names}
    neither = {n for n in neither if not any(fnmatchcase(n, p) for p in excluded_patterns())}
    if neither:
        print("in neither names.txt nor excluded.txt:", *sorted(neither))
    return share >= LEAST_SHARE, missing


def run(infos: list, dtypes: list[torch.dtype], limit: int | None) -> tuple[int, list]:
    """How many samples were compared, and (name, dtype, kind, text) of each difference."""
    found, count = [], 0
    for info in infos:
        random = in_family(info.name, "random numbers")
        for dtype in dtypes:
            for case in samples.cases(info, dtype, limit):
                count += 1
                found += [(full_name(info), samples.name_of(dtype), kind, text)
                          for kind, text in samples.differences_of(case, random)]  # fmt: skip
    return count, found


def main() -> int:
    options = arguments()
    torch.set_num_threads(1)
    names = words(HERE / "names.txt")
    infos = [i for i in op_db if i.name in names]
    enough, missing = report_names(names, infos)
    chosen = [i for i in infos if i.name not in missing]
    chosen = [i for i in chosen if any(fnmatchcase(full_name(i), p) for p in options.only)]
    dtypes = [getattr(torch, name) for name in options.dtypes.split(",")]
    start = time.monotonic()
    count, found = run(chosen, dtypes, options.samples)
    known = differences.read(HERE / "differences.txt")
    new = collections.Counter()
    for name, dtype, kind, text in found:
        entry = differences.match(known, name, dtype, kind, text)
        if entry is None or options.all:
            new[name, kind, text, "" if entry is None else "known"] += 1
    for (name, kind, text, mark), times in sorted(new.items()):
        print(f"{mark}{name} | {kind} | {text} | {times}x")
    unknown = sum(times for (_, _, _, mark), times in new.items() if not mark)
    print(f"{count} samples in {time.monotonic() - start:.0f} s: {len(found)} differ, of which "
          f"{unknown} stand in no entry of differences.txt.")  # fmt: skip
    whole = options.samples is None and options.dtypes == ",".join(DTYPES)
    ran = {full_name(i) for i in chosen}
    stale = differences.stale(known, ran) if whole else []
    for entry in stale:
        print("no longer differs:", entry.line)
    return 0 if enough and not unknown and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
