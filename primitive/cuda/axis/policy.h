// SPDX-License-Identifier: Apache-2.0
//
// Which kernel works along the middle axis of outer x axis x inner, and how: the one table of
// numbers behind axis/slab.cuh and axis/stream.cuh. axis/README.md says where a slab lives,
// docs/lab/36-tuning-another-dim.md what was measured.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/chip/device_limits.h"

namespace oneflow_lite::cuda {

struct AxisPolicy {
  static constexpr int kMaxThreads = 512;  // two such blocks per multiprocessor
  static constexpr int kThreads = 256;
  static constexpr int kLineBytes = 128;        // a slab's row in memory ...
  static constexpr int kBrokenLineBytes = 256;  // ... where rows are not whole lines
  static constexpr int kLongAxis = 2048;  // where they are longer, or blocks with one tile each ...
  static constexpr int kFewTiles = 8;     // ... fewer than so many per multiprocessor: kLineBytes
  static constexpr int kMaxLanes = 32;
  static constexpr int kLeastThreads = 64;
  static constexpr int kMostSmallBlocks[2] = {4, 16};  // of kThreads, in a cluster: by inputs
  static constexpr int kFewPacks = 4;      // of a thread, at least, where few slabs spread
  static constexpr int kSmallBlock = 128;  // threads that slabs of less than a warp share

