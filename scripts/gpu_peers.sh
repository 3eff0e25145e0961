#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_peers.sh [PYTHON_VERSION]
#
# Fetches wheels of the libraries that the benchmark compares with into carry/peers/, for a GPU
# machine without a network that has PyTorch: Liger-Kernel, QuACK and the compiler QuACK needs
# (some 100 MB, nearly all of it the compiler). scripts/gpu_bench.sh installs them there.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-3.12}

platforms=()
for glibc in 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${glibc}_x86_64"); done
fetch() {
  python3 -m pip download -q --no-deps --only-binary=:all: --disable-pip-version-check \
    --python-version "$version" --implementation cp "${platforms[@]}" -d carry/peers "$@"
}
mkdir -p carry/peers
rm -f carry/peers/*.whl
fetch liger-kernel quack-kernels nvidia-cutlass-dsl apache-tvm-ffi torch-c-dlpack-ext
# The compiler's parts are of one version.
dsl=$(basename carry/peers/nvidia_cutlass_dsl-*.whl | cut -d- -f2)
fetch "nvidia-cutlass-dsl-libs-core==$dsl" "nvidia-cutlass-dsl-libs-base==$dsl" \
  "nvidia-cutlass-dsl-libs-cu13==$dsl"
ls -l carry/peers
