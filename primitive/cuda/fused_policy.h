// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves fused rows of whole packs (fused_whole.cuh), by measurement on an H200.
#pragma once

#include <stdint.h>

#include "primitive/cuda/device_limits.h"

namespace oneflow_lite {
namespace cuda {

struct FusedPolicy {
  static constexpr int64_t kMaxRows = (1 << 27) - 1;  // clusters of 16 blocks in a grid
  static constexpr int kLanePacks = 192;              // of a row that lanes of a warp share
  static constexpr int kLaneThreads = 128;            // of a block whose lanes share rows
  static constexpr int kThreads = 512;                // of another block, at most ...
  static constexpr int kBlocks = 2;                   // ... of which a multiprocessor holds two
  static constexpr int kPartBytes = 16;               // that each warp sends (HeldRow::Part)
  static constexpr int kClusterThreads = 256;   // of a block of a cluster, while 16 are enough
  static constexpr int kHeldPacks = 4;          // per thread, of rows in single blocks ...
  static constexpr int kAloneBytes = 32 << 10;  // ... whose values take so many bytes at most
  static constexpr int kHeldBytes = 128;        // of a thread's values elsewhere: 32 registers
  // Rows whose inputs stay as they lie in memory (PlanWideRows), beside operands in shared memory
  // where copies want to begin at a multiple of 128 bytes, or they read twice as many.
  static constexpr int kSharedAlignment = 128;
  static constexpr int kCopyBytes = 144;       // beside those of a row's share (SharedRows)
  static constexpr int kReservedBytes = 1024;  // of shared memory, that each block takes besides
  static constexpr int kWideCommonBytes = 48;  // of a pack's operands in shared memory, at most
  static constexpr int kWideKept = 2;          // packs whose operands stay in registers, of many
  static constexpr int kOddPacks = 28;         // of an odd row, at least (PlanOddRows)
  static constexpr int kFewPacks = 2;          // where rows are so few that latency counts
  static constexpr int kFewRowPacks = 256;     // a block's part of few rows, at least
};

// What of a fusion the choice depends on.
struct HeldTraits {
  int value_bytes;   // of a pack, in the type computed in
  bool is_lean;      // of what a row has of its own one input is read, and the values are cheap to
                     // compute at every visit
  bool is_norm;      // else exponentials are computed at both visits
  int most_blocks;   // of a cluster
  int common_bytes;  // of shared memory that a pack of the operands takes that serve all rows
  bool is_double = false;
};

struct HeldPlan {
  int lanes = 0;      // that share a row; 0: a block does, or several
  int packs = 0;      // per thread, at most
  int threads = 0;    // of a block
  int blocks = 1;     // that share a row
  bool full = false;  // whether every thread has all its packs
  bool wide = false;  // whether the inputs stay as they are (fused_wide.cuh), else the values
  int kept = 0;       // wide: packs per thread whose operands stay in registers
  int resident = 1;   // wide: blocks that a multiprocessor has registers and shared memory for
  int part_bytes = FusedPolicy::kPartBytes;

