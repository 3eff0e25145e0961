// SPDX-License-Identifier: Apache-2.0
//
// What the choice of a kernel for fused rows depends on, and what it comes to (fused/policy.h).
#pragma once

#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite {
namespace cuda {

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
  bool is_odd = false;         // of packs beside a row's ends: the kernels of fused/odd.cuh
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
  int parked = 0;      // else: packs whose values are in shared memory (fused/parked.cuh)
  int resident = 0;    // blocks that a multiprocessor has registers and shared memory for; 0: plain
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
    const int64_t together = int64_t{alike} * rows, rest = row_count % together;
    return row_count / together * alike + (rest < alike ? rest : alike);
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

}  // namespace cuda
}  // namespace oneflow_lite
