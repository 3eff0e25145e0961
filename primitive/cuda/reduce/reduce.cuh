// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any dims, laid out by plan.h, in one launch where there are enough results
// to fill the device, else in two. A reducer says what is gathered (reducers.cuh):
//
//   using Value = float;              // what elements are converted to
//   struct State { ... };             // whole words
//   static constexpr bool kShifted;   // whether Add wants the first element of the slice
//   static constexpr int kBatch;      // packs, or places of columns, that are added together
//   State Identity() const;
//   void Add(State&, Value, Value shift, int64_t place) const;
//   // Packs of one result; places: of their first elements.
//   void AddPacks(State&, const Pack<In, N> (&)[K], Value shift, const int64_t (&places)[K]) const;
//   // Places that follow each other, of N columns.
//   void AddPlaces(State (&)[N], const Pack<In, N> (&)[K], const Value (&shift)[N],
//                  int64_t place) const;
//   State Merge(const State& earlier, const State& later) const;
//   void Finish(const State&, Value shift, const ReduceOutputs&, int64_t y, const In* slice,
//               int64_t step) const;
//
// A place is that of an element in its slice where one dim is reduced.
#pragma once

#include "primitive/cuda/chip/async_copy.cuh"
#include "primitive/cuda/reduce/launch.h"
#include "primitive/cuda/reduce/states.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

// The first element of a slice, or 0 where that is infinite or NaN.
template <class R, class In>
__device__ __forceinline__ typename R::Value ShiftAt(const In* slice, int64_t axis) {
  using A = typename R::Value;
  if constexpr (R::kShifted) {
    const A first = axis > 0 ? ConvertTo<A>(*slice) : A(0);
    return first - first == A(0) ? first : A(0);
  } else {
    return A(0);
  }
}

// N elements at a boundary, narrow ones in words.
template <int N, class In>
__device__ __forceinline__ Pack<In, N> LoadWhole(const In* p) {
  if constexpr (N == 1) {
    return {{*p}};
  } else {
    Pack<In, N> pack = LoadAlignedPack<N>(p);
    KeepPacked(pack);
    return pack;
  }
}

// ---- Rows. ----

// The packs at i, i + step ... below `to`, fewer than a batch, which are asked for before any is
// added.
template <class In, class R>
__device__ __forceinline__ void AddTail(const R& r, const In* packs, int64_t i, int64_t to,
                                        int64_t step, int past, typename R::Value shift,
                                        typename R::State& state) {
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
      r.AddPacks(state, pair, shift, places);
    }
    if (last < to) {
      const Pack<In, N> pack[1] = {stowed[2].Get()};
      const int64_t places[1] = {last - past};
      r.AddPacks(state, pack, shift, places);
    }
  }
}

// One row: its units begin .. end, of which those are whole that lie between two boundaries.
template <class In, class R>
__device__ __forceinline__ void GatherRow(const R& r, const ReducePlan& p, const In* row,
                                          typename R::Value shift, int64_t begin, int64_t end,
                                          int rank, typename R::State& state) {
  using A = typename R::Value;
  constexpr int N = kPackSize<In>, K = R::kBatch;
  const int past = BytesPastBoundary(row) / sizeof(In);
  const int64_t length = p.length.value;
  const int64_t whole_from = begin == 0 && past > 0 ? 1 : begin;
  const int64_t all_whole_to = (length + past) / N;  // and then perhaps one in part
  const int64_t whole_to = all_whole_to < end ? all_whole_to : end;
  if (begin == 0 && past > 0) {
    for (int i = rank; i < N - past && i < length; i += p.lanes) {
      r.Add(state, ConvertTo<A>(row[i]), shift, i);
    }
  }
  const In* packs = row - past;
  const int64_t step = int64_t{p.lanes} * N;
  int64_t i = (whole_from + rank) * N;
  for (; i + (K - 1) * step < whole_to * N; i += K * step) {
    Pack<In, N> pack[K];
    int64_t places[K];
#pragma unroll
    for (int k = 0; k < K; ++k) {
      pack[k] = LoadWhole<N>(packs + i + k * step);
      places[k] = i + k * step - past;
    }
    r.AddPacks(state, pack, shift, places);
  }
  AddTail(r, packs, i, whole_to * N, step, past, shift, state);
  if (all_whole_to < whole_from || all_whole_to >= end) return;
  for (int64_t j = all_whole_to * N - past + rank; j < length; j += p.lanes) {
    r.Add(state, ConvertTo<A>(row[j]), shift, j);
  }
}

