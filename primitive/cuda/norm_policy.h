// SPDX-License-Identifier: Apache-2.0
//
// How the norms' backward is laid out: the one table of numbers behind its dispatch. Where few
// bytes are moved, norm_few_policy.h has another; for wide rows, whole packs or not, where there
// are clusters, norm_wide_policy.h. A forward over whole packs is norm_whole_policy.h's.
//
// Blocks stay for the whole launch, one per multiprocessor, and consist of teams. A team owns some
// columns and visits row after row, so that weights stay on chip and their gradients gather in
// registers. What a team is depends on the row's packs of 16 bytes:
//
//   packs                       team                         packs per thread
//   of rows of whole packs, of up to 4-byte elements (norm_backward_narrow.cuh):
//   up to 32 * kNarrowPacks     1 to 32 lanes                kNarrowPacks; 1 of 16-bit rms_norm
//   of such rows (norm_backward_lean.cuh):
//   up to kThreads * 4          1 to 16 warps                many to 4
//   of others:
//   up to kFewPacks             1 to kFewPacks lanes         1
//   up to kThreads * many       1 lane to 16 warps           many: 16 columns' worth, at most 4
//   up to kBlockPacks           16 warps                     4
//   up to kBlockPacks * 16      a cluster of 2 to 16 blocks  many or 4, where there are clusters
//   more                        slices of 16 warps, which know the row's sums from a first kernel
//
// Rows that are not known to be aligned have whole packs too, and up to 14 columns outside of them,
// one a thread: their teams have 16 lanes at least (float32 8, float64 2).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/device_limits.h"

namespace oneflow_lite {
namespace cuda {

struct NormPolicy {
  static constexpr int kFewPacks = 4;
  static constexpr int kFewThreads = 640;   // of a block; at most 96 registers
  static constexpr int kThreads = 512;      // of other blocks; at most 128 registers
  static constexpr int kBlockPacks = 2048;  // of a block's share of a row
  static constexpr int kMaxWarps = 20;      // of a block
  static constexpr int kMaxStages = 4;      // rows on their way to a team, or at work
  static constexpr int kMaxCluster = 16;
  static constexpr int kFewRows = 8;            // too few for a pipeline: small slices instead
  static constexpr int kSliceThreads = 256;     // of these
  static constexpr int kSlicedMinPacks = 4096;  // few rows are cut into slices from here
  static constexpr int kSumThreads = 256;       // of the kernel that sums very wide rows
  static constexpr int kSumBlocks = 4;          // of these per multiprocessor
  static constexpr int kSumUnroll = 2;          // packs of x and of dy in flight per thread
  static constexpr int kSumMinPacks = 1024;     // worth a block
  static constexpr int kMaxChunks = 1024;
  static constexpr int kReduceLanes = 16;  // of 16 bytes, of a block that adds up the parts
  static constexpr int kReduceWays = 64;
  static constexpr int kReduceUnroll = 3;  // parts on their way to a thread
  static constexpr int kLeanStages = 3;    // with eight a launch's first row is late by 2 us
  static constexpr int kLeanWarps = 16;    // of a team, at most
  static constexpr int kNarrowPacks = 2;   // of a lane of narrow rows, at most
  static constexpr int kNarrowBlocks = 4;  // of these per multiprocessor, at most
  static constexpr int kLeanBarrierBytes = 8 * kLeanStages;     // of a team
  static constexpr int kLeanSumBytes = 2 * 4 * kLeanWarps * 4;  // the same
  static constexpr int kCorrectColumns = 32;                    // see NormFewCorrectKernel
  static constexpr int kCorrectWays = 16;
};

// What of a kernel of teams its plan depends on.
struct NormTraits {
  int many = 4;           // packs per thread that make good use of registers
  int pack = 1;           // elements in 16 bytes
  int compute_bytes = 4;  // size of the compute type
  int weights = 0;        // weights and biases kept in shared memory ...
  int few_weights = 0;    // ... with a single pack per thread
  int kinds = 0;          // gradients that gather per column: of weight and bias, or weight alone
  int scratch_bytes = 0;  // shared memory needed besides
  bool aligned = false;   // every row of every tensor starts at a multiple of 16 bytes
  bool lines = false;     // ... of 128 bytes, which bulk copies like
  bool narrow = false;    // the kernel for narrow rows (norm_backward_narrow.cuh) serves such rows,
  bool lean = false;      // the lean kernel (norm_backward_lean.cuh) wider ones
  bool packs_weight = false;  // may keep the weight as it is in memory, for four packs
  // Whether it serves them on this device: it needs bulk copies.
  constexpr bool ServedByLean(const DeviceLimits& limits) const {
    return lean && aligned && limits.clusters;
  }
  int period = 1;  // rows after which all tensors' lie alike again
};

struct NormPlan {
  int packs = 1;         // per thread
  int team = 32;         // threads of a team
  int threads = 0;       // of a block: a whole number of teams
  int64_t slices = 1;    // blocks that share a row
  bool cluster = false;  // ... as a cluster; else they read the row's sums
  bool narrow = false;   // of the kernel for narrow rows
  bool lean = false;     // of the lean kernel
  int stages = 0;        // of the ring
  int slack = 0;         // bytes of a tensor's row in a stage beside those of its packs
  bool packed_weight = false;
  int64_t units = 1;   // blocks, clusters or rows of slices, which share out the rows
  int chunks = 1;      // parts of a row's sums, where they are computed beforehand
  int64_t shared = 0;  // bytes of dynamic shared memory