  static constexpr int kNeverStreamed = 256;  // positions of the axis
  static constexpr int kStreamLineBytes = 256;
  static constexpr int kBatch = 4;         // packs in flight per thread that streams
  static constexpr int kStreamPacks = 16;  // per thread, at least
  static constexpr int kStreamBlocks = 2;  // that a multiprocessor holds
  static constexpr int kFilled = 61;       // 64ths of the device's places that are enough
  static constexpr int kMostParts = 512;   // of a tile
};

// What of an algorithm the choice depends on.
struct AxisTraits {
  int pack;        // elements
  int pack_bytes;  // of one input
  int inputs;
  int held;  // packs that a thread keeps in registers, per input
  int most;  // ... that it may have
  int few;   // ... that it has where a part of a warp has a slab
  int stat_bytes;
  int most_blocks;  // of a cluster; 1 where the device has none
};

// outer x axis x inner as a kernel sees it.
struct AxisShape {
  int64_t columns = 0;  // packs of columns: outer * inner / pack
  int64_t axis = 0, inner = 0;
  int lanes = 1;  // threads along the columns, a power of two of at most a warp
  int ways = 1;   // threads along the axis; a power of two where lanes * ways is below a warp
  int slabs = 1;  // of a block
  int shared_packs = 0;  // of a thread and input
  int kept_bytes = 0;    // ... of the whole block
};

struct AxisPlan {
  AxisShape shape;
  bool streamed = false;
  int threads = 0;       // of a block
  int blocks = 1;        // that have a tile together
  int64_t tiles = 0;     // parts of all columns
  size_t shared = 0;     // bytes of dynamic shared memory
  size_t workspace = 0;  // bytes, streamed; 0: the blocks are a cluster
};

inline constexpr int kAxisBarrierBytes = 16;

// Shared memory by which a block's threads exchange what they found (AxisExchange).
inline size_t AxisScratch(const AxisTraits& t, const AxisShape& s, int threads, int blocks) {
  if (s.lanes * s.ways < 64 && blocks == 1) return 0;
  const int columns = s.lanes * t.pack;
  const int own = threads / 32 * (columns + 1);
  const int merged = (columns + 1) * (1 + (blocks > 1 ? blocks : 0));
  return kAxisBarrierBytes + static_cast<size_t>(merged + own) * t.stat_bytes;
}

namespace internal {

// A tile's row in memory, `bytes` wide or as wide as there are columns.
inline int AxisLanes(int64_t row_packs, const AxisTraits& t, int bytes) {
  auto lanes = static_cast<int>(Min(bytes / t.pack_bytes, AxisPolicy::kMaxLanes));
  while (lanes > row_packs) lanes /= 2;
  return lanes;
}

// The slab's plan with so many ways in each of so many blocks; not if it does not fit.
inline bool FitAxisSlab(AxisPlan* plan, int64_t ways, int blocks, const AxisTraits& t,
                        const DeviceLimits& limits) {
  AxisShape& s = plan->shape;
  const int64_t packs = CeilDiv(s.axis, ways * blocks);
  if (packs > t.most) return false;
  s.ways = static_cast<int>(ways);
  s.shared_packs = packs > t.held ? static_cast<int>(packs) - t.held : 0;
  plan->threads = static_cast<int>(CeilDiv(s.lanes * s.ways * s.slabs, 32) * 32);
  plan->blocks = blocks;
  s.kept_bytes = s.shared_packs * t.inputs * t.pack_bytes * plan->threads;
  plan->shared = s.kept_bytes + AxisScratch(t, s, plan->threads, blocks);
  plan->tiles = CeilDiv(s.columns, int64_t{s.lanes} * s.slabs);
  return plan->shared <= static_cast<size_t>(limits.shared_per_block);
}

inline bool ChooseAxisSlab(AxisPlan* plan, const AxisTraits& t, const DeviceLimits& limits) {
  using P = AxisPolicy;
  const int64_t axis = plan->shape.axis;
  const int lanes = plan->shape.lanes, unit = 32 / lanes;  // lanes * unit is a warp
  int64_t few = 1;
  while (few * t.few < axis) few *= 2;
  if (few > unit && 2 * axis <= int64_t{3} * t.few * unit) few = unit;
  if (few <= unit) {
    // Where the device is not filled, more threads each.
    const int64_t full = int64_t{limits.multiprocessors} * 2 * P::kMaxThreads;
    while (few < unit && plan->shape.columns * few < full &&
           axis * t.inputs >= few * 2 * P::kFewPacks) {
      few *= 2;
    }
    plan->shape.slabs = P::kSmallBlock / (lanes * static_cast<int>(few));
    return FitAxisSlab(plan, few, 1, t, limits);
  }
  const auto try_blocks = [&](int blocks, int threads) {
    const int64_t wanted = CeilDiv(CeilDiv(axis, int64_t{blocks} * t.most), unit) * unit;
    const int64_t ways = Max(P::kLeastThreads / lanes, Min(wanted, threads / lanes));
    return FitAxisSlab(plan, ways, blocks, t, limits);
  };
  int blocks = 1, threads = P::kThreads;
  while (!try_blocks(blocks, threads)) {
    if (threads == P::kThreads && blocks == P::kMostSmallBlocks[t.inputs - 1]) {
      threads = P::kMaxThreads;
    } else if (blocks < t.most_blocks) {
      blocks *= 2;
    } else if (threads < P::kMaxThreads) {
      threads = P::kMaxThreads;
    } else {
      return false;
    }
  }
  // Few slabs get more blocks each, to fill the device.
  while (blocks < t.most_blocks && plan->tiles * blocks * 2 <= limits.multiprocessors &&
         axis >= int64_t{blocks} * 2 * plan->shape.ways * P::kFewPacks) {
    blocks *= 2;
    if (!try_blocks(blocks, threads)) return try_blocks(blocks / 2, threads);
  }
  return true;
}

// Blocks per tile of a streamed slab: the fewest, at most `most`, that fill the device nearly whole
// times over. Every block merges what all of its tile found.
inline int64_t AxisParts(int64_t tiles, int64_t most, const DeviceLimits& limits) {
  const int64_t wave = int64_t{limits.multiprocessors} * AxisPolicy::kStreamBlocks;
  int64_t best = 1, best_filled = 0;  // in 64ths
  for (int64_t parts = 1; parts <= most && parts <= AxisPolicy::kMostParts; ++parts) {
    const int64_t blocks = tiles * parts;
    const int64_t filled = 64 * blocks / (CeilDiv(blocks, wave) * wave);
    if (filled > best_filled) best = parts, best_filled = filled;
    if (filled >= AxisPolicy::kFilled) break;
  }
  return best;
}

}  // namespace internal

// Of rows that are whole packs. `has_workspace`: the caller brings what the plan asks for.
inline AxisPlan ChooseAxisPlan(int64_t outer, int64_t axis, int64_t inner, const AxisTraits& t,
                               bool has_workspace, const DeviceLimits& limits) {
  using P = AxisPolicy;
  const int64_t row_packs = inner / t.pack;
  AxisPlan plan;
  const bool whole_lines = inner * (t.pack_bytes / t.pack) % P::kLineBytes == 0;
  plan.shape.columns = outer * row_packs;
  plan.shape.axis = axis;
  plan.shape.inner = inner;
  const auto fits = [&](int bytes) {
    plan.shape.slabs = 1;
    plan.shape.lanes = internal::AxisLanes(row_packs, t, bytes);
    return internal::ChooseAxisSlab(&plan, t, limits);
  };
  if (!whole_lines && axis <= P::kLongAxis && fits(P::kBrokenLineBytes)) {
    const bool few = plan.tiles < int64_t{P::kFewTiles} * limits.multiprocessors;
    if (!few || plan.blocks > 1 || plan.shape.slabs > 1) return plan;
  }
  if (fits(P::kLineBytes)) return plan;

  AxisShape& s = plan.shape;
  s.lanes = internal::AxisLanes(row_packs, t, P::kStreamLineBytes);
  s.ways = P::kMaxThreads / s.lanes;
  s.shared_packs = s.kept_bytes = 0;
  s.slabs = 1;
  plan.streamed = true;
  plan.threads = P::kMaxThreads;
  plan.tiles = CeilDiv(s.columns, s.lanes);
  const int64_t worth = axis / (int64_t{s.ways} * P::kStreamPacks);  // blocks
  int64_t blocks = internal::AxisParts(plan.tiles, worth, limits);
  if (!has_workspace) {
    blocks = Min(blocks, t.most_blocks);
    while ((blocks & (blocks - 1)) != 0) blocks &= blocks - 1;
  }
  plan.blocks = static_cast<int>(Max(blocks, 1));
  if (has_workspace && plan.blocks > 1) {
    plan.workspace = static_cast<size_t>(plan.blocks * s.columns * t.pack) * t.stat_bytes;
  }
  plan.shared = AxisScratch(t, s, plan.threads, has_workspace ? 1 : plan.blocks);
  return plan;
}

}  // namespace oneflow_lite::cuda
