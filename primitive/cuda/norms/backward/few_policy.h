// SPDX-License-Identifier: Apache-2.0
//
// The norms' backward where few bytes are moved: no teams, but blocks for rows and blocks for
// columns (norms/backward/few.cuh).
#pragma once

#include <stdint.h>

#include "primitive/cuda/norms/policy.h"

namespace oneflow_lite {
namespace cuda {

struct NormFewPolicy {
  // A backward that moves few bytes, as measured on an H200 in us beside teams. float16: 6.8
  // for 13.2 at 1024 x 768, 12.5 for 23.1 at 1024 x 4096, 34 for 44 at 4096 x 4096; beyond, 69 for
  // 68 at 8192 x 4096 and 35 for 30 at 49152 x 256. float32: 8.5 for 13.7 at 1024 x 768, 21 for 25
  // at 4096 x 1024; beyond, 30 for 23 at 16384 x 256.
  static constexpr int kThreads = 256;
  static constexpr int kLanes = 8;        // packs side by side of a column block, at most
  static constexpr int kCluster = 8;      // column blocks of a cluster, at most
  static constexpr int kLeastPacks = 32;  // of a row
  static constexpr int64_t MostRows(int pack) { return pack == 8 ? 16384 : 4096; }
  // Of x. From there on the lean kernel is faster, where it is there (half, layer_norm: 26.1 us
  // here for 27.7 at 3072 x 4096, 34.1 for 33.2 at 8192 x 2048; 19.8 for 21.7 at 896 x 8192, 25.8
  // for 25.4 at 1280 x 8192; rms_norm: 17.4 for 17.4 at 1024 x 6144, 19.4 for 18.5 at 1024 x 7168),
  // else teams.
  static constexpr int64_t MostBytes(int64_t packs, const NormTraits& t,
                                     const DeviceLimits& limits) {
    int64_t most = t.pack == 8 ? 34 : 17;
    if (t.pack == 8 && t.ServedByLean(limits)) {
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
      rows > P::MostRows(t.pack) || rows * packs * 16 > P::MostBytes(packs, t, limits)) {
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

}  // namespace cuda
}  // namespace oneflow_lite
