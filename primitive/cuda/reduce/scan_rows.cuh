// SPDX-License-Identifier: Apache-2.0
//
// Scans along rows: a block per chunk of a row, or a warp per short row. A thread takes neighbours,
// and reads those of the next tile before it scans these.
#pragma once

#include "primitive/cuda/reduce/scan_states.cuh"

namespace oneflow_lite {
namespace cuda {

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

template <class F>
__device__ __forceinline__ void WriteOne(const F& f, int64_t i, const typename F::State& s) {
  const typename F::State one[] = {s};
  WriteAt(f, i, one);
}

// F::kItems neighbours of a row from the k-th on, read before they are needed. Those from the end
// on are anything: they reach only what comes after them in the scan.
template <class F, bool = F::kOfElements>
struct RawItems {
  static constexpr int kItems = F::kItems;
  __device__ __forceinline__ void Load(const ScanArguments&, const F&, int64_t, int64_t, int) {}
  __device__ __forceinline__ void To(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                     int count, typename F::State (&s)[kItems]) const {
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      const int64_t place = a.PlaceOf(k + j);
      if (j < count) s[j] = f.At(row * a.axis + place, place, k + j == 0);
    }
  }
};
template <class F>
struct RawItems<F, true> {
  static constexpr int kItems = F::kItems;
  typename F::Element v[kItems];
  __device__ __forceinline__ void Load(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                       int count) {
    if (count == kItems) return LoadRun(f.x + row * a.axis + a.LowOf(k, kItems), a.reverse, v);
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (j < count) v[j] = f.x[row * a.axis + a.PlaceOf(k + j)];
    }
  }
  __device__ __forceinline__ void To(const ScanArguments& a, const F& f, int64_t, int64_t k, int,
                                     typename F::State (&s)[kItems]) const {
    const int64_t place = a.PlaceOf(k);
#pragma unroll
    for (int j = 0; j < kItems; ++j) s[j] = f.Of(v[j], a.reverse ? place - j : place + j);
  }
};

// A thread's part of a tile: kItems neighbours from the k-th on, scanned, and what the threads of
// the warp before it and all of them come to.
template <class F>
struct ThreadItems {
  using S = typename F::State;
  static constexpr int kItems = F::kItems;
  S items[kItems] = {};
  Maybe<S> before, total;

  // How many of the kItems from the k-th on there are.
  static __device__ __forceinline__ int Count(int64_t k, int64_t end) {
    return k + kItems <= end ? kItems : k < end ? static_cast<int>(end - k) : 0;
  }
  // `any`: whether the warp has elements.
  __device__ __forceinline__ ThreadItems(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                         int count, bool any, const RawItems<F>& raw)
      : before{S{}, false}, total{S{}, false} {
    raw.To(a, f, row, k, count, items);
    Maybe<S> nothing{S{}, false};
    ScanStates(f, nothing, count, items);
    const int lane = threadIdx.x % kWarp;
    const S scanned = ScanWarp(f, items[kItems - 1]);
    before = {ShuffleState(scanned, lane > 0 ? lane - 1 : 0), lane > 0};
    total = {ShuffleState(scanned, kWarp - 1), any};
  }

  // f(earlier, of each), where there is something earlier.
  __device__ __forceinline__ void Write(const ScanArguments& a, const F& f, int64_t row, int64_t k,
                                        int count, const Maybe<S>& earlier) {
    if (earlier.there) MergeBefore(f, earlier.state, items);
    if constexpr (F::kOfElements) {
      if (count == kItems) {
        return f.WriteRun(row * a.axis + a.LowOf(k, kItems), a.reverse, items);
      }
    }
#pragma unroll
    for (int j = 0; j < kItems; ++j) {
      if (j < count) WriteOne(f, row * a.axis + a.PlaceOf(k + j), items[j]);
    }
  }
};

// inner = 1: a block per chunk of a row. With kTotals it leaves the chunk's total alone.
template <bool kTotals, class F>
__global__ void __launch_bounds__(ScanPolicy::kRowThreads, F::kRowBlocks)
    ScanRowsKernel(ScanArguments a, F f, typename F::State* totals) {
  using S = typename F::State;
  using Items = ThreadItems<F>;
  constexpr int kWarps = ScanPolicy::kRowThreads / kWarp, kItems = F::kItems;
  __shared__ __align__(16) char slots_memory[kWarps * sizeof(Maybe<S>)];
  Maybe<S>* slots = reinterpret_cast<Maybe<S>*>(slots_memory);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t items = a.outer * a.chunks;
  for (int64_t i = blockIdx.x; i < items; i += gridDim.x) {
    const int64_t item = kTotals || a.chunks == 1 ? i : items - 1 - i;  // the last are in L2 still
    const int64_t row = item / a.chunks;
    const int chunk = static_cast<int>(item % a.chunks);
    const int64_t end = (chunk + 1) * a.chunk < a.axis ? (chunk + 1) * a.chunk : a.axis;
    Maybe<S> carry{S{}, false};
    if (!kTotals && chunk > 0) carry = {Before(f, totals + row * a.chunks, chunk), true};
    int64_t k = chunk * a.chunk + threadIdx.x * kItems;
    int count = Items::Count(k, end);
    RawItems<F> raw;
    raw.Load(a, f, row, k, count);
    for (int64_t start = chunk * a.chunk; start < end; start += kScanTile<F>) {
      Items mine(a, f, row, k, count, start + warp * kItems * kWarp < end, raw);
      const int64_t next = k + kScanTile<F>;
      const int more = Items::Count(next, end);
      raw.Load(a, f, row, next, more);
      __syncthreads();  // the slots are free again
      if (lane == 0) slots[warp] = mine.total;
      __syncthreads();
      Maybe<S> before = carry;  // the carry and the warps before this one
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) before = carry;
        carry = Join(f, carry, slots[w]);
      }
      if constexpr (!kTotals) {
        mine.Write(a, f, row, k, count, Join(f, before, mine.before));
      }
      k = next, count = more;
    }
    if (kTotals && threadIdx.x == 0) totals[item] = carry.state;
  }
}

// inner = 1 and rows of at most a tile: a warp each.
template <class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads) ScanShortRowsKernel(ScanArguments a, F f) {
  using S = typename F::State;
  using Items = ThreadItems<F>;
  constexpr int kWarps = ScanPolicy::kThreads / kWarp, kItems = F::kItems;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (int64_t row = int64_t{blockIdx.x} * kWarps + warp; row < a.outer;
       row += int64_t{gridDim.x} * kWarps) {
    Maybe<S> carry{S{}, false};
    int64_t k = lane * kItems;
    int count = Items::Count(k, a.axis);
    RawItems<F> raw;
    raw.Load(a, f, row, k, count);
    for (int64_t first = 0; first < a.axis; first += kItems * kWarp) {
      Items mine(a, f, row, k, count, true, raw);
      const int64_t next = k + kItems * kWarp;
      const int more = Items::Count(next, a.axis);
      raw.Load(a, f, row, next, more);
      mine.Write(a, f, row, k, count, Join(f, carry, mine.before));
      carry = Join(f, carry, mine.total);
      k = next, count = more;
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
