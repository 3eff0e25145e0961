#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   [TORCH=2.10] scripts/torch_test.sh [PYTEST_OPTION]...
#
# Builds the wheel of oneflow_lite_torch without its CUDA kernels, installs it aside in
# build/torch-package, and runs tests/torch with the newest PyTorch of the package index, or with the
# release that TORCH names. The wheel is built with the newest in any case.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/torch_wheel.sh build/torch-wheel/cpu OFL_TORCH_CUDA=OFF
venv=build/torch-venv
if [ -n "${TORCH:-}" ]; then
  venv=build/torch-$TORCH-venv
  scripts/torch_venv.sh "$venv" "torch==$TORCH.*"
fi
rm -rf build/torch-package
"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --no-index \
  --target build/torch-package build/torch-wheel/cpu/oneflow_lite_torch-*.whl
PYTHONPATH=$PWD/build/torch-package "$venv/bin/python" -m pytest -c tests/torch/pytest.ini \
  --rootdir tests/torch -p no:cacheprovider -q tests/torch "$@"

# What oneflow_lite itself computes beside PyTorch, where it is built for the same Python.
for package in build/cuda-release/package build/cpu-release/package; do
  if PYTHONPATH=$PWD/$package "$venv/bin/python" -c "import oneflow_lite" 2> /dev/null; then
    PYTHONPATH=$PWD/$package "$venv/bin/python" -m pytest -p no:cacheprovider -q \
      tests/python/test_{training,plain_gpt,gpt_model,torch_parity}.py -k "pytorch or torch"
    break
  fi
done
