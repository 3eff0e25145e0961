# SPDX-License-Identifier: Apache-2.0
"""The house rules that a program can check: layers, headers, sizes, licence lines.

The layers and the arrows between them are those of docs/architecture.md.
"""

import ast
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cpp_functions
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = (
    "oneflow_lite",
    "primitive",
    "kernels",
    "ops",
    "functional",
    "python",
    "tests",
    "benchmarks",
    "examples",
    "cmake",
    "scripts",
    "docs",
)
CPP = {".h", ".cpp", ".cu", ".cuh"}

# Who may include whom, besides itself. Extensions see nothing but the extension headers.
LAYERS = {
    "oneflow_lite/core": set(),
    "oneflow_lite/extension": set(),
    "oneflow_lite/framework": {"oneflow_lite/core", "oneflow_lite/extension"},
    "primitive": {"oneflow_lite/core"},
    "kernels": {"oneflow_lite/core", "oneflow_lite/framework", "primitive"},
    "functional": {"oneflow_lite/core", "oneflow_lite/framework"},
    "ops": {"oneflow_lite/core", "oneflow_lite/framework", "functional"},
}
CUDA_FOLDERS = ("oneflow_lite/core/cuda/", "primitive/cuda/")
CUDA_HEADER = re.compile(
    r"^(cuda|cuda_.*|cu(blas|blasLt|dnn|fft|rand|solver|sparse|pti).*|nvrtc.*|nccl.*|nvtx.*"
    r"|device_launch_parameters|cooperative_groups.*)\.h$|^(cub|cuda/std|cuda|thrust|nv)/"
)


