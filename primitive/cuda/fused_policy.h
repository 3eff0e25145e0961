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
  static constexpr int kClusterThreads = 256;   // of a block of a cluster, while 16 are enough
  static constexpr int kHeldPacks = 4;          // per thread, of rows in single blocks ...
  static constexpr int kAloneBytes = 32 << 10;  // ... whose values take so many bytes at most
  static constexpr int kHeldBytes = 128;        // of a thread's values elsewhere: 32 registers
  // Rows whose inputs stay as they lie in memory, beside operands in shared memory where copies
  // want to begin at a multiple of 128 bytes, or they read twice as many.
  static constexpr int kSharedAlignment = 128;
  static constexpr int kWidePacks = 8;           // per thread, at most
  static constexpr int kWideThreads = 1024;      // of a multiprocessor
  static constexpr int kWideBlockThreads = 256;  // of a block, at most, and ...
  static constexpr int kWideFewThreads = 128;    // ... while kWideCluster blocks are enough
  static constexpr int kWideCluster = 8;
  static constexpr int kWideCommonBytes = 48;  // of a pack's operands in shared memory, at most
  static constexpr int kFewPacks = 2;          // where rows are so few that latency counts
  static constexpr int kFewRowPacks = 256;     // a block's part of few rows, at least
};

// What of a fusion the choice depends on.
struct HeldTraits {
  int value_bytes;   // of a pack, in the type computed in
  bool is_lean;      // of what a row has of its own one input is read, and the values are cheap to
                     // compute at every visit
  int most_blocks;   // of a cluster
  int common_bytes;  // of shared memory that a pack of the operands takes that serve all rows
};

struct HeldPlan {
  int lanes = 0;      // that share a row; 0: a block does, or several
  int packs = 0;      // per thread, at most
  int threads = 0;    // of a block
  int blocks = 1;     // that share a row
  bool full = false;  // whether every thread has all its packs
  bool wide = false;  // whether the inputs stay as they are (fused_wide.cuh), else the values
};

// False: the rows do not fit.
inline bool PlanHeldRows(int64_t rows, int64_t packs, const HeldTraits& t,
                         const DeviceLimits& limits, HeldPlan* plan) {
  using P = FusedPolicy;
  *plan = HeldPlan();
  if (rows > P::kMaxRows) return false;
  if (packs <= P::kLanePacks) {
    plan->threads = P::kLaneThreads;
    plan->lanes = packs <= 4 ? 4 : packs <= 8 ? 8 : packs <= 64 ? 16 : 32;
    plan->packs = static_cast<int>((packs + plan->lanes - 1) / plan->lanes);
    plan->full = plan->lanes * plan->packs == packs;
    return true;
  }
  // Blocks of the fewest threads with so many packs each.
  const auto share_out = [&](int blocks, int each) {
    plan->blocks = blocks;
    const int64_t shared_out = int64_t{blocks} * each * 32;
    plan->threads = static_cast<int>((packs + shared_out - 1) / shared_out) * 32;
    const int64_t size = int64_t{blocks} * plan->threads;
    plan->packs = static_cast<int>((packs + size - 1) / size);
    plan->full = size * plan->packs == packs;
    return true;
  };
  // The fewest blocks of so many threads with so many packs each, if they are enough.
  const auto in_blocks = [&](int each, int threads, auto&& enough) {
    int blocks = 1;
    while (blocks < t.most_blocks && !enough(blocks)) blocks *= 2;
    share_out(blocks, each);
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
  if (packs * t.value_bytes <= P::kAloneBytes) {
    return in_blocks(P::kHeldPacks, P::kThreads, room(P::kHeldPacks, P::kThreads));
  }
  const int most = P::kHeldBytes / t.value_bytes;  // packs of values per thread
  if (t.is_lean && most < P::kWidePacks && t.common_bytes <= P::kWideCommonBytes) {
    const auto blocks_of = [&](int threads) {
      return (packs + P::kWidePacks * threads - 1) / (P::kWidePacks * threads);
    };
    const int64_t few = blocks_of(P::kWideFewThreads);
    const int64_t blocks = few <= P::kWideCluster ? few : blocks_of(P::kWideBlockThreads);
    if (blocks <= t.most_blocks) {
      plan->wide = true;
      return share_out(static_cast<int>(blocks), P::kWidePacks);
    }
  }
  return in_blocks(most, P::kClusterThreads, room(most, P::kClusterThreads)) ||
         in_blocks(most, P::kThreads, room(most, P::kThreads));
}

}  // namespace cuda
}  // namespace oneflow_lite
