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
  static constexpr int kWideCommonBytes = 48;  // of a pack's operands in shared memory, at most
  static constexpr int kWideKept = 2;          // packs whose operands stay in registers, of many
  static constexpr int kPairBytes = 32;        // of a pack's operands, for two rows at once
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
  int late_bytes = 0;  // the same of those that only Store reads, where they are not counted above
  bool is_double = false;
  bool is_odd = false;  // of packs beside a row's ends: the kernels of fused_odd.cuh
};

struct HeldPlan {
  int lanes = 0;      // that share a row; 0: a block does, or several
  int packs = 0;      // per thread, at most
  int threads = 0;    // of a block
  int blocks = 1;     // that share a row
  bool full = false;  // whether every thread has all its packs
  bool wide = false;  // whether the inputs stay as they are (fused_wide.cuh), else the values
  int kept = 0;       // wide: packs per thread whose operands stay in registers
  int resident = 0;   // blocks that a multiprocessor has registers and shared memory for; 0: plain
  int rows = 1;       // at once: 2 are wide, and the operands of both in shared memory
  int part_bytes = FusedPolicy::kPartBytes;

  // Of dynamic shared memory; common_bytes as in HeldTraits.
  int SharedBytes(int common_bytes) const {
    using P = FusedPolicy;
    if (!wide) return ExchangedBytes();
    const int aligned = static_cast<int>(CeilDiv(ExchangedBytes(), P::kSharedAlignment));
    return aligned * P::kSharedAlignment + (packs - kept) * threads * common_bytes;
  }
  // A barrier, and what the warps exchange.
  int ExchangedBytes() const { return 16 + part_bytes * rows * blocks * threads / 32; }
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

// As many blocks as registers leave room for, of so many threads in all, and shared memory.
inline void SetResident(int most_threads, int common_bytes, const DeviceLimits& limits,
                        HeldPlan* plan) {
  const int room =
      limits.shared_per_multiprocessor / (plan->SharedBytes(common_bytes) + kReservedSharedBytes);
  plan->resident = most_threads / plan->threads;
  if (plan->resident > room) plan->resident = room > 0 ? room : 1;
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
  const bool one_row = t.common_bytes <= 16 && t.value_bytes == 32;
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
  SetResident(most_threads, t.common_bytes, limits, plan);
  return true;
}

// Two rows at once (fused_pair.cuh), of operands that one row at a time would read too often.
// Time over the bare op, beside one row at once, at
//                                32768       65536       131072      262144 columns
//   half, softmax of x r + b     1.00, 1.12  1.06, 1.17  1.16, 1.33  1.37, 1.67
//   rms_norm, weight, x s + b    0.98, 1.07  0.99, 1.06  1.04, 1.13  1.06, 1.19
//   layer_norm, both, x s + b    1.04, 1.13  1.08, 1.10  1.22, 1.14  1.54, 1.21
//   float32, softmax of x r + b              1.06, 1.18
//   rms_norm, weight, x s + b                1.06, 1.17
// and at 65536 in half by 16 blocks of 4 x 128 packs 1.12, 0.99 and 1.11.
inline bool PlanPairs(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                      HeldPlan* plan) {
  using P = FusedPolicy;
  const int bytes = t.common_bytes + t.late_bytes;
  if (bytes < P::kPairBytes || bytes > P::kWideCommonBytes) return false;
  const bool two = bytes <= P::kPairBytes;
  const int most_blocks = two || t.most_blocks < 8 ? t.most_blocks : 8;
  int most_threads = two ? 1024 : 768;
  const auto fits = [&](int each, int threads, int blocks) {
    const int64_t wanted = CeilDiv(packs, int64_t{each} * threads);
    if (wanted > blocks) return false;
    ShareOut(packs, static_cast<int>(wanted), each, plan);
    return true;
  };
  if (!fits(4, 128, most_blocks < 8 ? most_blocks : 8)) {
    if (!two) {
      if (!fits(4, 256, most_blocks)) return false;
    } else if (fits(8, 128, most_blocks)) {
      most_threads = 640;
    } else if (packs <= most_blocks * int64_t{8 * 256}) {
      ShareOut(packs, most_blocks, 8, plan);
      most_threads = 512;
    } else {
      return false;
    }
  }
  plan->wide = true;
  plan->rows = 2;
  SetResident(most_threads, bytes, limits, plan);
  return true;
}

// Values that are computed once, 16-bit ones. x + a matrix over its bytes, at 100352 columns in
// 14 blocks of 7 x 128 packs 0.96, in 8 of 7 x 224 1.02; 262144 in 16 of 8 x 256 0.98; by steps
// that are not known 1.09 and 1.08.
inline bool PlanShares(int64_t packs, const HeldTraits& t, const DeviceLimits& limits,
                       HeldPlan* plan) {
  if (packs <= t.most_blocks * int64_t{8 * 128}) {
    ShareOut(packs, static_cast<int>(CeilDiv(packs, 8 * 128)), 8, plan);
  } else if (packs <= t.most_blocks * int64_t{8 * 256}) {
    ShareOut(packs, t.most_blocks, 8, plan);
  } else {
    return false;
  }
  SetResident(640, 0, limits, plan);
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
  const int operands = t.common_bytes + t.late_bytes;
  const bool pairs = t.is_lean && operands >= P::kPairBytes && operands <= P::kWideCommonBytes;
  const int alone_bytes = P::kAloneBytes * (t.is_norm && !pairs ? 2 : 1);
  if (!t.is_double && packs * t.value_bytes <= alone_bytes) {
    if (!in_blocks(P::kHeldPacks, P::kThreads, room(P::kHeldPacks, P::kThreads))) return false;
    // x r + b at 8192 columns: layer_norm with weights 1.00, by steps that are not known 1.20.
    if (operands > 16) SetResident(P::kThreads * P::kBlocks, 0, limits, plan);
    return true;
  }
  const int most = P::kHeldBytes / t.value_bytes;  // packs of values per thread
  // float32 with a row of bias at 65536 columns 1.01, as values 1.05.
  const bool wide = most < 8 || (operands > 0 && !t.is_odd);
  if (t.is_lean && wide && t.common_bytes <= P::kWideCommonBytes) {
    if (PlanPairs(packs, t, limits, plan) || PlanWideRows(packs, t, limits, plan)) return true;
    *plan = HeldPlan();
  }
  const bool fits = in_blocks(most, P::kClusterThreads, room(most, P::kClusterThreads));
  if (most < 8 && !t.is_odd) return (fits && plan->full) || PlanShares(packs, t, limits, plan);
  if (fits) return true;
  // Doubles have registers for more packs rather than for more threads (FusedBounds).
  const int packs_each = most * (t.is_double ? 2 : 1);
  const int threads = t.is_double ? P::kClusterThreads : P::kThreads;
  return in_blocks(packs_each, threads, room(packs_each, threads));
}

}  // namespace cuda
}  // namespace oneflow_lite