// One unit of several rows.
template <class In, class R>
__device__ __forceinline__ void AddUnit(const R& r, const ReducePlan& p, const In* slice,
                                        ReduceUnit at, typename R::Value shift,
                                        typename R::State& state) {
  constexpr int N = kPackSize<In>;
  const In* row = slice + PlaceOf(p.rest, at.row).x;
  const int64_t first = at.pack * N - static_cast<int>(BytesPastBoundary(row) / sizeof(In));
  if (first >= 0 && first + N <= p.length.value) {
    const Pack<In, N> pack[1] = {LoadWhole<N>(row + first)};
    const int64_t places[1] = {first};
    r.AddPacks(state, pack, shift, places);
    return;
  }
#pragma unroll 1
  for (int64_t place = first; place < first + N; ++place) {
    if (place < 0 || place >= p.length.value) continue;
    r.Add(state, ConvertTo<typename R::Value>(row[place]), shift, place);
  }
}

// Several rows, whose units begin + rank, begin + rank + lanes ... are one thread's. Where all are
// whole packs, several at a time.
template <class In, class R>
__device__ __forceinline__ void GatherRows(const R& r, const ReducePlan& p, const In* slice,
                                           typename R::Value shift, int64_t begin, int64_t end,
                                           int rank, typename R::State& state) {
  constexpr int N = kPackSize<In>, K = R::kBatch;
  int64_t unit = begin + rank;
  if (unit >= end) return;
  ReduceUnit at = UnitAt(p, unit);
  if (p.packed) {
    for (; unit + int64_t{K - 1} * p.lanes < end; unit += int64_t{K} * p.lanes) {
      const In* from[K];
#pragma unroll
      for (int k = 0; k < K; ++k) {
        from[k] = slice + PlaceOf(p.rest, at.row).x + at.pack * N;
        at = NextUnit(p, at);
      }
      Pack<In, N> pack[K];
#pragma unroll
      for (int k = 0; k < K; ++k) pack[k] = LoadWhole<N>(from[k]);
      const int64_t places[K] = {};  // reducers of places have one row
      r.AddPacks(state, pack, shift, places);
    }
  }
#pragma unroll 1
  for (; unit < end; unit += p.lanes, at = NextUnit(p, at)) {
    AddUnit(r, p, slice, at, shift, state);
  }
}

// A team of lanes, or a block, takes a chunk of a result.
template <class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceRowsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                     ReduceOutputs out, typename R::State* partial) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads;
  __shared__ __align__(16) char slots_memory[kThreads / kWarp * sizeof(State)];
  if (partial) AllowNextKernel();
  const bool whole_block = p.lanes == kThreads;
  const int teams = kThreads >> p.lanes_log2;
  const int rank = threadIdx.x & (p.lanes - 1), team = threadIdx.x >> p.lanes_log2;
  const int64_t tasks = p.results * p.chunks.value;
  for (int64_t base = int64_t{blockIdx.x} * teams; base < tasks;
       base += int64_t{gridDim.x} * teams) {
    const int64_t task = base + team;
    const bool active = task < tasks;
    int64_t result = 0, chunk = 0;
    ReducePlace place{0, 0};
    State state = r.Identity();
    typename R::Value shift(0);
    if (active) {
      result = partial ? p.chunks.QuotientOfAny(task) : task;
      chunk = task - result * p.chunks.value;
      place = PlaceOf(p.kept, result);
      shift = ShiftAt<R>(x + place.x, p.axis);
      const int64_t begin = chunk * p.chunk_units;
      const int64_t end = begin + p.chunk_units < p.units ? begin + p.chunk_units : p.units;
      if (p.rest.count == 1) {
        GatherRow(r, p, x + place.x, shift, begin, end, rank, state);
      } else {
        GatherRows(r, p, x + place.x, shift, begin, end, rank, state);
      }
    }
    state = whole_block ? MergeBlock(r, state, reinterpret_cast<State*>(slots_memory))
                        : MergeLanes(r, state, p.lanes);
    if (!active || rank != 0) continue;
    if (partial) {
      partial[chunk * p.results + result] = state;
    } else {
      r.Finish(state, shift, out, place.y, x + place.x, 1);
    }
  }
}

