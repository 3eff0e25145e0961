#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
#   scripts/gpu_sanitize.sh [racecheck|memcheck|initcheck|synccheck]...
#
# Runs the CUDA test programs of carry/ (made by `make gpu-bundle`) under compute-sanitizer, with
# all four tools or those named. Ends with a table; the exit status is 0 where no tool found
# anything, no test failed and no job ran out of time.
# WHERE: the folder with bin/ and lib/, filled from carry/ if it is not there. JOBS: how many at
# once. LOGS: the folder of the logs, by default $WHERE/sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
export WHERE=${WHERE:-/tmp/oneflow_lite}
export LOGS=${LOGS:-$WHERE/sanitizer}
tools=("$@")
[ $# -gt 0 ] || tools=(racecheck memcheck initcheck synccheck)
if [ ! -d "$WHERE/bin" ]; then
  mkdir -p "$WHERE"
  tar -C "$WHERE" -xJf carry/tests.tar.xz
fi
rm -rf "$LOGS"
mkdir -p "$LOGS"

# Left out of every turn:
# - the CPU's half of the tests of primitives, and WorksInAForkedChild, which is the CPU's alone;
# - MoreThanTheCachesHold: the kernels of AccuracyAtEveryWidth once more, on 25 MB and more;
# - MoreThanTwoToThe31Elements: 4 GiB, most of it not initialised on purpose;
# - CachedMemoryIsGivenUp: most of the GPU's memory, which the other jobs need as well.
LEFT_OUT='*/cpu:*WorksInAForkedChild*:*MoreThanTheCachesHold*'
export LEFT_OUT+=':*MoreThanTwoToThe31Elements*:*CachedMemoryIsGivenUp*'
# synccheck 2025.3 loses count of mbarriers in clusters of 16 blocks where eight or more of these are
# launched: it ends with an illegal address, or misses a wait for the barrier of a cluster's block 8
# and of no other. Forty lines with nothing else in them show it (7 clusters of 16 and 300 of 8
# pass). These tests launch such; the other tools take them. So do all of only_wide.
export BY_SYNCCHECK='FusionsTest/0.Causal:FusionsTest/0.DropoutAgreesWithTheHost'
BY_SYNCCHECK+=':FusionsTest/0.Residual:FusionsTest/0.AUsersOwnLoad'
BY_SYNCCHECK+=':CudaSoftmaxTest/float64.AnAxisThatIsNotTheLast'
BY_SYNCCHECK+=':CudaSoftmaxTest/float64.WidthsAroundWhatIsKeptOnChip'

# Kernels that only rows beyond the other jobs' elements reach: gradients of softmax parked in shared
# memory, layer_norm in slices, norms' gradients that all multiprocessors share. racecheck takes more
# than 280 s for a case of the slices. Of the gradients it reports what a warp has read before one of
# its lanes arrives at an mbarrier, and others write after they have waited for that: for racecheck
# 2025.3 only that lane's own reads come before, though the warp has met in __syncwarp; forty lines
# with nothing else in them show the same. $1: the tool.
only_wide() {
  local dtype
  for dtype in float16 float32; do
    if [ "$1" = racecheck ]; then
      echo "cuda_softmax_test $dtype 2 2300000 *GradientsThatRegistersDoNotHold*"
    else
      echo "cuda_softmax_test $dtype 1 11000000 *GradientsThatRegistersDoNotHold*"
      echo "cuda_norm_backward_test $dtype 1 11000000 *RowsOfABackwardWiderThanClusters*"
      echo "cuda_norm_test $dtype 1 11000000 *WideRowsInSlices*"
    fi
  done
}

# One line per job: program, dtype (a process takes seconds to prepare a dtype's module, so a job
# stays with one), n to run every n-th case only, elements of the largest case, tests.
# racecheck takes 0.1 to 2 s for a launch of a cluster, on the GPU, which runs one process after
# another. So it gets one case in a few, up to 150,000 elements: every tier of rows in float32 and
# float64, all but the grid's in the 16-bit types, whose kernels are the same templates; more
# elements where only they reach single blocks in shared memory (BlockTiers). And not
# - primitive_softmax_test, primitive_norm_test: the kernels of cuda_softmax_test, cuda_norm_test;
# - primitive_test, primitive_{binary,select,creation}_test, cuda_core_test, MatmulTest and
#   NllLossTest: none of their kernels of ours has shared memory, and racecheck looks at nothing else;
# - cuda_fusions_test in half precision: the templates of float once more.
# The others get every second case, up to 1,000,000 elements; the reference on the host takes longer
# than the kernels.
jobs_of() {
  local dtype program softmax
  if [ "$1" = racecheck ]; then
    for dtype in float32 float64 float16 bfloat16; do
      softmax=CudaSoftmaxTest/$dtype
      echo "cuda_softmax_test $dtype 7 150000 $softmax.*"
      echo "cuda_softmax_test $dtype 5 2000000 $softmax.*BlockTiers*"
      echo "cuda_norm_test $dtype 30 150000 *"
      echo "cuda_norm_backward_test $dtype 60 200000 *"
      echo "primitive_softmax_axis_test $dtype 9 150000 *"
      echo "primitive_scale_mask_softmax_test $dtype 7 150000 *"
      echo "primitive_cross_entropy_test $dtype 11 150000 *"
    done
    only_wide "$1"
    echo "cuda_fusions_test - 1 - FusionsTest/0.*"
    echo "primitive_reduce_test - 1 - ReduceTest.*"
    return
  fi
  for dtype in float16 bfloat16 float32 float64; do
    echo "cuda_softmax_test $dtype 2 1000000 CudaSoftmaxTest/$dtype.*"
    for program in cuda_norm cuda_norm_backward primitive_norm primitive_softmax primitive_softmax_axis \
      primitive_scale_mask_softmax primitive_cross_entropy; do
      echo "${program}_test $dtype 2 1000000 *"
    done
  done
  [ "$1" = synccheck ] || only_wide "$1"
  for program in cuda_fusions cuda_core primitive primitive_{binary,select,reduce,creation}; do
    echo "${program}_test - 1 - *"
  done
}

run_job() {  # tool program dtype every elements tests
  local log=$LOGS/$1.$2.$3.$5 status=0 left_out=$LEFT_OUT
  if [ "$1" = synccheck ]; then
    left_out+=:$BY_SYNCCHECK
    [ "$3" != float64 ] || left_out+=:'*MiddleAxisWithMasksAndNans*:*SlicesReadInWords*'
  fi
  unset OFL_TEST_DTYPE OFL_TEST_MAX_ELEMENTS
  export OFL_TEST_EVERY=$4
  [ "$3" = - ] || export OFL_TEST_DTYPE=$3
  [ "$5" = - ] || export OFL_TEST_MAX_ELEMENTS=$5
  # Memory of just the bytes that were asked for; the tests of the cache want it.
  unset OFL_NO_CUDA_MEMORY_CACHING
  [ "$1" != memcheck ] || [ "$2" = cuda_core_test ] || export OFL_NO_CUDA_MEMORY_CACHING=1
  # The tests of errors provoke some of the CUDA API's and look at them themselves.
  timeout 280 compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 \
    "$WHERE/bin/$2" --gtest_filter="$6-$left_out" > "$log" 2>&1 || status=$?
  local found
  found=$(sed -n 's/^=.* SUMMARY: \([0-9]*\) .*/\1/p' "$log")
  echo "$1 $2 $(grep -c '^\[       OK ' "$log") $(grep -c '^\[  SKIPPED .* ms)' "$log")" \
    "${found:-?} $status $SECONDS" >> "$LOGS/results"
}
export -f run_job

for tool in "${tools[@]}"; do jobs_of "$tool" | sed "s/^/$tool /"; done |
  xargs -P "${JOBS:-15}" -L 1 bash -c 'run_job "$@"' run_job

# tests: how many passed, over all jobs of the line; found: errors or hazards.
awk '
  { key = $1 " " $2 }
  !(key in tests) { order[++n] = key }
  { tests[key] += $3; skipped[key] += $4; seconds[key] += $7 }
  $5 == "?" || $6 != 0 { wrong[key] = wrong[key] ($6 == 124 ? " out of time" : " status " $6) }
  $5 != "?" { found[key] += $5 }
  END {
    printf "%-10s %-34s %5s %7s %6s %7s\n", "tool", "program", "tests", "skipped", "found", "seconds"
    for (i = 1; i <= n; ++i) {
      key = order[i]
      split(key, name, " ")
      printf "%-10s %-34s %5d %7d %6d %7d%s\n", name[1], name[2], tests[key], skipped[key],
             found[key], seconds[key], wrong[key]
      if (found[key] > 0 || wrong[key] != "" || tests[key] == 0) failed = 1
    }
    exit failed
  }' "$LOGS/results" || {
  echo "gpu_sanitize: the logs are in $LOGS" >&2
  exit 1
}