  // Of dynamic shared memory; common_bytes as in HeldTraits.
  int SharedBytes(int common_bytes) const {
    using P = FusedPolicy;
    if (!wide) return ExchangedBytes();
    const int aligned = static_cast<int>(CeilDiv(ExchangedBytes(), P::kSharedAlignment));
    return aligned * P::kSharedAlignment + (packs - kept) * threads * common_bytes;
  }
  int ExchangedBytes() const { return 16 + part_bytes * blocks * threads / 32; }  // and a barrier
};

// Blocks of the fewest threads with so many packs each.
inline void ShareOut(int64_t packs, int blocks, int each, HeldPlan* plan) {
  plan->blocks = blocks;
  const int64_t shared_out = int64_t{blocks} * each * 32;
  plan->threads = static_cast<int>((packs + shared_out - 1) / shared_out) * 32;
  const int64_t size = int64_t{blocks} * plan->threads;
  plan->packs = static_cast<int>((packs + size - 1) / size);
  plan->full = size * plan->packs == packs;
}

// Rows too wide for values in registers, of a load that is cheap at two visits; false: still too
// wide. Time over the bare softmax in half, with a row of bias, at
//   16384 to 65536 columns   up to 8 blocks of 8 x 128 packs 1.02 to 0.98, of 16 x 128 1.02 to 1.01
//   100352   8 of 13 x 128 1.00, 7 of 14 x 128 1.00, 6 of 9 x 256 1.02, 7 of 8 x 224 1.07
//   131072   8 of 8 x 256 0.99, 8 of 16 x 128 1.01
//   151936   8 of 15 x 160 1.01, 10 of 15 x 128 1.04, 10 of 8 x 256 1.10
//   200000   16 of 13 x 128 1.03, 14 of 14 x 128 1.05, 13 of 16 x 128 1.06
//   262144   16 of 16 x 128 1.02, with no operands in registers 1.05, 16 of 8 x 256 1.06
inline bool PlanWideRows(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                         HeldPlan* plan) {
  using P = FusedPolicy;
  plan->wide = true;
  const bool one_row = t.common_bytes <= 16;
  const int64_t small = CeilDiv(packs, 8 * 128);
  int most_threads = 1024;  // of a multiprocessor: what their registers leave room for
  if (small <= 8 && small <= t.most_blocks) {
    ShareOut(packs, static_cast<int>(small), 8, plan);
  } else {
    const int most = one_row ? 16 * 160 : 8 * 256;  // packs of a block
    const int blocks = t.most_blocks < 8 ? t.most_blocks : packs <= 8 * most ? 8 : 16;
    const int64_t share = CeilDiv(packs, blocks);
    if (blocks > t.most_blocks || share > most) return false;
    const bool fills = share > 7 * 256 && share <= 8 * 256 && (blocks <= 8 || t.is_norm);
    ShareOut(packs, blocks, one_row && !fills ? 16 : 8, plan);
    if (plan->packs > 8) {
      most_threads = plan->packs <= 10 ? 768 : 640;
      plan->kept = P::kWideKept;
    }
  }
  const int room =
      limits.shared_per_multiprocessor / (plan->SharedBytes(t.common_bytes) + P::kReservedBytes);
  plan->resident = most_threads / plan->threads;
  if (plan->resident > room) plan->resident = room > 0 ? room : 1;
  return true;
}

// False: the rows do not fit.
inline bool PlanHeldRows(int64_t rows, int64_t packs, const HeldTraits& t,
                         const DeviceLimits& limits, HeldPlan* plan) {
  using P = FusedPolicy;
  *plan = HeldPlan();
  if (t.is_double) plan->part_bytes *= 2;
  if (rows > P::kMaxRows) return false;
  if (packs <= P::kLanePacks) {
    plan->threads = P::kLaneThreads;
    plan->lanes = packs <= 6 ? 4 : packs <= (t.is_double ? 16 : 32) ? 8 : packs <= 64 ? 16 : 32;
    plan->packs = static_cast<int>((packs + plan->lanes - 1) / plan->lanes);
    plan->full = plan->lanes * plan->packs == packs;
    return true;
  }
  // The fewest blocks of so many threads with so many packs each, if they are enough.
  const auto in_blocks = [&](int each, int threads, auto&& enough) {
    int blocks = 1;
    while (blocks < t.most_blocks && !enough(blocks)) blocks *= 2;
    ShareOut(packs, blocks, each, plan);
    return plan->threads <= threads;
  };
  const auto room = [&](int each, int threads) {
    return [=](int64_t blocks) { return packs <= blocks * each * threads; };
  };
  // Few rows get more blocks each, as long as that keeps a block busy.
  if (rows * packs <= int64_t{limits.multiprocessors} * 1024 * P::kFewPacks) {
    const auto fills = [&](int64_t blocks) {
      return packs <= blocks * P::kFewPacks * P::kThreads &&
             (rows * blocks >= 2 * limits.multiprocessors || packs <= blocks * P::kFewRowPacks);
    };
    if (in_blocks(P::kFewPacks, P::kThreads, fills)) return true;
  }
  // Half at 16384 columns: rms_norm 1.01, as a wide row 1.06; layer_norm with weights 1.04, 1.10.
  if (!t.is_double && packs * t.value_bytes <= P::kAloneBytes * (t.is_norm ? 2 : 1)) {
    return in_blocks(P::kHeldPacks, P::kThreads, room(P::kHeldPacks, P::kThreads));
  }
  const int most = P::kHeldBytes / t.value_bytes;  // packs of values per thread
  if (t.is_lean && most < 8 && t.common_bytes <= P::kWideCommonBytes) {
    if (PlanWideRows(packs, t, limits, plan)) return true;
    *plan = HeldPlan();
  }
  if (in_blocks(most, P::kClusterThreads, room(most, P::kClusterThreads))) return true;
  // Doubles have registers for more packs rather than for more threads (FusedBounds).
  const int packs_each = most * (t.is_double ? 2 : 1);
  const int threads = t.is_double ? P::kClusterThreads : P::kThreads;
  return in_blocks(packs_each, threads, room(packs_each, threads));
}

}  // namespace cuda
}  // namespace oneflow_lite
