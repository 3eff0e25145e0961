// SPDX-License-Identifier: Apache-2.0
//
// The norms' forward over wide rows that lie anyhow (norms/forward_odd.cuh): how it is laid out.
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite {
namespace cuda {

// Rows wider than the registers of a cluster hold, and read otherwise than they are written, as
// measured on an H200 in us beside clusters with the row in shared memory, whose packs are shifted
// as they are loaded (RowClusterKernel). float32, layer_norm: 396 for 787 at 700 x 200000 (a copy:
// 266), 499 for 803 at 1500 x 131072, 507 for 738 at 500 x 299999; rms_norm 344 for 619 at 700 x
// 200000. Narrower rows gain little (layer_norm of 50257 columns: 189 for 208 in float32, 207 for
// 197 in half).
struct NormOddPolicy {
  static constexpr int kAtOnce = 2;  // packs of a thread that are shifted and written together
  static constexpr int kThreads = 256, kBlocks = 3;  // of a block; per multiprocessor
  static constexpr int kPacks = 17;  // of a lane: there is shared memory for so many in all blocks
  // Shared memory for the words of a block's warps.
  static constexpr int Bytes(int each) { return kThreads / 32 * (32 * each + 1) * 16; }
};

struct NormOddPlan {
  int blocks = 1;  // of a cluster
  int each = 0;    // packs of a lane
  int bytes = 0;   // of shared memory, for the words of a block
};

// For rows of so many packs, in at most so many bytes of shared memory a block; false: they do not
// fit.
inline bool PlanNormOdd(int64_t rows, int64_t packs, int most_blocks, int most_bytes,
                        const DeviceLimits& limits, NormOddPlan* plan) {
  using P = NormOddPolicy;
  int64_t blocks = CeilDiv(packs, P::kPacks * P::kThreads);
  // Few rows are shared out to as many blocks as there can be.
  const bool few = rows * blocks < 2 * limits.multiprocessors;
  if (few || blocks > most_blocks) blocks = most_blocks;
  const int64_t each = CeilDiv(packs, blocks * P::kThreads);
  if (each > most_bytes / (16 * P::kThreads)) return false;
  plan->blocks = static_cast<int>(blocks);
  plan->each = static_cast<int>(each);
  plan->bytes = P::Bytes(plan->each);
  return plan->bytes <= most_bytes;
}

}  // namespace cuda
}  // namespace oneflow_lite
