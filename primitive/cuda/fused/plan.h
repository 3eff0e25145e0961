// SPDX-License-Identifier: Apache-2.0
//
// What the choice of a kernel for fused rows depends on, and what it comes to (fused/policy.h).
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

inline constexpr int kFusedPackBytes = 16;
inline constexpr int kFusedPartBytes = 16;    // that each warp sends (HeldRow::Part)
inline constexpr int kFusedParkedBytes = 32;  // of 8 values that wait in shared memory
// Of operands in shared memory: copies want to begin at a multiple of 128 bytes, or they read twice
// as many.
inline constexpr int kFusedSharedAlignment = 128;

// What of a fusion the choice depends on.
struct HeldTraits {
  int value_bytes;   // of a pack, in the type computed in
  bool is_lean;      // of what a row has of its own one input is read, and the values are cheap to
                     // compute at every visit
  bool is_norm;      // else exponentials are computed at both visits
  int most_blocks;   // of a cluster
  int common_bytes;  // of shared memory that a pack of the operands takes that serve all rows
  int late_bytes = 0;  // the same of those that only Store reads, where they are not counted above
  bool is_double = false;
  bool is_odd = false;         // of packs beside a row's ends: the kernels named Odd
  bool is_single = true;       // of what a row has of its own one input is read, costly or not
  bool is_centred = false;     // a norm about the mean
  bool is_log = false;         // no exponentials are computed at the last visit
  bool stores_costly = false;  // what Store computes is costly
};

struct HeldPlan {
  int lanes = 0;       // that share a row; 0: a block does, or several
  bool stays = false;  // whether groups of lanes work row after row (fused/lanes.cuh)
  int packs = 0;       // per thread, at most
  int threads = 0;     // of a block
  int blocks = 1;      // that share a row
  bool full = false;   // whether every thread has all its packs
  bool wide = false;   // whether the inputs stay as they are (fused/wide.cuh), else the values
  int kept = 0;        // wide: packs per thread whose operands stay in registers
  int parked = 0;      // else: packs whose values are in shared memory
  int resident = 0;    // blocks that a multiprocessor has registers and shared memory for
  int rows = 1;        // at once: 2 are wide, and the operands of both in shared memory
  int part_bytes = kFusedPartBytes;

  // Of dynamic shared memory; common_bytes as in HeldTraits.
  int SharedBytes(int common_bytes) const {
    if (lanes > 0) return stays ? packs * threads * common_bytes : 0;
    if (!wide && parked == 0) return ExchangedBytes();
    const int aligned = static_cast<int>(CeilDiv(ExchangedBytes(), kFusedSharedAlignment));
    const int beside = wide ? (packs - kept) * common_bytes : parked * kFusedParkedBytes;
    return aligned * kFusedSharedAlignment + beside * threads;
  }
  // Of groups of lanes. If they stay, as many as are resident, with as many rows each; of odd rows
  // every alike'th lies alike, and the groups are a multiple of that.
  int64_t LaneBlocks(int64_t row_count, int alike, const DeviceLimits& limits) const {
    const int64_t groups = threads / lanes;  // of a block
    if (!stays) return CeilDiv(row_count, groups);
    const int64_t turns = CeilDiv(row_count, limits.multiprocessors * resident * groups);
    const int64_t step = alike > groups ? alike / groups : 1;
    return CeilDiv(CeilDiv(row_count, turns * groups), step) * step;
  }
  // Of all rows, of which each works on so many at once; of odd ones every alike'th lies alike.
  int64_t Clusters(int64_t row_count, int alike) const {
    const int64_t together = int64_t{alike} * rows;
    return row_count / together * alike + Min(row_count % together, alike);
  }
  // A barrier, and what the warps exchange.
  int ExchangedBytes() const { return 16 + part_bytes * rows * blocks * threads / 32; }
};

// Blocks of the fewest threads with so many packs each.
inline void ShareOut(int64_t packs, int blocks, int each, HeldPlan* plan) {
  plan->blocks = blocks;
  plan->threads = static_cast<int>(CeilDiv(packs, int64_t{blocks} * each * 32)) * 32;
  const int64_t size = int64_t{blocks} * plan->threads;
  plan->packs = static_cast<int>(CeilDiv(packs, size));
  plan->full = size * plan->packs == packs;
}

