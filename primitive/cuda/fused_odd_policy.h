// SPDX-License-Identifier: Apache-2.0
//
// Which kernel serves fused rows whose ends lie inside packs (fused_odd.cuh), by measurement on an
// H200.
#pragma once

#include <stdint.h>

#include "primitive/cuda/fused_policy.h"

namespace oneflow_lite {
namespace cuda {

struct OddPlan {
  HeldPlan held;   // full and kept say nothing here
  int shared = 0;  // bytes
};

// `pack`: elements in 16 bytes. False: the rows do not fit, or are so narrow that other kernels
// serve them better. Time over the bare softmax in half, with a row of bias, at
//   257, 513, 1001 columns   a row per warp 1.37, 1.05, 1.05; 129 and 193 are slower than before
//   4097    4 x 128 packs 1.02, 3 x 192 1.25; the inputs 8 x 64 1.03
//   16385   the inputs in 2 blocks of 8 x 128 1.08, 1 of 16 x 128 1.17; values, 512 threads, 1.22
//   32769   the inputs in 2 blocks of 16 x 128 1.07
//   50257   the inputs in 4 blocks of 13 x 128 1.11, 7 of 8 x 128 1.13; values, 8 of 4 x 224, 1.32
//   131073  the inputs in 8 blocks of 16 x 128 1.15, of 8 x 256 1.22
// and with two rows, at 4097 columns 1.13; at 50257, where inputs spill 1.72, 8 of 4 x 224 1.51.
inline bool PlanOddRows(int64_t rows, int64_t cols, int pack, const HeldTraits& t,
                        const DeviceLimits& limits, OddPlan* plan) {
  using P = FusedPolicy;
  const int64_t packs = cols / pack - 2;  // the columns outside packs have the first and the last
  HeldPlan& held = plan->held;
  HeldTraits traits = t;
  traits.is_odd = true;
  if (t.common_bytes > 16) traits.is_lean = false;
  if (packs < P::kOddPacks || !PlanHeldRows(rows, packs, traits, limits, &held)) return false;
  const int64_t blocks = CeilDiv(packs, 16 * 128);
  if (held.wide && blocks > 1 && blocks <= 8 && blocks <= t.most_blocks) {
    ShareOut(packs, static_cast<int>(blocks), 16, &held);
  }
  if (held.lanes > 0) {
    held.lanes = 32;
    held.packs = static_cast<int>(CeilDiv(packs, held.lanes));
  }
  const int teams = held.lanes > 0 ? held.threads / held.lanes : 1;
  plan->shared =
      held.packs * held.threads * t.common_bytes + teams * P::kCopyBytes * t.common_bytes / 16;
  if (held.lanes > 0) return plan->shared <= limits.shared_per_block;
  const int64_t aligned = CeilDiv(held.ExchangedBytes(), P::kSharedAlignment);
  plan->shared += static_cast<int>(aligned) * P::kSharedAlignment;
  // Threads of a multiprocessor: what their registers leave room for.
  const int most = held.packs > 8 ? (t.is_double ? 512 : 640) : t.is_double ? 768 : 1024;
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
