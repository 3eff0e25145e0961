// SPDX-License-Identifier: Apache-2.0
//
// How the norms' backward column by column (norms/backward/columns.cuh) and of wide rows
// (norms/backward/wide.cuh) is laid out, and when they serve, by the measurements in
// docs/lab/39-tuning-norm-backward.md.
#pragma once

#include <stdint.h>

#include "primitive/cuda/norms/policy.h"

namespace oneflow_lite::cuda {

// Rows that are no whole packs.
struct NormColumnsPolicy {
  static constexpr int kColumns = 8, kDoubleColumns = 4;  // of a thread, at most
  static constexpr int kFewLanes = 8;  // have a row of up to so many times these columns
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
  if (t.aligned || cols > P::MaxCols(t.pack)) return false;
  const int most = t.compute_bytes == 8 ? P::kDoubleColumns : P::kColumns;
  const bool few = cols <= P::kFewLanes * most;
  plan->team = few ? P::kFewLanes : static_cast<int>(CeilDiv(cols, 32 * most) * 32);
  const int64_t teams = P::kThreads / plan->team, regions = few ? P::kThreads / 32 : teams;
  plan->threads = static_cast<int>(teams * plan->team);
  plan->units = Min(P::kBlocks * P::kThreads / plan->threads * int64_t{limits.multiprocessors},
                    CeilDiv(rows, teams));
  // The teams' sums, and at the end what their rows come to.
  const int64_t sums = few ? 0 : teams * NormPolicy::LeanSumBytes(t.compute_bytes);
  plan->shared = Max(regions * t.kinds * cols * t.compute_bytes, sums);
  return true;
}

// A wide unit is a block, or a cluster of 2 to 16 blocks with a slice of the columns each; there is
// one block per multiprocessor, or more where a block is a row's only one. Of clusters of 2, 3, 4,
// 5, 6, 8, 9 and 16 blocks, an H200 holds 66, 39, 30, 22, 17, 15, 9 and 7: the number of slices
// decides how many multiprocessors are idle, and how many warps the others have.
//
// Wider rows than clusters of 16 hold are shared out to all multiprocessors, as those of a few
// units, whose slices exchange their sums through memory (norms/backward/wide_exchange.cuh): that
// takes longer, so that three rows are at work besides.

struct NormWidePolicy {
  static constexpr int kMaxWorkers = 448;   // threads of a block; with the others 128 registers
  static constexpr int kOtherThreads = 64;  // a warp that copies and one that sums
  static constexpr int kMaxStages = 8;      // of the ring
  static constexpr int kMinStages = 3;      // two rows at work, one on its way
  static constexpr int kFarStages = 5;      // three rows at work, two on their way
  static constexpr int kPosts = 8;          // lanes of a warp that post sums
  static constexpr int kLineMask = 112;     // which word of a line of 128 bytes an address is in
  static constexpr int kLineBytes = 128;
  static constexpr int kExchangeTurns = 8;  // rows whose sums slices exchange through memory ...
  static constexpr int kExchangeBytes = 8 * 6 * kExchangeTurns;  // ... and their bytes of a slice
  static constexpr int kMaxCluster = 16;
  static constexpr int kGridUnits = 4;    // which share out all multiprocessors, at most
  static constexpr int kMinTurns = 8;     // rows of a block, for a second one per multiprocessor
  static constexpr int kMinPacks = 256;   // of a row
  static constexpr int kFewRows = 2048;   // for which MicrosecondsOf is asked
  static constexpr double kFaster = 0.9;  // by MicrosecondsOf, to do otherwise than by WorthOf
};

// Packs of a worker: 16 columns.
template <class T>
inline constexpr int kWidePacks = sizeof(T) == 2 ? 2 : 4;

// What the kernel is told of its plan.
struct NormWideShape {
  int slices = 1;        // of a row: blocks of a cluster
  int packs = 0;         // of a slice
  int stages = 0;        // of the ring
  int ahead = 1;         // rows between that which is added up and that whose dx is computed
  int tensor_bytes = 0;  // of a slice of x or dy in a stage
  int period = 1;        // see NormWideRows
};
struct NormWidePlan : NormWideShape {
  bool grid = false;   // whether slices are no cluster, but all resident
  int workers = 0;     // threads of a block that compute
  int64_t units = 0;   // blocks or clusters, which share out the rows
  int64_t shared = 0;  // bytes of dynamic shared memory

