// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward over rows of whole packs (norms/forward_whole.cuh, norms/forward_wide.cuh).
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

struct NormWholePolicy {
  // A forward over rows of whole packs (docs/lab/04-short-rows-of-the-norms.md). Several packs per
  // lane before more lanes.
  static constexpr int kLaneThreads = 128;
  // Of a row that lanes share, 1 to 4 packs each.
  template <bool kCentre>
  static constexpr int kLanePacks = kCentre ? 128 : 96;
  // Of 8 bytes, of narrow rows of 16-bit elements: 100 columns.
  static constexpr int kFewHalfPacks = 9, kMostHalfPacks = 64;
  static constexpr int kSmallThreads = 256;   // of blocks of rms_norm in large clusters
  static constexpr int kMostPacks = 8;        // per thread of a block
  static constexpr int kBlockManyPacks = 4;   // ... while a block is enough: 0.97 of a copy
  static constexpr int kEarlyPacks = 2;       // ... where rows are so few that latency counts
  static constexpr int kFewWholePacks = 256;  // a block's part of few rows, at least
  // Threads of a cluster's blocks while there are no more than so many per multiprocessor.
  static constexpr int kFewClusterThreads = 256, kFewClusterBlocks = 4;
  template <class T>
  static constexpr int kWholeThreads = sizeof(T) == 8 ? 256 : 512;  // at most
  template <class T>
  static constexpr int kWholeBlocks = sizeof(T) == 8 ? 3 : 2;
  // Registers of a block that holds a row alone, as blocks per multiprocessor.
  template <class T, bool kCentre, bool kResidual>
  static constexpr int RowBlocks(int packs) {
    if (sizeof(T) == 8 || kCentre || packs > kEarlyPacks) return kWholeBlocks<T>;
    return sizeof(T) == 4 && !kResidual ? 4 : 3;
  }
  // ... of a block without a cluster, with kMostPacks.
  template <class T>
  static constexpr int kAloneThreads = sizeof(T) == 4 ? 448 : kWholeThreads<T>;
  // Packs of weight and bias that are asked for before a row's sums are known, as registers allow.
  template <class T, bool kCentre, int kPacks>
  static constexpr int kWeightsAhead = kPacks <= kEarlyPacks ? kPacks
                                       : kCentre && (kPacks == kMostPacks || sizeof(T) == 2) ? 1
                                                                                             : 2;
  // ... of a block that holds a row alone.
  template <class T, bool kCentre, int kPacks>
  static constexpr int kLoneWeightsAhead = kCentre ? kWeightsAhead<T, true, kPacks> : kPacks;
  // Registers, as blocks per multiprocessor: 40, 56, 72 or 80 with 1, 2, 3 or 4 packs per lane,
  // 96 with a residual.
  template <class T>
  static constexpr int LaneBlocks(int packs, bool residual) {
    const int blocks = packs == 1 ? 12 : packs == 2 ? 9 : packs == 3 ? 7 : residual ? 5 : 6;
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
  int lane_packs;      // of the widest row that lanes of a warp share
  int most_threads;    // of a block
  int most_alone;      // of a block that holds a row alone, with most_packs
  int resident;        // threads of a multiprocessor, at most
  int early_resident;  // ... in blocks that hold a row each, with the fewest packs per thread
  bool early_waves;    // whether those are worth more than one wave of blocks
  int most_packs;      // per thread, that there is a kernel for
  int most_blocks;     // of a cluster
  int waves;           // of clusters with few packs per thread, faster than fewer with more
  bool mixed = false;  // weights of float32 over 16-bit elements
};

// A block per row, with as few packs per thread as let all rows run at once; where none does, with
// those that leave the fewest threads of the multiprocessors unused, in the last wave of blocks
// too. False: a block cannot hold a row.
inline bool PlanLoneBlocks(int64_t rows, int64_t packs, const NormWholeTraits& t,
                           const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormWholePolicy;
  constexpr int64_t kFewWaves = 4;
  double best = 0;
  int64_t best_waves = 0;
  for (const int each : {P::kEarlyPacks, P::kBlockManyPacks, P::kMostPacks}) {
    if (each > t.most_packs) break;
    const int threads = static_cast<int>(CeilDiv(packs, int64_t{32} * each) * 32);
    // No kernel with so many packs reads those weights as they should be (kIsMixed).
    if (t.mixed && each == P::kMostPacks && best > 0) break;
    const bool last = each == P::kMostPacks && t.most_blocks > 1;  // a cluster would hold it too
    if (threads > (last ? t.most_alone : t.most_threads)) continue;
    const bool early = each == P::kEarlyPacks;
    const int resident = (early ? t.early_resident : t.resident) / threads;
    const int64_t slots = int64_t{limits.multiprocessors} * resident;
    const int64_t waves = CeilDiv(rows, slots);
    if (early && waves > 1 && !t.early_waves) continue;
    const int most = early ? t.early_resident : t.resident;
    double share = static_cast<double>(rows) / (waves * slots) * resident * packs / most / each;
    // Few packs per thread need all the threads.
    if (early && 20 * resident * threads < 19 * most) share *= 0.9;
    if (waves == 1) share = 2;
    // 5 % more has to be gained by more packs per thread, but for half of a few waves.
    const bool fewer = 2 * waves <= best_waves && best_waves <= kFewWaves;
    if (best > 0 && share < (fewer ? 1 : 1.05) * best) continue;
    best = share;
    best_waves = waves;
    plan->packs = each;
    plan->threads = threads;
    if (waves == 1) break;
  }
  return best > 0;
}

// False: the rows do not fit.
inline bool PlanNormWhole(int64_t rows, int64_t packs, const NormWholeTraits& t,
                          const DeviceLimits& limits, NormWholePlan* plan) {
  using P = NormWholePolicy;
  *plan = NormWholePlan();
  if (packs <= t.lane_packs) {
    plan->threads = P::kLaneThreads;
    plan->packs = packs <= 4 ? 1 : packs <= 16 ? 2 : packs > 64 && packs <= 96 ? 3 : 4;
    plan->lanes = 4;
    while (plan->lanes * plan->packs < packs) plan->lanes *= 2;
    return true;
  }
  // Few rows get more blocks each, as long as that keeps a block busy.
  const auto fills = [&](int64_t blocks) {
    return rows * blocks >= 2 * limits.multiprocessors || packs <= blocks * P::kFewWholePacks;
  };
  if ((fills(1) || t.most_blocks == 1) && PlanLoneBlocks(rows, packs, t, limits, plan)) return true;
  const int64_t wave = int64_t{limits.multiprocessors} * 1024;  // threads that run at once
  for (const int each : {P::kEarlyPacks, P::kBlockManyPacks, P::kMostPacks}) {
    if (each > t.most_packs) break;
    const auto holds = [&](int64_t blocks) {
      const int64_t few = int64_t{each} * P::kFewClusterThreads;
      const bool use_few = (each < t.most_packs || packs <= few * t.most_blocks) &&
                           rows * blocks <= P::kFewClusterBlocks * limits.multiprocessors;
      const int64_t most = int64_t{each} * t.most_threads;
      return packs <= blocks * (use_few && few < most ? few : most);
    };
    plan->blocks = 2;
    while (plan->blocks < t.most_blocks && !(holds(plan->blocks) && fills(plan->blocks))) {
      plan->blocks *= 2;
    }
    if (plan->blocks > t.most_blocks || !holds(plan->blocks)) continue;
    plan->packs = each;
    plan->threads = static_cast<int>(CeilDiv(packs, int64_t{32} * each * plan->blocks) * 32);
    if (each == t.most_packs || CeilDiv(packs, each) * rows <= t.waves * wave) return true;
  }
  return false;
}

// layer_norm over wide rows, in slices (norms/forward_wide.cuh; docs/lab/11-wide-norms.md).
struct NormSlicedPolicy {
  // Packs of a thread in registers, of all threads, of most; those beyond the first few are in
  // shared memory.
  static constexpr int kRegisterPacks = 4, kSurePacks = 13, kPacks = 16;
  static constexpr int kAhead = 1;  // packs of weight and of bias on their way to a thread
  static constexpr int kThreads = 512, kBlocks = 2;  // at most; per multiprocessor, at least
  // The smallest of these that a few blocks can have.
  static constexpr int kChoices[] = {128, 256, kThreads};
  static constexpr int kFewBlocks = 10;
  static constexpr int kLinePacks = 8;  // slices begin at lines of memory
};
struct NormSlicedPlan {
  int threads = 0;  // of a block
  int blocks = 1;   // of a cluster
  int slice = 0;    // packs of a block; the last one has the rest
};

// False: rows of so many packs cannot be cut into such slices.
inline bool PlanNormSliced(int64_t packs, int most_blocks, NormSlicedPlan* plan) {
  using P = NormSlicedPolicy;
  for (const int most_threads : P::kChoices) {
    const bool few = most_threads < P::kThreads && most_blocks > P::kFewBlocks;
    const int most = few ? P::kFewBlocks : most_blocks;
    for (int64_t blocks = CeilDiv(packs, most_threads * P::kPacks); blocks <= most; ++blocks) {
      const int64_t slice = CeilDiv(CeilDiv(packs, blocks), P::kLinePacks) * P::kLinePacks;
      const int64_t threads = CeilDiv(slice, 32 * P::kPacks) * 32;
      const int64_t last = packs - (blocks - 1) * slice;
      if (threads > most_threads || last < threads * P::kSurePacks) continue;
      if (2 * threads <= most_threads) break;  // ever smaller ones: 5000 doubles 0.67, not 0.93
      plan->threads = static_cast<int>(threads);
      plan->blocks = static_cast<int>(blocks);
      plan->slice = static_cast<int>(slice);
      return true;
    }
  }
  return false;
}

}  // namespace oneflow_lite::cuda
