// SPDX-License-Identifier: Apache-2.0
//
// Reductions of rows whose packs and batches are all whole (whole_rows.h): the kernel of
// reduce_rows.cuh with little code, which asks for its first packs after some dozens of
// instructions.
#pragma once

#include "primitive/cuda/reduce/reduce_parts.cuh"
#include "primitive/cuda/reduce/whole_rows.h"

namespace oneflow_lite {
namespace cuda {

// A thread's share of the states of a result's chunks. As many as there mostly are, of four blocks
// of a multiprocessor, are asked for at once.
template <int kThreads, class R>
OFL_DEVICE typename R::State MergeChunks(const R& r, const typename R::State* states,
                                         const WholeRows& p, int rank) {
  using State = typename R::State;
  constexpr int kAhead = sizeof(State) > 16 ? 2 : 3;  // as registers allow
  State state = r.Identity();
#pragma unroll 1
  for (int c = rank; c < p.chunks; c += kAhead * kThreads) {
    State next[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const int at = c + j * kThreads;
      next[j] = at < p.chunks ? states[int64_t{at} * p.results] : r.Identity();
    }
#pragma unroll
    for (const State& each : next) state = r.Merge(state, each);
  }
  return state;
}

// A team of lanes takes a result, or a block; or a block a chunk of one: x and y of the grid.
template <class In, class R>
__global__ void __launch_bounds__(WholeRows::kThreads,
                                  sizeof(In) < 4 ? WholeRows::kResident : R::kWholeRowsResident)
    ReduceWholeRowsKernel(const In* __restrict__ x, const __grid_constant__ WholeRows p, R r,
                          ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = WholeRows::kThreads, N = kPackSize<In>, K = R::kBatch;
  constexpr int kSlots = R::kMergesEight ? kThreads + 8 : kThreads / kWarp;
  __shared__ __align__(16) char slots_memory[kSlots * sizeof(State)];
  State* slots = reinterpret_cast<State*>(slots_memory);
  const int lanes = 1 << p.lanes_log2, rank = threadIdx.x & (lanes - 1), chunk = blockIdx.y;
  const int result = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) >> p.lanes_log2);
  const ReducePlace place = p.PlaceOf(result);
  const In* slice = x + place.x;
  State state = r.Identity();
  if (result < p.results) {
    typename R::Gathered gathered = r.Begin();
#pragma unroll 1
    for (int unit = chunk * lanes * K + rank; unit < p.units; unit += p.chunks * lanes * K) {
      Pack<In, N> pack[K];
      int64_t places[K];
#pragma unroll
      for (int k = 0; k < K; ++k) places[k] = int64_t{unit + (k << p.lanes_log2)} * N;
      if (p.gap == 0) {
#pragma unroll
        for (int k = 0; k < K; ++k) pack[k] = LoadWhole<N>(slice + places[k]);
      } else {
#pragma unroll
        for (int k = 0; k < K; ++k) {
          pack[k] = LoadWhole<N>(slice + places[k] + p.GapBefore(unit + (k << p.lanes_log2)));
        }
      }
      r.AddPacks(gathered, pack, places);
    }
    state = r.Conclude(gathered);
  }
  bool finishes = rank == 0 && result < p.results;
  // Once; and where there are chunks, a second time, of all their states.
#pragma unroll 1
  for (bool is_chunk = p.chunks > 1;; is_chunk = false) {
    if (lanes < kThreads) {
      state = MergeLanes(r, state, lanes);
    } else if constexpr (R::kMergesEight) {
      state = MergeBlockByEight<kThreads>(r, state, slots);
    } else {
      state = MergeBlock<kThreads>(r, state, slots);
    }
    if (!is_chunk) break;
    if constexpr (R::kOneBit) {
      finishes = finishes && IsLastOfBits(chunks.done + result, p.chunks, &state.bit);
      break;
    }
    State* states = chunks.states + result;
    if (finishes) states[int64_t{chunk} * p.results] = state;
    if (!IsLastChunk(chunks.done + result, p.chunks)) return;
    state = MergeChunks<kThreads>(r, states, p, rank);
  }
  if (finishes) r.Finish(state, out, place.y, slice, 1);
}

}  // namespace cuda
}  // namespace oneflow_lite
