// SPDX-License-Identifier: Apache-2.0
//
// How the norms' backward of rows that lie anywhere is laid out where few bytes are moved
// (norm_backward_small.cuh), and when it serves.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norm_policy.h"

namespace oneflow_lite {
namespace cuda {

struct NormSmallPolicy {
  // A backward that moves few bytes, as measured on an H200 in us beside teams and wide rows.
  // layer_norm, float16: 5.5 for 13.8 at 100 x 583, 8.4 for 11.8 at 1024 x 41, 11.1 for 16.5 at
  // 1024 x 1000 with a pad of 3, 17.5 for 25.7 at 500 x 4111, 11.2 for 37.2 at 100 x 11909, 7.5 for
  // 34.7 at 7 x 32767, 21.9 for 34.8 at 40 x 53424; beyond, 17.6 for 15.4 at 3000 x 267 and 36 for
  // 35 at 1024 x 6111. float32: 6.1 for 16.5 at 100 x 437, 10.4 for 16.6 at 1024 x 767;
  // beyond, 18.8 for 13.7 at 3000 x 616.
  static constexpr int64_t kMostRows = 1536, kMostElements = 9 << 18;
  static constexpr int kThreads = 256;
  static constexpr int kHeld = 8;         // elements of a row that a thread keeps in registers
  static constexpr int kColumns = 2;      // of a thread of a column block, `lanes` apart
  static constexpr int kRows = 4;         // on their way to a thread of a column block
  static constexpr int kLeastLanes = 32;  // threads of a column block side by side
  static constexpr int kCluster = 8;      // blocks, at most
  static constexpr int kBlocks = 3;       // per multiprocessor, by registers
};

struct NormSmallPlan {
  int cluster = 1;             // blocks of every cluster of the launch
  int team = 0;                // threads of a row, in each of its blocks: whole warps
  bool rows_split = false;     // a cluster's blocks share a row; else each has rows of its own
  int lanes = 0;               // threads of a column block side by side: 32 to kThreads
  bool columns_split = false;  // a cluster's blocks share out the rows of their columns
  int64_t row_blocks = 0, column_blocks = 0;
};

// The layout of any rows x cols.
inline NormSmallPlan LayOutSmall(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  using P = NormSmallPolicy;
  NormSmallPlan plan;
  const int most = limits.clusters ? P::kCluster : 1;
  // Columns: a thread has a few rows where there are blocks enough for the others. Clusters cost
  // time, too: 500 x 4111 takes 17.5 us with 130 blocks for columns, 20.4 with 260, 22.5 with 65.
  const int64_t few = int64_t{P::kRows} * P::kThreads, enough = limits.multiprocessors * 3 / 2;
  const auto tiles_of = [&](int lanes) { return CeilDiv(cols, P::kColumns * lanes); };
  plan.lanes = P::kThreads;
  while (plan.lanes > P::kLeastLanes && rows * plan.lanes > few &&
         tiles_of(plan.lanes) < 2 * limits.multiprocessors) {
    plan.lanes /= 2;
  }
  const int64_t tiles = tiles_of(plan.lanes);
  int split = 1;  // blocks that share out the rows of their columns
  while (split < most && rows * plan.lanes > few * split && tiles * split * 2 <= enough) split *= 2;
  // Rows: a thread holds its elements, unless other rows keep the device busy. 100 x 11909 takes
  // 11.2 us with two blocks a row, 14.5 with one or four.
  int share = 1;  // blocks that share a row
  while (share < most && cols > int64_t{P::kHeld} * P::kThreads * share &&
         rows * share <= limits.multiprocessors) {
    share *= 2;
  }
  plan.cluster = split > share ? split : share;
  plan.columns_split = split > 1;
  plan.rows_split = share > 1;
  plan.team = P::kThreads;
  const int64_t team = CeilDiv(cols, 32 * P::kHeld) * 32;
  if (!plan.rows_split && team < plan.team) plan.team = static_cast<int>(team);
  const auto whole = [&](int64_t blocks) { return CeilDiv(blocks, plan.cluster) * plan.cluster; };
  plan.column_blocks = plan.columns_split ? tiles * plan.cluster : whole(tiles);
  plan.row_blocks =
      plan.rows_split ? rows * plan.cluster : whole(CeilDiv(rows, P::kThreads / plan.team));
  return plan;
}

// False: the rows are not for it. Of whole packs, narrower ones are other kernels'.
inline bool PlanSmall(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                      NormSmallPlan* plan) {
  using P = NormSmallPolicy;
  const bool others = t.aligned && cols <= int64_t{NormPolicy::kBlockPacks} * t.pack;
  if (t.compute_bytes > 4 || others || rows > P::kMostRows || rows * cols > P::kMostElements) {
    return false;
  }
  *plan = LayOutSmall(rows, cols, limits);
  return true;
}

}  // namespace cuda
}  // namespace oneflow_lite
