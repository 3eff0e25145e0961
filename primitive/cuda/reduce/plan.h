// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is cut into parts: a kernel argument, and where a thread finds its elements.
// C++17 for .cu files; nothing here needs a GPU, so tests walk through launches on the host.
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
  static constexpr int kBatch = 4;           // packs, or places of columns, under way in a thread
  static constexpr int kNarrowTurns = 4;     // batches under way where a thread has one column
  static constexpr int kNarrowResident = 6;  // blocks of a multiprocessor then
  static constexpr int kTileLanes = 16;      // along the columns, at most: 256 bytes of packs
  static constexpr int kTileBytes = 128;     // of states per thread of a tile, at most
  static constexpr int kFewUnits = 128;      // of a result, up to which lanes of a warp take it
  static constexpr int kWarpUnits = 1024;    // the same where there are many results:
  static constexpr int kManyResults = 16;    // per multiprocessor
  static constexpr int kManyThreads = 512;   // per multiprocessor: a lane takes a batch, not a pack
  static constexpr int kMinPlaces = 64;      // of columns worth a chunk
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

struct ReducePlan {
  int lanes = 1, lanes_log2 = 0;  // of a team, or along the columns; powers of two
  int width = 1;                  // columns of a thread
  bool columns = false;
  bool packed = false;    // rows: all packs are whole
  bool together = false;  // columns: a batch of places is so many steps of the innermost dim
  int64_t results = 1, axis = 1;  // axis: elements of a result
  int64_t units = 0;              // of a result: packs, or places
  Divisor chunks;                 // of a result
  int64_t group = 1;              // chunks of a group
  Divisor tiles;                  // of the columns
  Divisor length;                 // elements of a row, or columns
  int64_t step = 0;               // from one unit of a thread to the next; columns: from one batch
  int64_t step_rows = 0, step_packs = 0;  // rows: the same in rows, and in packs of a row
  Divisor packs;                          // of a row, as many as it may touch
  int64_t column_y = 1;                   // from one column's result to the next
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
OFL_HOST_DEVICE ReduceTile TileAt(const ReducePlan& p, int64_t task) {
  const int64_t row = p.tiles.QuotientOfAny(task), outer = p.chunks.QuotientOfAny(row);
  ReduceTile t;
  t.outer = outer;
  const int64_t across = task - row * p.tiles.value;
  t.tile = outer * p.tiles.value + across;
  t.column = across * p.lanes * p.width;
  t.chunk = row - outer * p.chunks.value;
  t.begin = t.chunk * ReducePolicy::kBatch * (ReducePolicy::kThreads >> p.lanes_log2);
  return t;
}

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

// ---- On the host. ----

struct ReduceDim {
  int64_t size, x, y;
  bool reduced;
};

inline int64_t ElementsOfResult(const ReduceShape& shape) {
  int64_t n = 1;
  for (int d = 0; d < shape.ndim; ++d) n *= shape.reduced[d] ? shape.sizes[d] : 1;
  return n;
}

// The dims sorted by stride and merged, innermost first; returns how many there are.
inline int SortReduceDims(const ReduceShape& shape, ReduceDim* dims) {
  int n = 0;
  int64_t y = 1;
  for (int d = shape.ndim - 1; d >= 0; --d) {
    if (shape.sizes[d] == 1) continue;
    const ReduceDim dim{shape.sizes[d], shape.strides[d], y, shape.reduced[d]};
    if (!dim.reduced) y *= dim.size;
    int at = n++;
    for (; at > 0 && dims[at - 1].x > dim.x; --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  int merged = 0;
  for (int i = 0; i < n; ++i) {
    ReduceDim* last = merged > 0 ? dims + merged - 1 : nullptr;
    const bool continues = last && last->reduced == dims[i].reduced &&
                           dims[i].x == last->x * last->size &&
                           (last->reduced || dims[i].y == last->y * last->size);
    if (continues) {
      last->size *= dims[i].size;
    } else {
      dims[merged++] = dims[i];
    }
  }
  return merged;
}

// Whether the plan takes these strides: some dim's elements are neighbours, and none overlap.
inline bool TakesReduceStrides(const ReduceShape& shape) {
  ReduceDim dims[kMaxReduceDims];
  const int n = SortReduceDims(shape, dims);
  for (int i = 0; i < n; ++i) {
    if (dims[i].x < (i == 0 ? 1 : dims[i - 1].x * dims[i - 1].size)) return false;
  }
  return n == 0 || dims[0].x == 1;
}

inline int Log2OfPower(int64_t n) {
  int log2 = 0;
  while ((int64_t{1} << log2) < n) ++log2;
  return log2;
}

// Chunks of each of `tasks`, so that they make one wave of resident blocks, or two, or four, of
// which an eighth at most stays empty; about four where none of these can be. 0 or 1: none.
inline int64_t ChunksToFill(int64_t tasks, int64_t wave) {
  int64_t chunks = 0;
  for (const int waves : {1, 2, 4}) {
    chunks = waves * wave / tasks;
    if (chunks * tasks * 8 >= waves * wave * 7) break;
  }
  return chunks;
}

// Cuts each result's units where `tasks` blocks would not fill the device; `least`: units that are
// worth a chunk.
inline void CutIntoChunks(ReducePlan* p, int64_t tasks, int64_t least, int64_t wave) {
  const int64_t wanted = ChunksToFill(tasks > 0 ? tasks : 1, wave);
  const int64_t most = CeilDiv(p->units, least), chunks = wanted < most ? wanted : most;
  p->chunks = Divisor(chunks > 0 ? chunks : 1);
  p->group = p->chunks.value;
}

// What a plan is for: an element's bytes; columns that a thread takes where all of a row's packs
// are whole ones; blocks of a multiprocessor; `aligned`: x begins at a boundary of 16 bytes.
struct ReduceTarget {
  int bytes, width, resident, multiprocessors;
  bool aligned;
  int pack() const { return 16 / bytes; }
  int64_t wave(int blocks) const { return int64_t{blocks} * multiprocessors; }
};

inline void PlanRows(ReducePlan* p, const ReduceTarget& target, bool packed) {
  using P = ReducePolicy;
  const int64_t length = p->length.value;
  const int pack = target.pack();
  p->packed = packed;
  p->packs = Divisor(packed ? length / pack : (length + 2 * pack - 2) / pack);
  p->units = p->rest.count * p->packs.value;
  const bool many = p->results >= int64_t{P::kManyResults} * target.multiprocessors;
  if (p->units <= (many ? P::kWarpUnits : P::kFewUnits)) {
    while (p->lanes < 32 && p->lanes < p->units) p->lanes *= 2;
    const auto enough = [&](int lanes) {
      return lanes >= 2 && int64_t{lanes} * P::kBatch >= p->units &&
             p->results >= CeilDiv(int64_t{P::kManyThreads} * target.multiprocessors, lanes);
    };
    while (enough(p->lanes / 2)) p->lanes /= 2;
  } else {
    p->lanes = P::kThreads;
  }
  const int64_t tasks = p->lanes == P::kThreads ? p->results : INT64_MAX;
  CutIntoChunks(p, tasks, int64_t{P::kThreads} * P::kBatch, target.wave(target.resident));
  p->step = p->step_packs = p->lanes * p->chunks.value;
  if (p->rest.count > 1 && p->packs.value > 0) {
    p->step_rows = p->step / p->packs.value;
    p->step_packs = p->step % p->packs.value;
  }
}

inline void PlanColumns(ReducePlan* p, const ReduceTarget& target, int width) {
  using P = ReducePolicy;
  const int most = width * target.bytes < 16 ? 2 * P::kTileLanes : P::kTileLanes;
  p->width = width;
  p->together = p->rest.ndim <= 1 || p->rest.dims[0].size.value % P::kBatch == 0;
  while (p->lanes < most && int64_t{p->lanes} * width < p->length.value) p->lanes *= 2;
  p->units = p->axis;
  p->tiles = Divisor(CeilDiv(p->length.value, int64_t{p->lanes} * width));
  CutIntoChunks(p, p->kept.count * p->tiles.value, P::kMinPlaces,
                target.wave(width == 1 ? P::kNarrowResident : target.resident));
  if (p->chunks.value * p->lanes * width > int64_t{P::kMostMerges} * P::kThreads) {
    p->group = 1;
    while (p->group * p->group < p->chunks.value) ++p->group;
  }
  p->step = p->chunks.value * P::kBatch * (P::kThreads / p->lanes);
}

inline ReducePlan PlanReduce(const ReduceShape& shape, const ReduceTarget& target) {
  const int pack = target.pack(), width = target.width;
  ReducePlan p;
  ReduceDim dims[kMaxReduceDims];
  const int n = SortReduceDims(shape, dims);
  p.axis = ElementsOfResult(shape);
  for (int d = 0; d < shape.ndim; ++d) p.results *= shape.reduced[d] ? 1 : shape.sizes[d];
  if (p.axis == 0) {  // the results lie densely, and nothing is read
    p.kept.Add(p.results, 0, 1);
    p.length = Divisor(0);
    PlanRows(&p, target, true);
    return p;
  }
  p.columns = n > 0 && !dims[0].reduced;
  p.length = Divisor(n > 0 ? dims[0].size : 1);
  if (p.columns) p.column_y = dims[0].y;
  bool packed = target.aligned && p.length.value % pack == 0,
       wide = target.aligned && p.length.value % width == 0;
  for (int i = 1; i < n; ++i) {
    packed = packed && dims[i].x % pack == 0;
    wide = wide && dims[i].x % width == 0;
    (dims[i].reduced ? p.rest : p.kept).Add(dims[i].size, dims[i].x, dims[i].y);
  }
  if (p.columns) {
    PlanColumns(&p, target, wide ? width : 1);
  } else {
    PlanRows(&p, target, packed);
  }
  p.lanes_log2 = Log2OfPower(p.lanes);
  return p;
}

}  // namespace cuda
}  // namespace oneflow_lite