  int64_t parts() const { return units + period - 1; }
};

// Warps of workers for a slice of so many packs: full ones, and light ones of half the packs, which
// take the `ends` packs that may not be whole.
constexpr int64_t WarpsOfWorkers(int64_t packs, int64_t ends, int many) {
  const int64_t full = packs > ends ? (packs - ends) / (32 * many) : 0;
  return full + CeilDiv(packs - full * 32 * many, 32 * many / 2);
}

// Of blocks that are a row's only one: as many as the registers have room for, and rows to visit.
inline int64_t BlocksPerMultiprocessor(int64_t workers, int64_t rows, const DeviceLimits& limits) {
  using P = NormWidePolicy;
  const int64_t blocks = (P::kMaxWorkers + P::kOtherThreads) / (workers + P::kOtherThreads);
  return Max(Min(blocks, rows / (P::kMinTurns * limits.multiprocessors)), 1);
}

// A plan with so many slices, or a few less; false where they do not fit. grid: they are no
// cluster, but exchange sums through memory. max_clusters(slices) says how many clusters of so many
// blocks, one per multiprocessor, the device holds at once; 0: it has none.
template <class MaxClusters>
bool PlanWideAs(int slices, bool grid, int64_t rows, int64_t cols, const NormTraits& t,
                const DeviceLimits& limits, const MaxClusters& max_clusters, NormWidePlan* plan) {
  using P = NormWidePolicy;
  const int64_t packs = CeilDiv(cols + (t.aligned ? 0 : t.pack - 1), t.pack);
  // Slices begin with whole lines of memory.
  const int64_t each = slices == 1 ? packs : CeilDiv(CeilDiv(packs, slices), 8) * 8;
  if (grid) slices = static_cast<int>(CeilDiv(packs, each));
  // The last slice has what is left, which may be a pack less in some rows.
  const int64_t last = packs - each * (slices - 1), ends = t.aligned ? 0 : 2;
  if (last <= 0) return false;
  int64_t warps = WarpsOfWorkers(each, ends, t.many);
  for (const int64_t some : {last, t.aligned ? last : last - 1}) {
    warps = Max(warps, WarpsOfWorkers(some, ends, t.many));
  }
  const int64_t workers = warps * 32;
  if (workers > P::kMaxWorkers) return false;
  plan->slices = slices;
  plan->packs = static_cast<int>(each);
  plan->workers = static_cast<int>(workers);
  plan->tensor_bytes = static_cast<int>(CeilDiv(each, 8) + 1 + t.more_lines) * P::kLineBytes;
  const int64_t blocks = slices == 1 ? BlocksPerMultiprocessor(workers, rows, limits) : 1;
  const int64_t room = Min(limits.shared_per_multiprocessor / blocks - kReservedSharedBytes,
                           limits.shared_per_block);
  const int64_t fixed = t.scratch_bytes + t.weights * workers * t.many * t.pack * t.compute_bytes;
  plan->stages = static_cast<int>(Min((room - fixed) / (2 * plan->tensor_bytes), P::kMaxStages));
  if (plan->stages < (grid ? P::kFarStages : P::kMinStages)) return false;
  plan->grid = grid;
  plan->ahead = plan->stages < P::kFarStages ? 1 : grid && plan->stages > P::kFarStages + 1 ? 3 : 2;
  plan->shared = fixed + int64_t{2} * plan->stages * plan->tensor_bytes;
  plan->units = grid          ? limits.multiprocessors / slices
                : slices == 1 ? blocks * limits.multiprocessors
                              : max_clusters(slices);
  plan->units = Min(plan->units, rows);
  plan->period = plan->units == rows || plan->units % t.period == 0 ? 1 : t.period;
  return plan->units > 0;
}

// What a plan is worth: the multiprocessors that have work, times the warps of workers of each, of
// which more than `enough` gain nothing.
inline int64_t WorthOf(const NormWidePlan& plan, const NormTraits& t, const DeviceLimits& limits) {
  const int enough = t.pack <= 4 ? 4 : t.aligned ? 8 : 10;
  const int64_t blocks = plan.units * plan.slices, each = CeilDiv(blocks, limits.multiprocessors);
  return Min(blocks, limits.multiprocessors) * Min(each * plan.workers / 32, enough);
}

// About the microseconds that layer_norm takes over some hundred rows, where what the units leave
// of the weights' gradients counts more than who is busy: as measured on an H200 over 150 shapes,
// of 1 to 16 slices each, to 5 % on average (docs/lab/18-norm-backward-hundreds-of-wide-rows.md).
inline double MicrosecondsOf(const NormWidePlan& plan, int64_t rows, int64_t cols,
                             const NormTraits& t, const DeviceLimits& limits) {
  const bool narrow = t.pack == 8;
  const int64_t turns = CeilDiv(rows, plan.units);
  const int64_t blocks = CeilDiv(plan.units * plan.slices, limits.multiprocessors);
  const double turn = 0.53 + (narrow ? 6.2e-4 : 7.2e-4) * static_cast<double>(plan.packs * blocks);
  const double part = (narrow ? 25e-6 : 13e-6) * static_cast<double>(cols);
  return 7 + static_cast<double>(turns) * turn + static_cast<double>(plan.parts()) * part;
}

// False where the wide backward does not serve.
template <class MaxClusters>
bool PlanWide(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
              const MaxClusters& max_clusters, NormWidePlan* plan) {
  using P = NormWidePolicy;
  if (!limits.clusters || cols < int64_t{P::kMinPacks} * t.pack) return false;
  NormWidePlan next;
  plan->units = 0;
  int64_t best = 0;
  for (int slices = 1; slices <= P::kMaxCluster; ++slices) {
    if (!PlanWideAs(slices, false, rows, cols, t, limits, max_clusters, &next)) continue;
    const int64_t worth = WorthOf(next, t, limits);
    if (worth > best) best = worth, *plan = next;
  }
  if (plan->units > 0 && t.kinds == 2 && rows <= P::kFewRows) {  // rms_norm has half as much to add
    double least = P::kFaster * MicrosecondsOf(*plan, rows, cols, t, limits);
    for (const int slices : {1, 2, 3, 4, 5, 6, 8, 9, 16}) {  // as measured
      if (!PlanWideAs(slices, false, rows, cols, t, limits, max_clusters, &next)) continue;
      const double time = MicrosecondsOf(next, rows, cols, t, limits);
      if (time < least) least = time, *plan = next;
    }
  }
  if (!limits.cooperative) return plan->units > 0;
  for (int units = P::kGridUnits; units > 0 && plan->units == 0; --units) {
    const int slices = limits.multiprocessors / units;
    if (slices <= P::kMaxCluster) continue;
    if (PlanWideAs(slices, true, rows, cols, t, limits, max_clusters, &next)) *plan = next;
  }
  return plan->units > 0;
}

// How much a launch of the norms' backward leaves in its workspace at most, whatever its pointers,
// and with them its plan, turn out to be.

// Parts of the gradients of weight and bias: one of each unit, of which there is a block or a few
// per multiprocessor, or as many fewer as a row has slices. Rows that start otherwise between
// multiples of 16 bytes add at most a pack's elements (NormWideRows).
inline int64_t MostNormParts(int64_t rows, int64_t cols, const NormTraits& t,
                             const DeviceLimits& limits) {
  const int64_t packs = PacksOfRow(cols, t), slices = CeilDiv(packs, NormPolicy::kTeamPacks);
  int64_t blocks = slices > 1 ? 1 : BlocksPerMultiprocessor(CeilDiv(packs, t.many), rows, limits);
  const bool narrow = packs <= 32 * NormPolicy::kNarrowPacks;
  if (narrow && blocks < NormPolicy::kNarrowBlocks) blocks = NormPolicy::kNarrowBlocks;
  const bool columns = cols <= NormColumnsPolicy::MaxCols(t.pack);
  if (columns && blocks < NormColumnsPolicy::kMostBlocks) blocks = NormColumnsPolicy::kMostBlocks;
  const int64_t units = blocks * limits.multiprocessors / slices;
  return (units < 1 ? 1 : units < rows ? units : rows) + t.pack;
}

// Bytes beside them, in which slices exchange their sums.
inline int64_t MostNormSumBytes(const DeviceLimits& limits) {
  return CeilDiv(int64_t{limits.multiprocessors} * NormWidePolicy::kExchangeBytes, 16) * 16;
}

}  // namespace oneflow_lite::cuda
