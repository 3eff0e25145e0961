// SPDX-License-Identifier: Apache-2.0
//
// How the norms' backward column by column (norms/backward/columns.cuh) is laid out, and when it
// serves.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norms/plan.h"

namespace oneflow_lite {
namespace cuda {

// Rows that are no whole packs. Where few bytes are moved norms/backward/small.cuh is faster (500 x
// 1394 9 us instead of 15). Blocks of 320 threads, and three of 256, which spill, were no faster.
// layer_norm on an H200, in us:
//   float16        here  teams      float16        here  teams      float32        here  teams
//   899432 x 14      64    363      49152 x 100      22     34      200000 x 19      25     46
//   200000 x 19      22     91      49152 x 273      50     65      49152 x 273      55     84
//   49152 x 27       13     31      16384 x 1001     43     55      16384 x 1001     55     74
//   200000 x 57      34     93      8192 x 2047      44     53      16384 x 1024     55     70
//   (wide)
//                                                           beyond: 6000 x 1281      33     31
struct NormColumnsPolicy {
  static constexpr int kColumns = 8;   // of a thread, at most
  static constexpr int kFewLanes = 8;  // have a row of up to kFewLanes * kColumns columns
  static constexpr int kThreads = 256, kBlocks = 2;  // of a block; per multiprocessor, by registers
  static constexpr int kMostBlocks = 3;              // of fewer threads
  // Of a row: half has no other kernel up to there, float32 has that for wide rows.
  static constexpr int MaxCols(int pack) { return 256 * pack; }
};

struct NormColumnsPlan {
  int team = 0;                   // threads that have a row: kFewLanes, or whole warps
  int threads = 0;                // of a block
  int64_t units = 0, shared = 0;  // blocks; bytes of shared memory of each
};

// False: the rows are not for it.
inline bool PlanColumns(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                        NormColumnsPlan* plan) {
  using P = NormColumnsPolicy;
  if (t.aligned || t.compute_bytes > 4 || cols > P::MaxCols(t.pack)) return false;
  const bool few = cols <= P::kFewLanes * P::kColumns;
  plan->team = few ? P::kFewLanes : static_cast<int>(CeilDiv(cols, 32 * P::kColumns) * 32);
  const int64_t teams = P::kThreads / plan->team, regions = few ? P::kThreads / 32 : teams;
  plan->threads = static_cast<int>(teams * plan->team);
  plan->units = P::kBlocks * P::kThreads / plan->threads * int64_t{limits.multiprocessors};
  if (plan->units > CeilDiv(rows, teams)) plan->units = CeilDiv(rows, teams);
  // The teams' sums, and at the end what their rows come to.
  const int64_t sums = few ? 0 : teams * NormPolicy::kLeanSumBytes;
  plan->shared = regions * t.kinds * cols * t.compute_bytes;
  if (plan->shared < sums) plan->shared = sums;
  return true;
}

}  // namespace cuda
}  // namespace oneflow_lite
