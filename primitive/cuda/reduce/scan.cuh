// SPDX-License-Identifier: Apache-2.0
//
// Scans along the middle axis of outer x axis x inner, by any associative operator. Rows (inner =
// 1) take a block each, short ones a warp, columns a thread for some neighbours; where that leaves
// the device idle, the axis is cut into chunks: a first launch leaves the total of each, a second
// one begins each chunk with the merge of those before it. The order of every merge is fixed by the
// shape and the device; CUB's scan over the device would share a row out in an order that changes
// from run to run.
//
// A scanner says what is gathered (scan.cu):
//
//   struct State { ... };
//   State Merge(const State& earlier, const State& later) const;
//   static constexpr int kItems, kColumns;  // neighbours that a thread takes: of a row; columns
//   static constexpr bool kOfElements;  // whether a state follows from one element of x, and then
//     using Element = T;
//     const T* x;
//     State Of(T element, int64_t place) const;
//     void WriteRun(int64_t i, bool reverse, const State (&)[N]) const;  // from offset i on
//   // else
//     State At(int64_t i, int64_t place, bool first) const;              // of offset i
//     void Write(int64_t i, const State&) const;
#pragma once

#include "primitive/cuda/reduce/scan_columns.cuh"
#include "primitive/cuda/reduce/scan_launch.h"
#include "primitive/cuda/reduce/scan_rows.cuh"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

// How many neighbouring columns a thread takes.
template <class F>
int ScanColumns(const ReduceProblem& p) {
  return p.inner % F::kColumns == 0 ? F::kColumns : 1;
}

// How many chunks the axis is cut into.
template <class F>
int ScanChunks(const ReduceProblem& p, const DeviceLimits& limits) {
  using P = ScanPolicy;
  const int64_t wanted_blocks = int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  const int64_t blocks =
      p.inner == 1 ? p.outer : CeilDiv(p.outer * p.inner / ScanColumns<F>(p), P::kThreads);
  const int64_t most = p.axis / (p.inner == 1 ? P::kMinRowChunk : P::kMinColumnChunk);
  int64_t chunks = wanted_blocks / (blocks > 0 ? 2 * blocks : 1);
  if (chunks > most) chunks = most;
  const int64_t limit = p.inner == 1 ? P::kMaxChunks : 64;  // a thread merges those of a column
  if (chunks > limit) chunks = limit;
  return chunks > 1 ? static_cast<int>(chunks) : 1;
}

template <class F>
size_t ScanWorkspace(const ReduceProblem& p, const DeviceLimits& limits) {
  const int chunks = ScanChunks<F>(p, limits);
  return chunks > 1 ? sizeof(typename F::State) * p.outer * p.inner * chunks : 0;
}

template <class F>
cudaError_t LaunchRows(const ScanArguments& a, const F& f, typename F::State* totals,
                       cudaStream_t stream) {
  using P = ScanPolicy;
  if (a.axis <= kScanTile<F>) {
    return Launch(ScanShortRowsKernel<F>, CeilDiv(a.outer, P::kThreads / kWarp), P::kThreads, 0,
                  stream, a, f);
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
cudaError_t LaunchColumns(const ScanArguments& a, const F& f, typename F::State* totals,
                          cudaStream_t stream) {
  using P = ScanPolicy;
  const int64_t blocks = CeilDiv(a.outer * a.chunks * (a.inner / kColumns), P::kThreads);
  if (a.chunks > 1) {
    const cudaError_t error =
        Launch(ScanColumnsKernel<true, kColumns, F>, blocks, P::kThreads, 0, stream, a, f, totals);
    if (error != cudaSuccess) return error;
  }
  return Launch(ScanColumnsKernel<false, kColumns, F>, blocks, P::kThreads, 0, stream, a, f,
                totals);
}

template <class F>
cudaError_t LaunchScan(const ScanRun& run, const F& f, const DeviceLimits& limits,
                       cudaStream_t stream) {
  const ReduceProblem& p = run.problem;
  if (p.outer <= 0 || p.axis <= 0 || p.inner <= 0) return cudaSuccess;
  const int wanted = ScanChunks<F>(p, limits);
  ScanArguments a{p.outer, p.axis, p.inner, CeilDiv(p.axis, wanted), 1, run.reverse};
  if (p.inner == 1) a.chunk = CeilDiv(a.chunk, kScanTile<F>) * kScanTile<F>;
  a.chunks = static_cast<int>(CeilDiv(p.axis, a.chunk));  // no more than wanted
  auto* totals = static_cast<typename F::State*>(run.workspace);
  if (p.inner == 1) return LaunchRows(a, f, totals, stream);
  if (ScanColumns<F>(p) == 1) return LaunchColumns<1>(a, f, totals, stream);
  return LaunchColumns<F::kColumns>(a, f, totals, stream);
}

}  // namespace cuda
}  // namespace oneflow_lite
