#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_test.sh
#
# Runs the C++ and Python tests from carry/ (made by `make gpu-bundle`) on a machine with an NVIDIA
# GPU; python3 there must have NumPy and pytest. Builds nothing. Prints a line per job of the tests
# and what those say that fail.
# WHERE: the folder to unpack into. ONLY_INSTALL=1: unpack and install, run nothing.
# JOBS: how many at once. JOB_LIMIT: seconds that one may take, by default 600; a kernel that hangs
# slows the others until then. LOGS: the folder of the logs, by default $WHERE/tests.
# PYTEST_ADDOPTS: options for pytest, which reads them itself.
set -euo pipefail
cd "$(dirname "$0")/.."
export WHERE=${WHERE:-/tmp/oneflow_lite}
export LOGS=${LOGS:-$WHERE/tests} JOB_LIMIT=${JOB_LIMIT:-600}
export OFL_ROWS_LIBRARY=$WHERE/lib/liboneflow_lite_rows.so
mkdir -p "$WHERE" "$LOGS"
tar -C "$WHERE" -xJf carry/tests.tar.xz
python3 -m pip install -q --no-index --no-deps --upgrade --target "$WHERE/site" carry/*.whl
[ -z "${ONLY_INSTALL:-}" ] || exit 0
jobs=${JOBS:-$(nproc)}

# One line per job, the longest first: a program, a dtype (- for all) and the device that rows are
# laid out for; or "python" and a part of its tests. The row ops run once more as for GPUs without
# clusters, as with CTest.
jobs() {
  local program dtype device part
  local of_rows=("$WHERE"/bin/cuda_{norm,norm_backward,softmax}_test)
  of_rows+=("$WHERE"/bin/primitive_*{norm,softmax,softmax_axis,cross_entropy}_test)
  for device in - sm_80 sm_89; do
    for program in "${of_rows[@]}"; do
      for dtype in float16 float32 bfloat16 float64; do
        echo "$(basename "$program") $dtype $device"
      done
    done
    [ $device != - ] || for ((part = 0; part < jobs; ++part)); do echo "python $part/$jobs -"; done
  done
  for program in "$WHERE"/bin/*_test; do
    [[ " ${of_rows[*]} " == *" $program "* ]] || echo "$(basename "$program") - -"
  done
}

run_job() {  # program dtype device | python part -
  local log=$LOGS/$1.${2/\//of}.$3 status=0 filter='*'
  if [ "$1" = python ]; then
    PYTHONPATH=$WHERE/site timeout "$JOB_LIMIT" python3 -m pytest -q -p no:cacheprovider \
      --shard "$2" tests/python > "$log" 2>&1 || status=$?
  else
    [ "$2" = - ] || export OFL_TEST_DTYPE=$2
    if [ "$3" != - ]; then
      export OFL_TEST_DEVICE=$3
      filter='-*/cpu:*WorksInAForkedChild*:*InAGraph*:*MoreThanT*'
    fi
    timeout "$JOB_LIMIT" "$WHERE/bin/$1" --gtest_brief=1 --gtest_filter="$filter" \
      > "$log" 2>&1 || status=$?
  fi
  [ $status = 0 ] || cat "$log"
  echo "$* (exit $status, $SECONDS s): $(tail -n 1 "$log")"
  return $status
}
export -f run_job

jobs | xargs -P "$jobs" -L 1 bash -c 'run_job "$@"' run_job
