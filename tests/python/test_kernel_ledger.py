# SPDX-License-Identifier: Apache-2.0
"""The ledger of the row kernels (tests/ledger, scripts/kernel_ledger.py): how many instances each
op has of each dtype, and that the ledger is the build's.
"""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "kernel_ledger.py"
ledger = runpy.run_path(str(SCRIPT))

MOST_INSTANCES = 40
# Those that had more when they came to be counted. A number may only fall, and none is added.
MORE_INSTANCES = {
    ("layer_norm forward", "bfloat16"): 42,
    ("layer_norm forward", "float16"): 42,
}


@pytest.fixture(scope="module")
def usage():
    return ledger["read"](ledger["LEDGER"])[1]


def test_no_op_has_more_instances_than_allowed(usage):
    """Instances cost build time and the library's size; dispatch is at run time instead."""
    counts = {(op, dtype): n for (_, op, dtype), n in ledger["counts"](usage).items()}
    assert len(counts) > 60 and {dtype for _, dtype in counts} == set(ledger["DTYPES"].values())
    more = {key: n for key, n in counts.items() if n > MOST_INSTANCES}
    assert more == MORE_INSTANCES, "MORE_INSTANCES may only shrink"


def test_every_op_has_its_place(usage):
    """An instance that is counted for the wrong op would hide what another has."""
    ops = {op for _, op, _ in ledger["counts"](usage)}
    for name in ("layer_norm", "rms_norm", "softmax", "log_softmax", "scale_mask_softmax"):
        assert {f"{name} forward", f"{name} backward"} <= ops
    assert {"cross_entropy forward", "cross_entropy backward", "cross_entropy in place"} <= ops
    assert {"softmax axis forward", "log_softmax axis backward"} <= ops


def build_folder():
    """The CUDA build of this tree, or a skip."""
    for build in sorted((ROOT / "build").glob("cuda*")):
        if any(ledger["OBJECT"].search(path.as_posix()) for path in build.rglob("*.cu.o")):
            return build
    pytest.skip("no CUDA build in build/cuda*")


def kernels_of_host(path):
    """The kernels that an object's host code can launch."""
    nm = shutil.which("nm") or pytest.skip("no nm here")
    symbols = subprocess.run([nm, path], text=True, capture_output=True, check=True).stdout
    names = set()
    for length, rest in re.findall(r" _Z+L(\d+)(__device_stub_\S+)$", symbols, re.M):
        names.add(rest[: int(length)].removeprefix("__device_stub_"))
    text = subprocess.run(
        ["c++filt"], input="\n".join(names), text=True, capture_output=True
    ).stdout
    return {ledger["short_name"](name) for name in text.splitlines()}


def test_the_ledger_names_the_kernels_of_the_build(usage):
    build = build_folder()
    for path in ledger["row_objects"](build):
        file = path.name.removesuffix(".cu.o")
        known = {kernel for name, _, kernel in usage if name == file}
        built = {name for name in kernels_of_host(path) if "ArchitectureProbe" not in name}
        assert built == known, f"{file}: scripts/kernel_ledger.py write {build.relative_to(ROOT)}"


def test_the_ledger_has_the_numbers_of_the_build():
    build = build_folder()
    try:
        ledger["cuobjdump"]()
    except SystemExit as missing:
        pytest.skip(str(missing))
    compiler, before = ledger["read"](ledger["LEDGER"])
    if ledger["compiler_of"](build) != compiler:
        pytest.skip("another compiler has other registers")
    worse, other = ledger["differences"](before, ledger["measure"](build)[1])
    assert not worse + other, "\n".join(worse + other)


def test_a_ledger_is_read_as_it_was_written(usage, tmp_path):
    path = tmp_path / "ledger.txt"
    path.write_text(ledger["text_of"]("1.2", usage))
    assert ledger["read"](path) == ("1.2", usage)


def test_what_grows_is_worse_and_what_shrinks_is_not():
    before = {("f", "sm_90", "A<int>"): (32, 0, 1024), ("f", "sm_90", "B"): (40, 8, 0)}
    after = {("f", "sm_90", "A<int>"): (32, 16, 1024), ("f", "sm_90", "C"): (1, 0, 0)}
    worse, other = ledger["differences"](before, after)
    assert worse == ["f sm_90 A<int>: stack 0 -> 16"]
    assert other == ["gone f sm_90 B", "new  f sm_90 C"]
    assert ledger["differences"](after, after) == ([], [])
    assert ledger["differences"]({"k": (9, 9, 9)}, {"k": (8, 9, 9)})[0] == []


def test_code_is_compared_by_name_and_of_new_names_by_any():
    before = {("sm_90", "A"): {"1"}, ("sm_90", "B"): {"2"}, ("sm_90", "Gone"): {"3"}}
    after = {("sm_90", "A"): {"2"}, ("sm_90", "B"): {"2"}, ("sm_90", "Renamed"): {"3"},
             ("sm_90", "New"): {"4"}}  # fmt: skip
    assert ledger["other_code"](before, after) == [("sm_90", "A"), ("sm_90", "New")]


def test_every_kernel_of_the_ledger_has_code(usage):
    build = build_folder()
    try:
        ledger["cuobjdump"]()
    except SystemExit as missing:
        pytest.skip(str(missing))
    code = ledger["all_code"](build)
    assert {key[1:] for key in usage} == set(code)
    assert all(len(codes) == 1 for codes in code.values())


@pytest.mark.parametrize(
    "demangled, short",
    [
        ("void oneflow_lite::cuda::K<__half, (int)2>(R<a>, long)", "K<__half, (int)2>"),
        ("void oneflow_lite::cuda::(anonymous namespace)::K<f>(int)", "K<f>"),
        ("oneflow_lite::cuda::Plain(int)", "Plain"),
    ],
)
def test_names_are_without_what_a_build_makes_up(demangled, short):
    assert ledger["short_name"](demangled) == short
