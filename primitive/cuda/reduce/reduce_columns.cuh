// SPDX-License-Identifier: Apache-2.0
//
// Reductions of columns: neighbours in memory are of different results (plan.h).
#pragma once

#include "primitive/cuda/reduce/reduce_parts.cuh"

namespace oneflow_lite {
namespace cuda {

// Adds kTurns turns of places, a batch each, whose packs are asked for before any is added.
template <int kTurns, int N, class In, class R>
__device__ __forceinline__ void AddTurns(const R& r, const ReducePlan& p, const In* slice,
                                         int64_t k, ColumnOf<R> (&gathered)[N]) {
  constexpr int kTurn = ReducePolicy::kBatch, K = R::kBatch;
  const In* from[kTurns][kTurn];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    if (p.together) {
      from[turn][0] = slice + PlaceOf(p.rest, k + turn * p.step).x;
#pragma unroll
      for (int j = 1; j < kTurn; ++j) from[turn][j] = from[turn][j - 1] + p.rest.dims[0].x;
    } else {
#pragma unroll
      for (int j = 0; j < kTurn; ++j) {
        from[turn][j] = slice + PlaceOf(p.rest, k + turn * p.step + j).x;
      }
    }
  }
  Pack<In, N> packs[kTurns][kTurn / K][K];
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int j = 0; j < kTurn; ++j) packs[turn][j / K][j % K] = LoadWhole<N>(from[turn][j]);
  }
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int j = 0; j < kTurn; j += K) {
      r.AddPlaces(gathered, packs[turn][j / K], k + turn * p.step + j);
    }
  }
}

// Of N columns the places that are one way's: a batch of them at first, first + p.step ...
template <int N, class In, class R>
__device__ __forceinline__ void GatherPlaces(const R& r, const ReducePlan& p, const In* slice,
                                             int64_t first, ColumnOf<R> (&gathered)[N]) {
  constexpr int kTurn = ReducePolicy::kBatch, kTurns = N == 1 ? ReducePolicy::kNarrowTurns : 1;
  int64_t k = first;
  if constexpr (kTurns > 1) {
    for (; k + (kTurns - 1) * p.step + kTurn <= p.units; k += kTurns * p.step) {
      AddTurns<kTurns>(r, p, slice, k, gathered);
    }
  }
  for (; k + kTurn <= p.units; k += p.step) AddTurns<1>(r, p, slice, k, gathered);
#pragma unroll 1
  for (int64_t last = k + kTurn; k < p.units && k < last; ++k) {
    const Pack<In, N> pack[1] = {LoadWhole<N>(slice + PlaceOf(p.rest, k).x)};
    r.AddPlaces(gathered, pack, k);
  }
}

// Takes the states of the chunks of a merge into the slots, for MergeSlots: `columns` of them, a
// power of two, of which `here` exist. The ways of a column take its chunks in turns. Returns how
// many slots there are.
template <class R, class State>
__device__ __forceinline__ int TakeChunks(const R& r, const ReduceMerge& merge, const State* states,
                                          int64_t results, int columns, int here, State* slots) {
  constexpr int kThreads = ReducePolicy::kThreads;
  const int columns_log2 = __ffs(columns) - 1, used = columns > kThreads ? columns : kThreads;
  const int64_t step = merge.step * results;
#pragma unroll 1
  for (int slot = threadIdx.x; slot < used; slot += kThreads) {
    const int c = slot & (columns - 1);
    State state = r.Identity();
    if (c < here) {
      const State* first = states + merge.first * results + c;
#pragma unroll 4
      for (int k = slot >> columns_log2; k < merge.count; k += used >> columns_log2) {
        state = r.Merge(state, first[k * step]);
      }
    }
    slots[slot] = state;
  }
  return used;
}

// A block per tile of columns and chunk of the places. Its ways merge in shared memory, one slot
// for each and each column.
template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads,
                                  N == 1 ? ReducePolicy::kNarrowResident : R::kResident)
    ReduceColumnsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                        ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads;
  __shared__ __align__(16) char slots_memory[kThreads * N * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const int rank = threadIdx.x, lane = rank & (p.lanes - 1), way = rank >> p.lanes_log2;
  const int columns = p.lanes * N;  // of a tile
  const int64_t tasks = p.kept.count * p.tiles.value * p.chunks.value;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const ReduceTile t = TileAt(p, task);
    const int64_t column = t.column + lane * N, left = p.length.value - t.column;
    const int here = left < columns ? static_cast<int>(left) : columns;
    const ReducePlace place = PlaceOf(p.kept, t.outer);
    const In* slice = x + place.x + t.column;
    ColumnOf<R> gathered[N];
#pragma unroll
    for (int i = 0; i < N; ++i) gathered[i] = r.BeginColumn();
    if (column < p.length.value) {
      GatherPlaces(r, p, slice + lane * N, t.begin + way * ReducePolicy::kBatch, gathered);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      slots[way * columns + i * p.lanes + lane] = r.Conclude(gathered[i]);
    }
    State* states = chunks.states + t.outer * p.length.value + t.column;
    int used = kThreads * N;
    int64_t mine = t.chunk;  // whose state the slots hold
    bool finishes = true, by_lane = true;
    const auto slot_of = [&](int c) { return by_lane ? c % N * p.lanes + c / N : c; };
    const int levels = chunks.states ? p.levels() : 0;
#pragma unroll 1
    for (int level = 0;; ++level) {
      MergeSlots(r, slots, used, columns);
      if (level == levels) break;
#pragma unroll 1
      for (int c = rank; c < here; c += kThreads) states[mine * p.results + c] = slots[slot_of(c)];
      const ReduceMerge merge = MergeAt(p, t.tile, mine, level);
      if (!IsLastChunk(chunks.done + merge.counter, merge.count)) {
        finishes = false;
        break;
      }
      used = TakeChunks(r, merge, states, p.results, columns, here, slots);
      mine = merge.first;
      by_lane = false;
    }
    if (finishes) {
#pragma unroll 1
      for (int c = rank; c < here; c += kThreads) {
        r.Finish(slots[slot_of(c)], out, place.y + (t.column + c) * p.column_y, slice + c,
                 p.rest.dims[0].x);
      }
    }
    __syncthreads();  // the next tile writes the slots again
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