def files(*suffixes, under=SOURCE_FOLDERS):
    """All tracked-looking files with those suffixes, as paths relative to the root."""
    found = []
    for folder in under:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                found.append(path.relative_to(ROOT).as_posix())
    return found


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def includes(name):
    """The include directives of a file: (line number, quoted or not, path)."""
    for number, line in enumerate(text(name).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[1] == '"', match[2]


def layer_of(name):
    """The layer that a file belongs to, or None."""
    return next((layer for layer in LAYERS if name.startswith(layer + "/")), None)


def assert_none(violations):
    assert not violations, "\n" + "\n".join(violations)


def test_includes_follow_the_arrows():
    violations = []
    for name in files(*CPP, under=LAYERS):
        layer = layer_of(name)
        for number, quoted, path in includes(name):
            if not quoted:
                continue
            target = layer_of(path)
            allowed = LAYERS[layer] | {layer}
            if target is not None and target not in allowed:
                violations.append(f"{name}:{number}: {layer} must not include {path}")
            elif target is None and path.startswith(("python/", "tests/", "benchmarks/")):
                violations.append(f"{name}:{number}: a layer must not include {path}")
            elif ((ROOT / name).parent / path).exists():
                violations.append(f"{name}:{number}: {path}: paths start at the root of the tree")
    assert_none(violations)


def test_devices_do_not_see_each_other():
    violations = []
    for name in files(*CPP, under=LAYERS):
        for number, _, path in includes(name):
            into_cuda = path.startswith(CUDA_FOLDERS)
            into_cpu = path.startswith("primitive/cpu/")
            if into_cuda and not name.startswith(CUDA_FOLDERS):
                violations.append(f"{name}:{number}: only CUDA code may include {path}")
            if into_cpu and not name.startswith("primitive/cpu/"):
                violations.append(f"{name}:{number}: only CPU primitives may include {path}")
    assert_none(violations)


def test_cuda_headers_stay_in_the_cuda_folders():
    violations = []
    for name in files(*CPP, under=(*LAYERS, "python")):
        for number, _, path in includes(name):
            if CUDA_HEADER.match(path) and not name.startswith(CUDA_FOLDERS):
                violations.append(f"{name}:{number}: {path}")
    assert_none(violations)


def test_cub_is_included_narrowly():
    assert_none(
        [
            f"{name}:{number}: {path} costs 12 s a file; include the one header needed"
            for name in files(*CPP)
            for number, _, path in includes(name)
            if path in ("cub/cub.cuh", "thrust/thrust.h")
        ]
    )


# Functors know no devices: the registry chooses the kernel. What a composition depends on has a
# name in one of these headers; these lines alone ask for themselves.
DEVICE_PREDICATES = {"functional/device_traits.h", "functional/host_value.h"}
ASKS_FOR_THE_DEVICE = {
    ("functional/global.cpp", "if (p.type() == DeviceType::kMeta) {"): "it has no other processes",
    ("functional/linalg_spectral.cpp",
     "const bool on_cuda = given.device().type == DeviceType::kCUDA;"): "lstsq's drivers are those "
    "that PyTorch has for the device",
}  # fmt: skip
DEVICE = re.compile(r"\bDeviceType::k|[!=]= Device\b|\bDevice\{[^}]*\} [!=]=")


def test_functors_know_no_devices():
    asked = []
    for name in sorted(set(files(".h", ".cpp", under=("functional",))) - DEVICE_PREDICATES):
        lines = (line.split("//")[0].strip() for line in text(name).splitlines())
        asked += [(name, line) for line in lines if DEVICE.search(line)]
    more = [f"{name}: {line}: use device_traits.h" for name, line in asked
            if (name, line) not in ASKS_FOR_THE_DEVICE]  # fmt: skip
    gone = [f"{name}: no longer asks: {line}" for name, line in ASKS_FOR_THE_DEVICE
            if (name, line) not in asked]  # fmt: skip
    assert_none(more + gone)


STARTERS_OF_THREADS = {
    "oneflow_lite/core/parallel.cpp",
    "oneflow_lite/core/thread_limit.cpp",
    # They wait for other processes, and compute nothing.
    "oneflow_lite/core/collective_watch.cpp",
    "oneflow_lite/core/store_server.cpp",
    "oneflow_lite/core/world.cpp",
}


def test_only_the_core_starts_threads():
    starts = re.compile(
        r"#\s*include\s*<omp\.h>|#\s*pragma\s+omp|std::j?thread\b(?!::)|std::async\b|pthread_create"
    )
    violations = []
    for name in files(*CPP, under=(*LAYERS, "python")):
        if name in STARTERS_OF_THREADS:
            continue
        for number, line in enumerate(text(name).splitlines(), 1):
            if starts.search(line.split("//")[0]):
                violations.append(f"{name}:{number}: {line.strip()}: use core/parallel.h")
    assert_none(violations)


# What gives an item that is not owned, and so may go with the next call into Python.
BORROWED = re.compile(
    r"\b(PySequence_Fast_(GET_ITEM|ITEMS|GET_SIZE)|Py(List|Tuple)_(GET_ITEM|GetItem)|PyDict_Next"
    r"|PyDict_GetItem\w*|PyWeakref_Get(Object|_OBJECT)|PySys_GetObject|PyCell_GET"
    r"|PyStructSequence_GET_ITEM)\b|for \((const )?(auto|py::handle|PyObject)[ &*]+\w+ : py::"
    r"|for \((const )?py::handle&? \w+ :"
)


def test_the_bindings_own_the_items_that_they_read():
    violations = []
    for name in files(".h", ".cpp", under=("python/bindings",)):
        if name == "python/bindings/items.h":
            continue
        for number, line in enumerate(text(name).splitlines(), 1):
            if BORROWED.search(line.split("//")[0]):
                violations.append(f"{name}:{number}: {line.strip()}: use items.h")
    assert_none(violations)


def test_device_code_is_self_contained():
    """No Abseil, no containers: device code travels without the library, and compiles quickly."""
    heavy = {"string", "vector", "map", "unordered_map", "memory", "functional", "iostream"}
    violations = []
    for name in files(".cu", ".cuh", under=CUDA_FOLDERS):
        for number, _, path in includes(name):
            if path in heavy or path.startswith(("absl/", "oneflow_lite/framework/")):
                violations.append(f"{name}:{number}: {path}")
    assert_none(violations)


@pytest.mark.parametrize("op", ["softmax", "cross_entropy", "scale_mask_softmax"])
def test_an_op_has_the_same_name_in_every_layer(op):
    places = [
        f"functional/{op}.h",
        f"functional/{op}.cpp",
        f"ops/{op}.cpp",
        f"kernels/{op}.cpp",
        f"primitive/{op}.h",
        f"primitive/cpu/{op}.cpp",
        f"primitive/cuda/{op}.cuh",
    ]
    assert_none([f"{place} is missing" for place in places if not (ROOT / place).exists()])


def test_every_primitive_has_a_cpu_implementation():
    interfaces = [path for path in (ROOT / "primitive").glob("*.h") if path.stem != "primitive"]
    stems = {path.stem for path in interfaces if "kName" in path.read_text()}
    assert "softmax" in stems
    folder = ROOT / "primitive" / "cpu"
    missing = [stem for stem in stems if not (folder / f"{stem}.cpp").exists()]
    assert_none([f"primitive/cpu/{stem}.cpp is missing" for stem in missing])


def test_every_file_names_its_licence():
    names = files(*CPP, ".py", ".sh", ".cmake", ".yaml", ".toml")
    names += [name for name in files(".txt") if name.endswith("CMakeLists.txt")]
    names += ["CMakeLists.txt", "Makefile", "pyproject.toml", ".pre-commit-config.yaml", ".ci/run"]
    assert_none(
        [
            f"{name}: no SPDX line at the top"
            for name in names
            if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text(name).splitlines()[:3])
        ]
    )


