#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/torch_test.sh [PYTEST_OPTION]...
#
# Builds the wheel of oneflow_lite_torch without its CUDA kernels, installs it aside in
# build/torch-package, and runs tests/torch with the newest PyTorch of the package index.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/torch_wheel.sh build/torch-wheel/cpu OFL_TORCH_CUDA=OFF
rm -rf build/torch-package
build/torch-venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-index \
  --target build/torch-package build/torch-wheel/cpu/oneflow_lite_torch-*.whl
PYTHONPATH=$PWD/build/torch-package build/torch-venv/bin/python -m pytest -c tests/torch/pytest.ini \
  --rootdir tests/torch -p no:cacheprovider -q tests/torch "$@"

# What oneflow_lite itself computes beside PyTorch, where it is built for the same Python.
for package in build/cuda-release/package build/cpu-release/package; do
  if PYTHONPATH=$PWD/$package build/torch-venv/bin/python -c "import oneflow_lite" 2> /dev/null; then
    PYTHONPATH=$PWD/$package build/torch-venv/bin/python -m pytest -p no:cacheprovider -q \
      tests/python/test_{training,plain_gpt,gpt_model,torch_parity}.py -k "pytorch or torch"
    break
  fi
done
