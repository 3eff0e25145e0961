#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts files and lines of the CUDA row kernels and what they stand on, room by room.

    scripts/row_kernel_lines.py

The row kernels are the rooms of primitive/cuda, without their READMEs, and the headers beside them
by which users include them. The main road is the list in primitive/cuda/README.md.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CUDA = ROOT / "primitive" / "cuda"
ROOMS = ("chip", "rows", "softmax", "norms", "cross_entropy", "scale_mask", "axis", "fused")


def room_files(room):
    """The files of a room and of the rooms in it."""
    return [p for p in sorted((CUDA / room).rglob("*")) if p.is_file() and p.suffix != ".md"]


def public_headers():
    """The headers beside the rooms that lead into them."""
    return [p for p in sorted(CUDA.glob("*.cuh")) if "The public name of" in p.read_text()]


def main_road():
    """The files of the main road, in reading order."""
    text = (CUDA / "README.md").read_text()
    section = text.split("## The main road")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \d+ \| (.+?) \| .+ \|$", section, re.M)
    return [CUDA / name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def lines(paths):
    return sum(len(path.read_text().splitlines()) for path in paths)


def main():
    parts = [(f"{room}/", room_files(room)) for room in ROOMS]
    parts.append(("public headers", public_headers()))
    everything = [path for _, paths in parts for path in paths]
    for name, paths in [*parts, ("in all", everything), ("main road", main_road())]:
        print(f"{name:16} {len(paths):4} files {lines(paths):7,} lines")


if __name__ == "__main__":
    main()
