// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is cut into parts: a kernel argument, and where a thread finds its elements; the
// host makes it in planner.h. C++17 for .cu files; nothing here needs a GPU, so tests walk through
// launches on the host.
//
// Dims are sorted by stride, and those that continue each other merged. The innermost one, whose
// elements are neighbours, decides:
//
//   rows:    it is reduced. A result's elements are `rest` rows of `length` neighbours. Its units
//            are packs, 16 bytes at a boundary, counted row after row; a team of threads takes
//            turns at them. A row that begins or ends between boundaries has packs that it fills in
//            part.
//   columns: it is kept. A block takes a tile: its lanes lie along the columns, its ways along the
//            reduced places.
//
// Where there are too few results to fill the device, `chunks` parts of each leave a state, and the
// block that ends last merges those; where they are many, the last one of each group of them does,
// and of the groups. Chunks take turns, so that all blocks read from one region of memory at a
// time. The order of all merges is the plan's.
#pragma once

#include "primitive/cuda/chip/device_limits.h"
#include "primitive/cuda/strided/divisor.cuh"
#include "primitive/reduce_shape.h"

namespace oneflow_lite {
namespace cuda {

struct ReducePolicy {
  static constexpr int kThreads = 128;
  static constexpr int kBatch = 4;           // packs under way in a thread
  static constexpr int kPlaces = 8;          // places of columns under way in a thread
  static constexpr int kNarrowTurns = 2;     // times the places where a thread has one column
  static constexpr int kNarrowResident = 6;  // blocks of a multiprocessor then
  static constexpr int kTileLanes = 16;      // along the columns, at most: 256 bytes of packs
  static constexpr int kTileBytes = 128;     // of states per thread of a tile, at most
  static constexpr int kFewElements = 4;     // of a row, up to which a thread takes it
  static constexpr int kFewUnits = 128;      // of a result, up to which lanes of a warp take it
  static constexpr int kWarpUnits = 1024;    // the same where there are many results:
  static constexpr int kManyResults = 16;    // per multiprocessor
  static constexpr int kManyThreads = 512;   // per multiprocessor: a lane takes a batch, not a pack
  static constexpr int kFullThreads = 960;   // the same: a lane takes as much as there is,
  static constexpr int kLineLanes = 8;       // but lanes of a line of memory stay together
  static constexpr int kMinPlaces = 64;      // of columns worth a chunk
  static constexpr int kFewWays = 8;         // whose states one thread merges
  static constexpr int kMostMerges = 32;     // of a thread, for a tile of columns without groups
};

// Dims, innermost first, that an index is divided into, with their strides.
struct ReduceWalk {
  struct Dim {
    Divisor size;
    int64_t x = 0, y = 0;
  };
  int ndim = 0;
  int64_t count = 1;
  Dim dims[kMaxReduceDims];

  void Add(int64_t n, int64_t stride, int64_t y_stride) {
    dims[ndim++] = {Divisor(n), stride, y_stride};
    count *= n;
  }
};

// Places of columns, along two dims.
struct ReducePlaces {
  int64_t size = 0;    // of the inner dim
  int64_t inner = 0;   // from one place to the next, in x
  int64_t carry = 0;   // beside that where the inner dim begins again
  int64_t step = 0;    // of a plan, in the inner dim
  int64_t step_x = 0;  // the same in x
};
// One of them, which moves on.
struct ReducePlaceAt {
  int64_t x, inner;
  OFL_HOST_DEVICE void Next(const ReducePlaces& p) {
    x += p.inner;
    if (++inner == p.size) inner = 0, x += p.carry;
  }
  OFL_HOST_DEVICE void Step(const ReducePlaces& p) {
    x += p.step_x, inner += p.step;
    if (inner >= p.size) inner -= p.size, x += p.carry;
  }
};

struct ReducePlan {
  int lanes = 1, lanes_log2 = 0;  // of a team, or along the columns; powers of two
  int width = 1;                  // columns of a thread
  bool columns = false;
  bool packed = false;            // rows: all packs are whole
  bool few = false;               // rows: one of few elements, a thread's
  bool together = false;          // columns: kPlaces places are so many steps of the innermost dim
  int64_t results = 1, axis = 1;  // axis: elements of a result
  int64_t units = 0;              // of a result: packs, or places
  int64_t span = 0;               // elements from x to the last one, and that one
  Divisor chunks;                 // of a result
  int64_t group = 1;              // chunks of a group
  Divisor tiles;                  // of the columns
  Divisor length;                 // elements of a row, or columns
  int64_t step = 0;               // from one unit of a thread to the next; columns: from one batch
  int64_t step_rows = 0, step_packs = 0;  // rows: the same in rows, and in packs of a row
  Divisor packs;                          // of a row, as many as it may touch
  int64_t column_y = 1;                   // from one column's result to the next
  ReducePlaces places;                    // columns: where they are of at most two dims
  ReduceWalk kept;                        // the results, without the columns
  ReduceWalk rest;                        // rows: of a result; columns: all reduced places

