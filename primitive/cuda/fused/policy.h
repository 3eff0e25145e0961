// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves fused rows of whole packs (fused/whole.cuh), by the measurements in
// docs/lab/37-tuning-fused-rows.md.
#pragma once

#include "primitive/cuda/fused/plan.h"

namespace oneflow_lite::cuda {

struct FusedPolicy {
  static constexpr int64_t kMaxRows = (1 << 27) - 1;  // clusters of 16 blocks in a grid
  static constexpr int kLanePacks = 192;              // of a row that lanes of a warp share
  static constexpr int kLaneThreads = 128;            // of a block whose lanes share rows
  // Packs that 4, 8 and 16 lanes share; doubles, which have more to compute, 8.
  static constexpr int kOfFour = 6, kOfEight = 32, kOfEightDouble = 16, kOfSixteen = 64;
  // Registers of a lane besides values and operands, and where it stays besides the next inputs;
  // blocks of so many of a multiprocessor.
  static constexpr int kLaneRegisters = 28, kNormRegisters = 36, kStayingRegisters = 52;
  static constexpr int kBlockRegisters = 512, kMostLaneBlocks = 10;
  static constexpr int kEarlyBytes = 32;        // of a pack's operands that wait in registers
  static constexpr int kThreads = 512;          // of another block, at most ...
  static constexpr int kBlocks = 2;             // ... of which a multiprocessor holds two
  static constexpr int kClusterThreads = 256;   // of a block of a cluster, while 16 are enough
  static constexpr int kHeldPacks = 4;          // per thread, of rows in single blocks ...
  static constexpr int kAloneBytes = 32 << 10;  // ... whose values take so many bytes at most,
  static constexpr int kAloneThreads = 1152;    // ... in so many threads of a multiprocessor
  static constexpr int kHeldBytes = 128;        // of a thread's values elsewhere: 32 registers
  static constexpr int kSharePacks = 512;       // beyond them PlanShares serves costly values,
  static constexpr int kOneSharePacks = 1024;   // up to these in one block
  static constexpr int kFewPacks = 2;           // where rows are so few that latency counts
  static constexpr int kFewRowPacks = 256;      // a block's part of few rows, at least
  static constexpr int kBusyPacks = 1024;       // for each multiprocessor: few rows are less
  // float32: threads of a multiprocessor that have registers for 8 packs of one input and of
  // several, for 15, for 16, and for 16 of several.
  static constexpr int kThreadsOfValues = 1024, kThreadsOfSeveral = 768;
  static constexpr int kMediumPacks = 15, kThreadsOfMedium = 672, kThreadsOfLong = 576;
  static constexpr int kThreadsOfLongSeveral = 512;
};

// Packs of a row that plan->lanes lanes share. `extra_bytes` are those of a lane's elements outside
// packs, and of their operands.
inline void PlanLanes(int64_t packs, const HeldTraits& t, int extra_bytes,
                      const DeviceLimits& limits, HeldPlan* plan) {
  using P = FusedPolicy;
  plan->threads = P::kLaneThreads;
  plan->packs = static_cast<int>(CeilDiv(packs, plan->lanes));
  plan->full = plan->lanes * plan->packs == packs;
  const int operands = t.common_bytes + t.late_bytes;
  const int early = operands < P::kEarlyBytes ? operands : P::kEarlyBytes;
  const int bytes = t.value_bytes + (plan->stays ? kFusedPackBytes : early);
  const int others = t.is_norm ? P::kNormRegisters : P::kLaneRegisters;
  const int registers =
      (plan->stays ? P::kStayingRegisters : others) + (plan->packs * bytes + extra_bytes) / 4;
  int64_t resident = Min(P::kBlockRegisters / registers, P::kMostLaneBlocks);
  const int room =
      limits.shared_per_multiprocessor / (plan->SharedBytes(operands) + kReservedSharedBytes);
  if (plan->stays) resident = Min(resident, room);
  plan->resident = static_cast<int>(Max(resident, 1));
}
inline int LanesOf(int64_t packs, bool is_double) {
  using P = FusedPolicy;
  if (packs <= P::kOfFour) return 4;
  if (packs <= (is_double ? P::kOfEightDouble : P::kOfEight)) return 8;
  return packs <= P::kOfSixteen ? 16 : 32;
}

// Whether values are computed at every visit. A costly Store wants the last one for itself, but
// clusters do better without values in shared memory beside operands, and where there is nothing
// else to compute at the last visit, in log_softmax.
inline bool IsLean(int64_t packs, const HeldTraits& t) {
  if (!t.stores_costly || t.is_odd) return t.is_lean;
  const bool stays = packs <= FusedPolicy::kOneSharePacks || t.is_norm ||
                     (!t.is_log && t.common_bytes + t.late_bytes == 0);
  return t.is_lean && !stays;
}

// 16-bit elements, of which fewer fit as values.
inline bool IsShort(const HeldTraits& t) {
  return FusedPolicy::kHeldBytes / t.value_bytes < FusedWidePolicy::kPacks;
}

// Whether one block holds the row's values. A norm's fit up to twice the bytes where they are
// costly, and in float16 beside an operand where they fill the block. Elsewhere wide rows do
// better.
inline bool IsAlone(int64_t packs, const HeldTraits& t) {
  using P = FusedPolicy;
  const bool is_share = IsShort(t) && !t.is_lean && !t.is_odd && packs > P::kSharePacks;
  if (t.is_double || is_share) return false;
  const int64_t bytes = packs * t.value_bytes;
  const int operands = t.common_bytes + t.late_bytes;
  const bool fills = IsShort(t) && operands > 0 && bytes == 2 * P::kAloneBytes;
  const bool pairs = t.is_lean && IsOfPairs(operands);
  const bool twice = t.is_norm && (IsShort(t) || t.is_odd) && !pairs && (!t.is_lean || fills);
  return bytes <= (twice ? 2 : 1) * P::kAloneBytes;
}

// Threads of a multiprocessor that have registers for so many packs of float32, and for several
// inputs before they are one value. Doubles' exponentials take as many.
inline int ThreadsOfValues(int packs, const HeldTraits& t) {
  using P = FusedPolicy;
  const bool is_long = packs > P::kHeldBytes / t.value_bytes;
  if (!t.is_single || t.is_double) return is_long ? P::kThreadsOfLongSeveral : P::kThreadsOfSeveral;
  if (!is_long) return P::kThreadsOfValues;
  return packs <= P::kMediumPacks ? P::kThreadsOfMedium : P::kThreadsOfLong;
}

// False: the rows do not fit.
inline bool PlanHeldRows(int64_t rows, int64_t packs, const HeldTraits& traits,
                         const DeviceLimits& limits, HeldPlan* plan) {
  using P = FusedPolicy;
  HeldTraits t = traits;
  t.is_lean = IsLean(packs, traits);
  *plan = HeldPlan();
  if (t.is_double) plan->part_bytes *= 2;
  if (rows > P::kMaxRows) return false;
  if (packs <= P::kLanePacks) {
    plan->lanes = LanesOf(packs, t.is_double);
    PlanLanes(packs, t, 0, limits, plan);
    return true;
  }
  // The fewest blocks of so many threads with so many packs each, if they are enough.
  const auto in_blocks = [&](int each, int threads, auto&& enough) {
    ShareOut(packs, LeastBlocks(t.most_blocks, enough), each, plan);
    return plan->threads <= threads;
  };
  const auto room = [&](int each, int threads) {
    return [=](int64_t blocks) { return packs <= blocks * each * threads; };
  };
  // Few rows get more blocks each, as long as that keeps a block busy.
  if (rows * packs <= int64_t{limits.multiprocessors} * P::kBusyPacks * P::kFewPacks) {
    const auto fills = [&](int64_t blocks) {
      return packs <= blocks * P::kFewPacks * P::kThreads &&
             (rows * blocks >= 2 * limits.multiprocessors || packs <= blocks * P::kFewRowPacks);
    };
    if (in_blocks(P::kFewPacks, P::kThreads, fills)) {
      SetResident(P::kThreads * P::kBlocks, 0, limits, plan);
      return true;
    }
  }
  const int operands = t.common_bytes + t.late_bytes;
  const int most = P::kHeldBytes / t.value_bytes;  // packs of values per thread
  if (IsAlone(packs, t)) {
    if (!in_blocks(P::kHeldPacks, P::kThreads, room(P::kHeldPacks, P::kThreads))) return false;
    // By steps that are known, which takes fewer instructions and registers.
    const bool is_plain = t.is_lean && operands <= kFusedPackBytes;
    SetResident(is_plain ? P::kAloneThreads : P::kThreads * P::kBlocks, 0, limits, plan);
    return true;
  }
  const bool wide = IsShort(t) || operands > 0 || !t.is_odd;
  if (t.is_lean && wide && t.common_bytes <= FusedWidePolicy::kMostBytes) {
    // Odd rows have been asked for pairs before (PlanOddRows).
    if (!t.is_odd && PlanPairs(packs, t, limits, plan, false)) return true;
    if (PlanWideRows(packs, t, limits, plan)) return true;
    *plan = HeldPlan();
  }
  if (IsShort(t) && !t.is_odd) return PlanShares(packs, t, limits, plan);
  if (!in_blocks(most, P::kClusterThreads, room(most, P::kClusterThreads))) {
    // There are registers for more packs rather than for more threads, but of odd rows.
    const bool is_long = t.is_double || !t.is_odd;
    const int each = is_long ? 2 * most : most;
    const int threads = is_long ? P::kClusterThreads : P::kThreads;
    if (!in_blocks(each, threads, room(each, threads))) return false;
  }
  SetResident(ThreadsOfValues(plan->packs, t), 0, limits, plan);
  return true;
}

}  // namespace oneflow_lite::cuda
