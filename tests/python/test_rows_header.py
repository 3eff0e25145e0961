# SPDX-License-Identifier: Apache-2.0
"""The row kernels in one header: what scripts/amalgamate_rows.py writes, and that nvcc takes it."""

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "amalgamate_rows.py"
EXAMPLE = ROOT / "examples" / "rows" / "header.cu"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def header(tmp_path_factory):
    """The header, alone in a folder."""
    path = tmp_path_factory.mktemp("rows") / "oneflow_lite_rows.cuh"
    subprocess.run([SCRIPT, "-o", path], check=True)
    return path


def nvcc(*arguments, folder):
    path = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    compiler = shutil.which("nvcc", path=path) or pytest.skip("no nvcc here")
    command = [compiler, *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    assert result.returncode == 0, result.stderr[:4000]


def run_or_skip(*command):
    result = subprocess.run(list(map(str, command)), text=True, capture_output=True)
    if result.returncode == 77:
        assert "no GPU" in result.stdout
        pytest.skip("compiled and linked; no GPU here to run it")
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_file_comes_once_after_what_it_includes(header):
    text = header.read_text()
    parts = re.split(r"^// --- (\S+) -+$", text, flags=re.M)
    names, bodies = parts[1::2], parts[2::2]
    assert len(names) == len(set(names)) > 80
    for place, (name, body) in enumerate(zip(names, bodies, strict=True)):
        source = (ROOT / name).read_text()
        for include in re.findall(r'#include "(.+)"', source):
            assert include in names[:place], f"{name} comes before {include}"
        kept = [line for line in source.splitlines() if line and not line.startswith("#include")]
        missing = [line for line in kept[3:] if line not in body and line != "#pragma once"]
        assert not missing, f"{name} has lost lines"


def test_it_has_one_licence_one_guard_and_includes_the_toolkit_alone(header):
    text = header.read_text()
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0\n")
    assert text.count("SPDX-License-Identifier") == 1
    assert len(re.findall(r"^#pragma once$", text, re.M)) == 1
    assert not re.search(r'^\s*#\s*include\s*"', text, re.M)
    system = re.findall(r"^#include <(.+)>$", text, re.M)
    assert len(system) == len(set(system))
    assert {"cuda_fp16.h", "cuda_bf16.h"} <= set(system)
    ours = {path.name for path in (ROOT / "primitive" / "cuda").iterdir()}
    assert not [name for name in system if name in ours or name.startswith("absl/")]


def test_its_head_says_version_and_contents(header):
    head = header.read_text().split("#pragma once")[0]
    version = re.search(
        r"project\(oneflow_lite VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()
    )
    assert f"oneflow_lite {version[1]}" in head
    table = (ROOT / "docs" / "cuda_kernels.md").read_text()
    for name in re.findall(r"^\| `primitive/cuda/(\w+\.cuh)` \|", table, re.M):
        assert f"//   {name} " in head
    sizes = [int(size) for size in re.findall(r"^//   \S+ +(\d+)$", head, re.M)]
    assert sum(sizes) == int(re.search(r"Contents, (\d+) lines", head)[1])


def amalgam_of(script, folder, **files):
    for name, text in files.items():
        (folder / f"{name}.cuh").write_text(text)
    script["Amalgam"].add.__globals__["ROOT"] = folder
    amalgam = script["Amalgam"]()
    amalgam.add("a.cuh")
    return amalgam


def test_what_it_cannot_keep_in_order_is_refused(tmp_path):
    script = runpy.run_path(str(SCRIPT))
    with pytest.raises(SystemExit, match="a.cuh -> b.cuh -> a.cuh: a circle"):
        amalgam_of(script, tmp_path, a='#include "b.cuh"\n', b='#include "a.cuh"\n')
    with pytest.raises(SystemExit, match=r"a.cuh:2: an include under a condition: ifdef FAST"):
        amalgam_of(script, tmp_path, a='#ifdef FAST\n#include "b.cuh"\n#endif\n', b="")
    with pytest.raises(SystemExit, match=r"a.cuh:1: #endif without #if"):
        amalgam_of(script, tmp_path, a="#endif\n")
    amalgam = amalgam_of(
        script, tmp_path, a='#ifdef __CUDACC__\n#include "b.cuh"\n#endif\nint a;\n', b="int b;\n"
    )
    assert list(amalgam.files) == ["b.cuh", "a.cuh"]


def test_less_of_it_can_be_had(tmp_path):
    path = tmp_path / "norm.cuh"
    subprocess.run([SCRIPT, "primitive/cuda/norm.cuh", "-o", path], check=True)
    text = path.read_text()
    assert "LaunchNormBackward" in text and "LaunchSoftmax" not in text


@pytest.mark.slow
@pytest.mark.parametrize("architecture", [80, 90])
def test_the_example_compiles_with_nvcc_alone_and_runs(header, architecture, tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    shutil.copy(header, tmp_path)
    program = tmp_path / "header"
    nvcc("-std=c++17", f"-arch=sm_{architecture}", "header.cu", "-o", program, folder=tmp_path)
    run_or_skip(program)


# Every public launch is named, so that its templates are looked at; the front end alone.
EVERY_LAUNCH = """
#include "oneflow_lite_rows.cuh"
using namespace oneflow_lite::cuda;
using T = __half;
cudaError_t All(DirectLoad<T> load, DirectStore<T> store, const CrossEntropyRows<T>& rows,
                const NormForward<T>& norm, const NormBackward<T>& gradient,
                const ScaleMaskProblem& mask, const DeviceLimits& limits, T* x, float* f) {
  cudaStream_t s = nullptr;
  LaunchSoftmax<false>(load, store, 1, 1, limits, s);
  LaunchSoftmaxBackward<true>(load, load, store, 1, 1, limits, s);
  LaunchSoftmaxAxis<false>(x, x, 1, 1, 2, limits, s, nullptr);
  LaunchSoftmaxBackwardAxis<true>(x, x, x, 1, 1, 2, limits, s, nullptr);
  LaunchScaleMaskSoftmax<T>(mask, x, nullptr, x, limits, s);
  LaunchScaleMaskSoftmaxBackward<T>(mask, x, x, x, limits, s);
  LaunchCrossEntropy(rows, f, f, limits, s);
  LaunchCrossEntropyBackward(rows, f, f, 1, x, limits, s);
  LaunchCrossEntropyInPlace(rows, x, f, f, limits, s);
  LaunchNorm<false>(norm, limits, s);
  LaunchNormBackward<true>(gradient, limits, s, nullptr);
  return LaunchNormOf<true>(load, store, NormExtras<float>{}, 1, 1, limits, s);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("standard, architecture", [(17, 80), (20, 90)])
def test_every_launch_compiles(header, standard, architecture, tmp_path):
    shutil.copy(header, tmp_path)
    (tmp_path / "all.cu").write_text(EVERY_LAUNCH)
    nvcc("-fdevice-syntax-only", "-ptx", "-o", "/dev/null", f"-std=c++{standard}",
         f"-arch=compute_{architecture}", "all.cu", folder=tmp_path)  # fmt: skip


ONE = """
#include "oneflow_lite_rows.cuh"
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call) if (cudaError_t e = (call)) return puts(cudaGetErrorString(e)), 1
using namespace oneflow_lite::cuda;
cudaError_t Double(float* x, int64_t rows, int64_t cols, const float* two);  // two.cu
int main(int argc, char** argv) {
  const int64_t rows = atoll(argv[1]), cols = atoll(argv[2]), bytes = rows * cols * 4;
  float *x, *two, factor = 2, *host = static_cast<float*>(malloc(bytes));
  if (cudaMalloc(&x, bytes) != cudaSuccess) return puts("no GPU"), 77;
  FILE* file = fopen(argv[3], "rb");
  if (!file || fread(host, 1, bytes, file) != size_t(bytes)) return puts("no input"), 1;
  CHECK(cudaMemcpy(x, host, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&two, sizeof(float)));
  CHECK(cudaMemcpy(two, &factor, sizeof(float), cudaMemcpyHostToDevice));
  CHECK(Double(x, rows, cols, two));
  DeviceLimits limits;
  CHECK(QueryDeviceLimits(0, &limits));
  CHECK(LaunchSoftmax<false>(DirectLoad<float>{x, cols}, DirectStore<float>{x, cols}, rows, cols,
                             limits, nullptr));
  CHECK(LaunchScaleRows(x, rows, cols, two, 0, limits, nullptr));  // as in two.cu
  CHECK(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost));
  file = fopen(argv[4], "wb");
  fwrite(host, 1, bytes, file);
  return fclose(file);
}
"""
TWO = """
#include "oneflow_lite_rows.cuh"
using namespace oneflow_lite::cuda;
cudaError_t Double(float* x, int64_t rows, int64_t cols, const float* two) {
  DeviceLimits limits;
  if (cudaError_t e = QueryDeviceLimits(0, &limits)) return e;
  return LaunchScaleRows(x, rows, cols, two, 0, limits, nullptr);
}
"""


@pytest.mark.slow
def test_two_files_of_a_program_include_it(header, tmp_path):
    """One program, a kernel that both files launch: 2 softmax(2 x), compared with float64."""
    shutil.copy(header, tmp_path)
    (tmp_path / "one.cu").write_text(ONE)
    (tmp_path / "two.cu").write_text(TWO)
    architecture = "native" if Path("/dev/nvidiactl").exists() else "sm_90"
    nvcc("-std=c++17", f"-arch={architecture}", "-t2", "one.cu", "two.cu", "-o", "program",
         folder=tmp_path)  # fmt: skip
    rng = np.random.default_rng(0)
    for size in [(3, 7), (64, 1024), (5, 4097), (2, 50257)]:
        x = rng.normal(size=size).astype(np.float32)
        x.tofile(tmp_path / "in")
        run_or_skip(tmp_path / "program", *size, tmp_path / "in", tmp_path / "out")
        e = np.exp(2.0 * x.astype(np.float64))
        y = 2 * e / e.sum(-1, keepdims=True)
        found = np.fromfile(tmp_path / "out", np.float32).reshape(size)
        np.testing.assert_allclose(found, y, rtol=1e-5)
