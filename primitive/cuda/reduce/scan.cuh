// SPDX-License-Identifier: Apache-2.0
//
// Scans along the middle axis of outer x axis x inner, by any associative operator. Rows (inner =
// 1) take a block each, short ones a warp, columns a thread each; where that leaves the device
// idle, the axis is cut into chunks: a first launch leaves the total of each, a second one begins
// each chunk with the merge of those before it. The order of every merge is fixed by the shape and
// the device; CUB's scan over the device would share a row out in an order that changes from run to
// run.
//
// A scanner says what is gathered (scan.cu):
//
//   struct State { ... };
//   State Of(int64_t i, int64_t place, bool first) const;  // of the element at offset i
//   State Merge(const State& earlier, const State& later) const;
//   void Write(int64_t i, const State&) const;
//   static constexpr bool kPacked;                         // whether it reads and writes runs:
//   void OfRun(int64_t low, int64_t place, bool reverse, State (&)[N]) const;  // from offset low
//   on, void WriteRun(int64_t low, bool reverse, const State (&)[N]) const;        // the first's
//   place
#pragma once

#include "primitive/cuda/chip/group.cuh"
#include "primitive/cuda/reduce/scan_launch.h"
#include "primitive/cuda/strided/elements.cuh"

namespace oneflow_lite {
namespace cuda {

struct ScanPolicy {
  static constexpr int kThreads = 256;
  static constexpr int kItems = 8;  // of a thread, neighbours
  static constexpr int kTile = kThreads * kItems;
  static constexpr int kBlocksPerMultiprocessor = 8;
  static constexpr int kMaxChunks = 1024;
  static constexpr int kMinRowChunk = 4 * kTile;
  static constexpr int kMinColumnChunk = 64;
};

struct ScanArguments {
  int64_t outer, axis, inner;
  int64_t chunk;  // elements of the axis
  int chunks;
  bool reverse;
  // The place in the axis of its k-th element in the scan's direction.
  __device__ __forceinline__ int64_t PlaceOf(int64_t k) const { return reverse ? axis - 1 - k : k; }
};

template <class S>
__device__ __forceinline__ S ShuffleState(const S& v, int lane) {
  static_assert(sizeof(S) % sizeof(uint32_t) == 0, "states are whole words");
  constexpr int kWords = sizeof(S) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &v, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_sync(0xffffffffu, words[i], lane);
  S other;
  memcpy(&other, words, sizeof(S));
  return other;
}

// A state that may not be there.
template <class S>
struct Maybe {
  S state;
  bool there;
};
template <class F, class S>
__device__ __forceinline__ Maybe<S> Join(const F& f, const Maybe<S>& a, const Maybe<S>& b) {
  if (!a.there) return b;
  if (!b.there) return a;
  return {f.Merge(a.state, b.state), true};
}

// The inclusive scan of the warp's states; all lanes must call it.
template <class F, class S>
__device__ __forceinline__ S ScanWarp(const F& f, S v) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int delta = 1; delta < kWarp; delta *= 2) {
    const S other = ShuffleState(v, lane >= delta ? lane - delta : lane);
    if (lane >= delta) v = f.Merge(other, v);
  }
  return v;
}

// The merge of the totals before chunk `chunk` > 0 of a row; every lane of the warp gets it.
template <class F, class S>
__device__ __forceinline__ S Before(const F& f, const S* totals, int chunk) {
  const int lane = threadIdx.x % kWarp;
  const int each = (chunk + kWarp - 1) / kWarp;
  S mine{};
  for (int c = lane * each; c < (lane + 1) * each && c < chunk; ++c) {
    mine = c == lane * each ? totals[c] : f.Merge(mine, totals[c]);
  }
  // Lanes beyond the last that has totals hold nothing, and nobody behind them is asked.
  return ShuffleState(ScanWarp(f, mine), (chunk - 1) / each);
}

// Neighbours in memory from p on, in the scan's direction.
template <int N, class T>
__device__ __forceinline__ void LoadRun(const T* p, bool reverse, T (&v)[N]) {
  constexpr int kEach = N < kPackSize<T> ? N : kPackSize<T>;
  T in_memory[N];
#pragma unroll
  for (int i = 0; i < N; i += kEach) {
    const Pack<T, kEach> pack = LoadPack<kEach>(p + i);
#pragma unroll
    for (int j = 0; j < kEach; ++j) in_memory[i + j] = pack.v[j];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) v[i] = reverse ? in_memory[N - 1 - i] : in_memory[i];
}
template <int N, class T>
__device__ __forceinline__ void StoreRun(T* p, bool reverse, const T (&v)[N]) {
  constexpr int kEach = N < kPackSize<T> ? N : kPackSize<T>;
#pragma unroll
  for (int i = 0; i < N; i += kEach) {
    Pack<T, kEach> pack;
#pragma unroll
    for (int j = 0; j < kEach; ++j) pack.v[j] = reverse ? v[N - 1 - i - j] : v[i + j];
    StorePack(p + i, pack);
  }
}