// As many blocks as registers leave room for, of so many threads in all, and shared memory.
inline void SetResident(int most_threads, int common_bytes, const DeviceLimits& limits,
                        HeldPlan* plan) {
  const int room =
      limits.shared_per_multiprocessor / (plan->SharedBytes(common_bytes) + kReservedSharedBytes);
  plan->resident = most_threads / plan->threads;
  if (plan->resident > room) plan->resident = room > 0 ? room : 1;
}

// Which kernel serves fused rows that are too wide for values in the registers of one block
// (fused/wide.cuh, fused/pair.cuh), by the measurements in docs/lab/37-tuning-fused-rows.md.

struct FusedWidePolicy {
  static constexpr int kPacks = 8, kThreads = 128;           // of a thread, of a block ...
  static constexpr int kBlocks = 8;                          // ... of a cluster, or twice as many
  static constexpr int kLargeThreads = 256;                  // of a block where 128 are not enough
  static constexpr int kLongPacks = 16, kLongThreads = 160;  // or these, beside one operand
  static constexpr int kKept = 2;  // packs whose operands stay in registers then
  // Bytes of a pack's operands: at most, and of two operands, for two rows at once.
  static constexpr int kMostBytes = 48, kPairBytes = 32;
  // Threads of a multiprocessor that have registers for 8 packs, for 10, in float32 for 15 beside
  // an operand, for 16 or 8 of values, beside a norm's operand for 14 and for 16; for 8 of values
  // of which half are in shared memory, and in large blocks.
  static constexpr int kMediumPacks = 10, kMediumFloatPacks = 15, kMediumNormPacks = 14;
  static constexpr int kThreadsOfWide = 1024, kThreadsOfMedium = 768, kThreadsOfMediumFloat = 672;
  static constexpr int kThreadsOfLong = 640, kThreadsOfLongNorm = 576, kThreadsOfLongestNorm = 512;
  static constexpr int kThreadsOfParked = 896, kThreadsOfLargeParked = 1024;
};

// Threads of a multiprocessor that have registers for so many packs each, more than 8, and leave
// loads enough of the L1, of which shared memory takes 164 KB or 196.
inline int ThreadsOfLong(const HeldPlan& plan, const HeldTraits& t) {
  using P = FusedWidePolicy;
  const bool is_beside = t.common_bytes > 0, is_norm = t.is_norm && !t.is_odd && is_beside;
  if (t.value_bytes == 16) {
    if (!is_beside) return P::kThreadsOfMedium;
    if (plan.packs <= P::kMediumFloatPacks) return P::kThreadsOfMediumFloat;
    return is_norm ? P::kThreadsOfLongNorm : P::kThreadsOfLong;
  }
  if (plan.packs <= P::kMediumPacks) return P::kThreadsOfMedium;
  if (!is_norm || plan.blocks > P::kBlocks) return P::kThreadsOfLong;
  return plan.packs <= P::kMediumNormPacks ? P::kThreadsOfLongNorm : P::kThreadsOfLongestNorm;
}

// Rows too wide for values in registers, of a load that is cheap at two visits; false: still too
// wide.
inline bool PlanWideRows(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                         HeldPlan* plan) {
  using P = FusedWidePolicy;
  plan->wide = true;
  // Of 16 packs: half, and softmax in float32 beside an operand.
  const bool is_float_softmax = !t.is_norm && !t.is_odd && t.common_bytes > 0;
  const bool one_row = t.common_bytes <= 16 && (t.value_bytes == 32 || is_float_softmax);
  const int64_t small = CeilDiv(packs, P::kPacks * P::kThreads);
  int most_threads = P::kThreadsOfWide;
  if (small <= P::kBlocks && small <= t.most_blocks) {
    ShareOut(packs, static_cast<int>(small), P::kPacks, plan);
  } else {
    const int large = P::kPacks * P::kLargeThreads;
    const int most = one_row ? P::kLongPacks * P::kLongThreads : large;  // packs of a block
    const int few = t.most_blocks < P::kBlocks ? t.most_blocks : P::kBlocks;
    const int blocks = few < P::kBlocks || packs <= few * most ? few : 2 * P::kBlocks;
    const int64_t share = CeilDiv(packs, blocks);
    // float32 beside one operand has registers for twice as many in the widest rows.
    const bool of_one = !t.is_odd && t.value_bytes == 16 && t.common_bytes <= 16;
    const bool is_longest = of_one && share > most;
    const int longest = is_longest ? P::kLongPacks * P::kLargeThreads : most;
    if (blocks > t.most_blocks || share > longest) return false;
    const bool fills = share > large - P::kLargeThreads && share <= large;
    const bool is_large = fills && (t.is_norm || t.is_odd);  // else 16 packs do better
    const bool is_long = is_longest || (one_row && !is_large);
    ShareOut(packs, blocks, is_long ? P::kLongPacks : P::kPacks, plan);
    if (plan->packs > P::kPacks) {
      most_threads = ThreadsOfLong(*plan, t);
      plan->kept = P::kKept;
    }
  }
  // In 64 registers norms spill.
  const bool is_beside = t.is_norm && !t.is_odd && t.common_bytes > 0;
  const bool is_large_rms = !t.is_centred && plan->threads > P::kThreads;
  const bool is_spilled = is_beside && (t.value_bytes == 16 || is_large_rms);
  if (is_spilled && most_threads == P::kThreadsOfWide) most_threads = P::kThreadsOfMedium;
  SetResident(most_threads, t.common_bytes, limits, plan);
  return true;
}