// ---- Columns. ----

// Of N columns the places that are one way's: several that follow each other at a time.
template <int N, class In, class R>
__device__ __forceinline__ void GatherPlaces(const R& r, const ReducePlan& p, const In* slice,
                                             const typename R::Value (&shift)[N],
                                             const ReduceTile& t, int way,
                                             typename R::State (&state)[N]) {
  constexpr int K = R::kBatch;
  const int step = (ReducePolicy::kThreads >> p.lanes_log2) * K;
  for (int64_t k = t.begin + way * K; k < t.end; k += step) {
    if (k + K <= t.end) {
      const In* from[K];
      if (p.together) {
        from[0] = slice + PlaceOf(p.rest, k).x;
#pragma unroll
        for (int j = 1; j < K; ++j) from[j] = from[j - 1] + p.rest.x[0];
      } else {
#pragma unroll
        for (int j = 0; j < K; ++j) from[j] = slice + PlaceOf(p.rest, k + j).x;
      }
      Pack<In, N> pack[K];
#pragma unroll
      for (int j = 0; j < K; ++j) pack[j] = LoadWhole<N>(from[j]);
      r.AddPlaces(state, pack, shift, k);
      continue;
    }
#pragma unroll 1
    for (int64_t j = k; j < t.end; ++j) {
      const Pack<In, N> pack[1] = {LoadWhole<N>(slice + PlaceOf(p.rest, j).x)};
      r.AddPlaces(state, pack, shift, j);
    }
  }
}

// A block per tile of columns and chunk of the places.
template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads, ReducePolicy::kResident)
    ReduceColumnsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                        ReduceOutputs out, typename R::State* partial) {
  using State = typename R::State;
  __shared__ __align__(16) char slots_memory[ReducePolicy::kThreads * N * sizeof(State)];
  if (partial) AllowNextKernel();
  const int lane = threadIdx.x & (p.lanes - 1), way = threadIdx.x >> p.lanes_log2;
  const int64_t tasks = p.kept.count * p.tiles.value * p.chunks.value;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const ReduceTile t = TileAt(p, task);
    const int64_t column = t.column + lane * N;
    const bool active = column < p.length.value;
    const ReducePlace place = PlaceOf(p.kept, t.outer);
    const In* slice = x + place.x + (active ? column : 0);
    State state[N];
    typename R::Value shift[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      state[i] = r.Identity();
      shift[i] = ShiftAt<R>(slice + i, p.axis);
    }
    if (active) GatherPlaces(r, p, slice, shift, t, way, state);
    MergeWays(r, state, p.lanes, reinterpret_cast<State*>(slots_memory));
    if (!active || way != 0) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (partial) {
        partial[t.chunk * p.results + t.outer * p.length.value + column + i] = state[i];
      } else {
        r.Finish(state[i], shift[i], out, place.y + (column + i) * p.column_y, slice + i,
                 p.rest.x[0]);
      }
    }
  }
}

// ---- The second launch. ----

