// SPDX-License-Identifier: Apache-2.0
//
// Reductions of columns: neighbours in memory are of different results (plan.h).
#pragma once

#include "primitive/cuda/reduce/reduce_parts.cuh"

namespace oneflow_lite {
namespace cuda {

// Adds kTurns turns of kPlaces places each, whose packs are asked for before any is added.
template <int kTurns, int kPlaces, int N, class In, class R>
__device__ __forceinline__ void AddTurns(const R& r, const ReducePlan& p, const In* slice,
                                         ReducePlaceAt& at, int64_t k, int64_t seen,
                                         ColumnsOf<R, In, N>& gathered) {
  StowedPack<In, N> stowed[kTurns][kPlaces];  // elements would be spread over registers
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    if (p.together) {
      const In* from = slice + at.x;
#pragma unroll
      for (int j = 0; j < kPlaces; ++j) {
        stowed[turn][j] = StowedPack<In, N>::Of(LoadWhole<N>(from + j * p.places.inner));
      }
    } else {
      ReducePlaceAt each = at;
#pragma unroll
      for (int j = 0; j < kPlaces; ++j) {
        stowed[turn][j] = StowedPack<In, N>::Of(LoadWhole<N>(slice + each.x));
        each.Next(p.places);
      }
    }
    at.Step(p.places);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    Pack<In, N> packs[kPlaces];
#pragma unroll
    for (int j = 0; j < kPlaces; ++j) packs[j] = stowed[turn][j].Get();
    r.AddPlaces(gathered, packs, k + turn * p.step, seen + turn * kPlaces);
  }
}

// Adds the next K places, which may be of two inner dims.
template <int K, int N, class In, class R>
__device__ __forceinline__ void AddSome(const R& r, const ReducePlan& p, const In* slice,
                                        ReducePlaceAt& at, int64_t& k, int64_t& seen,
                                        ColumnsOf<R, In, N>& gathered) {
  Pack<In, N> packs[K];
#pragma unroll
  for (Pack<In, N>& pack : packs) {
    pack = LoadWhole<N>(slice + at.x);
    at.Next(p.places);
  }
  r.AddPlaces(gathered, packs, k, seen);
  k += K, seen += K;
}

// Of N columns the places that are one way's.
template <int N, class In, class R>
__device__ __forceinline__ void GatherPlaces(const R& r, const ReducePlan& p, const In* slice,
                                             int64_t first, ColumnsOf<R, In, N>& gathered) {
  constexpr int kPlaces = ReducePolicy::kPlaces, kHalf = kPlaces / 2;
  static_assert(kPlaces == 8, "fewer than a turn are four, two and one");
  constexpr int kTurns = N == 1 ? ReducePolicy::kNarrowTurns : 1;
  int64_t k = first, seen = 0;
  if (R::kPlaces == 1 || p.rest.ndim > 2) {
#pragma unroll 1
    for (; k < p.units; k += p.step) {
#pragma unroll 1
      for (int64_t j = k; j < k + kPlaces && j < p.units; ++j, ++seen) {
        const Pack<In, N> pack[1] = {LoadWhole<N>(slice + PlaceOf(p.rest, j).x)};
        r.AddPlaces(gathered, pack, j, seen);
      }
    }
    return;
  }
  if constexpr (R::kPlaces > 1) {
    ReducePlaceAt at{first * p.places.inner, first};
    if (p.rest.ndim == 2) {
      const int64_t outer = p.rest.dims[0].size.QuotientOfAny(first);
      at = {at.x + outer * p.places.carry, first - outer * p.places.size};
    }
    if constexpr (kTurns > 1) {
      for (; k + (kTurns - 1) * p.step + kPlaces <= p.units; k += kTurns * p.step) {
        AddTurns<kTurns, kPlaces, N>(r, p, slice, at, k, seen, gathered);
        seen += kTurns * kPlaces;
      }
    }
    for (; k + kPlaces <= p.units; k += p.step, seen += kPlaces) {
      AddTurns<1, kPlaces, N>(r, p, slice, at, k, seen, gathered);
    }
    // Fewer than a turn.
    if (k + kHalf <= p.units) AddSome<kHalf, N>(r, p, slice, at, k, seen, gathered);
    if (k + kHalf / 2 <= p.units) AddSome<kHalf / 2, N>(r, p, slice, at, k, seen, gathered);
    if (k < p.units) AddSome<1, N>(r, p, slice, at, k, seen, gathered);
  }
}

// The merge of every `step`th of `count` states from the one of number `first` on, in their order;
// they lie at equal distances.
template <class R, class State>
__device__ __forceinline__ State MergeEvery(const R& r, const State* states, int64_t distance,
                                            int first, int step, int count) {
  if (first >= count) return r.Identity();
  const State* at = states + first * distance;
  const int64_t further = step * distance;
  State state = *at;
#pragma unroll 4
  for (int k = first + step; k < count; k += step) state = r.Merge(state, *(at += further));
  return state;
}

// A block per tile of columns and chunk of the places. Each thread leaves the states of its columns
// in shared memory; they, and then those of chunks, are merged by one thread for each column, or by
// several where the columns are few.
template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads,
                                  N == 1 ? ReducePolicy::kNarrowResident : R::kColumnsResident)
    ReduceColumnsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                        ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads;
  __shared__ __align__(16) char slots_memory[kThreads * N * sizeof(State)];
  __shared__ __align__(16) char merged_memory[kThreads * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  State* merged = reinterpret_cast<State*>(merged_memory);
  const int rank = threadIdx.x, lane = rank & (p.lanes - 1), way = rank >> p.lanes_log2;
  const int columns = p.lanes * N;  // of a tile
  const ReduceTile t = TileAt(p, blockIdx.x);
  const int64_t column = t.column + lane * N, left = p.length.value - t.column;
  const int here = left < columns ? static_cast<int>(left) : columns;
  const ReducePlace place = PlaceOf(p.kept, t.outer);
  const In* slice = x + place.x + t.column;
  const ReduceWay places{t.begin + way * ReducePolicy::kPlaces, p.step};
  ColumnsOf<R, In, N> gathered = r.template BeginColumns<In, N>();
  if (column < p.length.value) GatherPlaces<N>(r, p, slice + lane * N, places.first, gathered);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    slots[way * columns + i * p.lanes + lane] = r.ConcludeColumn(gathered, i, places);
  }
  __syncthreads();

  const int parts = kThreads / columns;  // threads of a column; 0: a thread has several
  int c = parts > 0 ? rank & (columns - 1) : rank;
  const int64_t states_at = t.outer * p.length.value + t.column;
  const int levels = chunks.states ? p.levels() : 0;
  const State* from = slots;
  int64_t distance = columns;
  int count = kThreads >> p.lanes_log2;
  int64_t mine = t.chunk;  // whose state has been merged
#pragma unroll 1
  for (int level = 0;;) {
    asm volatile("" : "+l"(from));  // the compiler would write the merge twice
    const int at = level == 0 ? c % N * p.lanes + c / N : c;
    merged[rank] = c < here
                       ? MergeEvery(r, from + at, distance, rank / columns, max(parts, 1), count)
                       : r.Identity();
    if (parts > 1) MergeSlots(r, merged, kThreads, columns);
    if (rank < columns && c < here) {
      if (level == levels) {
        r.Finish(merged[rank], out, place.y + (t.column + c) * p.column_y, slice + c,
                 p.rest.dims[0].x);
      } else {
        chunks.states[mine * p.results + states_at + rank] = merged[rank];
      }
    }
    if (level == levels && (parts > 0 || (c += kThreads) >= columns)) return;
    if (level == levels) continue;
    const ReduceMerge merge = MergeAt(p, t.tile, mine, level++);
    if (!IsLastChunk(chunks.done + merge.counter, merge.count)) return;
    from = chunks.states + merge.first * p.results + states_at;
    distance = merge.step * p.results;
    count = merge.count;
    mine = merge.first;
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
