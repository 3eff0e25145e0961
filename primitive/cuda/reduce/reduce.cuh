// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any dims, laid out by plan.h, in one launch. A reducer says what is gathered
// (reducers.cuh):
//
//   using Value = float;              // what elements are converted to
//   struct State { ... };             // of a part; whole words
//   using Gathered = ...;             // what a thread gathers of rows, which concludes as a State
//   static constexpr int kBatch;      // packs, or places of columns, that are added together
//   static constexpr int kResident;   // blocks of a multiprocessor, for which chunks make waves
//   State Identity() const;
//   Gathered Begin() const;
//   Column BeginColumn() const;         // what a thread gathers of a column; it concludes, too
//   void Add(Gathered&, Value, int64_t place) const;
//   // Packs of one result; places: of their first elements.
//   void AddPacks(Gathered&, const Pack<In, N> (&)[K], const int64_t (&places)[K]) const;
//   // Places that follow each other, of N columns.
//   void AddPlaces(Column (&)[N], const Pack<In, N> (&)[K], int64_t place) const;
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
#include "primitive/cuda/reduce/planner.h"
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

// ---- Chunks. ----

// Where the blocks that take chunks of a result leave their states, for the last of them to merge.
// Null where each result is one block's.
template <class State>
struct ReduceChunks {
  State* states;   // [chunk][result]; of a group, in the end, in its first chunk's place
  unsigned* done;  // the plan's counters, of chunks that are done; left at 0
};

// Whether this block's chunk is the last one of `chunks` that is done. Its state has been written,
// and after the call those of the others can be read. All threads call it.
__device__ __forceinline__ bool IsLastChunk(unsigned* done, int64_t chunks) {
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned last = static_cast<unsigned>(chunks - 1);
    unsigned before;
    asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(done), "r"(last)
                 : "memory");
    is_last = before == last;
  }
  __syncthreads();
  return is_last;
}

// A team of lanes, or a block, takes a result; or a block a chunk of one.
template <bool kOneRow, class In, class R>
__global__ void __launch_bounds__(ReducePolicy::kThreads)
    ReduceRowsKernel(const In* __restrict__ x, const __grid_constant__ ReducePlan p, R r,
                     ReduceOutputs out, ReduceChunks<typename R::State> chunks) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads;
  __shared__ __align__(16) char slots_memory[kThreads / kWarp * sizeof(State)];
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
      result = chunks.states ? p.chunks.QuotientOfAny(task) : task;
      chunk = task - result * p.chunks.value;
      place = PlaceOf(p.kept, result);
      if constexpr (kOneRow) {
        GatherRow(r, p, x + place.x, chunk, rank, gathered);
      } else {
        GatherRows(r, p, x + place.x, chunk * p.lanes + rank, gathered);
      }
      state = r.Conclude(gathered);
    }
    bool finishes = active && rank == 0;
    // Once; and where there are chunks, a second time, of all their states.
#pragma unroll 1
    for (bool is_chunk = chunks.states != nullptr;; is_chunk = false) {
      state = whole_block ? MergeBlock(r, state, reinterpret_cast<State*>(slots_memory))
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

// ---- Columns. ----

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

// Of what is left by chunks, and of its counters where the caller has none.
template <class State>
struct ChunkBytes {
  size_t states = 0, counters = 0;
  explicit ChunkBytes(const ReducePlan& p) {
    if (p.chunks.value <= 1) return;
    states = sizeof(State) * p.results * p.chunks.value;
    counters = sizeof(unsigned) * p.counters();
  }
};

// The most of what x at a boundary and x between two need.
template <class In, class R>
size_t ReduceWorkspace(const ReduceShape& shape, const DeviceLimits& limits) {
  size_t most = 0;
  for (const bool aligned : {false, true}) {
    const ChunkBytes<typename R::State> bytes(PlanOf<In, R>(shape, aligned, limits));
    if (bytes.states + bytes.counters > most) most = bytes.states + bytes.counters;
  }
  return most;
}

template <class In, class R>
cudaError_t LaunchReduce(const Reduction& run, const R& r, const DeviceLimits& limits,
                         cudaStream_t stream) {
  using State = typename R::State;
  constexpr int kThreads = ReducePolicy::kThreads, N = ColumnPack<In, State>();
  const bool aligned = reinterpret_cast<uintptr_t>(run.x) % 16 == 0;
  const ReducePlan p = PlanOf<In, R>(run.shape, aligned, limits);
  if (p.results == 0) return cudaSuccess;
  const ReduceOutputs out{run.y, run.second, run.out, p.axis};
  const In* x = static_cast<const In*>(run.x);
  const ChunkBytes<State> bytes(p);
  ReduceChunks<State> chunks{};
  if (bytes.states > 0) {
    chunks = {static_cast<State*>(run.workspace), run.counters};
    if (!run.counters || p.counters() > run.num_counters) {
      chunks.done = reinterpret_cast<unsigned*>(static_cast<char*>(run.workspace) + bytes.states);
      const cudaError_t error = cudaMemsetAsync(chunks.done, 0, bytes.counters, stream);
      if (error != cudaSuccess) return error;
    }
  }
  auto* kernel =
      p.columns ? p.width == 1 ? &ReduceColumnsKernel<1, In, R> : &ReduceColumnsKernel<N, In, R>
      : p.rest.count == 1 ? &ReduceRowsKernel<true, In, R>
                          : &ReduceRowsKernel<false, In, R>;
  return Launch(kernel, p.blocks(), kThreads, 0, stream, x, p, r, out, chunks);
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
