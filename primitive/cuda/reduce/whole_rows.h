// SPDX-License-Identifier: Apache-2.0
//
// Rows whose packs and batches are all whole (plan.h): the argument of reduce_whole_rows.cuh, and
// where its threads find their packs. C++17 for .cu files; nothing here needs a GPU, so tests walk
// through launches on the host.
#pragma once

#include "primitive/cuda/reduce/planner.h"

namespace oneflow_lite {
namespace cuda {

struct WholeRows {
  // docs/lab/56-reductions-of-whole-rows.md has the figures.
  static constexpr int kThreads = 256;
  static constexpr int kResident = 4;  // blocks of a multiprocessor, for which chunks make waves

  int lanes_log2, chunks;  // of a result
  int units;               // packs of a result
  Divisor packs;           // of a row
  int64_t gap;             // elements from the end of a row to the next one
  int results;             // along two dims, of which the inner one has so many:
  Divisor inner;
  int64_t inner_x, inner_y, outer_x, outer_y;  // from one to the next

  // Where a result's slice begins, and where the result goes.
  OFL_HOST_DEVICE ReducePlace PlaceOf(int result) const {
    const int far = static_cast<int>(inner.Quotient(static_cast<uint32_t>(result)));
    const int near = result - far * static_cast<int>(inner.value);
    return {near * inner_x + far * outer_x, near * inner_y + far * outer_y};
  }
  // From the first pack of a slice to the first one of a unit's row, less the packs between.
  OFL_HOST_DEVICE int64_t GapBefore(int unit) const {
    return packs.Quotient(static_cast<uint32_t>(unit)) * gap;
  }
  int blocks() const { return static_cast<int>(CeilDiv(int64_t{results} << lanes_log2, kThreads)); }
};

// Whether a plan is of this kind; then *to is. `batch`: packs of a thread that are added together.
inline bool IsWholeRows(const ReducePlan& p, const ReduceTarget& target, int batch, WholeRows* to) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (p.columns || !p.packed || p.rest.ndim > 1 || p.kept.ndim > 2) return false;
  const int lanes = p.lanes == ReducePolicy::kThreads ? WholeRows::kThreads : p.lanes;
  const int64_t turn = int64_t{lanes} * batch;  // units of a result, or a chunk, in one turn
  if (p.units == 0 || p.units % turn != 0 || p.units > kMost - turn * (int64_t{1} << 16) ||
      p.results * lanes > kMost) {
    return false;
  }
  int64_t chunks = 1;
  if (p.chunks.value > 1) {
    chunks = ChunksToFill(p.results, target.wave(WholeRows::kResident));
    chunks = Max(Min(Min(chunks, p.chunks.value), Min(p.units / turn, 1 << 15)), 1);
  }
  const ReduceWalk::Dim &inner = p.kept.dims[0], &outer = p.kept.dims[1];
  to->lanes_log2 = Log2OfPower(lanes), to->chunks = static_cast<int>(chunks);
  to->units = static_cast<int>(p.units), to->packs = p.packs;
  to->gap = p.rest.count > 1 ? p.rest.dims[0].x - p.packs.value * target.pack() : 0;
  to->results = static_cast<int>(p.results);
  to->inner = p.kept.ndim > 1 ? inner.size : Divisor(kMost);
  to->inner_x = inner.x, to->inner_y = inner.y, to->outer_x = outer.x, to->outer_y = outer.y;
  return true;
}

}  // namespace cuda
}  // namespace oneflow_lite