// A block's lanes are results, its ways take the chunks in turns.
template <class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    MergeChunksKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                      ReduceOutputs out, const typename R::State* partial, int lanes) {
  using State = typename R::State;
  __shared__ __align__(16) char slots_memory[ReducePolicy::kThreads * sizeof(State)];
  const int lane = threadIdx.x & (lanes - 1), way = threadIdx.x / lanes;
  const int ways = ReducePolicy::kThreads / lanes;
  WaitForPreviousKernel();
  for (int64_t base = int64_t{blockIdx.x} * lanes; base < p.results;
       base += int64_t{gridDim.x} * lanes) {
    const int64_t result = base + lane;
    State state[1] = {r.Identity()};
    if (result < p.results) {
#pragma unroll 4
      for (int64_t chunk = way; chunk < p.chunks.value; chunk += ways) {
        state[0] = r.Merge(state[0], partial[chunk * p.results + result]);
      }
    }
    MergeWays(r, state, lanes, reinterpret_cast<State*>(slots_memory));
    if (way != 0 || result >= p.results) continue;
    const ReducePlace place = PlaceOfResult(p, result);
    const In* slice = x + place.x;
    r.Finish(state[0], ShiftAt<R>(slice, p.axis), out, place.y, slice, p.columns ? p.rest.x[0] : 1);
  }
}

// ---- On the host. ----

// Columns of a thread: one 16-byte load, or fewer where the states would not fit in a tile.
template <class In, class State>
constexpr int ColumnPack() {
  int n = kPackSize<In>;
  while (n > 1 && n * static_cast<int>(sizeof(State)) > ReducePolicy::kTileBytes) n /= 2;
  return n;
}

template <class In, class R>
ReducePlan PlanOf(const ReduceShape& shape, bool aligned, const DeviceLimits& limits) {
  return PlanReduce(shape, ColumnPack<In, typename R::State>(), sizeof(In), aligned,
                    limits.multiprocessors);
}

// The most of what x at a boundary and x between two need.
template <class In, class R>
size_t ReduceWorkspace(const ReduceShape& shape, const DeviceLimits& limits) {
  size_t bytes = 0;
  for (const bool aligned : {false, true}) {
    const ReducePlan p = PlanOf<In, R>(shape, aligned, limits);
    const size_t needed = sizeof(typename R::State) * p.results * p.chunks.value;
    if (p.chunks.value > 1 && needed > bytes) bytes = needed;
  }
  return bytes;
}

template <class In, class R>
cudaError_t LaunchReduce(const Reduction& run, const R& r, const DeviceLimits& limits,
                         cudaStream_t stream) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads, N = ColumnPack<In, State>();
  const bool aligned = reinterpret_cast<uintptr_t>(run.x) % kPackBytes == 0;
  const ReducePlan p = PlanOf<In, R>(run.shape, aligned, limits);
  if (p.results <= 0) return cudaSuccess;
  const ReduceOutputs out{run.y, run.second, run.out, p.axis};
  const In* x = static_cast<const In*>(run.x);
  State* partial = p.chunks.value > 1 ? static_cast<State*>(run.workspace) : nullptr;
  auto* kernel =
      p.columns ? p.width == 1 ? &ReduceColumnsKernel<1, In, R> : &ReduceColumnsKernel<N, In, R>
                : &ReduceRowsKernel<In, R>;
  const cudaError_t error = Launch(kernel, p.blocks(), kThreads, 0, stream, x, p, r, out, partial);
  if (error != cudaSuccess || !partial) return error;
  const int ways = 1 << Log2OfPower(p.chunks.value < kThreads ? p.chunks.value : kThreads);
  const int lanes = kThreads / ways < kWarp ? kThreads / ways : kWarp;
  const int64_t blocks = CeilDiv(p.results, lanes);
  return internal::LaunchAfter(
      limits, &MergeChunksKernel<In, R>,
      dim3(static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks)), kThreads, stream, x,
      p, r, out, static_cast<const State*>(partial), lanes);
}

// The launchers of Make<In>::Reducer, which Make<In>::Of makes of a run.
template <template <class> class Make>
struct ReduceFinder {
  template <class In>
  ReductionLaunchers operator()(Tag<In>) const {
    return {&ReduceWorkspace<In, typename Make<In>::Reducer>, &Launched<In>};
  }

 private:
  template <class In>
  static cudaError_t Launched(const Reduction& run, const DeviceLimits& limits,
                              cudaStream_t stream) {
    return LaunchReduce<In>(run, Make<In>::Of(run), limits, stream);
  }
};

}  // namespace cuda
}  // namespace oneflow_lite
