// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward over rows of whole packs (norm_forward_whole.cuh).
#pragma once

#include <stdint.h>

#include "primitive/cuda/launch.cuh"

namespace oneflow_lite {
namespace cuda {

struct NormWholePolicy {
  // A forward over rows of whole packs, by measurement on an H200. Several packs per lane before
  // more lanes: a million rows of 128 in half run at 0.94 with 8 lanes, 0.875 with 16.
  static constexpr int kLaneThreads = 128;
  static constexpr int kLanePacks = 128;      // of a row; per lane 1, 2 or 4
  static constexpr int kMostPacks = 8;        // per thread of a block
  static constexpr int kBlockManyPacks = 4;   // ... while a block is enough: 0.97 of a copy
  static constexpr int kEarlyPacks = 2;       // ... where rows are so few that latency counts
  static constexpr int kFewWholePacks = 256;  // a block's part of few rows, at least
  // Threads of a cluster's blocks while there are no more than so many per multiprocessor.
  static constexpr int kFewClusterThreads = 256, kFewClusterBlocks = 4;
  // One block per row takes eight packs a thread where four leave more than a tenth of the threads
  // that could be resident unused, and eight fewer, and rows fill the device so many times (12288
  // columns in half: 0.96 of a copy, 0.89 with four), or where all rows run at once then (1024 x
  // 4096 in float32: 10.9 us, 11.6 with four).
  static constexpr int kManyWaves = 3;
  template <class T>
  static constexpr int kWholeThreads = sizeof(T) == 8 ? 256 : 512;  // at most
  template <class T>
  static constexpr int kWholeBlocks = sizeof(T) == 8 ? 3 : 2;
  // ... of a block without a cluster, with kMostPacks: float32 rows of 16384 run at 0.967 as two
  // blocks, at 0.959 as one.
  template <class T>
  static constexpr int kAloneThreads = sizeof(T) == 4 ? 448 : kWholeThreads<T>;
  // Packs of weight and bias that are asked for before a row's sums are known, as registers allow.
  // Asked for one by one where they are used, they cost rms_norm at 65536 columns 5 % of a copy.
  template <class T, bool kCentre, int kPacks>
  static constexpr int kWeightsAhead = kPacks <= kEarlyPacks ? kPacks
                                       : kCentre && (kPacks == kMostPacks || sizeof(T) == 2) ? 1
                                                                                             : 2;
  // Registers, as blocks per multiprocessor: 40, 56 or 80 with 1, 2 or 4 packs per lane.
  template <class T>
  static constexpr int LaneBlocks(int packs) {
    const int blocks = packs == 1 ? 12 : packs == 2 ? 9 : 6;
    return sizeof(T) == 8 ? blocks / 2 : blocks;
  }
};

// How a forward over rows of whole packs is launched.
struct NormWholePlan {
  int lanes = 0;    // that share a row; 0: a block does, or several
  int packs = 0;    // per thread
  int threads = 0;  // of a block
  int blocks = 1;   // that share a row
};

// What of a forward its plan depends on.
struct NormWholeTraits {
  int most_threads;  // of a block
  int most_alone;    // of a block that holds a row alone, with most_packs
  int resident;      // threads of a multiprocessor, at most
  int most_packs;    // per thread, that there is a kernel for
  int most_blocks;   // of a cluster
  int waves;         // of blocks with few packs per thread that are faster than fewer with more
  bool early_alone;  // ... any number of waves, if a block holds a row
};

// False: the rows do not fit.
inline bool PlanNormWhole(int64_t rows, int64_t packs, const NormWholeTraits& t,
                          const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormWholePolicy;
  *plan = NormWholePlan();
  if (packs <= P::kLanePacks) {
    plan->threads = P::kLaneThreads;
    plan->packs = packs <= 4 ? 1 : packs <= 16 ? 2 : 4;
    plan->lanes = 4;
    while (plan->lanes * plan->packs < packs) plan->lanes *= 2;
    return true;
  }
  // Few rows get more blocks each, as long as that keeps a block busy.
  const auto fills = [&](int64_t blocks) {
    return rows * blocks >= 2 * limits.multiprocessors || packs <= blocks * P::kFewWholePacks;
  };
  const int64_t wave = int64_t{limits.multiprocessors} * 1024;  // threads that run at once
  for (const int each : {P::kEarlyPacks, P::kBlockManyPacks, P::kMostPacks}) {
    if (each > t.most_packs) break;
    const auto holds = [&](int64_t blocks) {
      const int64_t few = int64_t{each} * P::kFewClusterThreads;
      const bool use_few = blocks > 1 && (each < t.most_packs || packs <= few * t.most_blocks) &&
                           rows * blocks <= P::kFewClusterBlocks * limits.multiprocessors;
      const bool alone = blocks == 1 && t.most_blocks > 1 && each == P::kMostPacks;
      const int64_t most = int64_t{each} * (alone ? t.most_alone : t.most_threads);
      return packs <= blocks * (use_few && few < most ? few : most);
    };
    plan->blocks = 1;
    while (plan->blocks < t.most_blocks && !(holds(plan->blocks) && fills(plan->blocks))) {
      plan->blocks *= 2;
    }
    if (!holds(plan->blocks)) continue;
    plan->packs = each;
    plan->threads = static_cast<int>(CeilDiv(packs, int64_t{32} * each * plan->blocks) * 32);
    if (each == t.most_packs) return true;
    const bool in_waves = CeilDiv(packs, each) * rows <= t.waves * wave;
    if (in_waves || (each == P::kEarlyPacks && t.early_alone && plan->blocks == 1)) return true;
    if (each == P::kEarlyPacks || plan->blocks > 1) continue;
    const bool at_once = CeilDiv(packs, P::kMostPacks) * rows <= wave;
    const int64_t used = t.resident / plan->threads * plan->threads;
    const int64_t slots = CeilDiv(packs, 32 * P::kMostPacks) * 32 * P::kMostPacks;
    const bool unused = 10 * used < 9 * t.resident && 10 * packs >= 9 * slots &&
                        rows * plan->threads > P::kManyWaves * wave;
    if (!at_once && !unused) return true;
  }
  return false;
}

}  // namespace cuda
}  // namespace oneflow_lite
