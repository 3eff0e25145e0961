// SPDX-License-Identifier: Apache-2.0
//
// Reductions of rows: neighbours in memory are one result's (plan.h).
#pragma once

#include "primitive/cuda/reduce/reduce_units.cuh"

namespace oneflow_lite {
namespace cuda {

// The packs at i, i + step ... below `to`, fewer than a batch, which are asked for before any is
// added.
template <class In, class R>
__device__ __forceinline__ void AddTail(const R& r, const In* packs, int64_t i, int64_t to,
                                        int64_t step, int past, typename R::Gathered& gathered) {
  constexpr int N = kPackSize<In>;
  static_assert(R::kBatch <= 4, "a tail is a pair, one pack, or both");
  if constexpr (R::kBatch > 1) {
    const bool has_pair = i + step < to;
    const int64_t last = has_pair ? i + 2 * step : i;
    StowedPack<In, N> stowed[3] = {};
    if (has_pair) {
      stowed[0] = StowedPack<In, N>::Of(LoadWhole<N>(packs + i));
      stowed[1] = StowedPack<In, N>::Of(LoadWhole<N>(packs + i + step));
    }
    if (last < to) stowed[2] = StowedPack<In, N>::Of(LoadWhole<N>(packs + last));
    if (has_pair) {
      const Pack<In, N> pair[2] = {stowed[0].Get(), stowed[1].Get()};
      const int64_t places[2] = {i - past, i + step - past};
      r.AddPacks(gathered, pair, places);
    }
    if (last < to) {
      const Pack<In, N> pack[1] = {stowed[2].Get()};
      const int64_t places[1] = {last - past};
      r.AddPacks(gathered, pack, places);
    }
  }
}

// One row, of which a thread takes units first, first + p.step ... of those that are whole packs.
// What lies before and behind those is the first chunk's.
template <class In, class R>
__device__ __forceinline__ void GatherRow(const R& r, const ReducePlan& p, const In* row,
                                          int64_t chunk, int rank, typename R::Gathered& gathered) {
  using A = typename R::Value;
  constexpr int N = kPackSize<In>, K = R::kBatch;
  const int past = BytesPastBoundary(row) / sizeof(In);
  const int64_t length = p.length.value, whole_from = past > 0, whole_to = (length + past) / N;
  if (chunk == 0 && past > 0) {
#pragma unroll 1
    for (int i = rank; i < N - past && i < length; i += p.lanes) {
      r.Add(gathered, ConvertTo<A>(row[i]), i);
    }
  }
  const In* packs = row - past;
  const int64_t step = p.step * N;
  int64_t i = (whole_from + chunk * p.lanes + rank) * N;
  for (; i + (K - 1) * step < whole_to * N; i += K * step) {
    Pack<In, N> pack[K];
    int64_t places[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      pack[k] = LoadWhole<N>(packs + i + k * step);
      places[k] = i + k * step - past;
    }
    r.AddPacks(gathered, pack, places);
  }
  AddTail(r, packs, i, whole_to * N, step, past, gathered);
  if (chunk > 0 || whole_to < whole_from) return;
#pragma unroll 1
  for (int64_t j = whole_to * N - past + rank; j < length; j += p.lanes) {
    r.Add(gathered, ConvertTo<A>(row[j]), j);
  }
}

// Where the packs of a thread lie in rows that have only whole ones. Of rows at equal distances the
// next place is the last one and a sum.
template <class In>
class PackedRows {
 public:
  static constexpr int N = kPackSize<In>;
  __device__ __forceinline__ PackedRows(const ReducePlan& p, const In* slice, ReduceUnit at)
      : p_(p), slice_(slice), at_(at), next_(slice + PlaceOf(p.rest, at.row).x + at.pack * N) {}

  __device__ __forceinline__ const In* Next() {
    const In* from = next_;
    if (p_.rest.ndim > 1) {
      at_ = NextUnit(p_, at_);
      next_ = slice_ + PlaceOf(p_.rest, at_.row).x + at_.pack * N;
      return from;
    }
    at_.pack += p_.step_packs;
    next_ += p_.step_rows * p_.rest.dims[0].x + p_.step_packs * N;
    if (at_.pack >= p_.packs.value) {
      at_.pack -= p_.packs.value;
      next_ += p_.rest.dims[0].x - p_.packs.value * N;
    }
    return from;
  }

