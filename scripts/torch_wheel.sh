#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/torch_wheel.sh OUTPUT_FOLDER [CMAKE_DEFINITION]...      e.g. OFL_TORCH_CUDA=OFF
#
# Builds the wheel of oneflow_lite_torch in build/torch-venv, which has PyTorch's newest release from
# the package index. The wheel is for every Python and PyTorch; it carries Highway and nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
output=$1
shift
largest=$((60 * 1000 * 1000))  # bytes
venv=build/torch-venv
work=build/torch-wheel

scripts/torch_venv.sh "$venv"
rm -rf "$work"/raw "$work"/repaired
options=()
for definition in "$@"; do options+=("--config-settings=cmake.define.$definition"); done
PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" -m pip wheel python/torch -q \
  --disable-pip-version-check --no-build-isolation --no-deps -w "$work/raw" \
  --config-settings=build-dir="$PWD/build/torch-build" \
  --config-settings=cmake.define.Python_EXECUTABLE="$PWD/$venv/bin/python" "${options[@]}"
PATH="$PWD/$venv/bin:$PATH" "$venv/bin/python" -m auditwheel repair -w "$work/repaired" \
  --exclude 'libtorch*.so' --exclude 'libc10*.so' --exclude 'libcu*.so*' "$work"/raw/*.whl > "$work/auditwheel.log" 2>&1 ||
  { cat "$work/auditwheel.log"; exit 1; }
mkdir -p "$output"
rm -f "$output"/oneflow_lite_torch-*.whl
for wheel in "$work"/repaired/*.whl; do
  size=$(stat -c %s "$wheel")
  if [ "$size" -gt "$largest" ]; then
    echo "torch_wheel: $wheel is $size bytes, more than the $largest that are allowed" >&2
    exit 1
  fi
  cp "$wheel" "$output/"
  echo "$output/$(basename "$wheel"): $size bytes"
done
