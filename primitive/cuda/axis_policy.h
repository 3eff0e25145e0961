// SPDX-License-Identifier: Apache-2.0
//
// Which kernel works along the middle axis of outer x axis x inner, and how: the one table of
// numbers behind axis_slab.cuh and axis_stream.cuh.
//
//   axis                                        a slab (128 bytes wide) lives in
//   up to 4 packs a thread of a warp            registers of a part of a warp
//   up to 16 packs a thread of 256              registers and shared memory of a block
//   ... of 2 to 16 such blocks                  ... of a cluster
//   ... of 16 blocks of 512 threads             ... with one block per multiprocessor
//   longer                                      nowhere: read twice
//
// Shares of a copy (backward: of a stream with two reads and a write) on an H200, float16:
//
//   64 x 1000 x 4096, forward     blocks x threads x packs   1 x 512 x 16   2 x 256 x 16   2 x 512
//   x 8
//     128 bytes wide                                         0.93           0.96           0.78
//     64 bytes wide                                          --             0.85           0.85
//   64 x 1000 x 4096, backward                               0.96           0.97           0.97
//   16384 x 16384 over dim 0      16 x 512 x 16: 0.79 at 128 bytes, 16 x 512 x 8: 0.65 at 64
//   256 x 64 x 4096, forward      64 threads x 8 packs: 1.00, 128 x 4: 0.83, 32 x 16: 0.93
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "primitive/cuda/device_limits.h"

namespace oneflow_lite {
namespace cuda {

struct AxisPolicy {
  static constexpr int kMaxThreads = 512;  // two such blocks per multiprocessor
  static constexpr int kThreads = 256;
  static constexpr int kLineBytes = 128;        // a slab's row in memory ...
  static constexpr int kBrokenLineBytes = 256;  // ... where rows are not whole lines
  static constexpr int kMaxLanes = 32;
  static constexpr int kLeastThreads = 64;
  static constexpr int kMostSmallBlocks[2] = {4, 16};  // of kThreads, in a cluster: by inputs
  static constexpr int kFewPacks = 4;      // of a thread, where a part of a warp has a slab
  static constexpr int kSmallBlock = 128;  // threads that slabs of less than a warp share

  static constexpr int kFoldPacks = 8;        // of a thread, where rows are folded
  static constexpr int kMostFoldPacks = 512;  // of the rows together

