# SPDX-License-Identifier: Apache-2.0
"""What the pages say of the tree is so: paths, the functions of architecture.md, the patches."""

import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "primitive/cuda"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")),
         CUDA / "README.md"]  # fmt: skip
FOLDERS = ("oneflow_lite", "primitive", "kernels", "ops", "functional", "python", "tests",
           "benchmarks", "examples", "docs", "cmake", "scripts")  # fmt: skip
TICKED = re.compile(r"`([^`\n]+)`")

pytestmark = pytest.mark.skipif(
    not all(page.exists() for page in PAGES), reason="the pages are not here"
)


def prose(page):
    """A page without its fenced snippets."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page):
    ticked = [text for text in TICKED.findall(prose(page)) if re.fullmatch(r"[\w./-]+", text)]
    paths = [t for t in ticked if t.startswith(tuple(f"{folder}/" for folder in FOLDERS))]
    missing = [path for path in paths if not (ROOT / path).exists()]
    links = re.findall(r"\]\(([^)#:]+)\)", prose(page))
    missing += [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_life_of_a_call_names_functions_that_are_there():
    rows = re.findall(r"^\| \d+ \| `(.+?)` \| (.+?) \|", prose(ROOT / "docs/architecture.md"), re.M)
    assert len(rows) >= 16
    for path, functions in rows:
        code = (ROOT / path).read_text(encoding="utf-8")
        for function in TICKED.findall(functions):
            assert re.search(rf"\b{function}\b", code), f"{path} has no {function}"


@pytest.fixture
def patched(tmp_path):
    """The files that op_in_the_tree.md changes, changed, and their names."""
    page = (ROOT / "docs/op_in_the_tree.md").read_text(encoding="utf-8")
    patch = "".join(re.findall(r"^```diff\n(.*?)^```", page, re.M | re.S))
    names = re.findall(r"^\+\+\+ b/(\S+)$", patch, re.M)
    assert len(names) >= 8
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    if shutil.which("git") is None:
        pytest.skip("no git here")
    result = subprocess.run(
        ["git", "apply", "-"], input=patch, text=True, cwd=tmp_path, capture_output=True
    )
    assert result.returncode == 0, f"docs/op_in_the_tree.md must follow the tree: {result.stderr}"
    return tmp_path, names


def test_patches_apply(patched):
    folder, names = patched
    for name in names:
        assert (folder / name).read_text() != (ROOT / name).read_text()
        assert "brt" in (folder / name).read_text()


@pytest.mark.slow
def test_patched_files_compile(patched):
    folder, names = patched
    compiler = shutil.which("g++") or pytest.skip("no g++ here")
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config here")
    found = subprocess.run(
        ["pkg-config", "--cflags", "absl_status", "libhwy"], text=True, capture_output=True
    )
    if found.returncode != 0:
        pytest.skip("no Abseil or Highway to compile with here")
    flags = found.stdout.split()
    # What the patch does not touch comes from the tree.
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Werror=switch", f"-I{folder}",
               f"-I{ROOT}", *flags]  # fmt: skip

    def check(name):
        result = subprocess.run([*command, folder / name], text=True, capture_output=True)
        return None if result.returncode == 0 else f"{name}:\n{result.stderr[:2000]}"

    sources = [n for n in names if n.endswith(".cpp") and not n.startswith("tests/")]
    assert len(sources) == 5
    with ThreadPoolExecutor(2) as pool:
        errors = [error for error in pool.map(check, sources) if error]
    assert not errors, "\n".join(errors)


def test_performance_tables_are_those_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = pytest.importorskip("tables")
    again = "run benchmarks/tables.py"
    assert (tables.RESULTS / "tables.md").read_text(encoding="utf-8") == tables.all_tables(), again
    page = tables.PAGE.read_text(encoding="utf-8")
    assert page == tables.with_summaries(page), again


def test_a_page_that_no_script_writes_has_at_most_300_lines():
    pages = [page for page in PAGES if page.name != "cpp_api.md"]
    lengths = {page.name: len(page.read_text(encoding="utf-8").splitlines()) for page in pages}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_performance_is_a_page_and_notes_are_short():
    assert len((ROOT / "docs/performance.md").read_text(encoding="utf-8").splitlines()) <= 250
    notes = sorted((ROOT / "docs/lab").glob("[0-9]*.md"))
    index = (ROOT / "docs/lab/README.md").read_text(encoding="utf-8")
    assert [note.name for note in notes if f"({note.name})" not in index] == []
    assert len(re.findall(r"^\| \[", index, re.M)) == len(notes)
    for note in notes:
        if note.name == "32-profiler.md":  # the profiler's figures are a table
            continue
        text = note.read_text(encoding="utf-8")
        assert all(f"**{part}.**" in text for part in ("Question", "Kept", "Repeat")), note.name
        assert len(text.splitlines()) <= 85, note.name
