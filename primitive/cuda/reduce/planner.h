// SPDX-License-Identifier: Apache-2.0
//
// Makes a ReducePlan (plan.h) of a shape.
#pragma once

#include <initializer_list>

#include "primitive/cuda/reduce/plan.h"

namespace oneflow_lite {
namespace cuda {

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
// are whole ones; blocks of a multiprocessor, of rows and of columns; `aligned`: x begins at a
// boundary of 16 bytes. `most_places`: of a thread of columns.
struct ReduceTarget {
  int bytes, width, resident, columns_resident, multiprocessors;
  bool aligned;
  int64_t most_places = INT64_MAX;
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
  p->few = !packed && p->rest.count == 1 && length <= P::kFewElements;
  if (p->few) {
    p->lanes = 1;
  } else if (p->units <= (many ? P::kWarpUnits : P::kFewUnits)) {
    while (p->lanes < 32 && p->lanes < p->units) p->lanes *= 2;
    const auto fills = [&](int lanes, int64_t threads) {
      return p->results >= CeilDiv(threads * target.multiprocessors, lanes);
    };
    const auto enough = [&](int lanes) {
      const bool line = lanes >= P::kLineLanes && target.bytes <= 2;  // var of float32: 72 us, 83
      if (line && fills(lanes, P::kFullThreads)) return true;
      return lanes >= 2 && int64_t{lanes} * P::kBatch >= p->units && fills(lanes, P::kManyThreads);
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

// Chunks of columns that leave a thread no more places than it may have.
inline int64_t LeastChunks(const ReducePlan& p, const ReduceTarget& target) {
  const int64_t ways = ReducePolicy::kThreads / p.lanes;
  return CeilDiv(CeilDiv(p.units, ways), target.most_places - ReducePolicy::kPlaces);
}

inline void PlanColumns(ReducePlan* p, const ReduceTarget& target, int width) {
  using P = ReducePolicy;
  int widest = width * target.bytes < 16 ? 2 * P::kTileLanes : P::kTileLanes;
  if (widest * width > P::kThreads) widest = P::kThreads / width;
  p->width = width;
  p->together = p->rest.ndim <= 1 || p->rest.dims[0].size.value % P::kPlaces == 0;
  while (p->lanes < widest && int64_t{p->lanes} * width < p->length.value) p->lanes *= 2;
  p->units = p->axis;
  // Of few places most ways would have none.
  const int64_t needed = CeilDiv(p->units, P::kPlaces);
  while (P::kThreads / p->lanes >= 2 * needed && int64_t{p->lanes} * width < p->length.value &&
         p->lanes < P::kThreads) {
    p->lanes *= 2;
  }
  p->tiles = Divisor(CeilDiv(p->length.value, int64_t{p->lanes} * width));
  CutIntoChunks(p, p->kept.count * p->tiles.value, P::kMinPlaces,
                target.wave(width == 1 ? P::kNarrowResident : target.columns_resident));
  const int64_t ways = P::kThreads / p->lanes;
  const int64_t least = LeastChunks(*p, target);
  if (p->chunks.value < least) {
    p->chunks = Divisor(least);
    p->group = least;
  }
  if (p->chunks.value * p->lanes * width > int64_t{P::kMostMerges} * P::kThreads) {
    p->group = 1;
    while (p->group * p->group < p->chunks.value) ++p->group;
  }
  p->step = p->chunks.value * P::kPlaces * ways;
  if (p->rest.ndim <= 2) {
    const ReduceWalk::Dim &inner = p->rest.dims[0], &outer = p->rest.dims[1];
    ReducePlaces& places = p->places;
    const bool one = p->rest.ndim < 2;
    places.size = one ? INT64_MAX : inner.size.value;
    places.inner = inner.x;
    places.carry = one ? 0 : outer.x - inner.size.value * inner.x;
    places.step = p->step % places.size;
    places.step_x = places.step * inner.x + p->step / places.size * outer.x;
  }
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
  p.span = 1;
  for (int i = 0; i < n; ++i) p.span += (dims[i].size - 1) * dims[i].x;
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
