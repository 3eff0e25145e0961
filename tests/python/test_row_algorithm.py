# SPDX-License-Identifier: Apache-2.0
"""The names that a row algorithm may have (primitive/cuda/rows/algorithm.h): one that is misspelt,
missing or not listed fails to compile with its name in the message.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# How an algorithm declares the name of an offer; kOnlyWide has none.
NAMES = {
    "kAt": "Row At(long) const;",
    "kSeen": "long Seen(long, long) const;",
    "kAlignedEverywhere": "bool IsAlignedEverywhere() const;",
    "kWhole": "bool IsWhole(long) const;",
    "kKeep": "using Kept = Row; Kept Keep() const;",
    "kNarrow": "Row Narrow() const;",
    "kWords": "static int Nothing();",
    "kInRegisters": "template <bool> Row InRegisters() const;",
    "kSetColumns": "static void SetColumns(int, int&);",
    "kColumnConstants": "template <int> struct ColumnConstants {};",
    "kStorePacks": "template <int> void StorePacks(long, long, int) const;",
    "kLoadsPacks": "void LoadPacks(long) const;",
    "kShifts": "int Frame(int, long, long) const;",
    "kPrepares": "template <int> int Prepared(int, long) const;",
}
# A name that is there must be offered, but for these: SmallPacks and the like inherit LoadPacks,
# and a Frame may be no use.
CHECKED = [name for name in NAMES if name not in ("kLoadsPacks", "kShifts")]


def compile_row(tmp_path, offers, body):
    """What the compiler says of an algorithm with these flags and members."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or pytest.skip("no C++ compiler here")
    flags = " | ".join(f"RowOffers::{name}" for name in offers) or "RowOffers::kNothing"
    source = tmp_path / "row.cpp"
    source.write_text(
        '#include "primitive/cuda/rows/algorithm.h"\n'
        "using namespace oneflow_lite::cuda;\n"
        f"struct Row {{ static constexpr unsigned kOffers = {flags};\n{body}\n}};\n"
        "static_assert(Offers<Row, RowOffers::kNothing> == false);\n"
    )
    command = [*compiler.split(), "-std=c++17", "-fsyntax-only", f"-I{ROOT}", source]
    done = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    return done.stderr if done.returncode else None


def member(name):
    """The last name that an offer declares."""
    return re.search(r"(\w+)(\(| \{\};)", NAMES[name].split("; ")[-1])[1]


def test_what_is_offered_and_there_compiles(tmp_path):
    assert compile_row(tmp_path, NAMES, "\n".join(NAMES.values())) is None
    assert compile_row(tmp_path, [], "") is None
    assert compile_row(tmp_path, ["kOnlyWide"], "") is None


@pytest.mark.parametrize("name", [*CHECKED, "kShifts"])
def test_a_misspelt_name_does_not_compile(name, tmp_path):
    misspelt = re.sub(rf"\b{member(name)}\b", member(name) + "s", NAMES[name])
    said = compile_row(tmp_path, [name], misspelt)
    assert re.search(rf"row algorithm: (Kept, )?{member(name)}\b", said)


@pytest.mark.parametrize("name", CHECKED)
def test_a_name_that_is_not_offered_does_not_compile(name, tmp_path):
    said = compile_row(tmp_path, [], NAMES[name])
    assert re.search(rf"row algorithm: (Kept, )?{member(name)}\b", said)


def test_every_flag_is_tested():
    text = (ROOT / "primitive" / "cuda" / "rows" / "algorithm.h").read_text()
    flags = re.findall(r"^    (k\w+) = \d+,", text, re.M)
    assert [flag for flag in flags if flag != "kOnlyWide"] == ["kNothing", *NAMES]
    values = [int(n) for n in re.findall(r"^    k\w+ = (\d+),", text, re.M)]
    assert values == [0, *(1 << i for i in range(len(NAMES) + 1))]


def test_an_algorithm_says_what_it_offers(tmp_path):
    source = tmp_path / "row.cpp"
    source.write_text(
        '#include "primitive/cuda/rows/algorithm.h"\n'
        "using namespace oneflow_lite::cuda;\nstruct Row {};\n"
        "static_assert(!Offers<Row, RowOffers::kSeen>);\n"
    )
    compiler = shutil.which("c++") or pytest.skip("no C++ compiler here")
    command = [compiler, "-std=c++17", "-fsyntax-only", f"-I{ROOT}", source]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode and "kOffers" in done.stderr