  int64_t tasks() const { return (columns ? kept.count * tiles.value : results) * chunks.value; }
  // How often states of chunks are merged.
  OFL_HOST_DEVICE int levels() const { return group < chunks.value ? 2 : 1; }
  // Of a result, or a tile of columns: one for each group, and one for all groups.
  OFL_HOST_DEVICE int64_t counters_each() const {
    return levels() == 1 ? 1 : (chunks.value + group - 1) / group + 1;
  }
  int64_t counters() const {
    return (columns ? kept.count * tiles.value : results) * counters_each();
  }
  int64_t blocks() const {
    return columns ? tasks() : CeilDiv(tasks(), ReducePolicy::kThreads / lanes);
  }
};

struct ReducePlace {
  int64_t x, y;
};
OFL_HOST_DEVICE ReducePlace PlaceOf(const ReduceWalk& w, int64_t index) {
  ReducePlace at{0, 0};
  int last = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (; last + 1 < w.ndim; ++last) {
    const ReduceWalk::Dim& dim = w.dims[last];
    const int64_t further = dim.size.QuotientOfAny(index);
    const int64_t coordinate = index - further * dim.size.value;
    at.x += coordinate * dim.x;
    at.y += coordinate * dim.y;
    index = further;
  }
  at.x += index * w.dims[last].x;
  at.y += index * w.dims[last].y;
  return at;
}

// Where a result's slice begins, and where the result goes. Columns count fastest.
OFL_HOST_DEVICE ReducePlace PlaceOfResult(const ReducePlan& p, int64_t result) {
  if (!p.columns) return PlaceOf(p.kept, result);
  const int64_t outer = p.length.QuotientOfAny(result), column = result - outer * p.length.value;
  const ReducePlace at = PlaceOf(p.kept, outer);
  return {at.x + column, at.y + column * p.column_y};
}

// One unit of a result's rows.
struct ReduceUnit {
  int64_t row, pack;
};
OFL_HOST_DEVICE ReduceUnit UnitAt(const ReducePlan& p, int64_t unit) {
  if (p.rest.count == 1) return {0, unit};
  const int64_t row = p.packs.QuotientOfAny(unit);
  return {row, unit - row * p.packs.value};
}
OFL_HOST_DEVICE ReduceUnit NextUnit(const ReducePlan& p, ReduceUnit at) {
  at.pack += p.step_packs;
  if (p.rest.count == 1) return at;
  at.row += p.step_rows;
  if (at.pack >= p.packs.value) {
    at.pack -= p.packs.value;
    ++at.row;
  }
  return at;
}

// A block's part of the columns: the tile, the first column of its lane 0, and the first of its
// places.
struct ReduceTile {
  int64_t outer, tile, column, chunk, begin;
};
OFL_HOST_DEVICE ReduceTile TileAt(const ReducePlan& p, uint32_t task) {
  const uint32_t row = p.tiles.Quotient(task), outer = p.chunks.Quotient(row);
  ReduceTile t;
  t.outer = outer;
  const int64_t across = task - row * p.tiles.value;
  t.tile = outer * p.tiles.value + across;
  t.column = across * p.lanes * p.width;
  t.chunk = row - outer * p.chunks.value;
  t.begin = t.chunk * ReducePolicy::kPlaces * (ReducePolicy::kThreads >> p.lanes_log2);
  return t;
}

// The places of a thread of columns: kPlaces from `first` on, then so many `step` further, and so
// on; the last ones may be fewer.
struct ReduceWay {
  int64_t first, step;
  // Of the one that the thread has after `seen` others.
  OFL_HOST_DEVICE int64_t PlaceOf(int64_t seen) const {
    return first + seen / ReducePolicy::kPlaces * step + seen % ReducePolicy::kPlaces;
  }
};

// What the block does that is the last one of those that `counter` counts: the states of these
// chunks are merged, and the result's place is that of the first one.
struct ReduceMerge {
  int64_t first, step;
  int count;
  int64_t counter;
};
// Of a result, or of a tile; `chunk` is one whose state has just been left.
OFL_HOST_DEVICE ReduceMerge MergeAt(const ReducePlan& p, int64_t of, int64_t chunk, int level) {
  const int64_t each = p.counters_each(), counter = of * each;
  if (level == 1) return {0, p.group, static_cast<int>(each - 1), counter + each - 1};
  const int64_t group = chunk / p.group, first = group * p.group;
  const int64_t left = p.chunks.value - first;
  return {first, 1, static_cast<int>(left < p.group ? left : p.group), counter + group};
}

}  // namespace cuda
}  // namespace oneflow_lite
