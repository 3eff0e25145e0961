#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_bench.sh OP... [option of python -m oneflow_lite.bench]...
#
# Runs the benchmark on a machine with an NVIDIA GPU, nvcc and g++, from the wheel in carry/ (made by
# `make gpu-bundle`); python3 there must have NumPy, and PyTorch to be compared with it. Nothing is
# built but a few helper kernels. Peers that are wheels in carry/peers/ or archives of packages
# (carry/peers/*.tar.xz) are installed too.
#
# WHERE: the folder to install into, kept between calls. OUT: where record.json, bench.log and
# chart.png go; a record that is there is continued. RECORD: one to begin with.
# ONLY_INSTALL=1: install, measure nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
where=${WHERE:-/tmp/oneflow_lite}
out=${OUT:-.}
site=$where/site
mkdir -p "$site" "$out"

install() {
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir \
    --disable-pip-version-check --upgrade --target "$site" "$@"
}
shopt -s nullglob
wheels=(carry/oneflow_lite-*.whl)
[ ${#wheels[@]} -eq 0 ] || install "${wheels[@]}"
peers=(carry/peers/*.whl)
[ ${#peers[@]} -eq 0 ] || install "${peers[@]}"
for archive in carry/peers/*.tar.xz; do tar -C "$site" -xJf "$archive"; done
[ -z "${ONLY_INSTALL:-}" ] || exit 0

export PYTHONPATH=$site PYTHONUNBUFFERED=1
# What a .pth file adds to the path of an environment is not seen in a folder.
for packages in "$site"/*/dsl_packages; do PYTHONPATH+=:$packages; done
export OFL_EXTENSION_CACHE=$where/extensions QUACK_CACHE_DIR=$where/quack
[ -z "${RECORD:-}" ] || cp "$RECORD" "$out/record.json"
python3 -m oneflow_lite.bench "$@" --device cuda --output "$out/record.json" \
  --plot "$out/chart.png" 2>&1 | tee "$out/bench.log"
