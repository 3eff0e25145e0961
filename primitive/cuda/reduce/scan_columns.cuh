// SPDX-License-Identifier: Apache-2.0
//
// Scans along columns: a thread takes neighbouring columns, from the first row to the last.
#pragma once

#include "primitive/cuda/reduce/scan_states.cuh"

namespace oneflow_lite {
namespace cuda {

// N neighbours at an offset, read before they are needed.
template <class F, int N, bool = F::kOfElements>
struct RawColumns {
  using S = typename F::State;
  S s[N];
  __device__ __forceinline__ void Load(const F& f, int64_t i, int64_t place, bool first) {
#pragma unroll
    for (int j = 0; j < N; ++j) s[j] = f.At(i + j, place, first);
  }
  __device__ __forceinline__ void To(const F&, int64_t, S (&to)[N]) const {
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] = s[j];
  }
};
template <class F, int N>
struct RawColumns<F, N, true> {
  // Elements of 16 bits that were widened where they are read would make each load wait for the one
  // before it.
  StowedPack<typename F::Element, N> pack;
  __device__ __forceinline__ void Load(const F& f, int64_t i, int64_t, bool) {
    pack = StowedPack<typename F::Element, N>::Of(LoadPack<N>(f.x + i));
  }
  __device__ __forceinline__ void To(const F& f, int64_t place, typename F::State (&to)[N]) const {
    const Pack<typename F::Element, N> now = pack.Get();
#pragma unroll
    for (int j = 0; j < N; ++j) to[j] = f.Of(now.v[j], place);
  }
};

// Carries the states of kColumns neighbours on over the first `count` rows that were read, and
// gives those of each row to put(row, states). The first row is the one of number `first`.
template <int kColumns, class F, int kRows, class Put>
__device__ __forceinline__ void ScanHeldRows(const ScanArguments& a, const F& f,
                                             const RawColumns<F, kColumns> (&raw)[kRows],
                                             int64_t first, int count,
                                             Maybe<typename F::State> (&state)[kColumns],
                                             const Put& put) {
  using S = typename F::State;
  constexpr int kRun = F::kScansRuns ? 4 : 1;
  static_assert(kRows % kRun == 0, "");
#pragma unroll
  for (int r = 0; r < kRows; r += kRun) {
    if (r >= count) break;
    S rows[kRun][kColumns];
#pragma unroll
    for (int i = 0; i < kRun; ++i) raw[r + i].To(f, a.PlaceOf(first + r + i), rows[i]);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      S run[kRun];
#pragma unroll
      for (int i = 0; i < kRun; ++i) run[i] = rows[i][j];
      ScanStates(f, state[j], count - r, run);
#pragma unroll
      for (int i = 0; i < kRun; ++i) rows[i][j] = run[i];
    }
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      if (r + i < count) put(r + i, rows[i]);
    }
  }
}

// inner > 1 and a multiple of kColumns.
template <int kColumns, class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads) ScanColumnsKernel(ScanArguments a, F f) {
  constexpr int kAhead = kColumns == 1 ? 4 : 8;  // rows read before the first of them is written
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t groups = a.inner / kColumns;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < a.outer * groups;
       i += step) {
    const int64_t base = i / groups * a.axis * a.inner + i % groups * kColumns;
    Maybe<typename F::State> state[kColumns] = {};
    for (int64_t k = 0; k < a.axis; k += kAhead) {
      RawColumns<F, kColumns> raw[kAhead];
      const int count = k + kAhead <= a.axis ? kAhead : static_cast<int>(a.axis - k);
#pragma unroll
      for (int r = 0; r < kAhead; ++r) {
        const int64_t place = a.PlaceOf(k + r);
        if (r < count) raw[r].Load(f, base + place * a.inner, place, k + r == 0);
      }
      ScanHeldRows(a, f, raw, k, count, state, [&](int r, const typename F::State(&now)[kColumns]) {
        WriteAt(f, base + a.PlaceOf(k + r) * a.inner, now);
      });
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