 private:
  const ReducePlan& p_;
  const In* slice_;
  ReduceUnit at_;
  const In* next_;
};

// The row of a thread's next unit. Of rows at equal distances it is the last one and a sum.
template <class In>
__device__ __forceinline__ const In* NextRow(const ReducePlan& p, const In* slice, const In* row,
                                             ReduceUnit& at) {
  if (p.rest.ndim > 1) {
    at = NextUnit(p, at);
    return slice + PlaceOf(p.rest, at.row).x;
  }
  at.pack += p.step_packs;
  row += p.step_rows * p.rest.dims[0].x;
  if (at.pack < p.packs.value) return row;
  at.pack -= p.packs.value;
  return row + p.rest.dims[0].x;
}

// Several rows, of which a thread takes units first, first + p.step ...
template <class In, class R>
__device__ __forceinline__ void GatherRows(const R& r, const ReducePlan& p, const In* slice,
                                           int64_t first, const ReduceSpan<In>& span,
                                           typename R::Gathered& gathered) {
  constexpr int N = kPackSize<In>, K = R::kBatch;
  int64_t unit = first;
  if (unit >= p.units) return;
  if (p.packed) {
    PackedRows<In> rows(p, slice, UnitAt(p, unit));
    for (; unit + (K - 1) * p.step < p.units; unit += K * p.step) {
      const In* from[K];
#pragma unroll
      for (int k = 0; k < K; ++k) from[k] = rows.Next();
      Pack<In, N> pack[K];
#pragma unroll
      for (int k = 0; k < K; ++k) pack[k] = LoadWhole<N>(from[k]);
      const int64_t places[K] = {};  // reducers of places have one row
      r.AddPacks(gathered, pack, places);
    }
  }
  if (unit >= p.units) return;
  ReduceUnit next = UnitAt(p, unit);
  const In* row = slice + PlaceOf(p.rest, next.row).x;
  const int64_t length = p.length.value;
#pragma unroll 1
  for (; unit < p.units; unit += K * p.step) {
    const In* at[K];
    int64_t places[K];
    bool whole = true;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int past = static_cast<int>(BytesPastBoundary(row) / sizeof(In));
      places[k] = unit + k * p.step < p.units ? next.pack * N - past : length;
      at[k] = row + places[k];
      whole = whole && places[k] >= 0 && places[k] + N <= length;
      row = NextRow(p, slice, row, next);
    }
    if (whole) {
      Pack<In, N> pack[K];
#pragma unroll
      for (int k = 0; k < K; ++k) pack[k] = LoadWhole<N>(at[k]);
      r.AddPacks(gathered, pack, places);
    } else {
      AddUnits(r, at, places, length, span, gathered);
    }
  }
}

// One row of few elements, which are asked for together.
template <class In, class R>
__device__ __forceinline__ void GatherFew(const R& r, const ReducePlan& p, const In* row,
                                          typename R::Gathered& gathered) {
  using A = typename R::Value;
  constexpr int kMost = ReducePolicy::kFewElements;
  A v[kMost];
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i < p.length.value) v[i] = ConvertTo<A>(row[i]);
  }
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i < p.length.value) r.Add(gathered, v[i], i);
  }
}

// A team of lanes, or a block, takes a result; or a block a chunk of one. kOneRow: of one row that
// is not few elements. With states of one bit
// the compiler takes 48 registers and has one load under way; for nine blocks, 56 and a batch of
// loads.
template <bool kOneRow, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads, kOneRow&& R::kOneBit ? 9 : 0)
    ReduceRowsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                     ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads;
  __shared__ __align__(16) char slots_memory[kThreads / kWarp * sizeof(State)];
  const bool whole_block = p.lanes == kThreads;
  const int teams = kThreads >> p.lanes_log2;
  const int rank = threadIdx.x & (p.lanes - 1), team = threadIdx.x >> p.lanes_log2;
  const int64_t tasks = p.results * p.chunks.value;
  const ReduceSpan<In> span{x, x + p.span};
  for (int64_t base = int64_t{blockIdx.x} * teams; base < tasks;
       base += int64_t{gridDim.x} * teams) {
    const int64_t task = base + team;
    const bool active = task < tasks;
    int64_t result = 0, chunk = 0;
    ReducePlace place{0, 0};
    State state = r.Identity();
    if (active) {
      typename R::Gathered gathered = r.Begin();
      result = chunks.states ? p.chunks.QuotientOfAny(task) : task;
      chunk = task - result * p.chunks.value;
      place = PlaceOf(p.kept, result);
      if constexpr (kOneRow) {
        GatherRow(r, p, x + place.x, chunk, rank, gathered);
      } else if (p.few) {
        GatherFew(r, p, x + place.x, gathered);
      } else {
        GatherRows(r, p, x + place.x, chunk * p.lanes + rank, span, gathered);
      }
      state = r.Conclude(gathered);
    }
    bool finishes = active && rank == 0;
    // Once; and where there are chunks, a second time, of all their states.
#pragma unroll 1
    for (bool is_chunk = chunks.states != nullptr;; is_chunk = false) {
      state = whole_block ? MergeBlock<kThreads>(r, state, reinterpret_cast<State*>(slots_memory))
                          : MergeLanes(r, state, p.lanes);
      if (!is_chunk) break;
      State* states = chunks.states + result;
      if (finishes) states[chunk * p.results] = state;
      if (!IsLastChunk(chunks.done + result, p.chunks.value)) {
        finishes = false;
        break;
      }
      state = r.Identity();
#pragma unroll 4
      for (int64_t c = rank; c < p.chunks.value; c += kThreads) {
        state = r.Merge(state, states[c * p.results]);
      }
    }
    if (finishes) r.Finish(state, out, place.y, x + place.x, 1);
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
