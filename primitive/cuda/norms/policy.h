// SPDX-License-Identifier: Apache-2.0
//
// How teams of the norms' backward are laid out, by the numbers of norms/plan.h.
// norms/backward/README.md says what a team is, which kernel serves which rows, and where the
// others' numbers are.
//
// Rows that are not known to be aligned have whole packs too, and up to 14 columns outside of them,
// one a thread: their teams have 16 lanes at least (float32 8, float64 2).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/norms/plan.h"

namespace oneflow_lite::cuda {

// Blocks of narrow rows: their threads, and how many of them a multiprocessor has registers for.
struct NarrowShape {
  int threads, blocks;
};
// kinds: of gradients per column. As many threads as do not spill; one pack is for rms_norm
// (docs/lab/14-norm-backward-narrow-rows.md).
constexpr NarrowShape ShapeOfNarrow(size_t element_bytes, int packs, int kinds) {
  if (packs == 1) return {256, 4};
  if (element_bytes == 2) return kinds == 2 ? NarrowShape{256, 2} : NarrowShape{320, 2};
  return kinds == 2 ? NarrowShape{320, 2} : NarrowShape{256, 3};
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
  plan->units = Min(plan->units, CeilDiv(rows, plan->teams()));
  // At the end the warps' parts, which are less than a device has.
  plan->shared = t.scratch_bytes + plan->threads / 32 * packs * t.pack * t.kinds * t.compute_bytes;
  return true;
}

// Shared memory of the lean kernel's teams for barrier objects and sums.
constexpr int LeanScratchBytes(int teams) {
  return (teams * (NormPolicy::kLeanBarrierBytes + NormPolicy::kLeanSumBytes) + 127) / 128 * 128;
}

// Bytes of shared memory in which a thread of the lean kernel keeps a pack of weight, and of bias
// where rows are the forward's output; 0: they are in registers.
constexpr int LeanKeptBytes(int pack, int packs, int kinds, int weight_bytes, bool from_output) {
  const bool held = pack * packs <= 16 && !(from_output && weight_bytes == 4);
  return kinds == 1 || held ? 0 : pack * weight_bytes * (from_output ? 2 : 1);
}

// Whether the lean kernel copies the gradient of a sum to shared memory like x and dy, else reads
// it when dx is stored: registers of four packs a thread have no room for both ways.
constexpr bool LeanCopiesSum(int packs, int element_bytes, int weight_bytes, bool from_output) {
  return packs < 4 || from_output || weight_bytes > element_bytes;
}

// False: the rows are not for the lean kernel.
inline bool PlanLean(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                     NormPlan* plan) {
  using P = NormPolicy;
  if (!t.ServedByLean(limits) || packs > 4 * P::kThreads || rows > INT32_MAX / 2 ||
      (t.from_output && packs <= 32 * P::kNarrowPacks)) {
    return false;
  }
  *plan = NormPlan();
  plan->lean = true;
  plan->packs = t.many;
  if (t.many == 2) {
    // 16-bit elements: three packs where two leave many threads idle: a warp for two, and two teams
    // for one of at most ten warps (docs/lab/14-norm-backward-narrow-rows.md).
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
  const int kept = LeanKeptBytes(t.pack, plan->packs, t.kinds, t.weight_bytes, t.from_output);
  const int64_t fixed = LeanScratchBytes(plan->teams()) + slots * kept;
  plan->slack = t.lines ? 0 : 128;
  const bool copies = LeanCopiesSum(plan->packs, 16 / t.pack, t.weight_bytes, t.from_output);
  const int64_t tensors = copies ? t.tensors : 2;
  const int64_t stage = tensors * (slots * 16 + int64_t{plan->teams()} * plan->slack);
  const int64_t parts = t.kinds * slots * t.pack * t.compute_bytes;
  const int64_t stages = Min((limits.shared_per_block - fixed) / stage, P::kLeanStages);
  plan->stages = static_cast<int>(stages);
  plan->shared = Max(fixed + stages * stage, t.scratch_bytes + parts);
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
      plan.units = Max(limits.multiprocessors / least, 1);
      plan.slices = Max(limits.multiprocessors / plan.units, least);
      ShapeTeam(CeilDiv(packs, plan.slices), t, &plan);
      plan.slices = CeilDiv(packs, int64_t{plan.packs} * plan.team);
      fits = FitStages(t, limits, &plan);
    }
    plan.units = Min(plan.units, rows);
  }
  const int64_t chunks = int64_t{P::kSumBlocks} * limits.multiprocessors / rows;
  const int64_t most_chunks = Min(packs / P::kSumMinPacks, P::kMaxChunks);
  plan.chunks = static_cast<int>(Max(Min(chunks, most_chunks), 1));
  return plan;
}

inline NormPlan PlanTeams(int64_t rows, int64_t packs, const NormTraits& t,
                          const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  // The columns in front of the packs and behind them are a lane's each.
  int lanes = 1;
  while (!t.aligned && lanes < 2 * (t.pack - 1)) lanes *= 2;
  plan.packs = packs <= Max(lanes, P::kFewPacks) ? 1 : t.many;
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
    plan->units = Min(max_clusters(slices), rows);
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

// Rows of whole packs, by a plan whose teams are the same for any number of rows; false where no
// block has room for one.
inline bool PlanAnyRows(int64_t rows, int64_t cols, NormTraits t, const DeviceLimits& limits,
                        NormPlan* plan) {
  const int64_t packs = PacksOfRow(cols, t);
  t.lines = false;  // as rows may lie
  if (!t.aligned || packs > NormPolicy::kBlockPacks ||
      !PlanOnChip(
          NormPolicy::kAnyRows, packs, t, limits, [](int) { return 0; }, plan)) {
    return false;
  }
  plan->units = Min(plan->units, CeilDiv(rows, plan->teams()));
  return true;
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

}  // namespace oneflow_lite::cuda