// A thread's part of a tile: kItems neighbours from the k-th on, scanned, and what the threads of
// the warp before it and all of them come to.
template <class F>
struct ThreadItems {
  using S = typename F::State;
  static constexpr int kItems = ScanPolicy::kItems;
  S items[kItems];
  Maybe<S> before, total;

  // first: of the warp.
  __device__ __forceinline__ ThreadItems(const ScanArguments& a, const F& f, int64_t row,
                                         int64_t first, int64_t end)
      : before{S{}, false}, total{S{}, false} {
    const int lane = threadIdx.x % kWarp;
    const int64_t k = first + lane * kItems;
    Read(a, f, row, k, end);
    S sum = items[0];
#pragma unroll
    for (int j = 1; j < kItems; ++j) {
      if (k + j >= end) break;
      sum = items[j] = f.Merge(items[j - 1], items[j]);
    }
    const int64_t left = end - first;  // the same for all lanes
    if (left <= 0) return;
    // Elements stand in the first lanes: what the others hold reaches none of them.
    const S scanned = ScanWarp(f, sum);
    before = {ShuffleState(scanned, lane > 0 ? lane - 1 : 0), lane > 0};
    const int64_t last = left < kWarp * kItems ? (left - 1) / kItems : kWarp - 1;
    total = {ShuffleState(scanned, static_cast<int>(last)), true};
  }

  // f(earlier, of each), where there is something earlier.
  __device__ __forceinline__ void Write(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                        int64_t end, const Maybe<S>& earlier) {
    if (k >= end) return;
    if (earlier.there) {
#pragma unroll
      for (int j = 0; j < kItems; ++j) items[j] = f.Merge(earlier.state, items[j]);
    }
    if constexpr (F::kPacked) {
      if (k + kItems <= end) {
        return f.WriteRun(row * a.axis + LowOf(a, k), a.reverse, items);
      }
    }
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (k + j < end) f.Write(row * a.axis + a.PlaceOf(k + j), items[j]);
    }
  }

 private:
  // The least place of the kItems from the k-th on.
  static __device__ __forceinline__ int64_t LowOf(const ScanArguments& a, int64_t k) {
    return a.PlaceOf(a.reverse ? k + kItems - 1 : k);
  }
  __device__ __forceinline__ void Read(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                       int64_t end) {
    if constexpr (F::kPacked) {
      if (k + kItems <= end) {
        return f.OfRun(row * a.axis + LowOf(a, k), a.PlaceOf(k), a.reverse, items);
      }
    }
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int64_t place = a.PlaceOf(k + j);
      items[j] = k + j < end ? f.Of(row * a.axis + place, place, k + j == 0) : S{};
    }
  }
};

// inner = 1: a block per chunk of a row. With kTotals it leaves the chunk's total alone.
template <bool kTotals, class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads)
    ScanRowsKernel(ScanArguments a, F f, typename F::State* totals) {
  using S = typename F::State;
  constexpr int kWarps = ScanPolicy::kThreads / kWarp, kItems = ScanPolicy::kItems;
  __shared__ __align__(16) char slots_memory[kWarps * sizeof(Maybe<S>)];
  Maybe<S>* slots = reinterpret_cast<Maybe<S>*>(slots_memory);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t item = blockIdx.x; item < a.outer * a.chunks; item += gridDim.x) {
    const int64_t row = item / a.chunks;
    const int chunk = static_cast<int>(item % a.chunks);
    const int64_t end = (chunk + 1) * a.chunk < a.axis ? (chunk + 1) * a.chunk : a.axis;
    Maybe<S> carry{S{}, false};
    if (!kTotals && chunk > 0) carry = {Before(f, totals + row * a.chunks, chunk), true};
    for (int64_t start = chunk * a.chunk; start < end; start += ScanPolicy::kTile) {
      const int64_t first = start + warp * kItems * kWarp;
      ThreadItems<F> mine(a, f, row, first, end);
      __syncthreads();  // the slots are free again
      if (lane == 0) slots[warp] = mine.total;
      __syncthreads();
      Maybe<S> before = carry;  // the carry and the warps before this one
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) before = carry;
        carry = Join(f, carry, slots[w]);
      }
      if constexpr (!kTotals) {
        mine.Write(a, f, row, first + lane * kItems, end, Join(f, before, mine.before));
      }
    }
    if (kTotals && threadIdx.x == 0) totals[item] = carry.state;
  }
}

