// SPDX-License-Identifier: Apache-2.0
//
// How teams of the norms' backward are laid out, by the numbers of norms/plan.h.
// norms/backward/README.md says what a team is, which kernel serves which rows, and where the
// others' numbers are.
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
  return kinds == 2 || element_bytes == 8 ? NarrowShape{320, 2} : NarrowShape{256, 3};
}
// Rows of up to 32 lanes.
inline NormPlan PlanNarrow(int64_t rows, int64_t packs, const NormTraits& t,
                           const DeviceLimits& limits) {
  using P = NormPolicy;
  NormPlan plan;
  plan.narrow = true;
  plan.packs = t.many == 2 && t.kinds == 1 && packs <= 32 ? 1 : P::kNarrowPacks;
  plan.team = 1;
  while (plan.team * plan.packs < packs) plan.team *= 2;
  const NarrowShape shape = ShapeOfNarrow(16 / t.pack, plan.packs, t.kinds);
  // No more warps than come to as many rows as the others.
  plan.units = int64_t{shape.blocks} * limits.multiprocessors;
  const int64_t rows_each = CeilDiv(rows, plan.units);
  const int64_t turns = CeilDiv(rows_each, shape.threads / plan.team);
  plan.threads = static_cast<int>(CeilDiv(CeilDiv(rows_each, turns) * plan.team, 32) * 32);
  plan.units = Min(plan.units, CeilDiv(rows, plan.teams()));
  // At the end the warps' parts, which are less than a device has.
  plan.shared = t.scratch_bytes + plan.threads / 32 * packs * t.pack * t.kinds * t.compute_bytes;
  return plan;
}

// Shared memory of the lean kernel's teams for barrier objects and sums.
constexpr int LeanScratchBytes(int teams, int compute_bytes) {
  using P = NormPolicy;
  return (teams * (P::kLeanBarrierBytes + P::LeanSumBytes(compute_bytes)) + 127) / 128 * 128;
}

// Bytes of shared memory in which a thread of the lean kernel keeps a pack of weight, and of bias
// where rows are the forward's output; 0: they are in registers, as those of doubles are.
constexpr int LeanKeptBytes(int pack, int packs, int kinds, int weight_bytes, bool from_output) {
  const bool held = pack <= 2 || (pack * packs <= 16 && !(from_output && weight_bytes == 4));
  return kinds == 1 || held ? 0 : pack * weight_bytes * (from_output ? 2 : 1);
}

// Whether the lean kernel copies the gradient of a sum to shared memory like x and dy, else reads
// it when dx is stored: registers of four packs a thread have no room for both ways.
constexpr bool LeanCopiesSum(int packs, int element_bytes, int weight_bytes, bool from_output) {
  return packs < 4 || from_output || weight_bytes > element_bytes;
}

// False: the rows do not fit.
inline bool PlanLean(int64_t rows, int64_t packs, const NormTraits& t, const DeviceLimits& limits,
                     NormPlan* plan) {
  using P = NormPolicy;
  if (packs > P::kTeamPacks || rows > INT32_MAX / 2) return false;
  *plan = NormPlan();
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
  const int64_t fixed = LeanScratchBytes(plan->teams(), t.compute_bytes) + slots * kept;
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

inline int64_t PacksOfRow(int64_t cols, const NormTraits& t) {
  return cols > t.pack ? cols / t.pack : 1;
}

// Rows of whole packs that a block's registers hold; false where they do not.
inline bool PlanTeams(int64_t rows, int64_t cols, const NormTraits& t, const DeviceLimits& limits,
                      NormPlan* plan) {
  const int64_t packs = PacksOfRow(cols, t);
  if (!t.aligned) return false;
  if (packs > 32 * NormPolicy::kNarrowPacks) return PlanLean(rows, packs, t, limits, plan);
  *plan = PlanNarrow(rows, packs, t, limits);
  return true;
}

// The same, by a plan whose teams are the same for any number of rows.
inline bool PlanAnyRows(int64_t rows, int64_t cols, NormTraits t, const DeviceLimits& limits,
                        NormPlan* plan) {
  t.lines = false;  // as rows may lie
  if (!PlanTeams(NormPolicy::kAnyRows, cols, t, limits, plan)) return false;
  plan->units = Min(plan->units, CeilDiv(rows, plan->teams()));
  return true;
}

}  // namespace oneflow_lite::cuda
