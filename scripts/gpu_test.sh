#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_test.sh [pytest option]...
#
# Runs the C++ and Python tests from carry/ (made by `make gpu-bundle`) on a machine with an NVIDIA
# GPU; python3 there must have NumPy and pytest. Builds nothing.
# WHERE: the folder to unpack into. ONLY_INSTALL=1: unpack and install, run nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
where=${WHERE:-/tmp/oneflow_lite}
mkdir -p "$where"
tar -C "$where" -xJf carry/tests.tar.xz
python3 -m pip install -q --no-index --no-deps --upgrade --target "$where/site" carry/*.whl
[ -z "${ONLY_INSTALL:-}" ] || exit 0

failed=0
for program in "$where"/bin/*_test; do
  echo "== $(basename "$program")"
  "$program" --gtest_brief=1 || failed=1
done
# The row ops once more, laid out for GPUs without clusters, as CTest does it.
shopt -s nullglob
for program in "$where"/bin/{primitive,cuda}_*{softmax,norm,cross_entropy}*_test; do
  for device in sm_80 sm_89; do
    echo "== $(basename "$program") as $device"
    OFL_TEST_DEVICE=$device "$program" --gtest_brief=1 \
      --gtest_filter='-*/cpu:*WorksInAForkedChild*:*InAGraph*:*MoreThanT*' || failed=1
  done
done
PYTHONPATH="$where/site" python3 -m pytest "$@" || failed=1
exit $failed
