// SPDX-License-Identifier: Apache-2.0
//
// Scans along the middle axis of outer x axis x inner, by any associative operator. Rows (inner =
// 1) take a block each, short ones a warp, columns a thread for some neighbours. Where that leaves
// the device idle, a row is cut into chunks: a first launch leaves the total of each, a second one
// begins each chunk with the merge of those before it; and columns are cut into tiles, which hand a
// carry down the axis in one launch. The order of every merge is fixed by the shape and the device;
// CUB's scan over the device would share a row out in an order that changes from run to run.
//
// A scanner says what is gathered (scan.cu):
//
//   struct State { ... };
//   State Merge(const State& earlier, const State& later) const;
//   static constexpr int kItems, kColumns;  // neighbours that a thread takes: of a row; columns
//   static constexpr int kRowBlocks;  // blocks of a multiprocessor at least, of rows
//   static constexpr int kRingWarps;   // of a block that has columns in a ring, or 0: none has
//   static constexpr bool kLogRows;    // whether whole rows are scan_log_rows.cuh's
//   static constexpr bool kLogRing;    // and columns in a ring scan_log_ring.cuh's
//   static constexpr bool kScansRuns;  // whether it scans neighbours itself, and then
//     void Scan(State (&)[N], int count) const;  // those from `count` on are anything
//     void After(const State& before, State (&)[N]) const;  // Merge(before, each that Scan gave)
//     State MergeAll(int n, const Get& get) const;          // of get(0) ... get(n - 1), n > 0
//   static constexpr bool kOfElements;  // whether a state follows from one element of x, and then
//     static constexpr int kHeldBytes;  // that a thread of columns holds
//     using Element = T;
//     const T* x;
//     State Of(T element, int64_t place) const;
//     C Value(const State&) const;                          // where it is the result's
//     void WriteRun(int64_t i, bool reverse, const State (&)[N]) const;  // from offset i on
//   // else
//     State At(int64_t i, int64_t place, bool first) const;              // of offset i
//     void Write(int64_t i, const State&) const;
#pragma once

#include "primitive/cuda/reduce/scan_columns.cuh"
#include "primitive/cuda/reduce/scan_launch.h"
#include "primitive/cuda/reduce/scan_log_ring.cuh"
#include "primitive/cuda/reduce/scan_log_rows.cuh"
#include "primitive/cuda/reduce/scan_ring.cuh"
#include "primitive/cuda/reduce/scan_rows.cuh"
#include "primitive/cuda/reduce/scan_tiles.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

// How many neighbouring columns a thread takes.
template <class F>
int ScanColumns(const ReduceProblem& p) {
  return p.inner % F::kColumns == 0 ? F::kColumns : 1;
}

// Whether columns are cut along the axis, because they are too few to fill the device.
template <class F>
bool TilesScan(const ReduceProblem& p, const DeviceLimits& limits) {
  using P = ScanPolicy;
  const int64_t blocks = CeilDiv(p.outer * p.inner / ScanColumns<F>(p), P::kThreads);
  return p.inner > 1 && p.axis >= P::kMinTiledRows &&
         2 * blocks <= int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
}

// How many chunks a row is cut into.
inline int RowChunks(const ReduceProblem& p, const DeviceLimits& limits) {
  using P = ScanPolicy;
  const int64_t wanted_blocks = int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  int64_t chunks = wanted_blocks / (p.outer > 0 ? 2 * p.outer : 1);
  if (chunks > p.axis / P::kMinRowChunk) chunks = p.axis / P::kMinRowChunk;
  if (chunks > P::kMaxChunks) chunks = P::kMaxChunks;
  return chunks > 1 ? static_cast<int>(chunks) : 1;
}

template <class F>
ScanTiles TilesOf(const ReduceProblem& p) {
  return ScanColumns<F>(p) == 1 ? ScanTilesOf<1, F>(p) : ScanTilesOf<F::kColumns, F>(p);
}

// Bytes of a ScanRelay: counters in whole packs, totals and carries.
inline size_t CounterBytes(const ScanTiles& t) {
  return sizeof(unsigned) * static_cast<size_t>(CeilDiv(t.Count() + 1, 4) * 4);
}
template <class S>
size_t RelayBytes(const ScanTiles& t) {
  const int64_t rows = t.down + t.down / ScanRelay<S>::kChain;
  return CounterBytes(t) + sizeof(S) * static_cast<size_t>(rows * t.columns);
}
template <class S>
ScanRelay<S> RelayIn(void* workspace, const ScanTiles& t) {
  auto* counters = static_cast<unsigned*>(workspace);
  auto* totals = reinterpret_cast<S*>(static_cast<char*>(workspace) + CounterBytes(t));
  return {counters, counters + 1, totals, totals + t.down * t.columns};
}

