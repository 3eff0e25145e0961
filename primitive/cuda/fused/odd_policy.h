// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves fused rows whose ends lie inside packs (fused/wide.cuh), by the measurements
// in docs/lab/38-tuning-fused-odd-rows.md.
#pragma once

#include <stdint.h>

#include "primitive/cuda/fused/policy.h"

namespace oneflow_lite::cuda {

struct FusedOddPolicy {
  static constexpr int kSmallPacks = 12;  // 16-bit rows of so few packs go in packs of 4
  static constexpr int kSmallPack = 4;
  // Groups of lanes stay where a pack's operands, of wider rows than so many packs, are two, and
  // read two from copies of still wider ones.
  static constexpr int kStayingPacks = 16, kCopiedPacks = 64;
  static constexpr int kValueBytes = 16 << 10;  // of a row beside two operands, one at a time
  // Threads of a multiprocessor that have registers for up to 8 packs of values, and softmax's of
  // two operands in blocks of so many threads; for 8 of doubles, and for more.
  static constexpr int kResident = 1024, kResidentOfTwo = 896, kThreadsOfTwo = 256;
  static constexpr int kHeldPacks = 8, kResidentDouble = 768, kResidentLongDouble = 512;
};

struct OddPlan {
  HeldPlan held;        // full says nothing here; kept is 0
  int pack = 0;         // elements, of rows that lanes share
  bool copied = false;  // operands that serve all rows are read from copies (fused/copies.cuh)
};

// Rows that lanes share.
inline void PlanOddLanes(int64_t cols, int pack, const HeldTraits& t, const DeviceLimits& limits,
                         OddPlan* plan) {
  using P = FusedOddPolicy;
  HeldPlan& held = plan->held;
  HeldTraits traits = t;
  plan->pack = pack;
  if (pack > P::kSmallPack && cols / pack <= P::kSmallPacks) {
    plan->pack = P::kSmallPack;
    traits.value_bytes = t.value_bytes * P::kSmallPack / pack;
  }
  const int64_t packs = cols < plan->pack ? 1 : cols / plan->pack;
  held.lanes = LanesOf(packs, t.is_double);
  const int operands = t.common_bytes + t.late_bytes;
  const int each = static_cast<int>(CeilDiv(packs, held.lanes)) * FusedPolicy::kLaneThreads;
  const bool apart =
      operands >= 2 * kFusedPackBytes && cols / pack > P::kStayingPacks && !t.is_double;
  const bool is_wide = operands == 2 * kFusedPackBytes && cols / pack > P::kCopiedPacks;
  held.stays = apart && !is_wide && each * operands <= limits.shared_per_block / 2;
  plan->copied = apart && !held.stays;
  const int extras = static_cast<int>(CeilDiv(2 * (plan->pack - 1), held.lanes));
  const int extra_bytes = t.value_bytes / pack + operands / 4;
  if (plan->copied) {  // one of them waits in registers; norms have no more of these
    traits.common_bytes = kFusedPackBytes;
    traits.late_bytes = 0;
    traits.is_norm = false;
  }
  PlanLanes(packs, traits, extras * extra_bytes, limits, &held);
}

// `pack`: elements in 16 bytes. False: the rows do not fit. They go as those of whole packs do, by
// what is left of them (PlanHeldRows), but without operands in registers, which would be spilled.
inline bool PlanOddRows(int64_t rows, int64_t cols, int pack, const HeldTraits& t,
                        const DeviceLimits& limits, OddPlan* plan) {
  using P = FusedOddPolicy;
  *plan = OddPlan();
  const int64_t packs = cols / pack - 2;  // the columns outside packs have the first and the last
  if (rows > FusedPolicy::kMaxRows) return false;
  if (packs <= FusedPolicy::kLanePacks) {
    PlanOddLanes(cols, pack, t, limits, plan);
    return true;
  }
  plan->copied = true;
  HeldPlan& held = plan->held;
  HeldTraits traits = t;
  traits.is_odd = true;
  const int operands = t.common_bytes + t.late_bytes;
  const bool is_wide =
      operands > FusedWidePolicy::kPairBytes || packs * t.value_bytes > P::kValueBytes;
  if (t.is_lean && is_wide && PlanPairs(packs, t, limits, &held, true)) {
    const int64_t blocks = held.Clusters(rows, pack) * held.blocks;
    if (blocks >= int64_t{limits.multiprocessors} * held.resident) return true;
    traits.is_lean = false;  // of few rows one at a time, as values
  }
  if (!PlanHeldRows(rows, packs, traits, limits, &held)) return false;
  if (held.wide) {
    if (held.kept > 0) {
      const int most_threads = held.resident * held.threads;
      held.kept = 0;
      SetResident(most_threads, t.common_bytes, limits, &held);
    }
    return held.SharedBytes(t.common_bytes) <= limits.shared_per_block;
  }
  int most = t.is_double ? P::kResidentDouble : P::kResident;
  if (t.is_double && held.packs > P::kHeldPacks) most = P::kResidentLongDouble;
  const bool of_two = operands >= 2 * kFusedPackBytes;
  if (of_two && !t.is_norm && !t.is_double && held.threads <= P::kThreadsOfTwo) {
    most = P::kResidentOfTwo;
  }
  held.resident = most / held.threads;
  return held.resident > 0;
}

}  // namespace oneflow_lite::cuda
