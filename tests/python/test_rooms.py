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
MOST_FILES = 106
MOST_LINES = 17_700
LONGEST_MAIN_ROAD = 2_500


# The rooms of the two tables of primitive/cuda/README.md: row kernels, then simple ops.
TABLES = re.split(r"^## The simple ops$", (CUDA / "README.md").read_text(), flags=re.M)
ROW_ROOMS, SIMPLE_ROOMS = (re.findall(r"^\| \[`(\w+)/`\]", table, re.M) for table in TABLES)


@pytest.mark.parametrize("room", [*ROW_ROOMS, "norms/backward", *SIMPLE_ROOMS])
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
    """The order of the tables in primitive/cuda/README.md."""
    order = [*ROW_ROOMS, *SIMPLE_ROOMS]
    assert sorted(ROW_ROOMS) == sorted([*counts.ROOMS, "c_api"])
    assert sorted(order) == sorted(path.name for path in CUDA.iterdir() if path.is_dir())
    wrong = []
    for place, room in enumerate(order):
        for path in counts.room_files(room):
            for target in re.findall(r'#include "primitive/cuda/(\w+)/', path.read_text()):
                if order.index(target) > place:
                    wrong.append(f"{path.relative_to(CUDA)} includes {target}/")
    assert wrong == []


def test_beside_the_rooms_is_a_primitive_per_interface():
    """Kernels have rooms: what is beside these is host code, and what users include by name."""
    beside = {path.name for path in CUDA.iterdir() if path.is_file()}
    named = set(re.findall(r"`([\w.*]+)`", TABLES[1]))
    public = {path.name for path in counts.public_headers()}
    left = {
        name
        for name in beside - named - public - {"README.md"}
        if f"{Path(name).stem}.*" not in named
    }
    stems = {Path(name).stem for name in left if name.endswith(".cpp")}
    assert {f"{stem}.cpp" for stem in stems} == left
    assert [stem for stem in sorted(stems) if not (ROOT / "primitive" / f"{stem}.h").exists()] == []