template <class F>
size_t ScanWorkspace(const ReduceProblem& p, const DeviceLimits& limits) {
  using S = typename F::State;
  if (TilesScan<F>(p, limits)) return RelayBytes<S>(TilesOf<F>(p));
  const int chunks = p.inner == 1 ? RowChunks(p, limits) : 1;
  return chunks > 1 ? sizeof(S) * p.outer * chunks : 0;
}

template <class F>
cudaError_t LaunchRows(const ScanArguments& a, const F& f, typename F::State* totals,
                       cudaStream_t stream) {
  using P = ScanPolicy;
  if (a.axis <= kScanTile<F>) {
    return Launch(ScanShortRowsKernel<F>, CeilDiv(a.outer, P::kThreads / kWarp), P::kThreads, 0,
                  stream, a, f);
  }
  if constexpr (F::kLogRows) {
    const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
    if (a.chunks == 1 && !a.reverse && a.axis % ScanLogRows::kItems == 0 && aligned(f.x) &&
        aligned(f.y)) {
      return Launch(ScanLogRowsKernel<F>, a.outer, ScanLogRows::kThreads, 0, stream, a.axis, f);
    }
  }
  const int64_t blocks = a.outer * a.chunks;
  if (a.chunks > 1) {
    const cudaError_t error =
        Launch(ScanRowsKernel<true, F>, blocks, P::kRowThreads, 0, stream, a, f, totals);
    if (error != cudaSuccess) return error;
  }
  return Launch(ScanRowsKernel<false, F>, blocks, P::kRowThreads, 0, stream, a, f, totals);
}

template <int kColumns, class F>
cudaError_t LaunchColumns(const ScanRun& run, const ScanArguments& a, const F& f, bool in_tiles,
                          cudaStream_t stream) {
  using P = ScanPolicy;
  if (!in_tiles) {
    const int64_t blocks = CeilDiv(a.outer * (a.inner / kColumns), P::kThreads);
    return Launch(ScanColumnsKernel<kColumns, F>, blocks, P::kThreads, 0, stream, a, f);
  }
  const ScanTiles tiles = ScanTilesOf<kColumns, F>(run.problem);
  const cudaError_t error = cudaMemsetAsync(run.workspace, 0, CounterBytes(tiles), stream);
  if (error != cudaSuccess) return error;
  return Launch(ScanTilesKernel<kColumns, F>, tiles.Count(), P::kTileThreads, 0, stream, a, f,
                tiles, RelayIn<typename F::State>(run.workspace, tiles));
}

template <class F>
cudaError_t LaunchRings(const ScanArguments& a, const F& f, const DeviceLimits& limits,
                        cudaStream_t stream) {
  constexpr auto* kKernel = [] {
    if constexpr (F::kLogRing) return &ScanLogRingKernel<F>;
    if constexpr (!F::kLogRing) return &ScanRingKernel<F>;
  }();
  const cudaError_t error = AllowAllShared<kKernel>(limits);
  if (error != cudaSuccess) return error;
  const int64_t segments = CeilDiv(a.inner * sizeof(typename F::Element), ScanRing::kBytes);
  return Launch(kKernel, a.outer * segments, kRingThreads<F>, kRingShared<F>, stream, a, f,
                segments);
}

template <class F>
cudaError_t LaunchScan(const ScanRun& run, const F& f, const DeviceLimits& limits,
                       cudaStream_t stream) {
  const ReduceProblem& p = run.problem;
  if (p.outer <= 0 || p.axis <= 0 || p.inner <= 0) return cudaSuccess;
  ScanArguments a{p.outer, p.axis, p.inner, p.axis, 1, run.reverse};
  if (p.inner == 1) {
    a.chunk = CeilDiv(CeilDiv(p.axis, RowChunks(p, limits)), kScanTile<F>) * kScanTile<F>;
    a.chunks = static_cast<int>(CeilDiv(p.axis, a.chunk));  // no more than there are totals for
    return LaunchRows(a, f, static_cast<typename F::State*>(run.workspace), stream);
  }
  const bool in_tiles = TilesScan<F>(p, limits);
  if constexpr (F::kRingWarps > 0) {
    if (in_tiles && RingsScan<F>(p, limits, run.x, run.y)) return LaunchRings(a, f, limits, stream);
  }
  if (ScanColumns<F>(p) == 1) return LaunchColumns<1>(run, a, f, in_tiles, stream);
  return LaunchColumns<F::kColumns>(run, a, f, in_tiles, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