  static constexpr int kStreamLineBytes = 256;
  static constexpr int kBatch = 4;         // packs in flight per thread that streams
  static constexpr int kStreamPacks = 16;  // per thread, at least
  static constexpr int kStreamBlocks = 8;  // per multiprocessor, about
};

// What of an algorithm the choice depends on.
struct AxisTraits {
  int pack;        // elements
  int pack_bytes;  // of one input
  int inputs;
  int held;  // packs that a thread keeps in registers, per input
  int most;  // ... that it may have
  int stat_bytes;
  int most_blocks;  // of a cluster; 1 where the device has none
};

// Where inner is not a multiple of a pack but so many rows together are, these are seen as one row:
// 1000 x 33 elements as 125 x 264, where columns c, c + 33, ... are the same.
struct AxisFold {
  int rows = 1;
  int inner = 0;  // elements
  int packs = 0;  // of the rows together
};

// outer x axis x inner as a kernel sees it.
struct AxisShape {
  int64_t columns = 0;  // packs of columns: outer * inner / pack
  int64_t axis = 0, inner = 0;
  int lanes = 1;  // threads along the columns, a power of two of at most a warp
  int ways = 1;   // threads along the axis; a power of two where lanes * ways is below a warp
  int slabs = 1;  // of a block
  AxisFold fold;  // then lanes are a multiple of fold.packs
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
  const bool fold = s.fold.rows > 1;
  if (!fold && s.lanes * s.ways < 64 && blocks == 1) return 0;
  const int columns = fold ? s.lanes / s.fold.packs * s.fold.inner : s.lanes * t.pack;
  const int own = (fold ? s.ways : threads / 32) * (s.lanes * t.pack + 1);
  const int merged = (columns + 1) * (1 + (blocks > 1 ? blocks : 0));
  return kAxisBarrierBytes + static_cast<size_t>(merged + own) * t.stat_bytes;
}

namespace internal {

constexpr int64_t PowerOfTwoFrom(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

// A tile's row in memory, `bytes` wide or as wide as there are columns.
inline int AxisLanes(int64_t row_packs, const AxisTraits& t, int bytes) {
  int lanes = bytes / t.pack_bytes;
  if (lanes > AxisPolicy::kMaxLanes) lanes = AxisPolicy::kMaxLanes;
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
  const int64_t few = PowerOfTwoFrom(CeilDiv(axis, P::kFewPacks / t.inputs));
  if (few <= unit) {
    plan->shape.slabs = P::kSmallBlock / (lanes * static_cast<int>(few));
    return FitAxisSlab(plan, few, 1, t, limits);
  }
  const auto try_blocks = [&](int blocks, int threads) {
    const int64_t wanted = CeilDiv(CeilDiv(axis, int64_t{blocks} * t.most), unit) * unit;
    const int64_t least = P::kLeastThreads / lanes, most = threads / lanes;
    const int64_t ways = wanted < least ? least : wanted < most ? wanted : most;
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

}  // namespace internal

// `has_workspace`: the caller brings what the plan asks for.
inline AxisPlan ChooseAxisPlan(int64_t outer, int64_t axis, int64_t inner, const AxisTraits& t,
                               bool has_workspace, const DeviceLimits& limits) {
  using P = AxisPolicy;
  const int64_t row_packs = inner / t.pack;
  AxisPlan plan;
  const bool whole_lines = row_packs * t.pack_bytes % P::kLineBytes == 0;
  plan.shape.columns = outer * row_packs;
  plan.shape.axis = axis;
  plan.shape.inner = inner;
  plan.shape.lanes =
      internal::AxisLanes(row_packs, t, whole_lines ? P::kLineBytes : P::kBrokenLineBytes);
  if (internal::ChooseAxisSlab(&plan, t, limits)) return plan;

  AxisShape& s = plan.shape;
  s.lanes = internal::AxisLanes(row_packs, t, P::kStreamLineBytes);
  s.ways = P::kMaxThreads / s.lanes;
  s.shared_packs = s.kept_bytes = 0;
  s.slabs = 1;
  plan.streamed = true;
  plan.threads = P::kMaxThreads;
  plan.tiles = CeilDiv(s.columns, s.lanes);
  const int64_t worth = axis / (int64_t{s.ways} * P::kStreamPacks);  // blocks
  const int64_t wanted = CeilDiv(int64_t{limits.multiprocessors} * P::kStreamBlocks, plan.tiles);
  int64_t blocks = worth < wanted ? worth : wanted;
  if (!has_workspace && blocks > t.most_blocks) blocks = t.most_blocks;
  if (!has_workspace) {
    while ((blocks & (blocks - 1)) != 0) blocks &= blocks - 1;
  }
  plan.blocks = blocks > 1 ? static_cast<int>(blocks) : 1;
  if (has_workspace && plan.blocks > 1) {
    plan.workspace = static_cast<size_t>(plan.blocks * s.columns * t.pack) * t.stat_bytes;
  }
  plan.shared = AxisScratch(t, s, plan.threads, has_workspace ? 1 : plan.blocks);
  return plan;
}

// The plan of a fold, at pointers aligned to packs; false where there is none.
inline bool ChooseAxisFold(AxisPlan* plan, int64_t outer, int64_t axis, int64_t inner,
                           const AxisTraits& t, const DeviceLimits& limits) {
  using P = AxisPolicy;
  int rows = 1;
  while (inner * rows % t.pack != 0) rows *= 2;
  const int64_t packs = inner * rows / t.pack;
  if (rows == 1 || axis % rows != 0 || packs > P::kMostFoldPacks) return false;
  const int64_t length = axis / rows;
  int threads = packs * 2 > P::kThreads ? P::kMaxThreads : P::kThreads;
  for (int blocks = 1; blocks <= t.most_blocks; blocks *= 2) {
    const int64_t wanted = CeilDiv(length, int64_t{blocks} * P::kFoldPacks), most = threads / packs;
    const int64_t ways = wanted < most ? wanted : most;
    // Short slabs share a block.
    int64_t slabs = blocks > 1 ? 1 : threads / (packs * ways);
    if (slabs > outer) slabs = outer;
    plan->shape.columns = outer * packs;
    plan->shape.axis = length;
    plan->shape.inner = inner * rows;
    plan->shape.lanes = static_cast<int>(packs * slabs);
    plan->shape.fold = {rows, static_cast<int>(inner), static_cast<int>(packs)};
    if (internal::FitAxisSlab(plan, ways, blocks, t, limits)) return true;
  }
  return false;
}

}  // namespace cuda
}  // namespace oneflow_lite
