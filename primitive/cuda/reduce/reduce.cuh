// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any dims, laid out by plan.h, in one launch. A reducer says what is gathered
// (reducers.cuh):
//
//   using Value = float;              // what elements are converted to
//   struct State { ... };             // of a part; whole words
//   using Gathered = ...;             // what a thread gathers of rows, which concludes as a State
//   static constexpr int kBatch;      // packs of rows that are added together
//   static constexpr int kPlaces;     // of columns that are; 1, or as many as the policy has
//   // Blocks of a multiprocessor, for which chunks make waves: of rows, columns, whole columns.
//   static constexpr int kResident, kColumnsResident, kWholeColumnsResident;
//   static constexpr int kWholeRowsResident;  // whose registers those of whole rows have; not for
//                                             // elements of less than 4 bytes
//   static constexpr bool kReadsAhead;  // whether whole columns read the next turn's packs ahead
//   static constexpr int64_t kMostPlaces;  // of a thread of columns
//   static constexpr bool kOneBit;    // whether a state is one, State::bit, and merges set it
//   State Identity() const;
//   Gathered Begin() const;
//   void Add(Gathered&, Value, int64_t place) const;
//   // Packs of one result; places: of their first elements.
//   void AddPacks(Gathered&, const Pack<In, N> (&)[K], const int64_t (&places)[K]) const;
//   static constexpr bool kFills;     // whether there is a filler: what changes nothing in the
//   place
//                                     // of a pack's elements that are another row's
//   template <class In, int N> In Filler(const Pack<In, N>&, int first_of_row) const;
//   State Conclude(const Gathered&) const;
//   // What a thread gathers of N columns.
//   template <class In, int N> Columns BeginColumns() const;
//   // Places that follow each other; `seen`: those that the thread has had before.
//   void AddPlaces(Columns&, const Pack<In, N> (&)[K], int64_t place, int64_t seen) const;
//   State ConcludeColumn(const Columns&, int column, const ReduceWay&) const;
//   State Merge(const State& earlier, const State& later) const;
//   static constexpr bool kMergesSeveral;  // whether there is a merge of several in less than so
//                                          // many steps; some may be Identity()
//   static constexpr bool kMergesEight;    // whether a block merges eight threads' states at once
//   template <int K> State MergeSeveral(const State& first, const State (&next)[K]) const;
//   // The result at y, of the slice whose elements lie at steps of each other.
//   void Finish(const State&, const ReduceOutputs&, int64_t y, const In* slice,
//               int64_t step) const;
//
// A place is that of an element in its slice where one dim is reduced.
#pragma once

#include "primitive/cuda/reduce/launch.h"
#include "primitive/cuda/reduce/planner.h"
#include "primitive/cuda/reduce/reduce_columns.cuh"
#include "primitive/cuda/reduce/reduce_rows.cuh"
#include "primitive/cuda/reduce/reduce_whole_columns.cuh"
#include "primitive/cuda/reduce/reduce_whole_rows.cuh"

namespace oneflow_lite {
namespace cuda {

// Columns of a thread: one 16-byte load, or fewer where the states would not fit in a tile.
template <class In, class State>
constexpr int ColumnPack() {
  int n = kPackSize<In>;
  while (n > 1 && n * static_cast<int>(sizeof(State)) > ReducePolicy::kTileBytes) n /= 2;
  return n;
}

template <class In, class R>
ReduceTarget TargetOf(bool aligned, const DeviceLimits& limits) {
  constexpr int kWidth = ColumnPack<In, typename R::State>();
  return {sizeof(In), kWidth,        R::kResident, R::kColumnsResident, limits.multiprocessors,
          aligned,    R::kMostPlaces};
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
    const ChunkBytes<typename R::State> bytes(PlanReduce(shape, TargetOf<In, R>(aligned, limits)));
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
  const ReduceTarget target = TargetOf<In, R>(aligned, limits);
  const ReducePlan p = PlanReduce(run.shape, target);
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
  if constexpr (N > 1 && R::kPlaces > 1) {
    WholeColumns whole;
    if (IsWhole<N>(p, target, R::kWholeColumnsResident, &whole)) {
      const dim3 blocks(static_cast<unsigned>(whole.tiles), static_cast<unsigned>(whole.chunks));
      const LaunchConfig config({}, blocks, kThreads, 0, stream);
      return cudaLaunchKernelEx(config.get(), &ReduceWholeColumnsKernel<N, In, R>, x, whole, r, out,
                                chunks);
    }
  }
  if constexpr (R::kBatch > 1) {
    WholeRows whole;
    if (IsWholeRows(p, target, R::kBatch, &whole)) {
      const dim3 blocks(static_cast<unsigned>(whole.blocks()), static_cast<unsigned>(whole.chunks));
      const LaunchConfig config({}, blocks, WholeRows::kThreads, 0, stream);
      return cudaLaunchKernelEx(config.get(), &ReduceWholeRowsKernel<In, R>, x, whole, r, out,
                                chunks);
    }
  }
  auto* kernel =
      p.columns ? p.width == 1 ? &ReduceColumnsKernel<1, In, R> : &ReduceColumnsKernel<N, In, R>
      : p.rest.count == 1 && !p.few ? &ReduceRowsKernel<true, In, R>
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
