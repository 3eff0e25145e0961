# SPDX-License-Identifier: Apache-2.0
"""The rooms of primitive/cuda: each names its files, the main road is short, nothing grows."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "primitive" / "cuda"

spec = importlib.util.spec_from_file_location(
    "row_kernel_lines", ROOT / "scripts" / "row_kernel_lines.py"
)
counts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(counts)

# Of the row kernels and what they stand on. The numbers may only fall.
MOST_FILES = 114
MOST_LINES = 20_752
LONGEST_MAIN_ROAD = 2_500


@pytest.mark.parametrize("room", [*counts.ROOMS, "norms/backward"])
def test_a_room_names_its_files(room):
    text = (CUDA / room / "README.md").read_text()
    named = set(re.findall(r"`([\w.*]+)`", text))
    stems = {name[:-2] for name in named if name.endswith(".*")}
    files = [p for p in sorted((CUDA / room).iterdir()) if p.is_file() and p.suffix != ".md"]
    assert files
    assert [p.name for p in files if p.name not in named and p.stem not in stems] == []
    there = {p.name for p in (CUDA / room).iterdir()}
    kinds = (".h", ".cuh", ".cu", ".in")
    assert [n for n in named if n.endswith(kinds) and n not in there] == []


def test_the_main_road_is_short():
    road = counts.main_road()
    assert len(road) > 10
    assert [path.name for path in road if not path.exists()] == []
    assert counts.lines(road) <= LONGEST_MAIN_ROAD


def test_the_row_kernels_do_not_grow():
    files = [path for room in counts.ROOMS for path in counts.room_files(room)]
    files += counts.public_headers()
    assert len(counts.public_headers()) == 8
    assert len(files) <= MOST_FILES
    assert counts.lines(files) <= MOST_LINES


def test_rooms_include_only_what_is_below_them():
    """The order of the table in primitive/cuda/README.md."""
    order = re.findall(r"^\| \[`(\w+)/`\]", (CUDA / "README.md").read_text(), re.M)
    assert sorted(order) == sorted([*counts.ROOMS, "c_api"])
    wrong = []
    for place, room in enumerate(order):
        for path in counts.room_files(room):
            for target in re.findall(r'#include "primitive/cuda/(\w+)/', path.read_text()):
                if order.index(target) > place:
                    wrong.append(f"{path.relative_to(CUDA)} includes {target}/")
    assert wrong == []
