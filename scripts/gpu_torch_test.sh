#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_torch_test.sh [PYTEST_OPTION]...
#
# On a machine with a GPU and PyTorch, without a network: installs the wheels of make torch-bundle
# aside (carry/oneflow_lite_torch-*.whl, and carry/torch/ with what PyTorch's own tests import) and
# runs tests/torch. PYTHON names the interpreter that has PyTorch.
# BENCH=1 prints the measurements afterwards, into ${OUT:-.}/torch_bench.txt too; NOTEST=1 leaves
# the tests out.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
"$python" -m pip install -q --disable-pip-version-check --no-deps --no-index --target "$package" \
  carry/oneflow_lite_torch-*.whl $(ls carry/torch/*.whl 2> /dev/null) || exit 1
export PYTHONPATH=$package
"$python" -c 'import torch, oneflow_lite_torch as rows; print(torch.__version__, rows.patch())'
status=0
if [ -z "${NOTEST:-}" ]; then
  "$python" -m pytest -c tests/torch/pytest.ini --rootdir tests/torch -p no:cacheprovider -q \
    tests/torch "$@" 2>&1 | tee "${OUT:-.}/torch_test.txt" | tail -n 60
  status=${PIPESTATUS[0]}
fi
if [ -n "${BENCH:-}" ]; then
  "$python" -m oneflow_lite_torch.bench 2>&1 | tee "${OUT:-.}/torch_bench.txt"
fi
exit "$status"
