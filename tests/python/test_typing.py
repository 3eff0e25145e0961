# SPDX-License-Identifier: Apache-2.0
"""Typed programs: mypy --strict finds no error in tests/typing, which run; and stubtest finds no
difference between the stubs and the package but those of tests/typing/differences.txt."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numerics import flow

FOLDER = Path(__file__).resolve().parents[1] / "typing"
PROGRAMS = sorted(FOLDER.glob("*.py"))
DIFFERENCES = FOLDER / "differences.txt"
MOST_DIFFERENCES = 9  # never more: mend the stub

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="tests/typing is not here")
mypy = pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="no mypy here")

# Differences of no consequence to a program, by what stubtest says of them.
FAMILIES = [
    r"oneflow_lite\.(bench|op_check|fuse|models)\.",  # typed by their source
    r".*stub parameter \"self\" differs from runtime parameter",  # of methods that are functions
    # Which are taken, but shown by no signature.
    r".*runtime does not have parameter \"(out|axis|keepdims|non_blocking)\"",
    r".*(metaclass differs|should be positional-only|disjoint base)",
    r"oneflow_lite\.(_oneflow_lite\.)?(BFloat16|Bool|Byte|Char|Double|Float|Half|Int|Long|Short)Tensor",
    r"oneflow_lite\.torch failed to import",  # where that distribution is not installed
    r"oneflow_lite\.utils\.extension\._version_of ",  # kept by functools
    r"oneflow_lite\._composed failed to import",  # a stub for parts of two classes
    r"oneflow_lite\._C\.TensorFunctions is not present at runtime",
    r"oneflow_lite\..*__(all|dir|getattr)__ is not present in stub",
    # Spread: f(x, 1, 2) for f(x, (1, 2)).
    r".* (\*args parameter|stub does not have parameter) "
    r"\"(args|b_dims|destination|dims?|indices_or_sections|shape|sizes?)\"",
    # An overload with axis in its place, which the generator gives each function of a dim.
    r"oneflow_lite\.\S+ is inconsistent, stub parameter \"dims?\" has a default",
    r".*repeat_interleave is inconsistent, stub parameter \"repeats\" has a default",  # an overload
    r".*randint is inconsistent, stub parameter \"low\" has a default",  # an overload
    r".*arange is inconsistent, stub parameter \"start\" has a default",  # an overload
    r".*linalg_(matrix_rank|pinv) is inconsistent",  # an overload for an older order
    r".*\._function variable differs from runtime type",  # a function of C++, kept by a module
]


def module(name, *arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", name, *map(str, arguments)],
        cwd=FOLDER,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_programs_run(program):
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@mypy
def test_typed_programs_have_no_errors(tmp_path):
    folder = Path(flow.__file__).parents[1]
    # The package's own files are read for their types, not checked.
    done = module("mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path,
                  *PROGRAMS, MYPYPATH=str(folder), PYTHONPATH=_less(folder))  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@mypy
def test_a_typed_program_finds_what_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import oneflow_lite as flow\n"
                     "flow.no_such_name\n"
                     "flow.ones(2).softmax('a')\n"
                     "flow.clip(flow.ones(2), 'a')\n"
                     "y: int = flow.ones(2).sum(0)\n"
                     "flow.ones(2).sum(axis='a')\n"
                     "flow.ones(2).max(keepdims=True)\n")  # fmt: skip
    folder = Path(flow.__file__).parents[1]
    done = module("mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache",
                  wrong, MYPYPATH=str(folder), PYTHONPATH=_less(folder))  # fmt: skip
    assert [int(n) for n in re.findall(r"wrong\.py:(\d): error", done.stdout)] == [*range(2, 8)]


def _less(folder):
    """PYTHONPATH without the package, which mypy takes from one place only: MYPYPATH."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(p for p in paths if p and Path(p).resolve() != folder.resolve())


@mypy
@pytest.mark.slow
def test_the_stubs_are_the_package(tmp_path):
    """The list of differences never grows, and says nothing that is no longer true."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\n")
    package = str(Path(flow.__file__).resolve().parents[1])
    paths = os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--concise", "--mypy-config-file", str(config),
         "oneflow_lite"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("oneflow_lite")]
    assert "failed mypy compile" not in done.stdout and len(lines) > 100, done.stdout[:2000]
    absent = {name for name in vars(flow.Tensor) if not hasattr(flow.Tensor, name)}
    found = set()
    for line in lines:
        name = line.split()[0]
        if name.startswith("oneflow_lite._oneflow_lite.Tensor.") and name.split(".")[-1] in absent:
            continue  # it raises, and says why
        if not any(re.match(family, line) for family in FAMILIES):
            found.add(line)
    allowed = set(DIFFERENCES.read_text(encoding="utf-8").splitlines())
    assert found == allowed, (sorted(found - allowed), sorted(allowed - found))
    assert len(allowed) <= MOST_DIFFERENCES
