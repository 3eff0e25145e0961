# SPDX-License-Identifier: Apache-2.0
"""What README.md, CONTRIBUTING.md and docs/ show is run, compiled or compared.

The fence of a snippet says what it is:

    ```python            a whole program: runs alone, in an empty folder
    ```cpp               a whole file: compiled against the installed package; with main(), run
    ```cpp file=PATH     compiles as it stands, and its lines stand in that file, in this order
    ```cpp part file=PATH  an excerpt, which compiles only in its file
    ```python file=PATH  likewise
    ```bash              parsed; the targets of its `make` lines exist
    ```bash run          runs, in the root of the tree
    ```text              anything else
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
    if page.exists()
]
FENCE = re.compile(r"^```(\S+)([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def snippets(language):
    """(page and line, attributes, code) of every snippet in that language."""
    found = []
    for page in PAGES:
        content = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(content):
            if match[1] == language:
                line = content[: match.start()].count("\n") + 1
                found.append((f"{page.relative_to(ROOT)}:{line}", match[2].split(), match[3]))
    return found


def excerpts():
    found = []
    for language in ("cpp", "python", "cmake"):
        for where, attributes, code in snippets(language):
            for attribute in attributes:
                if attribute.startswith("file="):
                    found.append(pytest.param(attribute[5:], code, id=where))
    return found


def compiled_excerpts():
    return [
        pytest.param(code, id=where)
        for where, attributes, code in snippets("cpp")
        if attributes and "part" not in attributes
    ]


def python_programs():
    return [
        pytest.param(code, id=where)
        for where, attributes, code in snippets("python")
        if not attributes
    ]


def bash_snippets():
    return [
        pytest.param(attributes, code, id=where)
        for where, attributes, code in snippets("bash") + snippets("sh")
    ]


@pytest.mark.parametrize("code", python_programs())
def test_python_runs(code, tmp_path):
    script = tmp_path / "snippets.py"
    script.write_text(code)
    result = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, f"{code}\n{result.stdout}\n{result.stderr}"


@pytest.mark.parametrize("name, code", excerpts())
def test_excerpt_stands_in_its_file(name, code):
    lines = [" ".join(line.split()) for line in (ROOT / name).read_text().splitlines()]
    at = 0
    for line in (" ".join(line.split()) for line in code.splitlines()):
        if not line or line in ("...", "// ...", "# ..."):
            continue
        assert line in lines[at:], f"{name} has no such line (in this order): {line}"
        at = lines.index(line, at) + 1


@pytest.mark.parametrize("code", compiled_excerpts())
def test_excerpt_compiles_from_its_first_line_on(code, tmp_path):
    flow = pytest.importorskip("oneflow_lite")
    compiler = os.environ.get("CXX") or shutil.which("g++")
    if not compiler or not (ROOT / "primitive").exists():
        pytest.skip("no compiler or no sources here")
    (tmp_path / "excerpt.cpp").write_text(code)
    include = Path(flow.__file__).with_name("include")
    result = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", "-I", ROOT, "-I", include, "excerpt.cpp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("attributes, code", bash_snippets())
def test_bash_is_right(attributes, code):
    bash = shutil.which("bash") or pytest.skip("no bash here")
    if "run" in attributes:
        subprocess.run([bash, "-euo", "pipefail", "-c", code], cwd=ROOT, check=True, timeout=300)
        return
    subprocess.run([bash, "-n", "-c", code], check=True)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in code.splitlines():
        command = line.split("#")[0].split()
        if command[:1] == ["make"]:
            asked = [word for word in command[1:] if "=" not in word and not word.startswith("-")]
            assert set(asked) <= set(targets), f"the Makefile has no target for: {line}"


@pytest.mark.slow
@pytest.mark.usefixtures("abseil_flags")
def test_cpp_compiles_and_runs(tmp_path):
    whole = [(where, code) for where, attributes, code in snippets("cpp") if not attributes]
    if not whole:
        pytest.skip("no C++ snippets")
    if not shutil.which("cmake"):
        pytest.skip("no CMake here")
    flow = pytest.importorskip("oneflow_lite")
    project = [
        "cmake_minimum_required(VERSION 3.25)",
        "project(snippets LANGUAGES CXX)",
        "find_package(oneflow_lite REQUIRED)",
    ]
    programs = []
    for i, (where, code) in enumerate(whole):
        (tmp_path / f"snippet{i}.cpp").write_text(f'#line 1 "{where}"\n{code}')
        is_program = re.search(r"\bint main\(", code) is not None
        kind = f"add_executable(snippet{i}" if is_program else f"add_library(snippet{i} OBJECT"
        project.append(f"{kind} snippet{i}.cpp)")
        project.append(f"target_link_libraries(snippet{i} PRIVATE oneflow_lite::oneflow_lite)")
        if is_program:
            programs.append((where, tmp_path / "build" / f"snippet{i}"))
    (tmp_path / "CMakeLists.txt").write_text("\n".join(project) + "\n")
    for command in (
        [
            "cmake",
            "-S",
            tmp_path,
            "-B",
            tmp_path / "build",
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_PREFIX_PATH={Path(flow.__file__).parent}",
        ],
        ["cmake", "--build", tmp_path / "build", "-j", str(os.cpu_count())],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    for where, program in programs:
        result = subprocess.run([program], capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, f"{where}:\n{result.stdout}\n{result.stderr}"