def test_open_ends_have_an_owner():
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    unowned = re.compile(rf"\b({words})\b(?!\(#\d+\))")
    violations = []
    for name in files(*CPP, ".py", ".cmake"):
        for number, line in enumerate(text(name).splitlines(), 1):
            if unowned.search(line):
                violations.append(f"{name}:{number}: {line.strip()}")
    assert_none(violations)


def test_files_are_one_idea():
    """Implementations mostly under 400 lines, headers under 200; none beyond half as much again."""
    lengths = {name: len(text(name).splitlines()) for name in files(*CPP, ".py")}
    limits = {name: 200 if name.endswith((".h", ".cuh")) else 400 for name in lengths}
    # Header-only code is implementation as well.
    header_only = [n for n in lengths if n.endswith((".cuh", "-inl.h")) or "/extension/" in n]
    limits.update({name: 400 for name in header_only})
    long = {name: n for name, n in lengths.items() if n > limits[name]}
    assert_none(
        [
            f"{name}: {n} lines, more than {limits[name] * 3 // 2}"
            for name, n in long.items()
            if n > limits[name] * 1.5
        ]
    )
    assert len(long) <= 0.1 * len(lengths), f"too many long files: {long}"


LONGEST_FUNCTION = 60
# The functions that were longer when methods and device code came to be counted. A line goes when
# its function has been cut up, and its number may only fall; none is added.
LONG_FUNCTIONS = {
    ("primitive/cuda/axis/stream.cuh", "AxisStreamKernel"): 61,
    ("primitive/cuda/norms/backward/few.cuh", "FewRows"): 69,
    ("primitive/cuda/norms/backward/lean.cuh", "Visit"): 68,
    ("tests/cpp/row_policy_test.cpp", "FusedPolicyTest.EveryPlanHoldsItsRow"): 69,
}


def test_functions_are_short():
    """At most 60 lines, of methods, kernels and tests too, but for those named above."""
    long = {}
    for name in files(*CPP):
        for function, _, length in cpp_functions.functions(text(name)):
            if length > LONGEST_FUNCTION:
                long[name, function] = max(length, long.get((name, function), 0))
    allowed = LONG_FUNCTIONS
    assert_none(
        [
            f"{name}: {function} has {length} lines, more than {allowed.get((name, function), 60)}"
            for (name, function), length in long.items()
            if length > allowed.get((name, function), LONGEST_FUNCTION)
        ]
        + [
            f"{name}: {function} has {long.get((name, function), '60 or fewer')} lines, no longer "
            f"{length}: say so in LONG_FUNCTIONS"
            for (name, function), length in allowed.items()
            if long.get((name, function), 0) < length
        ]
    )


