// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves fused rows whose ends lie inside packs (fused_odd.cuh), by measurement on an
// H200.
#pragma once

#include <stdint.h>

#include "primitive/cuda/fused_policy.h"

namespace oneflow_lite {
namespace cuda {

struct FusedOddPolicy {
  static constexpr int kSmallPacks = 12;  // 16-bit rows of so few packs go in packs of 4
  static constexpr int kSmallPack = 4;
  // Groups of lanes stay where a pack's operands, of wider rows, are so many bytes; they are blocks
  // of the last so many threads for rows of at most so many packs.
  static constexpr int kStayingBytes = 32, kStayingPacks = 16;
  static constexpr int kBlockLanes = 128, kBlockPacks = 512;
  static constexpr int kMediumPacks = 10, kThreads = 128, kBlocks = 8;  // of inputs, in clusters
  static constexpr int kTwoPacks = 8, kTwoThreads = 160;  // the same beside two operands
  // Two rows at once: packs of a thread, fewer of shorter rows beside three operands, more where
  // that leaves fewer places empty, and of wider ones; threads of a block, and of a large one.
  static constexpr int kPairPacks = 8, kFewPairPacks = 4, kManyPairPacks = 10, kLongPairPacks = 13;
  static constexpr int kPairThreads = 128, kLargePairThreads = 256;
  // Threads of a multiprocessor that have registers for those.
  static constexpr int kResidentPair = 512, kResidentFewPair = 768, kResidentLongPair = 384;
  // Threads of a multiprocessor that have registers for 8 packs, for 10 inputs, and for more; of
  // doubles.
  static constexpr int kHeldPacks = 8;
  static constexpr int kResident = 1024, kResidentMedium = 768, kResidentLong = 640;
  static constexpr int kResidentDouble = 768, kResidentLongDouble = 512;
};

struct OddPlan {
  HeldPlan held;   // full and kept say nothing here
  int pack = 0;    // elements, of rows that lanes share
  int shared = 0;  // bytes
};

// Rows that lanes share. Time over the bare op in half:
//   softmax of x s + b, at 33 and 65 columns 8 lanes with packs of 4 elements 1.03, 1.01, of 8
//     elements 1.11, 1.06; 97 1.06, 1.10; 129, 193 8 lanes 1.03, 1.01, 16 lanes 1.05, 1.03;
//     257, 513 8 or 16 lanes 1.02, 16 lanes 1.01; 1001, 1527 32 lanes 1.03, 1.02
//   operands that wait in shared memory, and that each row reads
//     layer_norm with weights and a row   129 0.92, 0.90; 257 0.84, 0.98; 1001 1.02, 1.54
//     softmax of x r + b                  129 1.18, 1.10; 513 1.07, 1.16; 1001 1.08, 1.33
//   the same in lanes that are a block, of 4097 columns, and as other odd rows
//     layer_norm 1.05, 1.26; rms_norm with its weight and a row 1.07, 1.12; x r + b 1.08, 1.14
//     with 4 blocks for each multiprocessor; with 5 1.3, for x s + b too, which has 1.01 otherwise
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
  const bool is_block = packs > FusedPolicy::kLanePacks + 2;
  held.lanes = is_block ? P::kBlockLanes : LanesOf(packs, t.is_double);
  const int operands = t.common_bytes + t.late_bytes;
  const int each = static_cast<int>(CeilDiv(packs, held.lanes)) * FusedPolicy::kLaneThreads;
  held.stays = operands >= P::kStayingBytes && cols / pack > P::kStayingPacks && !t.is_double &&
               each * operands <= limits.shared_per_block / 2;
  const int extras = static_cast<int>(CeilDiv(2 * (plan->pack - 1), held.lanes));
  const int extra_bytes = t.value_bytes / pack + operands / 4;
  PlanLanes(packs, traits, extras * extra_bytes, limits, &held);
  plan->shared = held.SharedBytes(operands);
}

// Of shared memory: what warps exchange, and the operands as in SharedRows, each of which takes 16
// bytes of a pack or more.
inline int OddSharedBytes(const HeldPlan& held, int common_bytes) {
  const int64_t aligned = CeilDiv(held.ExchangedBytes(), kFusedSharedAlignment);
  const int of_warp = (32 * held.packs + kFusedSharedAlignment / 16) * common_bytes;
  return static_cast<int>(aligned) * kFusedSharedAlignment + held.threads / 32 * of_warp;
}

// Two rows at once (fused_pair.cuh), of operands that one row at a time would read and move into
// place too often; false: they are not, or too few rows. Time over the bare op in half, beside one
// row at once, at
//                                 16385       32001       50257       65537       131073
//   softmax of x r + b            1.05, 1.22  1.12, 1.34  1.17, 1.40  1.11, 1.59  1.22, 1.58
//   rms_norm, weight, x s + b     1.01, 1.21  0.98, 1.14  1.01, 1.37  1.00, 1.23  1.08, 1.55
//   layer_norm, both, x s + b     1.07, 2.01  1.12, 1.53  1.22, 1.73  1.24, 1.61  1.38, 2.01
//   float32, softmax of x r + b   1.00, 1.23  1.02, 1.37              1.08, 1.46
// x r + b at 98305 1.26, 1.56; 151937 1.27, 1.69; 200001 1.34, 1.86; 262145 1.31, 1.95. By other
// shapes: 50257 in 5 blocks of 8 x 160 packs 1.22, 4 of 13 x 128 1.20, 8 of 5 x 160 1.29; 65537 in
// 16 of 4 x 128 1.33; with a block more for each multiprocessor 1.29; layer_norm at 32769 in 4 of
// 8 x 128 1.22.
inline bool PlanOddPairs(int64_t rows, int64_t packs, int pack, const HeldTraits& t,
                         const DeviceLimits& limits, OddPlan* plan) {
  using P = FusedOddPolicy;
  if (!t.is_lean || !IsOfPairs(t.common_bytes)) return false;
  if (packs <= P::kManyPairPacks * P::kPairThreads) return false;  // of one block
  HeldPlan& held = plan->held;
  const auto in_blocks = [&](int each, int threads, int most_blocks, HeldPlan* of) {
    const int64_t blocks = CeilDiv(packs, each * threads);
    if (blocks > most_blocks || blocks > t.most_blocks) return false;
    ShareOut(packs, static_cast<int>(blocks), each, of);
    return true;
  };
  const bool is_three = t.common_bytes > FusedWidePolicy::kPairBytes;
  HeldPlan many = held;
  int most_threads = P::kResidentPair;
  if (is_three && in_blocks(P::kFewPairPacks, P::kPairThreads, P::kBlocks, &held)) {
    most_threads = P::kResidentFewPair;
  } else {
    const bool fits = in_blocks(P::kPairPacks, P::kPairThreads, t.most_blocks, &held);
    if (in_blocks(P::kManyPairPacks, P::kPairThreads, t.most_blocks, &many) &&
        (!fits || many.Places() < held.Places())) {
      held = many;
    } else if (!fits && in_blocks(P::kLongPairPacks, P::kPairThreads, t.most_blocks, &held)) {
      most_threads = P::kResidentLongPair;
    } else if (!fits && !in_blocks(P::kPairPacks, P::kLargePairThreads, t.most_blocks, &held)) {
      return false;
    }
  }
  held.wide = true;
  held.rows = 2;
  plan->shared = OddSharedBytes(held, t.common_bytes);
  const int room = limits.shared_per_multiprocessor / (plan->shared + kReservedSharedBytes);
  held.resident = most_threads / held.threads < room ? most_threads / held.threads : room;
  return held.resident > 0 && plan->shared <= limits.shared_per_block &&
         held.Clusters(rows, pack) * held.blocks >= limits.multiprocessors * held.resident;
}

// `pack`: elements in 16 bytes. False: the rows do not fit. Time over the bare softmax in half,
// with a row of bias, at
//   4097    4 x 128 packs 1.01, operands that pass by the L1 1.07
//   16385   the inputs in 2 blocks of 8 x 128 1.05, 1 of 8 x 256 1.08, of 16 x 128 1.21
//   32001   4 blocks of 8 x 128 1.02, 2 of 16 x 128 1.04
//   50257   5 blocks of 10 x 128 1.00, 4 of 13 x 128 1.01, 5 of 8 x 160 1.02, 4 of 10 x 160 1.06
//   131073  8 blocks of 8 x 256 1.08, 8 of 16 x 128 1.09, 10 of 13 x 128 1.14
//   151937  8 blocks of 15 x 160 1.05, 10 of 15 x 128 1.11
// and with two rows, at 50257 the inputs in 5 blocks of 8 x 160 1.39, 4 of 13 x 128 1.43, values in
// 8 of 4 x 224 1.50.
inline bool PlanOddRows(int64_t rows, int64_t cols, int pack, const HeldTraits& t,
                        const DeviceLimits& limits, OddPlan* plan) {
  using P = FusedOddPolicy;
  *plan = OddPlan();
  const int64_t packs = cols / pack - 2;  // the columns outside packs have the first and the last
  if (rows > FusedPolicy::kMaxRows) return false;
  const bool may_block = t.common_bytes + t.late_bytes >= P::kStayingBytes && !t.is_double;
  if (packs <= FusedPolicy::kLanePacks || (may_block && cols / pack <= P::kBlockPacks)) {
    PlanOddLanes(cols, pack, t, limits, plan);
    if (plan->held.lanes <= 32 || plan->held.stays) return true;
    *plan = OddPlan();
  }
  if (PlanOddPairs(rows, packs, pack, t, limits, plan)) return true;
  *plan = OddPlan();
  HeldPlan& held = plan->held;
  HeldTraits traits = t;
  traits.is_odd = true;
  if (t.common_bytes > 16) traits.is_lean = false;
  if (!PlanHeldRows(rows, packs, traits, limits, &held)) return false;
  // More packs each where no more of the threads' places stay empty.
  const int64_t blocks = CeilDiv(packs, P::kMediumPacks * P::kThreads);
  if (held.wide && blocks > 1 && blocks <= P::kBlocks && blocks <= t.most_blocks) {
    HeldPlan medium = held;
    ShareOut(packs, static_cast<int>(blocks), P::kMediumPacks, &medium);
    if (medium.Places() <= held.Places()) held = medium;
  }
  // The inputs beside two operands, of softmax in 16 bits: where values would take a cluster.
  const int64_t of_two = CeilDiv(packs, P::kTwoPacks * P::kTwoThreads);
  if (t.is_lean && !t.is_norm && t.value_bytes == 32 && t.common_bytes == 2 * kFusedPackBytes &&
      held.blocks > 1 && held.packs > FusedPolicy::kFewPacks && of_two > 1 &&
      of_two <= P::kBlocks && of_two <= t.most_blocks) {
    ShareOut(packs, static_cast<int>(of_two), P::kTwoPacks, &held);
    held.wide = true;
  }
  plan->shared = OddSharedBytes(held, t.common_bytes);
  const int few = t.is_double ? P::kResidentDouble : P::kResident;
  const int medium = held.wide && held.packs <= P::kMediumPacks ? P::kResidentMedium
                     : t.is_double                              ? P::kResidentLongDouble
                                                                : P::kResidentLong;
  const int most = held.packs <= P::kHeldPacks ? few : medium;
  // Shared memory is taken from the L1: layer_norm with weights and a row at 4097 columns, three
  // operands, is at 1.38 with 8 blocks and 1.28 with 7.
  const int shared = limits.shared_per_multiprocessor / 8 * 7;
  const int room = shared / (plan->shared + kReservedSharedBytes);
  held.resident = most / held.threads < room ? most / held.threads : room;
  if (held.resident < 1) held.resident = 1;
  return plan->shared <= limits.shared_per_block;
}

}  // namespace cuda
}  // namespace oneflow_lite