// Whether a pack's operands, of so many bytes, are worth two rows at once.
inline bool IsOfPairs(int bytes) {
  return bytes >= FusedWidePolicy::kPairBytes && bytes <= FusedWidePolicy::kMostBytes;
}

// How two rows at once are held: packs of a thread, threads of a block, and blocks, at most;
// threads of a multiprocessor that have registers for that. is_all: all blocks that there may be,
// not the fewest.
struct PairShape {
  bool is_odd;
  int operands, packs, threads, blocks, resident;
  bool is_all = false;
};
// The first that fits serves (docs/lab/37-tuning-fused-rows.md, 38-tuning-fused-odd-rows.md).
// clang-format off
inline constexpr PairShape kPairShapes[] = {
    {false, 2,  4, 128,  8, 1024},
    {false, 2,  8, 128, 16,  576},
    {false, 2,  8, 256, 16,  576, true},
    {false, 3,  4, 128,  8,  768},
    {false, 3,  4, 256,  8,  768},
    {true,  2,  8, 128, 16,  512},
    {true,  2, 13, 128, 16,  384},
    {true,  2,  8, 256, 16,  512},
    {true,  3,  4, 128,  8,  768},
    {true,  3, 10, 128,  6,  512},
    {true,  3,  4, 128, 16,  768, true},
    {true,  3, 10, 128,  8,  512},
};
// clang-format on

// Two rows at once (fused/pair.cuh), of operands that one row at a time would read too often;
// false: they are not, or too wide.
inline bool PlanPairs(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                      HeldPlan* plan, bool is_odd) {
  const int bytes = t.common_bytes + t.late_bytes;
  if (!IsOfPairs(bytes)) return false;
  const int operands = bytes <= FusedWidePolicy::kPairBytes ? 2 : 3;
  for (const PairShape& s : kPairShapes) {
    const int64_t blocks = Min(s.blocks, t.most_blocks), each = int64_t{s.packs} * s.threads;
    if (s.is_odd != is_odd || s.operands != operands || packs > blocks * each) continue;
    ShareOut(packs, static_cast<int>(s.is_all ? blocks : CeilDiv(packs, each)), s.packs, plan);
    plan->wide = true;
    plan->rows = 2;
    SetResident(s.resident, bytes, limits, plan);
    return true;
  }
  return false;
}

// Values that are computed once, 16-bit ones. Of one input, beside one operand at most and in
// clusters, half of the packs are in shared memory.
inline bool PlanShares(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                       HeldPlan* plan) {
  using P = FusedWidePolicy;
  const int small = P::kPacks * P::kThreads;
  const bool is_large = packs > int64_t{t.most_blocks} * small;
  if (is_large && packs > int64_t{t.most_blocks} * P::kPacks * P::kLargeThreads) return false;
  ShareOut(packs, is_large ? t.most_blocks : static_cast<int>(CeilDiv(packs, small)), P::kPacks,
           plan);
  int most_threads = P::kThreadsOfLong;
  if (t.is_single && t.common_bytes <= kFusedPackBytes && plan->blocks > 1) {
    plan->parked = (plan->packs + 1) / 2;
    most_threads = is_large ? P::kThreadsOfLargeParked : P::kThreadsOfParked;
  }
  SetResident(most_threads, 0, limits, plan);
  return true;
}

}  // namespace oneflow_lite::cuda