// inner = 1 and rows of at most a tile: a warp each.
template <class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads) ScanShortRowsKernel(ScanArguments a, F f) {
  using S = typename F::State;
  constexpr int kWarps = ScanPolicy::kThreads / kWarp, kItems = ScanPolicy::kItems;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t row = int64_t{blockIdx.x} * kWarps + warp; row < a.outer;
       row += int64_t{gridDim.x} * kWarps) {
    Maybe<S> carry{S{}, false};
    for (int64_t first = 0; first < a.axis; first += kItems * kWarp) {
      ThreadItems<F> mine(a, f, row, first, a.axis);
      mine.Write(a, f, row, first + lane * kItems, a.axis, Join(f, carry, mine.before));
      carry = Join(f, carry, mine.total);
    }
  }
}

// inner > 1: a thread per column and chunk of the axis.
template <bool kTotals, class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads)
    ScanColumnsKernel(ScanArguments a, F f, typename F::State* totals) {
  using S = typename F::State;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       item < a.outer * a.chunks * a.inner; item += step) {
    const int64_t column = item % a.inner, rest = item / a.inner;
    const int64_t chunk = rest % a.chunks, outer = rest / a.chunks;
    const int64_t base = outer * a.axis * a.inner + column;
    const int64_t end = (chunk + 1) * a.chunk < a.axis ? (chunk + 1) * a.chunk : a.axis;
    Maybe<S> state{S{}, false};
    if (!kTotals) {
      for (int64_t c = 0; c < chunk; ++c) {
        state = Join(f, state, Maybe<S>{totals[(outer * a.chunks + c) * a.inner + column], true});
      }
    }
#pragma unroll 4
    for (int64_t k = chunk * a.chunk; k < end; ++k) {
      const int64_t place = a.PlaceOf(k), i = base + place * a.inner;
      state = Join(f, state, Maybe<S>{f.Of(i, place, k == 0), true});
      if (!kTotals) f.Write(i, state.state);
    }
    if (kTotals) totals[item] = state.state;
  }
}

// How many chunks the axis is cut into.
inline int ScanChunks(const ReduceProblem& p, const DeviceLimits& limits) {
  using P = ScanPolicy;
  const int64_t wanted_blocks = int64_t{P::kBlocksPerMultiprocessor} * limits.multiprocessors;
  const int64_t blocks = p.inner == 1 ? p.outer : CeilDiv(p.outer * p.inner, P::kThreads);
  const int64_t most = p.axis / (p.inner == 1 ? P::kMinRowChunk : P::kMinColumnChunk);
  int64_t chunks = wanted_blocks / (blocks > 0 ? 2 * blocks : 1);
  if (chunks > most) chunks = most;
  const int64_t limit = p.inner == 1 ? P::kMaxChunks : 64;  // a thread merges those of a column
  if (chunks > limit) chunks = limit;
  return chunks > 1 ? static_cast<int>(chunks) : 1;
}

template <class S>
size_t ScanWorkspace(const ReduceProblem& p, const DeviceLimits& limits) {
  const int chunks = ScanChunks(p, limits);
  return chunks > 1 ? sizeof(S) * p.outer * p.inner * chunks : 0;
}

template <class F>
cudaError_t LaunchScan(const ScanRun& run, const F& f, const DeviceLimits& limits,
                       cudaStream_t stream) {
  using P = ScanPolicy;
  using S = typename F::State;
  const ReduceProblem& p = run.problem;
  if (p.outer <= 0 || p.axis <= 0 || p.inner <= 0) return cudaSuccess;
  const int wanted = ScanChunks(p, limits);
  ScanArguments a{p.outer, p.axis, p.inner, CeilDiv(p.axis, wanted), 1, run.reverse};
  if (p.inner == 1) a.chunk = CeilDiv(a.chunk, P::kTile) * P::kTile;
  a.chunks = static_cast<int>(CeilDiv(p.axis, a.chunk));  // no more than wanted
  S* totals = static_cast<S*>(run.workspace);
  const int64_t blocks =
      p.inner == 1 ? p.outer * a.chunks : CeilDiv(p.outer * p.inner * a.chunks, P::kThreads);
  cudaError_t error = cudaSuccess;
  if (p.inner == 1 && p.axis <= P::kTile) {
    return Launch(ScanShortRowsKernel<F>, CeilDiv(p.outer, P::kThreads / kWarp), P::kThreads, 0,
                  stream, a, f);
  }
  if (p.inner == 1) {
    if (a.chunks > 1) {
      error = Launch(ScanRowsKernel<true, F>, blocks, P::kThreads, 0, stream, a, f, totals);
    }
    if (error != cudaSuccess) return error;
    return Launch(ScanRowsKernel<false, F>, blocks, P::kThreads, 0, stream, a, f, totals);
  }
  if (a.chunks > 1) {
    error = Launch(ScanColumnsKernel<true, F>, blocks, P::kThreads, 0, stream, a, f, totals);
  }
  if (error != cudaSuccess) return error;
  return Launch(ScanColumnsKernel<false, F>, blocks, P::kThreads, 0, stream, a, f, totals);
}

}  // namespace cuda
}  // namespace oneflow_lite
