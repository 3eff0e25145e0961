// SPDX-License-Identifier: Apache-2.0
//
// How the softmax kernels read and write: Load and Store functors, which a caller may replace by
// their own to fuse what comes before and after.
//
// A Load functor has
//   using Element = ...;                                  the type an element is kept in on chip
//   template <int N> Pack<Element, N> Load(int64_t row, int64_t col) const;
// a Store functor has
//   using Element = ...;                                  the type that is written
//   int Head(int64_t row) const;    columns before the row's first 16-byte boundary
//   template <int N> void Store(int64_t row, int64_t col, const Pack<C, N>& v) const;
// with C = ComputeType<Element>. Both are called with N = 1, and with N = kPackSize of the Store's
// Element at columns Head(row) + k * N; all of [col, col + N) is inside the row.
#pragma once

#include "primitive/cuda/pack.cuh"

namespace oneflow_lite {
namespace cuda {

// Rows of elements in memory, row_stride elements apart.
template <class T>
struct DirectLoad {
  using Element = T;
  const T* x;
  int64_t row_stride;

  template <int N>
  __device__ __forceinline__ Pack<T, N> Load(int64_t row, int64_t col) const {
    return LoadPack<N>(x + row * row_stride + col);
  }
};

template <class T>
struct DirectStore {
  using Element = T;
  T* y;
  int64_t row_stride;

  __device__ __forceinline__ int Head(int64_t row) const {
    return ElementsToBoundary(y + row * row_stride);
  }
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col,
                                        const Pack<ComputeType<T>, N>& v) const {
    StorePack<N>(y + row * row_stride + col, ConvertPack<T>(v));
  }
};

// A row cut into whole aligned packs and the few columns before (head) and after them (tail). The
// columns outside packs are dealt out one by one: extra e < extras() lies at column Column(e).
template <int N>
struct RowSpan {
  int head, tail;
  int64_t packs;

  __device__ __forceinline__ RowSpan(int first_boundary, int64_t cols) {
    head = first_boundary < cols ? first_boundary : static_cast<int>(cols);
    packs = (cols - head) / N;
    tail = static_cast<int>(cols - head - packs * N);
  }
  __device__ __forceinline__ RowSpan() : head(0), tail(0), packs(0) {}  // no columns at all
  __device__ __forceinline__ int extras() const { return head + tail; }
  __device__ __forceinline__ int64_t Column(int e) const { return e < head ? e : packs * N + e; }
  __device__ __forceinline__ int64_t PackColumn(int64_t p) const { return head + p * N; }
};

// The most columns outside packs, dealt to `members` threads.
template <int N>
__host__ __device__ constexpr int ExtrasPerThread(int members) {
  return (2 * (N - 1) + members - 1) / members;
}

}  // namespace cuda
}  // namespace oneflow_lite