def test_python_functions_are_short():
    """Functions are mostly under 60 lines; none is over 90."""
    lengths = {}
    for name in files(".py"):
        for node in ast.walk(ast.parse(text(name))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lengths[f"{name}:{node.lineno}"] = node.end_lineno - node.lineno + 1
    long = {where: n for where, n in lengths.items() if n > 60}
    assert_none([f"{where}: {n} lines" for where, n in long.items() if n > 90])
    assert len(long) <= 0.05 * len(lengths), f"too many long functions: {long}"


# Where functions hide: (file, the function's name, its lines).
HIDDEN = """\
#include <a.h>  // { in a comment
namespace n {
template <class T, int N = (3 > 2)>
struct alignas(16) Row : Base<T> {
  static constexpr int kSizes[] = {1, 2};
  explicit Row(int a) noexcept
      : a_(a), b_{a} {
    Use('{', "}", R"({)");
  }
  __device__ __forceinline__ auto Sum(const T& x) const -> decltype(x + 1) {
    const auto f = [&](int i) { return i; };
    if (f(1)) {
    }
    return x;
  }
  friend bool operator==(const Row& a, const Row& b) { return a.a_ == b.a_; }
  int a_ = 0, b_{1};
};
template <>
void Row<int>::Store<2>(
    int64_t at) const {
}
enum class E : int { kA };
__global__ void __launch_bounds__(kWarp* kMaxWarps)
    Kernel(int n) {
#define OPEN {
}
const bool registered = [] {
  return true;
}();
}  // namespace n
TEST_P(Suite, Name) {
  for (int i : {1, 2}) {
  }
}
OFL_EXTENSION {
}
"""


def test_functions_are_found_wherever_they_stand():
    assert list(cpp_functions.functions(HIDDEN)) == [
        ("Row", 6, 4),
        ("Sum", 10, 6),
        ("operator==", 16, 1),
        ("Row<int>::Store<2>", 20, 3),
        ("Kernel", 24, 4),
        ("registered", 28, 3),
        ("Suite.Name", 32, 4),
        ("OFL_EXTENSION", 36, 2),
    ]


def included_first(names):
    """Headers that one of the files includes before all else: whoever compiles it compiles them
    alone.
    """
    code = (re.sub(r"//[^\n]*|/\*.*?\*/", "", text(name), flags=re.S) for name in names)
    found = (re.match(r'\s*(?:#pragma once\s+)?#include "([^"]+)"', c) for c in code)
    return {match[1] for match in found if match}


def check_all(cases, check):
    """None of the cases has an error; as many at once as there are cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert_none([error for error in pool.map(check, cases) if error])


def test_what_counts_as_included_first(tmp_path):
    beginnings = {
        "a": '// A comment.\n#pragma once\n\n#include "a.h"\n#include "x.h"\n',
        "b": '/* Another. */ #include "b.h"\n',
        "c": '#include <vector>\n\n#include "x.h"\n',
        "d": 'int x;\n#include "x.h"\n',
        "e": '#ifdef FAST\n#include "x.h"\n#endif\n',
    }
    for name, code in beginnings.items():
        (tmp_path / name).write_text(code)
    assert included_first([str(tmp_path / name) for name in beginnings]) == {"a.h", "b.h"}


@pytest.mark.slow
def test_every_header_compiles_alone(abseil_flags):
    """Those that no source of the build includes first."""
    sources = [name for name in files(".cpp", under=LAYERS) if "cuda" not in name]
    headers = [
        name
        for name in files(".h", under=LAYERS)
        if not name.startswith(CUDA_FOLDERS) and not name.endswith("-inl.h")
    ]
    headers = set(headers) - included_first(sources)
    assert headers
    command = ["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-parameter",
               *abseil_flags, "-I.", "-x", "c++", "-"]  # fmt: skip

    def check(header):
        source = f'#include "{header}"\n'
        result = subprocess.run(command, input=source, text=True, cwd=ROOT, capture_output=True)
        return None if result.returncode == 0 else f"{header}:\n{result.stderr[:2000]}"

    check_all(sorted(headers), check)


def nvcc_or_skip():
    path = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    return shutil.which("nvcc", path=path) or pytest.skip("no nvcc here")


@pytest.mark.slow
def test_every_cuda_header_compiles_alone(tmp_path):
    """The row kernels are C++17 and need nothing but the CUDA Toolkit and each other."""
    nvcc = nvcc_or_skip()
    headers = files(".cuh", under=("primitive/cuda",))
    headers = set(headers) - included_first(headers)  # their own lead to no circle of them
    assert headers
    # As installed, where there is an installed package: nothing may be missing from it.
    flow = pytest.importorskip("oneflow_lite")
    root = Path(flow.__file__).parent / "include" if flow.__file__ else ROOT

    def check(header):
        source = tmp_path / (header.replace("/", "_") + ".cu")
        source.write_text(f'#include "{header}"\n')
        output = source.with_suffix(".ptx")
        command = [nvcc, "-std=c++17", "-arch=sm_80", "-ptx", "-I", root, "-o", output, source]
        result = subprocess.run(command, text=True, capture_output=True)
        return None if result.returncode == 0 else f"{header}:\n{result.stderr[:2000]}"

    check_all(sorted(headers), check)


@pytest.mark.slow
def test_the_row_kernels_compile_for_every_architecture(tmp_path):
    """All that the launchers instantiate, in both standards, by the compiler's front end.

    The instances of consumer/cuda are compiled whole; these would take ten times as long.
    """
    nvcc = nvcc_or_skip()
    script = tmp_path / "sources.cmake"
    script.write_text(
        f"include({ROOT}/cmake/row_kernels.cmake)\nofl_row_kernel_sources(sources {ROOT})\n"
    )
    subprocess.run(["cmake", "-P", script], cwd=tmp_path, check=True)
    sources = sorted(tmp_path.glob("row_kernels/*_float*.cu"))
    assert len(sources) >= 15

    def check(case):
        source, standard, architecture = case
        command = [
            nvcc,
            *("-fdevice-syntax-only", "-ptx", "-o", "/dev/null", "-I."),
            *(f"-std=c++{standard}", f"-arch=compute_{architecture}", source),
        ]
        result = subprocess.run(command, text=True, cwd=ROOT, capture_output=True)
        where = f"{source.name}, C++{standard}, sm_{architecture}"
        return None if result.returncode == 0 else f"{where}:\n{result.stderr[:2000]}"

    # sm_90 is what the library is built for. The sources ask for no other feature than its own
    # (below), so that all later architectures see the same code.
    targets = [(17, 80), (20, 120)]
    check_all([(source, *target) for source in sources for target in targets], check)


def test_the_row_kernels_know_two_kinds_of_architecture():
    """Those before sm_90 and those since: what is tested of one holds for all of its kind."""
    asked = [
        (name, condition)
        for name in files(".h", ".cuh", ".cu", ".in", under=("primitive/cuda",))
        for condition in re.findall(
            r"NV_IF\w*\(\s*([^,]+),|__CUDA_ARCH\w*__\b *([^\s]*)", text(name)
        )
    ]
    assert len(asked) > 20
    known = ("NV_PROVIDES_SM_90", ""), ("", "")
    assert_none([f"{name}: {which}" for name, which in asked if which not in known])


def test_libraries_link_no_nvidia_library():
    """cuBLASLt and the others are opened when first needed, so that importing stays quick."""
    readelf = shutil.which("readelf") or pytest.skip("no readelf here")
    flow = pytest.importorskip("oneflow_lite")
    if flow.__file__ is None:
        pytest.skip("oneflow_lite is not installed")
    package = Path(flow.__file__).parent
    libraries = [*package.glob("*.so"), *package.glob("lib/*.so")]
    assert libraries
    for library in libraries:
        dynamic = subprocess.run([readelf, "-d", library], capture_output=True, text=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        assert needed
        assert_none(
            [f"{library.name} links {n}" for n in needed if re.match(r"lib(cu|nv|nccl)", n)]
        )
