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
// serve them better.
inline bool PlanOddRows(int64_t rows, int64_t cols, int pack, const HeldTraits& t,
                        const DeviceLimits& limits, OddPlan* plan) {
  using P = FusedPolicy;
  const int64_t packs = cols / pack - 2;  // the columns outside packs have the first and the last
  HeldPlan& held = plan->held;
  if (packs < P::kOddPacks || !PlanHeldRows(rows, packs, t, limits, &held)) return false;
  const auto shared_rows = [&](int threads) {
    return (held.packs * threads + P::kCopyBytes / 16) * t.common_bytes;
  };
  if (held.lanes > 0) {
    held.lanes = 32;
    held.packs = static_cast<int>(CeilDiv(packs, held.lanes));
    plan->shared = shared_rows(held.threads);
    plan->shared += (held.threads / held.lanes - 1) * P::kCopyBytes / 16 * t.common_bytes;
    return true;
  }
  const int64_t aligned = CeilDiv(held.ExchangedBytes(), P::kSharedAlignment);
  plan->shared = static_cast<int>(aligned * P::kSharedAlignment) + shared_rows(held.threads);
  // Threads of a multiprocessor: what their registers leave room for.
  const int most = t.is_double ? (held.packs <= 8 ? 768 : 512) : held.packs <= 8 ? 1024 : 640;
  const int room = limits.shared_per_multiprocessor / (plan->shared + P::kReservedBytes);
  held.resident = most / held.threads < room ? most / held.threads : room;
  if (held.resident < 1) held.resident = 1;
  return plan->shared <= limits.shared_per_block;
}

}  // namespace cuda
}  // namespace oneflow_lite
