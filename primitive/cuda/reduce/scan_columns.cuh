// SPDX-License-Identifier: Apache-2.0
//
// Scans along columns: a thread takes neighbouring columns of a chunk.
#pragma once

#include "primitive/cuda/reduce/scan_states.cuh"

namespace oneflow_lite {
namespace cuda {

// Where a thread of columns works: on kColumns neighbours from offset `base` on, along a chunk.
struct ColumnsPlace {
  int64_t column, outer, chunk, base, end;
  __device__ __forceinline__ ColumnsPlace(const ScanArguments& a, int64_t item, int columns) {
    const int64_t groups = a.inner / columns, rest = item / groups;
    column = item % groups * columns;
    outer = rest / a.chunks, chunk = rest % a.chunks;
    base = outer * a.axis * a.inner + column;
    end = (chunk + 1) * a.chunk < a.axis ? (chunk + 1) * a.chunk : a.axis;
  }
};

// N neighbours at an offset, read before they are needed.
template <class F, int N, bool = F::kOfElements>
struct RawColumns {
  typename F::State s[N];
  __device__ __forceinline__ void Load(const F& f, int64_t i, int64_t place, bool first) {
#pragma unroll
    for (int j = 0; j < N; ++j) s[j] = f.At(i + j, place, first);
  }
  __device__ __forceinline__ typename F::State At(const F&, int j, int64_t) const { return s[j]; }
};
template <class F, int N>
struct RawColumns<F, N, true> {
  Pack<typename F::Element, N> pack;
  __device__ __forceinline__ void Load(const F& f, int64_t i, int64_t, bool) {
    pack = LoadPack<N>(f.x + i);
  }
  __device__ __forceinline__ typename F::State At(const F& f, int j, int64_t place) const {
    return f.Of(pack.v[j], place);
  }
};

// inner > 1: a thread for kColumns neighbours and a chunk of the axis. inner is a multiple of
// kColumns.
template <bool kTotals, int kColumns, class F>
__global__ void __launch_bounds__(ScanPolicy::kThreads)
    ScanColumnsKernel(ScanArguments a, F f, typename F::State* totals) {
  using S = typename F::State;
  constexpr int kAhead = kColumns == 1 ? 4 : 8;  // rows read before the first of them is written
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  const int64_t items = a.outer * a.chunks * (a.inner / kColumns);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < items; i += step) {
    // The second launch begins with what the first one read last, which L2 still holds.
    const ColumnsPlace at(a, kTotals || a.chunks == 1 ? i : items - 1 - i, kColumns);
    Maybe<S> state[kColumns] = {};
    if (!kTotals) {
      for (int64_t c = 0; c < at.chunk; ++c) {
        const S* total = totals + (at.outer * a.chunks + c) * a.inner + at.column;
#pragma unroll
        for (int j = 0; j < kColumns; ++j) state[j] = Join(f, state[j], Maybe<S>{total[j], true});
      }
    }
    for (int64_t k = at.chunk * a.chunk; k < at.end; k += kAhead) {
      RawColumns<F, kColumns> raw[kAhead];
      const int count = k + kAhead <= at.end ? kAhead : static_cast<int>(at.end - k);
#pragma unroll
      for (int r = 0; r < kAhead; ++r) {
        const int64_t place = a.PlaceOf(k + r);
        if (r < count) raw[r].Load(f, at.base + place * a.inner, place, k + r == 0);
      }
#pragma unroll
      for (int r = 0; r < kAhead; ++r) {
        if (r >= count) break;
        const int64_t place = a.PlaceOf(k + r);
        S now[kColumns];
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          state[j] = Join(f, state[j], Maybe<S>{raw[r].At(f, j, place), true});
          now[j] = state[j].state;
        }
        if constexpr (!kTotals) WriteAt(f, at.base + place * a.inner, now);
      }
    }
    if constexpr (kTotals) {
      S* total = totals + (at.outer * a.chunks + at.chunk) * a.inner + at.column;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) total[j] = state[j].state;
    }
  }
}

}  // namespace cuda
}  // namespace oneflow_lite
