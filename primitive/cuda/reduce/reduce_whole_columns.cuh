// SPDX-License-Identifier: Apache-2.0
//
// Reductions of columns whose tiles, turns of places and packs are all whole (plan.h): the kernel
// of reduce_columns.cuh with little code, which comes from memory when a program gets here (lab
// note 49).
#pragma once

#include "primitive/cuda/reduce/planner.h"
#include "primitive/cuda/reduce/reduce_parts.cuh"

namespace oneflow_lite {
namespace cuda {

struct WholeColumns {
  int tiles, across;             // of all outer; of one
  int lanes_log2, chunks;        // a block has a tile and a chunk: x and y of the grid
  int units, inner;              // places; of the inner dim
  int step, step_outer;          // from one turn to the next, in the inner dim and the outer one
  int64_t x, inner_x, outer_x;   // from one outer to the next; one place; one outer place
  int64_t results, y, column_y;  // of all; from one outer's to the next; from a column's
};

// Whether a plan is of this kind; then *to is. `resident`: blocks of a multiprocessor, for which
// its chunks make waves. Four of 16-bit columns read as fast as five, and leave fewer states.
template <int N>
bool IsWhole(const ReducePlan& p, const ReduceTarget& target, int resident, WholeColumns* to) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t columns = int64_t{p.lanes} * N, tiles = p.kept.count * p.tiles.value;
  if (!p.columns || N == 1 || p.width != N || p.length.value % columns != 0) return false;
  if (p.units % ReducePolicy::kPlaces != 0 || !p.together || p.units + p.step >= kMost)
    return false;
  if (p.rest.ndim > 2 || p.kept.ndim > 1 || p.levels() > 1) return false;
  // One thread merges all of a column.
  if (columns > ReducePolicy::kThreads) return false;
  if (tiles >= kMost || p.chunks.value > 32 || ReducePolicy::kThreads / p.lanes > 16) return false;
  int64_t chunks = p.chunks.value;
  if (chunks > 1) {
    const int64_t wanted = ChunksToFill(tiles, target.wave(resident));
    chunks = Min(chunks, Max(wanted, LeastChunks(p, target)));
  }
  const int64_t step = p.step / p.chunks.value * chunks;
  const bool two = p.rest.ndim == 2;
  to->tiles = static_cast<int>(tiles), to->across = static_cast<int>(p.tiles.value);
  to->lanes_log2 = p.lanes_log2, to->chunks = static_cast<int>(chunks);
  to->units = static_cast<int>(p.units);
  to->inner = two ? static_cast<int>(p.rest.dims[0].size.value) : to->units;
  to->step = static_cast<int>(step % to->inner);
  to->step_outer = static_cast<int>(step / to->inner);
  to->x = p.kept.dims[0].x, to->inner_x = p.rest.dims[0].x, to->outer_x = p.rest.dims[1].x;
  to->results = p.results, to->y = p.kept.dims[0].y, to->column_y = p.column_y;
  return true;
}

// Of N columns from `from` on the places that are one way's.
template <int N, class In, class R>
__device__ __forceinline__ void GatherWhole(const R& r, const WholeColumns& p, const In* from,
                                            const ReduceWay& places,
                                            ColumnsOf<R, In, N>& gathered) {
  constexpr int kPlaces = ReducePolicy::kPlaces;
  int inner = static_cast<int>(places.first), seen = 0;
  if (p.inner < p.units) {
    const int outer = inner / p.inner;
    inner -= outer * p.inner, from += outer * p.outer_x;
  }
  const auto load = [&](Pack<In, N>(&packs)[kPlaces]) {
    const In* at = from + inner * p.inner_x;
    inner += p.step, from += p.step_outer * p.outer_x;
    if (inner >= p.inner) inner -= p.inner, from += p.outer_x;
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) packs[j] = LoadWhole<N>(at + j * p.inner_x);
  };
  int k = static_cast<int>(places.first);
  const int step = static_cast<int>(places.step);
  Pack<In, N> packs[kPlaces];
  if constexpr (R::kReadsAhead) {
    StowedPack<In, N> next[kPlaces];
    const auto ask = [&] {
      load(packs);
#pragma unroll
      for (int j = 0; j < kPlaces; ++j) next[j] = StowedPack<In, N>::Of(packs[j]);
    };
    if (k < p.units) ask();
#pragma unroll 1
    for (; k < p.units; k += step, seen += kPlaces) {
      Pack<In, N> these[kPlaces];
#pragma unroll
      for (int j = 0; j < kPlaces; ++j) these[j] = next[j].Get();
      if (k + step < p.units) ask();
      r.AddPlaces(gathered, these, k, seen);
    }
  } else {
#pragma unroll 1
    for (; k < p.units; k += step, seen += kPlaces) {
      load(packs);
      r.AddPlaces(gathered, packs, k, seen);
    }
  }
}

template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads, R::kWholeColumnsResident)
    ReduceWholeColumnsKernel(const In* __restrict__ x, const __grid_constant__ WholeColumns p, R r,
                             ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads, kPlaces = ReducePolicy::kPlaces;
  __shared__ __align__(16) char slots_memory[kThreads * N * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const int rank = threadIdx.x, lanes = 1 << p.lanes_log2, lane = rank & (lanes - 1);
  const int way = rank >> p.lanes_log2, ways = kThreads >> p.lanes_log2, columns = lanes * N;
  const int tile = blockIdx.x, chunk = blockIdx.y;
  int outer = 0, across = tile;
  if (p.across < p.tiles) outer = tile / p.across, across = tile - outer * p.across;
  const int64_t first = int64_t{across} * columns;
  const In* slice = x + outer * p.x + first;
  const In* from = slice + lane * N;
  const ReduceWay places{(chunk * ways + way) * kPlaces, p.chunks * ways * kPlaces};
  ColumnsOf<R, In, N> gathered = r.template BeginColumns<In, N>();
  GatherWhole<N>(r, p, from, places, gathered);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    slots[way * columns + i * lanes + lane] = r.ConcludeColumn(gathered, i, places);
  }
  __syncthreads();

  // Of each column the ways are merged, many of them by several threads first, and by the last
  // block the chunks. Neighbouring threads take neighbouring states.
  State* states = chunks.states + (int64_t{outer} * p.across + across) * columns + rank;
  const State* of = slots + rank;
  int count = ways;
  int64_t distance = columns;
  if (ways > ReducePolicy::kFewWays && columns < kThreads) {
    count = kThreads / columns;
    const State part = MergeAll(r, of, kThreads, ways / count);
    __syncthreads();
    slots[rank] = part;
    __syncthreads();
  }
#pragma unroll 1
  for (int level = p.chunks > 1 ? 0 : 1;; ++level) {
    if (rank < columns) {
      const State state = MergeAll(r, of, distance, count);
      if (level == 1) {
        const int column = (rank & (lanes - 1)) * N + (rank >> p.lanes_log2);
        r.Finish(state, out, outer * p.y + (first + column) * p.column_y, slice + column,
                 p.inner_x);
        return;
      }
      states[chunk * p.results] = state;
    }
    if (level == 1 || !IsLastChunk(chunks.done + tile, p.chunks)) return;
    of = states, count = p.chunks, distance = p.results;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