  int teams() const { return threads / team; }
  bool knows_sums() const { return slices > 1 && !cluster; }
};

// Gives the plan as many stages as fit; false if that is fewer than two.
inline bool FitStages(const NormTraits& t, const DeviceLimits& limits, NormPlan* plan,
                      int64_t most = NormPolicy::kMaxStages) {
  const int64_t slots = int64_t{plan->packs} * plan->threads;
  const int64_t kept = slots * t.pack * t.compute_bytes;  // a weight or bias per column
  plan->packed_weight = t.packs_weight && plan->packs == 4;
  const int64_t fixed =
      t.scratch_bytes +
      (plan->packed_weight ? slots * 16 : kept * (plan->packs > 1 ? t.weights : t.few_weights));
  // Bulk copies keep to the lines of memory; otherwise a row that is not aligned may have a word of
  // 16 bytes more than packs.
  plan->slack = plan->team > 32 ? (t.lines ? 0 : 128) : (t.aligned ? 0 : 16);
  const int64_t stage = 2 * (slots * 16 + int64_t{plan->teams()} * plan->slack);
  int64_t stages = (limits.shared_per_block - fixed) / stage;
  if (stages > most) stages = most;
  plan->stages = static_cast<int>(stages);
  plan->shared = fixed + stages * stage;
  // In the end, the same memory adds up the teams' gradients.
  const int64_t regions = plan->team < 32 ? plan->threads / 32 : plan->teams();
  const int64_t extras = t.aligned ? 0 : 2 * (t.pack - 1) * regions;
  const int64_t parts = t.scratch_bytes + t.kinds * (kept + extras * t.compute_bytes);
  if (parts > plan->shared) plan->shared = parts;
  return stages >= 2 && plan->shared <= limits.shared_per_block;
}

// Blocks of narrow rows: their threads, and how many of them a multiprocessor has registers for.
struct NarrowShape {
  int threads, blocks;
};
// kinds: of gradients per column. One pack is for rms_norm (half at 49152 x 256 24 us, two 25);
// layer_norm has 27 us with one, 25 with two. Without spilling; half layer_norm with two packs and
// 96 registers takes 65 us for 45 at 49152 x 512. A block of all these threads is 1 to 2 % slower,
// as are more blocks than fit by 5 to 10 %; rows by cp.async through rings of each thread's own by
// 3 to 8 %.
constexpr NarrowShape ShapeOfNarrow(size_t element_bytes, int packs, int kinds) {
  if (packs == 1) return {256, 4};
  if (element_bytes == 2) return kinds == 2 ? NarrowShape{256, 2} : NarrowShape{320, 2};
  return kinds == 2 ? NarrowShape{320, 2} : NarrowShape{256, 3};
}
// Threads that another block may have.
constexpr int MostNormThreads(int packs, bool aligned) {
  return packs == 1 && aligned ? NormPolicy::kFewThreads : NormPolicy::kThreads;
}

// Threads of as many teams as a block has room for.
inline int ThreadsOfTeams(int64_t team) {
  return static_cast<int>(NormPolicy::kThreads / team * team);
}

// Teams of whole warps for `packs` packs, with the packs per thread that leave fewer threads idle.
inline void ShapeTeam(int64_t packs, const NormTraits& t, NormPlan* plan) {
  const int64_t by_many = 32 * CeilDiv(packs, 32 * t.many), by_four = 32 * CeilDiv(packs, 32 * 4);
  const bool four =
      by_many > NormPolicy::kThreads || 3 * ThreadsOfTeams(by_four) > 4 * ThreadsOfTeams(by_many);
  plan->packs = four ? 4 : t.many;
  plan->team = static_cast<int>(four ? by_four : by_many);
  plan->threads = plan->team;
}

// Fewer teams per block where there are not rows enough for all; and the blocks.
inline void FillDevice(int64_t rows, const DeviceLimits& limits, NormPlan* plan) {
  const int64_t teams = CeilDiv(rows, limits.multiprocessors);
  if (teams < plan->teams()) {
    const int64_t whole = plan->team > 32 ? plan->team : 32;
    plan->threads = static_cast<int>(CeilDiv(teams * plan->team, whole) * whole);
  }
  plan->units = CeilDiv(rows, plan->teams());
  if (plan->units > limits.multiprocessors) plan->units = limits.multiprocessors;
}

// False: the rows are not for the kernel for narrow rows.
inline bool PlanNarrow(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                       NormPlan* plan) {
  using P = NormPolicy;
  if (!t.narrow || !t.aligned || packs > 32 * P::kNarrowPacks) return false;
  *plan = NormPlan();
  plan->narrow = true;
  plan->packs = t.many == 2 && t.kinds == 1 && packs <= 32 ? 1 : P::kNarrowPacks;
  plan->team = 1;
  while (plan->team * plan->packs < packs) plan->team *= 2;
  const NarrowShape shape = ShapeOfNarrow(16 / t.pack, plan->packs, t.kinds);
  // No more warps than come to as many rows as the others.
  plan->units = int64_t{shape.blocks} * limits.multiprocessors;
  const int64_t rows_each = CeilDiv(rows, plan->units);
  const int64_t turns = CeilDiv(rows_each, shape.threads / plan->team);
  plan->threads = static_cast<int>(CeilDiv(CeilDiv(rows_each, turns) * plan->team, 32) * 32);
  const int64_t blocks = CeilDiv(rows, plan->teams());
  if (plan->units > blocks) plan->units = blocks;
  // At the end the warps' parts, which are less than a device has.
  plan->shared = t.scratch_bytes + plan->threads / 32 * packs * t.pack * t.kinds * t.compute_bytes;
  return true;
}

// Shared memory of the lean kernel's teams for barrier objects and sums.
constexpr int LeanScratchBytes(int teams) {
  return (teams * (NormPolicy::kLeanBarrierBytes + NormPolicy::kLeanSumBytes) + 127) / 128 * 128;
}

// False: the rows are not for the lean kernel.
inline bool PlanLean(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                     NormPlan* plan) {
  using P = NormPolicy;
  if (!t.ServedByLean(limits) || packs > 4 * P::kThreads || rows > INT32_MAX / 2) return false;
  *plan = NormPlan();
  plan->lean = true;
  plan->packs = t.many;
  if (t.many == 2) {
    // 16-bit elements: three packs where two leave many threads idle: a warp for two, and two teams
    // for one of at most ten warps. (Half layer_norm takes 62 us for 68 at 49152 x 768, 116 for 142
    // at 16384 x 4608; rms_norm 113 for 131 there, but 154 for 145 at 16384 x 6144.)
    if (packs > 3 * P::kThreads) {
      plan->packs = 4;
    } else if (packs > 2 * P::kThreads || packs <= 3 * 32 ||
               (packs > P::kThreads && packs <= 2 * 320)) {
      plan->packs = 3;
    }
  }
  plan->team = static_cast<int>(32 * CeilDiv(packs, 32 * plan->packs));
  plan->threads = ThreadsOfTeams(plan->team);
  FillDevice(rows, limits, plan);
  const int64_t slots = int64_t{plan->packs} * plan->threads;
  const int64_t weights = t.kinds == 2 && plan->packs * t.pack > 16 ? slots * 16 : 0;
  const int64_t fixed = LeanScratchBytes(plan->teams()) + weights;
  plan->slack = t.lines ? 0 : 128;
  const int64_t stage = 2 * (slots * 16 + int64_t{plan->teams()} * plan->slack);
  const int64_t parts = t.kinds * slots * t.pack * t.compute_bytes;
  int64_t stages = (limits.shared_per_block - fixed) / stage;
  if (stages > P::kLeanStages) stages = P::kLeanStages;
  plan->stages = static_cast<int>(stages);
  plan->shared = fixed + stages * stage;
  if (plan->shared < t.scratch_bytes + parts) plan->shared = t.scratch_bytes + parts;
  return stages >= 2 && plan->shared <= limits.shared_per_block;
}

// Rows in slices whose sums a kernel computes beforehand.
inline NormPlan PlanSlices(int64_t rows, int64_t packs, const NormTraits& t,
                           const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  if (rows <= P::kFewRows) {
    plan.packs = 1;
    plan.team = plan.threads = P::kSliceThreads;
    plan.slices = CeilDiv(packs, P::kSliceThreads);
    FitStages(t, limits, &plan, 2);
  } else {
    int64_t least = CeilDiv(packs, P::kBlockPacks);
    for (bool fits = false; !fits; least += 1 + least / 64) {  // the widest by larger steps
      // As many slices as leave no multiprocessor idle.
      plan.units = limits.multiprocessors / least;
      if (plan.units < 1) plan.units = 1;
      plan.slices = limits.multiprocessors / plan.units;
      if (plan.slices < least) plan.slices = least;
      ShapeTeam(CeilDiv(packs, plan.slices), t, &plan);
      plan.slices = CeilDiv(packs, int64_t{plan.packs} * plan.team);
      fits = FitStages(t, limits, &plan);
    }
    if (plan.units > rows) plan.units = rows;
  }
  int64_t chunks = int64_t{P::kSumBlocks} * limits.multiprocessors / rows;
  if (chunks > packs / P::kSumMinPacks) chunks = packs / P::kSumMinPacks;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  plan.chunks = static_cast<int>(chunks > 1 ? chunks : 1);
  return plan;
}

inline NormPlan PlanTeams(int64_t rows, int64_t packs, const NormTraits& t,
                          const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  // The columns in front of the packs and behind them are a lane's each.
  int lanes = 1;
  while (!t.aligned && lanes < 2 * (t.pack - 1)) lanes *= 2;
  plan.packs = packs <= (lanes > P::kFewPacks ? lanes : P::kFewPacks) ? 1 : t.many;
  if (packs <= int64_t{32} * plan.packs) {
    plan.team = lanes;
    while (int64_t{plan.team} * plan.packs < packs) plan.team *= 2;
    plan.threads = MostNormThreads(plan.packs, t.aligned);
  } else {
    ShapeTeam(packs, t, &plan);
    plan.threads = ThreadsOfTeams(plan.team);
  }
  FillDevice(rows, limits, &plan);
  return plan;
}

inline int64_t PacksOfRow(int64_t cols, const NormTraits& t) {
  return cols > t.pack ? cols / t.pack : 1;
}

// Rows that stay on chip, in a block or a cluster; false where they do not fit.
// max_clusters(slices) says how many clusters of so many blocks, one per multiprocessor, the device
// holds at once; 0: it has none.
template <class MaxClusters>
bool PlanOnChip(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                const MaxClusters& max_clusters, NormPlan* plan) {
  using P = NormPolicy;
  const int64_t capacity = P::kBlockPacks;
  if (PlanNarrow(rows, packs, t, limits, plan)) return true;
  if (PlanLean(rows, packs, t, limits, plan)) return true;
  if (packs <= capacity) {
    *plan = PlanTeams(rows, packs, t, limits);
    if (FitStages(t, limits, plan)) return true;
  }
  for (int slices = 2; slices <= P::kMaxCluster; slices *= 2) {
    if (packs > capacity * slices) continue;
    *plan = NormPlan();
    plan->slices = slices;
    plan->cluster = true;
    ShapeTeam(CeilDiv(packs, slices), t, plan);
    if (!FitStages(t, limits, plan)) continue;
    plan->units = max_clusters(slices);
    if (plan->units > rows) plan->units = rows;
    if (plan->units > 0) return true;
  }
  return false;
}

// A team's rows must all lie alike between multiples of 16 bytes.
inline void AlignUnits(int64_t rows, const NormTraits& t, NormPlan* plan) {
  const int64_t teams = plan->units * plan->teams();
  if (teams >= rows || teams % t.period == 0) return;
  plan->units = plan->units > t.period ? plan->units / t.period * t.period : t.period;
}

template <class MaxClusters>
NormPlan PlanNormBackward(int64_t rows, int64_t cols, const NormTraits& t,
                          const DeviceLimits& limits, const MaxClusters& max_clusters) {
  using P = NormPolicy;
  const int64_t packs = PacksOfRow(cols, t);
  const bool few = packs >= P::kSlicedMinPacks && rows <= P::kFewRows;
  NormPlan plan;
  if (few || !PlanOnChip(rows, packs, t, limits, max_clusters, &plan)) {
    plan = PlanSlices(rows, packs, t, limits);
  }
  AlignUnits(rows, t, &plan);
  return plan;
}

}  // namespace cuda
}  // namespace oneflow_lite
