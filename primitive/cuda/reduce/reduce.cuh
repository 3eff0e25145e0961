// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any dims, laid out by plan.h, in one launch where there are enough results
// to fill the device, else in two. A reducer says what is gathered (reducers.cuh):
//
//   using Value = float;              // what elements are converted to
//   struct State { ... };             // of a part; whole words
//   using Gathered = ...;             // what a thread gathers, which concludes as a State
//   static constexpr int kBatch;      // packs, or places of columns, that are added together
//   static constexpr int kResident;   // blocks of a multiprocessor, for which chunks make waves
//   State Identity() const;
//   Gathered Begin() const;
//   void Add(Gathered&, Value, int64_t place) const;
//   // Packs of one result; places: of their first elements.
//   void AddPacks(Gathered&, const Pack<In, N> (&)[K], const int64_t (&places)[K]) const;
//   // Places that follow each other, of N columns.
//   void AddPlaces(Gathered (&)[N], const Pack<In, N> (&)[K], int64_t place) const;
//   State Conclude(const Gathered&) const;
//   State Merge(const State& earlier, const State& later) const;
//   // The result at y, of the slice whose elements lie at steps of each other.
//   void Finish(const State&, const ReduceOutputs&, int64_t y, const In* slice,
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
  for (int64_t j = whole_to * N - past + rank; j < length; j += p.lanes) {
    r.Add(gathered, ConvertTo<A>(row[j]), j);
  }
}

// One unit of several rows.
template <class In, class R>
__device__ __forceinline__ void AddUnit(const R& r, const ReducePlan& p, const In* slice,
                                        ReduceUnit at, typename R::Gathered& gathered) {
  constexpr int N = kPackSize<In>;
  const In* row = slice + PlaceOf(p.rest, at.row).x;
  const int64_t first = at.pack * N - static_cast<int>(BytesPastBoundary(row) / sizeof(In));
  if (first >= 0 && first + N <= p.length.value) {
    const Pack<In, N> pack[1] = {LoadWhole<N>(row + first)};
    const int64_t places[1] = {first};
    r.AddPacks(gathered, pack, places);
    return;
  }
#pragma unroll 1
  for (int64_t place = first; place < first + N; ++place) {
    if (place < 0 || place >= p.length.value) continue;
    r.Add(gathered, ConvertTo<typename R::Value>(row[place]), place);
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

// Several rows, of which a thread takes units first, first + p.step ... Where all are whole packs,
// several at a time.
template <class In, class R>
__device__ __forceinline__ void GatherRows(const R& r, const ReducePlan& p, const In* slice,
                                           int64_t first, typename R::Gathered& gathered) {
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
  ReduceUnit at = UnitAt(p, unit);
#pragma unroll 1
  for (; unit < p.units; unit += p.step, at = NextUnit(p, at)) {
    AddUnit(r, p, slice, at, gathered);
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
    if (active) {
      typename R::Gathered gathered = r.Begin();
      result = partial ? p.chunks.QuotientOfAny(task) : task;
      chunk = task - result * p.chunks.value;
      place = PlaceOf(p.kept, result);
      if (p.rest.count == 1) {
        GatherRow(r, p, x + place.x, chunk, rank, gathered);
      } else {
        GatherRows(r, p, x + place.x, chunk * p.lanes + rank, gathered);
      }
      state = r.Conclude(gathered);
    }
    state = whole_block ? MergeBlock(r, state, reinterpret_cast<State*>(slots_memory))
                        : MergeLanes(r, state, p.lanes);
    if (!active || rank != 0) continue;
    if (partial) {
      partial[chunk * p.results + result] = state;
    } else {
      r.Finish(state, out, place.y, x + place.x, 1);
    }
  }
}

// ---- Columns. ----

// Of N columns the places that are one way's: a batch of them at first, first + p.step ...
template <int N, class In, class R>
__device__ __forceinline__ void GatherPlaces(const R& r, const ReducePlan& p, const In* slice,
                                             int64_t first, typename R::Gathered (&gathered)[N]) {
  constexpr int kTurn = ReducePolicy::kBatch, K = R::kBatch;
  for (int64_t k = first; k < p.units; k += p.step) {
    if (k + kTurn <= p.units) {
      const In* from[kTurn];
      if (p.together) {
        from[0] = slice + PlaceOf(p.rest, k).x;
#pragma unroll
        for (int j = 1; j < kTurn; ++j) from[j] = from[j - 1] + p.rest.dims[0].x;
      } else {
#pragma unroll
        for (int j = 0; j < kTurn; ++j) from[j] = slice + PlaceOf(p.rest, k + j).x;
      }
#pragma unroll
      for (int j = 0; j < kTurn; j += K) {
        Pack<In, N> pack[K];
#pragma unroll
        for (int i = 0; i < K; ++i) pack[i] = LoadWhole<N>(from[j + i]);
        r.AddPlaces(gathered, pack, k + j);
      }
      continue;
    }
#pragma unroll 1
    for (int64_t j = k; j < p.units; ++j) {
      const Pack<In, N> pack[1] = {LoadWhole<N>(slice + PlaceOf(p.rest, j).x)};
      r.AddPlaces(gathered, pack, j);
    }
  }
}

// A block per tile of columns and chunk of the places.
template <int N, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads, R::kResident)
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
    typename R::Gathered gathered[N];
#pragma unroll
    for (int i = 0; i < N; ++i) gathered[i] = r.Begin();
    if (active) GatherPlaces(r, p, slice, t.begin + way * ReducePolicy::kBatch, gathered);
    State state[N];
#pragma unroll
    for (int i = 0; i < N; ++i) state[i] = r.Conclude(gathered[i]);
    MergeWays(r, state, p.lanes, reinterpret_cast<State*>(slots_memory));
    if (!active || way != 0) continue;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (partial) {
        partial[t.chunk * p.results + t.outer * p.length.value + column + i] = state[i];
      } else {
        r.Finish(state[i], out, place.y + (column + i) * p.column_y, slice + i, p.rest.dims[0].x);
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
  constexpr int kAhead = 64 / sizeof(State);  // loads that do not wait for each other
  __shared__ __align__(16) char slots_memory[ReducePolicy::kThreads * sizeof(State)];
  const int lane = threadIdx.x & (lanes - 1), way = threadIdx.x / lanes;
  const int ways = ReducePolicy::kThreads / lanes;
  WaitForPreviousKernel();
  for (int64_t base = int64_t{blockIdx.x} * lanes; base < p.results;
       base += int64_t{gridDim.x} * lanes) {
    const int64_t result = base + lane;
    State state[1] = {r.Identity()};
    if (result < p.results) {
#pragma unroll kAhead
      for (int64_t chunk = way; chunk < p.chunks.value; chunk += ways) {
        state[0] = r.Merge(state[0], partial[chunk * p.results + result]);
      }
    }
    MergeWays(r, state, lanes, reinterpret_cast<State*>(slots_memory));
    if (way != 0 || result >= p.results) continue;
    const ReducePlace place = PlaceOfResult(p, result);
    r.Finish(state[0], out, place.y, x + place.x, p.columns ? p.rest.dims[0].x : 1);
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
  return PlanReduce(shape, {sizeof(In), ColumnPack<In, typename R::State>(), R::kResident,
                            limits.multiprocessors, aligned});
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
  const int64_t most_ways = CeilDiv(p.chunks.value, ReducePolicy::kBatch);
  const int ways = 1 << Log2OfPower(most_ways < kThreads ? most_ways : kThreads);
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
