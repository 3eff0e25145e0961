// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward where few bytes are moved: no teams, but blocks for rows and blocks for
// columns: of rows of whole packs (norms/backward/few.cuh), and of any (norms/backward/small.cuh).
// By the measurements in docs/lab/39-tuning-norm-backward.md.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norms/policy.h"

namespace oneflow_lite::cuda {

struct NormFewPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kLanes = 8;        // packs side by side of a column block, at most
  static constexpr int kCluster = 8;      // column blocks of a cluster, at most
  static constexpr int kLeastPacks = 32;  // of a row
  static constexpr int64_t MostRows(int pack) { return pack == 8 ? 16384 : 4096; }
  // Of x. From there on the lean kernel is faster.
  static constexpr int64_t MostBytes(int64_t packs, const NormTraits& t) {
    int64_t most = 17;
    if (t.pack == 8) {
      most = packs <= 2 * kThreads ? (t.kinds == 2 ? 26 : 22) : (t.kinds == 2 ? 17 : 12);
    }
    return most << 20;
  }
};

// How a backward that moves few bytes is launched (norms/backward/few.cuh).
struct NormFewPlan {
  int packs = 0;    // per thread of a row block
  int team = 0;     // threads of a row
  int threads = 0;  // of a block
  int lanes = 0;    // packs side by side of a column block
  int blocks = 1;   // of a cluster that shares out the rows of its columns
  int64_t row_blocks = 0, column_blocks = 0;
};

// False: the rows are not for it.
inline bool PlanFew(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                    NormFewPlan* plan) {
  using P = NormFewPolicy;
  const int64_t packs = cols / t.pack;
  if (!t.aligned || packs < P::kLeastPacks || packs > 4 * P::kThreads ||
      rows > P::MostRows(t.pack) || rows * packs * 16 > P::MostBytes(packs, t)) {
    return false;
  }
  // Two packs per thread, unless four leave fewer of a block's threads unused.
  for (int each = 2; each <= 4; each += 2) {
    const auto team = static_cast<int>(CeilDiv(packs, 32 * each) * 32);
    const int threads = P::kThreads / team * team;
    if (threads <= plan->threads) continue;
    plan->packs = each, plan->team = team, plan->threads = threads;
  }
  plan->row_blocks = CeilDiv(rows, plan->threads / plan->team);
  // About as many column blocks as multiprocessors.
  const int64_t most = int64_t{limits.multiprocessors} * 5 / 4;
  const int largest = limits.clusters ? P::kCluster : 1;
  plan->lanes = P::kLanes;
  while (plan->lanes > 1 && 2 * CeilDiv(packs, plan->lanes) * largest <= most) plan->lanes /= 2;
  const int64_t tiles = CeilDiv(packs, plan->lanes);
  plan->blocks = 1;
  while (plan->blocks < largest && 2 * plan->blocks * tiles <= most &&
         rows > int64_t{plan->threads} / plan->lanes * plan->blocks) {
    plan->blocks *= 2;
  }
  plan->column_blocks = tiles * plan->blocks;
  return true;
}

struct NormSmallPolicy {
  static constexpr int64_t kMostRows = 4096, kMostBytes = 5 << 20;
  static constexpr int64_t kWide = 8192, kMostWideBytes = 8 << 20;  // of rows from so many columns
  static constexpr int64_t kMostDoubleRows = 512, kMostDoubleBytes = 10 << 20;
  static constexpr int kThreads = 256;
  static constexpr int kHeld = 8;     // elements of a row that a thread keeps in registers
  static constexpr int kColumns = 2;  // of a thread of a column block, `lanes` apart
  static constexpr int kFewRows = 4;  // of a thread of a column block: too few to share
  static constexpr int kCluster = 8;  // blocks, at most
  static constexpr int Blocks(bool is_double) { return is_double ? 2 : 3; }  // of an SM: registers
};

struct NormSmallPlan {
  int cluster = 1;             // blocks of every cluster of the launch
  int team = 0;                // threads of a row, in each of its blocks: whole warps
  bool rows_split = false;     // a cluster's blocks share a row; else each has rows of its own
  int lanes = 0;               // threads of a column block side by side: 8 to kThreads
  bool columns_split = false;  // a cluster's blocks share out the rows of their columns
  int64_t row_blocks = 0, column_blocks = 0;
};

// The layout of any rows x cols.
inline NormSmallPlan LayOutSmall(int64_t rows, int64_t cols, const DeviceLimits& limits) {
  using P = NormSmallPolicy;
  NormSmallPlan plan;
  const int most = limits.clusters ? P::kCluster : 1;
  // Columns: threads side by side while rows are few; else more of them share the rows, over the
  // block and the cluster, until each multiprocessor has a block.
  const int64_t few = int64_t{P::kFewRows} * P::kThreads;
  const auto tiles_of = [&](int lanes) { return CeilDiv(cols, P::kColumns * lanes); };
  plan.lanes = P::kThreads;
  while (plan.lanes > 32 && rows * plan.lanes > few &&
         tiles_of(plan.lanes) < 2 * limits.multiprocessors) {
    plan.lanes /= 2;
  }
  int split = 1;  // blocks that share out the rows of their columns
  while (rows * plan.lanes > few * split &&
         tiles_of(plan.lanes) * split * 2 <= limits.multiprocessors) {
    if (split * 2 < most) {
      split *= 2;
    } else if (plan.lanes > 8) {
      plan.lanes /= 2;
    } else if (split < most) {
      split *= 2;
    } else {
      break;
    }
  }
  const int64_t tiles = tiles_of(plan.lanes);
  // Rows: a thread holds its elements, unless other rows keep the device busy.
  int share = 1;  // blocks that share a row
  while (share < most && cols > int64_t{P::kHeld} * P::kThreads * share &&
         rows * share <= limits.multiprocessors) {
    share *= 2;
  }
  plan.cluster = static_cast<int>(Max(split, share));
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

// False: the rows are not for it. Of whole packs only few wide ones are, and doubles that PlanFew
// refuses.
inline bool PlanSmall(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                      NormSmallPlan* plan) {
  using P = NormSmallPolicy;
  const bool is_double = t.compute_bytes > 4;
  const bool others = t.aligned && cols <= int64_t{NormPolicy::kTeamPacks} * t.pack && !is_double;
  int64_t most = t.aligned || cols < P::kWide ? P::kMostBytes : P::kMostWideBytes;
  if (is_double) most = P::kMostDoubleBytes;
  const int64_t most_rows = is_double ? P::kMostDoubleRows : P::kMostRows;
  if (others || rows > most_rows || rows * cols * 16 > most * t.pack) return false;
  *plan = LayOutSmall(rows, cols, limits);
  return true;
}

}  // namespace oneflow_lite::cuda
